//! Questions of other stories, how a work looks. Its next pass answers them, so that nobody looks at
//! a work at the same time as its own story does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cleat_api::removalpreview::ProposedWork;
use cleat_core::work::observed::Observed;
use tokio::sync::oneshot;

use super::{Context, Key};

/// How long somebody who asks waits for the first look at works and ledgers. Less than people wait
/// for an answer, so that they are told why there is none.
const FIRST_LOOK: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Questions(Mutex<BTreeMap<Key, Vec<oneshot::Sender<Observed>>>>);

impl Questions {
    fn ask(&self, key: Key) -> oneshot::Receiver<Observed> {
        let (answer, answered) = oneshot::channel();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(key).or_default().push(answer);
        answered
    }

    pub(super) fn answer(&self, key: &Key, seen: &Observed) {
        let asked = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        for answer in asked.into_iter().flatten() {
            // Whoever asked may have gone.
            let _ = answer.send(seen.clone());
        }
    }
}

/// The works of this cluster, for other stories to look at.
#[derive(Clone)]
pub struct Works {
    pub(super) context: Arc<Context>,
}

impl Works {
    /// All of our hub that are there, or of which something may be here. `None`: not all of them were
    /// read, although that was waited for.
    pub async fn names(&self) -> Option<BTreeSet<String>> {
        let Context { works, ledgers, .. } = &*self.context;
        let read = async { tokio::join!(works.until_synced(), ledgers.until_synced()) };
        tokio::time::timeout(FIRST_LOOK, read).await.ok()?;
        let works = works.all();
        let mut names: BTreeSet<String> = works.iter().map(|work| work.name.to_string()).collect();
        for ledger in self.context.ledgers.all() {
            if let Key::Work(name) = super::records::ledger_key(&self.context.agent, &ledger.name) {
                names.insert(name);
            }
        }
        Some(names)
    }

    /// What the next pass over a work sees, once it has done what it had to do. `None`: the story has
    /// ended.
    pub async fn seen(&self, name: &str) -> Option<Observed> {
        let key = Key::Work(name.to_owned());
        let answered = self.context.questions.ask(key.clone());
        self.context.queue.add(key);
        answered.await.ok()
    }

    /// What a pass over a work would see if the work said this, after what it has to do now. The error
    /// is for users. `None`: the story has ended.
    pub async fn imagined(&self, proposed: &ProposedWork) -> Option<Result<Observed, String>> {
        let seen = self.seen(&proposed.name).await?;
        Some(self.context.imagine(seen, proposed).await)
    }
}
