//! `cleat ansible-runner`: runs AnsibleJobs with ansible-playbook, where no platform does.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use cleat_cli::Which;
use cleat_runner::{Config, Playbooks};
use cleat_runtime::tasks::Tasks;

use crate::interrupt::interrupted;

/// Runs until it is interrupted. Where an automation platform serves AnsibleJobs, it is off.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    hub: cleat_cli::HubArgs,
    /// Run only the jobs of this namespace
    #[arg(long)]
    namespace: Option<String>,
    /// The directory with playbooks: the job template `T` is T.yml or T.yaml in it
    #[arg(long, required_unless_present = "playbooks_configmap")]
    playbooks: Option<PathBuf>,
    /// A ConfigMap of the hub with playbooks, NAMESPACE/NAME: the job template `My T` is the key my-t.yml
    #[arg(long, conflicts_with = "playbooks", value_parser = config_map)]
    playbooks_configmap: Option<(String, String)>,
    /// The inventory of playbooks [default: this machine]
    #[arg(long)]
    inventory: Option<PathBuf>,
    /// The program
    #[arg(long, default_value = "ansible-playbook")]
    ansible_playbook: PathBuf,
    /// The name of this runner, which the jobs that it runs bear [default: the host's]
    #[arg(long)]
    name: Option<String>,
    /// Seconds after which a playbook is ended
    #[arg(long, default_value_t = 3600)]
    timeout: u64,
    /// How many playbooks may run at the same time
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    at_once: u16,
    /// Let Ansible evaluate templates in what automations pass on (never in what clusters say)
    #[arg(long)]
    trust_variables: bool,
    /// Run jobs also where an automation platform serves them
    #[arg(long)]
    anyway: bool,
}

/// The verb that stands guard over a playbook.
const GUARD: &str = "ansible-guard";

/// Not for people: the runner starts it, and tells it what to do.
pub(crate) fn guard() -> Result<()> {
    let code = cleat_runner::stand_guard().context("only the runner starts this")?;
    std::process::exit(code)
}

/// How the runner starts a guard.
pub(crate) fn guard_command() -> Result<Vec<OsString>> {
    let program = std::env::current_exe().context("find this program")?;
    Ok(vec![program.into(), GUARD.into()])
}

/// What this machine is called.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "cleat".to_owned() } else { name.to_owned() }
}

fn config_map(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('/').filter(|(one, other)| !one.is_empty() && !other.is_empty());
    let (namespace, name) = parts.ok_or_else(|| format!("{text} is not NAMESPACE/NAME"))?;
    Ok((namespace.to_owned(), name.to_owned()))
}

pub(crate) fn run(args: Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args))
}

async fn serve(args: Args) -> Result<()> {
    let hub_client = Which::from(&args.hub).client().await.context("connect to the hub")?;
    let playbooks = match (args.playbooks, args.playbooks_configmap) {
        (_, Some((namespace, name))) => Playbooks::ConfigMap { namespace, name },
        (directory, None) => Playbooks::Directory(directory.unwrap_or_default()),
    };
    let config = Config {
        namespace: args.namespace,
        program: args.ansible_playbook,
        inventory: args.inventory,
        guard: guard_command()?,
        name: args.name.unwrap_or_else(host),
        timeout: Duration::from_secs(args.timeout),
        at_once: usize::from(args.at_once),
        trust_variables: args.trust_variables,
        anyway: args.anyway,
        ..Config::new(hub_client, playbooks)
    };
    let tasks = Tasks::new();
    cleat_runner::start(config, &tasks).await?;
    let interrupted = interrupted()?;
    eprintln!("running AnsibleJobs; Ctrl-C stops");
    interrupted.await;
    eprintln!("stopping");
    tasks.shutdown().await;
    Ok(())
}
