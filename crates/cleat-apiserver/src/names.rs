//! What Kubernetes allows as names, label keys and label values, with its words for a refusal.
//!
//! Every check answers with the list of complaints, empty when all is well. Which check applies to
//! which field is for the callers to know.

use crate::status::FieldError;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

const KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
                        and end with an alphanumeric character";

/// A DNS label as in RFC 1123: `my-name`.
pub fn dns_label(value: &str) -> Vec<String> {
    let mut complaints = too_long_name(value, 63);
    if !is_dns_label(value) {
        complaints.push(if is_dns_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            pattern(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
                 or '-', and must start and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    complaints
}

/// A DNS subdomain as in RFC 1123: `example.com`.
pub fn dns_subdomain(value: &str) -> Vec<String> {
    let mut complaints = too_long_name(value, 253);
    if !is_dns_subdomain(value) {
        complaints.push(pattern(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character",
            SUBDOMAIN,
            &["example.com"],
        ));
    }
    complaints
}

/// A DNS label as in RFC 1035, which must begin with a letter: `my-name`.
pub fn dns_1035_label(value: &str) -> Vec<String> {
    let mut complaints = too_long_name(value, 63);
    if !is_dns_label(value) || !value.starts_with(|c: char| c.is_ascii_lowercase()) {
        complaints.push(pattern(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    complaints
}

/// Whatever can stand between two slashes of a URL.
pub fn path_segment(value: &str) -> Vec<String> {
    if value == "." || value == ".." {
        return vec![format!("may not be '{value}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|illegal| value.contains(illegal))
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}

/// A label key, which is also the form of annotation keys and other qualified names:
/// `example.com/my-name`.
pub fn label_key(value: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let name = match value.split_once('/') {
        None => value,
        Some((_, name)) if name.contains('/') => {
            let rule = pattern(KEY_RULE, KEY, &["MyName", "my.name", "123-abc"]);
            complaints.push(format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            ));
            return complaints;
        }
        Some(("", name)) => {
            complaints.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            complaints.extend(
                dns_subdomain(prefix).into_iter().map(|text| format!("prefix part {text}")),
            );
            name
        }
    };
    if name.is_empty() {
        complaints.push("name part must be non-empty".to_owned());
    }
    complaints.extend(too_long(name, 63).into_iter().map(|text| format!("name part {text}")));
    if !is_word(name) {
        let rule = pattern(KEY_RULE, KEY, &["MyName", "my.name", "123-abc"]);
        complaints.push(format!("name part {rule}"));
    }
    complaints
}

/// A label's value; empty is fine.
pub fn label_value(value: &str) -> Vec<String> {
    let mut complaints = too_long(value, 63);
    if !value.is_empty() && !is_word(value) {
        complaints.push(pattern(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character",
            VALUE,
            &["MyValue", "my_value", "12345"],
        ));
    }
    complaints
}

/// The complaints about one field, each as an `Invalid` of its own.
pub fn refuse(field: &str, value: &str, complaints: Vec<String>) -> Vec<FieldError> {
    complaints.into_iter().map(|text| FieldError::invalid(field, value, text)).collect()
}

fn is_dns_label(value: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bounded_by(value, inner, |byte| inner(byte) || byte == b'-')
}

fn is_dns_subdomain(value: &str) -> bool {
    value.split('.').all(is_dns_label)
}

fn is_word(value: &str) -> bool {
    let edge = |byte: u8| byte.is_ascii_alphanumeric();
    bounded_by(value, edge, |byte| edge(byte) || matches!(byte, b'-' | b'_' | b'.'))
}

/// Not empty, `edge` at both ends and `inner` everywhere.
fn bounded_by(value: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = value.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            edge(*first) && edge(*last) && bytes.iter().all(|byte| inner(*byte))
        }
        _ => false,
    }
}

/// Kubernetes counts bytes everywhere, but calls them characters in names.
fn too_long_name(value: &str, max: usize) -> Vec<String> {
    let long = value.len() > max;
    long.then(|| format!("must be no more than {max} characters")).into_iter().collect()
}

fn too_long(value: &str, max: usize) -> Vec<String> {
    if value.len() > max { vec![format!("must be no more than {max} bytes")] } else { Vec::new() }
}

/// Kubernetes' sentence about a pattern; the doubled separators between examples are its own.
fn pattern(rule: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_pass() {
        for key in ["a", "A.b_c-9", "example.com/MyName", "a/b"] {
            assert_eq!(label_key(key), Vec::<String>::new(), "{key}");
        }
        for value in ["", "a", "a.b_c-9"] {
            assert_eq!(label_value(value), Vec::<String>::new(), "{value}");
        }
        assert!(dns_label("a-b9").is_empty() && dns_subdomain("a.b-c.d").is_empty());
        assert!(path_segment("a:b").is_empty() && dns_1035_label("a-9").is_empty());
    }

    #[test]
    fn bad_names_are_refused_in_kubernetes_words() {
        assert_eq!(
            label_key("a b"),
            ["name part must consist of alphanumeric characters, '-', '_' or '.', and must start \
              and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
              '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"]
        );
        assert_eq!(label_key("").len(), 2);
        assert_eq!(label_key("/a"), ["prefix part must be non-empty"]);
        assert!(label_key("a/b/c")[0].starts_with("a valid label key must consist of"));
        assert_eq!(label_value(&"x".repeat(64)), ["must be no more than 63 bytes"]);
        assert_eq!(dns_label("a.b"), ["must not contain dots"]);
        assert_eq!(path_segment("a/b%"), ["may not contain '/'", "may not contain '%'"]);
        assert_eq!(path_segment(".."), ["may not be '..'"]);
    }
}
