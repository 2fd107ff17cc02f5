//! The events of one request, from its arrival to its end.

use std::sync::Arc;

use http::header;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::policy::{Extent, Level, Stage};
use super::{Audit, Notes, Receipt};
use crate::admission::PATCH_NOTES;
use crate::clock::Clock;
use crate::http::Asked;
use crate::object;
use crate::path::RequestInfo;
use crate::rules::time;
use crate::status::Status;
use crate::user::User;

/// One request that is logged.
///
/// *Guarantees*: its end is written, whatever happens; that of a request whose client went away says
/// so.
pub(crate) struct Record {
    audit: Audit,
    clock: Clock,
    extent: Extent,
    notes: Arc<Notes>,
    id: String,
    /// What was asked for carries tokens, whatever the bodies say that they are.
    of_tokens: bool,
    /// What every event of the request says.
    event: Map<String, Value>,
    ended: bool,
}

impl Record {
    /// Notes the arrival of a request, unless the policy leaves it out. `user` is `None` when nobody
    /// could be made out; `address` when it came without a socket.
    pub(crate) async fn begin(
        audit: &Audit,
        clock: &Clock,
        asked: &Asked,
        user: Option<&User>,
        address: Option<String>,
    ) -> Option<Self> {
        let extent = audit.policy.extent(user, &asked.info);
        if extent.level == Level::None {
            return None;
        }
        // Whoever passes a request on may have named it already.
        let given = asked.headers.get("audit-id").and_then(|id| id.to_str().ok());
        let id = match given.filter(|id| !id.is_empty() && id.len() <= 64) {
            Some(id) => id.to_owned(),
            None => Uuid::new_v4().to_string(),
        };
        let mut event = Map::new();
        let mut put = |key: &str, value: Value| event.insert(key.to_owned(), value);
        put("requestURI", asked.uri.clone().into());
        put("verb", (&*asked.info.verb).into());
        put("user", user.map_or_else(|| json!({}), User::to_json));
        if let Some(address) = address {
            put("sourceIPs", json!([address]));
        }
        let agent = asked.header(header::USER_AGENT);
        if !agent.is_empty() {
            put("userAgent", agent.into());
        }
        if asked.info.is_resource {
            put("objectRef", object_ref(asked));
        }
        put("requestReceivedTimestamp", micros(clock.now()));
        let record = Self {
            audit: audit.clone(),
            clock: clock.clone(),
            extent,
            notes: Arc::clone(&asked.notes),
            id,
            of_tokens: of_tokens(&asked.info),
            event,
            ended: false,
        };
        record.write(Stage::RequestReceived).await;
        Some(record)
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn impersonated(&mut self, user: &User) {
        self.event.insert("impersonatedUser".to_owned(), user.to_json());
    }

    /// Takes in the body of the request, and what it says about which object is meant.
    pub(crate) fn received(&mut self, asked: &Asked) {
        if !asked.info.is_resource || asked.body.is_empty() {
            return;
        }
        let Some(body) = readable(&asked.body) else { return };
        if matches!(&*asked.info.verb, "create" | "update")
            && let Some(reference) = self.event.get_mut("objectRef").and_then(Value::as_object_mut)
        {
            for (key, value) in [
                ("name", object::name(&body)),
                ("namespace", object::namespace(&body)),
                ("uid", object::uid(&body)),
                ("resourceVersion", object::resource_version(&body)),
            ] {
                if !value.is_empty() && !reference.contains_key(key) {
                    reference.insert(key.to_owned(), value.into());
                }
            }
        }
        if self.extent.level >= Level::Request {
            let body = self.shown(body);
            self.event.insert("requestObject".to_owned(), body);
        }
    }

    /// Whether it has to be shown what is answered.
    pub(crate) fn wants_answer(&self) -> bool {
        self.extent.level >= Level::RequestResponse && self.event.contains_key("objectRef")
    }

    /// The answer of a request that lasts has begun.
    pub(crate) async fn started(&mut self, code: u16) {
        self.answered(code, None);
        self.write(Stage::ResponseStarted).await;
    }

    /// The request was answered.
    pub(crate) async fn end(mut self, code: u16, refusal: Option<&Status>, body: Option<&[u8]>) {
        self.answered(code, refusal);
        if let Some(body) = body.and_then(readable) {
            let body = self.shown(body);
            self.event.insert("responseObject".to_owned(), body);
        }
        self.ended = true;
        self.write(Stage::ResponseComplete).await;
    }

    /// The stream that answered it has ended.
    pub(crate) fn streamed(mut self) {
        self.ended = true;
        drop(self.write(Stage::ResponseComplete));
    }

    fn answered(&mut self, code: u16, refusal: Option<&Status>) {
        let mut status = json!({ "metadata": {}, "code": code });
        if let (Some(refusal), Some(status)) =
            (refusal.map(Status::to_json), status.as_object_mut())
        {
            for key in ["status", "message", "reason", "details"] {
                if let Some(value) = refusal.get(key) {
                    status.insert(key.to_owned(), value.clone());
                }
            }
        }
        self.event.insert("responseStatus".to_owned(), status);
    }

    /// An object as the policy wants to see it.
    fn shown(&self, mut object: Value) -> Value {
        if self.extent.omit_managed_fields {
            forget_managers(&mut object);
            let items = object.get_mut("items").and_then(Value::as_array_mut);
            items.into_iter().flatten().for_each(forget_managers);
        }
        hide_tokens(&mut object, self.of_tokens);
        object
    }

    fn write(&self, stage: Stage) -> Receipt {
        if self.extent.omitted.contains(&stage) {
            return Receipt::given();
        }
        let mut event = self.event.clone();
        let mut put = |key: &str, value: Value| event.insert(key.to_owned(), value);
        put("kind", "Event".into());
        put("apiVersion", "audit.k8s.io/v1".into());
        put("level", format!("{:?}", self.extent.level).into());
        put("auditID", self.id.clone().into());
        put("stage", stage.as_str().into());
        put("stageTimestamp", micros(self.clock.now()));
        let mut annotations = self.notes.all();
        // Patches are parts of objects, and logged with these or not at all.
        annotations
            .retain(|key, _| self.extent.level >= Level::Request || !key.starts_with(PATCH_NOTES));
        if !annotations.is_empty() {
            put("annotations", json!(annotations));
        }
        self.audit.write(&Value::Object(event))
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let why = "the client went away; whether the request was carried out is not known";
        let gone = Status::new(499, "", why);
        self.answered(gone.code, Some(&gone));
        drop(self.write(Stage::ResponseComplete));
    }
}

fn object_ref(asked: &Asked) -> Value {
    let info = &asked.info;
    let mut reference = Map::new();
    for (key, value) in [
        ("resource", &info.resource),
        ("namespace", &info.namespace),
        ("name", &info.name),
        ("apiGroup", &info.group),
        ("apiVersion", &info.version),
        ("subresource", &info.subresource),
    ] {
        if !value.is_empty() {
            reference.insert(key.to_owned(), value.clone().into());
        }
    }
    Value::Object(reference)
}

/// A body as JSON. One that is neither JSON nor YAML is not shown.
fn readable(body: &[u8]) -> Option<Value> {
    if let Ok(value) = serde_json::from_slice(body) {
        return Some(value);
    }
    let text = str::from_utf8(body).ok()?;
    let value: Value = serde_saphyr::from_str(text).ok()?;
    (value.is_object() || value.is_array()).then_some(value)
}

fn forget_managers(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Whether a request is about a token: to have one checked, or to be given one.
pub(super) fn of_tokens(info: &RequestInfo) -> bool {
    matches!(
        (&*info.group, &*info.resource, &*info.subresource),
        ("authentication.k8s.io", "tokenreviews", _) | ("", "serviceaccounts", "token")
    )
}

/// Whoever reads a log must not be able to act as whom it tells of, whatever its policy says. A body
/// need not say of which kind it is where the path does, and one that does may have come to the wrong
/// path.
pub(super) fn hide_tokens(object: &mut Value, of_tokens: bool) {
    let kind = object.get("kind").and_then(Value::as_str);
    if !of_tokens && !matches!(kind, Some("TokenRequest" | "TokenReview")) {
        return;
    }
    for part in ["spec", "status"] {
        if let Some(token) = object.get_mut(part).and_then(|part| part.get_mut("token")) {
            *token = "(not logged)".into();
        }
    }
}

fn micros(time: Timestamp) -> Value {
    time::micros(time).into()
}
