//! A disk for redb that can lose its power or its room at any operation. What was not synced may
//! then be there, be missing, or be there in part; sectors are whole.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;

use super::tape::{Operation, Tape};

pub(super) const SECTOR: usize = 512;
/// What a file system gives room for at once.
const BLOCK: usize = 4096;

#[derive(Clone, Debug, Default)]
pub(super) struct Platter(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    synced: Vec<u8>,
    current: Vec<u8>,
    unsynced: Vec<Operation>,
    operations: usize,
    /// Operations from the first up to the second fail.
    failing: Option<(usize, usize)>,
    trouble: Option<Trouble>,
    /// Blocks that were written to: the others are holes, which take no room.
    blocks: BTreeSet<usize>,
    tape: Option<Tape>,
}

/// What a disk does not do until it is well again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It has no room for blocks that were never written to.
    Full,
    /// It has none for a longer file either.
    FullAtOnce,
    /// It changes nothing, like a file system that was mounted anew after an error.
    ReadOnly,
}

impl Platter {
    pub(super) fn holding(image: Vec<u8>) -> Platter {
        let blocks = (0..image.len().div_ceil(BLOCK)).collect();
        let inner = Inner { synced: image.clone(), current: image, blocks, ..Inner::default() };
        Platter(Arc::new(Mutex::new(inner)))
    }

    /// Another disk with the same on it.
    pub(super) fn copy(&self) -> Platter {
        Platter::holding(self.inner().current.clone())
    }

    pub(super) fn image(&self) -> Vec<u8> {
        self.inner().current.clone()
    }

    pub(super) fn length(&self) -> usize {
        self.inner().current.len()
    }

    pub(super) fn operations(&self) -> usize {
        self.inner().operations
    }

    pub(super) fn cut_after(&self, operations: usize) {
        self.fail_after(operations, usize::MAX);
    }

    pub(super) fn fail_after(&self, operations: usize, times: usize) {
        let mut inner = self.inner();
        let from = inner.operations + operations;
        inner.failing = Some((from, from.saturating_add(times)));
    }

    pub(super) fn trouble(&self, trouble: Option<Trouble>) {
        self.inner().trouble = trouble;
    }

    /// From now on everything that is done to it is written down.
    pub(super) fn record(&self) {
        let mut inner = self.inner();
        inner.tape = Some(Tape::starting_with(inner.current.clone()));
    }

    /// How many operations are on the tape.
    pub(super) fn recorded(&self) -> usize {
        self.inner().tape.as_ref().map_or(0, Tape::length)
    }

    pub(super) fn take_tape(&self) -> Tape {
        self.inner().tape.take().unwrap()
    }

    /// What one finds when the power is back, with a different luck for each seed.
    pub(super) fn after_power_cut(&self, seed: u64) -> Platter {
        let inner = self.inner();
        let mut image = inner.synced.clone();
        let mut luck = seed * 0x9e37_79b9 + inner.operations as u64;
        for operation in &inner.unsynced {
            luck ^= luck << 13;
            luck ^= luck >> 7;
            luck ^= luck << 17;
            match (luck % 4, operation) {
                (0, _) => {}
                (1, Operation::Write { at, data }) => {
                    let sectors = (luck >> 8) as usize % (data.len() / SECTOR + 1);
                    let data = data[..sectors * SECTOR].to_vec();
                    Operation::Write { at: *at, data }.apply(&mut image);
                }
                _ => operation.apply(&mut image),
            }
        }
        Platter::holding(image)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }
}

impl Inner {
    /// Does one thing to the disk, unless it is its time to fail.
    fn operate(&mut self, operation: Operation) -> io::Result<()> {
        let number = self.operations;
        self.operations += 1;
        if self.failing.is_some_and(|(from, to)| (from..to).contains(&number)) {
            return Err(ErrorKind::StorageFull.into());
        }
        if let Some(refusal) = self.refusal(&operation) {
            return Err(refusal.into());
        }
        if let Some(tape) = &mut self.tape {
            tape.push(operation.clone());
        }
        operation.apply(&mut self.current);
        match &operation {
            Operation::Write { at, data } => self.blocks.extend(blocks(*at, data.len())),
            Operation::SetLen(length) => drop(self.blocks.split_off(&length.div_ceil(BLOCK))),
            Operation::Sync => {
                for operation in std::mem::take(&mut self.unsynced) {
                    operation.apply(&mut self.synced);
                }
                return Ok(());
            }
        }
        self.unsynced.push(operation);
        Ok(())
    }

    fn refusal(&self, operation: &Operation) -> Option<ErrorKind> {
        let new = match operation {
            Operation::Write { at, data } => {
                blocks(*at, data.len()).any(|block| !self.blocks.contains(&block))
            }
            Operation::SetLen(length) => {
                self.trouble == Some(Trouble::FullAtOnce) && *length > self.current.len()
            }
            Operation::Sync => false,
        };
        match self.trouble? {
            Trouble::ReadOnly => Some(ErrorKind::ReadOnlyFilesystem),
            Trouble::Full | Trouble::FullAtOnce => new.then_some(ErrorKind::StorageFull),
        }
    }
}

fn blocks(at: usize, length: usize) -> std::ops::Range<usize> {
    at / BLOCK..(at + length).div_ceil(BLOCK)
}

impl StorageBackend for Platter {
    fn len(&self) -> io::Result<u64> {
        Ok(self.length() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.inner();
        let range = offset as usize..offset as usize + out.len();
        let data = inner.current.get(range).ok_or(ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(data);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner().operate(Operation::SetLen(len as usize))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.inner().operate(Operation::Sync)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner().operate(Operation::Write { at: offset as usize, data: data.to_vec() })
    }
}
