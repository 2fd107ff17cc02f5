//! Reading objects through the lookups that were handed in.

use serde_json::Value as Json;

use super::Reach;
use crate::encrypt::Encryption;
use crate::library::{Answer, Args, Env};
use crate::limits::Fault;
use crate::lookup::{LookupError, Query, Scope};
use crate::print;
use crate::sprig::{self, Escape};
use crate::value::{Entries, Numbers, Value, from_json};

const CLUSTER_CLAIM: &str = "cluster.open-cluster-management.io/v1alpha1";
const ROLE: &str = "node-role.kubernetes.io";

/// A failed read as upstream words it: what was wanted, then why not.
fn fault(prefix: &str, query: Box<Query>, error: LookupError) -> Fault {
    Fault::Lookup { text: format!("{prefix}{error}"), query, error }
}

/// `{items: [...]}`, which is all that a list is to a template.
pub(super) fn list(items: &[Json]) -> Value {
    let items = items.iter().map(|item| from_json(item, Numbers::Int64)).collect();
    Value::map(Entries::from([("items".to_owned(), Value::list(items))]))
}

/// An answer, or the question with the reason why there is none.
type Found<T> = Result<T, (Box<Query>, LookupError)>;

impl Reach<'_> {
    fn query(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        selector: &str,
    ) -> Found<Query> {
        let mut query = Query {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            selector: selector.to_owned(),
        };
        let refuse = |query: &Query, text: String| {
            Err((Box::new(query.clone()), LookupError::Refused(text)))
        };
        if api_version.is_empty() || kind.is_empty() {
            return refuse(&query, "the apiVersion and kind are required".to_owned());
        }
        if !self.namespace.is_empty() {
            if !namespace.is_empty() && namespace != self.namespace {
                let text = format!("the namespace argument is restricted to {}", self.namespace);
                return refuse(&query, text);
            }
            query.namespace = self.namespace.to_owned();
        }
        if api_version.matches('/').count() > 1 {
            return refuse(&query, format!("unexpected GroupVersion string: {api_version}"));
        }
        if !self.namespace.is_empty() {
            let scope = self.lookups.scope(api_version, kind);
            if scope.map_err(|error| (Box::new(query.clone()), error))? == Scope::Cluster {
                if !self.is_allowed(api_version, kind, name) {
                    let text =
                        format!("lookup of cluster-scoped resource '{kind}/{name}' is not allowed");
                    return refuse(&query, text);
                }
                query.namespace = String::new();
            }
        }
        Ok(query)
    }

    fn is_allowed(&self, api_version: &str, kind: &str, name: &str) -> bool {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let fits = |pattern: &str, text: &str| pattern == "*" || pattern == text;
        self.allowed.iter().any(|allowed| {
            fits(&allowed.group, group) && fits(&allowed.kind, kind) && fits(&allowed.name, name)
        })
    }

    fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Found<Json> {
        let query = self.query(api_version, kind, namespace, name, "")?;
        self.traces.borrow_mut().used.insert(query.clone());
        let object = self.lookups.get(&query).map_err(|error| (Box::new(query), error))?;
        if kind == "Secret" {
            self.traces.borrow_mut().sensitive = true;
        }
        Ok(object)
    }

    fn all(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        selector: &str,
    ) -> Found<Vec<Json>> {
        let query = self.query(api_version, kind, namespace, "", selector)?;
        self.traces.borrow_mut().used.insert(query.clone());
        let items = self.lookups.list(&query).map_err(|error| (Box::new(query), error))?;
        if kind == "Secret" && !items.is_empty() {
            self.traces.borrow_mut().sensitive = true;
        }
        Ok(items)
    }

    fn complete(&self, args: &Args<'_>, wanted: &str) -> Result<(), Fault> {
        let (namespace, rest) = (args.bytes(0), (1..args.len()).map(|index| args.bytes(index)));
        let nameless = namespace.is_empty() && self.namespace.is_empty();
        if nameless || rest.into_iter().any(<[u8]>::is_empty) {
            return Err(Fault::text(format!("the input is invalid: {wanted} must be specified")));
        }
        Ok(())
    }

    fn secret(&self, args: &Args<'_>) -> Result<Json, Fault> {
        let (namespace, name) = (args.text(0)?, args.text(1)?);
        self.get("v1", "Secret", namespace, name).map_err(|(query, error)| {
            fault(&format!("failed to get the secret {name} from {namespace}: "), query, error)
        })
    }

    fn config_map(&self, args: &Args<'_>) -> Result<Json, Fault> {
        let (namespace, name) = (args.text(0)?, args.text(1)?);
        self.get("v1", "ConfigMap", namespace, name).map_err(|(query, error)| {
            fault(&format!("failed getting the ConfigMap {name} from {namespace}: "), query, error)
        })
    }

    pub(super) fn secret_entry(&self, args: &Args<'_>) -> Answer {
        self.complete(args, "namespace, name, and key")?;
        let value = entry(&self.secret(args)?, args.text(2)?);
        if matches!(self.encryption, Encryption::Encrypt(_)) {
            return self.protect(value.as_bytes()).map(Value::text);
        }
        Ok(Value::text(value))
    }

    pub(super) fn config_map_entry(&self, args: &Args<'_>) -> Answer {
        self.complete(args, "namespace, name, and key")?;
        Ok(Value::text(entry(&self.config_map(args)?, args.text(2)?)))
    }

    pub(super) fn copy_secret(&self, env: &Env, args: &Args<'_>) -> Answer {
        self.complete(args, "namespace and name")?;
        let data = data(&self.secret(args)?);
        if let (Encryption::Encrypt(_), Value::Map(map)) = (self.encryption, &data) {
            let entries = map.entries().clone();
            let mut protected = Entries::new();
            for (key, value) in entries {
                let plain = print::plain(&value, &env.budget)?;
                protected.insert(key, Value::text(self.protect(&plain)?));
            }
            let data = if map.nil { Value::nil_map() } else { Value::map(protected) };
            return encoded(env, &data);
        }
        encoded(env, &data)
    }

    pub(super) fn copy_config_map(&self, env: &Env, args: &Args<'_>) -> Answer {
        self.complete(args, "namespace and name")?;
        encoded(env, &data(&self.config_map(args)?))
    }

    pub(super) fn cluster_claim(&self, args: &Args<'_>, absent_is_empty: bool) -> Answer {
        let name = args.text(0)?;
        if name.is_empty() {
            return Err(Fault::text("a claim name must be provided"));
        }
        let claim = match self.get(CLUSTER_CLAIM, "ClusterClaim", "", name) {
            Ok(claim) => claim,
            Err((_, LookupError::NotFound(_))) if absent_is_empty => return Ok(Value::text("")),
            Err((query, error)) => return Err(fault("", query, error)),
        };
        let Some(spec) = claim.get("spec").and_then(Json::as_object) else {
            return Err(Fault::text(format!("unexpected ClusterClaim format: {name}")));
        };
        match spec.get("value") {
            None => Ok(Value::text("")),
            Some(Json::String(value)) => Ok(Value::text(value)),
            Some(other) => {
                let given = cleat_dialect::quote::type_name(other);
                Err(Fault::text(format!(
                    "interface conversion: interface {{}} is {given}, not string"
                )))
            }
        }
    }

    /// One object, or `{items: …}`; nothing if the object does not exist.
    pub(super) fn lookup(&self, args: &Args<'_>) -> Answer {
        let (api_version, kind) = (args.text(0)?, args.text(1)?);
        let (namespace, name) = (args.text(2)?, args.text(3)?);
        let selectors: Result<Vec<&str>, Fault> =
            (4..args.len()).map(|index| args.text(index)).collect();
        let selectors = selectors?;
        // Only the first is looked at to see whether there are any.
        let selector = match selectors.first() {
            Some(first) if !first.is_empty() => selectors.join(","),
            _ => String::new(),
        };
        if name.is_empty() {
            let items = self.all(api_version, kind, namespace, &selector);
            return Ok(list(&items.map_err(|(query, error)| fault("", query, error))?));
        }
        match self.get(api_version, kind, namespace, name) {
            Ok(object) => Ok(from_json(&object, Numbers::Int64)),
            Err((_, LookupError::NotFound(_))) => Ok(Value::nil_map()),
            Err((query, error)) => Err(fault("", query, error)),
        }
    }

    /// Nodes that have the given roles and no others; being a worker as well does not count.
    pub(super) fn nodes(&self, args: &Args<'_>) -> Result<Vec<Json>, Fault> {
        let mut roles = Vec::new();
        for index in 0..args.len() {
            let role = args.text(index)?;
            if !role.trim().is_empty() {
                roles.push(format!("{ROLE}/{role}"));
            }
        }
        if roles.is_empty() {
            return Err(Fault::text("the input is invalid: at least one name must be specified"));
        }
        let nodes = self
            .all("v1", "Node", "", &roles.join(","))
            .map_err(|(query, error)| fault("", query, error))?;
        roles.push(format!("{ROLE}/worker"));
        let exact = |node: &Json| {
            let labels = node.pointer("/metadata/labels").and_then(Json::as_object);
            !labels
                .into_iter()
                .flat_map(|labels| labels.keys())
                .any(|key| key.starts_with(ROLE) && !roles.contains(key))
        };
        Ok(nodes.into_iter().filter(exact).collect())
    }
}

/// A text in `data`; anything else is as good as absent.
fn entry(object: &Json, key: &str) -> String {
    let value = object.get("data").and_then(|data| data.get(key));
    value.and_then(Json::as_str).unwrap_or_default().to_owned()
}

fn data(object: &Json) -> Value {
    match object.get("data") {
        Some(data @ Json::Object(_)) => from_json(data, Numbers::Int64),
        _ => Value::nil_map(),
    }
}

fn encoded(env: &Env, data: &Value) -> Answer {
    Ok(Value::text(sprig::json_encode(data, Escape::Html, None, &env.budget)?))
}
