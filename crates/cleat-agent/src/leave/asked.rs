//! Asking the hub whether the cluster is leaving, before anything is removed that could not be made
//! again. One watch may be ahead of another, so none of them is believed.

use cleat_api::managedcluster::RemoveStrategy;
use cleat_core::leave::agent::{Standing, standing};
use cleat_core::registration::hub::target;
use cleat_core::write::Side;
use cleat_runtime::execute::{Executor, Read};

use super::Presence;

/// How the cluster is leaving, if it is, as the hub says now. An error says why that cannot be told;
/// nothing may be removed then.
pub(crate) async fn ask(
    presence: &Presence,
    executor: &Executor,
    cluster: &str,
) -> Result<Option<RemoveStrategy>, String> {
    known(&presence.standing())?;
    let live = match executor.read(Side::Hub, &target(cluster)).await {
        Read::Present(object) => standing(&object, &presence.cluster_id()),
        Read::Absent => Standing::Unrecognized(format!("it has no cluster {cluster}")),
        Read::NoSuchKind => Standing::Unrecognized("it has no clusters".to_owned()),
        Read::Unknown { message } => {
            return Err(format!("whether the cluster is leaving cannot be seen: {message}"));
        }
    };
    known(&live)
}

/// What the hub was last heard to say.
pub(crate) fn known(standing: &Standing) -> Result<Option<RemoveStrategy>, String> {
    match standing {
        Standing::Member => Ok(None),
        Standing::Leaving(strategy) => Ok(Some(*strategy)),
        Standing::Unknown => Err("whether the cluster is leaving is not known yet".to_owned()),
        Standing::Unrecognized(why) => {
            Err(format!("the hub answers but does not know this cluster: {why}"))
        }
    }
}
