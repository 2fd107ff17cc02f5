use serde_json::{Value, json};

use super::*;

fn wish() -> Wish<'static> {
    Wish { name: "c1", cluster_id: "id-1", hub_id: Some("hub"), hub: "https://h", again: false }
}

fn cluster(id: Option<&str>, more: Value) -> ManagedCluster {
    let mut object = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": { "name": "c1", "annotations": {} }, "spec": {},
    });
    if let Some(id) = id {
        object["metadata"]["annotations"][CLUSTER_ID] = json!(id);
    }
    for (key, value) in more.as_object().unwrap() {
        object[key.as_str()] = value.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn joined() -> Value {
    let condition = json!({
        "type": kind::JOINED, "status": "True", "reason": "J", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    json!({ "status": { "conditions": [condition] } })
}

#[test]
fn strangers_and_those_prepared_for_may_join() {
    assert_eq!(check(&wish(), None, None), Ok(()));
    assert_eq!(check(&wish(), Some(&cluster(None, json!({}))), None), Ok(()));
    assert_eq!(check(&wish(), Some(&cluster(Some("id-1"), json!({}))), None), Ok(()));
    let again = Wish { again: true, ..wish() };
    let record = Record { name: "c1".to_string(), hub: "https://h".to_string() };
    assert_eq!(check(&again, Some(&cluster(Some("id-1"), joined())), Some(&record)), Ok(()));
}

#[test]
fn joining_a_second_hub_overwrote_the_credentials_for_the_first() {
    let elsewhere = Record { name: "c1".to_string(), hub: "https://other".to_string() };
    for again in [false, true] {
        let wish = Wish { again, ..wish() };
        let refused = check(&wish, None, Some(&elsewhere)).unwrap_err();
        assert!(matches!(refused, Refusal::OtherHub { .. }), "{refused}");
        assert!(refused.to_string().contains("--agent-namespace"), "{refused}");
    }
    // One hub under two addresses is one hub, if it says so.
    let again = Wish { again: true, ..wish() };
    let known = cluster(Some("id-1"), joined());
    assert_eq!(check(&again, Some(&known), Some(&elsewhere)), Ok(()));
}

#[test]
fn every_refusal_says_what_to_do() {
    let record = |name: &str| Record { name: name.to_string(), hub: "https://h".to_string() };
    let leaving = cluster(
        Some("id-1"),
        json!({ "metadata": { "name": "c1", "deletionTimestamp": "2026-01-01T00:00:00Z" } }),
    );
    let mut own = leaving.clone();
    own.metadata.annotations = Some([(CLUSTER_ID.to_string(), "id-1".to_string())].into());
    let taken = cluster(Some("id-2"), json!({}));
    let twice = cluster(Some("id-1"), joined());
    let cases = [
        (Wish { name: "C_1", ..wish() }, None, None, "lower-case letters"),
        (Wish { name: "managed-clusters", ..wish() }, None, None, "not `managed-clusters`"),
        (Wish { cluster_id: "hub", ..wish() }, None, None, "Choose another cluster"),
        (wish(), None, Some(record("c1")), "use `cleat agent`"),
        (wish(), Some(&twice), None, "add --again"),
        (wish(), None, Some(record("c0")), "`cleat unjoin c0`"),
        (Wish { again: true, ..wish() }, None, Some(record("c0")), "`cleat unjoin c0`"),
        (wish(), Some(&taken), None, "Choose another name"),
        (Wish { again: true, ..wish() }, Some(&taken), None, "id-2"),
        (wish(), Some(&leaving), None, "Wait until"),
        (Wish { again: true, ..wish() }, Some(&leaving), None, "Wait until"),
        (wish(), Some(&own), None, "add --again and it gets new ones"),
    ];
    for (wish, existing, record, hint) in cases {
        let refused = check(&wish, existing, record.as_ref()).unwrap_err().to_string();
        assert!(refused.contains(hint), "{refused}");
    }
}

#[test]
fn a_cluster_whose_certificate_had_expired_could_not_come_back_to_leave() {
    let metadata = json!({
        "name": "c1", "deletionTimestamp": "2026-01-01T00:00:00Z",
        "annotations": { CLUSTER_ID: "id-1" },
    });
    let leaving = cluster(None, json!({ "metadata": metadata }));
    let record = Record { name: "c1".to_string(), hub: "https://h".to_string() };
    let again = Wish { again: true, ..wish() };
    for record in [Some(&record), None] {
        assert_eq!(check(&again, Some(&leaving), record), Ok(()));
    }
    let another = Wish { cluster_id: "id-2", ..again };
    assert!(matches!(check(&another, Some(&leaving), None), Err(Refusal::Leaving { .. })));
}

#[test]
fn a_cluster_is_known_by_what_it_came_with_or_what_it_says() {
    let claims =
        json!({ "status": { "clusterClaims": [{ "name": "id.k8s.io", "value": "said" }] } });
    assert_eq!(id(&cluster(Some("came"), claims.clone())), Some("came"));
    assert_eq!(id(&cluster(None, claims)), Some("said"));
    assert_eq!(id(&cluster(None, json!({}))), None);
}

#[test]
fn of_two_names_for_one_cluster_the_first_stays() {
    let cluster = cluster(Some("id-1"), json!({ "spec": { "hubAcceptsClient": true } }));
    let other = |taken_in, since: &str| Namesake {
        name: "c0".to_string(),
        taken_in,
        since: since.to_string(),
    };
    assert_eq!(refused_by_hub(&cluster, &[], None), None);
    assert!(refused_by_hub(&cluster, &[other(true, "z")], None).unwrap().contains("as c0"));
    assert_eq!(refused_by_hub(&cluster, &[other(false, "z")], None), None);
    assert!(refused_by_hub(&cluster, &[], Some("id-1")).unwrap().contains("the hub itself"));
    let mut open = cluster.clone();
    open.metadata.name = Some("managed-clusters".to_string());
    assert!(refused_by_hub(&open, &[], None).unwrap().contains("managed-clusters"));
}
