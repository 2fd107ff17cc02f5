//! How Go writes Kubernetes' built-in types as JSON, as a table.
//!
//! kube-apiserver turns every built-in object into a Go struct and back, so empty fields vanish or
//! appear by rules that OpenAPI documents do not carry. The table is printed by
//! `kubernetes/gotypes` from the Go types themselves; this file only reads it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

/// All types reachable from the built-in kinds.
#[derive(Debug, Default)]
pub struct Types {
    structs: Vec<Struct>,
    /// By `apiVersion` and kind.
    roots: BTreeMap<&'static str, BTreeMap<&'static str, Shape>>,
    /// The names of all kinds by `apiVersion`, lists and options among them.
    known: BTreeMap<&'static str, BTreeSet<&'static str>>,
}

/// A struct's place in [`Types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructId(usize);

#[derive(Debug, Default)]
pub struct Struct {
    /// `core/v1.Container`
    pub name: &'static str,
    pub fields: Vec<Field>,
}

#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub shape: Shape,
    pub when_empty: WhenEmpty,
}

/// What becomes of a field that holds its type's zero value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenEmpty {
    /// `omitempty`: not written, except structs, which Go writes in any case.
    Omit,
    /// `omitzero`: not written, structs included.
    OmitStruct,
    Write,
}

#[derive(Debug)]
pub enum Shape {
    /// The Go name of a type that is not plainly `string`, `int32` or `int64`.
    String(Option<&'static str>),
    Int32(Option<&'static str>),
    Int64(Option<&'static str>),
    Float,
    Boolean,
    /// base64 in JSON.
    Bytes,
    Quantity,
    Time,
    MicroTime,
    Duration,
    IntOrString,
    /// Anything at all.
    Any,
    Struct(StructId),
    List(Box<Shape>),
    Map(Box<Shape>),
    Pointer(Box<Shape>),
}

static TYPES: LazyLock<Types> = LazyLock::new(|| parse(include_str!("../data/gotypes.txt")));

/// The table, read on first use and shared by every server in the process.
pub fn types() -> &'static Types {
    &TYPES
}

impl Types {
    /// The type of a built-in kind. None for kinds the table does not have.
    pub fn root(&self, api_version: &str, kind: &str) -> Option<StructId> {
        match self.shape(api_version, kind) {
            Some(Shape::Struct(id)) => Some(*id),
            _ => None,
        }
    }

    /// The same as a shape.
    pub fn shape(&self, api_version: &str, kind: &str) -> Option<&Shape> {
        self.roots.get(api_version)?.get(kind)
    }

    /// Whether Kubernetes has such a kind, though no server may serve it any more, or yet.
    /// Definitions of custom resources are not among them: their server has kinds of its own.
    pub fn knows(&self, api_version: &str, kind: &str) -> bool {
        self.known.get(api_version).is_some_and(|kinds| kinds.contains(kind))
    }

    pub fn get(&self, id: StructId) -> &Struct {
        static EMPTY: Struct = Struct { name: "", fields: Vec::new() };
        self.structs.get(id.0).unwrap_or(&EMPTY)
    }
}

/// Lines are `= apiVersion kind type`, `? apiVersion kinds`, `type`, or ` field code`; see
/// `kubernetes/gotypes`.
fn parse(text: &'static str) -> Types {
    let mut ids: BTreeMap<&str, StructId> = BTreeMap::new();
    let mut types = Types::default();
    for line in text.lines().filter(|line| !line.starts_with(['=', '?', ' '])) {
        ids.insert(line, StructId(types.structs.len()));
        types.structs.push(Struct { name: line, fields: Vec::new() });
    }
    let mut current = None;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if let Some(known) = line.strip_prefix("? ") {
            let (api_version, kinds) = known.split_once(' ').unwrap_or((known, ""));
            types.known.insert(api_version, kinds.split(' ').collect());
            continue;
        }
        match (line.as_bytes().first(), words.next(), words.next(), words.next(), words.next()) {
            (Some(b'='), Some(_), Some(api_version), Some(kind), Some(name)) => {
                if let Some(id) = ids.get(name) {
                    types.roots.entry(api_version).or_default().insert(kind, Shape::Struct(*id));
                }
            }
            (Some(b' '), Some(name), Some(code), None, None) => {
                let (code, when_empty) = match code.strip_suffix('!') {
                    Some(code) => (code, WhenEmpty::Write),
                    None => match code.strip_suffix('~') {
                        Some(code) => (code, WhenEmpty::OmitStruct),
                        None => (code, WhenEmpty::Omit),
                    },
                };
                let field = Field { name, shape: shape(code, &ids), when_empty };
                if let Some(StructId(index)) = current
                    && let Some(owner) = types.structs.get_mut(index)
                {
                    owner.fields.push(field);
                }
            }
            _ => current = ids.get(line).copied(),
        }
    }
    types
}

fn shape(code: &'static str, ids: &BTreeMap<&str, StructId>) -> Shape {
    let mut rest = code.chars();
    let first = rest.next();
    let rest = rest.as_str();
    let named = rest.strip_prefix(':');
    match first {
        Some('s') => Shape::String(named),
        Some('i') => Shape::Int32(named),
        Some('l') => Shape::Int64(named),
        Some('f') => Shape::Float,
        Some('b') => Shape::Boolean,
        Some('y') => Shape::Bytes,
        Some('q') => Shape::Quantity,
        Some('t') => Shape::Time,
        Some('m') => Shape::MicroTime,
        Some('d') => Shape::Duration,
        Some('o') => Shape::IntOrString,
        Some('@') => ids.get(rest).map_or(Shape::Any, |id| Shape::Struct(*id)),
        Some('[') => Shape::List(Box::new(shape(rest, ids))),
        Some('{') => Shape::Map(Box::new(shape(rest, ids))),
        Some('*') => Shape::Pointer(Box::new(shape(rest, ids))),
        _ => Shape::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood() {
        for line in include_str!("../data/gotypes.txt").lines() {
            if let Some(field) = line.strip_prefix(' ') {
                let code = field.split(' ').next_back().unwrap();
                assert!(code.starts_with(['x', '*', '[', '{']) || !unknown(code), "{line}");
            }
        }
        assert!(types().root("apps/v1", "Deployment").is_some());
        assert!(types().root("v1", "Pod").is_some());
        assert!(types().knows("apps/v1beta1", "StatefulSet"));
        assert!(types().knows("v1", "PodList"));
        assert!(!types().knows("apps/v1", "Pod"));
        assert!(types().structs.iter().all(|s| s.name.contains('/')));
    }

    fn unknown(code: &str) -> bool {
        let bare: &'static str = code.trim_end_matches(['!', '~']).to_owned().leak();
        let ids = types().structs.iter().enumerate();
        let ids = ids.map(|(index, s)| (s.name, StructId(index))).collect();
        matches!(shape(bare, &ids), Shape::Any)
    }
}
