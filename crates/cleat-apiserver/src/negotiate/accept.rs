//! The `Accept` header, in the order in which its clauses are tried.

/// One acceptable media type.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clause<'a> {
    pub(super) kind: &'a str,
    pub(super) subtype: &'a str,
    quality: f64,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    /// Of several with the same name the last counts.
    pub(super) fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    /// Names something that can be answered, in whatever view.
    pub(super) fn is_ours(&self) -> bool {
        matches!(
            (self.kind, self.subtype),
            ("*", "*") | ("application", "json" | "yaml" | "vnd.kubernetes.protobuf")
        )
    }

    /// Upstream's order, which is not transitive: better quality or, whatever the quality, no
    /// star where the other has one.
    fn goes_before(&self, other: &Self) -> bool {
        self.quality > other.quality
            || (self.kind != "*" && other.kind == "*")
            || (self.subtype != "*" && other.subtype == "*")
    }
}

/// Beyond so many clauses the rest is ignored, since ordering them takes quadratic time.
const MOST: usize = 128;

pub(super) fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut ordered: Vec<Clause<'_>> = Vec::new();
    for clause in header.split(',').filter_map(clause).take(MOST) {
        // By insertion, because with such an order the way of sorting decides on the result.
        let mut place = ordered.len();
        while let Some(before) = place.checked_sub(1)
            && ordered.get(before).is_some_and(|other| clause.goes_before(other))
        {
            place = before;
        }
        ordered.insert(place, clause);
    }
    ordered
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let mut parts = text.trim_matches(' ').split(';');
    let media_type = parts.next()?;
    let (kind, subtype) = match media_type.split_once('/') {
        Some((kind, subtype)) if !subtype.is_empty() => {
            // A second slash makes it no media type, unless nothing follows.
            let subtype = subtype.strip_suffix('/').unwrap_or(subtype);
            (kind.trim_matches(' '), Some(subtype).filter(|rest| !rest.contains('/'))?)
        }
        _ => match media_type.trim_matches(['/', ' ']) {
            "*" => ("*", "*"),
            _ => return None,
        },
    };
    let mut clause =
        Clause { kind, subtype: subtype.trim_matches(' '), quality: 1.0, parameters: Vec::new() };
    for part in parts {
        let Some((name, value)) = part.split_once('=') else { continue };
        if value.is_empty() || value.strip_suffix('=').unwrap_or(value).contains('=') {
            continue;
        }
        let value = value.strip_suffix('=').unwrap_or(value);
        match name.trim_matches(' ') {
            "q" => clause.quality = value.parse().unwrap_or(0.0),
            name => clause.parameters.push((name, value.trim_matches(' '))),
        }
    }
    Some(clause)
}
