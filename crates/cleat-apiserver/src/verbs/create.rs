//! Create: from a decoded body to a stored object.

use serde_json::Value;
use uuid::Uuid;

use super::admitting::Asking;
use super::update::Written;
use super::{Call, RETRIES};
use crate::apply;
use crate::object;
use crate::objects::NotWritten;
use crate::query::WriteOptions;
use crate::rules;
use crate::status::Status;

/// Stores a new object and answers with it as stored (or as it would be, on a dry run).
///
/// A generated name that is taken is tried again with another suffix.
pub(crate) async fn create(
    call: &mut Call<'_>,
    mut new: Value,
    options: &WriteOptions,
) -> Result<Written, Status> {
    settle_namespace(call, &mut new)?;
    wipe_system_fields(&mut new);
    let generated = object::name(&new).is_empty() && !generate_name(&new).is_empty();
    call.drop_repeated_owners(&mut new);
    call.track(None, &mut new, &options.field_manager);
    object::name(&new).clone_into(&mut call.name);
    let new = mutate(call, new, options).await?;
    // A webhook may have given it the name it lacked.
    if generated && object::name(&new).is_empty() {
        return create_named(call, &new, options).await;
    }
    object::name(&new).clone_into(&mut call.name);
    store(call, new, options).await.map_err(|refused| match refused {
        NotWritten::Raced => taken(call),
        NotWritten::Failed(status) => status,
    })
}

/// Stores a new object under a name that is generated.
async fn create_named(
    call: &mut Call<'_>,
    template: &Value,
    options: &WriteOptions,
) -> Result<Written, Status> {
    for _ in 0..RETRIES {
        let mut new = template.clone();
        let name = random_name(generate_name(&new));
        object::metadata_mut(&mut new).insert("name".into(), name.into());
        object::name(&new).clone_into(&mut call.name);
        match store(call, new, options).await {
            Ok(stored) => return Ok(stored),
            Err(NotWritten::Raced) => {}
            Err(NotWritten::Failed(status)) => return Err(status),
        }
    }
    Err(taken(call))
}

/// The name is in use, perhaps by an object on its way out.
fn taken(call: &Call<'_>) -> Status {
    let mut status = Status::already_exists(call.gr(), &call.name);
    let current = call.current().ok().flatten();
    if current.is_some_and(|found| object::deletion_timestamp(&found.value).is_some()) {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}

/// Lets webhooks change a new object. They come after the server's own admission, and before it has
/// a name that is generated, an identity or anything else that is only settled when it is stored.
pub(crate) async fn mutate(
    call: &mut Call<'_>,
    mut new: Value,
    options: &WriteOptions,
) -> Result<Value, Status> {
    if !call.has_mutators(&new) {
        return Ok(new);
    }
    call.check_namespace(&call.name)?;
    call.check_kind_stays()?;
    call.check_service_account(&new).await?;
    call.give_priority(&mut new)?;
    call.give_runtime(&mut new)?;
    call.admit_own(&mut new);
    let asking = Asking { options: options.to_json("CreateOptions"), dry_run: options.dry_run };
    let Some(mut new) = call.mutate(&new, None, &asking).await? else { return Ok(new) };
    settle_namespace(call, &mut new)?;
    wipe_system_fields(&mut new);
    call.drop_repeated_owners(&mut new);
    Ok(new)
}

/// One try under one name. [`NotWritten::Raced`] means the name is taken.
pub(crate) async fn store(
    call: &mut Call<'_>,
    mut new: Value,
    options: &WriteOptions,
) -> Result<Written, NotWritten> {
    let revision = object::resource_version(&new).to_owned();
    still_welcome(call)?;
    fill_system_fields(call, &mut new);
    call.check_service_account(&new).await.map_err(NotWritten::Failed)?;
    call.give_priority(&mut new).map_err(NotWritten::Failed)?;
    call.give_runtime(&mut new).map_err(NotWritten::Failed)?;
    call.prepare_create(&mut new);
    call.validate_create(&new).map_err(NotWritten::Failed)?;
    call.warn(&new, None);
    call.server.refuse_escalation(call, &new, None).map_err(NotWritten::Failed)?;
    call.refuse_certificate(&new, None).map_err(NotWritten::Failed)?;
    let asking = Asking { options: options.to_json("CreateOptions"), dry_run: options.dry_run };
    call.admit_write(&new, None, &asking).await.map_err(NotWritten::Failed)?;
    // Only what is a revision is taken for one, and only when it comes to storing.
    if !options.dry_run && revision.parse::<u64>().is_ok_and(|revision| revision > 0) {
        let why = "resourceVersion should not be set on objects to be created";
        return Err(NotWritten::Failed(Status::new(500, "", why)));
    }
    if call.objects().entry(&call.ty, &call.namespace, &call.name).is_some() {
        return Err(NotWritten::Raced);
    }
    if options.dry_run {
        return Ok(Written { value: new, bytes: None, created: true });
    }
    object::metadata_mut(&mut new).remove("resourceVersion");
    // Asking webhooks takes time, in which the namespace or the kind may have begun to go.
    still_welcome(call)?;
    let stored = call.objects().create(&call.ty, &call.version, new).await?;
    if let Err(refused) = still_welcome(call) {
        let (last, revision) = (stored.value, stored.revision);
        // Whoever was quicker has removed it already, or will: either way it does not stay.
        drop(call.objects().remove(&call.ty, &call.version, last, revision).await);
        return Err(refused);
    }
    Ok(Written { value: stored.value, bytes: Some(stored.bytes), created: true })
}

/// Whether the object's namespace and kind are there to stay.
fn still_welcome(call: &Call<'_>) -> Result<(), NotWritten> {
    call.check_namespace(&call.name).map_err(NotWritten::Failed)?;
    call.check_kind_stays().map_err(NotWritten::Failed)
}

/// The body may leave the namespace out, but not contradict the path.
pub(crate) fn settle_namespace(call: &Call<'_>, new: &mut Value) -> Result<(), Status> {
    let given = object::namespace(new);
    let expected = if call.ty.namespaced { &*call.namespace } else { "" };
    if given.is_empty() {
        if !expected.is_empty() {
            object::metadata_mut(new).insert("namespace".into(), expected.into());
        }
        return Ok(());
    }
    if given == expected {
        return Ok(());
    }
    if expected.is_empty() {
        object::metadata_mut(new).remove("namespace");
        return Ok(());
    }
    Err(Status::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request",
    ))
}

/// What only the server may set.
pub(crate) fn wipe_system_fields(new: &mut Value) {
    let meta = object::metadata_mut(new);
    for field in
        ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
    {
        meta.remove(field);
    }
}

fn fill_system_fields(call: &Call<'_>, new: &mut Value) {
    let now = call.server.clock.now_text();
    let meta = object::metadata_mut(new);
    meta.insert("creationTimestamp".into(), now.into());
    meta.insert("uid".into(), Uuid::new_v4().to_string().into());
}

fn generate_name(object: &Value) -> &str {
    object::at(object, "/metadata/generateName").unwrap_or_default()
}

/// A base of at most 58 characters and five that avoid vowels, so that no words come out.
fn random_name(base: &str) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut name: String = base.chars().take(58).collect();
    let mut dice = Uuid::new_v4().as_u128();
    for _ in 0..5 {
        let letter = LETTERS.get((dice % 27) as usize).copied().unwrap_or(b'x');
        name.push(char::from(letter));
        dice /= 27;
    }
    name
}

fn put_all(object: &mut Value, places: &[&str], value: &Value) {
    for place in places {
        if let Some(found) = object.pointer_mut(place) {
            found.clone_from(value);
        }
    }
}

impl Call<'_> {
    /// Notes in `managedFields` who set what.
    pub(crate) fn track(&self, live: Option<&Value>, new: &mut Value, manager: &str) {
        let name = self.manager(manager);
        // What is always written was sent if it was sent empty, though it is then written as null.
        let sent = |new: &Value, place: &str| new.pointer(place).is_some_and(Value::is_null);
        let sent: Vec<&str> =
            self.left_empty.iter().copied().filter(|place| sent(new, place)).collect();
        put_all(new, &sent, &Value::Array(Vec::new()));
        self.as_manager(&name, |target, manager| apply::track_update(live, new, target, manager));
        put_all(new, &sent, &Value::Null);
    }

    /// An owner named twice counts once; the client is told.
    pub(crate) fn drop_repeated_owners(&mut self, new: &mut Value) {
        let mut seen = Vec::new();
        let mut repeated: Vec<String> = Vec::new();
        let references = object::metadata_mut(new).get_mut("ownerReferences");
        let Some(references) = references.and_then(Value::as_array_mut) else { return };
        references.retain(|reference| {
            let first = !seen.contains(reference);
            let uid = reference.get("uid").and_then(Value::as_str).unwrap_or_default();
            if !first && !repeated.iter().any(|known| known == uid) {
                repeated.push(uid.to_owned());
            }
            seen.push(reference.clone());
            first
        });
        if !repeated.is_empty() {
            self.warnings.push(format!(
                ".metadata.ownerReferences contains duplicate entries; API server dedups owner \
                 references in 1.20+, and may reject such requests as early as 1.24; please fix \
                 your requests; duplicate UID(s) observed: {}",
                repeated.join(", ")
            ));
        }
    }

    /// What server-side apply and the tracking of fields need to know about this call.
    pub(crate) fn as_manager<R>(
        &self,
        name: &str,
        then: impl FnOnce(&apply::Target<'_>, &apply::Manager<'_>) -> R,
    ) -> R {
        let ty = &self.ty;
        let api_versions: Vec<String> =
            ty.versions.iter().map(|version| ty.api_version(&version.name)).collect();
        let api_versions: Vec<&str> = api_versions.iter().map(String::as_str).collect();
        let target = apply::Target {
            kind: &ty.kind,
            schema: self.schema(),
            reset: rules::reset_fields(ty, &self.version, self.subresource_name()),
            api_versions: &api_versions,
        };
        let manager = apply::Manager {
            name,
            subresource: &self.subresource,
            api_version: &self.api_version(),
            time: &self.server.clock.now_text(),
        };
        then(&target, &manager)
    }
}
