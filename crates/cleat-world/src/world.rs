//! A hub and clusters for a test, from either kind of server.
//!
//! [`World::start`] is all a test writes. Without more it runs on embedded servers in this process,
//! with nothing shared between tests. With `CLEAT_WORLD` naming a kubeconfig (contexts `hub`,
//! `cluster1`, …) the same test runs on those servers; they are shared by all tests, so a test
//! names what it makes with [`World::unique`] and looks only at that. One that takes away what others
//! need has the servers for itself: [`World::alone`].

mod secure;

use std::any::Any;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use anyhow::{Context as _, Result};
use cleat_apiserver::admission::Admission;
use cleat_apiserver::authn::{Authenticator, ServiceAccountTokens, SigningKey};
use cleat_apiserver::certificates::Authority;
use cleat_apiserver::tls::{self, ServeOptions};
use cleat_apiserver::{Config, Server};
use cleat_store::{Limits, Store};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::net::TcpListener;
use tokio::sync::{OnceCell, RwLock};

pub use self::secure::Credentials;
use self::secure::Endpoint;
use crate::cut::Link;
use crate::kubernetes::kubeconfig;

/// The environment variable that names a kubeconfig of real servers.
pub const WORLD: &str = "CLEAT_WORLD";

/// Servers for one test.
pub struct World {
    pub hub: Cluster,
    pub clusters: Vec<Cluster>,
    number: usize,
    _turn: Turn,
}

/// Whose turn it is on real servers. Those who want them for themselves wait for all others, and
/// nobody begins meanwhile.
static SERVERS: LazyLock<Arc<RwLock<()>>> = LazyLock::new(Arc::default);

/// What a world holds of the servers for as long as it lasts, where they are not its own.
type Turn = Option<Box<dyn Any + Send + Sync>>;

/// One server of a [`World`].
pub struct Cluster {
    pub name: String,
    client: Client,
    side: Side,
}

enum Side {
    Embedded { server: Server, authority: Arc<Authority>, endpoint: OnceCell<Endpoint> },
    Real { endpoint: Endpoint, config: Box<kube::Config> },
}

impl World {
    /// A hub and two clusters.
    pub async fn start() -> Result<Self> {
        Self::with_clusters(2).await
    }

    pub async fn with_clusters(count: usize) -> Result<Self> {
        let source = std::env::var_os(WORLD).map(PathBuf::from);
        let turn: Turn = match &source {
            None => None,
            Some(_) => Some(Box::new(Arc::clone(&SERVERS).read_owned().await) as Box<_>),
        };
        Self::of(source, count, turn).await
    }

    /// A hub and two clusters while no other test of this program runs on them. What others left
    /// there may be in the way.
    pub async fn alone() -> Result<Self> {
        let source = std::env::var_os(WORLD).map(PathBuf::from);
        let turn: Turn = match &source {
            None => None,
            Some(_) => Some(Box::new(Arc::clone(&SERVERS).write_owned().await) as Box<_>),
        };
        Self::of(source, 2, turn).await
    }

    async fn of(source: Option<PathBuf>, count: usize, turn: Turn) -> Result<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut all = Vec::new();
        for index in 0..=count {
            let name = if index == 0 { "hub".to_owned() } else { format!("cluster{index}") };
            all.push(match &source {
                None => Cluster::embedded(&name).await?,
                Some(kubeconfig) => Cluster::real(&name, kubeconfig).await?,
            });
        }
        let clusters = all.split_off(1);
        let hub = all.pop().context("a world has a hub")?;
        Ok(Self { hub, clusters, number, _turn: turn })
    }

    /// Whether the servers are embedded ones.
    pub fn is_embedded(&self) -> bool {
        self.hub.server().is_some()
    }

    /// A name that no other test uses, on whichever servers.
    pub fn unique(&self, name: &str) -> String {
        format!("{name}-{}-{}", std::process::id(), self.number)
    }
}

impl Cluster {
    /// A client with every right.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The server itself, where it is an embedded one.
    pub fn server(&self) -> Option<&Server> {
        match &self.side {
            Side::Embedded { server, .. } => Some(server),
            Side::Real { .. } => None,
        }
    }

    /// A client over TLS that is whoever `credentials` say.
    ///
    /// An embedded server begins to listen on loopback when this is first asked for.
    pub async fn client_with(&self, credentials: Credentials) -> Result<Client> {
        match &self.side {
            Side::Real { endpoint, .. } => endpoint.client(credentials),
            Side::Embedded { server, authority, endpoint } => endpoint
                .get_or_try_init(|| Endpoint::listen(&self.name, server.public_router(), authority))
                .await?
                .client(credentials),
        }
    }

    /// A way to it that can be cut, and how a client with every right goes that way.
    pub async fn link(&self) -> Result<(Link, kube::Config)> {
        let (address, mut config) = match &self.side {
            Side::Real { config, .. } => {
                let host = config.cluster_url.authority().context("a server has an address")?;
                (host.as_str().parse()?, (**config).clone())
            }
            Side::Embedded { server, .. } => {
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                let address = listener.local_addr()?;
                let (router, forever) = (server.router(), std::future::pending());
                let options = ServeOptions::default();
                tokio::spawn(tls::serve(listener, None, router, options, forever));
                (address, kube::Config::new(format!("http://{address}").parse()?))
            }
        };
        let link = Link::start(address).await?;
        let scheme = config.cluster_url.scheme_str().unwrap_or("http");
        config.cluster_url = format!("{scheme}://{}", link.address).parse()?;
        Ok((link, config))
    }

    /// Where the server is for those who come over TLS, and the PEM of who vouches for it.
    pub async fn address(&self) -> Result<(String, String)> {
        let endpoint = match &self.side {
            Side::Real { endpoint, .. } => endpoint,
            Side::Embedded { server, authority, endpoint } => {
                let listen = || Endpoint::listen(&self.name, server.public_router(), authority);
                endpoint.get_or_try_init(listen).await?
            }
        };
        Ok(endpoint.address())
    }

    async fn embedded(name: &str) -> Result<Self> {
        let now = jiff::Timestamp::now();
        let authority = Arc::new(Authority::generate(&format!("{name}-ca"), now)?);
        let tokens = ServiceAccountTokens::new(SigningKey::generate()?, "https://embedded.cleat");
        let server = Server::start(Config {
            store: Store::in_memory(Limits::default()),
            authenticator: Authenticator::new().with_service_accounts(tokens),
            authority: Some(Arc::clone(&authority)),
            pretend_workloads: false,
            admission: Admission::default(),
            audit: None,
        })
        .await?;
        let client = Client::new(server.router(), "default");
        let side = Side::Embedded { server, authority, endpoint: OnceCell::new() };
        Ok(Self { name: name.to_owned(), client, side })
    }

    async fn real(name: &str, path: &PathBuf) -> Result<Self> {
        let config = Kubeconfig::read_from(path)
            .with_context(|| format!("read the kubeconfig {}", path.display()))?;
        let options = KubeConfigOptions { context: Some(name.to_owned()), ..Default::default() };
        let config = kube::Config::from_custom_kubeconfig(config, &options).await?;
        let access = kubeconfig::read(path)?.into_iter().find(|access| access.name == name);
        let access = access.with_context(|| format!("no {name} in {}", path.display()))?;
        let endpoint = Endpoint::new(access.url, access.authority);
        let side = Side::Real { endpoint, config: Box::new(config.clone()) };
        Ok(Self { name: name.to_owned(), client: Client::try_from(config)?, side })
    }
}
