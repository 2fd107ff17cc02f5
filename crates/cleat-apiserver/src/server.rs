//! One API server: its store, what it knows, and its life from start to stop.

use std::sync::Arc;

use cleat_store::Store;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::addresses::{Draw, Taken};
use crate::admission::Admission;
use crate::admit::{Configurations, PolicyDigest};
use crate::audit::Audit;
use crate::authn::{Authenticator, Lookup};
use crate::authz::{self, Attributes, Authorize, BindingWrite, Decision, Kind, Rbac, RoleWrite};
use crate::bootstrap;
use crate::clock::Clock;
use crate::follow::{Digest, Followed};
use crate::housekeeping::{self, Housekeeper};
use crate::http::Api;
use crate::metrics::Metrics;
use crate::objects::Objects;
use crate::priority::{Bounds, Priority};
use crate::resource::ResourceType;
use crate::standing::{Standing, Standings};
use crate::status::Status;
use crate::types::{Definitions, Types};
use crate::user::{MASTERS, User};
use crate::verbs::Call;

/// What a server is made of.
pub struct Config {
    pub store: Store,
    pub authenticator: Authenticator,
    /// Signs the certificates of approved requests and is published to every namespace.
    pub authority: Option<Arc<crate::certificates::Authority>>,
    /// Let workloads look as if nodes ran them.
    pub pretend_workloads: bool,
    /// Webhooks that answer inside this process, and how to reach the others.
    pub admission: Admission,
    /// Who keeps a log of what is asked for, if anybody does.
    pub audit: Option<Audit>,
}

/// A running API server. Dropping it does not stop it; [`Server::stop`] does.
pub struct Server {
    inner: Arc<Inner>,
    housekeeping: JoinHandle<()>,
}

/// What requests and chores work with.
pub(crate) struct Inner {
    pub(crate) clock: Clock,
    pub(crate) objects: Objects,
    pub(crate) housekeeper: Arc<Housekeeper>,
    pub(crate) namespaces: Arc<ResourceType>,
    pub(crate) authenticator: Authenticator,
    pub(crate) authority: Option<Arc<crate::certificates::Authority>>,
    pub(crate) webhooks: Followed<Configurations>,
    pub(crate) policies: Followed<PolicyDigest>,
    definitions: Followed<Definitions>,
    standing_namespaces: Followed<Standings>,
    standing_definitions: Followed<Standings>,
    rbac: Followed<RbacDigest>,
    services: Followed<Taken>,
    pub(crate) metrics: Metrics,
    pub(crate) priority: Priority,
    pub(crate) audit: Option<Audit>,
    stop: tokio::sync::watch::Sender<bool>,
}

/// The server could not be brought to life.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    #[error("the built-in kinds lack {0}")]
    MissingKind(&'static str),
    #[error("cannot write {what}: {why}")]
    Bootstrap { what: String, why: String },
}

impl Server {
    /// Starts serving what the store holds, after making sure of what every cluster has.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::start_within(config, &Bounds::default()).await
    }

    /// The same, for a server that is shared among its clients otherwise than most are.
    pub async fn start_within(config: Config, bounds: &Bounds) -> Result<Self, StartError> {
        let housekeeper = Arc::new(Housekeeper::new(config.pretend_workloads));
        let namespaces = crate::builtin::resources()
            .iter()
            .find(|ty| ty.group.is_empty() && &*ty.plural == "namespaces")
            .ok_or(StartError::MissingKind("namespaces"))?;
        let inner = Arc::new(Inner {
            clock: Clock::start(),
            objects: Objects::new(config.store, Arc::clone(&housekeeper)),
            housekeeper,
            namespaces: Arc::clone(namespaces),
            authenticator: config.authenticator,
            authority: config.authority,
            webhooks: Followed::new(
                Configurations::of(Arc::new(config.admission)),
                &Configurations::BUCKETS,
            ),
            policies: Followed::new(PolicyDigest::default(), &PolicyDigest::BUCKETS),
            definitions: Followed::new(Definitions::default(), &[Definitions::BUCKET]),
            standing_namespaces: Followed::new(Standings::default(), &[Standings::NAMESPACES]),
            standing_definitions: Followed::new(Standings::default(), &[Definitions::BUCKET]),
            rbac: Followed::new(RbacDigest::default(), &RbacDigest::BUCKETS),
            services: Followed::new(Taken::default(), &[Taken::BUCKET]),
            metrics: Metrics::default(),
            priority: Priority::new(bounds),
            audit: config.audit,
            stop: tokio::sync::watch::Sender::new(false),
        });
        bootstrap::provide(&inner).await?;
        housekeeping::schedule_everything(&inner);
        let housekeeping = tokio::spawn(housekeeping::run(Arc::clone(&inner)));
        Ok(Self { inner, housekeeping })
    }

    /// The whole API as a router. Requests without credentials of their own are an
    /// administrator's: this is for the process that owns the server.
    pub fn router(&self) -> axum::Router {
        self.router_as(User::new("system:admin", [MASTERS, crate::user::AUTHENTICATED]))
    }

    /// The same, for requests that are `user`'s unless they carry a token.
    pub fn router_as(&self, user: User) -> axum::Router {
        axum::Router::new().fallback_service(Api::new(Arc::clone(&self.inner), Some(user)))
    }

    /// The API for connections from outside: who asks is up to certificates and tokens.
    pub fn public_router(&self) -> axum::Router {
        axum::Router::new().fallback_service(self.public_api())
    }

    /// The same without a router around it, for those who only pass requests on.
    pub fn public_api(&self) -> Api {
        Api::new(Arc::clone(&self.inner), None)
    }

    /// Ends watches and housekeeping. Writes that were answered are safe.
    pub async fn stop(self) {
        self.inner.stop.send_replace(true);
        drop(self.housekeeping.await);
    }
}

impl Inner {
    pub(crate) fn types(&self) -> Arc<Types> {
        self.definitions.read(self.objects.store(), Definitions::types)
    }

    /// How a namespace stands; `None` if there is none of that name.
    pub(crate) fn namespace_standing(&self, name: &str) -> Option<Standing> {
        self.standing_namespaces.read(self.objects.store(), |all| all.of(name))
    }

    /// How a definition of a custom kind stands; `None` if there is none of that name.
    pub(crate) fn definition_standing(&self, name: &str) -> Option<Standing> {
        self.standing_definitions.read(self.objects.store(), |all| all.of(name))
    }

    /// Resolves when the server is asked to stop.
    pub(crate) fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stop = self.stop.subscribe();
        async move { drop(stop.wait_for(|stopped| *stopped).await) }
    }

    pub(crate) fn root_certificate(&self) -> Option<String> {
        self.authority.as_ref().map(|authority| authority.certificate_pem().to_owned())
    }

    pub(crate) fn draw_addresses(&self) -> Draw {
        self.services.read(self.objects.store(), Taken::draw)
    }

    pub(crate) fn with_rbac<R>(&self, answer: impl FnOnce(&Rbac) -> R) -> R {
        self.rbac.read(self.objects.store(), |digest| answer(&digest.0))
    }

    pub(crate) fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Result<(), Status> {
        let decision = self.with_rbac(|rbac| rbac.authorize(user, attributes));
        if decision.allowed {
            return Ok(());
        }
        Err(authz::forbidden(user, attributes, &decision.reason))
    }

    /// A patch or update that creates needs the right to create as well.
    pub(crate) fn authorize_creation(&self, call: &Call<'_>) -> Result<(), Status> {
        let target = authz::ResourceTarget {
            group: &call.ty.group,
            resource: &call.ty.plural,
            subresource: &call.subresource,
            namespace: &call.namespace,
            name: &call.name,
        };
        let target = authz::Target::Resource(target);
        self.authorize(&call.user, &Attributes { verb: "create", target })
    }

    /// Nobody grants what they do not have.
    pub(crate) fn refuse_escalation(
        &self,
        call: &Call<'_>,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        if &*call.ty.group != "rbac.authorization.k8s.io" {
            return Ok(());
        }
        let namespace = &*call.namespace;
        self.with_rbac(|rbac| match Kind::of_resource(&call.ty.plural) {
            Some(Kind::ClusterRole | Kind::Role) => {
                let write = RoleWrite { namespace, url_name: &call.name, old, new };
                rbac.check_role(&call.user, &write)
            }
            Some(_) => rbac.check_binding(&call.user, &BindingWrite { namespace, old, new }),
            None => Ok(()),
        })
    }
}

impl Authorize for Inner {
    fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Decision {
        self.with_rbac(|rbac| rbac.authorize(user, attributes))
    }
}

impl Lookup for Inner {
    fn get(&self, resource: &'static str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let types = self.types();
        let found = self.objects.get(types.get("", resource)?, "v1", namespace, name);
        found.ok().flatten().map(|stored| Arc::new(stored.value))
    }
}

/// Roles and bindings as the authorizer wants them.
#[derive(Default)]
struct RbacDigest(Rbac);

impl RbacDigest {
    const BUCKETS: [&'static str; 4] = [
        "rbac.authorization.k8s.io/clusterroles",
        "rbac.authorization.k8s.io/roles",
        "rbac.authorization.k8s.io/clusterrolebindings",
        "rbac.authorization.k8s.io/rolebindings",
    ];
}

impl Digest for RbacDigest {
    fn clear(&mut self) {
        self.0 = Rbac::default();
    }

    fn take(&mut self, bucket: &str, key: &str, value: Option<&[u8]>) {
        let plural = bucket.rsplit('/').next().unwrap_or_default();
        let Some(kind) = Kind::of_resource(plural) else { return };
        let object = value.and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
        match object {
            Some(object) => self.0.put(kind, &object),
            None => {
                let (namespace, name) = key.split_once('/').unwrap_or(("", key));
                self.0.remove(kind, namespace, name);
            }
        }
    }
}
