//! Patterns as Go's regexp has them: a text is looked through in time that grows with its length and
//! no faster. What Go does not know (looking around, referring back) is no pattern here either.

use regex::{Regex, RegexBuilder};

/// Larger ones are refused: a pattern comes from whoever may write a manifest.
const LARGEST: usize = 1 << 18;

/// A pattern that was understood.
#[derive(Clone, Debug)]
pub struct Regexp(Regex);

impl Regexp {
    /// With the flags that jq's `test` knows. The error says what is wrong with it.
    pub fn of_jq(pattern: &str, flags: &str) -> Result<Self, String> {
        let mut builder = RegexBuilder::new(pattern);
        builder.size_limit(LARGEST).dfa_size_limit(LARGEST).nest_limit(32);
        for flag in flags.chars() {
            match flag {
                'i' => builder.case_insensitive(true),
                's' => builder.dot_matches_new_line(true),
                'x' => builder.ignore_whitespace(true),
                // How many and how empty matches are does not matter to who asks whether there is one.
                'g' | 'n' => continue,
                other => return Err(format!("has the flag {other:?}, which is not known")),
            };
        }
        match builder.build() {
            Ok(regex) => Ok(Self(regex)),
            Err(regex::Error::CompiledTooBig(_)) => {
                Err(format!("has the pattern {pattern:?}, which is too large"))
            }
            Err(_) => Err(format!("has the pattern {pattern:?}, which cannot be read")),
        }
    }

    /// Whether any part of the text is as the pattern says.
    pub fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_flags() {
        let is_in = |pattern, flags, text| Regexp::of_jq(pattern, flags).map(|one| one.is_in(text));
        assert_eq!(is_in("^istio", "", "istio-proxy"), Ok(true));
        assert_eq!(is_in("^istio", "", "an istio"), Ok(false));
        assert_eq!(is_in("ISTIO", "i", "istio"), Ok(true));
        assert_eq!(is_in("a.b", "s", "a\nb"), Ok(true));
        assert_eq!(is_in("(?<name>a)", "gn", "a"), Ok(true));
        for (pattern, flags) in [("(", ""), ("(?=a)", ""), (r"(a)\1", ""), ("a", "q")] {
            assert!(is_in(pattern, flags, "a").is_err(), "{pattern} {flags}");
        }
        let large = is_in("((a{100}){100}){100}", "", "a").unwrap_err();
        assert!(large.ends_with("which is too large"), "{large}");
    }
}
