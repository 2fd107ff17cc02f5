//! Our server answers as a real one was recorded to. Runs on the embedded side only: the real one's
//! answers are what it is compared with, and `cargo xtask conformance` does both at once.

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

/// Differences that are meant stand in `differences.yaml`; any other fails, and so does one that is
/// listed and gone.
#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_server_answers_as_the_real_one_did() {
    let suite = Suite::load(&Suite::folder()).unwrap();
    let (server, ours) = embedded().await.unwrap();
    let answers = suite.play(&ours, "recorded").await.unwrap();
    server.stop().await;
    let report = suite.compare(&suite.recorded().unwrap(), &answers);
    println!("{report}");
    assert!(report.passed(), "{report}");
}
