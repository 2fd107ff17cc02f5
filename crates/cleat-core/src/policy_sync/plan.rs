//! What to do next about one policy on a cluster: its whole life, read top to bottom.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::manifestwork::{LEAVE_FINALIZER, ON_RECORD};
use cleat_api::policy::name::{CLUSTER_NAMESPACE, TRIGGER_UPDATE};
use cleat_api::policy::{GROUP, PolicyDependency, PolicySpec};
use serde_json::{Map, Value, json};

use super::HOLD;
use super::adrift::{self, Adrift};
use super::gone;
use super::observed::{Copy, Defined, Marked, Observed, Policy, TemplateId};
use super::removal;
use super::template::{self, Judged, Need};
use crate::id::{Id, Target};
use crate::leave::ground::{MADE_FOR, MADE_FOR_POLICIES};
use crate::leave::record::is_receipted;
use crate::write::{Action, Plan, Propagation, Side, Write};

/// The next steps. Empty: nothing to do until something changes or [`super::report`] says when.
pub fn plan(seen: &Observed) -> Plan {
    let mut plan = next(seen);
    for step in &mut plan {
        step.retain(|action| !must_wait(seen, &action.target.id));
    }
    plan.retain(|step| !step.is_empty());
    plan
}

fn next(seen: &Observed) -> Plan {
    let kept = seen.leaving == Ok(Some(RemoveStrategy::Needless));
    match (&seen.replica, &seen.local) {
        (Copy::Present(replica), _) if replica.deleting => leave(seen, replica),
        (Copy::Present(replica), local) => {
            if let Some(hold) = held(seen, replica) {
                return vec![vec![hold]];
            }
            match local {
                Copy::Absent if seen.place.lacks_namespace => {
                    vec![vec![namespace(seen)], vec![create(seen, replica)]]
                }
                Copy::Absent => vec![vec![create(seen, replica)]],
                Copy::Unknown(_) => vec![],
                Copy::Present(local) if local.deleting => vec![],
                Copy::Present(local) => match copied(seen, replica, local) {
                    Some(copy) => vec![vec![copy]],
                    None => templates(seen, local),
                },
            }
        }
        // All of its kind went, not this one: it stays as the hub last had it.
        (Copy::Absent, Copy::Present(local)) if undefined(seen) && !local.deleting => {
            match adrift::mark(seen, local) {
                Some(mark) => vec![vec![mark]],
                None => templates(seen, local),
            }
        }
        // Of what the hub does not have nobody else could say what stays.
        (Copy::Absent, _) if removal::is_untold(seen) => vec![],
        // The hub let go of it, or a human did. The templates go with their owner.
        (Copy::Absent, local) if kept => match (&seen.marked, local) {
            (Err(_), _) => vec![],
            (Ok(marked), _) if marked.iter().any(|one| one.prunes) => {
                vec![removal::release(marked)]
            }
            (Ok(_), local) => local.policy().map(|local| dropped(seen, local)).unwrap_or_default(),
        },
        (Copy::Absent, Copy::Present(local))
            if seen.leaving == Ok(Some(RemoveStrategy::Required)) =>
        {
            emptied(seen, local)
        }
        (Copy::Absent, Copy::Present(local)) => match adrift::of(seen, local) {
            Adrift::No => dropped(seen, local),
            Adrift::Until(_) | Adrift::Kept => templates(seen, local),
        },
        // Who cannot see the hub goes on with what it said last.
        (Copy::Unknown(_), Copy::Present(local)) if !local.deleting => templates(seen, local),
        _ => vec![],
    }
}

/// Whether the hub loses all policies with their kind. A cluster that leaves lets go of them anyway, in
/// the way it was told.
fn undefined(seen: &Observed) -> bool {
    seen.leaving == Ok(None) && seen.defined == Defined::Goes
}

/// The copy of a policy that the hub does not have any more.
fn dropped(seen: &Observed, local: &Policy) -> Plan {
    if local.deleting || seen.place.own_hub {
        return vec![];
    }
    vec![vec![remove(target(seen, Side::Cluster), &local.uid)]]
}

/// The same on a cluster that is emptied: the copy knows what has to be seen gone, so it goes last.
fn emptied(seen: &Observed, local: &Policy) -> Plan {
    let Ok(marked) = &seen.marked else { return vec![] };
    if local.deleting {
        return vec![];
    }
    if let Some(note) = gone::keep(seen, local) {
        return vec![vec![note]];
    }
    if !marked.is_empty() {
        let going = marked.iter().filter(|marked| !marked.deleting);
        return vec![going.map(|one| remove(one.target.clone(), &one.uid)).collect()];
    }
    if gone::is_seen(seen) { dropped(seen, local) } else { vec![] }
}

/// The hub lets go: first what the templates made, then the copy, then the hub's own.
fn leave(seen: &Observed, replica: &Policy) -> Plan {
    if !replica.finalizers.iter().any(|one| one == HOLD) {
        // It goes by itself; the copy follows once it is gone.
        return vec![];
    }
    let local = match &seen.local {
        Copy::Unknown(_) => return vec![],
        Copy::Absent => None,
        Copy::Present(local) => Some(local),
    };
    // Nobody deleted it: what its templates made stays, and so do they.
    if undefined(seen) {
        let stays = local.filter(|local| !local.deleting && !seen.place.own_hub);
        let mark = stays.and_then(|local| adrift::mark(seen, local));
        return vec![vec![mark.unwrap_or_else(|| let_go(seen, replica))]];
    }
    if matches!(seen.defined, Defined::Unknown(_)) {
        return vec![];
    }
    // Who cannot tell what is there, or what is to become of it, touches nothing.
    let (Ok(marked), Ok(leaving)) = (&seen.marked, &seen.leaving) else { return vec![] };
    if let Some(strategy) = leaving {
        if removal::mute(seen).is_some() {
            return vec![];
        }
        // What stays is told before anything is let go of.
        let Some(removal) = removal::removal(seen, replica) else { return vec![] };
        if let Some(told) = removal::tell(seen, replica, &removal) {
            return vec![vec![told]];
        }
        // What is to be seen gone outlives the templates that list it, and this process.
        if let Some(told) = gone::tell(seen, replica) {
            return vec![vec![told]];
        }
        let released = match strategy {
            RemoveStrategy::Needless => removal::release(marked),
            RemoveStrategy::Required => Vec::new(),
        };
        if !released.is_empty() {
            return vec![released];
        }
    }
    if !marked.is_empty() {
        let going = marked.iter().filter(|marked| !marked.deleting);
        let going: Vec<Action> =
            going.map(|Marked { target, uid, .. }| remove(target.clone(), uid)).collect();
        return if going.is_empty() { vec![] } else { vec![going] };
    }
    if let (Some(local), false) = (local, seen.place.own_hub) {
        return match local.deleting {
            true => vec![],
            false => vec![vec![remove(target(seen, Side::Cluster), &local.uid)]],
        };
    }
    // What is to stay need not be seen gone; it was told.
    let sure = *leaving != Some(RemoveStrategy::Required) || gone::is_seen(seen);
    // What the hub could not hold it writes down first, and says so.
    if leaving.is_some() && (is_unwritten(replica) || !sure) {
        return vec![];
    }
    vec![vec![let_go(seen, replica)]]
}

/// Whether the hub could not hold the policy and has not yet written down what stays of it.
pub(super) fn is_unwritten(replica: &Policy) -> bool {
    let on_record = metadata(replica, "annotations").remove(ON_RECORD);
    let on_record = on_record.as_ref().and_then(Value::as_str);
    !is_receipted(&replica.finalizers, replica.status.removal.as_ref(), on_record)
}

fn let_go(seen: &Observed, replica: &Policy) -> Action {
    let rest = replica.finalizers.iter().filter(|one| *one != HOLD);
    finalizers(seen, replica, rest.map(String::as_str).collect())
}

/// Whether removing any of it removes more than itself.
pub(crate) fn prunes(spec: &PolicySpec) -> bool {
    spec.policy_templates.iter().any(|template| {
        let behavior = template.object_definition.pointer("/spec/pruneObjectBehavior");
        behavior.and_then(Value::as_str).is_some_and(|behavior| behavior != "None")
    })
}

/// Takes hold of the replica before anything is made that its removal has to take with it.
fn held(seen: &Observed, replica: &Policy) -> Option<Action> {
    let held = replica.finalizers.iter().any(|one| one == HOLD);
    let leaving = replica.finalizers.iter().any(|one| one == LEAVE_FINALIZER);
    // What left the policy and is still there may be pruning. What stays in it prunes until it was
    // told not to: without a hold, the policy could vanish before that.
    let left = left(seen, &replica.spec).next().is_some();
    let still = seen.local.policy().is_some_and(|local| prunes(&local.spec))
        || seen.marked.iter().flatten().any(|one| one.prunes);
    let wanted = prunes(&replica.spec) || held && (leaving || left || still);
    let others = replica.finalizers.iter().map(String::as_str).filter(|one| *one != HOLD);
    match (held, wanted) {
        (false, true) => Some(finalizers(seen, replica, others.chain([HOLD]).collect())),
        (true, false) => Some(finalizers(seen, replica, others.collect())),
        _ => None,
    }
}

fn finalizers(seen: &Observed, replica: &Policy, finalizers: Vec<&str>) -> Action {
    let patch = json!({ "metadata": {
        "uid": replica.uid,
        "resourceVersion": replica.resource_version,
        "finalizers": finalizers,
    }});
    let side = hub_side(seen);
    Action { side, target: target(seen, side), write: Write::Merge(patch) }
}

/// A cluster that is its own hub has one connection for both.
pub(crate) fn hub_side(seen: &Observed) -> Side {
    if seen.place.own_hub { Side::Cluster } else { Side::Hub }
}

pub(crate) fn target(seen: &Observed, side: Side) -> Target {
    let namespace = match side {
        Side::Hub => &seen.place.hub_namespace,
        Side::Cluster => &seen.place.cluster_namespace,
    };
    let id = Id {
        group: GROUP.to_owned(),
        resource: "policies".to_owned(),
        namespace: namespace.clone(),
        name: seen.name.clone(),
    };
    Target { version: "v1".to_owned(), id }
}

fn remove(target: Target, uid: &str) -> Action {
    let write = Write::Delete {
        uid: uid.to_owned(),
        resource_version: None,
        propagation: Propagation::Background,
    };
    Action { side: Side::Cluster, target, write }
}

fn metadata(policy: &Policy, field: &str) -> Map<String, Value> {
    let found = policy.object.get("metadata").and_then(|metadata| metadata.get(field));
    found.and_then(Value::as_object).cloned().unwrap_or_default()
}

fn annotations(replica: &Policy) -> Map<String, Value> {
    let mut all = metadata(replica, "annotations");
    all.remove(TRIGGER_UPDATE);
    all
}

/// The namespace of the cluster, on the cluster.
fn namespace(seen: &Observed) -> Action {
    let name = &seen.place.cluster_namespace;
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": name, "labels": { MADE_FOR: MADE_FOR_POLICIES } },
    });
    let id = Id { resource: "namespaces".to_owned(), name: name.clone(), ..Id::default() };
    let target = Target { version: "v1".to_owned(), id };
    Action { side: Side::Cluster, target, write: Write::Create(object) }
}

fn create(seen: &Observed, replica: &Policy) -> Action {
    let namespace = &seen.place.cluster_namespace;
    let mut labels = metadata(replica, "labels");
    if *namespace != seen.place.hub_namespace {
        labels.insert(CLUSTER_NAMESPACE.to_owned(), Value::String(namespace.clone()));
    }
    let object = json!({
        "apiVersion": "policy.open-cluster-management.io/v1",
        "kind": "Policy",
        "metadata": {
            "name": seen.name,
            "namespace": namespace,
            "labels": labels,
            "annotations": annotations(replica),
        },
        "spec": replica.object.get("spec").cloned().unwrap_or_default(),
    });
    let target = target(seen, Side::Cluster);
    Action { side: Side::Cluster, target, write: Write::Create(object) }
}

/// The copy with what the hub says now, if it says something else.
fn copied(seen: &Observed, replica: &Policy, local: &Policy) -> Option<Action> {
    if seen.place.own_hub {
        return None;
    }
    let annotations = annotations(replica);
    if local.spec == replica.spec && metadata(local, "annotations") == annotations {
        return None;
    }
    let mut object = local.object.clone();
    let fields = object.as_object_mut()?;
    fields.insert("spec".to_owned(), replica.object.get("spec").cloned().unwrap_or_default());
    let own = fields.get_mut("metadata")?.as_object_mut()?;
    own.insert("annotations".to_owned(), Value::Object(annotations));
    let target = target(seen, Side::Cluster);
    Some(Action { side: Side::Cluster, target, write: Write::Replace(object) })
}

/// Makes the templates what they should be, and takes away those that are none any more.
fn templates(seen: &Observed, local: &Policy) -> Plan {
    let mut actions = Vec::new();
    for Judged { name, need, say: _, speak_again } in template::judged(seen, local) {
        let (served, write) = match (need, speak_again) {
            (Need::Create(served, object), _) => (served, Write::Create(object)),
            (Need::Replace(served, object), _) => (served, Write::Replace(object)),
            (Need::Nothing, Some((served, live))) => {
                let field =
                    |name: &str| live.get("metadata").and_then(|own| own.get(name)).cloned();
                let patch = json!({
                    "metadata": { "uid": field("uid"), "resourceVersion": field("resourceVersion") },
                    "status": { "compliant": null },
                });
                (served, Write::MergeStatus(patch))
            }
            (Need::Nothing, None) => continue,
        };
        let target = served.target(&seen.place.cluster_namespace, &name);
        actions.push(Action { side: Side::Cluster, target, write });
    }
    if template::are_certain(&local.spec) {
        let going = left(seen, &local.spec).flatten().filter(|one| !one.deleting);
        actions.extend(going.map(|Marked { target, uid, .. }| remove(target.clone(), uid)));
    }
    if actions.is_empty() { vec![] } else { vec![actions] }
}

/// What is marked as a template of the policy and is not in it. `None` stands for what nobody saw.
pub(crate) fn left<'a>(
    seen: &'a Observed,
    spec: &PolicySpec,
) -> impl Iterator<Item = Option<&'a Marked>> + use<'a> {
    let listed = spec.policy_templates.iter().filter_map(template::id);
    let listed: BTreeSet<(String, String)> = listed.map(|id| (id.kind.kind, id.name)).collect();
    let unseen = seen.marked.is_err().then_some(None);
    let left = seen.marked.iter().flatten().filter(move |marked| {
        !listed.contains(&(marked.kind.clone(), marked.target.id.name.clone()))
    });
    unseen.into_iter().chain(left.map(Some))
}

fn must_wait(seen: &Observed, id: &Id) -> bool {
    seen.troubles.get(id).is_some_and(|trouble| trouble.retry_at > seen.now)
}

/// Which objects the templates of a policy are, so that they can be looked at.
pub fn template_ids(spec: &PolicySpec) -> BTreeSet<TemplateId> {
    spec.policy_templates.iter().filter_map(template::id).collect()
}

/// What the templates of a policy depend on.
pub fn dependencies(spec: &PolicySpec) -> BTreeSet<Depends> {
    let all = spec.policy_templates.iter();
    let all = all.flat_map(|template| template::dependencies(spec, template));
    all.map(|dependency| Depends(dependency.clone())).collect()
}

/// A dependency, in some order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Depends(pub PolicyDependency);

impl Ord for Depends {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        fn all(one: &PolicyDependency) -> [&String; 5] {
            let PolicyDependency { api_version, kind, name, namespace, compliance } = one;
            [api_version, kind, namespace, name, compliance]
        }
        all(&self.0).cmp(&all(&other.0))
    }
}

impl PartialOrd for Depends {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
