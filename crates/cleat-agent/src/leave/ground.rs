//! Takes what the agent made for policies off its cluster: `cleat_core::leave::ground` says what, and
//! what stays.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::ManagedCluster;
use cleat_core::id::Target;
use cleat_core::leave::agent::Held;
use cleat_core::leave::ground::{Next, Observed, key, left, namespace, next, wants_look};
use cleat_core::registration::hub::Seen;
use cleat_core::work::contents::{Contents, judge};
use cleat_core::write::{Outcome, Side};
use cleat_runtime::contents::found;
use cleat_runtime::execute::Read;

use super::Context;

/// How long what was refused is left alone.
const RETRY: Duration = Duration::from_secs(10);

/// Why it does not go on, and when to try again.
pub(super) struct Trouble {
    why: String,
    retry: Instant,
}

impl Context {
    /// One step further, when nothing else is held. `told` is what the hub knows of the ground.
    pub(super) async fn clear_ground(
        &self,
        cluster: &ManagedCluster,
        told: Vec<LeftObject>,
    ) -> Held {
        let mut failures = Vec::new();
        let seen = self.observe_ground(cluster, told, &mut failures).await;
        let mut left = left(&seen);
        let what = match next(&seen) {
            Next::Done => None,
            Next::Wait(what) => Some(what),
            Next::Unknown(why) => {
                let unknown = [vec![why], failures].concat().join(": ");
                return Held { what: None, unknown: Some(unknown), left };
            }
            Next::Tell(object) => {
                if !self.must_rest() {
                    left.push(object);
                }
                Some(self.unfinished("namespaces", &seen.name))
            }
            Next::Do(action) => {
                let id = action.target.id.clone();
                if !self.must_rest() {
                    // Whatever came of it, the next look begins with what is there.
                    let done = self.executor.execute(vec![vec![action]]).await;
                    self.in_trouble(done.iter().flatten().find_map(refusal));
                }
                Some(self.unfinished(&id.resource, &id.name))
            }
        };
        Held { what, unknown: None, left }
    }

    fn unfinished(&self, resource: &str, name: &str) -> String {
        self.explained(format!("{resource} {name}, made for policies"))
    }

    /// What is not done yet, and why if somebody said.
    pub(super) fn explained(&self, what: String) -> String {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match &*trouble {
            Some(trouble) => format!("{what}: {}", trouble.why),
            None => what,
        }
    }

    pub(super) fn must_rest(&self) -> bool {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.as_ref().is_some_and(|trouble| Instant::now() < trouble.retry)
    }

    pub(super) fn in_trouble(&self, why: Option<String>) {
        let trouble = why.map(|why| Trouble { why, retry: Instant::now() + RETRY });
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// With why something could not be read.
    async fn observe_ground(
        &self,
        cluster: &ManagedCluster,
        told: Vec<LeftObject>,
        failures: &mut Vec<String>,
    ) -> Observed {
        let name = &self.leave.name;
        let mut seen = Observed {
            name: name.clone(),
            strategy: cluster.spec.remove_strategy,
            namespace: self.see(&namespace(name), failures).await,
            key: self.see(&key(name), failures).await,
            contents: None,
            told,
        };
        if wants_look(&seen) {
            let found = found(&self.leave.cluster_client, &self.kinds, name).await;
            seen.contents = Some(match found {
                Ok(found) => judge(&found, &self.leave.hub_hash),
                Err(why) => Contents::Unknown(format!("what it holds cannot be seen: {why}")),
            });
        }
        seen
    }

    async fn see(&self, target: &Target, failures: &mut Vec<String>) -> Seen {
        match self.executor.read(Side::Cluster, target).await {
            Read::Present(object) => Seen::Present(object),
            Read::Absent => Seen::Absent,
            Read::NoSuchKind => Seen::Unknown,
            Read::Unknown { message } => {
                failures.push(message);
                Seen::Unknown
            }
        }
    }
}

/// What a write that did not work means to people. One that met a change is tried again at once.
fn refusal(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Refused(refusal) => Some(refusal.message.clone()),
        Outcome::Lost(message) => Some(message.clone()),
        _ => None,
    }
}
