//! Watch: a client's place in the history of one resource type.
//!
//! A watcher has no buffer of its own: it reads what was there from the store page by page and what
//! happens from its history, both at the pace of its client. All it ever holds is one chunk of its
//! answer, and what that is made from. A client that is too slow for the history is told so (410) and
//! starts over.

mod initial;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use cleat_store::{Event, EventKind, Revision, Watch, WatchError};
use futures::{Stream, StreamExt as _};
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep, sleep_until};

use self::initial::Initial;
use super::Call;
use crate::form::{Form, Presenter};
use crate::object;
use crate::objects::{self, Envelope};
use crate::resource::ResourceType;
use crate::selector::Selector;
use crate::server::Inner;
use crate::status::Status;

/// The most events in one chunk of the answer.
const AT_ONCE: usize = 128;
/// A chunk of so many bytes is not added to.
const CHUNK: usize = 64 << 10;
const BOOKMARK_EVERY: Duration = Duration::from_secs(50);
const BEFORE_THE_END: Duration = Duration::from_secs(2);
/// What a line has beside the stored object, about.
const AROUND: usize = 128;

/// What the client wants to see.
pub(crate) struct WatchQuery {
    pub(crate) selector: Selector,
    /// Events after this revision; `None` begins with what is there.
    pub(crate) after: Option<Revision>,
    /// Send a bookmark once all that was there has been sent.
    pub(crate) mark_initial_end: bool,
    pub(crate) bookmarks: bool,
    pub(crate) timeout: Duration,
}

struct Watcher {
    server: Arc<Inner>,
    ty: Arc<ResourceType>,
    version: Box<str>,
    envelope: Envelope,
    form: Form,
    selector: Selector,
    watch: Watch,
    /// What was there when the watch began, until it has been told.
    initial: Option<Initial>,
    pending: Option<Bytes>,
    /// Where events that were told are counted.
    told: Arc<AtomicU64>,
    deadline: Instant,
    // What a watch waits for beside news is set up once: thousands wake for one event, each to wait
    // again.
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    end: Pin<Box<Sleep>>,
    next_bookmark: Option<Pin<Box<Sleep>>>,
    /// What happened before this watch began is not told yet.
    behind: bool,
    /// As much was read at once as may be, and nothing of it was to be told.
    hurried: bool,
    first: bool,
    ended: bool,
}

/// Opens a watch; the stream yields whole lines of JSON.
pub(crate) fn watch(
    call: &Call<'_>,
    server: &Arc<Inner>,
    query: WatchQuery,
    form: Form,
) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> + Send + 'static {
    let bucket = objects::bucket(&call.ty);
    let prefix = match query.selector.single_name() {
        // A name is a prefix of itself; longer names are left out by the selector.
        Some(name) if !call.namespace.is_empty() || !call.ty.namespaced => {
            objects::key(&call.namespace, name)
        }
        _ => objects::prefix(&call.namespace),
    };
    let store = call.objects().store();
    let after = query.after.unwrap_or_else(|| store.revision());
    let watch = match store.watch(&bucket, &prefix, after) {
        Ok(watch) => watch,
        // Whoever watches hears of this in the stream, at its beginning as later on.
        Err(compacted) => {
            let mut out = BytesMut::new();
            let status = too_old(after, compacted.floor);
            line("ERROR", status.to_json().to_string().as_bytes(), &mut out);
            return futures::stream::iter([Ok(out.freeze())]).left_stream();
        }
    };
    let now = Instant::now();
    let deadline = now + query.timeout;
    let initial = match query.after {
        Some(_) => None,
        None => Some(Initial::new(&bucket, &prefix, after, query.mark_initial_end)),
    };
    let watcher = Watcher {
        server: Arc::clone(server),
        ty: Arc::clone(&call.ty),
        version: call.version.clone(),
        envelope: Envelope::of(&call.ty, &call.version),
        form,
        selector: query.selector,
        watch,
        initial,
        pending: None,
        told: server.metrics.watch_events(&call.ty, &call.version),
        deadline,
        stop: Box::pin(server.stopping()),
        end: Box::pin(sleep_until(deadline)),
        next_bookmark: query.bookmarks.then(|| Box::pin(sleep_until(next_bookmark(now, deadline)))),
        behind: query.bookmarks && query.after.is_some(),
        hurried: false,
        first: true,
        ended: false,
    };
    let told = futures::stream::unfold(watcher, |mut watcher| async move {
        let chunk = watcher.next().await?;
        Some((Ok(chunk), watcher))
    });
    told.right_stream()
}

/// Every so often, and shortly before the end, so that whoever goes on has missed little.
fn next_bookmark(now: Instant, deadline: Instant) -> Instant {
    let usual = now + BOOKMARK_EVERY;
    let last = deadline.checked_sub(BEFORE_THE_END).unwrap_or(deadline);
    if last > now { usual.min(last) } else { usual }
}

/// When it rings; never, if there is none.
async fn due(bell: &mut Option<Pin<Box<Sleep>>>) {
    match bell {
        Some(bell) => bell.as_mut().await,
        None => std::future::pending().await,
    }
}

pub(crate) fn too_old(asked: Revision, floor: Revision) -> Status {
    Status::expired(format!("too old resource version: {asked} ({floor})"))
}

impl Watcher {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(chunk) = self.pending.take() {
                return Some(chunk);
            }
            if self.ended {
                return None;
            }
            if self.initial.is_some() {
                self.begin();
                if self.pending.is_none() {
                    // A selector may leave out most of what there is. Others want to get on, too.
                    tokio::task::yield_now().await;
                }
                continue;
            }
            if self.behind {
                self.catch_up();
                if self.pending.is_none() {
                    tokio::task::yield_now().await;
                }
                continue;
            }
            if self.hurried {
                self.hurried = false;
                tokio::task::yield_now().await;
            }
            tokio::select! {
                // News last: it may never end, and the others must be heard all the same.
                biased;
                () = &mut self.stop => return None,
                () = &mut self.end => return None,
                () = due(&mut self.next_bookmark) => self.tick(),
                news = self.watch.next() => self.take(news),
            }
        }
    }

    /// Some of what was there when the watch began, and after the last of it the mark, if it is wanted.
    fn begin(&mut self) {
        let mut out = BytesMut::new();
        for _ in 0..AT_ONCE {
            if out.len() >= CHUNK {
                break;
            }
            let Some(initial) = &mut self.initial else { break };
            match initial.next(self.server.objects.store()) {
                Ok(Some(stored)) => {
                    if self.selected(&stored) {
                        self.render("ADDED", &stored, &mut out);
                    }
                }
                Ok(None) => {
                    let marked = initial.marked_end();
                    self.initial = None;
                    if let Some(revision) = marked {
                        self.bookmark(revision, true, &mut out);
                    }
                }
                Err(compacted) => {
                    self.initial = None;
                    self.fall_behind(compacted.floor, &mut out);
                }
            }
        }
        self.push(out);
    }

    /// Some of what happened before this watch began; after the last of it a bookmark. Whoever wants
    /// to know that nothing happened up to now need not wait for one.
    fn catch_up(&mut self) {
        let mut out = BytesMut::new();
        for _ in 0..AT_ONCE {
            if out.len() >= CHUNK {
                break;
            }
            match self.watch.try_next() {
                Ok(Some(event)) => self.event(&event, &mut out),
                Ok(None) => {
                    self.behind = false;
                    self.bookmark(self.watch.revision(), false, &mut out);
                    break;
                }
                // The next look finds the same, and says so.
                Err(_) => {
                    self.behind = false;
                    break;
                }
            }
        }
        self.push(out);
    }

    fn tick(&mut self) {
        if let Some(bell) = &mut self.next_bookmark {
            bell.as_mut().reset(next_bookmark(Instant::now(), self.deadline));
        }
        let mut out = BytesMut::new();
        // Looking for news is what brings the watch up to the store's revision.
        if let Ok(Some(event)) = self.watch.try_next() {
            self.event(&event, &mut out);
        }
        self.bookmark(self.watch.revision(), false, &mut out);
        self.push(out);
    }

    /// What happened, and what else has happened since, as far as it fits.
    fn take(&mut self, news: Result<Event, WatchError>) {
        let room = news.as_ref().map_or(0, |event| AROUND + event.value.len());
        let mut out = BytesMut::with_capacity(room);
        match news {
            Ok(event) => {
                self.event(&event, &mut out);
                let mut read = 1;
                while read < AT_ONCE && out.len() < CHUNK {
                    // What goes wrong here goes wrong again at the next look.
                    let Ok(Some(event)) = self.watch.try_next() else { break };
                    self.event(&event, &mut out);
                    read += 1;
                }
                self.hurried = read == AT_ONCE && out.is_empty();
            }
            Err(WatchError::Compacted(compacted)) => self.fall_behind(compacted.floor, &mut out),
            Err(_) => self.ended = true,
        }
        self.push(out);
    }

    /// What comes next is forgotten: the client has to start over.
    fn fall_behind(&mut self, floor: Revision, out: &mut BytesMut) {
        let status = too_old(self.watch.revision(), floor);
        line("ERROR", status.to_json().to_string().as_bytes(), out);
        self.ended = true;
    }

    fn push(&mut self, out: BytesMut) {
        if !out.is_empty() {
            self.pending = Some(out.freeze());
        }
    }

    /// What an event means to this watcher: an object may come into or leave its sight.
    fn event(&mut self, event: &Event, out: &mut BytesMut) {
        let now = event.kind != EventKind::Delete && self.selected(&event.value);
        let before = match &event.previous {
            Some(previous) => self.selected(previous),
            None => false,
        };
        match (before, now) {
            (false, false) => {}
            (false, true) => self.render("ADDED", &event.value, out),
            (true, true) => self.render("MODIFIED", &event.value, out),
            (true, false) if event.kind == EventKind::Delete => {
                self.render("DELETED", &event.value, out);
            }
            (true, false) => {
                // It lives on but is not ours to see: its last visible state, at this revision.
                let Some(mut last) =
                    event.previous.as_ref().and_then(|bytes| self.envelope.open(bytes))
                else {
                    return;
                };
                let meta = object::metadata_mut(&mut last);
                meta.insert("resourceVersion".into(), event.revision.to_string().into());
                self.render_value("DELETED", last, out);
            }
        }
    }

    fn selected(&self, stored: &Bytes) -> bool {
        self.selector.is_everything()
            || self.envelope.open(stored).is_some_and(|object| self.selector.matches(&object))
    }

    fn render(&mut self, kind: &str, stored: &Bytes, out: &mut BytesMut) {
        if self.form == Form::Whole {
            self.told.fetch_add(1, Ordering::Relaxed);
            out.put_slice(br#"{"type":""#);
            out.put_slice(kind.as_bytes());
            out.put_slice(br#"","object":"#);
            self.envelope.write(stored, out);
            out.put_slice(b"}\n");
            self.first = false;
        } else if let Some(object) = self.envelope.open(stored) {
            self.render_value(kind, object, out);
        }
    }

    fn render_value(&mut self, kind: &str, object: Value, out: &mut BytesMut) {
        let presenter = Presenter {
            form: self.form,
            ty: &self.ty,
            version: &self.version,
            now: self.server.clock.now(),
        };
        let shown = presenter.event(object, self.first);
        self.first = false;
        self.told.fetch_add(1, Ordering::Relaxed);
        line(kind, shown.to_string().as_bytes(), out);
    }

    fn bookmark(&mut self, revision: Revision, initial_end: bool, out: &mut BytesMut) {
        let mut meta = json!({ "resourceVersion": revision.to_string() });
        if initial_end {
            object::as_map(&mut meta)
                .insert("annotations".into(), json!({ "k8s.io/initial-events-end": "true" }));
        }
        let mark = match self.form {
            Form::Whole => json!({
                "kind": &*self.ty.kind,
                "apiVersion": self.ty.api_version(&self.version),
                "metadata": meta,
            }),
            Form::Metadata(_) | Form::Table(..) => {
                let object = json!({ "metadata": meta });
                let presenter = Presenter {
                    form: self.form,
                    ty: &self.ty,
                    version: &self.version,
                    now: self.server.clock.now(),
                };
                presenter.event(object, self.first)
            }
        };
        self.told.fetch_add(1, Ordering::Relaxed);
        line("BOOKMARK", mark.to_string().as_bytes(), out);
    }
}

fn line(kind: &str, object: &[u8], out: &mut BytesMut) {
    out.put_slice(br#"{"type":""#);
    out.put_slice(kind.as_bytes());
    out.put_slice(br#"","object":"#);
    out.put_slice(object);
    out.put_slice(b"}\n");
}
