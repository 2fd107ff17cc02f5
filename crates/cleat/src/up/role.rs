//! What makes an embedded server a hub or a managed cluster: the kinds it serves and, on the hub, a
//! judge of works that is asked without leaving this process.

use std::sync::{Arc, OnceLock};

use anyhow::Result;
use cleat_api::admission::Rules;
use cleat_apiserver::Server;
use cleat_apiserver::admission::{Admission, Handler};
use cleat_hub::prepare;
use cleat_webhook::{Judge, Reach, configuration};
use kube::Client;

/// Where the hub's webhook configuration points. Nothing listens there, nor could.
const IN_PROCESS: &str = "https://in-process.cleat.invalid";

pub(super) enum Role {
    /// The judge asks the hub itself who may do what, so it comes after the hub.
    Hub {
        judge: Arc<OnceLock<Judge>>,
    },
    Cluster,
}

impl Role {
    pub(super) fn hub() -> Self {
        Self::Hub { judge: Arc::default() }
    }

    /// What the server is to be started with.
    pub(super) fn admission(&self) -> Admission {
        let admission = Admission::default();
        if let Self::Hub { judge } = self {
            let judge = Arc::clone(judge);
            let handler: Handler = Arc::new(move |path, review| {
                let judge = judge.get().cloned();
                Box::pin(async move {
                    let judge = judge.ok_or("the hub is still starting")?;
                    judge.answer(&path, &review).await.map_err(|error| error.to_string())
                })
            });
            admission.serve_url(IN_PROCESS, handler);
        }
        admission
    }

    /// Makes the running server what it is to be. Safe to repeat at every start.
    pub(super) async fn take(&self, server: &Server) -> Result<()> {
        let client = Client::new(server.router(), "default");
        match self {
            Self::Hub { judge } => {
                judge.get_or_init(|| Judge::new(client.clone(), Rules::default()));
                prepare::prepare_hub(&client).await?;
                let reach = Reach::Url(IN_PROCESS.to_owned());
                prepare::install_webhooks(&client, &configuration(None, &reach)).await?;
            }
            Self::Cluster => prepare::prepare_cluster(&client).await?,
        }
        Ok(())
    }
}
