use alloc::string::{String, ToString};
use alloc::vec::Vec;

use alloc::sync::Arc;
use alloc::{format, vec};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::*;
use crate::write::Write;

fn three() -> Vec<Arc<Cluster>> {
    vec![
        plain("a", json!({ "env": "dev" })),
        plain("b", json!({ "env": "prod", "big": "" })),
        plain("c", json!({ "env": "prod" })),
    ]
}

fn labels(selector: Value) -> Value {
    json!({ "requiredClusterSelector": { "labelSelector": selector } })
}

#[test]
fn predicates_are_alternatives_of_which_all_parts_must_fit() {
    let dev = labels(json!({ "matchLabels": { "env": "dev" } }));
    let big = labels(json!({ "matchExpressions": [{ "key": "big", "operator": "Exists" }] }));
    let cases = [
        (json!([]), vec!["a", "b", "c"]),
        (json!([{}]), vec!["a", "b", "c"]),
        (json!([dev]), vec!["a"]),
        (json!([dev, big]), vec!["a", "b"]),
        (json!([labels(json!({ "matchLabels": { "env": "none" } }))]), vec![]),
        (
            json!([{ "requiredClusterSelector": {
                "labelSelector": { "matchLabels": { "env": "prod" } },
                "claimSelector": { "matchExpressions":
                    [{ "key": "id", "operator": "In", "values": ["x"] }] },
            } }]),
            vec![],
        ),
        (cel("yes"), vec!["a", "b", "c"]),
        (cel("no"), vec![]),
        (cel("?"), vec![]),
    ];
    for (predicates, expected) in cases {
        let seen = seen(json!({ "predicates": predicates }), three());
        assert_eq!(chosen(&seen), expected, "{predicates}");
    }
}

fn cel(expression: &str) -> Value {
    json!([{ "requiredClusterSelector": { "celSelector": { "celExpressions": [expression] } } }])
}

#[test]
fn claims_are_what_the_cluster_says_of_itself() {
    let claiming = cluster(json!({
        "metadata": { "name": "a", "labels": { "in": "all" } },
        "status": { "clusterClaims": [{ "name": "platform", "value": "aws" }] },
    }));
    let select = |values: Value| {
        json!({ "predicates": [{ "requiredClusterSelector": { "claimSelector": {
            "matchExpressions": [{ "key": "platform", "operator": "In", "values": values }],
        } } }] })
    };
    assert_eq!(chosen(&seen(select(json!(["aws"])), vec![claiming.clone()])), ["a"]);
    assert!(chosen(&seen(select(json!(["gcp"])), vec![claiming])).is_empty());
}

#[test]
fn what_cannot_be_understood_is_told_and_takes_nothing_away() {
    let cases = [
        (json!({ "predicates": cel("garbage") }), "CEL expression"),
        (
            json!({ "predicates": [labels(json!({
                "matchExpressions": [{ "key": "a", "operator": "Like" }] }))] }),
            "not a valid selector operator",
        ),
        (
            json!({ "prioritizerPolicy": { "configurations": [
                { "scoreCoordinate": { "type": "BuiltIn", "builtIn": "Beauty" } }] } }),
            "Beauty",
        ),
        (
            json!({ "prioritizerPolicy": { "configurations": [
                { "scoreCoordinate": { "type": "AddOn" } }] } }),
            "addOn",
        ),
        (
            json!({ "decisionStrategy": { "groupStrategy": { "clustersPerDecisionGroup": "0%" } } }),
            "clustersPerDecisionGroup",
        ),
        (json!({ "predicates": 7 }), "cannot be read"),
    ];
    for (spec, part) in cases {
        let mut seen = seen(spec.clone(), three());
        seen.decisions = vec![decision("p-decision-1", 0, Some(&["a", "b"]))];
        let wrong = choose(&seen, &words).unwrap_err();
        assert!(wrong.0.contains(part), "{spec}: {}", wrong.0);
        let verdict = report(&seen, Err(&wrong), &vec![], &[]);
        let Some(Write::MergeStatus(patch)) = verdict.status.map(|action| action.write) else {
            panic!("nothing told of {spec}")
        };
        assert_eq!(patch["status"]["conditions"][0]["reason"], "Misconfigured");
        assert!(patch["status"].get("numberOfSelectedClusters").is_none());
    }
}

#[test]
fn only_bound_sets_and_only_those_asked_for() {
    let clusters = vec![
        plain("a", json!({ "set": "x" })),
        plain("b", json!({ "set": "y" })),
        cluster(json!({ "metadata": {
            "name": "gone", "labels": { "set": "x" },
            "deletionTimestamp": at(1), "finalizers": ["f"] } })),
    ];
    let by = |name: &str| set(name, json!({ "matchLabels": { "set": name } }));
    let cases = [
        (vec![], json!({}), "", "NoManagedClusterSetBindings"),
        (vec![by("x")], json!({}), "a", "AllDecisionsScheduled"),
        (vec![by("x"), by("y")], json!({}), "a b", "AllDecisionsScheduled"),
        (vec![by("x"), by("y")], json!({ "clusterSets": ["y"] }), "b", "AllDecisionsScheduled"),
        (vec![by("x")], json!({ "clusterSets": ["y"] }), "", "NoIntersection"),
        (vec![by("z")], json!({}), "", "AllManagedClusterSetsEmpty"),
        (vec![by("x")], json!({ "numberOfClusters": 3 }), "a", "NotAllDecisionsScheduled"),
        (
            vec![by("x")],
            json!({ "predicates": [labels(json!({ "matchLabels": { "q": "" } }))] }),
            "",
            "NoManagedClusterMatched",
        ),
    ];
    for (bound, spec, expected, reason) in cases {
        let mut seen = seen(spec.clone(), clusters.clone());
        seen.bound = bound;
        assert_eq!(chosen(&seen).join(" "), expected, "{spec}");
        let names: Vec<String> = chosen(&seen);
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        seen.decisions = vec![decision("p-decision-1", 0, Some(&names))];
        let selection = choose(&seen, &words).unwrap();
        assert!(plan(&seen, &selection).is_empty());
        let told = report(&seen, Ok(&selection), &vec![], &[]).status.unwrap();
        let Write::MergeStatus(patch) = told.write else { panic!() };
        assert_eq!(patch["status"]["conditions"][0]["reason"], reason, "{spec}");
        assert_eq!(patch["status"]["numberOfSelectedClusters"], names.len());
        assert_eq!(patch["status"]["conditions"][1]["reason"], "Succeedconfigured");
        // What was told is not told again.
        seen.wish.status = patch["status"].clone();
        assert_eq!(report(&seen, Ok(&selection), &vec![], &[]).status, None);
    }
}

#[test]
fn taints_keep_clusters_out_unless_they_are_tolerated() {
    let taint = |effect: &str, added: i64| json!({ "key": "k", "value": "v", "effect": effect, "timeAdded": at(added) });
    let tolerate = |more: Value| {
        let mut toleration = json!({ "key": "k", "value": "v" });
        for (key, value) in more.as_object().unwrap() {
            toleration[key] = value.clone();
        }
        json!([toleration])
    };
    let forever = json!({});
    // Effect, tolerations, chosen before: chosen now, and when to look again.
    let cases = [
        ("NoSelect", json!([]), false, false, None),
        ("NoSelect", json!([]), true, false, None),
        ("PreferNoSelect", json!([]), false, true, None),
        ("NoSelectIfNew", json!([]), false, false, None),
        ("NoSelectIfNew", json!([]), true, true, None),
        ("NoSelect", tolerate(forever.clone()), false, true, None),
        ("NoSelect", tolerate(json!({ "value": "w" })), false, false, None),
        ("NoSelect", tolerate(json!({ "value": "", "operator": "Exists" })), false, true, None),
        ("NoSelect", json!([{ "operator": "Exists" }]), false, true, None),
        ("NoSelect", tolerate(json!({ "effect": "NoSelectIfNew" })), false, false, None),
        ("NoSelect", tolerate(json!({ "tolerationSeconds": 30 })), false, true, Some(20)),
        ("NoSelect", tolerate(json!({ "tolerationSeconds": 10 })), false, false, None),
        (
            "NoSelect",
            json!([{ "operator": "Exists", "tolerationSeconds": 30 }, { "operator": "Exists" }]),
            false,
            true,
            None,
        ),
    ];
    for (effect, tolerations, before, expected, wake) in cases {
        let tainted = cluster(json!({
            "metadata": { "name": "a", "labels": { "in": "all" } },
            "spec": { "taints": [taint(effect, 990)] },
        }));
        let mut seen = seen(json!({ "tolerations": tolerations }), vec![tainted]);
        if before {
            seen.decisions = vec![decision("p-decision-1", 0, Some(&["a"]))];
        }
        let selection = choose(&seen, &words).unwrap();
        let what = format!("{effect} {tolerations} {before}");
        assert_eq!(!selection.is_empty(), expected, "{what}");
        let verdict = report(&seen, Ok(&selection), &vec![], &[]);
        assert_eq!(verdict.wake.map(|wake| wake.as_secs()), wake, "{what}");
    }
}

fn sized(name: &str, cpu: &str, memory: &str) -> Arc<Cluster> {
    cluster(json!({
        "metadata": { "name": name, "labels": { "in": "all" } },
        "status": { "allocatable": { "cpu": cpu, "memory": memory } },
    }))
}

#[test]
fn scores_are_weighed_and_added() {
    let built_in = |name: &str, weight: i32| json!({ "scoreCoordinate": { "type": "BuiltIn", "builtIn": name }, "weight": weight });
    let clusters =
        vec![sized("a", "10", "10Gi"), sized("b", "5500m", "30Gi"), sized("c", "1", "20Gi")];
    let scores = |mode: &str, configurations: Vec<Value>| {
        let policy = json!({ "mode": mode, "configurations": configurations });
        let mut seen = seen(json!({ "prioritizerPolicy": policy }), clusters.clone());
        seen.decisions = vec![decision("p-decision-1", 0, Some(&["c"]))];
        seen.elsewhere = [("a".into(), 4), ("b".into(), 1)].into();
        let scores = |name: &str, value: i64, until: Option<i64>| Scores {
            cluster: name.into(),
            name: "add".into(),
            values: [("s".into(), value)].into(),
            valid_until: until.map(|second| Timestamp::from_second(second).unwrap()),
        };
        for one in [scores("a", 70, Some(1010)), scores("b", 90, Some(1000))] {
            seen.scores.insert((one.cluster.clone(), one.name.clone()), Arc::new(one));
        }
        let selection = choose(&seen, &words).unwrap();
        selection.scores.into_values().collect::<Vec<_>>()
    };
    let add_on = json!({
        "scoreCoordinate": { "type": "AddOn", "addOn": { "resourceName": "add", "scoreName": "s" } },
        "weight": 2,
    });
    assert_eq!(scores("Exact", vec![]), [0, 0, 0]);
    assert_eq!(scores("Exact", vec![built_in("Balance", 1)]), [-100, 50, 100]);
    assert_eq!(scores("Exact", vec![built_in("Steady", 3)]), [0, 0, 300]);
    assert_eq!(scores("Additive", vec![]), [-100, 50, 200]);
    assert_eq!(scores("Additive", vec![built_in("Steady", 0)]), [-100, 50, 100]);
    assert_eq!(scores("Exact", vec![built_in("ResourceAllocatableCPU", 1)]), [100, 0, -100]);
    assert_eq!(scores("Exact", vec![built_in("ResourceAllocatableMemory", -1)]), [100, -100, 0]);
    // The one of b is out of date, and c has none.
    assert_eq!(scores("Exact", vec![add_on]), [140, 0, 0]);
}

#[test]
fn the_best_are_chosen_and_names_break_ties() {
    let spec = json!({ "numberOfClusters": 2 });
    assert_eq!(chosen(&seen(spec.clone(), three())), ["a", "b"]);
    let mut seen = seen(spec, three());
    seen.decisions = vec![decision("p-decision-1", 0, Some(&["c"]))];
    assert_eq!(chosen(&seen), ["a", "c"]);
}

#[test]
fn a_score_that_ends_wakes_the_placement() {
    let spec = json!({ "prioritizerPolicy": { "configurations": [{ "scoreCoordinate": {
        "type": "AddOn", "addOn": { "resourceName": "add", "scoreName": "s" } } }] } });
    let mut seen = seen(spec, three());
    let object = json!({
        "metadata": { "name": "add", "namespace": "a" },
        "status": { "scores": [{ "name": "s", "value": 5 }], "validUntil": at(1007) },
    });
    let metadata: ObjectMeta = serde_json::from_value(object["metadata"].clone()).unwrap();
    let scores = Scores::read(&metadata, &object);
    seen.scores.insert(("a".into(), "add".into()), Arc::new(scores));
    let selection = choose(&seen, &words).unwrap();
    assert_eq!(selection.until, Some(Timestamp::from_second(1007).unwrap()));
}

#[test]
fn groups_are_made_in_order_and_by_size() {
    let clusters: Vec<_> = (0..5)
        .map(|index| plain(&format!("c{index}"), json!({ "canary": (index < 2).to_string() })))
        .collect();
    let groups = |strategy: Value| {
        let spec = json!({ "decisionStrategy": { "groupStrategy": strategy } });
        let selection = choose(&seen(spec, clusters.clone()), &words).unwrap();
        let groups = selection.groups.iter();
        let text = groups.map(|group| format!("{}:{}", group.name, group.clusters.join(",")));
        text.collect::<Vec<_>>().join(" ")
    };
    let canary = json!([{ "groupName": "canary", "groupClusterSelector": {
        "labelSelector": { "matchLabels": { "canary": "true" } } } }]);
    assert_eq!(groups(json!({})), ":c0,c1,c2,c3,c4");
    assert_eq!(groups(json!({ "clustersPerDecisionGroup": 2 })), ":c0,c1 :c2,c3 :c4");
    assert_eq!(groups(json!({ "clustersPerDecisionGroup": "50%" })), ":c0,c1,c2 :c3,c4");
    assert_eq!(groups(json!({ "decisionGroups": canary })), "canary:c0,c1 :c2,c3,c4");
    assert_eq!(
        groups(json!({ "decisionGroups": canary, "clustersPerDecisionGroup": "1" })),
        "canary:c0 canary:c1 :c2 :c3 :c4"
    );
    assert_eq!(choose(&seen(json!({}), vec![]), &words).unwrap().groups, [Group::default()]);
}

#[test]
fn a_placement_that_others_schedule_is_left_alone() {
    let mut seen = seen(json!({}), three());
    seen.wish.elsewhere = true;
    let selection = choose(&seen, &words).unwrap();
    assert!(plan(&seen, &selection).is_empty());
    assert_eq!(report(&seen, Ok(&selection), &vec![], &[]).status, None);
}
