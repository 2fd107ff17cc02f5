//! The one executor: performs plans, and tells what came of each action.
//!
//! It never decides and never retries; the next pass does. Nothing else in Cleat writes to an API
//! server.

mod answer;
mod rehearse;
mod request;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cleat_core::id::Target;
use cleat_core::write::{Action, Outcome, Refusal, Side, Write};
use futures::future::join_all;
use kube::Client;
use serde_json::Value;
use tokio::sync::Semaphore;

pub use self::rehearse::Rehearsal;
pub use self::request::{Asking, Impersonated};
use crate::wire::{self, Silence};

/// How many requests may be under way on one side, unless told otherwise.
pub const IN_FLIGHT: usize = 32;

/// What an [`Executor`] is made from.
#[derive(Clone, Default)]
pub struct Config {
    pub hub: Option<Client>,
    pub cluster: Option<Client>,
    /// Who `managedFields` say wrote, where the write itself does not name a manager.
    pub field_manager: Option<String>,
    pub user_agent: Option<String>,
    /// Requests under way at the same time on one side; 0 means [`IN_FLIGHT`].
    pub in_flight: usize,
}

/// Performs plans. Its clones share the limit of requests under way.
#[derive(Clone)]
pub struct Executor {
    hub: Option<Line>,
    cluster: Option<Line>,
    field_manager: Option<String>,
    user_agent: Option<String>,
    strict: bool,
    patience: Duration,
}

/// A client, and how much of it may be used at once. Sides do not share: a hub that answers slowly
/// must not keep its clusters waiting.
#[derive(Clone)]
struct Line {
    client: Client,
    in_flight: Arc<Semaphore>,
}

/// What one object is, as far as a server told.
#[derive(Clone, Debug, PartialEq)]
pub enum Read {
    Present(Value),
    /// The server knows the kind, and nothing of that name is there.
    Absent,
    /// The server does not serve the kind, which does not prove that the object is gone.
    NoSuchKind,
    Unknown {
        message: String,
    },
}

impl Executor {
    pub fn new(config: Config) -> Self {
        let Config { hub, cluster, field_manager, user_agent, in_flight } = config;
        let in_flight = if in_flight == 0 { IN_FLIGHT } else { in_flight };
        let line = |client| Line { client, in_flight: Arc::new(Semaphore::new(in_flight)) };
        Self {
            hub: hub.map(line),
            cluster: cluster.map(line),
            field_manager,
            user_agent,
            strict: false,
            patience: wire::PATIENCE,
        }
    }

    /// From now on, objects with fields that the server does not know are refused rather than
    /// stored without them.
    #[must_use]
    pub fn strict(self) -> Self {
        Self { strict: true, ..self }
    }

    /// The same, under another name in `managedFields`.
    #[must_use]
    pub fn named(&self, field_manager: String) -> Self {
        Self { field_manager: Some(field_manager), ..self.clone() }
    }

    /// Performs `plan`, and answers in its shape.
    ///
    /// Steps run in order, and the actions of one at the same time. All of them are tried, even if
    /// some fail, unless a server stops answering: what was not sent by then is [`NotTried`], so
    /// that a pass ends in bounded time. A step with an action that was not done stops the
    /// following ones. That an object to delete is not there counts as done.
    ///
    /// [`NotTried`]: Outcome::NotTried
    pub async fn execute(&self, plan: impl AsRef<[Vec<Action>]>) -> Vec<Vec<Outcome>> {
        let plan = plan.as_ref();
        let mut outcomes = Vec::with_capacity(plan.len());
        let mut going = true;
        for step in plan {
            if !going {
                outcomes.push(step.iter().map(|_| Outcome::NotTried).collect());
                continue;
            }
            let silent = AtomicBool::new(false);
            let asking = Asking::default();
            let done = join_all(step.iter().map(|action| self.act(action, &asking, &silent))).await;
            going = step.iter().zip(&done).all(|(action, outcome)| is_settled(action, outcome));
            outcomes.push(done);
        }
        outcomes
    }

    /// One action by itself, perhaps only for show or in somebody else's name.
    pub async fn perform(&self, action: &Action, asking: &Asking) -> Outcome {
        self.act(action, asking, &AtomicBool::new(false)).await
    }

    /// Reads one whole object.
    pub async fn read(&self, side: Side, target: &Target) -> Read {
        let unknown = |message| Read::Unknown { message };
        let Some(line) = self.line(side) else { return unknown(unconnected(side)) };
        let request = match request::read(target, self.user_agent.as_deref()) {
            Ok(request) => request,
            Err(error) => return unknown(error.to_string()),
        };
        let Ok(_permit) = line.in_flight.acquire().await else {
            return unknown(unconnected(side));
        };
        match wire::exchange(&line.client, request, self.patience).await {
            Ok(answer) => answer::read(target, &answer),
            Err(silence) => unknown(silence.message()),
        }
    }

    async fn act(&self, action: &Action, asking: &Asking, silent: &AtomicBool) -> Outcome {
        let Some(line) = self.line(action.side) else {
            return Outcome::Lost(unconnected(action.side));
        };
        let manager = self.field_manager.as_deref();
        let agent = self.user_agent.as_deref();
        let request = match request::write(action, asking, manager, agent, self.strict) {
            Ok(request) => request,
            Err(error) => return Outcome::Refused(unsendable(&error)),
        };
        let Ok(_permit) = line.in_flight.acquire().await else {
            return Outcome::Lost(unconnected(action.side));
        };
        if silent.load(Ordering::Relaxed) {
            return Outcome::NotTried;
        }
        match wire::exchange(&line.client, request, self.patience).await {
            Ok(answer) => answer::outcome(action, &answer),
            Err(silence) => {
                if matches!(silence, Silence::TimedOut(_)) {
                    silent.store(true, Ordering::Relaxed);
                }
                Outcome::Lost(silence.message())
            }
        }
    }

    fn line(&self, side: Side) -> Option<&Line> {
        match side {
            Side::Hub => self.hub.as_ref(),
            Side::Cluster => self.cluster.as_ref(),
        }
    }
}

/// Whether the next step may rely on it.
fn is_settled(action: &Action, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Done(_) => true,
        Outcome::NotFound => matches!(action.write, Write::Delete { .. }),
        Outcome::AlreadyExists
        | Outcome::Conflict(_)
        | Outcome::NoSuchKind
        | Outcome::Refused(_)
        | Outcome::Lost(_)
        | Outcome::NotTried => false,
    }
}

fn unconnected(side: Side) -> String {
    match side {
        Side::Hub => "no connection to a hub is set up".to_owned(),
        Side::Cluster => "no connection to a cluster is set up".to_owned(),
    }
}

/// As the server would have said it, had it been asked.
fn unsendable(error: &request::Unsendable) -> Refusal {
    Refusal { code: 400, reason: "BadRequest".to_owned(), message: error.to_string() }
}

#[cfg(test)]
mod tests;
