//! Lists and watches of one kind, as lines of JSON.
//!
//! kube's watchers are not used: they decode every object whole, managed fields and all, where most
//! are dropped on arrival; here an object is text until somebody wants it.

use std::borrow::Cow;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use futures::StreamExt as _;
use http::{Request, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::Client;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::status::Status;
use crate::wire::{self, Answer};

/// What to list and watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) path: String,
    /// Further parameters, each ending in `&`.
    pub(crate) query: String,
    pub(crate) form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    Metadata,
}

impl Form {
    pub(crate) fn of_list(self) -> &'static str {
        match self {
            Self::Whole => "application/json",
            Self::Metadata => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        }
    }

    pub(crate) fn of_object(self) -> &'static str {
        match self {
            Self::Whole => "application/json",
            Self::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        }
    }
}

/// Why a list or watch gives nothing, or nothing more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The server has forgotten the revision to go on from.
    Expired,
    Forbidden(String),
    NoSuchKind,
    /// The server has the kind, and tells nobody when it changes.
    Unwatchable,
    Failed(String),
}

/// How many objects are asked for at a time, unless there is a reason to ask for fewer.
pub(crate) const PAGE: usize = 500;
/// After this long a server ends a watch by itself, and another is begun where it ended.
const WATCH: Duration = Duration::from_secs(290);
/// How much longer than that we wait for its end.
const OVERDUE: Duration = Duration::from_secs(30);
/// Far longer than any object may be.
const LONGEST_LINE: usize = 64 << 20;
/// Longer than any page of objects of common size. Of larger objects fewer are asked for.
const LARGEST_PAGE: usize = 16 << 20;

/// What is asked for as the next page of a list. Pages of one list may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) form: Form,
    pub(crate) limit: usize,
}

/// What holds for all objects of a page.
pub(crate) struct OfPage<'a> {
    /// Of the moment that the list tells of.
    pub(crate) revision: &'a str,
    pub(crate) form: Form,
    /// Lists of built-in kinds leave out of their objects what all of them are.
    pub(crate) api_version: &'a str,
    /// That of the list, which ends in `List`.
    pub(crate) kind: &'a str,
}

/// Reads all objects of one moment, and gives that moment's revision. `ask` is asked before every
/// page, after `each` was given the one before.
pub(crate) async fn list(
    client: &Client,
    source: &Source,
    ask: impl Fn() -> Ask,
    each: impl Fn(&[&RawValue], &OfPage<'_>),
) -> Result<String, Fault> {
    let Source { path, query, form: _ } = source;
    let mut next = String::new();
    let mut most = usize::MAX;
    loop {
        let Ask { form, limit } = ask();
        let limit = limit.min(most);
        let from = wire_value(&next);
        let uri = format!("{path}?{query}limit={limit}{from}");
        let answer = match exchange(client, request(uri, form.of_list())?).await {
            Ok(answer) => answer,
            Err(Unanswered::TooLarge) => {
                most = fewer_than(limit).ok_or_else(too_large)?;
                continue;
            }
            Err(Unanswered::Failed(why)) => return Err(Fault::Failed(why)),
        };
        if !answer.is_success() {
            return Err(fault(&answer));
        }
        let page: Page<'_> = serde_json::from_slice(&answer.body).map_err(unreadable)?;
        let of = OfPage {
            revision: &page.metadata.resource_version,
            form,
            api_version: &page.api_version,
            kind: &page.kind,
        };
        each(page.items.as_deref().unwrap_or_default(), &of);
        match page.metadata.next.filter(|next| !next.is_empty()) {
            Some(token) => next = token,
            None => return Ok(page.metadata.resource_version),
        }
    }
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
enum Unanswered {
    /// There is one, of more than anybody should have to hold.
    TooLarge,
    Failed(String),
}

/// How many objects to ask for after so many were too much; `None` where it cannot be fewer.
fn fewer_than(limit: usize) -> Option<usize> {
    (limit > 1).then_some(limit / 2)
}

fn too_large() -> Fault {
    Fault::Failed(format!("the server sent an object of more than {LARGEST_PAGE} bytes"))
}

async fn exchange(client: &Client, request: Request<Vec<u8>>) -> Result<Answer, Unanswered> {
    let whole = async {
        let response = client.send(request.map(Into::into)).await;
        let response = response.map_err(|error| Unanswered::Failed(wire::causes(&error)))?;
        let (head, body) = response.into_parts();
        Ok(Answer { code: head.status.as_u16(), body: collect(body, LARGEST_PAGE).await? })
    };
    let silence = wire::Silence::TimedOut(wire::PATIENCE);
    let answer = tokio::time::timeout(wire::PATIENCE, whole).await;
    answer.unwrap_or_else(|_| Err(Unanswered::Failed(silence.message())))
}

/// A body of at most so many bytes.
async fn collect(body: kube::client::Body, most: usize) -> Result<Bytes, Unanswered> {
    match Limited::new(body, most).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Unanswered::TooLarge),
        Err(error) => Err(Unanswered::Failed(wire::causes(&*error))),
    }
}

fn wire_value(next: &str) -> String {
    if next.is_empty() {
        String::new()
    } else {
        format!("&continue={}", crate::path::query_value(next))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    metadata: ListMeta,
    /// Null where there are none, from some servers.
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(rename = "continue")]
    next: Option<String>,
}

/// The events after a revision, as they come.
pub(crate) struct Events {
    body: futures::stream::BoxStream<'static, Result<Bytes, kube::Error>>,
    buffer: BytesMut,
    /// How far the buffer is known to have no line's end.
    searched: usize,
    deadline: tokio::time::Instant,
}

/// One event, whose object is part of its line.
pub(crate) enum Event<'a> {
    Changed(&'a RawValue),
    Deleted(&'a RawValue),
    /// Nothing new up to this revision.
    Bookmark(&'a RawValue),
}

impl Events {
    pub(crate) async fn open(
        client: &Client,
        source: &Source,
        revision: &str,
    ) -> Result<Self, Fault> {
        Self::open_for(client, source, revision, WATCH).await
    }

    /// One that the server ends after `life`.
    pub(crate) async fn open_for(
        client: &Client,
        source: &Source,
        revision: &str,
        life: Duration,
    ) -> Result<Self, Fault> {
        let Source { path, query, form } = source;
        let revision = crate::path::query_value(revision);
        let seconds = life.as_secs();
        let uri = format!(
            "{path}?{query}watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}\
             &resourceVersion={revision}"
        );
        let request = request(uri, form.of_object())?.map(Into::into);
        let answer = tokio::time::timeout(wire::PATIENCE, client.send(request)).await;
        let response = match answer {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(Fault::Failed(wire::causes(&error))),
            Err(_) => return Err(Fault::Failed("the server did not begin to answer".to_owned())),
        };
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            let body = tokio::time::timeout(wire::PATIENCE, collect(body, LARGEST_PAGE)).await;
            let body = body.ok().and_then(Result::ok).unwrap_or_default();
            return Err(fault(&Answer { code: head.status.as_u16(), body }));
        }
        Ok(Self {
            body: body.into_data_stream().boxed(),
            buffer: BytesMut::new(),
            searched: 0,
            deadline: tokio::time::Instant::now() + life + OVERDUE,
        })
    }

    /// The next line, or none when the server ended the watch.
    pub(crate) async fn line(&mut self) -> Result<Option<Bytes>, Fault> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(end) = unsearched.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + end).freeze();
                self.buffer.advance(1);
                self.searched = 0;
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            if self.searched > LONGEST_LINE {
                return Err(Fault::Failed("the server sent a line without an end".to_owned()));
            }
            match tokio::time::timeout_at(self.deadline, self.body.next()).await {
                Ok(Some(Ok(chunk))) => self.take(chunk),
                Ok(Some(Err(error))) => return Err(Fault::Failed(wire::causes(&error))),
                Ok(None) => return Ok(None),
                Err(_) => return Err(Fault::Failed("the watch did not end in time".to_owned())),
            }
        }
    }

    /// Most chunks are whole lines, and then no copy is made.
    fn take(&mut self, chunk: Bytes) {
        if self.buffer.is_empty() {
            match chunk.try_into_mut() {
                Ok(whole) => self.buffer = whole,
                Err(shared) => self.buffer.extend_from_slice(&shared),
            }
        } else {
            self.buffer.extend_from_slice(&chunk);
        }
    }
}

pub(crate) fn event(line: &[u8]) -> Result<Event<'_>, Fault> {
    #[derive(Deserialize)]
    struct Line<'a> {
        r#type: &'a str,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    let Line { r#type, object } = serde_json::from_slice(line).map_err(unreadable)?;
    match r#type {
        "ADDED" | "MODIFIED" => Ok(Event::Changed(object)),
        "DELETED" => Ok(Event::Deleted(object)),
        "BOOKMARK" => Ok(Event::Bookmark(object)),
        "ERROR" => {
            #[derive(Deserialize, Default)]
            struct Code {
                #[serde(default)]
                code: u16,
            }
            let text = object.get();
            let Code { code } = serde_json::from_str(text).unwrap_or_default();
            Err(fault(&Answer { code, body: Bytes::copy_from_slice(text.as_bytes()) }))
        }
        other => Err(Fault::Failed(format!("the server sent an event of type {other:?}"))),
    }
}

fn request(uri: String, accept: &str) -> Result<Request<Vec<u8>>, Fault> {
    Request::get(uri)
        .header(header::ACCEPT, accept)
        // Servers may compress event by event, which no decoder here expects.
        .header(header::ACCEPT_ENCODING, "identity")
        .body(Vec::new())
        .map_err(|error| Fault::Failed(error.to_string()))
}

pub(crate) fn fault(answer: &Answer) -> Fault {
    let status = Status::of(answer);
    match answer.code {
        404 => Fault::NoSuchKind,
        405 => Fault::Unwatchable,
        410 => Fault::Expired,
        401 | 403 => Fault::Forbidden(status.message),
        _ => Fault::Failed(status.message),
    }
}

fn unreadable(error: serde_json::Error) -> Fault {
    Fault::Failed(format!("the server's answer was not understood: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_page_of_any_length_was_held() {
        let body = || kube::client::Body::from(vec![b'x'; 100]);
        assert_eq!(collect(body(), 100).await.map(|bytes| bytes.len()), Ok(100));
        assert_eq!(collect(body(), 99).await, Err(Unanswered::TooLarge));
    }

    #[test]
    fn what_is_too_large_is_asked_for_in_ever_smaller_parts() {
        let parts: Vec<usize> =
            std::iter::successors(Some(PAGE), |limit| fewer_than(*limit)).collect();
        assert_eq!(parts, [500, 250, 125, 62, 31, 15, 7, 3, 1]);
        assert_eq!(fewer_than(0), None);
    }
}
