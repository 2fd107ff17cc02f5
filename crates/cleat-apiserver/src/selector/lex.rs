//! The words of a label selector's string form.

/// One word, with its text where that matters to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub(super) token: Token,
    pub(super) text: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    End,
    Close,
    Comma,
    Not,
    DoubleEquals,
    Equals,
    GreaterThan,
    LessThan,
    NotEquals,
    Open,
    Identifier,
    In,
    NotIn,
}

impl Word<'_> {
    /// `in` and `notin` are plain identifiers wherever no operator can stand.
    pub(super) fn as_value(self) -> Self {
        match self.token {
            Token::In | Token::NotIn => Self { token: Token::Identifier, ..self },
            _ => self,
        }
    }
}

/// All words of `text`; the last one is [`Token::End`].
///
/// A NUL byte ends an identifier, and ends everything where a word would begin, as upstream.
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let word = match rest.bytes().next() {
            None | Some(0) => Word { token: Token::End, text: "" },
            Some(byte) if is_symbol(byte) => symbol(rest),
            Some(_) => identifier(rest),
        };
        words.push(word);
        if word.token == Token::End {
            return words;
        }
        rest = rest.get(word.text.len()..).unwrap_or_default();
        if matches!(word.token, Token::Identifier | Token::In | Token::NotIn) {
            rest = rest.strip_prefix('\0').unwrap_or(rest);
        }
    }
}

fn is_symbol(byte: u8) -> bool {
    matches!(byte, b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<')
}

fn symbol(rest: &str) -> Word<'_> {
    const SYMBOLS: [(&str, Token); 9] = [
        ("==", Token::DoubleEquals),
        ("!=", Token::NotEquals),
        ("=", Token::Equals),
        ("!", Token::Not),
        (">", Token::GreaterThan),
        ("<", Token::LessThan),
        ("(", Token::Open),
        (")", Token::Close),
        (",", Token::Comma),
    ];
    SYMBOLS
        .into_iter()
        .find(|(text, _)| rest.starts_with(text))
        .map_or(Word { token: Token::End, text: "" }, |(text, token)| Word { token, text })
}

fn identifier(rest: &str) -> Word<'_> {
    let end = rest
        .bytes()
        .position(|byte| {
            byte == 0 || is_symbol(byte) || matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
        })
        .unwrap_or(rest.len());
    let text = rest.get(..end).unwrap_or_default();
    let token = match text {
        "in" => Token::In,
        "notin" => Token::NotIn,
        _ => Token::Identifier,
    };
    Word { token, text }
}
