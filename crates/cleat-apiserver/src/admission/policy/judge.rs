//! One request before all policies: whom it concerns, what their expressions say, what comes of it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Binding, Compiled, ParamKind, Policies, Policy, Validation};
use crate::{
    admission::{Request, Surroundings, Verdict, matching},
    object,
    schema::cel::{Outcome, Scope},
    status::{Cause, GroupResource, Status},
};

/// The longest message an expression may compute, and the longest value of an annotation.
const LONGEST_MESSAGE: usize = 5 * 1024;
const LONGEST_ANNOTATION: usize = 10 * 1024;
const FAILURE_KEY: &str = "validation.policy.admission.k8s.io/validation_failure";

/// A reason to refuse.
struct Denial {
    reason: String,
    message: String,
}

/// What one policy found in one request, by one set of parameters.
#[derive(Default)]
struct Findings {
    /// By the index of the validation; errors outside of any count as of the first.
    denials: Vec<(usize, Denial)>,
    annotations: Vec<(Box<str>, String)>,
    /// Annotations that failed: no binding turns these into warnings.
    broken: Vec<Denial>,
}

pub(super) fn judge(all: &Policies, request: &Request<'_>, around: &dyn Surroundings) -> Verdict {
    let mut verdict = Verdict::allowed();
    let mut denied: Option<Status> = None;
    for policy in all.policies.values() {
        let mut notes: BTreeMap<Box<str>, Vec<String>> = BTreeMap::new();
        let denials = one(all, policy, request, around, &mut notes, &mut verdict);
        if denied.is_none()
            && let Some((binding, denial)) = denials.first()
        {
            denied = Some(refusal(policy, *binding, denial, request));
        }
        for (key, values) in notes {
            verdict.annotations.insert(format!("{}/{key}", policy.name), values.join(", "));
        }
    }
    if let Some(status) = denied {
        verdict.result = Err(status);
    }
    verdict
}

/// Why one policy refuses, with the binding that makes it; warnings and notes go where they belong.
fn one<'a>(
    all: &'a Policies,
    policy: &'a Policy,
    request: &Request<'_>,
    around: &dyn Surroundings,
    notes: &mut BTreeMap<Box<str>, Vec<String>>,
    verdict: &mut Verdict,
) -> Vec<(Option<&'a Binding>, Denial)> {
    let mut denials = Vec::new();
    // Nobody is concerned by a policy that no one bound.
    if all.bindings_of(policy).next().is_none() {
        return denials;
    }
    let misconfigured = |what: &str, why: &str| {
        let message = format!("failed to configure {what}: {why}");
        policy.fails_closed.then(|| Denial { reason: String::new(), message })
    };
    let (resource, kind) = match policy.constraints.matches(request, around) {
        Ok(Some(matched)) => matched,
        Ok(None) => return denials,
        Err(status) => {
            denials.extend(misconfigured("policy", &status.message).map(|denial| (None, denial)));
            return denials;
        }
    };
    let shown = match matching::shown_as(kind, resource, request, around) {
        Ok(shown) => shown,
        Err(status) => {
            denials.extend(misconfigured("policy", &status.message).map(|denial| (None, denial)));
            return denials;
        }
    };
    for binding in all.bindings_of(policy) {
        let concerned = match &binding.resources {
            None => Ok(true),
            Some(matcher) => matcher.matches(request, around).map(|matched| matched.is_some()),
        };
        let parameters = match concerned {
            Ok(false) => continue,
            Ok(true) => parameters(policy.parameters.as_ref(), binding, request, around),
            Err(status) => Err(status.message),
        };
        let parameters = match parameters {
            Ok(parameters) => parameters,
            Err(why) => {
                let denial = misconfigured("binding", &why);
                denials.extend(denial.map(|denial| (Some(binding), denial)));
                continue;
            }
        };
        let mut scope = matching::scope(request, &shown);
        scope.set("namespaceObject", &namespace(request, around));
        for parameters in &parameters {
            scope.set("params", parameters);
            let found = policy.examine(scope.clone());
            for (key, value) in found.annotations {
                let values = notes.entry(key).or_default();
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            denials.extend(found.broken.into_iter().map(|denial| (Some(binding), denial)));
            for (index, denial) in found.denials {
                if act(policy, binding, index, &denial, verdict) {
                    denials.push((Some(binding), denial));
                }
            }
        }
    }
    denials
}

/// Does what a binding wants done about a failed validation; says whether that is to refuse.
fn act(
    policy: &Policy,
    binding: &Binding,
    index: usize,
    denial: &Denial,
    verdict: &mut Verdict,
) -> bool {
    let wants = |action: &str| binding.actions.iter().any(|wanted| **wanted == *action);
    if wants("Warn") {
        verdict.warnings.push(format!(
            "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
            policy.name, binding.name, denial.message
        ));
    }
    if wants("Audit") {
        let note = json!([{
            "message": denial.message, "policy": &*policy.name, "binding": &*binding.name,
            "expressionIndex": index, "validationActions": binding.actions,
        }]);
        // There is room for one; the first stays.
        verdict.annotations.entry(FAILURE_KEY.to_owned()).or_insert_with(|| note.to_string());
    }
    wants("Deny")
}

impl Policy {
    fn examine(&self, mut scope: Scope) -> Findings {
        let mut found = Findings::default();
        let holds = matching::all_hold(&self.conditions, |condition| match &condition.compiled {
            Some(compiled) => scope.holds(compiled),
            None => Err("the expression cannot be compiled".to_owned()),
        });
        match holds {
            Ok(true) => {}
            Ok(false) => return found,
            Err(why) => {
                if self.fails_closed {
                    let denial = Denial { reason: String::new(), message: why };
                    found.denials.push((0, denial));
                }
                return found;
            }
        }
        for (name, variable) in &self.variables {
            match &variable.expression {
                Ok(expression) => scope.compute(name, expression),
                Err(why) => scope.fail(name, why),
            }
        }
        for (index, validation) in self.validations.iter().enumerate() {
            found.denials.extend(self.check(validation, &scope).map(|denial| (index, denial)));
        }
        for annotation in &self.annotations {
            let value = match evaluate(&annotation.value, &scope) {
                Ok(Outcome::Text(text)) => Ok(text),
                Ok(Outcome::Null) => continue,
                Ok(_) => Err(format!(
                    "valueExpression '{}' resulted in unsupported return type. Return type must \
                     be either string or null.",
                    annotation.value.source
                )),
                Err(_) if !self.fails_closed => continue,
                Err(why) => Err(why),
            };
            match value {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => {
                    let text = shortened(text.trim(), LONGEST_ANNOTATION).to_owned();
                    found.annotations.push((annotation.key.clone(), text));
                }
                Err(message) => {
                    found.broken.push(Denial { reason: String::new(), message });
                }
            }
        }
        found
    }

    fn check(&self, validation: &Validation, scope: &Scope) -> Option<Denial> {
        match evaluate(&validation.expression, scope) {
            Ok(Outcome::Boolean(true)) => None,
            Ok(_) => Some(Denial {
                reason: validation.reason.to_string(),
                message: validation.message(scope),
            }),
            Err(message) => self.fails_closed.then(|| Denial { reason: String::new(), message }),
        }
    }
}

impl Validation {
    /// What it computes, what it says, or else what it is.
    fn message(&self, scope: &Scope) -> String {
        let computed = self.message_expression.as_ref().and_then(|expression| {
            match evaluate(expression, scope) {
                Ok(Outcome::Text(text)) => Some(text.trim().to_owned()),
                _ => None,
            }
        });
        let usable = |text: &String| {
            !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n')
        };
        computed.filter(usable).unwrap_or_else(|| match &*self.message {
            "" => format!("failed expression: {}", self.expression.source),
            message => message.to_owned(),
        })
    }
}

fn evaluate(compiled: &Compiled, scope: &Scope) -> Result<Outcome, String> {
    let outcome = match &compiled.expression {
        Ok(expression) => scope.evaluate(expression),
        Err(why) => Err(why.clone()),
    };
    let source = &compiled.source;
    outcome.map_err(|why| format!("expression '{source}' resulted in error: {why}"))
}

/// The beginning of a text, cut between characters.
fn shortened(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

/// The parameters a binding gives a policy, each to be judged by; null for a policy without any.
fn parameters(
    kind: Option<&ParamKind>,
    binding: &Binding,
    request: &Request<'_>,
    around: &dyn Surroundings,
) -> Result<Vec<Value>, String> {
    let (Some(kind), Some(wanted)) = (kind, &binding.parameters) else {
        return Ok(vec![Value::Null]);
    };
    let ParamKind { api_version, kind } = kind;
    let Some(namespaced) = around.is_namespaced(api_version, kind) else {
        return Err(format!(
            "paramKind kind `&ParamKind{{Kind:{kind},APIVersion:{api_version},}}` not known"
        ));
    };
    let namespace = match (namespaced, &*wanted.namespace) {
        (false, "") => "",
        (false, _) => {
            let why = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
            return Err(why.to_owned());
        }
        (true, "") if request.namespace.is_empty() || is_namespace(request) => {
            let why = "cannot use namespaced paramRef in policy binding that matches \
                       cluster-scoped resources";
            return Err(why.to_owned());
        }
        (true, "") => request.namespace,
        (true, namespace) => namespace,
    };
    let found: Vec<Value> = match &wanted.selector {
        None => {
            let one = around.parameter(api_version, kind, namespace, &wanted.name)?;
            one.into_iter().collect()
        }
        Some(selector) => {
            let selector = selector.as_ref().map_err(String::clone)?;
            let mut all = around.parameters(api_version, kind, namespace)?;
            all.retain(|object| selector.matches(object));
            all
        }
    };
    if found.is_empty() && wanted.required {
        let why = "no params found for policy binding with `Deny` parameterNotFoundAction";
        return Err(why.to_owned());
    }
    Ok(found)
}

fn is_namespace(request: &Request<'_>) -> bool {
    request.kind.group.is_empty() && request.kind.kind == "Namespace"
}

/// The namespace of the object, as far as expressions may see it.
fn namespace(request: &Request<'_>, around: &dyn Surroundings) -> Value {
    if request.namespace.is_empty() || is_namespace(request) {
        return Value::Null;
    }
    let Some(mut found) = around.namespace(request.namespace) else { return Value::Null };
    if let Some(metadata) = found.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| key != "managedFields" && key != "ownerReferences");
    }
    if let Some(status) = found.get_mut("status").and_then(Value::as_object_mut) {
        status.retain(|key, _| key == "phase");
    }
    found
}

fn refusal(
    policy: &Policy,
    binding: Option<&Binding>,
    denial: &Denial,
    request: &Request<'_>,
) -> Status {
    let Denial { reason, message } = denial;
    let by = match binding {
        Some(binding) => format!(" with binding '{}'", binding.name),
        None => String::new(),
    };
    let message =
        format!("ValidatingAdmissionPolicy '{}'{by} denied request: {message}", policy.name);
    let reason = if reason.is_empty() { "Invalid" } else { reason };
    // What is about to be named is known by what its name will begin with.
    let name = match (request.name, request.object) {
        ("", Some(object)) => match object::name(object) {
            "" => object::at(object, "/metadata/generateName").unwrap_or_default(),
            name => name,
        },
        (name, _) => name,
    };
    let what =
        GroupResource { group: &request.resource.group, resource: &request.resource.resource };
    let mut status = Status::forbidden(what, name, &message);
    status.code = match reason {
        "Unauthorized" => 401,
        "Forbidden" => 403,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    };
    status.reason = reason.to_owned().into();
    status.with_cause(Cause { message, ..Cause::default() })
}
