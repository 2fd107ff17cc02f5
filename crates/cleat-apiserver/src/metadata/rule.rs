//! Which names a kind accepts.

use crate::names;

/// How the names of a kind are restricted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// `a.b-c`, at most 253 bytes: most kinds and all custom resources.
    Subdomain,
    /// `a-b`, at most 63 bytes: namespaces, for example.
    Label,
    /// Like `Label`, but beginning with a letter: services.
    Label1035,
    /// Anything that can stand in a URL path: RBAC kinds.
    PathSegment,
}

impl NameRule {
    /// `prefix` says that something will be appended, so that a dash may end it.
    pub fn check(self, name: &str, prefix: bool) -> Vec<String> {
        let masked = if prefix { mask_trailing_dash(name) } else { name.to_owned() };
        match self {
            Self::Subdomain => names::dns_subdomain(&masked),
            Self::Label => names::dns_label(&masked),
            Self::Label1035 => names::dns_1035_label(&masked),
            Self::PathSegment if prefix && matches!(name, "." | "..") => Vec::new(),
            Self::PathSegment => names::path_segment(name),
        }
    }
}

/// Replaces a final dash, and for upstream's sake the character before it.
fn mask_trailing_dash(name: &str) -> String {
    match name.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut masked = rest.to_owned();
            masked.pop();
            masked.push('a');
            masked
        }
        _ => name.to_owned(),
    }
}
