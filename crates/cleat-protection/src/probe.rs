//! Proves that a provider is protected, by asking for its deletion in a dry run.

use std::time::Duration;

use cleat_core::id::{Id, Target};
use cleat_core::protection::denial::Protected;
use cleat_core::protection::{Probe, SEEN, Service, Sight, rules};
use cleat_core::write::Side;
use cleat_runtime::execute::{Read, Rehearsal};
use cleat_runtime::follow::Held;
use tokio::time::Instant;

use crate::Context;

/// How often it is proven anew although nothing changed.
pub(crate) const EVERY: Duration = Duration::from_secs(10 * 60);
/// A server takes a moment to heed a new configuration.
const AGAIN: Duration = Duration::from_millis(500);

/// The last proof, and what it was about.
#[derive(Clone)]
pub(crate) struct Probed {
    about: About,
    at: Instant,
    pub(crate) probe: Probe,
}

#[derive(Clone, PartialEq, Eq)]
struct About {
    provider: String,
    configuration: String,
    needed: bool,
}

impl Context {
    /// What the last dry run showed, or a new one if that is out of date; and when to look again.
    pub(crate) async fn probe(
        &self,
        service: &Service,
        provider: &Sight,
        needed: bool,
    ) -> (Probe, Option<Duration>) {
        if let Some(why) = self.out_of_reach(service) {
            return (Probe::Unprotectable(why), None);
        }
        let Sight::Present { uid, terminating: false } = provider else {
            return (Probe::NotMade, None);
        };
        if !service.means(uid) {
            return (Probe::NotMade, None);
        }
        let name = self.config.place.borrow().name.clone();
        let configuration = match self.configurations.get("", &name) {
            Held::Present(object) => object.resource_version.to_string(),
            Held::Absent | Held::Unknown(_) => return (Probe::NotMade, Some(AGAIN)),
        };
        let about = About { provider: uid.clone(), configuration, needed };
        let last = Self::lock(&self.probes).get(&service.name).cloned();
        if let Some(last) = last.filter(|last| last.about == about && last.at.elapsed() < due(last))
        {
            let left = due(&last).saturating_sub(last.at.elapsed());
            return (last.probe, Some(left));
        }
        let probe = self.try_delete(service, uid).await;
        let probed = Probed { about, at: Instant::now(), probe: probe.clone() };
        let next = due(&probed);
        Self::lock(&self.probes).insert(service.name.clone(), probed);
        (probe, Some(next))
    }

    async fn try_delete(&self, service: &Service, uid: &str) -> Probe {
        let id = &service.provider;
        let version = match self.version(id).await {
            Ok(version) => version,
            Err(_) => return Probe::Unknown("its kind is not served".to_owned()),
        };
        // Another server need not heed that it is only a dry run.
        match self.is_aggregated(&id.group, &version).await {
            Ok(false) => {}
            Ok(true) => {
                let why =
                    "another server than the cluster's own serves its kind, and asks no webhooks";
                return Probe::Unprotectable(why.to_owned());
            }
            Err(why) => return Probe::Unknown(format!("which server serves its kind: {why}")),
        }
        let target = Target { version, id: id.clone() };
        match self.executor.rehearse_delete(Side::Cluster, &target, uid).await {
            Rehearsal::Passed { warnings } => {
                let ours = format!("{SEEN} {}:", service.name);
                if warnings.iter().any(|warning| warning.starts_with(&ours)) {
                    Probe::Seen
                } else {
                    Probe::NotAsked
                }
            }
            Rehearsal::Refused(refusal) => match Protected::of(&refusal) {
                Some(protected) if protected.services.contains(&service.name) => Probe::Refused,
                _ => Probe::Unknown(refusal.message),
            },
            Rehearsal::Unknown(why) => Probe::Unknown(why),
        }
    }

    fn out_of_reach(&self, service: &Service) -> Option<String> {
        if let Some(why) = rules::unfit(service) {
            return Some(why);
        }
        let Id { group, namespace, .. } = &service.provider;
        if group == "admissionregistration.k8s.io" {
            return Some("webhooks are not asked about the configuration of webhooks".to_owned());
        }
        let own = self.config.place.borrow().own_namespace.clone();
        own.filter(|own| own == namespace).map(|own| {
            format!("namespace {own} is where the webhook itself runs, which must stay repairable")
        })
    }

    /// Whether a version of a group is another server's. `Err`: why that cannot be told.
    pub(crate) async fn is_aggregated(&self, group: &str, version: &str) -> Result<bool, String> {
        if group.is_empty() {
            return Ok(false);
        }
        let id = Id {
            group: "apiregistration.k8s.io".to_owned(),
            resource: "apiservices".to_owned(),
            namespace: String::new(),
            name: format!("{version}.{group}"),
        };
        let target = Target { version: "v1".to_owned(), id };
        match self.executor.read(Side::Cluster, &target).await {
            Read::Present(object) => {
                Ok(object.pointer("/spec/service").is_some_and(|service| service.is_object()))
            }
            // A server that does not know the kind has nobody behind it.
            Read::Absent | Read::NoSuchKind => Ok(false),
            Read::Unknown { message } => Err(message),
        }
    }
}

fn due(probed: &Probed) -> Duration {
    match probed.probe {
        Probe::Refused | Probe::Seen => EVERY,
        Probe::NotMade | Probe::NotAsked | Probe::Unknown(_) => AGAIN,
        Probe::Unprotectable(_) => EVERY,
    }
}
