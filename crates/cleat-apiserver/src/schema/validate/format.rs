//! The string formats that are checked, and how.
//!
//! Formats outside this list mean nothing to validation. Names are compared without dashes, so
//! `date-time` and `datetime` are one.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    sync::OnceLock,
};

use regex::Regex;

use crate::schema::{Node, Type};

/// The format of a node, when it is one that its type supports.
pub(super) fn supported(node: &Node) -> Option<&str> {
    node.format.as_deref().filter(|_| is_supported(node))
}

/// The format of a node, when it is one that means nothing.
pub(crate) fn unsupported(node: &Node) -> Option<&str> {
    node.format.as_deref().filter(|_| !is_supported(node))
}

/// Whether the format of a node means something to validation.
fn is_supported(node: &Node) -> bool {
    let Some(format) = node.format.as_deref() else { return false };
    match node.kind {
        _ if node.int_or_string => checker(format).is_some(),
        None | Some(Type::String) => checker(format).is_some(),
        Some(Type::Integer) => matches!(format, "int32" | "int64"),
        Some(Type::Number) => matches!(format, "float" | "double"),
        Some(Type::Object | Type::Array | Type::Boolean) => false,
    }
}

/// Whether `text` has that format; `None` for formats that strings do not have.
pub(super) fn check(format: &str, text: &str) -> Option<bool> {
    checker(format).map(|check| check(text))
}

fn checker(format: &str) -> Option<fn(&str) -> bool> {
    Some(match format.replace('-', "").as_str() {
        "bsonobjectid" => |text| text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "uri" => is_uri,
        "email" => is_email,
        "hostname" => is_hostname,
        "ipv4" => |text| text.contains('.') && is_ip(text),
        "ipv6" => |text| text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr,
        "mac" => is_mac,
        "uuid" => |text| is_uuid(text, None, false),
        "uuid3" => |text| is_uuid(text, Some('3'), false),
        "uuid4" => |text| is_uuid(text, Some('4'), true),
        "uuid5" => |text| is_uuid(text, Some('5'), true),
        "isbn" => |text| is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10,
        "isbn13" => is_isbn13,
        "creditcard" => is_credit_card,
        "ssn" => {
            |text| text.len() == 11 && matches(&SSN, r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$", text)
        }
        "hexcolor" => |text| matches(&HEX, "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$", text),
        "rgbcolor" => |text| matches(&RGB, RGB_PATTERN, text),
        "byte" => |text| matches(&BASE64, BASE64_PATTERN, text),
        "password" => |_| true,
        "date" => is_date,
        "duration" => is_duration,
        "datetime" => is_date_time,
        "k8sshortname" => |text| text.len() <= 63 && is_dns(text) && !text.contains('.'),
        "k8slongname" => |text| text.len() <= 253 && is_dns(text),
        _ => return None,
    })
}

static SSN: OnceLock<Option<Regex>> = OnceLock::new();
static HEX: OnceLock<Option<Regex>> = OnceLock::new();
static RGB: OnceLock<Option<Regex>> = OnceLock::new();
static BASE64: OnceLock<Option<Regex>> = OnceLock::new();
static CARD: OnceLock<Option<Regex>> = OnceLock::new();
static HOST: OnceLock<Option<Regex>> = OnceLock::new();
static EMAIL: OnceLock<Option<Regex>> = OnceLock::new();
static TIME: OnceLock<Option<Regex>> = OnceLock::new();

const RGB_PATTERN: &str = r"^rgb\(\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*\)$";
const BASE64_PATTERN: &str =
    "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$";
const CARD_PATTERN: &str = "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$";
const HOST_PATTERN: &str = r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$";
/// The address forms people use; comments and domain literals are not among them.
const EMAIL_PATTERN: &str = r#"^(?:[^<>@]*<)?(?:[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u{80}-\u{10ffff}-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u{80}-\u{10ffff}-]+)*|"(?:[^"\\]|\\.)*")@[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u{80}-\u{10ffff}-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u{80}-\u{10ffff}-]+)*>?$"#;
const TIME_PATTERN: &str =
    "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";

/// A pattern of ours that did not compile would accept everything; tests use every one.
fn matches(cell: &OnceLock<Option<Regex>>, pattern: &str, text: &str) -> bool {
    cell.get_or_init(|| Regex::new(pattern).ok()).as_ref().is_none_or(|regex| regex.is_match(text))
}

/// What Go accepts as the target of an HTTP request: a path or a URL with a scheme.
fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let escapes_are_good = text.match_indices('%').all(|(at, _)| {
        let hex = text.as_bytes().get(at + 1..at + 3);
        hex.is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
    });
    if text.starts_with('/') {
        return escapes_are_good;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let mut letters = scheme.bytes();
    let scheme_is_good = letters.next().is_some_and(|b| b.is_ascii_alphabetic())
        && letters.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    if !scheme_is_good {
        return false;
    }
    let Some(rest) = rest.strip_prefix("//") else { return !rest.is_empty() || scheme_is_good };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let port = match host.strip_prefix('[') {
        Some(literal) => match literal.split_once(']') {
            Some((_, port)) => port,
            None => return false,
        },
        None => host.find(':').and_then(|at| host.get(at..)).unwrap_or_default(),
    };
    let port_is_good =
        port.strip_prefix(':').map_or(port.is_empty(), |p| p.bytes().all(|b| b.is_ascii_digit()));
    escapes_are_good
        && port_is_good
        && !host.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '}'])
}

fn is_email(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    text.contains('<') == text.ends_with('>') && matches(&EMAIL, EMAIL_PATTERN, text)
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255
        && text.split('.').all(|part| part.len() <= 63)
        && matches(&HOST, HOST_PATTERN, text)
}

/// An address; leading zeros in IPv4 parts are tolerated.
fn is_ip(text: &str) -> bool {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().is_ok();
    }
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == Ipv4Addr::UNSPECIFIED.octets().len()
        && parts.iter().all(|part| {
            !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_digit())
                && part.trim_start_matches('0').len() <= 3
                && part.trim_start_matches('0').parse::<u16>().unwrap_or(0) <= 255
        })
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let longest = if address.contains(':') { 128 } else { 32 };
    is_ip(address)
        && length.bytes().all(|b| b.is_ascii_digit())
        && length.parse::<u8>().is_ok_and(|length| length <= longest)
}

fn is_mac(text: &str) -> bool {
    let groups = |separator: char, digits: usize, counts: [usize; 3]| {
        let parts: Vec<&str> = text.split(separator).collect();
        counts.contains(&parts.len())
            && parts
                .iter()
                .all(|part| part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    groups(':', 2, [6, 8, 20]) || groups('-', 2, [6, 8, 20]) || groups('.', 4, [3, 4, 10])
}

/// Dashes may be left out one by one.
fn is_uuid(text: &str, version: Option<char>, variant: bool) -> bool {
    let mut rest = text;
    let mut digits = String::with_capacity(32);
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(length) else { return false };
        digits.push_str(group);
        rest = after;
    }
    rest.is_empty()
        && digits.bytes().all(|b| b.is_ascii_hexdigit())
        && version.is_none_or(|version| digits.chars().nth(12) == Some(version))
        && (!variant || digits.chars().nth(16).is_some_and(|c| "89abAB".contains(c)))
}

fn without_spaces(text: &str) -> Vec<char> {
    text.chars().filter(|c| !matches!(c, ' ' | '\t' | '\n' | '\u{c}' | '\r' | '-')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let all = without_spaces(text);
    let mut sum = 0;
    for (weight, c) in (1_u32..).zip(&all) {
        sum += weight
            * match c {
                'X' if weight == 10 => 10,
                c if c.is_ascii_digit() => c.to_digit(10).unwrap_or(0),
                _ => return false,
            };
    }
    all.len() == 10 && sum % 11 == 0
}

fn is_isbn13(text: &str) -> bool {
    let all = without_spaces(text);
    let Some(digits) = digits_of(&all).filter(|digits| digits.len() == 13) else { return false };
    let sum: u32 = digits.iter().zip([1, 3].into_iter().cycle()).map(|(d, w)| d * w).sum();
    sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let sum: u32 = digits
        .chars()
        .rev()
        .filter_map(|c| c.to_digit(10))
        .zip([1, 2].into_iter().cycle())
        .map(|(digit, factor)| (digit * factor) / 10 + (digit * factor) % 10)
        .sum();
    matches(&CARD, CARD_PATTERN, &digits) && sum.is_multiple_of(10)
}

fn digits_of(text: &[char]) -> Option<Vec<u32>> {
    text.iter().map(|c| c.to_digit(10)).collect()
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.is_ascii() && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let within = |range: std::ops::Range<usize>, most: &str| {
        time.get(range).is_some_and(|part| part <= most)
    };
    is_date(date)
        && matches(&TIME, TIME_PATTERN, time)
        && within(0..2, "23")
        && within(3..5, "59")
        && within(6..8, "59")
}

/// What Go parses (`1h30m`), or words after whole numbers (`2 weeks`).
fn is_duration(text: &str) -> bool {
    is_go_duration(text) || has_worded_duration(text)
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let (digits, after) = rest.split_at(number);
        if digits.matches('.').count() > 1 || !digits.bytes().any(|b| b.is_ascii_digit()) {
            return false;
        }
        let unit = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        if !matches!(unit, "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h") {
            return false;
        }
        rest = after;
    }
    true
}

/// Whether a number with a unit occurs anywhere. A number too large for one is a mistake.
fn has_worded_duration(text: &str) -> bool {
    const EXACT: [&str; 19] = [
        "ns", "us", "µs", "ms", "s", "m", "h", "d", "w", "hr", "wk", "nano", "micro", "milli",
        "sec", "min", "hour", "day", "week",
    ];
    const BEGINNINGS: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    let mut found = false;
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let from = rest.get(at..).unwrap_or_default();
        let end = from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len());
        let (digits, after) = from.split_at(end);
        let after = after.trim_start_matches([' ', '\t', '\n', '\u{c}', '\r']);
        let length = after.find(|c: char| !(c.is_ascii_alphabetic() || c == 'µ'));
        let (unit, after) = after.split_at(length.unwrap_or(after.len()));
        rest = after;
        if unit.is_empty() {
            continue;
        }
        if digits.parse::<i64>().is_err() {
            return false;
        }
        let unit = unit.to_lowercase();
        found |= EXACT.contains(&unit.as_str())
            || BEGINNINGS.iter().any(|beginning| unit.starts_with(beginning));
    }
    found
}

fn is_dns(text: &str) -> bool {
    crate::names::dns_subdomain(text).iter().all(|wrong| wrong.starts_with("must be no more"))
}
