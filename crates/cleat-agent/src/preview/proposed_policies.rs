//! What a policy would do here if the hub sent it, or sent something else of it: template by template,
//! down to the objects.

use cleat_api::policy::GROUP;
use cleat_api::removalpreview::ProposedPolicy;
use cleat_core::id::Target;
use cleat_core::policy::proposal::{Beside, Proposal, Proposed};
use cleat_core::policy_sync::proposal::{Foreseen as Template, News, Prospect as Fate, proposal};
use cleat_core::work::outlook::{Foreseen, Prospect};
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runtime::execute::Asking;
use serde_json::Value;

use super::rehearse::Trial;
use super::{Answer, Context};
use crate::policy_sync::{Onlooker, without_blank_owner};

impl Context {
    pub(super) async fn foresee_proposed_policy(&self, proposed: &ProposedPolicy) -> Answer {
        let mut answer = Answer::default();
        let policy = &proposed.name;
        let onlooker = Onlooker {
            client: &self.config.cluster_client,
            kinds: &self.inquirer.kinds,
            executor: &self.executor,
            cluster: &self.config.cluster,
        };
        let templates = match onlooker.imagined(proposed).await {
            Ok(imagined) => proposal(&imagined),
            Err(why) => Err(why),
        };
        let templates = match templates {
            Ok(templates) => templates,
            Err(why) => {
                answer.problems.push(format!("policy {policy}: {why}"));
                return answer;
            }
        };
        let alone = self.foresee_of_templates(policy, &templates, &Beside::default()).await;
        // What one of them defines, others may have objects of.
        let beside = Beside::of(alone.trials.iter().map(|trial| &trial.action.write));
        match beside.is_nothing() {
            true => alone,
            false => self.foresee_of_templates(policy, &templates, &beside).await,
        }
    }

    async fn foresee_of_templates(
        &self,
        policy: &str,
        templates: &[Template],
        beside: &Beside,
    ) -> Answer {
        let mut answer = Answer::default();
        for template in templates {
            self.foresee_of_template(policy, template.clone(), beside, &mut answer).await;
        }
        answer
    }

    async fn foresee_of_template(
        &self,
        policy: &str,
        template: Template,
        beside: &Beside,
        answer: &mut Answer,
    ) {
        let Template { target, kind, uid, prospect } = template;
        let ours = kind == "ConfigurationPolicy" && target.id.group == GROUP;
        let (prospect, why, field) = match prospect {
            Fate::Is { object, news } => match self.accepted(&target, object, news).await {
                Err(why) => (Prospect::Stuck, why, "spec.policy-templates"),
                Ok(object) if ours => {
                    return self.foresee_of_objects(&target.id.name, object, beside, answer).await;
                }
                Ok(_) => {
                    let (prospect, what) = match news {
                        News::Made => (Prospect::Create, "it comes with its policy"),
                        News::Changed => (Prospect::Change, "it is not as its policy says"),
                        News::Same => (Prospect::Unchanged, "it is as its policy says"),
                    };
                    let why = format!("{what}; its own controller decides what it does");
                    (prospect, why, "spec.policy-templates")
                }
            },
            Fate::Leaves if ours => {
                return self.foresee_one(&target.id.name, answer).await;
            }
            Fate::Leaves => {
                let why = "it left its policy; its own controller decides what goes with it";
                (Prospect::Delete, why.to_owned(), "spec.policy-templates")
            }
            Fate::Stays(why) => (Prospect::Keep, why, "spec.policy-templates"),
            Fate::Stuck(why) => (Prospect::Stuck, why, "spec.policy-templates"),
            Fate::Unknown(why) => (Prospect::Unknown, why, ""),
            Fate::Waits(why) => {
                let why = format!("{why}; what it does then is not foreseen");
                (Prospect::Unknown, why, "spec.dependencies")
            }
        };
        let told = foreseen(target, uid, prospect, why, field);
        answer.outlooks.entry(policy.to_owned()).or_default().push(told);
    }

    /// The template as the cluster would store it, or why it would not.
    async fn accepted(
        &self,
        target: &Target,
        mut object: Value,
        news: News,
    ) -> Result<Value, String> {
        without_blank_owner(&mut object);
        let write = match news {
            News::Same => return Ok(object),
            News::Made => Write::Create(object.clone()),
            News::Changed => Write::Replace(object.clone()),
        };
        let action = Action { side: Side::Cluster, target: target.clone(), write };
        let asking = Asking { dry_run: true, ..Asking::default() };
        let executor = self.executor.clone().strict();
        match executor.perform(&action, &asking).await {
            Outcome::Done(stored) => Ok(stored),
            // The namespace of the cluster comes with its first policy.
            Outcome::Refused(refusal) if refusal.code == 404 && news == News::Made => Ok(object),
            Outcome::NotFound if news == News::Made => Ok(object),
            Outcome::Refused(refusal) => Err(refusal.message),
            Outcome::Lost(why) => Err(why),
            Outcome::Conflict(_) | Outcome::AlreadyExists | Outcome::NotFound => {
                Err("it changed just now; look again".to_owned())
            }
            Outcome::NoSuchKind => Err("its kind is not served".to_owned()),
            Outcome::NotTried => Err("it was not asked".to_owned()),
        }
    }

    /// What a ConfigurationPolicy would make of objects.
    async fn foresee_of_objects(
        &self,
        name: &str,
        object: Value,
        beside: &Beside,
        answer: &mut Answer,
    ) {
        let told = match &self.config.policies {
            Some(policies) => policies.proposed(object, beside).await,
            None => Err("nobody in this agent looks after ConfigurationPolicies".to_owned()),
        };
        let Proposal { objects, problems } = match told {
            Ok(told) => told,
            Err(why) => return answer.problems.push(format!("configurationpolicy {name}: {why}")),
        };
        let said = |why: String| format!("configurationpolicy {name}: {why}");
        answer.problems.extend(problems.into_iter().map(said));
        let mut outlook = Vec::new();
        for Proposed { foreseen, write, before } in objects {
            answer.trials.extend(write.map(|write| {
                let target = Target { version: foreseen.version.clone(), id: foreseen.id.clone() };
                Trial {
                    action: Action { side: Side::Cluster, target, write },
                    before,
                    strict: true,
                }
            }));
            outlook.push(foreseen);
        }
        answer.outlooks.entry(name.to_owned()).or_default().extend(outlook);
    }
}

fn foreseen(
    target: Target,
    uid: String,
    prospect: Prospect,
    why: String,
    decided_by: &'static str,
) -> Foreseen {
    let Target { version, id } = target;
    Foreseen { id, version, uid, prospect, why, decided_by, adopted: false, finalizers: Vec::new() }
}
