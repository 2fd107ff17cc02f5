//! A parsed template, and how its parts are written in messages.

use std::fmt::{self, Display, Write as _};

use cleat_dialect::quote;

use crate::literal::Number;

#[derive(Debug)]
pub(crate) enum Node {
    Text { pos: usize, text: String },
    Action { pos: usize, pipe: Pipe },
    If(Branch),
    With(Branch),
    Range(Branch),
    Template { pos: usize, name: String, pipe: Option<Pipe> },
    Break { pos: usize },
    Continue { pos: usize },
}

#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) pipe: Pipe,
    pub(crate) list: Vec<Node>,
    pub(crate) otherwise: Option<Vec<Node>>,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) pos: usize,
    /// `=` rather than `:=`.
    pub(crate) assigns: bool,
    pub(crate) variables: Vec<String>,
    pub(crate) commands: Vec<Command>,
}

#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) pos: usize,
    pub(crate) args: Vec<Arg>,
}

#[derive(Debug)]
pub(crate) struct Arg {
    pub(crate) pos: usize,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    Bool(bool),
    Number(Number),
    Text { quoted: String, bytes: Vec<u8> },
    Nil,
    Dot,
    Field(Vec<String>),
    Variable(Vec<String>),
    Function(String),
    Chain(Box<Arg>, Vec<String>),
    Pipe(Pipe),
}

impl What {
    /// Whether this can only stand first in a pipeline.
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self, Self::Bool(_) | Self::Dot | Self::Nil | Self::Number(_) | Self::Text { .. })
    }
}

/// Where execution is, for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'t> {
    Node(&'t Node),
    Pipe(&'t Pipe),
    Command(&'t Command),
    Arg(&'t Arg),
}

impl Place<'_> {
    pub(crate) fn pos(&self) -> usize {
        match self {
            Self::Node(node) => node.pos(),
            Self::Pipe(pipe) => pipe.pos,
            Self::Command(command) => command.pos,
            Self::Arg(arg) => arg.pos,
        }
    }
}

impl Node {
    fn pos(&self) -> usize {
        match self {
            Self::Text { pos, .. }
            | Self::Action { pos, .. }
            | Self::Template { pos, .. }
            | Self::Break { pos }
            | Self::Continue { pos } => *pos,
            Self::If(branch) | Self::With(branch) | Self::Range(branch) => branch.pipe.pos,
        }
    }

    /// Whether nothing but space would be printed.
    pub(crate) fn is_blank(&self) -> bool {
        matches!(self, Self::Text { text, .. } if text.trim().is_empty())
    }
}

impl Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => node.fmt(f),
            Self::Pipe(pipe) => pipe.fmt(f),
            Self::Command(command) => command.fmt(f),
            Self::Arg(arg) => arg.fmt(f),
        }
    }
}

impl Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { text, .. } => f.write_str(text),
            Self::Action { pipe, .. } => write!(f, "{{{{{pipe}}}}}"),
            Self::If(branch) => branch.write(f, "if"),
            Self::With(branch) => branch.write(f, "with"),
            Self::Range(branch) => branch.write(f, "range"),
            Self::Template { name, pipe: None, .. } => {
                write!(f, "{{{{template {}}}}}", quote::quoted(name))
            }
            Self::Template { name, pipe: Some(pipe), .. } => {
                write!(f, "{{{{template {} {pipe}}}}}", quote::quoted(name))
            }
            Self::Break { .. } => f.write_str("{{break}}"),
            Self::Continue { .. } => f.write_str("{{continue}}"),
        }
    }
}

impl Branch {
    fn write(&self, f: &mut fmt::Formatter<'_>, word: &str) -> fmt::Result {
        write!(f, "{{{{{word} {}}}}}", self.pipe)?;
        for node in &self.list {
            node.fmt(f)?;
        }
        if let Some(otherwise) = &self.otherwise {
            f.write_str("{{else}}")?;
            for node in otherwise {
                node.fmt(f)?;
            }
        }
        f.write_str("{{end}}")
    }
}

impl Display for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, variable) in self.variables.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            f.write_str(variable)?;
        }
        if !self.variables.is_empty() {
            f.write_str(if self.assigns { " = " } else { " := " })?;
        }
        for (index, command) in self.commands.iter().enumerate() {
            if index > 0 {
                f.write_str(" | ")?;
            }
            command.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, arg) in self.args.iter().enumerate() {
            if index > 0 {
                f.write_char(' ')?;
            }
            arg.enclosed(f)?;
        }
        Ok(())
    }
}

impl Arg {
    fn enclosed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Pipe(pipe) => write!(f, "({pipe})"),
            _ => self.fmt(f),
        }
    }
}

impl Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Bool(flag) => write!(f, "{flag}"),
            What::Number(number) => f.write_str(&number.text),
            What::Text { quoted, .. } => f.write_str(quoted),
            What::Nil => f.write_str("nil"),
            What::Dot => f.write_str("."),
            What::Field(names) => names.iter().try_for_each(|name| write!(f, ".{name}")),
            What::Variable(names) => f.write_str(&names.join(".")),
            What::Function(name) => f.write_str(name),
            What::Chain(inner, names) => {
                inner.enclosed(f)?;
                names.iter().try_for_each(|name| write!(f, ".{name}"))
            }
            What::Pipe(pipe) => pipe.fmt(f),
        }
    }
}
