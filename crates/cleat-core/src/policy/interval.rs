//! When a policy is evaluated again: `watch`, `never`, or a duration as Go writes them.

use cleat_api::configurationpolicy::{EvaluationInterval, reason, state};
use jiff::{SignedDuration, Timestamp};

use super::finding::State;
use super::observed::Policy;

/// How long until an interval that cannot be read is tried again.
const UNREADABLE: SignedDuration = SignedDuration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interval {
    Watch,
    Never,
    Every(SignedDuration),
    Unreadable,
}

/// The one that counts in a state; every state but Compliant counts as noncompliant.
pub(crate) fn interval(spec: &EvaluationInterval, state: State) -> Interval {
    let text = match state {
        State::Compliant => spec.compliant.as_deref(),
        State::NonCompliant | State::Terminating => spec.noncompliant.as_deref(),
    };
    match text {
        None | Some("" | "watch") => Interval::Watch,
        Some("never") => Interval::Never,
        Some(text) => duration(text).map_or(Interval::Unreadable, Interval::Every),
    }
}

/// Whether a policy does not depend on being told of changes: as it stands now it looks again after a
/// while, or not at all. One that is deleted looks at what it lets go of, and at nothing else.
pub fn looks_by_itself(policy: &Policy) -> bool {
    let state = match policy.status.compliant.as_deref() {
        Some(state::COMPLIANT) => State::Compliant,
        _ => State::NonCompliant,
    };
    !policy.deleting && interval(&policy.spec.evaluation_interval, state) != Interval::Watch
}

/// Whether to look at the cluster now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Now,
    At(Timestamp),
    /// When the policy changes.
    Never,
}

/// `unfinished`: something was begun and not reported; `moved`: other namespaces are chosen now.
pub(crate) fn due(policy: &Policy, now: Timestamp, unfinished: bool, moved: bool) -> Due {
    let status = &policy.status;
    let fresh = status.last_evaluated_generation != Some(policy.generation);
    let state = match status.compliant.as_deref() {
        Some(state::COMPLIANT) => State::Compliant,
        None | Some("" | state::TERMINATING) => return Due::Now,
        Some(_) => State::NonCompliant,
    };
    let Some(last) = &status.last_evaluated else { return Due::Now };
    if fresh || unfinished || moved || recreating(policy) {
        return Due::Now;
    }
    let pause = match interval(&policy.spec.evaluation_interval, state) {
        Interval::Watch => return Due::Now,
        Interval::Never => return Due::Never,
        Interval::Every(pause) => pause,
        Interval::Unreadable => UNREADABLE,
    };
    match last.parse::<Timestamp>().ok().and_then(|last| last.checked_add(pause).ok()) {
        Some(next) if next > now => Due::At(next),
        _ => Due::Now,
    }
}

/// An object was on its way out to be made anew; that is looked after whatever the interval.
fn recreating(policy: &Policy) -> bool {
    let waiting = "timed out waiting for the object to delete during recreate";
    let conditions = policy.status.compliancy_details.iter().flat_map(|detail| &detail.conditions);
    let mut waits = conditions.filter(|condition| {
        condition.reason.as_deref().is_some_and(|reason| reason.contains(reason::UPDATE_ERROR))
            && condition.message.as_deref().is_some_and(|message| message.contains(waiting))
    });
    waits.next().is_some()
}

/// When to look again after an evaluation that ended in this state, though nothing changed.
pub(crate) fn next(spec: &EvaluationInterval, state: State, now: Timestamp) -> Option<Timestamp> {
    match interval(spec, state) {
        Interval::Watch | Interval::Never => None,
        Interval::Every(pause) => now.checked_add(pause).ok(),
        Interval::Unreadable => now.checked_add(UNREADABLE).ok(),
    }
}

/// A duration such as `1h30m` or `1.5s`.
pub fn duration(text: &str) -> Option<SignedDuration> {
    if text == "0" {
        return Some(SignedDuration::ZERO);
    }
    let mut rest = text;
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at_checked(end)?;
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(unit_end)?;
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        total = total.checked_add(scaled(number, unit)?)?;
        rest = after;
    }
    let total = i64::try_from(total).ok()?;
    (!text.is_empty()).then(|| SignedDuration::from_nanos(total))
}

fn scaled(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut total = whole.checked_mul(unit)?;
    let mut part = unit;
    for digit in fraction.bytes() {
        part /= 10;
        total = total.checked_add(part.checked_mul(i128::from(digit - b'0'))?)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_in_go() {
        for (text, nanos) in [
            ("0", Some(0)),
            ("10s", Some(10_000_000_000)),
            ("1h30m", Some(5_400_000_000_000)),
            ("1.5s", Some(1_500_000_000)),
            (".5ms", Some(500_000)),
            ("100ns", Some(100)),
            ("3us", Some(3_000)),
            ("", None),
            ("10", None),
            ("s", None),
            ("1d", None),
            ("1.2.3s", None),
            ("-1s", None),
            ("9999999999999999999h", None),
        ] {
            assert_eq!(duration(text), nanos.map(SignedDuration::from_nanos), "{text}");
        }
    }
}
