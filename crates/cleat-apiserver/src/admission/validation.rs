//! Validation of webhook configurations, validating and mutating alike.
//!
//! Metadata is validated where that of all objects is. Whether a match condition compiles is for
//! the caller to say.

use serde_json::Value;

use crate::{
    names,
    quote::quoted,
    rules::read::Read as _,
    selector::LabelSelector,
    status::{FieldError, Problem},
};

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const URL_FORM: &str = "; desired format: https://host[/path]";

/// What older objects may still violate.
#[derive(Clone, Copy)]
struct Strictness {
    no_side_effects: bool,
    known_review_version: bool,
    unique_names: bool,
    conditions: bool,
}

/// A complaint about a CEL expression, or none.
pub(super) type Compile<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What is wrong with a new configuration.
pub fn validate_configuration(new: &Value, compile: Compile<'_>) -> Vec<FieldError> {
    let strict = Strictness {
        no_side_effects: true,
        known_review_version: true,
        unique_names: true,
        conditions: true,
    };
    validate(new, strict, compile)
}

/// What is wrong with a changed configuration: what was tolerated before stays so.
pub fn validate_configuration_update(
    new: &Value,
    old: &Value,
    compile: Compile<'_>,
) -> Vec<FieldError> {
    let hooks = old.list("webhooks");
    let mut names: Vec<&str> = hooks.iter().map(|hook| hook.text("name")).collect();
    names.sort_unstable();
    let conditions = |object: &Value| -> Vec<Value> {
        object.list("webhooks").iter().map(|hook| hook.at("matchConditions").clone()).collect()
    };
    let strict = Strictness {
        no_side_effects: hooks
            .iter()
            .all(|hook| NO_SIDE_EFFECTS.contains(&hook.text("sideEffects"))),
        known_review_version: hooks.iter().all(has_known_version),
        unique_names: !names.windows(2).any(|pair| matches!(pair, [a, b] if a == b)),
        conditions: conditions(new) != conditions(old),
    };
    validate(new, strict, compile)
}

fn validate(new: &Value, strict: Strictness, compile: Compile<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (index, hook) in new.list("webhooks").iter().enumerate() {
        let at = format!("webhooks[{index}]");
        webhook(hook, &at, strict, compile, &mut errors);
        review_versions(hook, &at, strict, &mut errors);
        let name = hook.text("name");
        if strict.unique_names && !name.is_empty() {
            if seen.contains(&name) {
                errors.push(duplicate(format!("{at}.name"), name));
            } else {
                seen.push(name);
            }
        }
    }
    errors
}

fn webhook(
    hook: &Value,
    at: &str,
    strict: Strictness,
    compile: Compile<'_>,
    errors: &mut Vec<FieldError>,
) {
    qualified_name(hook.text("name"), format!("{at}.name"), errors);
    for (index, one) in hook.list("rules").iter().enumerate() {
        rule(one, &format!("{at}.rules[{index}]"), errors);
    }
    let mut one_of = |key: &str, allowed: &[&str]| {
        if let Some(given) = hook.at(key).as_str().filter(|given| !allowed.contains(given)) {
            errors.push(FieldError::not_supported(format!("{at}.{key}"), given, allowed));
        }
    };
    one_of("failurePolicy", &["Fail", "Ignore"]);
    one_of("matchPolicy", &["Equivalent", "Exact"]);
    let effects: &[&str] = if strict.no_side_effects { &NO_SIDE_EFFECTS } else { &SIDE_EFFECTS };
    one_of("sideEffects", effects);
    if !hook.has("sideEffects") {
        let why = format!("must specify one of {}", effects.join(", "));
        errors.push(FieldError::required(format!("{at}.sideEffects"), why));
    }
    if let Some(seconds) = hook.number("timeoutSeconds").filter(|given| !(1..=30).contains(given)) {
        let why = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(format!("{at}.timeoutSeconds"), seconds, why));
    }
    for key in ["namespaceSelector", "objectSelector"] {
        if hook.has(key) {
            errors.extend(LabelSelector::check_object(hook.at(key), &format!("{at}.{key}")));
        }
    }
    if let Some(given) = hook.at("reinvocationPolicy").as_str() {
        let allowed = ["IfNeeded", "Never"];
        if !allowed.contains(&given) {
            let field = format!("{at}.reinvocationPolicy");
            errors.push(FieldError::not_supported(field, given, &allowed));
        }
    }
    client_config(hook.at("clientConfig"), &format!("{at}.clientConfig"), errors);
    if strict.conditions {
        let at = format!("{at}.matchConditions");
        match_conditions(hook.list("matchConditions"), &at, compile, errors);
    }
}

fn qualified_name(name: &str, at: String, errors: &mut Vec<FieldError>) {
    if name.is_empty() {
        return errors.push(FieldError::required(at, ""));
    }
    let complaints = names::dns_subdomain(name);
    if !complaints.is_empty() {
        errors.push(FieldError::invalid(at, name, complaints.join(",")));
    } else if name.split('.').count() < 3 {
        let why = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(at, name, why));
    }
}

pub(super) fn rule(rule: &Value, at: &str, errors: &mut Vec<FieldError>) {
    lonely_star(rule, at, "operations", "operations", errors);
    for (index, operation) in rule.list("operations").iter().enumerate() {
        if !operation.as_str().is_some_and(|given| OPERATIONS.contains(&given)) {
            let field = format!("{at}.operations[{index}]");
            errors.push(FieldError::not_supported(field, operation.clone(), &OPERATIONS));
        }
    }
    lonely_star(rule, at, "apiGroups", "API groups", errors);
    lonely_star(rule, at, "apiVersions", "API versions", errors);
    for (index, version) in rule.list("apiVersions").iter().enumerate() {
        if version == "" {
            errors.push(FieldError::required(format!("{at}.apiVersions[{index}]"), ""));
        }
    }
    resources(rule, &format!("{at}.resources"), errors);
    let scopes = ["*", "Cluster", "Namespaced"];
    if let Some(scope) = rule.at("scope").as_str().filter(|scope| !scopes.contains(scope)) {
        errors.push(FieldError::not_supported(format!("{at}.scope"), scope, &scopes));
    }
}

/// A list that must not be empty, and in which `*` stands alone.
fn lonely_star(rule: &Value, at: &str, key: &str, what: &str, errors: &mut Vec<FieldError>) {
    let given = rule.list(key);
    let field = format!("{at}.{key}");
    if given.is_empty() {
        errors.push(FieldError::required(field, ""));
    } else if given.len() > 1 && given.iter().any(|one| one == "*") {
        let why = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(field, rule.at(key).clone(), why));
    }
}

fn resources(rule: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let given: Vec<&str> = rule.list("resources").iter().filter_map(Value::as_str).collect();
    if given.is_empty() {
        errors.push(FieldError::required(at, ""));
    }
    let (mut whole, mut of_any): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    // Only the last one without a slash counts, as upstream has it.
    let mut plain = false;
    for (index, one) in given.iter().copied().enumerate() {
        let field = || format!("{at}[{index}]");
        if one.is_empty() {
            errors.push(FieldError::required(field(), ""));
            continue;
        }
        let Some((resource, sub)) = one.split_once('/') else {
            plain = one != "*";
            continue;
        };
        if whole.contains(&resource) {
            let why = format!("if '{resource}/*' is present, must not specify {one}");
            errors.push(FieldError::invalid(field(), one, why));
        }
        if of_any.contains(&sub) {
            let why = format!("if '*/{sub}' is present, must not specify {one}");
            errors.push(FieldError::invalid(field(), one, why));
        }
        if sub == "*" {
            whole.push(resource);
        }
        if resource == "*" {
            of_any.push(sub);
        }
    }
    let list = || rule.at("resources").clone();
    if given.len() > 1 && given.contains(&"*/*") {
        let why = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(at, list(), why));
    }
    if given.contains(&"*") && plain {
        let why = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(at, list(), why));
    }
}

fn client_config(client: &Value, at: &str, errors: &mut Vec<FieldError>) {
    match (client.at("url").as_str(), client.map("service")) {
        (Some(_), Some(_)) | (None, None) => {
            errors.push(FieldError::required(at, "exactly one of url or service is required"));
        }
        (Some(given), None) => url(given, &format!("{at}.url"), errors),
        (None, Some(_)) => service(client.at("service"), &format!("{at}.service"), errors),
    }
}

fn url(url: &str, at: &str, errors: &mut Vec<FieldError>) {
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once("://").unwrap_or(("", ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let port = host.rsplit_once(':').map(|(_, port)| port).filter(|_| !host.ends_with(']'));
    if let Some(port) = port.filter(|port| !port.bytes().all(|b| b.is_ascii_digit())) {
        let (url, port) = (quoted(url), quoted(&format!(":{port}")));
        let why = format!("url must be a valid URL: parse {url}: invalid port {port} after host");
        return errors.push(FieldError::required(at, format!("{why}{URL_FORM}")));
    }
    if scheme != "https" {
        let why = format!("'https' is the only allowed URL scheme{URL_FORM}");
        errors.push(FieldError::invalid(at, scheme, why));
    }
    if host.is_empty() {
        errors.push(FieldError::invalid(at, host, format!("host must be specified{URL_FORM}")));
    }
    if let Some(user) = user {
        let why = "user information is not permitted in the URL";
        errors.push(FieldError::invalid(at, user, why));
    }
    if !fragment.is_empty() {
        let why = "fragments are not permitted in the URL";
        errors.push(FieldError::invalid(at, fragment, why));
    }
    if !query.is_empty() {
        let why = "query parameters are not permitted in the URL";
        errors.push(FieldError::invalid(at, query, why));
    }
}

fn service(service: &Value, at: &str, errors: &mut Vec<FieldError>) {
    // Upstream mixes the two up: it misses the one and names the other.
    for (missing, named) in [("namespace", "name"), ("name", "namespace")] {
        if service.text(missing).is_empty() {
            errors.push(FieldError::required(format!("{at}.{named}"), ""));
        }
    }
    let port = service.number("port").unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(format!("{at}.port"), port, why));
    }
    let path = service.text("path");
    let field = format!("{at}.path");
    match path {
        "" | "/" => return,
        "//" => {
            return errors.push(FieldError::invalid(field, path, "segment[0] may not be empty"));
        }
        _ => {}
    }
    if !path.starts_with('/') {
        errors.push(FieldError::invalid(field.clone(), path, "must start with a '/'"));
    }
    let mut chars = path.chars();
    chars.next();
    let steps = chars.as_str();
    for (index, step) in steps.strip_suffix('/').unwrap_or(steps).split('/').enumerate() {
        if step.is_empty() {
            let why = format!("segment[{index}] may not be empty");
            errors.push(FieldError::invalid(field.clone(), path, why));
            continue;
        }
        for complaint in names::dns_subdomain(step) {
            let why = format!("segment[{index}]: {complaint}");
            errors.push(FieldError::invalid(field.clone(), path, why));
        }
    }
}

pub(super) fn match_conditions(
    conditions: &[Value],
    at: &str,
    compile: Compile<'_>,
    errors: &mut Vec<FieldError>,
) {
    if conditions.len() > 64 {
        let problem = Problem::TooMany { actual: conditions.len(), max: 64 };
        errors.push(FieldError { field: at.to_owned(), problem });
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        let expression = condition.text("expression").trim();
        let field = format!("{at}[{index}].expression");
        if expression.is_empty() {
            errors.push(FieldError::required(field, ""));
        } else if let Some(complaint) = compile(expression) {
            errors.push(FieldError::invalid(field, expression, complaint));
        }
        let name = condition.text("name");
        let field = format!("{at}[{index}].name");
        if name.is_empty() {
            errors.push(FieldError::required(field, ""));
            continue;
        }
        errors.extend(names::refuse(&field, name, names::label_key(name)));
        if seen.contains(&name) {
            errors.push(duplicate(field, name));
        } else {
            seen.push(name);
        }
    }
}

fn review_versions(hook: &Value, at: &str, strict: Strictness, errors: &mut Vec<FieldError>) {
    let at = format!("{at}.admissionReviewVersions");
    let versions = hook.list("admissionReviewVersions");
    if versions.is_empty() {
        let why = format!("must specify one of {}", REVIEW_VERSIONS.join(", "));
        return errors.push(FieldError::required(at, why));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, version) in versions.iter().filter_map(Value::as_str).enumerate() {
        let field = format!("{at}[{index}]");
        if seen.contains(&version) {
            errors.push(FieldError::invalid(field, version, "duplicate version"));
            continue;
        }
        seen.push(version);
        errors.extend(names::refuse(&field, version, names::dns_1035_label(version)));
    }
    if strict.known_review_version && !has_known_version(hook) {
        let why = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::invalid(at, hook.at("admissionReviewVersions").clone(), why));
    }
}

fn has_known_version(hook: &Value) -> bool {
    let mut versions = hook.list("admissionReviewVersions").iter().filter_map(Value::as_str);
    versions.any(|version| REVIEW_VERSIONS.contains(&version))
}

pub(super) fn duplicate(field: String, value: &str) -> FieldError {
    FieldError { field, problem: Problem::Duplicate { value: value.into() } }
}
