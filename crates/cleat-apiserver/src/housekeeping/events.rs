//! Events are news: after an hour nobody needs them, and a store that kept them would only grow.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Chore, Outcome};
use crate::object;
use crate::objects::NotWritten;
use crate::server::Inner;
use crate::status::Status;

/// As long as kube-apiserver keeps them.
pub(super) const LIFETIME: Duration = Duration::from_secs(3600);
/// How often the old ones are looked for while there are any.
const ROUND: Duration = Duration::from_secs(300);

pub(super) async fn expire(server: &Arc<Inner>) -> Result<Outcome, Status> {
    let types = server.types();
    let Some(ty) = types.get("", "events") else { return Ok(Outcome::Done) };
    let lifetime = SignedDuration::try_from(LIFETIME).unwrap_or_default();
    let oldest = server.clock.now().checked_sub(lifetime).unwrap_or(Timestamp::MIN);
    let mut left = false;
    for event in server.objects.all(ty, "v1", "")? {
        if last_seen(&event).is_none_or(|seen| seen >= oldest) {
            left = true;
            continue;
        }
        let (namespace, name) = (object::namespace(&event), object::name(&event));
        let Some(current) = server.objects.get(ty, "v1", namespace, name)? else { continue };
        let revision = current.revision;
        match server.objects.remove(ty, "v1", current.value, revision).await {
            Ok(_) => {}
            // It happened again meanwhile, so it is not old.
            Err(NotWritten::Raced) => left = true,
            Err(NotWritten::Failed(status)) => return Err(status),
        }
    }
    if left {
        server.housekeeper.schedule_later(Chore::Events, ROUND);
    }
    Ok(Outcome::Done)
}

/// The newest of an event's times. One that has none is left alone.
fn last_seen(event: &Value) -> Option<Timestamp> {
    ["/metadata/creationTimestamp", "/lastTimestamp", "/eventTime", "/series/lastObservedTime"]
        .iter()
        .filter_map(|place| object::at(event, place)?.parse().ok())
        .max()
}
