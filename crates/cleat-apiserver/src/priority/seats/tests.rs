use proptest::prelude::*;

use super::*;

/// Plays a script (`+a`: one of `a` comes, `-a`: one of `a` gives a seat back, `!a`: the one of `a`
/// who came last to wait goes away) and tells what came of it.
fn play(all: usize, longest_queue: usize, script: &str) -> String {
    let mut seats = Seats::new(all, longest_queue);
    let mut waiting: Vec<(Arc<str>, Ticket)> = Vec::new();
    let mut told = Vec::new();
    for word in script.split_whitespace() {
        let (what, name) = word.split_at(1);
        let flow: Arc<str> = name.into();
        match what {
            "+" => match seats.arrive(&flow) {
                Arrival::Seated => told.push("sits".to_owned()),
                Arrival::Refused => told.push("refused".to_owned()),
                Arrival::Waits(ticket) => {
                    waiting.push((flow, ticket));
                    told.push("waits".to_owned());
                }
            },
            "-" => match seats.leave(&flow) {
                None => told.push("nobody".to_owned()),
                Some(ticket) => {
                    let place = waiting.iter().position(|(_, other)| *other == ticket).unwrap();
                    told.push(waiting.remove(place).0.to_string());
                }
            },
            "!" => {
                let place = waiting.iter().rposition(|(other, _)| *other == flow).unwrap();
                let (_, ticket) = waiting.remove(place);
                assert!(seats.abandon(&flow, ticket), "{word} in {script}");
                told.push("gone".to_owned());
            }
            _ => panic!("{word} in {script}"),
        }
    }
    assert_eq!(seats.waiting(), waiting.len(), "{script}");
    told.join(" ")
}

#[test]
fn seats_are_shared() {
    for (all, queue, script, want) in [
        // One alone has half of them, and the rest is for whoever comes.
        (4, 9, "+a +a +a", "sits sits waits"),
        (5, 9, "+a +a +a +a", "sits sits sits waits"),
        (4, 9, "+a +a +a +b", "sits sits waits sits"),
        // The last free one is somebody's first.
        (4, 9, "+a +a +b +b +c +d", "sits sits sits waits sits waits"),
        (2, 9, "+a +a +b", "sits waits sits"),
        (1, 9, "+a +b", "sits waits"),
        // Those with fewer seats are next, whoever came first.
        (4, 9, "+a +a +b +b +c +d -a -a -c", "sits sits sits waits sits waits d nobody b"),
        (4, 9, "+a +a +a +b +c +d -b", "sits sits waits sits sits waits d"),
        // Of several with as many, those who have had so few for longest.
        (1, 9, "+a +a +b +c -a -b -c -a", "sits waits waits waits b c a nobody"),
        (1, 9, "+a +b +b +c -a -b -c -b", "sits waits waits waits b c b nobody"),
        // A queue is as long as it may be, for each.
        (2, 1, "+a +a +a +b +b +b", "sits waits refused sits waits refused"),
        (2, 0, "+a +a +b +c", "sits refused sits refused"),
        // Who goes away makes room behind, and is not called.
        (1, 1, "+a +b +b !b +b -a", "sits waits refused gone waits b"),
        (1, 9, "+a +b +c !b -a", "sits waits waits gone c"),
        (1, 9, "+a +b !b -a", "sits waits gone nobody"),
        // Nobody has nothing.
        (0, 1, "+a +b -a", "sits waits b"),
    ] {
        assert_eq!(play(all, queue, script), want, "{all} seats, {queue} waiting: {script}");
    }
}

#[test]
fn who_was_called_does_not_wait_any_more() {
    let mut seats = Seats::new(1, 1);
    let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
    assert_eq!(seats.arrive(&a), Arrival::Seated);
    let Arrival::Waits(ticket) = seats.arrive(&b) else { panic!("there is one seat") };
    assert_eq!(seats.leave(&a), Some(ticket));
    assert!(!seats.abandon(&b, ticket));
    assert_eq!((seats.taken(), seats.waiting()), (1, 0));
}

#[derive(Clone, Debug)]
enum Step {
    Come(usize),
    Leave(usize),
    GoAway(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Small numbers are noisy clients, which come most of the time.
    let step = prop_oneof![
        4 => (0_usize..2).prop_map(Step::Come),
        2 => (0_usize..8).prop_map(Step::Come),
        4 => (0_usize..64).prop_map(Step::Leave),
        1 => (0_usize..64).prop_map(Step::GoAway),
    ];
    prop::collection::vec(step, 0..300)
}

struct Waiting {
    flow: usize,
    ticket: Ticket,
    /// How many may be seated before this one, where that is bounded.
    most: Option<usize>,
}

/// Seats, and what is known of them without asking them.
struct Room {
    seats: Seats,
    names: Vec<Arc<str>>,
    longest_queue: usize,
    sitting: Vec<usize>,
    waiting: Vec<Waiting>,
    came: usize,
    refused: usize,
    went: usize,
    served: usize,
}

impl Room {
    fn new(all: usize, longest_queue: usize) -> Self {
        Self {
            seats: Seats::new(all, longest_queue),
            names: (0..8).map(|number| Arc::from(format!("client-{number}"))).collect(),
            longest_queue,
            sitting: Vec::new(),
            waiting: Vec::new(),
            came: 0,
            refused: 0,
            went: 0,
            served: 0,
        }
    }

    fn held(&self, flow: usize) -> usize {
        self.sitting.iter().filter(|other| **other == flow).count()
    }

    fn queued(&self, flow: usize) -> usize {
        self.waiting.iter().filter(|other| other.flow == flow).count()
    }

    /// How many flows wait without a seat.
    fn without_seat(&self) -> usize {
        (0..self.names.len()).filter(|flow| self.queued(*flow) > 0 && self.held(*flow) == 0).count()
    }

    fn come(&mut self, flow: usize) {
        self.came += 1;
        let (held, queued) = (self.held(flow), self.queued(flow));
        let free = self.seats.all() - self.sitting.len();
        let name = Arc::clone(&self.names[flow]);
        match self.seats.arrive(&name) {
            Arrival::Seated => {
                assert!(held < free, "more than its share");
                assert_eq!(queued, 0, "overtook its own");
                self.sitting.push(flow);
            }
            Arrival::Waits(ticket) => {
                let most = (held == 0 && queued == 0).then(|| self.without_seat());
                self.waiting.push(Waiting { flow, ticket, most });
            }
            Arrival::Refused => {
                assert_eq!(queued, self.longest_queue, "refused while there was room");
                self.refused += 1;
            }
        }
    }

    fn leave(&mut self, which: usize) {
        if self.sitting.is_empty() {
            return;
        }
        let flow = self.sitting.swap_remove(which % self.sitting.len());
        self.served += 1;
        let name = Arc::clone(&self.names[flow]);
        let Some(ticket) = self.seats.leave(&name) else { return };
        let place = self.waiting.iter().position(|other| other.ticket == ticket).unwrap();
        let called = self.waiting.remove(place);
        // They are kept in the order in which they came.
        let earlier = self.waiting.iter().take(place).any(|other| other.flow == called.flow);
        assert!(!earlier, "overtook its own");
        self.sitting.push(called.flow);
        for other in &mut self.waiting {
            if let Some(most) = &mut other.most {
                assert!(*most > 0, "a quiet client waits for more than those before it");
                *most -= 1;
            }
        }
    }

    fn go_away(&mut self, which: usize) {
        if self.waiting.is_empty() {
            return;
        }
        let gone = self.waiting.remove(which % self.waiting.len());
        self.went += 1;
        assert!(self.seats.abandon(&self.names[gone.flow], gone.ticket));
    }

    fn check(&self) {
        assert!(self.sitting.len() <= self.seats.all(), "more than there are");
        assert_eq!(self.seats.taken(), self.sitting.len());
        assert_eq!(self.seats.waiting(), self.waiting.len());
        let free = self.seats.all() - self.sitting.len();
        for other in &self.waiting {
            assert!(self.held(other.flow) >= free, "waits and could sit");
        }
        let told = self.served + self.went + self.refused;
        assert_eq!(self.came, told + self.sitting.len() + self.waiting.len(), "somebody is lost");
    }
}

proptest! {
    #[test]
    fn whatever_happens_seats_are_shared(all in 1_usize..9, queue in 0_usize..5, steps in steps()) {
        let mut room = Room::new(all, queue);
        for step in steps {
            match step {
                Step::Come(flow) => room.come(flow),
                Step::Leave(which) => room.leave(which),
                Step::GoAway(which) => room.go_away(which),
            }
            room.check();
        }
        // When all are served nothing of them is left.
        while !room.sitting.is_empty() {
            room.leave(0);
            room.check();
        }
        prop_assert!(room.waiting.is_empty());
        prop_assert!(room.seats.flows.is_empty() && room.seats.order.is_empty());
    }

    #[test]
    fn one_noisy_client_keeps_nobody_waiting(all in 2_usize..65, noise in 0_usize..2_000) {
        let mut seats = Seats::new(all, 100);
        let (noisy, quiet): (Arc<str>, Arc<str>) = ("noisy".into(), "quiet".into());
        for _ in 0..noise {
            seats.arrive(&noisy);
        }
        for _ in 0..3 {
            prop_assert_eq!(seats.arrive(&quiet), Arrival::Seated);
            seats.leave(&quiet);
        }
    }

    #[test]
    fn many_noisy_clients_go_before_a_quiet_one_once_each(
        all in 1_usize..9,
        noisy in 1_usize..40,
        noise in 1_usize..50,
    ) {
        let mut seats = Seats::new(all, 100);
        let quiet: Arc<str> = "quiet".into();
        let flows: Vec<Arc<str>> =
            (0..noisy).map(|number| Arc::from(format!("noisy-{number}"))).collect();
        let mut tickets: BTreeMap<Ticket, Arc<str>> = BTreeMap::new();
        let mut come = |seats: &mut Seats, flow: &Arc<str>| match seats.arrive(flow) {
            Arrival::Seated => Some(Arc::clone(flow)),
            Arrival::Waits(ticket) => {
                tickets.insert(ticket, Arc::clone(flow));
                None
            }
            Arrival::Refused => None,
        };
        let mut sitting = VecDeque::new();
        for _ in 0..noise {
            for flow in &flows {
                sitting.extend(come(&mut seats, flow));
            }
        }
        sitting.extend(come(&mut seats, &quiet));
        let mut before = 0;
        while !sitting.contains(&quiet) {
            let done = sitting.pop_front().unwrap();
            let called = seats.leave(&done);
            sitting.extend(called.map(|ticket| Arc::clone(&tickets[&ticket])));
            // Whoever was served comes again at once.
            match seats.arrive(&done) {
                Arrival::Seated => sitting.push_back(done),
                Arrival::Waits(ticket) => drop(tickets.insert(ticket, done)),
                Arrival::Refused => {}
            }
            before += 1;
            prop_assert!(before <= noisy, "{} were served before it", before);
        }
    }
}
