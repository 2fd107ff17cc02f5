//! Functions that are known but not offered.

use crate::library::{Answer, Args, Env, Function, Table, Ty, variadic};
use crate::limits::Fault;

const SECRET: Function = variadic(&[], Ty::Any, secret);

pub(super) const TABLE: Table = &[
    ("bcrypt", SECRET),
    ("buildCustomCert", variadic(&[], Ty::Any, certificate)),
    ("derivePassword", variadic(&[], Ty::Any, costly)),
    ("env", variadic(&[], Ty::Any, env)),
    ("expandenv", variadic(&[], Ty::Any, expandenv)),
    ("genCA", SECRET),
    ("genCAWithKey", SECRET),
    ("genPrivateKey", SECRET),
    ("genSelfSignedCert", SECRET),
    ("genSelfSignedCertWithKey", SECRET),
    ("genSignedCert", SECRET),
    ("genSignedCertWithKey", SECRET),
    ("getHostByName", variadic(&[], Ty::Any, network)),
    ("htpasswd", SECRET),
];

fn secret(_: &Env, _: &Args<'_>) -> Answer {
    Err(Fault::text(
        "this function is not offered: its answer would differ at every evaluation; \
         keep the value in a Secret or ConfigMap and look it up",
    ))
}

fn certificate(_: &Env, _: &Args<'_>) -> Answer {
    Err(Fault::text(
        "this function is not offered: what it gives is only of use for making certificates, \
         which would differ at every evaluation; keep them in a Secret and look it up",
    ))
}

fn costly(_: &Env, _: &Args<'_>) -> Answer {
    Err(Fault::text(
        "this function is not offered: it takes a second and 32 MiB at every evaluation; \
         keep the value in a Secret and look it up",
    ))
}

fn network(_: &Env, _: &Args<'_>) -> Answer {
    Err(Fault::text(
        "this function is not offered: templates ask nobody but the cluster; \
         keep the address in a ConfigMap and look it up",
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
