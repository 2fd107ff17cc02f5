//! Tables of what is planned and said, and random histories in a world of a few maps.

mod histories;
mod stories;
mod world;
mod written;
