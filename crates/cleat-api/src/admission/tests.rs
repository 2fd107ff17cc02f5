use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "n" } })
}

fn work(spec: Value) -> Value {
    json!({ "metadata": { "name": "w", "namespace": "cluster1" }, "spec": spec })
}

fn good() -> Value {
    work(json!({ "workload": { "manifests": [config_map("a")] } }))
}

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[field] = value;
    object
}

fn judge(object: &Value, old: Option<&Value>) -> Result<(), String> {
    match manifest_work(object, old, &Rules::default()) {
        Verdict::Allowed { .. } | Verdict::NeedsReview { .. } => Ok(()),
        Verdict::Refused(refusal) => Err(refusal.message),
    }
}

#[test]
fn a_good_work_is_taken() {
    assert_eq!(judge(&good(), None), Ok(()));
    let two = work(json!({ "workload": { "manifests": [
        config_map("a"),
        { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "m" } },
        { "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a", "namespace": "n" } },
        { "apiVersion": "x.y/v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "n" } },
    ] } }));
    assert_eq!(judge(&two, None), Ok(()));
}

#[test]
fn bad_works_are_refused_with_what_to_do() {
    let manifests = |manifests: Value| work(json!({ "workload": { "manifests": manifests } }));
    let rule = json!({ "resource": "configmaps", "name": "a" });
    let cases = [
        (work(json!({})), "spec.workload.manifests is empty; a work needs at least one manifest"),
        (json!({ "metadata": { "name": "w" } }), "spec.workload.manifests is empty"),
        (manifests(json!([])), "spec.workload.manifests is empty"),
        (manifests(json!([3])), "spec.workload.manifests[0] is not an object"),
        (
            manifests(json!([{ "kind": "ConfigMap", "metadata": { "name": "a" } }])),
            "spec.workload.manifests[0] has no apiVersion; add it",
        ),
        (
            manifests(json!([{ "apiVersion": "a/b/c", "kind": "K", "metadata": { "name": "a" } }])),
            "has the apiVersion a/b/c; write <version> or <group>/<version>",
        ),
        (
            manifests(json!([{ "apiVersion": "v1", "metadata": { "name": "a" } }])),
            "spec.workload.manifests[0] has no kind; add it",
        ),
        (
            manifests(json!([{ "apiVersion": "v1", "kind": "ConfigMap" }])),
            "spec.workload.manifests[0] has no metadata.name; add it",
        ),
        (
            manifests(json!([
                { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "generateName": "a-" } },
            ])),
            "has metadata.generateName, by which it could not be found again; give it a metadata.name",
        ),
        (
            manifests(json!([config_map("b"), config_map("a"), config_map("b")])),
            "spec.workload.manifests[2] is the same object as spec.workload.manifests[0], v1 ConfigMap n/b; keep one of them",
        ),
        (
            with(good(), "/metadata/name", json!("w".repeat(189))),
            "metadata.name has 189 characters; at most 188 are left",
        ),
        (
            with(good(), "/spec/deleteOption", json!({ "selectivelyOrphan": [rule] })),
            "spec.deleteOption.selectivelyOrphan has an effect only with propagationPolicy: SelectivelyOrphan",
        ),
        (
            with(good(), "/spec/executor", json!({ "subject": { "type": "ServiceAccount" } })),
            "executor.subject.serviceAccount is not given; set its namespace and name",
        ),
    ];
    for (object, expected) in cases {
        let why = judge(&object, None).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
    assert_eq!(judge(&with(good(), "/metadata/name", json!("w".repeat(188))), None), Ok(()));
}

#[test]
fn everything_wrong_is_said_but_not_without_end() {
    let manifests: Vec<Value> = (0..30).map(|_| json!({})).collect();
    let why = judge(&work(json!({ "workload": { "manifests": manifests } })), None).unwrap_err();
    assert!(why.contains("manifests[0]") && why.contains("manifests[7]"), "{why}");
    assert!(why.ends_with("And 22 more"), "{why}");
}

#[test]
fn the_size_of_all_manifests_counts() {
    let limited = |limit| {
        let rules = Rules { manifest_bytes: limit, ..Rules::default() };
        manifest_work(&good(), None, &rules)
    };
    let exact = serde_json::to_string(&config_map("a")).unwrap().len();
    assert!(matches!(limited(exact), Verdict::Allowed { .. }));
    let Verdict::Refused(refusal) = limited(exact - 1) else { panic!() };
    let expected = format!(
        "spec.workload.manifests has {exact} bytes, the limit is {}; divide the manifests among several works",
        exact - 1
    );
    assert_eq!(refusal.message, expected);
    let big = config_map(&"x".repeat(500 * 1024));
    assert!(judge(&work(json!({ "workload": { "manifests": [big] } })), None).is_err());
}

/// Whatever is wrong with it, a work that is being deleted can lose its finalizer.
#[test]
fn an_update_that_leaves_the_spec_alone_is_never_refused() {
    let wrong = work(json!({ "deleteOption": 3 }));
    let bare = with(wrong.clone(), "/metadata/finalizers", json!([]));
    assert_eq!(judge(&bare, Some(&wrong)), Ok(()));
    assert!(judge(&with(wrong.clone(), "/spec/workload", json!({})), Some(&wrong)).is_err());
    // A name that is too long can no longer be helped.
    let long = with(good(), "/metadata/name", json!("w".repeat(200)));
    let changed = with(long.clone(), "/spec/workload/manifests", json!([config_map("b")]));
    assert_eq!(judge(&changed, Some(&long)), Ok(()));
}

#[test]
fn what_a_deletion_does_is_settled_when_it_begins() {
    let option = |option: Value| {
        let deleting = with(good(), "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"));
        with(deleting, "/spec/deleteOption", option)
    };
    let listed = |rule: Value| {
        let rules = json!({ "orphaningRules": [rule] });
        option(json!({ "propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": rules }))
    };
    let a = listed(json!({ "resource": "configmaps", "name": "a" }));
    let refusals = [
        (option(json!({})), option(json!({ "propagationPolicy": "Orphan" }))),
        (option(json!({ "propagationPolicy": "Orphan" })), option(json!({}))),
        (a.clone(), listed(json!({ "resource": "configmaps", "name": "b" }))),
        (option(json!({})), option(json!({ "ttlSecondsAfterFinished": 1 }))),
    ];
    for (old, new) in refusals {
        let why = judge(&new, Some(&old)).unwrap_err();
        assert!(why.starts_with("spec.deleteOption cannot change while the work is being deleted"));
        assert!(why.contains("put it back"), "{why}");
    }
    let mut bare = option(Value::Null);
    bare["spec"].as_object_mut().unwrap().remove("deleteOption");
    let allowed = [
        (bare, option(json!({ "propagationPolicy": "Foreground" }))),
        (a.clone(), listed(json!({ "resource": "configmaps", "resourceName": "a" }))),
        // What meant nothing kept the deletion waiting; it may be put right.
        (option(json!({ "selectivelyOrphan": [{ "resource": "x", "name": "y" }] })), a),
    ];
    for (old, new) in allowed {
        assert_eq!(judge(&new, Some(&old)), Ok(()), "{old} {new}");
    }
    let alive = good();
    let orphan = with(good(), "/spec/deleteOption", json!({ "propagationPolicy": "Orphan" }));
    assert_eq!(judge(&orphan, Some(&alive)), Ok(()));
}

#[test]
fn a_new_executor_needs_a_review() {
    let subject = |name: &str| {
        let account = json!({ "namespace": "n", "name": name });
        let subject = json!({ "type": "ServiceAccount", "serviceAccount": account });
        with(good(), "/spec/executor", json!({ "subject": subject }))
    };
    let reviewed = |object: &Value, old: Option<&Value>, rules: &Rules| match manifest_work(
        object, old, rules,
    ) {
        Verdict::NeedsReview { review, .. } => Some((review.namespace, review.name)),
        _ => None,
    };
    let rules = Rules::default();
    let expected = Some(("cluster1".to_owned(), "system:serviceaccount:n:a".to_owned()));
    assert_eq!(reviewed(&subject("a"), None, &rules), expected);
    assert_eq!(reviewed(&subject("a"), Some(&good()), &rules), expected);
    assert_eq!(reviewed(&subject("a"), Some(&subject("b")), &rules), expected);
    let same = with(subject("a"), "/spec/manifestConfigs", json!([]));
    assert_eq!(reviewed(&same, Some(&subject("a")), &rules), None);
    assert_eq!(reviewed(&good(), Some(&subject("a")), &rules), None);
    let strict = Rules { absent_executor: AbsentExecutor::Reviewed, ..rules };
    let agent =
        Some(("cluster1".to_owned(), "system:serviceaccount::klusterlet-work-sa".to_owned()));
    assert_eq!(reviewed(&good(), None, &strict), agent);
    assert_eq!(reviewed(&good(), Some(&subject("a")), &strict), agent);
}

#[test]
fn sets_are_judged_by_their_template() {
    let set = |name: &str, template: Value, placements: Value| {
        json!({
            "metadata": { "name": name, "namespace": "fleet" },
            "spec": { "manifestWorkTemplate": template, "placementRefs": placements },
        })
    };
    let template = good()["spec"].take();
    let placements = json!([{ "name": "all" }]);
    let judge = |object: Value| match manifest_work_replica_set(&object, None, &Rules::default()) {
        Verdict::Refused(refusal) => refusal.message,
        _ => String::new(),
    };
    assert_eq!(judge(set("s", template.clone(), placements.clone())), "");
    assert_eq!(judge(set(&"s".repeat(57), template.clone(), placements.clone())), "");
    let cases = [
        (
            set("s", json!({}), placements.clone()),
            "spec.manifestWorkTemplate.workload.manifests is empty",
        ),
        (set("s", template.clone(), json!([])), "spec.placementRefs is empty; name at least one"),
        (
            set(&"s".repeat(58), template.clone(), placements.clone()),
            "<namespace>.<name> has 64 characters",
        ),
        (
            set(
                "s",
                with(
                    good(),
                    "/spec/deleteOption",
                    json!({ "selectivelyOrphan": [
                { "resource": "configmaps", "name": "a" },
            ] }),
                )["spec"]
                    .take(),
                placements.clone(),
            ),
            "spec.manifestWorkTemplate.deleteOption.selectivelyOrphan has an effect only",
        ),
    ];
    for (object, expected) in cases {
        let why = judge(object);
        assert!(why.contains(expected), "{why}");
    }
    let executor = json!({ "subject": {
        "type": "ServiceAccount",
        "serviceAccount": { "namespace": "n", "name": "a" },
    } });
    let object = set("s", with(good(), "/spec/executor", executor)["spec"].take(), placements);
    let verdict = manifest_work_replica_set(&object, None, &Rules::default());
    let Verdict::NeedsReview { review, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!((&*review.namespace, &*review.name), ("", "system:serviceaccount:n:a"));
}

#[test]
fn a_pattern_in_a_rule_is_warned_of() {
    let option = json!({
        "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphan": [{ "resource": "configmaps", "name": "*" }],
    });
    let verdict =
        manifest_work(&with(good(), "/spec/deleteOption", option), None, &Rules::default());
    let Verdict::Allowed { warnings } = verdict else { panic!("{verdict:?}") };
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("names one object"), "{warnings:?}");
}

/// JSON made of the words that count here, and of others.
fn anything() -> impl Strategy<Value = Value> {
    const WORDS: [&str; 20] = [
        "metadata",
        "spec",
        "workload",
        "manifests",
        "deleteOption",
        "executor",
        "subject",
        "serviceAccount",
        "name",
        "namespace",
        "generateName",
        "apiVersion",
        "kind",
        "v1",
        "deletionTimestamp",
        "propagationPolicy",
        "SelectivelyOrphan",
        "selectivelyOrphan",
        "manifestWorkTemplate",
        "placementRefs",
    ];
    let word = prop_oneof![
        4 => proptest::sample::select(&WORDS[..]).prop_map(str::to_owned),
        1 => ".{0,6}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((word.clone(), inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(object in anything(), old in proptest::option::of(anything()), limit in 0_usize..200) {
        let rules = Rules { manifest_bytes: limit, ..Rules::default() };
        for verdict in [
            manifest_work(&object, old.as_ref(), &rules),
            manifest_work_replica_set(&object, old.as_ref(), &rules),
        ] {
            if let Verdict::Refused(refusal) = verdict {
                prop_assert!(!refusal.message.is_empty());
                prop_assert!(refusal.message.len() < 8 * 1024);
            }
        }
        // Once it is there, it can always be left as it is.
        let kept = manifest_work(&object, Some(&object), &rules);
        prop_assert_eq!(kept, Verdict::Allowed { warnings: Vec::new() });
    }
}
