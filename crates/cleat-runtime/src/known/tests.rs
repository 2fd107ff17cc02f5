//! One object on a server that keeps a history, and everything that tells of it, in every order.

use super::*;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    uid: String,
    revision: u64,
}

impl Incarnation for Item {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn revision(&self) -> Option<u64> {
        Some(self.revision)
    }
}

/// A replayable stream of choices (SplitMix64): a failing seed is a failing test.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }
}

#[derive(Clone, Debug)]
enum Told {
    Is(Item),
    /// Its uid, and the revision of its deletion.
    Went(String, u64),
}

/// An answer that is under way to us.
#[derive(Clone, Debug)]
enum Answer {
    Wrote(Item),
    Gone(String),
    Read(Option<Item>, u32),
}

struct Server {
    revision: u64,
    object: Option<Item>,
    history: Vec<Told>,
}

impl Server {
    fn put(&mut self) -> Item {
        self.revision += 1;
        let uid = self.object.take().map_or(format!("u{}", self.revision), |item| item.uid);
        let item = Item { uid, revision: self.revision };
        self.history.push(Told::Is(item.clone()));
        self.object = Some(item.clone());
        item
    }

    fn delete(&mut self) -> Option<String> {
        let item = self.object.take()?;
        self.revision += 1;
        self.history.push(Told::Went(item.uid.clone(), self.revision));
        Some(item.uid)
    }
}

struct World {
    server: Server,
    known: Known<Item>,
    /// How much of the history the watch has told.
    watched: usize,
    answers: Vec<Answer>,
    /// A list under way, of this moment.
    listing: Option<(Option<Item>, u64, usize)>,
    round: u32,
    /// The newest of our own writes of which we were told.
    own: u64,
    /// Incarnations that the watch told are gone.
    gone: Vec<String>,
    /// The last one that we deleted ourselves.
    deleted: Option<String>,
}

impl World {
    fn new() -> Self {
        Self {
            server: Server { revision: 10, object: None, history: Vec::new() },
            known: Known::unread(0),
            watched: 0,
            answers: Vec::new(),
            listing: None,
            round: 0,
            own: 0,
            gone: Vec::new(),
            deleted: None,
        }
    }

    fn step(&mut self, dice: &mut Dice) {
        match dice.roll(12) {
            0 => drop(self.server.put()),
            1 => drop(self.server.delete()),
            2 | 3 if !self.is_writing() => {
                let item = self.server.put();
                self.answers.push(Answer::Wrote(item));
            }
            // Deletes name the incarnation that was seen.
            4 if !self.is_writing() && self.sees_what_is() => {
                self.answers.extend(self.server.delete().map(Answer::Gone));
            }
            5 => {
                // Lost; it happened, or not, or only the deletion of what was there.
                match dice.roll(3) {
                    0 => drop(self.server.put()),
                    1 => drop(self.server.delete()),
                    _ => {}
                }
                self.known.doubt();
            }
            6 if self.listing.is_none() => {
                self.round += 1;
                let server = &self.server;
                self.listing = Some((server.object.clone(), server.revision, server.history.len()));
            }
            7 => self.end_list(),
            8 => self.begin_read(),
            9 | 10 if self.listing.is_none() => self.watch(),
            _ => self.answer(dice),
        }
    }

    /// Who handles an object writes to it once at a time.
    fn is_writing(&self) -> bool {
        self.answers.iter().any(|answer| !matches!(answer, Answer::Read(..)))
    }

    fn sees_what_is(&self) -> bool {
        match (self.known.sure(), &self.server.object) {
            (Sure::Present(seen), Some(object)) => seen.uid == object.uid,
            _ => false,
        }
    }

    fn end_list(&mut self) {
        if let Some((item, revision, watched)) = self.listing.take() {
            self.known.listed(item, Some(revision), self.round);
            self.watched = watched;
        }
    }

    fn begin_read(&mut self) {
        self.answers.push(Answer::Read(self.server.object.clone(), self.known.told()));
    }

    fn watch(&mut self) {
        match self.server.history.get(self.watched).cloned() {
            Some(Told::Is(item)) => drop(self.known.changed(item, self.round)),
            Some(Told::Went(uid, revision)) => {
                self.known.deleted(&uid, Some(revision), self.round);
                self.gone.push(uid);
            }
            None => return,
        }
        self.watched += 1;
    }

    fn answer(&mut self, dice: &mut Dice) {
        if self.answers.is_empty() {
            return;
        }
        let which = dice.roll(self.answers.len());
        match self.answers.remove(which) {
            Answer::Wrote(item) => {
                self.own = self.own.max(item.revision);
                self.known.wrote(item, self.round);
            }
            Answer::Gone(uid) => {
                self.known.gone(&uid, self.round);
                // Otherwise it must be read, and a watch that lags may tell of it after that.
                self.deleted = (self.known.sure() == Sure::Absent).then_some(uid);
            }
            Answer::Read(item, told) => {
                if self.known.read(item, told, self.round).is_none() {
                    self.begin_read();
                }
            }
        }
    }

    /// We never see less than what we did ourselves, nor what we know to be gone.
    fn check(&self, seed: u64) {
        match self.known.sure() {
            Sure::Unread => {}
            Sure::Present(item) => {
                let gone = self.gone.iter().chain(&self.deleted).any(|uid| *uid == item.uid);
                assert!(!gone, "seed {seed}: {} came back", item.uid);
                assert!(item.revision >= self.own, "seed {seed}: own write {} unseen", self.own);
            }
            Sure::Absent => {
                let went = |told: &Told| matches!(told, Told::Went(_, at) if *at > self.own);
                assert!(
                    self.own == 0 || self.server.history.iter().any(went),
                    "seed {seed}: own write {} is taken for absent",
                    self.own
                );
            }
        }
    }
}

#[test]
fn every_history_ends_with_the_truth() {
    for seed in 0..10_000 {
        let mut dice = Dice(seed);
        let mut world = World::new();
        for _ in 0..60 {
            world.step(&mut dice);
            world.check(seed);
        }
        world.end_list();
        for _ in 0..200 {
            world.answer(&mut dice);
            world.watch();
            world.check(seed);
            if matches!(world.known.sure(), Sure::Unread) && world.answers.is_empty() {
                world.begin_read();
            }
        }
        let truth = world.server.object.as_ref().map_or(Sure::Absent, Sure::Present);
        assert_eq!(world.known.sure(), truth, "seed {seed}");
    }
}

#[test]
fn what_is_known_already_is_no_news() {
    let item = |revision| Item { uid: "u".to_owned(), revision };
    let mut known = Known::absent(5, 0);
    assert!(known.wrote(item(7), 0));
    assert!(!known.changed(item(7), 0));
    assert!(!known.changed(item(6), 0));
    assert!(known.changed(item(8), 0));
    assert!(!known.listed(Some(item(8)), Some(9), 1));
    assert!(known.gone("u", 1));
    assert!(!known.changed(item(10), 1));
    assert!(!known.deleted("u", Some(11), 1));
    assert!(known.changed(Item { uid: "v".to_owned(), revision: 12 }, 1));
}

#[test]
fn a_server_put_back_to_an_earlier_state_is_believed() {
    let mut known = Known::unread(0);
    known.listed(Some(Item { uid: "u".to_owned(), revision: 90 }), Some(100), 1);
    known.changed(Item { uid: "u".to_owned(), revision: 120 }, 1);
    assert!(known.listed(Some(Item { uid: "u".to_owned(), revision: 40 }), Some(50), 2));
    assert_eq!(known.sure(), Sure::Present(&Item { uid: "u".to_owned(), revision: 40 }));
    assert!(known.changed(Item { uid: "u".to_owned(), revision: 60 }, 2));
}

#[test]
fn revisions_that_are_no_numbers_are_not_compared() {
    #[derive(Debug, PartialEq)]
    struct Opaque(&'static str);
    impl Incarnation for Opaque {
        fn uid(&self) -> &str {
            "u"
        }
        fn revision(&self) -> Option<u64> {
            None
        }
    }
    let mut known = Known::unread(0);
    known.listed(Some(Opaque("x")), None, 1);
    assert!(known.changed(Opaque("y"), 1));
    assert!(known.wrote(Opaque("z"), 1));
    assert_eq!(known.sure(), Sure::Unread);
    let told = known.told();
    assert_eq!(known.read(Some(Opaque("z")), told, 1), Some(true));
    assert_eq!(known.sure(), Sure::Present(&Opaque("z")));
}
