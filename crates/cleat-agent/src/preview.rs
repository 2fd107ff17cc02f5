//! Answers what a removal, or a change of a work or a policy, would do on this cluster.
//!
//! Questions and answers are objects on the hub, so nobody has to dial in. Everything here is read or
//! only tried (dry runs); the one write is the answer.

mod inquire;
mod policies;
mod proposals;
mod proposed_policies;
mod rehearse;
mod unserved;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::removalpreview::{
    PreviewedObject, RemovalPreview, RemovalPreviewSpec, RemovalPreviewStatus,
};
use cleat_core::id::{Id, Target};
use cleat_core::preview;
use cleat_core::work::contents::Found;
use cleat_core::work::leaving::{Inside, holders, leaving};
use cleat_core::work::observed::Observed;
use cleat_core::work::outlook::{Change, Foreseen, Prospect, outlook};
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runtime::execute::{self, Executor};
use cleat_runtime::follow::{Follow, Held, Scope};
use cleat_runtime::queue::{self, Queue, Wake};
use cleat_runtime::tasks::Tasks;
use jiff::Timestamp;
use kube::Client;
use serde_json::json;

pub use self::inquire::Inquirer;
use self::rehearse::Trial;
use crate::policy::Policies;
use crate::work::{FIELD_MANAGER, Works};

/// Questions under way at the same time.
const AT_ONCE: usize = 2;

/// When to try again to write an answer that did not arrive.
const RETRY: Duration = Duration::from_secs(5);

/// When to look again if the hub takes no answer at all, such as for lack of rights.
const REFUSED: Duration = Duration::from_secs(60);

/// What the story is told.
pub struct Config {
    pub hub_client: Client,
    pub cluster_client: Client,
    /// The cluster's name, which is its namespace on the hub.
    pub cluster: String,
    /// SHA-256 of the hub's address; marks for it are ours.
    pub hub_hash: String,
    pub works: Works,
    /// Who looks after policies, if that is in this process.
    pub policies: Option<Policies>,
}

/// What can be said to a question.
#[derive(Default)]
pub(crate) struct Answer {
    /// By the work or the policy that brought it.
    outlooks: BTreeMap<String, Vec<Foreseen>>,
    /// What would be written.
    trials: Vec<Trial>,
    problems: Vec<String>,
    notes: Vec<String>,
}

impl Answer {
    fn take_in(&mut self, work: &str, outlook: Result<Vec<Foreseen>, String>) {
        match outlook {
            Ok(foreseen) => drop(self.outlooks.insert(work.to_owned(), foreseen)),
            Err(why) => self.problems.push(format!("work {work}: {why}")),
        }
    }

    /// The incarnations that are foreseen to go.
    fn going(&self) -> BTreeSet<String> {
        let all = self.outlooks.values().flatten();
        let going = all.filter(|one| one.prospect == Prospect::Delete && !one.uid.is_empty());
        going.map(|one| one.uid.clone()).collect()
    }
}

struct Context {
    config: Config,
    questions: Follow,
    executor: Executor,
    inquirer: Inquirer,
}

/// Starts the story; it runs until `tasks` are shut down.
pub fn start(config: Config, tasks: &Tasks) {
    let queue: Queue<String> = Queue::new();
    let scope = Scope {
        group: "cleat.dev".to_owned(),
        version: "v1alpha1".to_owned(),
        resource: "removalpreviews".to_owned(),
        namespace: Some(config.cluster.clone()),
        ..Scope::default()
    };
    let questions = {
        let queue = queue.clone();
        Follow::start(config.hub_client.clone(), tasks, scope, move |_, name| {
            queue.add(name.to_owned());
        })
    };
    let executor = Executor::new(execute::Config {
        hub: Some(config.hub_client.clone()),
        cluster: Some(config.cluster_client.clone()),
        field_manager: Some(FIELD_MANAGER.to_owned()),
        user_agent: Some(FIELD_MANAGER.to_owned()),
        ..execute::Config::default()
    });
    let inquirer = Inquirer::new(config.cluster_client.clone(), executor.clone());
    let context = Arc::new(Context { config, questions, executor, inquirer });
    let mut stop = tasks.stop();
    tasks.spawn("previews", async move {
        let closing = queue.clone();
        let running = queue::run(queue, AT_ONCE, move |name| {
            let context = Arc::clone(&context);
            async move { context.pass(&name).await }
        });
        stop.or(running).await;
        closing.close();
    });
}

impl Context {
    async fn pass(&self, name: &str) -> Wake {
        let Held::Present(object) = self.questions.get(&self.config.cluster, name) else {
            return Wake::OnChange;
        };
        let question: RemovalPreview = match object.parse() {
            Ok(question) => question,
            Err(error) => {
                tracing::warn!(name, %error, "a question cannot be read");
                return Wake::OnChange;
            }
        };
        let now = Timestamp::now();
        let expired = question.spec.expires_at.as_ref().is_some_and(|end| end.0 <= now);
        let answered = question.status.as_ref().is_some_and(|status| status.answered_at.is_some());
        if expired || answered || question.metadata.deletion_timestamp.is_some() {
            return Wake::OnChange;
        }
        let answer = self.foresee(&question.spec).await;
        let answer = self.inquirer.answered(answer).await;
        let id = Id {
            group: "cleat.dev".to_owned(),
            resource: "removalpreviews".to_owned(),
            namespace: self.config.cluster.clone(),
            name: name.to_owned(),
        };
        let target = Target { version: "v1alpha1".to_owned(), id };
        let uid = question.metadata.uid.as_deref();
        let done = self.say(target.clone(), uid, &answer).await;
        let Some(why) = not_taken(&done) else { return after(&done) };
        // Whatever it is, looking again and saying the same would not change it.
        tracing::warn!(name, why, "an answer was not taken");
        let short = preview::not_taken(why, Timestamp::now());
        after(&self.say(target, uid, &short).await)
    }

    /// Writes an answer down.
    async fn say(
        &self,
        target: Target,
        uid: Option<&str>,
        answer: &RemovalPreviewStatus,
    ) -> Outcome {
        let patch = json!({ "metadata": { "uid": uid }, "status": answer });
        let action = Action { side: Side::Hub, target, write: Write::MergeStatus(patch) };
        let done = self.executor.execute(vec![vec![action]]).await;
        done.into_iter().flatten().next().unwrap_or(Outcome::NotTried)
    }

    /// What would become of everything the question is about, and what cannot be said.
    async fn foresee(&self, spec: &RemovalPreviewSpec) -> Answer {
        let RemovalPreviewSpec {
            work,
            proposed,
            policy,
            proposed_policy,
            configuration_policy,
            leave,
            expires_at: _,
        } = spec;
        let removal = (work.as_str(), policy.as_str(), configuration_policy.as_str(), leave);
        match (removal, proposed, proposed_policy) {
            (("", "", "", None), Some(proposed), None) => {
                return self.foresee_proposed(proposed).await;
            }
            (("", "", "", None), None, Some(proposed)) => {
                return self.foresee_proposed_policy(proposed).await;
            }
            (_, None, None) => {}
            _ => return unclear(),
        }
        match removal {
            ("", "", "", None) => {}
            (work, "", "", None) => return self.foresee_work(work).await,
            ("", policy, "", None) => return self.foresee_policy(policy).await,
            ("", "", name, None) => return self.foresee_template(name).await,
            ("", "", "", Some(strategy)) => {
                // What was not read yet is not nothing.
                let answer = match self.config.works.names().await {
                    Some(names) => self.foresee_leaving_works(names, *strategy).await,
                    None => {
                        let problem = "which works there are could not be read yet; ask again";
                        Answer { problems: vec![problem.to_owned()], ..Answer::default() }
                    }
                };
                return self.foresee_leaving_policies(answer, *strategy).await;
            }
            _ => {}
        }
        unclear()
    }

    /// If one work were deleted.
    async fn foresee_work(&self, name: &str) -> Answer {
        let mut answer = Answer::default();
        for seen in self.works_seen([name.to_owned()].into(), &mut answer).await {
            answer.take_in(name, outlook(&seen, Change::Deleted));
        }
        answer
    }

    /// If all of them went because the cluster leaves.
    async fn foresee_leaving_works(
        &self,
        names: BTreeSet<String>,
        strategy: RemoveStrategy,
    ) -> Answer {
        let mut answer = Answer::default();
        let all = self.works_seen(names, &mut answer).await;
        let inside = match strategy {
            RemoveStrategy::Required => self.look_inside(holders(&all)).await,
            RemoveStrategy::Needless => Inside::new(),
        };
        for (name, outlook) in leaving(all, strategy, &inside) {
            answer.take_in(&name, outlook);
        }
        answer
    }

    async fn works_seen(&self, names: BTreeSet<String>, answer: &mut Answer) -> Vec<Observed> {
        let mut all = Vec::new();
        for name in names {
            match self.config.works.seen(&name).await {
                Some(seen) => all.push(seen),
                None => {
                    let problem = format!("work {name} was not looked at: the agent is stopping");
                    answer.problems.push(problem);
                }
            }
        }
        all
    }

    /// What is in the namespaces and of the definitions that would go: a leaving cluster keeps those that
    /// hold what is not ours.
    async fn look_inside(&self, holders: BTreeSet<Id>) -> Inside {
        // What policies take along is gone before a work goes that brought its namespace or definition.
        let taken = self.config.policies.as_ref().map(Policies::taken_along).unwrap_or_default();
        let mut inside = Inside::new();
        let once_taken = |one: Found| one.once_going(|uid| taken.contains(uid));
        for id in holders {
            let found = self.inquirer.held(&id).await;
            let found = found.map(|found| found.into_iter().map(once_taken).collect());
            inside.insert(id, found);
        }
        inside
    }
}

/// Why a hub does not take an answer, now or later.
fn not_taken(done: &Outcome) -> Option<&str> {
    match done {
        // It has too much to do.
        Outcome::Refused(refusal) if refusal.code == 429 => None,
        Outcome::Refused(refusal) => Some(&refusal.message),
        Outcome::Lost(why) if why.contains("request is too large") => Some(why),
        _ => None,
    }
}

/// When to look again.
fn after(done: &Outcome) -> Wake {
    match done {
        Outcome::Refused(refusal) if refusal.code != 429 => Wake::After(REFUSED),
        Outcome::Refused(_) | Outcome::Lost(_) | Outcome::NotTried => Wake::After(RETRY),
        _ => Wake::OnChange,
    }
}

/// Nobody can tell what is asked.
fn unclear() -> Answer {
    let hint = "name one of a work, a policy, a configurationPolicy or a strategy to leave by";
    Answer { problems: vec![hint.to_owned()], ..Answer::default() }
}

impl Inquirer {
    /// What would become of objects, by what brought them, with what else would go, what would stand in
    /// the way, and what cannot be seen.
    pub async fn told(
        &self,
        outlooks: BTreeMap<String, Vec<Foreseen>>,
        problems: Vec<String>,
        notes: Vec<String>,
    ) -> RemovalPreviewStatus {
        self.answered(Answer { outlooks, trials: Vec::new(), problems, notes }).await
    }

    /// The answer with what else would go and what would stand in the way.
    async fn answered(&self, answer: Answer) -> RemovalPreviewStatus {
        let Answer { mut outlooks, mut trials, mut problems, notes } = answer;
        let otherwise = preview::together(&mut outlooks);
        trials.retain(|trial| !otherwise.contains(&trial.action.target.id));
        let (objects, unseen) = self.objects_tried(outlooks, trials).await;
        problems.extend(unseen);
        preview::listed(objects, problems, notes, Timestamp::now())
    }

    /// All objects, and of which of them nobody can see what goes along.
    async fn objects_tried(
        &self,
        outlooks: BTreeMap<String, Vec<Foreseen>>,
        trials: Vec<Trial>,
    ) -> (Vec<PreviewedObject>, Vec<String>) {
        let goes = |one: &&Foreseen| matches!(one.prospect, Prospect::Delete | Prospect::Recreate);
        let going: Vec<Foreseen> = outlooks.values().flatten().filter(goes).cloned().collect();
        let planned: BTreeSet<Id> = going.iter().map(|one| one.id.clone()).collect();
        let mut inquiries = self.inquire(going).await;
        let mut unseen = preview::unseen(&inquiries);
        if self.plain {
            unseen.extend(preview::unlooked_at(&inquiries));
        }
        inquiries.extend(self.rehearse(trials).await);
        let mut objects = Vec::new();
        for (name, foreseen) in outlooks {
            objects.extend(preview::objects(&name, foreseen, &inquiries, &planned));
        }
        (objects, unseen)
    }
}
