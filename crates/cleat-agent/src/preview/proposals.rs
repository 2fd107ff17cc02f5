//! What a work would do here if it said something else.

use std::sync::Arc;

use cleat_api::removalpreview::ProposedWork;
use cleat_core::id::{Id, Target};
use cleat_core::work::observed::{Content, Observed, Present, Seen};
use cleat_core::work::proposal::{Proposal, Proposed, proposal};
use cleat_core::write::{Action, Side, Write};
use serde_json::Value;

use super::rehearse::Trial;
use super::{Answer, Context};

impl Context {
    pub(super) async fn foresee_proposed(&self, proposed: &ProposedWork) -> Answer {
        let mut answer = Answer::default();
        let name = &proposed.name;
        let imagined = match self.config.works.imagined(proposed).await {
            Some(Ok(imagined)) => imagined,
            Some(Err(why)) => {
                answer.problems.push(format!("work {name}: {why}"));
                return answer;
            }
            None => {
                let problem = format!("work {name} was not looked at: the agent is stopping");
                answer.problems.push(problem);
                return answer;
            }
        };
        let Proposal { objects, problems } = match proposal(&imagined) {
            Ok(proposal) => proposal,
            Err(why) => {
                answer.problems.push(format!("work {name}: {why}"));
                return answer;
            }
        };
        answer.problems.extend(problems.into_iter().map(|why| format!("work {name}: {why}")));
        let mut outlook = Vec::new();
        for Proposed { foreseen, write } in objects {
            // Whether it can be deleted is tried with everything else that goes.
            let write = write.filter(|write| !matches!(write, Write::Delete { .. }));
            answer.trials.extend(write.map(|write| {
                let id = foreseen.id.clone();
                let before = content(&imagined, &id);
                let target = Target { version: foreseen.version.clone(), id };
                let action = Action { side: Side::Cluster, target, write };
                Trial { action, before, strict: false }
            }));
            outlook.push(foreseen);
        }
        answer.outlooks.insert(name.clone(), outlook);
        answer
    }
}

fn content(seen: &Observed, id: &Id) -> Option<Arc<Value>> {
    match seen.live.get(id) {
        Some(Seen::Present(Present { content: Content::Read(object), .. })) => {
            Some(Arc::clone(object))
        }
        _ => None,
    }
}
