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
    /// Each value as it is and as it is shown, line by line, as JSON writes it, and in base64 with and
    /// without the spaces around it.
    pub(crate) fn new<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut secrets: Vec<Vec<u8>> = Vec::new();
        for value in values {
            let trimmed = value.trim_ascii();
            let lines = value.split(|byte| *byte == b'\n');
            for form in lines.chain([value, trimmed]) {
                secrets.push(form.to_vec());
                secrets.push(BASE64.encode(form).into_bytes());
            }
            if let Ok(text) = std::str::from_utf8(trimmed) {
                let json = serde_json::Value::from(text).to_string();
                secrets.push(json.trim_matches('"').as_bytes().to_vec());
            }
        }
        let shown: Vec<Vec<u8>> = secrets.iter().map(|secret| visible(secret)).collect();
        secrets.extend(shown);
        // Base64 of what is too short to be masked is too.
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

/// Without what is not shown.
fn visible(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let shown = text.chars().filter(|char| !char.is_control() || *char == '\n');
    shown.collect::<String>().into_bytes()
}

/// What one stream prints, line by line.
#[derive(Default)]
pub(crate) struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// A line that does not end is passed on some time.
    const LONGEST: usize = 4 * KEPT;

    /// The lines that end with this piece.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.begun.extend_from_slice(piece);
        let end = self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let end = if end == 0 && self.begun.len() > Self::LONGEST { self.begun.len() } else { end };
        let rest = self.begun.split_off(end);
        std::mem::replace(&mut self.begun, rest)
    }

    pub(crate) fn rest(self) -> Vec<u8> {
        self.begun
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
        // Nothing in it may be mistaken for a command to a terminal, nor hide a secret by one.
        let shown = self.mask.apply(&visible(&self.kept));
        let text = String::from_utf8_lossy(&shown).into_owned();
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
    fn a_secret_is_masked_though_two_streams_print_at_the_same_time() {
        let mut tail = Tail::new(Mask::new(["the-secret-value".as_bytes()]));
        let (mut out, mut err) = (Lines::default(), Lines::default());
        for (stream, piece) in
            [(0, "it is the-sec"), (1, "warning"), (0, "ret-value\n"), (1, "!\n")]
        {
            let whole =
                if stream == 0 { out.push(piece.as_bytes()) } else { err.push(piece.as_bytes()) };
            tail.push(&whole);
        }
        tail.push(&out.rest());
        tail.push(&err.rest());
        assert_eq!(tail.show(), "it is ***\nwarning!\n");
    }

    #[test]
    fn a_secret_is_masked_though_it_came_from_a_file_or_is_shown_in_colours() {
        let shown = tail(&["hunter2\n"], &[&BASE64.encode("hunter2"), "\nhun\u{7}ter2, it said\n"]);
        assert_eq!(shown, "***\n***, it said\n");
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
