//! What is not known: nothing is taken away for it, nobody else waits for it, and it is told.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec;

use serde_json::{Value, json};

use super::*;

fn verbs(seen: &Observed) -> String {
    let plan = plan(seen);
    let verb = |action: &Action| {
        let verb = match action.write {
            Write::Create(_) => "create",
            Write::Replace(_) => "replace",
            Write::Delete { .. } => "delete",
            _ => "other",
        };
        format!("{verb} {}", action.target.id.namespace)
    };
    plan.iter().flatten().map(verb).collect::<Vec<_>>().join(", ")
}

fn later(seen: &mut Observed, seconds: i64) {
    seen.now = Timestamp::from_second(seen.now.as_second() + seconds).unwrap();
}

fn message_of(seen: &Observed, cluster: &str) -> String {
    let status = told(seen);
    let all = status["status"].as_array().unwrap();
    let one = all.iter().find(|one| one["clustername"] == cluster);
    one.and_then(|one| one.get("message")?.as_str()).unwrap_or_default().to_owned()
}

#[test]
fn one_thing_that_cannot_be_asked_holds_up_no_other_cluster() {
    let mut seen = seen();
    settle(&mut seen);
    decide(&mut seen, "all", settled(&["a", "c"]));
    assert_eq!(verbs(&seen), "create c, delete b");
    seen.asked = Asked::Failed("the server did not say".into());
    assert_eq!(verbs(&seen), "create c");
    settle(&mut seen);
    says(&mut seen, "a", "Compliant");
    says(&mut seen, "b", "NonCompliant");
    // A moment of it is not worth telling.
    let first = report(&seen, &vec![], &[]);
    assert_eq!((first.unsure_since, first.wake.unwrap().as_secs()), (Some(seen.now), 5));
    assert_eq!(message_of(&seen, "b"), "");
    assert_eq!(told(&seen)["compliant"], "NonCompliant");
    seen.unsure_since = first.unsure_since;
    later(&mut seen, 10);
    assert_eq!(
        message_of(&seen, "b"),
        "held: the server did not say; nothing is removed until that is known"
    );
    let events = report(&seen, &vec![], &[]).events;
    assert!(events.iter().any(|one| one.warning && one.message.contains("did not say")));
    // A root that is gone is not known to be.
    seen.root = None;
    assert_eq!(verbs(&seen), "");
    seen.asked = Asked::NotYet;
    assert_eq!(verbs(&seen), "delete a, delete b, delete c");
}

#[test]
fn a_placement_that_does_not_decide_for_long_is_told() {
    let mut seen = seen();
    settle(&mut seen);
    decide(&mut seen, "all", Decided::Undecided);
    let first = report(&seen, &vec![], &[]);
    assert_eq!(first.wake.unwrap().as_secs(), 10);
    seen.unsure_since = first.unsure_since;
    later(&mut seen, 10);
    let message = message_of(&seen, "a");
    assert!(message.starts_with("held: Placement all has not decided"), "{message}");
    let again = report(&seen, &vec![], &[]);
    assert_eq!((again.wake, again.unsure_since), (None, first.unsure_since));
    // Only what places counts.
    let mut restricted = seen.clone();
    decide(&mut restricted, "all", settled(&["a"]));
    let more = json!({ "subFilter": "restricted" });
    restricted.bindings.push(binding("over", "none", more));
    assert_eq!(verbs(&restricted), "delete b");
    assert_eq!(report(&restricted, &vec![], &[]).unsure_since, None);
}

#[test]
fn a_rule_that_lists_nobody_chose_nobody() {
    let decided = |rule: Value| {
        let mut rule = rule;
        rule["metadata"] = json!({ "name": "r" });
        Source::of_rule(Some((&metadata(&rule), &rule)))
    };
    assert_eq!(decided(json!({})), Decided::Undecided);
    assert_eq!(decided(json!({ "status": null })), Decided::Undecided);
    assert_eq!(decided(json!({ "status": {} })), settled(&[]));
    assert_eq!(decided(json!({ "status": { "decisions": null } })), settled(&[]));
    assert_eq!(decided(json!({ "status": { "decisions": "a" } })), Decided::Unknown);
    let list = json!([{ "clusterName": "a" }]);
    assert_eq!(decided(json!({ "status": { "decisions": list } })), settled(&["a"]));
}

type Change<'a> = &'a dyn Fn(&mut Observed);

/// Copies that were made at second 500.
fn old() -> Observed {
    let mut seen = seen();
    settle(&mut seen);
    for replica in seen.replicas.values_mut() {
        Arc::make_mut(replica).created = Some(Timestamp::from_second(500).unwrap());
    }
    seen
}

fn since(kinds: [i64; 4]) -> Asked {
    let [bindings, sets, placements, rules] =
        kinds.map(|second| Timestamp::from_second(second).unwrap());
    Asked::Since { bindings, sets, placements, rules: Some(rules) }
}

/// The policy is bound to a rule instead, and that is not there.
fn without_rule(seen: &mut Observed) {
    let reference = json!({ "kind": "PlacementRule", "name": "old" });
    seen.bindings = vec![binding("bind", "", json!({ "placementRef": reference }))];
    seen.decided = [(Source::Rule("old".into()), Decided::NoPlacement)].into();
}

#[test]
fn a_copy_stays_where_what_placed_it_went_with_its_definition() {
    let cases: [(Change<'_>, [i64; 4], &str); 4] = [
        (&|seen| seen.bindings.clear(), [501, 0, 0, 0], "there is no PlacementBinding of it"),
        (
            &|seen| {
                let subjects = json!([{ "kind": "PolicySet", "name": "s" }]);
                seen.bindings = vec![binding("bind", "all", json!({ "subjects": subjects }))];
            },
            [0, 501, 0, 0],
            "there is no PolicySet s",
        ),
        (
            &|seen| decide(seen, "all", Decided::NoPlacement),
            [0, 0, 501, 0],
            "there is no Placement all",
        ),
        (&without_rule, [0, 0, 0, 501], "there is no PlacementRule old"),
    ];
    for (change, kinds, words) in cases {
        let mut seen = old();
        change(&mut seen);
        // What a human took away from kinds that stayed is taken away.
        seen.asked = since([500; 4]);
        assert_eq!(verbs(&seen), "delete a, delete b", "{words}");
        seen.asked = since(kinds);
        assert_eq!(verbs(&seen), "", "{words}");
        seen.unsure_since = Some(now());
        later(&mut seen, 10);
        let message = message_of(&seen, "a");
        assert!(message.contains(words) && message.contains("delete Policy a/team.p"), "{message}");
    }
}

#[test]
fn what_is_missing_is_named_though_both_kinds_are_new() {
    let mut seen = old();
    let subjects = json!([{ "kind": "PolicySet", "name": "s" }]);
    seen.bindings = vec![binding("bind", "all", json!({ "subjects": subjects }))];
    seen.asked = since([501, 501, 0, 0]);
    seen.unsure_since = Some(now());
    later(&mut seen, 10);
    let message = message_of(&seen, "a");
    assert!(message.contains("there is no PolicySet s"), "{message}");
}

#[test]
fn a_copy_stays_while_the_definition_of_what_placed_it_is_going() {
    let mut seen = old();
    without_rule(&mut seen);
    let placements = Timestamp::MIN;
    let (bindings, sets) = (placements, placements);
    seen.asked = Asked::Since { bindings, sets, placements, rules: None };
    assert_eq!(verbs(&seen), "");
    // One that is missing for good hides none that is not.
    seen.bindings.push(binding("another", "all", json!({})));
    decide(&mut seen, "all", Decided::NoPlacement);
    assert_eq!(verbs(&seen), "");
    seen.asked = since([500; 4]);
    assert_eq!(verbs(&seen), "delete a, delete b");
    // Nobody else needs the kind.
    let mut seen = old();
    decide(&mut seen, "all", settled(&["a"]));
    seen.asked = Asked::Since { bindings, sets, placements, rules: None };
    assert_eq!(verbs(&seen), "delete b");
}

#[test]
fn a_template_that_hangs_is_told_of_a_copy_that_stays() {
    let mut seen = seen();
    settle(&mut seen);
    let hangs = Some("Terminating; violation - x is still there".to_owned());
    Arc::make_mut(seen.replicas.get_mut("a").unwrap()).said = hangs;
    assert_eq!(
        message_of(&seen, "a"),
        "a template is held by the cluster: Terminating; violation - x is still there"
    );
    assert_eq!(report(&seen, &vec![], &[]).events.len(), 1);
}
