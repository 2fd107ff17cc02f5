//! Finding out whether anybody would take the finalizers off that objects bear. A few lists of
//! workloads, read once for all objects; only reads.

use std::collections::BTreeMap;
use std::time::Duration;

use cleat_core::explain::{Answer, Foretold, Listed, Question, Seen, Unread, foretell};
use cleat_core::id::Id;
use cleat_runtime::kinds::{Mapped, Mapping};
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use serde_json::Value;

use super::Inquirer;

/// How many questions it may take.
const MOST_QUESTIONS: usize = 30;
/// No list is longer. Where there is more, nobody is said to be absent.
const LIMIT: u32 = 500;
/// How long the cluster has for one answer.
const PATIENCE: Duration = Duration::from_secs(5);

impl Inquirer {
    /// What is to be said of finalizers of these objects, by object and name.
    pub(super) async fn unserved(
        &self,
        held: &BTreeMap<Id, Value>,
    ) -> BTreeMap<Id, BTreeMap<String, String>> {
        let mut seen = Seen::default();
        loop {
            let asks = match foretell(held, &seen) {
                Foretold::Told(told) => return told,
                Foretold::Asks(asks) => asks,
            };
            for question in asks {
                let answer = match seen.len() < MOST_QUESTIONS {
                    true => self.look(&question).await.unwrap_or_else(Answer::Unread),
                    false => Answer::Unread(unread("it was not asked".to_owned())),
                };
                seen.answer(question, answer);
            }
        }
    }

    async fn look(&self, question: &Question) -> Result<Answer, Unread> {
        match question {
            Question::List { place: _, group, resource, namespace, labels } => {
                let Some(mapped) = self.mapped(group, resource).await? else {
                    return Ok(Answer::NoSuchKind);
                };
                let mut params = ListParams::default().limit(LIMIT);
                if !labels.is_empty() {
                    params = params.labels(labels);
                }
                let api = self.api(&mapped, namespace);
                let list = bounded(api.list(&params)).await?;
                let more = list.metadata.continue_.is_some_and(|token| !token.is_empty());
                let items = list.items.iter().map(value).collect::<Result<_, _>>()?;
                Ok(Answer::Listed(Listed { items, more }))
            }
            Question::Object { place: _, id } => {
                let Some(mapped) = self.mapped(&id.group, &id.resource).await? else {
                    return Ok(Answer::NoSuchKind);
                };
                let api = self.api(&mapped, &id.namespace);
                match bounded(api.get_opt(&id.name)).await? {
                    Some(object) => Ok(Answer::Object(Box::new(value(&object)?))),
                    None => Ok(Answer::Absent),
                }
            }
            Question::Kind { .. } | Question::Contents { .. } | Question::Rehearsal { .. } => {
                Err(unread("a preview does not ask that".to_owned()))
            }
        }
    }

    async fn mapped(&self, group: &str, resource: &str) -> Result<Option<Mapped>, Unread> {
        match self.kinds.preferred(group, resource).await {
            Mapping::Mapped(mapped) => Ok(Some(mapped)),
            Mapping::NoSuchKind => Ok(None),
            Mapping::Unknown(why) => Err(unread(why)),
        }
    }

    fn api(&self, mapped: &Mapped, namespace: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(&mapped.group, &mapped.version, "");
        let resource = ApiResource::from_gvk_with_plural(&kind, &mapped.resource);
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        }
    }
}

fn unread(why: String) -> Unread {
    Unread { why, forbidden: false }
}

fn value<T: serde::Serialize>(object: &T) -> Result<Value, Unread> {
    serde_json::to_value(object).map_err(|error| unread(error.to_string()))
}

async fn bounded<T>(asked: impl Future<Output = kube::Result<T>>) -> Result<T, Unread> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(unread(error.to_string())),
        Err(_) => Err(unread("the cluster did not answer in time".to_owned())),
    }
}
