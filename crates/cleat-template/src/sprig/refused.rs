//! Functions that are known but not offered.

use crate::library::{Answer, Args, Env, Function, Table, Ty, variadic};
use crate::limits::Fault;

const RANDOM: Function = variadic(&[], Ty::Any, random);

pub(super) const TABLE: Table = &[
    ("bcrypt", RANDOM),
    ("buildCustomCert", RANDOM),
    ("derivePassword", RANDOM),
    ("encryptAES", RANDOM),
    ("env", variadic(&[], Ty::Any, env)),
    ("expandenv", variadic(&[], Ty::Any, expandenv)),
    ("genCA", RANDOM),
    ("genCAWithKey", RANDOM),
    ("genPrivateKey", RANDOM),
    ("genSelfSignedCert", RANDOM),
    ("genSelfSignedCertWithKey", RANDOM),
    ("genSignedCert", RANDOM),
    ("genSignedCertWithKey", RANDOM),
    ("getHostByName", RANDOM),
    ("htpasswd", RANDOM),
    ("randAlpha", RANDOM),
    ("randAlphaNum", RANDOM),
    ("randAscii", RANDOM),
    ("randBytes", RANDOM),
    ("randInt", RANDOM),
    ("randNumeric", RANDOM),
    ("shuffle", RANDOM),
    ("uuidv4", RANDOM),
];

fn random(_: &Env, _: &Args<'_>) -> Answer {
    Err(Fault::text(
        "this function is not offered: its answer would differ at every evaluation; \
         keep the value in a Secret or ConfigMap and look it up",
    ))
}

fn env(_: &Env, _: &Args<'_>) -> Answer {
    Err(risk("env"))
}

fn expandenv(_: &Env, _: &Args<'_>) -> Answer {
    Err(risk("expandenv"))
}

fn risk(name: &str) -> Fault {
    Fault::text(format!(
        "use of denylisted template function: function '{name}' is considered a security risk"
    ))
}
