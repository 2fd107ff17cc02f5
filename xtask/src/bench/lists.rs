//! `cargo xtask bench lists`: memory of our API server while all it has is listed.
//!
//! The system notes the most memory a process ever had resident, and forgets it when asked to: so
//! nothing is missed between two looks. Ends with an error if a target is missed.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use http::{HeaderValue, Request, header};
use kube::Client;

use super::apiserver::crowd::Crowd;
use super::apiserver::ours::Ours;
use super::apiserver::requests;
use super::procs::{self, Process};
use super::table::{self, Row};
use super::{bare, stage};

const MEBIBYTE: f64 = 1024.0 * 1024.0;
const NAMESPACE: &str = "bench";
/// Who fills the server.
const CLIENTS: usize = 64;
/// Lists at the same time.
const AT_ONCE: usize = 4;
const PAGE: usize = 500;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A tenth of everything, to see that it runs
    #[arg(long)]
    quick: bool,
    /// So many ConfigMaps [default: 200000]
    #[arg(long)]
    objects: Option<usize>,
    /// Run what is built, optimised or not: to see that it runs, not to measure
    #[arg(long)]
    pub(super) as_built: bool,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let objects = args.objects.unwrap_or(if args.quick { 20_000 } else { 200_000 });
    println!("load before: {}", procs::load()?);
    let dir = crate::root().join("target").join("bench");
    std::fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
    let ours = Ours::start(&dir, "lists").await?;
    let config = stage::config(&ours.kubeconfig()).await?;
    let crowd = Crowd::connect(&config, CLIENTS).await?;
    let client = crowd.clients().first().context("there are clients")?;
    stage::namespace(client, NAMESPACE).await?;
    let create = |number: usize| requests::create(NAMESPACE, &format!("map-{number}"));
    let filled = crowd.run(objects, create).await?;
    println!("{objects} objects, created at {:.0}/s", filled.per_second);
    let there = bare::count(client, NAMESPACE).await?;
    ensure!(there >= objects, "{there} of {objects} objects are there");
    // What was only needed to take them in is given back meanwhile.
    tokio::time::sleep(Duration::from_secs(10)).await;

    let server = ours.process();
    let (one, many) = ("one list of all", format!("{AT_ONCE} lists of all at once"));
    let (table, pages) = ("one table of all", format!("one list in pages of {PAGE}"));
    let rows = [
        during(server, one, Some(2.0), whole(client)).await?,
        during(server, table, Some(2.0), as_table(client)).await?,
        during(server, &many, None, several(&crowd)).await?,
        during(server, &pages, None, paged(client)).await?,
    ];
    tokio::time::sleep(Duration::from_secs(10)).await;
    let after = server.resident()? / MEBIBYTE;
    println!("resident 10 s after all of this: {after:.1} MiB\n");
    table::print_beside("before", &rows);
    println!("load after: {}", procs::load()?);
    if rows.iter().any(|row| row.met == Some(false)) {
        bail!("a list takes too much memory");
    }
    Ok(())
}

/// The most memory while something is done, beside what there was before.
async fn during(
    server: &Process,
    what: &str,
    most: Option<f64>,
    doing: impl Future<Output = Result<u64>>,
) -> Result<Row> {
    server.forget_peak()?;
    let (before, begun) = (server.resident()?, Instant::now());
    let bytes = doing.await?;
    let (took, peak) = (begun.elapsed().as_secs_f64(), server.peak()?);
    println!("{what}: {bytes} bytes in {took:.2} s; load {}", procs::load()?);
    let ratio = peak / before;
    Ok(Row {
        what: format!("most resident during {what}, MiB"),
        measured: format!("{:.1}", peak / MEBIBYTE),
        bare: format!("{:.1}", before / MEBIBYTE),
        ratio: format!("{ratio:.2}"),
        target: most.map(|most| format!("< {most}")).unwrap_or_default(),
        met: most.map(|most| ratio < most),
    })
}

async fn whole(client: &Client) -> Result<u64> {
    requests::drain(client, requests::list(NAMESPACE)?).await
}

/// As `kubectl get` asks for it.
async fn as_table(client: &Client) -> Result<u64> {
    let mut request = requests::list(NAMESPACE)?;
    let table = HeaderValue::from_static("application/json;as=Table;v=v1;g=meta.k8s.io");
    request.headers_mut().insert(header::ACCEPT, table);
    requests::drain(client, request).await
}

async fn several(crowd: &Crowd) -> Result<u64> {
    let lists = crowd.clients().iter().take(AT_ONCE).map(whole);
    Ok(futures::future::try_join_all(lists).await?.into_iter().sum())
}

async fn paged(client: &Client) -> Result<u64> {
    let mut bytes = 0;
    let mut from = String::new();
    loop {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?limit={PAGE}{from}");
        let page = client.request_text(Request::get(path).body(Vec::new())?).await?;
        bytes += u64::try_from(page.len())?;
        let page: serde_json::Value = serde_json::from_str(&page)?;
        match page.pointer("/metadata/continue").and_then(serde_json::Value::as_str) {
            Some(token) if !token.is_empty() => from = format!("&continue={}", escaped(token)),
            _ => return Ok(bytes),
        }
    }
}

/// Tokens are base64, of which three characters mean something else in a query.
fn escaped(token: &str) -> String {
    token.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}
