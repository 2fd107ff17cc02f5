//! Go's `text/template` with Sprig's functions and the lookups that policies use, as one pure
//! function: text, data, the present and the answers to lookups in; text or a message out.
//!
//! Messages, printing, comparison and truth are Go's, because users match on them and policies
//! depend on them. There is no clock, no network, no randomness and no environment here, and a
//! template cannot run forever, grow without bound or crash the process.
//!
//! The engine is compared with Go's own on the cases in `oracle/`; see the README there.

mod builtin;
mod context;
mod encrypt;
mod exec;
mod lex;
mod library;
mod limits;
mod literal;
mod lookup;
mod methods;
mod node;
mod parse;
mod policy;
mod print;
mod random;
mod render;
mod resolve;
mod sprig;
mod time;
mod value;
mod version;
mod yaml;

pub use context::Context;
pub use encrypt::{Encryption, EncryptionError, Keys};
pub use exec::MissingKey;
pub use limits::Limits;
pub use lookup::{LookupError, Lookups, NoLookups, Query, Scope};
pub use policy::ClusterScoped;
pub use render::{Delimiters, RenderError, RenderOptions, render, render_context};
pub use resolve::{
    Resolution, ResolveOptions, Source, TemplateError, has_template, read_yaml, resolve,
    uses_encryption,
};
