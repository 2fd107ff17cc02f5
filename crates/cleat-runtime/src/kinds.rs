//! Which resource serves a kind, as the API server's discovery tells.
//!
//! What was found is kept until somebody says that it may have changed. What was not found is looked
//! for again, but not over and over: discovery is large.

mod table;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use http::{Request, header};
use kube::Client;
use tokio::time::Instant;

use self::table::{Found, Table};
use crate::path;
use crate::wire::{self, Answer};

/// How a kind is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mapped {
    pub group: String,
    pub version: String,
    pub resource: String,
    pub namespaced: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mapping {
    Mapped(Mapped),
    /// The server told everything it serves, and this is not among it.
    NoSuchKind,
    /// The server could not tell all, so it may be served.
    Unknown(String),
}

/// Discovery is not read more often than this for what is not there.
const REST: Duration = Duration::from_secs(3);

/// What one API server serves. Its clones are the same.
#[derive(Clone)]
pub struct Kinds {
    client: Client,
    state: Arc<Mutex<State>>,
    /// Held while discovery is read: whoever comes meanwhile waits for that reading.
    reading: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct State {
    table: Option<Arc<Table>>,
    /// Why the last reading gave nothing.
    failure: Option<String>,
    /// When the last reading began.
    read: Option<Instant>,
    outdated: bool,
}

fn untold(group: String) -> String {
    format!("the server cannot tell now what it serves in group {group}")
}

impl Kinds {
    pub fn new(client: Client) -> Self {
        Self { client, state: Arc::default(), reading: Arc::default() }
    }

    /// Something changed what is served, such as a definition: read discovery before the next
    /// answer.
    pub fn forget(&self) {
        self.lock().outdated = true;
    }

    /// The resource for an `apiVersion` and a `kind`.
    pub async fn map(&self, api_version: &str, kind: &str) -> Mapping {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.look(|table| table.kind(group, version, kind)).await
    }

    /// The same in whatever version of its group the server has, if it is not served in this one.
    pub async fn in_any_version(&self, api_version: &str, kind: &str) -> Mapping {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.look(|table| table.kind_in_any_version(group, version, kind)).await
    }

    /// A resource, in the version that the server prefers.
    pub async fn preferred(&self, group: &str, resource: &str) -> Mapping {
        self.look(|table| table.resource(group, resource)).await
    }

    /// Everything that lives in namespaces, as discovery says now; or why it cannot say.
    pub async fn namespaced(&self) -> Result<Vec<Mapped>, String> {
        discover(&self.client).await?.namespaced().map_err(untold)
    }

    /// Everything that is served, as discovery says now; or why it cannot say.
    pub async fn everything(&self) -> Result<Vec<Mapped>, String> {
        discover(&self.client).await?.everything().map_err(untold)
    }

    async fn look(&self, find: impl Fn(&Table) -> Found) -> Mapping {
        let asked = Instant::now();
        if let Some(answer) = self.answer(&find, asked, false) {
            return answer;
        }
        let _reading = self.reading.lock().await;
        if let Some(answer) = self.answer(&find, asked, true) {
            return answer;
        }
        let outdated = {
            let mut state = self.lock();
            state.read = Some(Instant::now());
            // Who says so from here on may know more than what is about to be read.
            std::mem::take(&mut state.outdated)
        };
        let read = discover(&self.client).await;
        let mut state = self.lock();
        match read {
            Ok(table) => {
                state.table = Some(Arc::new(table));
                state.failure = None;
            }
            Err(message) => {
                state.failure = Some(message);
                state.outdated |= outdated;
            }
        }
        conclude(&state, &find)
    }

    /// An answer that needs no reading. `waited`: a reading that began after `asked` is as good.
    fn answer(
        &self,
        find: &impl Fn(&Table) -> Found,
        asked: Instant,
        waited: bool,
    ) -> Option<Mapping> {
        let state = self.lock();
        // The first reading may be under way; there is nothing to answer from before it ended.
        if state.table.is_none() && state.failure.is_none() {
            return None;
        }
        let answer = conclude(&state, find);
        let recent =
            state.read.is_some_and(|read| read.elapsed() < REST || (waited && read >= asked));
        let rests = recent && (!state.outdated || state.failure.is_some());
        let known = matches!(answer, Mapping::Mapped(_)) && !state.outdated;
        (known || rests).then_some(answer)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn conclude(state: &State, find: &impl Fn(&Table) -> Found) -> Mapping {
    let found = state.table.as_ref().map(|table| find(table));
    match (found, &state.failure) {
        (Some(Found::Mapped(mapped)), _) => Mapping::Mapped(mapped),
        (_, Some(message)) => Mapping::Unknown(message.clone()),
        (Some(Found::Nothing), None) => Mapping::NoSuchKind,
        (Some(Found::Stale(group)), None) => {
            Mapping::Unknown(format!("the server cannot tell now what it serves in group {group}"))
        }
        (None, None) => Mapping::Unknown("discovery was not read yet".to_owned()),
    }
}

/// Newest first; a server that knows neither aggregated form answers with the plain one.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                          application/json";
const PLAIN: &str = "application/json";
/// How many groups are asked at the same time where each must be asked alone.
const AT_ONCE: usize = 8;

async fn discover(client: &Client) -> Result<Table, String> {
    let mut table = Table::default();
    let mut alone = Vec::new();
    for root in ["/api", "/apis"] {
        let answer = get(client, root, AGGREGATED).await?;
        alone.extend(
            table
                .read(&answer.body)
                .map_err(|error| format!("what {root} answered was not understood: {error}"))?,
        );
    }
    let asked = alone.into_iter().map(async |(group, version)| {
        let read = match path::version(&group, &version) {
            Ok(path) => get(client, &path, PLAIN).await,
            Err(error) => Err(error.to_string()),
        };
        (group, version, read)
    });
    let mut answers = futures::stream::iter(asked).buffer_unordered(AT_ONCE);
    while let Some((group, version, read)) = answers.next().await {
        let understood = read
            .ok()
            .is_some_and(|answer| table.read_version(&group, &version, &answer.body).is_ok());
        if !understood {
            table.mark_stale(&group, &version);
        }
    }
    Ok(table)
}

async fn get(client: &Client, path: &str, accept: &str) -> Result<Answer, String> {
    let request = Request::get(path)
        .header(header::ACCEPT, accept)
        .body(Vec::new())
        .map_err(|error| error.to_string())?;
    match wire::exchange(client, request, wire::PATIENCE).await {
        Ok(answer) if answer.is_success() => Ok(answer),
        Ok(answer) => Err(format!("{path}: {}", crate::status::Status::of(&answer).message)),
        Err(silence) => Err(format!("{path}: {}", silence.message())),
    }
}
