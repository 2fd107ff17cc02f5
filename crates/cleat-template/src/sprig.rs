//! Sprig's functions, as far as the same policy always gets the same answer: one whose text differs
//! at every look could never be compliant. What Sprig draws by chance follows from the policy here.
//!
//! Functions that would make secrets of that, or need the network or the environment, exist only to
//! say why they are not offered.

use crate::library::Table;

mod cast;
mod ciphers;
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
mod seeded;
mod texts;
mod urls;
mod versions;
mod words;

pub(crate) use cast::number_of;
pub(crate) use digests::{base64_decode, base64_encode, base64_mistake};
pub(crate) use json::{Escape, encode as json_encode};

pub(crate) fn tables() -> [Table; 17] {
    [
        ciphers::TABLE,
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
        seeded::TABLE,
        texts::TABLE,
        urls::TABLE,
        versions::TABLE,
        words::TABLE,
    ]
}
