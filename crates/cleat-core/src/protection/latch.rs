//! The drain latch: once a provider is going, nobody new may come to need it.
//!
//! It closes when the provider is seen to go, not when a request to delete it is allowed: answering
//! a review changes nothing. What came in between is found and written into its record.

use alloc::vec::Vec;

use cleat_api::criticalservice::Latch;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::request::{Operation, Request};
use super::service::{Criterion, Service};
use crate::condition::whole_seconds;

/// How long it stays closed at most.
pub const LATCH_LIFE: SignedDuration = SignedDuration::from_hours(1);

pub(super) fn close(uid: &str, now: Timestamp) -> Latch {
    let expires = now.checked_add(LATCH_LIFE).unwrap_or(now);
    Latch {
        uid: uid.into(),
        since: whole_seconds(now),
        expires: whole_seconds(expires),
        late: Vec::new(),
        late_count: 0,
    }
}

pub(super) fn is_closed(service: &Service, now: Timestamp) -> bool {
    let Some(Latch { expires: Time(expires), .. }) = &service.latch else { return false };
    service.protects() && now < *expires
}

/// The criterion that a request would break, were it to pass.
pub(super) fn broken<'a>(service: &'a Service, request: &Request) -> Option<&'a Criterion> {
    let of = |group: &str, resource: &str| {
        request.id.group == group
            && request.id.resource == resource
            && request.subresource.is_empty()
    };
    service.criteria.iter().find(|criterion| match criterion {
        Criterion::Finalizer { group, resource, finalizer } => {
            of(group, resource) && request.new_finalizers.contains(finalizer)
        }
        Criterion::Any { group, resource } => {
            of(group, resource) && request.operation == Operation::Create
        }
        Criterion::Object(id) => *id == request.id && request.operation == Operation::Create,
        Criterion::Unreadable(_) => false,
    })
}
