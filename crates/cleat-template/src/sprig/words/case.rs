//! Camel, snake and kebab case, cut into words the way the Go library does: `HTTPServer2x` is
//! `http_server_2x`.

use std::sync::LazyLock;

use regex::Regex;

static PUNCTUATION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\p{P}$").ok());

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Nothing,
    Number,
    Upper,
    Letters,
    Connector,
    Punctuation,
    Other,
}

fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || c.is_whitespace()
}

fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation() && !"$+<=>^`|~".contains(c);
    }
    let mut buffer = [0; 4];
    let text: &str = c.encode_utf8(&mut buffer);
    PUNCTUATION.as_ref().is_some_and(|punctuation| punctuation.is_match(text))
}

fn kind(c: char) -> Kind {
    match c {
        c if is_connector(c) => Kind::Connector,
        c if is_punctuation(c) => Kind::Punctuation,
        c if c.is_uppercase() => Kind::Upper,
        c if c.is_alphabetic() => Kind::Letters,
        c if c.is_numeric() => Kind::Number,
        _ => Kind::Other,
    }
}

/// The first word, its kind, and what follows it.
fn next_word(text: &str) -> (Kind, &str, &str) {
    let Some(first) = text.chars().next() else { return (Kind::Nothing, "", "") };
    let found = kind(first);
    let run = |from: usize, more: fn(char) -> bool| {
        let rest = text.get(from..).unwrap_or_default();
        from + rest.len() - rest.trim_start_matches(more).len()
    };
    let after = first.len_utf8();
    let small = |c: char| c.is_alphabetic() && !c.is_uppercase();
    let end = match found {
        Kind::Nothing => 0,
        Kind::Connector => run(after, is_connector),
        Kind::Punctuation => run(after, is_punctuation),
        Kind::Number => run(after, char::is_numeric),
        Kind::Letters => run(after, small),
        Kind::Other => run(after, |c| kind(c) == Kind::Other),
        Kind::Upper => match text.get(after..).and_then(|rest| rest.chars().next()) {
            Some(c) if c.is_uppercase() => {
                let end = run(after, char::is_uppercase);
                let next = text.get(end..).and_then(|rest| rest.chars().next());
                // In `HTTPStatus` the last capital begins the next word.
                let last = text.get(..end).and_then(|word| word.chars().next_back());
                match (next, last) {
                    (Some(next), Some(last)) if next.is_alphabetic() => end - last.len_utf8(),
                    _ => end,
                }
            }
            Some(c) if c.is_alphabetic() => run(after, small),
            _ => after,
        },
    };
    let (word, rest) = text.split_at(end);
    (found, word, rest)
}

fn push_word(out: &mut String, kind: Kind, word: &str, connector: char) {
    if !matches!(kind, Kind::Upper | Kind::Connector) {
        out.push_str(word);
        return;
    }
    for c in word.chars() {
        match c {
            c if is_connector(c) => out.push(connector),
            c => out.extend(c.to_lowercase()),
        }
    }
}

/// Small words joined by `connector`.
pub(super) fn lower(text: &str, connector: char) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let separates =
        |kind: Kind| !matches!(kind, Kind::Nothing | Kind::Connector | Kind::Punctuation);
    let (mut found, mut word, mut rest) = next_word(text);
    while !rest.is_empty() {
        if found != Kind::Connector {
            push_word(&mut out, found, word, connector);
        }
        let (before, last) = (found, word);
        (found, word, rest) = next_word(rest);
        match before {
            Kind::Number => {
                while matches!(found, Kind::Letters | Kind::Number) {
                    push_word(&mut out, found, word, connector);
                    (found, word, rest) = next_word(rest);
                }
                if separates(found) {
                    out.push(connector);
                }
            }
            Kind::Connector => push_word(&mut out, before, last, connector),
            Kind::Punctuation => {}
            _ if found != Kind::Number => {
                if !matches!(found, Kind::Connector | Kind::Punctuation) {
                    out.push(connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                let number = word;
                (found, word, rest) = next_word(rest);
                if found == Kind::Letters {
                    out.push(connector);
                    out.push_str(number);
                    while matches!(found, Kind::Letters | Kind::Number) {
                        push_word(&mut out, found, word, connector);
                        (found, word, rest) = next_word(rest);
                    }
                    if separates(found) {
                        out.push(connector);
                    }
                } else {
                    out.push_str(number);
                    if !matches!(found, Kind::Connector | Kind::Punctuation) {
                        out.push(connector);
                    }
                }
            }
        }
    }
    push_word(&mut out, found, word, connector);
    out
}

/// `some_words` as `SomeWords`; connectors at the start stay.
pub(super) fn pascal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    let mut current = None;
    let mut capital = false;
    for c in chars.by_ref() {
        if is_connector(c) {
            out.push(c);
            continue;
        }
        capital = c.is_uppercase();
        current = Some(super::upper(c));
        break;
    }
    let Some(mut current) = current else {
        // Go repeats the last of a text made only of connectors.
        out.extend(text.chars().next_back());
        return out;
    };
    for c in chars {
        let before = current;
        current = c;
        if is_connector(c) && is_connector(before) {
            out.push(before);
            continue;
        }
        if is_connector(before) {
            capital = c.is_uppercase();
            current = super::upper(c);
            continue;
        }
        if capital {
            if c.is_uppercase() {
                current = super::lower(c);
            } else {
                capital = false;
            }
        }
        out.push(before);
    }
    out.push(current);
    out
}
