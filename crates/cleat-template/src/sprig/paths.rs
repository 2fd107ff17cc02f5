//! Paths with slashes. The `os` variants are the same: clusters run on Linux.

use crate::library::{Answer, Args, Env, Table, Ty, fixed};
use crate::value::Value;

const ONE: &[Ty] = &[Ty::Text];

pub(super) const TABLE: Table = &[
    ("base", fixed(ONE, base)),
    ("clean", fixed(ONE, |_, args| Ok(Value::text(cleaned(args.text(0)?))))),
    ("dir", fixed(ONE, dir)),
    ("ext", fixed(ONE, ext)),
    ("isAbs", fixed(ONE, is_abs)),
    ("osBase", fixed(ONE, base)),
    ("osClean", fixed(ONE, |_, args| Ok(Value::text(cleaned(args.text(0)?))))),
    ("osDir", fixed(ONE, dir)),
    ("osExt", fixed(ONE, ext)),
    ("osIsAbs", fixed(ONE, is_abs)),
];

fn base(_: &Env, args: &Args<'_>) -> Answer {
    let path = args.text(0)?;
    let trimmed = path.trim_end_matches('/');
    let last = trimmed.rsplit('/').next().unwrap_or_default();
    Ok(Value::text(match (path.is_empty(), last.is_empty()) {
        (true, _) => ".",
        (false, true) => "/",
        _ => last,
    }))
}

fn dir(_: &Env, args: &Args<'_>) -> Answer {
    let path = args.text(0)?;
    let end = path.rfind('/').map_or(0, |slash| slash + 1);
    Ok(Value::text(cleaned(path.get(..end).unwrap_or_default())))
}

fn ext(_: &Env, args: &Args<'_>) -> Answer {
    let last = args.text(0)?.rsplit('/').next().unwrap_or_default();
    let dot = last.rfind('.').unwrap_or(last.len());
    Ok(Value::text(last.get(dot..).unwrap_or_default()))
}

fn is_abs(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::Bool(args.text(0)?.starts_with('/')))
}

/// The shortest path that means the same.
fn cleaned(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut kept: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if kept.last().is_some_and(|last| *last != "..") => {
                kept.pop();
            }
            ".." if rooted => {}
            part => kept.push(part),
        }
    }
    let joined = kept.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}
