//! While the cluster is joined: its lease, what it says of itself, and its certificate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cleat_api::managedcluster::{CLUSTER_NAME_LABEL, LEASE, ManagedCluster};
use cleat_core::id::{Id, Target};
use cleat_core::lease;
use cleat_core::leave::agent::{Standing, declared, standing, stranger};
use cleat_core::registration::agent::{self, Facts, Observed, Renewal};
use cleat_core::registration::hub;
use cleat_core::registration::identity::Agent;
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runtime::clock::Clock;
use cleat_runtime::execute::{self, Executor};
use cleat_runtime::follow::{Follow, Held, Object, Scope};
use cleat_runtime::mirror::Reason;
use cleat_runtime::queue::{self, Queue, Wake};
use cleat_runtime::tasks::Tasks;
use jiff::SignedDuration;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::facts::Scout;
use super::{Credentials, Error, FIELD_MANAGER, Keep, Line, enrol, keys};
use crate::leave::Presence;
use crate::work::hub_hash;

/// How soon to try again what did not work.
const AGAIN: Duration = Duration::from_secs(5);

/// How soon to try again what the hub may be about to make possible.
const SOON: Duration = Duration::from_secs(1);

/// How soon to try again to renew a certificate.
const RENEW_AGAIN: Duration = Duration::from_secs(60);

/// How often to look whether a new certificate was issued, and how often at most.
const ISSUED: Duration = Duration::from_millis(500);
const LOOKS: usize = 120;

/// A cluster that has joined.
pub struct Live {
    pub name: String,
    pub cluster_id: String,
    /// The hub's address exactly as it was given; ledgers are named after its hash.
    pub hub_address: String,
    pub hub_client: Client,
    pub cluster_client: Client,
    pub clock: Clock,
    /// Anything, again and again: it spreads what many agents do.
    pub dice: Arc<dyn Fn() -> u16 + Send + Sync>,
    /// How the certificate is renewed, where there is one.
    pub rotation: Option<Rotation>,
    /// Told how the cluster stands with its hub.
    pub presence: Presence,
}

/// What renewing the certificate takes.
pub struct Rotation {
    pub line: Line,
    pub keep: Keep,
    pub credentials: Credentials,
    pub lifetime_seconds: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Chore {
    Lease,
    Status,
    Certificate,
}

struct Context {
    name: String,
    cluster_id: String,
    executor: Executor,
    clusters: Follow,
    scout: Mutex<Scout>,
    clock: Clock,
    dice: Arc<dyn Fn() -> u16 + Send + Sync>,
    rotation: Option<Mutex<Turning>>,
    presence: Presence,
    /// The lease was renewed once. Before, every change is a reason to try.
    alive: Arc<AtomicBool>,
    queue: Queue<Chore>,
}

/// A certificate, and when it is due.
struct Turning {
    rotation: Rotation,
    /// Drawn once per certificate: a new draw at every look would always end early.
    dice: u16,
    last: Option<Renewal>,
}

/// Keeps the cluster alive on the hub, until `tasks` end.
pub fn live(live: Live, tasks: &Tasks) {
    let Live {
        name,
        cluster_id,
        hub_address,
        hub_client,
        cluster_client,
        clock,
        dice,
        rotation,
        presence,
    } = live;
    let queue = Queue::new();
    let executor = Executor::new(execute::Config {
        hub: Some(hub_client.clone()),
        cluster: Some(cluster_client.clone()),
        field_manager: Some(FIELD_MANAGER.to_owned()),
        user_agent: Some(FIELD_MANAGER.to_owned()),
        ..Default::default()
    });
    let hub::Place { group, version, resource } = hub::place();
    let scope = Scope {
        group,
        version,
        resource,
        fields: Some(format!("metadata.name={name}")),
        ..Scope::default()
    };
    let adding = queue.clone();
    let alive = Arc::new(AtomicBool::new(false));
    let renewed = Arc::clone(&alive);
    let clusters = Follow::start(hub_client, tasks, scope, move |_, _| {
        if !renewed.load(Ordering::Relaxed) {
            adding.add(Chore::Lease);
        }
        adding.add(Chore::Status);
    });
    let place = rotation.as_ref().and_then(|rotation| match &rotation.keep {
        Keep::Secret { namespace } => Some(namespace.clone()),
        Keep::Directory(_) => None,
    });
    let rotation = rotation.map(|rotation| {
        queue.add(Chore::Certificate);
        Mutex::new(Turning { rotation, dice: dice(), last: None })
    });
    let facts = Facts {
        cluster_id: cluster_id.clone(),
        hub_hash: hub_hash(&hub_address),
        agent_namespace: place.unwrap_or_default(),
        ..Facts::default()
    };
    let scout = Mutex::new(Scout::new(cluster_client, facts));
    let context = Arc::new(Context {
        name,
        cluster_id,
        executor,
        clusters,
        scout,
        clock,
        dice,
        rotation,
        presence,
        alive,
        queue: queue.clone(),
    });
    queue.add(Chore::Lease);
    let (closing, mut stop) = (queue.clone(), tasks.stop());
    tasks.spawn("registration: end", async move {
        stop.stopped().await;
        closing.close();
    });
    tasks.spawn("registration", async move {
        let handle = move |chore| {
            let context = Arc::clone(&context);
            async move { context.handle(chore).await }
        };
        queue::run(queue, 3, handle).await;
    });
}

impl Context {
    async fn handle(&self, chore: Chore) -> Wake {
        self.judge();
        match chore {
            Chore::Lease => self.renew_lease().await,
            Chore::Status => self.tell().await,
            Chore::Certificate => self.renew_certificate().await,
        }
    }

    /// The cluster as the hub has it, unless another has its name there: that one is not kept alive by
    /// us, nor told how we are.
    fn cluster(&self) -> Option<ManagedCluster> {
        match self.clusters.get("", &self.name) {
            Held::Present(object) if !self.is_stranger(&object) => object.parse().ok(),
            _ => None,
        }
    }

    fn is_stranger(&self, object: &Object) -> bool {
        let object = object.parse::<Value>();
        object.is_ok_and(|object| stranger(&object, &self.cluster_id).is_some())
    }

    /// How the cluster stands with its hub, as far as the hub's last words tell.
    fn judge(&self) {
        let held = self.clusters.get("", &self.name);
        let standing = match (held, self.clusters.trouble()) {
            (_, Some(Reason::Forbidden(message)))
            | (Held::Unknown(Reason::Forbidden(message)), _) => Standing::Unrecognized(message),
            (Held::Absent, None) => {
                Standing::Unrecognized(format!("it has no cluster {}", self.name))
            }
            (Held::Present(object), _) => match object.parse() {
                Ok(cluster) => {
                    let standing = standing(&cluster, &self.cluster_id);
                    // What is declared of another is not declared of us.
                    let ours = !matches!(standing, Standing::Unrecognized(_));
                    if let Some(strategy) = declared(&cluster).filter(|_| ours) {
                        self.presence.set_strategy(strategy);
                    }
                    standing
                }
                Err(_) => return,
            },
            // Out of reach is no answer.
            (Held::Absent | Held::Unknown(_), _) => return,
        };
        self.presence.set(standing);
    }

    async fn renew_lease(&self) -> Wake {
        let Some(cluster) = self.cluster() else {
            return Wake::After(SOON);
        };
        let now = self.clock.now();
        let patch = json!({
            "metadata": { "labels": { CLUSTER_NAME_LABEL: self.name } },
            "spec": {
                "holderIdentity": LEASE,
                "leaseDurationSeconds": cluster.spec.lease_duration_seconds.max(1),
                "renewTime": format!("{now:.6}"),
            },
        });
        let id = Id {
            group: "coordination.k8s.io".to_owned(),
            resource: "leases".to_owned(),
            namespace: self.name.clone(),
            name: LEASE.to_owned(),
        };
        let target = Target { version: "v1".to_owned(), id };
        let write = Write::Merge(patch);
        if !self.write("renew the lease", Action { side: Side::Hub, target, write }).await {
            return Wake::After(SOON);
        }
        self.alive.store(true, Ordering::Relaxed);
        let duration = lease::duration(cluster.spec.lease_duration_seconds);
        Wake::After(unsigned(lease::next_renewal(duration, (self.dice)())))
    }

    async fn tell(&self) -> Wake {
        let Some(cluster) = self.cluster() else { return Wake::OnChange };
        if !cluster.spec.hub_accepts_client {
            return Wake::OnChange;
        }
        let now = self.clock.now();
        let mut scout = self.scout.lock().await;
        let facts = scout.look(now).await;
        let renewal = match &self.rotation {
            Some(turning) => turning.lock().await.last.clone(),
            None => None,
        };
        let seen = Observed { cluster: &cluster, facts, renewal: renewal.as_ref(), now };
        let told = match agent::report(&seen) {
            Some(action) => self.write("tell how the cluster is", action).await,
            None => true,
        };
        if self.rotation.is_some() {
            self.queue.add(Chore::Certificate);
        }
        if facts.failing.is_some() || !told {
            return Wake::After(AGAIN);
        }
        Wake::After(unsigned(lease::duration(cluster.spec.lease_duration_seconds)).max(AGAIN))
    }

    async fn renew_certificate(&self) -> Wake {
        let Some(turning) = &self.rotation else { return Wake::OnChange };
        let (credentials, due) = {
            let turning = turning.lock().await;
            let credentials = turning.rotation.credentials.clone();
            let due = credentials
                .validity()
                .map(|(from, until)| agent::renew_at(from, until, turning.dice));
            (credentials, due)
        };
        let left = due.map(|due| due.duration_since(self.clock.now())).unwrap_or_default();
        if left > SignedDuration::ZERO {
            return Wake::After(unsigned(left));
        }
        // The name in the certificate is another's by now.
        if let Held::Present(object) = self.clusters.get("", &self.name)
            && self.is_stranger(&object)
        {
            return Wake::After(RENEW_AGAIN);
        }
        let renewed = self.new_certificate(&credentials, turning).await;
        let mut turning = turning.lock().await;
        let (last, wake) = match renewed {
            Ok(()) => (Renewal::Done, Duration::from_secs(1)),
            Err(error) => {
                tracing::warn!(%error, "the certificate cannot be renewed");
                (Renewal::Failed(error.to_string()), RENEW_AGAIN)
            }
        };
        turning.last = Some(last);
        self.queue.add(Chore::Status);
        Wake::After(wake)
    }

    async fn new_certificate(
        &self,
        old: &Credentials,
        turning: &Mutex<Turning>,
    ) -> Result<(), Error> {
        let who = Agent::new(&old.cluster, &old.agent);
        let asked = keys::ask(&who)?;
        let lifetime = turning.lock().await.rotation.lifetime_seconds;
        let request = enrol::submit(&self.executor, &who, &asked, lifetime).await?;
        let mut pause = tokio::time::interval(ISSUED);
        for _ in 0..LOOKS {
            pause.tick().await;
            if let Some(certificate) = enrol::issued(&self.executor, &request).await? {
                let fresh = Credentials { certificate, key: asked.key, ..old.clone() };
                let client = fresh.connect().await?;
                let mut turning = turning.lock().await;
                // Kept before it is used: what is in use must survive a restart.
                turning.rotation.keep.renew(&self.executor, &fresh).await?;
                turning.rotation.line.replace(client);
                turning.rotation.credentials = fresh;
                turning.dice = (self.dice)();
                tracing::info!(cluster = self.name, "the certificate was renewed");
                return Ok(());
            }
        }
        let message = "nobody has approved it".to_owned();
        Err(Error::Denied { name: request, message })
    }

    /// Whether it was done.
    async fn write(&self, what: &str, action: Action) -> bool {
        let outcome = self.executor.execute(vec![vec![action]]).await.into_iter().flatten().next();
        match outcome {
            Some(Outcome::Done(_)) => true,
            Some(Outcome::Refused(refusal)) => {
                tracing::info!(cluster = self.name, what, message = refusal.message, "refused");
                false
            }
            Some(Outcome::Lost(message)) => {
                tracing::info!(cluster = self.name, what, message, "the hub does not answer");
                false
            }
            _ => false,
        }
    }
}

fn unsigned(duration: SignedDuration) -> Duration {
    Duration::try_from(duration).unwrap_or_default()
}
