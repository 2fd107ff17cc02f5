//! Keeps the ValidatingWebhookConfiguration as the CriticalServices want it.

use std::collections::BTreeSet;
use std::time::Duration;

use cleat_core::id::{Id, Target};
use cleat_core::protection::cycles::cycles;
use cleat_core::protection::rules;
use cleat_core::write::{Action, Outcome, Propagation, Side, Write};
use cleat_runtime::execute::{self, Executor, Read};
use cleat_runtime::follow::Held;
use cleat_runtime::queue::Wake;
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::Client;
use serde_json::Value;

use crate::{Context, Key, soon};

/// The configuration could not be taken away.
#[derive(Debug, thiserror::Error)]
#[error("failed to remove the ValidatingWebhookConfiguration {name}: {why}")]
#[non_exhaustive]
pub struct Remains {
    pub name: String,
    pub why: String,
}

fn target(name: &str) -> Target {
    let id = Id {
        group: "admissionregistration.k8s.io".to_owned(),
        resource: "validatingwebhookconfigurations".to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    };
    Target { version: "v1".to_owned(), id }
}

/// Ends protection: the configuration goes first, and is seen gone. Nothing else is touched.
///
/// Whatever serves the webhook must run until then, or be beyond repair: no webhook is asked about
/// its own configuration, so this always works.
pub async fn uninstall(client: &Client, name: &str) -> Result<(), Remains> {
    let executor =
        Executor::new(execute::Config { cluster: Some(client.clone()), ..Default::default() });
    remove_configuration(&executor, name).await
}

/// The same with an executor that is there already.
pub async fn remove_configuration(executor: &Executor, name: &str) -> Result<(), Remains> {
    let target = target(name);
    let remains = |why: String| Remains { name: name.to_owned(), why };
    // Somebody may make it anew, or change it, at the same moment.
    for _ in 0..4 {
        match executor.read(Side::Cluster, &target).await {
            Read::Absent => return Ok(()),
            Read::NoSuchKind => return Err(remains("the server does not serve it".to_owned())),
            Read::Unknown { message } => return Err(remains(message)),
            Read::Present(object) => {
                let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
                let action = delete(target.clone(), uid.unwrap_or_default());
                let outcome = executor.perform(&action, &Default::default()).await;
                if let Outcome::Refused(refusal) = outcome {
                    return Err(remains(refusal.message));
                }
            }
        }
    }
    Err(remains("it comes back".to_owned()))
}

fn delete(target: Target, uid: &str) -> Action {
    let write = Write::Delete {
        uid: uid.to_owned(),
        resource_version: None,
        propagation: Propagation::Background,
    };
    Action { side: Side::Cluster, target, write }
}

impl Context {
    /// One pass over the configuration, and over what all services have in common.
    pub(crate) async fn keep(&self) -> Wake {
        let Ok(services) = self.services.all() else { return soon() };
        let kinds: BTreeSet<_> = services
            .iter()
            .flat_map(|service| &service.criteria)
            .filter_map(|criterion| criterion.counted())
            .map(|(group, resource)| (group.to_owned(), resource.to_owned()))
            .collect();
        self.knowers.keep_kinds(&kinds);
        self.find_cycles(&services);
        let now = Timestamp::now();
        let place = self.config.place.borrow().clone();
        let wanted = rules::configuration(&services, &place, now);
        let live = match self.configurations.get("", &place.name) {
            Held::Unknown(_) => return soon(),
            Held::Absent => None,
            Held::Present(object) => match object.parse::<ValidatingWebhookConfiguration>() {
                Ok(live) => Some(live),
                Err(_) => return soon(),
            },
        };
        if let Some(action) = change(&wanted, live) {
            let outcome = self.executor.perform(&action, &Default::default()).await;
            self.configurations.wrote(&action, &outcome);
            if !outcome.is_done() {
                tracing::info!(?outcome, "the webhook configuration was not written");
                return soon();
            }
            tracing::info!(webhooks = wanted.webhooks.iter().flatten().count(), "configured");
            // Each proves anew that it is protected.
            for service in services.iter() {
                self.queue.add(Key::Service(service.name.clone()));
            }
        }
        let latches = services.iter().filter_map(|service| service.latch.as_ref());
        let next = latches.map(|latch| latch.expires.0).filter(|expires| *expires > now).min();
        next.map_or(Wake::OnChange, |expires| {
            Wake::After(Duration::try_from(expires.duration_since(now)).unwrap_or_default())
        })
    }

    fn find_cycles(&self, services: &[std::sync::Arc<cleat_core::protection::Service>]) {
        let found = cycles(services);
        let before = std::mem::replace(&mut *Self::lock(&self.cycles), found.clone());
        for name in found.keys().chain(before.keys()) {
            if found.get(name) != before.get(name) {
                self.queue.add(Key::Service(name.clone()));
            }
        }
    }
}

/// What brings the server from what it has to what it is to have.
fn change(
    wanted: &ValidatingWebhookConfiguration,
    live: Option<ValidatingWebhookConfiguration>,
) -> Option<Action> {
    let target = target(wanted.metadata.name.as_deref().unwrap_or_default());
    let empty = wanted.webhooks.iter().flatten().next().is_none();
    let write = match live {
        None if empty => return None,
        None => Write::Create(serde_json::to_value(wanted).ok()?),
        Some(live) if empty => {
            return Some(delete(target, live.metadata.uid.as_deref().unwrap_or_default()));
        }
        Some(live) if live.webhooks == wanted.webhooks => return None,
        Some(mut live) => {
            live.webhooks.clone_from(&wanted.webhooks);
            Write::Replace(serde_json::to_value(live).ok()?)
        }
    };
    Some(Action { side: Side::Cluster, target, write })
}
