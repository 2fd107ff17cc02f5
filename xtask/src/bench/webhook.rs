//! `cargo xtask bench webhook`: how long delete protection takes to answer, on a real kube-apiserver
//! and on our own server, one after the other.
//!
//! Providers are config maps, since nothing else happens to those. Reviews are sent to the webhook as
//! an API server would; whole dry-run deletes through the API server are told beside them, and the
//! same of what nobody protects: before there is a webhook, with it, and when it was stopped.

use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use cleat_api::criticalservice::CriticalService;
use cleat_hub::prepare::prepare_protection;
use cleat_runtime::connect::connect;
use cleat_world::kubernetes::{Binaries, ControlPlanes, Durability};
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::bare;
use super::procs::{self, Process};
use super::stage;
use super::table::{self, Row, percentile};

/// How much of everything.
struct Size {
    services: usize,
    /// Objects of one kind, all with the finalizer.
    instances: usize,
    /// Further kinds, none of whose objects has it.
    kinds: usize,
    each: usize,
    asked: usize,
}

const GROUP: &str = "bench.cleat.example";
const NAMESPACE: &str = "bench";
const HELD: &str = "bench.cleat.example/held";
const PATIENCE: Duration = Duration::from_secs(900);
const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// What a provider waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Very many objects have the finalizer.
    Needed,
    /// As many objects of its kind as are read to prove that none of them has it.
    Free,
    /// Very many objects of its kind, none of which has it.
    FreeOfMany,
}

fn fate(number: usize) -> Fate {
    match number % 20 {
        0..10 => Fate::Needed,
        10..19 => Fate::Free,
        _ => Fate::FreeOfMany,
    }
}

pub(crate) async fn run(quick: bool) -> Result<()> {
    let size = if quick {
        Size { services: 40, instances: 3000, kinds: 2, each: 100, asked: 100 }
    } else {
        Size { services: 1000, instances: 100_000, kinds: 5, each: 2000, asked: 1000 }
    };
    println!("load before: {}", procs::load()?);
    let dir = crate::root().join("target").join("bench");
    std::fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
    let binaries = Binaries::built(&crate::root().join("kubernetes"))?;
    let mut rows = Vec::new();
    {
        println!("\nKubernetes {}, etcd with fsync", binaries.version());
        let folder = dir.join("kubernetes-webhook");
        let planes = ControlPlanes::start(&binaries, &folder, 1, Durability::Durable).await?;
        rows.extend(measure("kube", &planes.kubeconfig(), &dir, &size).await?);
    }
    {
        println!("\nour own server, with fsync");
        let (_server, kubeconfig) = procs::server(&dir).await?;
        rows.extend(measure("ours", &kubeconfig, &dir, &size).await?);
    }
    println!();
    table::print(&rows);
    println!("load after: {}", procs::load()?);
    Ok(())
}

/// All of it on one server.
async fn measure(side: &str, kubeconfig: &Path, dir: &Path, size: &Size) -> Result<Vec<Row>> {
    let client = stage::client(kubeconfig).await?;
    prepare(&client, size).await?;
    let unprotected_before = deletes(&client, "plain", 1, size.asked / 4).await?;
    let (webhook, url) = start(kubeconfig, dir)?;
    configured(&client, size).await?;

    let mut rows = Vec::new();
    let asking = Asking::new(&url)?;
    let (many, few) = (size.instances, size.each);
    for (what, fate, most, count) in [
        (format!("refused, {many} have the finalizer"), Fate::Needed, 10.0, size.asked),
        (format!("allowed, none of {few} has it"), Fate::Free, 50.0, size.asked),
        (format!("allowed, none of {many} has it"), Fate::FreeOfMany, 50.0, size.asked.min(50)),
    ] {
        let times = asking.all(size, fate, count).await?;
        rows.push(row(side, &what, &times, Some(most)));
    }
    let unprotected = deletes(&client, "plain", 1, size.asked / 4).await?;
    let before = percentile(&unprotected_before, 0.5);
    let protected = deletes(&client, "provider", size.services, size.asked / 4).await?;
    let resident = webhook.resident()? / MEBIBYTE;
    drop(webhook);
    // Whatever the API server would ask about now is refused.
    let without = deletes(&client, "plain", 1, size.asked / 4).await?;
    deletes(&client, "provider", 1, 1).await?;
    let compared = |what: &str, times: &[f64], target: &str, met: Option<bool>| {
        let half = percentile(times, 0.5);
        Row {
            what: format!("{side}: {what}, ms, p50"),
            measured: format!("{half:.2}"),
            bare: format!("{before:.2}"),
            ratio: format!("{:.2}", half / before),
            target: target.to_owned(),
            met,
        }
    };
    let unasked = "dry-run delete, not protected";
    rows.push(compared(unasked, &unprotected, "", None));
    // That these passed shows that nobody had to be asked; how long they took is the server's noise.
    let stopped = format!("{unasked}, webhook stopped");
    rows.push(compared(&stopped, &without, "not asked", Some(true)));
    rows.push(compared("dry-run delete, protected, refused", &protected, "", None));
    let (services, objects) = (size.services, size.instances + size.kinds * size.each);
    rows.push(Row {
        what: format!("{side}: resident, MiB, {services} services, {objects} objects"),
        measured: format!("{resident:.1}"),
        bare: String::new(),
        ratio: String::new(),
        target: "< 150".to_owned(),
        met: Some(resident < 150.0),
    });
    Ok(rows)
}

fn row(side: &str, what: &str, times: &[f64], most: Option<f64>) -> Row {
    let (half, high) = (percentile(times, 0.5), percentile(times, 0.99));
    Row {
        what: format!("{side}: {what}, ms, p99 of {}", times.len()),
        measured: format!("{high:.1}"),
        bare: format!("p50 {half:.1}"),
        ratio: String::new(),
        target: most.map(|most| format!("< {most:.0}")).unwrap_or_default(),
        met: most.map(|most| high < most),
    }
}

fn kind(plural: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, "v1", kind), plural)
}

async fn prepare(client: &Client, size: &Size) -> Result<()> {
    prepare_protection(client).await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({ "metadata": { "name": NAMESPACE } }))?;
    namespaces.create(&PostParams::default(), &namespace).await?;
    let begun = Instant::now();
    consumers(client, "manys", "Many", size.instances, json!([HELD])).await?;
    for number in 0..size.kinds {
        let (plural, kind) = (format!("few{number}s"), format!("Few{number}"));
        consumers(client, &plural, &kind, size.each, json!([])).await?;
    }
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let services: Api<CriticalService> = Api::all(client.clone());
    let kinds = size.kinds;
    bare::all(size.services, move |number| {
        let (maps, services) = (maps.clone(), services.clone());
        async move {
            let names = if number == 0 { vec!["plain-0".to_owned()] } else { vec![] };
            for name in names.into_iter().chain([format!("provider-{number}")]) {
                let map = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
                maps.create(&PostParams::default(), &map).await?;
            }
            let (resource, finalizer) = match fate(number) {
                Fate::Needed => ("manys".to_owned(), HELD),
                Fate::Free => (format!("few{}s", number % kinds), HELD),
                Fate::FreeOfMany => ("manys".to_owned(), "bench.cleat.example/other"),
            };
            let service = serde_json::from_value(json!({
                "metadata": { "name": format!("s{number}") },
                "spec": {
                    "provider": { "resource": "configmaps", "namespace": NAMESPACE,
                                  "name": format!("provider-{number}") },
                    "criteria": [{ "type": "Finalizer", "finalizer": {
                        "group": GROUP, "resource": resource, "finalizerName": finalizer } }],
                },
            }))?;
            services.create(&PostParams::default(), &service).await?;
            Ok(())
        }
    })
    .await?;
    println!("prepared in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// A kind and so many objects of it.
async fn consumers(
    client: &Client,
    plural: &str,
    name: &str,
    count: usize,
    finalizers: Value,
) -> Result<()> {
    define(client, plural, name).await?;
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), NAMESPACE, &kind(plural, name));
    let name = name.to_owned();
    bare::all(count, move |number| {
        let (api, finalizers, name) = (api.clone(), finalizers.clone(), name.clone());
        async move {
            let object = serde_json::from_value(json!({
                "apiVersion": format!("{GROUP}/v1"), "kind": name,
                "metadata": { "name": format!("o{number}"), "finalizers": finalizers },
            }))?;
            api.create(&PostParams::default(), &object).await?;
            Ok(())
        }
    })
    .await?;
    Ok(())
}

async fn define(client: &Client, plural: &str, kind: &str) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = serde_json::from_value(json!({
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                           "schema": { "openAPIV3Schema": schema } }],
        },
    }))?;
    definitions.create(&PostParams::default(), &definition).await?;
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), NAMESPACE, &self::kind(plural, kind));
    let begun = Instant::now();
    while api.list(&ListParams::default().limit(1)).await.is_err() {
        if begun.elapsed() > PATIENCE {
            bail!("{plural} are not served");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

fn start(kubeconfig: &Path, dir: &Path) -> Result<(Process, String)> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let webhook = procs::webhook(kubeconfig, port, &dir.join("webhook.log"))?;
    Ok((webhook, format!("https://127.0.0.1:{port}")))
}

/// Until every CriticalService was told of, and is proven to protect.
async fn configured(client: &Client, size: &Size) -> Result<()> {
    let services: Api<CriticalService> = Api::all(client.clone());
    let begun = Instant::now();
    loop {
        let all = services.list(&ListParams::default()).await?;
        let effective = |service: &&CriticalService| {
            let conditions = service.status.as_ref().map(|status| status.conditions.as_slice());
            conditions
                .unwrap_or_default()
                .iter()
                .any(|c| c.type_ == "Effective" && c.status == "True")
        };
        if all.items.iter().filter(effective).count() == size.services {
            println!("all effective after {:.1} s", begun.elapsed().as_secs_f64());
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            bail!("not every CriticalService is effective; see webhook.log");
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Sends reviews to the webhook itself.
struct Asking {
    webhook: Client,
}

impl Asking {
    fn new(url: &str) -> Result<Self> {
        let mut config = kube::Config::new(url.parse()?);
        config.accept_invalid_certs = true;
        Ok(Self { webhook: connect(config, "cleat-bench")? })
    }

    /// Milliseconds, sorted.
    async fn all(&self, size: &Size, wanted: Fate, count: usize) -> Result<Vec<f64>> {
        let numbers: Vec<usize> =
            (0..size.services).filter(|number| fate(*number) == wanted).collect();
        let mut times = Vec::with_capacity(count);
        for number in numbers.iter().cycle().take(count) {
            let review = review(&format!("provider-{number}"));
            let request = Request::post(cleat_protection::PATH)
                .header("content-type", "application/json")
                .body(serde_json::to_vec(&review)?)?;
            let begun = Instant::now();
            let answer: Value = self.webhook.request(request).await?;
            times.push(begun.elapsed().as_secs_f64() * 1000.0);
            let allowed = answer.pointer("/response/allowed").and_then(Value::as_bool);
            if allowed != Some(wanted != Fate::Needed) {
                bail!("wrongly answered: {answer}");
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(times)
    }
}

fn review(name: &str) -> Value {
    let metadata = json!({ "namespace": NAMESPACE, "name": name, "uid": "bench" });
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "bench", "operation": "DELETE", "name": name, "namespace": NAMESPACE,
            "resource": { "group": "", "version": "v1", "resource": "configmaps" },
            "userInfo": { "username": "bench" }, "dryRun": true, "object": null,
            "oldObject": { "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata },
        },
    })
}

/// Dry-run deletes through the API server, in milliseconds, sorted.
async fn deletes(client: &Client, prefix: &str, of: usize, count: usize) -> Result<Vec<f64>> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let params = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let mut times = Vec::with_capacity(count);
    for number in 0..count {
        let number = number % of;
        if prefix == "provider" && fate(number) != Fate::Needed {
            continue;
        }
        let begun = Instant::now();
        let answer = maps.delete(&format!("{prefix}-{number}"), &params).await;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
        if answer.is_err() != (prefix == "provider") {
            bail!("a dry-run delete of {prefix}-{number} ended as {answer:?}");
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}
