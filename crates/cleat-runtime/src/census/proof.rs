//! Proving that nothing is there, as of a moment after it was asked. See ADR 0007.
//!
//! Objects of which there are few are simply read: a list without a revision is as fresh as the
//! server's storage. Of very many only what changed since a known revision is looked at: a short
//! watch from there, until a bookmark says that everything up to the server's revision was told. A
//! server that does not say so in time is asked for all of them after all.

use std::time::Duration;

use http::{Request, header};
use kube::Client;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use super::count::name_and_finalizers;
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

/// As of that revision there was none that counts.
pub(super) struct Since {
    pub(super) revision: String,
    /// There were more objects than are read, none of which counts.
    pub(super) many: bool,
}

pub(super) async fn prove(
    client: &Client,
    source: &Source,
    finalizer: Option<&str>,
    since: Option<Since>,
    patience: Duration,
) -> Proof {
    let deadline = Instant::now() + patience;
    let proven = timeout_at(deadline, look(client, source, finalizer, since)).await;
    let late = || {
        let seconds = patience.as_secs();
        Err(Fault::Failed(format!("not proven within {seconds} s; repeat this")))
    };
    match proven.unwrap_or_else(|_| late()) {
        Ok(proof) => proof,
        Err(Fault::NoSuchKind) => Proof::NoSuchKind,
        Err(Fault::Forbidden(why)) => Proof::Unknown(format!("not allowed to look: {why}")),
        Err(Fault::Expired) => Proof::Unknown("the server's history is too short".to_owned()),
        Err(Fault::Failed(why)) => Proof::Unknown(why),
    }
}

async fn look(
    client: &Client,
    source: &Source,
    finalizer: Option<&str>,
    since: Option<Since>,
) -> Result<Proof, Fault> {
    if let Some(Since { revision, many: true }) = &since {
        let told = changes(client, source, finalizer, revision);
        // Whatever is wrong with that, looking at all of them tells or is wrong in the same way.
        if let Ok(Ok(Some(proof))) = tokio::time::timeout(TOLD_WITHIN, told).await {
            return Ok(proof);
        }
    }
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
/// `None`: the server does not tell how far it told.
async fn changes(
    client: &Client,
    source: &Source,
    finalizer: Option<&str>,
    since: &str,
) -> Result<Option<Proof>, Fault> {
    let far = |revision: &str| -> Result<u64, Fault> {
        revision.parse().map_err(|_| Fault::Failed(format!("{revision:?} is no revision")))
    };
    let body = page(client, source, 1, "").await?;
    let now: Page<'_> = serde_json::from_slice(&body).map_err(unreadable)?;
    let until = far(&now.metadata.revision)?;
    if far(since)? >= until {
        return Ok(Some(Proof::None));
    }
    let mut events = Events::open_for(client, source, since, SHORT_WATCH).await?;
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
