//! Asking the server what it would make of an update, without storing it.
//!
//! That an update would change nothing is remembered for as long as exactly that would be sent.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use cleat_core::policy::compare::same_to_a_server;
use cleat_core::policy::observed::{Observed, Seen, Trial, TrialAnswer};
use cleat_core::policy::{Question, Tried};
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runtime::execute::{Asking, Executor};
use futures::StreamExt as _;
use serde_json::Value;

use super::observe::{READS, Waking};
use super::{Context, Key};

impl Context {
    /// Has the questions answered. What turned out to be out of date is to be read again.
    pub(super) async fn try_out(
        &self,
        key: &Key,
        seen: &mut Observed,
        questions: Vec<Question>,
        waking: &mut Waking,
    ) {
        let asked = questions.into_iter().map(|question| {
            let live = match seen.cluster.objects.get(&question.target.id) {
                Some(Seen::Present(present)) => Some(Arc::clone(&present.object)),
                _ => None,
            };
            self.ask(key, question, live)
        });
        let answers: Vec<(Question, TrialAnswer)> =
            futures::stream::iter(asked).buffer_unordered(READS).collect().await;
        for (question, answer) in answers {
            let Question { target, object, of } = question;
            if answer == TrialAnswer::Stale {
                seen.cluster.objects.remove(&target.id);
                seen.cluster.trials.remove(&target.id);
                seen.cluster.creations.remove(&target.id);
                waking.forget(&target.id);
                continue;
            }
            let trial = Trial { asked: object, answer };
            let (known, shown) = match of {
                Tried::Update => (&mut waking.trials, &mut seen.cluster.trials),
                Tried::Creation => (&mut waking.creations, &mut seen.cluster.creations),
            };
            known.insert(target.id.clone(), trial.clone());
            shown.insert(target.id, trial);
        }
    }

    async fn ask(
        &self,
        key: &Key,
        question: Question,
        live: Option<Arc<Value>>,
    ) -> (Question, TrialAnswer) {
        let id = question.target.id.clone();
        let digest = digest(&question.object);
        let known = self.memory.with(key, |life| life.no_change.get(&id) == Some(&digest));
        if let (true, Some(live), Tried::Update) = (known, &live, question.of) {
            return (question, TrialAnswer::Accepted(Arc::clone(live)));
        }
        let answer = ask(&self.executor, &question).await;
        if question.of == Tried::Creation {
            return (question, answer);
        }
        if matches!(answer, TrialAnswer::Stale | TrialAnswer::NotFound) {
            self.contents.forget(&id);
            self.mirror.wrote(&action(&question), &Outcome::Conflict(String::new()));
        }
        if let (TrialAnswer::Accepted(stored), Some(live)) = (&answer, &live)
            && same_to_a_server(live, stored)
        {
            self.memory.with(key, |life| life.no_change.insert(id, digest));
        }
        (question, answer)
    }
}

/// Asks the server; nothing is stored.
pub async fn ask(executor: &Executor, question: &Question) -> TrialAnswer {
    let asking = Asking { dry_run: true, impersonated: None };
    match executor.perform(&action(question), &asking).await {
        Outcome::Done(mut object) => {
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
            TrialAnswer::Accepted(Arc::new(object))
        }
        Outcome::Refused(refusal) if refusal.reason == "Invalid" => {
            TrialAnswer::Invalid(refusal.message)
        }
        Outcome::Refused(refusal) if refusal.code >= 500 || refusal.code == 429 => {
            TrialAnswer::Failed(refusal.message)
        }
        Outcome::Refused(refusal) => TrialAnswer::Refused(refusal.message),
        Outcome::NotFound => TrialAnswer::NotFound,
        Outcome::Lost(message) => TrialAnswer::Failed(message),
        Outcome::NoSuchKind => {
            TrialAnswer::Failed("the cluster does not serve this kind now".to_owned())
        }
        Outcome::Conflict(_) | Outcome::AlreadyExists | Outcome::NotTried => TrialAnswer::Stale,
    }
}

fn action(question: &Question) -> Action {
    let object = (*question.object).clone();
    let write = match question.of {
        Tried::Update => Write::Replace(object),
        Tried::Creation => Write::Create(object),
    };
    Action { side: Side::Cluster, target: question.target.clone(), write }
}

fn digest(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.to_string().hash(&mut hasher);
    hasher.finish()
}
