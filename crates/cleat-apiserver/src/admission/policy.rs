//! ValidatingAdmissionPolicies and their bindings: rules in CEL that refuse, warn or leave a note.
//!
//! Read once when they change; judging a request (`judge`) looks at nothing but them, the request
//! and its [`Surroundings`]. There is no `authorizer` in their expressions.

mod judge;
#[cfg(test)]
mod tests;
mod validation;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use super::{
    GroupVersionKind, GroupVersionResource, Request, Surroundings, Verdict,
    configuration::{Condition, Rule},
    is_exempt, matching,
};
use crate::{
    rules::read::Read as _,
    schema::cel::{self, Expression, Wanted},
    selector::LabelSelector,
    status::Status,
};

pub use validation::{validate_binding, validate_policy};

/// What expressions of a policy may speak of, beside `variables`.
const VARIABLES: [&str; 5] = ["object", "oldObject", "request", "params", "namespaceObject"];
/// The same for its match conditions.
const CONDITION_VARIABLES: [&str; 4] = ["object", "oldObject", "request", "params"];

/// All policies and bindings of one server, by name.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    policies: BTreeMap<Box<str>, Arc<Policy>>,
    bindings: BTreeMap<Box<str>, Arc<Binding>>,
}

#[derive(Debug)]
struct Policy {
    name: Box<str>,
    /// `failurePolicy: Fail`
    fails_closed: bool,
    parameters: Option<ParamKind>,
    constraints: Matcher,
    conditions: Vec<Condition>,
    variables: Vec<(Box<str>, Compiled)>,
    validations: Vec<Validation>,
    annotations: Vec<Annotation>,
}

#[derive(Debug)]
struct ParamKind {
    api_version: Box<str>,
    kind: Box<str>,
}

/// `matchConstraints` of a policy, `matchResources` of a binding.
#[derive(Debug)]
struct Matcher {
    rules: Vec<NamedRule>,
    excluded: Vec<NamedRule>,
    namespace_selector: Result<LabelSelector, String>,
    object_selector: Result<LabelSelector, String>,
    /// `matchPolicy: Equivalent`
    equivalents: bool,
}

#[derive(Debug)]
struct NamedRule {
    /// Empty for all names.
    names: Vec<Box<str>>,
    rule: Rule,
}

/// An expression, or why it is none: it was refused when it was written, or is of another time.
#[derive(Debug)]
struct Compiled {
    source: Box<str>,
    expression: Result<Expression, String>,
}

#[derive(Debug)]
struct Validation {
    expression: Compiled,
    message: Box<str>,
    message_expression: Option<Compiled>,
    reason: Box<str>,
}

/// One entry of `auditAnnotations`.
#[derive(Debug)]
struct Annotation {
    key: Box<str>,
    value: Compiled,
}

#[derive(Debug)]
struct Binding {
    name: Box<str>,
    policy: Box<str>,
    parameters: Option<ParamRef>,
    resources: Option<Matcher>,
    /// `Deny`, `Warn`, `Audit`.
    actions: Vec<Box<str>>,
}

#[derive(Debug)]
struct ParamRef {
    namespace: Box<str>,
    name: Box<str>,
    selector: Option<Result<LabelSelector, String>>,
    /// `parameterNotFoundAction: Deny`
    required: bool,
}

impl Policies {
    pub fn put_policy(&mut self, object: &Value) {
        let policy = Policy::from_json(object);
        self.policies.insert(policy.name.clone(), Arc::new(policy));
    }

    pub fn remove_policy(&mut self, name: &str) {
        self.policies.remove(name);
    }

    pub fn put_binding(&mut self, object: &Value) {
        let binding = Binding::from_json(object);
        self.bindings.insert(binding.name.clone(), Arc::new(binding));
    }

    pub fn remove_binding(&mut self, name: &str) {
        self.bindings.remove(name);
    }

    /// What the policies say to a request.
    pub fn judge(&self, request: &Request<'_>, around: &dyn Surroundings) -> Verdict {
        if self.policies.is_empty() || self.bindings.is_empty() || is_exempt(&request.kind) {
            return Verdict::allowed();
        }
        judge::judge(self, request, around)
    }

    fn bindings_of<'a>(&'a self, policy: &'a Policy) -> impl Iterator<Item = &'a Binding> {
        let all = self.bindings.values().map(|binding| &**binding);
        all.filter(move |binding| binding.policy == policy.name)
    }
}

impl Policy {
    fn from_json(object: &Value) -> Self {
        let spec = object.at("spec");
        let conditions = spec.list("matchConditions").iter();
        // A variable may speak of those before it.
        let mut known = BTreeSet::new();
        let mut variables = Vec::new();
        for variable in spec.list("variables") {
            let name = variable.text("name");
            let compiled =
                Compiled::new(variable.text("expression"), Some(&known), Wanted::Anything);
            variables.push((name.into(), compiled));
            known.insert(name.to_owned());
        }
        let parameters = spec.at("paramKind");
        Self {
            name: object.at("metadata").text("name").into(),
            fails_closed: spec.text("failurePolicy") != "Ignore",
            parameters: parameters.is_object().then(|| ParamKind {
                api_version: parameters.text("apiVersion").into(),
                kind: parameters.text("kind").into(),
            }),
            constraints: Matcher::from_json(spec.at("matchConstraints")),
            conditions: conditions
                .map(|one| Condition::over(one.text("expression"), &CONDITION_VARIABLES))
                .collect(),
            variables,
            validations: spec
                .list("validations")
                .iter()
                .map(|one| Validation::from_json(one, &known))
                .collect(),
            annotations: spec
                .list("auditAnnotations")
                .iter()
                .map(|one| Annotation {
                    key: one.text("key").into(),
                    value: Compiled::new(
                        one.text("valueExpression"),
                        Some(&known),
                        Wanted::Anything,
                    ),
                })
                .collect(),
        }
    }
}

impl Validation {
    fn from_json(one: &Value, known: &BTreeSet<String>) -> Self {
        let message = one.text("messageExpression");
        Self {
            expression: Compiled::new(one.text("expression"), Some(known), Wanted::Boolean),
            message: one.text("message").trim().into(),
            message_expression: (!message.trim().is_empty())
                .then(|| Compiled::new(message, Some(known), Wanted::Text)),
            reason: one.text("reason").into(),
        }
    }
}

impl Compiled {
    fn new(source: &str, known: Option<&BTreeSet<String>>, wanted: Wanted) -> Self {
        let expression = cel::expression(source, &VARIABLES, known, wanted);
        Self { source: source.trim().into(), expression }
    }
}

impl Binding {
    fn from_json(object: &Value) -> Self {
        let spec = object.at("spec");
        let (parameters, resources) = (spec.at("paramRef"), spec.at("matchResources"));
        Self {
            name: object.at("metadata").text("name").into(),
            policy: spec.text("policyName").into(),
            parameters: parameters.is_object().then(|| ParamRef {
                namespace: parameters.text("namespace").into(),
                name: parameters.text("name").into(),
                selector: parameters
                    .has("selector")
                    .then(|| LabelSelector::from_object(Some(parameters.at("selector")))),
                required: parameters.text("parameterNotFoundAction") == "Deny",
            }),
            resources: resources.is_object().then(|| Matcher::from_json(resources)),
            actions: texts(spec, "validationActions"),
        }
    }
}

impl Matcher {
    fn from_json(given: &Value) -> Self {
        let selector = |key: &str| match given.at(key) {
            Value::Null => Ok(LabelSelector::EVERYTHING),
            selector => LabelSelector::from_object(Some(selector)),
        };
        let rules = |key: &str| given.list(key).iter().map(NamedRule::from_json).collect();
        Self {
            rules: rules("resourceRules"),
            excluded: rules("excludeResourceRules"),
            namespace_selector: selector("namespaceSelector"),
            object_selector: selector("objectSelector"),
            equivalents: given.text("matchPolicy") != "Exact",
        }
    }

    /// As what the request concerns whoever has this; `None` if it does not.
    fn matches(
        &self,
        request: &Request<'_>,
        around: &dyn Surroundings,
    ) -> Result<Option<(GroupVersionResource, GroupVersionKind)>, Status> {
        let namespace = matching::match_namespace(&self.namespace_selector, request, around);
        let object = matching::match_object(&self.object_selector, request);
        if matches!(namespace, Ok(false)) || matches!(object, Ok(false)) {
            return Ok(None);
        }
        let named = |rules: &[NamedRule]| {
            let rules = rules.iter().filter(|rule| rule.names(request.name)).map(|one| &one.rule);
            matching::match_rules(rules, self.equivalents, request, around)
        };
        if named(&self.excluded).is_some() {
            return Ok(None);
        }
        let matched = match self.rules.is_empty() {
            true => Some((request.resource.clone(), request.kind.clone())),
            false => named(&self.rules),
        };
        if matched.is_some() {
            // What went wrong above only matters to those who are concerned.
            namespace?;
            object?;
        }
        Ok(matched)
    }
}

impl NamedRule {
    fn from_json(given: &Value) -> Self {
        Self { names: texts(given, "resourceNames"), rule: Rule::from_json(given) }
    }

    fn names(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|known| **known == *name)
    }
}

fn texts(given: &Value, key: &str) -> Vec<Box<str>> {
    given.list(key).iter().filter_map(Value::as_str).map(Into::into).collect()
}
