//! Whether policies are let go of, because their controller, their kind, or the cluster's membership in
//! a fleet goes. Decided from what a server said; nothing is read here.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;

use cleat_api::configurationpolicy::{GROUP, PruneObjectBehavior, UNINSTALLING};
use cleat_api::managedcluster::RemoveStrategy;
use serde_json::Value;

use super::observed::{Departure, Owner, Policy};
use crate::leave::agent::Standing;

/// What a server said of one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Present(Value),
    Absent,
    /// Its kind is not served, which proves nothing.
    NotServed,
    Unknown(String),
}

/// What all of them come to: whoever leaves leaves, whatever else is not known.
pub fn together(all: impl IntoIterator<Item = Departure>) -> Departure {
    let mut most = Departure::Staying;
    for one in all {
        match (&one, &most) {
            (Departure::Leaving, _) => return Departure::Leaving,
            (Departure::Unknown(_), Departure::Staying | Departure::Emptying)
            | (Departure::Emptying, Departure::Staying) => most = one,
            _ => {}
        }
    }
    most
}

impl Owner {
    /// Whether it is a Policy, of which the ConfigurationPolicy is a part.
    pub fn is_policy(&self) -> bool {
        self.kind == "Policy" && self.api_version.split('/').next() == Some(GROUP)
    }
}

/// Everything of a kind goes with its definition.
pub fn of_definition(told: &Told) -> Departure {
    match told {
        Told::Present(object) if text(object, "/metadata/deletionTimestamp").is_empty() => {
            Departure::Staying
        }
        Told::Present(_) | Told::Absent => Departure::Leaving,
        Told::NotServed => Departure::Unknown("definitions are not served now".to_owned()),
        Told::Unknown(why) => Departure::Unknown(why.clone()),
    }
}

/// What the Deployment of a controller says about it.
pub fn of_deployment(told: &Told, namespace: &str, name: &str) -> Departure {
    match told {
        Told::Present(object) => {
            let annotations = object.pointer("/metadata/annotations");
            let said = annotations.and_then(|all| all.get(UNINSTALLING)).and_then(Value::as_str);
            match said {
                None | Some("" | "false") => Departure::Staying,
                Some(_) => Departure::Leaving,
            }
        }
        // A process without its Deployment is likely to end soon, and nobody said why.
        Told::Absent | Told::NotServed => {
            Departure::Unknown(format!("the Deployment {namespace}/{name} is not there"))
        }
        Told::Unknown(why) => Departure::Unknown(why.clone()),
    }
}

/// Whether the owner of a policy that goes is still there, and so has nothing to do with it. `None`: it
/// is gone, and [`outlived`] says what that means.
pub fn of_owner(owner: &Owner, told: &Told) -> Option<Departure> {
    match told {
        Told::Present(found) if text(found, "/metadata/uid") == owner.uid => {
            Some(Departure::Staying)
        }
        Told::Present(_) | Told::Absent => None,
        Told::NotServed => Some(Departure::Unknown("policies are not served now".to_owned())),
        Told::Unknown(why) => Some(Departure::Unknown(why.clone())),
    }
}

/// Whether a policy whose owner is gone lost it with a definition that is back since: then it is older
/// than the definition. What collects those whose owner is gone may be slower than that.
pub fn outlived(policy: &Told, definition: &Told) -> Departure {
    // Whole seconds of one clock, written so that they sort.
    let made = |told: &Told| match told {
        Told::Present(object) => Ok(text(object, "/metadata/creationTimestamp").to_owned()),
        Told::Absent | Told::NotServed => Ok(String::new()),
        Told::Unknown(why) => Err(Departure::Unknown(why.clone())),
    };
    match (made(policy), made(definition)) {
        (Err(unknown), _) | (_, Err(unknown)) => unknown,
        (Ok(policy), Ok(definition)) if policy < definition => Departure::Leaving,
        (Ok(_), Ok(_)) => Departure::Staying,
    }
}

/// What a cluster that leaves its hub means for a policy. Those the hub did not send are let go of with
/// the agent. Those it did send prune only if it knows the cluster and nothing is to stay. `None`: the
/// hub has to be asked for that, and [`of_hub`] says what its answer means.
pub fn of_member(policy: &Policy, cluster: &str, standing: &Standing) -> Option<Departure> {
    let sent = policy.namespace == cluster && policy.owner.as_ref().is_some_and(Owner::is_policy);
    if !sent {
        return Some(match standing {
            Standing::Leaving(_) => Departure::Leaving,
            Standing::Unknown | Standing::Member | Standing::Unrecognized(_) => Departure::Staying,
        });
    }
    let prunes = policy.spec.prune_object_behavior != PruneObjectBehavior::None;
    let goes = policy.deleting && !policy.finalizers.is_empty();
    if goes && prunes { None } else { Some(Departure::Staying) }
}

/// What the hub's answer means for a policy that it sent and that is about to prune: how the cluster
/// leaves, if it does. If everything stays, whoever copied the policy here says so in it first.
pub fn of_hub(answer: Result<Option<RemoveStrategy>, String>) -> Departure {
    match answer {
        Ok(None) => Departure::Staying,
        Ok(Some(RemoveStrategy::Required)) => Departure::Emptying,
        Ok(Some(RemoveStrategy::Needless)) => {
            Departure::Unknown("the cluster leaves its hub and keeps everything".to_owned())
        }
        Err(why) => Departure::Unknown(why),
    }
}

/// What it would mean for a policy that goes if its cluster left its hub in this way. If everything
/// stays, the policy is told so before it goes.
pub fn of_leave(policy: &Policy, cluster: &str, strategy: RemoveStrategy) -> Departure {
    let asked = match strategy {
        RemoveStrategy::Required => Departure::Emptying,
        RemoveStrategy::Needless => Departure::Staying,
    };
    of_member(policy, cluster, &Standing::Leaving(strategy)).unwrap_or(asked)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
