//! What takes no cluster out of a decision.

use alloc::vec;

use serde_json::json;

use super::*;
use crate::write::Write;

/// A placement that chose a and b, of which nothing is chosen any more for want of what `change`
/// takes away.
fn without(change: impl FnOnce(&mut Observed)) -> Observed {
    let mut seen = seen(json!({}), vec![plain("a", json!({})), plain("b", json!({}))]);
    seen.decisions = vec![decision("p-decision-1", 0, Some(&["a", "b"]))];
    change(&mut seen);
    seen
}

fn unbound(seen: &mut Observed) {
    seen.bound.clear();
}

fn setless(seen: &mut Observed) {
    seen.bound.clear();
    seen.lost = vec!["all".into()];
}

type Change<'a> = &'a dyn Fn(&mut Observed);

/// What becomes of the decision: written anew, or kept with these words.
fn judged(seen: &Observed) -> Result<usize, String> {
    let selection = choose(seen, &words).unwrap();
    let plan = plan(seen, &selection);
    let verdict = report(seen, Ok(&selection), &plan, &[]);
    match plan.first() {
        Some(step) => Ok(step.len()),
        None => {
            assert!(verdict.wake.is_some(), "nobody looks again");
            let Some(Write::MergeStatus(patch)) = verdict.status.map(|status| status.write) else {
                return Err(String::new());
            };
            let condition = &patch["status"]["conditions"][0];
            assert_eq!(condition["type"], "PlacementMisconfigured");
            assert_eq!(condition["status"], "True");
            Err(condition["message"].as_str().unwrap().into())
        }
    }
}

#[test]
fn a_cluster_leaves_a_decision_only_after_the_server_was_asked() {
    for change in [unbound, setless, |seen: &mut Observed| drop(seen.clusters.remove(0))] {
        let mut seen = without(change);
        assert_eq!(judged(&seen), Ok(1));
        seen.defined = Defined::Unasked;
        // Not to know for a moment is not worth telling.
        assert_eq!(judged(&seen), Err(String::new()));
    }
    // Whoever takes nothing out need not ask.
    let mut more = without(|_| {});
    more.clusters.push(plain("c", json!({})));
    more.defined = Defined::Unasked;
    assert_eq!(judged(&more), Ok(1));
}

#[test]
fn a_definition_that_goes_takes_no_cluster_along() {
    for change in [unbound, setless, |seen: &mut Observed| seen.clusters.clear()] {
        let mut seen = without(change);
        seen.defined = Defined::Gone("somethings.example.com".into());
        let why = judged(&seen).unwrap_err();
        assert!(why.contains("the definition somethings.example.com is going or gone"), "{why}");
    }
}

#[test]
fn what_went_with_its_definition_is_missed_when_the_definition_returns() {
    // The decision is of second 900.
    let cases: [(Change<'_>, Defined, &str); 3] = [
        (&unbound, since(901, 0, 0), "there is no ManagedClusterSetBinding in n"),
        (&setless, since(0, 901, 0), "there is no ManagedClusterSet all"),
        (&|seen| drop(seen.clusters.pop()), since(0, 0, 901), "there is no ManagedCluster b"),
    ];
    for (change, defined, words) in cases {
        let mut seen = without(|seen| change(seen));
        seen.defined = defined;
        let why = judged(&seen).unwrap_err();
        assert!(why.starts_with(words) && why.contains("p-decision-1"), "{why}");
        // A decision that was made after that is taken at its word.
        let mut young = Decision::clone(&seen.decisions[0]);
        young.created = Some(Timestamp::from_second(901).unwrap());
        seen.decisions = vec![Arc::new(young)];
        assert_eq!(judged(&seen), Ok(1));
    }
    // What a human takes away from what is there counts, whatever was defined when.
    let mut seen = without(|seen| {
        seen.clusters[1] = cluster(json!({ "metadata": { "name": "b", "labels": {} } }));
    });
    seen.defined = since(901, 901, 901);
    assert_eq!(judged(&seen), Ok(1));
}

#[test]
fn a_set_that_cannot_be_read_takes_no_cluster_along() {
    let seen = without(|seen| {
        let mut set = ManagedClusterSet::clone(&seen.bound[0]);
        set.spec.cluster_selector.selector_type =
            cleat_api::managedclusterset::SelectorType::Unknown;
        seen.bound = vec![Arc::new(set)];
    });
    let Misconfigured(why) = choose(&seen, &words).unwrap_err();
    assert!(why.contains("ManagedClusterSet all"), "{why}");
}
