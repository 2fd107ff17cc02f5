//! What a placement would decide if it were another. It is the planner's own choice.

use alloc::borrow::ToOwned as _;
use alloc::string::String;

use super::choose::{Misconfigured, choose};
use super::doubt::{Doubt, doubt};
use super::{Holds, Observed};
use crate::replicaset::Decided;
use crate::rollout::Group;

/// The decision. The error says why there would be none: what was decided last stands.
pub fn outlook(seen: &Observed, holds: Holds<'_>) -> Result<Decided, String> {
    if seen.wish.deleting {
        return Err("it is being deleted".to_owned());
    }
    if seen.wish.elsewhere {
        return Err("its clusters are chosen by somebody else".to_owned());
    }
    let selection = choose(seen, holds).map_err(|Misconfigured(why)| why)?;
    match doubt(seen, &selection) {
        None => {}
        Some(Doubt::Unasked) => return Err("what it chooses from is not known".to_owned()),
        Some(Doubt::Lasting(why)) => return Err(why),
    }
    let group = |(index, group): (usize, &super::group::Group)| Group {
        name: group.name.clone(),
        index: i64::try_from(index).unwrap_or(i64::MAX),
        clusters: group.clusters.iter().cloned().collect(),
    };
    Ok(Decided::Settled(selection.groups.iter().enumerate().map(group).collect()))
}
