//! The string form of label selectors, refused in Kubernetes' words.

use std::collections::BTreeSet;

use super::labels::{Operator, Requirement};
use super::lex::{Token, Word, words};
use crate::names;
use crate::status::FieldError;

/// The requirements in the order written.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    let mut parser = Parser { words: words(text), position: 0 };
    let mut requirements = Vec::new();
    loop {
        let word = parser.peek();
        match word.token {
            Token::Identifier | Token::Not => {}
            Token::End => return Ok(requirements),
            _ => {
                return Err(format!(
                    "found '{}', expected: !, identifier, or 'end of string'",
                    word.text
                ));
            }
        }
        let requirement = parser
            .requirement()
            .map_err(|error| format!("unable to parse requirement: {error}"))?;
        requirements.push(requirement);
        let word = parser.next();
        match word.token {
            Token::End => return Ok(requirements),
            Token::Comma => {
                let after = parser.peek();
                if !matches!(after.token, Token::Identifier | Token::Not) {
                    return Err(format!("found '{}', expected: identifier after ','", after.text));
                }
            }
            _ => return Err(format!("found '{}', expected: ',' or 'end of string'", word.text)),
        }
    }
}

struct Parser<'a> {
    /// The last one is an end.
    words: Vec<Word<'a>>,
    position: usize,
}

const END: Word<'static> = Word { token: Token::End, text: "" };

impl<'a> Parser<'a> {
    fn peek(&self) -> Word<'a> {
        self.words.get(self.position).copied().unwrap_or(END).as_value()
    }

    fn next(&mut self) -> Word<'a> {
        self.next_operator().as_value()
    }

    fn next_operator(&mut self) -> Word<'a> {
        let word = self.words.get(self.position).copied().unwrap_or(END);
        self.position += 1;
        word
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut word = self.next();
        let negated = word.token == Token::Not;
        if negated {
            word = self.next();
        }
        if word.token != Token::Identifier {
            return Err(format!("found '{}', expected: identifier", word.text));
        }
        let key = word.text;
        let complaints = names::label_key(key);
        if !complaints.is_empty() {
            // Upstream has no path here and prints that.
            return Err(FieldError::invalid("<nil>", key, complaints.join("; ")).to_string());
        }
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek().token, Token::End | Token::Comma) {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.value_set()?,
            _ => self.exact_value()?,
        };
        Requirement::new(key, operator, values)
    }

    fn operator(&mut self) -> Result<Operator, String> {
        let word = self.next_operator();
        Ok(match word.token {
            Token::In => Operator::In,
            Token::NotIn => Operator::NotIn,
            Token::Equals => Operator::Equals,
            Token::DoubleEquals => Operator::DoubleEquals,
            Token::NotEquals => Operator::NotEquals,
            Token::GreaterThan => Operator::GreaterThan,
            Token::LessThan => Operator::LessThan,
            _ => {
                return Err(format!(
                    "found '{}', expected: in, notin, =, ==, !=, gt, lt",
                    word.text
                ));
            }
        })
    }

    /// What stands in parentheses. `()` is the set of the empty value, and every gap between
    /// commas is one, too.
    fn value_set(&mut self) -> Result<Vec<Box<str>>, String> {
        let open = self.next();
        if open.token != Token::Open {
            return Err(format!("found '{}' expected: '('", open.text));
        }
        let mut values: BTreeSet<&str> = BTreeSet::new();
        let first = self.peek();
        match first.token {
            Token::Identifier | Token::Comma => self.listed(&mut values)?,
            Token::Close => {
                values.insert("");
            }
            _ => {
                return Err(format!("found '{}', expected: ',', ')' or identifier", first.text));
            }
        }
        self.next();
        Ok(values.into_iter().map(Box::from).collect())
    }

    /// Stops before the closing parenthesis.
    fn listed(&mut self, values: &mut BTreeSet<&'a str>) -> Result<(), String> {
        loop {
            let word = self.next();
            let after = self.peek();
            match word.token {
                Token::Identifier => {
                    values.insert(word.text);
                    match after.token {
                        Token::Comma => {}
                        Token::Close => return Ok(()),
                        _ => return Err(format!("found '{}', expected: ',' or ')'", after.text)),
                    }
                }
                Token::Comma => {
                    if values.is_empty() || matches!(after.token, Token::Close | Token::Comma) {
                        values.insert("");
                    }
                    if after.token == Token::Close {
                        return Ok(());
                    }
                }
                _ => return Err(format!("found '{}', expected: ',', or identifier", word.text)),
            }
        }
    }

    fn exact_value(&mut self) -> Result<Vec<Box<str>>, String> {
        if matches!(self.peek().token, Token::End | Token::Comma) {
            return Ok(vec!["".into()]);
        }
        let word = self.next();
        if word.token != Token::Identifier {
            return Err(format!("found '{}', expected: identifier", word.text));
        }
        Ok(vec![word.text.into()])
    }
}
