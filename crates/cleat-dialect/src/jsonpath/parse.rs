//! From text to nodes.

use super::unquote::unquoted;
use super::{Node, Slice};
use crate::quote::code_point;

/// Expressions stand inside expressions in brackets only, which client-go cannot nest deeper.
const DEEPEST: usize = 8;

/// The nodes of a whole template: literal texts and one list for each pair of braces.
pub(super) fn template(input: &str) -> Result<Vec<Node>, String> {
    parse(input, 0)
}

fn parse(input: &str, depth: usize) -> Result<Vec<Node>, String> {
    if depth > DEEPEST {
        return Err("expression is nested too deeply".to_owned());
    }
    let mut nodes = Vec::new();
    let mut rest = input;
    loop {
        let (text, inside) = match rest.split_once('{') {
            Some((text, inside)) => (text, Some(inside)),
            None => (rest, None),
        };
        if !text.is_empty() {
            nodes.push(Node::Text(text.to_owned()));
        }
        let Some(inside) = inside else { return Ok(nodes) };
        let mut action = Action { rest: inside, nodes: Vec::new(), depth };
        action.parse()?;
        rest = action.rest;
        nodes.push(Node::List(action.nodes));
    }
}

/// The nodes of one expression, without braces. A closing brace inside ends it early.
fn expression(text: &str, depth: usize) -> Result<Vec<Node>, String> {
    match parse(&format!("{{{text}}}"), depth + 1)?.into_iter().next() {
        Some(Node::List(nodes)) => Ok(nodes),
        _ => Ok(Vec::new()),
    }
}

/// What is left of an expression, and what it has given so far.
struct Action<'a> {
    rest: &'a str,
    nodes: Vec<Node>,
    depth: usize,
}

impl<'a> Action<'a> {
    /// Up to and over the closing brace.
    fn parse(&mut self) -> Result<(), String> {
        loop {
            if let Some(rest) = self.rest.strip_prefix('}') {
                self.rest = rest;
                return Ok(());
            }
            if self.rest.starts_with("[?(") {
                self.filter()?;
                continue;
            }
            if self.rest.starts_with("..") {
                self.recursive()?;
                continue;
            }
            match self.rest.chars().next() {
                None | Some('\r' | '\n') => return Err("unclosed action".to_owned()),
                Some(' ' | '@' | '$') => self.skip(1),
                Some('[') => self.array()?,
                Some(quote @ ('"' | '\'')) => self.quoted(quote)?,
                Some('.') => {
                    self.skip(1);
                    self.field();
                }
                Some('+' | '-') => self.number()?,
                Some(c) if c.is_numeric() => self.number()?,
                Some(c) if c == '_' || c.is_alphabetic() => self.identifier(),
                Some(c) => {
                    return Err(format!("unrecognized character in action: {}", code_point(c)));
                }
            }
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Takes so many bytes off the front.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn identifier(&mut self) {
        let end = self.rest.find(is_terminator).unwrap_or(self.rest.len());
        let node = match self.take(end) {
            "true" => Node::Boolean(true),
            "false" => Node::Boolean(false),
            name => Node::Identifier(name.to_owned()),
        };
        self.nodes.push(node);
    }

    fn recursive(&mut self) -> Result<(), String> {
        if self.nodes.last() == Some(&Node::Recursive) {
            return Err("invalid multiple recursive descent".to_owned());
        }
        self.skip(2);
        self.nodes.push(Node::Recursive);
        if self.rest.starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
            self.field();
        }
        Ok(())
    }

    fn field(&mut self) {
        let mut escaped = false;
        let end = self
            .rest
            .find(|c| {
                if escaped {
                    escaped = false;
                    return false;
                }
                escaped = c == '\\';
                is_terminator(c)
            })
            .unwrap_or(self.rest.len());
        let node = match self.take(end) {
            "*" => Node::Wildcard,
            name => Node::Field(name.replace('\\', "")),
        };
        self.nodes.push(node);
    }

    fn number(&mut self) -> Result<(), String> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = self.rest.get(sign..).unwrap_or_default();
        let end = digits.find(|c: char| c != '.' && !c.is_numeric()).unwrap_or(digits.len());
        let text = self.take(sign + end);
        let node = if let Ok(integer) = text.parse() {
            Node::Integer(integer)
        } else if let Some(float) = text.parse().ok().filter(|float: &f64| float.is_finite()) {
            Node::Float(float)
        } else {
            return Err(format!("cannot parse number {text}"));
        };
        self.nodes.push(node);
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), String> {
        let unterminated = || "unterminated quoted string".to_owned();
        let mut before = quote;
        let end = self
            .rest
            .char_indices()
            .skip(1)
            .find(|(_, c)| {
                let ends = *c == '\n' || (*c == quote && before != '\\');
                before = *c;
                ends
            })
            .filter(|(_, c)| *c == quote)
            .map(|(index, _)| index + 1)
            .ok_or_else(unterminated)?;
        let text = self.take(end);
        let value =
            unquoted(text).map_err(|error| format!("unquote string {text} error {error}"))?;
        self.nodes.push(Node::Text(value));
        Ok(())
    }

    fn array(&mut self) -> Result<(), String> {
        let end = self
            .rest
            .find([']', '\n'])
            .filter(|end| self.rest.get(*end..).is_some_and(|rest| rest.starts_with(']')))
            .ok_or_else(|| "unterminated array".to_owned())?;
        self.skip(1);
        let inside = self.take(end.saturating_sub(1));
        self.skip(1);
        if inside.contains(',') {
            let parts = inside
                .split(',')
                .map(|part| expression(&format!("[{}]", part.trim_matches(' ')), self.depth));
            let union = parts.collect::<Result<_, _>>()?;
            self.nodes.push(Node::Union(union));
            return Ok(());
        }
        if let Some(key) = key(inside) {
            let nodes = expression(&format!(".{key}"), self.depth)?;
            self.nodes.extend(nodes);
            return Ok(());
        }
        let slice = slice(if inside == "*" { ":" } else { inside })?;
        self.nodes.push(Node::Slice(slice));
        Ok(())
    }

    /// Up to the first `)` outside the one quoted text a filter may have, which `]` must follow.
    fn filter(&mut self) -> Result<(), String> {
        self.skip("[?(".len());
        let mut opening = None;
        let mut closed = false;
        let mut before = '(';
        let mut end = None;
        for (index, c) in self.rest.char_indices() {
            match c {
                '\n' => break,
                '"' | '\'' => match opening {
                    None => opening = Some(c),
                    Some(quote) if quote == c && before != '\\' => closed = true,
                    Some(_) => {}
                },
                ')' if opening.is_some() == closed => {
                    end = Some(index);
                    break;
                }
                _ => {}
            }
            before = c;
        }
        let text = self.take(end.ok_or_else(|| "unterminated filter".to_owned())?);
        self.skip(1);
        self.rest =
            self.rest.strip_prefix(']').ok_or_else(|| "unclosed array expect ]".to_owned())?;
        let node = match comparison(text) {
            None => {
                let left = expression(text, self.depth)?;
                Node::Filter { left, operator: "exists".to_owned(), right: Vec::new() }
            }
            Some((left, operator, right)) => Node::Filter {
                left: expression(left, self.depth)?,
                operator: operator.to_owned(),
                right: expression(right, self.depth)?,
            },
        };
        self.nodes.push(node);
        Ok(())
    }
}

/// The inside of `'…'`, if that is all there is.
fn key(text: &str) -> Option<&str> {
    text.strip_prefix('\'')?.strip_suffix('\'').filter(|key| !key.contains('\''))
}

fn slice(text: &str) -> Result<Slice, String> {
    let invalid = || format!("invalid array index {text}");
    let parts: Vec<&str> = text.split(':').collect();
    let well_formed = |part: &&str| {
        part.strip_prefix('-').unwrap_or(part).bytes().all(|byte| byte.is_ascii_digit())
    };
    if parts.len() > 3 || !parts.iter().all(well_formed) {
        return Err(invalid());
    }
    let number = |index: usize| match parts.get(index).copied().unwrap_or_default() {
        "" => Ok(None),
        part => {
            part.parse::<i64>().map(Some).map_err(|_| format!("array index {part} is not a number"))
        }
    };
    let (start, end, step) = (number(0)?, number(1)?, number(2)?);
    let single = parts.len() == 1;
    let end = if single { Some(start.unwrap_or(0).saturating_add(1)) } else { end };
    Ok(Slice { start, end, single, step })
}

/// Splits `@.a == "b"` around its operator. Needs something on both sides.
fn comparison(text: &str) -> Option<(&str, &str, &str)> {
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let start = text.find(is_operator).filter(|start| *start > 0)?;
    let (left, rest) = text.split_at_checked(start)?;
    let length = rest.find(|c| !is_operator(c)).unwrap_or(rest.len());
    // With nothing behind it, the operator's last character is the right side.
    let length = if length == rest.len() { length.checked_sub(1)? } else { length };
    let (operator, right) = rest.split_at_checked(length)?;
    if operator.is_empty() { None } else { Some((left, operator, right)) }
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}
