//! Keeps the ValidatingWebhookConfiguration as the CriticalServices want it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cleat_core::id::{Id, Target};
use cleat_core::protection::cycles::cycles;
use cleat_core::protection::{Service, bundle, rules};
use cleat_core::write::{Action, Outcome, Propagation, Side, Write};
use cleat_runtime::execute::{self, Executor, Read};
use cleat_runtime::follow::Held;
use cleat_runtime::mirror::Look;
use cleat_runtime::queue::Wake;
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use kube::Client;
use serde_json::Value;
use tokio::time::Instant;

use crate::{Context, Key, ended, soon};

/// How long a write may be on its way.
const ON_ITS_WAY: Duration = Duration::from_millis(700);
/// How often to look whether protection begins again.
const WHILE_ENDED: Duration = Duration::from_secs(2);
/// How long replicas that are told different things about themselves let each other be.
const BETWEEN_MOVES: Duration = Duration::from_secs(10);

/// The configuration could not be taken away.
#[derive(Debug, thiserror::Error)]
#[error("failed to end or begin protection by the ValidatingWebhookConfiguration {name}: {why}")]
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

/// Ends protection: that it ends is written down for whoever serves the webhook, the configuration
/// goes, and is seen to stay gone. Nothing else is touched.
///
/// Whatever serves the webhook may go on to run: it makes no configuration until [`begin_again`]. No
/// webhook is asked about its own configuration, so this always works.
pub async fn uninstall(client: &Client, name: &str) -> Result<(), Remains> {
    let executor =
        Executor::new(execute::Config { cluster: Some(client.clone()), ..Default::default() });
    ended::mark(&executor, name, true)
        .await
        .map_err(|why| Remains { name: name.to_owned(), why })?;
    remove_configuration(&executor, name).await
}

/// Takes back that protection was ended. Whoever serves the webhook makes its configuration again.
pub async fn begin_again(client: &Client, name: &str) -> Result<(), Remains> {
    let executor =
        Executor::new(execute::Config { cluster: Some(client.clone()), ..Default::default() });
    ended::mark(&executor, name, false).await.map_err(|why| Remains { name: name.to_owned(), why })
}

async fn remove_configuration(executor: &Executor, name: &str) -> Result<(), Remains> {
    let target = target(name);
    let remains = |why: String| Remains { name: name.to_owned(), why };
    let mut seen_gone = false;
    // Somebody may make it anew, or change it, at the same moment.
    for _ in 0..12 {
        match executor.read(Side::Cluster, &target).await {
            Read::Absent if seen_gone => return Ok(()),
            // One that was on its way when the end was written down may still come.
            Read::Absent => {
                seen_gone = true;
                tokio::time::sleep(ON_ITS_WAY).await;
            }
            Read::NoSuchKind => return Err(remains("the server does not serve it".to_owned())),
            Read::Unknown { message } => return Err(remains(message)),
            Read::Present(object) => {
                seen_gone = false;
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
        let Ok(mut services) = self.services.all() else { return soon() };
        let definition = self.mirror.look(&ended::definition().id);
        // Without the kind a watch tells of nothing any more, not even of what is gone.
        if self.services.trouble().is_some() || definition == Look::Absent {
            match self.prove_services().await {
                Ok(proven) => services = proven,
                Err(_) => return soon(),
            }
        }
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
        let live = match self.configurations.get("", &place.name) {
            Held::Unknown(_) => return soon(),
            Held::Absent => None,
            Held::Present(object) => match object.parse::<ValidatingWebhookConfiguration>() {
                Ok(live) => Some(live),
                Err(_) => return soon(),
            },
        };
        let wanted = self::wanted(&services, &place, live.as_ref(), now);
        if change(&wanted, live.clone()).is_some() {
            // Other replicas may know more by now: what is asked about is never made less on the
            // word of a cache.
            services = match self.prove_services().await {
                Ok(services) => services,
                Err(why) => {
                    tracing::info!(why, "the webhook configuration is left as it is");
                    return soon();
                }
            };
        }
        let wanted = self::wanted(&services, &place, live.as_ref(), now);
        if let Some(action) = change(&wanted, live.clone()) {
            match ended::is_ended(&self.executor, &place.name).await {
                Ok(false) => {}
                Ok(true) => return Wake::After(WHILE_ENDED),
                Err(why) => {
                    tracing::info!(why, "the webhook configuration is left as it is");
                    return soon();
                }
            }
            if let Some(wait) = self.wait_for_others(&wanted, live.as_ref()) {
                return Wake::After(wait);
            }
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

    /// How long to leave a configuration to another replica that only points it elsewhere: two that
    /// are told different addresses must not take turns without a pause.
    fn wait_for_others(
        &self,
        wanted: &ValidatingWebhookConfiguration,
        live: Option<&ValidatingWebhookConfiguration>,
    ) -> Option<Duration> {
        let same = rules_alone(live?) == rules_alone(wanted);
        let mut moved = Self::lock(&self.moved);
        if !same {
            return None;
        }
        let left = moved.and_then(|at| BETWEEN_MOVES.checked_sub(at.elapsed()));
        if left.is_none() {
            *moved = Some(Instant::now());
        }
        left
    }

    fn find_cycles(&self, services: &[Arc<Service>]) {
        let found = cycles(services);
        let before = std::mem::replace(&mut *Self::lock(&self.cycles), found.clone());
        for name in found.keys().chain(before.keys()) {
            if found.get(name) != before.get(name) {
                self.queue.add(Key::Service(name.clone()));
            }
        }
    }
}

/// What the server is to have, given what it has.
fn wanted(
    services: &[Arc<Service>],
    place: &rules::Place,
    live: Option<&ValidatingWebhookConfiguration>,
    now: Timestamp,
) -> ValidatingWebhookConfiguration {
    let mut wanted = rules::configuration(services, place, now);
    if let (Some(webhooks), Some(live)) = (&mut wanted.webhooks, live) {
        let live = live.webhooks.as_deref().unwrap_or_default();
        bundle::share(webhooks, live, |pem| is_over(pem, now));
    }
    wanted
}

fn is_over(pem: &str, now: Timestamp) -> bool {
    let Ok((_, block)) = x509_parser::pem::parse_x509_pem(pem.as_bytes()) else { return true };
    let Ok(certificate) = block.parse_x509() else { return true };
    certificate.validity().not_after.timestamp() < now.as_second()
}

/// What is asked about, wherever that leads.
fn rules_alone(configuration: &ValidatingWebhookConfiguration) -> Vec<ValidatingWebhook> {
    let mut webhooks = configuration.webhooks.clone().unwrap_or_default();
    for webhook in &mut webhooks {
        webhook.client_config = WebhookClientConfig::default();
    }
    webhooks
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
