//! Paths below an object, and the kinds that are answered instead of stored.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Call, create, delete, intake, update};
use crate::authn;
use crate::authz;
use crate::http::Asked;
use crate::http::dispatch::{patch_object, unsupported};
use crate::object;
use crate::patch::{self, Accepts};
use crate::protobuf::DefaultKind;
use crate::query::{DeleteOptions, WriteOptions};
use crate::resource::Origin;
use crate::rules::scale::{self, Place};
use crate::status::Status;

/// Answers a request below an object with a status code and a document.
pub(crate) async fn answer(call: &mut Call<'_>, asked: &Asked) -> Result<(u16, Value), Status> {
    let ty = Arc::clone(&call.ty);
    let known =
        ty.version(&call.version).and_then(|version| version.subresource(&call.subresource));
    let subresource = known.ok_or_else(Status::no_such_path)?;
    let verb = &*asked.info.verb;
    if !subresource.verbs.iter().any(|allowed| &**allowed == verb) {
        return Err(unsupported(&ty, verb));
    }
    match (&*ty.group, &*ty.plural, &*call.subresource, verb) {
        (_, _, "scale", _) => scaled(call, asked).await,
        ("", "serviceaccounts", "token", "create") => token(call, asked),
        ("", "pods", "binding", "create") => bind(call, asked).await,
        ("", "pods", "eviction", "create") => evict(call, asked).await,
        (_, _, _, "get") => {
            let found = call.current()?.ok_or_else(|| call.not_found())?;
            Ok((200, found.value))
        }
        (_, _, _, "update") => {
            let options = WriteOptions::update(&asked.query)?;
            let body = intake::read(call, asked.media()?, &asked.body, options.field_validation)?;
            intake::check_name(call, &body)?;
            let change = update::Replace { body, manager: &options.field_manager };
            let written = update::update(call, &change, &options).await?;
            Ok((200, written.value))
        }
        (_, _, _, "patch") => {
            let written = patch_object(call, asked).await?;
            Ok((if written.created { 201 } else { 200 }, written.value))
        }
        _ => Err(unsupported(&ty, verb)),
    }
}

/// A body of another kind than the object's own.
fn parse(asked: &Asked, api_version: &str, kind: &str) -> Result<(Value, Option<Vec<u8>>), Status> {
    intake::parse(asked.media()?, &asked.body, DefaultKind { api_version, kind })
}

/// Kinds that ask a question: nothing is stored. `None` for all others.
pub(crate) fn review(call: &mut Call<'_>, asked: &Asked) -> Result<Option<(u16, Value)>, Status> {
    let ty = Arc::clone(&call.ty);
    if !matches!(&*ty.group, "authorization.k8s.io" | "authentication.k8s.io") {
        return Ok(None);
    }
    let options = WriteOptions::create(&asked.query)?;
    let mut review = intake::read(call, asked.media()?, &asked.body, options.field_validation)?;
    if call.ty.namespaced {
        create::settle_namespace(call, &mut review)?;
    }
    let server = call.server;
    let now = server.clock.now_text();
    let answer = match &*ty.plural {
        "selfsubjectaccessreviews" => {
            authz::self_subject_access_review(review, &call.user, server)?
        }
        "subjectaccessreviews" => authz::subject_access_review(review, server)?,
        "localsubjectaccessreviews" => {
            authz::local_subject_access_review(review, &call.namespace, server)?
        }
        "selfsubjectrulesreviews" => {
            server.with_rbac(|rbac| authz::self_subject_rules_review(&review, &call.user, rbac))?
        }
        "selfsubjectreviews" => authz::self_subject_review(&review, &call.user, &now),
        "tokenreviews" => authz::token_review(review, |token, audiences| {
            let now = server.clock.now();
            server.authenticator.authenticate_token(token, audiences, now, server)
        })?,
        _ => return Err(Status::no_such_path()),
    };
    Ok(Some((201, answer)))
}

async fn scaled(call: &mut Call<'_>, asked: &Asked) -> Result<(u16, Value), Status> {
    let ty = Arc::clone(&call.ty);
    let place = match (&ty.origin, ty.version(&call.version).and_then(|v| v.scale.as_ref())) {
        (Origin::Builtin, _) => Place::Builtin,
        (Origin::Custom { .. }, Some(paths)) => Place::Custom(paths),
        (Origin::Custom { .. }, None) => return Err(Status::no_such_path()),
    };
    let view = |object: &Value| {
        scale::view(object, &place)
            .ok_or_else(|| Status::internal("the spec replicas field is not set"))
    };
    let current = call.current()?.ok_or_else(|| call.not_found())?;
    let options = match &*asked.info.verb {
        "get" => return Ok((200, view(&current.value)?)),
        "update" => WriteOptions::update(&asked.query)?,
        _ => WriteOptions::patch(&asked.query, false)?,
    };
    let wanted = match &*asked.info.verb {
        "update" => parse(asked, "autoscaling/v1", "Scale")?.0,
        _ => {
            let content_type = match asked.header(http::header::CONTENT_TYPE) {
                // A Scale is plain enough for both to mean the same.
                "application/strategic-merge-patch+json" => "application/merge-patch+json",
                other => other,
            };
            let patch = patch::parse(content_type, &asked.body, Accepts::Custom)?;
            patch::apply_patch(&view(&current.value)?, &patch, None)?
        }
    };
    let change = Rescale { place: &place, wanted, manager: &options.field_manager };
    let written = update::update(call, &change, &options).await?;
    Ok((200, view(&written.value)?))
}

struct Rescale<'a> {
    place: &'a Place<'a>,
    wanted: Value,
    manager: &'a str,
}

impl update::Change for Rescale<'_> {
    fn apply(&self, call: &mut Call<'_>, current: Option<&Value>) -> Result<Value, Status> {
        let mut new = current.cloned().ok_or_else(|| call.not_found())?;
        let revision = object::resource_version(&self.wanted).to_owned();
        scale::apply(&mut new, self.place, &self.wanted)
            .map_err(|errors| Status::invalid("autoscaling", "Scale", &call.name, &errors))?;
        if !revision.is_empty() {
            object::metadata_mut(&mut new).insert("resourceVersion".into(), revision.into());
        }
        call.track(current, &mut new, self.manager);
        Ok(new)
    }

    fn creates(&self, _call: &Call<'_>) -> bool {
        false
    }

    fn retries(&self) -> bool {
        true
    }

    fn options_kind(&self) -> &'static str {
        "UpdateOptions"
    }
}

fn token(call: &mut Call<'_>, asked: &Asked) -> Result<(u16, Value), Status> {
    let account = call.current()?.ok_or_else(|| call.not_found())?;
    let tokens = call.server.authenticator.service_accounts();
    let tokens = tokens.ok_or_else(|| Status::internal("this server issues no tokens"))?;
    let (request, _) = parse(asked, "authentication.k8s.io/v1", "TokenRequest")?;
    let now = call.server.clock.now();
    let answer = authn::token_request(request, &account.value, tokens, now, call.server)?;
    Ok((201, answer))
}

/// A scheduler says where a pod runs.
async fn bind(call: &mut Call<'_>, asked: &Asked) -> Result<(u16, Value), Status> {
    let options = WriteOptions::create(&asked.query)?;
    let (binding, _) = parse(asked, "v1", "Binding")?;
    let node = object::at(&binding, "/target/name").unwrap_or_default().to_owned();
    let now = call.server.clock.now_text();
    update::update(call, &Bind { node, now }, &options).await?;
    Ok((201, success(201)))
}

struct Bind {
    node: String,
    now: String,
}

impl update::Change for Bind {
    fn apply(&self, call: &mut Call<'_>, current: Option<&Value>) -> Result<Value, Status> {
        let mut pod = current.cloned().ok_or_else(|| call.not_found())?;
        let bound = object::at(&pod, "/spec/nodeName").unwrap_or_default().to_owned();
        if !bound.is_empty() {
            let why = format!("pod {} is already assigned to node {bound:?}", call.name);
            return Err(call.conflict(&why));
        }
        if let Some(spec) = pod.get_mut("spec").map(object::as_map) {
            spec.insert("nodeName".into(), self.node.as_str().into());
        }
        let map = object::as_map(&mut pod);
        let status = object::as_map(map.entry("status").or_insert_with(|| json!({})));
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        if let Some(all) = conditions.as_array_mut() {
            all.retain(|condition| condition.get("type") != Some(&json!("PodScheduled")));
            all.push(json!({
                "type": "PodScheduled", "status": "True", "lastProbeTime": null,
                "lastTransitionTime": self.now,
            }));
        }
        Ok(pod)
    }

    fn creates(&self, _call: &Call<'_>) -> bool {
        false
    }

    fn retries(&self) -> bool {
        true
    }

    fn options_kind(&self) -> &'static str {
        "CreateOptions"
    }
}

async fn evict(call: &mut Call<'_>, asked: &Asked) -> Result<(u16, Value), Status> {
    let (eviction, _) = parse(asked, "policy/v1", "Eviction")?;
    let given = eviction.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
    let mut options = DeleteOptions::from_body(&given)?;
    options.dry_run |= WriteOptions::create(&asked.query)?.dry_run;
    call.subresource.clear();
    delete::delete_object(call, &options, false).await?;
    Ok((201, success(201)))
}

fn success(code: u16) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code })
}
