//! `cleat automation`: what automations did.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::{Context as _, Result};
use clap::{Subcommand, ValueEnum};
use cleat_api::policyautomation::{AUTOMATION_LABEL, PolicyAutomation, RecentJob};
use cleat_core::automation::{Job, label_value};
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::connection::{HubArgs, Which, block_on};
use crate::table::{age, table};

/// Shows what automations did.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The runs of an automation: when, for which clusters, and what came of each
    History(History),
}

#[derive(clap::Args)]
struct History {
    /// The automation
    name: String,
    /// Its namespace
    #[arg(long, short, default_value = "default")]
    namespace: String,
    /// How to print them
    #[arg(long, short)]
    output: Option<Output>,
    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Json,
    Wide,
}

pub fn run(args: &Args) -> Result<()> {
    match &args.what {
        What::History(args) => block_on(history(args)),
    }
}

async fn history(args: &History) -> Result<()> {
    let hub_client = Which::from(&args.hub).client().await?;
    let runs = runs(&hub_client, &args.namespace, &args.name).await?;
    let text = match args.output {
        Some(Output::Json) => format!("{:#}\n", Value::Array(runs.iter().map(Run::json).collect())),
        _ if runs.is_empty() => {
            eprintln!("the automation {} has not run", args.name);
            String::new()
        }
        output => table(&rows(&runs, output == Some(Output::Wide), Timestamp::now())),
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// One job, as itself and the automation tell of it.
struct Run {
    job: String,
    mode: String,
    started: Option<Timestamp>,
    clusters: Vec<String>,
    /// How many there are; not all may be named.
    count: usize,
    result: String,
    finished: Option<Timestamp>,
    attempt: i64,
    details: String,
}

/// The jobs that are there, and those that are not any more but are still remembered, the newest
/// first.
async fn runs(hub_client: &Client, namespace: &str, name: &str) -> Result<Vec<Run>> {
    let automations: Api<PolicyAutomation> = Api::namespaced(hub_client.clone(), namespace);
    let found = automations.get_opt(name).await.context("look for the automation")?;
    let found = found.with_context(|| {
        format!("there is no PolicyAutomation {name} in namespace {namespace}; choose it with -n")
    })?;
    let kind = GroupVersionKind::gvk("tower.ansible.com", "v1alpha1", "AnsibleJob");
    let kind = ApiResource::from_gvk_with_plural(&kind, "ansiblejobs");
    let jobs: Api<DynamicObject> = Api::namespaced_with(hub_client.clone(), namespace, &kind);
    let params = ListParams::default().labels(&format!("{AUTOMATION_LABEL}={}", label_value(name)));
    let jobs = match jobs.list(&params).await {
        Ok(jobs) => jobs.items,
        // A hub that serves no jobs any more still remembers those it made.
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => return Err(error).context("list the jobs"),
    };
    let recent = found.status.unwrap_or_default().recent_jobs;
    let jobs = jobs.iter().map(|job| (job.name_any(), Job::read(&job.metadata, &job.data)));
    Ok(join(jobs.collect(), &recent))
}

fn join(jobs: BTreeMap<String, Job>, recent: &[RecentJob]) -> Vec<Run> {
    let mut runs: Vec<Run> = jobs
        .values()
        .map(|job| {
            let known = recent.iter().find(|one| one.name == job.name);
            // `ticket-everyevent-0123456789`
            let word = job.name.rsplit('-').nth(1).unwrap_or_default().to_owned();
            Run {
                job: job.name.clone(),
                mode: known.map_or(word, |known| known.mode.clone()),
                started: Some(job.created),
                count: job.targets.len(),
                clusters: job.targets.clone(),
                result: job.result.clone().unwrap_or_else(|| "new".to_owned()),
                finished: job.finished,
                attempt: known.and_then(|known| known.attempt).unwrap_or_default(),
                details: job.url.clone().or_else(|| job.message.clone()).unwrap_or_default(),
            }
        })
        .collect();
    let gone = recent.iter().filter(|one| !jobs.contains_key(&one.name));
    runs.extend(gone.map(|one| Run {
        job: one.name.clone(),
        mode: one.mode.clone(),
        started: one.automation_start_time.parse().ok(),
        clusters: one.clusters.clone(),
        count: usize::try_from(one.cluster_count).unwrap_or_default(),
        result: one.result.clone().unwrap_or_else(|| "unknown".to_owned()),
        finished: one.finished_time.as_ref().and_then(|at| at.parse().ok()),
        attempt: one.attempt.unwrap_or_default(),
        details: one.url.clone().or_else(|| one.message.clone()).unwrap_or_default(),
    }));
    runs.sort_by(|one, other| (other.started, &other.job).cmp(&(one.started, &one.job)));
    runs
}

impl Run {
    fn json(&self) -> Value {
        let Self { job, mode, started, clusters, count, result, finished, attempt, details } = self;
        json!({
            "job": job, "mode": mode, "clusters": clusters, "clusterCount": count,
            "result": result, "attempt": attempt, "details": details,
            "started": started.map(|at| at.to_string()),
            "finished": finished.map(|at| at.to_string()),
        })
    }

    fn clusters(&self, shown: usize) -> String {
        if self.count == 0 {
            return "-".to_owned();
        }
        let names: Vec<&str> = self.clusters.iter().take(shown).map(String::as_str).collect();
        let more = self.count.saturating_sub(names.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", names.join(","))
    }
}

fn rows(runs: &[Run], wide: bool, now: Timestamp) -> Vec<Vec<String>> {
    let mut head = vec!["JOB", "MODE", "AGE", "RESULT", "TOOK", "CLUSTERS"];
    if wide {
        head.push("DETAILS");
    }
    let mut rows = vec![head.into_iter().map(ToOwned::to_owned).collect()];
    for run in runs {
        let mode = match run.attempt {
            0 => run.mode.clone(),
            attempt => format!("{} (retry {attempt})", run.mode),
        };
        let took = match (run.started, run.finished) {
            (Some(started), Some(finished)) => age(Some(started), finished),
            _ => "-".to_owned(),
        };
        let mut row = vec![
            run.job.clone(),
            mode,
            age(run.started, now),
            run.result.clone(),
            took,
            run.clusters(if wide { usize::MAX } else { 3 }),
        ];
        if wide {
            let line = run.details.lines().next().unwrap_or_default();
            row.push(if line.is_empty() { "-".to_owned() } else { line.to_owned() });
        }
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_are_gone_are_still_told() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let job = Job {
            name: "ticket-everyevent-0123456789".to_owned(),
            created: at("2026-01-01T00:10:00Z"),
            targets: ["c1", "c2", "c3", "c4"].map(str::to_owned).to_vec(),
            result: Some("failed".to_owned()),
            finished: Some(at("2026-01-01T00:10:07Z")),
            url: None,
            message: Some("no route".to_owned()),
        };
        let gone = RecentJob {
            name: "ticket-manual-0".to_owned(),
            mode: "manual".to_owned(),
            automation_start_time: "2026-01-01T00:00:00Z".to_owned(),
            cluster_count: 12,
            clusters: vec!["a".to_owned(), "b".to_owned()],
            result: Some("successful".to_owned()),
            attempt: Some(1),
            ..RecentJob::default()
        };
        let runs = join([(job.name.clone(), job)].into(), &[gone]);
        let rows = rows(&runs, true, at("2026-01-01T00:11:00Z"));
        assert_eq!(
            rows[1],
            [
                "ticket-everyevent-0123456789",
                "everyevent",
                "60s",
                "failed",
                "7s",
                "c1,c2,c3,c4",
                "no route",
            ]
        );
        assert_eq!(
            rows[2],
            [
                "ticket-manual-0",
                "manual (retry 1)",
                "11m",
                "successful",
                "-",
                "a,b and 10 more",
                "-"
            ]
        );
        assert_eq!(runs[1].json()["clusterCount"], 12);
        assert_eq!(rows[0].len(), rows[1].len());
    }
}
