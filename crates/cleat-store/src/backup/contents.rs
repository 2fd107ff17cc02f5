//! Reading a backup: all of it is checked before anything is believed.

use std::io::{self, Read};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::{END, ENTRY, FORMAT, Item, MAGIC};
use crate::{Entry, Revision};

/// What a backup holds.
#[derive(Debug)]
pub struct Contents {
    /// The store it was taken of.
    pub name: String,
    pub revision: Revision,
    pub(crate) items: Vec<Item>,
}

/// Why bytes are no backup.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentsError {
    #[error("cannot read the backup")]
    Io(#[source] io::Error),
    #[error("this is not a backup of a store")]
    Foreign,
    #[error("the backup has format {found}, this version reads formats up to {known}")]
    Format { found: u32, known: u32 },
    #[error("the backup is damaged: {0}")]
    Damaged(&'static str),
}

impl Contents {
    /// Reads a whole backup.
    ///
    /// *Guarantees*: what is returned is what was once written, to the last byte.
    pub fn read(input: impl Read) -> Result<Self, ContentsError> {
        let mut input = Input { input, digest: Sha256::new() };
        let magic = input.bytes(MAGIC.len()).map_err(|error| match error {
            ContentsError::Damaged(_) => ContentsError::Foreign,
            other => other,
        })?;
        if magic != MAGIC {
            return Err(ContentsError::Foreign);
        }
        match u32::from_be_bytes(input.array()?) {
            FORMAT => {}
            found => return Err(ContentsError::Format { found, known: FORMAT }),
        }
        let name = input.text()?;
        let revision = u64::from_be_bytes(input.array()?);
        let mut items = Vec::new();
        loop {
            match input.array::<1>()? {
                [ENTRY] => items.push(input.item()?),
                [END] => break,
                _ => return Err(ContentsError::Damaged("an entry begins with what none does")),
            }
        }
        let count = u64::from_be_bytes(input.array()?);
        let digest: [u8; 32] = input.digest.clone().finalize().into();
        if input.array::<32>()? != digest {
            return Err(ContentsError::Damaged("its digest is that of something else"));
        }
        if usize::try_from(count) != Ok(items.len()) {
            return Err(ContentsError::Damaged("it holds more or less than it says"));
        }
        if !input.is_at_end()? {
            return Err(ContentsError::Damaged("something follows its end"));
        }
        Ok(Self { name, revision, items })
    }

    /// How many entries it holds.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

struct Input<R> {
    input: R,
    digest: Sha256,
}

impl<R: Read> Input<R> {
    /// Lengths come from the outside: memory is taken as bytes arrive, not as they are promised.
    fn bytes(&mut self, length: usize) -> Result<Vec<u8>, ContentsError> {
        let mut bytes = Vec::new();
        let most = u64::try_from(length).unwrap_or(u64::MAX);
        let read = self.input.by_ref().take(most).read_to_end(&mut bytes);
        if read.map_err(ContentsError::Io)? < length {
            return Err(ContentsError::Damaged("it is cut"));
        }
        self.digest.update(&bytes);
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ContentsError> {
        let bytes = self.bytes(N)?;
        bytes.try_into().map_err(|_| ContentsError::Damaged("it is cut"))
    }

    fn value(&mut self) -> Result<Vec<u8>, ContentsError> {
        let length = u32::from_be_bytes(self.array()?);
        self.bytes(usize::try_from(length).unwrap_or(usize::MAX))
    }

    fn text(&mut self) -> Result<String, ContentsError> {
        String::from_utf8(self.value()?).map_err(|_| ContentsError::Damaged("a name is no text"))
    }

    fn item(&mut self) -> Result<Item, ContentsError> {
        let (bucket, key) = (self.text()?, self.text()?);
        if bucket.is_empty() || bucket.contains('\0') {
            return Err(ContentsError::Damaged("a bucket has a name that none can have"));
        }
        let created = u64::from_be_bytes(self.array()?);
        let modified = u64::from_be_bytes(self.array()?);
        let value = Bytes::from(self.value()?.into_boxed_slice());
        Ok((bucket.into(), key.into(), Entry { created, modified, value }))
    }

    fn is_at_end(&mut self) -> Result<bool, ContentsError> {
        let mut rest = Vec::new();
        let read = self.input.by_ref().take(1).read_to_end(&mut rest);
        Ok(read.map_err(ContentsError::Io)? == 0)
    }
}
