//! Looking at a policy as if it said something else, or were there: what it would make of objects. Only
//! reads, straight from the server, and dry runs, so that no policy's own story is disturbed.

use cleat_api::configurationpolicy::{ConfigurationPolicy, reason};
use cleat_core::policy::observed::{
    Cluster, Controller, Departure, Observed, Subject, Templates, Trial, TrialAnswer,
};
use cleat_core::policy::proposal::{Beside, Proposal, proposal};
use cleat_core::policy::{self, Question, Reads, Tried};
use futures::StreamExt as _;
use jiff::Timestamp;
use serde_json::Value;

use super::observe::{Looking, READS};
use super::outlook::Policies;
use super::sight::Fresh;
use super::subjects::Needs;
use super::templates::Answers;
use super::{Context, records, templates, trial};

/// What is done may have to be read about as well, which shows only step by step.
const ROUNDS: usize = 64;

impl Policies {
    /// What a ConfigurationPolicy would do that is this object, or why that cannot be said.
    /// `beside`: what other templates of the same policy bring.
    pub(crate) async fn proposed(
        &self,
        object: Value,
        beside: &Beside,
    ) -> Result<Proposal, String> {
        self.context.proposed(object, beside).await
    }
}

impl Context {
    async fn proposed(&self, object: Value, beside: &Beside) -> Result<Proposal, String> {
        let policy: ConfigurationPolicy = serde_json::from_value(object)
            .map_err(|error| format!("the policy cannot be read: {error}"))?;
        let annotations = policy.metadata.annotations.clone().unwrap_or_default();
        let policy = records::known(policy);
        // Nobody's: nothing of this is watched.
        let key = (String::new(), String::new());
        let mut look = Looking {
            key: &key,
            fresh: Fresh::Now,
            needs: Needs::default(),
            before: Needs::default(),
            answers: Answers::default(),
            seed: policy.uid.clone(),
            watched: false,
        };
        let unread = || "not everything its templates ask for could be read".to_owned();
        let resolved = self.templates(&policy, &annotations, &mut look).await;
        let mut seen = Observed {
            now: Timestamp::now(),
            controller: Controller {
                departure: Departure::Staying,
                terminating_namespaces: self.config.terminating_namespaces,
                instance: self.config.instance.clone(),
                say: templates::say,
            },
            policy: Subject::Policy(Box::new(policy.clone())),
            templates: resolved.unwrap_or(Templates::Failed {
                reason: reason::TEMPLATE_ERROR,
                message: unread(),
                passing: true,
            }),
            cluster: Cluster::default(),
            memory: policy::Memory::default(),
        };
        seen.controller.departure = self.departure(&policy).await;
        if !policy.spec.namespace_selector.is_empty() {
            seen.cluster.namespaces = self.namespaces(look.fresh).await;
        }
        for _ in 0..ROUNDS {
            let Reads { all: _, missing, questions } = match proposal(&seen, beside) {
                Ok(told) => return Ok(told),
                Err(lacks) => lacks,
            };
            let before = missing.len();
            let left = self.learn(&policy, &mut seen, &mut look, missing).await;
            if left > 0 && left == before {
                return Err(unread());
            }
            if left == 0 {
                self.try_for_show(&mut seen, questions).await;
            }
        }
        Err("its objects do not keep still for long enough to be looked at".to_owned())
    }

    async fn try_for_show(&self, seen: &mut Observed, questions: Vec<Question>) {
        let asked = questions.into_iter().map(|question| async move {
            let answer = trial::ask(&self.executor, &question).await;
            (question, answer)
        });
        let answers: Vec<(Question, TrialAnswer)> =
            futures::stream::iter(asked).buffer_unordered(READS).collect().await;
        for (Question { target, object, of }, answer) in answers {
            if answer == TrialAnswer::Stale {
                seen.cluster.objects.remove(&target.id);
                continue;
            }
            let trial = Trial { asked: object, answer };
            match of {
                Tried::Update => seen.cluster.trials.insert(target.id, trial),
                Tried::Creation => seen.cluster.creations.insert(target.id, trial),
            };
        }
    }
}
