//! The status of a CustomResourceDefinition: which names it got, and whether it is served.
//!
//! Upstream's controllers get there in steps; this is where they end.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{text_at, texts_at};
use crate::quote::quoted;

pub(super) const APPROVED: &str = "api-approved.kubernetes.io";

/// What the annotation about approval of a community group says.
pub(super) struct Approval {
    pub(super) conforms: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
    pub(super) annotation: String,
}

/// The status a definition should have, given its present one, the definitions there are (its
/// own is passed over), and the time (RFC 3339) that conditions which change are stamped with. A status that is already right
/// comes back as it is.
pub fn status(crd: &Value, all: &[Value], now: &str) -> Value {
    let mut status = crd.get("status").and_then(Value::as_object).cloned().unwrap_or_default();
    let (accepted, conflict) = names(crd, all);
    status.insert("acceptedNames".to_owned(), Value::Object(accepted));
    let mut conditions: Vec<Value> =
        status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    match &conflict {
        None => {
            set(&mut conditions, now, "NamesAccepted", "True", "NoConflicts", "no conflicts found");
        }
        Some((reason, message)) => {
            set(&mut conditions, now, "NamesAccepted", "False", reason, message);
        }
    }
    let established = conditions.iter().any(|condition| {
        text_at(condition, "/type") == "Established" && text_at(condition, "/status") == "True"
    });
    if !established {
        let (state, reason, message) = match conflict {
            None => ("True", "InitialNamesAccepted", "the initial names have been accepted"),
            Some(_) => ("False", "NotAccepted", "not all names are accepted"),
        };
        set(&mut conditions, now, "Established", state, reason, message);
    }
    if let Some(approval) = approval(crd) {
        let state = if approval.conforms { "True" } else { "False" };
        let kind = "KubernetesAPIApprovalPolicyConformant";
        set(&mut conditions, now, kind, state, approval.reason, &approval.message);
    }
    status.insert("conditions".to_owned(), conditions.into());
    status.entry("storedVersions").or_insert_with(|| json!([]));
    Value::Object(status)
}

/// The names a definition has after this, and the last conflict on the way there.
fn names(crd: &Value, all: &[Value]) -> (Map<String, Value>, Option<(&'static str, String)>) {
    let own = text_at(crd, "/metadata/name");
    let others = all.iter().filter(|other| {
        text_at(other, "/spec/group") == text_at(crd, "/spec/group")
            && text_at(other, "/metadata/name") != own
    });
    let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for other in others {
        resources.extend(["plural", "singular"].map(|key| taken(other, key)));
        resources.extend(texts_at(other, "/status/acceptedNames/shortNames"));
        kinds.extend(["kind", "listKind"].map(|key| taken(other, key)));
    }
    let mut accepted = crd
        .pointer("/status/acceptedNames")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let mut conflict = None;
    for (key, used, reason) in [
        ("plural", &resources, "PluralConflict"),
        ("singular", &resources, "SingularConflict"),
        ("shortNames", &resources, "ShortNamesConflict"),
        ("kind", &kinds, "KindConflict"),
        ("listKind", &kinds, "ListKindConflict"),
    ] {
        let wanted = crd.pointer(&format!("/spec/names/{key}"));
        if key == "shortNames" {
            let before = texts_at(crd, "/status/acceptedNames/shortNames");
            let clashes: Vec<String> = texts_at(crd, "/spec/names/shortNames")
                .into_iter()
                .filter(|name| !before.contains(name) && used.contains(name))
                .map(in_use)
                .collect();
            match clashes.as_slice() {
                [] => put(&mut accepted, key, wanted),
                [one] => conflict = Some((reason, one.clone())),
                many => conflict = Some((reason, format!("[{}]", many.join(", ")))),
            }
            continue;
        }
        let name = text_at(crd, &format!("/spec/names/{key}"));
        if name != taken(crd, key) && used.contains(name) {
            conflict = Some((reason, in_use(name)));
        } else {
            put(&mut accepted, key, wanted);
        }
    }
    put(&mut accepted, "categories", crd.pointer("/spec/names/categories"));
    for key in ["plural", "kind"] {
        accepted.entry(key).or_insert_with(|| "".into());
    }
    (accepted, conflict)
}

fn taken<'a>(crd: &'a Value, key: &str) -> &'a str {
    text_at(crd, &format!("/status/acceptedNames/{key}"))
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", quoted(name))
}

fn put(names: &mut Map<String, Value>, key: &str, value: Option<&Value>) {
    match value.filter(|value| !value.is_null()) {
        Some(value) => names.insert(key.to_owned(), value.clone()),
        None => names.remove(key),
    };
}

/// Sets a condition; its time moves only when its status does.
fn set(
    conditions: &mut Vec<Value>,
    now: &str,
    kind: &str,
    state: &str,
    reason: &str,
    message: &str,
) {
    let mut condition = json!({
        "type": kind, "status": state, "reason": reason, "message": message,
        "lastTransitionTime": now,
    });
    match conditions.iter_mut().find(|condition| text_at(condition, "/type") == kind) {
        None => conditions.push(condition),
        Some(old) => {
            if text_at(old, "/status") == state
                && let Some(since) = old.get("lastTransitionTime").filter(|at| !at.is_null())
                && let Some(condition) = condition.as_object_mut()
            {
                condition.insert("lastTransitionTime".to_owned(), since.clone());
            }
            *old = condition;
        }
    }
}

/// Whether a group of the Kubernetes community is approved; `None` for all other groups.
pub(super) fn approval(crd: &Value) -> Option<Approval> {
    let group = text_at(crd, "/spec/group");
    let protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group == *domain || group.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
    });
    if !protected {
        return None;
    }
    let annotations = crd.pointer("/metadata/annotations");
    let annotation = annotations.and_then(|all| all.get(APPROVED)).and_then(Value::as_str);
    let annotation = annotation.unwrap_or_default();
    let needed = format!("protected groups must have approval annotation \"{APPROVED}\"");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let has_host = annotation.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/')
    });
    let (conforms, reason, message) = if annotation.is_empty() {
        (false, "MissingAnnotation", format!("{needed}, {see}"))
    } else if annotation.starts_with("unapproved") {
        (false, "UnapprovedAnnotation", format!("not approved: {}", quoted(annotation)))
    } else if has_host {
        (true, "ApprovedAnnotation", format!("approved in {annotation}"))
    } else {
        let message =
            format!("{needed} with either a URL or a reason starting with \"unapproved\", {see}");
        (false, "InvalidAnnotation", message)
    };
    Some(Approval { conforms, reason, message, annotation: annotation.to_owned() })
}
