//! What Go's encoding/json says and does, where kube-apiserver lets that reach a client: the wording
//! of its refusals and the escaping of its output.

use std::fmt::Write as _;

use serde_json::Value;

use crate::quote::quoted;

/// The JSON type in encoding/json's words.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// JSON text with `<`, `>`, `&` and the two line separators escaped, as Go's encoder does.
pub(crate) fn escape_html(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            // Writing to a String cannot fail.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// What encoding/json says about a body that serde_json could not read.
pub(crate) fn json_error(body: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let text = error.to_string();
    let (reason, _) = text.rsplit_once(" at line ").unwrap_or((&text, ""));
    let Some(offender) = character_at(body, error.line(), error.column()) else {
        return text;
    };
    if reason == "expected ident"
        && let Some((literal, wanted)) = literal_at(body, error.line(), error.column())
    {
        return format!(
            "invalid character {} in literal {literal} (expecting '{wanted}')",
            shown(offender)
        );
    }
    let context = match reason {
        "expected value" => "looking for beginning of value",
        "key must be a string" => "looking for beginning of object key string",
        "expected `,` or `}`" => "after object key:value pair",
        "expected `,` or `]`" => "after array element",
        "expected `:`" => "after object key",
        "trailing characters" => "after top-level value",
        "trailing comma" if offender == '}' => "looking for beginning of object key string",
        "trailing comma" => "looking for beginning of value",
        "control character (\\u0000-\\u001F) found while parsing a string" => "in string literal",
        "invalid number" => "in numeric literal",
        "invalid escape" => "in string escape code",
        "recursion limit exceeded" => "exceeded max depth",
        _ => return text,
    };
    format!("invalid character {} {context}", shown(offender))
}

fn shown(offender: char) -> String {
    match offender {
        '\'' => "'\\''".to_owned(),
        '"' => "'\"'".to_owned(),
        c => {
            let quoted = quoted(&c.to_string());
            format!("'{}'", quoted.trim_matches('"'))
        }
    }
}

/// Which of the three words goes wrong there, and how it would have gone on.
fn literal_at(body: &[u8], line: usize, column: usize) -> Option<(&'static str, char)> {
    let text = body.split(|byte| *byte == b'\n').nth(line.checked_sub(1)?)?;
    let before = text.get(..column.checked_sub(1)?)?;
    ["null", "true", "false"].into_iter().find_map(|literal| {
        let begun = (1..literal.len()).rev().find(|length| {
            literal.as_bytes().get(..*length).is_some_and(|start| before.ends_with(start))
        })?;
        Some((literal, char::from(*literal.as_bytes().get(begun)?)))
    })
}

fn character_at(body: &[u8], line: usize, column: usize) -> Option<char> {
    let text = body.split(|byte| *byte == b'\n').nth(line.checked_sub(1)?)?;
    match text.get(column.checked_sub(1)?) {
        Some(byte) => Some(char::from(*byte)),
        None => Some('\n'),
    }
}

/// Go writes a struct's fields in the order they were declared, a map's in that of their names. An
/// object that has only fields of one of these structs is taken for it.
const STRUCTS: [&[&str]; 12] = [
    &["matchLabels", "matchExpressions"],
    &["Type", "RollingUpdate"],
    &["Partition", "MaxUnavailable"],
    &["Name", "Protocol", "AppProtocol", "Port", "TargetPort", "NodePort"],
    &["MinAvailable", "Selector", "MaxUnavailable", "UnhealthyPodEvictionPolicy"],
    &["Key", "Value", "Effect", "TimeAdded"],
    &["Attacher", "Source", "NodeName"],
    &["PersistentVolumeName", "InlineVolumeSpec"],
    &[
        "Capabilities",
        "Privileged",
        "SELinuxOptions",
        "WindowsOptions",
        "RunAsUser",
        "RunAsGroup",
        "RunAsNonRoot",
        "ReadOnlyRootFilesystem",
        "AllowPrivilegeEscalation",
        "ProcMount",
        "SeccompProfile",
        "AppArmorProfile",
    ],
    &["User", "Role", "Type", "Level"],
    &["GMSACredentialSpecName", "GMSACredentialSpec", "RunAsUserName", "HostProcess"],
    &["Type", "LocalhostProfile"],
];

/// The JSON of a value as it stands in error messages.
pub(crate) fn in_struct_order(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let known =
                STRUCTS.iter().find(|fields| map.keys().all(|key| fields.contains(&&**key)));
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            if let Some(fields) = known {
                entries.sort_by_key(|(key, _)| fields.iter().position(|field| field == key));
            }
            let entries: Vec<String> = entries
                .into_iter()
                .map(|(key, value)| {
                    format!("{}:{}", Value::from(key.as_str()), in_struct_order(value))
                })
                .collect();
            format!("{{{}}}", entries.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(in_struct_order).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax_errors_are_worded_as_by_encoding_json() {
        for (body, expected) in [
            ("{", "unexpected end of JSON input"),
            ("", "unexpected end of JSON input"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
            (r#"{"a":1]"#, "invalid character ']' after object key:value pair"),
            (r#"{"a" 1}"#, "invalid character '1' after object key"),
            ("[1 2]", "invalid character '2' after array element"),
            ("{} x", "invalid character 'x' after top-level value"),
            (r#"{"a":1,}"#, "invalid character '}' looking for beginning of object key string"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
        ] {
            let error = serde_json::from_slice::<Value>(body.as_bytes()).unwrap_err();
            assert_eq!(json_error(body.as_bytes(), &error), expected, "{body}");
        }
    }
}
