//! Asking what a value is.

use crate::library::{Answer, Args, Env, Table, Ty, fixed};
use crate::value::Value;

pub(super) const TABLE: Table = &[
    ("kindIs", fixed(&[Ty::Text, Ty::Any], kind_is)),
    ("kindOf", fixed(&[Ty::Any], |_, args| Ok(Value::text(args.any(0).kind_name())))),
    ("typeIs", fixed(&[Ty::Text, Ty::Any], type_is)),
    ("typeIsLike", fixed(&[Ty::Text, Ty::Any], type_is_like)),
    ("typeOf", fixed(&[Ty::Any], |_, args| Ok(Value::text(args.any(0).type_name())))),
];

fn kind_is(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::Bool(args.text(0)? == args.any(1).kind_name()))
}

fn type_is(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::Bool(args.text(0)? == args.any(1).type_name()))
}

fn type_is_like(_: &Env, args: &Args<'_>) -> Answer {
    let (wanted, name) = (args.text(0)?, args.any(1).type_name());
    Ok(Value::Bool(wanted == name || name.strip_prefix('*') == Some(wanted)))
}
