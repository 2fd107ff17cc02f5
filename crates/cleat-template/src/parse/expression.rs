//! Pipelines and what they are made of: declarations, commands, operands, terms.

use cleat_dialect::quote;

use super::{Parsed, Parser};
use crate::lex::{Keyword, Kind};
use crate::literal;
use crate::node::{Arg, Command, Pipe, What};

impl Parser<'_> {
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Parsed<Pipe> {
        let pos = self.peek_solid().pos;
        let mut pipe = Pipe { pos, assigns: false, variables: Vec::new(), commands: Vec::new() };
        while self.peek_solid().kind == Kind::Variable {
            let before = self.next;
            let variable = self.take_solid().text;
            let next = self.peek_solid();
            match next.kind {
                Kind::Assign | Kind::Declare => {
                    self.take_solid();
                    pipe.assigns = next.kind == Kind::Assign;
                    self.declare(variable, &mut pipe);
                    break;
                }
                Kind::Char if next.text == "," => {
                    self.take_solid();
                    self.declare(variable, &mut pipe);
                    if context != "range" || pipe.variables.len() >= 2 {
                        return self.fail(&format!("too many declarations in {context}"));
                    }
                    let follows = self.peek_solid().kind;
                    if !matches!(follows, Kind::Variable | Kind::RightDelim | Kind::RightParen) {
                        return self.fail("range can only initialize variables");
                    }
                }
                _ => {
                    self.next = before;
                    break;
                }
            }
        }
        loop {
            let before = self.next;
            let token = self.take_solid();
            match token.kind {
                kind if kind == end => break,
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Field
                | Kind::Identifier
                | Kind::Keyword(Keyword::Dot | Keyword::Nil)
                | Kind::Number
                | Kind::RawString
                | Kind::String
                | Kind::Variable
                | Kind::LeftParen => {
                    self.next = before;
                    let command = self.command()?;
                    pipe.commands.push(command);
                }
                _ => return self.unexpected(&token, context),
            }
        }
        self.check(&pipe, context)?;
        Ok(pipe)
    }

    fn declare(&mut self, variable: &str, pipe: &mut Pipe) {
        pipe.variables.push(variable.to_owned());
        self.scope.variables.push(variable.to_owned());
    }

    fn check(&self, pipe: &Pipe, context: &str) -> Parsed<()> {
        if pipe.commands.is_empty() {
            return self.fail(&format!("missing value for {context}"));
        }
        for (index, command) in pipe.commands.iter().enumerate().skip(1) {
            if command.args.first().is_some_and(|arg| arg.what.is_constant()) {
                let stage = index + 1;
                return self.fail(&format!("non executable command in pipeline stage {stage}"));
            }
        }
        Ok(())
    }

    fn command(&mut self) -> Parsed<Command> {
        let mut command = Command { pos: self.peek_solid().pos, args: Vec::new() };
        loop {
            self.skip_space();
            if let Some(operand) = self.operand()? {
                command.args.push(operand);
            }
            let before = self.next;
            let token = self.take();
            match token.kind {
                Kind::Space => continue,
                Kind::RightDelim | Kind::RightParen => self.next = before,
                Kind::Pipe => {}
                _ => return self.unexpected(&token, "operand"),
            }
            break;
        }
        if command.args.is_empty() {
            return self.fail("empty command");
        }
        Ok(command)
    }

    fn operand(&mut self) -> Parsed<Option<Arg>> {
        let Some(term) = self.term()? else { return Ok(None) };
        if self.peek().kind != Kind::Field {
            return Ok(Some(term));
        }
        let pos = self.peek().pos;
        let mut fields = Vec::new();
        while self.peek().kind == Kind::Field {
            fields.extend(self.take().text.strip_prefix('.').map(str::to_owned));
        }
        let what = match term.what {
            What::Field(mut names) => {
                names.append(&mut fields);
                What::Field(names)
            }
            What::Variable(mut names) => {
                names.append(&mut fields);
                What::Variable(names)
            }
            ref constant if constant.is_constant() => {
                let shown = quote::quoted(&term.to_string());
                return self.fail(&format!("unexpected . after term {shown}"));
            }
            what => What::Chain(Box::new(Arg { pos: term.pos, what }), fields),
        };
        Ok(Some(Arg { pos, what }))
    }

    fn term(&mut self) -> Parsed<Option<Arg>> {
        let before = self.next;
        let token = self.take_solid();
        let what = match token.kind {
            Kind::Identifier => {
                if !(self.knows)(token.text) {
                    let name = quote::quoted(token.text);
                    return self.fail(&format!("function {name} not defined"));
                }
                What::Function(token.text.to_owned())
            }
            Kind::Keyword(Keyword::Dot) => What::Dot,
            Kind::Keyword(Keyword::Nil) => What::Nil,
            Kind::Variable => {
                if !self.scope.variables.iter().any(|name| name == token.text) {
                    let name = quote::quoted(token.text);
                    return self.fail(&format!("undefined variable {name}"));
                }
                What::Variable(vec![token.text.to_owned()])
            }
            Kind::Field => {
                What::Field(vec![token.text.strip_prefix('.').unwrap_or_default().to_owned()])
            }
            Kind::Bool => What::Bool(token.text == "true"),
            Kind::CharConstant => {
                What::Number(literal::character(token.text).or_else(|error| self.fail(&error))?)
            }
            Kind::Number | Kind::Complex => {
                What::Number(literal::number(token.text).or_else(|error| self.fail(&error))?)
            }
            Kind::LeftParen => {
                self.depth += 1;
                if self.depth > self.limits.depth {
                    return self.fail("max expression depth exceeded");
                }
                let pipe = self.pipeline("parenthesized pipeline", Kind::RightParen)?;
                self.depth -= 1;
                return Ok(Some(Arg { pos: pipe.pos, what: What::Pipe(pipe) }));
            }
            Kind::String | Kind::RawString => match literal::unquote(token.text) {
                Some(bytes) => What::Text { quoted: token.text.to_owned(), bytes },
                None => return self.fail("invalid syntax"),
            },
            _ => {
                self.next = before;
                return Ok(None);
            }
        };
        Ok(Some(Arg { pos: token.pos, what }))
    }
}
