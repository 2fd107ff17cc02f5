//! CriticalServices that wait for each other, so that nothing of them can ever go.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::service::{Criterion, Service, namespace_id};

/// For each service that waits for itself, the shortest way around: names, its own first.
pub fn cycles(services: &[Arc<Service>]) -> BTreeMap<String, Vec<String>> {
    let waits: BTreeMap<&str, BTreeSet<&str>> = services
        .iter()
        .map(|service| {
            let others = services.iter().filter(|other| waits_for(service, other));
            (service.name.as_str(), others.map(|other| other.name.as_str()).collect())
        })
        .collect();
    let mut found = BTreeMap::new();
    for start in waits.keys() {
        if let Some(way) = way_back(start, &waits) {
            let way = way.into_iter().map(Into::into).collect();
            found.insert(String::from(*start), way);
        }
    }
    found
}

/// Whether the provider of one cannot go before the other lets go of something.
fn waits_for(service: &Service, other: &Service) -> bool {
    service.criteria.iter().any(|criterion| match criterion {
        // The other's provider, its namespace and itself are all kept while it is needed.
        Criterion::Object(id) => {
            *id == other.provider
                || *id == other.id()
                || (!other.provider.namespace.is_empty()
                    && *id == namespace_id(&other.provider.namespace))
        }
        Criterion::Any { group, resource } => {
            *group == other.provider.group && *resource == other.provider.resource
        }
        Criterion::Finalizer { .. } | Criterion::Unreadable(_) => false,
    })
}

fn way_back<'a>(
    start: &'a str,
    waits: &BTreeMap<&'a str, BTreeSet<&'a str>>,
) -> Option<Vec<&'a str>> {
    let mut from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(here) = next.pop_front() {
        for there in waits.get(here).into_iter().flatten() {
            if *there == start {
                let mut way = vec![here];
                let mut step = here;
                while let Some(before) = from.get(step).filter(|_| step != start) {
                    way.push(before);
                    step = before;
                }
                way.reverse();
                return Some(way);
            }
            if !from.contains_key(there) {
                from.insert(there, here);
                next.push_back(there);
            }
        }
    }
    None
}
