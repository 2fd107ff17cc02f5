//! The IO half of delete protection on one cluster: caches, proofs, reviews, the webhook
//! configuration and the status of CriticalServices.
//!
//! What is decided, `cleat_core::protection` decides. Answering a review writes nothing, to any
//! server. This crate neither listens nor makes certificates: whoever runs it brings a socket, or
//! none at all. Several may run for one cluster; knowing the same they answer, and write, the same.

mod ended;
mod keep;
mod knowledge;
mod probe;
mod prove;
mod review;
mod services;
mod tell;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cleat_api::criticalservice::{DEFINITION, GROUP, RESOURCE, VERSION};
use cleat_core::protection::rules::Place;
use cleat_core::protection::{Criterion, Sight, Tally, bundle};
use cleat_runtime::census::Turns;
use cleat_runtime::execute::{self, Executor};
use cleat_runtime::follow::{Follow, Held, Scope};
use cleat_runtime::kinds::Kinds;
use cleat_runtime::mirror::Mirror;
use cleat_runtime::queue::{self, Queue, Wake};
use cleat_runtime::tasks::Tasks;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;

pub use self::keep::{begin_again, uninstall};
use self::knowledge::Knowers;
pub use self::review::{BadReview, LONGEST_BODY};
use self::services::Services;

/// Where reviews are answered, below whatever the configuration points to.
pub const PATH: &str = "/protect";

/// The usual name of the configuration.
pub const CONFIGURATION: &str = "cleat-protection";

/// As whom this writes.
const FIELD_MANAGER: &str = "cleat-protection";

const WORKERS: usize = 8;

/// Who cares about the definition of CriticalServices, beside those who are called something.
const OURSELVES: &str = "\u{0}ourselves";

/// What protection of one cluster is told.
#[derive(Clone)]
pub struct Config {
    pub client: Client,
    /// How the API server finds us. It may change while this runs, as authorities do.
    pub place: watch::Receiver<Place>,
    /// Only CriticalServices with these labels, as `kubectl get -l` takes it.
    pub labels: Option<String>,
}

/// Protects one cluster for as long as its tasks run. Its clones are the same.
#[derive(Clone)]
pub struct Protection {
    context: Arc<Context>,
}

/// What to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Configuration,
    Service(String),
}

struct Context {
    config: Config,
    executor: Executor,
    services: Services,
    configurations: Follow,
    mirror: Mirror,
    kinds: Kinds,
    knowers: Knowers,
    turns: Turns,
    denials: Mutex<BTreeMap<String, Vec<cleat_api::criticalservice::Denial>>>,
    probes: Mutex<BTreeMap<String, probe::Probed>>,
    cycles: Mutex<BTreeMap<String, Vec<String>>>,
    /// When the configuration was last pointed here from elsewhere.
    moved: Mutex<Option<Instant>>,
    /// Sent to whenever more may be known than before.
    learned: watch::Sender<()>,
    queue: Queue<Key>,
    tasks: Tasks,
}

/// Starts to protect; it goes on until `tasks` are shut down.
pub fn start(config: Config, tasks: &Tasks) -> Protection {
    let queue: Queue<Key> = Queue::new();
    let client = config.client.clone();
    let executor = Executor::new(execute::Config {
        cluster: Some(client.clone()),
        field_manager: Some(FIELD_MANAGER.to_owned()),
        user_agent: Some(FIELD_MANAGER.to_owned()),
        ..execute::Config::default()
    });
    let knowers = Knowers::default();
    let learned = watch::Sender::new(());
    let scope = Scope { labels: config.labels.clone(), ..scope() };
    let services = Services::start(client.clone(), tasks, scope, {
        let queue = queue.clone();
        move |name| {
            queue.add(Key::Service(name.to_owned()));
            queue.add(Key::Configuration);
        }
    });
    let configurations = {
        let queue = queue.clone();
        let name = config.place.borrow().name.clone();
        let scope = Scope {
            group: "admissionregistration.k8s.io".to_owned(),
            version: "v1".to_owned(),
            resource: "validatingwebhookconfigurations".to_owned(),
            fields: Some(format!("metadata.name={name}")),
            ..Scope::default()
        };
        let learned = learned.clone();
        Follow::start(client.clone(), tasks, scope, move |_, _| {
            learned.send_replace(());
            queue.add(Key::Configuration);
        })
    };
    let kinds = Kinds::new(client.clone());
    let mirror = {
        let (queue, knowers, kinds) = (queue.clone(), knowers.clone(), kinds.clone());
        let learned = learned.clone();
        Mirror::new(client, tasks, move |id| {
            if id.resource == "customresourcedefinitions" {
                kinds.forget();
                if id.name == DEFINITION {
                    queue.add(Key::Configuration);
                }
            }
            learned.send_replace(());
            knowers.about(id, |service| queue.add(Key::Service(service.to_owned())));
        })
    };
    let context = Arc::new(Context {
        config,
        executor,
        services,
        configurations,
        mirror,
        kinds,
        knowers,
        turns: Turns::default(),
        denials: Mutex::default(),
        probes: Mutex::default(),
        cycles: Mutex::default(),
        moved: Mutex::default(),
        learned,
        queue: queue.clone(),
        tasks: tasks.clone(),
    });
    context.mirror.interest(OURSELVES, &BTreeSet::from([ended::definition()]));
    run(&context, tasks);
    Protection { context }
}

fn run(context: &Arc<Context>, tasks: &Tasks) {
    let (passes, mut stop) = (Arc::clone(context), tasks.stop());
    tasks.spawn("protection", async move {
        let queue = passes.queue.clone();
        let first = async {
            passes.services.until_synced().await;
            passes.configurations.until_synced().await;
        };
        if stop.or(first).await.is_none() {
            return queue.close();
        }
        queue.add(Key::Configuration);
        let running = queue::run(queue.clone(), WORKERS, move |key| {
            let context = Arc::clone(&passes);
            async move {
                match key {
                    Key::Configuration => context.keep().await,
                    Key::Service(name) => {
                        let wake = context.tell(&name).await;
                        context.learned.send_replace(());
                        wake
                    }
                }
            }
        });
        stop.or(running).await;
        queue.close();
    });
    let (changes, mut stop) = (Arc::clone(context), tasks.stop());
    tasks.spawn("place", async move {
        let mut place = changes.config.place.clone();
        while let Some(Ok(())) = stop.or(place.changed()).await {
            changes.queue.add(Key::Configuration);
        }
    });
}

impl Context {
    fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Protection {
    /// Waits until reviews can be answered from knowledge: before that they are refused.
    /// Then every replica that is ready gives the same answer in the same words.
    pub async fn until_ready(&self) {
        self.context.services.until_synced().await;
        let mut learned = self.context.learned.subscribe();
        while !self.context.is_ready().await {
            if learned.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until API servers can know that an authority vouches for us: the configuration that is
    /// there says so, or there is none.
    pub async fn until_believed(&self, authority: &str) {
        self.context.configurations.until_synced().await;
        let mut learned = self.context.learned.subscribe();
        while !self.context.is_believed(authority) {
            if learned.changed().await.is_err() {
                return;
            }
        }
    }
}

impl Context {
    /// Whether caches can tell of everything that any service is about.
    async fn is_ready(&self) -> bool {
        let Ok(services) = self.services.all() else { return false };
        for service in services.iter() {
            if self.sight(&service.provider, false) == Sight::NotReady {
                return false;
            }
            for criterion in &service.criteria {
                let ready = match criterion {
                    Criterion::Object(id) => self.sight(id, false) != Sight::NotReady,
                    _ => self.tally(criterion, false).await != Tally::NotReady,
                };
                if !ready {
                    return false;
                }
            }
        }
        true
    }

    fn is_believed(&self, authority: &str) -> bool {
        let name = self.config.place.borrow().name.clone();
        match self.configurations.get("", &name) {
            Held::Absent => true,
            Held::Unknown(_) => false,
            Held::Present(object) => object
                .parse::<ValidatingWebhookConfiguration>()
                .is_ok_and(|live| bundle::believe(&live.webhooks.unwrap_or_default(), authority)),
        }
    }
}

fn scope() -> Scope {
    Scope {
        group: GROUP.to_owned(),
        version: VERSION.to_owned(),
        resource: RESOURCE.to_owned(),
        ..Scope::default()
    }
}

/// Soon, but not at once.
fn soon() -> Wake {
    Wake::After(Duration::from_millis(500))
}
