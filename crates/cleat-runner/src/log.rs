//! The end of what a playbook printed, without the secrets it was given. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// How much of it is kept.
pub(crate) const KEPT: usize = 16 * 1024;

/// Shorter values are too common to be told from other text.
const SHORTEST: usize = 4;

/// What must not be shown.
pub(crate) struct Mask {
    /// The longest first, so that none is left half shown.
    secrets: Vec<Vec<u8>>,
}

impl Mask {
    /// Each value as it is, line by line, as JSON writes it, and in base64.
    pub(crate) fn new<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut secrets: Vec<Vec<u8>> = Vec::new();
        for value in values {
            secrets.push(value.to_vec());
            secrets.push(BASE64.encode(value).into_bytes());
            secrets.extend(value.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
            let trimmed = value.trim_ascii();
            secrets.push(trimmed.to_vec());
            if let Ok(text) = std::str::from_utf8(trimmed) {
                let json = serde_json::Value::from(text).to_string();
                secrets.push(json.trim_matches('"').as_bytes().to_vec());
            }
        }
        secrets.retain(|secret| secret.len() >= SHORTEST);
        secrets.sort_by(|one, other| (other.len(), one).cmp(&(one.len(), other)));
        secrets.dedup();
        Self { secrets }
    }

    fn longest(&self) -> usize {
        self.secrets.first().map_or(0, Vec::len)
    }

    fn apply(&self, text: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some((first, others)) = rest.split_first() {
            match self.secrets.iter().find(|secret| rest.starts_with(secret)) {
                Some(secret) => {
                    shown.extend_from_slice(b"***");
                    rest = rest.get(secret.len()..).unwrap_or_default();
                }
                None => {
                    shown.push(*first);
                    rest = others;
                }
            }
        }
        shown
    }
}

/// The end of a text that comes in pieces.
pub(crate) struct Tail {
    mask: Mask,
    kept: Vec<u8>,
    /// Whether something came before what is kept.
    cut: bool,
}

impl Tail {
    pub(crate) fn new(mask: Mask) -> Self {
        Self { mask, kept: Vec::new(), cut: false }
    }

    /// As much again as the longest secret is kept, so that one that is cut is not shown in part.
    fn room(&self) -> usize {
        KEPT + self.mask.longest()
    }

    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.kept.extend_from_slice(piece);
        let over = self.kept.len().saturating_sub(2 * self.room());
        if over > 0 {
            self.kept.drain(..self.kept.len() - self.room());
            self.cut = true;
        }
    }

    pub(crate) fn show(&self) -> String {
        let shown = self.mask.apply(&self.kept);
        let text = String::from_utf8_lossy(&shown);
        // Nothing in it may be mistaken for a command to a terminal.
        let text: String =
            text.chars().filter(|char| !char.is_control() || *char == '\n').collect();
        let over = text.len().saturating_sub(KEPT);
        let over = if self.cut { over.max(self.mask.longest().min(text.len())) } else { over };
        if over == 0 {
            return text;
        }
        let start = (over..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        let rest = text.get(start..).unwrap_or_default();
        // From the beginning of a line on.
        let rest = rest.split_once('\n').map_or(rest, |(_, rest)| rest);
        format!("…\n{rest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(secrets: &[&str], pieces: &[&str]) -> String {
        let mut tail = Tail::new(Mask::new(secrets.iter().map(|secret| secret.as_bytes())));
        pieces.iter().for_each(|piece| tail.push(piece.as_bytes()));
        tail.show()
    }

    #[test]
    fn secrets_are_masked_in_every_form() {
        let secret = "s3cr\"et\nline two";
        let base64 = BASE64.encode(secret);
        let shown = tail(
            &[secret, "abc", ""],
            &[
                "as is: s3cr\"et\nline",
                " two\n",
                "one: s3cr\"et\n",
                &base64,
                "\n",
                "json: s3cr\\\"et\\nline two\nabc\x1b[31m\n",
            ],
        );
        assert_eq!(shown, "as is: ***\none: ***\n***\njson: ***\nabc[31m\n");
    }

    #[test]
    fn only_the_end_is_kept_and_no_secret_is_cut_in_two() {
        let line = "0123456789abcdef the-secret-value\n";
        for extra in 0..40 {
            let mut text = "x".repeat(extra);
            while text.len() < 5 * KEPT {
                text.push_str(line);
            }
            let shown = tail(&["the-secret-value"], &[&text]);
            assert!(shown.len() <= KEPT + 4, "{}", shown.len());
            assert!(shown.starts_with("…\n"));
            for line in shown.lines().skip(1) {
                assert_eq!(line, "0123456789abcdef ***", "{extra}");
            }
        }
        assert_eq!(tail(&[], &["short\n"]), "short\n");
        assert_eq!(tail(&[], &[]), "");
        let long = "é".repeat(KEPT);
        assert!(tail(&["é"], &[&long]).len() <= KEPT + 4);
    }
}
