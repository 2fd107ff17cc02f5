use alloc::string::String;
use alloc::vec::Vec;

use serde_json::{Value, json};

use super::*;

fn created(seen: &Observed, cluster: &str) -> Value {
    let plan = plan(seen);
    let found = plan.iter().flatten().find(|action| action.target.id.namespace == cluster);
    match &found.unwrap().write {
        Write::Create(object) | Write::Replace(object) => object.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_copy_is_the_root_with_its_place() {
    let object = created(&seen(), "a");
    assert_eq!(
        object["metadata"],
        json!({
            "name": "team.p", "namespace": "a",
            "labels": {
                "own": "x",
                "policy.open-cluster-management.io/y": "z",
                "policy.open-cluster-management.io/cluster-name": "a",
                "policy.open-cluster-management.io/cluster-namespace": "a",
                "policy.open-cluster-management.io/root-policy": "team.p",
            },
            "annotations": { "argocd.argoproj.io/compare-options": "IgnoreExtraneous" },
        })
    );
    assert_eq!(object["spec"], spec());
}

#[test]
fn only_the_groups_own_metadata_is_copied_if_the_author_wants_it_so() {
    let mut seen = seen();
    let mut spec = spec();
    spec["copyPolicyMetadata"] = json!(false);
    seen.root = Some(root_with(spec, Value::Null));
    let labels = created(&seen, "a")["metadata"]["labels"].clone();
    assert!(labels.get("own").is_none());
    assert_eq!(labels["policy.open-cluster-management.io/y"], "z");
}

#[test]
fn dependencies_are_on_copies_and_sets_are_their_policies() {
    let mut seen = seen();
    let mut spec = spec();
    let on = |kind: &str, name: &str, namespace: &str| {
        json!({
            "apiVersion": "policy.open-cluster-management.io/v1", "kind": kind, "name": name,
            "namespace": namespace, "compliance": "Compliant",
        })
    };
    spec["dependencies"] = json!([
        on("Policy", "q", ""),
        on("Policy", "r", "other"),
        on("Policy", "other.r", ""),
        on("PolicySet", "s", ""),
        on("PolicySet", "none", ""),
        on("ConfigurationPolicy", "t", ""),
    ]);
    spec["policy-templates"][0]["extraDependencies"] = json!([on("Policy", "q", "")]);
    seen.root = Some(root_with(spec, Value::Null));
    seen.sets = [set("s", json!({ "policies": ["x", "y"] }))].into();
    let spec = created(&seen, "a")["spec"].clone();
    let names = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|one| {
            format!("{} {}", one["kind"].as_str().unwrap(), one["name"].as_str().unwrap())
        })
        .collect()
    };
    assert_eq!(
        names(&spec["dependencies"]),
        [
            "Policy team.q",
            "Policy other.r",
            "Policy other.r",
            "Policy team.x",
            "Policy team.y",
            "PolicySet none",
            "ConfigurationPolicy t"
        ]
    );
    assert!(spec["dependencies"][0].get("namespace").is_none());
    assert_eq!(names(&spec["policy-templates"][0]["extraDependencies"]), ["Policy team.q"]);
    assert_eq!(
        sets_depended_on("team", &seen.root.as_ref().unwrap().spec),
        [("team".into(), "s".into()), ("team".into(), "none".into())]
    );
}

#[test]
fn overrides_make_policies_enforce_where_they_select() {
    let enforcing = json!({ "bindingOverrides": { "remediationAction": "enforce" } });
    let mut restricted = enforcing.clone();
    restricted["subFilter"] = json!("restricted");
    for (more, expected) in [(json!({}), "inform"), (enforcing, "enforce"), (restricted, "enforce")]
    {
        let mut seen = seen();
        seen.bindings.push(binding("more", "some", more.clone()));
        decide(&mut seen, "some", settled(&["b", "c"]));
        assert_eq!(created(&seen, "b")["spec"]["remediationAction"], expected, "{more}");
        assert_eq!(created(&seen, "a")["spec"]["remediationAction"], "inform");
        let placed = more.get("subFilter").is_none();
        assert_eq!(plan(&seen)[0].len(), if placed { 3 } else { 2 }, "{more}");
    }
}

#[test]
fn enforcing_is_not_taken_back_because_a_decision_cannot_be_read() {
    let mut seen = seen();
    let more = json!({ "bindingOverrides": { "remediationAction": "enforce" }, "subFilter": "restricted" });
    seen.bindings.push(binding("more", "some", more));
    decide(&mut seen, "some", settled(&["b"]));
    settle(&mut seen);
    decide(&mut seen, "some", Decided::Unknown);
    assert_eq!(plan(&seen), Plan::new());
    decide(&mut seen, "some", settled(&[]));
    assert_eq!(created(&seen, "b")["spec"]["remediationAction"], "inform");
}

#[test]
fn what_somebody_changed_on_a_copy_is_put_right() {
    let mut seen = seen();
    settle(&mut seen);
    assert_eq!(plan(&seen), Plan::new());
    let change: [fn(&mut Value); 3] = [
        |copy| copy["spec"]["disabled"] = json!(true),
        |copy| copy["spec"]["policy-templates"][0]["objectDefinition"]["spec"] = json!({}),
        |copy| copy["metadata"]["labels"]["more"] = json!("x"),
    ];
    for change in change {
        let mut fresh = self::seen();
        let mut copy = created(&fresh, "a");
        copy["metadata"]["uid"] = json!("u");
        copy["metadata"]["resourceVersion"] = json!("9");
        copy["metadata"]["finalizers"] = json!(["others/hold"]);
        change(&mut copy);
        let replica = Replica::read(&metadata(&copy), &copy);
        fresh.replicas.insert("a".into(), Arc::new(replica));
        let put = created(&fresh, "a");
        assert_eq!(put["metadata"]["resourceVersion"], "9");
        assert_eq!(put["metadata"]["finalizers"], json!(["others/hold"]));
        assert_eq!(put["spec"], spec());
    }
}

fn templated() -> Value {
    let mut spec = spec();
    spec["policy-templates"][0]["objectDefinition"]["spec"]["severity"] =
        json!("{{hub .ManagedClusterName hub}}");
    spec
}

fn resolved(word: &str, full: bool) -> Resolved {
    let mut spec = spec();
    spec["policy-templates"][0]["objectDefinition"]["spec"]["severity"] = json!(word);
    let (objects, digest) = definitions(&spec);
    Resolved::Known { definitions: full.then_some(objects), digest, iv: None, problem: None }
}

#[test]
fn templates_are_those_of_the_cluster_and_wait_until_they_are_known() {
    let mut seen = seen();
    assert!(has_hub_templates(&templated()) && !has_hub_templates(&spec()));
    seen.root = Some(root_with(templated(), Value::Null));
    assert_eq!(placed_clusters(&seen), ["a", "b"]);
    assert_eq!(plan(&seen), Plan::new());
    seen.resolved.insert("a".into(), resolved("for-a", true));
    seen.resolved.insert("b".into(), Resolved::Unknown("no answer".into()));
    let copy = created(&seen, "a");
    assert_eq!(
        copy["spec"]["policy-templates"][0]["objectDefinition"]["spec"]["severity"],
        "for-a"
    );
    settle(&mut seen);
    assert_eq!(has(&seen), "a");
    // Whoever knows that nothing changed need not say it again.
    seen.resolved.insert("a".into(), resolved("for-a", false));
    assert_eq!(plan(&seen), Plan::new());
    let status = told(&seen);
    assert_eq!(status["status"][1]["message"], "Failed to resolve templates: no answer");
    // What is there stays while it is not known what is to be there.
    seen.resolved.insert("a".into(), Resolved::Unknown("no answer".into()));
    assert_eq!(plan(&seen), Plan::new());
    seen.resolved.insert("a".into(), resolved("other", true));
    assert_eq!(plan(&seen)[0].len(), 1);
}

#[test]
fn a_vector_is_kept() {
    let mut seen = seen();
    seen.root = Some(root_with(templated(), Value::Null));
    decide(&mut seen, "all", settled(&["a"]));
    let Resolved::Known { definitions, digest, .. } = resolved("x", true) else { panic!() };
    let with = Resolved::Known { definitions, digest, iv: Some("dmVj".into()), problem: None };
    seen.resolved.insert("a".into(), with);
    settle(&mut seen);
    assert_eq!(seen.replicas["a"].iv.as_deref(), Some("dmVj"));
    seen.resolved.insert("a".into(), resolved("y", true));
    let put = created(&seen, "a");
    let annotations = &put["metadata"]["annotations"];
    assert_eq!(annotations["policy.open-cluster-management.io/encryption-iv"], "dmVj");
}
