//! Keeps something up to date with a server: a list, then watches without a gap, for ever.
//!
//! It knows how to go on, and nothing of what it carries: that is the [`Sink`]'s.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use kube::Client;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::tasks::Stop;
use crate::watch::{self, Ask, Event, Events, Fault, OfPage, PAGE, Source};

/// Where what is listed and watched goes. Calls come one after another, in the server's order.
pub(crate) trait Sink: Sync {
    fn source(&self) -> Source;
    /// What is wanted now. Asked again whenever [`attention`](Self::attention) is given.
    fn wish(&self) -> Wish;
    fn attention(&self) -> &Notify;

    fn list_began(&self);
    /// How to ask for the next page of the list that began.
    fn ask(&self, source: &Source) -> Ask {
        Ask { form: source.form, limit: PAGE }
    }
    /// A page of it.
    fn listed(&self, objects: &[&RawValue], of: &OfPage<'_>);
    fn list_ended(&self, revision: &str);
    fn changed(&self, object: &RawValue);
    fn deleted(&self, object: &RawValue);
    /// Everything up to this revision was told.
    fn reached(&self, revision: &str);

    /// The server answers.
    fn up(&self);
    /// It does not, or not this.
    fn down(&self, fault: &Fault);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    GoOn,
    /// Everything anew.
    List,
    /// No more, unless somebody cares again by then.
    EndAt(Instant),
}

/// Whoever is refused, or asks for a kind that is not there, asks less often: others tell when that
/// changes, or nobody does.
const LONG_PAUSE: Duration = Duration::from_secs(60);
const PERSISTENT: u32 = 6;
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// After so many failures in a row the revision to go on from is suspected.
const SUSPECT: u32 = 5;

/// Runs until it is told to stop, or nobody cares any more.
pub(crate) async fn reflect(client: Client, sink: &impl Sink, mut stop: Stop) {
    let mut revision = None;
    let mut failures = 0_u32;
    loop {
        if let Wish::EndAt(at) = sink.wish()
            && at <= Instant::now()
        {
            return;
        }
        let round = async {
            match carry(&client, sink, &mut revision, &mut failures).await {
                Ended::NobodyCares => return true,
                Ended::Expired => {
                    failures += 1;
                    // Once is what revisions are for; more often may be a server without memory.
                    if failures > 1 {
                        tokio::time::sleep(pause(failures)).await;
                    }
                }
                Ended::Faulty(fault) => {
                    failures += 1;
                    sink.down(&fault);
                    if rest(sink, &fault, failures).await {
                        failures = 0;
                    }
                }
            }
            false
        };
        if stop.or(round).await.unwrap_or(true) {
            return;
        }
        if failures >= SUSPECT {
            revision = None;
        }
    }
}

enum Ended {
    NobodyCares,
    Expired,
    Faulty(Fault),
}

/// Lists if it must, then watches for as long as that goes well.
async fn carry(
    client: &Client,
    sink: &impl Sink,
    revision: &mut Option<String>,
    failures: &mut u32,
) -> Ended {
    let source = sink.source();
    let faulty = |fault, revision: &mut Option<String>| match fault {
        Fault::Expired => {
            *revision = None;
            Ended::Expired
        }
        // What comes back may be another kind of the same name.
        Fault::NoSuchKind => {
            *revision = None;
            Ended::Faulty(Fault::NoSuchKind)
        }
        // Its list was not told to have ended.
        Fault::Unwatchable => {
            *revision = None;
            Ended::Faulty(Fault::Unwatchable)
        }
        fault => Ended::Faulty(fault),
    };
    loop {
        let (from, listed) = match revision.take().filter(|_| sink.wish() != Wish::List) {
            Some(from) => (from, false),
            None => {
                sink.list_began();
                let listed = watch::list(
                    client,
                    &source,
                    || sink.ask(&source),
                    |objects, of| sink.listed(objects, of),
                );
                match listed.await {
                    Ok(at) => (at, true),
                    Err(fault) => return faulty(fault, revision),
                }
            }
        };
        *revision = Some(from.clone());
        let opened = Events::open(client, &source, &from).await;
        // Where nobody tells of what comes after it, a list says nothing of what is there now.
        if listed && !matches!(opened, Err(Fault::Unwatchable)) {
            sink.list_ended(&from);
            sink.up();
            *failures = 0;
        }
        let mut events = match opened {
            Ok(events) => events,
            Err(fault) => return faulty(fault, revision),
        };
        sink.up();
        let begun = Instant::now();
        match follow(&mut events, sink, revision, failures).await {
            Ok(Left::NobodyCares) => return Ended::NobodyCares,
            Ok(Left::Wished) => {}
            // A server that ends watches at once must not be asked as often as it can answer.
            Ok(Left::Ended) if begun.elapsed() < Duration::from_secs(1) => {
                *failures += 1;
                tokio::time::sleep(pause(*failures)).await;
            }
            Ok(Left::Ended) => *failures = 0,
            Err(fault) => return faulty(fault, revision),
        }
    }
}

enum Left {
    NobodyCares,
    Wished,
    Ended,
}

async fn follow(
    events: &mut Events,
    sink: &impl Sink,
    revision: &mut Option<String>,
    failures: &mut u32,
) -> Result<Left, Fault> {
    loop {
        let end = match sink.wish() {
            Wish::GoOn => None,
            Wish::List => return Ok(Left::Wished),
            Wish::EndAt(at) if at <= Instant::now() => return Ok(Left::NobodyCares),
            Wish::EndAt(at) => Some(at),
        };
        let alarm = async {
            match end {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let line = tokio::select! {
            biased;
            () = sink.attention().notified() => continue,
            line = events.line() => line?,
            () = alarm => continue,
        };
        let Some(line) = line else { return Ok(Left::Ended) };
        if line.is_empty() {
            continue;
        }
        let object = match watch::event(&line)? {
            Event::Changed(object) => {
                sink.changed(object);
                object
            }
            Event::Deleted(object) => {
                sink.deleted(object);
                object
            }
            Event::Bookmark(object) => object,
        };
        if let Some(at) = revision_of(object) {
            sink.reached(&at);
            *revision = Some(at);
        }
        *failures = 0;
    }
}

pub(crate) fn revision_of(object: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Meta,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Meta {
        resource_version: String,
    }
    let Object { metadata } = serde_json::from_str(object.get()).ok()?;
    (!metadata.resource_version.is_empty()).then_some(metadata.resource_version)
}

/// Waits before the next attempt, or until somebody has reason to think that it would go better,
/// which it gives back.
async fn rest(sink: &impl Sink, fault: &Fault, failures: u32) -> bool {
    let pause = match fault {
        Fault::Forbidden(_) | Fault::NoSuchKind | Fault::Unwatchable if failures > PERSISTENT => {
            LONG_PAUSE
        }
        _ => pause(failures),
    };
    tokio::select! {
        () = sink.attention().notified() => true,
        () = tokio::time::sleep(pause) => false,
    }
}

/// Doubling, up to a bound, and not for everybody the same.
fn pause(failures: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(16));
    let part = RandomState::new().build_hasher().finish() % 256;
    let part = u32::try_from(part).unwrap_or_default();
    doubled.min(LONGEST_PAUSE).mul_f64(0.75 + 0.25 * f64::from(part) / 256.0)
}
