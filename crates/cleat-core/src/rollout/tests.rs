use alloc::string::ToString as _;
use alloc::vec;

use jiff::SignedDuration;
use proptest::prelude::{Strategy as Generator, proptest};
use proptest::{prop_assert, prop_assert_eq};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn group(index: i64, name: &str, clusters: &[&str]) -> Group {
    let clusters = clusters.iter().map(|name| name.to_string()).collect();
    Group { name: name.into(), index, clusters }
}

fn progressive(at_once: Option<Amount>, max_failures: Amount) -> Strategy {
    let kind = Kind::Progressive { at_once, mandatory: vec![] };
    Strategy { kind, max_failures, ..Strategy::default() }
}

fn per_group(max_failures: Amount) -> Strategy {
    let kind = Kind::ProgressivePerGroup { mandatory: vec![] };
    Strategy { kind, max_failures, ..Strategy::default() }
}

/// `a+ b- c~ d…`: succeeded, failed, progressing, applying; all since second 100.
fn told(text: &str) -> BTreeMap<String, Progress> {
    let since = Some(at(100));
    let one = |word: &str| {
        let mark = word.chars().last().unwrap();
        let progress = match mark {
            '+' => Progress::Succeeded { since },
            '-' => Progress::Failed { since },
            '~' => Progress::Progressing { since },
            _ => Progress::Applying { since },
        };
        (word.trim_end_matches(mark).to_string(), progress)
    };
    text.split_whitespace().map(one).collect()
}

/// Who is due at second `now`, and `!` if the rollout stopped.
fn check(strategy: &Strategy, groups: &[Group], progress: &str, now: i64, expected: &str) {
    let rollout = advance(strategy, groups, &told(progress), at(now));
    let mut due: Vec<&str> = rollout.due().collect();
    due.extend(rollout.stopped.as_ref().map(|_| "!"));
    assert_eq!(due.join(" "), expected, "{progress}: {rollout:?}");
}

#[test]
fn all_goes_everywhere_at_once_whatever_fails() {
    let groups = [group(0, "", &["a", "b"]), group(1, "", &["c"])];
    check(&Strategy::default(), &groups, "", 100, "a b c");
    check(&Strategy::default(), &groups, "a- b-", 100, "c");
    check(&Strategy::default(), &groups, "a+ b~ c…", 100, "");
}

#[test]
fn progressive_keeps_no_more_clusters_busy_than_it_may() {
    let groups = [group(0, "", &["a", "b", "c", "d"])];
    let two = progressive(Some(Amount::Count(2)), Amount::NONE);
    check(&two, &groups, "", 100, "a b");
    check(&two, &groups, "a… b~", 100, "");
    check(&two, &groups, "a+ b~", 100, "c");
    check(&two, &groups, "a+ b+", 100, "c d");
    let half = progressive(Some(Amount::Percent(50)), Amount::NONE);
    check(&half, &groups, "a+", 100, "b c");
    // A third of four clusters is two, and no clusters at once means no limit.
    check(&progressive(Some(Amount::Percent(33)), Amount::NONE), &groups, "", 100, "a b");
    check(&progressive(Some(Amount::NONE), Amount::NONE), &groups, "", 100, "a b c d");
    check(&progressive(None, Amount::NONE), &groups, "", 100, "a b c d");
}

#[test]
fn progressive_stops_when_more_fail_than_may() {
    let groups = [group(0, "", &["a", "b", "c", "d"])];
    let two = Some(Amount::Count(2));
    check(&progressive(two, Amount::NONE), &groups, "a- b+", 100, "!");
    check(&progressive(two, Amount::Count(1)), &groups, "a- b+", 100, "c");
    check(&progressive(two, Amount::Count(1)), &groups, "a- b-", 100, "!");
    // A quarter of four.
    check(&progressive(two, Amount::Percent(10)), &groups, "a- b+", 100, "c");
    // Asking to tolerate more failures than there are clusters tolerates all.
    check(&progressive(two, Amount::Count(9)), &groups, "a- b+", 100, "c");
}

#[test]
fn a_failure_holds_its_place_until_the_deadline() {
    let groups = [group(0, "", &["a", "b"])];
    let one = progressive(Some(Amount::Count(1)), Amount::Count(1));
    check(&one, &groups, "a-", 1_000_000, "");
    let one = Strategy { deadline: Some(SignedDuration::from_secs(60)), ..one };
    check(&one, &groups, "a-", 159, "");
    check(&one, &groups, "a-", 160, "b");
    let rollout = advance(&one, &groups, &told("a-"), at(120));
    assert_eq!(rollout.wake, Some(at(160)));
}

#[test]
fn a_cluster_that_never_answers_times_out_too() {
    let groups = [group(0, "", &["a", "b"])];
    let one = progressive(Some(Amount::Count(1)), Amount::NONE);
    let one = Strategy { deadline: Some(SignedDuration::from_secs(60)), ..one };
    check(&one, &groups, "a…", 159, "");
    check(&one, &groups, "a…", 160, "!");
    check(&one, &groups, "a~", 160, "!");
    let rollout = advance(&one, &groups, &told("a…"), at(160));
    assert_eq!(rollout.count(Standing::TimedOut), 1);
    assert_eq!(rollout.wake, None);
}

#[test]
fn success_counts_after_it_has_lasted() {
    let groups = [group(0, "", &["a", "b"])];
    let soak =
        |strategy: Strategy| Strategy { min_success: SignedDuration::from_secs(30), ..strategy };
    let one = soak(progressive(Some(Amount::Count(1)), Amount::NONE));
    check(&one, &groups, "a+", 129, "");
    check(&one, &groups, "a+", 130, "b");
    let rollout = advance(&one, &groups, &told("a+"), at(110));
    assert_eq!((rollout.count(Standing::Soaking), rollout.wake), (1, Some(at(130))));
    let groups = [group(0, "", &["a"]), group(1, "", &["b"])];
    check(&soak(per_group(Amount::NONE)), &groups, "a+", 129, "");
    check(&soak(per_group(Amount::NONE)), &groups, "a+", 130, "b");
    // Going everywhere at once waits for nothing.
    let rollout = advance(&soak(Strategy::default()), &groups, &told("a+"), at(110));
    assert_eq!((rollout.count(Standing::Succeeded), rollout.wake), (1, None));
}

#[test]
fn groups_follow_each_other_in_their_order() {
    let groups = [group(2, "", &["a"]), group(0, "", &["x", "y"]), group(1, "", &["m", "n"])];
    let strict = per_group(Amount::NONE);
    check(&strict, &groups, "", 100, "x y");
    check(&strict, &groups, "x+ y~", 100, "");
    check(&strict, &groups, "x+ y+", 100, "m n");
    check(&strict, &groups, "x+ y+ m-", 100, "!");
    check(&strict, &groups, "x+ y+ m+ n+", 100, "a");
    // Half of each group may fail.
    let lenient = per_group(Amount::Percent(50));
    check(&lenient, &groups, "x+ y-", 100, "m n");
    check(&lenient, &groups, "x- y-", 100, "!");
    check(&lenient, &groups, "x+ y- m+ n-", 100, "a");
}

#[test]
fn mandatory_groups_come_first_and_may_not_fail() {
    let groups = [group(0, "", &["a", "b"]), group(1, "canary", &["y", "z"])];
    for picks in [vec![Pick::Name("canary".into())], vec![Pick::Index(1)]] {
        let mut strategy = progressive(Some(Amount::Count(1)), Amount::Count(9));
        strategy.kind =
            Kind::Progressive { at_once: Some(Amount::Count(1)), mandatory: picks.clone() };
        check(&strategy, &groups, "", 100, "y z");
        check(&strategy, &groups, "y+ z~", 100, "");
        check(&strategy, &groups, "y+ z-", 100, "!");
        check(&strategy, &groups, "y+ z+", 100, "a");
        strategy.kind = Kind::ProgressivePerGroup { mandatory: picks };
        check(&strategy, &groups, "y+ z-", 100, "!");
        check(&strategy, &groups, "y+ z+", 100, "a b");
    }
}

#[test]
fn amounts_and_times_are_read_as_they_are_written() {
    assert_eq!(Amount::parse("3"), Ok(Amount::Count(3)));
    assert_eq!(Amount::parse("25%"), Ok(Amount::Percent(25)));
    for wrong in ["", "%", "101%", "-1", "a", "1.5%"] {
        assert!(Amount::parse(wrong).is_err(), "{wrong}");
    }
    let seconds = |text| Strategy::parse_duration(text).map(|span| span.as_secs()).ok();
    assert_eq!(seconds("0"), Some(0));
    assert_eq!(seconds("90s"), Some(90));
    assert_eq!(seconds("1h30m0s"), Some(5400));
    assert_eq!(seconds("0.5h"), Some(1800));
    for wrong in ["", "5", "h", "1d", "-3s", "1.2.3s", "99999999999999999999h", "1h "] {
        assert_eq!(seconds(wrong), None, "{wrong}");
    }
    assert_eq!(Strategy::parse_deadline("None"), Ok(None));
    assert_eq!(Strategy::parse_deadline("2m"), Ok(Some(SignedDuration::from_secs(120))));
}

fn any_progress() -> impl Generator<Value = Progress> {
    let since = proptest::option::of((0_i64..200).prop_map(at));
    (0..5_u8, since).prop_map(|(kind, since)| match kind {
        0 => Progress::Pending,
        1 => Progress::Applying { since },
        2 => Progress::Progressing { since },
        3 => Progress::Failed { since },
        _ => Progress::Succeeded { since },
    })
}

proptest! {
    #[test]
    fn durations_never_panic(text in "\\PC{0,20}|[0-9hms.]{0,40}") {
        let _ = Strategy::parse_duration(&text);
        let _ = Amount::parse(&text);
    }

    /// However clusters fare: none beyond the limit is let in, none after a stop, and time alone
    /// moves nothing before the announced wake.
    #[test]
    fn rollouts_keep_their_limits(
        progress in proptest::collection::btree_map("[a-h]", any_progress(), 0..8),
        at_once in 1..4_usize,
        failures in 0..3_usize,
        deadline in proptest::option::of(1..100_i64),
        soak in 0..100_i64,
    ) {
        let groups = [group(0, "", &["a", "b", "c", "d"]), group(1, "", &["e", "f", "g", "h"])];
        let limited = Some(Amount::Count(at_once));
        for kind in [
            Kind::Progressive { at_once: limited, mandatory: vec![] },
            Kind::ProgressivePerGroup { mandatory: vec![] },
        ] {
            let strategy = Strategy {
                kind: kind.clone(),
                min_success: SignedDuration::from_secs(soak),
                deadline: deadline.map(SignedDuration::from_secs),
                max_failures: Amount::Count(failures),
            };
            let rollout = advance(&strategy, &groups, &progress, at(200));
            let due = rollout.count(Standing::Due);
            let busy = due + rollout.count(Standing::Underway) + rollout.count(Standing::Soaking);
            if matches!(kind, Kind::Progressive { .. }) && due > 0 {
                prop_assert!(busy + rollout.count(Standing::Failed) <= at_once);
                prop_assert!(rollout.stopped.is_none());
            }
            for name in rollout.due() {
                let progress = progress.get(name).copied().unwrap_or(Progress::Pending);
                prop_assert_eq!(progress, Progress::Pending);
            }
            if let Some(wake) = rollout.wake {
                prop_assert!(wake > at(200));
                let before = wake.checked_sub(SignedDuration::from_nanos(1)).unwrap();
                prop_assert_eq!(&advance(&strategy, &groups, &progress, before), &rollout);
            } else {
                prop_assert_eq!(&advance(&strategy, &groups, &progress, at(1_000_000)), &rollout);
            }
        }
    }
}
