//! A CriticalService that does not have the expected form, as far as it can be understood: what it
//! protects goes on to be protected, and what it asks for and is not understood is never satisfied.

use alloc::borrow::ToOwned as _;
use alloc::string::ToString as _;
use alloc::vec::Vec;

use cleat_api::criticalservice::{self, CriticalService, CriticalServiceSpec, OnDelete, Provider};
use serde_json::Value;

use super::service::{Criterion, Service};

/// `None`: not even the provider can be told.
pub fn read(object: &Value) -> Option<Service> {
    let spec = object.get("spec")?;
    let provider: Provider = serde_json::from_value(spec.get("provider")?.clone()).ok()?;
    let part = |of: &Value, field: &str| of.get(field).cloned().unwrap_or_default();
    let whole = CriticalService {
        metadata: serde_json::from_value(part(object, "metadata")).ok()?,
        spec: CriticalServiceSpec {
            provider,
            criteria: Vec::new(),
            on_delete: serde_json::from_value(part(spec, "onDelete")).unwrap_or(OnDelete::Protect),
            guard: serde_json::from_value(part(spec, "guard")).unwrap_or_default(),
        },
        status: serde_json::from_value(part(object, "status")).unwrap_or_default(),
    };
    let mut service = Service::read(&whole);
    let unread = |why: &str| Criterion::Unreadable(why.to_owned());
    service.criteria = match spec.get("criteria").and_then(Value::as_array) {
        None => alloc::vec![unread("criteria that are not a list")],
        Some(criteria) => criteria
            .iter()
            .map(|one| match serde_json::from_value::<criticalservice::Criterion>(one.clone()) {
                Ok(one) => Criterion::read(&one),
                Err(error) => unread(&error.to_string()),
            })
            .collect::<Vec<_>>(),
    };
    Some(service)
}
