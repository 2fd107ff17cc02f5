//! Which objects a policy made, written down so that a crash at any moment loses nothing.
//!
//! Before an object is made, its entry says that it will be ours, without a UID: a claim. When it
//! is seen, the claim becomes a fact if the object bears the policy's mark as a manager of its fields:
//! each policy writes under a name of its own, so that no two take one object for theirs.
//! An object that somebody else made keeps being somebody else's, even if we make it anew.

use cleat_api::configurationpolicy::Properties;

use super::observed::Present;

/// Whether the entry was written ahead of something that was then not seen to be done.
pub(crate) fn is_claim(old: Option<&Properties>) -> bool {
    old.is_some_and(|old| old.created_by_policy.is_some() && old.uid.is_empty())
}

/// What to write down before an object is made.
pub(crate) fn before_creation(old: Option<&Properties>) -> Properties {
    // An object that was somebody else's is deleted only after its entry said that it will be
    // theirs again.
    let theirs = is_claim(old) && old.is_some_and(|old| old.created_by_policy == Some(false));
    Properties { created_by_policy: Some(!theirs), ..Properties::default() }
}

/// What to write down before an object is deleted only to be made anew.
pub(crate) fn before_recreation(known: &Properties, present: &Present) -> Properties {
    let ours = known.created_by_policy == Some(true) && known.uid == present.uid();
    Properties { created_by_policy: Some(ours), ..Properties::default() }
}

/// What is known of an object that is there.
pub(crate) fn existing(old: Option<&Properties>, present: &Present, policy: &str) -> Properties {
    let uid = present.uid();
    let seen = |ours: bool| Properties {
        created_by_policy: Some(ours),
        uid: uid.into(),
        ..Properties::default()
    };
    match old {
        Some(claim) if is_claim(old) => {
            seen(claim.created_by_policy == Some(true) && present.is_written_by(policy))
        }
        _ => carried(old, seen(false)),
    }
}

/// What was known before stays known. The UID stays too: if the object was made anew by somebody
/// else, the entry still speaks of the one that is gone, and so nobody deletes theirs.
pub(crate) fn carried(old: Option<&Properties>, seen: Properties) -> Properties {
    match old {
        Some(Properties {
            created_by_policy: Some(ours),
            uid,
            diff: _,
            matches_after_dry_run: _,
        }) if !uid.is_empty() => {
            Properties { created_by_policy: Some(*ours), uid: uid.clone(), ..seen }
        }
        _ => seen,
    }
}

/// What two templates know of one object. Whatever was written down ahead of a deed counts most, then
/// that the object is ours.
pub(crate) fn of_both(one: Option<Properties>, other: Option<Properties>) -> Option<Properties> {
    let weight = |known: &Properties| {
        (is_claim(Some(known)), known.created_by_policy == Some(true), !known.diff.is_empty())
    };
    match (one, other) {
        (Some(one), Some(other)) if weight(&other) > weight(&one) => Some(other),
        (Some(one), _) => Some(one),
        (None, other) => other,
    }
}
