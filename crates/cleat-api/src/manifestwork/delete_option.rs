//! `deleteOption`: which objects stay on the cluster when they leave a work or the work is deleted.
//!
//! Two spellings are in use: the one OCM ships (`selectivelyOrphans.orphaningRules` with `name` and
//! `namespace`) and the one of its proposal (`resourceName`, `resourceNamespace`, and the bare list
//! `selectivelyOrphan` of its examples). Both are read, into one [`Keep`]; what they mean is decided
//! nowhere else. Matching is exact: there are no patterns here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What happens to a work's objects.
///
/// OCM's schema fills in `propagationPolicy: Foreground` where none is given. Here that would turn
/// a list of rules without a policy into "delete everything, ignore the list" before anybody could
/// refuse it. So there is no default: absent means Foreground, and rules ask for the policy by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": concat!(
        "((!has(self.selectivelyOrphans) || !has(self.selectivelyOrphans.orphaningRules)",
        " || size(self.selectivelyOrphans.orphaningRules) == 0)",
        " && (!has(self.selectivelyOrphan) || size(self.selectivelyOrphan) == 0))",
        " || (has(self.propagationPolicy) && self.propagationPolicy == 'SelectivelyOrphan')",
    ),
    "message": "orphaning rules have an effect only with propagationPolicy: SelectivelyOrphan; set it, or remove the rules",
}]))]
pub struct DeleteOption {
    /// Foreground (the meaning of absent) deletes the objects and keeps the work until they are
    /// gone. Orphan leaves all of them on the cluster. SelectivelyOrphan leaves those that
    /// orphaning rules name and deletes the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub propagation_policy: Option<PropagationPolicy>,
    /// Which objects stay on the cluster, for SelectivelyOrphan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selectively_orphans: Option<SelectivelyOrphans>,
    /// Another way to write selectivelyOrphans.orphaningRules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selectively_orphan: Option<Vec<OrphaningRule>>,
    /// How many seconds after it is Complete the work is deleted. Absent means never, 0 at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PropagationPolicy {
    #[default]
    Foreground,
    Orphan,
    SelectivelyOrphan,
    /// A value of a later version. [`DeleteOption::parse`] refuses it.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectivelyOrphans {
    /// The objects that stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orphaning_rules: Vec<OrphaningRule>,
}

/// One object that stays, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.name) || has(self.resourceName)",
    "message": "name is required",
}]))]
pub struct OrphaningRule {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource, such as configmaps.
    pub resource: String,
    /// The namespace; empty for objects without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Another way to write namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_namespace: Option<String>,
    /// Another way to write name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
}

/// What a work leaves behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    #[default]
    Nothing,
    Everything,
    /// These and no others. Sorted, without repetition, never empty.
    Listed(Vec<OrphanRule>),
}

/// One object that stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrphanRule {
    /// Empty for the core group.
    pub group: String,
    pub resource: String,
    /// Empty for objects without one.
    pub namespace: String,
    pub name: String,
}

/// Why a `deleteOption` means nothing. Whoever meets one must not delete anything on its account.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    #[error(
        "deleteOption.{list} has an effect only with propagationPolicy: SelectivelyOrphan; \
         set it, or remove the rules"
    )]
    RulesWithoutPolicy { list: &'static str },
    #[error(
        "deleteOption.selectivelyOrphans.orphaningRules and deleteOption.selectivelyOrphan name \
         different objects; keep one of the two lists"
    )]
    ListsDisagree,
    #[error(
        "deleteOption.{list}[{index}] has different values for {one} and {other}; keep one of them"
    )]
    FieldsDisagree { list: &'static str, index: usize, one: &'static str, other: &'static str },
    #[error("deleteOption.{list}[{index}] has no {field}; rules name one object each, so set it")]
    Missing { list: &'static str, index: usize, field: &'static str },
    #[error(
        "deleteOption.propagationPolicy is not one of Foreground, Orphan, SelectivelyOrphan; \
         use one of them"
    )]
    UnknownPolicy,
    #[error(
        "deleteOption cannot be read: {why}; see kubectl explain manifestwork.spec.deleteOption"
    )]
    Unreadable { why: String },
}

const SHIPPED: &str = "selectivelyOrphans.orphaningRules";
const PROPOSED: &str = "selectivelyOrphan";

impl DeleteOption {
    /// What it means, whichever way it is written.
    pub fn parse(&self) -> Result<Keep, Problem> {
        let Self {
            propagation_policy,
            selectively_orphans,
            selectively_orphan,
            ttl_seconds_after_finished: _,
        } = self;
        let shipped = selectively_orphans.as_ref().map_or(&[][..], |some| &some.orphaning_rules);
        let proposed = selectively_orphan.as_deref().unwrap_or_default();
        let list = if shipped.is_empty() { PROPOSED } else { SHIPPED };
        let any = !shipped.is_empty() || !proposed.is_empty();
        match propagation_policy.unwrap_or_default() {
            PropagationPolicy::Unknown => Err(Problem::UnknownPolicy),
            PropagationPolicy::Foreground | PropagationPolicy::Orphan if any => {
                Err(Problem::RulesWithoutPolicy { list })
            }
            PropagationPolicy::Foreground => Ok(Keep::Nothing),
            PropagationPolicy::Orphan => Ok(Keep::Everything),
            PropagationPolicy::SelectivelyOrphan => {
                let shipped = rules(SHIPPED, shipped)?;
                let proposed = rules(PROPOSED, proposed)?;
                match (shipped.is_empty(), proposed.is_empty()) {
                    (true, true) => Ok(Keep::Nothing),
                    (true, false) => Ok(Keep::Listed(proposed)),
                    (false, false) if shipped != proposed => Err(Problem::ListsDisagree),
                    (false, _) => Ok(Keep::Listed(shipped)),
                }
            }
        }
    }

    /// The same for what an object holds at `spec.deleteOption`, which may be anything.
    pub fn parse_value(value: Option<&Value>) -> Result<(Keep, Option<i64>), Problem> {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return Ok((Keep::Nothing, None));
        };
        let option = Self::deserialize(value).map_err(|error| {
            // The value itself may be part of the error, and as long as it likes.
            let why = error.to_string().chars().take(200).collect();
            Problem::Unreadable { why }
        })?;
        Ok((option.parse()?, option.ttl_seconds_after_finished))
    }
}

impl Keep {
    /// Whether this object stays.
    pub fn keeps(&self, group: &str, resource: &str, namespace: &str, name: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Listed(rules) => {
                rules.iter().any(|rule| rule.matches(group, resource, namespace, name))
            }
        }
    }
}

impl OrphanRule {
    /// Exact in every part.
    pub fn matches(&self, group: &str, resource: &str, namespace: &str, name: &str) -> bool {
        self.group == group
            && self.resource == resource
            && self.namespace == namespace
            && self.name == name
    }
}

/// Sorted and without repetition, so that lists can be compared.
fn rules(list: &'static str, written: &[OrphaningRule]) -> Result<Vec<OrphanRule>, Problem> {
    let mut rules = Vec::with_capacity(written.len());
    for (index, rule) in written.iter().enumerate() {
        rules.push(rule.parse(list, index)?);
    }
    rules.sort();
    rules.dedup();
    Ok(rules)
}

impl OrphaningRule {
    fn parse(&self, list: &'static str, index: usize) -> Result<OrphanRule, Problem> {
        let Self { group, resource, namespace, name, resource_namespace, resource_name } = self;
        let disagree = |one, other| Problem::FieldsDisagree { list, index, one, other };
        let missing = |field| Problem::Missing { list, index, field };
        let name = either(name, resource_name).ok_or_else(|| disagree("name", "resourceName"))?;
        let namespace = either(namespace, resource_namespace)
            .ok_or_else(|| disagree("namespace", "resourceNamespace"))?;
        if resource.is_empty() {
            return Err(missing("resource"));
        }
        if name.is_empty() {
            return Err(missing("name"));
        }
        Ok(OrphanRule {
            group: group.clone(),
            resource: resource.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

/// The one that is given; `None` when two are and differ.
fn either<'a>(one: &'a Option<String>, other: &'a Option<String>) -> Option<&'a str> {
    let (one, other) = (one.as_deref().unwrap_or_default(), other.as_deref().unwrap_or_default());
    match (one.is_empty(), other.is_empty()) {
        (true, _) => Some(other),
        (false, true) => Some(one),
        (false, false) => (one == other).then_some(one),
    }
}

#[cfg(test)]
mod tests;
