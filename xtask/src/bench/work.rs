//! `cargo xtask bench work`: works carried by one agent, measured in one run.
//!
//! The cluster is a real kube-apiserver with an etcd that waits for the disk. The hub is our own
//! server in a process of its own: a second kube-apiserver on the same few cores would take from the
//! cluster what is to be measured. Bare loops run before and after, and their mean is compared with.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use cleat_api::manifestwork::ManifestWork;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};

use super::bare::{self, IN_FLIGHT};
use super::procs::{self, Process};
use super::stage::{CLUSTER, NOBODY, Stage};
use super::table::{self, Row, number, percentile};

/// How much of everything.
struct Size {
    works: usize,
    each: usize,
    singles: usize,
    big: usize,
    quiet: Duration,
}

/// Nothing here takes so long unless something is broken.
const PATIENCE: Duration = Duration::from_secs(600);
const MEBIBYTE: f64 = 1024.0 * 1024.0;

pub(crate) async fn run(quick: bool, workers: Option<usize>) -> Result<()> {
    let size = if quick {
        Size { works: 100, each: 10, singles: 20, big: 100, quiet: Duration::from_secs(30) }
    } else {
        Size { works: 1000, each: 10, singles: 200, big: 1000, quiet: Duration::from_secs(60) }
    };
    println!("load before: {}", procs::load()?);
    let stage = Stage::set().await?;
    let cores = std::thread::available_parallelism()?;
    println!("{cores} core(s); cluster: Kubernetes {}, etcd with fsync;", stage.version);
    println!("hub: our own server, its own process; {IN_FLIGHT} requests in flight everywhere\n");

    let mut rows = Vec::new();
    let bare_before = bare_creates(&stage, &size).await?;
    let recorded = bare_recorded(&stage, &size).await?;
    let bare_deletes_before = bare_deletes(&stage, &size).await?;
    let (agent, took) = apply(&stage, &size, workers).await?;
    let spent = agent.processor()?;
    println!("agent: {took:.1} s, processor {spent:.1} s; load {}", procs::load()?);
    settle(&stage, size.works).await?;
    let settled = agent.resident()?;
    println!("agent: processor {:.1} s when settled", agent.processor()?);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let rested = agent.resident()?;

    latency(&stage, &size, &mut rows).await?;
    let deletion = delete_big(&stage, &size).await?;
    let after_all = agent.resident()?;
    drop(agent);
    let bare_deletes_after = bare_deletes(&stage, &size).await?;
    let bare_after = bare_creates(&stage, &size).await?;
    idle(&stage, &size, workers, &mut rows).await?;

    let objects = number(size.works * size.each);
    let bare = objects * 2.0 / (bare_before + bare_after);
    let rate = objects / took;
    rows.insert(
        0,
        Row {
            what: format!("objects applied per second ({} works of {})", size.works, size.each),
            measured: format!("{rate:.0}"),
            bare: format!("{bare:.0} ({:.0}, {:.0})", objects / bare_before, objects / bare_after),
            ratio: format!("{:.2}", rate / bare),
            target: "≥ 0.80".to_owned(),
            met: Some(rate / bare >= 0.8),
        },
    );
    rows.insert(
        1,
        Row {
            what: "  beside a loop that writes down what it makes".to_owned(),
            measured: format!("{rate:.0}"),
            bare: format!("{:.0}", objects / recorded),
            ratio: format!("{:.2}", rate * recorded / objects),
            target: String::new(),
            met: None,
        },
    );
    let bare = f64::midpoint(bare_deletes_before, bare_deletes_after);
    rows.push(Row {
        what: format!("deletion of a work of {} objects, seconds", size.big),
        measured: format!("{deletion:.2}"),
        bare: format!("{bare:.2} ({bare_deletes_before:.2}, {bare_deletes_after:.2})"),
        ratio: format!("{:.2}", deletion / bare),
        target: "≤ 1.3".to_owned(),
        met: Some(deletion / bare <= 1.3),
    });
    let after = format!("after {} more and a large one", size.singles);
    for (when, bytes, asked) in
        [("once applied", settled, true), ("10 s later", rested, true), (&after, after_all, false)]
    {
        rows.push(Row {
            what: format!("resident memory of the agent, MiB, {when}"),
            measured: format!("{:.1}", bytes / MEBIBYTE),
            bare: String::new(),
            ratio: String::new(),
            target: if asked { "< 60".to_owned() } else { String::new() },
            met: asked.then_some(bytes / MEBIBYTE < 60.0),
        });
    }
    println!();
    table::print(&rows);
    println!("load after: {}", procs::load()?);
    Ok(())
}

fn work(name: &str, manifests: Vec<Value>) -> Result<ManifestWork> {
    Ok(serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": { "workload": { "manifests": manifests } },
    }))?)
}

/// Seconds for as many objects as the works have together.
async fn bare_creates(stage: &Stage, size: &Size) -> Result<f64> {
    let took = bare::create(&stage.cluster, NOBODY, size.works * size.each).await?;
    bare::clear(&stage.cluster, NOBODY).await?;
    println!("bare creates: {:.1} s; load {}", took.as_secs_f64(), procs::load()?);
    Ok(took.as_secs_f64())
}

/// The same by a loop that also writes a record for every so many of them as a work has.
async fn bare_recorded(stage: &Stage, size: &Size) -> Result<f64> {
    let count = size.works * size.each;
    let took = bare::create_recorded(&stage.cluster, NOBODY, count, size.each).await?;
    bare::clear(&stage.cluster, NOBODY).await?;
    bare::clear_records(&stage.cluster).await?;
    println!("bare creates with records: {:.1} s; load {}", took.as_secs_f64(), procs::load()?);
    Ok(took.as_secs_f64())
}

async fn bare_deletes(stage: &Stage, size: &Size) -> Result<f64> {
    bare::create(&stage.cluster, NOBODY, size.big).await?;
    let took = bare::delete(&stage.cluster, NOBODY, size.big).await?;
    Ok(took.as_secs_f64())
}

/// Seconds from the start of the agent to the last object.
async fn apply(stage: &Stage, size: &Size, workers: Option<usize>) -> Result<(Process, f64)> {
    let works: Api<ManifestWork> = Api::namespaced(stage.hub.clone(), CLUSTER);
    let each = size.each;
    bare::all(size.works, move |index| {
        let works = works.clone();
        async move {
            let map = |inner| bare::map(CLUSTER, &format!("w{index}-{inner}"));
            let work = work(&format!("w{index}"), (0..each).map(map).collect())?;
            works.create(&PostParams::default(), &work).await?;
            Ok(())
        }
    })
    .await?;
    let before = bare::count(&stage.cluster, CLUSTER).await?;
    let begun = Instant::now();
    let agent = stage.agent(workers, false)?;
    while bare::count(&stage.cluster, CLUSTER).await? < before + size.works * size.each {
        if begun.elapsed() > PATIENCE {
            bail!("not everything was applied; see {}", stage.log(false).display());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok((agent, begun.elapsed().as_secs_f64()))
}

/// Until the hub was told of every work.
async fn settle(stage: &Stage, count: usize) -> Result<()> {
    let works: Api<ManifestWork> = Api::namespaced(stage.hub.clone(), CLUSTER);
    let begun = Instant::now();
    loop {
        let all = works.list(&ListParams::default()).await?;
        if all.items.iter().filter(|work| is_applied(work)).count() >= count {
            println!("hub told of all: {:.1} s more", begun.elapsed().as_secs_f64());
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            bail!("the hub was not told of every work; see {}", stage.log(false).display());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

fn is_applied(work: &ManifestWork) -> bool {
    let conditions = work.status.as_ref().map(|status| status.conditions.as_slice());
    conditions.unwrap_or_default().iter().any(|c| c.type_ == "Applied" && c.status == "True")
}

/// From before the hub is asked until a watch of the cluster tells of the object.
async fn latency(stage: &Stage, size: &Size, rows: &mut Vec<Row>) -> Result<()> {
    let works: Api<ManifestWork> = Api::namespaced(stage.hub.clone(), CLUSTER);
    let unheeded: Api<ManifestWork> = Api::namespaced(stage.hub.clone(), NOBODY);
    let maps: Api<ConfigMap> = Api::namespaced(stage.cluster.clone(), CLUSTER);
    let from = maps.list_metadata(&ListParams::default().limit(1)).await?;
    let from = from.metadata.resource_version.context("a list has a revision")?;
    let mut events = maps.watch_metadata(&WatchParams::default(), &from).await?.boxed();
    let (mut times, mut bare_times) = (Vec::new(), Vec::new());
    for index in 0..size.singles {
        let name = format!("single-{index}");
        let one = work(&name, vec![bare::map(CLUSTER, &name)])?;
        let begun = Instant::now();
        works.create(&PostParams::default(), &one).await?;
        let seen = async {
            while let Some(event) = events.try_next().await? {
                if let WatchEvent::Added(object) = event
                    && object.metadata.name.as_deref() == Some(name.as_str())
                {
                    return Ok(());
                }
            }
            bail!("the watch ended");
        };
        tokio::time::timeout(PATIENCE, seen).await.context("wait for a single object")??;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
        // The hub is told of it meanwhile, and nothing else happens.
        tokio::time::sleep(Duration::from_millis(50)).await;

        let object = serde_json::from_value(bare::map(NOBODY, &name))?;
        let begun = Instant::now();
        unheeded.create(&PostParams::default(), &one).await?;
        let maps: Api<ConfigMap> = Api::namespaced(stage.cluster.clone(), NOBODY);
        maps.create(&PostParams::default(), &object).await?;
        bare_times.push(begun.elapsed().as_secs_f64() * 1000.0);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bare::clear(&stage.cluster, NOBODY).await?;
    times.sort_by(f64::total_cmp);
    bare_times.sort_by(f64::total_cmp);
    for (name, part, most) in [("p50", 0.5, 50.0), ("p99", 0.99, 250.0)] {
        let (is, bare) = (percentile(&times, part), percentile(&bare_times, part));
        rows.push(Row {
            what: format!("hub write to object when idle, ms, {name} of {}", size.singles),
            measured: format!("{is:.1}"),
            bare: format!("{bare:.1}"),
            ratio: format!("{:.2}", is / bare),
            target: format!("< {most:.0}"),
            met: Some(is < most),
        });
    }
    Ok(())
}

/// Seconds from asking for the deletion of one big work until neither it nor an object is there.
async fn delete_big(stage: &Stage, size: &Size) -> Result<f64> {
    let works: Api<ManifestWork> = Api::namespaced(stage.hub.clone(), CLUSTER);
    let before = bare::count(&stage.cluster, CLUSTER).await?;
    let map = |index| bare::map(CLUSTER, &format!("big-{index}"));
    let big = work("big", (0..size.big).map(map).collect())?;
    works.create(&PostParams::default(), &big).await?;
    let begun = Instant::now();
    while !is_applied(&works.get("big").await?) {
        if begun.elapsed() > PATIENCE {
            bail!("the big work was not applied; see {}", stage.log(false).display());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    println!("big work applied and told: {:.2} s", begun.elapsed().as_secs_f64());
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Asking again and again would cost the hub more than the deletion.
    let only = ListParams::default().fields("metadata.name=big");
    let from = works.list_metadata(&only).await?;
    let from = from.metadata.resource_version.context("a list has a revision")?;
    let only = WatchParams::default().fields("metadata.name=big");
    let mut events = works.watch_metadata(&only, &from).await?.boxed();
    let begun = Instant::now();
    works.delete("big", &DeleteParams::default()).await?;
    let gone = async {
        while let Some(event) = events.try_next().await? {
            if let WatchEvent::Deleted(_) = event {
                return Ok(());
            }
        }
        bail!("the watch ended");
    };
    let late = || format!("wait for the end of the big work; see {}", stage.log(false).display());
    tokio::time::timeout(PATIENCE, gone).await.with_context(late)??;
    let took = begun.elapsed().as_secs_f64();
    if bare::count(&stage.cluster, CLUSTER).await? != before {
        bail!("the big work is gone, and its objects are not");
    }
    Ok(took)
}

/// What an agent asks for while nothing changes, from its own log of every request.
async fn idle(
    stage: &Stage,
    size: &Size,
    workers: Option<usize>,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let agent = stage.agent(workers, true)?;
    let mut before = requests(&stage.log(true))?;
    let begun = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let now = requests(&stage.log(true))?;
        if now.0 + now.1 > 0 && now == before {
            break;
        }
        if begun.elapsed() > PATIENCE {
            bail!("the agent does not come to rest; see {}", stage.log(true).display());
        }
        before = now;
    }
    println!(
        "restarted agent: {} request(s) and {} watch(es) until at rest, {:.1} MiB",
        before.0,
        before.1,
        agent.resident()? / MEBIBYTE
    );
    let spent = agent.processor()?;
    tokio::time::sleep(size.quiet).await;
    let after = requests(&stage.log(true))?;
    let minutes = size.quiet.as_secs_f64() / 60.0;
    let other = number(after.0 - before.0) / minutes;
    rows.push(Row {
        what: format!("requests per minute when idle, over {} s", size.quiet.as_secs()),
        measured: format!("{other:.0}"),
        bare: String::new(),
        ratio: String::new(),
        target: "0".to_owned(),
        met: Some(other == 0.0),
    });
    rows.push(Row {
        what: "  and watches begun per minute".to_owned(),
        measured: format!("{:.0}", number(after.1 - before.1) / minutes),
        bare: String::new(),
        ratio: String::new(),
        target: String::new(),
        met: None,
    });
    println!("agent when idle: processor {:.2} s", agent.processor()? - spent);
    Ok(())
}

/// Requests, and watches, that the log tells of.
fn requests(log: &Path) -> Result<(usize, usize)> {
    let text = std::fs::read_to_string(log).with_context(|| format!("read {}", log.display()))?;
    let all = text.lines().filter(|line| line.contains("request method="));
    let (watches, others): (Vec<&str>, Vec<&str>) =
        all.partition(|line| line.contains("watch=true"));
    Ok((others.len(), watches.len()))
}
