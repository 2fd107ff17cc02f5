//! Semantic versions.

use std::rc::Rc;

use crate::library::{Answer, Args, Env, Table, Ty, fixed};
use crate::limits::Fault;
use crate::value::Value;
use crate::version::{Version, satisfies};

pub(super) const TABLE: Table = &[
    ("semver", fixed(&[Ty::Text], semver)),
    ("semverCompare", fixed(&[Ty::Text, Ty::Text], compare)),
];

fn semver(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::Version(Rc::new(Version::parse(args.text(0)?).map_err(Fault::Text)?)))
}

fn compare(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::Bool(satisfies(args.text(0)?, args.text(1)?).map_err(Fault::Text)?))
}
