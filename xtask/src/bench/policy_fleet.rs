//! `cargo xtask bench policy-fleet`: policies spread to many clusters and reported by all of them.
//!
//! What is real: the hub is `cleat up` in a process of its own, durable, reached over TLS, with its
//! scheduler and its policy controllers. What is simulated: clusters are objects and namespaces, and
//! one task here answers for all their agents, with as many requests under way as everywhere. The
//! hub's memory is that of its API server and its controllers together. Each size begins from nothing,
//! and what is judged is how the figures grow from the smaller to the larger.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use cleat_api::managedcluster::{CLUSTER_NAME_LABEL, ManagedCluster};
use cleat_api::managedclustersetbinding::ManagedClusterSetBinding;
use cleat_api::placement::Placement;
use cleat_api::placementbinding::PlacementBinding;
use cleat_api::policy::{Policy, name::ROOT_POLICY};
use cleat_runtime::connect::connect;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Config, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::bare::IN_FLIGHT;
use super::procs::{self, Process};

/// Nothing here takes so long unless something is broken.
const PATIENCE: Duration = Duration::from_secs(3600);
const MEBIBYTE: f64 = 1024.0 * 1024.0;
/// Twice a size may cost twice as much, and a little for what is noise.
const LINEAR: f64 = 1.15;
const NAMESPACE: &str = "bench";

/// What one size measured.
struct Figures {
    clusters: usize,
    policies: usize,
    placed: f64,
    propagated: f64,
    reported: f64,
    resident: f64,
    processor: f64,
}

pub(crate) async fn run(quick: bool, sizes: &[usize], policies: Option<usize>) -> Result<()> {
    let sizes: Vec<usize> = match (sizes.is_empty(), quick) {
        (false, _) => sizes.to_vec(),
        (true, true) => vec![5, 50],
        (true, false) => vec![50, 500],
    };
    let policies = policies.unwrap_or(if quick { 20 } else { 200 });
    println!("load before: {}", procs::load()?);
    let mut all = Vec::new();
    for clusters in sizes {
        let figures = measure(clusters, policies).await?;
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

async fn measure(clusters: usize, policies: usize) -> Result<Figures> {
    let dir = crate::root().join("target").join("bench");
    std::fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
    let (process, kubeconfig) = procs::hub(&dir).await?;
    let read = Kubeconfig::read_from(&kubeconfig)?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    let hub = connect(config, "cleat-bench")?;
    println!("\n{clusters} clusters, {policies} policies");
    let begun = Instant::now();
    fleet(&hub, clusters).await?;
    let placed = begun.elapsed().as_secs_f64();
    println!("clusters placed after {placed:.1} s; load {}", procs::load()?);

    let (spent, begun) = (process.processor()?, Instant::now());
    let answering = tokio::spawn(answer(hub.clone(), clusters * policies));
    let writing = roots(&hub, policies);
    writing.await?;
    let propagated = tokio::time::timeout(PATIENCE, answering).await;
    let propagated =
        propagated.context("not all copies were made; see target/bench/hub.log")???;
    let propagated = propagated.duration_since(begun).as_secs_f64();
    println!("propagated after {propagated:.1} s; load {}", procs::load()?);
    all_reported(&hub, &process, clusters, policies).await?;
    let reported = begun.elapsed().as_secs_f64();
    println!("reported after {reported:.1} s; load {}", procs::load()?);
    let (resident, processor) = (process.resident()?, process.processor()? - spent);
    Ok(Figures { clusters, policies, placed, propagated, reported, resident, processor })
}

async fn make<K>(api: &Api<K>, object: Value) -> Result<()>
where
    K: Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    Ok(())
}

/// Clusters, and a placement that has chosen all of them.
async fn fleet(hub: &Client, count: usize) -> Result<()> {
    let clusters: Api<ManagedCluster> = Api::all(hub.clone());
    let joining = futures::stream::iter(0..count).map(|index| {
        let clusters = clusters.clone();
        async move {
            let spec = json!({ "hubAcceptsClient": true });
            make(&clusters, json!({ "metadata": { "name": format!("c{index}") }, "spec": spec }))
                .await
        }
    });
    joining.buffer_unordered(IN_FLIGHT).try_collect::<()>().await?;
    let namespaces: Api<Namespace> = Api::all(hub.clone());
    make(&namespaces, json!({ "metadata": { "name": NAMESPACE } })).await?;
    let bindings: Api<ManagedClusterSetBinding> = Api::namespaced(hub.clone(), NAMESPACE);
    let binding = json!({ "metadata": { "name": "global" }, "spec": { "clusterSet": "global" } });
    make(&bindings, binding).await?;
    let placements: Api<Placement> = Api::namespaced(hub.clone(), NAMESPACE);
    // Nobody has ever heard of these clusters.
    let spec = json!({ "tolerations": [{ "operator": "Exists" }] });
    make(&placements, json!({ "metadata": { "name": "all" }, "spec": spec })).await?;
    let begun = Instant::now();
    let ours = ListParams::default().labels(CLUSTER_NAME_LABEL);
    loop {
        let chosen = placements.get("all").await?.status.unwrap_or_default();
        let places = namespaces.list_metadata(&ours).await?.items.len();
        if usize::try_from(chosen.number_of_selected_clusters)? == count && places >= count {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            bail!("not all clusters were chosen; see target/bench/hub.log");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn roots(hub: &Client, count: usize) -> Result<()> {
    let policies: Api<Policy> = Api::namespaced(hub.clone(), NAMESPACE);
    let bindings: Api<PlacementBinding> = Api::namespaced(hub.clone(), NAMESPACE);
    let writing = futures::stream::iter(0..count).map(|index| {
        let (policies, bindings, name) = (policies.clone(), bindings.clone(), format!("p{index}"));
        async move {
            let binding = json!({
                "metadata": { "name": name },
                "placementRef": {
                    "apiGroup": "cluster.open-cluster-management.io", "kind": "Placement",
                    "name": "all",
                },
                "subjects": [{
                    "apiGroup": "policy.open-cluster-management.io", "kind": "Policy", "name": name,
                }],
            });
            make(&bindings, binding).await?;
            make(&policies, policy(&name)).await
        }
    });
    writing.buffer_unordered(IN_FLIGHT).try_collect().await
}

fn policy(name: &str) -> Value {
    let object = super::bare::map("default", name);
    json!({
        "metadata": { "name": name },
        "spec": {
            "disabled": false, "remediationAction": "inform",
            "policy-templates": [{ "objectDefinition": {
                "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
                "metadata": { "name": name },
                "spec": { "remediationAction": "inform", "severity": "low", "object-templates": [
                    { "complianceType": "musthave", "objectDefinition": object },
                ] },
            } }],
        },
    })
}

/// Says of every copy, as soon as it is there, that all is well. Returns when the last one was seen.
async fn answer(hub: Client, wanted: usize) -> Result<Instant> {
    let copies: Api<PartialObjectMeta<Policy>> = Api::all(hub.clone());
    let config = watcher::Config::default().labels(ROOT_POLICY);
    let mut seen = BTreeSet::new();
    let mut last = Instant::now();
    let fresh = watcher(copies, config).filter_map(|event| {
        let copy = match event {
            Ok(Event::Apply(copy) | Event::InitApply(copy)) => {
                Some((copy.namespace().unwrap_or_default(), copy.name_any()))
            }
            _ => None,
        };
        // Each is answered for once.
        std::future::ready(copy.filter(|copy| seen.insert(copy.clone())))
    });
    let answers = fresh.take(wanted).inspect(|_| last = Instant::now()).map(|(namespace, name)| {
        let copies: Api<Policy> = Api::namespaced(hub.clone(), &namespace);
        async move {
            let message = "Compliant; notification - configmaps found as specified";
            let details = json!([{
                "templateMeta": { "name": name }, "compliant": "Compliant",
                "history": [{ "message": message, "eventName": "bench" }],
            }]);
            let status = json!({ "status": { "compliant": "Compliant", "details": details } });
            copies.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
            Ok::<(), kube::Error>(())
        }
    });
    answers.buffer_unordered(IN_FLIGHT).try_collect::<()>().await?;
    Ok(last)
}

/// Until every root says that it is compliant everywhere.
async fn all_reported(
    hub: &Client,
    process: &Process,
    clusters: usize,
    policies: usize,
) -> Result<()> {
    let roots: Api<Policy> = Api::namespaced(hub.clone(), NAMESPACE);
    let begun = Instant::now();
    loop {
        let all = roots.list(&ListParams::default()).await?.items;
        let done = all.iter().filter_map(|root| root.status.as_ref()).filter(|status| {
            status.compliant.as_deref() == Some("Compliant") && status.status.len() == clusters
        });
        if done.count() == policies {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            bail!("not everything was reported; see target/bench/hub.log");
        }
        // A hub that ended would never answer again.
        process.resident()?;
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

fn print(figures: &Figures) {
    let Figures { clusters, policies, placed, propagated, reported, resident, processor } = figures;
    let copies = clusters * policies;
    println!("{policies} policies on {clusters} clusters, {copies} copies:");
    println!("  clusters accepted and placed     {placed:8.1} s");
    println!("  all copies made                  {propagated:8.1} s");
    println!("  all reported in the roots        {reported:8.1} s");
    println!("  copies made and reported per second {:5.0}", number(copies) / reported);
    println!("  hub: resident memory             {:8.1} MiB", resident / MEBIBYTE);
    println!("  hub: memory for each copy        {:8.1} KiB", resident / 1024.0 / number(copies));
    println!("  hub: processor time              {processor:8.1} s");
}

/// How each figure grew, beside how much the fleet did.
fn compare(small: &Figures, large: &Figures) {
    let factor = number(large.clusters) / number(small.clusters);
    println!(
        "\nfrom {} to {} clusters, {factor:.0} times as many:",
        small.clusters, large.clusters
    );
    for (what, grew) in [
        ("time to all copies made", large.propagated / small.propagated),
        ("time to all reported", large.reported / small.reported),
        ("hub memory", large.resident / small.resident),
        ("hub processor time", large.processor / small.processor),
    ] {
        let verdict =
            if grew <= factor * LINEAR { "linear or better" } else { "WORSE than linear" };
        println!("  {what:24} {grew:6.2} times: {verdict}");
    }
}

#[expect(clippy::cast_precision_loss, reason = "these are counts of thousands")]
fn number(count: usize) -> f64 {
    count as f64
}
