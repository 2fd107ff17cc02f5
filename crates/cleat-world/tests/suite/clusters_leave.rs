//! Leaving, on servers: what is removed, what stays, what is written down, and what is not done.

mod agents;
mod crash_points;
mod crashes;
mod guard;
mod leftovers;
mod many;
mod needless;
mod party;
mod place;
mod policies;
mod required;
mod sets;
mod unreachable;
