//! Reads of single objects, for what a watch cannot tell.

use std::sync::Arc;
use std::time::Duration;

use cleat_core::id::{Id, Target};
use http::{Request, header};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::kind::KindName;
use super::{Chore, READERS, Shared, State};
use crate::path;
use crate::queue::{self, Wake};
use crate::status::{Missing, Status};
use crate::watch::Form;
use crate::wire::{self, Answer};

/// How long an object rests that could not be read. Sooner if its kind's watch comes back.
const RETRY: Duration = Duration::from_secs(5);

pub(super) fn start(shared: &Arc<Shared>) {
    let chores = shared.chores.clone();
    let mut stop = shared.tasks.stop();
    let worker = Arc::clone(shared);
    shared.tasks.spawn("mirror reads", async move {
        let all = queue::run(chores.clone(), READERS, move |chore| {
            let shared = Arc::clone(&worker);
            async move {
                match chore {
                    Chore::Read(id) => read(&shared, &id).await,
                    Chore::Tell(name) => {
                        tell(&shared, &name);
                        Wake::OnChange
                    }
                    Chore::Forget(name) => {
                        shared.lock().handover.forget_kind(&name);
                        Wake::OnChange
                    }
                }
            }
        });
        // What is under way may be cut off: it only reads.
        stop.or(all).await;
        chores.close();
    });
}

fn tell(shared: &Shared, name: &KindName) {
    let ids = {
        let state = shared.lock();
        let kind = state.kinds.get(name).filter(|kind| kind.is_blind(Instant::now()));
        kind.map(|kind| kind.ids()).unwrap_or_default()
    };
    shared.tell(&ids);
}

async fn read(shared: &Shared, id: &Arc<Id>) -> Wake {
    let name = KindName::of(id);
    let (version, told) = {
        let mut state = shared.lock();
        let Some(kind) = state.kinds.get_mut(&name) else { return Wake::OnChange };
        let Some((_, told)) = kind.unsettled(id) else { return Wake::OnChange };
        (kind.version().to_owned(), told)
    };
    let target = Target { version, id: (**id).clone() };
    let answer = match get(shared, &target).await {
        Ok(answer) => answer,
        Err(error) => {
            tracing::debug!(%id, error, "could not be read");
            return Wake::After(RETRY);
        }
    };
    let outcome = {
        let mut state = shared.lock();
        let State { kinds, interests: _, owners, handover: _ } = &mut *state;
        let Some(kind) = kinds.get_mut(&name) else { return Wake::OnChange };
        let found = if answer.is_success() {
            let text: Option<&RawValue> = serde_json::from_slice(&answer.body).ok();
            match text.and_then(|object| owners.meta_of_text(object)) {
                Some(meta) => Some(meta),
                None => return Wake::After(RETRY),
            }
        } else if answer.code == 403 {
            // Whoever may list and watch need not be allowed to read one: that has to be told.
            let told = kind.unreadable(id, Status::of(&answer).message);
            drop(state);
            shared.tell(told.as_slice());
            return Wake::After(RETRY);
        } else {
            match Status::of(&answer).missing(&target) {
                Missing::Object if answer.code == 404 => None,
                Missing::Kind if answer.code == 404 => {
                    kind.check();
                    return Wake::After(RETRY);
                }
                Missing::Object | Missing::Kind | Missing::Other => return Wake::After(RETRY),
            }
        };
        kind.read(id, found, told)
    };
    match outcome {
        Ok(changed) => {
            shared.forget(changed.as_slice());
            shared.tell(changed.as_slice());
            Wake::OnChange
        }
        Err(()) => Wake::After(Duration::ZERO),
    }
}

async fn get(shared: &Shared, target: &Target) -> Result<Answer, String> {
    let path = path::object(target).map_err(|error| error.to_string())?;
    let request = Request::get(path)
        .header(header::ACCEPT, Form::Metadata.of_object())
        .body(Vec::new())
        .map_err(|error| error.to_string())?;
    let exchange = wire::exchange(&shared.client, request, wire::PATIENCE);
    exchange.await.map_err(|silence| silence.message())
}
