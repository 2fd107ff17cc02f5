//! What becomes of each template of a policy: an object, a wait for others, or a complaint.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::policy::name::{HUB_TEMPLATES_ERROR, PARENT_POLICY};
use cleat_api::policy::{PolicyDependency, PolicySpec, PolicyTemplate};
use serde_json::Value;

use super::desired;
use super::observed::{Live, Observed, Policy, Standing, TemplateId, TemplateKind};
use super::plan::Depends;
use crate::policy::observed::{KindName, Served};

/// What is to be done about a template.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judged {
    pub(crate) name: String,
    pub(crate) need: Need,
    /// What there is to say about it beyond what it says itself.
    pub(crate) say: Option<String>,
    /// It said before that something stood in its way, and has to speak for itself again.
    pub(crate) speak_again: Option<(Served, Value)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Need {
    Nothing,
    Create(Served, Value),
    /// With the revision that was seen.
    Replace(Served, Value),
}

/// Which object a template is; `None` if it does not say.
pub(crate) fn id(template: &PolicyTemplate) -> Option<TemplateId> {
    let definition = &template.object_definition;
    let text = |pointer: &str| {
        let text = definition.pointer(pointer).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(ToOwned::to_owned)
    };
    let kind = KindName { api_version: text("/apiVersion")?, kind: text("/kind")? };
    Some(TemplateId { kind, name: text("/metadata/name")? })
}

/// Whether the policy says for certain which templates it has: each has a name, none has another's,
/// and the hub knew them all. While it does not, one that seems to have left may only be misspelled,
/// and taking it away would take away what it made.
pub(crate) fn are_certain(spec: &PolicySpec) -> bool {
    let mut names = BTreeSet::new();
    spec.policy_templates.iter().all(|template| {
        let id = id(template).map(|id| (id.kind.kind, id.name));
        hub_mistake(template).is_none() && id.is_some_and(|id| names.insert(id))
    })
}

/// What the hub could not resolve in a template.
fn hub_mistake(template: &PolicyTemplate) -> Option<&str> {
    let annotations = template.object_definition.pointer("/metadata/annotations")?.as_object()?;
    annotations.get(HUB_TEMPLATES_ERROR)?.as_str()
}

/// Why a template is no object of any kind, if it is none.
fn undecodable(template: &PolicyTemplate) -> Option<String> {
    let definition = &template.object_definition;
    let kind = definition.get("kind").and_then(Value::as_str);
    let missing = kind.is_none_or(str::is_empty);
    missing.then(|| format!("Object 'Kind' is missing in '{definition}'"))
}

/// How events call a template.
pub(crate) fn name(template: &PolicyTemplate, index: usize) -> String {
    if undecodable(template).is_some() {
        return format!("template-{index}");
    }
    let name = template.object_definition.pointer("/metadata/name").and_then(Value::as_str);
    name.filter(|name| !name.is_empty())
        .map_or_else(|| format!("template-{index}"), ToOwned::to_owned)
}

/// Everything a template waits for.
pub(crate) fn dependencies<'a>(
    spec: &'a PolicySpec,
    template: &'a PolicyTemplate,
) -> impl Iterator<Item = &'a PolicyDependency> {
    spec.dependencies.iter().chain(&template.extra_dependencies)
}

/// All templates of the policy on the cluster.
pub(crate) fn judged(seen: &Observed, local: &Policy) -> Vec<Judged> {
    let all = verdicts(seen, local).into_iter().enumerate();
    let each = all.map(|(index, (template, verdict))| {
        finished(seen, local, template, name(template, index), verdict)
    });
    each.collect()
}

/// What each template is to be, or why it cannot be anything now.
pub(super) fn verdicts<'a>(
    seen: &Observed,
    local: &'a Policy,
) -> Vec<(&'a PolicyTemplate, Result<Found, Stop>)> {
    let spec = &local.spec;
    let mut names: BTreeMap<(String, String), usize> = BTreeMap::new();
    for template in &spec.policy_templates {
        if let Some(id) = id(template) {
            *names.entry((id.kind.kind, id.name)).or_default() += 1;
        }
    }
    let twice = names.values().any(|count| *count > 1);
    let each = spec.policy_templates.iter().enumerate().map(|(index, template)| {
        let verdict = match twice {
            true => Err(Stop::Fault(
                "All policy-template names must be unique within a policy".to_owned(),
            )),
            false => one(seen, local, template, index),
        };
        (template, verdict)
    });
    each.collect()
}

pub(super) enum Stop {
    /// Something is wrong with it.
    Fault(String),
    /// It waits for others.
    Pending(String),
    /// The object that is there cannot be read. It goes on as it is.
    Unread(String),
    /// Nobody can tell now.
    Unknown,
}

/// The object it should be, and the one that is there.
pub(super) struct Found {
    pub(super) served: Served,
    pub(super) wanted: Value,
    pub(super) live: Option<Value>,
}

fn one(
    seen: &Observed,
    local: &Policy,
    template: &PolicyTemplate,
    index: usize,
) -> Result<Found, Stop> {
    if let Some(why) = undecodable(template) {
        return Err(Stop::Fault(format!("Failed to decode policy template with err: {why}")));
    }
    let Some(id) = id(template) else {
        let message = format!("Failed to parse or get name from policy template at index {index}");
        return Err(Stop::Fault(message));
    };
    let definition = &template.object_definition;
    let served = served(seen, &id)?;
    if let Some(message) = hub_mistake(template) {
        return Err(Stop::Fault(message.to_owned()));
    }
    waits(seen, local, template)?;
    if both_kinds_of_templates(definition) {
        let message = format!(
            "{} \"{}\" is invalid: spec may only contain one of object-templates and object-templates-raw",
            id.kind.kind, id.name
        );
        return Err(Stop::Fault(message));
    }
    let live = match seen.live.get(&id) {
        Some(Live::Present(live)) => Some(live.clone()),
        Some(Live::Absent) => None,
        Some(Live::Refused(why)) => {
            let message = format!("Failed to get the object in the policy template: {why}");
            return Err(Stop::Unread(message));
        }
        Some(Live::Unknown(_)) | None => return Err(Stop::Unknown),
    };
    if let Some(live) = &live {
        belongs(seen, &id, live)?;
    }
    Ok(Found { served, wanted: desired::object(seen, local, template), live })
}

fn served(seen: &Observed, id: &TemplateId) -> Result<Served, Stop> {
    let KindName { api_version, kind } = &id.kind;
    let group_version = match api_version.contains('/') {
        true => api_version.clone(),
        false => format!("/{api_version}"),
    };
    match seen.kinds.get(&id.kind) {
        Some(TemplateKind::Template(served)) if served.namespaced => Ok(served.clone()),
        Some(TemplateKind::Template(_) | TemplateKind::Other) => Err(Stop::Fault(format!(
            "policy-template kind is not supported: {group_version}, Kind={kind}"
        ))),
        Some(TemplateKind::Missing) => Err(Stop::Fault(format!(
            "Mapping not found, check if you have the CRD deployed: no matches for kind \"{kind}\" in version \"{api_version}\""
        ))),
        Some(TemplateKind::Unknown(_)) | None => Err(Stop::Unknown),
    }
}

/// Whether everything it depends on stands as it should.
fn waits(seen: &Observed, local: &Policy, template: &PolicyTemplate) -> Result<(), Stop> {
    let mut pending: Vec<String> = Vec::new();
    for dependency in dependencies(&local.spec, template) {
        let met = match seen.states.get(&Depends(dependency.clone())) {
            Some(Standing::Is(state)) => state.as_deref() == Some(dependency.compliance.as_str()),
            // What was there stays; what was not does not begin.
            Some(Standing::Unknown(_)) | None => return Err(Stop::Unknown),
        };
        let named = format!("{} {}", dependency.kind, dependency.name);
        if !met && !pending.contains(&named) {
            pending.push(named);
        }
    }
    pending.sort();
    let list = pending.join(", ");
    let mut message = match pending.len() {
        0 => return Ok(()),
        1 => format!("Dependencies were not satisfied: 1 is still pending ({list})"),
        more => format!("Dependencies were not satisfied: {more} are still pending ({list})"),
    };
    if template.ignore_pending {
        message.push_str(" but ignorePending is true");
    }
    Err(Stop::Pending(message))
}

fn both_kinds_of_templates(definition: &Value) -> bool {
    let has = |field: &str| definition.get("spec").is_some_and(|spec| spec.get(field).is_some());
    has("object-templates") && has("object-templates-raw")
}

/// Whether the object that is there is this policy's.
fn belongs(seen: &Observed, id: &TemplateId, live: &Value) -> Result<(), Stop> {
    let owner = desired::owner(live);
    if owner.is_some_and(|owner| owner == seen.name) {
        return Ok(());
    }
    let labels = live.pointer("/metadata/labels");
    let label = labels.and_then(|labels| labels.get(PARENT_POLICY)).and_then(Value::as_str);
    let place = match owner.or(label) {
        // It has our mark and no owner: somebody took the owner away.
        Some(other) if other == seen.name => return Ok(()),
        Some(other) => format!("in policy {other}"),
        None => "outside of a Policy".to_owned(),
    };
    let TemplateId { kind: KindName { kind, .. }, name } = id;
    Err(Stop::Fault(format!(
        "Template name must be unique. Policy template with kind: {kind} name: {name} already exists {place}"
    )))
}

fn finished(
    seen: &Observed,
    local: &Policy,
    template: &PolicyTemplate,
    name: String,
    verdict: Result<Found, Stop>,
) -> Judged {
    let silent = |need: Need, say: Option<String>| Judged {
        name: name.clone(),
        need,
        say,
        speak_again: None,
    };
    match verdict {
        Ok(Found { served, wanted, live: None }) => {
            let trouble = trouble(seen, &served, &name);
            let say = trouble.map(|why| fault(&format!("Failed to create policy template: {why}")));
            silent(Need::Create(served, wanted), say)
        }
        Ok(Found { served, wanted, live: Some(live) }) => {
            if is_deleting(&live) {
                return silent(Need::Nothing, None);
            }
            match desired::changed(&live, &wanted) {
                Some(next) => {
                    let say = trouble(seen, &served, &name).map(|why| {
                        fault(&format!("Failed to update policy template {name}: {why}"))
                    });
                    silent(Need::Replace(served, next), say)
                }
                None => {
                    let again = complained(seen, &name) && has_spoken(&live);
                    let speak_again = again.then_some((served, live));
                    Judged { speak_again, ..silent(Need::Nothing, None) }
                }
            }
        }
        Err(Stop::Unknown) => silent(Need::Nothing, None),
        Err(Stop::Unread(message)) => silent(Need::Nothing, Some(fault(&message))),
        Err(Stop::Pending(message)) => {
            let state = if template.ignore_pending { "Compliant" } else { "Pending" };
            silent(stopped(seen, local, template), Some(format!("{state}; {message}")))
        }
        Err(Stop::Fault(message)) => silent(stopped(seen, local, template), Some(fault(&message))),
    }
}

fn fault(message: &str) -> String {
    format!("NonCompliant; template-error; {message}")
}

fn trouble(seen: &Observed, served: &Served, name: &str) -> Option<String> {
    let id = served.target(&seen.place.cluster_namespace, name).id;
    let trouble = seen.troubles.get(&id)?;
    let stale = trouble.kind == crate::work::trouble::TroubleKind::Stale;
    (!stale).then(|| trouble.message.to_string())
}

/// Stops a template that must not go on, without taking it away.
fn stopped(seen: &Observed, local: &Policy, template: &PolicyTemplate) -> Need {
    let Some(id) = id(template) else { return Need::Nothing };
    let Some(TemplateKind::Template(served)) = seen.kinds.get(&id.kind) else {
        return Need::Nothing;
    };
    let Some(Live::Present(live)) = seen.live.get(&id) else { return Need::Nothing };
    let ours = desired::owner(live) == Some(seen.name.as_str());
    let uid = desired::owner_uid(live) == Some(local.uid.as_str());
    if !ours || !uid || is_deleting(live) || id.kind.kind != "ConfigurationPolicy" {
        return Need::Nothing;
    }
    match desired::stopped(live) {
        Some(next) => Need::Replace(served.clone(), next),
        None => Need::Nothing,
    }
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string)
}

/// Whether the last word about a template was that something stood in its way.
fn complained(seen: &Observed, name: &str) -> bool {
    let last = super::history::newest(seen.told.get(name).map_or(&[][..], Vec::as_slice));
    last.is_some_and(|last| {
        last.message.contains("template-error;")
            || last.message.contains("Dependencies were not satisfied")
    })
}

/// Whether the object says how it stands.
fn has_spoken(live: &Value) -> bool {
    let state = live.pointer("/status/compliant").and_then(Value::as_str);
    state.is_some_and(|state| !state.is_empty())
}
