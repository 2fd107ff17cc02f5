//! That protection was ended, where every replica reads it before it makes a configuration: an
//! annotation of the definition of CriticalServices. It outlives whoever serves the webhook.

use cleat_api::criticalservice::DEFINITION;
use cleat_core::digest::digest;
use cleat_core::id::{Id, Target};
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runtime::execute::{Executor, Read};
use serde_json::{Value, json};

pub(crate) fn definition() -> Target {
    let id = Id {
        group: "apiextensions.k8s.io".to_owned(),
        resource: "customresourcedefinitions".to_owned(),
        namespace: String::new(),
        name: DEFINITION.to_owned(),
    };
    Target { version: "v1".to_owned(), id }
}

/// One for each configuration; its name may be longer than an annotation's.
fn annotation(configuration: &str) -> String {
    let short = match configuration.len() {
        ..=63 => configuration.to_owned(),
        _ => digest(&json!(configuration)),
    };
    format!("ended.protection.open-cluster-management.io/{short}")
}

/// Writes it down, or takes it back. Without the definition there is nothing to end.
pub(crate) async fn mark(
    executor: &Executor,
    configuration: &str,
    ended: bool,
) -> Result<(), String> {
    match is_ended(executor, configuration).await {
        Ok(is) if is == ended => return Ok(()),
        Ok(_) => {}
        Err(why) => return Err(why),
    }
    let value = if ended { json!("true") } else { Value::Null };
    let patch = json!({ "metadata": { "annotations": { annotation(configuration): value } } });
    let action = Action { side: Side::Cluster, target: definition(), write: Write::Merge(patch) };
    match executor.perform(&action, &Default::default()).await {
        Outcome::Done(_) | Outcome::NotFound => Ok(()),
        other => Err(format!("the definition {DEFINITION} was not annotated: {other:?}")),
    }
}

/// Whether it is written down now.
pub(crate) async fn is_ended(executor: &Executor, configuration: &str) -> Result<bool, String> {
    match executor.read(Side::Cluster, &definition()).await {
        Read::Present(object) => {
            let annotations = object.pointer("/metadata/annotations");
            Ok(annotations.and_then(|all| all.get(annotation(configuration))).is_some())
        }
        Read::Absent | Read::NoSuchKind => Ok(false),
        Read::Unknown { message } => Err(message),
    }
}
