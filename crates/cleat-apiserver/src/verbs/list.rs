//! List: one page of a consistent picture of a resource type.

use bytes::Bytes;
use cleat_store::{Compacted, Range, Revision};
use serde_json::json;

use super::{Call, watch};
use crate::form::{Form, Pieces, Presenter};
use crate::objects::{self, Envelope};
use crate::query::{ContinueToken, ListOptions, VersionMatch, resource_version};
use crate::resource::Origin;
use crate::selector::Selector;
use crate::status::{Cause, Status};

/// How many objects are read at a time to see which a selector selects.
const STEP: usize = 1000;

/// The objects of one page and what the client needs for the next.
pub(crate) struct Page {
    pub(crate) entries: Vec<Bytes>,
    pub(crate) revision: Revision,
    pub(crate) next: Option<ContinueToken>,
    /// Known only where nothing is left out by a selector.
    pub(crate) remaining: Option<usize>,
}

/// Answers a list request in the form asked for.
pub(crate) async fn list(
    call: &Call<'_>,
    options: &ListOptions,
    form: Form,
) -> Result<Pieces, Status> {
    let page = page(call, options).await?;
    let mut meta = json!({ "resourceVersion": page.revision.to_string() });
    let map = crate::object::as_map(&mut meta);
    match &page.next {
        Some(next) => drop(map.insert("continue".into(), next.encode().into())),
        // Lists of custom resources always say so.
        None if call.ty.origin != Origin::Builtin => drop(map.insert("continue".into(), "".into())),
        None => {}
    }
    if let (Some(remaining), Some(_)) = (page.remaining, &page.next) {
        map.insert("remainingItemCount".into(), remaining.into());
    }
    let presenter =
        Presenter { form, ty: &call.ty, version: &call.version, now: call.server.clock.now() };
    Ok(presenter.list(page.entries, &meta))
}

pub(crate) async fn page(call: &Call<'_>, options: &ListOptions) -> Result<Page, Status> {
    let token = continuation(options)?;
    let (at, after) = match &token {
        Some(token) => {
            let last = token.start.strip_suffix('\0').unwrap_or(&token.start);
            let base = objects::prefix(&call.namespace);
            (Revision::try_from(token.revision).ok(), Some(format!("{base}{last}")))
        }
        None => (wanted_revision(call, options)?, None),
    };
    let gathered = match options.selector.is_everything() {
        true => whole_page(call, options, at, after.as_deref()),
        false => match selected_page(call, options, at, after.clone(), STEP).await {
            // Nobody named that revision: the newest will do, and all of it is held on to at once.
            Err(_) if at.is_none() => selected_page(call, options, at, after, usize::MAX).await,
            gathered => gathered,
        },
    };
    gathered.map_err(|gone| expired(token.as_ref(), at, gone.floor))
}

/// A page that leaves nothing out.
fn whole_page(
    call: &Call<'_>,
    options: &ListOptions,
    at: Option<Revision>,
    after: Option<&str>,
) -> Result<Page, Compacted> {
    let (bucket, prefix) = (objects::bucket(&call.ty), scope(call, &options.selector));
    let limit = options.limit;
    let range = Range { bucket: &bucket, prefix: &prefix, after, limit, at, count: limit > 0 };
    let found = call.objects().store().list(range)?;
    let next = found.entries.last().filter(|_| found.more);
    let next = next.map(|(last, _)| continue_after(call, found.revision, last));
    let entries = found.entries.into_iter().map(|(_, entry)| entry.value).collect();
    Ok(Page { entries, revision: found.revision, next, remaining: found.remaining })
}

/// A page of what a selector selects. Every object is read for that, so that others have their turn
/// after each `step` of them.
async fn selected_page(
    call: &Call<'_>,
    options: &ListOptions,
    mut at: Option<Revision>,
    mut after: Option<String>,
    step: usize,
) -> Result<Page, Compacted> {
    let (bucket, prefix) = (objects::bucket(&call.ty), scope(call, &options.selector));
    let envelope = Envelope::of(&call.ty, &call.version);
    let most = if options.limit == 0 { usize::MAX } else { options.limit };
    let mut entries = Vec::new();
    loop {
        let (prefix, after_key) = (&*prefix, after.as_deref());
        let range =
            Range { bucket: &bucket, prefix, after: after_key, limit: step, at, count: false };
        let found = call.objects().store().list(range)?;
        at = Some(found.revision);
        let end = found.entries.len();
        for (index, (key, entry)) in found.entries.iter().enumerate() {
            if !selected(&envelope, &options.selector, &entry.value) {
                continue;
            }
            entries.push(entry.value.clone());
            if entries.len() == most {
                let more = found.more || index + 1 < end;
                let next = more.then(|| continue_after(call, found.revision, key));
                return Ok(Page { entries, revision: found.revision, next, remaining: None });
            }
        }
        let Some((last, _)) = found.entries.last().filter(|_| found.more) else {
            return Ok(Page { entries, revision: found.revision, next: None, remaining: None });
        };
        after = Some(last.to_string());
        tokio::task::yield_now().await;
    }
}

/// What the client says to be given what follows `key` as of `revision`.
fn continue_after(call: &Call<'_>, revision: Revision, key: &str) -> ContinueToken {
    ContinueToken {
        revision: i64::try_from(revision).unwrap_or(i64::MAX),
        start: start_after(call, key),
    }
}

/// Where the page after `key` begins, relative to the namespace.
fn start_after(call: &Call<'_>, key: &str) -> String {
    let base = objects::prefix(&call.namespace);
    format!("{}\0", key.strip_prefix(&*base).unwrap_or(key))
}

fn continuation(options: &ListOptions) -> Result<Option<ContinueToken>, Status> {
    if options.continue_token.is_empty() {
        return Ok(None);
    }
    if !matches!(&*options.resource_version, "" | "0") {
        let why = "specifying resource version is not allowed when using continue";
        return Err(Status::bad_request(why));
    }
    let token = ContinueToken::decode(&options.continue_token)
        .map_err(|error| Status::bad_request(format!("invalid continue token: {error}")))?;
    Ok(Some(token))
}

/// The revision to list at; `None` for the newest.
fn wanted_revision(call: &Call<'_>, options: &ListOptions) -> Result<Option<Revision>, Status> {
    let asked = resource_version(&options.resource_version)
        .map_err(|error| Status::bad_request(format!("invalid resource version: {error}")))?;
    let current = call.objects().store().revision();
    if asked > current {
        return Err(too_new(asked, current));
    }
    let exact = options.version_match == VersionMatch::Exact
        // A limit without any other wish has always meant exactly that revision.
        || (options.version_match == VersionMatch::Unset && options.limit > 0 && asked > 0);
    Ok((exact && asked > 0).then_some(asked))
}

/// The keys worth looking at.
fn scope(call: &Call<'_>, selector: &Selector) -> String {
    match selector.single_name() {
        Some(name) if !call.namespace.is_empty() || !call.ty.namespaced => {
            objects::key(&call.namespace, name)
        }
        _ => objects::prefix(&call.namespace),
    }
}

fn selected(envelope: &Envelope, selector: &Selector, stored: &Bytes) -> bool {
    envelope.open(stored).is_some_and(|object| selector.matches(&object))
}

fn expired(token: Option<&ContinueToken>, at: Option<Revision>, floor: Revision) -> Status {
    match token {
        // The client may go on from the same place at the newest revision, if it can bear the seam.
        Some(token) => {
            let seam = ContinueToken { revision: -1, start: token.start.clone() };
            let mut status = Status::expired(
                "The provided continue parameter is too old to display a consistent list result. \
                 You can start a new list without the continue parameter, or use the continue \
                 token in this response to retrieve the remainder of the results. Continuing with \
                 the provided token results in an inconsistent list - objects that were created, \
                 modified, or deleted between the time the first chunk was returned and now may \
                 show up in the list.",
            );
            status.details.continue_token = seam.encode();
            status
        }
        None => watch::too_old(at.unwrap_or_default(), floor),
    }
}

/// The client has seen a revision that this server has not reached.
pub(crate) fn too_new(asked: Revision, current: Revision) -> Status {
    let mut status = Status::timeout(format!(
        "Timeout: Too large resource version: {asked}, current: {current}"
    ));
    status.details.retry_after_seconds = 1;
    status.with_cause(Cause {
        reason: "ResourceVersionTooLarge".into(),
        message: "Too large resource version".into(),
        field: String::new(),
    })
}

/// A list that deletecollection answers with: the objects as they were found.
pub(crate) fn as_list(call: &Call<'_>, entries: Vec<Bytes>, revision: Revision) -> Pieces {
    let presenter = Presenter {
        form: Form::Whole,
        ty: &call.ty,
        version: &call.version,
        now: call.server.clock.now(),
    };
    let mut meta = json!({ "resourceVersion": revision.to_string() });
    if call.ty.origin != Origin::Builtin {
        crate::object::as_map(&mut meta).insert("continue".into(), "".into());
    }
    presenter.list(entries, &meta)
}

#[cfg(test)]
mod tests;
