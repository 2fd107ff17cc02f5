//! What a removal or a change would do, put together for people: the outlook of each work, with what
//! else would go and what would stand in the way.
//!
//! Nothing is decided here that an execution decides otherwise: that is [`crate::work::outlook`] and
//! [`crate::work::proposal`].

mod answer;
mod applied;
mod differences;
mod digest;
mod expire;
mod fleet;
pub mod guard;
mod joined;
mod large;
mod owned;
mod together;
mod unlisted;

#[cfg(test)]
mod tests;

pub use answer::{Inquiry, Kindred, Tried, listed, not_taken, objects, unseen};
pub use applied::three_way;
pub use differences::differences;
pub use digest::{Believed, Part, changes, plan_hash};
pub use expire::{Expiring, expire};
pub use fleet::unlooked_at;
pub use joined::joined;
pub use large::{Limits, deletes_anew, large};
pub use owned::{is_custom, owned, owns_anywhere};
pub use together::together;
