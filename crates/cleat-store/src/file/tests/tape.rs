//! What was done to a disk, in order, and every state in which a power cut on the way can leave it
//! if things reach it in that order. States in which they do not are the platter's.
//!
//! The write that the power cut falls into is there up to some sector, and that sector is garbage.
//! The first one is different: redb keeps its head there, of which it rewrites less than a sector, and
//! counts on every byte being either the old or the new one. There, the bytes up to some place are
//! new and the others old, or the other way round.

use super::platter::{Platter, SECTOR};

#[derive(Clone, Debug)]
pub(super) enum Operation {
    Write { at: usize, data: Vec<u8> },
    SetLen(usize),
    Sync,
}

#[derive(Debug)]
pub(super) struct Tape {
    start: Vec<u8>,
    operations: Vec<Operation>,
}

impl Tape {
    pub(super) fn starting_with(start: Vec<u8>) -> Self {
        Tape { start, operations: Vec::new() }
    }

    pub(super) fn push(&mut self, operation: Operation) {
        self.operations.push(operation);
    }

    pub(super) fn length(&self) -> usize {
        self.operations.len()
    }

    /// Every disk that a power cut can leave, and how many operations were finished before it.
    pub(super) fn cuts(&self) -> impl Iterator<Item = (usize, Platter)> + '_ {
        let mut image = self.start.clone();
        let later = self.operations.iter().enumerate().flat_map(move |(finished, operation)| {
            let mut left: Vec<(usize, Vec<u8>)> =
                operation.torn(&image).into_iter().map(|torn| (finished, torn)).collect();
            operation.apply(&mut image);
            left.push((finished + 1, image.clone()));
            left
        });
        std::iter::once((0, self.start.clone()))
            .chain(later)
            .map(|(finished, image)| (finished, Platter::holding(image)))
    }
}

impl Operation {
    pub(super) fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Operation::Write { at, data } => {
                if image.len() < at + data.len() {
                    image.resize(at + data.len(), 0);
                }
                image[*at..at + data.len()].copy_from_slice(data);
            }
            Operation::SetLen(length) => image.resize(*length, 0),
            Operation::Sync => {}
        }
    }

    /// What is on the disk if the power goes in the middle of this.
    fn torn(&self, before: &[u8]) -> Vec<Vec<u8>> {
        let Operation::Write { at, data } = self else { return Vec::new() };
        let mut after = before.to_vec();
        self.apply(&mut after);
        if *at < SECTOR {
            return mixed(before, &after);
        }
        let mut states = Vec::new();
        for begin in (*at..at + data.len()).step_by(SECTOR) {
            let end = (begin + SECTOR).min(at + data.len());
            let mut state = before.to_vec();
            state.resize(after.len(), 0);
            state[*at..begin].copy_from_slice(&after[*at..begin]);
            for (place, byte) in state[begin..end].iter_mut().enumerate() {
                *byte = 0xa5 ^ place as u8;
            }
            states.push(state);
        }
        states
    }
}

/// Old and new bytes side by side, at every place of what differs.
fn mixed(before: &[u8], after: &[u8]) -> Vec<Vec<u8>> {
    let differing: Vec<usize> =
        (0..before.len().min(after.len())).filter(|at| before[*at] != after[*at]).collect();
    let mut states = Vec::new();
    for at in differing {
        states.push([&after[..=at], &before[at + 1..]].concat());
        states.push([&before[..=at], &after[at + 1..]].concat());
    }
    states
}
