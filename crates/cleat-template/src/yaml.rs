//! YAML as the Go library that policies are resolved with reads and writes it. Writing matters to
//! the letter: a policy's JSON becomes YAML before its templates run, so the lines and columns in
//! messages are those of this text.
//!
//! The syntax is read by granit-parser, the parser inside serde-saphyr, because what a plain
//! scalar means has to be decided here: `yes` and `1_000` differ between libraries.

use crate::time::Time;

mod emit;
mod read;
mod scalar;

pub(crate) use emit::emit;
pub(crate) use read::read;

/// What a plain scalar turns out to be.
#[derive(Clone, Debug, PartialEq)]
enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Timestamp(Time),
    Merge,
    Text,
}
