//! Works leftover records off on the cluster that kept what they list: `cleat_core::leave::clean`
//! decides, one look after another, until nothing is left to do.

mod policies;
mod supposed;

use std::collections::{BTreeMap, BTreeSet};

use cleat_api::appliedmanifestwork::{AppliedManifestWork, NAMELESS};
use cleat_api::leftoverrecord::condition::CLEANED;
use cleat_api::leftoverrecord::{LeftObject, LeftoverRecord};
use cleat_api::managedcluster::{CLUSTER_NAME_LABEL, ManagedCluster};
use cleat_api::manifestwork::ManifestWork;
use cleat_api::policy::Policy;
use cleat_core::condition::{holds, say};
use cleat_core::id::Id;
use cleat_core::leave::carried::told;
use cleat_core::leave::clean::{self, Look, Observed, Report, id};
use cleat_core::leave::parts::{Remaining, namespace_on_record};
use cleat_core::leave::record;
use cleat_core::registration::join;
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runtime::contents::contents;
use cleat_runtime::execute::{self, Executor, Read};
use cleat_runtime::kinds::Kinds;
use cleat_runtime::served;
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::parts::Parts;
use super::patience::{PAUSE, Patience};
use crate::registration::{self, FIELD_MANAGER, Keep};
use crate::work::hub_hash;

/// Objects read at the same time.
const READS: usize = 16;

/// What is to be done, and where.
pub struct Clean {
    pub hub_client: Client,
    pub cluster_client: Client,
    /// The cluster's id, as its records have it.
    pub cluster_id: String,
    /// As [`clean::choose`] chose them.
    pub records: Vec<LeftoverRecord>,
    /// Also what was declared to be kept.
    pub include_kept: bool,
    /// The hub's address as the agent was given it, for records that do not say.
    pub hub_server: Option<String>,
    /// The agent is to go as well, and has its credentials here.
    pub agent: Option<Keep>,
}

/// A record could not be worked off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Refused(#[from] clean::Refusal),
    #[error("failed to list the {what}")]
    List {
        what: &'static str,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("{NAMELESS}")]
    Nameless,
    #[error("the record {record} was deleted meanwhile")]
    Deleted { record: String },
    #[error("failed to find the templates of policies in {namespace}: {message}")]
    Templates { namespace: String, message: String },
    #[error("failed to tell what the hub's policies hold: {message}")]
    Policy { message: String },
    #[error(
        "whose agent is in {namespace} of this cluster cannot be told, so it is not taken away; make \
         the secrets there readable, or clean without --agent"
    )]
    Agent {
        namespace: String,
        #[source]
        source: registration::Error,
    },
    #[error("failed to note it in the record {record}: {message}")]
    Note { record: String, message: String },
}

/// What the hub has for this very cluster now, because it joined again.
#[derive(Default)]
struct Wanted {
    works: BTreeSet<String>,
    /// With what each lists as its own.
    policies: BTreeMap<String, Vec<LeftObject>>,
}

struct Context {
    job: Clean,
    executor: Executor,
    kinds: Kinds,
}

/// Works until everything is settled or nothing happened for too long, notes in the records how far it got, and
/// tells. `waits` is told what is waited for.
pub async fn clean(job: Clean, mut waits: impl FnMut(&Id, &str) + Send) -> Result<Report, Error> {
    let executor = executor(Some(&job.hub_client), &job.cluster_client);
    let kinds = Kinds::new(job.cluster_client.clone());
    let context = Context { job, executor, kinds };
    if let Some(keep) = &context.job.agent {
        context.agent_is_ours(keep).await?;
    }
    let mut patience = Patience::new();
    let mut pause = tokio::time::interval(PAUSE);
    let mut refused = BTreeMap::new();
    let (records, mut report) = loop {
        pause.tick().await;
        let seen = context.observe(refused).await?;
        let report = clean::report(&seen);
        let plan = clean::plan(&seen);
        let over = patience.is_over(clean::to_do(&seen));
        if over || (plan.is_empty() && report.stuck.is_empty()) {
            break (seen.records, report);
        }
        let ids: Vec<Id> = plan.iter().flatten().map(|one| one.target.id.clone()).collect();
        let done = context.executor.execute(plan).await;
        let refusals = ids.into_iter().zip(done.iter().flatten());
        refused = refusals.filter_map(|(id, outcome)| Some((id, refusal(outcome)?))).collect();
        if let Some((id, why)) = refused.first_key_value() {
            waits(id, why);
        }
    };
    if let Some(keep) = context.job.agent.as_ref().filter(|_| report.stuck.is_empty()) {
        // Somebody may have joined it to another hub meanwhile.
        context.agent_is_ours(keep).await?;
        report.take_agent_away(context.take_agent_away(keep).await);
    }
    if let Some(why) = context.another_agent(&records, &report).await? {
        report.disown_agent(&why);
    }
    context.note(&records, &report).await?;
    Ok(report)
}

/// What a refused write means to people.
pub(super) fn refusal(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Refused(refusal) => Some(refusal.message.clone()),
        Outcome::Lost(message) => Some(message.clone()),
        _ => None,
    }
}

/// Under which name the hub has this very cluster now, if it joined again.
pub async fn joined_as(hub_client: &Client, cluster_id: &str) -> Result<Option<String>, Error> {
    let clusters: Api<ManagedCluster> = Api::all(hub_client.clone());
    let listed = clusters.list(&ListParams::default()).await;
    let listed =
        listed.map_err(|source| Error::List { what: "clusters", source: source.into() })?;
    let found = listed.iter().find(|one| join::id(one) == Some(cluster_id));
    Ok(found.map(|cluster| cluster.name_any()))
}

/// Whether a cluster that has left still has an agent's credentials in this place, and with them
/// perhaps an agent. That of another hub is none of these records'.
pub async fn has_agent(
    cluster_client: &Client,
    keep: &Keep,
    records: &[LeftoverRecord],
    hub_server: Option<&str>,
) -> bool {
    let executor = executor(None, cluster_client);
    let there = keep.load(&executor).await.is_ok_and(|kept| kept.is_some());
    let Ok(lodging) = lodging(&executor, keep).await else { return there };
    let ours = clean::agent_is_ours(records, &lodging, hub_server.map(hub_hash).as_deref());
    there && !matches!(ours, Err(clean::Refusal::AgentOfOtherHub { .. }))
}

/// Whose agent is in this place. What cannot be read there may be anybody's.
async fn lodging(executor: &Executor, keep: &Keep) -> Result<clean::Lodging, Error> {
    let namespace = match keep {
        Keep::Secret { namespace } => namespace.clone(),
        Keep::Directory(path) => path.display().to_string(),
    };
    let hubs = keep.hubs(executor).await;
    let hubs = hubs.map_err(|source| Error::Agent { namespace: namespace.clone(), source })?;
    let hubs = hubs.into_iter().map(|server| (hub_hash(&server), server)).collect();
    Ok(clean::Lodging { namespace, hubs, joined: None })
}

fn executor(hub: Option<&Client>, cluster: &Client) -> Executor {
    Executor::new(execute::Config {
        hub: hub.cloned(),
        cluster: Some(cluster.clone()),
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..Default::default()
    })
}

impl Context {
    async fn agent_is_ours(&self, keep: &Keep) -> Result<(), Error> {
        let joined = joined_as(&self.job.hub_client, &self.job.cluster_id).await?;
        let lodging = clean::Lodging { joined, ..lodging(&self.executor, keep).await? };
        let told = self.job.hub_server.as_deref().map(hub_hash);
        Ok(clean::agent_is_ours(&self.job.records, &lodging, told.as_deref())?)
    }

    /// Whose agent is where that of the records was, if something is there and not theirs. What cannot
    /// be told may be theirs.
    async fn another_agent(
        &self,
        records: &[LeftoverRecord],
        report: &Report,
    ) -> Result<Option<String>, Error> {
        let Some(namespace) = namespace_on_record(records).filter(|_| !report.agent.is_empty())
        else {
            return Ok(None);
        };
        match self.agent_is_ours(&Keep::Secret { namespace: namespace.to_owned() }).await {
            Ok(()) | Err(Error::Agent { .. }) => Ok(None),
            Err(Error::Refused(refusal)) => Ok(refusal.another_agent()),
            Err(error) => Err(error),
        }
    }

    /// Takes the agent of a cluster that has left, its rights and its credentials off the cluster, and
    /// tells what the server still has of it.
    async fn take_agent_away(&self, keep: &Keep) -> Vec<Remaining> {
        let (executor, kinds, cluster) = (&self.executor, &self.kinds, &self.job.cluster_client);
        Parts { executor, cluster, kinds }.take_other_away(keep).await
    }

    async fn observe(&self, refused: BTreeMap<Id, String>) -> Result<Observed, Error> {
        let job = &self.job;
        let told = job.hub_server.as_deref().map(hub_hash);
        let (all, wanted) = (self.all_ledgers().await?, self.wanted().await?);
        let mut records = self.records().await?;
        let unknown = self.resolve(&mut records).await;
        let mut seen = Observed {
            include_kept: job.include_kept,
            ledgers: clean::ledgers(&records, all, &wanted.works, told.as_deref())?,
            found: self.templates(&records).await?,
            records,
            policies: wanted.policies,
            refused,
            ..Observed::default()
        };
        let ids: BTreeSet<Id> = clean::objects(&seen).iter().map(id).collect();
        let looks = ids.into_iter().map(|id| async {
            let look = match served::read(&self.executor, &self.kinds, &id).await {
                Read::Present(object) => Look::Present(object),
                Read::Absent => Look::Absent,
                Read::NoSuchKind => Look::Unknown("its kind is not served now".to_owned()),
                Read::Unknown { message } => Look::Unknown(message),
            };
            (id, look)
        });
        seen.live = futures::stream::iter(looks).buffer_unordered(READS).collect().await;
        seen.live.extend(unknown);
        seen.made = self.made(&seen).await;
        seen.holders = self.holders().await;
        let hash = seen.ledgers.first().map(|ledger| ledger.spec.hub_hash.clone());
        let hash = hash.or_else(|| Some(job.records.first()?.spec.hub_hash.clone()));
        for id in clean::holders_due(&seen) {
            let hash = hash.as_deref().unwrap_or_default();
            let held = contents(&job.cluster_client, &self.kinds, &id, hash).await;
            seen.contents.insert(id, held);
        }
        Ok(seen)
    }

    async fn all_ledgers(&self) -> Result<Vec<AppliedManifestWork>, Error> {
        let ledgers: Api<AppliedManifestWork> = Api::all(self.job.cluster_client.clone());
        match ledgers.list(&ListParams::default()).await {
            Ok(list) if list.items.iter().any(|one| one.spec.nameless()) => Err(Error::Nameless),
            Ok(list) => Ok(list.items),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            Err(source) => {
                Err(Error::List { what: "ledgers on the cluster", source: source.into() })
            }
        }
    }

    /// The records as they are now, with the parts that were added to them since.
    async fn records(&self) -> Result<Vec<LeftoverRecord>, Error> {
        let given = &self.job.records;
        let names: BTreeSet<String> = given.iter().map(|one| one.name_any()).collect();
        let leaves: BTreeSet<&str> = given.iter().map(|one| &*one.spec.cluster_uid).collect();
        let clusters: BTreeSet<&str> = given.iter().map(|one| &*one.spec.cluster).collect();
        let mut found: Vec<LeftoverRecord> = Vec::new();
        for cluster in clusters {
            let label = format!("{CLUSTER_NAME_LABEL}={cluster}");
            let records: Api<LeftoverRecord> = Api::all(self.job.hub_client.clone());
            let all = records.list(&ListParams::default().labels(&label)).await;
            let all =
                all.map_err(|source| Error::List { what: "records", source: source.into() })?;
            found.extend(all.items.into_iter().filter(|one| {
                let conditions = one.status.clone().unwrap_or_default().conditions;
                let is_new = !holds(&conditions, CLEANED);
                names.contains(&one.name_any())
                    || (is_new && leaves.contains(one.spec.cluster_uid.as_str()))
            }));
        }
        // Without it, what it lists would look as if nothing were left.
        let here: BTreeSet<String> = found.iter().map(|one| one.name_any()).collect();
        match names.difference(&here).next() {
            Some(record) => Err(Error::Deleted { record: record.clone() }),
            None => Ok(found),
        }
    }

    async fn wanted(&self) -> Result<Wanted, Error> {
        let clusters: Api<ManagedCluster> = Api::all(self.job.hub_client.clone());
        let listed = clusters.list(&ListParams::default()).await;
        let listed =
            listed.map_err(|source| Error::List { what: "clusters", source: source.into() })?;
        let mut wanted = Wanted::default();
        for cluster in listed.iter().filter(|one| join::id(one) == Some(&self.job.cluster_id)) {
            let works: Api<ManifestWork> =
                Api::namespaced(self.job.hub_client.clone(), &cluster.name_any());
            let works = works.list_metadata(&ListParams::default()).await;
            let works =
                works.map_err(|source| Error::List { what: "works", source: source.into() })?;
            wanted.works.extend(works.iter().map(|work| work.name_any()));
            wanted.policies.extend(self.policies(&cluster.name_any()).await?);
        }
        Ok(wanted)
    }

    /// The policies as replicated to a cluster, with what each lists as its own.
    async fn policies(&self, cluster: &str) -> Result<BTreeMap<String, Vec<LeftObject>>, Error> {
        let kind = ApiResource::erase::<Policy>(&());
        let client = self.job.hub_client.clone();
        let policies: Api<DynamicObject> = Api::namespaced_with(client, cluster, &kind);
        let list = match policies.list(&ListParams::default()).await {
            Ok(list) => list,
            // A hub that does not serve policies has none.
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(BTreeMap::new()),
            Err(source) => return Err(Error::List { what: "policies", source: source.into() }),
        };
        let read = list.items.into_iter().map(|policy| {
            let status = told(&policy.name_any(), policy.data.get("status"));
            let status = status.map_err(|message| Error::Policy { message });
            status.map(|status| (policy.name_any(), status.objects))
        });
        read.collect()
    }

    async fn note(&self, records: &[LeftoverRecord], report: &Report) -> Result<(), Error> {
        for record in records {
            let mut conditions = record.status.clone().unwrap_or_default().conditions;
            let said = clean::said(report);
            say(&mut conditions, said, record.metadata.generation, Timestamp::now());
            let patch = json!({
                "metadata": { "uid": record.metadata.uid }, "status": { "conditions": conditions },
            });
            let (target, write) = (record::target(record.name_any()), Write::MergeStatus(patch));
            let action = Action { side: Side::Hub, target, write };
            let done = self.executor.execute(vec![vec![action]]).await;
            match done.into_iter().flatten().next() {
                Some(Outcome::Done(_)) => {}
                other => {
                    let message = other.as_ref().and_then(refusal);
                    let message = message.unwrap_or_else(|| format!("{other:?}"));
                    return Err(Error::Note { record: record.name_any(), message });
                }
            }
        }
        Ok(())
    }
}
