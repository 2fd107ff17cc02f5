//! A webhook as its configuration describes it, read once and matched often.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::Value;

use crate::{
    rules::read::Read as _,
    schema::cel::{self, Expression},
    selector::LabelSelector,
};

/// One entry of `webhooks`.
#[derive(Clone, Debug)]
pub(super) struct Webhook {
    pub(super) name: Box<str>,
    /// The name of the object that configures it.
    pub(super) configuration: Box<str>,
    pub(super) rules: Vec<Rule>,
    /// `reinvocationPolicy: IfNeeded`
    pub(super) reinvocable: bool,
    /// `failurePolicy: Fail`
    pub(super) fails_closed: bool,
    /// `matchPolicy: Equivalent`
    pub(super) matches_equivalents: bool,
    pub(super) namespace_selector: Result<LabelSelector, String>,
    pub(super) object_selector: Result<LabelSelector, String>,
    pub(super) conditions: Vec<Condition>,
    /// Whether it may be called for a dry run; `None` when it does not say.
    pub(super) dry_run: Option<bool>,
    pub(super) timeout: Duration,
    pub(super) review_version: Option<ReviewVersion>,
    pub(super) client: ClientConfig,
}

/// One entry of `matchConditions`.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) source: Box<str>,
    /// `None` for what cannot be compiled here.
    pub(super) compiled: Option<Expression>,
}

/// One entry of `rules`.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) operations: Vec<Box<str>>,
    pub(super) groups: Vec<Box<str>>,
    pub(super) versions: Vec<Box<str>>,
    /// Resource and subresource.
    pub(super) resources: Vec<(Box<str>, Box<str>)>,
    pub(super) scope: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    All,
    Cluster,
    Namespaced,
    /// None that exists.
    Unknown,
}

/// The form of an AdmissionReview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1Beta1,
}

/// Where a webhook is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientConfig {
    pub(super) target: Target,
    /// PEM. Empty when none is given.
    pub(super) ca_bundle: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Url(Box<str>),
    Service { namespace: Box<str>, name: Box<str>, path: Box<str>, port: u16 },
}

pub(super) fn webhooks(configuration: &Value) -> Vec<Arc<Webhook>> {
    let name = configuration.at("metadata").text("name");
    let hooks = configuration.list("webhooks").iter();
    hooks.map(|hook| Arc::new(Webhook::from_json(name, hook))).collect()
}

impl Webhook {
    fn from_json(configuration: &str, hook: &Value) -> Self {
        let selector = |key: &str| match hook.at(key) {
            Value::Null => LabelSelector::from_object(Some(&Value::Object(Default::default()))),
            given => LabelSelector::from_object(Some(given)),
        };
        let known = |version: &Value| match version.as_str() {
            Some("v1") => Some(ReviewVersion::V1),
            Some("v1beta1") => Some(ReviewVersion::V1Beta1),
            _ => None,
        };
        let seconds = hook.number("timeoutSeconds").and_then(|seconds| seconds.try_into().ok());
        Self {
            name: hook.text("name").into(),
            configuration: configuration.into(),
            reinvocable: hook.text("reinvocationPolicy") == "IfNeeded",
            rules: hook.list("rules").iter().map(Rule::from_json).collect(),
            fails_closed: hook.text("failurePolicy") != "Ignore",
            matches_equivalents: hook.text("matchPolicy") == "Equivalent",
            namespace_selector: selector("namespaceSelector"),
            object_selector: selector("objectSelector"),
            conditions: hook
                .list("matchConditions")
                .iter()
                .map(|condition| Condition::new(condition.text("expression")))
                .collect(),
            dry_run: match hook.text("sideEffects") {
                "" => None,
                effects => Some(effects == "None" || effects == "NoneOnDryRun"),
            },
            timeout: Duration::from_secs(seconds.unwrap_or(10)),
            review_version: hook.list("admissionReviewVersions").iter().find_map(known),
            client: ClientConfig::from_json(hook.at("clientConfig")),
        }
    }
}

impl Condition {
    fn new(source: &str) -> Self {
        Self::over(source, &["object", "oldObject", "request"])
    }

    /// One that may speak of these variables.
    pub(super) fn over(source: &str, variables: &[&str]) -> Self {
        Self { source: source.into(), compiled: cel::condition(source, variables).ok() }
    }
}

impl Rule {
    pub(super) fn from_json(rule: &Value) -> Self {
        let texts = |key: &str| rule.list(key).iter().filter_map(Value::as_str);
        let boxed = |key: &str| texts(key).map(Into::into).collect();
        let resources = texts("resources").map(|resource| {
            let (resource, sub) = resource.split_once('/').unwrap_or((resource, ""));
            (resource.into(), sub.into())
        });
        Self {
            operations: boxed("operations"),
            groups: boxed("apiGroups"),
            versions: boxed("apiVersions"),
            resources: resources.collect(),
            scope: match rule.text("scope") {
                "" | "*" => Scope::All,
                "Cluster" => Scope::Cluster,
                "Namespaced" => Scope::Namespaced,
                _ => Scope::Unknown,
            },
        }
    }
}

impl ClientConfig {
    fn from_json(client: &Value) -> Self {
        let service = client.at("service");
        let target = if service.is_null() {
            Target::Url(client.text("url").into())
        } else {
            let port = service.number("port").and_then(|port| port.try_into().ok());
            Target::Service {
                namespace: service.text("namespace").into(),
                name: service.text("name").into(),
                path: service.text("path").into(),
                port: port.unwrap_or(443),
            }
        };
        let ca_bundle = BASE64.decode(client.text("caBundle")).unwrap_or_default();
        Self { target, ca_bundle }
    }
}
