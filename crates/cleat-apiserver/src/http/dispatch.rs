//! A request for a resource: which verb, with which options, on which object.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use http::header;
use serde_json::Value;

use super::respond::{self, Answer, AnswerBody};
use super::{Asked, paths};
use crate::form::{Form, Pieces, Presenter};
use crate::negotiate::{self, Endpoint, Format};
use crate::objects::Envelope;
use crate::patch::{self, Accepts, Language, Patch};
use crate::query::{DeleteOptions, FieldValidation, ListOptions, WriteOptions, resource_version};
use crate::resource::{Origin, ResourceType};
use crate::schema::strict;
use crate::selector::FieldSelector;
use crate::server::Inner;
use crate::status::Status;
use crate::verbs::update::{Patched, Replace, Written};
use crate::verbs::watch::WatchQuery;
use crate::verbs::{Call, collection, create, delete, intake, list, subresource, update, watch};

/// A watch that names no end is closed after this long; clients open the next one.
const LONGEST_WATCH: Duration = Duration::from_secs(40 * 60);

/// In which form the client wants its answer.
#[derive(Clone, Copy)]
struct Accepted {
    form: Form,
    format: Format,
}

impl Accepted {
    fn of(asked: &Asked, endpoint: Endpoint, ty: &ResourceType) -> Result<Self, Status> {
        let accept = asked.header(header::ACCEPT);
        let refused = (ty.origin == Origin::Builtin).then(|| negotiate::unrouted(accept)).flatten();
        let answer = refused.map_or_else(|| negotiate::answer(accept, endpoint), Err);
        let answer = answer.map_err(|refused| match ty.origin {
            Origin::Builtin => refused,
            // Custom kinds have no routes of their own that could refuse earlier.
            Origin::Custom { .. } => negotiate::none_accepted(),
        })?;
        Ok(Self { form: Form::of(answer.view, &asked.query)?, format: answer.format })
    }
}

pub(super) async fn resource(server: &Arc<Inner>, asked: &Asked) -> Result<Response, Status> {
    let info = &asked.info;
    let types = server.types();
    let found = types.get(&info.group, &info.resource).and_then(|ty| {
        let version = ty.version(&info.version).filter(|version| version.served)?;
        in_scope(ty, asked).then_some((ty, version))
    });
    let Some((ty, version)) = found else { return paths::absent(&types, &info.group) };
    check_method(ty, asked)?;
    let endpoint = match &*info.verb {
        "watch" => Endpoint::Watch,
        _ => Endpoint::Resource,
    };
    let accepted = Accepted::of(asked, endpoint, ty)?;
    let mut call = Call {
        server,
        user: asked.user.clone(),
        ty: Arc::clone(ty),
        version: version.name.clone(),
        namespace: if ty.namespaced { info.namespace.clone() } else { String::new() },
        name: if info.name_from_selector { String::new() } else { info.name.clone() },
        subresource: info.subresource.clone(),
        agent: asked.header(header::USER_AGENT).to_owned(),
        warnings: version.deprecation.iter().map(|text| text.to_string()).collect(),
        notes: Some(&asked.notes),
        left_empty: Vec::new(),
    };
    let answer = perform(&mut call, server, asked, accepted).await;
    answer.map_err(|mut refused| {
        refused.details.warnings.append(&mut call.warnings);
        refused
    })
}

async fn perform(
    call: &mut Call<'_>,
    server: &Arc<Inner>,
    asked: &Asked,
    accepted: Accepted,
) -> Result<Response, Status> {
    let info = &asked.info;
    let ty = &Arc::clone(&call.ty);
    let version = ty.version(&call.version).ok_or_else(Status::no_such_path)?;
    if !info.subresource.is_empty() {
        let answer = subresource::answer(call, asked).await?;
        return Ok(finish(call, accepted, answer));
    }
    // A kind on its way out publishes fewer verbs, but says itself why it takes no more.
    if ty.origin == Origin::Builtin && !version.allows(&info.verb) {
        return Err(unsupported(ty, &info.verb));
    }
    if let Some(reply) = subresource::review(call, asked)? {
        return Ok(finish(call, accepted, reply));
    }
    match &*info.verb {
        "get" => {
            let revision = asked.query.text("resourceVersion");
            resource_version(revision).map_err(|error| Status::new(500, "", error.to_string()))?;
            get(call, accepted)
        }
        "list" => {
            let options =
                ListOptions::checked(&asked.query, info.watch_in_path, ty, &version.name)?;
            let list = list::list(call, &options, accepted.form).await?;
            Ok(finish_list(call, accepted, list))
        }
        "watch" => open_watch(call, server, asked, accepted.form),
        "create" => {
            let options = WriteOptions::create(&asked.query)?;
            let body = intake::read(call, asked.media()?, &asked.body, options.field_validation)?;
            let written = create::create(call, body, &options).await?;
            Ok(finish_write(call, accepted, written))
        }
        "update" => {
            let options = WriteOptions::update(&asked.query)?;
            let body = intake::read(call, asked.media()?, &asked.body, options.field_validation)?;
            intake::check_name(call, &body)?;
            let change = Replace { body, manager: &options.field_manager };
            let written = update::update(call, &change, &options).await?;
            Ok(finish_write(call, accepted, written))
        }
        "patch" => {
            let written = patch_object(call, asked).await?;
            Ok(finish_write(call, accepted, written))
        }
        "delete" => {
            let options = intake::delete_options(asked.media(), &asked.body, &asked.query)?;
            let deleted = delete::delete_object(call, &options, false).await?;
            // Who asked for dependents to go, in the old way, is told that they may not be yet.
            let waits = matches!(deleted, delete::Deleted::Marked(_));
            let code = if waits && options.orphan_dependents == Some(false) { 202 } else { 200 };
            let answer = delete::answer(&call.ty, deleted);
            Ok(finish(call, accepted, (code, answer)))
        }
        "deletecollection" => {
            let filter = ListOptions::checked(&asked.query, false, ty, &version.name)?;
            let options: DeleteOptions =
                intake::delete_options(asked.media(), &asked.body, &asked.query)?;
            let list = collection::delete_collection(call, &filter, &options).await?;
            Ok(finish_list(call, accepted, list))
        }
        _ => Err(unsupported(ty, &info.verb)),
    }
}

pub(crate) async fn patch_object(
    call: &mut Call<'_>,
    asked: &Asked,
) -> Result<update::Written, Status> {
    let accepts = match call.ty.origin {
        Origin::Builtin => Accepts::Builtin,
        Origin::Custom { .. } => Accepts::Custom,
    };
    let language = patch::language(asked.header(header::CONTENT_TYPE), accepts)?;
    let (patch, options) = read_patch(call, asked, language)?;
    let repeated = match (language, options.field_validation) {
        (Language::Merge, FieldValidation::Warn | FieldValidation::Strict) => {
            strict::duplicates(&asked.body)
        }
        (Language::Apply, FieldValidation::Warn | FieldValidation::Strict) => {
            patch::repeats_in_applied(&asked.body)
        }
        _ => Vec::new(),
    };
    let change = Patched { patch, options: &options, repeated };
    update::update(call, &change, &options).await
}

/// Reads the change that a PATCH asks for. Where there is nothing to change, that is said rather
/// than what is wrong with the change.
pub(crate) fn read_patch(
    call: &Call<'_>,
    asked: &Asked,
    language: Language,
) -> Result<(Patch, WriteOptions), Status> {
    let applies = language == Language::Apply;
    let options = WriteOptions::patch(&asked.query, applies)?;
    let patch = patch::read(language, &asked.body).map_err(|unreadable| {
        let creates = applies && call.subresource.is_empty();
        let exists = call.objects().entry(&call.ty, &call.namespace, &call.name).is_some();
        if creates || exists { unreadable } else { call.not_found() }
    })?;
    Ok((patch, options))
}

/// Built-in kinds have no route for what they do not do; custom ones say so by name.
pub(crate) fn unsupported(ty: &ResourceType, verb: &str) -> Status {
    match ty.origin {
        Origin::Builtin => Status::no_such_method(),
        Origin::Custom { .. } => Status::method_not_supported(ty.group_resource(), verb),
    }
}

/// Whether there is such a path: namespaced objects are named within a namespace, others never.
fn in_scope(ty: &ResourceType, asked: &Asked) -> bool {
    let info = &asked.info;
    let namespaced = !info.namespace.is_empty() && &*ty.plural != "namespaces";
    match (ty.namespaced, namespaced) {
        // Custom kinds have no such path; built-in ones have it, but without such a method.
        (true, false) if ty.origin != Origin::Builtin => {
            !names_object(asked) && matches!(&*info.verb, "list" | "watch")
        }
        (true, false) => !names_object(asked),
        (false, true) => false,
        _ => info.parts.len() <= 3,
    }
}

fn names_object(asked: &Asked) -> bool {
    !asked.info.name.is_empty() && !asked.info.name_from_selector
}

/// Objects are created in collections, and everything else is done to them by name.
fn check_method(ty: &ResourceType, asked: &Asked) -> Result<(), Status> {
    let info = &asked.info;
    if ty.origin != Origin::Builtin {
        return check_custom_method(asked);
    }
    let collection = ty.namespaced && info.namespace.is_empty();
    let fits = match &*info.verb {
        _ if !info.subresource.is_empty() => true,
        "list" => true,
        "watch" => info.reads,
        "create" => !names_object(asked) && !collection,
        "deletecollection" => !collection,
        _ => names_object(asked),
    };
    if fits && !(asked.head && matches!(&*info.verb, "list" | "get")) {
        return Ok(());
    }
    Err(unsupported(ty, &info.verb))
}

/// Custom kinds have one route for all paths: what is created is named by its body alone, and only
/// what needs a name and has none is refused.
fn check_custom_method(asked: &Asked) -> Result<(), Status> {
    if !asked.info.subresource.is_empty() || names_object(asked) {
        return Ok(());
    }
    match &*asked.info.verb {
        "patch" => {
            patch::language(asked.header(header::CONTENT_TYPE), Accepts::Custom)?;
        }
        "update" => {}
        _ => return Ok(()),
    }
    Err(Status::bad_request("name must be provided"))
}

fn get(call: &Call<'_>, accepted: Accepted) -> Result<Response, Status> {
    if accepted.form != Form::Whole {
        let found = call.current()?.ok_or_else(|| call.not_found())?;
        return Ok(finish(call, accepted, (200, found.value)));
    }
    let entry = call.objects().entry(&call.ty, &call.namespace, &call.name);
    let entry = entry.ok_or_else(|| call.not_found())?;
    let raw = Envelope::of(&call.ty, &call.version).raw(&entry.value);
    let answer = Answer { code: 200, body: AnswerBody::Raw(raw), warnings: call.warnings.clone() };
    Ok(respond::answer(answer, accepted.format))
}

fn open_watch(
    call: &Call<'_>,
    server: &Arc<Inner>,
    asked: &Asked,
    form: Form,
) -> Result<Response, Status> {
    let info = &asked.info;
    let options = ListOptions::checked(&asked.query, info.watch_in_path, &call.ty, &call.version)?;
    let mut options = options;
    if !call.name.is_empty() {
        // The old path names the one object that was asked for, and authorized.
        options.selector.fields = FieldSelector::named(&call.name);
    }
    let asked_revision = resource_version(&options.resource_version)
        .map_err(|error| Status::new(500, "", error.to_string()))?;
    let current = call.objects().store().revision();
    if asked_revision > current {
        return Err(list::too_new(asked_revision, current));
    }
    let initial = options.send_initial_events == Some(true);
    // Only a client that asked by name is told where the beginning ends.
    let mark_initial_end =
        asked.query.flag("sendInitialEvents") == Some(true) && options.allow_watch_bookmarks;
    let timeout = options.timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let query = WatchQuery {
        after: (!initial && asked_revision > 0)
            .then_some(asked_revision)
            .or_else(|| (options.send_initial_events == Some(false)).then_some(current)),
        mark_initial_end,
        bookmarks: options.allow_watch_bookmarks,
        timeout: timeout
            .filter(|seconds| *seconds > 0)
            .map_or(LONGEST_WATCH, Duration::from_secs)
            .min(LONGEST_WATCH),
        selector: options.selector,
    };
    Ok(respond::stream(watch::watch(call, server, query, form)))
}

/// What was stored is sent as it was stored, where that is the form asked for.
fn finish_write(call: &Call<'_>, accepted: Accepted, written: Written) -> Response {
    let Written { value, bytes, created } = written;
    let code = if created { 201 } else { 200 };
    let line = bytes
        .filter(|_| accepted.form == Form::Whole)
        .and_then(|bytes| Envelope::of(&call.ty, &call.version).line(&bytes));
    let Some(line) = line else { return finish(call, accepted, (code, value)) };
    let answer = Answer { code, body: AnswerBody::Raw(line), warnings: call.warnings.clone() };
    respond::answer(answer, accepted.format)
}

fn finish_list(call: &Call<'_>, accepted: Accepted, list: Pieces) -> Response {
    let warnings = call.warnings.clone();
    let answer = Answer { code: 200, body: AnswerBody::List(Box::new(list)), warnings };
    respond::answer(answer, accepted.format)
}

fn finish(call: &Call<'_>, accepted: Accepted, (code, value): (u16, Value)) -> Response {
    let is_status = value.get("kind").and_then(Value::as_str) == Some("Status");
    let shown = match accepted.form {
        Form::Whole => value,
        _ if is_status => value,
        form => {
            let presenter = Presenter {
                form,
                ty: &call.ty,
                version: &call.version,
                now: call.server.clock.now(),
            };
            presenter.one(value)
        }
    };
    let body = AnswerBody::Value(shown);
    respond::answer(Answer { code, body, warnings: call.warnings.clone() }, accepted.format)
}
