//! `cleat up --demo`: a fleet with a story in it. docs/tour.md walks through it.

mod operator;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use cleat_core::id::{Id, Target};
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runner::Playbooks;
use cleat_runtime::execute::{self, Executor, Read};
use cleat_runtime::kinds::{Kinds, Mapping};
use cleat_runtime::tasks::Tasks;
use kube::Client;
use serde_json::{Value, json};

/// How many clusters the story is about.
pub(super) const CLUSTERS: u16 = 3;

/// Everything that is put on the hub, in order.
const STORY: &str = include_str!("../../demo/story.yaml");

/// Who `managedFields` say wrote it.
const MANAGER: &str = "cleat-demo";

/// The program that runs playbooks.
const ANSIBLE: &str = "ansible-playbook";

/// Where the story says that tickets are written.
const TICKETS: &str = "TICKETS";

/// Tells the story, once in the life of a directory: what people made of it since is theirs.
pub(super) async fn start(
    hub_client: &Client,
    clusters: &[(String, Client)],
    dir: &Path,
    tasks: &Tasks,
) -> Result<()> {
    let tickets = std::path::absolute(dir.join("tickets")).context("find the directory")?;
    std::fs::create_dir_all(&tickets)
        .with_context(|| format!("create the directory {}", tickets.display()))?;
    let executor = Executor::new(execute::Config {
        hub: Some(hub_client.clone()),
        field_manager: Some(MANAGER.to_owned()),
        ..Default::default()
    });
    if !is_told(&executor).await? {
        tell(&executor, hub_client, &tickets).await?;
    }
    for (_, cluster_client) in clusters.iter().take(usize::from(CLUSTERS)) {
        operator::start(cluster_client, tasks);
    }
    match ansible() {
        Some(program) => run_jobs(hub_client.clone(), program, tasks).await?,
        None => eprintln!(
            "{ANSIBLE} is not on the path, so the story's automation makes jobs that nobody runs"
        ),
    }
    Ok(())
}

/// That everything was put there is written down as the last thing.
fn mark() -> Target {
    let id = Id {
        group: String::new(),
        resource: "configmaps".to_owned(),
        namespace: "demo".to_owned(),
        name: "story-told".to_owned(),
    };
    Target { version: "v1".to_owned(), id }
}

async fn is_told(executor: &Executor) -> Result<bool> {
    match executor.read(Side::Hub, &mark()).await {
        Read::Present(_) => Ok(true),
        Read::Absent => Ok(false),
        Read::NoSuchKind => bail!("the hub does not serve configmaps"),
        Read::Unknown { message } => bail!("ask whether the story was told: {message}"),
    }
}

async fn tell(executor: &Executor, hub_client: &Client, tickets: &Path) -> Result<()> {
    let kinds = Kinds::new(hub_client.clone());
    for mut object in serde_saphyr::from_multiple::<Value>(STORY).context("read the story")? {
        if let Some(directory) = object.pointer_mut("/spec/automationDef/extra_vars/tickets")
            && directory == TICKETS
        {
            *directory = json!(tickets);
        }
        let target = target(&kinds, &object).await?;
        apply(executor, target, object).await?;
    }
    let told = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": mark().id.name, "namespace": mark().id.namespace },
    });
    apply(executor, mark(), told).await
}

async fn target(kinds: &Kinds, object: &Value) -> Result<Target> {
    let text = |pointer: &str| {
        object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (api_version, kind) = (text("/apiVersion"), text("/kind"));
    match kinds.map(&api_version, &kind).await {
        Mapping::Mapped(mapped) => Ok(Target {
            version: mapped.version,
            id: Id {
                group: mapped.group,
                resource: mapped.resource,
                namespace: text("/metadata/namespace"),
                name: text("/metadata/name"),
            },
        }),
        Mapping::NoSuchKind => bail!("the hub does not serve {api_version} {kind}"),
        Mapping::Unknown(message) => bail!("ask the hub what {api_version} {kind} is: {message}"),
    }
}

async fn apply(executor: &Executor, target: Target, object: Value) -> Result<()> {
    let what = format!("{} {}", target.id.resource, target.id.name);
    let write = Write::Apply { object, manager: MANAGER.to_owned(), force: false };
    let action = Action { side: Side::Hub, target, write };
    match executor.execute(vec![vec![action]]).await.into_iter().flatten().next() {
        Some(Outcome::Done(_)) => Ok(()),
        other => bail!("put {what} on the hub: {other:?}"),
    }
}

/// The first such program on the path.
fn ansible() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(ANSIBLE)).find(|file| file.is_file())
}

async fn run_jobs(hub_client: Client, program: PathBuf, tasks: &Tasks) -> Result<()> {
    let playbooks =
        Playbooks::ConfigMap { namespace: "demo".to_owned(), name: "playbooks".to_owned() };
    let guard = crate::ansible_runner::guard_command()?;
    let config =
        cleat_runner::Config { program, guard, ..cleat_runner::Config::new(hub_client, playbooks) };
    cleat_runner::start(config, tasks).await.context("start the runner of jobs")
}
