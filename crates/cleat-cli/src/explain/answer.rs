//! Answers what an explanation asks, from servers alone: nothing is kept from one look to the next
//! but what a server serves.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context as _, Result};
use cleat_core::explain::{Answer, Contents, Kind, Listed, Place, Question, Unread};
use cleat_core::id::{Id, Target};
use cleat_core::write::Side;
use cleat_runtime::execute::{Executor, Rehearsal};
use futures::StreamExt as _;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::kinds::{Served, Table};
use crate::Refused;
use crate::connection::executor;

/// No list is longer; that there is more is told.
const LIMIT: u32 = 500;
/// The same for each of the many lists of what a namespace holds.
const LIMIT_OF_CONTENTS: u32 = 100;
/// How many of those are asked for at the same time.
const AT_ONCE: usize = 8;
/// How long a server has for one answer.
const PATIENCE: Duration = Duration::from_secs(15);

struct Server {
    client: Client,
    table: OnceCell<Table>,
}

impl Server {
    fn new(client: Client) -> Self {
        Self { client, table: OnceCell::new() }
    }

    async fn table(&self) -> Result<&Table, Unread> {
        let read = || async { bounded(Table::read(&self.client)).await };
        self.table.get_or_try_init(read).await
    }
}

/// The servers that are asked.
pub(super) struct Servers {
    here: Server,
    cluster: Option<Server>,
    executor: Executor,
}

impl Servers {
    pub(super) fn new(here: Client) -> Self {
        let executor = executor(Some(here.clone()), None);
        Self { here: Server::new(here), cluster: None, executor }
    }

    pub(super) fn with_cluster(self, cluster: Option<Client>) -> Self {
        let executor = executor(Some(self.here.client.clone()), cluster.clone());
        Self { cluster: cluster.map(Server::new), executor, ..self }
    }

    /// The object that people mean.
    pub(super) async fn find(&self, kind: &str, name: &str, namespace: &str) -> Result<Id> {
        let table = self.here.table().await.map_err(|unread| anyhow::anyhow!(unread.why));
        let served = table.context("ask the server what it serves")?.meant(kind)?;
        if served.namespaced && namespace.is_empty() {
            return Err(Refused(format!("{kind} lives in namespaces; choose one with -n")).into());
        }
        Ok(Id {
            group: served.group.clone(),
            resource: served.resource.clone(),
            namespace: if served.namespaced { namespace.to_owned() } else { String::new() },
            name: name.to_owned(),
        })
    }

    pub(super) async fn answer(&self, question: &Question) -> Answer {
        self.look(question).await.unwrap_or_else(Answer::Unread)
    }

    async fn look(&self, question: &Question) -> Result<Answer, Unread> {
        match question {
            Question::Object { place, id } => self.object(*place, id).await,
            Question::Kind { place, group, kind } => {
                let table = self.server(*place)?.table().await?;
                match table.kind(group, kind) {
                    Some(Served { resource, namespaced, .. }) => {
                        let (resource, namespaced) = (resource.clone(), *namespaced);
                        Ok(Answer::Kind(Kind { resource, namespaced }))
                    }
                    None => unserved(table, group),
                }
            }
            Question::List { place, group, resource, namespace, labels } => {
                self.list(*place, (group, resource), namespace, labels).await
            }
            Question::Contents { place, namespace } => self.contents(*place, namespace).await,
            Question::Rehearsal { place, id, uid } => self.rehearse(*place, id, uid).await,
        }
    }

    fn server(&self, place: Place) -> Result<&Server, Unread> {
        match place {
            Place::Here => Ok(&self.here),
            Place::Cluster => self.cluster.as_ref().ok_or_else(|| Unread {
                why: "it was not said how the cluster is reached".to_owned(),
                forbidden: false,
            }),
        }
    }

    async fn object(&self, place: Place, id: &Id) -> Result<Answer, Unread> {
        let server = self.server(place)?;
        let table = server.table().await?;
        let Some(served) = table.resource(&id.group, &id.resource) else {
            return unserved(table, &id.group);
        };
        let api = api(&server.client, served, &id.namespace);
        match bounded(api.get_opt(&id.name)).await? {
            Some(object) => Ok(Answer::Object(Box::new(value(&object)?))),
            None => Ok(Answer::Absent),
        }
    }

    async fn list(
        &self,
        place: Place,
        (group, resource): (&str, &str),
        namespace: &str,
        labels: &str,
    ) -> Result<Answer, Unread> {
        let server = self.server(place)?;
        let table = server.table().await?;
        let Some(served) = table.resource(group, resource) else { return unserved(table, group) };
        let api = api(&server.client, served, namespace);
        let mut params = ListParams::default().limit(LIMIT);
        if !labels.is_empty() {
            params = params.labels(labels);
        }
        let list = bounded(api.list(&params)).await?;
        let more = list.metadata.continue_.is_some_and(|token| !token.is_empty());
        let items = list.items.iter().map(value).collect::<Result<_, _>>()?;
        Ok(Answer::Listed(Listed { items, more }))
    }

    /// The metadata of everything of every kind.
    async fn contents(&self, place: Place, namespace: &str) -> Result<Answer, Unread> {
        let server = self.server(place)?;
        let table = server.table().await?;
        let inside = |one: &&Served| {
            // Two groups serve the same events.
            one.is_content()
                && (namespace.is_empty() || one.namespaced)
                && one.group != "events.k8s.io"
        };
        let lists = table.all.iter().filter(inside).map(async |served| {
            let api = api(&server.client, served, namespace);
            let params = ListParams::default().limit(LIMIT_OF_CONTENTS);
            (served, bounded(api.list_metadata(&params)).await)
        });
        let mut lists = futures::stream::iter(lists).buffered(AT_ONCE);
        let mut contents = Contents { unread: table.stale.clone(), ..Contents::default() };
        while let Some((served, read)) = lists.next().await {
            let list = match read {
                Ok(list) => list,
                Err(unread) => {
                    contents.unread.push((served.full_name(), unread.why));
                    continue;
                }
            };
            if list.metadata.continue_.is_some_and(|token| !token.is_empty()) {
                contents.more.push(served.full_name());
            }
            for object in &list.items {
                let id = Id {
                    group: served.group.clone(),
                    resource: served.resource.clone(),
                    namespace: object.metadata.namespace.clone().unwrap_or_default(),
                    name: object.metadata.name.clone().unwrap_or_default(),
                };
                contents.items.push((id, value(object)?));
            }
        }
        Ok(Answer::Contents(contents))
    }

    /// A delete that is not meant.
    async fn rehearse(&self, place: Place, id: &Id, uid: &str) -> Result<Answer, Unread> {
        let table = self.server(place)?.table().await?;
        let Some(served) = table.resource(&id.group, &id.resource) else {
            return unserved(table, &id.group);
        };
        let side = match place {
            Place::Here => Side::Hub,
            Place::Cluster => Side::Cluster,
        };
        let target = Target { version: served.version.clone(), id: id.clone() };
        Ok(match self.executor.rehearse_delete(side, &target, uid).await {
            Rehearsal::Passed { warnings: _ } => Answer::Passed,
            Rehearsal::Refused(refusal) => Answer::Refused(refusal),
            Rehearsal::Unknown(why) => Answer::Unread(Unread { why, forbidden: false }),
        })
    }
}

/// A kind that is not served, unless its group did not say.
fn unserved(table: &Table, group: &str) -> Result<Answer, Unread> {
    match table.stale(group) {
        None => Ok(Answer::NoSuchKind),
        Some(why) => Err(Unread {
            why: format!("the server cannot tell now what it serves in group {group}: {why}"),
            forbidden: false,
        }),
    }
}

fn api(client: &Client, served: &Served, namespace: &str) -> Api<DynamicObject> {
    let resource = served.api_resource();
    if served.namespaced && !namespace.is_empty() {
        Api::namespaced_with(client.clone(), namespace, &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    }
}

fn value<T: serde::Serialize>(object: &T) -> Result<Value, Unread> {
    serde_json::to_value(object)
        .map_err(|error| Unread { why: error.to_string(), forbidden: false })
}

/// What a server answered, or why not.
async fn bounded<T>(asked: impl Future<Output = kube::Result<T>>) -> Result<T, Unread> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) => {
            let forbidden = matches!(status.code, 401 | 403);
            Err(Unread { why: status.message.clone(), forbidden })
        }
        Ok(Err(error)) => {
            Err(Unread { why: format!("{:#}", anyhow::Error::from(error)), forbidden: false })
        }
        Err(_) => Err(Unread {
            why: format!("the server did not answer within {} s", PATIENCE.as_secs()),
            forbidden: false,
        }),
    }
}
