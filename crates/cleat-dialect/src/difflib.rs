//! Unified diffs, line for line those of Python's and Go's `difflib`.
//!
//! The algorithm looks for the longest run of equal lines, then left and right of it. Lines that
//! are very common in a long text do not start a run.

use std::collections::HashMap;
use std::fmt::Write as _;

/// From this many lines on, common lines are not looked for.
const LONG: usize = 200;

/// A run of equal lines.
#[derive(Clone, Copy)]
struct Run {
    a: usize,
    b: usize,
    len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Equal,
    Replace,
    Delete,
    Insert,
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    change: Change,
    a: (usize, usize),
    b: (usize, usize),
}

/// The difference between two texts, with file headers and `context` lines around each change;
/// empty if there is none.
///
/// As with difflib's own splitting, a text that ends in a line break has one more, empty, line.
pub fn unified(a: &str, b: &str, from: &str, to: &str, context: usize) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split('\n').collect(), b.split('\n').collect());
    let mut out = String::new();
    for group in grouped(&operations(&a, &b), context) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        if out.is_empty() {
            let _ = write!(out, "--- {from}\n+++ {to}\n");
        }
        let _ =
            writeln!(out, "@@ -{} +{} @@", range(first.a.0, last.a.1), range(first.b.0, last.b.1));
        for operation in &group {
            let removed = a.get(operation.a.0..operation.a.1).unwrap_or_default();
            let added = b.get(operation.b.0..operation.b.1).unwrap_or_default();
            let (sign, added) = match operation.change {
                Change::Equal => (' ', &[][..]),
                _ => ('-', added),
            };
            for line in removed {
                let _ = writeln!(out, "{sign}{line}");
            }
            for line in added {
                let _ = writeln!(out, "+{line}");
            }
        }
    }
    out
}

fn range(start: usize, end: usize) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        length => format!("{},{length}", start + 1),
    }
}

fn operations(a: &[&str], b: &[&str]) -> Vec<Operation> {
    let mut all = Vec::new();
    let (mut i, mut j) = (0, 0);
    for run in runs(a, b) {
        let change = match (i < run.a, j < run.b) {
            (true, true) => Some(Change::Replace),
            (true, false) => Some(Change::Delete),
            (false, true) => Some(Change::Insert),
            (false, false) => None,
        };
        if let Some(change) = change {
            all.push(Operation { change, a: (i, run.a), b: (j, run.b) });
        }
        (i, j) = (run.a + run.len, run.b + run.len);
        if run.len > 0 {
            all.push(Operation { change: Change::Equal, a: (run.a, i), b: (run.b, j) });
        }
    }
    all
}

/// All runs of equal lines in order, and an empty one at the end.
fn runs(a: &[&str], b: &[&str]) -> Vec<Run> {
    let places = places(b);
    let mut open = vec![((0, a.len()), (0, b.len()))];
    let mut found: Vec<Run> = Vec::new();
    while let Some((in_a, in_b)) = open.pop() {
        let run = longest(a, b, &places, in_a, in_b);
        if run.len == 0 {
            continue;
        }
        open.push(((in_a.0, run.a), (in_b.0, run.b)));
        open.push(((run.a + run.len, in_a.1), (run.b + run.len, in_b.1)));
        found.push(run);
    }
    found.sort_by_key(|run| (run.a, run.b));
    let mut joined: Vec<Run> = Vec::new();
    for run in found {
        match joined.last_mut() {
            Some(last) if last.a + last.len == run.a && last.b + last.len == run.b => {
                last.len += run.len;
            }
            _ => joined.push(run),
        }
    }
    joined.push(Run { a: a.len(), b: b.len(), len: 0 });
    joined
}

/// Where each line of `b` occurs, unless it is too common to be telling.
fn places<'a>(b: &[&'a str]) -> HashMap<&'a str, Vec<usize>> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, line) in b.iter().enumerate() {
        places.entry(line).or_default().push(place);
    }
    if b.len() >= LONG {
        let most = b.len() / 100 + 1;
        places.retain(|_, places| places.len() <= most);
    }
    places
}

/// The first of the longest runs within the given parts of both texts.
fn longest(
    a: &[&str],
    b: &[&str],
    places: &HashMap<&str, Vec<usize>>,
    in_a: (usize, usize),
    in_b: (usize, usize),
) -> Run {
    let mut best = Run { a: in_a.0, b: in_b.0, len: 0 };
    let mut before: HashMap<usize, usize> = HashMap::new();
    let part = a.get(in_a.0..in_a.1).unwrap_or_default();
    for (i, line) in part.iter().enumerate().map(|(offset, line)| (in_a.0 + offset, line)) {
        let mut here = HashMap::new();
        for &j in places.get(line).into_iter().flatten() {
            if j < in_b.0 {
                continue;
            }
            if j >= in_b.1 {
                break;
            }
            let len = j.checked_sub(1).and_then(|j| before.get(&j)).copied().unwrap_or(0) + 1;
            here.insert(j, len);
            if len > best.len {
                best = Run { a: i + 1 - len, b: j + 1 - len, len };
            }
        }
        before = here;
    }
    // Common lines do not start a run but belong to it.
    while best.a > in_a.0 && best.b > in_b.0 && a.get(best.a - 1) == b.get(best.b - 1) {
        best = Run { a: best.a - 1, b: best.b - 1, len: best.len + 1 };
    }
    while best.a + best.len < in_a.1
        && best.b + best.len < in_b.1
        && a.get(best.a + best.len) == b.get(best.b + best.len)
    {
        best.len += 1;
    }
    best
}

/// Changes with the lines around them; changes that are far apart are in different groups.
fn grouped(operations: &[Operation], context: usize) -> Vec<Vec<Operation>> {
    let mut operations = operations.to_vec();
    if let Some(first) = operations.first_mut()
        && first.change == Change::Equal
    {
        first.a.0 = first.a.0.max(first.a.1.saturating_sub(context));
        first.b.0 = first.b.0.max(first.b.1.saturating_sub(context));
    }
    if let Some(last) = operations.last_mut()
        && last.change == Change::Equal
    {
        last.a.1 = last.a.1.min(last.a.0 + context);
        last.b.1 = last.b.1.min(last.b.0 + context);
    }
    let mut groups = Vec::new();
    let mut group: Vec<Operation> = Vec::new();
    for operation in operations {
        let Operation { change, a, b } = operation;
        let mut start = (a.0, b.0);
        if change == Change::Equal && a.1 - a.0 > 2 * context {
            group.push(Operation {
                change,
                a: (a.0, a.1.min(a.0 + context)),
                b: (b.0, b.1.min(b.0 + context)),
            });
            groups.push(core::mem::take(&mut group));
            start = (a.1.saturating_sub(context).max(a.0), b.1.saturating_sub(context).max(b.0));
        }
        group.push(Operation { change, a: (start.0, a.1), b: (start.1, b.1) });
    }
    groups.push(group);
    groups.retain(|group| group.iter().any(|operation| operation.change != Change::Equal));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_changed_line_is_shown_with_its_surroundings() {
        let a = "1\n2\n3\n4\n5\n6\n7\n8\n";
        let b = "1\n2\n3\n4\nfive\n6\n7\n8\n";
        let expected = "--- a\n+++ b\n@@ -3,5 +3,5 @@\n 3\n 4\n-5\n+five\n 6\n 7\n";
        assert_eq!(unified(a, b, "a", "b", 2), expected);
        assert_eq!(unified(a, a, "a", "b", 2), "");
    }

    #[test]
    fn far_changes_are_apart_and_near_ones_together() {
        let lines = |change: &[usize]| -> String {
            (0..20)
                .map(|n| if change.contains(&n) { format!("x{n}\n") } else { format!("{n}\n") })
                .collect()
        };
        let apart = unified(&lines(&[]), &lines(&[2, 15]), "a", "b", 3);
        assert_eq!(apart.matches("@@ ").count(), 2, "{apart}");
        let together = unified(&lines(&[]), &lines(&[2, 8]), "a", "b", 3);
        assert_eq!(together.matches("@@ ").count(), 1, "{together}");
    }

    #[test]
    fn insertions_at_the_start_and_deletions_of_all() {
        assert_eq!(unified("a", "b\na", "x", "y", 5), "--- x\n+++ y\n@@ -1 +1,2 @@\n+b\n a\n");
        assert_eq!(unified("a\n", "", "x", "y", 5), "--- x\n+++ y\n@@ -1,2 +1 @@\n-a\n \n");
    }

    proptest! {
        /// Whoever applies the difference to the one gets the other.
        #[test]
        fn it_leads_from_one_to_the_other(
            a in prop::collection::vec("[a-c]", 0..30),
            b in prop::collection::vec("[a-c]", 0..30),
        ) {
            let (a, b) = (a.join("\n"), b.join("\n"));
            let diff = unified(&a, &b, "a", "b", 1000);
            let side = |drop: char| -> String {
                let lines = diff.lines().skip(3).filter(|line| !line.starts_with(drop));
                lines.map(|line| &line[1..]).collect::<Vec<_>>().join("\n")
            };
            if diff.is_empty() {
                prop_assert_eq!(a, b);
            } else {
                prop_assert_eq!(side('+'), a);
                prop_assert_eq!(side('-'), b);
            }
        }
    }
}
