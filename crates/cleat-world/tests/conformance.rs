//! The conformance suite is whole. Runs on neither side: it looks at the suite's own files.

use cleat_world::conformance::Suite;

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
