//! The IO half of deleting questions that nobody waits for any more.

use std::time::Duration;

use cleat_core::preview::{Expiring, expire};
use cleat_core::write::Outcome;
use cleat_runtime::execute::Executor;
use cleat_runtime::queue::Wake;
use kube::api::DynamicObject;

use crate::followed::{Followed, Kept, Key};

/// When to try again to delete what was not let go.
const RETRY: Duration = Duration::from_secs(60);

pub(crate) struct Question(Expiring);

impl Question {
    pub(crate) fn key(&self) -> Key {
        (self.0.namespace.clone(), self.0.name.clone())
    }
}

impl Kept for Question {
    fn keep(object: DynamicObject) -> Option<Self> {
        Expiring::read(&object.metadata, &object.data).map(Self)
    }

    fn group(&self) -> Option<String> {
        None
    }
}

pub(crate) async fn pass(executor: Executor, questions: Followed<Question>, key: Key) -> Wake {
    let Some(question) = questions.get(&key) else { return Wake::OnChange };
    let now = jiff::Timestamp::now();
    let plan = expire(&question.0, now);
    if plan.is_empty() {
        let left = Duration::try_from(question.0.due.duration_since(now));
        return Wake::After(left.unwrap_or_default());
    }
    match executor.execute(&plan).await.into_iter().flatten().next() {
        Some(Outcome::Done(_) | Outcome::NotFound | Outcome::Conflict(_)) | None => Wake::OnChange,
        Some(other) => {
            let (namespace, name) = key;
            tracing::warn!(namespace, name, outcome = ?other, "an old question cannot be deleted");
            Wake::After(RETRY)
        }
    }
}
