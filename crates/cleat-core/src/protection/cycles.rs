//! CriticalServices that wait for each other, so that nothing of them can ever go.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::service::{Criterion, Service};
use crate::id::Id;

/// For each service that waits for itself, the shortest way around: names, its own first.
pub fn cycles(services: &[Arc<Service>]) -> BTreeMap<String, Vec<String>> {
    let mut kept: BTreeMap<Id, Vec<&str>> = BTreeMap::new();
    let mut kinds: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for service in services {
        let Id { group, resource, .. } = &service.provider;
        kinds.entry((group, resource)).or_default().push(&service.name);
        // All of these are kept while the provider is needed.
        let around = [service.provider_namespace(), service.provider_definition()];
        let ids = [service.provider.clone(), service.id()];
        for id in ids.into_iter().chain(around.into_iter().flatten()) {
            kept.entry(id).or_default().push(&service.name);
        }
    }
    let waits: BTreeMap<&str, BTreeSet<&str>> = services
        .iter()
        .map(|service| (service.name.as_str(), awaited(service, &kept, &kinds)))
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

/// The services that must let go of something before the provider of this one can go.
fn awaited<'a>(
    service: &Service,
    kept: &BTreeMap<Id, Vec<&'a str>>,
    kinds: &BTreeMap<(&str, &str), Vec<&'a str>>,
) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for criterion in &service.criteria {
        match criterion {
            Criterion::Object(id) => {
                // A definition is not kept by a service of which it is a criterion.
                let own = service.provider_definition().as_ref() == Some(id);
                let keepers = kept.get(id).into_iter().flatten();
                names.extend(keepers.filter(|name| !own || **name != service.name));
            }
            Criterion::Any { group, resource } => {
                names.extend(kinds.get(&(group.as_str(), resource.as_str())).into_iter().flatten());
            }
            Criterion::Finalizer { .. } | Criterion::Unreadable(_) => {}
        }
    }
    names
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
