//! What would become of each template of a policy if the hub said something else of it, or sent it for
//! the first time.
//!
//! It is the planner's own judgement about a world in which the copy on the cluster says so already.
//! What templates make of objects is not decided here.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Value;

use super::desired;
use super::observed::{Observed, Policy};
use super::plan::left;
use super::template::{self, Found, Stop};
use crate::id::Target;
use crate::policy::observed::Served;

/// What would become of one template.
#[derive(Clone, Debug, PartialEq)]
pub enum Prospect {
    /// It is this object from then on.
    Is {
        object: Value,
        /// Whether that is another than there is.
        news: News,
    },
    /// Nothing comes of it.
    Stuck(String),
    /// It begins when others are as it needs them.
    Waits(String),
    Unknown(String),
    /// It is not in the policy any more, and goes.
    Leaves,
    /// It is not in the policy any more, and stays for now.
    Stays(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    Made,
    Changed,
    Same,
}

/// A template, and what would become of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreseen {
    /// Where its object is, as far as its kind is known.
    pub target: Target,
    pub kind: String,
    /// Which incarnation of it is there; empty if none is.
    pub uid: String,
    pub prospect: Prospect,
}

/// The outlook for every template that there is or would be. `seen` is the world in which the hub and
/// the cluster have the proposed policy.
pub fn proposal(seen: &Observed) -> Result<Vec<Foreseen>, String> {
    let Some(local) = seen.local.policy() else { return Err("there is no such policy".to_owned()) };
    if local.deleting {
        return Err("it is being deleted, and is made anew when it is gone".to_owned());
    }
    let mut all = Vec::new();
    for (index, (template, verdict)) in template::verdicts(seen, local).into_iter().enumerate() {
        let id = template::id(template);
        let name = template::name(template, index);
        let served = match &verdict {
            Ok(found) => found.served.clone(),
            Err(_) => {
                let kind = id.as_ref().map(|id| (&*id.kind.api_version, &*id.kind.kind));
                let (api_version, kind) = kind.unwrap_or_default();
                Served::unknown(api_version, kind)
            }
        };
        let kind = id.map(|id| id.kind.kind).unwrap_or_default();
        let target = served.target(&seen.place.cluster_namespace, &name);
        let live = verdict.as_ref().ok().and_then(|found| found.live.as_ref());
        let uid = live.and_then(|live| live.pointer("/metadata/uid")?.as_str());
        let uid = uid.unwrap_or_default().to_owned();
        all.push(Foreseen { target, kind, uid, prospect: prospect(verdict) });
    }
    let certain = template::are_certain(&local.spec);
    for one in left(seen, &local.spec) {
        let Some(one) = one else { return Err("not all its templates could be read".to_owned()) };
        let prospect = match certain {
            true => Prospect::Leaves,
            false => Prospect::Stays(
                "not all templates say for certain what they are, so none is taken away".to_owned(),
            ),
        };
        let (target, kind, uid) = (one.target.clone(), one.kind.clone(), one.uid.clone());
        all.push(Foreseen { target, kind, uid, prospect });
    }
    Ok(all)
}

fn prospect(verdict: Result<Found, Stop>) -> Prospect {
    match verdict {
        Err(Stop::Fault(why)) => Prospect::Stuck(why),
        Err(Stop::Pending(why)) => Prospect::Waits(why),
        Err(Stop::Unread(why)) => Prospect::Unknown(why),
        Err(Stop::Unknown) => Prospect::Unknown("not everything it needs could be read".to_owned()),
        Ok(Found { wanted, live: None, .. }) => Prospect::Is { object: wanted, news: News::Made },
        Ok(Found { live: Some(live), .. }) if template::is_deleting(&live) => {
            Prospect::Unknown("it is being deleted, and is made anew when it is gone".to_owned())
        }
        Ok(Found { wanted, live: Some(live), .. }) => match desired::changed(&live, &wanted) {
            Some(next) => Prospect::Is { object: next, news: News::Changed },
            None => Prospect::Is { object: live, news: News::Same },
        },
    }
}

/// The copy as it would be on the cluster. `local`: the one that is there.
pub fn copy(object: Value, local: Option<&Policy>) -> Result<Policy, String> {
    let spec = object.get("spec").cloned().unwrap_or_default();
    let spec = serde_json::from_value(spec)
        .map_err(|error| alloc::format!("the policy cannot be read: {error}"))?;
    let kept = |of: fn(&Policy) -> &String| local.map(of).cloned().unwrap_or_default();
    let uid: String = kept(|local| &local.uid);
    let resource_version: String = kept(|local| &local.resource_version);
    Ok(Policy {
        object,
        uid,
        resource_version,
        deleting: local.is_some_and(|local| local.deleting),
        finalizers: local.map(|local| local.finalizers.clone()).unwrap_or_default(),
        spec,
        status: local.map(|local| local.status.clone()).unwrap_or_default(),
    })
}
