//! What is known of one object, put together from everything that tells of it. Pure.
//!
//! A watch tells late but in order, a list tells of one moment, a read and the answer to a write of
//! our own tell of now. They arrive in any order, so what is older than what is known is ignored.
//! Revisions are comparable numbers, of all objects of a kind, as Kubernetes promises; where one is
//! not a number nothing is compared, and the object must be read.

/// Something that says which incarnation of an object it is, and in which state.
pub(crate) trait Incarnation {
    fn uid(&self) -> &str;
    /// None where the server's revisions are not numbers.
    fn revision(&self) -> Option<u64>;
}

pub(crate) struct Known<T> {
    state: State<T>,
    /// The revision as of which this is known.
    at: u64,
    /// The round of listing in which it was last told of other than by a list.
    round: u32,
    /// Counts what it was told, so that a read can tell whether something came in between.
    told: u32,
    /// A write of ours may or may not have happened, so only a read can tell.
    doubted: bool,
}

#[derive(PartialEq, Eq)]
enum State<T> {
    Unread,
    Absent,
    /// Deleted by us: whatever is still told of this uid is from before.
    Gone(Box<str>),
    Present(T),
}

/// What may be relied on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sure<'a, T> {
    Unread,
    Absent,
    Present(&'a T),
}

impl<T: Incarnation> Known<T> {
    /// Nothing is known. `round`: that of the listing under way, if one is.
    pub(crate) fn unread(round: u32) -> Self {
        Self { state: State::Unread, at: 0, round, told: 0, doubted: false }
    }

    /// It is known not to have been there at `at`.
    pub(crate) fn absent(at: u64, round: u32) -> Self {
        Self { state: State::Absent, at, round, told: 0, doubted: false }
    }

    pub(crate) fn sure(&self) -> Sure<'_, T> {
        match &self.state {
            _ if self.doubted => Sure::Unread,
            State::Unread => Sure::Unread,
            State::Absent | State::Gone(_) => Sure::Absent,
            State::Present(item) => Sure::Present(item),
        }
    }

    pub(crate) fn told(&self) -> u32 {
        self.told
    }

    /// A watch told of it. Like all that follow, says whether what may be relied on changed.
    pub(crate) fn changed(&mut self, item: T, round: u32) -> bool {
        if self.is_gone(&item) {
            return false;
        }
        match item.revision() {
            // A revision that is known already carries no news.
            Some(revision) if revision <= self.at && self.is_read() => return false,
            Some(revision) if revision < self.at => return false,
            Some(revision) => self.at = revision,
            None => {}
        }
        self.set(State::Present(item), round)
    }

    /// A watch told that this incarnation is gone. No revision of a uid comes after that.
    pub(crate) fn deleted(&mut self, uid: &str, revision: Option<u64>, round: u32) -> bool {
        let same = match &self.state {
            State::Present(item) => item.uid() == uid,
            State::Gone(gone) => **gone == *uid,
            State::Unread | State::Absent => false,
        };
        let newer = revision.is_none_or(|revision| revision >= self.at);
        if !same && !newer {
            return false;
        }
        self.at = self.at.max(revision.unwrap_or_default());
        if matches!(&self.state, State::Gone(gone) if **gone == *uid) {
            // Nothing of it comes after this, so it need not be kept in mind.
            self.state = State::Absent;
        }
        self.set(State::Absent, round)
    }

    /// A list of the moment `revision` had it, or had it not. `round`: the list's own.
    ///
    /// A list is read after it was asked for, so only what was told since may be newer; should the
    /// server's storage have been put back to an earlier state, the list is right.
    pub(crate) fn listed(&mut self, item: Option<T>, revision: Option<u64>, round: u32) -> bool {
        let newer = self.round == round && revision.is_none_or(|revision| self.at > revision);
        let gone = self.round == round && item.as_ref().is_some_and(|item| self.is_gone(item));
        if (newer && self.is_read()) || gone {
            return false;
        }
        self.at = revision.unwrap_or_default();
        let doubted = self.doubted;
        let state = item.map_or(State::Absent, State::Present);
        let before = self.round;
        let changed = self.set(state, before);
        // It may have been asked for before the write that is in doubt.
        self.doubted = doubted;
        changed && !doubted
    }

    /// A write of ours was answered with the object.
    pub(crate) fn wrote(&mut self, item: T, round: u32) -> bool {
        let Some(revision) = item.revision() else { return self.doubt() };
        let known = revision <= self.at && self.is_read();
        self.at = self.at.max(revision);
        if known || self.is_gone(&item) {
            return false;
        }
        let settled = std::mem::take(&mut self.doubted);
        self.set(State::Present(item), round) || settled
    }

    /// A delete of ours was answered: nothing is left of this incarnation. Whether another one that
    /// is known came before or after it, only a read can tell.
    pub(crate) fn gone(&mut self, uid: &str, round: u32) -> bool {
        if let State::Present(item) = &self.state
            && item.uid() != uid
        {
            return self.doubt();
        }
        self.set(State::Gone(uid.into()), round)
    }

    /// What is known cannot be relied on until it was read.
    pub(crate) fn doubt(&mut self) -> bool {
        let before = self.is_read() && !self.doubted;
        self.doubted = true;
        before
    }

    /// A read gave this. `told`: as it was when the read began. None: something came in between
    /// that may be newer or older, so it must be read again.
    pub(crate) fn read(&mut self, item: Option<T>, told: u32, round: u32) -> Option<bool> {
        let Some(item) = item else {
            if self.told != told {
                return None;
            }
            let settled = std::mem::take(&mut self.doubted);
            return Some(self.set(State::Absent, round) || settled);
        };
        let older = item.revision().map_or(self.told != told, |revision| revision < self.at);
        if self.told != told && (older || self.is_gone(&item)) {
            return None;
        }
        let settled = std::mem::take(&mut self.doubted);
        self.at = item.revision().unwrap_or(self.at).max(self.at);
        Some(self.set(State::Present(item), round) || settled)
    }

    /// Whether this was told before we deleted it.
    fn is_gone(&self, item: &T) -> bool {
        matches!(&self.state, State::Gone(uid) if **uid == *item.uid())
    }

    fn is_read(&self) -> bool {
        !matches!(self.state, State::Unread)
    }

    fn set(&mut self, state: State<T>, round: u32) -> bool {
        let same = match (&self.state, &state) {
            (State::Present(old), State::Present(new)) => {
                old.uid() == new.uid()
                    && old.revision().is_some()
                    && old.revision() == new.revision()
            }
            (State::Absent | State::Gone(_), State::Absent | State::Gone(_)) => true,
            _ => false,
        };
        self.told = self.told.wrapping_add(1);
        self.round = round;
        // That nothing is there now does not end what a watch may still tell of the past.
        if !matches!((&self.state, &state), (State::Gone(_), State::Absent)) {
            self.state = state;
        }
        !same && !self.doubted
    }
}

#[cfg(test)]
mod tests;
