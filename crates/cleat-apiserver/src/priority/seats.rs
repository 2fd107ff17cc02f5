//! Who may be worked on now, who waits, and who is refused. Knows nothing of time, tasks or HTTP.
//!
//! Requests of one client are a flow. Two rules decide everything:
//!
//! - A flow gets another seat only while more seats are free than it holds. One flow alone ends up
//!   with half of them, two with a third each, and so on: the last free seat is only ever somebody's
//!   first.
//! - Of those who wait, the flow with the fewest seats is next, and of several the one that has had so
//!   few for longest. So before a flow without a seat only those go, once each, that waited without
//!   one when it came.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The seats of a server, and the queues before them.
///
/// *Guarantees*: never more are taken than there are; nobody waits who may sit; a flow is known only
/// while it sits or waits, so that clients who come and go leave nothing behind.
/// *Assumes*: whoever was seated leaves once.
#[derive(Debug)]
pub(super) struct Seats {
    all: usize,
    /// How many of one flow may wait.
    longest_queue: usize,
    taken: usize,
    waiting: usize,
    flows: BTreeMap<Arc<str>, Flow>,
    /// Flows of which somebody waits, by the seats they hold and then by their turn.
    order: BTreeSet<(usize, u64, Arc<str>)>,
    /// Numbers everything that happens.
    count: u64,
}

#[derive(Debug, Default)]
struct Flow {
    held: usize,
    /// When the number of its seats last changed, or when it came without any.
    turn: u64,
    queue: VecDeque<Ticket>,
}

/// A place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// What becomes of a request that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Seated,
    Waits(Ticket),
    /// The queue of its flow is full.
    Refused,
}

impl Seats {
    /// There is at least one, whatever is asked for: without any nobody would ever be served.
    pub(super) fn new(all: usize, longest_queue: usize) -> Self {
        Self {
            all: all.max(1),
            longest_queue,
            taken: 0,
            waiting: 0,
            flows: BTreeMap::new(),
            order: BTreeSet::new(),
            count: 0,
        }
    }

    pub(super) fn all(&self) -> usize {
        self.all
    }

    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// A request of this flow has come.
    pub(super) fn arrive(&mut self, flow: &Arc<str>) -> Arrival {
        let (free, longest, now) = (self.free(), self.longest_queue, self.tick());
        let arrival = self.change(flow, |flow| {
            if flow.queue.is_empty() && flow.held < free {
                flow.held += 1;
                flow.turn = now;
                return Arrival::Seated;
            }
            if flow.queue.len() >= longest {
                return Arrival::Refused;
            }
            if flow.held == 0 && flow.queue.is_empty() {
                flow.turn = now;
            }
            flow.queue.push_back(Ticket(now));
            Arrival::Waits(Ticket(now))
        });
        match arrival {
            Arrival::Seated => self.taken += 1,
            Arrival::Waits(_) => self.waiting += 1,
            Arrival::Refused => {}
        }
        arrival
    }

    /// Somebody of this flow gives a seat back; returns who gets one instead.
    ///
    /// It is never more than one: a flow that waited held at least as many seats as were free. Now one
    /// more is free and one flow holds one less, and seating the least of them undoes just that.
    pub(super) fn leave(&mut self, flow: &Arc<str>) -> Option<Ticket> {
        let now = self.tick();
        self.change(flow, |flow| {
            flow.held = flow.held.saturating_sub(1);
            flow.turn = now;
        });
        self.taken = self.taken.saturating_sub(1);
        let (held, _, next) = self.order.first()?;
        if *held >= self.free() {
            return None;
        }
        let (next, now) = (Arc::clone(next), self.tick());
        let ticket = self.change(&next, |flow| {
            let ticket = flow.queue.pop_front()?;
            flow.held += 1;
            flow.turn = now;
            Some(ticket)
        })?;
        self.taken += 1;
        self.waiting = self.waiting.saturating_sub(1);
        Some(ticket)
    }

    /// Somebody who waits goes away. `false` if they wait no more: then they have a seat to leave.
    pub(super) fn abandon(&mut self, flow: &Arc<str>, ticket: Ticket) -> bool {
        let gone = self.change(flow, |flow| {
            let place = flow.queue.iter().position(|other| *other == ticket);
            place.and_then(|place| flow.queue.remove(place)).is_some()
        });
        self.waiting = self.waiting.saturating_sub(usize::from(gone));
        gone
    }

    fn free(&self) -> usize {
        self.all.saturating_sub(self.taken)
    }

    fn tick(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// The only way to a flow, so that its place in the order is always the right one.
    fn change<R>(&mut self, name: &Arc<str>, change: impl FnOnce(&mut Flow) -> R) -> R {
        let mut flow = self.flows.remove(name).unwrap_or_default();
        if !flow.queue.is_empty() {
            self.order.remove(&(flow.held, flow.turn, Arc::clone(name)));
        }
        let result = change(&mut flow);
        if !flow.queue.is_empty() {
            self.order.insert((flow.held, flow.turn, Arc::clone(name)));
        }
        if flow.held > 0 || !flow.queue.is_empty() {
            self.flows.insert(Arc::clone(name), flow);
        }
        result
    }
}
