//! From tokens to a tree, with Go's grammar and Go's complaints.
//!
//! Nesting is bounded, because parsing and execution recurse over it.

use std::collections::BTreeMap;

use cleat_dialect::quote;

use crate::lex::{self, Delimiters, Keyword, Kind, Token};
use crate::limits::Limits;
use crate::literal;
use crate::node::{Branch, Node};

mod expression;

/// A parsed text: its own nodes under its name, and the templates it defines.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) text: String,
    pub(crate) name: String,
    pub(crate) templates: BTreeMap<String, Vec<Node>>,
}

/// # Errors
/// What Go's `Parse` says, or that a limit is exceeded.
pub(crate) fn parse(
    name: &str,
    text: &str,
    delimiters: &Delimiters,
    limits: Limits,
    knows: &dyn Fn(&str) -> bool,
) -> Result<Set, String> {
    if text.len() > limits.template {
        return Err(format!("template: {name}: the text is longer than {} bytes", limits.template));
    }
    let (tokens, mistake) = lex::tokens(text, delimiters);
    let mut parser = Parser {
        name,
        tokens,
        mistake,
        next: 0,
        seen: 0,
        scope: Scope::default(),
        depth: 0,
        limits,
        knows,
        templates: BTreeMap::new(),
    };
    let nodes = parser.top()?;
    parser.define(name.to_owned(), nodes)?;
    Ok(Set { text: text.to_owned(), name: name.to_owned(), templates: parser.templates })
}

struct Parser<'a> {
    name: &'a str,
    tokens: Vec<Token<'a>>,
    /// What the error token means.
    mistake: String,
    next: usize,
    /// One past the furthest token looked at; messages name the line of that token.
    seen: usize,
    scope: Scope,
    depth: usize,
    limits: Limits,
    knows: &'a dyn Fn(&str) -> bool,
    templates: BTreeMap<String, Vec<Node>>,
}

/// What each template being defined has for itself.
struct Scope {
    variables: Vec<String>,
    ranges: usize,
    /// Line on which the current action began; 0 outside of one.
    action: usize,
}

impl Default for Scope {
    fn default() -> Self {
        Self { variables: vec!["$".to_owned()], ranges: 0, action: 0 }
    }
}

enum Step {
    Node(Node),
    End,
    Else,
}

impl Step {
    fn shown(&self) -> String {
        match self {
            Self::Node(node) => node.to_string(),
            Self::End => "{{end}}".to_owned(),
            Self::Else => "{{else}}".to_owned(),
        }
    }
}

type Parsed<T> = Result<T, String>;

impl<'a> Parser<'a> {
    fn top(&mut self) -> Parsed<Vec<Node>> {
        let mut nodes = Vec::new();
        while self.peek().kind != Kind::Eof {
            if self.peek().kind == Kind::LeftDelim {
                let start = self.next;
                self.take();
                if self.take_solid().kind == Kind::Keyword(Keyword::Define) {
                    self.definition()?;
                    continue;
                }
                self.next = start;
            }
            match self.text_or_action()? {
                Step::Node(node) => nodes.push(node),
                step => return self.fail(&format!("unexpected {}", step.shown())),
            }
        }
        Ok(nodes)
    }

    fn definition(&mut self) -> Parsed<()> {
        let outer = std::mem::take(&mut self.scope);
        let token = self.take_solid();
        if !matches!(token.kind, Kind::String | Kind::RawString) {
            return self.unexpected(&token, "define clause");
        }
        let name = self.unquoted(token.text)?;
        self.expect_right("define clause")?;
        let (nodes, end) = self.list()?;
        if !matches!(end, Step::End) {
            return self.fail(&format!("unexpected {} in define clause", end.shown()));
        }
        self.define(name, nodes)?;
        self.scope = outer;
        Ok(())
    }

    fn define(&mut self, name: String, nodes: Vec<Node>) -> Parsed<()> {
        let blank = |nodes: &[Node]| nodes.iter().all(Node::is_blank);
        if self.templates.get(&name).is_none_or(|nodes| blank(nodes)) {
            self.templates.insert(name, nodes);
        } else if !blank(&nodes) {
            return self.fail(&format!(
                "template: multiple definition of template {}",
                quote::quoted(&name)
            ));
        }
        Ok(())
    }

    fn list(&mut self) -> Parsed<(Vec<Node>, Step)> {
        self.depth += 1;
        if self.depth > self.limits.depth {
            let message = format!("blocks are nested more than {} deep", self.limits.depth);
            return self.fail(&message);
        }
        let mut nodes = Vec::new();
        while self.peek_solid().kind != Kind::Eof {
            match self.text_or_action()? {
                Step::Node(node) => nodes.push(node),
                step => {
                    self.depth -= 1;
                    return Ok((nodes, step));
                }
            }
        }
        self.fail("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Parsed<Step> {
        let token = self.take_solid();
        match token.kind {
            Kind::Text => {
                Ok(Step::Node(Node::Text { pos: token.pos, text: token.text.to_owned() }))
            }
            Kind::LeftDelim => {
                self.scope.action = token.line;
                let step = self.action();
                // A complaint has already used the line.
                self.scope.action = 0;
                step
            }
            _ => self.unexpected(&token, "input"),
        }
    }

    fn action(&mut self) -> Parsed<Step> {
        let before = self.next;
        let token = self.take_solid();
        let Kind::Keyword(keyword) = token.kind else {
            self.next = before;
            return self.plain_action();
        };
        let node = match keyword {
            Keyword::Block => self.block()?,
            Keyword::Break => {
                self.jump("break")?;
                Node::Break { pos: token.pos }
            }
            Keyword::Continue => {
                self.jump("continue")?;
                Node::Continue { pos: token.pos }
            }
            Keyword::Else => {
                let next = self.peek_solid().kind;
                if !matches!(next, Kind::Keyword(Keyword::If | Keyword::With)) {
                    self.expect_right("else")?;
                }
                return Ok(Step::Else);
            }
            Keyword::End => {
                self.expect_right("end")?;
                return Ok(Step::End);
            }
            Keyword::If => Node::If(self.branch(Keyword::If)?),
            Keyword::Range => Node::Range(self.branch(Keyword::Range)?),
            Keyword::Template => self.template()?,
            Keyword::With => Node::With(self.branch(Keyword::With)?),
            Keyword::Define | Keyword::Dot | Keyword::Nil => {
                self.next = before;
                return self.plain_action();
            }
        };
        Ok(Step::Node(node))
    }

    fn plain_action(&mut self) -> Parsed<Step> {
        let pos = self.peek_solid().pos;
        let pipe = self.pipeline("command", Kind::RightDelim)?;
        Ok(Step::Node(Node::Action { pos, pipe }))
    }

    fn jump(&mut self, word: &str) -> Parsed<()> {
        let token = self.take_solid();
        if token.kind != Kind::RightDelim {
            return self.unexpected(&token, &format!("{{{{{word}}}}}"));
        }
        if self.scope.ranges == 0 {
            return self.fail(&format!("{{{{{word}}}}} outside {{{{range}}}}"));
        }
        Ok(())
    }

    fn branch(&mut self, keyword: Keyword) -> Parsed<Branch> {
        let context = match keyword {
            Keyword::If => "if",
            Keyword::Range => "range",
            _ => "with",
        };
        let variables = self.scope.variables.len();
        let pipe = self.pipeline(context, Kind::RightDelim)?;
        let ranges = usize::from(keyword == Keyword::Range);
        self.scope.ranges += ranges;
        let (list, next) = self.list()?;
        self.scope.ranges -= ranges;
        let otherwise = match next {
            Step::Else => Some(self.otherwise(keyword)?),
            _ => None,
        };
        self.scope.variables.truncate(variables);
        Ok(Branch { pipe, list, otherwise })
    }

    /// `{{else if b}}` is `{{else}}{{if b}}` with one `{{end}}` for both.
    fn otherwise(&mut self, keyword: Keyword) -> Parsed<Vec<Node>> {
        if keyword != Keyword::Range && self.peek().kind == Kind::Keyword(keyword) {
            self.take();
            self.depth += 1;
            if self.depth > self.limits.depth {
                let message = format!("blocks are nested more than {} deep", self.limits.depth);
                return self.fail(&message);
            }
            let branch = self.branch(keyword)?;
            self.depth -= 1;
            return Ok(vec![if keyword == Keyword::If {
                Node::If(branch)
            } else {
                Node::With(branch)
            }]);
        }
        let (nodes, next) = self.list()?;
        match next {
            Step::End => Ok(nodes),
            step => self.fail(&format!("expected end; found {}", step.shown())),
        }
    }

    fn block(&mut self) -> Parsed<Node> {
        let token = self.take_solid();
        let name = self.template_name(&token, "block clause")?;
        let pipe = self.pipeline("block clause", Kind::RightDelim)?;
        let seen = self.seen;
        let outer = std::mem::take(&mut self.scope);
        let (nodes, end) = self.list()?;
        if !matches!(end, Step::End) {
            self.seen = seen;
            return self.fail(&format!("unexpected {} in block clause", end.shown()));
        }
        self.define(name.clone(), nodes)?;
        self.scope = outer;
        Ok(Node::Template { pos: token.pos, name, pipe: Some(pipe) })
    }

    fn template(&mut self) -> Parsed<Node> {
        let token = self.take_solid();
        let name = self.template_name(&token, "template clause")?;
        let before = self.next;
        let pipe = if self.take_solid().kind == Kind::RightDelim {
            None
        } else {
            self.next = before;
            Some(self.pipeline("template clause", Kind::RightDelim)?)
        };
        Ok(Node::Template { pos: token.pos, name, pipe })
    }

    fn template_name(&mut self, token: &Token<'_>, context: &str) -> Parsed<String> {
        match token.kind {
            Kind::String | Kind::RawString => self.unquoted(token.text),
            _ => self.unexpected(token, context),
        }
    }

    fn unquoted(&self, text: &str) -> Parsed<String> {
        match literal::unquote(text).map(String::from_utf8) {
            Some(Ok(text)) => Ok(text),
            _ => self.fail("invalid syntax"),
        }
    }

    fn expect_right(&mut self, context: &str) -> Parsed<()> {
        let token = self.take_solid();
        if token.kind == Kind::RightDelim { Ok(()) } else { self.unexpected(&token, context) }
    }

    fn unexpected<T>(&self, token: &Token<'_>, context: &str) -> Parsed<T> {
        if token.kind != Kind::Error {
            return self.fail(&format!("unexpected {} in {context}", token.shown()));
        }
        let mut message = self.mistake.clone();
        if self.scope.action != 0 && self.scope.action != token.line {
            let action = if message.ends_with(" action") { "" } else { " in action" };
            message += &format!("{action} started at {}:{}", self.name, self.scope.action);
        }
        self.fail(&message)
    }

    fn fail<T>(&self, message: &str) -> Parsed<T> {
        let line = self.seen.checked_sub(1).and_then(|index| self.tokens.get(index));
        let line = line.or(self.tokens.last()).map_or(0, |token| token.line);
        Err(format!("template: {}:{line}: {message}", self.name))
    }

    fn peek(&mut self) -> Token<'a> {
        self.seen = self.seen.max(self.next + 1);
        let end = Token { kind: Kind::Eof, pos: 0, line: 1, text: "" };
        self.tokens.get(self.next).or(self.tokens.last()).copied().unwrap_or(end)
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn skip_space(&mut self) {
        while self.peek().kind == Kind::Space {
            self.next += 1;
        }
    }

    fn take_solid(&mut self) -> Token<'a> {
        self.skip_space();
        self.take()
    }

    fn peek_solid(&mut self) -> Token<'a> {
        self.skip_space();
        self.peek()
    }
}
