use proptest::prelude::*;
use serde_json::json;

use super::*;

fn review(operation: &str, object: Value, old: Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": { "uid": "u", "operation": operation, "object": object, "oldObject": old },
    })
}

fn is_refused(path: &str, review: &Value) -> bool {
    let question = Question::read(path, review).unwrap();
    match question.judge(&Rules::default()) {
        Judgement::Spec(verdict) => matches!(verdict, Verdict::Refused(_)),
        Judgement::Cluster(demand) => !demand.objections.is_empty(),
    }
}

#[test]
fn creates_and_updates_are_judged_and_nothing_else() {
    let bad = json!({ "metadata": { "name": "w" }, "spec": {} });
    let other = json!({ "metadata": { "name": "w" }, "spec": { "workload": {} } });
    for path in [MANIFEST_WORK_PATH, MANIFEST_WORK_REPLICA_SET_PATH] {
        assert!(is_refused(path, &review("CREATE", bad.clone(), Value::Null)));
        assert!(is_refused(path, &review("UPDATE", bad.clone(), other.clone())));
        assert!(!is_refused(path, &review("UPDATE", bad.clone(), bad.clone())));
        assert!(!is_refused(path, &review("DELETE", Value::Null, bad.clone())));
        let mut status = review("UPDATE", bad.clone(), other.clone());
        status["request"]["subResource"] = json!("status");
        assert!(!is_refused(path, &status));
    }
}

#[test]
fn answers_carry_the_uid_and_a_status() {
    let asked = review("CREATE", json!({}), Value::Null);
    let question = Question::read(MANIFEST_WORK_PATH, &asked).unwrap();
    let allowed = question.allow(&["careful".to_owned()]);
    let expected = json!({ "uid": "u", "allowed": true, "warnings": ["careful"] });
    assert_eq!(allowed["response"], expected);
    let refused = question.refuse(&No::Bad("no".to_owned()));
    assert_eq!(
        refused,
        json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": { "uid": "u", "allowed": false, "status": {
                "status": "Failure", "code": 400, "reason": "BadRequest", "message": "no",
            } },
        })
    );
}

#[test]
fn what_is_no_review_is_not_answered() {
    let asked = review("CREATE", json!({}), Value::Null);
    assert_eq!(Question::read("/other", &asked).err(), Some(BadReview::UnknownPath));
    let mut old = asked.clone();
    old["apiVersion"] = json!("admission.k8s.io/v1beta1");
    let mut without = asked;
    without["request"].as_object_mut().unwrap().remove("uid");
    for wrong in [old, without, json!([]), Value::Null, json!({ "kind": "AdmissionReview" })] {
        let read = Question::read(MANIFEST_WORK_PATH, &wrong);
        assert_eq!(read.err(), Some(BadReview::NotAReview), "{wrong}");
    }
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(words in proptest::collection::vec(".{0,8}", 8), operation in "CREATE|UPDATE|DELETE") {
        let object = json!({ &words[0]: &words[1], "spec": { &words[2]: [&words[3]] } });
        let old = json!({ &words[4]: &words[5], "spec": { &words[6]: { &words[7]: null } } });
        let asked = review(&operation, object, old);
        for path in [MANIFEST_WORK_PATH, MANIFEST_WORK_REPLICA_SET_PATH] {
            let question = Question::read(path, &asked).unwrap();
            let _ = question.judge(&Rules::default());
        }
    }
}

#[test]
fn whoever_makes_a_cluster_that_is_accepted_must_be_allowed_to_accept() {
    let cluster = |accepts: bool| {
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": { "name": "c1" }, "spec": { "hubAcceptsClient": accepts },
        })
    };
    let demand = |operation: &str, new: Value, old: Value| {
        let asked = review(operation, new, old);
        let question = Question::read(MANAGED_CLUSTER_PATH, &asked).unwrap();
        match question.judge(&Rules::default()) {
            Judgement::Cluster(demand) => demand,
            Judgement::Spec(_) => panic!("it is a cluster"),
        }
    };
    let made = demand("CREATE", cluster(true), Value::Null);
    assert_eq!(made.rights.len(), 1);
    assert_eq!(made.rights[0].to_string(), "update managedclusters/accept c1");
    assert_eq!(made.lasting.as_deref(), Some("c1"));
    assert_eq!(demand("CREATE", cluster(false), Value::Null), Demand::default());
    assert_eq!(demand("UPDATE", cluster(true), cluster(false)).rights.len(), 1);
    assert_eq!(demand("UPDATE", cluster(true), cluster(true)), Demand::default());
    assert_eq!(demand("CREATE", json!({ "spec": 7 }), Value::Null).objections.len(), 1);
}
