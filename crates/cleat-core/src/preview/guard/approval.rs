//! Whether what somebody approved is what is about to be deleted.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::removalpreview::{APPROVED_PLAN, RemovalPreview, UNANSWERED};
use serde_json::Value;

use super::Matter;

/// The plan that somebody approved, and of which generation of the object, if they said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Approved<'a> {
    pub plan: &'a str,
    pub generation: Option<i64>,
}

impl Approved<'_> {
    /// As it is written on the object.
    pub fn written(&self) -> String {
        match self.generation {
            Some(generation) => format!("{}@{generation}", self.plan),
            None => self.plan.to_owned(),
        }
    }
}

/// What somebody approved, if it can be a plan.
pub fn approved(object: &Value) -> Option<Approved<'_>> {
    let said = object.pointer("/metadata/annotations")?.get(APPROVED_PLAN)?.as_str()?;
    let (plan, generation) = match said.split_once('@') {
        Some((plan, generation)) => (plan, Some(generation.parse().ok()?)),
        None => (said, None),
    };
    let plausible = !plan.is_empty() && plan.chars().all(|one| one.is_ascii_alphanumeric());
    plausible.then_some(Approved { plan, generation })
}

/// What goes with an object on clusters, by cluster and name there: the works of a set, or the copies of
/// policies that leave.
pub type Parts = BTreeSet<(String, String)>;

/// What an approved plan is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Good,
    /// It is about something else, about less, or not on the hub any more.
    Foreign,
    /// It was made while a cluster was silent, and that is not so any more.
    AnsweredSince,
    /// The object asks for something else by now.
    Changed,
}

/// Whether the questions that bear the approved plan were about all of the end of this object, which is
/// that of its `parts`, if it has any.
///
/// Of a cluster that was silent whoever agreed knew that much, so a plan of it is one for as long as it is
/// silent; one that nobody asked was not agreed to.
pub fn standing(
    matter: Matter,
    object: &Value,
    parts: &Parts,
    approved: &Approved<'_>,
    questions: &[RemovalPreview],
) -> Standing {
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
    // What a cluster holds is not in its spec; that it is to leave nothing the question says.
    let compared = matter != Matter::Cluster && approved.generation.is_some();
    if compared && generation.is_some() && generation != approved.generation {
        return Standing::Changed;
    }
    let about = || questions.iter().filter(|one| is_about(matter, object, parts, one));
    let part = |question: &RemovalPreview| part(matter, question);
    let seen = |question: &&RemovalPreview| was_seen(question);
    let (asked, seen) =
        (about().map(part).collect::<Parts>(), about().filter(seen).map(part).collect::<Parts>());
    let all = |some: &Parts| !some.is_empty() && parts.is_subset(some);
    match (all(&seen), all(&asked) && about().any(has_answer)) {
        (true, _) => Standing::Good,
        (false, true) => Standing::AnsweredSince,
        (false, false) => Standing::Foreign,
    }
}

fn is_about(matter: Matter, object: &Value, parts: &Parts, question: &RemovalPreview) -> bool {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let asked = &question.spec;
    let cluster = cluster_of(question);
    asked.proposed.is_none()
        && asked.proposed_policy.is_none()
        && match matter {
            Matter::Work => cluster == namespace && asked.work == name,
            Matter::Cluster => cluster == name && asked.leave == Some(RemoveStrategy::Required),
            Matter::ReplicaSet | Matter::Policy | Matter::Binding | Matter::Placement => {
                parts.contains(&part(matter, question))
            }
            // The namespace of a cluster goes with the cluster, by whatever plan.
            Matter::Namespace => false,
        }
}

/// What a question asks about.
fn part(matter: Matter, question: &RemovalPreview) -> (String, String) {
    let name = match matter {
        Matter::Work | Matter::ReplicaSet => &question.spec.work,
        _ => &question.spec.policy,
    };
    (cluster_of(question).to_owned(), name.clone())
}

fn cluster_of(question: &RemovalPreview) -> &str {
    question.metadata.namespace.as_deref().unwrap_or_default()
}

/// Whether things are as whoever agreed to the plan saw them: it was answered, or it was not and is not.
/// An answer that came afterwards they did not see.
fn was_seen(question: &RemovalPreview) -> bool {
    let annotations = question.metadata.annotations.as_ref();
    let silent = annotations.is_some_and(|all| all.contains_key(UNANSWERED));
    has_answer(question) != silent
}

fn has_answer(question: &RemovalPreview) -> bool {
    question.status.as_ref().is_some_and(|status| status.answered_at.is_some())
}

#[cfg(test)]
mod tests {
    use core::slice::from_ref;

    use serde_json::json;

    use super::*;

    const PLAN: Approved<'static> = Approved { plan: "0123", generation: None };

    fn question(cluster: &str, spec: Value, status: Value) -> RemovalPreview {
        serde_json::from_value(json!({
            "apiVersion": "cleat.dev/v1alpha1", "kind": "RemovalPreview",
            "metadata": { "namespace": cluster, "name": "q" }, "spec": spec, "status": status,
        }))
        .unwrap()
    }

    fn answered() -> Value {
        json!({ "answeredAt": "2026-01-01T00:00:00Z" })
    }

    /// The plan was made before this was answered, if it ever was.
    fn silent(mut question: RemovalPreview) -> RemovalPreview {
        question.metadata.annotations = Some([(UNANSWERED.to_owned(), "0 x".to_owned())].into());
        question
    }

    fn covers(matter: Matter, object: &Value, parts: &Parts, questions: &[RemovalPreview]) -> bool {
        standing(matter, object, parts, &PLAN, questions) == Standing::Good
    }

    #[test]
    fn a_plan_is_good_for_what_it_is_about_and_was_answered() {
        let object = json!({ "metadata": { "namespace": "c1", "name": "w" } });
        let covered = |namespace: &str, spec: Value, status: Value| {
            covers(Matter::Work, &object, &Parts::new(), &[question(namespace, spec, status)])
        };
        assert!(covered("c1", json!({ "work": "w" }), answered()));
        assert!(!covered("c1", json!({ "work": "w" }), json!({})));
        assert!(!covered("c2", json!({ "work": "w" }), answered()));
        assert!(!covered("c1", json!({ "work": "v" }), answered()));
        assert!(!covered("c1", json!({ "policy": "w" }), answered()));
        // Agreeing to a change is not agreeing to the end.
        let proposed = json!({ "work": "w", "proposed": { "name": "w", "spec": {} } });
        assert!(!covered("c1", proposed, answered()));
        let works = Parts::from([("c1".to_owned(), "shop-1".to_owned())]);
        let of_set = |namespace: &str, work: &str| {
            let question = question(namespace, json!({ "work": work }), answered());
            covers(Matter::ReplicaSet, &json!({}), &works, &[question])
        };
        assert!(of_set("c1", "shop-1"));
        assert!(!of_set("c1", "w") && !of_set("c2", "shop-1"), "it is about another's works");
        let of_cluster = |strategy: &str| {
            let question = question("c1", json!({ "leave": strategy }), answered());
            let cluster = json!({ "metadata": { "name": "c1" } });
            covers(Matter::Cluster, &cluster, &Parts::new(), &[question])
        };
        assert!(!of_cluster("Needless") && of_cluster("Required"));
    }

    /// Whoever agreed knew that it was silent, and was told that their plan was not one of it.
    #[test]
    fn no_plan_of_a_silent_cluster_could_ever_be_approved() {
        let object = json!({ "metadata": { "namespace": "c1", "name": "w" } });
        let worth = |questions: &[RemovalPreview]| {
            standing(Matter::Work, &object, &Parts::new(), &PLAN, questions)
        };
        let asked = |status: Value| question("c1", json!({ "work": "w" }), status);
        assert_eq!(worth(&[silent(asked(json!({})))]), Standing::Good);
        // An answer that came when the plan was made already was seen by nobody.
        let late = silent(asked(answered()));
        assert_eq!(worth(from_ref(&late)), Standing::AnsweredSince);
        // It was asked again since, and was silent again.
        assert_eq!(worth(&[late, silent(asked(json!({})))]), Standing::Good);
        // That somebody put a question is no plan yet.
        assert_eq!(worth(&[asked(json!({}))]), Standing::Foreign);
        assert_eq!(worth(&[]), Standing::Foreign);
    }

    /// It was good for an hour, whatever had been added to the work.
    #[test]
    fn an_approval_was_good_for_a_work_that_had_grown() {
        let object = |generation: i64, approved: &str| {
            json!({ "metadata": {
                "namespace": "c1", "name": "w", "generation": generation,
                "annotations": { APPROVED_PLAN: approved },
            } })
        };
        let asked = [question("c1", json!({ "work": "w" }), answered())];
        for (generation, said, expected) in [
            (3, "0123@3", Standing::Good),
            (4, "0123@3", Standing::Changed),
            (4, "0123", Standing::Good),
        ] {
            let object = object(generation, said);
            let plan = approved(&object).unwrap();
            assert_eq!(plan.written(), said);
            let worth = standing(Matter::Work, &object, &Parts::new(), &plan, &asked);
            assert_eq!(worth, expected, "{generation} {said}");
        }
        for nonsense in ["", "@3", "0123@", "0123@x", "a b"] {
            assert_eq!(approved(&object(1, nonsense)), None, "{nonsense}");
        }
    }

    /// One of two hundred works was looked at, and the set went with all of them.
    #[test]
    fn a_set_that_has_grown_since_is_not_what_was_agreed_to() {
        let asked =
            |cluster: &str, status: Value| question(cluster, json!({ "work": "shop" }), status);
        let work = |cluster: &str| (cluster.to_owned(), "shop".to_owned());
        let (one, two) = (asked("c1", answered()), asked("c2", json!({})));
        let covered = |works: &Parts, questions: &[RemovalPreview]| {
            covers(Matter::ReplicaSet, &json!({}), works, questions)
        };
        let grown = Parts::from([work("c1"), work("c2")]);
        assert!(covered(&Parts::from([work("c1")]), from_ref(&one)));
        assert!(!covered(&grown, from_ref(&one)));
        // That a cluster was silent was part of the plan, if it was.
        assert!(covered(&grown, &[one.clone(), silent(two.clone())]));
        assert!(!covered(&grown, &[one, two]));
    }

    /// One answered cluster was enough for a policy, however many it had reached since.
    #[test]
    fn a_policy_that_has_grown_since_is_not_what_was_agreed_to() {
        let asked = |cluster: &str, policy: &str| {
            question(cluster, json!({ "policy": policy }), answered())
        };
        let object = json!({ "metadata": { "namespace": "n", "name": "p" } });
        let copy = |cluster: &str| (cluster.to_owned(), "n.p".to_owned());
        let (then, now) = (Parts::from([copy("c1")]), Parts::from([copy("c1"), copy("c2")]));
        let asked = [asked("c1", "n.p"), asked("c3", "n.other")];
        for matter in [Matter::Policy, Matter::Binding, Matter::Placement] {
            assert!(covers(matter, &object, &then, &asked), "{matter:?}");
            assert!(!covers(matter, &object, &now, &asked), "{matter:?}");
            // A plan of something else is none of this.
            let other = Parts::from([("c3".to_owned(), "n.p".to_owned())]);
            assert!(!covers(matter, &object, &other, &asked), "{matter:?}");
        }
    }
}
