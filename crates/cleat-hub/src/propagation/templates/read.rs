//! Answers to what templates look up, read from the hub, perhaps with a service account's rights.

use std::collections::BTreeMap;

use cleat_core::id::{Id, Target};
use cleat_runtime::kinds::{Kinds, Mapped, Mapping};
use cleat_template::{LookupError, Lookups, Query, Scope};
use http::Request;
use kube::Client;
use serde_json::Value;

use super::Purpose;

/// What was read in one pass. The same question is asked once.
pub(super) struct Answers {
    namespace: String,
    account: Option<String>,
    purpose: Purpose,
    kinds: BTreeMap<(String, String), Result<Mapped, LookupError>>,
    objects: BTreeMap<Query, Result<Value, LookupError>>,
    accounts: BTreeMap<String, Result<bool, String>>,
}

impl Lookups for Answers {
    fn get(&self, query: &Query) -> Result<Value, LookupError> {
        self.objects.get(query).cloned().unwrap_or(Err(LookupError::NotYetRead))
    }

    fn list(&self, query: &Query) -> Result<Vec<Value>, LookupError> {
        let list = self.get(query)?;
        Ok(list.get("items").and_then(Value::as_array).cloned().unwrap_or_default())
    }

    fn scope(&self, api_version: &str, kind: &str) -> Result<Scope, LookupError> {
        match self.kinds.get(&(api_version.to_owned(), kind.to_owned())) {
            None => Err(LookupError::NotYetRead),
            Some(Err(error)) => Err(error.clone()),
            Some(Ok(mapped)) if mapped.namespaced => Ok(Scope::Namespaced),
            Some(Ok(_)) => Ok(Scope::Cluster),
        }
    }
}

impl Answers {
    pub(super) fn new(namespace: &str, account: Option<&str>, purpose: Purpose) -> Self {
        Self {
            namespace: namespace.to_owned(),
            account: account.map(str::to_owned),
            purpose,
            kinds: BTreeMap::new(),
            objects: BTreeMap::new(),
            accounts: BTreeMap::new(),
        }
    }

    /// Reads what the question needs: how its kind is served, and then what it asks for.
    pub(super) async fn read(&mut self, hub_client: &Client, kinds: &Kinds, query: Query) {
        let key = (query.api_version.clone(), query.kind.clone());
        let mapped = match self.kinds.get(&key) {
            Some(mapped) => mapped.clone(),
            None => {
                let mapped = match kinds.map(&query.api_version, &query.kind).await {
                    Mapping::Mapped(mapped) => Ok(mapped),
                    Mapping::NoSuchKind => Err(LookupError::MissingApi),
                    Mapping::Unknown(why) => Err(LookupError::Failed(why)),
                };
                self.kinds.insert(key, mapped.clone());
                // Where lookups are restricted, the scope decides what the question is.
                if self.account.is_none() && mapped.is_ok() {
                    return;
                }
                mapped
            }
        };
        let answer = match mapped {
            Ok(mapped) => self.ask(hub_client, &mapped, &query).await,
            Err(error) => Err(error),
        };
        self.objects.insert(query, answer);
    }

    async fn ask(
        &self,
        hub_client: &Client,
        mapped: &Mapped,
        query: &Query,
    ) -> Result<Value, LookupError> {
        let path = path(mapped, query)?;
        let answer = get(hub_client, &path, self.user()).await;
        let mut object = answer.map_err(|error| match error {
            kube::Error::Api(status) if status.code == 404 && !query.is_list() => {
                LookupError::NotFound(status.message.clone())
            }
            // Whoever only looks may have fewer rights than the hub.
            kube::Error::Api(status) if status.code == 403 && self.purpose == Purpose::Show => {
                LookupError::Failed(status.message.clone())
            }
            kube::Error::Api(status) if matches!(status.code, 400 | 403) => {
                LookupError::Refused(status.message.clone())
            }
            other => LookupError::Failed(other.to_string()),
        })?;
        if query.is_list() {
            let api_version = Value::from(query.api_version.as_str());
            let kind = Value::from(query.kind.as_str());
            let items = object.get_mut("items").and_then(Value::as_array_mut);
            // Items of a list do not say what they are.
            for item in items.into_iter().flatten().filter_map(Value::as_object_mut) {
                item.insert("apiVersion".to_owned(), api_version.clone());
                item.insert("kind".to_owned(), kind.clone());
            }
        }
        Ok(object)
    }

    /// In whose name is read.
    fn user(&self) -> Option<String> {
        let account = self.account.as_ref()?;
        Some(format!("system:serviceaccount:{}:{account}", self.namespace))
    }

    /// How an object that was asked for is watched; none for lists.
    pub(super) fn target(&self, query: &Query) -> Option<Target> {
        let key = (query.api_version.clone(), query.kind.clone());
        let mapped = self.kinds.get(&key)?.as_ref().ok()?;
        if query.is_list() {
            return None;
        }
        let namespace = if mapped.namespaced { query.namespace.clone() } else { String::new() };
        let id = Id {
            group: mapped.group.clone(),
            resource: mapped.resource.clone(),
            namespace,
            name: query.name.clone(),
        };
        Some(Target { version: mapped.version.clone(), id })
    }

    /// Whether there is such a service account, and how it is watched.
    pub(super) async fn account(
        &mut self,
        hub_client: &Client,
        namespace: &str,
        name: &str,
    ) -> Result<(Target, bool), String> {
        let id = Id {
            group: String::new(),
            resource: "serviceaccounts".to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let target = Target { version: "v1".to_owned(), id };
        if let Some(known) = self.accounts.get(name) {
            return known.clone().map(|exists| (target, exists));
        }
        let exists = match segment(name) {
            Err(_) => Ok(false),
            Ok(name) => {
                let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}");
                match get(hub_client, &path, None).await {
                    Ok(_) => Ok(true),
                    Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
                    Err(error) => Err(error.to_string()),
                }
            }
        };
        self.accounts.insert(name.to_owned(), exists.clone());
        exists.map(|exists| (target, exists))
    }
}

async fn get(hub_client: &Client, path: &str, user: Option<String>) -> kube::Result<Value> {
    let mut request = Request::get(path).header("accept", "application/json");
    if let Some(user) = user {
        let namespace = user.split(':').nth(2).unwrap_or_default().to_owned();
        request = request
            .header("impersonate-user", user)
            .header("impersonate-group", "system:serviceaccounts")
            .header("impersonate-group", format!("system:serviceaccounts:{namespace}"))
            .header("impersonate-group", "system:authenticated");
    }
    let request = request.body(Vec::new()).map_err(kube::Error::HttpError)?;
    hub_client.request(request).await
}

fn path(mapped: &Mapped, query: &Query) -> Result<String, LookupError> {
    let Mapped { group, version, resource, namespaced } = mapped;
    let mut path = if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    };
    if *namespaced && !query.namespace.is_empty() {
        path.push_str(&format!("/namespaces/{}", segment(&query.namespace)?));
    }
    path.push_str(&format!("/{resource}"));
    if !query.name.is_empty() {
        path.push_str(&format!("/{}", segment(&query.name)?));
    } else if !query.selector.is_empty() {
        path.push_str("?labelSelector=");
        for byte in query.selector.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_') {
                path.push(char::from(byte));
            } else {
                path.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    Ok(path)
}

/// A name that would change the meaning of a path is no name.
fn segment(name: &str) -> Result<&str, LookupError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
    if matches!(name, "" | "." | "..") || !name.chars().all(plain) {
        let name: String = name.chars().take(63).collect();
        return Err(LookupError::Refused(format!("{name:?} is not a name")));
    }
    Ok(name)
}
