//! `cargo xtask bench policy`: policies of one controller on a real kube-apiserver, in one run.
//!
//! The objects are there and right before the controller starts, so what is measured is looking:
//! bare GETs of the same objects, with as many in flight, run before and after.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use cleat_api::configurationpolicy::ConfigurationPolicy;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};

use super::bare::{self, IN_FLIGHT};
use super::procs::{self, Process};
use super::stage::{CLUSTER, Stage};
use super::table::{self, Row, percentile};

/// How much of everything.
struct Size {
    policies: usize,
    each: usize,
    repairs: usize,
    quiet: Duration,
}

const PATIENCE: Duration = Duration::from_secs(600);
const MEBIBYTE: f64 = 1024.0 * 1024.0;

pub(crate) async fn run(quick: bool) -> Result<()> {
    let size = if quick {
        Size { policies: 20, each: 5, repairs: 20, quiet: Duration::from_secs(15) }
    } else {
        Size { policies: 500, each: 20, repairs: 200, quiet: Duration::from_secs(60) }
    };
    println!("load before: {}", procs::load()?);
    let stage = Stage::set().await?;
    let cores = std::thread::available_parallelism()?;
    println!("{cores} core(s); Kubernetes {}, etcd with fsync;", stage.version);
    println!("{IN_FLIGHT} requests in flight everywhere\n");
    prepare(&stage.cluster, &size).await?;

    let before = gets(&stage.cluster, &size).await?;
    let (controller, took) = first(&stage, &size).await?;
    println!("controller: processor {:.1} s; load {}", controller.processor()?, procs::load()?);
    let evaluated = controller.resident()?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let times = repairs(&stage.cluster, &size).await?;
    let after_all = controller.resident()?;
    drop(controller);
    let after = gets(&stage.cluster, &size).await?;
    let bare = f64::midpoint(before, after);
    let mut rows = vec![Row {
        what: format!(
            "first evaluation of {} policies of {} objects, seconds",
            size.policies, size.each
        ),
        measured: format!("{took:.2}"),
        bare: format!("{bare:.2} ({before:.2}, {after:.2})"),
        ratio: format!("{:.2}", took / bare),
        target: "≤ 1.5".to_owned(),
        met: Some(took / bare <= 1.5),
    }];
    for (name, part, most) in [("p50", 0.5, None), ("p99", 0.99, Some(200.0))] {
        let is = percentile(&times, part);
        rows.push(Row {
            what: format!("change of an object to its repair, ms, {name} of {}", times.len()),
            measured: format!("{is:.1}"),
            bare: String::new(),
            ratio: String::new(),
            target: most.map(|most| format!("< {most:.0}")).unwrap_or_default(),
            met: most.map(|most| is < most),
        });
    }
    idle(&stage, &size, &mut rows).await?;
    for (when, bytes) in [("once evaluated", evaluated), ("after all of this", after_all)] {
        rows.push(Row {
            what: format!("resident memory of the controller, MiB, {when}"),
            measured: format!("{:.1}", bytes / MEBIBYTE),
            bare: String::new(),
            ratio: String::new(),
            target: "< 100".to_owned(),
            met: Some(bytes / MEBIBYTE < 100.0),
        });
    }
    println!();
    table::print(&rows);
    println!("load after: {}", procs::load()?);
    Ok(())
}

fn policies(client: &Client) -> Api<ConfigurationPolicy> {
    Api::namespaced(client.clone(), CLUSTER)
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), CLUSTER)
}

fn policy(index: usize, each: usize) -> Value {
    let template = |inner| {
        let definition = bare::map(CLUSTER, &name(index, inner));
        json!({ "complianceType": "musthave", "objectDefinition": definition })
    };
    json!({
        "metadata": { "name": format!("p{index}") },
        "spec": {
            "remediationAction": "enforce",
            "object-templates": (0..each).map(template).collect::<Vec<Value>>(),
        },
    })
}

fn name(policy: usize, object: usize) -> String {
    format!("p{policy}-{object}")
}

/// Makes the objects, right as they are, and the policies about them.
async fn prepare(client: &Client, size: &Size) -> Result<()> {
    let (each, count) = (size.each, size.policies * size.each);
    let all = maps(client);
    bare::all(count, move |number| {
        let all = all.clone();
        async move {
            let object = bare::map(CLUSTER, &name(number / each, number % each));
            all.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
            Ok(())
        }
    })
    .await?;
    let all = policies(client);
    bare::all(size.policies, move |index| {
        let all = all.clone();
        async move {
            all.create(&PostParams::default(), &serde_json::from_value(policy(index, each))?)
                .await?;
            Ok(())
        }
    })
    .await?;
    Ok(())
}

/// Seconds for one GET of every object.
async fn gets(client: &Client, size: &Size) -> Result<f64> {
    let (each, all) = (size.each, maps(client));
    let took = bare::all(size.policies * size.each, move |number| {
        let all = all.clone();
        async move {
            all.get(&name(number / each, number % each)).await?;
            Ok(())
        }
    })
    .await?;
    println!("bare GETs: {:.1} s; load {}", took.as_secs_f64(), procs::load()?);
    Ok(took.as_secs_f64())
}

/// Seconds from the start of the controller until every policy is known to hold.
async fn first(stage: &Stage, size: &Size) -> Result<(Process, f64)> {
    let all = policies(&stage.cluster);
    let from = all.list_metadata(&ListParams::default().limit(1)).await?;
    let from = from.metadata.resource_version.context("a list has a revision")?;
    let mut events = all.watch(&WatchParams::default(), &from).await?.boxed();
    let begun = Instant::now();
    let controller = stage.controller(false)?;
    let mut known = std::collections::BTreeSet::new();
    let hold = async {
        while known.len() < size.policies {
            let event = events.try_next().await?.context("the watch ended")?;
            if let WatchEvent::Modified(policy) = event
                && policy.status.is_some_and(|s| s.compliant.as_deref() == Some("Compliant"))
            {
                known.insert(policy.metadata.name.unwrap_or_default());
            }
        }
        anyhow::Ok(())
    };
    let waited = tokio::time::timeout(PATIENCE, hold).await;
    waited.with_context(|| format!("evaluate all; see {}", stage.log(false).display()))??;
    Ok((controller, begun.elapsed().as_secs_f64()))
}

/// Milliseconds from a change of one object until it is as it was, sorted.
async fn repairs(client: &Client, size: &Size) -> Result<Vec<f64>> {
    let all = maps(client);
    let from = all.list_metadata(&ListParams::default().limit(1)).await?;
    let from = from.metadata.resource_version.context("a list has a revision")?;
    let mut events = all.watch(&WatchParams::default(), &from).await?.boxed();
    let mut times = Vec::new();
    for index in 0..size.repairs {
        let name = name(index % size.policies, index % size.each);
        let patch = Patch::Merge(json!({ "data": { "key": "changed" } }));
        let begun = Instant::now();
        all.patch(&name, &PatchParams::default(), &patch).await?;
        let repaired = async {
            while let Some(event) = events.try_next().await? {
                if let WatchEvent::Modified(map) = event
                    && map.metadata.name.as_deref() == Some(name.as_str())
                    && map.data.is_some_and(|data| data.get("key").is_some_and(|v| v == "value"))
                {
                    return Ok(());
                }
            }
            bail!("the watch ended");
        };
        tokio::time::timeout(PATIENCE, repaired).await.context("wait for a repair")??;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
        // What there is to tell is told meanwhile.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// What a controller asks for while nothing changes, from its own log of every request.
async fn idle(stage: &Stage, size: &Size, rows: &mut Vec<Row>) -> Result<()> {
    let controller = stage.controller(true)?;
    let mut before = requests(&stage.log(true))?;
    let begun = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let now = requests(&stage.log(true))?;
        if now > 0 && now == before {
            break;
        }
        if begun.elapsed() > PATIENCE {
            bail!("the controller does not come to rest; see {}", stage.log(true).display());
        }
        before = now;
    }
    println!("restarted controller: {before} request(s) until at rest");
    let spent = controller.processor()?;
    tokio::time::sleep(size.quiet).await;
    let asked = requests(&stage.log(true))? - before;
    println!("controller when idle: processor {:.2} s", controller.processor()? - spent);
    rows.push(Row {
        what: format!("reads and writes while idle, in {} s", size.quiet.as_secs()),
        measured: asked.to_string(),
        bare: String::new(),
        ratio: String::new(),
        target: "0".to_owned(),
        met: Some(asked == 0),
    });
    Ok(())
}

/// Requests but for watches that the log tells of.
fn requests(log: &Path) -> Result<usize> {
    let text = std::fs::read_to_string(log).with_context(|| format!("read {}", log.display()))?;
    let all = text.lines().filter(|line| line.contains("request method="));
    Ok(all.filter(|line| !line.contains("watch=true")).count())
}
