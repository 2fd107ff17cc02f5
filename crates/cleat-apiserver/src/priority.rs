//! How a server shares itself among its clients, so that a noisy one keeps no other waiting.
//!
//! A request is worked on while it has a seat. Reading requests and others have seats apart from each
//! other: the first only ever wait for a processor, the second for disks and webhooks as well. Who gets
//! a seat is decided in `seats`; here are the tasks that wait for one. What is long does not keep
//! its seat: a watch gives it back as soon as it has begun.

mod seats;
mod tally;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use self::seats::{Arrival, Seats, Ticket};
use self::tally::Reason;
pub(crate) use self::tally::{Tally, WAITS};
use crate::path::RequestInfo;
use crate::status::Status;
use crate::user::{MASTERS, User};

/// What somebody is told who asks for more than their share.
const REFUSAL: &str = "Too many requests, please try again later.";
/// When they may ask again, in seconds.
const RETRY_AFTER: u32 = 1;

/// How much is done at a time, and how much waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Reading requests that are worked on at a time. They keep processors busy and nothing else, so
    /// that more of them than a few per processor only stand in each other's way.
    pub reading: usize,
    /// Other requests that are worked on at a time. Writes that wait for the disk together are
    /// written together.
    pub writing: usize,
    /// How many requests of one client may wait, of either sort.
    pub queue: usize,
    /// How long a request may wait.
    pub patience: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            reading: (4 * processors).max(16),
            writing: 200,
            queue: 100,
            patience: Duration::from_secs(15),
        }
    }
}

/// What a request has to have before it is worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    kind: Kind,
    flow: Arc<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Reading,
    Writing,
}

impl Claim {
    /// `None` for those who wait for nobody: administrators, who may have to put things right, and
    /// whoever asks how the server is.
    ///
    /// `requester` is who sent the request. Whom they speak for does not count, or else those who may
    /// speak for many would be many.
    pub(crate) fn of(requester: &User, info: &RequestInfo) -> Option<Self> {
        let first = info.path.trim_start_matches('/').split('/').next();
        let probe = !info.is_resource && matches!(first, Some("healthz" | "livez" | "readyz"));
        if probe || requester.in_group(MASTERS) {
            return None;
        }
        let kind = match &*info.verb {
            "get" | "head" | "list" | "watch" => Kind::Reading,
            _ => Kind::Writing,
        };
        Some(Self { kind, flow: requester.name.as_str().into() })
    }
}

/// The seats of one server.
pub(crate) struct Priority {
    reading: Arc<Room>,
    writing: Arc<Room>,
}

/// How things stand with one sort of requests.
pub(crate) struct Level {
    pub(crate) name: &'static str,
    pub(crate) seats: usize,
    pub(crate) executing: usize,
    pub(crate) waiting: usize,
    pub(crate) tally: Tally,
}

impl Priority {
    pub(crate) fn new(bounds: &Bounds) -> Self {
        let Bounds { reading, writing, queue, patience } = *bounds;
        let room = |seats| Arc::new(Room::new(Seats::new(seats, queue), patience));
        Self { reading: room(reading), writing: room(writing) }
    }

    /// Waits for a seat, which is held until what this returns is dropped. Whoever stops waiting, by
    /// dropping the future, loses their place and nothing else.
    pub(crate) async fn seat(&self, claim: Option<Claim>) -> Result<Option<Seat>, Status> {
        let Some(Claim { kind, flow }) = claim else { return Ok(None) };
        let room = match kind {
            Kind::Reading => &self.reading,
            Kind::Writing => &self.writing,
        };
        match room.seat(flow).await {
            Some(seat) => Ok(Some(seat)),
            None => Err(Status::too_many_requests(REFUSAL, RETRY_AFTER)),
        }
    }

    /// Under the names that kube-apiserver has for the sorts of requests.
    pub(crate) fn levels(&self) -> [Level; 2] {
        [("mutating", &self.writing), ("readOnly", &self.reading)].map(|(name, room)| {
            let state = room.state();
            Level {
                name,
                seats: state.seats.all(),
                executing: state.seats.taken(),
                waiting: state.seats.waiting(),
                tally: state.tally.clone(),
            }
        })
    }
}

/// The seats for one sort of requests, and the tasks that wait for them.
struct Room {
    patience: Duration,
    state: Mutex<State>,
}

struct State {
    seats: Seats,
    /// Those who wait, each with what to call them by.
    bells: BTreeMap<Ticket, (oneshot::Sender<()>, Instant)>,
    tally: Tally,
}

impl Room {
    fn new(seats: Seats, patience: Duration) -> Self {
        let state = State { seats, bells: BTreeMap::new(), tally: Tally::default() };
        Self { patience, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` if there is no place to wait, or none that became a seat in time.
    async fn seat(self: &Arc<Self>, flow: Arc<str>) -> Option<Seat> {
        let begun = Instant::now();
        let entry = self.state().arrive(&flow, begun)?;
        let mut seat = Seat { room: Arc::clone(self), flow, waits: None };
        let Entry::Place(ticket, bell) = entry else {
            // Work that never waits would be done before the next request is even looked at, and a
            // thousand such requests would be served in the order in which they came. This way all
            // that are there are seen, and queue or are refused, before any is worked on.
            tokio::task::yield_now().await;
            return Some(seat);
        };
        seat.waits = Some(Waits { ticket, since: begun, until: Reason::Cancelled });
        match tokio::time::timeout(self.patience, bell).await {
            Ok(Ok(())) => {
                seat.waits = None;
                Some(seat)
            }
            // Nobody takes a bell away but who rings it or whose it is.
            Ok(Err(_)) | Err(_) => {
                if let Some(waits) = &mut seat.waits {
                    waits.until = Reason::TimeOut;
                }
                None
            }
        }
    }
}

enum Entry {
    Seat,
    /// In a queue, with what tells that it has become a seat.
    Place(Ticket, oneshot::Receiver<()>),
}

impl State {
    /// `None` for those who cannot even wait.
    fn arrive(&mut self, flow: &Arc<str>, now: Instant) -> Option<Entry> {
        match self.seats.arrive(flow) {
            Arrival::Seated => {
                self.tally.dispatched(Duration::ZERO);
                Some(Entry::Seat)
            }
            Arrival::Waits(ticket) => {
                let (ring, bell) = oneshot::channel();
                self.bells.insert(ticket, (ring, now));
                Some(Entry::Place(ticket, bell))
            }
            Arrival::Refused => {
                self.tally.refused(Reason::QueueFull, Duration::ZERO);
                None
            }
        }
    }

    /// Somebody gives a seat back. Returns the bell of who gets it.
    fn leave(&mut self, flow: &Arc<str>, now: Instant) -> Option<oneshot::Sender<()>> {
        let ticket = self.seats.leave(flow)?;
        let (bell, since) = self.bells.remove(&ticket)?;
        self.tally.dispatched(now.saturating_duration_since(since));
        Some(bell)
    }
}

/// The right to be worked on, until this is dropped.
pub(crate) struct Seat {
    room: Arc<Room>,
    flow: Arc<str>,
    /// It is only a place in the queue as yet.
    waits: Option<Waits>,
}

struct Waits {
    ticket: Ticket,
    since: Instant,
    /// What it is if it ends now.
    until: Reason,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut state = self.room.state();
        if let Some(Waits { ticket, since, until }) = &self.waits
            && state.seats.abandon(&self.flow, *ticket)
        {
            state.bells.remove(ticket);
            state.tally.refused(*until, now.saturating_duration_since(*since));
            return;
        }
        let bell = state.leave(&self.flow, now);
        drop(state);
        if let Some(bell) = bell {
            // If nobody hears it, the one whose it is gives the seat back in turn.
            let _ = bell.send(());
        }
    }
}
