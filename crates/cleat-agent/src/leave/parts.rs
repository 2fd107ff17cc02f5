//! Taking the agent's own parts off its cluster, when it has left: `cleat_core::leave::parts` says
//! what and in which order.

use std::collections::BTreeMap;

use cleat_core::id::Id;
use cleat_core::leave::parts::{
    self, BOOTSTRAP, CREDENTIALS, NAME, Observed, OwnPart, PENDING, Remaining, plan,
};
use cleat_core::registration::hub::Seen;
use cleat_core::work::contents::{Contents, Found, judge_beside};
use cleat_core::write::{Outcome, Plan, Side};
use cleat_runtime::contents::found;
use cleat_runtime::execute::{Executor, Read};
use cleat_runtime::kinds::Kinds;
use kube::Client;

use super::clean::refusal;
use super::patience::{PAUSE, Patience};
use super::presence::Ended;
use crate::registration::Keep;

/// Where the agent's parts are, and with what they are read and taken away.
pub(super) struct Parts<'a> {
    pub(super) executor: &'a Executor,
    pub(super) cluster: &'a Client,
    pub(super) kinds: &'a Kinds,
}

/// How one round ended.
enum Round {
    /// Everything was asked for, so far as there was anything to ask.
    Asked,
    /// The account went with the namespace; the collector takes what hangs on that.
    Disowned,
    Refused(Id, String),
}

impl Parts<'_> {
    /// The agent takes itself away. It may lose its rights, and itself, before it can see the end.
    pub(super) async fn take_self_away(&self, keep: &Keep) -> Ended {
        let namespace = match keep {
            Keep::Secret { namespace } => namespace,
            Keep::Directory(_) => {
                return match keep.forget() {
                    Ok(()) => Ended::Gone,
                    Err(error) => Ended::Remains(vec![error.to_string()]),
                };
            }
        };
        let (remaining, in_sight) = self.take_away(namespace, true).await;
        let remaining: Vec<String> = remaining
            .into_iter()
            .filter(|one| !one.stays)
            .map(|Remaining { id, why, .. }| format!("{id}: {why}"))
            .collect();
        match remaining.is_empty() {
            true => Ended::Gone,
            false if in_sight => Ended::Remains(remaining),
            false => Ended::OutOfSight,
        }
    }

    /// Somebody else takes the agent away, and tells what the server still has of it.
    pub(super) async fn take_other_away(&self, keep: &Keep) -> Vec<Remaining> {
        match keep {
            Keep::Secret { namespace } => self.take_away(namespace, false).await.0,
            Keep::Directory(_) => Vec::new(),
        }
    }

    /// Tries until the server has nothing of it, or nothing more went for too long. What is left then,
    /// and whether that was seen: `own` rights may go with the rest.
    async fn take_away(&self, namespace: &str, own: bool) -> (Vec<Remaining>, bool) {
        let (mut patience, mut blurred) = (Patience::new(), Patience::new());
        let mut pause = tokio::time::interval(PAUSE);
        let (mut asked, mut refused) = (false, None);
        loop {
            pause.tick().await;
            let seen = self.observe(namespace).await;
            let mut remaining = parts::remaining(&seen);
            if own && asked && seen.is_out_of_sight() {
                return (remaining, false);
            }
            // Once it has begun without the namespace, that stays behind: it may be seen in a moment.
            if !asked && seen.is_blurred() && !blurred.is_over(usize::MAX) {
                continue;
            }
            let over = patience.is_over(remaining.len());
            if over || remaining.iter().all(|one| one.stays) {
                for one in &mut remaining {
                    if let Some((_, why)) = refused.as_ref().filter(|(id, _)| *id == one.id) {
                        one.why = String::clone(why);
                    }
                }
                return (remaining, true);
            }
            let plan = plan(&seen);
            if plan.is_empty() {
                continue;
            }
            refused = None;
            match self.round(plan).await {
                Round::Asked => asked = true,
                Round::Disowned if own => return (remaining, false),
                Round::Disowned => {}
                Round::Refused(id, why) => {
                    tracing::warn!(namespace, %id, why, "a part of the agent cannot be taken away");
                    refused = Some((id, why));
                }
            }
        }
    }

    async fn round(&self, plan: Plan) -> Round {
        let ids: Vec<Id> = plan.iter().flatten().map(|one| one.target.id.clone()).collect();
        let done = self.executor.execute(plan).await;
        let mut outcomes = ids.into_iter().zip(done.iter().flatten());
        let refused = outcomes.find(|(_, one)| !one.is_done() && **one != Outcome::NotFound);
        match refused {
            None => Round::Asked,
            Some((_, Outcome::Refused(refusal))) if refusal.code == 401 => Round::Disowned,
            Some((id, outcome)) => {
                let why = refusal(outcome).unwrap_or_else(|| "it changed meanwhile".to_owned());
                Round::Refused(id, why)
            }
        }
    }

    async fn observe(&self, namespace: &str) -> Observed {
        let mut parts = BTreeMap::new();
        for part in OwnPart::ALL {
            let seen = match self.executor.read(Side::Cluster, &part.target(namespace)).await {
                Read::Present(object) => Seen::Present(object),
                Read::Absent => Seen::Absent,
                Read::NoSuchKind | Read::Unknown { .. } => Seen::Unknown,
            };
            parts.insert(part, seen);
        }
        let contents = match found(self.cluster, self.kinds, namespace).await {
            Ok(all) => {
                let own =
                    all.iter().filter(|one| is_own(one)).map(|one| one.uid.as_str()).collect();
                judge_beside(&all, &own, "")
            }
            Err(why) => Contents::Unknown(why),
        };
        Observed { namespace: namespace.to_owned(), parts, contents }
    }
}

/// Whether something in the agent's namespace is the agent's, even while it is going.
fn is_own(found: &Found) -> bool {
    let name = found.id.name.as_str();
    match found.id.resource.as_str() {
        "secrets" => [CREDENTIALS, PENDING, BOOTSTRAP].contains(&name),
        "serviceaccounts" | "deployments" => name == NAME,
        "replicasets" | "pods" => name.starts_with(NAME),
        _ => false,
    }
}
