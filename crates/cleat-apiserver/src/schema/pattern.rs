//! Patterns in schemas are written for Go's regular expressions; this compiles them with Rust's.
//!
//! Both engines are linear in time and nearly agree in syntax. What differs is rewritten: Perl
//! classes know only ASCII in Go, brackets and set operators inside a class are plain characters
//! there, and a brace that opens no repetition stands for itself.

use regex::{Regex, RegexBuilder};

/// Larger compiled patterns are refused.
const LARGEST: usize = 1 << 20;

/// Compiles a pattern; the error is what the engine says about it.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(&translate(pattern))
        .size_limit(LARGEST)
        .octal(true)
        .build()
        .map_err(|error| last_line(&error.to_string()))
}

/// The engine draws a picture over several lines; its last line holds the reason.
fn last_line(error: &str) -> String {
    let line = error.lines().last().unwrap_or(error);
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = match c {
            '\\' => escape(rest, &mut out, Place::Outside),
            '[' => class(rest, &mut out),
            '{' if !opens_repetition(rest) => {
                out.push_str("\\{");
                skip(rest, 1)
            }
            c => {
                out.push(c);
                skip(rest, c.len_utf8())
            }
        };
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    InClass,
}

/// Writes the escape `rest` begins with and returns what follows it.
fn escape<'a>(rest: &'a str, out: &mut String, place: Place) -> &'a str {
    let Some(c) = rest.chars().nth(1) else {
        out.push('\\');
        return "";
    };
    let ascii = match (c, place) {
        ('d', Place::Outside) => "[0-9]",
        ('d', Place::InClass) => "0-9",
        ('D', _) => "[^0-9]",
        ('s', Place::Outside) => "[\\t\\n\\x0c\\r ]",
        ('s', Place::InClass) => "\\t\\n\\x0c\\r ",
        ('S', _) => "[^\\t\\n\\x0c\\r ]",
        ('w', Place::Outside) => "[0-9A-Za-z_]",
        ('w', Place::InClass) => "0-9A-Za-z_",
        ('W', _) => "[^0-9A-Za-z_]",
        ('b', Place::Outside) => "(?-u:\\b)",
        ('B', Place::Outside) => "(?-u:\\B)",
        ('<', _) => "<",
        ('>', _) => ">",
        ('Q', Place::Outside) => return quoted(skip(rest, 2), out),
        _ => "",
    };
    if ascii.is_empty() {
        out.push('\\');
        out.push(c);
    } else {
        out.push_str(ascii);
    }
    skip(rest, 1 + c.len_utf8())
}

/// Everything up to `\E` stands for itself.
fn quoted<'a>(rest: &'a str, out: &mut String) -> &'a str {
    let (literal, rest) = rest.split_once("\\E").unwrap_or((rest, ""));
    out.push_str(&regex::escape(literal));
    rest
}

/// Writes the class `rest` begins with and returns what follows it.
fn class<'a>(rest: &'a str, out: &mut String) -> &'a str {
    out.push('[');
    let mut rest = skip(rest, 1);
    if rest.starts_with('^') {
        out.push('^');
        rest = skip(rest, 1);
    }
    if rest.starts_with(']') {
        out.push_str("\\]");
        rest = skip(rest, 1);
    }
    let mut previous = None;
    while let Some(c) = rest.chars().next() {
        match c {
            ']' => {
                out.push(']');
                return skip(rest, 1);
            }
            '\\' => {
                rest = escape(rest, out, Place::InClass);
                previous = None;
                continue;
            }
            '[' if rest.starts_with("[:") && rest.contains(":]") => {
                let end = rest.find(":]").map_or(rest.len(), |at| at + 2);
                out.push_str(rest.get(..end).unwrap_or_default());
                rest = skip(rest, end);
                previous = None;
                continue;
            }
            '[' => out.push_str("\\["),
            '&' | '~' | '-' if previous == Some(c) => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
        previous = Some(c);
        rest = skip(rest, c.len_utf8());
    }
    rest
}

/// Whether `{` begins `{n}`, `{n,}` or `{n,m}`.
fn opens_repetition(rest: &str) -> bool {
    let Some((inside, _)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
        return false;
    };
    let (low, high) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    !low.is_empty() && digits(low) && digits(high)
}

fn skip(text: &str, bytes: usize) -> &str {
    text.get(bytes..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_patterns_match_as_in_go() {
        for (pattern, text, matches) in [
            ("^[a-z]+$", "abc", true),
            ("^[a-z]+$", "abC", false),
            (r"^\d+$", "123", true),
            (r"^\d+$", "١٢", false),
            (r"^[\d.]+$", "1.2", true),
            (r"^[^\s]+$", "a b", false),
            (r"^\w+$", "é", false),
            ("^[[]$", "[", true),
            ("^[]a]$", "]", true),
            ("^[[:alpha:]]+$", "ab", true),
            ("^[+--]$", ",", true),
            ("^[a&&b]+$", "&", true),
            ("^{a}$", "{a}", true),
            (r"^\${x}$", "${x}", true),
            ("^a{2}$", "aa", true),
            (r"^\<b\>$", "<b>", true),
            (r"^\/x$", "/x", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"\bfoo\b", "a foo b", true),
            ("^a$", "a\n", false),
        ] {
            let compiled = compile(pattern).unwrap();
            assert_eq!(compiled.is_match(text), matches, "{pattern} on {text}");
        }
    }

    #[test]
    fn bad_patterns_say_why() {
        assert_eq!(compile("(").unwrap_err(), "unclosed group");
        assert!(compile("a{1000}{1000}{1000}").is_err());
        for odd in ["\\", "[", "[^", "[[:", "{", "a{,2}", "\\Q", "[\\", "(?<"] {
            let _ = compile(odd);
        }
    }
}
