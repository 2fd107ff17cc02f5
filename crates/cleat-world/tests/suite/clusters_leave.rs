//! Leaving, on servers: what is removed, what stays, what is written down, and what is not done.

mod crashes;
mod guard;
mod needless;
mod party;
mod required;
mod unreachable;
