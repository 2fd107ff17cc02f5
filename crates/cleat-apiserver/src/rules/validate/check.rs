//! The list of errors a validation collects, and the checks that recur in it.

use serde_json::{Map, Value, json};

use crate::names;
use crate::quantity::Quantity;
use crate::rules::read::Read;
use crate::selector::LabelSelector;
use crate::status::{FieldError, Problem};

pub(super) const IMMUTABLE: &str = "field is immutable";
pub(super) const NEGATIVE: &str = "must be greater than or equal to 0";
const NOT_WHOLE: &str = "must be an integer";

/// Errors in the order they were found. Paths are dotted, from the object's root.
#[derive(Default)]
pub(super) struct Errors(pub(super) Vec<FieldError>);

impl Errors {
    pub(super) fn required(&mut self, path: impl Into<String>, detail: &str) {
        self.0.push(FieldError::required(path, detail));
    }

    pub(super) fn invalid(
        &mut self,
        path: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) {
        self.0.push(FieldError::invalid(path, value, detail));
    }

    pub(super) fn forbidden(&mut self, path: impl Into<String>, detail: impl Into<String>) {
        self.0.push(FieldError::forbidden(path, detail));
    }

    pub(super) fn not_supported(
        &mut self,
        path: impl Into<String>,
        value: impl Into<Value>,
        supported: &[&str],
    ) {
        self.0.push(FieldError::not_supported(path, value, supported));
    }

    pub(super) fn duplicate(&mut self, path: impl Into<String>, value: impl Into<Value>) {
        let problem = Problem::Duplicate { value: value.into() };
        self.0.push(FieldError { field: path.into(), problem });
    }

    pub(super) fn not_found(&mut self, path: impl Into<String>, value: impl Into<Value>) {
        let problem = Problem::NotFound { value: value.into() };
        self.0.push(FieldError { field: path.into(), problem });
    }

    pub(super) fn too_long(&mut self, path: impl Into<String>, max: usize) {
        self.0.push(FieldError { field: path.into(), problem: Problem::TooLong { max } });
    }

    /// One `Invalid` for each complaint.
    pub(super) fn complaints(&mut self, path: &str, value: &str, complaints: Vec<String>) {
        for complaint in complaints {
            self.invalid(path, value, complaint);
        }
    }

    /// An enumeration that must have a value.
    pub(super) fn one_of(&mut self, path: impl Into<String>, value: &str, supported: &[&str]) {
        if value.is_empty() {
            self.required(path, "");
        } else if !supported.contains(&value) {
            self.not_supported(path, value, supported);
        }
    }

    /// An enumeration that may be left out.
    pub(super) fn maybe_one_of(&mut self, path: impl Into<String>, value: &Value, any: &[&str]) {
        if let Some(text) = value.as_str()
            && !any.contains(&text)
        {
            self.not_supported(path, text, any);
        }
    }

    /// The named numbers below `path` that may not be negative; what is missing is fine.
    pub(super) fn not_negative(&mut self, path: &str, object: &Value, fields: &[&str]) {
        for field in fields {
            if let Some(number) = object.number(field)
                && number < 0
            {
                self.invalid(format!("{path}.{field}"), number, NEGATIVE);
            }
        }
    }

    /// The named fields below `path` that may not change.
    pub(super) fn immutable(&mut self, path: &str, old: &Value, new: &Value, fields: &[&str]) {
        for field in fields {
            if old.at(field) != new.at(field) {
                let path =
                    if path.is_empty() { (*field).into() } else { format!("{path}.{field}") };
                self.invalid(path, new.at(field).clone(), IMMUTABLE);
            }
        }
    }

    pub(super) fn labels(&mut self, path: &str, labels: &Value) {
        for (key, value) in labels.as_object().into_iter().flatten() {
            self.complaints(path, key, names::label_key(key));
            let value = value.as_str().unwrap_or("");
            self.complaints(path, value, names::label_value(value));
        }
    }

    pub(super) fn selector(&mut self, path: &str, selector: &Value) {
        if !selector.is_null() {
            self.0.extend(LabelSelector::check_object(selector, path));
        }
    }

    pub(super) fn port_number(&mut self, path: &str, number: i64) {
        if !(1..=65535).contains(&number) {
            self.invalid(path, number, "must be between 1 and 65535, inclusive");
        }
    }

    pub(super) fn port_number_or_name(&mut self, path: &str, port: &Value) {
        match port {
            Value::String(name) => self.complaints(path, name, port_name(name)),
            other => self.port_number(path, other.as_i64().unwrap_or(0)),
        }
    }

    pub(super) fn protocol(&mut self, path: String, value: &str) {
        self.one_of(path, value, &["SCTP", "TCP", "UDP"]);
    }

    /// A whole number that is not negative, or a percentage.
    pub(super) fn number_or_percent(&mut self, path: &str, value: &Value) {
        match value {
            Value::String(text) if percent(text).is_none() => {
                let rule = "a valid percent string must be a numeric string followed by an ending \
                            '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
                self.invalid(path, value.clone(), rule);
            }
            Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
                self.invalid(path, value.clone(), NEGATIVE);
            }
            _ => {}
        }
    }

    pub(super) fn at_most_everything(&mut self, path: &str, value: &Value) {
        if value.as_str().and_then(percent).is_some_and(|percent| percent > 100) {
            self.invalid(path, value.clone(), "must not be greater than 100%");
        }
    }

    pub(super) fn quantity(&mut self, path: &str, resource: &str, value: &Value) {
        let Ok(quantity) = Quantity::from_json(value) else { return };
        if quantity.is_negative() {
            self.invalid(path, quantity.to_string(), NEGATIVE);
        }
        let countable = matches!(
            resource,
            "pods"
                | "services"
                | "replicationcontrollers"
                | "resourcequotas"
                | "secrets"
                | "configmaps"
                | "persistentvolumeclaims"
                | "services.nodeports"
                | "services.loadbalancers"
        );
        if (countable || extended(resource)) && !quantity.is_whole() {
            self.invalid(path, quantity.to_string(), NOT_WHOLE);
        }
    }

    /// A name that refers to another object.
    pub(super) fn subdomain(&mut self, path: &str, name: &str) {
        self.complaints(path, name, names::dns_subdomain(name));
    }

    pub(super) fn label(&mut self, path: &str, name: &str) {
        self.complaints(path, name, names::dns_label(name));
    }
}

/// Numbers of users and groups.
pub(super) fn identities(errors: &mut Errors, path: &str, context: &Value, fields: &[&str]) {
    for field in fields {
        if let Some(number) = context.number(field)
            && !(0..=i64::from(i32::MAX)).contains(&number)
        {
            let why = "must be between 0 and 2147483647, inclusive";
            errors.invalid(format!("{path}.{field}"), number, why);
        }
    }
}

/// A resource somebody outside Kubernetes counts: it has a domain, and not Kubernetes' own.
pub(super) fn extended(resource: &str) -> bool {
    match resource.split_once('/') {
        Some((domain, _)) => {
            domain != "kubernetes.io"
                && !domain.ends_with(".kubernetes.io")
                && !resource.starts_with("requests.")
        }
        None => false,
    }
}

pub(super) fn percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    let numeric = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
    numeric.then(|| digits.parse().unwrap_or(i64::MAX))
}

/// What a number or a percentage says, without knowing of what.
pub(super) fn amount(value: &Value) -> i64 {
    match value {
        Value::String(text) => percent(text).or_else(|| text.parse().ok()).unwrap_or(0),
        other => other.as_i64().unwrap_or(0),
    }
}

pub(super) fn port_name(name: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut add = |complaint: &str| complaints.push(complaint.to_owned());
    if name.len() > 15 {
        add("must be no more than 15 characters");
    }
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    if name.is_empty() || !name.bytes().all(plain) {
        add("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.bytes().any(|c| c.is_ascii_lowercase()) {
        add("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        add("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        add("must not begin or end with a hyphen");
    }
    complaints
}

/// A key of a ConfigMap or Secret.
pub(super) fn data_key(key: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if key.len() > 253 {
        complaints.push("must be no more than 253 characters".to_owned());
    }
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.' | b'_');
    if key.is_empty() || !key.bytes().all(plain) {
        complaints.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
             'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
             '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    if key == "." || key == ".." {
        complaints.push(format!("must not be '{key}'"));
    } else if key.starts_with("..") {
        complaints.push("must not start with '..'".to_owned());
    }
    complaints
}

/// A name of an environment variable, or a prefix of one.
pub(super) fn environment_name(name: &str) -> Vec<String> {
    let printable = |c: char| (' '..='~').contains(&c) && c != '=';
    match name.chars().all(printable) {
        true => Vec::new(),
        false => vec![
            "a valid environment variable name must consist only of printable ASCII characters \
             other than '='"
                .to_owned(),
        ],
    }
}

/// Whether `selector` picks `labels`; None when the selector cannot be read.
pub(super) fn picks(selector: &Value, labels: &Value) -> Option<bool> {
    let selector = LabelSelector::from_object((!selector.is_null()).then_some(selector)).ok()?;
    Some(selector.matches_labels(labels.as_object()))
}

/// Go prints a nil map as `null`.
pub(super) fn shown_map(value: &Value) -> Value {
    match value.as_object() {
        Some(map) => Value::Object(map.clone()),
        None => Value::Null,
    }
}

/// A struct as kube-apiserver's internal types print it: with Go's field names.
pub(super) fn shown_struct(fields: &[(&str, &Value)]) -> Value {
    let map: Map<String, Value> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).clone())).collect();
    json!(map)
}
