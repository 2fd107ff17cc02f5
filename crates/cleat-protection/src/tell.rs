//! Tells how a CriticalService stands, in its status.

use std::time::Duration;

use cleat_core::protection::{Criterion, Knowledge, Probe, Seen, Service, Sight, Tally, report};
use cleat_runtime::queue::Wake;
use jiff::Timestamp;

use crate::Context;

impl Context {
    /// One pass over one service.
    pub(crate) async fn tell(&self, name: &str) -> Wake {
        let Some(object) = self.services.get(name) else {
            self.care(name, None).await;
            Self::lock(&self.denials).remove(name);
            Self::lock(&self.probes).remove(name);
            return Wake::OnChange;
        };
        let service = Service::read(&object);
        self.care(name, Some(&service)).await;
        let mut known = self.reported(&service).await;
        let provider = known.objects.get(&service.provider).cloned().unwrap_or(Sight::NotSeen);
        let mut unsure = false;
        if is_going(&provider, &service) {
            self.look_for_late_ones(&service, &mut known).await;
            unsure = true;
        }
        let needed = service.criteria.iter().any(|criterion| match criterion {
            Criterion::Object(id) => known.objects.get(id) != Some(&Sight::Absent),
            _ => known.tallies.get(criterion) != Some(&Tally::None),
        });
        let (probe, again) = self.probe(&service, &provider, needed).await;
        let seen = Seen {
            known,
            probe: probe.clone(),
            denials: Self::lock(&self.denials).get(name).cloned().unwrap_or_default(),
            cycle: Self::lock(&self.cycles).get(name).cloned().unwrap_or_default(),
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
                        known.tallies.insert(criterion.clone(), self.prove_tally(criterion).await);
                    }
                }
                Criterion::Unreadable(_) => {}
            }
        }
    }
}

/// Whether a provider that was there is gone, or about to be.
fn is_going(provider: &Sight, service: &Service) -> bool {
    match provider {
        Sight::Absent => !service.recorded.is_empty(),
        Sight::Present { uid, terminating } => *terminating && service.means(uid),
        Sight::NotSeen | Sight::Unknown(_) => false,
    }
}
