//! From one choice to another, write by write, with crashes in between: a cluster that was chosen
//! and still is must be listed at every moment.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use std::collections::{BTreeMap, BTreeSet};

use alloc::sync::Arc;
use alloc::{format, vec};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::write::{Action, Write};

/// Decisions as a server would hold them.
#[derive(Clone, Default)]
struct Server {
    decisions: BTreeMap<String, Value>,
    revision: u64,
}

impl Server {
    fn observe(&self, seen: &mut Observed) {
        seen.decisions = self
            .decisions
            .values()
            .map(|object| {
                let metadata = serde_json::from_value(object["metadata"].clone()).unwrap();
                Arc::new(Decision::read(&metadata, object))
            })
            .collect();
    }

    fn listed(&self) -> BTreeSet<String> {
        let lists = self.decisions.values().filter_map(|one| one["status"]["decisions"].as_array());
        lists.flatten().map(|one| one["clusterName"].as_str().unwrap().to_owned()).collect()
    }

    fn perform(&mut self, action: &Action) {
        self.revision += 1;
        let revision = self.revision.to_string();
        let name = &action.target.id.name;
        let checked = |object: &Value, patch: &Value| {
            assert_eq!(object["metadata"]["uid"], patch["metadata"]["uid"]);
            assert_eq!(object["metadata"]["resourceVersion"], patch["metadata"]["resourceVersion"]);
        };
        match &action.write {
            Write::Create(object) => {
                let mut object = object.clone();
                object["metadata"]["uid"] = format!("uid-{revision}").into();
                object["metadata"]["resourceVersion"] = revision.into();
                object["metadata"]["creationTimestamp"] = at(900).into();
                assert!(self.decisions.insert(name.clone(), object).is_none());
            }
            Write::Merge(patch) => {
                let object = self.decisions.get_mut(name).unwrap();
                checked(object, patch);
                object["metadata"]["labels"] = patch["metadata"]["labels"].clone();
                object["metadata"]["ownerReferences"] =
                    patch["metadata"]["ownerReferences"].clone();
                object["metadata"]["resourceVersion"] = revision.into();
            }
            Write::MergeStatus(patch) => {
                let object = self.decisions.get_mut(name).unwrap();
                checked(object, patch);
                object["status"] = patch["status"].clone();
                object["metadata"]["resourceVersion"] = revision.into();
            }
            Write::Delete { uid, .. } => {
                let object = self.decisions.remove(name).unwrap();
                assert_eq!(object["metadata"]["uid"], uid.as_str());
            }
            other => panic!("{other:?}"),
        }
    }
}

fn fleet(names: &BTreeSet<u16>, groups: u16) -> Vec<Arc<Cluster>> {
    let label = |name: &u16| json!({ "group": format!("g{}", name % groups.max(1)) });
    names.iter().map(|name| plain(&format!("c{name:04}"), label(name))).collect()
}

fn spec(groups: u16, size: u16) -> Value {
    let named = (0..groups).map(|group| {
        json!({ "groupName": format!("g{group}"), "groupClusterSelector": {
            "labelSelector": { "matchLabels": { "group": format!("g{group}") } } } })
    });
    json!({ "decisionStrategy": { "groupStrategy": {
        "decisionGroups": named.collect::<Vec<_>>(), "clustersPerDecisionGroup": size,
    } } })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_cluster_that_stays_is_ever_missing(
        stages in proptest::collection::vec(
            (proptest::collection::btree_set(0u16..400, 0..300), 1u16..4, 1u16..250, 0usize..4),
            1..4,
        ),
    ) {
        let mut server = Server::default();
        let mut before: BTreeSet<String> = BTreeSet::new();
        for (index, (names, groups, size, crash)) in stages.iter().enumerate() {
            let last = index + 1 == stages.len();
            let mut seen = seen(spec(*groups, *size), fleet(names, *groups));
            let wanted: BTreeSet<String> = seen.clusters.iter().map(|one| one.name.clone()).collect();
            let staying: BTreeSet<String> = before.intersection(&wanted).cloned().collect();
            let mut passes = 0;
            loop {
                server.observe(&mut seen);
                let selection = choose(&seen, &words).unwrap();
                let plan = plan(&seen, &selection);
                if plan.is_empty() || (!last && passes > *crash) {
                    break;
                }
                for action in plan.iter().flatten() {
                    server.perform(action);
                    prop_assert!(staying.is_subset(&server.listed()));
                }
                passes += 1;
                prop_assert!(passes < 20, "does not settle");
            }
            // What was listed when it was interrupted is what somebody may have acted on.
            before = server.listed();
            if last {
                prop_assert_eq!(server.listed(), wanted);
                for decision in server.decisions.values() {
                    prop_assert!(decision["status"]["decisions"].as_array().unwrap().len() <= 100);
                }
                server.observe(&mut seen);
                let selection = choose(&seen, &words).unwrap();
                prop_assert!(report(&seen, Ok(&selection), &vec![], &[]).status.is_some());
            }
        }
    }
}

#[test]
fn a_decision_for_nobody_lists_nobody() {
    let mut seen = seen(json!({}), vec![]);
    let selection = choose(&seen, &words).unwrap();
    assert!(matches!(&plan(&seen, &selection)[0][0].write, Write::Create(_)));
    seen.decisions = vec![decision("p-decision-1", 0, None)];
    let plan = plan(&seen, &selection);
    let Write::MergeStatus(patch) = &plan[0][0].write else { panic!("{plan:?}") };
    assert_eq!(patch["status"], json!({ "decisions": [] }));
}
