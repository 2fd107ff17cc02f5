//! How a cluster becomes part of the fleet, and stays it.
//!
//! The hub's side is [`hub`] (what an accepted, denied or leaving cluster has there) and
//! [`approval`] (who gets which certificate); the agent's side is [`agent`]. Both agree on names
//! ([`identity`], [`access`]) and on who may not join ([`join`]); [`place`] tells a cluster's namespace
//! from somebody else's.

pub mod access;
pub mod admission;
pub mod agent;
pub mod approval;
pub mod hub;
pub mod identity;
pub mod join;
pub mod place;
pub(crate) mod quantity;
