//! What a preview of a changed policy says is what the change does, over random worlds.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::println;

use cleat_api::configurationpolicy::{PruneObjectBehavior, RecreateOption};
use serde_json::json;

use super::faults::Fault as Planted;
use super::histories::{Dice, edit, with_a_past};
use super::site::{definition, observed, pod, policy, spec, with_namespace};
use super::world::{Sight, World};
use crate::policy::observed::{
    Departure, Kind, KindName, Observed, Present, Seen, Subject, Templates, TrialAnswer,
};
use crate::policy::proposal::{Beside, Proposal, Proposed, proposal};
use crate::work::outlook::{Foreseen, Prospect};
use crate::write::Write;

/// A mistake somebody could make in a preview. Each must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    RecordIgnored,
    RemediationIgnored,
    NothingIsPruned,
    EverythingIsPruned,
    OriginIgnored,
    UidIgnored,
    EndsIgnored,
    AnswersIgnored,
    RecreationIgnored,
    ListsIgnored,
}

const FAULTS: [Fault; 10] = [
    Fault::RecordIgnored,
    Fault::RemediationIgnored,
    Fault::NothingIsPruned,
    Fault::EverythingIsPruned,
    Fault::OriginIgnored,
    Fault::UidIgnored,
    Fault::EndsIgnored,
    Fault::AnswersIgnored,
    Fault::RecreationIgnored,
    Fault::ListsIgnored,
];

fn mistaken(fault: Fault, seen: &mut Observed) {
    let Subject::Policy(policy) = &mut seen.policy else { return };
    let known = policy.status.related_objects.iter_mut();
    let known = known.filter_map(|entry| entry.properties.as_mut());
    match fault {
        Fault::None => {}
        Fault::RecordIgnored => policy.status = Default::default(),
        Fault::RemediationIgnored => policy.spec.remediation_action = "enforce".into(),
        Fault::NothingIsPruned => policy.spec.prune_object_behavior = PruneObjectBehavior::None,
        Fault::EverythingIsPruned => {
            policy.spec.prune_object_behavior = PruneObjectBehavior::DeleteAll;
        }
        Fault::OriginIgnored => known.for_each(|known| known.created_by_policy = Some(true)),
        Fault::UidIgnored => known.for_each(|known| known.uid.clear()),
        Fault::EndsIgnored => {
            for object in seen.cluster.objects.values_mut() {
                let Seen::Present(Present { object, .. }) = object else { continue };
                let metadata = &mut Arc::make_mut(object)["metadata"];
                metadata.as_object_mut().unwrap().remove("deletionTimestamp");
            }
        }
        Fault::AnswersIgnored => {
            for trial in seen.cluster.trials.values_mut() {
                trial.answer = TrialAnswer::Accepted(trial.asked.clone());
            }
        }
        Fault::RecreationIgnored => {
            let Templates::Known(templates) = &mut seen.templates else { return };
            for template in templates {
                template.spec.recreate_option = RecreateOption::None;
            }
        }
        Fault::ListsIgnored => {
            seen.cluster.lists.values_mut().for_each(|list| *list = Ok(Vec::new()));
        }
    }
}

/// What is foreseen, once everything was read and tried that is asked for.
fn foresee(fault: Fault, world: &mut World) -> Vec<Foreseen> {
    world.unheard();
    for _ in 0..20 {
        let mut seen = world.observe(&Sight::all());
        world.heard(&mut seen);
        mistaken(fault, &mut seen);
        match proposal(&seen, &Beside::default()) {
            Ok(Proposal { objects, problems }) => {
                assert_eq!(problems, [] as [String; 0]);
                return objects.into_iter().map(|one| one.foreseen).collect();
            }
            Err(lacks) => {
                assert_eq!(lacks.missing, BTreeSet::new());
                lacks.questions.into_iter().for_each(|question| world.try_out(question));
            }
        }
    }
    panic!("it never knew enough");
}

/// Each object's incarnation and content.
fn objects(world: &World) -> BTreeMap<String, (u32, u8)> {
    let all = world.objects.iter();
    all.map(|(name, one)| (name.clone(), (one.uid, one.content))).collect()
}

/// Foresees a change of the policy in one world, lets it happen, and compares.
fn compare(seed: u64, fault: Fault) -> Result<(), String> {
    let mut world = World::new(Planted::None, PruneObjectBehavior::None);
    let mut dice = Dice(seed);
    with_a_past(&mut world, &mut dice)?;
    if world.gone {
        return Ok(());
    }
    for _ in 0..=dice.roll(6) {
        edit(&mut world, &mut dice, true);
    }
    (world.guarded, world.unmakeable) = (false, false);
    let foreseen = foresee(fault, &mut world);
    let before = objects(&world);
    let dying: BTreeSet<String> = {
        let dying = world.objects.iter().filter(|(_, one)| one.dying.is_some());
        dying.map(|(name, _)| name.clone()).collect()
    };
    world.settle()?;
    let after = objects(&world);
    for one in &foreseen {
        let (old, new) = (before.get(&one.id.name), after.get(&one.id.name));
        let same_one = old.is_some() && old.map(|old| old.0) == new.map(|new| new.0);
        let right = match one.prospect {
            Prospect::Delete => old.is_some() && new.is_none(),
            Prospect::Recreate => old.is_some() && new.is_some() && !same_one,
            Prospect::Create => old.is_none() && new.is_some(),
            Prospect::Change => same_one && old != new,
            Prospect::Gone => old.is_none() && new.is_none(),
            Prospect::Adopt | Prospect::Keep | Prospect::Stuck | Prospect::Unchanged => {
                old.is_some() && old == new
            }
            Prospect::Orphan | Prospect::StripMarks | Prospect::Unknown => false,
        };
        if !right {
            return Err(format!("{one:?}; before: {old:?}; after: {new:?}"));
        }
    }
    let listed: BTreeSet<&String> = foreseen.iter().map(|one| &one.id.name).collect();
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names.into_iter().filter(|name| !listed.contains(name) && !dying.contains(*name)) {
        if before.get(name) != after.get(name) {
            return Err(format!("{name} was not foreseen, and is not as it was"));
        }
    }
    Ok(())
}

const WORLDS: u64 = 2_500;

#[test]
fn what_a_preview_of_a_changed_policy_says_is_what_happens() {
    for seed in 0..WORLDS {
        if let Err(wrong) = compare(seed, Fault::None) {
            panic!("seed {seed}: {wrong}");
        }
    }
    println!("worlds tried: {WORLDS}");
}

#[test]
fn every_wrong_preview_of_a_changed_policy_is_found() {
    let mut missed = Vec::new();
    for fault in FAULTS {
        match (0..WORLDS).find_map(|seed| compare(seed, fault).err().map(|wrong| (seed, wrong))) {
            Some((seed, wrong)) => println!("{fault:?}: seed {seed}: {wrong}"),
            None => missed.push(fault),
        }
    }
    assert_eq!(missed, [], "these mistakes would go unnoticed");
}

/// What a policy with one template is told to do, on a cluster with these pods.
fn of(action: &str, compliance: &str, pods: &[serde_json::Value]) -> Vec<Proposed> {
    let seen = observed(spec(action, compliance, definition("web", "default")), pods);
    let Proposal { objects, problems } = proposal(&seen, &Beside::default()).unwrap();
    assert_eq!(problems, [] as [String; 0]);
    objects
}

#[test]
fn each_object_of_a_policy_is_told_with_the_field_that_decides() {
    let right = pod("web", "default", "nginx:1.7.9");
    let wrong = pod("web", "default", "nginx:2");
    let cases = [
        ("enforce", "musthave", None, Prospect::Create, "spec.object-templates"),
        ("enforce", "musthave", Some(&wrong), Prospect::Change, "spec.object-templates"),
        ("enforce", "musthave", Some(&right), Prospect::Unchanged, "spec.object-templates"),
        ("enforce", "mustnothave", Some(&wrong), Prospect::Delete, "complianceType"),
        ("enforce", "mustnothave", None, Prospect::Gone, "complianceType"),
        ("inform", "musthave", None, Prospect::Gone, "spec.remediationAction"),
        ("inform", "musthave", Some(&wrong), Prospect::Unchanged, "spec.remediationAction"),
        ("inform", "mustnothave", Some(&wrong), Prospect::Unchanged, "spec.remediationAction"),
        ("inform", "musthave", Some(&right), Prospect::Unchanged, "spec.object-templates"),
    ];
    for (action, compliance, live, prospect, field) in cases {
        let pods: Vec<_> = live.into_iter().cloned().collect();
        let all = of(action, compliance, &pods);
        let case = format!("{action} {compliance} {live:?}");
        assert_eq!(all.len(), 1, "{case}");
        let Proposed { foreseen, write, before } = &all[0];
        assert_eq!((foreseen.prospect, foreseen.decided_by), (prospect, field), "{case}");
        let writes = matches!(prospect, Prospect::Create | Prospect::Change);
        assert_eq!((write.is_some(), before.is_some()), (writes, live.is_some()), "{case}");
    }
}

#[test]
fn what_a_policy_takes_hold_of_is_adopted() {
    let pods = [pod("web", "default", "nginx:1.7.9")];
    let mut spec = spec("enforce", "musthave", definition("web", "default"));
    spec["pruneObjectBehavior"] = json!("DeleteAll");
    let all = proposal(&observed(spec, &pods), &Beside::default()).unwrap().objects;
    let one = &all[0].foreseen;
    assert_eq!((one.prospect, one.decided_by), (Prospect::Adopt, "spec.pruneObjectBehavior"));
    assert!(one.adopted);
}

#[test]
fn what_nobody_serves_is_stuck_unless_the_policy_brings_its_definition() {
    let gadget = json!({
        "apiVersion": "example.com/v1", "kind": "Gadget",
        "metadata": { "name": "g", "namespace": "default" },
    });
    let told = |spec: serde_json::Value, beside: &Beside| {
        let mut seen = observed(spec, &[]);
        let name = KindName {
            api_version: "apiextensions.k8s.io/v1".into(),
            kind: "CustomResourceDefinition".into(),
        };
        let served = crate::policy::observed::Served {
            group: "apiextensions.k8s.io".into(),
            version: "v1".into(),
            resource: "customresourcedefinitions".into(),
            namespaced: false,
        };
        let target = served.target("", "gadgets.example.com");
        seen.cluster.kinds.insert(name, Kind::Served(served));
        seen.cluster.objects.insert(target.id, Seen::Absent);
        let all = proposal(&seen, beside).unwrap().objects.into_iter().map(|one| one.foreseen);
        all.map(|one| (one.id.resource, one.prospect)).collect::<Vec<_>>()
    };
    let alone = spec("enforce", "musthave", gadget);
    let nothing = Beside::default();
    assert_eq!(told(alone.clone(), &nothing), [("Gadget".into(), Prospect::Stuck)]);
    let mut both = alone.clone();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "gadgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "kind": "Gadget", "plural": "gadgets" },
            "versions": [{ "name": "v1", "served": true }],
        },
    });
    // Another template of the same policy brings it: that was not known here.
    let beside = Beside::of([Write::Create(definition.clone())].iter());
    assert_eq!(told(alone, &beside), [("gadgets".into(), Prospect::Create)]);
    let template = json!({ "complianceType": "musthave", "objectDefinition": definition });
    both["object-templates"].as_array_mut().unwrap().push(template);
    let expected = [
        ("customresourcedefinitions".into(), Prospect::Create),
        ("gadgets".into(), Prospect::Create),
    ];
    let mut all = told(both, &nothing);
    all.sort();
    assert_eq!(all, expected);
}

#[test]
fn an_object_shown_as_staying_went_with_the_namespace_that_must_not_be_there() {
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "default" } });
    let for_good =
        "namespaces default goes and takes it along, and it cannot be made anew without it";
    for (action, image, prospect) in [
        ("enforce", "nginx:1.7.9", Prospect::Delete),
        ("enforce", "nginx:2", Prospect::Delete),
        ("inform", "nginx:1.7.9", Prospect::Unchanged),
    ] {
        let mut spec = spec(action, "musthave", definition("web", "default"));
        let other = json!({ "complianceType": "mustnothave", "objectDefinition": namespace });
        spec["object-templates"].as_array_mut().unwrap().push(other);
        let seen = with_namespace(observed(spec, &[pod("web", "default", image)]));
        let Proposal { objects, problems } = proposal(&seen, &Beside::default()).unwrap();
        assert_eq!(problems, [] as [String; 0]);
        let told: Vec<(&str, Prospect)> =
            objects.iter().map(|one| (&*one.foreseen.id.resource, one.foreseen.prospect)).collect();
        assert_eq!(told, [("namespaces", prospect), ("pods", prospect)], "{action} {image}");
        assert_eq!(objects[1].write, None, "{action} {image}");
        assert_eq!(objects[1].foreseen.why == for_good, prospect == Prospect::Delete);
    }
}

#[test]
fn templates_that_contradict_each_other_are_stuck() {
    let mut spec = spec("enforce", "musthave", definition("web", "default"));
    let other = json!({
        "complianceType": "mustnothave", "objectDefinition": definition("web", "default"),
    });
    spec["object-templates"].as_array_mut().unwrap().push(other);
    let all = proposal(&observed(spec, &[]), &Beside::default()).unwrap().objects;
    assert_eq!(all[0].foreseen.prospect, Prospect::Stuck, "{all:?}");
}

#[test]
fn what_cannot_be_told_is_no_empty_preview() {
    let pods = [pod("web", "default", "nginx:1.7.9")];
    let plain = || observed(spec("enforce", "musthave", definition("web", "default")), &pods);
    let mut leaving = plain();
    leaving.controller.departure = Departure::Leaving;
    let mut going = plain();
    policy(&mut going).deleting = true;
    let mut failed = plain();
    failed.templates = Templates::Failed {
        reason: "Error processing template",
        message: "it failed".into(),
        passing: false,
    };
    for (seen, why) in
        [(leaving, "is being taken away"), (going, "it is being deleted"), (failed, "it failed")]
    {
        let told = proposal(&seen, &Beside::default()).unwrap();
        assert!(told.problems.iter().any(|one| one.contains(why)), "{told:?}");
    }
    let mut dark = plain();
    let id = super::site::pod_id("web");
    dark.cluster.objects.insert(id.clone(), Seen::Unknown("it is dark".into()));
    let told = proposal(&dark, &Beside::default()).unwrap().objects;
    assert_eq!(told[0].foreseen.prospect, Prospect::Unknown);
    dark.cluster.objects.remove(&id);
    assert!(!proposal(&dark, &Beside::default()).unwrap_err().missing.is_empty());
}
