//! Our server answers as a real one was recorded to. Runs on the embedded side only: the real one's
//! answers are what it is compared with, and `cargo xtask conformance` does both at once.

use std::collections::BTreeSet;
use std::time::Duration;

use cleat_world::conformance::{Suite, embedded};

#[test]
fn every_case_is_recorded_and_every_record_has_its_case() {
    let suite = Suite::load(&Suite::folder()).unwrap();
    assert_eq!(suite.strays().unwrap(), Vec::<String>::new());
    let recorded = suite.recorded().unwrap();
    for case in suite.cases() {
        let answers = recorded.get(&case.name).unwrap_or_else(|| panic!("{}", case.name));
        for (step, answer) in answers {
            let wrong = answer.get("not played").or(answer.get("until")).or(answer.get("late"));
            assert_eq!(wrong, None, "{} step {step} was not answered", case.name);
        }
    }
}

/// `pending.txt` names the cases that still differ; a case that is not there must be equal.
#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_server_answers_as_the_real_one_did() {
    let mut suite = Suite::load(&Suite::folder()).unwrap();
    suite.set_patience(Duration::from_secs(5));
    let pending = std::fs::read_to_string(Suite::folder().join("pending.txt")).unwrap_or_default();
    let pending: BTreeSet<&str> =
        pending.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();

    let (server, ours) = embedded().await.unwrap();
    let answers = suite.play(&ours, "recorded").await.unwrap();
    server.stop().await;
    let mut report = suite.compare(&suite.recorded().unwrap(), &answers);

    let no_longer_pending: Vec<&&str> =
        pending.iter().filter(|name| report.conforming.contains(**name)).collect();
    println!("equal, so no longer pending: {no_longer_pending:?}");
    report.unlisted.retain(|difference| !pending.contains(difference.case.as_str()));
    assert!(report.passed(), "{report}");
}
