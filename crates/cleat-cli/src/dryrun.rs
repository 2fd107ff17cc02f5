//! `cleat policy dryrun`: tries policies on given objects, or on those of a cluster, and says what they
//! would say. Nothing is changed; without `--from-cluster` no server is talked to.
//!
//! A file may hold several ConfigurationPolicies, and Policies with such in them; each is tried on
//! the same objects.

mod cluster;
mod colour;
mod generate;
mod input;
mod kinds;
mod log;
mod lookups;
mod spelling;
mod status;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use cleat_agent::policy::templates;
use cleat_api::configurationpolicy::{DISABLE_TEMPLATES, ENCRYPTION_IV, reason};
use cleat_core::policy::dryrun::{DryRun, Given, Input, World, dry_run};
use cleat_core::policy::observed::{Kind, KindName, Pick, Resolution, Seen, Template, Templates};
use cleat_template::{Delimiters, ResolveOptions, Source, TemplateError, has_template, resolve};
use jiff::Timestamp;
use serde_json::{Value, json};

use self::cluster::Cluster;
use self::colour::Colours;
use self::input::Tried;
pub(crate) use self::input::objects;
use self::kinds::Kinds;
use self::log::{Log, Logged};
use crate::Which;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The file with the policy; - is standard input
    #[arg(short, long, required = true)]
    policy: Option<PathBuf>,
    /// Files with the objects that are there, or folders of such files; - is standard input
    resources: Vec<PathBuf>,
    /// A file with the status that is expected, or a part of it
    #[arg(short = 'c', long)]
    desired_status: Option<PathBuf>,
    /// Print how objects differ
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    print_diffs: bool,
    /// Print differences whole, however long
    #[arg(long)]
    full_diffs: bool,
    /// Print without colours, as is done where no terminal is [CLICOLOR_FORCE=1: with them]
    #[arg(long)]
    no_colors: bool,
    /// Print what is asked of the objects or the cluster, and the answers, to standard error
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    log: Option<bool>,
    /// The same, to the end of this file
    #[arg(long)]
    log_path: Option<PathBuf>,
    /// Write the messages to this file rather than printing them
    #[arg(long)]
    messages_path: Option<PathBuf>,
    /// Write the status to this file, as YAML
    #[arg(long)]
    status_path: Option<PathBuf>,
    /// A file with kinds beyond Kubernetes' own, as `generate` writes it
    #[arg(long, env = "DRYRUN_MAPPINGS_FILE")]
    mappings_file: Option<PathBuf>,
    /// Try it on the objects of a cluster, which is only read, and asked in dry runs what it would make
    /// of updates; given objects do not count
    #[arg(long, env = "DRYRUN_FROM_CLUSTER", default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = is_true, hide_possible_values = true)]
    from_cluster: bool,
    /// The kubeconfig of that cluster [default: $KUBECONFIG, ~/.kube/config, or the pod's own account]
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Which context of it [default: the current one]
    #[arg(long)]
    context: Option<String>,
}

#[derive(Subcommand)]
enum Verb {
    /// Print the kinds of a cluster, as --mappings-file takes them.
    Generate {
        /// The kubeconfig of the cluster [default: $KUBECONFIG, ~/.kube/config, or the pod's own
        /// account]
        #[arg(long)]
        kubeconfig: Option<PathBuf>,
        /// Which context of it [default: the current one]
        #[arg(long)]
        context: Option<String>,
    },
}

/// Whatever an environment may say but this is no.
fn is_true(text: &str) -> Result<bool, std::convert::Infallible> {
    Ok(text == "true")
}

/// The exit code: 0 if all policies hold, 2 if one does not.
pub fn run(args: &Args) -> Result<u8> {
    if let Some(Verb::Generate { kubeconfig, context }) = &args.verb {
        let which = Which { kubeconfig: kubeconfig.clone(), context: context.clone() };
        generate::run(&which)?;
        return Ok(0);
    }
    let Some(path) = &args.policy else { bail!("name a policy with --policy") };
    let policies = input::policies(path)?;
    let log = match (args.log, &args.log_path) {
        (Some(false), Some(_)) => bail!("--log-path cannot be set when --log is false"),
        (_, Some(path)) => Log::file(path)?,
        (Some(true), None) => Log::console(),
        (Some(false) | None, None) => Log::default(),
    };
    if args.from_cluster {
        if !args.resources.is_empty() {
            eprintln!("the given objects do not count: it is tried on those of the cluster");
        }
        let which = Which { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
        let cluster = Cluster::connect(&which)?;
        return said(args, &policies, &log, |policy| {
            let run = policy.tried(&Logged { world: &cluster, log: &log });
            match cluster.failure() {
                Some(failure) => bail!("{failure}"),
                None => run,
            }
        });
    }
    let mut objects = input::objects(&args.resources)?;
    let mut kinds = Kinds::known();
    kinds.learn(&objects);
    if let Some(path) = &args.mappings_file {
        kinds.read(&input::text(path)?).with_context(|| format!("read {}", path.display()))?;
    }
    input::placed(&mut objects, &kinds)?;
    // Every cluster has it.
    objects.push(
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "default" } }),
    );
    said(args, &policies, &log, |policy| {
        let namespaces = policy.namespaces();
        let world = Given { objects: &objects, kinds: kinds.all(), namespaces: &namespaces };
        policy.tried(&Logged { world: &world, log: &log })
    })
}

/// Tries each policy, and tells what came of it.
fn said(
    args: &Args,
    policies: &[Tried],
    log: &Log,
    tried: impl Fn(&Tried) -> Result<DryRun>,
) -> Result<u8> {
    let colours = Colours::wanted(args.no_colors);
    let desired = match &args.desired_status {
        Some(path) => input::documents(path)?.into_iter().next(),
        None => None,
    };
    let (mut code, mut messages, mut statuses) = (0, String::new(), Vec::new());
    for policy in policies {
        for doubt in &policy.doubts {
            eprintln!("{}: {doubt}; a server would not take it", policy.name);
        }
        log.say(&format!("policy {}", policy.name));
        let run = tried(policy).with_context(|| format!("cannot try {}", policy.name))?;
        if policies.len() > 1 {
            println!("# Policy {}:", policy.name);
        }
        if let Some(desired) = &desired {
            let found = serde_json::to_value(&run.status)?;
            let (text, _) = status::compared(desired, &found, colours);
            println!("{text}");
        }
        if args.print_diffs {
            print!("{}", colours.diff(&run.shown_diffs(args.full_diffs)));
        }
        if args.messages_path.is_none() {
            print!("{}", run.shown_messages());
        }
        code = code.max(run.exit_code());
        for message in &run.messages {
            messages.push_str(message);
            messages.push('\n');
        }
        statuses.push(cleat_dialect::yaml::to_string(&serde_json::to_value(&run.status)?));
    }
    write(args.messages_path.as_deref(), &messages)?;
    write(args.status_path.as_deref(), &statuses.join("---\n"))?;
    Ok(code)
}

fn write(path: Option<&Path>, text: &str) -> Result<()> {
    match path {
        None => Ok(()),
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
        }
    }
}

impl Tried {
    /// Namespaces that are there although no object says so: those whose names are spelled out, for
    /// they are meant to be there.
    fn namespaces(&self) -> Vec<String> {
        let included = &self.spec.namespace_selector.include;
        let spelled = included.iter().filter(|name| !name.contains(['*', '?', '[', '\\']));
        spelled.cloned().collect()
    }

    fn tried(&self, world: &dyn World) -> Result<DryRun> {
        if self.annotation(ENCRYPTION_IV).is_some_and(|vector| !vector.is_empty()) {
            bail!("{} has encrypted values, which only its cluster can read", self.name);
        }
        let now = Timestamp::now();
        let options =
            ResolveOptions { seed: Some(self.name.clone()), ..ResolveOptions::managed(now) };
        let templates = self.templates(world, &options)?;
        let all: Vec<Template> = match &templates {
            Templates::Known(all) => all.clone(),
            Templates::Failed { .. } => Vec::new(),
        };
        let options = ResolveOptions { skip_object: true, ..options };
        let mut failure = None;
        let mut resolved = |index: usize, pick: &Pick| {
            let Some(template) = all.get(index) else { return Resolution::Skipped };
            let definition = &template.spec.object_definition;
            let (live, namespaced) = live(world, template, pick);
            let dot = templates::dot(pick, namespaced, &live);
            let lookups = lookups::From(world);
            let resolved = resolve(Source::Object(definition), &dot, &lookups, &options);
            let resolution = templates::meant(resolved);
            if let Resolution::Failed { message, .. } = &resolution {
                failure.get_or_insert_with(|| message.clone());
            }
            resolution
        };
        let run = dry_run(Input {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            labels: self.labels.clone(),
            annotations: self.annotations.clone(),
            spec: self.spec.clone(),
            templates,
            world,
            now,
            say: templates::say,
            resolve: &mut resolved,
        });
        // What is said about objects whose templates failed is about nothing.
        if let Some(failure) = failure {
            bail!("{failure}");
        }
        run.context("the cluster changes faster than it can be looked at; try again")
    }

    fn templates(&self, world: &dyn World, options: &ResolveOptions) -> Result<Templates> {
        let disabled = self.annotation(DISABLE_TEMPLATES) == Some("true");
        let Some(raw) = &self.spec.object_templates_raw else {
            let all = self.spec.object_templates.clone().unwrap_or_default();
            return Ok(Templates::Known(templates::prepared(all, disabled, false)));
        };
        let mut sensitive = false;
        let value = if disabled || !has_template(raw, &Delimiters::default(), false) {
            templates::unresolved(raw)
        } else {
            let dot = cleat_template::Context::empty();
            match resolve(Source::Yaml(raw), &dot, &lookups::From(world), options) {
                Ok(resolution) => {
                    sensitive = resolution.sensitive;
                    Ok(resolution.value)
                }
                Err(TemplateError::Result(message)) => Err(message),
                Err(error) => bail!("{}", error.condition()),
            }
        };
        let parsed = value.and_then(|value| templates::parsed_raw(value, sensitive));
        Ok(match parsed {
            Ok(all) => Templates::Known(templates::prepared(all, true, false)),
            Err(error) => Templates::Failed {
                reason: reason::TEMPLATE_ERROR,
                message: format!("Error parsing object-templates-raw YAML: {error}"),
                passing: false,
            },
        })
    }
}

/// The object that a definition is resolved for, as templates see it, and whether it lives in a
/// namespace.
fn live(world: &dyn World, template: &Template, pick: &Pick) -> (Value, bool) {
    let definition = &template.spec.object_definition;
    let field =
        |name: &str| definition.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let name = KindName { api_version: field("apiVersion"), kind: field("kind") };
    let Kind::Served(served) = world.kind(&name) else { return (Value::Null, false) };
    if !templates::sees_object(template, pick) {
        return (Value::Null, served.namespaced);
    }
    match world.object(&served.target(&pick.namespace, &pick.name)) {
        Seen::Present(present) => ((*present.object).clone(), served.namespaced),
        _ => (Value::Null, served.namespaced),
    }
}
