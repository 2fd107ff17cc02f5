//! Whether a cluster lives: leases, clocks, and the taints that follow.
//!
//! A lease is judged by when the hub saw it, never by what the cluster's clock says: that may be
//! wrong, and a cluster with a wrong clock is neither dead nor alive for it. What a hub finds when it
//! begins to look counts as seen then, so a restart lets nobody die sooner.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::managedcluster::{DEFAULT_LEASE_SECONDS, Taint, TaintEffect, taint};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::condition::whole_seconds;

/// A lease that was not renewed for this many of its durations is out of date.
const GRACE: i32 = 5;

/// What is known of the last renewal of a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// When the agent says it renewed.
    pub renewed: Option<Timestamp>,
    /// When the hub first saw that renewal.
    pub seen: Option<Timestamp>,
    pub sight: Sight,
}

/// How the hub came to see a renewal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sight {
    /// It was there when the hub began to look: nobody knows since when.
    #[default]
    Found,
    /// It is another one than the hub saw before, and came while nobody looked.
    Missed,
    /// It was seen as it arrived.
    Watched,
}

impl Heartbeat {
    /// What is known after a look at the lease. `watched`: the look was prompted by its change.
    #[must_use]
    pub fn next(
        before: Option<Self>,
        renewed: Option<Timestamp>,
        watched: bool,
        now: Timestamp,
    ) -> Self {
        match before {
            Some(before) if before.renewed == renewed => before,
            before => {
                let sight = match before {
                    _ if watched => Sight::Watched,
                    Some(_) => Sight::Missed,
                    None => Sight::Found,
                };
                Self { renewed, seen: renewed.map(|_| now), sight }
            }
        }
    }
}

/// What a lease says of its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulse {
    /// It was never renewed.
    None,
    Beating {
        /// When it stops to count, unless it is renewed.
        until: Timestamp,
    },
    Stopped,
}

/// How often the lease is to be renewed. A cluster that says nothing sensible has the default.
pub fn duration(seconds: i32) -> SignedDuration {
    let seconds = if seconds > 0 { seconds } else { DEFAULT_LEASE_SECONDS };
    SignedDuration::from_secs(i64::from(seconds))
}

pub fn pulse(heartbeat: Heartbeat, duration: SignedDuration, now: Timestamp) -> Pulse {
    let Heartbeat { renewed, seen, sight: _ } = heartbeat;
    let Some(last) = seen.or(renewed) else { return Pulse::None };
    let until = last.checked_add(duration * GRACE).unwrap_or(Timestamp::MAX);
    if now < until { Pulse::Beating { until } } else { Pulse::Stopped }
}

/// Whether the clocks of the cluster and the hub agree to within the lease's duration. Only a
/// renewal that was seen to arrive tells.
pub fn clocks_agree(heartbeat: Heartbeat, duration: SignedDuration) -> Option<bool> {
    if heartbeat.sight != Sight::Watched {
        return None;
    }
    let apart = heartbeat.seen?.duration_since(heartbeat.renewed?).abs();
    Some(apart < duration)
}

/// When an agent renews next: after the lease's duration and up to a quarter more, so that agents
/// that began together do not stay together. `dice` is anything.
pub fn next_renewal(duration: SignedDuration, dice: u16) -> SignedDuration {
    duration + duration / 4 * i32::from(dice) / i32::from(u16::MAX)
}

/// What is said of the cluster's availability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    Available,
    Unavailable,
    Unknown,
}

impl Availability {
    pub fn of(status: Option<&str>) -> Self {
        match status {
            Some("True") => Self::Available,
            Some("False") => Self::Unavailable,
            _ => Self::Unknown,
        }
    }

    fn key(self) -> Option<&'static str> {
        match self {
            Self::Available => None,
            Self::Unavailable => Some(taint::UNAVAILABLE),
            Self::Unknown => Some(taint::UNREACHABLE),
        }
    }
}

/// The taints a cluster should have, if it has others: exactly one of ours or none, and a time on
/// each.
pub fn taints(current: &[Taint], availability: Availability, now: Timestamp) -> Option<Vec<Taint>> {
    let wanted = availability.key();
    let stays = |taint: &&Taint| {
        let ours = [taint::UNREACHABLE, taint::UNAVAILABLE].contains(&&*taint.key);
        !ours || (Some(&*taint.key) == wanted && taint.effect == TaintEffect::NoSelect)
    };
    let mut taints: Vec<Taint> = current.iter().filter(stays).cloned().collect();
    if let Some(key) = wanted.filter(|key| taints.iter().all(|taint| taint.key != *key)) {
        let (value, effect) = (String::new(), TaintEffect::NoSelect);
        taints.push(Taint { key: key.to_owned(), value, effect, time_added: None });
    }
    for taint in &mut taints {
        taint.time_added.get_or_insert_with(|| time(now));
    }
    (taints != current).then_some(taints)
}

fn time(now: Timestamp) -> Time {
    whole_seconds(now)
}

#[cfg(test)]
mod tests;
