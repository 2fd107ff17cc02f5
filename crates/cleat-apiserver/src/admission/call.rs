//! Asking the webhooks of one request, and what comes of it.

use std::sync::Arc;

use futures::future::join_all;
use tokio::time::Instant;
use tracing::warn;
use uuid::Uuid;

use super::{
    Operation, Phase, Request, Verdict,
    configuration::Webhook,
    matching::Invocation,
    review::{self, Answer, Bad},
    transport::{Failure, Transport},
};
use crate::{quote::quoted, status::Status};

/// How asking one webhook ended.
pub(super) enum Outcome {
    Answered(Answer),
    /// No answer, for this reason; `failurePolicy` decides.
    Failed(String),
    /// Not asked: it cannot be for a dry run. No policy makes that good.
    DryRun(Status),
}

/// Asks all at the same time. Of several refusals, the one of the first webhook counts.
pub(super) async fn all(
    transport: &Arc<Transport>,
    request: &Request<'_>,
    calls: Vec<(Arc<Webhook>, Invocation)>,
) -> Verdict {
    let mut verdict = Verdict::allowed();
    // The questions are built before anything is awaited, so that nothing borrowed outlives it.
    let questions: Vec<_> = calls
        .into_iter()
        .map(|(hook, invocation)| {
            let uid = Uuid::new_v4().to_string();
            let question = review::request(&uid, request, &invocation);
            (hook, uid, question)
        })
        .collect();
    let (operation, dry_run) = (request.operation, request.dry_run);
    let outcomes = join_all(questions.into_iter().map(|(hook, uid, question)| async move {
        let asked = Asked { phase: Phase::Validating, operation, dry_run };
        let outcome = one(transport, asked, &hook, &uid, question).await;
        (hook, outcome)
    }))
    .await;
    for (index, (hook, outcome)) in outcomes.into_iter().enumerate() {
        let refusal = match outcome {
            Outcome::Answered(answer) => take(answer, &hook.name, &mut verdict),
            Outcome::DryRun(status) => Some(status),
            Outcome::Failed(why) => {
                failed(&hook, &why, "validating", &format!("round_0_index_{index}"), &mut verdict)
            }
        };
        if let (Some(status), Ok(())) = (refusal, &verdict.result) {
            verdict.result = Err(status);
        }
    }
    verdict
}

/// A webhook that gave no answer: the refusal, unless its policy is to do without.
pub(super) fn failed(
    hook: &Webhook,
    why: &str,
    phase: &str,
    place: &str,
    verdict: &mut Verdict,
) -> Option<Status> {
    let why = format!("failed calling webhook {}: {why}", quoted(&hook.name));
    if hook.fails_closed {
        return Some(Status::internal(why));
    }
    warn!("{why}, failing open");
    let key = format!("failed-open.{phase}.webhook.admission.k8s.io/{place}");
    verdict.annotations.insert(key, hook.name.to_string());
    None
}

/// On what occasion a webhook is asked.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) phase: Phase,
    pub(super) operation: Operation,
    pub(super) dry_run: bool,
}

pub(super) async fn one(
    transport: &Arc<Transport>,
    asked: Asked,
    hook: &Webhook,
    uid: &str,
    question: serde_json::Value,
) -> Outcome {
    let begun = Instant::now();
    let outcome = ask(transport, asked, hook, uid, question).await;
    let rejected = match &outcome {
        Outcome::Answered(answer) => !answer.allowed,
        Outcome::Failed(_) => hook.fails_closed,
        Outcome::DryRun(_) => return outcome,
    };
    let Asked { phase, operation, .. } = asked;
    transport.tally.note(&hook.name, phase, operation, rejected, begun.elapsed());
    outcome
}

async fn ask(
    transport: &Arc<Transport>,
    Asked { phase, dry_run, .. }: Asked,
    hook: &Webhook,
    uid: &str,
    question: serde_json::Value,
) -> Outcome {
    match hook.dry_run {
        None if dry_run => return Outcome::Failed("Webhook SideEffects is nil".to_owned()),
        Some(false) if dry_run => {
            let name = quoted(&hook.name);
            return Outcome::DryRun(Status::bad_request(format!(
                "admission webhook {name} does not support dry run"
            )));
        }
        _ => {}
    }
    let Some(version) = hook.review_version else {
        return Outcome::Failed(
            "could not create admission objects: webhook does not accept known AdmissionReview \
             versions (v1, v1beta1)"
                .to_owned(),
        );
    };
    let question = review::question(version, question);
    let answer = match transport.post(&hook.client, question, hook.timeout).await {
        Ok(answer) => answer,
        Err(Failure::Client(why)) => {
            return Outcome::Failed(format!("could not get REST client: {why}"));
        }
        Err(Failure::Call(why)) => {
            return Outcome::Failed(format!("failed to call webhook: {why}"));
        }
    };
    match review::answer(phase, version, uid, &answer) {
        Ok(answer) => Outcome::Answered(answer),
        Err(Bad::Unreadable(why)) => Outcome::Failed(format!("failed to call webhook: {why}")),
        Err(Bad::Invalid(why)) => {
            Outcome::Failed(format!("received invalid webhook response: {why}"))
        }
        Err(Bad::Patch(why)) => Outcome::Failed(why),
    }
}

/// Keeps what an answer brings along; gives the refusal if it is one.
pub(super) fn take(answer: Answer, name: &str, verdict: &mut Verdict) -> Option<Status> {
    // A patch is the business of whoever asked for one.
    let Answer { allowed, status, patch: _, warnings, annotations } = answer;
    verdict.warnings.extend(warnings);
    let named = annotations.into_iter().map(|(key, value)| (format!("{name}/{key}"), value));
    verdict.annotations.extend(named);
    (!allowed).then(|| review::refusal(name, status.as_ref()))
}
