//! The IO half of saying for which silent cluster a leaving work waits.

use std::time::Duration;

use cleat_core::stranded::plan;
use cleat_core::write::Outcome;
use cleat_runtime::execute::Executor;
use cleat_runtime::queue::Wake;

use crate::followed::{Followed, Key};
use crate::view::{Cluster, Work};

/// When to try again to say what could not be said.
const RETRY: Duration = Duration::from_secs(10);

pub(crate) async fn pass(
    executor: Executor,
    works: Followed<Work>,
    clusters: Followed<Cluster>,
    key: Key,
) -> Wake {
    let (Some(work), Some(cluster)) =
        (works.get(&key), clusters.get(&(String::new(), key.0.clone())))
    else {
        return Wake::OnChange;
    };
    let (Some(work), Some(silent)) = (work.leaving(), &cluster.silent) else {
        return Wake::OnChange;
    };
    let plan = plan(work, silent, jiff::Timestamp::now());
    if plan.is_empty() {
        return Wake::OnChange;
    }
    let [namespace, name] = [&key.0, &key.1];
    match executor.execute(&plan).await.into_iter().flatten().next() {
        // It is gone, or has changed, of which we shall be told.
        Some(Outcome::Done(_) | Outcome::NotFound | Outcome::Conflict(_)) | None => Wake::OnChange,
        Some(other) => {
            tracing::warn!(namespace, name, outcome = ?other, "a leaving work cannot be told of");
            Wake::After(RETRY)
        }
    }
}
