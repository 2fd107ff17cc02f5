use serde_json::json;

use super::*;

fn cluster(name: &str, available: &str) -> Cluster {
    let metadata = serde_json::from_value(json!({ "name": name })).unwrap();
    let condition = json!({ "type": "ManagedClusterConditionAvailable", "status": available });
    Cluster::read(&metadata, &json!({ "status": { "conditions": [condition] } }))
}

fn keys() -> impl Iterator<Item = Key> {
    ["p", "q"].map(|name| ("team".to_owned(), name.to_owned())).into_iter()
}

#[test]
fn a_cluster_is_away_until_it_is_seen_back_and_looks_begin_before_or_after() {
    let watched = Watched::new();
    let (there, away) = (cluster("c", "True"), cluster("c", "Unknown"));
    watched.saw(None, Some(&there));
    let seen = watched.of(keys());
    assert!(seen.away.is_empty());
    assert_eq!(seen.looked.values().collect::<Vec<_>>(), [&None, &None]);

    watched.saw(Some(&there), Some(&away));
    let first = watched.of(keys()).away["c"];
    let second = watched.of(keys()).away["c"];
    assert!(second > first, "it is still away");

    let before = watched.begin();
    watched.saw(Some(&away), Some(&there));
    let after = watched.begin();
    watched.looked(("team".into(), "p".into()), before);
    watched.looked(("team".into(), "q".into()), after);
    let seen = watched.of(keys());
    assert_eq!(seen.away["c"], watched.of(keys()).away["c"]);
    assert!(seen.looked["p"] < Some(seen.away["c"]) && seen.looked["q"] > Some(seen.away["c"]));
    // What is told again of one that is there is no return.
    watched.saw(Some(&there), Some(&there));
    assert_eq!(watched.of(keys()).away, seen.away);

    watched.saw(Some(&there), None);
    watched.forget(&("team".into(), "p".into()));
    let seen = watched.of(keys());
    assert!(seen.away.is_empty() && seen.looked["p"].is_none());
}
