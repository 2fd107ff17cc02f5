//! Validation of ValidatingAdmissionPolicies and their bindings.
//!
//! Metadata is validated where that of all objects is. Expressions are compiled, and what does not
//! compile is refused: a policy that cannot be evaluated would refuse everything it concerns.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{CONDITION_VARIABLES, VARIABLES};
use crate::{
    admission::validation::{duplicate, match_conditions, rule},
    names,
    rules::read::Read as _,
    schema::cel::{self, Wanted},
    selector::LabelSelector,
    status::FieldError,
};

const MOST_ANNOTATIONS: usize = 20;
const LONGEST_VALUE_EXPRESSION: usize = 5 * 1024;
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
const EMPTY: &str = "validations or auditAnnotations must contain at least one item";

type Errors = Vec<FieldError>;

/// What is wrong with a policy.
pub fn validate_policy(policy: &Value) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let spec = policy.at("spec");
    match spec.at("failurePolicy").as_str() {
        None => errors.push(FieldError::required("spec.failurePolicy", "")),
        Some(given) => one_of("spec.failurePolicy", given, &["Fail", "Ignore"], &mut errors),
    }
    if spec.has("paramKind") {
        for key in ["apiVersion", "kind"] {
            if spec.at("paramKind").text(key).is_empty() {
                errors.push(FieldError::required(format!("spec.paramKind.{key}"), ""));
            }
        }
    }
    let constraints = spec.at("matchConstraints");
    if constraints.is_null() {
        errors.push(FieldError::required("spec.matchConstraints", ""));
    } else {
        match_resources(constraints, "spec.matchConstraints", &mut errors);
        // What an expression may assume about the object depends on them.
        if constraints.list("resourceRules").is_empty() {
            errors.push(FieldError::required("spec.matchConstraints.resourceRules", ""));
        }
    }
    let condition = |source: &str| cel::condition(source, &CONDITION_VARIABLES).err();
    match_conditions(spec.list("matchConditions"), "spec.matchConditions", &condition, &mut errors);
    let mut known = BTreeSet::new();
    for (index, variable) in spec.list("variables").iter().enumerate() {
        self::variable(variable, &format!("spec.variables[{index}]"), &mut known, &mut errors);
    }
    let (validations, annotations) = (spec.list("validations"), spec.list("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        errors.push(FieldError::required("spec.validations", EMPTY));
        errors.push(FieldError::required("spec.auditAnnotations", EMPTY));
        return errors;
    }
    for (index, one) in validations.iter().enumerate() {
        validation(one, &format!("spec.validations[{index}]"), &known, &mut errors);
    }
    let name = policy.at("metadata").text("name");
    audit_annotations(name, annotations, &known, &mut errors);
    errors
}

/// What is wrong with a binding.
pub fn validate_binding(binding: &Value) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let spec = binding.at("spec");
    match spec.text("policyName") {
        "" => errors.push(FieldError::required("spec.policyName", "")),
        name => {
            errors.extend(names::refuse("spec.policyName", name, names::dns_subdomain(name)));
        }
    }
    if spec.has("paramRef") {
        param_ref(spec.at("paramRef"), &mut errors);
    }
    if spec.has("matchResources") {
        // Upstream's own spelling.
        match_resources(spec.at("matchResources"), "spec.matchResouces", &mut errors);
    }
    actions(spec.list("validationActions"), spec.at("validationActions"), &mut errors);
    errors
}

fn one_of(at: &str, given: &str, allowed: &[&str], errors: &mut Errors) {
    if !allowed.contains(&given) {
        errors.push(FieldError::not_supported(at, given, allowed));
    }
}

fn match_resources(given: &Value, at: &str, errors: &mut Errors) {
    match given.at("matchPolicy").as_str() {
        None => errors.push(FieldError::required(format!("{at}.matchPolicy"), "")),
        Some(policy) => {
            one_of(&format!("{at}.matchPolicy"), policy, &["Equivalent", "Exact"], errors);
        }
    }
    for key in ["namespaceSelector", "objectSelector"] {
        match given.at(key) {
            Value::Null => errors.push(FieldError::required(format!("{at}.{key}"), "")),
            selector => {
                errors.extend(LabelSelector::check_object(selector, &format!("{at}.{key}")));
            }
        }
    }
    for key in ["resourceRules", "excludeResourceRules"] {
        for (index, one) in given.list(key).iter().enumerate() {
            named_rule(one, &format!("{at}.{key}[{index}]"), errors);
        }
    }
}

fn named_rule(one: &Value, at: &str, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    let given = one.list("resourceNames").iter().filter_map(Value::as_str);
    for (index, name) in given.enumerate() {
        let field = format!("{at}.resourceNames[{index}]");
        errors.extend(names::refuse(&field, name, names::path_segment(name)));
        if seen.contains(&name) {
            errors.push(duplicate(field, name));
        } else {
            seen.push(name);
        }
    }
    rule(one, at, errors);
}

fn variable(one: &Value, at: &str, known: &mut BTreeSet<String>, errors: &mut Errors) {
    let name = one.text("name");
    if name.is_empty() {
        errors.push(FieldError::required(format!("{at}.name"), "name is not specified"));
    } else if !is_identifier(name) {
        let why = "must be a valid CEL identifier";
        errors.push(FieldError::invalid(format!("{at}.name"), name, why));
    }
    let source = one.text("expression");
    if source.trim().is_empty() {
        let why = "expression is not specified";
        errors.push(FieldError::required(format!("{at}.expression"), why));
    } else {
        compile(source, known, Wanted::Anything, format!("{at}.expression"), errors);
    }
    known.insert(name.to_owned());
}

/// A name that an expression can say.
fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !RESERVED.contains(&name)
}

const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

fn validation(one: &Value, at: &str, known: &BTreeSet<String>, errors: &mut Errors) {
    let source = one.text("expression");
    if source.trim().is_empty() {
        let why = "expression is not specified";
        errors.push(FieldError::required(format!("{at}.expression"), why));
    } else {
        compile(source, known, Wanted::Boolean, format!("{at}.expression"), errors);
    }
    let computed = one.text("messageExpression");
    let field = format!("{at}.messageExpression");
    if !computed.trim().is_empty() {
        compile(computed, known, Wanted::Text, field, errors);
    } else if !computed.is_empty() {
        errors.push(FieldError::invalid(field, computed, "must be non-empty if specified"));
    }
    let message = one.text("message");
    let field = format!("{at}.message");
    if !message.is_empty() && message.trim().is_empty() {
        let why = "message must be non-empty if specified";
        errors.push(FieldError::invalid(field, message, why));
    } else if message.trim().contains(['\n', '\r']) {
        let why = "must not contain line breaks";
        errors.push(FieldError::invalid(field, message, why));
    }
    if let Some(reason) = one.at("reason").as_str() {
        one_of(&format!("{at}.reason"), reason, &REASONS, errors);
    }
}

fn audit_annotations(
    policy: &str,
    annotations: &[Value],
    known: &BTreeSet<String>,
    errors: &mut Errors,
) {
    if annotations.len() > MOST_ANNOTATIONS {
        let why = format!("must not have more than {MOST_ANNOTATIONS} auditAnnotations");
        let given = Value::Array(annotations.to_vec());
        errors.push(FieldError::invalid("spec.auditAnnotations", given, why));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, one) in annotations.iter().enumerate() {
        let at = format!("spec.auditAnnotations[{index}]");
        let (key, field) = (one.text("key"), format!("{at}.key"));
        if policy.is_empty() {
            let why = "requires metadata.name be non-empty";
            errors.push(FieldError::invalid(field.clone(), key, why));
        } else {
            let whole = format!("{policy}/{}", key.trim());
            errors.extend(names::refuse(&field, &whole, names::label_key(&whole)));
        }
        let source = one.text("valueExpression");
        let at = format!("{at}.valueExpression");
        match source.trim().len() {
            0 => errors.push(FieldError::required(at, "valueExpression is not specified")),
            1..=LONGEST_VALUE_EXPRESSION => {
                compile(source, known, Wanted::Anything, at, errors);
            }
            _ => {
                let why = format!("must not exceed {LONGEST_VALUE_EXPRESSION} bytes in length");
                errors.push(FieldError::required(at, why));
            }
        }
        if seen.contains(&key) {
            errors.push(duplicate(field, key));
        } else {
            seen.push(key);
        }
    }
}

fn compile(
    source: &str,
    known: &BTreeSet<String>,
    wanted: Wanted,
    at: String,
    errors: &mut Errors,
) {
    if let Err(why) = cel::expression(source, &VARIABLES, Some(known), wanted) {
        errors.push(FieldError::invalid(at, source, why));
    }
}

fn param_ref(given: &Value, errors: &mut Errors) {
    const AT: &str = "spec.paramRef";
    let exclusive = "name and selector are mutually exclusive";
    let (name, selects) = (given.text("name"), given.has("selector"));
    if !name.is_empty() {
        let field = format!("{AT}.name");
        errors.extend(names::refuse(&field, name, names::path_segment(name)));
        if selects {
            errors.push(FieldError::forbidden(field, exclusive));
        }
    }
    if selects {
        let field = format!("{AT}.selector");
        errors.extend(LabelSelector::check_object(given.at("selector"), &field));
        if !name.is_empty() {
            errors.push(FieldError::forbidden(field, exclusive));
        }
    }
    if name.is_empty() && !selects {
        errors.push(FieldError::required(AT, "one of name or selector must be specified"));
    }
    let field = format!("{AT}.parameterNotFoundAction");
    match given.text("parameterNotFoundAction") {
        "" => errors.push(FieldError::required(field, "")),
        action => one_of(&field, action, &["Allow", "Deny"], errors),
    }
}

fn actions(given: &[Value], whole: &Value, errors: &mut Errors) {
    const AT: &str = "spec.validationActions";
    let given: Vec<&str> = given.iter().filter_map(Value::as_str).collect();
    if given.is_empty() {
        let why = "at least one validation action is required";
        return errors.push(FieldError::required(AT, why));
    }
    for (index, action) in given.iter().enumerate() {
        let field = format!("{AT}[{index}]");
        one_of(&field, action, &ACTIONS, errors);
        if given.iter().take(index).any(|earlier| earlier == action) {
            errors.push(duplicate(field, action));
        }
    }
    if given.contains(&"Deny") && given.contains(&"Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure \
                   information in the API response and headers serves no purpose)";
        errors.push(FieldError::invalid(AT, whole.clone(), why));
    }
}
