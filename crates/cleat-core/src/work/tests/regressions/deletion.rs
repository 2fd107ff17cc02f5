//! Letting go: what was deleted and should not have been, or was not and should have been.

use std::string::ToString as _;
use std::vec;
use std::vec::Vec;

use cleat_api::manifestwork::{DeleteOption, Keep};
use jiff::SignedDuration;
use serde_json::json;

use super::super::world::{World, id, keep_only, present};
use super::{act, book_mut, change, deletes, settle, settled, turn, wanted_mut, work_mut};
use crate::id::Id;
use crate::work::kind_order::removal_rank;
use crate::work::observed::*;
use crate::work::ownership::ledger_target;
use crate::work::trouble::{Trouble, TroubleKind};
use crate::work::{plan, report};
use crate::write::{Outcome, Plan, Refusal, Side, Write};

/// A work that is deleted, of which the next pass begins with the objects.
fn leaving(wanted: &[(usize, u8)]) -> World {
    let mut world = settled(wanted);
    change(&mut world, |work| work.deleting = true);
    world
}

#[test]
fn h1_a_denied_delete_was_forgotten() {
    let mut world = leaving(&[(0, 1), (1, 1)]);
    world.guarded.insert(id(0));
    for _ in 0..10 {
        turn(&mut world, "one");
    }
    assert!(world.works.contains_key("one"));
    assert!(world.ledger("one").unwrap().applied.contains_key(&id(0)));
    world.guarded.clear();
    settle(&mut world, "one");
    assert!(!world.works.contains_key("one") && !world.objects.contains_key(&id(0)));
}

#[test]
fn h1_a_server_error_let_the_work_go() {
    for code in [403, 429, 500, 503] {
        let world = leaving(&[(0, 1)]);
        let mut seen = world.observe("one", || true);
        book_mut(&mut seen).deleting = true;
        let refusal = Refusal { code, reason: "".into(), message: "no".into() };
        let write = Write::Delete {
            uid: "u".into(),
            resource_version: None,
            propagation: crate::write::Propagation::Background,
        };
        let trouble = Trouble::after(None, &write, &Outcome::Refused(refusal), seen.now).unwrap();
        seen.troubles.insert(id(0), trouble.clone());
        assert_eq!(plan(&seen), vec![] as Plan, "{code}");
        assert_eq!(report(&seen).wake, Some(trouble.retry_at), "{code}");
    }
}

#[test]
fn h2_orphan_then_delete_at_once_deleted() {
    let mut world = settled(&[(0, 1), (1, 1)]);
    change(&mut world, |work| {
        work.keep = Keep::Everything;
        work.deleting = true;
    });
    settle(&mut world, "one");
    assert!(!world.works.contains_key("one"));
    for index in [0, 1] {
        assert_eq!(present(&world.objects[&id(index)]).owners, []);
    }
}

#[test]
fn h2_a_complete_work_was_deaf_to_orphan() {
    let mut world = settled(&[(0, 1)]);
    change(&mut world, |work| {
        work.keep = Keep::Everything;
        work.deleting = true;
    });
    let mut seen = world.observe("one", || true);
    work_mut(&mut seen).status.conditions = vec![super::told::condition("Complete", "True", 1)];
    let plan = plan(&seen);
    assert_eq!(deletes(&plan), [] as [&Id; 0]);
    assert!(matches!(&plan[0][0].write, Write::Merge(_)));
}

#[test]
fn a_complete_work_that_came_to_keep_its_objects_was_evicted_with_them() {
    let mut world = settled(&[(0, 1)]);
    change(&mut world, |work| {
        work.complete = true;
        work.keep = Keep::Everything;
    });
    settle(&mut world, "one");
    assert!(world.ledger("one").unwrap().is_kept(&id(0)));
    world.works.remove("one");
    let mut seen = world.observe("one", || true);
    seen.agent.eviction_grace = Some(jiff::SignedDuration::ZERO);
    book_mut(&mut seen).eviction_start = Some(seen.now);
    assert_eq!(deletes(&plan(&seen)), [] as [&Id; 0]);
}

#[test]
fn a_complete_work_that_came_back_was_about_to_be_evicted_for_ever() {
    let mut world = settled(&[(0, 1)]);
    change(&mut world, |work| work.complete = true);
    let mut seen = world.observe("one", || true);
    book_mut(&mut seen).eviction_start = Some(seen.now);
    let plan = plan(&seen);
    let Write::MergeStatus(patch) = &plan[0][0].write else { panic!("{plan:?}") };
    assert!(patch["status"]["evictionStartTime"].is_null());
    assert!(patch["status"].as_object().unwrap().contains_key("evictionStartTime"));
}

#[test]
fn what_was_kept_when_the_deletion_began_was_deleted_because_the_work_changed_since() {
    let mut world = settled(&[(0, 1), (1, 1)]);
    change(&mut world, |work| {
        work.keep = keep_only(0);
        work.deleting = true;
    });
    world.guarded.insert(id(1));
    for _ in 0..6 {
        turn(&mut world, "one");
    }
    assert!(world.ledger("one").unwrap().deleting);
    change(&mut world, |work| work.keep = Keep::Nothing);
    world.guarded.clear();
    settle(&mut world, "one");
    assert!(!world.works.contains_key("one"));
    assert!(world.objects.contains_key(&id(0)) && !world.objects.contains_key(&id(1)));
}

#[test]
fn one_mark_that_could_not_be_taken_off_stopped_the_whole_deletion() {
    let mut world = settled(&[(0, 1), (1, 1)]);
    change(&mut world, |work| {
        work.keep = keep_only(0);
        work.deleting = true;
    });
    world.frozen.insert(id(0));
    for _ in 0..10 {
        turn(&mut world, "one");
    }
    assert!(world.works.contains_key("one") && !world.objects.contains_key(&id(1)));
    world.frozen.clear();
    settle(&mut world, "one");
    assert!(!world.works.contains_key("one") && world.objects.contains_key(&id(0)));
}

#[test]
fn h2_an_executor_without_rights_made_orphans_go() {
    let mut world = settled(&[(0, 1)]);
    change(&mut world, |work| {
        work.keep = Keep::Everything;
        work.deleting = true;
    });
    let mut seen = world.observe("one", || true);
    wanted_mut(&mut seen, 0).permission = Permission::Denied("no".into());
    assert_eq!(deletes(&plan(&seen)), [] as [&Id; 0]);
}

#[test]
fn h4_a_waiting_delete_was_looked_at_after_a_quarter_of_an_hour() {
    let mut world = leaving(&[(0, 1)]);
    world.guarded.insert(id(0));
    for _ in 0..20 {
        turn(&mut world, "one");
        let seen = world.observe("one", || true);
        let wake = report(&seen).wake.unwrap();
        assert!(wake.duration_since(seen.now).as_secs() <= 10);
    }
}

#[test]
fn h7_an_object_made_just_before_a_crash_was_nobodys() {
    let mut world = World::default();
    world.ask("one", &[(0, 1)]);
    while !world.objects.contains_key(&id(0)) {
        turn(&mut world, "one");
    }
    assert_eq!(world.ledger("one").unwrap().recorded_uid(&id(0)), None);
    change(&mut world, |work| work.deleting = true);
    settle(&mut world, "one");
    assert!(!world.works.contains_key("one") && !world.objects.contains_key(&id(0)));
}

#[test]
fn h9_deletes_went_in_the_order_of_the_alphabet() {
    let order = [
        ("example.com", "widgets"),
        ("apps", "deployments"),
        ("", "configmaps"),
        ("rbac.authorization.k8s.io", "roles"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("", "namespaces"),
    ];
    let ranks: Vec<u16> =
        order.iter().map(|(group, resource)| removal_rank(group, resource)).collect();
    assert!(ranks.is_sorted(), "{ranks:?}");
    assert!(ranks[0] < ranks[4] && ranks[2] < ranks[5], "{ranks:?}");
}

#[test]
fn h9_a_definition_went_while_its_objects_were_held() {
    let mut world = leaving(&[(2, 1), (3, 1)]);
    world.guarded.insert(id(2));
    for _ in 0..5 {
        turn(&mut world, "one");
    }
    assert!(world.objects[&id(3)]["metadata"]["deletionTimestamp"].is_null());
}

#[test]
fn fact_1_the_proposals_spelling_deleted_what_it_named() {
    let option: DeleteOption = serde_json::from_value(json!({
        "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphan": [
            { "resource": "configmaps", "resourceNamespace": "n", "resourceName": "a" },
        ],
    }))
    .unwrap();
    assert!(option.parse().unwrap().keeps("", "configmaps", "n", "a"));
}

#[test]
fn fact_2_a_star_was_taken_for_a_wildcard() {
    let option: DeleteOption = serde_json::from_value(json!({
        "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphans": { "orphaningRules": [
            { "resource": "configmaps", "namespace": "n", "name": "*" },
        ] },
    }))
    .unwrap();
    assert!(!option.parse().unwrap().keeps("", "configmaps", "n", "a"));
}

#[test]
fn fact_3_a_policy_changed_back_at_the_last_moment_left_objects_behind() {
    let mut world = settled(&[(0, 1)]);
    change(&mut world, |work| work.keep = Keep::Everything);
    settle(&mut world, "one");
    change(&mut world, |work| {
        work.keep = Keep::Nothing;
        work.deleting = true;
    });
    settle(&mut world, "one");
    assert!(!world.objects.contains_key(&id(0)));
}

#[test]
fn fact_4_an_accepted_delete_was_taken_for_a_finished_one() {
    let mut world = leaving(&[(0, 1)]);
    for _ in 0..10 {
        world.pass_time(|| false);
        let plan = plan(&world.observe("one", || true));
        act(&mut world, "one", &plan);
    }
    assert!(world.works.contains_key("one"));
    settle(&mut world, "one");
    assert!(!world.works.contains_key("one"));
}

#[test]
fn fact_5_rules_without_a_policy_deleted_what_they_named() {
    let option: DeleteOption = serde_json::from_value(json!({
        "selectivelyOrphans": { "orphaningRules": [
            { "resource": "configmaps", "namespace": "n", "name": "a" },
        ] },
    }))
    .unwrap();
    let world = leaving(&[(0, 1)]);
    let mut seen = world.observe("one", || true);
    work_mut(&mut seen).keep = option.parse().map_err(|problem| problem.to_string());
    assert!(work_mut(&mut seen).keep.is_err());
    assert_eq!(deletes(&plan(&seen)), [] as [&Id; 0]);
}

#[test]
fn fact_7_an_owner_that_is_no_work_protected_an_object() {
    let mut world = leaving(&[(0, 1)]);
    let object = world.objects.get_mut(&id(0)).unwrap();
    let other = json!({ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n" });
    object["metadata"]["ownerReferences"].as_array_mut().unwrap().push(other);
    assert_eq!(deletes(&plan(&world.observe("one", || true))), [&id(0)]);
}

#[test]
fn a_work_deleted_before_it_was_touched_hung() {
    let mut world = World::default();
    world.ask("one", &[(0, 1)]);
    turn(&mut world, "one");
    change(&mut world, |work| work.deleting = true);
    settle(&mut world, "one");
    assert!(world.works.is_empty() && world.objects.is_empty());
}

#[test]
fn an_object_made_anew_by_somebody_was_deleted() {
    for copied_marks in [false, true] {
        let mut world = settled(&[(0, 1)]);
        world.meddle(0, 7, copied_marks);
        change(&mut world, |work| work.deleting = true);
        settle(&mut world, "one");
        assert!(!world.works.contains_key("one"));
        assert_eq!(present(&world.objects[&id(0)]).owners, []);
    }
}

#[test]
fn letting_go_took_the_marks_of_others_along() {
    let mut world = settled(&[(0, 1)]);
    world.ask("two", &[(0, 1)]);
    settle(&mut world, "two");
    change(&mut world, |work| work.deleting = true);
    settle(&mut world, "one");
    let owners = present(&world.objects[&id(0)]).owners;
    assert_eq!(owners.iter().map(|o| &*o.name).collect::<Vec<_>>(), ["hub-two"]);
}

#[test]
fn a_work_went_while_somebody_held_its_ledger() {
    let world = leaving(&[(0, 1)]);
    let mut seen = world.observe("one", || true);
    seen.live.insert(id(0), Seen::Absent);
    book_mut(&mut seen).deleting = true;
    book_mut(&mut seen).finalizers.push("example.com/hold".into());
    let plan = plan(&seen);
    assert!(plan.iter().flatten().all(|action| action.side == Side::Cluster), "{plan:?}");
    let Write::Merge(patch) = &plan[0][0].write else { panic!("{plan:?}") };
    assert_eq!(patch["metadata"]["finalizers"], json!(["example.com/hold"]));
}

#[test]
fn a_ledger_of_another_agent_was_evicted() {
    let world = settled(&[(0, 1)]);
    let mut seen = world.observe("one", || true);
    seen.hub = Hub::Absent;
    seen.agent.id = "another".into();
    seen.agent.eviction_grace = Some(jiff::SignedDuration::ZERO);
    assert_eq!(plan(&seen), vec![] as Plan);
}

#[test]
fn a_ledger_of_an_earlier_agent_kept_its_cluster_from_leaving() {
    let world = settled(&[(0, 1)]);
    let mut seen = world.observe("one", || true);
    seen.hub = Hub::Absent;
    seen.agent.id = "another".into();
    book_mut(&mut seen).deleting = true;
    assert_eq!(plan(&seen), vec![] as Plan, "it is not this agent's");
    // The ledger is for the hub that says to leave, whoever wrote it.
    seen.leaving = Some(cleat_api::managedcluster::RemoveStrategy::Required);
    assert_eq!(deletes(&plan(&seen)), [&id(0)]);
    book_mut(&mut seen).deleting = false;
    seen.leaving = Some(cleat_api::managedcluster::RemoveStrategy::Needless);
    assert_ne!(plan(&seen), vec![] as Plan, "its marks come off");
}

#[test]
fn an_eviction_took_what_the_lost_work_had_said_to_keep() {
    let mut world = settled(&[(0, 1), (1, 1)]);
    change(&mut world, |work| work.keep = keep_only(0));
    settle(&mut world, "one");
    let mut seen = world.observe("one", || true);
    seen.hub = Hub::Absent;
    seen.wanted.clear();
    seen.agent.eviction_grace = Some(jiff::SignedDuration::ZERO);
    book_mut(&mut seen).deleting = true;
    assert_eq!(deletes(&plan(&seen)), [&id(1)]);
}

#[test]
fn the_clock_of_an_eviction_went_on_for_a_work_that_was_back() {
    let world = settled(&[(0, 1)]);
    let mut seen = world.observe("one", || true);
    book_mut(&mut seen).eviction_start = Some(seen.now);
    let plan = plan(&seen);
    let Write::MergeStatus(patch) = &plan[0][0].write else { panic!("{plan:?}") };
    assert!(patch["status"]["evictionStartTime"].is_null());
}

#[test]
fn ocm_379_deletes_took_minutes() {
    let mut world = settled(&[(0, 1), (1, 1)]);
    change(&mut world, |work| work.deleting = true);
    // Nothing is waited for but the objects themselves.
    let passes = (0..).take_while(|_| {
        let seen = world.observe("one", || true);
        assert_eq!(report(&seen).wake, None);
        !turn(&mut world, "one").is_empty()
    });
    assert!(passes.count() <= 5);
    assert!(world.works.is_empty());
}

/// Complete works and leaving clusters amend no ledger, so nobody had put its finalizer back.
#[test]
fn a_ledger_that_somebody_had_freed_went_before_what_was_in_it() {
    let mut world = leaving(&[(0, 1)]);
    world.guarded.insert(id(0));
    let ledger = world.objects.get_mut(&ledger_target("hub", "one").id).unwrap();
    ledger["metadata"]["finalizers"] = json!([]);
    for _ in 0..5 {
        turn(&mut world, "one");
        assert!(world.ledger("one").is_some());
    }
    world.guarded.clear();
    settle(&mut world, "one");
    assert!(world.works.is_empty() && world.objects.is_empty());
}

#[test]
fn ocm_1404_a_deleted_object_came_back() {
    let mut world = leaving(&[(0, 1), (1, 1)]);
    world.objects.remove(&id(0));
    while world.works.contains_key("one") {
        let plan = turn(&mut world, "one");
        assert!(plan.iter().flatten().all(|a| !matches!(a.write, Write::Create(_))));
    }
    assert!(world.objects.is_empty());
}

#[test]
fn one_refused_delete_stopped_the_others() {
    let mut world = settled(&[(0, 1), (1, 1)]);
    world.guarded.insert(id(0));
    change(&mut world, |work| work.deleting = true);
    for _ in 0..4 {
        turn(&mut world, "one");
    }
    assert!(!world.objects.contains_key(&id(1)));
}

#[test]
fn an_object_that_came_back_to_the_manifests_was_deleted_after_all() {
    let mut world = settled(&[(0, 1), (1, 1)]);
    world.guarded.insert(id(0));
    change(&mut world, |work| work.wanted.remove(&0));
    for _ in 0..4 {
        turn(&mut world, "one");
    }
    change(&mut world, |work| work.wanted.insert(0, 2));
    world.guarded.clear();
    settle(&mut world, "one");
    assert_eq!(world.objects[&id(0)]["data"]["content"], "2");
}

#[test]
fn a_trouble_that_is_over_kept_the_agent_awake() {
    let world = settled(&[(0, 1)]);
    let mut seen = world.observe("one", || true);
    let trouble = Trouble {
        message: "it came to exist meanwhile".into(),
        kind: TroubleKind::Stale,
        attempts: 1,
        retry_at: seen.now,
    };
    seen.troubles.insert(id(0), trouble);
    assert_eq!(plan(&seen), vec![] as Plan);
    assert_eq!(report(&seen).wake, None);
}

#[test]
fn a_work_that_the_hub_could_not_hold_was_let_go_of_before_what_stays_was_on_record() {
    let mut world = settled(&[(0, 1)]);
    change(&mut world, |work| {
        work.keep = Keep::Everything;
        work.deleting = true;
    });
    let tells = |seen: &Observed| match plan(seen).into_iter().flatten().next()?.write {
        Write::MergeStatus(patch) => Some(patch["status"]["removal"].clone()),
        _ => None,
    };
    let mut told = None;
    for _ in 0..10 {
        let mut seen = world.observe("one", || true);
        seen.leaving = Some(cleat_api::managedcluster::RemoveStrategy::Required);
        told = tells(&seen);
        if told.is_some() {
            break;
        }
        turn(&mut world, "one");
    }
    let removal: cleat_api::manifestwork::Removal = serde_json::from_value(told.unwrap()).unwrap();
    let mut seen = world.observe("one", || true);
    seen.leaving = Some(cleat_api::managedcluster::RemoveStrategy::Required);
    let receipt = crate::leave::record::receipt(&removal.left);
    work_mut(&mut seen).status.removal = Some(removal);
    assert_eq!(plan(&seen), vec![] as Plan, "nobody has written it down");
    work_mut(&mut seen).on_record = Some(receipt);
    assert_ne!(plan(&seen), vec![] as Plan);
    // What the hub holds needs no receipt.
    work_mut(&mut seen).on_record = None;
    let held = cleat_api::manifestwork::LEAVE_FINALIZER.to_string();
    work_mut(&mut seen).finalizers.push(held);
    assert_ne!(plan(&seen), vec![] as Plan);
    // And a cluster that stays owes none.
    work_mut(&mut seen).finalizers.pop();
    seen.leaving = None;
    assert_ne!(plan(&seen), vec![] as Plan);
}

#[test]
fn a_work_that_takes_an_add_on_off_was_not_taken_in() {
    use cleat_api::managedcluster::RemoveStrategy::{Needless, Required};
    for strategy in [Required, Needless] {
        let mut world = World::default();
        world.ask("one", &[(0, 1)]);
        let seen = |world: &World, label: Option<&str>| {
            let mut seen = world.observe("one", || true);
            seen.leaving = Some(strategy);
            let label = label.map(|label| (label.to_string(), "logs".to_string()));
            work_mut(&mut seen).labels = label.clone().into_iter().collect();
            // A ledger bears the labels of its work, which this world does not keep.
            if let Ledger::Present(book) = &mut seen.ledger {
                book.labels = label.into_iter().collect();
            }
            seen
        };
        let of_add_on = Some("open-cluster-management.io/addon-name");
        assert_eq!(plan(&seen(&world, None)), vec![] as Plan, "it is new");
        assert_eq!(plan(&seen(&world, Some("app"))), vec![] as Plan, "it is new");
        for _ in 0..20 {
            world.pass_time(|| true);
            let next = plan(&seen(&world, of_add_on));
            act(&mut world, "one", &next);
        }
        assert!(world.objects.contains_key(&id(0)), "its add-on waits for it");
        // It goes like any other.
        change(&mut world, |work| work.deleting = true);
        assert_ne!(plan(&seen(&world, of_add_on)), vec![] as Plan);
    }
}

#[test]
fn a_namespace_that_could_not_be_looked_into_was_not_looked_into_again() {
    use crate::work::contents::Contents;
    let world = leaving(&[(0, 1)]);
    let mut seen = world.observe("one", || true);
    let inner = Id { resource: "namespaces".into(), name: "n".into(), ..Id::default() };
    for (held, again) in [
        (Contents::Ours, false),
        (Contents::Foreign(vec![id(0)]), false),
        (Contents::Unknown("a group is stale".into()), true),
        (Contents::Waiting("a pod".into()), true),
    ] {
        seen.contents = [(inner.clone(), held)].into();
        assert_eq!(report(&seen).wake.is_some(), again, "{:?}", seen.contents);
    }
}

#[test]
fn a_leave_that_waited_for_the_hub_to_write_down_what_stays_said_nothing() {
    let mut world = leaving(&[(0, 1)]);
    let told = cleat_api::manifestwork::Removal {
        left: vec![cleat_api::leftoverrecord::LeftObject::default()],
        ..Default::default()
    };
    let receipt = crate::leave::record::receipt(&told.left);
    world.objects.retain(|id, _| id.resource != "appliedmanifestworks");
    let mut seen = world.observe("one", || true);
    seen.leaving = Some(cleat_api::managedcluster::RemoveStrategy::Required);
    work_mut(&mut seen).status.removal = Some(told);
    let said = |seen: &Observed| match report(seen).publish?.write {
        Write::MergeStatus(patch) => Some(patch["status"]["removal"]["blocked"].clone()),
        _ => None,
    };
    assert_eq!(plan(&seen), vec![] as Plan, "nobody has written it down");
    let blocked = said(&seen).unwrap();
    assert_eq!(blocked[0]["object"], "what stays of it");
    assert!(blocked[0]["since"].is_string());
    work_mut(&mut seen).on_record = Some(receipt);
    assert_eq!(said(&seen), None);
}

#[test]
fn a_namespace_that_holds_only_what_is_kept_was_said_to_hold_what_is_not_ours() {
    use crate::work::contents::Contents;
    let mut world = settled(&[(0, 1)]);
    change(&mut world, |work| {
        work.keep = keep_only(0);
        work.deleting = true;
    });
    let mut seen = world.observe("one", || true);
    seen.leaving = Some(cleat_api::managedcluster::RemoveStrategy::Required);
    let inner = Id { resource: "namespaces".into(), name: "n".into(), ..Id::default() };
    let live = json!({ "metadata": { "uid": "n", "resourceVersion": "1" } });
    seen.live.insert(inner.clone(), Seen::Present(present(&live)));
    let applied = Applied { version: "v1".into(), uid: "n".into() };
    book_mut(&mut seen).applied.insert(inner.clone(), applied);
    let why = |seen: &Observed| {
        let Ledger::Present(book) = &seen.ledger else { panic!() };
        let told = crate::work::report::tell_left(seen, book).unwrap();
        let Write::MergeStatus(patch) = told.write else { panic!() };
        let left = patch["status"]["removal"]["left"].as_array().unwrap().clone();
        left.iter().find(|one| one["name"] == "n").unwrap()["why"].clone()
    };
    seen.contents = [(inner.clone(), Contents::Foreign(vec![id(0)]))].into();
    assert_eq!(why(&seen), "it holds what is kept");
    seen.contents = [(inner, Contents::Foreign(vec![id(0), id(1)]))].into();
    assert_eq!(why(&seen), "it holds what is not ours: configmaps n/b");
}

#[test]
fn a_definition_was_deleted_once_its_kept_object_had_been_forgotten() {
    let mut world = World::default();
    world.ask("one", &[(0, 1), (2, 1), (3, 1)]);
    change(&mut world, |work| work.keep = keep_only(2));
    settle(&mut world, "one");
    // Both leave the manifests at once, and the object bears no mark that had to come off first.
    change(&mut world, |work| work.wanted.retain(|index, _| *index == 0));
    settle(&mut world, "one");
    assert!(world.objects.contains_key(&id(2)) && world.objects.contains_key(&id(3)));
    let book = world.ledger("one").unwrap();
    assert!(!book.ids().contains(&id(2)) && !book.ids().contains(&id(3)));
}

#[test]
fn a_definition_went_with_an_object_that_had_been_let_go_of_before() {
    let mut world = World::default();
    world.ask("one", &[(0, 1), (2, 1), (3, 1)]);
    change(&mut world, |work| work.keep = keep_only(2));
    settle(&mut world, "one");
    // First the kept object leaves the manifests, then what holds it. The rule still names it.
    change(&mut world, |work| work.wanted.retain(|index, _| *index != 2));
    settle(&mut world, "one");
    change(&mut world, |work| work.wanted.retain(|index, _| *index == 0));
    settle(&mut world, "one");
    assert!(world.objects.contains_key(&id(2)) && world.objects.contains_key(&id(3)));
    let book = world.ledger("one").unwrap();
    assert!(!book.ids().contains(&id(3)), "it is let go of");
}

#[test]
fn a_definition_went_while_nobody_could_see_the_object_to_be_kept() {
    let mut world = World::default();
    world.ask("one", &[(0, 1), (2, 1), (3, 1)]);
    change(&mut world, |work| work.keep = keep_only(2));
    settle(&mut world, "one");
    change(&mut world, |work| work.wanted.retain(|index, _| *index != 3));
    let mut seen = world.observe("one", || true);
    for dark in [Seen::Unknown("dark".into()), Seen::NotYet] {
        seen.live.insert(id(2), dark);
        let plan = plan(&seen);
        assert!(deletes(&plan).is_empty(), "{plan:?}");
    }
}

#[test]
fn a_hub_that_took_in_no_status_held_a_deletion_up() {
    let mut world = settled(&[(0, 1)]);
    change(&mut world, |work| work.deleting = true);
    let mut seen = world.observe("one", || true);
    let publish = report(&seen).publish.unwrap();
    let trouble = Trouble {
        message: "quota".into(),
        kind: TroubleKind::Refused,
        attempts: 9,
        retry_at: seen.now.checked_add(SignedDuration::from_secs(10)).unwrap(),
    };
    seen.troubles.insert(Trouble::about(&publish), trouble.clone());
    assert_ne!(plan(&seen), vec![] as Plan);
    // Who cannot take our finalizer off has to wait.
    seen.troubles.insert(publish.target.id, trouble);
    assert_eq!(plan(&seen), vec![] as Plan);
}
