//! Which style a text is written in, and the text in that style.

use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;

/// Beyond this column a line is broken at the next space.
const WIDTH: usize = 80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Never broken over lines.
    Key,
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// Texts that would be read back as something other than a text.
static OTHER_TYPE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^(?:",
        r"|~|null|Null|NULL|<<",
        r"|y|Y|yes|Yes|YES|on|On|ON|n|N|no|No|NO|off|Off|OFF",
        r"|true|True|TRUE|false|False|FALSE",
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        r"|[-+]?0b[01_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?0o[0-7_]+",
        r"|[-+]?[0-9][0-9_]*",
        r"|[-+]?(?:\.[0-9]+|[0-9_]+(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?",
        // Sixties: times of day were numbers once.
        r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?",
        // Dates and times.
        r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}",
        r"(?:[Tt ][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]+)?(?:Z|[-+][0-9]{2}:[0-9]{2})?)?",
        r")$"
    ))
    .ok()
});

pub(super) fn write(out: &mut String, text: &str, indent: usize, place: Place) {
    let breaks = place == Place::Value;
    match style(text, place) {
        Style::Plain => plain(out, text, indent, breaks),
        Style::Single => single(out, text, indent, breaks),
        Style::Double => double(out, text, indent, breaks),
        Style::Literal => literal(out, text, indent),
    }
}

/// What the characters of a text rule out.
#[derive(Default)]
struct Findings {
    indicators: bool,
    line_breaks: bool,
    special: bool,
    outer_space: bool,
    trailing_space: bool,
    space_before_break: bool,
    space_after_break: bool,
}

fn style(text: &str, place: Place) -> Style {
    let found = findings(text);
    if text.contains('\n') {
        let block = !(found.special || found.space_before_break || found.trailing_space);
        return if block && place == Place::Value { Style::Literal } else { Style::Double };
    }
    if OTHER_TYPE.as_ref().is_none_or(|other| other.is_match(text)) {
        return Style::Double;
    }
    if found.special || found.space_before_break || found.space_after_break {
        return Style::Double;
    }
    if found.indicators || found.line_breaks || found.outer_space {
        return Style::Single;
    }
    Style::Plain
}

fn findings(text: &str) -> Findings {
    let mut found = Findings {
        indicators: text.starts_with("---") || text.starts_with("..."),
        outer_space: text.starts_with([' ', '\n', '\r']) || text.ends_with([' ', '\n', '\r']),
        trailing_space: text.ends_with(' '),
        ..Findings::default()
    };
    let mut before: Option<char> = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let blank_next = rest.peek().is_none_or(|next| is_blank(*next));
        match c {
            '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%'
            | '@' | '`'
                if before.is_none() =>
            {
                found.indicators = true;
            }
            '?' | '-' if before.is_none() && blank_next => found.indicators = true,
            ':' if blank_next => found.indicators = true,
            '#' if before.is_some_and(is_blank) => found.indicators = true,
            _ => {}
        }
        if is_break(c) {
            found.line_breaks = true;
            found.space_before_break |= before == Some(' ');
        } else if !is_printable(c) {
            found.special = true;
        }
        found.space_after_break |= c == ' ' && before.is_some_and(is_break);
        before = Some(c);
    }
    found
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t') || is_break(c)
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What may stand in a document as it is; a tab may not.
fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

fn column(out: &str) -> usize {
    out.rsplit('\n').next().map_or(0, |line| line.chars().count())
}

fn new_line(out: &mut String, indent: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent + 2));
}

/// Writes words, with the spaces at which a long line may be broken.
fn folded(out: &mut String, text: &str, indent: usize, breaks: bool) {
    let mut column = column(out);
    let mut after_space = false;
    let mut rest = text.chars().enumerate().peekable();
    while let Some((index, c)) = rest.next() {
        let next_is_space = rest.peek().is_none_or(|(_, next)| *next == ' ');
        let inside = index > 0 && rest.peek().is_some();
        if c == ' ' && breaks && !after_space && column > WIDTH && inside && !next_is_space {
            new_line(out, indent);
            column = indent + 2;
        } else {
            out.push(c);
            column += 1;
        }
        after_space = c == ' ';
    }
}

fn plain(out: &mut String, text: &str, indent: usize, breaks: bool) {
    folded(out, text, indent, breaks);
}

fn single(out: &mut String, text: &str, indent: usize, breaks: bool) {
    out.push('\'');
    folded(out, &text.replace('\'', "''"), indent, breaks);
    out.push('\'');
}

fn double(out: &mut String, text: &str, indent: usize, breaks: bool) {
    out.push('"');
    let mut column = column(out);
    let mut after_space = false;
    let mut rest = text.chars().enumerate().peekable();
    while let Some((index, c)) = rest.next() {
        let before = out.len();
        let mut space = false;
        match c {
            '\0' => out.push_str("\\0"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\u{1b}' => out.push_str("\\e"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{85}' => out.push_str("\\N"),
            '\u{a0}' => out.push_str("\\_"),
            '\u{2028}' => out.push_str("\\L"),
            '\u{2029}' => out.push_str("\\P"),
            ' ' if breaks
                && !after_space
                && column > WIDTH
                && index > 0
                && rest.peek().is_some() =>
            {
                new_line(out, indent);
                if rest.peek().is_some_and(|(_, next)| *next == ' ') {
                    out.push('\\');
                }
                column = self::column(out);
                after_space = true;
                continue;
            }
            c if is_printable(c) => {
                space = c == ' ';
                out.push(c);
            }
            c => {
                let code = u32::from(c);
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02X}"),
                    0x100..=0xffff => write!(out, "\\u{code:04X}"),
                    _ => write!(out, "\\U{code:08X}"),
                };
            }
        }
        column += out.get(before..).map_or(0, |written| written.chars().count());
        after_space = space;
    }
    out.push('"');
}

fn literal(out: &mut String, text: &str, indent: usize) {
    out.push('|');
    if text.starts_with([' ', '\n']) {
        out.push('2');
    }
    if !text.ends_with('\n') {
        out.push('-');
    } else if text == "\n" || text.ends_with("\n\n") {
        out.push('+');
    }
    let body = text.strip_suffix('\n').unwrap_or(text);
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            out.extend(std::iter::repeat_n(' ', indent + 2));
            out.push_str(line);
        }
    }
}
