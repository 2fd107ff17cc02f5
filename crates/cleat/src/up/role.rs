//! What makes an embedded server a hub or a managed cluster: the kinds it serves, on the hub a judge
//! of works, on clusters delete protection. Both are asked without leaving this process.

use std::sync::{Arc, OnceLock};

use anyhow::Result;
use cleat_api::admission::Rules;
use cleat_apiserver::Server;
use cleat_apiserver::admission::{Admission, Handler};
use cleat_core::protection::rules::Place;
use cleat_hub::prepare;
use cleat_protection::Protection;
use cleat_runtime::tasks::Tasks;
use cleat_webhook::{Judge, Reach, client_config, configuration};
use kube::Client;
use tokio::sync::watch;

/// Where webhook configurations point. Nothing listens there, nor could.
const IN_PROCESS: &str = "https://in-process.cleat.invalid";

pub(super) enum Role {
    /// The judge asks the hub itself who may do what, so it comes after the hub.
    Hub { judge: Arc<OnceLock<Judge>> },
    /// Protection watches the cluster itself, so it comes after the cluster.
    Cluster { protection: Arc<OnceLock<Protection>> },
}

impl Role {
    pub(super) fn hub() -> Self {
        Self::Hub { judge: Arc::default() }
    }

    pub(super) fn cluster() -> Self {
        Self::Cluster { protection: Arc::default() }
    }

    /// What the server is to be started with.
    pub(super) fn admission(&self) -> Admission {
        let admission = Admission::default();
        let handler: Handler = match self {
            Self::Hub { judge } => {
                let judge = Arc::clone(judge);
                Arc::new(move |path, review| {
                    let judge = judge.get().cloned();
                    Box::pin(async move {
                        let judge = judge.ok_or("the hub is still starting")?;
                        judge.answer(&path, &review).await.map_err(|error| error.to_string())
                    })
                })
            }
            Self::Cluster { protection } => {
                let protection = Arc::clone(protection);
                Arc::new(move |_, review| {
                    let protection = protection.get().cloned();
                    Box::pin(async move {
                        let protection = protection.ok_or("the cluster is still starting")?;
                        protection.answer(&review).await.map_err(|error| error.to_string())
                    })
                })
            }
        };
        admission.serve_url(IN_PROCESS, handler);
        admission
    }

    /// Makes the running server what it is to be. Safe to repeat at every start.
    pub(super) async fn take(&self, server: &Server, tasks: &Tasks) -> Result<()> {
        let client = Client::new(server.router(), "default");
        match self {
            Self::Hub { judge } => {
                judge.get_or_init(|| Judge::new(client.clone(), Rules::default()));
                prepare::prepare_hub(&client).await?;
                let reach = Reach::Url(IN_PROCESS.to_owned());
                prepare::install_webhooks(&client, &configuration(None, &reach)).await?;
            }
            Self::Cluster { protection } => {
                prepare::prepare_cluster(&client).await?;
                let reach = Reach::Url(IN_PROCESS.to_owned());
                let place = Place {
                    name: cleat_protection::CONFIGURATION.to_owned(),
                    client: client_config(None, &reach, cleat_protection::PATH),
                    own_namespace: None,
                };
                let place = watch::Sender::new(place).subscribe();
                let config = cleat_protection::Config { client, place, labels: None };
                protection.get_or_init(|| cleat_protection::start(config, tasks));
            }
        }
        Ok(())
    }
}
