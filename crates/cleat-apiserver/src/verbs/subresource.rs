//! Paths below an object, and the kinds that are answered instead of stored.

use std::sync::Arc;

use serde_json::{Value, json};

use super::admitting::Asking;
use super::{Call, RETRIES, create, delete, intake, scaling, update};
use crate::apply;
use crate::authn;
use crate::authz;
use crate::builtin;
use crate::http::Asked;
use crate::http::dispatch::{patch_object, unsupported};
use crate::object;
use crate::objects::NotWritten;
use crate::protobuf::DefaultKind;
use crate::query::{DeleteOptions, WriteOptions};
use crate::quote::quoted;
use crate::resource::Origin;
use crate::status::{FieldError, GroupResource, Status};

/// Answers a request below an object with a status code and a document.
pub(crate) async fn answer(call: &mut Call<'_>, asked: &Asked) -> Result<(u16, Value), Status> {
    let ty = Arc::clone(&call.ty);
    let known =
        ty.version(&call.version).and_then(|version| version.subresource(&call.subresource));
    let subresource = known.ok_or_else(|| match ty.origin {
        Origin::Builtin => Status::no_such_path(),
        Origin::Custom { .. } => call.not_found(),
    })?;
    let verb = &*asked.info.verb;
    if !subresource.verbs.iter().any(|allowed| &**allowed == verb) {
        return Err(unsupported(&ty, verb));
    }
    match (&*ty.group, &*ty.plural, &*call.subresource, verb) {
        (_, _, "scale", _) => scaling::answer(call, asked).await,
        ("", "serviceaccounts", "token", "create") => token(call, asked).await,
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
pub(super) fn parse(asked: &Asked, api_version: &str, kind: &str) -> Result<Value, Status> {
    let default = DefaultKind { api_version, kind };
    let body = intake::parse(asked.media()?, &asked.body, default)?.value;
    let given = body.get("kind").and_then(Value::as_str).unwrap_or_default();
    if !given.is_empty() && given != kind {
        let version = object::at(&body, "/apiVersion").unwrap_or_default();
        let version = version.rsplit('/').next().unwrap_or_default();
        let group = api_version.split_once('/').map_or("core", |(group, _)| group);
        let package = group.split('.').next().unwrap_or_default();
        return Err(Status::bad_request(format!(
            "{given} in version \"{version}\" cannot be handled as a {kind}: converting \
             ({version}.{given}) to ({package}.{kind}): unknown conversion"
        )));
    }
    Ok(body)
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
    call.track(None, &mut review, &options.field_manager);
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

async fn token(call: &mut Call<'_>, asked: &Asked) -> Result<(u16, Value), Status> {
    const VERSION: &str = "authentication.k8s.io/v1";
    let options = WriteOptions::create(&asked.query)?;
    let account = call.current()?.ok_or_else(|| call.not_found())?;
    let tokens = call.server.authenticator.service_accounts();
    let tokens = tokens.ok_or_else(|| Status::internal("this server issues no tokens"))?;
    let mut request = parse(asked, VERSION, "TokenRequest")?;
    let map = object::as_map(&mut request);
    map.remove("status");
    let spec = object::as_map(map.entry("spec").or_insert_with(|| json!({})));
    spec.entry("expirationSeconds").or_insert_with(|| json!(60 * 60));
    let target = apply::Target {
        kind: "TokenRequest",
        schema: builtin::schemas().named("io.k8s.api.authentication.v1.TokenRequest"),
        reset: &[],
        api_versions: &[VERSION],
    };
    let manager = apply::Manager {
        name: &call.manager(&options.field_manager),
        subresource: &call.subresource,
        api_version: VERSION,
        time: &call.server.clock.now_text(),
    };
    apply::track_update(None, &mut request, &target, &manager);
    let asking = Asking { options: options.to_json("CreateOptions"), dry_run: options.dry_run };
    let request = call.mutate(&request, None, &asking).await?.unwrap_or(request);
    let now = call.server.clock.now();
    let answer = authn::token_request(request, &account.value, tokens, now, call.server)?;
    call.admit_write(&answer, None, &asking).await?;
    Ok((201, answer))
}

/// A scheduler says where a pod runs. Nothing else about the pod is looked at.
async fn bind(call: &mut Call<'_>, asked: &Asked) -> Result<(u16, Value), Status> {
    let options = WriteOptions::create(&asked.query)?;
    let binding = parse(asked, "v1", "Binding")?;
    if object::name(&binding) != call.name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    check_target(&binding)?;
    let asking = Asking { options: options.to_json("CreateOptions"), dry_run: options.dry_run };
    let binding = call.mutate(&binding, None, &asking).await?.unwrap_or(binding);
    call.admit_write(&binding, None, &asking).await?;
    let node = object::at(&binding, "/target/name").unwrap_or_default();
    for _ in 0..RETRIES {
        let current = call.current()?.ok_or_else(|| call.not_found())?;
        let mut pod = current.value.clone();
        assign(call, &mut pod, node)?;
        if options.dry_run {
            return Ok((201, success(201)));
        }
        match call.objects().replace(&call.ty, &call.version, pod, &current).await {
            Ok(_) => return Ok((201, success(201))),
            Err(NotWritten::Failed(status)) => return Err(status),
            Err(NotWritten::Raced) => {}
        }
    }
    Err(call.raced())
}

/// What is wrong with a binding is no ordinary refusal upstream, but a failure.
fn check_target(binding: &Value) -> Result<(), Status> {
    let text = |field: &str| object::at(binding, field).unwrap_or_default();
    let mut errors = Vec::new();
    let kind = text("/target/kind");
    if !["", "Node"].contains(&kind) {
        errors.push(FieldError::not_supported("target.kind", kind, &["Node", "<empty>"]));
    }
    if text("/target/name").is_empty() {
        errors.push(FieldError::required("target.name", ""));
    }
    match errors.as_slice() {
        [] => Ok(()),
        [only] => Err(Status::new(500, "", only.to_string())),
        several => {
            let texts: Vec<String> = several.iter().map(ToString::to_string).collect();
            Err(Status::new(500, "", format!("[{}]", texts.join(", "))))
        }
    }
}

fn assign(call: &Call<'_>, pod: &mut Value, node: &str) -> Result<(), Status> {
    let refuse = |why: &str| {
        let what = GroupResource { group: "", resource: "pods/binding" };
        Err(Status::conflict(what, &call.name, format_args!("pod {} {why}", call.name)))
    };
    if object::deletion_timestamp(pod).is_some() {
        return refuse("is being deleted, cannot be assigned to a host");
    }
    let bound = object::at(pod, "/spec/nodeName").unwrap_or_default();
    if !bound.is_empty() {
        return refuse(&format!("is already assigned to node {}", quoted(bound)));
    }
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array);
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return refuse("has non-empty .spec.schedulingGates");
    }
    let map = object::as_map(pod);
    let spec = object::as_map(map.entry("spec").or_insert_with(|| json!({})));
    spec.insert("nodeName".into(), node.into());
    let status = object::as_map(map.entry("status").or_insert_with(|| json!({})));
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Some(all) = conditions.as_array_mut() {
        all.retain(|condition| condition.get("type") != Some(&json!("PodScheduled")));
        all.push(json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": call.server.clock.now_text(),
        }));
    }
    Ok(())
}

async fn evict(call: &mut Call<'_>, asked: &Asked) -> Result<(u16, Value), Status> {
    let eviction = parse(asked, "policy/v1", "Eviction")?;
    if object::name(&eviction) != call.name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
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
