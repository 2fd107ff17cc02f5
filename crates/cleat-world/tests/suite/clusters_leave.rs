//! Leaving, on servers: what is removed, what stays, what is written down, and what is not done.

mod add_ons;
mod agents;
mod crash_points;
mod crashes;
mod definitions;
mod deployed;
mod evicted;
mod ground;
mod guard;
mod kept;
mod leftovers;
mod many;
mod needless;
mod party;
mod place;
mod policies;
mod records;
mod required;
mod sets;
mod stale;
mod unreachable;
mod webhooks;
