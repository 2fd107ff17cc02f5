//! The functions that only policy templates have: conversions that shape YAML, Secrets and
//! ConfigMaps, lookups, nodes by role, encryption, `skipObject`.
//!
//! A read that failed makes the function fail. Only an object that is known not to exist counts
//! as absent, and only where upstream says so (`lookup`, `lookupClusterClaim`).

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::encrypt::Encryption;
use crate::library::{Answer, Args, Env, Host, Library, Ty};
use crate::limits::Fault;
use crate::lookup::{Lookups, Query};
use crate::print;
use crate::value::Value;

mod convert;
mod read;

/// Cluster-scoped objects that may be looked up although lookups are restricted to a namespace;
/// `*` stands for anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterScoped {
    pub group: String,
    pub kind: String,
    pub name: String,
}

/// What the functions of one resolution know, and what they leave behind.
pub(crate) struct Reach<'a> {
    pub(crate) lookups: &'a dyn Lookups,
    pub(crate) namespace: &'a str,
    pub(crate) allowed: &'a [ClusterScoped],
    pub(crate) encryption: &'a Encryption,
    pub(crate) additional_indentation: usize,
    pub(crate) traces: RefCell<Traces>,
}

#[derive(Debug, Default)]
pub(crate) struct Traces {
    pub(crate) used: BTreeSet<Query>,
    pub(crate) sensitive: bool,
    pub(crate) skip: bool,
}

const ONE: &[Ty] = &[Ty::Text];
const TWO: &[Ty] = &[Ty::Text, Ty::Text];
const THREE: &[Ty] = &[Ty::Text, Ty::Text, Ty::Text];
const FOUR: &[Ty] = &[Ty::Text, Ty::Text, Ty::Text, Ty::Text];

fn fixed<'a>(params: &'static [Ty], run: impl Fn(&Env, &Args<'_>) -> Answer + 'a) -> Host<'a> {
    Host { params, rest: None, run: Box::new(run) }
}

fn variadic<'a>(
    params: &'static [Ty],
    rest: Ty,
    run: impl Fn(&Env, &Args<'_>) -> Answer + 'a,
) -> Host<'a> {
    Host { params, rest: Some(rest), run: Box::new(run) }
}

/// All functions of a policy template.
pub(crate) fn library<'a>(reach: &'a Reach<'a>, denied: &[String], skips: bool) -> Library<'a> {
    let mut library = Library::default();
    convert::add(&mut library, reach.additional_indentation);
    library.add("fromSecret", fixed(THREE, |_, args| reach.secret_entry(args)));
    library.add("fromConfigMap", fixed(THREE, |_, args| reach.config_map_entry(args)));
    library.add("copySecretData", fixed(TWO, |env, args| reach.copy_secret(env, args)));
    library.add("copyConfigMapData", fixed(TWO, |env, args| reach.copy_config_map(env, args)));
    library.add("fromClusterClaim", fixed(ONE, |_, args| reach.cluster_claim(args, false)));
    library.add("lookupClusterClaim", fixed(ONE, |_, args| reach.cluster_claim(args, true)));
    library.add("lookup", variadic(FOUR, Ty::Text, |_, args| reach.lookup(args)));
    library.add(
        "getNodesWithExactRoles",
        variadic(&[], Ty::Text, |_, args| Ok(read::list(&reach.nodes(args)?))),
    );
    library.add(
        "hasNodesWithExactRoles",
        variadic(&[], Ty::Text, |_, args| Ok(Value::Bool(!reach.nodes(args)?.is_empty()))),
    );
    library.add("protect", fixed(ONE, |_, args| reach.protect(args.bytes(0)).map(Value::text)));
    if skips {
        library.add("skipObject", variadic(&[], Ty::Any, |env, args| reach.skip(env, args)));
    }
    for name in denied {
        let message =
            format!("use of denylisted template function: function '{name}' is not allowed");
        library.add(name, variadic(&[], Ty::Any, move |_, _| Err(Fault::text(message.clone()))));
    }
    library
}

impl Reach<'_> {
    fn protect(&self, plain: &[u8]) -> Result<String, Fault> {
        match self.encryption {
            Encryption::Encrypt(keys) => {
                keys.protect(plain).map_err(|error| Fault::text(error.to_string()))
            }
            _ => Err(Fault::text("the protect template function is not enabled in this mode")),
        }
    }

    /// Once true, it stays so.
    fn skip(&self, env: &Env, args: &Args<'_>) -> Answer {
        let mut traces = self.traces.borrow_mut();
        match args.from(0) {
            [] => traces.skip = true,
            [_] if traces.skip => {}
            [Value::Bool(skip)] => traces.skip = *skip,
            [other] => {
                let shown = print::plain_text(other, &env.budget)?;
                return Err(Fault::text(format!("expected boolean but received '{shown}'")));
            }
            more => {
                return Err(Fault::text(format!(
                    "expected one optional boolean argument but received {} arguments",
                    more.len()
                )));
            }
        }
        Ok(Value::text(""))
    }
}
