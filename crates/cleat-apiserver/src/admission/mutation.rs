//! Mutating webhooks: asked one after another, each shown what the ones before it made.
//!
//! Whoever asked for it (`reinvocationPolicy: IfNeeded`) is shown the object once more if it was
//! changed after they saw it. There is no third time: two webhooks that undo each other would never
//! come to an end.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Phase, Request, Surroundings, Verdict,
    call::{self, Outcome},
    configuration::Webhook,
    matching::{self, Invocation},
    review,
    transport::Transport,
};
use crate::{patch::Operations, quote::quoted, status::Status};

#[cfg(test)]
mod tests;

/// How often the row of webhooks is gone through at most.
const ROUNDS: usize = 2;

/// What the webhooks made of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutated {
    /// `None` when it is as it was, or when it was refused.
    pub object: Option<Value>,
    pub verdict: Verdict,
}

/// Who is to see the object again, by their place in the row.
#[derive(Default)]
struct Again {
    /// Asked since the object last changed, and willing to be asked again.
    content: BTreeSet<usize>,
    /// Of those willing, who saw what has changed since.
    outdated: BTreeSet<usize>,
}

pub(super) async fn run(
    transport: &Arc<Transport>,
    hooks: &[Arc<Webhook>],
    request: &Request<'_>,
    around: &(dyn Surroundings + Sync),
    reshape: &(dyn Fn(Value) -> Result<Value, Status> + Sync),
) -> Mutated {
    let mut verdict = Verdict::allowed();
    let mut changed: Option<Value> = None;
    let mut again = Again::default();
    for round in 0..ROUNDS {
        for (index, hook) in hooks.iter().enumerate() {
            let now =
                Request { object: changed.as_ref().or(request.object), ..Request::clone(request) };
            let invocation = match matching::invocation(hook, &now, around) {
                Ok(None) => continue,
                Ok(Some(invocation)) => invocation,
                Err(status) => return Mutated::refused(verdict, status),
            };
            // Nobody is asked for the first time in a later round, even if they match only now.
            if round > 0 && !again.outdated.contains(&index) {
                continue;
            }
            let place = format!("round_{round}_index_{index}");
            let uid = Uuid::new_v4().to_string();
            let question = review::request(&uid, &now, &invocation);
            let (operation, dry_run) = (request.operation, request.dry_run);
            let asked = call::Asked { phase: Phase::Mutating, operation, dry_run };
            let outcome = call::one(transport, asked, hook, &uid, question).await;
            let made = match outcome {
                Outcome::DryRun(status) => Err(status),
                Outcome::Failed(why) => {
                    match call::failed(hook, &why, "mutating", &place, &mut verdict) {
                        Some(status) => Err(status),
                        None => Ok(None),
                    }
                }
                Outcome::Answered(answer) => {
                    let patch = answer.patch.clone();
                    match (call::take(answer, &hook.name, &mut verdict), patch) {
                        (Some(refusal), _) => Err(refusal),
                        (None, None) => Ok(None),
                        (None, Some(patch)) => {
                            let shown = Shown { request: &now, invocation: &invocation };
                            let made = shown.patched(&hook.name, &patch, around, reshape);
                            note_patch(hook, &patch, &place, &made, &mut verdict);
                            made
                        }
                    }
                }
            };
            note_mutation(hook, &place, matches!(made, Ok(Some(_))), &mut verdict);
            match made {
                Err(status) => return Mutated::refused(verdict, status),
                Ok(None) => {}
                Ok(Some(object)) => {
                    changed = Some(object);
                    again.outdated.append(&mut again.content);
                }
            }
            if hook.reinvocable {
                again.content.insert(index);
            }
        }
        if again.outdated.is_empty() {
            break;
        }
    }
    Mutated { object: changed, verdict }
}

/// The request as one webhook saw it.
struct Shown<'a> {
    request: &'a Request<'a>,
    invocation: &'a Invocation,
}

impl Shown<'_> {
    /// What a patch makes of the object; `None` if that is the same.
    fn patched(
        &self,
        hook: &str,
        patch: &[u8],
        around: &(dyn Surroundings + Sync),
        reshape: &(dyn Fn(Value) -> Result<Value, Status> + Sync),
    ) -> Result<Option<Value>, Status> {
        let operations = Operations::parse(patch).map_err(|status| internal(&status))?;
        if operations.is_empty() {
            return Ok(None);
        }
        let Some(before) = self.request.object else {
            return Err(Status::internal(format!(
                "admission webhook {} attempted to modify the object, which is not supported for \
                 this operation",
                quoted(hook)
            )));
        };
        let mut object = self.invocation.object.as_ref().unwrap_or(before).clone();
        operations.apply(&mut object).map_err(|_| {
            let hook = quoted(hook);
            Status::internal(format!("the patch of admission webhook {hook} does not apply"))
        })?;
        if self.invocation.kind != self.request.kind {
            object = around.convert(&object, &self.request.kind).map_err(Status::internal)?;
        }
        for field in ["apiVersion", "kind"] {
            if object.get(field) != before.get(field) {
                return Err(Status::internal(format!(
                    "the patch of admission webhook {} changes {field}",
                    quoted(hook)
                )));
            }
        }
        // Whose fields are whose is this server's to write down.
        let owners = |object: &Value| object.pointer("/metadata/managedFields").cloned();
        if owners(&object) != owners(before) {
            restore_owners(&mut object, owners(before));
        }
        let object = reshape(object).map_err(|status| internal(&status))?;
        Ok(Some(object).filter(|object| object != before))
    }
}

/// What goes wrong with a patch is the webhook's fault, not the client's.
fn internal(status: &Status) -> Status {
    Status::internal(&status.message)
}

fn restore_owners(object: &mut Value, owners: Option<Value>) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    match owners {
        Some(owners) => metadata.insert("managedFields".to_owned(), owners),
        None => metadata.remove("managedFields"),
    };
}

fn note_mutation(hook: &Webhook, place: &str, mutated: bool, verdict: &mut Verdict) {
    let note = json!({
        "configuration": &*hook.configuration, "webhook": &*hook.name, "mutated": mutated,
    });
    let key = format!("mutation.webhook.admission.k8s.io/{place}");
    verdict.annotations.insert(key, note.to_string());
}

/// Patches may hold what a log that leaves objects out must not show; the log looks at the key.
fn note_patch(
    hook: &Webhook,
    patch: &[u8],
    place: &str,
    made: &Result<Option<Value>, Status>,
    verdict: &mut Verdict,
) {
    let Ok(patch) = serde_json::from_slice::<Value>(patch) else { return };
    if made.is_err() || patch.as_array().is_none_or(Vec::is_empty) {
        return;
    }
    let note = json!({
        "configuration": &*hook.configuration, "webhook": &*hook.name, "patch": patch,
        "patchType": "JSONPatch",
    });
    let key = format!("{PATCH_NOTES}{place}");
    verdict.annotations.insert(key, note.to_string());
}

/// How the keys of annotations begin that show patches.
pub(crate) const PATCH_NOTES: &str = "patch.webhook.admission.k8s.io/";

impl Mutated {
    fn refused(verdict: Verdict, status: Status) -> Self {
        Self { object: None, verdict: Verdict { result: Err(status), ..verdict } }
    }
}
