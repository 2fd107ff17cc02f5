//! Asking clusters through the hub what a removal or a change would do, and waiting for their answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::removalpreview::{
    PLAN_LABEL, RemovalPreview, RemovalPreviewSpec, RemovalPreviewStatus, UNANSWERED,
};
use cleat_core::id::{Id, Target};
use cleat_core::preview::{Believed, Part, joined, plan_hash};
use cleat_core::write::{Action, Propagation, Side, Write};
use cleat_runtime::execute::Executor;
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::questions::{Question, Questions, questions};
use super::{Subject, direct};
use crate::Refused;
use crate::bar::{Line, bar};
use crate::connection::{executor, perform};

/// How long a plan can be compared with.
const KEPT: SignedDuration = SignedDuration::from_hours(1);

/// How often answers are looked for.
const PAUSE: Duration = Duration::from_millis(100);

/// Requests to the hub under way at the same time.
const AT_ONCE: usize = 32;

/// How many clusters are named that have not answered yet.
const NAMED: usize = 3;

/// How long clusters have to answer.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    limit: Duration,
    /// Somebody sees how far it is.
    watched: bool,
}

impl Patience {
    /// Of somebody who typed so many seconds.
    pub(crate) fn typed(seconds: u64) -> Self {
        let watched = std::io::stderr().is_terminal();
        Self { limit: Duration::from_secs(seconds.max(1)), watched }
    }

    pub(crate) fn unwatched(limit: Duration) -> Self {
        Self { limit, watched: false }
    }
}

/// What would become of everything, as far as the clusters answered.
pub(crate) struct Foreseen {
    pub(crate) plan: String,
    pub(crate) clusters: Vec<Answer>,
    /// What holds for no cluster in particular.
    pub(crate) notes: Vec<String>,
    /// The questions that are on the hub for it.
    pub(super) asked: Vec<Asked>,
}

/// A question on the hub.
#[derive(Clone)]
pub(super) struct Asked {
    cluster: String,
    name: String,
    uid: String,
}

pub(crate) struct Answer {
    pub(crate) cluster: String,
    pub(crate) answer: Option<RemovalPreviewStatus>,
    /// What the hub believes to be there, where the cluster itself did not say.
    pub(crate) believed: Vec<LeftObject>,
    /// What the hub has to say about it.
    pub(crate) notes: Vec<String>,
}

impl Foreseen {
    /// `by`: how a cluster would leave. A plan that says nothing of its objects, because nobody
    /// answered, is still one by this strategy.
    fn of(
        subject: &Subject,
        by: Option<RemoveStrategy>,
        clusters: Vec<Answer>,
        notes: Vec<String>,
    ) -> Self {
        let mut foreseen = Self { plan: String::new(), clusters, notes, asked: Vec::new() };
        let by = by.map(|by| format!(" by {}", by.as_str())).unwrap_or_default();
        foreseen.plan = plan_hash(&(foreseen.sealed(subject) + &by), &foreseen.parts());
        foreseen
    }

    /// What a file does to copies of policies, and when, is only told, so that counts as well.
    fn sealed(&self, subject: &Subject) -> String {
        let mut seal = subject.seal();
        if let Subject::Apply { .. } = subject {
            for one in &self.clusters {
                for note in &one.notes {
                    // Writing to a string cannot fail.
                    let _ = write!(seal, "\n{}: {note}", one.cluster);
                }
            }
        }
        seal
    }

    pub(crate) fn parts(&self) -> Vec<Part> {
        let part = |one: &Answer| Part {
            cluster: one.cluster.clone(),
            answer: one.answer.clone(),
            believed: Believed::of(&one.believed),
        };
        self.clusters.iter().map(part).collect()
    }
}

/// Asks every cluster concerned.
pub(crate) async fn ask(
    hub_client: &Client,
    subject: &Subject,
    patience: Patience,
) -> Result<Foreseen> {
    if let Some(answer) = direct::answer(hub_client, subject).await? {
        return Ok(Foreseen::of(subject, None, vec![answer], Vec::new()));
    }
    let executor = executor(Some(hub_client.clone()), None);
    let Questions { all, notes: general, unknown } = questions(hub_client, subject).await?;
    let by = all.iter().find_map(|question| question.spec.as_ref()?.leave);
    let (mut to_ask, mut told) = (Vec::new(), Vec::new());
    for (cluster, why) in unknown {
        let answer = RemovalPreviewStatus { problems: vec![why], ..Default::default() };
        let (believed, notes) = (Vec::new(), Vec::new());
        told.push(Answer { cluster, answer: Some(answer), believed, notes });
    }
    for Question { cluster, spec, believed, notes } in all {
        match spec {
            Some(spec) => {
                to_ask.push((spec, Answer { cluster, answer: None, believed, notes }));
            }
            None => {
                let answer = Some(RemovalPreviewStatus::default());
                told.push(Answer { cluster, answer, believed, notes });
            }
        }
    }
    let put = to_ask.into_iter().map(|(spec, one)| {
        let executor = &executor;
        async move { anyhow::Ok((put(executor, &one.cluster, spec).await?, one)) }
    });
    // In the order of the questions, whichever the hub takes first.
    let put: Vec<(Result<Asked, String>, Answer)> =
        futures::stream::iter(put).buffered(AT_ONCE).try_collect().await?;
    let mut asked: Vec<(Asked, Answer)> = Vec::new();
    for (question, one) in put {
        match question {
            Ok(question) => asked.push((question, one)),
            // One cluster that cannot be asked is no reason to know nothing of the others.
            Err(why) => {
                let answer = RemovalPreviewStatus { problems: vec![why], ..Default::default() };
                told.push(Answer { answer: Some(answer), ..one });
            }
        }
    }
    let on_hub: Vec<Asked> = asked.iter().map(|(question, _)| question.clone()).collect();
    let mut answers = answers(hub_client, on_hub.clone(), patience).await?;
    let silent = on_hub.iter().filter(|one| !answers.contains_key(&one.name));
    let silent: BTreeSet<String> = silent.map(|one| one.name.clone()).collect();
    let answered = asked.into_iter().map(|(question, one)| {
        let answer = answers.remove(&question.name);
        Answer { answer, ..one }
    });
    let clusters = by_cluster(answered.chain(told));
    let mut foreseen = Foreseen::of(subject, by, clusters, general);
    foreseen.asked = on_hub;
    let label = subject.label(&foreseen.plan);
    let named = foreseen.asked.iter().map(|question| {
        let of = |one: &&Answer| one.cluster == question.cluster && silent.contains(&question.name);
        let unanswered = foreseen.clusters.iter().find(of);
        let unanswered = unanswered.map(|one| Believed::of(&one.believed).to_string());
        let patch = json!({ "metadata": {
            "labels": { PLAN_LABEL: label }, "annotations": { UNANSWERED: unanswered },
        } });
        on(&question.cluster, &question.name, Write::Merge(patch))
    });
    let named: Vec<Action> = named.collect();
    let named = named.into_iter().map(|action| perform(&executor, "name the plan", action));
    let named = futures::stream::iter(named).buffered(AT_ONCE);
    drop(named.try_collect::<Vec<Value>>().await?);
    Ok(foreseen)
}

/// Waits for the answers to questions that are on the hub, by their names.
async fn answers(
    hub_client: &Client,
    asked: Vec<Asked>,
    patience: Patience,
) -> Result<BTreeMap<String, RemovalPreviewStatus>> {
    let begun = Instant::now();
    let mut pause = tokio::time::interval(PAUSE);
    let mut line = patience.watched.then(|| Line::new(true));
    let concerned = clusters(&asked).len();
    let mut answers = BTreeMap::new();
    let mut waiting = asked;
    while !waiting.is_empty() && begun.elapsed() < patience.limit {
        pause.tick().await;
        let looks = waiting.into_iter().map(|question| {
            let api: Api<RemovalPreview> = Api::namespaced(hub_client.clone(), &question.cluster);
            async move {
                let found = api.get_opt(&question.name).await.context("look for an answer")?;
                anyhow::Ok((question, found.and_then(|found| found.status)))
            }
        });
        let looked: Vec<(Asked, Option<RemovalPreviewStatus>)> =
            futures::stream::iter(looks).buffered(AT_ONCE).try_collect().await?;
        waiting = Vec::new();
        for (question, status) in looked {
            match status.filter(|status| status.answered_at.is_some()) {
                Some(status) => drop(answers.insert(question.name, status)),
                None => waiting.push(question),
            }
        }
        if let Some(line) = &mut line {
            line.show(progress(concerned, &clusters(&waiting)));
        }
    }
    Ok(answers)
}

fn clusters(asked: &[Asked]) -> BTreeSet<&str> {
    asked.iter().map(|question| question.cluster.as_str()).collect()
}

/// `[############------------] 4/8 clusters answered, waiting for c2, c4, c5 and 1 more`.
fn progress(concerned: usize, waiting: &BTreeSet<&str>) -> String {
    let answered = bar(concerned.saturating_sub(waiting.len()), concerned);
    let mut line = format!("{answered} clusters answered");
    if !waiting.is_empty() {
        let named: Vec<&str> = waiting.iter().copied().take(NAMED).collect();
        // Writing to a string cannot fail.
        let _ = write!(line, ", waiting for {}", named.join(", "));
        if waiting.len() > NAMED {
            let _ = write!(line, " and {} more", waiting.len() - NAMED);
        }
    }
    line
}

/// Several works of one set, or several policies, may be on one cluster. What the hub believes to be there
/// counts where not everything was answered: none of it is lost because part of it was.
fn by_cluster(all: impl Iterator<Item = Answer>) -> Vec<Answer> {
    let mut clusters: BTreeMap<String, (Vec<Option<RemovalPreviewStatus>>, Answer)> =
        BTreeMap::new();
    for mut one in all {
        let part = one.answer.take();
        match clusters.get_mut(&one.cluster) {
            Some((parts, before)) => {
                parts.push(part);
                before.believed.extend(one.believed);
                before.notes.extend(one.notes);
            }
            None => drop(clusters.insert(one.cluster.clone(), (vec![part], one))),
        }
    }
    let whole = |(parts, mut one): (Vec<Option<RemovalPreviewStatus>>, Answer)| {
        one.answer = joined(parts);
        if one.answer.is_some() {
            one.believed.clear();
        }
        one
    };
    clusters.into_values().map(whole).collect()
}

fn on(cluster: &str, name: &str, write: Write) -> Action {
    let id = Id {
        group: "cleat.dev".to_owned(),
        resource: "removalpreviews".to_owned(),
        namespace: cluster.to_owned(),
        name: name.to_owned(),
    };
    Action { side: Side::Hub, target: Target { version: "v1alpha1".to_owned(), id }, write }
}

/// Puts a question; inside is why the hub does not take it.
async fn put(
    executor: &Executor,
    cluster: &str,
    spec: RemovalPreviewSpec,
) -> Result<Result<Asked, String>> {
    let name = format!("preview-{}", &uuid::Uuid::new_v4().simple().to_string()[..10]);
    let end = Timestamp::now().checked_add(KEPT)?;
    let end = Timestamp::from_second(end.as_second())?;
    let spec = RemovalPreviewSpec { expires_at: Some(Time(end)), ..spec };
    let object = json!({
        "apiVersion": "cleat.dev/v1alpha1", "kind": "RemovalPreview",
        "metadata": { "name": name, "namespace": cluster }, "spec": spec,
    });
    let what = format!("ask cluster {cluster}");
    let put = match perform(executor, &what, on(cluster, &name, Write::Create(object))).await {
        Err(error) if error.is::<Refused>() => return Ok(Err(error.to_string())),
        put => put?,
    };
    let uid = put.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
    Ok(Ok(Asked { cluster: cluster.to_owned(), name, uid: uid.to_owned() }))
}

/// Takes questions back that nobody needs any more. If that does not work they expire by themselves.
pub(super) async fn retract(hub_client: &Client, asked: &[Asked]) {
    let executor = executor(Some(hub_client.clone()), None);
    let taken = asked.iter().map(|one| {
        let write = Write::Delete {
            uid: one.uid.clone(),
            resource_version: None,
            propagation: Propagation::Background,
        };
        on(&one.cluster, &one.name, write)
    });
    drop(executor.execute(vec![taken.collect()]).await);
}

/// The answers under an earlier plan, if they are still there.
pub(super) async fn earlier(
    hub_client: &Client,
    subject: &Subject,
    plan: &str,
) -> Result<Option<Vec<Part>>> {
    let api: Api<RemovalPreview> = Api::all(hub_client.clone());
    let of_plan = ListParams::default().labels(&format!("{PLAN_LABEL}={}", subject.label(plan)));
    let found = api.list(&of_plan).await.context("look for the plan")?.items;
    let mut clusters: BTreeMap<String, (Vec<Option<RemovalPreviewStatus>>, Believed)> =
        BTreeMap::new();
    for one in found {
        let cluster = one.namespace().unwrap_or_default();
        let unanswered = one.annotations().get(UNANSWERED).cloned();
        let answered = unanswered.is_none();
        let answer = one.status.filter(|status| answered && status.answered_at.is_some());
        let (parts, believed) = clusters.entry(cluster).or_default();
        parts.push(answer);
        // All that did not answer in a cluster bear the same.
        if let Some(text) = unanswered {
            *believed = Believed::parse(&text).unwrap_or_default();
        }
    }
    let part = |(cluster, (parts, believed))| Part { cluster, answer: joined(parts), believed };
    let parts: Vec<Part> = clusters.into_iter().map(part).collect();
    Ok((!parts.is_empty()).then_some(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_cluster_had_one_plan_whichever_way_it_left() {
        let subject = Subject::Leave { cluster: "c1".to_owned(), strategy: None };
        let plan = |by: RemoveStrategy| {
            let silent =
                Answer { cluster: "c1".to_owned(), answer: None, believed: vec![], notes: vec![] };
            Foreseen::of(&subject, Some(by), vec![silent], vec![]).plan
        };
        assert_ne!(plan(RemoveStrategy::Needless), plan(RemoveStrategy::Required));
        assert_eq!(plan(RemoveStrategy::Required), plan(RemoveStrategy::Required));
    }

    /// What an answered question was about was shown neither as answered nor as believed.
    #[test]
    fn what_is_believed_was_lost_where_one_of_two_questions_was_answered() {
        let one = |name: &str, answer: Option<RemovalPreviewStatus>| {
            let believed = vec![LeftObject { name: name.to_owned(), ..LeftObject::default() }];
            Answer { cluster: "c1".to_owned(), answer, believed, notes: vec![] }
        };
        let answered = || Some(RemovalPreviewStatus::default());
        let told = |all: [Answer; 2]| {
            let mut clusters = by_cluster(all.into_iter());
            let Answer { answer, believed, .. } = clusters.remove(0);
            let names: Vec<String> = believed.into_iter().map(|one| one.name).collect();
            (answer.is_some(), names.join(" "))
        };
        assert_eq!(told([one("a", answered()), one("b", None)]), (false, "a b".to_owned()));
        assert_eq!(told([one("a", None), one("b", answered())]), (false, "a b".to_owned()));
        assert_eq!(told([one("a", answered()), one("b", answered())]), (true, String::new()));
    }

    #[test]
    fn nobody_was_told_for_whom_a_preview_waits() {
        let waiting = |names: &[&'static str]| progress(8, &names.iter().copied().collect());
        let line = waiting(&["c5", "c2", "c4", "c7"]);
        let expected = "[############------------] 4/8 clusters answered, waiting for c2, c4, c5 \
                        and 1 more";
        assert_eq!(line, expected);
        assert_eq!(waiting(&[]), "[########################] 8/8 clusters answered");
    }
}
