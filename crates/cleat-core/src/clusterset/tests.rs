use super::*;

fn set(name: &str, spec: Value) -> ManagedClusterSet {
    let object = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet",
        "metadata": { "name": name, "uid": "u" }, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

fn labels(all: Value) -> BTreeMap<String, String> {
    serde_json::from_value(all).unwrap()
}

#[test]
fn sets_contain_what_they_select() {
    let exclusive = set("a", json!({}));
    let ours = labels(json!({ CLUSTER_SET_LABEL: "a", "x": "y" }));
    assert!(contains(&exclusive, &ours));
    assert!(!contains(&set("b", json!({})), &ours));
    let selector = |selector: Value| {
        set(
            "s",
            json!({ "clusterSelector": { "selectorType": "LabelSelector", "labelSelector": selector } }),
        )
    };
    assert!(contains(&selector(json!({})), &labels(json!({}))));
    assert!(contains(&selector(json!({ "matchLabels": { "x": "y" } })), &ours));
    assert!(!contains(&selector(json!({ "matchLabels": { "x": "z" } })), &ours));
    let missing = set("s", json!({ "clusterSelector": { "selectorType": "LabelSelector" } }));
    assert!(!contains(&missing, &ours), "a selector that is missing selects nothing");
}

#[test]
fn every_hub_has_a_default_and_a_global_set_unless_told_otherwise() {
    let plan = foundation([None, None]);
    assert_eq!(plan.len(), 2);
    let objects: Vec<Value> = plan
        .into_iter()
        .map(|action| match action.write {
            Write::Apply { object, .. } => object,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(foundation([Some(&objects[0]), Some(&objects[1])]).is_empty());
    let mut changed = objects[1].clone();
    changed["spec"]["clusterSelector"]["selectorType"] = json!("ExclusiveClusterSetLabel");
    assert_eq!(foundation([Some(&objects[0]), Some(&changed)]).len(), 1);
    changed["metadata"]["annotations"] = json!({ AUTO_UPDATE: "false" });
    assert!(foundation([Some(&objects[0]), Some(&changed)]).is_empty());
}

#[test]
fn what_is_said_of_sets_and_bindings_is_said_once() {
    let now = Timestamp::UNIX_EPOCH;
    let mut set = set("a", json!({}));
    let told = |action: Action| match action.write {
        Write::MergeStatus(patch) => patch["status"].clone(),
        other => panic!("{other:?}"),
    };
    let status = told(report(&set, 0, now).unwrap());
    assert_eq!(status["conditions"][0]["reason"], reason::NO_CLUSTER_MATCHED);
    set.status = serde_json::from_value(status).unwrap();
    assert_eq!(report(&set, 0, now), None);
    assert_eq!(
        told(report(&set, 2, now).unwrap())["conditions"][0]["message"],
        "2 ManagedClusters selected"
    );

    let object = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2",
        "kind": "ManagedClusterSetBinding",
        "metadata": { "name": "a", "namespace": "n" }, "spec": { "clusterSet": "a" },
    });
    let mut binding: ManagedClusterSetBinding = serde_json::from_value(object).unwrap();
    let status = told(report_binding(&binding, false, now).unwrap());
    assert_eq!(status["conditions"][0]["reason"], binding::reason::CLUSTER_SET_NOT_FOUND);
    binding.status = serde_json::from_value(status).unwrap();
    assert_eq!(report_binding(&binding, false, now), None);
    assert!(report_binding(&binding, true, now).is_some());
}
