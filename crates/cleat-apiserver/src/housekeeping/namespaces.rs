//! Ending a namespace: its content first, pods before the rest, then the namespace itself.
//!
//! The namespace says in its conditions what is left and why; it goes only when a look at the store
//! finds nothing in it any more.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{ObjectRef, Outcome, delete_as, rewrite, set_condition};
use crate::object;
use crate::query::Propagation;
use crate::resource::ResourceType;
use crate::server::Inner;
use crate::status::Status;
use crate::user::User;

/// What a pass over a namespace's content found.
#[derive(Default)]
struct Content {
    /// Instances by `plural.group`.
    instances: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
    /// Refused deletes, by what was said.
    failures: BTreeMap<String, ()>,
    /// Something changed while it was to be deleted.
    changing: bool,
}

pub(super) async fn empty(server: &Arc<Inner>, name: &str) -> Result<Outcome, Status> {
    let ty = Arc::clone(&server.namespaces);
    let Some(found) = server.objects.get(&ty, "v1", "", name)? else { return Ok(Outcome::Done) };
    if object::deletion_timestamp(&found.value).is_none() {
        return Ok(Outcome::Done);
    }
    let mut content = Content::default();
    let types = server.types();
    let is_pods = |ty: &&Arc<ResourceType>| ty.group.is_empty() && &*ty.plural == "pods";
    let namespaced = || types.all().iter().filter(|ty| ty.namespaced && stores(ty));
    for ty in namespaced().filter(is_pods) {
        clear(server, ty, name, &mut content).await?;
    }
    if content.instances.is_empty() {
        for ty in namespaced().filter(|ty| !is_pods(ty)) {
            clear(server, ty, name, &mut content).await?;
        }
    }
    let done = content.instances.is_empty() && content.failures.is_empty();
    let again = content.changing || !content.failures.is_empty();
    let now = server.clock.now_text();
    let at = ObjectRef::of(&ty, &found.value);
    rewrite(server, &ty, &at, ("kube-controller-manager", "status"), |namespace| {
        if !done {
            report(namespace, &content, &now);
        }
        if done && let Some(spec) = namespace.get_mut("spec").and_then(Value::as_object_mut) {
            spec.remove("finalizers");
        }
        true
    })
    .await?;
    // What was refused may be allowed later; what has finalizers will be heard of.
    Ok(if again { Outcome::Again } else { Outcome::Done })
}

/// Reviews and bindings are answered, never kept; both event kinds lie in one place.
fn stores(ty: &ResourceType) -> bool {
    let version = ty.version(&ty.storage_version);
    version.is_some_and(|version| version.allows("list")) && &*ty.group != "events.k8s.io"
}

async fn clear(
    server: &Inner,
    ty: &Arc<ResourceType>,
    namespace: &str,
    content: &mut Content,
) -> Result<(), Status> {
    let user = User::service_account("kube-system", "namespace-controller");
    for target in server.objects.all(ty, &ty.storage_version, namespace)? {
        if object::deletion_timestamp(&target).is_some() {
            continue;
        }
        match delete_as(server, &user, ty, &target, Propagation::Background).await {
            Ok(()) => {}
            // It changed under our hands; the next pass sees it as it is then.
            Err(status) if status.code == 409 => content.changing = true,
            Err(status) => drop(content.failures.insert(status.message, ())),
        }
    }
    let left = server.objects.all(ty, &ty.storage_version, namespace)?;
    if left.is_empty() {
        return Ok(());
    }
    content.instances.insert(format!("{}.{}", ty.plural, ty.group), left.len());
    for finalizer in left.iter().flat_map(object::finalizers) {
        *content.finalizers.entry(finalizer.to_owned()).or_default() += 1;
    }
    Ok(())
}

fn report(namespace: &mut Value, content: &Content, now: &str) {
    let Some(map) = namespace.as_object_mut() else { return };
    let status = object::as_map(map.entry("status").or_insert_with(|| json!({})));
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let counted = |all: &BTreeMap<String, usize>, word: &str| {
        let parts: Vec<String> = all
            .iter()
            .map(|(what, count)| format!("{what} {word} {count} resource instances"))
            .collect();
        parts.join(", ")
    };
    set_condition(
        conditions,
        now,
        "NamespaceDeletionDiscoveryFailure",
        "False",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    );
    set_condition(
        conditions,
        now,
        "NamespaceDeletionGroupVersionParsingFailure",
        "False",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    );
    let failures: Vec<&str> = content.failures.keys().map(String::as_str).collect();
    let (status, reason, message) = match failures.as_slice() {
        [] => (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization".to_owned(),
        ),
        all => {
            let text = match all {
                [one] => (*one).to_owned(),
                many => format!("[{}]", many.join(", ")),
            };
            let message = format!(
                "Failed to delete all resource types, {} remaining: {text}",
                content.instances.len()
            );
            ("True", "ContentDeletionFailed", message)
        }
    };
    set_condition(conditions, now, "NamespaceDeletionContentFailure", status, reason, &message);
    let (status, reason, message) = match content.instances.is_empty() {
        true => ("False", "ContentRemoved", "All content successfully removed".to_owned()),
        false => (
            "True",
            "SomeResourcesRemain",
            format!("Some resources are remaining: {}", counted(&content.instances, "has")),
        ),
    };
    set_condition(conditions, now, "NamespaceContentRemaining", status, reason, &message);
    let (status, reason, message) = match content.finalizers.is_empty() {
        true => (
            "False",
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished".to_owned(),
        ),
        false => (
            "True",
            "SomeFinalizersRemain",
            format!(
                "Some content in the namespace has finalizers remaining: {}",
                counted(&content.finalizers, "in")
            ),
        ),
    };
    set_condition(conditions, now, "NamespaceFinalizersRemaining", status, reason, &message);
}
