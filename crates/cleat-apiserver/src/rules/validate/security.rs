//! What a container may not ask for at the same time.
//!
//! Left out: proc mounts, the profiles of seccomp and AppArmor, options for Windows.

use serde_json::{Value, json};

use super::check::{Errors, shown_struct};
use crate::rules::read::Read;

/// A container that must not gain privileges has none to begin with.
pub(super) fn escalation(errors: &mut Errors, path: &str, context: &Value) {
    if context.at("allowPrivilegeEscalation").as_bool() != Some(false) {
        return;
    }
    if context.flag("privileged") {
        let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.invalid(path, shown(context), why);
    }
    for _ in context.at("capabilities").list("add").iter().filter(|name| *name == "CAP_SYS_ADMIN") {
        let why =
            "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        errors.invalid(path, shown(context), why);
    }
}

/// With the names and the order of Go's fields.
fn shown(context: &Value) -> Value {
    shown_struct(&[
        ("Capabilities", &part(context.at("capabilities"), &[("Add", "add"), ("Drop", "drop")])),
        ("Privileged", context.at("privileged")),
        ("SELinuxOptions", &labels(context.at("seLinuxOptions"))),
        (
            "WindowsOptions",
            &part(
                context.at("windowsOptions"),
                &[
                    ("GMSACredentialSpecName", "gmsaCredentialSpecName"),
                    ("GMSACredentialSpec", "gmsaCredentialSpec"),
                    ("RunAsUserName", "runAsUserName"),
                    ("HostProcess", "hostProcess"),
                ],
            ),
        ),
        ("RunAsUser", context.at("runAsUser")),
        ("RunAsGroup", context.at("runAsGroup")),
        ("RunAsNonRoot", context.at("runAsNonRoot")),
        ("ReadOnlyRootFilesystem", context.at("readOnlyRootFilesystem")),
        ("AllowPrivilegeEscalation", context.at("allowPrivilegeEscalation")),
        ("ProcMount", context.at("procMount")),
        ("SeccompProfile", &profile(context.at("seccompProfile"))),
        ("AppArmorProfile", &profile(context.at("appArmorProfile"))),
    ])
}

fn profile(value: &Value) -> Value {
    part(value, &[("Type", "type"), ("LocalhostProfile", "localhostProfile")])
}

/// These are no pointers in Go, so that what is missing is shown as empty.
fn labels(options: &Value) -> Value {
    if options.is_null() {
        return Value::Null;
    }
    json!({
        "User": options.text("user"), "Role": options.text("role"),
        "Type": options.text("type"), "Level": options.text("level"),
    })
}

fn part(value: &Value, fields: &[(&str, &str)]) -> Value {
    if value.is_null() {
        return Value::Null;
    }
    let fields: Vec<(&str, &Value)> =
        fields.iter().map(|(name, field)| (*name, value.at(field))).collect();
    shown_struct(&fields)
}
