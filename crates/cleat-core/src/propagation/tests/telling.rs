//! What is told in events, and what is not forgotten where it could not be.

use alloc::vec;

use serde_json::Value;

use super::*;
use crate::write::{Outcome, Refusal};

/// As many copies that hang, of a policy whose root is gone.
fn hanging(copies: usize) -> Observed {
    let mut seen = seen();
    settle(&mut seen);
    let copy = Replica::clone(&seen.replicas["a"]);
    seen.root = None;
    seen.replicas.clear();
    for number in 0..copies {
        let cluster = format!("c{number:03}");
        let mut copy = copy.clone();
        copy.cluster.clone_from(&cluster);
        copy.said = Some(format!("Terminating; {cluster} hangs"));
        (copy.deleting, copy.deleting_since) = (true, Some(now()));
        seen.replicas.insert(cluster, Arc::new(copy));
    }
    seen
}

fn refused() -> Outcome {
    Outcome::Refused(Refusal { code: 403, reason: "Forbidden".into(), message: "no".into() })
}

/// One pass, in which `writes` says what comes of each event; who was told of, and when to come back.
fn pass(
    seen: &mut Observed,
    spent: &mut Spent,
    writes: impl Fn(&Event) -> Outcome,
) -> (Vec<String>, Option<i64>) {
    let mut verdict = report(seen, &vec![], &[]);
    let few = few(verdict.events, &verdict.told, spent, seen.now);
    let done: Vec<Outcome> = few.events.iter().map(writes).collect();
    let again = written(&mut verdict.told, &few.events, &done);
    seen.told = verdict.told;
    let told = few.events.iter().zip(&done).filter(|(_, outcome)| outcome.is_done());
    let told = told.filter_map(|(event, _)| event.cluster.clone()).collect();
    let again = [few.again, again].into_iter().flatten().min();
    (told, again.map(|after| after.as_secs()))
}

fn done(_: &Event) -> Outcome {
    Outcome::Done(Value::Null)
}

#[test]
fn a_warning_that_there_was_no_room_for_is_told_later() {
    let mut seen = hanging(60);
    let mut spent = Spent::default();
    let mut told = vec![];
    for wait in [Some(50), Some(20), None] {
        let (now, again) = pass(&mut seen, &mut spent, done);
        assert_eq!((told.iter().any(|one| now.contains(one)), again), (false, wait));
        told.extend(now);
        let later = seen.now.as_second() + again.unwrap_or_default();
        seen.now = Timestamp::from_second(later).unwrap();
    }
    assert_eq!(told.len(), 60);
    assert_eq!(pass(&mut seen, &mut spent, done), (vec![], None));
}

#[test]
fn a_warning_that_could_not_be_written_is_told_later_and_keeps_no_other_waiting() {
    let mut seen = hanging(30);
    let mut spent = Spent::default();
    let early = |event: &Event| match event.cluster.as_deref() < Some("c025") {
        true => refused(),
        false => Outcome::Done(Value::Null),
    };
    assert_eq!(pass(&mut seen, &mut spent, early), (vec![], Some(1)));
    seen.now = Timestamp::from_second(seen.now.as_second() + 100).unwrap();
    let (told, again) = pass(&mut seen, &mut spent, early);
    assert_eq!(
        (told, again),
        (
            vec!["c025", "c026", "c027", "c028", "c029"].into_iter().map(String::from).collect(),
            Some(2)
        )
    );
    seen.now = Timestamp::from_second(seen.now.as_second() + 100).unwrap();
    assert_eq!(pass(&mut seen, &mut spent, done).0.len(), 25);
    assert_eq!(pass(&mut seen, &mut spent, done), (vec![], None));
}

#[test]
fn a_status_that_was_written_does_not_stand_for_an_event_that_was_not() {
    let mut seen = seen();
    settle(&mut seen);
    let hangs = Some("Terminating; x".to_string());
    Arc::make_mut(seen.replicas.get_mut("a").unwrap()).said = hangs;
    let mut spent = Spent::default();
    assert_eq!(pass(&mut seen, &mut spent, |_| refused()), (vec![], Some(1)));
    seen.root = Some(root_with(spec(), told(&seen)));
    assert_eq!(pass(&mut seen, &mut spent, done), (vec!["a".to_string()], None));
    // It does so for a hub that was started anew.
    seen.told = Told::new();
    assert_eq!(report(&seen, &vec![], &[]).events, []);
}

#[test]
fn what_happened_takes_no_room_from_what_warns() {
    let mut spent = Spent::default();
    let normal = Event { warning: false, message: "x".into(), cluster: None };
    let warning = Event { warning: true, ..normal.clone() };
    let many = |event: &Event, count: usize| vec![event.clone(); count];
    let few = |events, spent: &mut Spent, now| super::few(events, &Told::new(), spent, now);
    assert_eq!(few(many(&normal, 1000), &mut spent, now()).events.len(), 25);
    let all = [many(&normal, 3), many(&warning, 3)].concat();
    let told = few(all, &mut spent, now());
    assert_eq!(told, Few { events: many(&warning, 3), again: None });
    // And there is more room as time goes by; a clock that is set back takes none away.
    let after = |seconds: i64| Timestamp::from_second(now().as_second() + seconds).unwrap();
    assert_eq!(few(many(&normal, 9), &mut spent, after(301)).events.len(), 1);
    assert_eq!(few(many(&normal, 9), &mut spent, after(-9000)).events.len(), 0);
    assert_eq!(few(many(&normal, 9), &mut spent, after(-8400)).events.len(), 2);
}

#[test]
fn a_policy_whose_name_is_too_long_is_warned_of_once() {
    let mut seen = seen();
    let mut root = Root::clone(seen.root.as_ref().unwrap());
    root.name = "p".repeat(60);
    seen.key.1 = root.name.clone();
    seen.root = Some(Arc::new(root));
    seen.bindings.clear();
    let mut spent = Spent::default();
    let mut verdict = report(&seen, &vec![], &[]);
    assert_eq!(verdict.events.len(), 1);
    let few = few(verdict.events, &verdict.told, &mut spent, seen.now);
    assert_eq!(written(&mut verdict.told, &few.events, &[Outcome::Done(Value::Null)]), None);
    seen.told = verdict.told;
    assert_eq!(report(&seen, &vec![], &[]).events, []);
}
