//! Conversions, some of which also tell the resolver how to treat the quotes around a template.

use super::{ONE, fixed};
use crate::library::{Answer, Args, Env, Library, Ty};
use crate::limits::Fault;
use crate::sprig;
use crate::value::{Numbers, Value, from_json, to_json};
use crate::yaml;

const ANY: &[Ty] = &[Ty::Any];

pub(super) fn add(library: &mut Library<'_>, additional_indentation: usize) {
    library.add("base64enc", fixed(ONE, sprig::base64_encode));
    library.add("base64dec", fixed(ONE, sprig::base64_decode));
    library.add("autoindent", fixed(ONE, autoindent));
    library.add(
        "indent",
        fixed(&[Ty::Int, Ty::Text], move |env, args| indent(env, args, additional_indentation)),
    );
    library.add("toInt", fixed(ANY, |_, args| Ok(sprig::number_of(args.any(0)))));
    library.add("toBool", fixed(ONE, to_bool));
    library.add("toLiteral", fixed(ONE, to_literal));
    for (name, known) in [
        ("fromJSON", "fromJson"),
        ("mustFromJSON", "mustFromJson"),
        ("toJSON", "toJson"),
        ("mustToJSON", "mustToJson"),
        ("toRawJSON", "toRawJson"),
        ("mustToRawJSON", "mustToRawJson"),
    ] {
        library.alias(name, known);
    }
    for name in ["fromYAML", "fromYaml"] {
        library.add(name, fixed(ONE, from_yaml));
    }
    for name in ["toYAML", "toYaml"] {
        library.add(name, fixed(ANY, to_yaml));
    }
}

/// Only reached where the resolver could not see it in the text.
fn autoindent(_: &Env, _: &Args<'_>) -> Answer {
    Err(Fault::text("an unexpected error occurred where autoindent could not be processed"))
}

/// Unlike Sprig's, it leaves no space at either end.
fn indent(env: &Env, args: &Args<'_>, additional: usize) -> Answer {
    let text = args.text(1)?;
    let spaces = i64::try_from(additional).unwrap_or(0).saturating_add(args.int(0));
    let spaces =
        usize::try_from(spaces).map_err(|_| Fault::text("strings: negative Repeat count"))?;
    let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    env.budget.charge(spaces.saturating_mul(lines))?;
    let pad = " ".repeat(spaces);
    Ok(Value::text(text.replace('\n', &format!("\n{pad}")).trim()))
}

fn to_bool(_: &Env, args: &Args<'_>) -> Answer {
    let text = args.text(0)?;
    Ok(Value::Bool(matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")))
}

fn to_literal(_: &Env, args: &Args<'_>) -> Answer {
    if args.bytes(0).contains(&b'\n') {
        return Err(Fault::text(
            "new lines are not allowed in the string passed to the toLiteral function",
        ));
    }
    Ok(args.any(0).clone())
}

fn from_yaml(env: &Env, args: &Args<'_>) -> Answer {
    let text = args.text(0)?;
    env.budget.charge(text.len())?;
    let json = yaml::read(text).map_err(Fault::Text)?;
    Ok(from_json(&json, Numbers::Int))
}

fn to_yaml(env: &Env, args: &Args<'_>) -> Answer {
    let json = to_json(args.any(0), &env.budget)?;
    let text = yaml::emit(&json);
    env.budget.charge(text.len())?;
    Ok(Value::text(text.strip_suffix('\n').unwrap_or(&text)))
}
