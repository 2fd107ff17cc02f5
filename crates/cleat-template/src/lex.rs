//! From text to tokens, with Go's rules for delimiters, trim markers and what may follow what.
//!
//! The whole text is cut at once; the first mistake ends the list with an error token, which the
//! parser reports only when it gets there.

use cleat_dialect::quote;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Error,
    Bool,
    /// A printable character with no other meaning, such as a comma.
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    String,
    Text,
    Variable,
    Keyword(Keyword),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Block,
    Break,
    Continue,
    Define,
    Dot,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) pos: usize,
    pub(crate) line: usize,
    pub(crate) text: &'a str,
}

impl Token<'_> {
    /// How messages show a token.
    pub(crate) fn shown(&self) -> String {
        match self.kind {
            Kind::Eof => "EOF".to_owned(),
            Kind::Keyword(_) => format!("<{}>", self.text),
            _ if self.text.len() > 10 => {
                let start: String = self.text.chars().take(10).collect();
                format!("{}...", quote::quoted(&start))
            }
            _ => quote::quoted(self.text),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delimiters {
    pub(crate) left: String,
    pub(crate) right: String,
}

/// The tokens, and what is wrong if the last one is an error.
pub(crate) fn tokens<'a>(input: &'a str, delimiters: &Delimiters) -> (Vec<Token<'a>>, String) {
    let mut lexer =
        Lexer { input, delimiters, pos: 0, start: 0, tokens: Vec::new(), lines: (0, 1) };
    match lexer.run() {
        Ok(()) => (lexer.tokens, String::new()),
        Err(message) => {
            let (pos, line) = (lexer.start, lexer.line_of(lexer.start));
            lexer.tokens.push(Token { kind: Kind::Error, pos, line, text: "" });
            (lexer.tokens, message)
        }
    }
}

struct Lexer<'a, 'd> {
    input: &'a str,
    delimiters: &'d Delimiters,
    pos: usize,
    start: usize,
    tokens: Vec<Token<'a>>,
    /// A position and its line; token starts only move forward, so lines are counted once.
    lines: (usize, usize),
}

const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

impl<'a> Lexer<'a, '_> {
    fn run(&mut self) -> Result<(), String> {
        loop {
            let Some(found) = self.rest().find(&self.delimiters.left) else {
                self.pos = self.input.len();
                if self.pos > self.start {
                    self.emit(Kind::Text);
                }
                self.emit(Kind::Eof);
                return Ok(());
            };
            self.text_before(found);
            self.pos += self.delimiters.left.len();
            let after = if left_trim(self.rest()) { 2 } else { 0 };
            if self.input.get(self.pos + after..).is_some_and(|rest| rest.starts_with("/*")) {
                self.pos += after;
                self.skip();
                self.comment()?;
            } else {
                self.emit(Kind::LeftDelim);
                self.pos += after;
                self.skip();
                self.action()?;
            }
        }
    }

    fn text_before(&mut self, length: usize) {
        let Some(text) = self.rest().get(..length) else { return };
        let after = self.pos + length;
        let behind = self.input.get(after + self.delimiters.left.len()..).unwrap_or_default();
        let kept = if left_trim(behind) { text.trim_end_matches(SPACES).len() } else { length };
        self.pos += kept;
        if kept > 0 {
            self.emit(Kind::Text);
        }
        self.pos = after;
        self.skip();
    }

    fn comment(&mut self) -> Result<(), String> {
        let Some(end) = self.rest().get(2..).and_then(|rest| rest.find("*/")) else {
            return Err("unclosed comment".to_owned());
        };
        self.pos += end + 4;
        match self.at_right_delim() {
            Some(trim) => self.close(trim),
            None => return Err("comment ends before closing delimiter".to_owned()),
        }
        self.skip();
        Ok(())
    }

    /// Whether a right delimiter is next, and whether it trims.
    fn at_right_delim(&self) -> Option<bool> {
        let rest = self.rest();
        if right_trim(rest)
            && rest.get(2..).is_some_and(|rest| rest.starts_with(&self.delimiters.right))
        {
            return Some(true);
        }
        rest.starts_with(&self.delimiters.right).then_some(false)
    }

    /// Steps over a right delimiter and the space that it trims.
    fn close(&mut self, trim: bool) {
        self.pos += self.delimiters.right.len() + if trim { 2 } else { 0 };
        if trim {
            let rest = self.rest();
            self.pos += rest.len() - rest.trim_start_matches(SPACES).len();
        }
    }

    fn action(&mut self) -> Result<(), String> {
        let mut parens = 0_usize;
        loop {
            if let Some(trim) = self.at_right_delim() {
                if parens > 0 {
                    return Err("unclosed left paren".to_owned());
                }
                if trim {
                    self.pos += 2;
                    self.skip();
                }
                self.pos += self.delimiters.right.len();
                self.emit(Kind::RightDelim);
                if trim {
                    let rest = self.rest();
                    self.pos += rest.len() - rest.trim_start_matches(SPACES).len();
                    self.skip();
                }
                return Ok(());
            }
            let Some(next) = self.next() else { return Err("unclosed action".to_owned()) };
            match next {
                c if is_space(c) => self.space(),
                '=' => self.emit(Kind::Assign),
                ':' => {
                    if self.next() != Some('=') {
                        return Err("expected :=".to_owned());
                    }
                    self.emit(Kind::Declare);
                }
                '|' => self.emit(Kind::Pipe),
                '"' => {
                    self.quoted('"', "unterminated quoted string")?;
                    self.emit(Kind::String);
                }
                '\'' => {
                    self.quoted('\'', "unterminated character constant")?;
                    self.emit(Kind::CharConstant);
                }
                '`' => {
                    let Some(end) = self.rest().find('`') else {
                        return Err("unterminated raw quoted string".to_owned());
                    };
                    self.pos += end + 1;
                    self.emit(Kind::RawString);
                }
                '$' => self.name(Kind::Variable, Kind::Variable)?,
                '.' if !self.peek().is_some_and(|c| c.is_ascii_digit())
                    && !self.rest().is_empty() =>
                {
                    self.name(Kind::Field, Kind::Keyword(Keyword::Dot))?;
                }
                '.' | '+' | '-' | '0'..='9' => {
                    self.pos = self.start;
                    self.number()?;
                }
                c if is_alphanumeric(c) => self.identifier()?,
                '(' => {
                    parens += 1;
                    self.emit(Kind::LeftParen);
                }
                ')' => {
                    if parens == 0 {
                        return Err("unexpected right paren".to_owned());
                    }
                    parens -= 1;
                    self.emit(Kind::RightParen);
                }
                c if (' '..='~').contains(&c) => self.emit(Kind::Char),
                c => {
                    return Err(format!(
                        "unrecognized character in action: {}",
                        quote::code_point(c)
                    ));
                }
            }
        }
    }

    /// A run of spaces, leaving the last one if it belongs to a trimming delimiter.
    fn space(&mut self) {
        let mut last = self.start;
        while let Some(c) = self.peek().filter(|c| is_space(*c)) {
            last = self.pos;
            self.pos += c.len_utf8();
        }
        let behind = self.input.get(last..).unwrap_or_default();
        if right_trim(behind)
            && behind.get(2..).is_some_and(|rest| rest.starts_with(&self.delimiters.right))
        {
            self.pos = last;
            if last == self.start {
                return;
            }
        }
        self.emit(Kind::Space);
    }

    fn quoted(&mut self, end: char, message: &str) -> Result<(), String> {
        loop {
            match self.next() {
                Some('\\') => {
                    if matches!(self.next(), None | Some('\n')) {
                        return Err(message.to_owned());
                    }
                }
                None | Some('\n') => return Err(message.to_owned()),
                Some(c) if c == end => return Ok(()),
                Some(_) => {}
            }
        }
    }

    /// What follows a `.` or a `$`; `bare` is what it is when nothing does.
    fn name(&mut self, kind: Kind, bare: Kind) -> Result<(), String> {
        if self.at_terminator() {
            self.emit(bare);
            return Ok(());
        }
        self.word()?;
        self.emit(kind);
        Ok(())
    }

    fn identifier(&mut self) -> Result<(), String> {
        self.word()?;
        let kind = match self.input.get(self.start..self.pos).unwrap_or_default() {
            "block" => Kind::Keyword(Keyword::Block),
            "break" => Kind::Keyword(Keyword::Break),
            "continue" => Kind::Keyword(Keyword::Continue),
            "define" => Kind::Keyword(Keyword::Define),
            "else" => Kind::Keyword(Keyword::Else),
            "end" => Kind::Keyword(Keyword::End),
            "if" => Kind::Keyword(Keyword::If),
            "nil" => Kind::Keyword(Keyword::Nil),
            "range" => Kind::Keyword(Keyword::Range),
            "template" => Kind::Keyword(Keyword::Template),
            "with" => Kind::Keyword(Keyword::With),
            "true" | "false" => Kind::Bool,
            _ => Kind::Identifier,
        };
        self.emit(kind);
        Ok(())
    }

    fn word(&mut self) -> Result<(), String> {
        while let Some(c) = self.peek().filter(|c| is_alphanumeric(*c)) {
            self.pos += c.len_utf8();
        }
        match self.peek() {
            Some(c) if !self.at_terminator() => {
                Err(format!("bad character {}", quote::code_point(c)))
            }
            _ => Ok(()),
        }
    }

    fn at_terminator(&self) -> bool {
        match self.peek() {
            None | Some('.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(c) if is_space(c) => true,
            Some(_) => self.rest().starts_with(&self.delimiters.right),
        }
    }

    fn number(&mut self) -> Result<(), String> {
        let bad = |lexer: &Self| {
            let text = lexer.input.get(lexer.start..lexer.pos).unwrap_or_default();
            Err(format!("bad number syntax: {}", quote::quoted(text)))
        };
        if !self.scan_number() {
            return bad(self);
        }
        if matches!(self.peek(), Some('+' | '-')) {
            let scanned = self.scan_number();
            if !scanned || !self.input.get(..self.pos).is_some_and(|text| text.ends_with('i')) {
                return bad(self);
            }
            self.emit(Kind::Complex);
        } else {
            self.emit(Kind::Number);
        }
        Ok(())
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
        let mut digits = "0123456789_";
        if self.accept("0") {
            if self.accept("xX") {
                digits = "0123456789abcdefABCDEF_";
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        while self.accept(digits) {}
        if self.accept(".") {
            while self.accept(digits) {}
        }
        let exponent = match digits.len() {
            11 => "eE",
            23 => "pP",
            _ => "",
        };
        if self.accept(exponent) {
            self.accept("+-");
            while self.accept("0123456789_") {}
        }
        self.accept("i");
        match self.peek() {
            Some(c) if is_alphanumeric(c) => {
                self.pos += c.len_utf8();
                false
            }
            _ => true,
        }
    }

    fn accept(&mut self, valid: &str) -> bool {
        match self.peek() {
            Some(c) if valid.contains(c) => {
                self.pos += c.len_utf8();
                true
            }
            _ => false,
        }
    }

    fn rest(&self) -> &'a str {
        self.input.get(self.pos..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.pos += next.len_utf8();
        Some(next)
    }

    fn skip(&mut self) {
        self.start = self.pos;
    }

    fn line_of(&mut self, pos: usize) -> usize {
        let (from, line) = self.lines;
        let passed = self.input.get(from..pos).unwrap_or_default();
        self.lines = (from.max(pos), line + passed.bytes().filter(|byte| *byte == b'\n').count());
        self.lines.1
    }

    fn emit(&mut self, kind: Kind) {
        let (pos, line) = (self.start, self.line_of(self.start));
        let text = self.input.get(self.start..self.pos).unwrap_or_default();
        self.tokens.push(Token { kind, pos, line, text });
        self.start = self.pos;
    }
}

fn left_trim(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next() == Some('-') && chars.next().is_some_and(is_space)
}

fn right_trim(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(is_space) && chars.next() == Some('-')
}

fn is_space(c: char) -> bool {
    SPACES.contains(&c)
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}
