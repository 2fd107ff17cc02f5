//! Random lives of a policy: decisions, clusters that come and go, blind spots, meddlers. A copy is
//! only ever deleted where somebody said so while the cluster could be reached.

use alloc::string::String;
use alloc::vec::Vec;

use alloc::{format, vec};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Decide(Vec<u8>),
    Blind,
    Away(u8, bool),
    Meddle(u8),
    Remove(u8),
    Edit(u8),
    Disable(bool),
    Pass,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => proptest::collection::vec(0u8..5, 0..5).prop_map(Step::Decide),
        1 => Just(Step::Blind),
        2 => (0u8..5, any::<bool>()).prop_map(|(index, away)| Step::Away(index, away)),
        1 => (0u8..5).prop_map(Step::Meddle),
        1 => (0u8..5).prop_map(Step::Remove),
        1 => (0u8..4).prop_map(Step::Edit),
        1 => any::<bool>().prop_map(Step::Disable),
        4 => Just(Step::Pass),
    ]
}

fn name(index: u8) -> String {
    format!("c{index}")
}

/// Whether a plan may delete this cluster's copy, judged without the planner.
fn may_go(seen: &Observed, chosen: &Option<Vec<String>>, cluster: &str) -> bool {
    let disabled = seen.root.as_ref().unwrap().disabled;
    let away = seen.clusters[cluster].is_away();
    match chosen {
        _ if disabled => true,
        None => false,
        Some(chosen) => !chosen.iter().any(|one| one == cluster) && !away,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn lives_end_well(steps in proptest::collection::vec(step(), 1..40)) {
        let mut seen = seen();
        seen.clusters = (0..5).map(|index| cluster(&name(index), Some(("True", 1)))).collect();
        let mut chosen: Option<Vec<String>> = Some(vec![]);
        decide(&mut seen, "all", settled(&[]));
        let mut severity = 0;
        let mut disabled = false;
        let root = |severity: u8, disabled: bool| {
            let mut spec = spec();
            spec["disabled"] = json!(disabled);
            spec["policy-templates"][0]["objectDefinition"]["spec"]["severity"] = json!(severity);
            Some(root_with(spec, Value::Null))
        };
        for step in steps.into_iter().chain([Step::Disable(false), Step::Decide(vec![1, 3])]) {
            match step {
                Step::Decide(indexes) => {
                    let names: Vec<String> = indexes.into_iter().map(name).collect();
                    let texts: Vec<&str> = names.iter().map(|one| &**one).collect();
                    decide(&mut seen, "all", settled(&texts));
                    chosen = Some(names);
                }
                Step::Blind => {
                    decide(&mut seen, "all", Decided::Unknown);
                    chosen = None;
                }
                Step::Away(index, away) => {
                    let status = if away { "Unknown" } else { "True" };
                    seen.clusters.extend([cluster(&name(index), Some((status, 1)))]);
                }
                Step::Meddle(index) => {
                    let object = json!({ "metadata": {
                        "namespace": name(index), "name": "team.p", "uid": "u", "resourceVersion": "3",
                    }, "spec": {} });
                    if seen.replicas.contains_key(&name(index)) {
                        let replica = Replica::read(&metadata(&object), &object);
                        seen.replicas.insert(name(index), Arc::new(replica));
                    }
                }
                Step::Remove(index) => drop(seen.replicas.remove(&name(index))),
                Step::Edit(value) => {
                    severity = value;
                    seen.root = root(severity, disabled);
                }
                Step::Disable(value) => {
                    disabled = value;
                    seen.root = root(severity, disabled);
                }
                Step::Pass => {
                    let plan = plan(&seen);
                    for action in plan.iter().flatten() {
                        if matches!(action.write, Write::Delete { .. }) {
                            prop_assert!(may_go(&seen, &chosen, &action.target.id.namespace));
                        }
                    }
                    let _ = report(&seen, &plan, &[]);
                    perform(&mut seen, &plan);
                }
            }
        }
        // In the end all are back, and what was decided is.
        seen.clusters = (0..5).map(|index| cluster(&name(index), Some(("True", 1)))).collect();
        settle(&mut seen);
        prop_assert_eq!(has(&seen), "c1 c3");
        prop_assert_eq!(told(&seen)["status"].as_array().unwrap().len(), 2);
    }
}
