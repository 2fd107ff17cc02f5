//! What time it is, for whoever needs to know: the one place where a process looks at its clock.

use std::sync::Arc;

use jiff::Timestamp;

/// A clock. Its clones are the same.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The machine's.
    pub fn system() -> Self {
        Self::new(Timestamp::now)
    }

    /// Any other.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}
