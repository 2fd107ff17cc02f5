//! A hub small enough to hold in one hand: performs plans on a map, and looks at what comes of it.

use std::collections::BTreeMap;

use super::*;
use crate::registration::join::Namesake;

const NAME: &str = "c1";

struct Hub {
    cluster: Value,
    parts: BTreeMap<Part, Value>,
    namesakes: Vec<Namesake>,
    heartbeat: Heartbeat,
    now: i64,
    gone: bool,
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn beat(renewed: i64, seen: i64) -> Heartbeat {
    Heartbeat { renewed: Some(at(renewed)), seen: Some(at(seen)), sight: lease::Sight::Watched }
}

impl Hub {
    fn new(accepts: bool) -> Self {
        let cluster = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1",
            "kind": "ManagedCluster",
            "metadata": {
                "name": NAME, "uid": "u", "resourceVersion": "1", "generation": 1,
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": { "cleat.dev/cluster-id": "id-1" },
            },
            "spec": { "hubAcceptsClient": accepts },
        });
        Self {
            cluster,
            parts: BTreeMap::new(),
            namesakes: Vec::new(),
            heartbeat: Heartbeat::default(),
            now: 1000,
            gone: false,
        }
    }

    fn observe(&self) -> Observed {
        let seen = |part: Part| self.parts.get(&part).cloned().map_or(Seen::Absent, Seen::Present);
        Observed {
            cluster: serde_json::from_value(self.cluster.clone()).unwrap(),
            parts: Part::ALL.into_iter().map(|part| (part, seen(part))).collect(),
            namesakes: self.namesakes.clone(),
            hub_id: Some("hub".to_string()),
            heartbeat: self.heartbeat,
            now: at(self.now),
        }
    }

    fn perform(&mut self, action: &Action) -> Outcome {
        let part = Part::ALL.into_iter().find(|part| part.target(NAME) == action.target);
        match (&action.write, part) {
            (Write::Merge(patch) | Write::MergeStatus(patch), None) => {
                assert_eq!(patch["metadata"]["uid"], "u", "which cluster is a precondition");
                merge(&mut self.cluster, patch);
                let finalizers = self.cluster["metadata"]["finalizers"].as_array();
                let held = finalizers.is_some_and(|all| !all.is_empty());
                self.gone = self.cluster["metadata"]["deletionTimestamp"].is_string() && !held;
            }
            (Write::Merge(patch), Some(part)) => merge(self.parts.get_mut(&part).unwrap(), patch),
            (Write::Create(_), Some(part)) if self.parts.contains_key(&part) => {
                return Outcome::AlreadyExists;
            }
            (Write::Apply { object, .. } | Write::Create(object), Some(part)) => {
                let inner = !part.target(NAME).id.namespace.is_empty();
                assert!(!inner || self.parts.contains_key(&Part::Namespace), "{part:?} too early");
                assert!(self.finalized(), "{part:?} before the finalizer");
                let mut object = object.clone();
                object["metadata"]["uid"] = json!(format!("{part:?}"));
                self.parts.insert(part, object);
            }
            (Write::Delete { uid, .. }, Some(part)) => {
                assert_eq!(*uid, format!("{part:?}"));
                let finalizers = &self.parts[&part]["metadata"]["finalizers"];
                assert!(finalizers.as_array().is_none_or(Vec::is_empty), "{part:?} is held");
                self.parts.remove(&part);
            }
            other => panic!("{other:?}"),
        }
        Outcome::Done(Value::Null)
    }

    fn finalized(&self) -> bool {
        self.cluster["metadata"]["finalizers"] == json!([FINALIZER])
    }

    /// Passes until there is nothing to do and nothing to tell.
    fn settle(&mut self) -> Verdict {
        for _ in 0..10 {
            let seen = self.observe();
            let mut done = Vec::new();
            for step in plan(&seen) {
                done.push(step.iter().map(|action| self.perform(action)).collect());
            }
            let changed = !done.is_empty();
            // The status is written only of an observation that is still true.
            if changed {
                continue;
            }
            let verdict = report(&seen, &done);
            match &verdict.status {
                Some(status) => drop(self.perform(status)),
                None => return verdict,
            }
            if self.gone {
                return verdict;
            }
        }
        panic!("did not settle: {:#?}", plan(&self.observe()));
    }

    fn condition(&self, kind: &str) -> Option<(String, String)> {
        let conditions = self.cluster["status"]["conditions"].as_array()?;
        let found = conditions.iter().find(|one| one["type"] == kind)?;
        let text = |field: &str| found[field].as_str().unwrap().to_string();
        Some((text("status"), text("reason")))
    }

    fn taints(&self) -> Vec<&str> {
        let taints = self.cluster["spec"]["taints"].as_array();
        taints.into_iter().flatten().map(|taint| taint["key"].as_str().unwrap()).collect()
    }
}

fn merge(object: &mut Value, patch: &Value) {
    match (object, patch) {
        (Value::Object(object), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    object.remove(key);
                } else if value.is_object() {
                    merge(object.entry(key.clone()).or_insert(json!({})), value);
                } else {
                    object.insert(key.clone(), value.clone());
                }
            }
        }
        (object, patch) => *object = patch.clone(),
    }
}

fn said(status: &str, reason: &str) -> Option<(String, String)> {
    Some((status.to_string(), reason.to_string()))
}

#[test]
fn nothing_is_made_for_a_cluster_nobody_accepted() {
    let mut hub = Hub::new(false);
    hub.settle();
    assert!(hub.parts.is_empty() && !hub.finalized());
    assert_eq!(hub.condition(kind::ACCEPTED), None);
    assert_eq!(hub.cluster["metadata"]["labels"][CLUSTER_SET_LABEL], DEFAULT);
    assert_eq!(hub.taints(), [cleat_api::managedcluster::taint::UNREACHABLE]);
}

#[test]
fn an_accepted_cluster_has_its_place_and_its_rights() {
    let mut hub = Hub::new(true);
    hub.settle();
    assert_eq!(hub.parts.keys().copied().collect::<Vec<_>>(), Part::ALL);
    assert_eq!(hub.condition(kind::ACCEPTED), said("True", reason::ACCEPTED));
    for (part, object) in &hub.parts {
        assert_eq!(object["metadata"]["labels"]["open-cluster-management.io/cluster-name"], NAME);
        assert_eq!(object["metadata"]["name"], part.target(NAME).id.name);
    }
    // What somebody takes away or adds to is put right.
    hub.parts.remove(&Part::Work);
    hub.parts.get_mut(&Part::Role).unwrap()["rules"] = json!([{ "verbs": ["*"] }]);
    hub.settle();
    let role = Part::Role.wanted(NAME, Standing::Accepted);
    assert_eq!(hub.parts[&Part::Role]["rules"], role["rules"]);
    assert!(hub.parts.contains_key(&Part::Work));
}

#[test]
fn whoever_renews_a_lease_owns_it() {
    let mut hub = Hub::new(true);
    hub.settle();
    hub.parts.get_mut(&Part::Lease).unwrap()["spec"]["holderIdentity"] = json!("other");
    hub.settle();
    assert_eq!(hub.parts[&Part::Lease]["spec"]["holderIdentity"], "other");
}

#[test]
fn denial_takes_effect_even_with_works_present() {
    let mut hub = Hub::new(true);
    hub.settle();
    hub.cluster["spec"]["hubAcceptsClient"] = json!(false);
    hub.settle();
    assert_eq!(hub.condition(kind::ACCEPTED), said("False", reason::DENIED));
    assert!(!hub.parts.contains_key(&Part::Work) && !hub.parts.contains_key(&Part::Registration));
    let rules = hub.parts[&Part::Role]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0]["verbs"], json!(["get", "list", "watch"]));
    assert_eq!(rules[0]["resourceNames"], json!([NAME]));
    hub.cluster["spec"]["hubAcceptsClient"] = json!(true);
    hub.settle();
    assert_eq!(hub.condition(kind::ACCEPTED), said("True", reason::ACCEPTED));
    assert!(hub.parts.contains_key(&Part::Work));
}

#[test]
fn what_a_leaving_cluster_has_is_not_touched_here() {
    let mut hub = Hub::new(true);
    hub.settle();
    hub.cluster["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    hub.parts.remove(&Part::Role);
    let before = hub.cluster.clone();
    hub.settle();
    assert!(!hub.parts.contains_key(&Part::Role));
    assert_eq!(hub.cluster, before);
}

#[test]
fn what_was_not_seen_is_neither_made_nor_taken_away() {
    let mut hub = Hub::new(true);
    hub.settle();
    let mut seen = hub.observe();
    seen.parts.clear();
    assert_eq!(plan(&seen), Plan::new());
    seen.cluster.spec.hub_accepts_client = false;
    assert_eq!(plan(&seen), Plan::new());
    hub.cluster["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut seen = hub.observe();
    seen.parts.clear();
    assert_eq!(plan(&seen), Plan::new(), "the finalizer stays");
}

#[test]
fn the_hub_itself_and_a_second_name_are_refused() {
    let mut hub = Hub::new(true);
    hub.cluster["metadata"]["annotations"]["cleat.dev/cluster-id"] = json!("hub");
    hub.settle();
    assert_eq!(hub.condition(kind::ACCEPTED), said("False", reason::REFUSED));
    assert!(hub.parts.is_empty() && !hub.finalized());

    let mut hub = Hub::new(true);
    hub.namesakes =
        vec![Namesake { name: "other".to_string(), taken_in: true, since: "2027".to_string() }];
    hub.settle();
    assert_eq!(hub.condition(kind::ACCEPTED), said("False", reason::REFUSED));
    assert!(hub.parts.is_empty());
    hub.namesakes.clear();
    hub.settle();
    assert_eq!(hub.condition(kind::ACCEPTED), said("True", reason::ACCEPTED));
    // Who was taken in stays, whoever comes after.
    hub.namesakes =
        vec![Namesake { name: "a".to_string(), taken_in: false, since: "2020".to_string() }];
    hub.settle();
    assert_eq!(hub.condition(kind::ACCEPTED), said("True", reason::ACCEPTED));
}

#[test]
fn a_namespace_that_goes_is_waited_for() {
    let mut hub = Hub::new(true);
    let namespace = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    hub.parts.insert(Part::Namespace, namespace);
    hub.settle();
    assert_eq!(hub.condition(kind::ACCEPTED), said("False", reason::ERROR));
    assert_eq!(hub.parts.len(), 1);
}

#[test]
fn a_namespace_that_was_there_before_is_not_taken_over() {
    let mut hub = Hub::new(true);
    let theirs =
        json!({ "metadata": { "name": NAME, "uid": "theirs", "labels": { "team": "x" } } });
    hub.parts.insert(Part::Namespace, theirs.clone());
    let verdict = hub.settle();
    assert_eq!(hub.condition(kind::ACCEPTED), said("False", reason::REFUSED));
    assert_eq!(hub.parts, [(Part::Namespace, theirs)].into(), "it is not touched");
    assert!(!hub.finalized(), "there is nothing to take away when it leaves");
    assert_eq!(verdict.wake, Some(AGAIN), "no watch tells when it is gone");
    let told = hub.cluster["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(told.contains("kubectl label namespace c1"), "{told}");
    // Whoever labels it means it.
    hub.parts.get_mut(&Part::Namespace).unwrap()["metadata"]["labels"] =
        json!({ "open-cluster-management.io/cluster-name": NAME });
    hub.settle();
    assert_eq!(hub.condition(kind::ACCEPTED), said("True", reason::ACCEPTED));
    assert_eq!(hub.parts[&Part::Namespace]["metadata"]["uid"], "theirs");
}

#[test]
fn a_namespace_made_between_the_look_and_the_write_is_not_taken_over() {
    let hub = Hub::new(true);
    let seen = hub.observe();
    let writes = plan(&seen).into_iter().flatten();
    let namespace = writes.filter(|one| one.target == Part::Namespace.target(NAME));
    let creates: Vec<bool> = namespace.map(|one| matches!(one.write, Write::Create(_))).collect();
    assert_eq!(creates, [true]);
}

#[test]
fn a_label_that_somebody_took_off_a_clusters_namespace_comes_back() {
    let mut hub = Hub::new(true);
    hub.settle();
    hub.parts.get_mut(&Part::Namespace).unwrap()["metadata"]["labels"] = json!({});
    hub.settle();
    assert!(place::is_labelled(&hub.parts[&Part::Namespace], NAME));
    assert_eq!(hub.condition(kind::ACCEPTED), said("True", reason::ACCEPTED));
}

#[test]
fn nobody_is_taken_in_while_the_namespace_cannot_be_read() {
    let hub = Hub::new(true);
    let mut seen = hub.observe();
    seen.parts.insert(Part::Namespace, Seen::Unknown);
    let touched: Vec<_> = plan(&seen).into_iter().flatten().map(|one| one.target).collect();
    assert_eq!(touched, [target(NAME)], "the finalizer and no place");
    let verdict = report(&seen, &[]);
    assert_eq!((verdict.status, verdict.wake), (None, Some(AGAIN)));
}

#[test]
fn a_silent_cluster_becomes_unknown_and_tainted_and_comes_back() {
    use cleat_api::managedcluster::taint::UNREACHABLE;
    let mut hub = Hub::new(true);
    hub.settle();
    let available = |status: &str, reason: &str| {
        json!([{
            "type": kind::AVAILABLE, "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }])
    };
    hub.cluster["status"]["conditions"] = available("True", reason::AVAILABLE);
    hub.heartbeat = beat(1000, 1000);
    let verdict = hub.settle();
    assert!(hub.taints().is_empty());
    assert_eq!(verdict.wake, Some(SignedDuration::from_secs(300)), "it looks when the lease ends");
    assert_eq!(hub.condition(kind::CLOCK_SYNCED), said("True", reason::CLOCK_SYNCED));

    hub.now = 1300;
    let verdict = hub.settle();
    assert_eq!(verdict.wake, None, "only a renewal changes this");
    assert_eq!(hub.condition(kind::AVAILABLE), said("Unknown", reason::LEASE_UPDATE_STOPPED));
    assert_eq!(hub.taints(), [UNREACHABLE]);

    hub.heartbeat = beat(1301, 1400);
    hub.now = 1400;
    hub.cluster["status"]["conditions"] = available("True", reason::AVAILABLE);
    hub.settle();
    assert!(hub.taints().is_empty());
    assert_eq!(hub.condition(kind::CLOCK_SYNCED), said("False", reason::CLOCK_OUT_OF_SYNC));
}

#[test]
fn an_agent_that_dies_before_its_first_renewal_is_noticed() {
    let mut hub = Hub::new(true);
    hub.settle();
    hub.cluster["status"]["conditions"] = json!([{
        "type": kind::AVAILABLE, "status": "True", "reason": reason::AVAILABLE, "message": "",
        "lastTransitionTime": at(1000).to_string(),
    }]);
    assert_eq!(hub.settle().wake, Some(SignedDuration::from_secs(300)));
    hub.now = 1300;
    hub.settle();
    assert_eq!(hub.condition(kind::AVAILABLE), said("Unknown", reason::LEASE_UPDATE_STOPPED));
}

#[test]
fn a_refused_write_is_told_and_tried_again() {
    let hub = Hub::new(true);
    let seen = hub.observe();
    let refusal = crate::write::Refusal {
        code: 403,
        reason: "Forbidden".to_string(),
        message: "no namespaces today".to_string(),
    };
    let done = vec![vec![Outcome::Done(Value::Null)], vec![Outcome::Refused(refusal)]];
    let verdict = report(&seen, &done);
    assert_eq!(verdict.wake, Some(AGAIN));
    let Some(Action { write: Write::MergeStatus(patch), .. }) = verdict.status else {
        panic!("nothing was told");
    };
    let conditions = &patch["status"]["conditions"];
    assert_eq!(conditions[0]["reason"], reason::ERROR);
    assert_eq!(conditions[0]["message"], "no namespaces today");
}
