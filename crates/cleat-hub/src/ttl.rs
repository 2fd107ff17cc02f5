//! The IO half of deleting works some time after they are done.

use std::time::Duration;

use cleat_core::ttl::plan;
use cleat_core::write::Outcome;
use cleat_runtime::execute::Executor;
use cleat_runtime::queue::Wake;

use crate::followed::{Followed, Key};
use crate::view::Work;

/// When to try again to delete what was not let go.
const RETRY: Duration = Duration::from_secs(10);

pub(crate) async fn pass(executor: Executor, works: Followed<Work>, key: Key) -> Wake {
    let Some(work) = works.get(&key) else { return Wake::OnChange };
    let Some(work) = work.finished() else { return Wake::OnChange };
    let now = jiff::Timestamp::now();
    let plan = plan(work, now);
    if plan.is_empty() {
        let left = Duration::try_from(work.due.duration_since(now));
        return Wake::After(left.unwrap_or_default());
    }
    let [namespace, name] = [&key.0, &key.1];
    match executor.execute(&plan).await.into_iter().flatten().next() {
        Some(Outcome::Done(_)) => {
            tracing::info!(namespace, name, "a finished work was deleted");
            Wake::OnChange
        }
        // It is gone, or has changed, of which we shall be told.
        Some(Outcome::NotFound | Outcome::Conflict(_)) | None => Wake::OnChange,
        Some(other) => {
            tracing::warn!(namespace, name, outcome = ?other, "a finished work cannot be deleted");
            Wake::After(RETRY)
        }
    }
}
