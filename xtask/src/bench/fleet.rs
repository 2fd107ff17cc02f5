//! `cargo xtask bench fleet`: one hub, many clusters joined from nothing, up to a hundred of them leaving.
//!
//! What is real: the hub is `cleat up` in a process of its own, durable, reached over TLS; every
//! cluster has an API server of its own and every story of an agent, each with its own connections to
//! the hub. What is simulated: the clusters' servers are embedded ones that keep nothing on disk, and
//! they and their agents share this process; agents are the hub's administrator instead of asking for
//! certificates, and clusters are accepted as they come; leases are renewed once a minute, as usual.
//! Machines are not compared: each size begins from nothing, and what is judged is how the figures
//! grow from the smaller to the larger.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use cleat_agent::leave::Presence;
use cleat_agent::registration::{Live, live};
use cleat_agent::{Member, start_stories, work};
use cleat_api::appliedmanifestwork::AppliedManifestWork;
use cleat_api::managedcluster::{ManagedCluster, RemoveStrategy};
use cleat_api::manifestwork::ManifestWork;
use cleat_core::registration::agent::{Application, apply};
use cleat_core::write::Write;
use cleat_runtime::clock::Clock;
use cleat_runtime::connect::connect;
use cleat_runtime::tasks::Tasks;
use cleat_world::World;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Config, ResourceExt as _};
use serde_json::{Value, json};

use super::bare;
use super::procs::{self, Process};
use super::table::number;

/// Nothing here takes so long unless something is broken.
const PATIENCE: Duration = Duration::from_secs(3600);
const MEBIBYTE: f64 = 1024.0 * 1024.0;
/// Works of a cluster.
const WORKS: usize = 20;
/// Clusters that leave.
const LEAVING: usize = 100;
/// Twice a size may cost twice as much, and a little for what is noise.
const LINEAR: f64 = 1.15;

/// What one size measured.
struct Figures {
    clusters: usize,
    applied: f64,
    left: f64,
    leaving: usize,
    /// When everything was applied, and the most until the last cluster had left.
    resident: f64,
    peak: f64,
    processor: f64,
}

pub(crate) async fn run(quick: bool, sizes: &[usize]) -> Result<()> {
    let sizes: Vec<usize> = match (sizes.is_empty(), quick) {
        (false, _) => sizes.to_vec(),
        (true, true) => vec![10, 100],
        (true, false) => vec![100, 1000],
    };
    println!("load before: {}", procs::load()?);
    let mut all = Vec::new();
    for clusters in sizes {
        let figures = measure(clusters).await?;
        print(&figures);
        all.push(figures);
    }
    for pair in all.windows(2) {
        if let [small, large] = pair {
            compare(small, large);
        }
    }
    println!("load after: {}", procs::load()?);
    Ok(())
}

async fn measure(clusters: usize) -> Result<Figures> {
    let dir = crate::root().join("target").join("bench");
    std::fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
    let (process, kubeconfig) = procs::hub(&dir).await?;
    let config = config(&kubeconfig).await?;
    let hub = connect(config.clone(), "cleat-bench")?;
    println!("\n{clusters} clusters: starting their servers");
    let world = World::with_clusters(clusters).await?;
    for cluster in &world.clusters {
        cleat_hub::prepare::prepare_cluster(&cluster.client()).await?;
    }
    let tasks = Tasks::new();
    let begun = Instant::now();
    let applied = tokio::spawn(all_applied(hub.clone(), clusters * WORKS));
    let names: Vec<String> = (0..clusters).map(|index| format!("c{index}")).collect();
    let mut joining = futures::stream::iter(names.iter().zip(&world.clusters))
        .map(|(name, cluster)| join(&hub, &config, name, cluster.client(), &tasks))
        .buffer_unordered(bare::IN_FLIGHT);
    while let Some(joined) = joining.next().await {
        joined?;
    }
    drop(joining);
    fill(&hub, &names).await?;
    let applied = tokio::time::timeout(PATIENCE, applied);
    tokio::select! {
        finished = applied => {
            finished.context("not everything was applied; see target/bench/hub.log")???;
        }
        // Nothing would ever be applied.
        ended = ended(&process) => return Err(ended.context("the hub ended; see its log")),
    }
    let took = begun.elapsed().as_secs_f64();
    println!("applied after {took:.1} s; load {}", procs::load()?);
    let (resident, processor) = (process.resident()?, process.processor()?);

    // As many in a large fleet as in a small one: what a leave costs must not depend on the others.
    let leaving = clusters.min(LEAVING);
    let begun = Instant::now();
    leave(&hub, &process, names.iter().take(leaving)).await?;
    let left = begun.elapsed().as_secs_f64();
    println!("{leaving} left after {left:.1} s; load {}", procs::load()?);
    for cluster in world.clusters.iter().take(leaving) {
        let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "bench");
        let found = maps.list_metadata(&ListParams::default()).await?.items;
        let ours = found.iter().filter(|map| map.name_any() != "kube-root-ca.crt").count();
        ensure!(ours == 0, "{ours} objects are left on {}", cluster.name);
        let ledgers: Api<AppliedManifestWork> = Api::all(cluster.client());
        let ledgers = ledgers.list_metadata(&ListParams::default()).await?.items.len();
        ensure!(ledgers == 0, "{ledgers} ledgers are left on {}", cluster.name);
    }
    let peak = process.peak()?;
    tasks.shutdown().await;
    Ok(Figures { clusters, applied: took, left, leaving, resident, peak, processor })
}

/// Returns when the hub has ended, which it should not.
async fn ended(process: &Process) -> anyhow::Error {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if let Err(gone) = process.resident() {
            return gone;
        }
    }
}

async fn config(kubeconfig: &Path) -> Result<Config> {
    let read = Kubeconfig::read_from(kubeconfig)?;
    Ok(Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?)
}

/// A cluster comes, is accepted, and its agent begins.
async fn join(
    hub: &Client,
    config: &Config,
    name: &str,
    cluster_client: Client,
    tasks: &Tasks,
) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(cluster_client.clone());
    let namespace = serde_json::from_value(json!({ "metadata": { "name": "bench" } }))?;
    namespaces.create(&PostParams::default(), &namespace).await?;
    let application = Application {
        name: name.to_owned(),
        cluster_id: format!("id-of-{name}"),
        remove_strategy: RemoveStrategy::Required,
        ..Application::default()
    };
    let Write::Create(mut object) = apply(&application).write else {
        bail!("a cluster is joined by making its object");
    };
    if let Some(accepts) = object.pointer_mut("/spec/hubAcceptsClient") {
        *accepts = json!(true);
    }
    let clusters: Api<ManagedCluster> = Api::all(hub.clone());
    clusters.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    let hub_client = connect(config.clone(), "cleat-agent")?;
    let presence = Presence::default();
    let member = Member {
        name: name.to_owned(),
        cluster_id: application.cluster_id.clone(),
        hub_client: hub_client.clone(),
        cluster_client: cluster_client.clone(),
        hub_address: "https://hub.bench".to_owned(),
        presence: presence.clone(),
        keep: None,
        deployment: None,
    };
    let spread = name.bytes().fold(0_u16, |sum, byte| sum.wrapping_mul(31) ^ u16::from(byte));
    live(
        Live {
            name: name.to_owned(),
            cluster_id: application.cluster_id,
            hub_address: member.hub_address.clone(),
            hub_client,
            cluster_client,
            clock: Clock::system(),
            dice: Arc::new(move || spread),
            rotation: None,
            presence,
        },
        tasks,
    );
    start_stories(&member, |config| work::Config { workers: 4, ..config }, |config| config, tasks);
    Ok(())
}

/// Twenty works for every cluster, as soon as there is a place for them.
async fn fill(hub: &Client, names: &[String]) -> Result<()> {
    let all = names.iter().flat_map(|name| (0..WORKS).map(move |index| (name, index)));
    let mut creating = futures::stream::iter(all)
        .map(|(name, index)| async move {
            let works: Api<ManifestWork> = Api::namespaced(hub.clone(), name);
            let manifest = map(&format!("w{index}"));
            let work = serde_json::from_value(json!({
                "metadata": { "name": format!("w{index}") },
                "spec": { "workload": { "manifests": [manifest] } },
            }))?;
            loop {
                match works.create(&PostParams::default(), &work).await {
                    Ok(_) => return Ok::<(), anyhow::Error>(()),
                    // The hub has not made the cluster's namespace yet.
                    Err(kube::Error::Api(status)) if status.code == 404 => {
                        tokio::time::sleep(Duration::from_millis(200)).await;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        })
        .buffer_unordered(bare::IN_FLIGHT);
    while let Some(created) = creating.next().await {
        created?;
    }
    Ok(())
}

fn map(name: &str) -> Value {
    bare::map("bench", name)
}

/// Returns when so many works are applied, as the hub tells whoever watches.
async fn all_applied(hub: Client, wanted: usize) -> Result<()> {
    let works: Api<ManifestWork> = Api::all(hub);
    let mut applied = BTreeSet::new();
    let events = watcher(works, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        if let Ok(Event::Apply(work) | Event::InitApply(work)) = event {
            let conditions = work.status.as_ref().map(|status| status.conditions.as_slice());
            let is = |kind: &str, status: &str| kind == "Applied" && status == "True";
            if conditions.unwrap_or_default().iter().any(|one| is(&one.type_, &one.status)) {
                applied.insert((work.namespace().unwrap_or_default(), work.name_any()));
            }
        }
        if applied.len() >= wanted {
            return Ok(());
        }
    }
    bail!("the watch ended");
}

async fn leave(
    hub: &Client,
    process: &Process,
    names: impl Iterator<Item = &String>,
) -> Result<()> {
    let clusters: Api<ManagedCluster> = Api::all(hub.clone());
    let mut going: BTreeSet<&String> = names.collect();
    for name in &going {
        clusters.delete(name, &DeleteParams::default()).await?;
    }
    let begun = Instant::now();
    while !going.is_empty() {
        if begun.elapsed() > PATIENCE {
            bail!("{} clusters have not left; see target/bench/hub.log", going.len());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let there = clusters.list_metadata(&ListParams::default()).await?.items;
        let there: BTreeSet<String> = there.iter().map(|one| one.name_any()).collect();
        going.retain(|name| there.contains(*name));
        // A hub that ended would never answer again.
        process.resident()?;
    }
    Ok(())
}

fn print(figures: &Figures) {
    let Figures { clusters, applied, left, leaving, resident, peak, processor } = figures;
    let works = clusters * WORKS;
    println!("{clusters} clusters, {works} works:");
    println!("  joined from nothing and all applied  {applied:8.1} s");
    println!("  {leaving:4} clusters left (Required)       {left:8.1} s");
    println!("  hub: memory, all applied             {:8.1} MiB", resident / MEBIBYTE);
    println!("  hub: memory, the most of all         {:8.1} MiB", peak / MEBIBYTE);
    println!("  hub: processor time until applied    {processor:8.1} s");
}

/// How each figure grew, beside how much the fleet did.
fn compare(small: &Figures, large: &Figures) {
    let factor = number(large.clusters) / number(small.clusters);
    let leaving = number(large.leaving) / number(small.leaving);
    println!(
        "\nfrom {} to {} clusters, {factor:.1} times as many, and {leaving:.1} times as many leaving:",
        small.clusters, large.clusters
    );
    for (what, grew, by) in [
        ("time to all applied", large.applied / small.applied, factor),
        ("time to all left", large.left / small.left, leaving),
        ("hub memory", large.resident / small.resident, factor),
        ("hub memory, the most", large.peak / small.peak, factor),
        ("hub processor time", large.processor / small.processor, factor),
    ] {
        let verdict = if grew <= by * LINEAR { "linear or better" } else { "WORSE than linear" };
        println!("  {what:24} {grew:6.2} times: {verdict}");
    }
}
