use alloc::string::ToString as _;

use cleat_api::manifestworkreplicaset::{PLACEMENT_LABEL, SET_LABEL};
use jiff::SignedDuration;
use serde_json::Value;

use super::*;
use crate::rollout::Group;
use crate::write::{Outcome, Refusal};

const NOW: &str = "2026-05-01T12:00:00Z";

fn set(change: impl FnOnce(&mut Value)) -> Set {
    let mut set = json!({
        "metadata": {
            "namespace": "apps", "name": "web", "uid": "set", "resourceVersion": "5",
            "generation": 2, "labels": { "team": "blue" }, "finalizers": [FINALIZER],
        },
        "spec": {
            "manifestWorkTemplate": { "workload": { "manifests": [{ "kind": "ConfigMap" }] } },
            "placementRefs": [{ "name": "all" }],
        },
    });
    change(&mut set);
    Set::read(&serde_json::from_value(set["metadata"].clone()).unwrap(), &set)
}

fn settled(clusters: &[&str]) -> Decided {
    let clusters = clusters.iter().map(|name| name.to_string()).collect();
    Decided::Settled(vec![Group { clusters, ..Group::default() }])
}

fn seen(set: Set, decided: Decided, children: Vec<Child>) -> Observed {
    Observed {
        now: NOW.parse().unwrap(),
        placements: [("all".to_string(), decided)].into(),
        children: Some(children.into_iter().map(Arc::new).collect()),
        clusters: BTreeMap::new(),
        sightings: Sightings::default(),
        undefined: false,
        setbacks: Setbacks::new(),
        set,
    }
}

/// A work as the set made it, with these conditions at its generation.
fn work(set: &Set, cluster: &str, conditions: &[(&str, &str)]) -> Child {
    let Write::Create(mut object) = child::create(set, "all", cluster, set_time()).write else {
        panic!("a creation")
    };
    object["metadata"]["uid"] = json!(format!("uid-{cluster}"));
    object["metadata"]["generation"] = json!(1);
    let told = |(kind, status): &(&str, &str)| {
        let since = "2026-05-01T11:00:00Z";
        json!({ "type": kind, "status": status, "observedGeneration": 1, "lastTransitionTime": since })
    };
    let conditions: Vec<Value> = conditions.iter().map(told).collect();
    object["status"] = json!({ "conditions": conditions });
    Child::read(&serde_json::from_value(object["metadata"].clone()).unwrap(), &object)
}

fn set_time() -> Timestamp {
    "2026-05-01T10:00:00Z".parse().unwrap()
}

const WELL: [(&str, &str); 2] = [("Applied", "True"), ("Available", "True")];

/// `create c1/web-… | delete c2/…`, for short.
fn brief(plan: &Plan) -> String {
    let one = |action: &Action| {
        let verb = match &action.write {
            Write::Create(_) => "create",
            Write::Merge(patch) if patch.get("spec").is_some() => "rewrite",
            Write::Merge(_) => "label",
            Write::Delete { .. } => "delete",
            _ => "other",
        };
        format!("{verb} {}", action.target.id.namespace)
    };
    let steps = plan.iter().map(|step| step.iter().map(one).collect::<Vec<_>>().join(", "));
    steps.collect::<Vec<_>>().join(" | ")
}

fn done(plan: &Plan) -> Vec<Vec<Outcome>> {
    plan.iter().map(|step| step.iter().map(|_| Outcome::Done(Value::Null)).collect()).collect()
}

/// The status after a pass in which everything worked, and the same once more: nothing is written
/// twice.
fn told(seen: &Observed) -> Value {
    let plan = plan(seen);
    let verdict = report(seen, &plan, &done(&plan));
    let Some(Write::MergeStatus(patch)) = verdict.status.map(|action| action.write) else {
        return seen.set.status.clone();
    };
    assert_eq!(patch["metadata"], json!({ "uid": "set", "resourceVersion": "5" }));
    let mut again = seen.clone();
    again.set.status = patch["status"].clone();
    again.now = again.now.checked_add(SignedDuration::from_secs(1)).unwrap();
    again.setbacks = verdict.setbacks;
    assert_eq!(report(&again, &plan, &done(&plan)).status, None);
    patch["status"].clone()
}

fn condition(status: &Value, kind: &str) -> String {
    let all = status["conditions"].as_array().unwrap();
    let Some(found) = all.iter().find(|one| one["type"] == kind) else { return "none".into() };
    let text = |key: &str| found[key].as_str().unwrap().to_string();
    format!("{} {}: {}", text("status"), text("reason"), text("message"))
}

#[test]
fn a_new_set_is_held_before_anything_is_made() {
    let new = set(|set| set["metadata"]["finalizers"] = json!(["other"]));
    let plan = plan(&seen(new, settled(&["c1"]), vec![]));
    let metadata =
        json!({ "uid": "set", "resourceVersion": "5", "finalizers": ["other", FINALIZER] });
    assert_eq!(plan[0][0].write, Write::Merge(json!({ "metadata": metadata })));
    assert_eq!((plan.len(), plan[0].len()), (1, 1));
}

#[test]
fn a_work_says_whose_it_is_and_what_it_was_given() {
    let set = set(|_| {});
    let plan = plan(&seen(set.clone(), settled(&["c1"]), vec![]));
    let Write::Create(object) = &plan[0][0].write else { panic!("a creation") };
    assert_eq!(object["metadata"]["name"], "web-06619dd88e");
    let labels = json!({ SET_LABEL: "apps.web", PLACEMENT_LABEL: "all", "team": "blue" });
    assert_eq!(object["metadata"]["labels"], labels);
    let annotations = json!({ TEMPLATE: set.digest, TEMPLATE_SINCE: NOW });
    assert_eq!(object["metadata"]["annotations"], annotations);
    assert_eq!(object["spec"], set.template);
}

#[test]
fn clusters_come_and_go_with_the_decision() {
    let set = set(|_| {});
    let works = |names: &[&str]| names.iter().map(|at| work(&set, at, &WELL)).collect::<Vec<_>>();
    let check = |decided: &[&str], there: &[&str], expected: &str| {
        let seen = seen(set.clone(), settled(decided), works(there));
        assert_eq!(brief(&plan(&seen)), expected);
    };
    check(&["c1", "c2"], &[], "create c1, create c2");
    check(&["c1", "c2"], &["c1", "c2"], "");
    check(&["c1", "c3"], &["c1", "c2"], "create c3, delete c2");
    // A decision for nobody is a decision.
    check(&[], &["c1", "c2"], "delete c1, delete c2");
}

#[test]
fn nothing_is_deleted_for_lack_of_knowledge() {
    let set = set(|_| {});
    let listed = vec![Group { clusters: ["c1".to_string()].into(), ..Group::default() }];
    for unknown in [
        Decided::Unknown,
        Decided::NoPlacement,
        Decided::Undecided,
        Decided::Unsettled { listed, chosen: 2 },
    ] {
        let works = vec![work(&set, "c1", &WELL), work(&set, "c2", &WELL)];
        let seen = seen(set.clone(), unknown, works);
        assert_eq!(plan(&seen), Plan::new());
    }
    let mut blind = seen(set.clone(), settled(&["c1"]), vec![]);
    blind.children = None;
    assert_eq!(plan(&blind), Plan::new());
    let nowhere = self::set(|set| set["spec"]["placementRefs"] = json!([]));
    let seen = seen(nowhere, settled(&[]), vec![work(&set, "c1", &WELL)]);
    assert_eq!(plan(&seen), Plan::new());
}

#[test]
fn a_placement_that_vanished_is_told_and_keeps_how_far_the_rollout_came() {
    let set = set(|_| {});
    let mut look = seen(set.clone(), settled(&["c1"]), vec![work(&set, "c1", &WELL)]);
    look.set.status = told(&look);
    assert_eq!(condition(&look.set.status, "PlacementVerified"), "True AsExpected: ");
    let rolled_out = "True Complete: 1 of 1 clusters have the current template";
    assert_eq!(condition(&look.set.status, "PlacementRolledOut"), rolled_out);
    assert_eq!(condition(&look.set.status, "ManifestworkApplied"), "True AsExpected: ");
    look.placements.insert("all".into(), Decided::NoPlacement);
    let status = told(&look);
    assert_eq!(
        condition(&status, "PlacementVerified"),
        "False PlacementDecisionNotFound: Placement all is not there: create it, or take it out of \
         placementRefs; until that is known, no work is deleted"
    );
    assert_eq!(condition(&status, "PlacementRolledOut"), rolled_out);
    assert_eq!(condition(&status, "ManifestworkApplied"), "True AsExpected: ");
}

#[test]
fn the_summary_counts_works() {
    let old = set(|set| set["spec"]["manifestWorkTemplate"] = json!({ "workload": {} }));
    let set = set(|_| {});
    let works = vec![
        work(&set, "c1", &WELL),
        work(&set, "c2", &[("Applied", "True"), ("Progressing", "True"), ("Degraded", "True")]),
        work(&old, "c3", &WELL),
    ];
    let status = told(&seen(set, settled(&["c1", "c2", "c3", "c4"]), works));
    let summary = json!({
        "total": 3, "desiredTotal": 4, "updated": 2, "applied": 3, "available": 2,
        "progressing": 1, "degraded": 1,
    });
    assert_eq!(status["summary"], summary);
    let placements = json!([{
        "name": "all", "availableDecisionGroups": "1 (3 / 4 clusters applied)", "summary": summary,
    }]);
    assert_eq!(status["placementSummary"], placements);
    assert_eq!(
        condition(&status, "PlacementRolledOut"),
        "False Progressing: 1 of 4 clusters succeeded, 2 are under way, 1 failed, 0 wait"
    );
    assert_eq!(
        condition(&status, "ManifestworkApplied"),
        "False NotAsExpected: 2 of 3 works are available, 1 degraded"
    );
}

#[test]
fn an_empty_decision_is_told() {
    let status = told(&seen(set(|_| {}), settled(&[]), vec![]));
    let verified = "False PlacementDecisionEmpty: the placements chose no cluster";
    assert_eq!(condition(&status, "PlacementVerified"), verified);
    assert_eq!(condition(&status, "ManifestworkApplied"), "False PlacementDecisionEmpty: ");
}

#[test]
fn a_name_that_no_label_can_hold_deploys_nothing() {
    let long = set(|set| set["metadata"]["name"] = json!("x".repeat(59)));
    let look = seen(long, settled(&["c1"]), vec![]);
    assert_eq!(plan(&look), Plan::new());
    let status = told(&look);
    let applied = condition(&status, "ManifestworkApplied");
    assert!(applied.starts_with("False InvalidManifestWorkName: "), "{applied}");
    let fits = set(|set| set["metadata"]["name"] = json!("x".repeat(58)));
    assert_eq!(brief(&plan(&seen(fits, settled(&["c1"]), vec![]))), "create c1");
}

#[test]
fn changes_by_hand_are_undone_whoever_s_turn_it_is() {
    let strategy = json!({ "type": "Progressive", "progressive": { "maxConcurrency": 1 } });
    let set = set(|set| set["spec"]["placementRefs"][0]["rolloutStrategy"] = strategy);
    let busy = work(&set, "c1", &[]);
    let mut altered = work(&set, "c2", &WELL);
    altered.spec = "by hand".into();
    altered.outline = json!({ "executor": true });
    let mut unlabelled = work(&set, "c3", &WELL);
    unlabelled.labels.clear();
    let look =
        seen(set.clone(), settled(&["c1", "c2", "c3", "c4"]), vec![busy, altered, unlabelled]);
    let plan = plan(&look);
    assert_eq!(brief(&plan), "rewrite c2, label c3");
    let Write::Merge(patch) = &plan[0][0].write else { panic!("a patch") };
    assert_eq!(patch["metadata"]["uid"], "uid-c2");
    assert_eq!(patch["spec"]["executor"], Value::Null);
    assert_eq!(patch["spec"]["workload"], set.template["workload"]);
    // Its time goes on from when it was given the template.
    assert_eq!(patch["metadata"]["annotations"].get(TEMPLATE_SINCE), None);
}

#[test]
fn works_of_ocm_are_kept_and_marked() {
    let set = set(|_| {});
    let mut theirs = work(&set, "c1", &WELL);
    (theirs.name, theirs.given, theirs.given_since) = ("webx7k2p".into(), None, None);
    let plan = plan(&seen(set.clone(), settled(&["c1"]), vec![theirs]));
    assert_eq!(brief(&plan), "label c1");
    assert_eq!(plan[0][0].target.id.name, "webx7k2p");
}

#[test]
fn of_two_works_the_younger_goes_once_the_older_is_applied() {
    let set = set(|_| {});
    for (conditions, expected) in [(&WELL[..], "delete c1"), (&[][..], "")] {
        let mut older = work(&set, "c1", conditions);
        (older.name, older.created) = ("webx7k2p".into(), Some(set_time()));
        let mut younger = work(&set, "c1", &WELL);
        younger.created = Some(NOW.parse().unwrap());
        let name = younger.name.clone();
        let plan = plan(&seen(set.clone(), settled(&["c1"]), vec![younger, older]));
        assert_eq!(brief(&plan), expected);
        assert!(plan.iter().flatten().all(|action| action.target.id.name == name));
    }
}

#[test]
fn what_failed_waits_behind_what_did_not() {
    let set = set(|_| {});
    let names: Vec<String> = (0..BATCH + 2).map(|number| format!("c{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let mut look = seen(set, settled(&names), vec![]);
    let first = plan(&look);
    assert_eq!(first[0].len(), BATCH);
    let refusal = Refusal {
        code: 404,
        reason: "NotFound".into(),
        message: "namespaces \"c000\" not found".into(),
    };
    let mut outcomes = done(&first);
    outcomes[0][0] = Outcome::Refused(refusal);
    let verdict = report(&look, &first, &outcomes);
    assert_eq!(verdict.wake, Some(SignedDuration::from_secs(1)));
    let Some(Write::MergeStatus(patch)) = verdict.status.map(|status| status.write) else {
        panic!("a status")
    };
    assert_eq!(
        condition(&patch["status"], "ManifestworkApplied"),
        "False NotAsExpected: c000/web-06619dd88e cannot be written: namespaces \"c000\" not found"
    );
    look.setbacks = verdict.setbacks;
    let second = plan(&look);
    assert!(second[0].iter().all(|action| action.target.id.namespace != "c000"));
    assert_eq!(second[0].len(), BATCH);
    // What was not tried again is not forgotten.
    assert_eq!(report(&look, &second, &done(&second)).setbacks, look.setbacks);
}

#[test]
fn tries_become_rarer_and_a_name_that_is_taken_is_told() {
    let mut look = seen(set(|_| {}), settled(&["c1"]), vec![]);
    let mut pauses = vec![];
    for _ in 0..8 {
        let plan = plan(&look);
        let verdict = report(&look, &plan, &[vec![Outcome::AlreadyExists]]);
        pauses.push(verdict.wake.unwrap().as_secs());
        let told = verdict.setbacks.values().any(|setback| !setback.message.is_empty());
        assert_eq!(told, pauses.len() >= 3);
        look.setbacks = verdict.setbacks;
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
}

#[test]
fn half_written_decisions_are_told_only_when_they_stay() {
    let set = set(|_| {});
    let mut look = seen(set.clone(), settled(&["c1"]), vec![work(&set, "c1", &WELL)]);
    look.set.status = told(&look);
    look.placements.insert("all".into(), Decided::Unsettled { listed: vec![], chosen: 1 });
    let verdict = report(&look, &Plan::new(), &[]);
    assert_eq!(verdict.status, None);
    assert!(verdict.wake.is_some());
    look.setbacks = verdict.setbacks;
    look.now = look.now.checked_add(SignedDuration::from_secs(10)).unwrap();
    let status = told(&look);
    assert_eq!(
        condition(&status, "PlacementVerified"),
        "False NotAsExpected: Placement all says that it chose 1 clusters, its decisions list 0; \
         until that is known, no work is deleted"
    );
}

#[test]
fn a_stopped_rollout_says_who_failed() {
    let strategy = json!({ "type": "Progressive", "progressive": { "maxConcurrency": 1 } });
    let set = set(|set| set["spec"]["placementRefs"][0]["rolloutStrategy"] = strategy);
    let failed =
        work(&set, "c1", &[("Applied", "True"), ("Progressing", "True"), ("Degraded", "True")]);
    let look = seen(set, settled(&["c1", "c2"]), vec![failed]);
    assert_eq!(plan(&look), Plan::new());
    let status = told(&look);
    assert_eq!(
        condition(&status, "PlacementRolledOut"),
        "False Progressing: 0 of 2 clusters succeeded, 0 are under way, 1 failed, 1 wait; the \
         rollout to Placement all stopped, as more clusters failed than the 0 that may: c1. Mend \
         the template, or raise maxFailures"
    );
}

#[test]
fn a_strategy_that_makes_no_sense_rolls_nothing_out() {
    let strategy = json!({ "type": "Progressive", "progressive": { "maxFailures": "many" } });
    let set = set(|set| set["spec"]["placementRefs"][0]["rolloutStrategy"] = strategy);
    let look = seen(set, settled(&["c1"]), vec![]);
    assert_eq!(plan(&look), Plan::new());
    let verified = condition(&told(&look), "PlacementVerified");
    assert!(verified.contains("\"many\" is neither a number"), "{verified}");
}

#[test]
fn background_lets_go_at_once_and_foreground_waits() {
    let leaving = |cascade: &str| {
        set(|set| {
            set["spec"]["cascadeDeletionPolicy"] = json!(cascade);
            set["metadata"]["deletionTimestamp"] = json!(NOW);
        })
    };
    let works = |set: &Set| vec![work(set, "c1", &WELL), work(set, "c2", &WELL)];
    let background = leaving("Background");
    let look = seen(background.clone(), Decided::NoPlacement, works(&background));
    assert_eq!(brief(&plan(&look)), "delete c1, delete c2 | label apps");
    let foreground = leaving("Foreground");
    let mut look = seen(foreground.clone(), Decided::NoPlacement, works(&foreground));
    assert_eq!(brief(&plan(&look)), "delete c1, delete c2");
    assert_eq!(
        condition(&told(&look), "Deleting"),
        "True WaitingForWorks: 2 works remain: c1/web-06619dd88e, c2/web-06619dd88e; each goes once \
         its cluster's agent removed what it applied"
    );
    look.children = Some(vec![]);
    assert_eq!(brief(&plan(&look)), "label apps");
    look.children = None;
    assert_eq!(plan(&look), Plan::new());
    assert!(report(&look, &Plan::new(), &[]).wake.is_some());
}

#[test]
fn a_work_fares_as_its_conditions_say() {
    let ruled = set(|set| {
        let rules = json!([{ "conditionRules": [{ "condition": "Progressing" }] }]);
        set["spec"]["manifestWorkTemplate"]["manifestConfigs"] = rules;
    });
    let set = set(|_| {});
    let check = |set: &Set, conditions: &[(&str, &str)], expected: &str| {
        let progress = format!("{:?}", work(set, "c1", conditions).progress(set));
        assert!(progress.starts_with(expected), "{conditions:?}: {progress}");
    };
    check(&set, &[], "Applying");
    check(&set, &[("Applied", "False"), ("Progressing", "False")], "Applying");
    check(&set, &[("Applied", "True")], "Applying");
    check(&set, &[("Applied", "True"), ("Progressing", "True")], "Progressing");
    check(&set, &[("Applied", "True"), ("Progressing", "Unknown")], "Progressing");
    check(&set, &[("Applied", "True"), ("Progressing", "False")], "Succeeded");
    let degraded = ("Degraded", "True");
    check(&set, &[("Applied", "True"), ("Progressing", "True"), degraded], "Failed");
    check(&set, &[("Applied", "True"), ("Progressing", "False"), degraded], "Succeeded");
    // Without rules of its own, existing is enough.
    check(&set, &WELL, "Succeeded");
    check(&set, &[("Applied", "True"), ("Available", "False")], "Progressing");
    check(&set, &[("Applied", "True"), ("Available", "True"), degraded], "Failed");
    check(&ruled, &WELL, "Applying");
    let mut early = work(&set, "c1", &[("Applied", "True"), ("Progressing", "False")]);
    early.generation = 2;
    assert!(matches!(early.progress(&set), Progress::Applying { since: Some(_) }));
}

#[test]
fn decisions_are_read_by_group() {
    let metadata = |value: Value| serde_json::from_value(value).unwrap();
    let decision = |index: &str, clusters: Value| {
        let label = "cluster.open-cluster-management.io/decision-group-index";
        (
            metadata(json!({ "labels": { label: index } })),
            json!({ "status": { "decisions": clusters } }),
        )
    };
    let decisions = [
        decision("1", json!([{ "clusterName": "c3" }])),
        decision("0", json!([{ "clusterName": "c1" }, { "clusterName": "" }])),
        decision("0", json!([{ "clusterName": "c2" }, {}, 7])),
        decision("x", Value::Null),
    ];
    let decisions = || decisions.iter().map(|(metadata, data)| (metadata, data));
    let read = |placement: Value, status: u64| {
        let status = json!({ "status": { "numberOfSelectedClusters": status } });
        Decided::read(Some((&metadata(placement), &status)), decisions())
    };
    let Decided::Settled(groups) = read(json!({}), 3) else { panic!("settled") };
    let sizes: Vec<_> = groups.iter().map(|group| (group.index, group.clusters.len())).collect();
    assert_eq!(sizes, [(0, 2), (1, 1)]);
    assert!(matches!(read(json!({}), 4), Decided::Unsettled { chosen: 4, .. }));
    let elsewhere = "cluster.open-cluster-management.io/experimental-scheduling-disable";
    assert!(read(json!({ "annotations": { elsewhere: "true" } }), 4).is_settled());
    assert_eq!(read(json!({ "deletionTimestamp": NOW }), 3), Decided::NoPlacement);
    assert_eq!(Decided::read(None, decisions()), Decided::NoPlacement);
    let bare = (&metadata(json!({})), &Value::Null);
    assert_eq!(Decided::read(Some(bare), []), Decided::Undecided);
    // Made and not filled in yet, unless its placement says that there is nothing to fill in.
    let (labels, unfilled) = (metadata(json!({})), json!({}));
    let read = |placement: &Value| Decided::read(Some((bare.0, placement)), [(&labels, &unfilled)]);
    assert_eq!(read(&Value::Null), Decided::Undecided);
    assert!(read(&json!({ "status": { "numberOfSelectedClusters": 0 } })).is_settled());
}

/// A cluster whose availability is this since then.
fn cluster(name: &str, status: &str, since: &str) -> (String, Arc<Cluster>) {
    let object = json!({ "metadata": { "name": name }, "status": { "conditions": [{
        "type": "ManagedClusterConditionAvailable", "status": status, "lastTransitionTime": since,
    }] } });
    let metadata = serde_json::from_value(object["metadata"].clone()).unwrap();
    (name.into(), Arc::new(Cluster::read(&metadata, &object)))
}

#[test]
fn a_cluster_that_became_unreachable_and_left_the_placement_keeps_its_work() {
    let set = set(|_| {});
    let works = || vec![work(&set, "c1", &WELL), work(&set, "c2", &WELL)];
    let mut seen = seen(set.clone(), settled(&["c1"]), works());
    seen.clusters.extend([cluster("c2", "Unknown", "2026-05-01T11:00:00Z")]);
    assert_eq!(brief(&plan(&seen)), "");
    let verified = condition(&told(&seen), "PlacementVerified");
    assert!(verified.starts_with("True AsExpected: held") && verified.contains("c2/web"));
    // Also if it was the only one.
    let mut alone = seen.clone();
    alone.placements.insert("all".into(), settled(&[]));
    alone.clusters.extend([cluster("c1", "False", "2026-05-01T11:00:00Z")]);
    assert_eq!(brief(&plan(&alone)), "");
    let verified = condition(&told(&alone), "PlacementVerified");
    assert!(verified.contains("chose no cluster; held"), "{verified}");

    // Back, but perhaps nobody who decides has noticed.
    seen.clusters.extend([cluster("c2", "True", "2026-05-01T11:59:57Z")]);
    assert_eq!(brief(&plan(&seen)), "");
    assert_eq!(report(&seen, &vec![], &[]).wake, Some(SignedDuration::from_secs(7)));
    seen.clusters.extend([cluster("c2", "True", "2026-05-01T11:59:50Z")]);
    assert_eq!(brief(&plan(&seen)), "delete c2");
}

#[test]
fn a_work_went_from_a_cluster_that_was_back_before_its_placement_was_decided_again() {
    let set = set(|_| {});
    let works = vec![work(&set, "c1", &WELL), work(&set, "c2", &WELL)];
    let mut seen = seen(set.clone(), settled(&["c1"]), works);
    // Its clock is slow: the hub saw it away until just now.
    seen.clusters.extend([cluster("c2", "True", "2026-05-01T11:00:00Z")]);
    let away: Timestamp = "2026-05-01T11:59:57Z".parse().unwrap();
    seen.sightings.away.insert("c2".into(), away);
    assert_eq!(brief(&plan(&seen)), "");
    assert_eq!(report(&seen, &vec![], &[]).wake, Some(SignedDuration::from_secs(7)));
    // Time alone is not enough where the hub decides.
    let before: Timestamp = "2026-05-01T11:59:56Z".parse().unwrap();
    seen.now = "2026-05-01T13:00:00Z".parse().unwrap();
    for looked in [None, Some(before)] {
        seen.sightings.looked.insert("all".into(), looked);
        assert_eq!(brief(&plan(&seen)), "", "{looked:?}");
        assert_eq!(report(&seen, &vec![], &[]).wake, Some(SignedDuration::from_secs(1)));
    }
    seen.sightings.looked.insert("all".into(), Some(seen.now));
    assert_eq!(brief(&plan(&seen)), "delete c2");
}

#[test]
fn whoever_takes_a_placement_out_of_the_set_takes_its_works_from_unreachable_clusters_too() {
    let old = set(|_| {});
    let set = set(|set| set["spec"]["placementRefs"] = json!([{ "name": "other" }]));
    let mut seen = seen(set, settled(&["c1"]), vec![work(&old, "c2", &WELL)]);
    seen.placements = [("other".to_string(), settled(&["c1"]))].into();
    seen.clusters.extend([cluster("c2", "Unknown", "2026-05-01T11:00:00Z")]);
    assert_eq!(brief(&plan(&seen)), "create c1, delete c2");
}

#[test]
fn a_set_that_goes_with_its_definition_leaves_its_works() {
    let set = set(|set| set["metadata"]["deletionTimestamp"] = json!("2026-05-01T11:00:00Z"));
    let mut seen = seen(set.clone(), settled(&["c1"]), vec![work(&set, "c1", &WELL)]);
    assert!(brief(&plan(&seen)).starts_with("delete c1"));
    (seen.undefined, seen.children) = (true, None);
    let plan = plan(&seen);
    let metadata = json!({ "uid": "set", "resourceVersion": "5", "finalizers": [] });
    assert_eq!(plan.len(), 1);
    assert_eq!(plan[0][0].write, Write::Merge(json!({ "metadata": metadata })));
}
