use alloc::vec;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn beat(renewed: Option<i64>, seen: Option<i64>) -> Heartbeat {
    Heartbeat { renewed: renewed.map(at), seen: seen.map(at), sight: Sight::Watched }
}

#[test]
fn a_lease_counts_for_five_durations() {
    let minute = duration(60);
    let cases = [
        (beat(None, None), 1000, Pulse::None),
        (beat(Some(1000), None), 1299, Pulse::Beating { until: at(1300) }),
        (beat(Some(1000), None), 1300, Pulse::Stopped),
        // The clock of the cluster is an hour behind or ahead: it lives all the same.
        (beat(Some(1000), Some(4600)), 4700, Pulse::Beating { until: at(4900) }),
        (beat(Some(8200), Some(4600)), 4899, Pulse::Beating { until: at(4900) }),
        (beat(Some(8200), Some(4600)), 4900, Pulse::Stopped),
    ];
    for (heartbeat, now, expected) in cases {
        assert_eq!(pulse(heartbeat, minute, at(now)), expected, "{heartbeat:?} at {now}");
    }
    assert_eq!(duration(0), duration(60));
    assert_eq!(duration(-5), duration(60));
}

#[test]
fn clocks_are_compared_only_when_a_renewal_arrives() {
    let minute = duration(60);
    for (heartbeat, expected) in [
        (beat(Some(1000), None), None),
        (beat(None, None), None),
        (beat(Some(1000), Some(1001)), Some(true)),
        (beat(Some(1059), Some(1000)), Some(true)),
        (beat(Some(1000), Some(1060)), Some(false)),
        (beat(Some(1060), Some(1000)), Some(false)),
    ] {
        assert_eq!(clocks_agree(heartbeat, minute), expected, "{heartbeat:?}");
    }
}

#[test]
fn a_renewal_found_later_counts_as_life_but_says_nothing_of_clocks() {
    let first = Heartbeat::next(None, Some(at(10)), false, at(100));
    let sight = Sight::Found;
    assert_eq!(first, Heartbeat { renewed: Some(at(10)), seen: Some(at(100)), sight });
    assert_eq!(Heartbeat::next(Some(first), Some(at(10)), true, at(200)), first);
    let found = Heartbeat::next(Some(first), Some(at(20)), false, at(300));
    let sight = Sight::Missed;
    assert_eq!(found, Heartbeat { renewed: Some(at(20)), seen: Some(at(300)), sight });
    assert_eq!(clocks_agree(found, duration(60)), None);
    let arrived = Heartbeat::next(Some(found), Some(at(390)), true, at(400));
    assert_eq!(clocks_agree(arrived, duration(60)), Some(true));
    let made = Heartbeat::next(None, None, true, at(5));
    assert_eq!(pulse(made, duration(60), at(6)), Pulse::None);
}

#[test]
fn a_restarted_hub_judges_nobody_by_the_clusters_clock() {
    let (minute, start) = (duration(60), 10_000);
    // The cluster's clock is right, an hour behind, an hour ahead.
    for renewed in [start - 30, start - 3600, start + 3600] {
        let found = Heartbeat::next(None, Some(at(renewed)), false, at(start));
        let until = at(start + 300);
        for now in [start, start + 299] {
            assert_eq!(pulse(found, minute, at(now)), Pulse::Beating { until }, "{renewed}");
        }
        // Whoever is really dead is so one grace later, whatever its clock said.
        assert_eq!(pulse(found, minute, until), Pulse::Stopped, "{renewed}");
    }
}

#[test]
fn renewals_are_spread_over_a_quarter_more() {
    let minute = duration(60);
    assert_eq!(next_renewal(minute, 0), minute);
    assert_eq!(next_renewal(minute, u16::MAX), SignedDuration::from_secs(75));
    let middle = next_renewal(minute, u16::MAX / 2);
    assert!(middle > SignedDuration::from_secs(67) && middle < SignedDuration::from_secs(68));
}

#[test]
fn taints_follow_availability_and_leave_others_alone() {
    let taint = |key: &str, added: Option<i64>| Taint {
        key: key.into(),
        time_added: added.map(|second| Time(at(second))),
        ..Taint::default()
    };
    let (here, gone) = (taint::UNREACHABLE, taint::UNAVAILABLE);
    use Availability::{Available, Unavailable, Unknown};
    let cases = [
        (vec![], Available, None),
        (vec![], Unknown, Some(vec![taint(here, Some(50))])),
        (vec![taint(here, Some(1))], Unknown, None),
        (vec![taint(here, Some(1))], Unavailable, Some(vec![taint(gone, Some(50))])),
        (vec![taint(here, Some(1)), taint(gone, Some(1))], Available, Some(vec![])),
        (
            vec![taint("mine", Some(1)), taint(gone, Some(1))],
            Available,
            Some(vec![taint("mine", Some(1))]),
        ),
        (vec![taint("mine", None)], Available, Some(vec![taint("mine", Some(50))])),
    ];
    for (current, availability, expected) in cases {
        let made = taints(&current, availability, at(50));
        assert_eq!(made, expected, "{current:?} {availability:?}");
        // Doing it leaves nothing to do.
        if let Some(made) = made {
            assert_eq!(taints(&made, availability, at(60)), None);
        }
    }
}
