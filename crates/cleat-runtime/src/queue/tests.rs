use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use tokio::sync::mpsc;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// What was handled and when, in seconds since the start.
type Handled = mpsc::UnboundedReceiver<(&'static str, u64)>;

fn start(workers: usize, wake: fn(&str) -> Wake) -> (Queue<&'static str>, Handled) {
    let queue = Queue::new();
    let (tell, handled) = mpsc::unbounded_channel();
    let begin = Instant::now();
    tokio::spawn(run(queue.clone(), workers, move |key| {
        let tell = tell.clone();
        async move {
            tell.send((key, begin.elapsed().as_secs())).unwrap();
            wake(key)
        }
    }));
    (queue, handled)
}

#[tokio::test(start_paused = true)]
async fn keys_are_handled_once_and_in_order() {
    let queue = Queue::new();
    for key in ["b", "a", "b", "c", "a"] {
        queue.add(key);
    }
    let (tell, mut handled) = mpsc::unbounded_channel();
    let stop = queue.clone();
    run(queue, 1, move |key| {
        tell.send(key).unwrap();
        if key == "c" {
            stop.close();
        }
        async { Wake::OnChange }
    })
    .await;
    let mut order = Vec::new();
    handled.recv_many(&mut order, 9).await;
    assert_eq!(order, ["b", "a", "c"]);
}

#[tokio::test(start_paused = true)]
async fn the_earliest_deadline_counts() {
    let (queue, mut handled) = start(1, |_| Wake::OnChange);
    queue.add_after("a", 9 * SECOND);
    queue.add_after("a", 5 * SECOND);
    queue.add_after("b", 7 * SECOND);
    queue.add_after("a", 8 * SECOND);
    assert_eq!(handled.recv().await, Some(("a", 5)));
    assert_eq!(handled.recv().await, Some(("b", 7)));
    queue.add_after("a", SECOND);
    queue.add("a");
    assert_eq!(handled.recv().await, Some(("a", 7)));
    queue.add_after("b", SECOND);
    assert_eq!(handled.recv().await, Some(("b", 8)));
}

#[tokio::test(start_paused = true)]
async fn a_key_comes_back_when_its_handler_says() {
    let (queue, mut handled) =
        start(2, |key| if key == "again" { Wake::After(3 * SECOND) } else { Wake::OnChange });
    queue.add("once");
    queue.add("again");
    assert_eq!(handled.recv().await, Some(("once", 0)));
    for round in 0..4 {
        assert_eq!(handled.recv().await, Some(("again", 3 * round)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_added_while_handled_is_handled_again_and_never_twice_at_once() {
    let queue = Queue::new();
    let (tell, mut begun) = mpsc::unbounded_channel();
    let (at_once, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let highest = Arc::clone(&most);
    tokio::spawn(run(queue.clone(), 8, move |_| {
        let (tell, at_once, most) = (tell.clone(), Arc::clone(&at_once), Arc::clone(&most));
        async move {
            most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tell.send(()).unwrap();
            tokio::time::sleep(SECOND).await;
            at_once.fetch_sub(1, Ordering::SeqCst);
            Wake::OnChange
        }
    }));
    queue.add("a");
    begun.recv().await.unwrap();
    queue.add("a");
    queue.add("a");
    queue.add_after("a", SECOND);
    begun.recv().await.unwrap();
    assert_eq!(highest.load(Ordering::SeqCst), 1);
    // Both wishes from during the first handling were met by the second.
    let third = tokio::time::timeout(60 * SECOND, begun.recv()).await;
    assert!(third.is_err(), "handled once more than asked for");
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_what_is_under_way_and_begins_nothing() {
    let queue = Queue::new();
    let ended = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ended);
    let (tell, mut begun) = mpsc::unbounded_channel();
    let running = tokio::spawn(run(queue.clone(), 1, move |key| {
        let (tell, count) = (tell.clone(), Arc::clone(&count));
        async move {
            tell.send(key).unwrap();
            tokio::time::sleep(60 * SECOND).await;
            count.fetch_add(1, Ordering::SeqCst);
            Wake::After(SECOND)
        }
    }));
    queue.add(1);
    queue.add(2);
    begun.recv().await.unwrap();
    queue.close();
    running.await.unwrap();
    assert_eq!(ended.load(Ordering::SeqCst), 1);
    assert!(begun.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_costs_only_its_own_turn() {
    let queue = Queue::new();
    let (tell, mut handled) = mpsc::unbounded_channel();
    let panicked = Arc::new(AtomicUsize::new(0));
    let times = Arc::clone(&panicked);
    tokio::spawn(run(queue.clone(), 1, move |key| {
        let (tell, times) = (tell.clone(), Arc::clone(&times));
        async move {
            if key == "bad" && times.fetch_add(1, Ordering::SeqCst) == 0 {
                // Without the default hook's output.
                std::panic::resume_unwind(Box::new("planted"));
            }
            tell.send(key).unwrap();
            Wake::OnChange
        }
    }));
    queue.add("bad");
    queue.add("good");
    assert_eq!(handled.recv().await, Some("good"));
    assert_eq!(handled.recv().await, Some("bad"));
}

/// The queue's rules in the simplest words: per key whether it is wanted and from when.
#[derive(Default)]
struct Model {
    wanted: BTreeMap<u8, u64>,
    running: BTreeMap<u8, Option<u64>>,
}

impl Model {
    fn add(&mut self, key: u8, at: u64) {
        let wish = match self.running.get_mut(&key) {
            Some(again) => again.get_or_insert(at),
            None => self.wanted.entry(key).or_insert(at),
        };
        *wish = at.min(*wish);
    }

    fn finish(&mut self, key: u8, again: Option<u64>) {
        if let Some(asked) = self.running.remove(&key) {
            for at in asked.into_iter().chain(again) {
                self.add(key, at);
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Event {
    Add(u8),
    AddAfter(u8, u64),
    Take,
    Finish(u8, Option<u64>),
    Pass(u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let key = 0..4_u8;
    let event = prop_oneof![
        key.clone().prop_map(Event::Add),
        (key.clone(), 0..20_u64).prop_map(|(key, delay)| Event::AddAfter(key, delay)),
        Just(Event::Take),
        Just(Event::Take),
        (key, proptest::option::of(0..20_u64)).prop_map(|(key, again)| Event::Finish(key, again)),
        (1..10_u64).prop_map(Event::Pass),
    ];
    proptest::collection::vec(event, 0..200)
}

proptest! {
    #[test]
    fn every_history_keeps_the_rules(events in events()) {
        let begin = Instant::now();
        let at = |second: u64| begin + Duration::from_secs(second);
        let (mut schedule, mut model, mut now) = (Schedule::new(), Model::default(), 0_u64);
        for event in events {
            match event {
                Event::Add(key) => {
                    schedule.add(key);
                    model.add(key, 0);
                }
                Event::AddAfter(key, delay) => {
                    schedule.add_at(key, at(now + delay));
                    model.add(key, now + delay);
                }
                Event::Pass(seconds) => now += seconds,
                Event::Finish(key, again) => {
                    schedule.finish(&key, again.map(|delay| at(now + delay)));
                    model.finish(key, again.map(|delay| now + delay));
                }
                Event::Take => {
                    let (taken, next) = schedule.take(at(now));
                    let due = model.wanted.values().filter(|at| **at <= now).count();
                    match taken {
                        Some(key) => {
                            let wish = model.wanted.remove(&key);
                            prop_assert!(wish.is_some_and(|at| at <= now), "{key} was not due");
                            model.running.insert(key, None);
                        }
                        None => prop_assert_eq!(due, 0),
                    }
                    let later = model.wanted.values().filter(|at| **at > now).min();
                    prop_assert_eq!(next, later.map(|second| at(*second)));
                }
            }
            prop_assert!(schedule.busy() >= model.running.len());
        }
    }
}
