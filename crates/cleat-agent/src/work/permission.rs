//! Whether the executor of a work may do what its manifests ask. The agent writes with its own
//! rights; this is asked before, about objects that are about to be written, and once about each when
//! the work changed: then the executor may be another.

use cleat_api::manifestwork::{
    ExecutorSubjectType, ManifestWorkSpec, ManifestWorkSubjectServiceAccount,
};
use cleat_core::id::{Id, Target};
use cleat_core::work::observed::{
    Content, Ledger, Observed, Permission, Place, Present, Seen, Strategy, Wanted, Work,
};
use cleat_core::work::ownership;
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runtime::execute::{Asking, Impersonated};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::observe::is_applied;
use super::{Context, Key};

/// How long an answer is believed. Rights change without telling us.
const BELIEVED: SignedDuration = SignedDuration::from_secs(10);

impl Context {
    /// `key`: whose answers are believed for a while; without, everything is asked anew and nothing
    /// remembered.
    pub(super) async fn permit(
        &self,
        key: Option<&Key>,
        seen: &mut Observed,
        spec: &ManifestWorkSpec,
    ) {
        let Some(executor) = &spec.executor else { return };
        let account = match (executor.subject.type_, &executor.subject.service_account) {
            (ExecutorSubjectType::ServiceAccount, Some(account)) => account,
            _ => {
                let why = "the executor names no service account".to_owned();
                return seen
                    .wanted
                    .iter_mut()
                    .for_each(|w| w.permission = Permission::Denied(why.clone()));
            }
        };
        let mut answers = Vec::new();
        for (index, wanted) in seen.wanted.iter().enumerate() {
            let Place::At(target) = &wanted.place else { continue };
            let standing = key.filter(|key| self.is_to_be_asked_of(key, seen, wanted, &target.id));
            if is_about_to_be_written(seen, wanted, &target.id) || standing.is_some() {
                let owned = owned(seen, &target.id);
                answers
                    .push((index, self.may(key, account, target, wanted, owned, seen.now).await));
            }
        }
        for (index, answer) in answers {
            if let Some(wanted) = seen.wanted.get_mut(index) {
                wanted.permission = answer;
            }
        }
    }

    /// Whether an object that is as wanted has to be asked about: by the work as it is now that was not
    /// done yet, or the answer was no. A work that says it is applied was asked about before it said so.
    fn is_to_be_asked_of(&self, key: &Key, seen: &Observed, wanted: &Wanted, id: &Id) -> bool {
        let Some(work) = seen.hub.work() else { return false };
        let standing = matches!(seen.live.get(id), Some(Seen::Present(_)));
        if !standing || !is_written_at_all(seen, wanted) || work.deleting {
            return false;
        }
        let answer = self.memory.with(key, |life| {
            let (_, answer) = *life.objects.get(id)?.permission.clone()?;
            Some(answer)
        });
        match answer {
            None => !is_applied(work),
            Some(answer) => answer != Permission::Granted,
        }
    }

    async fn may(
        &self,
        key: Option<&Key>,
        account: &ManifestWorkSubjectServiceAccount,
        target: &Target,
        wanted: &Wanted,
        owned: bool,
        now: Timestamp,
    ) -> Permission {
        let Some(key) = key else { return self.ask(account, target, wanted, owned).await };
        let believed = self.memory.with(key, |life| {
            let (until, answer) = *life.objects.get(&target.id)?.permission.clone()?;
            (until > now).then_some(answer)
        });
        if let Some(answer) = believed {
            return answer;
        }
        let answer = self.ask(account, target, wanted, owned).await;
        if !matches!(answer, Permission::Unknown(_)) {
            let until = now.checked_add(BELIEVED).unwrap_or(now);
            self.memory.with(key, |life| {
                let object = life.objects.entry(target.id.clone()).or_default();
                object.permission = Some(Box::new((until, answer.clone())));
            });
        }
        answer
    }

    async fn ask(
        &self,
        account: &ManifestWorkSubjectServiceAccount,
        target: &Target,
        wanted: &Wanted,
        owned: bool,
    ) -> Permission {
        let mut denied = Vec::new();
        let verbs = ["create", "update", "patch", "get", "delete"];
        for verb in verbs.into_iter().take(if owned { 5 } else { 4 }) {
            match self.review(account, &target.id, verb).await {
                Ok(true) => {}
                Ok(false) => denied.push(verb),
                Err(message) => return Permission::Unknown(message),
            }
        }
        if !denied.is_empty() {
            return Permission::Denied(format!(
                "{} is not allowed to {} {}",
                account.user_name(),
                denied.join(", "),
                target.id
            ));
        }
        if target.id.group != "rbac.authorization.k8s.io" {
            return Permission::Granted;
        }
        self.try_escalation(account, target, wanted).await
    }

    async fn review(
        &self,
        account: &ManifestWorkSubjectServiceAccount,
        id: &Id,
        verb: &str,
    ) -> Result<bool, String> {
        let Impersonated { user, groups } =
            Impersonated::service_account(&account.namespace, &account.name);
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": { "user": user, "groups": groups, "resourceAttributes": {
                "group": id.group,
                "resource": id.resource,
                "namespace": id.namespace,
                "name": id.name,
                "verb": verb,
            }},
        });
        let id = Id {
            group: "authorization.k8s.io".to_owned(),
            resource: "subjectaccessreviews".to_owned(),
            ..Id::default()
        };
        let target = Target { version: "v1".to_owned(), id };
        let action = Action { side: Side::Cluster, target, write: Write::Create(review) };
        match self.executor.perform(&action, &Asking::default()).await {
            Outcome::Done(answer) => {
                Ok(answer.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or(false))
            }
            Outcome::Refused(refusal) => Err(refusal.message),
            Outcome::Lost(message) | Outcome::Conflict(message) => Err(message),
            other => Err(format!("the access review came to nothing: {other:?}")),
        }
    }

    /// Only trying shows whether somebody would give rights they do not have.
    async fn try_escalation(
        &self,
        account: &ManifestWorkSubjectServiceAccount,
        target: &Target,
        wanted: &Wanted,
    ) -> Permission {
        let object = cleat_core::work::merge::fresh(&wanted.manifest);
        let action =
            Action { side: Side::Cluster, target: target.clone(), write: Write::Create(object) };
        let impersonated = Some(Impersonated::service_account(&account.namespace, &account.name));
        match self.executor.perform(&action, &Asking { dry_run: true, impersonated }).await {
            Outcome::Done(_) | Outcome::AlreadyExists => Permission::Granted,
            Outcome::Refused(refusal) if refusal.code == 403 => Permission::Denied(refusal.message),
            Outcome::Refused(refusal) => Permission::Unknown(refusal.message),
            Outcome::Lost(message) | Outcome::Conflict(message) => Permission::Unknown(message),
            other => Permission::Unknown(format!("the trial came to nothing: {other:?}")),
        }
    }
}

/// Whether the manifest may ever lead to a write.
fn is_written_at_all(seen: &Observed, wanted: &Wanted) -> bool {
    let complete = wanted.complete || seen.hub.work().is_some_and(Work::is_complete);
    wanted.strategy != Strategy::ReadOnly && !complete
}

fn is_about_to_be_written(seen: &Observed, wanted: &Wanted, id: &Id) -> bool {
    match seen.live.get(id) {
        _ if !is_written_at_all(seen, wanted) => false,
        Some(Seen::Absent) => true,
        Some(Seen::Present(Present { content: Content::Read(_), .. })) => true,
        Some(Seen::Present(Present { content: Content::Unread, .. }))
            if wanted.strategy != Strategy::CreateOnly =>
        {
            false
        }
        // Our mark has to come onto it, and it will go with the work.
        Some(Seen::Present(present)) => match &seen.ledger {
            Ledger::Present(book) => {
                owned(seen, id) && !present.owners.iter().any(|owner| owner.uid == book.uid)
            }
            _ => false,
        },
        Some(Seen::Unknown(_) | Seen::NotYet) | None => false,
    }
}

/// Whether the object would go with the work, for which the right to delete is needed.
fn owned(seen: &Observed, id: &Id) -> bool {
    seen.hub.work().is_none_or(|work| ownership::would_own(work, id))
}
