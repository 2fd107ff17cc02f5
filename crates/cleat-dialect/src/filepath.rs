//! Go's `filepath.Match`: shell patterns over one name.
//!
//! `*` is any text without a slash, `?` one such character, `[a-z]` and `[^a-z]` one of a class,
//! and a backslash takes the next character as it is.

use thiserror::Error;

/// What Go says of a pattern it cannot read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("syntax error in pattern")]
pub struct BadPattern;

/// Longer patterns are refused: matching takes as many steps as pattern times name.
const LONGEST_PATTERN: usize = 4096;

/// A pattern that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<Token>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Literal(char),
    Any,
    Many,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        if text.len() > LONGEST_PATTERN {
            return Err(BadPattern);
        }
        let mut rest = text.chars();
        let mut tokens = Vec::new();
        while let Some(c) = rest.next() {
            tokens.push(match c {
                '*' if tokens.last() == Some(&Token::Many) => continue,
                '*' => Token::Many,
                '?' => Token::Any,
                '\\' => Token::Literal(rest.next().ok_or(BadPattern)?),
                '[' => class(&mut rest)?,
                c => Token::Literal(c),
            });
        }
        Ok(Self(tokens))
    }

    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut token, mut place) = (0, 0);
        // Where to go on if the text since the last star turns out not to fit.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            let here = name.get(place).copied();
            match (self.0.get(token), here) {
                (None, None) => return true,
                (Some(Token::Many), _) => {
                    retry = Some((token + 1, place));
                    token += 1;
                    continue;
                }
                (Some(one), Some(c)) if one.takes(c) => {
                    token += 1;
                    place += 1;
                    continue;
                }
                _ => {}
            }
            match retry {
                Some((after, from)) if name.get(from).is_some_and(|c| *c != '/') => {
                    retry = Some((after, from + 1));
                    (token, place) = (after, from + 1);
                }
                _ => return false,
            }
        }
    }
}

impl Token {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Literal(literal) => *literal == c,
            Self::Any => c != '/',
            Self::Many => false,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

fn class(rest: &mut core::str::Chars<'_>) -> Result<Token, BadPattern> {
    let negated = rest.as_str().starts_with('^');
    if negated {
        rest.next();
    }
    let mut ranges = Vec::new();
    loop {
        if !ranges.is_empty() && rest.as_str().starts_with(']') {
            rest.next();
            return Ok(Token::Class { negated, ranges });
        }
        let low = bound(rest)?;
        let mut high = low;
        if rest.as_str().starts_with('-') {
            rest.next();
            high = bound(rest)?;
        }
        ranges.push((low, high));
    }
}

fn bound(rest: &mut core::str::Chars<'_>) -> Result<char, BadPattern> {
    match rest.next() {
        None | Some('-' | ']') => Err(BadPattern),
        Some('\\') => rest.next().ok_or(BadPattern),
        Some(c) => Ok(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_match_as_in_go() {
        for (pattern, name, expected) in [
            ("abc", "abc", true),
            ("*", "abc", true),
            ("*c", "abc", true),
            ("a*", "a", true),
            ("a*", "ab/c", false),
            ("a*b*c*d*e*", "axbxcxdxe", true),
            ("a*b*c*d*e*", "axbxcxdxexxx", true),
            ("a*b?c*x", "abxbbxdbxebxczzx", true),
            ("a*b?c*x", "abxbbxdbxebxczzy", false),
            ("ab[c]", "abc", true),
            ("ab[b-d]", "abc", true),
            ("ab[e-g]", "abc", false),
            ("ab[^c]", "abc", false),
            ("ab[^e-g]", "abc", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "ab", false),
            ("a?b", "a☺b", true),
            ("[a-ζ]*", "α", true),
            ("kube-*", "kube-system", true),
            ("kube-*", "default", false),
            ("*ring", "string", true),
            ("", "", true),
            ("", "a", false),
            ("[\\]a]", "]", true),
            ("[x\\-]", "-", true),
        ] {
            assert_eq!(
                Pattern::parse(pattern).unwrap().matches(name),
                expected,
                "{pattern} {name}"
            );
        }
        for bad in ["[]a]", "[-]", "[x-]", "[-x]", "\\", "[a-b-c]", "[", "[^", "[^bc", "a["] {
            assert_eq!(Pattern::parse(bad), Err(BadPattern), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(pattern in "[\\[\\]a\\-*?^\\\\]{0,12}", name in "[a\\-/]{0,12}") {
            if let Ok(pattern) = Pattern::parse(&pattern) {
                pattern.matches(&name);
            }
        }
    }
}
