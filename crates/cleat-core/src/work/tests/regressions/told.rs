//! What users were told, and what they were not.

use std::format;
use std::string::{String, ToString as _};
use std::vec;
use std::vec::Vec;

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::manifestwork::{FeedbackRule, ManifestWorkStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

use super::super::world::{World, id};
use super::{act, book_mut, change, settle, settled, turn, wanted_mut, work_mut};
use crate::id::Id;
use crate::work::observed::*;
use crate::work::trouble::{Trouble, TroubleKind};
use crate::work::{plan, report, stranded};
use crate::write::{Plan, Write};

pub(in crate::work::tests) fn condition(type_: &str, status: &str, generation: i64) -> Condition {
    Condition {
        type_: type_.into(),
        status: status.into(),
        reason: "Test".into(),
        message: String::new(),
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
        observed_generation: Some(generation),
    }
}

/// The status that would be written.
fn status(seen: &Observed) -> Option<ManifestWorkStatus> {
    let Write::MergeStatus(patch) = report(seen).publish?.write else { return None };
    Some(serde_json::from_value(patch["status"].clone()).unwrap())
}

fn find<'a>(conditions: &'a [Condition], type_: &str) -> &'a Condition {
    conditions.iter().find(|condition| condition.type_ == type_).unwrap()
}

fn told(seen: &Observed, type_: &str) -> Condition {
    find(&status(seen).unwrap().conditions, type_).clone()
}

#[test]
fn h5_deleting_said_neither_what_remains_nor_why() {
    let mut world = settled(&[(0, 1), (2, 1)]);
    world.guarded.insert(id(2));
    change(&mut world, |work| work.deleting = true);
    for _ in 0..3 {
        turn(&mut world, "one");
    }
    let condition = told(&world.observe("one", || true), "Deleting");
    assert_eq!((&*condition.status, &*condition.reason), ("True", "WorkDeleting"));
    assert_eq!(
        condition.message,
        "ManifestWork is being deleted; 2 objects remain: widgets.example.com n/w (admission \
         webhook \"guard\" denied the request: not yet); 1 others go after these"
    );
}

#[test]
fn a_living_work_did_not_say_who_keeps_what_left_it() {
    let mut world = settled(&[(0, 1), (2, 1)]);
    change(&mut world, |work| {
        let _ = work.wanted.remove(&2);
    });
    let mut seen = world.observe("one", || true);
    let words = "ProtectedBy CriticalService x: services y remains. Delete these first.";
    let trouble = Trouble {
        message: format!("admission webhook \"w\" denied the request: {words}"),
        kind: TroubleKind::Refused,
        attempts: 1,
        retry_at: seen.now,
    };
    seen.troubles.insert(id(2), trouble.clone());
    let held = told(&seen, "Removed");
    assert_eq!((&*held.status, &*held.reason), ("False", "ProtectedBy"));
    let expected = format!("1 object that left the work remains: {} ({words})", id(2));
    assert_eq!(held.message, expected);
    // Nor who does not let in what is in it.
    seen.live.insert(id(0), Seen::Absent);
    seen.troubles.insert(id(0), trouble);
    let manifests = status(&seen).unwrap().resource_status.manifests;
    let applied = find(&manifests[0].conditions, "Applied");
    assert_eq!((&*applied.status, &*applied.reason), ("False", "ProtectedBy"));
    // And it is said for no longer than it holds.
    work_mut(&mut seen).status.conditions.push(held);
    seen.troubles.clear();
    let conditions = status(&seen).unwrap().conditions;
    assert!(conditions.iter().all(|condition| condition.type_ != "Removed"), "{conditions:?}");
}

/// Its time to live took away what was there, and what was refused never came.
#[test]
fn a_work_was_complete_though_a_manifest_was_never_applied() {
    let finished = Finding {
        condition: "Complete".into(),
        status: "True",
        reason: "ConditionRuleEvaluated",
        message: "Job is finished".into(),
    };
    let world = settled(&[(0, 1), (1, 1)]);
    let mut seen = world.observe("one", || true);
    wanted_mut(&mut seen, 0).judged.conditions = vec![finished.clone()];
    assert_eq!(told(&seen, "Complete").status, "True");
    seen.live.insert(id(1), Seen::Absent);
    wanted_mut(&mut seen, 1).permission = Permission::Denied("robot may not".into());
    let complete = told(&seen, "Complete");
    assert_eq!((&*complete.status, &*complete.message), ("Unknown", "1 manifest is not applied"));
    // Nor is it by what was applied of an older work and is under way now.
    let mut seen = world.observe("one", || true);
    let mut before = status(&seen).unwrap();
    let manifests = before.resource_status.manifests.iter_mut();
    manifests.flat_map(|one| &mut one.conditions).for_each(|c| c.observed_generation = Some(0));
    work_mut(&mut seen).status = before;
    wanted_mut(&mut seen, 0).judged.conditions = vec![finished];
    seen.live.insert(id(1), Seen::Absent);
    assert_eq!(told(&seen, "Complete").status, "Unknown");
}

#[test]
fn ocm_1062_a_deletion_showed_no_progress() {
    let mut world = settled(&[(0, 1), (1, 1)]);
    change(&mut world, |work| work.deleting = true);
    turn(&mut world, "one");
    let mut seen = world.observe("one", || true);
    for live in seen.live.values_mut() {
        if let Seen::Present(present) = live {
            present.terminating = Some(vec!["example.com/hold".into()]);
        }
    }
    let message = told(&seen, "Deleting").message;
    assert!(message.contains("2 objects remain"), "{message}");
    assert!(message.contains("n/b (waiting for finalizer example.com/hold)"), "{message}");
}

/// Its finalizers are in its spec, and why they stay is in its status.
#[test]
fn a_namespace_that_would_not_go_was_only_said_to_be_terminating() {
    let mut world = settled(&[(0, 1)]);
    change(&mut world, |work| work.deleting = true);
    turn(&mut world, "one");
    let namespace = Id {
        group: String::new(),
        resource: "namespaces".into(),
        namespace: String::new(),
        name: "n".into(),
    };
    let mut seen = world.observe("one", || true);
    let Some(Seen::Present(mut present)) = seen.live.remove(&id(0)) else { panic!("it is there") };
    present.terminating = Some(vec![]);
    let book = book_mut(&mut seen);
    let (claim, applied) = (book.claims[&id(0)], book.applied[&id(0)].clone());
    book.claims = [(namespace.clone(), claim)].into();
    book.applied = [(namespace.clone(), applied)].into();
    let with = |seen: &mut Observed, content: Content| {
        let present = Present { content, ..present.clone() };
        seen.live.insert(namespace.clone(), Seen::Present(present));
        told(seen, "Deleting").message
    };
    let begun = "ManifestWork is being deleted; 1 object remains: namespaces n";
    assert_eq!(with(&mut seen, Content::Unread), format!("{begun} (terminating)"));
    let told = |message: &str| {
        let object = json!({ "status": { "conditions": [
            { "type": "NamespaceDeletionContentFailure", "status": "False", "message": "well" },
            { "type": "NamespaceContentRemaining", "status": "True", "message": message },
            { "type": "NamespaceFinalizersRemaining", "status": "True", "message": "x in 1" },
            { "type": "Theirs", "status": "True", "message": "of others" },
        ] } });
        Content::Read(object.into())
    };
    let expected = format!("{begun} (terminating: jobs remain; x in 1)");
    assert_eq!(with(&mut seen, told("jobs remain")), expected);
    let long = with(&mut seen, told(&"x".repeat(5000)));
    assert!(long.len() < 1200, "{}", long.len());
}

#[test]
fn a_living_work_did_not_say_what_holds_what_left_it() {
    let mut world = settled(&[(0, 1), (1, 1), (2, 1)]);
    change(&mut world, |work| work.wanted = [(2, 1)].into());
    let mut seen = world.observe("one", || true);
    let conditions = status(&seen).unwrap().conditions;
    assert!(conditions.iter().all(|condition| condition.type_ != "Removed"), "it is on its way");
    let Some(Seen::Present(present)) = seen.live.get_mut(&id(0)) else { panic!("it is there") };
    present.terminating = Some(vec!["example.com/hold".into()]);
    let trouble = Trouble {
        message: "admission webhook \"w\" denied the request: not yet".into(),
        kind: TroubleKind::Refused,
        attempts: 1,
        retry_at: seen.now,
    };
    seen.troubles.insert(id(1), trouble);
    let held = told(&seen, "Removed");
    assert_eq!((&*held.status, &*held.reason), ("False", "ObjectsRemain"));
    let expected = format!(
        "2 objects that left the work remain: {} (waiting for finalizer example.com/hold); {} \
         (admission webhook \"w\" denied the request: not yet)",
        id(0),
        id(1)
    );
    assert_eq!(held.message, expected);
}

#[test]
fn h10_the_loser_of_a_quarrel_was_told_nothing() {
    let mut world = settled(&[(0, 1)]);
    world.ask("two", &[(0, 2)]);
    settle(&mut world, "two");
    let status = status(&world.observe("two", || true)).unwrap();
    let applied = find(&status.resource_status.manifests[0].conditions, "Applied");
    assert_eq!(applied.status, "False");
    assert!(applied.message.contains("hub-one"), "{}", applied.message);
}

#[test]
fn a_conflict_that_is_tried_again_was_told_as_a_failure() {
    let mut world = settled(&[(0, 1)]);
    change(&mut world, |work| work.wanted.insert(0, 2));
    let mut seen = world.observe("one", || true);
    let retry_at = seen.now.checked_add(jiff::SignedDuration::from_secs(1)).unwrap();
    let trouble =
        Trouble { message: "stale".into(), kind: TroubleKind::Stale, attempts: 3, retry_at };
    seen.troubles.insert(id(0), trouble);
    let status = status(&seen).unwrap();
    assert!(status.conditions.iter().all(|condition| condition.type_ != "Applied"));
}

#[test]
fn the_condition_of_a_manifest_that_left_stayed() {
    let mut world = settled(&[(0, 1), (1, 1)]);
    let before = status(&world.observe("one", || true)).unwrap();
    change(&mut world, |work| work.wanted.remove(&1));
    settle(&mut world, "one");
    let mut seen = world.observe("one", || true);
    work_mut(&mut seen).status = before;
    let after = status(&seen).unwrap();
    assert_eq!(after.resource_status.manifests.len(), 1);
}

#[test]
fn a_manifest_that_moved_in_the_list_lost_what_was_said_of_it() {
    let world = settled(&[(0, 1), (1, 1)]);
    let mut seen = world.observe("one", || true);
    let mut before = status(&seen).unwrap();
    for manifest in &mut before.resource_status.manifests {
        for condition in &mut manifest.conditions {
            condition.last_transition_time = Time(Timestamp::UNIX_EPOCH);
        }
    }
    work_mut(&mut seen).status = before;
    seen.wanted.reverse();
    let after = status(&seen).unwrap();
    for manifest in &after.resource_status.manifests {
        let applied = find(&manifest.conditions, "Applied");
        assert_eq!(applied.last_transition_time, Time(Timestamp::UNIX_EPOCH));
    }
}

#[test]
fn a_condition_kept_the_time_of_an_older_work() {
    let mut world = settled(&[(0, 1)]);
    change(&mut world, |_| {});
    let mut seen = world.observe("one", || true);
    work_mut(&mut seen).status.conditions = vec![condition("Applied", "True", 1)];
    let applied = told(&seen, "Applied");
    assert_eq!(applied.observed_generation, Some(work_mut(&mut seen).generation));
    assert_ne!(applied.last_transition_time, Time(Timestamp::UNIX_EPOCH));
}

#[test]
fn conditions_of_others_were_swept_away() {
    let world = settled(&[(0, 1)]);
    let mut seen = world.observe("one", || true);
    work_mut(&mut seen).status.conditions = vec![condition("Theirs", "True", 1)];
    assert_eq!(told(&seen, "Theirs"), condition("Theirs", "True", 1));
}

#[test]
fn a_status_was_written_again_and_again() {
    let world = settled(&[(0, 1)]);
    let mut seen = world.observe("one", || true);
    work_mut(&mut seen).status = status(&seen).unwrap();
    seen.now = seen.now.checked_add(jiff::SignedDuration::from_hours(1)).unwrap();
    assert_eq!(status(&seen), None);
}

#[test]
fn an_executor_that_lacks_rights_was_asked_every_moment() {
    let mut world = settled(&[(0, 1)]);
    change(&mut world, |work| work.wanted.insert(0, 2));
    let mut seen = world.observe("one", || true);
    wanted_mut(&mut seen, 0).permission = Permission::Denied("robot may not".into());
    let wake = report(&seen).wake.unwrap();
    assert_eq!(wake.duration_since(seen.now).as_secs(), 60);
    let applied = told(&seen, "Applied");
    assert_eq!((&*applied.status, &*applied.reason), ("False", "AppliedManifestWorkFailed"));
}

/// The work said that it was applied, until something of it had to be written.
#[test]
fn an_executor_that_may_nothing_was_not_told_while_all_was_as_wanted() {
    let world = settled(&[(0, 1), (1, 1)]);
    let mut seen = world.observe("one", || true);
    assert_eq!(told(&seen, "Applied").status, "True");
    wanted_mut(&mut seen, 0).permission = Permission::Denied("robot may not".into());
    assert_eq!(told(&seen, "Applied").status, "False");
    assert_eq!(plan(&seen), vec![] as Plan);
    // Who may not be asked is not denied anything.
    wanted_mut(&mut seen, 0).permission = Permission::Unknown("no answer".into());
    let conditions = status(&seen).unwrap().conditions;
    assert!(conditions.iter().all(|condition| condition.type_ != "Applied"), "{conditions:?}");
    // What is only looked at needs no right to write.
    wanted_mut(&mut seen, 0).permission = Permission::Denied("robot may not".into());
    wanted_mut(&mut seen, 0).strategy = Strategy::ReadOnly;
    assert_eq!(told(&seen, "Applied").status, "True");
}

#[test]
fn a_work_that_never_had_a_finalizer_was_reported_on() {
    let mut world = World::default();
    world.ask("one", &[(0, 1)]);
    assert_eq!(report(&world.observe("one", || true)).publish, None);
}

#[test]
fn a_new_agent_said_failed_before_it_had_looked() {
    let world = settled(&[(0, 1)]);
    let mut seen = world.observe("one", || true);
    let before = status(&seen).unwrap();
    work_mut(&mut seen).status = before;
    seen.live.insert(id(0), Seen::NotYet);
    assert_eq!(status(&seen), None);
}

#[test]
fn api_406_a_long_structure_broke_the_whole_status() {
    let rules: Vec<FeedbackRule> = serde_json::from_value(json!([{
        "type": "JSONPaths",
        "jsonPaths": [{ "name": "all", "path": ".data" }, { "name": "name", "path": ".name" }],
    }]))
    .unwrap();
    let object: Value = json!({ "name": "a", "data": { "long": "x".repeat(2000) } });
    let (values, told) = crate::work::feedback::values(&object, &rules, true, 1024);
    assert_eq!(values.iter().map(|value| value.name.to_string()).collect::<Vec<_>>(), ["name"]);
    assert!(told.unwrap_err().contains("all"));
}

#[test]
fn what_left_the_manifests_and_could_not_go_was_not_told() {
    let mut world = settled(&[(0, 1), (1, 1)]);
    world.guarded.insert(id(1));
    change(&mut world, |work| work.wanted = [(0, 1)].into_iter().collect());
    for _ in 0..5 {
        turn(&mut world, "one");
    }
    let retiring = status(&world.observe("one", || true)).unwrap().retiring;
    let told: Vec<_> = retiring.iter().map(|one| (&*one.name, one.stays)).collect();
    assert_eq!(told, [(&*id(1).name, None)]);
    assert!(!retiring[0].uid.is_empty());
    world.guarded.clear();
    settle(&mut world, "one");
    assert_eq!(status(&world.observe("one", || true)).unwrap_or_default().retiring, []);
}

/// The ledger of a work that was forced away on the hub was closed without a word: nothing named what
/// it had left any more.
#[test]
fn what_a_work_left_that_the_hub_had_lost_was_on_no_record() {
    let mut world = settled(&[(0, 1), (1, 1)]);
    world.works.remove("one");
    let look = |world: &World, told: &[LeftObject]| {
        let mut seen = world.observe("one", || true);
        seen.leaving = Some(RemoveStrategy::Needless);
        seen.told = told.to_vec();
        seen
    };
    assert_eq!(stranded(&look(&world, &[])), None, "our marks are still on it");
    for _ in 0..20 {
        world.pass_time(|| true);
        let next = plan(&look(&world, &[]));
        act(&mut world, "one", &next);
    }
    assert!(world.ledger("one").is_some(), "it was forgotten");
    let left = stranded(&look(&world, &[])).unwrap();
    let listed: Vec<_> = left.iter().map(|one| (&*one.name, &*one.source, &*one.why)).collect();
    let why = "kept by removeStrategy Needless";
    assert_eq!(listed, [(&*id(0).name, "one", why), (&*id(1).name, "one", why)]);
    // Half of it is not all of it, and another incarnation is another.
    assert_eq!(plan(&look(&world, &left[..1])), vec![] as Plan);
    let mut anew = left.clone();
    anew[1].uid = "another".to_string();
    assert_eq!(plan(&look(&world, &anew)), vec![] as Plan);
    let next = plan(&look(&world, &left));
    act(&mut world, "one", &next);
    assert!(world.ledger("one").is_none());
    assert!(world.objects.contains_key(&id(0)) && world.objects.contains_key(&id(1)));
}
