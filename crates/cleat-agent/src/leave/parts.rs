//! Taking the agent's own parts off its cluster, when it has left: `cleat_core::leave::parts` says
//! what and in which order.

use std::collections::BTreeMap;

use cleat_core::id::Id;
use cleat_core::leave::parts::{
    self, BOOTSTRAP, CREDENTIALS, NAME, Observed, OwnPart, PENDING, Remaining, plan,
};
use cleat_core::registration::hub::Seen;
use cleat_core::work::contents::{Contents, Found, judge_beside};
use cleat_core::write::{Outcome, Side};
use cleat_runtime::contents::found;
use cleat_runtime::execute::{Executor, Read};
use cleat_runtime::kinds::Kinds;
use kube::Client;

use super::clean::refusal;
use crate::registration::Keep;

/// More than it takes.
const ROUNDS: usize = 8;

/// What cannot be taken away is said, and left: nothing of it can do anything any more. Says what was
/// refused.
pub(super) async fn take_away(
    executor: &Executor,
    cluster: &Client,
    kinds: &Kinds,
    keep: &Keep,
) -> Option<(Id, String)> {
    let namespace = match keep {
        Keep::Secret { namespace } => namespace.clone(),
        Keep::Directory(_) => {
            if let Err(error) = keep.forget() {
                tracing::warn!(%error, "the credentials cannot be removed");
            }
            return None;
        }
    };
    for _ in 0..ROUNDS {
        let seen = observe(executor, cluster, kinds, &namespace).await;
        let plan = plan(&seen);
        if plan.is_empty() {
            return None;
        }
        let ids: Vec<Id> = plan.iter().flatten().map(|one| one.target.id.clone()).collect();
        let done = executor.execute(plan).await;
        let mut outcomes = ids.into_iter().zip(done.iter().flatten());
        let refused = outcomes.find(|(_, one)| !one.is_done() && **one != Outcome::NotFound);
        if let Some((id, refused)) = refused {
            // Its account went with the namespace; the collector takes what hangs on that.
            if matches!(refused, Outcome::Refused(refusal) if refusal.code == 401) {
                return None;
            }
            tracing::warn!(namespace, ?refused, "a part of the agent cannot be taken away");
            return refusal(refused).map(|why| (id, why));
        }
    }
    None
}

/// What is still there, as the server says now.
pub(super) async fn remaining(
    executor: &Executor,
    cluster: &Client,
    kinds: &Kinds,
    keep: &Keep,
) -> Vec<Remaining> {
    match keep {
        Keep::Secret { namespace } => {
            parts::remaining(&observe(executor, cluster, kinds, namespace).await)
        }
        Keep::Directory(_) => Vec::new(),
    }
}

async fn observe(
    executor: &Executor,
    cluster: &Client,
    kinds: &Kinds,
    namespace: &str,
) -> Observed {
    let mut parts = BTreeMap::new();
    for part in OwnPart::ALL {
        let seen = match executor.read(Side::Cluster, &part.target(namespace)).await {
            Read::Present(object) => Seen::Present(object),
            Read::Absent => Seen::Absent,
            Read::NoSuchKind | Read::Unknown { .. } => Seen::Unknown,
        };
        parts.insert(part, seen);
    }
    let contents = match found(cluster, kinds, namespace).await {
        Ok(all) => {
            let own = all.iter().filter(|one| is_own(one)).map(|one| one.uid.as_str()).collect();
            judge_beside(&all, &own, "")
        }
        Err(why) => Contents::Unknown(why),
    };
    Observed { namespace: namespace.to_owned(), parts, contents }
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
