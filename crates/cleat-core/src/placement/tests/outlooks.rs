//! What a placement would decide, and why it would decide nothing.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use serde_json::json;

use super::*;
use crate::placement::outlook::outlook;

#[test]
fn what_would_be_decided_is_what_is_chosen() {
    let both = vec![plain("a", json!({ "env": "dev" })), plain("b", json!({ "env": "prod" }))];
    let selector = json!({ "labelSelector": { "matchLabels": { "env": "dev" } } });
    let dev = json!({ "predicates": [{ "requiredClusterSelector": selector }] });
    let seen = seen(dev, both);
    let decided = outlook(&seen, &words).unwrap();
    let names: Vec<String> = decided.clusters().map(str::to_owned).collect();
    assert_eq!(names, ["a"]);
    assert_eq!(names, chosen(&seen));
}

#[test]
fn what_may_take_nothing_out_decides_nothing_new() {
    let mut lost = seen(json!({}), vec![]);
    lost.decisions = vec![decision("p-decision-1", 0, Some(&["a"]))];
    lost.defined = since(0, 0, 950);
    let why = outlook(&lost, &words).unwrap_err();
    assert!(why.contains("there is no ManagedCluster a"), "{why}");
    lost.defined = Defined::Unasked;
    assert_eq!(outlook(&lost, &words), Err("what it chooses from is not known".to_owned()));
    lost.wish.elsewhere = true;
    let why = outlook(&lost, &words).unwrap_err();
    assert_eq!(why, "its clusters are chosen by somebody else");
}
