//! Clusters that come back, and decisions that were made while they were away.

use alloc::string::String;

use super::*;

/// The hub decides `all`, and looked at it last at this second; it began long ago.
fn looked(seen: &mut Observed, second: Option<i64>) {
    let second = second.map(|second| Timestamp::from_second(second).unwrap());
    seen.sightings.looked.insert("all".into(), second);
}

fn last_away(seen: &mut Observed, second: i64) {
    seen.sightings.away.insert("b".into(), Timestamp::from_second(second).unwrap());
}

/// Copies on a and b, and only a is chosen, for b was away. `since`: what b says.
fn returned(since: i64) -> Observed {
    let mut seen = seen();
    settle(&mut seen);
    decide(&mut seen, "all", settled(&["a"]));
    seen.clusters.extend([cluster("b", Some(("True", since)))]);
    seen
}

const NOW: i64 = 1_000_000;

fn wake(seen: &Observed) -> Option<i64> {
    report(seen, &vec![], &[]).wake.map(|after| after.as_secs())
}

fn is_kept(seen: &Observed) -> bool {
    plan(seen).is_empty()
}

#[test]
fn a_cluster_whose_clock_is_slow_was_pruned_when_it_came_back() {
    // It came back two seconds ago; by its own clock a minute before.
    let mut seen = returned(NOW - 62);
    last_away(&mut seen, NOW - 2);
    looked(&mut seen, Some(NOW - 1));
    assert!(is_kept(&seen));
    assert_eq!(wake(&seen), Some(8));
    assert!(told(&seen)["status"][1]["message"].as_str().unwrap().contains("has just come back"));
    // And then what the placement says counts.
    seen.now = Timestamp::from_second(NOW + 8).unwrap();
    assert!(removes(&plan(&seen)));
}

#[test]
fn a_cluster_whose_taint_went_a_minute_after_it_was_back_was_pruned() {
    // The hub was away: the condition is an old one, and the taint went just now.
    let mut seen = returned(NOW - 60);
    last_away(&mut seen, NOW);
    looked(&mut seen, Some(NOW - 100));
    assert!(is_kept(&seen));
    assert_eq!(wake(&seen), Some(10));
    // Nobody has decided since: time does not help.
    seen.now = Timestamp::from_second(NOW + 600).unwrap();
    assert!(is_kept(&seen));
    assert_eq!(wake(&seen), Some(1));
    // It is told when that lasts, and what the cluster said still counts.
    says(&mut seen, "b", "NonCompliant");
    seen.unsure_since = Some(now());
    let status = told(&seen);
    assert!(status["status"][1]["message"].as_str().unwrap().contains("Placement all"), "{status}");
    assert_eq!(status["compliant"], "NonCompliant");
    let mut chosen = seen.clone();
    decide(&mut chosen, "all", settled(&["a", "b"]));
    assert!(is_kept(&chosen));
    looked(&mut seen, Some(NOW + 1));
    assert!(removes(&plan(&seen)));
}

#[test]
fn a_return_is_noticed_by_every_placement_before_it_counts_that_none_chose_the_cluster() {
    let mut seen = returned(NOW - 60);
    seen.bindings.push(binding("more", "other", json!({})));
    decide(&mut seen, "other", settled(&[]));
    last_away(&mut seen, NOW - 30);
    looked(&mut seen, Some(NOW - 20));
    let mut second = |looked: Option<i64>| {
        let looked = looked.map(|second| Timestamp::from_second(second).unwrap());
        seen.sightings.looked.insert("other".into(), looked);
        is_kept(&seen)
    };
    assert!(second(None));
    assert!(second(Some(NOW - 40)));
    assert!(!second(Some(NOW - 20)));
}

#[test]
fn a_hub_that_begins_decides_once_before_it_takes_anything_away() {
    let mut seen = returned(1);
    seen.sightings.since = now();
    looked(&mut seen, None);
    assert!(is_kept(&seen));
    assert_eq!(wake(&seen), Some(1));
    assert_eq!(told(&seen)["status"][1].get("message"), None::<&Value>);
    looked(&mut seen, Some(NOW));
    assert!(removes(&plan(&seen)));
    // Where others decide, they get as long as when a cluster is seen to come back.
    seen.sightings.looked.clear();
    assert!(is_kept(&seen));
    assert_eq!(wake(&seen), Some(10));
    let message: String = told(&seen)["status"][1]["message"].as_str().unwrap().into();
    assert!(message.contains("or the hub, has just come back"), "{message}");
}
