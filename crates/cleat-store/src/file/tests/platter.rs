//! A disk for redb that can lose its power or its room at any operation. What was not synced may
//! then be there, be missing, or be there in part; sectors are whole.

use std::io;
use std::sync::{Arc, Mutex};

use redb::StorageBackend;

const SECTOR: usize = 512;

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
}

#[derive(Debug)]
enum Operation {
    Write { at: usize, data: Vec<u8> },
    SetLen(usize),
}

impl Platter {
    pub(super) fn operations(&self) -> usize {
        self.0.lock().unwrap().operations
    }

    pub(super) fn cut_after(&self, operations: usize) {
        self.fail_after(operations, usize::MAX);
    }

    pub(super) fn fail_after(&self, operations: usize, times: usize) {
        let mut inner = self.0.lock().unwrap();
        let from = inner.operations + operations;
        inner.failing = Some((from, from.saturating_add(times)));
    }

    /// What one finds when the power is back, with a different luck for each seed.
    pub(super) fn after_power_cut(&self, seed: u64) -> Platter {
        let inner = self.0.lock().unwrap();
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
                    apply(&mut image, *at, &data[..sectors * SECTOR]);
                }
                (_, Operation::Write { at, data }) => apply(&mut image, *at, data),
                (_, Operation::SetLen(len)) => image.resize(*len, 0),
            }
        }
        let inner = Inner { synced: image.clone(), current: image, ..Inner::default() };
        Platter(Arc::new(Mutex::new(inner)))
    }
}

impl Inner {
    /// Counts what changes the disk, and fails it when its time has come.
    fn operate(&mut self) -> io::Result<()> {
        let operation = self.operations;
        self.operations += 1;
        match self.failing {
            Some((from, to)) if (from..to).contains(&operation) => {
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }
            _ => Ok(()),
        }
    }
}

impl StorageBackend for Platter {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().current.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.0.lock().unwrap();
        let range = offset as usize..offset as usize + out.len();
        let data = inner.current.get(range).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(data);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        inner.operate()?;
        inner.current.resize(len as usize, 0);
        inner.unsynced.push(Operation::SetLen(len as usize));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        inner.operate()?;
        inner.synced = inner.current.clone();
        inner.unsynced.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        inner.operate()?;
        apply(&mut inner.current, offset as usize, data);
        inner.unsynced.push(Operation::Write { at: offset as usize, data: data.to_vec() });
        Ok(())
    }
}

fn apply(image: &mut Vec<u8>, at: usize, data: &[u8]) {
    if image.len() < at + data.len() {
        image.resize(at + data.len(), 0);
    }
    image[at..at + data.len()].copy_from_slice(data);
}
