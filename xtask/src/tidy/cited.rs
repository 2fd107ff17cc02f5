//! Tests that documents name: each must exist, so that a table of cases claims nothing.

use std::collections::BTreeSet;

/// Documents whose tables name tests.
pub(super) const DOCUMENTS: &[&str] =
    &["docs/clusters.md", "docs/policies-on-clusters.md", "docs/protection.md", "docs/works.md"];

/// The names of functions in a source file.
pub(super) fn functions(source: &str) -> impl Iterator<Item = &str> {
    source.split("fn ").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
        rest.get(..end).filter(|name| {
            rest.get(end..).is_some_and(|rest| rest.starts_with('(')) && !name.is_empty()
        })
    })
}

/// What a document says of tests that do not exist, and rows of numbered cases that name none.
pub(super) fn complaints(name: &str, document: &str, known: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in document.lines().enumerate() {
        let cited: Vec<&str> = cited(line).collect();
        for test in &cited {
            if !exists(test, known) {
                found.push(format!("{name}:{}: there is no test {test}", number + 1));
            }
        }
        let first = line.strip_prefix("| ").unwrap_or_default();
        // Hazards have a letter before their number.
        let number_of_case = first.strip_prefix('H').unwrap_or(first);
        let is_case = number_of_case.starts_with(|c: char| c.is_ascii_digit());
        if is_case && cited.is_empty() && !line.contains("No test: ") {
            found.push(format!("{name}:{}: a case without a test", number + 1));
        }
    }
    found
}

/// Names of tests are sentences in code; their ends may be left out.
fn cited(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|text| {
        let open = text.ends_with('…') || text.ends_with("_*");
        let words = text.trim_end_matches(['…', '*']);
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        words.chars().all(plain) && (open || words.matches('_').count() >= 3)
    })
}

fn exists(cited: &str, known: &BTreeSet<String>) -> bool {
    let begin = cited.trim_end_matches(['…', '*']);
    if begin == cited {
        return known.contains(cited);
    }
    known.range(begin.to_owned()..).next().is_some_and(|name| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_does_not_exist_is_found() {
        let source = "async fn one_of_a_kind() {}\n#[test]\nfn case_01_it() {}\nlet fn_ = 1;";
        let known: BTreeSet<String> = functions(source).map(str::to_owned).collect();
        assert_eq!(known.len(), 2, "{known:?}");
        let document = "| 1 a | `one_of_a_kind`, `case_01_*` |\n| 2 b | `spec.x`, `two_of…` |\n| 3 |\n\
                        | 4 d | No test: none can be |\n| H1 | |\n| Here | |\n`some_word` and `a_name_of_nothing`";
        assert_eq!(
            complaints("d", document, &known),
            [
                "d:2: there is no test two_of…",
                "d:3: a case without a test",
                "d:5: a case without a test",
                "d:7: there is no test a_name_of_nothing",
            ]
        );
    }
}
