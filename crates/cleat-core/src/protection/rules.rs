//! The ValidatingWebhookConfiguration, made from the CriticalServices there are.
//!
//! Narrow on purpose: conditions name the very objects, so that a request about anything else is
//! not even asked about, and a webhook that is down keeps nothing else from happening. Without
//! CriticalServices there is nothing in it.

use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::criticalservice::{DEFINITION, GROUP, RESOURCE};
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, RuleWithOperations, ValidatingWebhook, ValidatingWebhookConfiguration,
    WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, ObjectMeta,
};

use serde_json::json;

use super::latch;
use super::service::{Criterion, Service};
use crate::digest::digest;
use crate::id::Id;

/// So many names fit into one condition; an expression may not be of any length.
const NAMES: usize = 256;
/// An answer takes milliseconds; a proof about very many objects takes seconds.
const TIMEOUT_SECONDS: i32 = 10;

/// How the configuration is called and where it points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    pub name: String,
    pub client: WebhookClientConfig,
    /// Where the webhook itself runs: nothing in it is ever asked about, or a webhook that is down
    /// could not be repaired.
    pub own_namespace: Option<String>,
}

/// What the API server is to be told now.
pub fn configuration(
    services: &[Arc<Service>],
    place: &Place,
    now: Timestamp,
) -> ValidatingWebhookConfiguration {
    let services: Vec<&Service> =
        services.iter().map(|service| &**service).filter(|service| service.protects()).collect();
    // One that cannot be told to a server must not keep the others from being told.
    let fit: Vec<&Service> =
        services.iter().copied().filter(|service| unfit(service).is_none()).collect();
    let mut webhooks = Vec::new();
    if !services.is_empty() {
        providers(&fit, &mut webhooks);
        evictions(&fit, &mut webhooks);
        scales(&fit, &mut webhooks);
        namespaces(&fit, &mut webhooks);
        kinds(&fit, &mut webhooks);
        ourselves(&services, &mut webhooks);
        latches(&services, now, &mut webhooks);
    }
    let webhooks = webhooks.into_iter().map(|hook| hook.webhook(place)).collect();
    ValidatingWebhookConfiguration {
        metadata: ObjectMeta { name: Some(place.name.clone()), ..Default::default() },
        webhooks: Some(webhooks),
    }
}

/// Why no server could be told to ask about a service's provider, if so.
pub fn unfit(service: &Service) -> Option<String> {
    let Id { group, resource, .. } = &service.provider;
    if !is_group(group) {
        return Some(format!("{group:?} is not the name of an API group"));
    }
    (!is_resource(resource)).then(|| format!("{resource:?} is not the name of a resource"))
}

/// A DNS name, or nothing.
fn is_group(group: &str) -> bool {
    group.is_empty() || (group.len() <= 253 && group.split('.').all(is_label))
}

fn is_resource(resource: &str) -> bool {
    is_label(resource) && resource.len() <= 253
}

fn is_label(label: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [label.bytes().next(), label.bytes().next_back()];
    ends.into_iter().all(|end| end.is_some_and(plain))
        && label.bytes().all(|byte| plain(byte) || byte == b'-')
}

struct Hook {
    name: String,
    operations: &'static [&'static str],
    group: String,
    resources: Vec<String>,
    /// CEL, all of which must hold.
    conditions: Vec<(&'static str, String)>,
}

type Kind<'a> = (&'a str, &'a str);

/// Objects by kind, each kind's in portions.
fn by_kind<'a>(ids: impl Iterator<Item = &'a Id>) -> BTreeMap<Kind<'a>, Vec<Vec<&'a Id>>> {
    let mut kinds: BTreeMap<Kind<'_>, BTreeSet<&Id>> = BTreeMap::new();
    for id in ids {
        kinds.entry((&id.group, &id.resource)).or_default().insert(id);
    }
    let portions = |ids: BTreeSet<&'a Id>| {
        let ids: Vec<&Id> = ids.into_iter().collect();
        ids.chunks(NAMES).map(<[&Id]>::to_vec).collect()
    };
    kinds.into_iter().map(|(kind, ids)| (kind, portions(ids))).collect()
}

fn providers(services: &[&Service], hooks: &mut Vec<Hook>) {
    for ((group, resource), portions) in by_kind(services.iter().map(|one| &one.provider)) {
        for (number, ids) in portions.into_iter().enumerate() {
            hooks.push(Hook {
                name: name(&format!("provider-{number}"), group, resource),
                operations: &["DELETE"],
                group: group.to_owned(),
                resources: vec![resource.to_owned()],
                conditions: vec![("is-a-provider", is_one_of("oldObject", &ids))],
            });
        }
    }
}

/// Whoever evicts a pod deletes it, and no server asks about that as about a delete.
fn evictions(services: &[&Service], hooks: &mut Vec<Hook>) {
    let pods = services.iter().map(|one| &one.provider);
    let pods = pods.filter(|id| id.group.is_empty() && id.resource == "pods");
    for ((group, resource), portions) in by_kind(pods) {
        for (number, ids) in portions.into_iter().enumerate() {
            hooks.push(Hook {
                name: name(&format!("evicted-{number}"), group, resource),
                operations: &["CREATE"],
                group: group.to_owned(),
                resources: vec![format!("{resource}/eviction")],
                conditions: vec![("is-a-provider", is_one_of("object", &ids))],
            });
        }
    }
}

fn scales(services: &[&Service], hooks: &mut Vec<Hook>) {
    let guarded = services.iter().filter(|one| one.guards_scale).map(|one| &one.provider);
    for ((group, resource), portions) in by_kind(guarded) {
        for (number, ids) in portions.into_iter().enumerate() {
            hooks.push(Hook {
                name: name(&format!("scale-{number}"), group, resource),
                operations: &["UPDATE"],
                group: group.to_owned(),
                resources: vec![resource.to_owned(), format!("{resource}/scale")],
                conditions: vec![
                    ("is-a-provider", is_one_of("object", &ids)),
                    ("to-zero", TO_ZERO.to_owned()),
                ],
            });
        }
    }
}

/// A scale that asks for none leaves the field out.
const TO_ZERO: &str = "has(oldObject.spec) && has(oldObject.spec.replicas) \
    && oldObject.spec.replicas > 0 && (!has(object.spec) || !has(object.spec.replicas) \
    || object.spec.replicas == 0)";

fn namespaces(services: &[&Service], hooks: &mut Vec<Hook>) {
    let names: BTreeSet<&str> = services
        .iter()
        .map(|service| service.provider.namespace.as_str())
        .filter(|namespace| !namespace.is_empty())
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    for (number, names) in names.chunks(NAMES).enumerate() {
        hooks.push(Hook {
            name: name(&format!("holds-providers-{number}"), "", "namespaces"),
            operations: &["DELETE"],
            group: String::new(),
            resources: vec!["namespaces".to_owned()],
            conditions: vec![("holds-a-provider", is_named(names))],
        });
    }
}

/// With a definition go all objects of its kind, and nobody is asked about them.
fn kinds(services: &[&Service], hooks: &mut Vec<Hook>) {
    let names: BTreeSet<String> =
        services.iter().filter_map(|one| one.provider_definition()).map(|id| id.name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (number, names) in names.chunks(NAMES).enumerate() {
        hooks.push(Hook {
            name: name(
                &format!("defines-providers-{number}"),
                "apiextensions.k8s.io",
                "customresourcedefinitions",
            ),
            operations: &["DELETE"],
            group: "apiextensions.k8s.io".to_owned(),
            resources: vec!["customresourcedefinitions".to_owned()],
            conditions: vec![("defines-a-provider", is_named(names))],
        });
    }
}

fn ourselves(services: &[&Service], hooks: &mut Vec<Hook>) {
    let names: BTreeSet<&str> = services.iter().map(|service| service.name.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    for (number, names) in names.chunks(NAMES).enumerate() {
        hooks.push(Hook {
            name: name(&format!("itself-{number}"), GROUP, RESOURCE),
            operations: &["DELETE"],
            group: GROUP.to_owned(),
            resources: vec![RESOURCE.to_owned()],
            conditions: vec![("is-known", is_named(names))],
        });
    }
    hooks.push(Hook {
        name: name("definition", "apiextensions.k8s.io", "customresourcedefinitions"),
        operations: &["DELETE"],
        group: "apiextensions.k8s.io".to_owned(),
        resources: vec!["customresourcedefinitions".to_owned()],
        conditions: vec![("is-ours", format!("oldObject.metadata.name == {}", quoted(DEFINITION)))],
    });
}

/// While a provider is going, nobody new may come to need it.
fn latches(services: &[&Service], now: Timestamp, hooks: &mut Vec<Hook>) {
    let closed = services.iter().filter(|service| latch::is_closed(service, now));
    let criteria: BTreeSet<&Criterion> = closed.flat_map(|service| &service.criteria).collect();
    for (number, criterion) in criteria.into_iter().enumerate() {
        let (operations, group, resource, conditions): (&[&str], _, _, _) = match criterion {
            Criterion::Finalizer { group, resource, finalizer } => {
                let has = |object: &str| {
                    format!(
                        "has({object}.metadata.finalizers) && {} in {object}.metadata.finalizers",
                        quoted(finalizer)
                    )
                };
                let new = format!(
                    "({}) && (request.operation == 'CREATE' || !({}))",
                    has("object"),
                    has("oldObject")
                );
                (&["CREATE", "UPDATE"], group, resource, vec![("comes-to-need-it", new)])
            }
            Criterion::Any { group, resource } => (&["CREATE"], group, resource, vec![]),
            Criterion::Object(id) => {
                let same = is_one_of("object", &[id]);
                (&["CREATE"], &id.group, &id.resource, vec![("is-the-one", same)])
            }
            Criterion::Unreadable(_) => continue,
        };
        if !is_group(group) || !is_resource(resource) {
            continue;
        }
        hooks.push(Hook {
            name: name(&format!("latch-{number}"), group, resource),
            operations,
            group: group.clone(),
            resources: vec![resource.clone()],
            conditions,
        });
    }
}

fn is_one_of(object: &str, ids: &[&Id]) -> String {
    let list: Vec<String> =
        ids.iter().map(|id| quoted(&format!("{}/{}", id.namespace, id.name))).collect();
    format!(
        "((has({object}.metadata.namespace) ? {object}.metadata.namespace : '') + '/' + \
         (has({object}.metadata.name) ? {object}.metadata.name : '')) in [{}]",
        list.join(", ")
    )
}

fn is_named(names: &[&str]) -> String {
    let list: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    format!("oldObject.metadata.name in [{}]", list.join(", "))
}

/// A string as CEL has it.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for character in text.chars() {
        if character.is_control() {
            quoted.push_str(&format!("\\u{:04x}", u32::from(character)));
            continue;
        }
        if matches!(character, '\'' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('\'');
    quoted
}

/// Webhooks are called like domains.
fn name(what: &str, group: &str, resource: &str) -> String {
    let group = if group.is_empty() { "core" } else { group };
    let full = format!("{what}.{resource}.{group}.{GROUP}");
    if full.len() <= 253 {
        return full;
    }
    let short = digest(&json!([resource, group]));
    format!("{what}.{short}.{GROUP}")
}

impl Hook {
    fn webhook(self, place: &Place) -> ValidatingWebhook {
        let Self { name, operations, group, resources, conditions } = self;
        let conditions = conditions
            .into_iter()
            .map(|(name, expression)| MatchCondition { name: name.to_owned(), expression });
        let conditions: Vec<MatchCondition> = conditions.collect();
        ValidatingWebhook {
            name,
            admission_review_versions: vec!["v1".to_owned()],
            client_config: place.client.clone(),
            failure_policy: Some("Fail".to_owned()),
            match_conditions: (!conditions.is_empty()).then_some(conditions),
            match_policy: Some("Equivalent".to_owned()),
            // What a server would fill in is given, so that the same reads back the same.
            namespace_selector: Some(
                place.own_namespace.as_deref().map(not_in).unwrap_or_default(),
            ),
            object_selector: Some(LabelSelector::default()),
            rules: Some(vec![RuleWithOperations {
                api_groups: Some(vec![group]),
                api_versions: Some(vec!["*".to_owned()]),
                operations: Some(operations.iter().map(|&one| one.to_owned()).collect()),
                resources: Some(resources),
                scope: Some("*".to_owned()),
            }]),
            side_effects: "None".to_owned(),
            timeout_seconds: Some(TIMEOUT_SECONDS),
        }
    }
}

fn not_in(namespace: &str) -> LabelSelector {
    LabelSelector {
        match_expressions: Some(vec![LabelSelectorRequirement {
            key: "kubernetes.io/metadata.name".to_owned(),
            operator: "NotIn".to_owned(),
            values: Some(vec![namespace.to_owned()]),
        }]),
        match_labels: None,
    }
}
