//! Proving that nothing is there, as of a moment after it was asked. See ADR 0007.
//!
//! Objects of which there are few are simply read: a list without a revision is as fresh as the
//! server's storage. Of very many only what changed since a known revision is looked at: a short
//! watch from there, until a bookmark says that everything up to the server's revision was told. A
//! server that does not say so in time is asked for all of them after all.

use std::cmp::Ordering;
use std::time::Duration;

use http::{Request, header};
use kube::Client;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use super::count::{UNWATCHABLE, name_and_finalizers};
use crate::path;
use crate::watch::{self, Event, Events, Fault, Source};
use crate::wire;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// There is none.
    None,
    /// There is at least this one.
    Some(String),
    /// The server does not serve the kind, which does not prove that there is none.
    NoSuchKind,
    Unknown(String),
}

const PAGE: usize = 2000;
/// So many objects are read rather than watched.
pub(super) const READ: u64 = 2000;
/// A server sends a bookmark two seconds before it ends a watch, if it has not sent one before.
const SHORT_WATCH: Duration = Duration::from_secs(3);
/// How long that may take with all that belongs to it. What is left of a review's time must do to list
/// all of them.
const TOLD_WITHIN: Duration = Duration::from_millis(3500);

/// A page of a list is some megabytes, and a review may ask as many questions as there are providers.
const LISTS: usize = 8;
/// A watch that tells of little costs little, but takes a second or two: were there few at once, the
/// last would come too late.
const WATCHES: usize = 100;

/// How many proofs are under way at the same time, of all kinds and for all reviews together. The
/// others wait, and give up when their patience ends.
pub struct Turns {
    lists: Semaphore,
    watches: Semaphore,
}

impl Default for Turns {
    fn default() -> Self {
        Self { lists: Semaphore::new(LISTS), watches: Semaphore::new(WATCHES) }
    }
}

async fn turn(turns: &Semaphore) -> Result<SemaphorePermit<'_>, Fault> {
    turns.acquire().await.map_err(|closed| Fault::Failed(closed.to_string()))
}

/// As of that revision there was none that counts.
pub(super) struct Since<'a> {
    pub(super) revision: String,
    /// There were more objects than are read, none of which counts.
    pub(super) many: bool,
    /// Called if the server has not got that far: what was counted is of another history.
    pub(super) put_back: &'a (dyn Fn() + Sync),
}

pub(super) async fn prove(
    client: &Client,
    source: &Source,
    finalizer: Option<&str>,
    since: Option<Since<'_>>,
    turns: &Turns,
    patience: Duration,
) -> Proof {
    let deadline = Instant::now() + patience;
    let proven = timeout_at(deadline, look(client, source, finalizer, since, turns)).await;
    let late = || {
        let seconds = patience.as_secs();
        Err(Fault::Failed(format!("not proven within {seconds} s; repeat this")))
    };
    match proven.unwrap_or_else(|_| late()) {
        Ok(proof) => proof,
        Err(Fault::NoSuchKind) => Proof::NoSuchKind,
        Err(Fault::Forbidden(why)) => Proof::Unknown(format!("not allowed to look: {why}")),
        Err(Fault::Expired) => Proof::Unknown("the server's history is too short".to_owned()),
        Err(Fault::Unwatchable) => Proof::Unknown(UNWATCHABLE.to_owned()),
        Err(Fault::Failed(why)) => Proof::Unknown(why),
    }
}

async fn look(
    client: &Client,
    source: &Source,
    finalizer: Option<&str>,
    since: Option<Since<'_>>,
    turns: &Turns,
) -> Result<Proof, Fault> {
    if let Some(since) = since.filter(|since| since.many) {
        let _turn = turn(&turns.watches).await?;
        let told = changes(client, source, finalizer, &since);
        // Whatever is wrong with that, looking at all of them tells or is wrong in the same way.
        if let Ok(Ok(Some(proof))) = tokio::time::timeout(TOLD_WITHIN, told).await {
            return Ok(proof);
        }
    }
    let _turn = turn(&turns.lists).await?;
    // To know that there is any, the first will do.
    let limit = if finalizer.is_none() { 1 } else { PAGE };
    let mut next = String::new();
    loop {
        let body = page(client, source, limit, &next).await?;
        let page: Page<'_> = serde_json::from_slice(&body).map_err(unreadable)?;
        for item in page.items.unwrap_or_default() {
            if let Some(found) = carrier(item, finalizer)? {
                return Ok(Proof::Some(found));
            }
        }
        match page.metadata.next.filter(|token| !token.is_empty()) {
            Some(token) => next = token,
            None => return Ok(Proof::None),
        }
    }
}

fn unreadable(error: serde_json::Error) -> Fault {
    Fault::Failed(format!("a list was not understood: {error}"))
}

/// The name of an object that counts. One that cannot be read might.
fn carrier(object: &RawValue, finalizer: Option<&str>) -> Result<Option<String>, Fault> {
    let Some((name, finalizers)) = name_and_finalizers(object) else {
        return Err(Fault::Failed("an object was not understood".to_owned()));
    };
    let counts = finalizer.is_none_or(|wanted| finalizers.iter().any(|one| **one == *wanted));
    Ok(counts.then_some(name))
}

async fn page(
    client: &Client,
    source: &Source,
    limit: usize,
    next: &str,
) -> Result<bytes::Bytes, Fault> {
    let mut uri = format!("{}?limit={limit}", source.path);
    if !next.is_empty() {
        uri.push_str(&format!("&continue={}", path::query_value(next)));
    }
    let request = Request::get(uri)
        .header(header::ACCEPT, source.form.of_list())
        .body(Vec::new())
        .map_err(|error| Fault::Failed(error.to_string()))?;
    let answer = wire::exchange(client, request, wire::PATIENCE)
        .await
        .map_err(|silence| Fault::Failed(silence.message()))?;
    if answer.is_success() { Ok(answer.body) } else { Err(watch::fault(&answer)) }
}

/// Whether anything came to count after `since` and up to the revision that the server has now. One
/// that came and went again in between is taken for one that is there: whoever asked asks again.
/// `None`: the server does not tell how far it told, or its history is another.
async fn changes(
    client: &Client,
    source: &Source,
    finalizer: Option<&str>,
    since: &Since<'_>,
) -> Result<Option<Proof>, Fault> {
    let far = |revision: &str| -> Result<u64, Fault> {
        revision.parse().map_err(|_| Fault::Failed(format!("{revision:?} is no revision")))
    };
    let body = page(client, source, 1, "").await?;
    let now: Page<'_> = serde_json::from_slice(&body).map_err(unreadable)?;
    let until = far(&now.metadata.revision)?;
    match course(far(&since.revision)?, until) {
        Course::Nothing => return Ok(Some(Proof::None)),
        Course::List => {
            (since.put_back)();
            return Ok(None);
        }
        Course::Watch => {}
    }
    let mut events = Events::open_for(client, source, &since.revision, SHORT_WATCH).await?;
    while let Some(line) = events.line().await? {
        if line.is_empty() {
            continue;
        }
        let (object, counts) = match watch::event(&line)? {
            Event::Changed(object) => (object, true),
            Event::Deleted(object) | Event::Bookmark(object) => (object, false),
        };
        if counts && let Some(found) = carrier(object, finalizer)? {
            return Ok(Some(Proof::Some(found)));
        }
        let reached = crate::reflect::revision_of(object);
        if reached.is_some_and(|at| far(&at).is_ok_and(|at| at >= until)) {
            return Ok(Some(Proof::None));
        }
    }
    Ok(None)
}

/// What is left to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// Nothing happened since.
    Nothing,
    Watch,
    /// All of them.
    List,
}

/// By the revision as of which none counted, and the one that the server has, which was asked for
/// later: where it is less, storage was put back to an earlier state, in which any might count.
fn course(since: u64, until: u64) -> Course {
    match since.cmp(&until) {
        Ordering::Less => Course::Watch,
        Ordering::Equal => Course::Nothing,
        Ordering::Greater => Course::List,
    }
}

#[derive(Deserialize)]
struct Page<'a> {
    metadata: ListMeta,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct ListMeta {
    #[serde(rename = "resourceVersion", default)]
    revision: String,
    #[serde(rename = "continue")]
    next: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_from_before_storage_was_put_back_proved_that_there_is_none() {
        assert_eq!(course(9000, 5010), Course::List);
        assert_eq!(course(9000, 9000), Course::Nothing);
        assert_eq!(course(9000, 9001), Course::Watch);
    }
}
