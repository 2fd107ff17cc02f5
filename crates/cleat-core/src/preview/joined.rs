//! What several questions to one cluster were answered, as one answer.
//!
//! Each was answered as if the others had not been asked, so what they mean for each other is put right
//! here, by the rules of [`together`]; what cannot be told from the answers alone is unknown.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::removalpreview::{PreviewVerdict, PreviewedObject, RemovalPreviewStatus};
use serde_json::json;

use super::answer::place;
use super::together::{COMPLIANCE, TEMPLATES, together};
use crate::digest::digest;
use crate::id::Id;
use crate::work::outlook::{Foreseen, Prospect, SHARED};
use crate::work::proposal::MANIFESTS;
use crate::work::retire::is_inside;

/// One silent part makes the whole unknown.
pub fn joined(answers: Vec<Option<RemovalPreviewStatus>>) -> Option<RemovalPreviewStatus> {
    let mut answers: Vec<RemovalPreviewStatus> = answers.into_iter().collect::<Option<_>>()?;
    if answers.len() < 2 {
        return answers.pop();
    }
    let mut all = RemovalPreviewStatus { digest: combined(&answers), ..Default::default() };
    for answer in answers {
        let RemovalPreviewStatus { answered_at, problems, notes, objects, more, digest: _ } =
            answer;
        all.answered_at = all.answered_at.or(answered_at);
        all.problems.extend(problems);
        all.notes.extend(notes);
        all.objects.extend(objects);
        all.more = all.more.saturating_add(more);
    }
    kept_for_each_other(&mut all.objects);
    put_right(&mut all.objects);
    all.objects.sort_by(|a, b| place(a).cmp(&place(b)));
    Some(all)
}

/// Stands for all objects, listed or not, if any answer does not list all of its own.
fn combined(answers: &[RemovalPreviewStatus]) -> String {
    if answers.iter().all(|answer| answer.digest.is_empty()) {
        return String::new();
    }
    let each: Vec<&str> = answers.iter().map(|answer| answer.digest.as_str()).collect();
    digest(&json!(each)).chars().take(16).collect()
}

/// What two works let go of, each because another holds it: that may be just the other.
fn kept_for_each_other(objects: &mut [PreviewedObject]) {
    let mut keepers: BTreeMap<(Id, String), BTreeSet<String>> = BTreeMap::new();
    for one in objects.iter().filter(|one| is_shared(one)) {
        keepers.entry((id(one), one.uid.clone())).or_default().insert(one.source.clone());
    }
    for one in objects.iter_mut().filter(|one| is_shared(one)) {
        let Some(all) = keepers.get(&(id(one), one.uid.clone())) else { continue };
        let Some(other) = all.iter().find(|source| **source != one.source) else { continue };
        one.verdict = PreviewVerdict::Unknown;
        one.why = format!("work {other} lets go of it as well, so it goes if nobody else holds it");
    }
}

fn is_shared(one: &PreviewedObject) -> bool {
    one.verdict == PreviewVerdict::Keep && one.why == SHARED
}

/// What one answer deletes, or the namespace or definition of which it does, does not stay because
/// another would keep it.
fn put_right(objects: &mut [PreviewedObject]) {
    let mut outlooks: BTreeMap<String, Vec<Foreseen>> = BTreeMap::new();
    for one in objects.iter() {
        outlooks.entry(one.source.clone()).or_default().push(foreseen(one));
    }
    together(&mut outlooks);
    let before = objects.to_vec();
    let mut outlooks: BTreeMap<String, alloc::vec::IntoIter<Foreseen>> =
        outlooks.into_iter().map(|(source, all)| (source, all.into_iter())).collect();
    for one in objects {
        let Some(now) = outlooks.get_mut(&one.source).and_then(Iterator::next) else { continue };
        let verdict = PreviewVerdict::from(now.prospect);
        if verdict == one.verdict {
            continue;
        }
        one.decided_by = decided_by(&before, one);
        one.verdict = verdict;
        one.why = now.why;
        // What was tried was something else.
        one.effects.clear();
        one.blockers.clear();
    }
}

/// The field that decides what becomes of an object that goes with another.
fn decided_by(all: &[PreviewedObject], one: &PreviewedObject) -> String {
    let goes = |other: &&PreviewedObject| {
        matches!(other.verdict, PreviewVerdict::Delete | PreviewVerdict::Recreate)
    };
    let same =
        |other: &&PreviewedObject| id(other) == id(one) && other.uid == one.uid && goes(other);
    let around = |other: &&PreviewedObject| goes(other) && is_inside(&id(other), &id(one));
    let other = all.iter().find(same).or_else(|| all.iter().find(around));
    other.map(|other| other.decided_by.clone()).unwrap_or_default()
}

fn id(one: &PreviewedObject) -> Id {
    Id {
        group: one.group.clone(),
        resource: one.resource.clone(),
        namespace: one.namespace.clone(),
        name: one.name.clone(),
    }
}

/// What an answer says of an object, in the words of who foresaw it.
fn foreseen(one: &PreviewedObject) -> Foreseen {
    Foreseen {
        id: id(one),
        version: one.version.clone(),
        uid: one.uid.clone(),
        prospect: Prospect::from(one.verdict),
        why: one.why.clone(),
        // Of the fields only these matter to others.
        decided_by: match one.decided_by.as_str() {
            TEMPLATES => TEMPLATES,
            COMPLIANCE => COMPLIANCE,
            MANIFESTS => MANIFESTS,
            _ => "",
        },
        adopted: one.adopted,
        finalizers: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;
    use std::vec;

    use super::*;

    fn object(
        source: &str,
        resource: &str,
        [namespace, name]: [&str; 2],
        verdict: PreviewVerdict,
    ) -> PreviewedObject {
        PreviewedObject {
            source: source.to_string(),
            resource: resource.to_string(),
            namespace: namespace.to_string(),
            name: name.to_string(),
            uid: name.to_string(),
            verdict,
            why: "by itself".to_string(),
            decided_by: std::format!("by {source}"),
            ..PreviewedObject::default()
        }
    }

    fn answer(objects: Vec<PreviewedObject>) -> Option<RemovalPreviewStatus> {
        Some(RemovalPreviewStatus { objects, ..RemovalPreviewStatus::default() })
    }

    /// What is said of the object of the second answer.
    fn after(first: PreviewedObject, second: PreviewedObject) -> (PreviewVerdict, String, String) {
        let source = second.source.clone();
        let all = joined(vec![answer(vec![first]), answer(vec![second])]).unwrap();
        let one = all.objects.into_iter().find(|one| one.source == source).unwrap();
        (one.verdict, one.why, one.decided_by)
    }

    /// One policy of a binding prunes a namespace, and the other's object in it was shown as kept.
    #[test]
    fn what_one_answer_deletes_was_kept_by_another() {
        use PreviewVerdict::{Adopt, Create, Delete, Keep, Orphan, Recreate, Stuck, Unchanged};
        let shop = || object("a", "namespaces", ["", "shop"], Delete);
        let map = |source: &str, verdict| object(source, "configmaps", ["shop", "cm"], verdict);
        let along = "namespaces shop goes, and takes it along";
        let without =
            "namespaces shop goes and takes it along, and it cannot be made anew without it";
        let stays = "it stays as far as this is concerned, and goes with a";
        for (first, second, expected, why) in [
            (shop(), map("b", Keep), Delete, along),
            (shop(), map("b", Orphan), Delete, along),
            (shop(), map("b", Unchanged), Delete, without),
            (
                shop(),
                map("b", Create),
                Stuck,
                "namespaces shop goes, and it cannot be made without it",
            ),
            (map("a", Delete), map("b", Keep), Delete, stays),
            (map("a", Delete), map("b", Adopt), Recreate, "it goes with a, and is made anew"),
        ] {
            let told = after(first, second);
            assert_eq!(told, (expected, why.to_string(), "by a".to_string()));
        }
        // Whatever else is there is nobody's business.
        let elsewhere = object("b", "configmaps", ["other", "cm"], Keep);
        assert_eq!(after(shop(), elsewhere).0, Keep);
        let mut anew = map("b", Keep);
        anew.uid = "another".to_string();
        assert_eq!(after(map("a", Delete), anew).0, Keep);
        // Who only reports makes nothing anew.
        let mut reports = map("b", Unchanged);
        reports.decided_by = "spec.remediationAction".to_string();
        assert_eq!(after(map("a", Delete), reports).0, Delete);
    }

    /// Two works of one set on one cluster: everything was shown as staying, each time for the sake of the
    /// other.
    #[test]
    fn two_works_that_go_kept_everything_for_each_other() {
        let shared = |source: &str, name: &str| PreviewedObject {
            why: SHARED.to_string(),
            ..object(source, "configmaps", ["shop", name], PreviewVerdict::Keep)
        };
        let both = vec![
            answer(vec![shared("one", "cm")]),
            answer(vec![shared("two", "cm"), shared("two", "else")]),
        ];
        let all = joined(both).unwrap();
        let told: Vec<_> =
            all.objects.iter().map(|one| (&*one.source, &*one.name, one.verdict)).collect();
        assert_eq!(
            told,
            [
                ("two", "else", PreviewVerdict::Keep),
                ("one", "cm", PreviewVerdict::Unknown),
                ("two", "cm", PreviewVerdict::Unknown),
            ]
        );
        assert_eq!(
            all.objects[1].why,
            "work two lets go of it as well, so it goes if nobody else holds it"
        );
    }

    #[test]
    fn what_the_second_answer_did_not_list_was_no_part_of_the_plan() {
        let cut = |digest: &str, more| {
            let digest = digest.to_string();
            Some(RemovalPreviewStatus { digest, more, ..RemovalPreviewStatus::default() })
        };
        let whole = joined(vec![cut("", 0), cut("", 0)]).unwrap();
        assert_eq!(whole.digest, "");
        let both = joined(vec![cut("a", 3), cut("b", 4)]).unwrap();
        let other = joined(vec![cut("a", 3), cut("c", 4)]).unwrap();
        assert_ne!(both.digest, other.digest);
        assert_eq!((both.digest.len(), both.more), (16, 7));
        assert_eq!(joined(vec![cut("a", 3)]), cut("a", 3));
        // Silence in part is silence.
        assert_eq!(joined(vec![cut("a", 3), None]), None);
        assert_eq!(joined(vec![]), None);
    }
}
