//! Ways to be wrong, planted to see whether the histories find them out.

use alloc::string::ToString as _;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{FINALIZER, PruneObjectBehavior};

use super::world::{US, World, kind};
use crate::policy::observed::*;
use crate::policy::{Verdict, plan, report};
use crate::write::{Action, Plan, Write};

/// Ways to be wrong, each of which the histories must find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    UnknownIsAbsent,
    UnknownTemplatesAreNone,
    UnclaimedCreation,
    AnyIncarnation,
    AcceptedIsGone,
    ForgottenLeavers,
    NoFinalizer,
    RefusedIsSettled,
    EveryClaimIsOurs,
    NoClaimIsOurs,
    StaleUidIsOurs,
    InformPrunes,
    LeavingPrunes,
    RecreatedIsOurs,
    NonePrunes,
    AnyPolicyIsUs,
    BlindListIsEmpty,
    AnyVersion,
    UntriedCreation,
}

impl World {
    /// What the faulty planner would have seen.
    fn mistaken(&self, mut seen: Observed) -> Observed {
        let objects = &mut seen.cluster.objects;
        match self.fault {
            Fault::UnknownIsAbsent => {
                for one in objects.values_mut() {
                    if matches!(one, Seen::Unknown(_)) {
                        *one = Seen::Absent;
                    }
                }
            }
            Fault::UnknownTemplatesAreNone => {
                if matches!(seen.templates, Templates::Failed { .. }) {
                    seen.templates = Templates::Known(Vec::new());
                }
            }
            Fault::AcceptedIsGone => {
                for one in objects.values_mut() {
                    if matches!(one, Seen::Present(present) if present.terminating().is_some()) {
                        *one = Seen::Absent;
                    }
                }
            }
            Fault::RefusedIsSettled => {
                for (id, one) in objects.iter_mut() {
                    if seen.memory.troubles.contains_key(id) {
                        *one = Seen::Absent;
                    }
                }
            }
            Fault::EveryClaimIsOurs | Fault::NoClaimIsOurs => {
                for one in objects.values_mut() {
                    if let Seen::Present(present) = one {
                        present.writers = match self.fault {
                            Fault::EveryClaimIsOurs => alloc::vec![US.into()],
                            _ => Vec::new(),
                        };
                    }
                }
            }
            // All policies write by one name.
            Fault::AnyPolicyIsUs => {
                for one in objects.values_mut() {
                    if let Seen::Present(present) = one
                        && !present.writers.is_empty()
                    {
                        present.writers = alloc::vec![US.into()];
                    }
                }
            }
            Fault::UntriedCreation => {
                for trial in seen.cluster.creations.values_mut() {
                    trial.answer = TrialAnswer::Accepted(trial.asked.clone());
                }
            }
            Fault::BlindListIsEmpty => {
                for list in seen.cluster.lists.values_mut().filter(|list| list.is_err()) {
                    *list = Ok(Vec::new());
                }
            }
            _ => {}
        }
        let Subject::Policy(policy) = &mut seen.policy else { return seen };
        match self.fault {
            Fault::NoFinalizer => policy.finalizers = alloc::vec![FINALIZER.into()],
            Fault::StaleUidIsOurs => {
                for entry in &mut policy.status.related_objects {
                    let id = kind().target("n", &entry.object.metadata.name).id;
                    let live = seen.cluster.objects.get(&id);
                    if let (Some(Seen::Present(live)), Some(known)) = (live, &mut entry.properties)
                        && !known.uid.is_empty()
                    {
                        known.uid = live.uid().to_string();
                    }
                }
            }
            Fault::InformPrunes if policy.deleting => {
                policy.spec.remediation_action = "enforce".into();
            }
            Fault::NonePrunes if policy.spec.prune_object_behavior == PruneObjectBehavior::None => {
                policy.spec.prune_object_behavior = PruneObjectBehavior::DeleteIfCreated;
            }
            Fault::LeavingPrunes => seen.controller.departure = Departure::Staying,
            _ => {}
        }
        seen
    }

    pub(super) fn plan(&self, seen: &Observed) -> Plan {
        let mut steps = plan(&self.mistaken(seen.clone()));
        match self.fault {
            Fault::UnclaimedCreation => {
                let creates = |step: &Vec<Action>| {
                    step.iter().any(|one| {
                        matches!(&one.write, Write::Create(_)) && one.target.id.resource == "things"
                    })
                };
                if steps.iter().any(creates) {
                    steps.retain(|step| {
                        !step.iter().any(|one| matches!(one.write, Write::ReplaceStatus(_)))
                    });
                }
            }
            Fault::AnyIncarnation => {
                for action in steps.iter_mut().flatten() {
                    if let Write::Delete { uid, .. } = &mut action.write {
                        uid.clear();
                    }
                }
            }
            Fault::AnyVersion => {
                for action in steps.iter_mut().flatten() {
                    if let Write::Delete { resource_version, .. } = &mut action.write {
                        *resource_version = None;
                    }
                }
            }
            _ => {}
        }
        steps
    }

    pub(super) fn report(&self, seen: &Observed) -> Verdict {
        report(&self.mistaken(seen.clone()))
    }
}
