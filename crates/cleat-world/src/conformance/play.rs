//! Plays one case against one server and gives the masked answers.
//!
//! A step that cannot be played (a value from an earlier answer is missing, the server does not
//! answer) has an answer that says so; the next steps are still tried, so that one difference does
//! not hide the others.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::Answers;
use super::case::{Action, Case, Namespace, Shared, Step, Who};
use super::mask::Mask;
use super::select;
use super::template::Names;
use super::watch::Watch;
use super::webhook::Webhooks;
use crate::server::{Body, Caller, Server};

/// The headers that are part of an answer.
const HEADERS: [&str; 7] = [
    "allow",
    "cache-control",
    "content-type",
    "location",
    "retry-after",
    "warning",
    "www-authenticate",
];

/// How long a server may say nothing at all.
const SILENCE: Duration = Duration::from_secs(60);

/// What a case is played on.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) server: &'a dyn Server,
    pub(crate) webhooks: &'a Webhooks,
    /// How long a condition may take to hold, or an event to arrive, unless the step says otherwise.
    pub(crate) patience: Duration,
    /// What a beginning that many cases share was made unique with: masked as a case's own id is.
    pub(crate) group: Option<&'a str>,
    /// The server ends with the run: what cases made there may stay.
    pub(crate) fleeting: bool,
}

/// Plays `case`; `id` is what its names are made unique with.
pub(crate) async fn play(
    case: &Case,
    shared: &BTreeMap<String, Shared>,
    ground: Ground<'_>,
    id: &str,
) -> Result<Answers> {
    let mut stage = Stage::new(ground, id);
    let mut cleanup: Vec<&String> = case.cleanup.iter().collect();
    let played = async {
        if case.namespace == Namespace::Fresh {
            stage.create_namespace().await.context("create the case's namespace")?;
        }
        // Shared beginnings may use what the case sets, such as a schema.
        stage.let_values(&case.values)?;
        let mut answers = Answers::new();
        for name in &case.before {
            let Some(beginning) = shared.get(name) else { continue };
            cleanup.extend(&beginning.cleanup);
            stage.let_values(&beginning.values)?;
            for (index, step) in beginning.steps.iter().enumerate() {
                let answer = stage.step(step, index).await;
                if in_vain(&answer) {
                    answers.push((format!("{name} {}", step.label(index)), answer));
                }
            }
        }
        let mut fixed = vec![
            (ground.webhooks.authority().to_owned(), "(ca)"),
            (id.to_owned(), "(id)"),
            (BASE64.encode(namespace(id)), "(ns in base64)"),
        ];
        fixed.extend(ground.group.map(|group| (group.to_owned(), "(id)")));
        let mut mask = Mask::new(fixed);
        for (index, step) in case.steps.iter().enumerate() {
            let answer = select::compared(step, stage.step(step, index).await);
            if step.silent && !in_vain(&answer) {
                continue;
            }
            let label = step.label(index);
            let prefix = step.body.as_ref().and_then(|body| body.pointer("/metadata/generateName"));
            if let Some(prefix) = prefix.and_then(Value::as_str) {
                mask.expect_generated(prefix);
            }
            let answer = mask.answer(&label, &answer);
            answers.push((label, answer));
        }
        Ok(answers)
    }
    .await;
    stage.watches.clear();
    if !ground.fleeting {
        stage.clean_up(case.namespace, &cleanup).await;
    }
    played
}

/// Plays a beginning once for many cases; what it made stays until [`undo`].
pub(crate) async fn begin(beginning: &Shared, ground: Ground<'_>, id: &str) -> Result<()> {
    let mut stage = Stage::new(ground, id);
    stage.let_values(&beginning.values)?;
    for (index, step) in beginning.steps.iter().enumerate() {
        let answer = stage.step(step, index).await;
        if in_vain(&answer) {
            bail!("step {} of the beginning: {answer}", step.label(index));
        }
    }
    Ok(())
}

/// Deletes what [`begin`] made under this id.
pub(crate) async fn undo(beginning: &Shared, ground: Ground<'_>, id: &str) -> Result<()> {
    let mut stage = Stage::new(ground, id);
    stage.let_values(&beginning.values)?;
    let paths: Vec<&String> = beginning.cleanup.iter().collect();
    stage.clean_up(Namespace::None, &paths).await;
    Ok(())
}

fn namespace(id: &str) -> String {
    format!("ns-{id}")
}

struct Stage<'a> {
    ground: Ground<'a>,
    id: &'a str,
    names: Names,
    watches: BTreeMap<String, Watch>,
}

impl<'a> Stage<'a> {
    fn new(ground: Ground<'a>, id: &'a str) -> Self {
        let mut names = Names::default();
        let namespace = namespace(id);
        for (name, text) in [
            ("id", id.to_owned()),
            ("webhook", ground.webhooks.url(id)),
            ("ca", ground.webhooks.authority().to_owned()),
            ("core", format!("/api/v1/namespaces/{namespace}")),
            ("apps", format!("/apis/apps/v1/namespaces/{namespace}")),
            ("ns", namespace),
        ] {
            names.set(name, json!(text));
        }
        Self { ground, id, names, watches: BTreeMap::new() }
    }

    fn let_values(&mut self, values: &BTreeMap<String, Value>) -> Result<()> {
        for (name, value) in values {
            let value = self.names.fill_value(value).with_context(|| format!("let {name}"))?;
            self.names.set(name, value);
        }
        Ok(())
    }

    async fn create_namespace(&mut self) -> Result<()> {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "<ns>"}});
        let create = Step {
            post: Some("/api/v1/namespaces".to_owned()),
            body: Some(body),
            ..Step::default()
        };
        let answer = self.step(&create, 0).await;
        if answer.get("code") != Some(&json!(201)) {
            bail!("the server says {answer}");
        }
        for path in ["<core>/serviceaccounts/default", "<core>/configmaps/kube-root-ca.crt"] {
            let wait = Step {
                get: Some(path.to_owned()),
                until: Some([("/code".to_owned(), json!(200))].into()),
                ..Step::default()
            };
            let answer = self.step(&wait, 0).await;
            if answer.get("code") != Some(&json!(200)) {
                bail!("{path} does not appear: {answer}");
            }
        }
        Ok(())
    }

    async fn clean_up(&mut self, namespace: Namespace, paths: &[&String]) {
        let namespace = (namespace == Namespace::Fresh).then_some("/api/v1/namespaces/<ns>");
        for path in paths.iter().map(|path| path.as_str()).chain(namespace) {
            let delete = Step { delete: Some(path.to_owned()), ..Step::default() };
            // What the case made may be gone already.
            self.step(&delete, 0).await;
        }
    }

    async fn step(&mut self, step: &Step, index: usize) -> Value {
        let answer = match self.act(step, index).await {
            Ok(answer) => answer,
            Err(error) => json!({"not played": format!("{error:#}")}),
        };
        if let Some(name) = &step.name {
            let seen = ["body", "events"].iter().find_map(|field| answer.get(field));
            self.names.set(name, seen.cloned().unwrap_or_default());
        }
        answer
    }

    async fn act(&mut self, step: &Step, index: usize) -> Result<Value> {
        match step.action()? {
            Action::Send { method, path } => self.send_until(step, method, path).await,
            Action::Watch { path } => {
                let response = self.send(step, "GET", path).await?;
                if response.status() != http::StatusCode::OK {
                    return whole(response).await;
                }
                let (head, body) = response.into_parts();
                self.watches.insert(step.label(index), Watch::new(body));
                Ok(json!({"code": 200, "headers": headers(&head.headers)}))
            }
            Action::Collect { watch } => {
                let until = step.until.as_ref().map(|until| self.fill(until)).transpose()?;
                let watch = self.watches.get_mut(watch).context("no such watch is open")?;
                let patience = step.within.map_or(self.ground.patience, Duration::from_secs);
                watch.collect(step.events, until.as_ref(), step.bookmarks, patience).await
            }
            Action::Webhooks { path } => {
                Ok(json!({"events": self.ground.webhooks.asked(self.id, path)}))
            }
        }
    }

    async fn send_until(&self, step: &Step, method: &str, path: &str) -> Result<Value> {
        let Some(until) = &step.until else {
            return whole(self.send(step, method, path).await?).await;
        };
        let until = self.fill(until)?;
        let deadline =
            Instant::now() + step.within.map_or(self.ground.patience, Duration::from_secs);
        let mut pause = Duration::from_millis(20);
        loop {
            let mut answer = whole(self.send(step, method, path).await?).await?;
            if holds(&until, &answer) {
                return Ok(answer);
            }
            if Instant::now() > deadline {
                if let Value::Object(fields) = &mut answer {
                    fields.insert("until".to_owned(), json!("did not hold in time"));
                }
                return Ok(answer);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(300));
        }
    }

    fn fill(&self, until: &BTreeMap<String, Value>) -> Result<BTreeMap<String, Value>> {
        until.iter().map(|(at, value)| Ok((at.clone(), self.names.fill_value(value)?))).collect()
    }

    async fn send(&self, step: &Step, method: &str, path: &str) -> Result<Response<Body>> {
        let (caller, request) = self.request(step, method, path)?;
        timeout(SILENCE, self.ground.server.send(caller, request))
            .await
            .context("the server does not answer")?
    }

    fn request(&self, step: &Step, method: &str, path: &str) -> Result<(Caller, Request<Bytes>)> {
        let path = self.names.fill(path)?;
        let mut request = Request::builder().method(method).uri(path);
        let body = match (&step.body, &step.raw, &step.base64) {
            (Some(body), None, None) => self.names.fill_value(body)?.to_string().into(),
            (None, Some(raw), None) => self.names.fill(raw)?.repeat(step.times.unwrap_or(1)).into(),
            (None, None, Some(base64)) => {
                let text: String = base64.split_whitespace().collect();
                BASE64.decode(text).context("decode the step's base64")?.into()
            }
            (None, None, None) => Bytes::new(),
            _ => bail!("a step must have at most one of body, raw, base64"),
        };
        let media = match step.media.as_deref() {
            None if body.is_empty() => None,
            None | Some("json") => Some("application/json"),
            Some("yaml") => Some("application/yaml"),
            Some("merge") => Some("application/merge-patch+json"),
            Some("strategic") => Some("application/strategic-merge-patch+json"),
            Some("json-patch") => Some("application/json-patch+json"),
            Some("apply") => Some("application/apply-patch+yaml"),
            Some("protobuf") => Some("application/vnd.kubernetes.protobuf"),
            Some(other) => Some(other),
        };
        let mut fields = HeaderMap::new();
        fields.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        // The default manager of fields is named after the part before the slash.
        fields.insert(header::USER_AGENT, HeaderValue::from_static("conformance/1"));
        if let Some(media) = media {
            fields.insert(header::CONTENT_TYPE, media.parse().context("read the media type")?);
        }
        let caller = self.identify(&step.who, &mut fields)?;
        for (name, value) in &step.headers {
            let name: HeaderName = name.parse().context("read a header's name")?;
            let value = self.names.fill(value)?;
            fields.insert(name, value.parse().context("read a header's value")?);
        }
        if let Some(headers) = request.headers_mut() {
            *headers = fields;
        }
        Ok((caller, request.body(body).context("make the request")?))
    }

    fn identify(&self, who: &Who, headers: &mut HeaderMap) -> Result<Caller> {
        let mut add = |name: &'static str, text: &str| {
            let value = self.names.fill(text)?.parse().context("read an identity")?;
            headers.append(name, value);
            Ok::<_, anyhow::Error>(())
        };
        match who {
            Who::Name(name) if name == "admin" => Ok(Caller::Admin),
            Who::Name(name) if name == "nobody" => Ok(Caller::Nobody),
            Who::Name(name) => {
                add("impersonate-user", name)?;
                Ok(Caller::Admin)
            }
            Who::Impersonated { user, groups } => {
                add("impersonate-user", user)?;
                for group in groups {
                    add("impersonate-group", group)?;
                }
                Ok(Caller::Admin)
            }
            Who::Token { token } => {
                add("authorization", &format!("Bearer {token}"))?;
                Ok(Caller::Nobody)
            }
        }
    }
}

/// Whether a step could not be played or waited for nothing, which is never silent.
fn in_vain(answer: &Value) -> bool {
    ["not played", "until", "late"].iter().any(|trouble| answer.get(trouble).is_some())
}

/// Whether all conditions hold; null means absent, `*` present with any value.
pub(crate) fn holds(until: &BTreeMap<String, Value>, answer: &Value) -> bool {
    until.iter().all(|(at, wanted)| match (answer.pointer(at), wanted) {
        (found, Value::Null) => found.is_none_or(Value::is_null),
        (Some(_), Value::String(any)) if any == "*" => true,
        (found, wanted) => found == Some(wanted),
    })
}

/// The whole answer as one value.
async fn whole(response: Response<Body>) -> Result<Value> {
    let (head, body) = response.into_parts();
    let body = timeout(SILENCE, body.collect())
        .await
        .context("the answer does not end")?
        .context("read the answer")?
        .to_bytes();
    let media = head.headers.get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok());
    Ok(json!({
        "code": head.status.as_u16(),
        "headers": headers(&head.headers),
        "body": value(media.unwrap_or_default(), &body),
    }))
}

fn value(media: &str, body: &[u8]) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    if media.starts_with("application/vnd.kubernetes.protobuf") {
        return json!({"protobuf": body.starts_with(b"k8s\0")});
    }
    if media.starts_with("application/json") {
        // A watch that ended: several objects.
        let objects: Result<Vec<Value>, _> =
            serde_json::Deserializer::from_slice(body).into_iter().collect();
        match objects.map(|mut objects| (objects.pop(), objects)) {
            Ok((Some(only), before)) if before.is_empty() => return only,
            Ok((Some(last), mut before)) => {
                before.push(last);
                return Value::Array(before);
            }
            _ => {}
        }
    }
    Value::String(String::from_utf8_lossy(body).into_owned())
}

fn headers(found: &HeaderMap) -> Value {
    let mut shown = serde_json::Map::new();
    for name in HEADERS {
        let mut values = found
            .get_all(name)
            .iter()
            .map(|value| Value::String(String::from_utf8_lossy(value.as_bytes()).into_owned()));
        if let Some(first) = values.next() {
            let rest: Vec<Value> = values.collect();
            let value = if rest.is_empty() {
                first
            } else {
                Value::Array(std::iter::once(first).chain(rest).collect())
            };
            shown.insert(name.to_owned(), value);
        }
    }
    Value::Object(shown)
}
