//! Tells how a CriticalService stands, in its status.

use std::collections::BTreeSet;
use std::time::Duration;

use cleat_core::id::{Id, Target};
use cleat_core::protection::{
    Criterion, Knowledge, Probe, Seen, Service, Sight, Tally, is_going, report,
};
use cleat_core::write::Side;
use cleat_runtime::execute::Read;
use cleat_runtime::kinds::Mapping;
use cleat_runtime::queue::Wake;
use jiff::Timestamp;

use serde_json::Value;

use crate::Context;
use crate::services::One;

impl Context {
    /// One pass over one service.
    pub(crate) async fn tell(&self, name: &str) -> Wake {
        let object = match self.services.get(name) {
            One::Read(object) => object,
            One::Odd(service) => {
                // Nothing is said of what is not understood; what it names is watched all the same.
                if let Some(service) = service {
                    self.care(name, Some(&service)).await;
                }
                return Wake::OnChange;
            }
            One::Absent => {
                self.care(name, None).await;
                Self::lock(&self.denials).remove(name);
                Self::lock(&self.probes).remove(name);
                return Wake::OnChange;
            }
        };
        let service = Service::read(&object);
        self.care(name, Some(&service)).await;
        let mut known = self.reported(&service).await;
        let provider = known.objects.get(&service.provider).cloned().unwrap_or(Sight::NotSeen);
        let mut unsure = false;
        if is_going(&service, &known) {
            self.look_for_late_ones(&service, &mut known).await;
            unsure = true;
        }
        let needed = service.criteria.iter().any(|criterion| match criterion {
            Criterion::Object(id) => known.objects.get(id) != Some(&Sight::Absent),
            _ => known.tallies.get(criterion) != Some(&Tally::None),
        });
        let (probe, again) = self.probe(&service, &provider, needed).await;
        let undefined = self.undefined(&service).await;
        let seen = Seen {
            known,
            probe: probe.clone(),
            denials: Self::lock(&self.denials).get(name).cloned().unwrap_or_default(),
            cycle: Self::lock(&self.cycles).get(name).cloned().unwrap_or_default(),
            undefined,
        };
        let mut wake = again;
        if let Some(action) = report(&object, &seen, Timestamp::now()) {
            let outcome = self.executor.perform(&action, &Default::default()).await;
            self.services.wrote(&action, &outcome);
            if !outcome.is_done() {
                tracing::debug!(name, ?outcome, "a status was not written");
                let soon = Duration::from_millis(200);
                wake = Some(wake.map_or(soon, |wake| wake.min(soon)));
            }
        }
        if unsure && probe == Probe::NotMade {
            // A consumer may still come in while the server does not know of the latch.
            let soon = Duration::from_secs(5);
            wake = Some(wake.map_or(soon, |wake| wake.min(soon)));
        }
        wake.map_or(Wake::OnChange, Wake::After)
    }

    /// What caches know, taken at their word.
    async fn reported(&self, service: &Service) -> Knowledge {
        let mut known = Knowledge::default();
        known.objects.insert(service.provider.clone(), self.sight(&service.provider, true));
        let around = [service.provider_namespace(), service.provider_definition()];
        for id in around.into_iter().flatten() {
            let mut sight = self.sight(&id, true);
            if matches!(sight, Sight::Present { terminating: true, .. }) {
                // Another of the same name may be there by now.
                sight = self.prove_object(&id).await;
            }
            known.objects.insert(id, sight);
        }
        for criterion in &service.criteria {
            match criterion {
                Criterion::Object(id) => {
                    known.objects.insert(id.clone(), self.sight(id, true));
                }
                Criterion::Finalizer { .. } | Criterion::Any { .. } => {
                    known.tallies.insert(criterion.clone(), self.tally(criterion, true).await);
                }
                Criterion::Unreadable(_) => {}
            }
        }
        known
    }

    /// Watches tell of provider and consumers in no common order: that a consumer came too late is
    /// said only of one that is seen after the provider went.
    async fn look_for_late_ones(&self, service: &Service, known: &mut Knowledge) {
        for criterion in &service.criteria {
            match criterion {
                Criterion::Object(id) => {
                    if matches!(known.objects.get(id), Some(Sight::Present { .. })) {
                        known.objects.insert(id.clone(), self.prove_object(id).await);
                    }
                }
                Criterion::Finalizer { .. } | Criterion::Any { .. } => {
                    if matches!(known.tallies.get(criterion), Some(Tally::Some { .. })) {
                        let tally = self.prove_tally(criterion).await;
                        let tally = self.only_present(criterion, tally).await;
                        known.tallies.insert(criterion.clone(), tally);
                    }
                }
                Criterion::Unreadable(_) => {}
            }
        }
    }

    /// The same tally without samples that a watch remembers and the server does not have.
    async fn only_present(&self, criterion: &Criterion, tally: Tally) -> Tally {
        let Tally::Some { count, exact, samples } = tally else { return tally };
        let mut there = Vec::new();
        for sample in &samples {
            if self.still_counts(criterion, sample).await {
                there.push(sample.clone());
            }
        }
        let gone = samples.len().saturating_sub(there.len());
        match there.is_empty() {
            // One was there a moment ago; the next pass tells.
            true => Tally::Unknown("it is changing now".to_owned()),
            false => Tally::Some { count: count.saturating_sub(gone), exact, samples: there },
        }
    }

    async fn still_counts(&self, criterion: &Criterion, sample: &str) -> bool {
        let Some((group, resource)) = criterion.counted() else { return false };
        let (namespace, name) = sample.split_once('/').unwrap_or(("", sample));
        let [group, resource, namespace, name] =
            [group, resource, namespace, name].map(ToOwned::to_owned);
        let id = Id { group, resource, namespace, name };
        let Ok(version) = self.version(&id).await else { return false };
        let target = Target { version, id };
        let Read::Present(object) = self.executor.read(Side::Cluster, &target).await else {
            return false;
        };
        let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
        match criterion {
            Criterion::Finalizer { finalizer, .. } => {
                finalizers.into_iter().flatten().any(|one| one == finalizer.as_str())
            }
            _ => true,
        }
    }

    /// Criteria that are about kinds that do not exist.
    async fn undefined(&self, service: &Service) -> BTreeSet<Criterion> {
        let mut found = BTreeSet::new();
        for criterion in &service.criteria {
            let kind = match criterion {
                Criterion::Object(id) => Some((id.group.as_str(), id.resource.as_str())),
                other => other.counted(),
            };
            if let Some((group, resource)) = kind
                && self.kinds.preferred(group, resource).await == Mapping::NoSuchKind
            {
                found.insert(criterion.clone());
            }
        }
        found
    }
}
