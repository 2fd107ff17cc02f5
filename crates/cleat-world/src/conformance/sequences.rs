//! Random sequences of requests, sent to two servers and compared: answer by answer, and the watches
//! that were open meanwhile event by event.
//!
//! A sequence is drawn from a seed, played as a case in a namespace of its own, and on a difference
//! made as small as it can be by playing it again. What is left is printed as a case.
//!
//! Deliberately absent: any idea of what is right. As with cases, that is what Kubernetes does.

mod dice;
mod exceptions;
mod fault;
mod generate;
mod kind;
mod print;
mod sequence;
mod shrink;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

use self::exceptions::Exception;
use self::kind::Kind;
use self::sequence::{Sequence, request};
use super::case::{self, Case, Shared, Step};
use super::compare;
use super::play::{self, Ground};
use super::webhook::Webhooks;
use super::{Answers, Difference, id};
use crate::server::Server;

/// How many sequences are played at once.
const AT_ONCE: usize = 16;

/// How many smaller sequences are tried for one that differs.
const TRIES: usize = 400;

/// What to draw, and how to play it.
#[derive(Clone, Debug)]
pub struct Options {
    pub seed: u64,
    /// The number of the first sequence.
    pub first: u64,
    pub count: u64,
    /// Makes the names of this run's objects different from other runs'.
    pub run: String,
    /// How long to wait for what a server does by and by.
    pub patience: Duration,
    /// How many different kinds of difference are made small.
    pub shrunk: usize,
}

/// One of the servers.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    pub server: &'a dyn Server,
    /// It ends with the run. Nothing is deleted there: thousands of namespaces keep a real control
    /// plane busier than the sequences do.
    pub fleeting: bool,
}

impl<'a> Side<'a> {
    fn ground(self, webhooks: &'a Webhooks, patience: Duration, group: &'a str) -> Ground<'a> {
        let Self { server, fleeting } = self;
        Ground { server, webhooks, patience, group: Some(group), fleeting }
    }
}

/// Plays the sequences on both servers and compares. `folder` has the beginnings that cases share, and
/// the list of exceptions.
///
/// # Errors
/// When a server cannot be worked with at all. That it answers differently is an outcome.
pub async fn compare(
    folder: &Path,
    options: &Options,
    real: Side<'_>,
    ours: Side<'_>,
) -> Result<Outcome> {
    let (_, shared) = case::load(folder)?;
    let exceptions = exceptions::load(&folder.join("sequences.yaml"))?;
    let beginning = shared.get("widgets").context("shared/widgets.yaml is not there")?;
    let webhooks = Webhooks::start().await.context("start the webhooks")?;
    let group = id(&options.run, "sequences");
    let pair = Pair {
        real: real.ground(&webhooks, options.patience, &group),
        ours: ours.ground(&webhooks, options.patience, &group),
        shared: &shared,
        exceptions: &exceptions,
        run: &options.run,
        group: &group,
    };
    tokio::try_join!(
        async {
            play::begin(beginning, pair.real, &group).await.context("prepare the real server")
        },
        async { play::begin(beginning, pair.ours, &group).await.context("prepare our server") },
    )?;
    let outcome = pair.run(options).await;
    for ground in [pair.real, pair.ours] {
        if !ground.fleeting {
            play::undo(beginning, ground, &group).await?;
        }
    }
    outcome
}

/// Two servers that are played on alike.
struct Pair<'a> {
    real: Ground<'a>,
    ours: Ground<'a>,
    shared: &'a BTreeMap<String, Shared>,
    exceptions: &'a [Exception],
    run: &'a str,
    group: &'a str,
}

/// What playing one sequence showed.
struct Played {
    requests: usize,
    accepted: usize,
    events: usize,
    /// What no exception covers.
    differences: Vec<Difference>,
    /// The exceptions that were needed.
    excepted: BTreeSet<usize>,
}

impl Pair<'_> {
    async fn run(&self, options: &Options) -> Result<Outcome> {
        let numbers = options.first..options.first.saturating_add(options.count);
        let played: BTreeMap<u64, Played> = futures::stream::iter(numbers)
            .map(|index| async move {
                let sequence = generate::sequence(options.seed, index);
                Ok::<_, anyhow::Error>((index, self.play(&sequence, 0).await?))
            })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let mut outcome = Outcome::default();
        let mut excepted = BTreeSet::new();
        let mut alike: BTreeMap<String, Vec<(u64, Difference)>> = BTreeMap::new();
        for (index, played) in played {
            outcome.compared += 1;
            outcome.requests += played.requests;
            outcome.accepted += played.accepted;
            outcome.events += played.events;
            excepted.extend(played.excepted);
            if let Some(first) = played.differences.into_iter().next() {
                outcome.different += 1;
                let case = generate::sequence(options.seed, index).case();
                alike.entry(mark(&case, &first)).or_default().push((index, first));
            }
        }
        outcome.excepted = self
            .exceptions
            .iter()
            .enumerate()
            .filter(|(index, _)| excepted.contains(index))
            .map(|(_, exception)| exception.reason.clone())
            .collect();
        // Those that many sequences show first: they hide others.
        let mut alike: Vec<(String, Vec<(u64, Difference)>)> = alike.into_iter().collect();
        alike.sort_by_key(|(_, shown)| std::cmp::Reverse(shown.len()));
        for (place, (mark, shown)) in alike.into_iter().enumerate() {
            let sequences = shown.len();
            let Some((index, first)) = shown.into_iter().next() else { continue };
            let shrunk = if place < options.shrunk {
                self.shrink(&generate::sequence(options.seed, index), &mark).await?
            } else {
                Shrunk::NotTried
            };
            outcome.findings.push(Finding { mark, first, sequences, shrunk });
        }
        Ok(outcome)
    }

    /// The smallest sequence that still shows a difference of this mark, and all it shows.
    async fn shrink(&self, sequence: &Sequence, mark: &str) -> Result<Shrunk> {
        if !self.shows(sequence, 1, mark).await? {
            return Ok(Shrunk::NotShownAgain);
        }
        let smallest = shrink::shrink(sequence, TRIES, |candidate, attempt| async move {
            self.shows(&candidate, attempt + 1, mark).await
        })
        .await?;
        let differences = self.play(&smallest, TRIES * 2).await?.differences;
        Ok(Shrunk::To(Smallest {
            steps: smallest.steps.len(),
            before: sequence.steps.len(),
            case: print::text(&smallest.case()),
            differences,
        }))
    }

    async fn shows(&self, sequence: &Sequence, attempt: usize, wanted: &str) -> Result<bool> {
        let case = sequence.case();
        let played = self.play(sequence, attempt).await?;
        Ok(played.differences.iter().any(|difference| mark(&case, difference) == wanted))
    }

    /// Plays a sequence on both servers. Attempts have different names, or one would meet what
    /// another left.
    async fn play(&self, sequence: &Sequence, attempt: usize) -> Result<Played> {
        let case = sequence.case();
        let played = self.with_kind(case.clone());
        let id = id(self.run, &format!("{} {attempt}", sequence.name));
        let (real, ours) = tokio::try_join!(
            async {
                let answers = play::play(&played, self.shared, self.real, &id).await;
                answers.with_context(|| format!("play {} on the real server", sequence.name))
            },
            async {
                let answers = play::play(&played, self.shared, self.ours, &id).await;
                answers.with_context(|| format!("play {} on our server", sequence.name))
            },
        )?;
        let mut excepted = BTreeSet::new();
        let mut differences = compare::answers(&sequence.name, &real, &ours);
        differences.retain(|difference| {
            let step = step(&case, difference);
            let exception = self.exceptions.iter().position(|one| one.covers(step, difference));
            excepted.extend(exception);
            exception.is_none()
        });
        // What needs a value that no answer had is not sent.
        let unsent = real.iter().filter(|(_, answer)| answer.get("not played").is_some()).count();
        let requests = case.steps.iter().filter(|step| request(step).is_some()).count();
        Ok(Played {
            requests: requests.saturating_sub(unsent),
            accepted: accepted(&real),
            events: events(&real),
            differences,
            excepted,
        })
    }

    /// The case with the custom kind that is there for the whole run, instead of one of its own: a
    /// real server takes its time for each, and they would be thousands.
    fn with_kind(&self, mut case: Case) -> Case {
        case.before.clear();
        let api = format!("{}.example.com/v1", self.group);
        let widgets = format!("/apis/{api}/namespaces/<ns>/widgets");
        case.values.insert("api".to_owned(), json!(api));
        case.values.insert("widgets".to_owned(), json!(widgets));
        case
    }
}

/// The step that a difference is in.
fn step<'a>(case: &'a Case, difference: &Difference) -> Option<&'a Step> {
    let labelled = |(index, step): &(usize, &Step)| step.label(*index) == difference.step;
    case.steps.iter().enumerate().find(labelled).map(|(_, step)| step)
}

/// What makes two differences one finding: the same place in the answer to the same kind of request.
fn mark(case: &Case, difference: &Difference) -> String {
    let step = step(case, difference);
    let asked = match (step.and_then(request), step.and_then(|step| step.collect.as_deref())) {
        (Some((method, path)), _) => {
            let path = path.split('?').next().unwrap_or_default();
            let place = match Kind::of(path) {
                Some((kind, below)) => {
                    let named = below.split('/').skip(2).map(|sub| format!("/{sub}"));
                    let name = if below.is_empty() { "" } else { "/*" };
                    format!("{}{name}{}", kind.plural(), named.collect::<String>())
                }
                None => path.to_owned(),
            };
            let media = step.and_then(|step| step.media.as_deref()).unwrap_or("json");
            format!("{method} {media} {place}")
        }
        (None, Some(watch)) => watch.to_owned(),
        (None, None) => difference.step.clone(),
    };
    let at: Vec<&str> = difference
        .at
        .split('/')
        .map(|part| {
            let number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            if number { "*" } else { part }
        })
        .collect();
    format!("{asked} at {}", at.join("/"))
}

fn accepted(answers: &Answers) -> usize {
    let code = |answer: &Value| answer.get("code").and_then(Value::as_u64);
    answers.iter().filter(|(_, answer)| code(answer).is_some_and(|code| code < 300)).count()
}

fn events(answers: &Answers) -> usize {
    let count = |answer: &Value| answer.get("events").and_then(Value::as_array).map(Vec::len);
    answers.iter().filter_map(|(_, answer)| count(answer)).sum()
}

/// What a run found.
#[derive(Debug, Default)]
pub struct Outcome {
    pub compared: usize,
    pub requests: usize,
    /// Answers of the real server with a code below 300.
    pub accepted: usize,
    /// Events of watches.
    pub events: usize,
    /// How many sequences showed a difference that no exception covers.
    pub different: usize,
    /// The differences, one for all sequences that begin to differ in the same way.
    pub findings: Vec<Finding>,
    /// Reasons of the exceptions that were needed.
    pub excepted: Vec<String>,
}

/// One way in which sequences begin to differ.
#[derive(Debug)]
pub struct Finding {
    /// The kind of request, and the place in its answer.
    pub mark: String,
    /// How the first sequence showed it.
    pub first: Difference,
    /// How many sequences showed it.
    pub sequences: usize,
    pub shrunk: Shrunk,
}

/// What came of making the first sequence small.
#[derive(Debug)]
pub enum Shrunk {
    NotTried,
    /// Played again, it did not differ: it depends on time, or on what others did meanwhile.
    NotShownAgain,
    To(Smallest),
}

/// A sequence from which nothing more can be taken.
#[derive(Debug)]
pub struct Smallest {
    pub steps: usize,
    /// How many steps there were before.
    pub before: usize,
    /// As a file below `cases/`.
    pub case: String,
    pub differences: Vec<Difference>,
}

impl Outcome {
    #[must_use]
    pub fn passed(&self) -> bool {
        self.different == 0
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for finding in &self.findings {
            let Finding { mark, first, sequences, shrunk } = finding;
            writeln!(formatter, "== {mark}, in {sequences} sequence(s)")?;
            match shrunk {
                Shrunk::NotTried => writeln!(formatter, "{first}")?,
                Shrunk::NotShownAgain => {
                    writeln!(formatter, "{first}\nand not when it was played again")?;
                }
                Shrunk::To(smallest) => write!(formatter, "{smallest}")?,
            }
        }
        for reason in &self.excepted {
            writeln!(formatter, "excepted: {reason}")?;
        }
        write!(
            formatter,
            "sequences compared {}, requests {}, watch events {}, different {}",
            self.compared, self.requests, self.events, self.different
        )
    }
}

impl std::fmt::Display for Smallest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for difference in self.differences.iter().take(6) {
            writeln!(formatter, "{difference}")?;
        }
        writeln!(formatter, "shown by {} of {} steps:", self.steps, self.before)?;
        for line in self.case.lines() {
            writeln!(formatter, "    {line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::sequence::Watching;
    use super::*;

    #[test]
    fn the_same_place_of_the_same_request_is_one_finding() {
        let difference = |step: &str, at: &str| Difference {
            case: "x".to_owned(),
            step: step.to_owned(),
            at: at.to_owned(),
            real: None,
            ours: None,
        };
        let named = |name: &str, step: Step| Step { name: Some(name.to_owned()), ..step };
        let sequence = Sequence {
            name: "sequences/1-1".to_owned(),
            watched: vec![Kind::Widget],
            watching: Watching::Everything,
            steps: vec![
                named(
                    "s1",
                    Step { get: Some("<core>/secrets?limit=1".to_owned()), ..Step::default() },
                ),
                named(
                    "s2",
                    Step {
                        patch: Some("<widgets>/b/status?dryRun=All".to_owned()),
                        media: Some("merge".to_owned()),
                        ..Step::default()
                    },
                ),
            ],
        };
        let case = sequence.case();
        for (step, at, expected) in [
            ("s1", "/body/items/0/type", "GET json secrets at /body/items/*/type"),
            ("s2", "/code", "PATCH merge widgets/*/status at /code"),
            ("events-widgets", "/events/12/type", "watch-widgets at /events/*/type"),
        ] {
            assert_eq!(mark(&case, &difference(step, at)), expected);
        }
    }
}
