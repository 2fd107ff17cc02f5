//! How much a template may cost. Templates come from users and run where many policies are
//! evaluated, so every loop, every recursion and every byte is counted.

use std::cell::Cell;

use crate::lookup::{LookupError, Query};

/// Bounds on one template. The defaults are far above what policies need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the template's text.
    pub template: usize,
    /// Bytes that may be made while executing: output, and every string a function returns.
    pub bytes: usize,
    /// Iterations, calls and visited nodes of values.
    pub steps: u64,
    /// Blocks within blocks, expressions within expressions, templates within templates, and
    /// values within values.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { template: 4 << 20, bytes: 64 << 20, steps: 4_000_000, depth: 128 }
    }
}

/// What is left of the [`Limits`] of a running template.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    bytes: Cell<usize>,
    steps: Cell<u64>,
    depth: Cell<usize>,
}

/// Held while one level deeper.
pub(crate) struct Level<'a>(&'a Cell<usize>);

impl Drop for Level<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, bytes: Cell::new(0), steps: Cell::new(0), depth: Cell::new(0) }
    }

    pub(crate) fn step(&self) -> Result<(), Fault> {
        self.steps(1)
    }

    pub(crate) fn steps(&self, count: u64) -> Result<(), Fault> {
        let steps = self.steps.get().saturating_add(count);
        self.steps.set(steps);
        if steps > self.limits.steps {
            return Err(Fault::Limit(format!(
                "the template takes more than {} steps",
                self.limits.steps
            )));
        }
        Ok(())
    }

    /// Announces `bytes` that are about to be made.
    pub(crate) fn charge(&self, bytes: usize) -> Result<(), Fault> {
        let total = self.bytes.get().saturating_add(bytes);
        self.bytes.set(total);
        if total > self.limits.bytes {
            return Err(Fault::Limit(format!(
                "the template makes more than {} bytes",
                self.limits.bytes
            )));
        }
        Ok(())
    }

    pub(crate) fn descend(&self) -> Result<Level<'_>, Fault> {
        let depth = self.depth.get() + 1;
        if depth > self.limits.depth {
            return Err(Fault::Limit(format!(
                "the template or a value of it is nested more than {} levels deep",
                self.limits.depth
            )));
        }
        self.depth.set(depth);
        Ok(Level(&self.depth))
    }
}

/// Why a function did not answer.
#[derive(Debug)]
pub(crate) enum Fault {
    Text(String),
    Limit(String),
    /// A read failed; the text is what upstream would say around it.
    Lookup {
        text: String,
        query: Box<Query>,
        error: LookupError,
    },
}

impl Fault {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Text(text) | Self::Limit(text) | Self::Lookup { text, .. } => text,
        }
    }
}
