//! Looking at a policy as if it were deleted, or went with its cluster's membership: what would become
//! of its objects. Only reads, straight from the server, so that the policy's own story need not be
//! disturbed.

use std::collections::BTreeSet;
use std::sync::Arc;

use cleat_api::configurationpolicy::{ConfigurationPolicy, reason};
use cleat_core::id::Target;
use cleat_core::policy;
use cleat_core::policy::observed::{
    Cluster, Controller, Departure, Observed, Policy, Read as Lacks, Seen, Subject, Templates,
    TerminatingNamespaces,
};
use cleat_core::policy::outlook::{imagined, outlook, reads};
use cleat_core::policy::spare::taken_along;
use cleat_core::work::contents::Contents as Held;
use cleat_core::work::outlook::{Change, Foreseen};
use cleat_core::write::Side;
use cleat_runtime::execute::{Executor, Read};
use cleat_runtime::kinds::Kinds;
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::Client;

use super::contents::Contents;
use super::kinds::Server;
use super::observe::READS;
use super::{Context, departure, records, templates};

/// Kinds first, then the objects that are of them, then what those hold that are namespaces or
/// definitions.
const ROUNDS: usize = 4;

/// The policies of this cluster, for other stories to look at.
#[derive(Clone)]
pub struct Policies {
    pub(super) context: Arc<Context>,
}

impl Policies {
    /// The incarnations that policies of the hub would take along if the cluster left with nothing.
    pub(crate) fn taken_along(&self) -> BTreeSet<String> {
        taken_along(&self.context.known())
    }
}

/// Whoever wants to know, with the way to the cluster.
pub struct Onlooker<'a> {
    pub client: &'a Client,
    pub kinds: &'a Kinds,
    /// Its side `Cluster` is that cluster.
    pub executor: &'a Executor,
    /// Who looks after the policies, if that is in this process. Otherwise only the definitions say
    /// whether whoever does is about to go.
    pub policies: Option<&'a Policies>,
}

impl Onlooker<'_> {
    /// What would become of a policy's objects if that happened now. `None`: there is no such policy.
    /// `going`: the incarnations that works would have taken along by then.
    pub async fn foreseen(
        &self,
        namespace: &str,
        name: &str,
        change: Change,
        going: &BTreeSet<String>,
    ) -> Result<Option<Vec<Foreseen>>, String> {
        let target = super::policy_target(namespace, name);
        let object = match self.executor.read(Side::Cluster, &target).await {
            Read::Present(object) => object,
            Read::Absent => return Ok(None),
            Read::NoSuchKind => {
                return Err("ConfigurationPolicies are not served there".to_owned());
            }
            Read::Unknown { message } => return Err(message),
        };
        let policy: ConfigurationPolicy = serde_json::from_value(object)
            .map_err(|error| format!("the policy cannot be read: {error}"))?;
        let seen = self.observe(records::known(policy), change, going).await?;
        outlook(&seen, change).map(Some)
    }

    async fn observe(
        &self,
        policy: Policy,
        change: Change,
        going: &BTreeSet<String>,
    ) -> Result<Observed, String> {
        let seen = Observed {
            now: Timestamp::now(),
            controller: Controller {
                departure: Departure::Staying,
                terminating_namespaces: TerminatingNamespaces::Included,
                instance: String::new(),
                say: templates::say,
            },
            policy: Subject::Policy(Box::new(policy)),
            // A policy that goes has no use for them.
            templates: Templates::Failed {
                reason: reason::TEMPLATE_ERROR,
                message: "the templates were not looked at".to_owned(),
                passing: true,
            },
            cluster: Cluster::default(),
            memory: policy::Memory::default(),
        };
        let mut seen = imagined(seen);
        let Subject::Policy(policy) = seen.policy.clone() else { return Ok(seen) };
        seen.controller.departure = match self.policies {
            Some(Policies { context }) => context.departure_ahead(&policy, change).await,
            None => departure::definitions_now(self.executor, &policy).await,
        };
        let own = Contents::default();
        let contents = self.policies.map_or(&own, |policies| &policies.context.contents);
        let server = Server { client: self.client, kinds: self.kinds };
        for _ in 0..ROUNDS {
            let missing = reads(&seen);
            if missing.is_empty() {
                return Ok(seen);
            }
            let mut objects = Vec::new();
            for read in missing {
                match read {
                    Lacks::Object(target) => objects.push(target),
                    Lacks::Unwatched(target) => {
                        let (target, sight) = self.sight(target, contents).await;
                        seen.cluster.unwatched.insert(target.id, sight);
                    }
                    Lacks::Kind(name) => {
                        let kind = server.kind(&name, &policy, false).await;
                        seen.cluster.kinds.insert(name, kind);
                    }
                    Lacks::Contents(holder) => {
                        let held = match self.policies {
                            Some(Policies { context }) => {
                                context.would_hold(&seen, &holder, going).await
                            }
                            None => Held::Unknown("nobody looks after the policy here".to_owned()),
                        };
                        seen.cluster.contents.insert(holder.id, held);
                    }
                    // Only templates need these.
                    Lacks::Namespaces | Lacks::List(_) | Lacks::Resolution { .. } => {}
                }
            }
            let sights = objects.into_iter().map(|target| self.sight(target, contents));
            let sights: Vec<_> =
                futures::stream::iter(sights).buffer_unordered(READS).collect().await;
            seen.cluster.objects.extend(sights.into_iter().map(|(target, seen)| (target.id, seen)));
        }
        Err("the policy's objects could not all be looked at".to_owned())
    }

    async fn sight(&self, target: Target, contents: &Contents) -> (Target, Seen) {
        let seen = match self.executor.read(Side::Cluster, &target).await {
            Read::Present(object) => Seen::Present(contents.keep(&target.id, object)),
            Read::Absent => Seen::Absent,
            Read::NoSuchKind => {
                Seen::Unknown("the cluster does not serve this kind now".to_owned())
            }
            Read::Unknown { message } => Seen::Unknown(message),
        };
        (target, seen)
    }
}
