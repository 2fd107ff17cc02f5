//! `DeleteOptions`, from the body of a request or, without one, from its query.

use serde_json::Value;

use super::Query;
use super::write::dry_run_error;
use crate::gojson;
use crate::status::{FieldError, Status};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    pub grace_period_seconds: Option<i64>,
    pub propagation: Option<Propagation>,
    /// The old way to say `Orphan` and `Background`.
    pub orphan_dependents: Option<bool>,
    /// Delete only the object with this uid.
    pub uid: Option<String>,
    /// Delete only the object as of this version.
    pub resource_version: Option<String>,
    pub dry_run: bool,
}

/// What becomes of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Orphan,
    Background,
    Foreground,
}

impl DeleteOptions {
    pub fn from_query(query: &Query) -> Result<Self, Status> {
        let grace_period_seconds =
            query.integer("gracePeriodSeconds").map_err(Status::bad_request)?;
        let options = Self {
            grace_period_seconds,
            orphan_dependents: query.flag("orphanDependents"),
            ..Self::default()
        };
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        options.checked(query.get("propagationPolicy"), &dry_run)
    }

    /// `body` is a decoded `DeleteOptions`; its apiVersion and kind may be missing.
    pub fn from_body(body: &Value) -> Result<Self, Status> {
        let Some(fields) = body.as_object() else {
            return Err(Status::bad_request(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go \
                 value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                 Kind string \"json:\\\"kind,omitempty\\\"\" }}",
                gojson::json_type(body)
            )));
        };
        let kind = fields.get("kind").and_then(Value::as_str).unwrap_or_default();
        if !matches!(kind, "" | "DeleteOptions") {
            let version = fields.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            return Err(Status::bad_request(format!(
                "no kind \"{kind}\" is registered for version \"{version}\" in scheme \
                 \"pkg/runtime/scheme.go:111\""
            )));
        }
        let field = |name: &str| fields.get(name).filter(|value| !value.is_null());
        let options = Self {
            grace_period_seconds: field("gracePeriodSeconds")
                .map(|value| {
                    value.as_i64().ok_or_else(|| misfit("gracePeriodSeconds", "int64", value))
                })
                .transpose()?,
            orphan_dependents: field("orphanDependents")
                .map(|value| {
                    value.as_bool().ok_or_else(|| misfit("orphanDependents", "bool", value))
                })
                .transpose()?,
            ..Self::default()
        };
        let precondition = |name: &str| {
            let value = field("preconditions")?.get(name).filter(|value| !value.is_null())?;
            let place = format!("preconditions.{name}");
            Some(value.as_str().map(str::to_owned).ok_or_else(|| misfit(&place, "string", value)))
        };
        let options = Self {
            uid: precondition("uid").transpose()?,
            resource_version: precondition("resourceVersion").transpose()?,
            ..options
        };
        let propagation = field("propagationPolicy")
            .map(|value| {
                value
                    .as_str()
                    .ok_or_else(|| misfit("propagationPolicy", "v1.DeletionPropagation", value))
            })
            .transpose()?;
        let dry_run: Vec<&str> = field("dryRun")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|value| value.as_str().unwrap_or_default())
            .collect();
        options.checked(propagation, &dry_run)
    }

    fn checked(self, propagation: Option<&str>, dry_run: &[&str]) -> Result<Self, Status> {
        const FIELD: &str = "propagationPolicy";
        let mut errors = Vec::new();
        if let (Some(policy), Some(_)) = (propagation, self.orphan_dependents) {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(FIELD, policy, detail));
        }
        let propagation = match propagation {
            None => None,
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(FIELD, other, &supported));
                None
            }
        };
        errors.extend(dry_run_error(dry_run));
        if !errors.is_empty() {
            return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", &errors));
        }
        Ok(Self { propagation, dry_run: !dry_run.is_empty(), ..self })
    }
}

fn misfit(field: &str, wanted: &str, value: &Value) -> Status {
    Status::bad_request(format!(
        "json: cannot unmarshal {} into Go struct field DeleteOptions.{field} of type {wanted}",
        gojson::json_type(value)
    ))
}
