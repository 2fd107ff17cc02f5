//! Update and patch: read, change, check, write, and again if somebody was quicker.

use bytes::Bytes;
use cleat_dialect::gotypes::types;
use serde_json::Value;

use super::admitting::Asking;
use super::intake::Repeats;
use super::{Call, MODIFIED, RETRIES, create, delete, intake};
use crate::apply;
use crate::object;
use crate::objects::{self, NotWritten, Stored};
use crate::patch::{self, Patch};
use crate::query::{FieldValidation, WriteOptions};
use crate::quote::{self, quoted};
use crate::resource::Origin;
use crate::rules;
use crate::schema::strict;
use crate::status::{FieldError, Status};

/// What a write left behind.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) value: Value,
    /// The same as it lies in the store, unless it does not.
    pub(crate) bytes: Option<Bytes>,
    pub(crate) created: bool,
}

/// How the new object comes about from the one that is stored.
pub(crate) trait Change {
    /// `None` stands for an object that does not exist yet.
    fn apply(&self, call: &mut Call<'_>, current: Option<&Value>) -> Result<Value, Status>;

    /// The change may bring the object into being.
    fn creates(&self, call: &Call<'_>) -> bool;

    /// A lost race is looked at again rather than reported.
    fn retries(&self) -> bool;

    /// The kind of options webhooks are shown.
    fn options_kind(&self) -> &'static str;

    /// What webhooks are shown in an object's place; `None` for the object itself.
    fn shown(&self, _object: &Value) -> Option<Value> {
        None
    }

    /// Makes what webhooks made of what they were shown part of the object.
    fn adopt(&self, _call: &Call<'_>, new: &mut Value, shown: Value) -> Result<(), Status> {
        *new = shown;
        Ok(())
    }

    /// Whether the stored object is the one the client means.
    fn check_identity(&self, call: &Call<'_>, new: &Value, old: &Value) -> Result<(), Status> {
        check_revision(call, new, old)
    }
}

/// Carries a change through.
pub(crate) async fn update(
    call: &mut Call<'_>,
    change: &impl Change,
    options: &WriteOptions,
) -> Result<Written, Status> {
    for _ in 0..RETRIES {
        let outcome = match call.current()? {
            None if change.creates(call) => bring_into_being(call, change, options).await,
            None => return Err(call.not_found()),
            Some(current) => attempt(call, change, options, current).await,
        };
        match outcome {
            Ok(written) => return Ok(written),
            Err(NotWritten::Failed(status)) => return Err(status),
            Err(NotWritten::Raced) if change.retries() => {}
            Err(NotWritten::Raced) => return Err(call.raced()),
        }
    }
    Err(call.raced())
}

async fn bring_into_being(
    call: &mut Call<'_>,
    change: &impl Change,
    options: &WriteOptions,
) -> Result<Written, NotWritten> {
    let mut new = change.apply(call, None).map_err(NotWritten::Failed)?;
    let uid = object::uid(&new).to_owned();
    if !uid.is_empty() {
        // The client means an object it has seen, and that one is gone.
        return Err(NotWritten::Failed(call.conflict(&format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was \
             found"
        ))));
    }
    object::metadata_mut(&mut new).remove("resourceVersion");
    // Kubernetes lets an applied manifest bring a deletion time along, and removes the object at its
    // next update. We would rather lose nothing.
    create::wipe_system_fields(&mut new);
    call.server.authorize_creation(call).map_err(NotWritten::Failed)?;
    create::settle_namespace(call, &mut new).map_err(NotWritten::Failed)?;
    let new = create::mutate(call, new, options).await.map_err(NotWritten::Failed)?;
    intake::check_name(call, &new).map_err(NotWritten::Failed)?;
    create::store(call, new, options).await
}

async fn attempt(
    call: &mut Call<'_>,
    change: &impl Change,
    options: &WriteOptions,
    current: Stored,
) -> Result<Written, NotWritten> {
    let old = &current.value;
    let mut new = change.apply(call, Some(old)).map_err(NotWritten::Failed)?;
    let asking =
        Asking { options: options.to_json(change.options_kind()), dry_run: options.dry_run };
    mutate(call, change, &mut new, old, &asking).await.map_err(NotWritten::Failed)?;
    change.check_identity(call, &new, old).map_err(NotWritten::Failed)?;
    keep_system_fields(&mut new, old);
    call.prepare_update(&mut new, old);
    call.validate_update(&new, old).map_err(NotWritten::Failed)?;
    apply::keep_times_if_unchanged(old, &mut new);
    call.warn(&new, Some(old));
    call.server.refuse_escalation(call, &new, Some(old)).map_err(NotWritten::Failed)?;
    call.refuse_certificate(&new, Some(old)).map_err(NotWritten::Failed)?;
    let (shown_new, shown_old) = (change.shown(&new), change.shown(old));
    let (as_new, as_old) = (shown_new.as_ref().unwrap_or(&new), shown_old.as_ref().unwrap_or(old));
    call.admit_write(as_new, Some(as_old), &asking).await.map_err(NotWritten::Failed)?;
    if finished(call, &new, old) {
        if !options.dry_run {
            // Watchers see the object as it was stored, finalizer and all.
            let (last, revision) = (current.value.clone(), current.revision);
            call.objects().remove(&call.ty, &call.version, last, revision).await?;
        }
        return Ok(Written { value: new, bytes: None, created: false });
    }
    if options.dry_run || new == *old {
        return Ok(Written { value: new, bytes: None, created: false });
    }
    let stored = call.objects().replace(&call.ty, &call.version, new, &current).await?;
    Ok(Written { value: stored.value, bytes: Some(stored.bytes), created: false })
}

/// Lets webhooks change the object before anything else is made of it.
async fn mutate(
    call: &mut Call<'_>,
    change: &impl Change,
    new: &mut Value,
    old: &Value,
    asking: &Asking,
) -> Result<(), Status> {
    let (shown_new, shown_old) = (change.shown(new), change.shown(old));
    let (as_new, as_old) = (shown_new.as_ref().unwrap_or(new), shown_old.as_ref().unwrap_or(old));
    let Some(made) = call.mutate(as_new, Some(as_old), asking).await? else { return Ok(()) };
    change.adopt(call, new, made)?;
    call.drop_repeated_owners(new);
    Ok(())
}

/// The last finalizer of a marked object was taken away: it leaves now.
fn finished(call: &Call<'_>, new: &Value, old: &Value) -> bool {
    let marked = object::deletion_timestamp(old).is_some();
    let free = object::finalizers(new).next().is_none();
    let in_grace = object::metadata(old)
        .and_then(|meta| meta.get("deletionGracePeriodSeconds")?.as_i64())
        .is_some_and(|left| left > 0);
    let held = delete::is_namespace(&call.ty) && delete::has_spec_finalizers(new);
    marked && free && !in_grace && !held
}

/// A PUT that names a uid means that object and no other.
fn check_uid(call: &Call<'_>, new: &Value, old: &Value) -> Result<(), Status> {
    let (given, actual) = (object::uid(new), object::uid(old));
    if !given.is_empty() && given != actual {
        return Err(call.conflict(&format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: UID in precondition: {given}, UID in object \
             meta: {actual}",
            objects::path(&call.ty, &call.namespace, &call.name),
        )));
    }
    Ok(())
}

/// A revision in the body is the one the client has seen.
fn check_revision(call: &Call<'_>, new: &Value, old: &Value) -> Result<(), Status> {
    let revision = object::resource_version(new);
    if revision.is_empty() || revision == "0" {
        if rules::unconditional_update(&call.ty) {
            return Ok(());
        }
        let error =
            FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
        return Err(Status::invalid(&call.ty.group, &call.ty.plural, &call.name, &[error]));
    }
    if revision.parse::<u64>().is_err() {
        let why = format!("strconv.ParseUint: parsing {}: invalid syntax", quoted(revision));
        return Err(Status::new(500, "", why));
    }
    if revision != object::resource_version(old) {
        return Err(call.conflict(MODIFIED));
    }
    Ok(())
}

/// What an update can never change, whatever it says.
fn keep_system_fields(new: &mut Value, old: &Value) {
    let Some(before) = object::metadata(old) else { return };
    let meta = object::metadata_mut(new);
    if let Some(uid) = before.get("uid") {
        meta.entry("uid").or_insert_with(|| uid.clone());
    }
    for field in ["creationTimestamp", "generation", "resourceVersion"] {
        match before.get(field) {
            Some(value) => meta.insert(field.to_owned(), value.clone()),
            None => meta.remove(field),
        };
    }
    if let Some(value) = before.get("deletionTimestamp") {
        meta.insert("deletionTimestamp".to_owned(), value.clone());
        if let Some(value) = before.get("deletionGracePeriodSeconds") {
            meta.entry("deletionGracePeriodSeconds").or_insert_with(|| value.clone());
        }
    }
    meta.remove("selfLink");
}

/// PUT: the body is the new object.
pub(crate) struct Replace<'a> {
    pub(crate) body: Value,
    pub(crate) manager: &'a str,
}

impl Change for Replace<'_> {
    fn apply(&self, call: &mut Call<'_>, current: Option<&Value>) -> Result<Value, Status> {
        let mut new = self.body.clone();
        create::settle_namespace(call, &mut new)?;
        call.drop_repeated_owners(&mut new);
        call.track(current, &mut new, self.manager);
        Ok(new)
    }

    fn creates(&self, call: &Call<'_>) -> bool {
        rules::create_on_update(&call.ty)
    }

    fn retries(&self) -> bool {
        // With a revision in the body the second look finds the conflict by itself.
        true
    }

    fn options_kind(&self) -> &'static str {
        "UpdateOptions"
    }

    fn check_identity(&self, call: &Call<'_>, new: &Value, old: &Value) -> Result<(), Status> {
        check_uid(call, new, old)?;
        check_revision(call, new, old)
    }
}

/// PATCH, of any kind.
pub(crate) struct Patched<'a> {
    pub(crate) patch: Patch,
    pub(crate) options: &'a WriteOptions,
    /// What there is to say of fields that the patch itself names twice, as far as anybody wants to
    /// know.
    pub(crate) repeated: Vec<String>,
}

impl Change for Patched<'_> {
    fn apply(&self, call: &mut Call<'_>, current: Option<&Value>) -> Result<Value, Status> {
        let (mut new, current) = match (&self.patch, current) {
            (Patch::Apply(config), current) => return self.apply_config(call, config, current),
            (patch, Some(current)) => (patch::apply_patch(current, patch, call.schema())?, current),
            (_, None) => return Err(call.not_found()),
        };
        let json = new.to_string().into_bytes();
        let validation = self.options.field_validation;
        if let Patch::Strategic(_) = &self.patch {
            // It goes into the struct of its kind, whatever it says to be.
            rules::restore(&call.api_version(), &call.ty.kind, &mut new).map_err(|why| {
                self.does_not_fit(call, current, &json, &Status::bad_request(why))
            })?;
        } else {
            if call.ty.origin != Origin::Builtin && new.get("apiVersion").is_none() {
                // Upstream asks for it where nobody expects a patch to have taken it.
                return Err(Status::internal(
                    "Object 'apiVersion' is missing in 'object has no apiVersion field'",
                ));
            }
            intake::check_kind(call, &new, &json)
                .map_err(|refused| self.does_not_fit(call, current, &json, &refused))?;
        }
        if !self.repeated.is_empty() {
            if validation == FieldValidation::Strict {
                let refused = Status::bad_request(strict::refusal(&self.repeated));
                return Err(self.does_not_fit(call, current, &json, &refused));
            }
            call.warnings.extend(self.repeated.iter().cloned());
        }
        // What was made by a patch has every key once.
        let text = intake::Text { json: &json, repeats: &Repeats::None };
        new = intake::shape(call, new, Some(text), validation)
            .map_err(|refused| self.does_not_fit(call, current, &json, &refused))?;
        intake::check_name(call, &new)?;
        call.drop_repeated_owners(&mut new);
        call.track(Some(current), &mut new, &self.options.field_manager);
        Ok(new)
    }

    fn creates(&self, call: &Call<'_>) -> bool {
        matches!(self.patch, Patch::Apply(_)) && call.subresource.is_empty()
    }

    fn retries(&self) -> bool {
        true
    }

    fn options_kind(&self) -> &'static str {
        "UpdateOptions"
    }
}

impl Patched<'_> {
    fn apply_config(
        &self,
        call: &mut Call<'_>,
        config: &Value,
        current: Option<&Value>,
    ) -> Result<Value, Status> {
        let force = self.options.force;
        let mut merged = call.as_manager(&self.options.field_manager, |target, manager| {
            apply::server_side_apply(current, config, target, manager, force)
        })?;
        if !self.repeated.is_empty() {
            if self.options.field_validation == FieldValidation::Strict {
                return Err(patch::refused_repeats(&self.repeated));
            }
            call.warnings.extend(self.repeated.iter().cloned());
        }
        settle_identity(call, &mut merged)?;
        if call.ty.origin != Origin::Builtin {
            // It has the schema's shape already, or validation says where it has not.
            intake::fill_defaults(call, &mut merged);
            // Metadata is the same for all kinds, and nothing in it is ever null.
            object::metadata_mut(&mut merged).retain(|_, value| !value.is_null());
            return Ok(merged);
        }
        // What the schema does not know was refused by the merge itself.
        intake::shape(call, merged, None, FieldValidation::Ignore)
    }

    /// A patch whose result is no object of its kind: the patch is to blame, not the body.
    fn does_not_fit(
        &self,
        call: &Call<'_>,
        current: &Value,
        patched: &[u8],
        refused: &Status,
    ) -> Status {
        let wrapped = format!("cannot be handled as a {}: ", call.ty.kind);
        let why = match refused.message.split_once(&wrapped) {
            Some((_, why)) => why,
            None => intake::unwrapped(&refused.message, &call.ty.kind),
        };
        let shown = match &self.patch {
            Patch::Strategic(patch) => quote::plain(patch),
            patch => {
                let patched = serde_json::from_slice(patched).unwrap_or_default();
                let shape = types().shape(&call.api_version(), &call.ty.kind);
                patch::shown(current, patch, &patched, shape)
            }
        };
        Status::invalid("", "", "", &[FieldError::invalid("patch", shown, why)])
    }
}

/// A configuration may leave out what the path says, but not contradict it.
fn settle_identity(call: &Call<'_>, config: &mut Value) -> Result<(), Status> {
    let meta = object::metadata_mut(config);
    meta.entry("name").or_insert_with(|| call.name.as_str().into());
    intake::check_name(call, config)?;
    create::settle_namespace(call, config)
}
