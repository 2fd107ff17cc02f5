//! The one binary. This file only chooses the verb; each verb has a file of its own.

mod agent;
mod ansible_runner;
mod apiserver;
mod files;
mod hub;
mod interrupt;
mod join;
mod metrics;
mod policy;
mod up;
mod webhook;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// Much is parsed and little kept, by many threads. This allocator gives back what is not kept;
/// docs/benchmarks.md has the figures.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A fleet manager for Kubernetes clusters that knows how to let go.
#[derive(Parser)]
#[command(name = "cleat", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a hub and clusters on this machine, in one process.
    Up(up::Args),
    /// Look after what `cleat up` keeps: back it up while it runs, and restore it elsewhere.
    Apiserver(apiserver::Args),
    /// Make a Kubernetes a hub, and print how clusters join it.
    Init(cleat_cli::init::Args),
    /// Make a cluster part of a hub's fleet, and run its agent.
    Join(cleat_cli::join::Args),
    /// Let clusters join that asked to.
    Accept(cleat_cli::accept::Args),
    /// Show the clusters of a hub.
    Clusters(cleat_cli::clusters::Args),
    /// Let a cluster leave the fleet.
    Unjoin(cleat_cli::unjoin::Args),
    /// Show what a removal would do, before anybody does it.
    Preview(cleat_cli::preview::Args),
    /// Delete from a hub what was looked at first.
    Delete(cleat_cli::delete::Args),
    /// Show what clusters kept when they left, and finish the job.
    Leftovers(cleat_cli::leftovers::Args),
    /// Say why something is stuck, who has to act, and what they can do.
    Explain(cleat_cli::explain::Args),
    /// Look after one managed cluster: carry the hub's works to it and let go of them as declared.
    Agent(agent::Args),
    /// Run the controllers of a hub, on any Kubernetes.
    Hub(hub::Args),
    /// Look after configuration policies of a cluster, or try them without one.
    Policy(policy::Args),
    /// Show what automations did.
    Automation(cleat_cli::automation::Args),
    /// Run AnsibleJobs with ansible-playbook, where no automation platform does.
    AnsibleRunner(ansible_runner::Args),
    #[command(hide = true)]
    AnsibleGuard,
    /// Judge works for a hub: what it must not take is refused before it is stored.
    Webhook(webhook::Args),
    /// Print what makes a shell complete this command.
    Completions(cleat_cli::completions::Args),
}

fn main() -> ExitCode {
    let mut command = cleat_cli::completions::called(Cli::command());
    let matches = command.clone().try_get_matches().unwrap_or_else(|error| misused(&error));
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let filter = EnvFilter::try_from_env("CLEAT_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let done = match cli.verb {
        Verb::Up(args) => up::run(args),
        Verb::Apiserver(args) => apiserver::run(&args),
        Verb::Init(args) => cleat_cli::init::run(&args),
        Verb::Join(args) => join::run(args),
        Verb::Accept(args) => cleat_cli::accept::run(&args),
        Verb::Clusters(args) => cleat_cli::clusters::run(&args),
        Verb::Unjoin(args) => cleat_cli::unjoin::run(&args),
        Verb::Preview(args) => cleat_cli::preview::run(&args),
        Verb::Delete(args) => cleat_cli::delete::run(&args),
        Verb::Leftovers(args) => cleat_cli::leftovers::run(&args),
        Verb::Agent(args) => agent::run(args),
        Verb::Hub(args) => hub::run(args),
        Verb::Explain(args) => return ended(cleat_cli::explain::run(&args)),
        Verb::Policy(args) => return ended(policy::run(args)),
        Verb::Automation(args) => cleat_cli::automation::run(&args),
        Verb::AnsibleRunner(args) => ansible_runner::run(args),
        Verb::AnsibleGuard => ansible_runner::guard(),
        Verb::Webhook(args) => webhook::run(args),
        Verb::Completions(args) => cleat_cli::completions::run(&args, &mut command),
    };
    ended(done.map(|()| ExitCode::SUCCESS))
}

/// Says how it is used. Where the usual code for that means that a policy does not hold, it is another.
fn misused(error: &clap::Error) -> ! {
    // There is nobody left to tell if this fails.
    let _ = error.print();
    let verbs: Vec<String> = std::env::args().skip(1).take(2).collect();
    let tries = matches!(verbs.as_slice(), [one, two] if one == "policy" && two.starts_with("dry"));
    let code = if tries && error.use_stderr() { 1 } else { error.exit_code() };
    std::process::exit(code)
}

fn ended(done: anyhow::Result<ExitCode>) -> ExitCode {
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cleat: {error:#}");
            ExitCode::from(cleat_cli::exit_code(&error))
        }
    }
}
