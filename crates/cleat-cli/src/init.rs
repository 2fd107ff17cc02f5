//! `cleat init`: makes any Kubernetes a hub, and says how clusters join it.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use clap::ValueEnum;
use cleat_agent::registration::HubAddress;
use cleat_core::registration::access;
use cleat_core::registration::identity::{BOOTSTRAP_ACCOUNT, BOOTSTRAP_NAMESPACE};
use cleat_core::write::{Action, Side, Write};
use cleat_hub::prepare;
use cleat_webhook::{Reach, configuration};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::connection::{FIELD_MANAGER, HubArgs, Which, block_on, executor, perform};

/// Makes a Kubernetes a hub: Cleat's kinds, its roles, and a service account that can ask to join
/// and nothing else. Doing it again changes nothing; it prints a fresh command to join with.
#[derive(clap::Args)]
pub struct Args {
    /// How long clusters may join with the printed command
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=8760))]
    token_hours: u32,
    /// The hub's address as clusters reach it [default: as in the kubeconfig]
    #[arg(long)]
    server: Option<String>,
    /// Have works and clusters judged by a webhook that listens here (`cleat webhook`)
    #[arg(long)]
    webhook_url: Option<String>,
    /// The file with the certificate authority of that webhook
    #[arg(long, requires = "webhook_url")]
    webhook_ca: Option<PathBuf>,
    /// How to print the way to join
    #[arg(long, short, default_value = "command")]
    output: Output,
    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Command,
    Json,
}

pub fn run(args: &Args) -> Result<()> {
    block_on(init(args))
}

async fn init(args: &Args) -> Result<()> {
    let which = Which::from(&args.hub);
    let hub_client = which.client().await?;
    let mut address = which.address().await?;
    if let Some(server) = &args.server {
        if !server.starts_with("https://") {
            bail!("--server must begin with https://");
        }
        address.server.clone_from(server);
    }
    prepare::prepare_hub(&hub_client).await.context("give the hub its kinds")?;
    let executor = executor(Some(hub_client.clone()), None);
    for (target, object) in access::foundation().into_iter().chain(access::bootstrap()) {
        let what = format!("apply {}", target.id);
        let write = Write::Apply { object, manager: FIELD_MANAGER.to_owned(), force: true };
        perform(&executor, &what, Action { side: Side::Hub, target, write }).await?;
    }
    if let Some(url) = &args.webhook_url {
        let authority = match &args.webhook_ca {
            Some(path) => Some(
                std::fs::read_to_string(path)
                    .with_context(|| format!("read {}", path.display()))?,
            ),
            None => None,
        };
        let wanted = configuration(authority.as_deref(), &Reach::Url(url.clone()));
        prepare::install_webhooks(&hub_client, &wanted).await.context("install the webhook")?;
    }
    let token = token(&hub_client, i64::from(args.token_hours) * 3600).await?;
    let command = command(&address, &token);
    match args.output {
        Output::Json => {
            let HubAddress { server, authority } = address;
            let all = json!({
                "server": server, "certificateAuthority": authority, "token": token,
                "command": command,
            });
            println!("{all:#}");
        }
        Output::Command => {
            eprintln!("{} is a hub now.", address.server);
            eprintln!("Run its controllers:       cleat hub");
            eprintln!("On a cluster that joins, within {} h:\n", args.token_hours);
            println!("{command}");
            eprintln!("\nThen, here:                cleat accept NAME");
        }
    }
    Ok(())
}

async fn token(hub_client: &Client, seconds: i64) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(hub_client.clone(), BOOTSTRAP_NAMESPACE);
    let spec = TokenRequestSpec { expiration_seconds: Some(seconds), ..Default::default() };
    let request = TokenRequest { spec: Some(spec), ..Default::default() };
    let issued: TokenRequest = accounts
        .create_subresource("token", BOOTSTRAP_ACCOUNT, &PostParams::default(), &request)
        .await
        .context("ask for a token to join with")?;
    issued.status.and_then(|status| status.token).context("the hub issued no token")
}

fn command(address: &HubAddress, token: &str) -> String {
    let HubAddress { server, authority } = address;
    let authority = authority
        .as_ref()
        .map(|pem| format!(" --hub-ca-data {}", BASE64.encode(pem)))
        .unwrap_or_default();
    format!("cleat join NAME --hub-server {server} --hub-token {token}{authority}")
}
