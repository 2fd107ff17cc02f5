//! The IO half of exchanging the keys with which values travel encrypted.

use std::time::Duration;

use cleat_api::policy::name::ENCRYPTION_KEY_SECRET;
use cleat_core::propagation::{EncryptionKey, rotate};
use cleat_core::write::Outcome;
use cleat_runtime::queue::{Queue, Wake};
use cleat_runtime::tasks::Tasks;
use kube::api::DynamicObject;

use super::Propagation;
use super::templates::keys::fresh_key;
use crate::followed::{Followed, Kept, Key};
use crate::kinds::{Kind, every};

const SECRET: Kind = ["", "v1", "Secret", "secrets"];

/// When to try again what did not work.
const RETRY: Duration = Duration::from_secs(30);

/// How long is slept at most: the key is then still good, or it is not.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) struct Held(EncryptionKey);

impl Kept for Held {
    fn keep(object: DynamicObject) -> Option<Self> {
        EncryptionKey::read(&object.metadata, &object.data).map(Self)
    }

    fn group(&self) -> Option<String> {
        None
    }
}

/// The keys of all clusters. Its clones are the same.
#[derive(Clone)]
pub(crate) struct Keys {
    cx: Propagation,
    pub(crate) queue: Queue<Key>,
    held: Followed<Held>,
}

impl Keys {
    pub(crate) fn follow(cx: &Propagation, tasks: &Tasks) -> Self {
        let keys = Self { cx: cx.clone(), queue: Queue::new(), held: Followed::new() };
        let queue = keys.queue.clone();
        let following = keys.held.clone().follow_named(
            every(&cx.hub_client, &None, SECRET),
            ENCRYPTION_KEY_SECRET,
            tasks.stop(),
            move |_: Option<&Held>, new: Option<&Held>| {
                new.iter().for_each(|new| queue.add(of(&new.0.cluster)));
            },
        );
        tasks.spawn("follow encryption keys", following);
        keys
    }
}

fn of(cluster: &str) -> Key {
    (cluster.to_owned(), ENCRYPTION_KEY_SECRET.to_owned())
}

pub(crate) async fn pass(keys: Keys, key: Key) -> Wake {
    let Some(held) = keys.held.get(&key) else { return Wake::OnChange };
    let now = jiff::Timestamp::now();
    let Some(left) = held.0.left(now) else { return Wake::OnChange };
    if left.is_positive() {
        return Wake::After(Duration::try_from(left).unwrap_or(LONGEST).min(LONGEST));
    }
    let cluster = &*key.0;
    let fresh = match fresh_key() {
        Ok(fresh) => fresh,
        Err(why) => {
            tracing::warn!(cluster, why, "a key is not exchanged");
            return Wake::After(RETRY);
        }
    };
    let plan = rotate(&held.0, &fresh, now);
    match keys.cx.executor.execute(&plan).await.into_iter().flatten().next() {
        Some(Outcome::Done(_)) => {
            tracing::info!(cluster, "the encryption key was exchanged");
            Wake::OnChange
        }
        // It is gone, or has changed, of which we shall be told.
        Some(Outcome::NotFound | Outcome::Conflict(_)) | None => Wake::OnChange,
        Some(outcome) => {
            tracing::warn!(cluster, ?outcome, "a key is not exchanged");
            Wake::After(RETRY)
        }
    }
}
