//! Sprig's functions, as far as the same arguments always give the same answer.
//!
//! Functions that need randomness, the network or the environment exist only to say why they are
//! not offered: a policy whose text differs at every look could never be compliant.

use crate::library::Table;

mod cast;
mod dates;
mod defaults;
mod dicts;
mod digests;
mod json;
mod kinds;
mod lists;
mod math;
mod paths;
mod patterns;
mod refused;
mod texts;
mod urls;
mod versions;
mod words;

pub(crate) use cast::number_of;
pub(crate) use digests::{base64_decode, base64_encode, base64_mistake};
pub(crate) use json::{Escape, encode as json_encode};

pub(crate) fn tables() -> [Table; 15] {
    [
        defaults::TABLE,
        dates::TABLE,
        dicts::TABLE,
        digests::TABLE,
        json::TABLE,
        kinds::TABLE,
        lists::TABLE,
        math::TABLE,
        paths::TABLE,
        patterns::TABLE,
        refused::TABLE,
        texts::TABLE,
        urls::TABLE,
        versions::TABLE,
        words::TABLE,
    ]
}
