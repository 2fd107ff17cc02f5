//! Delete protection: whether a request may pass, given what CriticalServices ask for.
//!
//! [`decide`] is the whole judgement. It is asked with what caches know; where that would let a
//! request pass it says what must be proven first, and is asked again with the proofs. A refusal
//! needs no proof: refused wrongly, a request is repeated; allowed wrongly, a service is lost.
//!
//! Nothing here reads or writes. Who answers reviews, keeps the webhook configuration and tells
//! how things stand is `cleat-protection`.

pub mod bundle;
pub mod cycles;
mod decide;
pub mod denial;
mod heard;
mod latch;
pub mod lenient;
mod report;
mod request;
pub mod rules;
mod service;
mod standing;
mod whereabouts;

#[cfg(test)]
mod tests;

pub use decide::{Concern, Decision, Knowledge, Question, SEEN, Sight, Tally, concerned, decide};
pub use heard::{Heard, Last};
pub use latch::LATCH_LIFE;
pub use report::{Probe, Seen, is_going, judge, report};
pub use request::{Operation, Request};
pub use service::{Criterion, Service, definition_id, namespace_id};
pub use standing::Standing;
pub use whereabouts::{Whereabouts, whereabouts};
