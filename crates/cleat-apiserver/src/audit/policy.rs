//! Which requests are logged, and how much of them: `Policy` of `audit.k8s.io/v1`.

use serde::Deserialize;

use crate::path::RequestInfo;
use crate::user::User;

/// How much of a request is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Level {
    #[default]
    None,
    /// Who, what and when.
    Metadata,
    /// And what was sent.
    Request,
    /// And what was answered.
    RequestResponse,
}

/// When an event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Stage {
    RequestReceived,
    /// Of requests that last: their answer has begun.
    ResponseStarted,
    ResponseComplete,
    Panic,
}

impl Stage {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

/// Rules, of which the first that fits a request counts. One that none fits is not logged.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default, rename = "metadata")]
    _metadata: serde_json::Value,
    rules: Vec<Rule>,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    #[serde(default)]
    omit_managed_fields: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    level: Level,
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    user_groups: Vec<String>,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    resources: Vec<GroupResources>,
    /// The empty one is that of what lies in none.
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default, rename = "nonResourceURLs")]
    paths: Vec<String>,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GroupResources {
    #[serde(default)]
    group: String,
    /// `pods`, `pods/log`, `pods/*`, `*/scale`, `*`; none are all.
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
}

/// What a policy says about one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) level: Level,
    pub(super) omitted: Vec<Stage>,
    pub(super) omit_managed_fields: bool,
}

/// Why a text is no policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    #[error("not readable as a policy: {0}")]
    Unreadable(String),
    #[error("it is a {kind} of {api_version}, not a Policy of audit.k8s.io/v1")]
    OtherKind { api_version: String, kind: String },
    #[error("it has no rules, so that nothing would ever be logged")]
    NoRules,
    #[error("rules[{0}] names both resources and nonResourceURLs, and would fit nothing")]
    Mixed(usize),
}

impl Policy {
    /// Reads a policy from YAML or JSON.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let policy: Self = serde_saphyr::from_str(text)
            .map_err(|error| PolicyError::Unreadable(error.to_string()))?;
        let Self { api_version, kind, .. } = &policy;
        if (&**api_version, &**kind) != ("audit.k8s.io/v1", "Policy") {
            let (api_version, kind) = (api_version.clone(), kind.clone());
            return Err(PolicyError::OtherKind { api_version, kind });
        }
        if policy.rules.is_empty() {
            return Err(PolicyError::NoRules);
        }
        let mixed = |rule: &Rule| {
            let names_objects = !rule.resources.is_empty() || !rule.namespaces.is_empty();
            names_objects && !rule.paths.is_empty()
        };
        match policy.rules.iter().position(mixed) {
            Some(index) => Err(PolicyError::Mixed(index)),
            None => Ok(policy),
        }
    }

    /// `user` is `None` when nobody could be made out.
    pub(super) fn extent(&self, user: Option<&User>, info: &RequestInfo) -> Extent {
        let Some(rule) = self.rules.iter().find(|rule| rule.fits(user, info)) else {
            return Extent::default();
        };
        let omitted = rule.omit_stages.iter().chain(&self.omit_stages).copied().collect();
        Extent {
            level: rule.level,
            omitted,
            omit_managed_fields: rule.omit_managed_fields.unwrap_or(self.omit_managed_fields),
        }
    }
}

impl Rule {
    fn fits(&self, user: Option<&User>, info: &RequestInfo) -> bool {
        let listed = |list: &[String], wanted: &str| list.iter().any(|one| one == wanted);
        if !self.users.is_empty() && !user.is_some_and(|user| listed(&self.users, &user.name)) {
            return false;
        }
        let member = |user: &User| user.groups.iter().any(|group| listed(&self.user_groups, group));
        if !self.user_groups.is_empty() && !user.is_some_and(member) {
            return false;
        }
        if !self.verbs.is_empty() && !listed(&self.verbs, &info.verb) {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            let here = self.namespaces.is_empty() || listed(&self.namespaces, &info.namespace);
            let of_these =
                self.resources.is_empty() || self.resources.iter().any(|group| group.fits(info));
            return info.is_resource && here && of_these;
        }
        if !self.paths.is_empty() {
            return !info.is_resource && self.paths.iter().any(|path| path_fits(path, &info.path));
        }
        true
    }
}

impl GroupResources {
    fn fits(&self, info: &RequestInfo) -> bool {
        if self.group != info.group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let named = self.resource_names.is_empty() || self.resource_names.contains(&info.name);
        named && self.resources.iter().any(|resource| resource_fits(resource, info))
    }
}

fn resource_fits(pattern: &str, info: &RequestInfo) -> bool {
    let sub = &*info.subresource;
    match pattern.split_once('/') {
        _ if pattern == "*" => true,
        None => sub.is_empty() && pattern == info.resource,
        Some((resource, "*")) => resource == info.resource,
        Some(("*", wanted)) => !sub.is_empty() && wanted == sub,
        Some((resource, wanted)) => resource == info.resource && wanted == sub,
    }
}

fn path_fits(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => path.starts_with(beginning.trim_end_matches('*')),
        None => pattern == path,
    }
}
