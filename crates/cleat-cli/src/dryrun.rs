//! `cleat policy dryrun`: tries policies on given objects and says what they would say. It never
//! talks to a server.
//!
//! A file may hold several ConfigurationPolicies, and Policies with such in them; each is tried on
//! the same objects.

mod kinds;
mod lookups;
mod status;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use cleat_agent::policy::templates;
use cleat_api::configurationpolicy::{
    ConfigurationPolicySpec, DISABLE_TEMPLATES, ENCRYPTION_IV, reason,
};
use cleat_core::policy::dryrun::{DryRun, Input, dry_run};
use cleat_core::policy::observed::{Pick, Templates};
use cleat_template::{Delimiters, ResolveOptions, Source, TemplateError, has_template, resolve};
use jiff::Timestamp;
use serde_json::Value;

use self::kinds::Kinds;
use self::lookups::Objects;

#[derive(clap::Args)]
pub struct Args {
    /// The file with the policy; - is standard input
    #[arg(short, long)]
    policy: PathBuf,
    /// Files with the objects that are there; - is standard input
    resources: Vec<PathBuf>,
    /// A file with the status that is expected, or a part of it
    #[arg(short = 'c', long)]
    desired_status: Option<PathBuf>,
    /// Print how objects differ
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    print_diffs: bool,
    /// Print differences whole, however long
    #[arg(long)]
    full_diffs: bool,
    /// Accepted for compatibility: nothing is coloured
    #[arg(long, hide = true)]
    no_colors: bool,
    /// Write the messages to this file too
    #[arg(long)]
    messages_path: Option<PathBuf>,
    /// Write the status to this file, as YAML
    #[arg(long)]
    status_path: Option<PathBuf>,
    /// A file with kinds beyond Kubernetes' own: a list of Group, Version, Kind, Plural and Scope
    #[arg(long, env = "DRYRUN_MAPPINGS_FILE")]
    mappings_file: Option<PathBuf>,
}

/// The exit code: 0 if all policies hold, 2 if one does not.
pub fn run(args: &Args) -> Result<u8> {
    let policies = policies(&args.policy)?;
    let mut objects = Vec::new();
    for path in &args.resources {
        objects.extend(documents(path)?);
    }
    let mut kinds = Kinds::known();
    kinds.learn(&objects);
    if let Some(path) = &args.mappings_file {
        kinds.read(&text(path)?).with_context(|| format!("read {}", path.display()))?;
    }
    let desired = match &args.desired_status {
        Some(path) => documents(path)?.into_iter().next(),
        None => None,
    };
    let several = policies.len() > 1;
    let (mut code, mut messages, mut statuses) = (0, String::new(), Vec::new());
    for policy in &policies {
        let run = policy.tried(&objects, &kinds)?;
        if several {
            println!("# Policy {}:", policy.name);
        }
        if let Some(desired) = &desired {
            let found = serde_json::to_value(&run.status)?;
            let (text, matches) = status::compared(desired, &found);
            print!("{text}");
            code = code.max(if matches { 0 } else { 2 });
        }
        print!("{}", printed(&run, args));
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

fn printed(run: &DryRun, args: &Args) -> String {
    let whole = run.render(args.full_diffs);
    match whole.split_once("# Compliance messages:") {
        Some((_, messages)) if !args.print_diffs => format!("# Compliance messages:{messages}"),
        _ => whole,
    }
}

fn write(path: Option<&Path>, text: &str) -> Result<()> {
    match path {
        None => Ok(()),
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
        }
    }
}

fn text(path: &Path) -> Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("read standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}

/// The objects in a file; lists are taken apart.
fn documents(path: &Path) -> Result<Vec<Value>> {
    let text = text(path)?;
    let all: Vec<Value> = serde_saphyr::from_multiple(&text)
        .with_context(|| format!("read the YAML in {}", path.display()))?;
    let mut objects = Vec::new();
    for one in all.into_iter().filter(|one| !one.is_null()) {
        match one.get("items").and_then(Value::as_array) {
            Some(items) if one.get("kind").is_some_and(|kind| kind == "List") => {
                objects.extend(items.iter().cloned());
            }
            _ => objects.push(one),
        }
    }
    Ok(objects)
}

/// One policy to try.
struct Tried {
    name: String,
    namespace: String,
    annotations: Value,
    spec: ConfigurationPolicySpec,
}

fn policies(path: &Path) -> Result<Vec<Tried>> {
    let mut all = Vec::new();
    for object in documents(path)? {
        match object.get("kind").and_then(Value::as_str) {
            Some("ConfigurationPolicy") => all.push(Tried::read(&object, None)?),
            Some("Policy") => {
                let action = object.pointer("/spec/remediationAction").and_then(Value::as_str);
                let templates = object.pointer("/spec/policy-templates").and_then(Value::as_array);
                let definitions = templates.into_iter().flatten();
                for one in definitions.filter_map(|template| template.get("objectDefinition")) {
                    if one.get("kind").is_some_and(|kind| kind == "ConfigurationPolicy") {
                        all.push(Tried::read(one, action)?);
                    }
                }
            }
            _ => {}
        }
    }
    if all.is_empty() {
        bail!("{} has no ConfigurationPolicy in it", path.display());
    }
    Ok(all)
}

impl Tried {
    fn read(object: &Value, action: Option<&str>) -> Result<Self> {
        let text = |pointer: &str| {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let name = text("/metadata/name");
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        if let Some(fields) = spec.as_object_mut() {
            let own = fields.get("remediationAction").and_then(Value::as_str).unwrap_or_default();
            let said = match own.eq_ignore_ascii_case("informonly") {
                true => Some("inform"),
                false => action,
            };
            if let Some(said) = said {
                fields.insert("remediationAction".to_owned(), Value::String(said.to_owned()));
            }
        }
        let spec = serde_json::from_value(spec)
            .with_context(|| format!("understand the ConfigurationPolicy {name}"))?;
        let annotations = object.pointer("/metadata/annotations").cloned().unwrap_or_default();
        Ok(Self { name, namespace: text("/metadata/namespace"), annotations, spec })
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).and_then(Value::as_str)
    }

    fn tried(&self, objects: &[Value], kinds: &Kinds) -> Result<DryRun> {
        if self.annotation(ENCRYPTION_IV).is_some_and(|vector| !vector.is_empty()) {
            bail!("{} has encrypted values, which only its cluster can read", self.name);
        }
        let now = Timestamp::now();
        let lookups = Objects::new(objects, kinds);
        let options = ResolveOptions::managed(now);
        let templates = self.templates(&lookups, &options);
        let definitions: Vec<Value> = match &templates {
            Templates::Known(all) => {
                all.iter().map(|one| one.spec.object_definition.clone()).collect()
            }
            Templates::Failed { .. } => Vec::new(),
        };
        let options = ResolveOptions { skip_object: true, ..options };
        let mut resolved = |index: usize, pick: &Pick| {
            let Some(definition) = definitions.get(index) else {
                return cleat_core::policy::observed::Resolution::Skipped;
            };
            let served = kinds.of(definition);
            let live = served
                .filter(|_| !pick.name.is_empty())
                .and_then(|_| lookups.named(definition, &pick.namespace, &pick.name));
            let namespaced = served.is_some_and(|served| served.namespaced);
            let dot = templates::dot(pick, namespaced, &live.unwrap_or(Value::Null));
            templates::meant(resolve(Source::Object(definition), &dot, &lookups, &options))
        };
        Ok(dry_run(Input {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            spec: self.spec.clone(),
            templates,
            objects: objects.to_vec(),
            kinds: kinds.all().clone(),
            now,
            say: templates::say,
            resolve: &mut resolved,
        }))
    }

    fn templates(&self, lookups: &Objects<'_>, options: &ResolveOptions) -> Templates {
        let disabled = self.annotation(DISABLE_TEMPLATES) == Some("true");
        let failed = |message: String| Templates::Failed {
            reason: reason::TEMPLATE_ERROR,
            message,
            passing: false,
        };
        let Some(raw) = &self.spec.object_templates_raw else {
            let all = self.spec.object_templates.clone().unwrap_or_default();
            return Templates::Known(templates::prepared(all, disabled, false));
        };
        let value = if disabled || !has_template(raw, &Delimiters::default(), false) {
            serde_saphyr::from_str(raw).map_err(|error| error.to_string())
        } else {
            let dot = cleat_template::Context::empty();
            match resolve(Source::Yaml(raw), &dot, lookups, options) {
                Ok(resolution) => Ok(resolution.value),
                Err(TemplateError::Result(message)) => Err(message),
                Err(error) => return failed(error.condition()),
            }
        };
        match value.and_then(templates::parsed_raw) {
            Ok(all) => Templates::Known(templates::prepared(all, true, false)),
            Err(error) => failed(format!("Error parsing object-templates-raw YAML: {error}")),
        }
    }
}
