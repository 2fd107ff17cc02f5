use alloc::string::ToString;
use alloc::vec;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn facts() -> Facts {
    let resources = |cpu: &str| {
        let all = [("cpu", cpu), ("memory", "8Gi")];
        all.map(|(key, value)| (key.to_string(), Quantity(value.to_string()))).into()
    };
    let node = || Node { capacity: resources("4"), allocatable: resources("3500m") };
    Facts {
        failing: None,
        version: Some("v1.36.0".to_string()),
        nodes: Some(vec![node(), node()]),
        claims: Some(Vec::new()),
        cluster_id: "id-1".to_string(),
        hub_hash: "hash-1".to_string(),
        agent_namespace: String::new(),
    }
}

fn patch(cluster: &ManagedCluster, facts: &Facts, now: i64) -> Option<Value> {
    let seen = Observed { cluster, facts, renewal: None, now: at(now) };
    match report(&seen)?.write {
        Write::MergeStatus(patch) => Some(patch["status"].clone()),
        other => panic!("{other:?}"),
    }
}

/// The cluster as it is once it was told.
fn told(cluster: &ManagedCluster, status: &Value) -> ManagedCluster {
    let mut object = serde_json::to_value(cluster).unwrap();
    let mut all = object["status"].as_object().cloned().unwrap_or_default();
    for (key, value) in status.as_object().unwrap() {
        if value.is_null() {
            all.remove(key);
        } else if let (Some(Value::Object(old)), Value::Object(new)) = (all.get_mut(key), value) {
            for (key, value) in new {
                if value.is_null() {
                    old.remove(key);
                } else {
                    old.insert(key.clone(), value.clone());
                }
            }
        } else {
            all.insert(key.clone(), value.clone());
        }
    }
    object["status"] = Value::Object(all);
    serde_json::from_value(object).unwrap()
}

#[test]
fn a_cluster_says_how_it_is_once() {
    let cluster = ManagedCluster::default();
    let status = patch(&cluster, &facts(), 100).unwrap();
    assert_eq!(status["capacity"], json!({ "cpu": "8", "memory": "16Gi" }));
    assert_eq!(status["allocatable"], json!({ "cpu": "7", "memory": "16Gi" }));
    assert_eq!(status["version"], json!({ "kubernetes": "v1.36.0" }));
    let claims = json!([
        { "name": "clusterid.cleat.dev", "value": "id-1" },
        { "name": "hubhash.cleat.dev", "value": "hash-1" },
        { "name": "id.k8s.io", "value": "id-1" },
        { "name": "kubeversion.open-cluster-management.io", "value": "v1.36.0" },
    ]);
    assert_eq!(status["clusterClaims"], claims);
    let types: Vec<_> = status["conditions"].as_array().unwrap().iter().collect();
    assert_eq!(types.len(), 2);
    assert!(types.iter().all(|one| one["status"] == "True"));
    assert_eq!(patch(&told(&cluster, &status), &facts(), 200), None, "nothing new");
}

#[test]
fn what_could_not_be_read_stays_and_what_is_gone_goes() {
    let cluster = ManagedCluster::default();
    let cluster = told(&cluster, &patch(&cluster, &facts(), 100).unwrap());
    let blind = Facts { version: None, nodes: None, claims: None, ..facts() };
    assert_eq!(patch(&cluster, &blind, 200), None);
    let empty = Facts { nodes: Some(Vec::new()), ..facts() };
    let status = patch(&cluster, &empty, 200).unwrap();
    assert_eq!(status["capacity"], Value::Null);
    let cluster = told(&cluster, &status);
    assert!(cluster.status.as_ref().unwrap().capacity.is_empty());
    assert_eq!(patch(&cluster, &empty, 300), None);
}

#[test]
fn a_failing_api_server_is_given_twenty_seconds() {
    let cluster = ManagedCluster::default();
    let cluster = told(&cluster, &patch(&cluster, &facts(), 100).unwrap());
    let failing = Facts { failing: Some((at(110), "503".to_string())), ..facts() };
    assert_eq!(patch(&cluster, &failing, 129), None);
    let status = patch(&cluster, &failing, 130).unwrap();
    let cluster = told(&cluster, &status);
    let conditions = cluster.status.as_ref().unwrap().conditions.as_slice();
    let available = condition::find(conditions, kind::AVAILABLE).unwrap();
    assert_eq!((&*available.status, &*available.reason), ("False", reason::API_SERVER_UNAVAILABLE));
    let status = patch(&cluster, &facts(), 140).unwrap();
    assert_eq!(status["conditions"][1]["status"], "True");
}

#[test]
fn claims_are_sorted_and_bounded_and_may_replace_ours() {
    let claim = |name: String, value: &str| ManagedClusterClaim { name, value: value.to_string() };
    let mut claims: Vec<_> = (0..40).map(|n| claim(format!("x{n:02}"), "v")).collect();
    claims.reverse();
    claims.push(claim(ID_CLAIM.to_string(), "own"));
    claims.push(claim(HUB_HASH_CLAIM.to_string(), "another hub's"));
    claims.push(claim(AGENT_NAMESPACE_CLAIM.to_string(), "another's"));
    claims.push(claim(CLUSTER_ID_CLAIM.to_string(), "another"));
    let given = [(ID_CLAIM, "id-1"), (VERSION_CLAIM, "v1")];
    let own = [(CLUSTER_ID_CLAIM, "id-1"), (HUB_HASH_CLAIM, "hash-1"), (AGENT_NAMESPACE_CLAIM, "")];
    let all = known(&claims, given, own);
    assert_eq!(all.len(), MOST_CLAIMS + 4);
    // Which cluster it is, which ledgers are ours, and where it lives, nobody but the agent may say.
    assert_eq!((&*all[0].name, &*all[0].value), (CLUSTER_ID_CLAIM, "id-1"));
    assert_eq!((&*all[1].name, &*all[1].value), (HUB_HASH_CLAIM, "hash-1"));
    assert!(all.iter().all(|one| one.name != AGENT_NAMESPACE_CLAIM));
    assert_eq!((&*all[2].name, &*all[2].value), (ID_CLAIM, "own"));
    assert_eq!(all[4].name, "x00");
    assert!(all[4..].is_sorted());
}

#[test]
fn certificates_are_renewed_with_a_fifth_to_a_quarter_left() {
    assert_eq!(renew_at(at(0), at(1000), 0), at(800));
    assert_eq!(renew_at(at(0), at(1000), u16::MAX), at(750));
    let middle = renew_at(at(0), at(1000), 30000);
    assert!(middle > at(750) && middle < at(800));
    assert_eq!(renew_at(at(5), at(5), 7), at(5));
}

#[test]
fn an_application_carries_only_what_is_the_agents_to_say() {
    let annotations = [("agent.open-cluster-management.io/x", "1"), ("other", "2")];
    let application = Application {
        name: "c1".to_string(),
        cluster_id: "id-1".to_string(),
        remove_strategy: RemoveStrategy::Required,
        annotations: annotations.map(|(k, v)| (k.to_string(), v.to_string())).into(),
        ..Application::default()
    };
    let Action { write: Write::Create(object), .. } = apply(&application) else { panic!() };
    let annotations =
        json!({ "agent.open-cluster-management.io/x": "1", "cleat.dev/cluster-id": "id-1" });
    assert_eq!(object["metadata"]["annotations"], annotations);
    assert_eq!(object["spec"]["removeStrategy"], "Required");
    assert_eq!(object["spec"]["hubAcceptsClient"], false);
}
