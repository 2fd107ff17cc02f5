//! Choices that look random and are the same each time: a policy whose text differs at every look
//! could never be compliant.
//!
//! They follow from the seed, which is no secret. So there is none for templates that make Secrets.

use std::cell::Cell;

use sha2::{Digest as _, Sha256};

/// A stream of choices. What is drawn depends on the seed and on how much was drawn before.
pub(crate) struct Random {
    seed: [u8; 32],
    block: Cell<[u8; 32]>,
    drawn: Cell<u64>,
}

const BLOCK: u64 = 32;

impl Random {
    /// `seed`: what the template is of; `text`: the template.
    pub(crate) fn new(seed: &str, text: &str) -> Self {
        let seed = Sha256::new().chain_update(Sha256::digest(seed)).chain_update(text).finalize();
        Self { seed: seed.into(), block: Cell::new([0; 32]), drawn: Cell::new(0) }
    }

    pub(crate) fn byte(&self) -> u8 {
        let drawn = self.drawn.get();
        if drawn.is_multiple_of(BLOCK) {
            let block = Sha256::new().chain_update(self.seed).chain_update(drawn.to_be_bytes());
            self.block.set(block.finalize().into());
        }
        self.drawn.set(drawn.wrapping_add(1));
        let at = usize::try_from(drawn % BLOCK).unwrap_or_default();
        self.block.get().get(at).copied().unwrap_or_default()
    }

    pub(crate) fn bytes<const N: usize>(&self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    /// One of `0..end`, each as likely as any other. Nothing for an empty range.
    pub(crate) fn below(&self, end: u64) -> Option<u64> {
        // What is left over at the top would make some likelier.
        let most = u64::MAX - u64::MAX.checked_rem(end)?;
        loop {
            let drawn = u64::from_be_bytes(self.bytes());
            if drawn < most {
                return drawn.checked_rem(end);
            }
        }
    }
}
