//! Joining: from a bootstrap token to a certificate of the cluster's own.
//!
//! It asks; whether it is let in, people decide on the hub. Every step can be repeated: what an
//! earlier attempt made is found and used.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cleat_api::managedcluster::{CLUSTER_NAME_LABEL, ManagedCluster, condition, reason};
use cleat_core::condition::find;
use cleat_core::id::{Id, Target};
use cleat_core::registration::agent::{self, Application};
use cleat_core::registration::identity::{Agent, SIGNER, is_cluster_name};
use cleat_core::registration::{hub, join};
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runtime::execute::{Executor, Read};
use serde_json::{Value, json};

use super::keep::Pending;
use super::keys::Asked;
use super::{Credentials, Error, HubAddress, Keep, cluster_id, keys};

/// How often to look whether somebody has decided.
const PAUSE: Duration = Duration::from_secs(1);

/// What is needed to join.
pub struct Enrolment {
    /// Its hub side uses the bootstrap token, its cluster side whatever may keep credentials.
    pub executor: Executor,
    pub hub: HubAddress,
    pub application: Application,
    /// The agent's name, which tells several agents of one cluster apart.
    pub agent: String,
    pub keep: Keep,
    /// Join again under the same name.
    pub again: bool,
    /// How long the certificate is to last; without it the hub decides.
    pub lifetime_seconds: Option<i32>,
}

/// What is worth telling whoever waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The hub knows that the cluster wants to join.
    Applied,
    /// A person on the hub has to accept; this is what they should see.
    Waiting {
        request: String,
        fingerprint: String,
    },
    Accepted,
}

/// Joins, and returns when the credentials are kept. It waits as long as nobody has decided.
pub async fn enrol(
    enrolment: &Enrolment,
    mut news: impl FnMut(News) + Send,
) -> Result<Credentials, Error> {
    let Enrolment { executor, hub, application, agent, keep, again, lifetime_seconds } = enrolment;
    let name = &application.name;
    if check(enrolment).await? == Place::Free {
        match executor
            .execute(vec![vec![agent::apply(application)]])
            .await
            .into_iter()
            .flatten()
            .next()
        {
            Some(Outcome::Done(_)) => {}
            // Somebody was faster, perhaps for another cluster.
            Some(Outcome::AlreadyExists) => {
                check(enrolment).await?;
            }
            Some(Outcome::Refused(refusal)) => return Err(Error::RefusedByHub(refusal.message)),
            Some(Outcome::Lost(message)) => return Err(no_answer("ask to join", message)),
            other => return Err(no_answer("ask to join", unserved(&other))),
        }
    }
    news(News::Applied);
    let pending = match keep.load_pending(executor).await? {
        Some(kept) if (&kept.cluster, &kept.server) == (name, &hub.server) => kept,
        _ => Pending::new(name, agent, &hub.server)?,
    };
    let agent = Agent::new(name, &pending.agent);
    let asked = keys::ask_again(&agent, &pending.key)?;
    let request = match standing_request(executor, &pending).await {
        Some(request) => request,
        None => {
            // Kept before it is asked for: whoever accepts should find one key, however often an
            // agent that waits is started anew.
            keep.save_pending(executor, &pending).await?;
            let request = submit(executor, &agent, &asked, *lifetime_seconds).await?;
            let pending = Pending { request: request.clone(), ..pending };
            keep.save_pending(executor, &pending).await?;
            request
        }
    };
    let fingerprint = asked.fingerprint.clone();
    news(News::Waiting { request: request.clone(), fingerprint });
    let mut pause = tokio::time::interval(PAUSE);
    let certificate = loop {
        pause.tick().await;
        if let Some(certificate) = issued(executor, &request).await? {
            break certificate;
        }
        let found = match cluster(executor, name).await {
            Ok(found) => found.ok_or_else(|| Error::Removed { name: name.clone() })?,
            // Nobody has decided just because one answer was lost.
            Err(Error::NoAnswer { message, .. }) => {
                tracing::debug!(message, "the cluster cannot be read");
                continue;
            }
            Err(error) => return Err(error),
        };
        // Who joins again may be on its way out, and needs new credentials to leave with.
        if found.metadata.deletion_timestamp.is_some() && !again {
            return Err(Error::Removed { name: name.clone() });
        }
        let conditions = found.status.iter().flat_map(|status| &status.conditions);
        let conditions: Vec<_> = conditions.cloned().collect();
        if let Some(accepted) = find(&conditions, condition::ACCEPTED)
            && accepted.reason == reason::REFUSED
        {
            return Err(Error::RefusedByHub(accepted.message.clone()));
        }
    };
    let (cluster, agent) = (agent.cluster, agent.agent);
    let credentials = Credentials { cluster, agent, hub: hub.clone(), certificate, key: asked.key };
    keep.save(executor, &credentials).await?;
    keep.forget_pending(executor).await?;
    news(News::Accepted);
    Ok(credentials)
}

/// Whether the hub has an object for the cluster already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Free,
    Prepared,
}

/// Whether this cluster may try to join: everything that can be refused before anything is written.
pub async fn check(enrolment: &Enrolment) -> Result<Place, Error> {
    let Enrolment { executor, hub, application, keep, again, .. } = enrolment;
    let kept = keep.load(executor).await?;
    let record = kept.map(|kept| join::Record { name: kept.cluster, hub: kept.hub.server });
    let hub_id = hub_id(executor).await;
    let wish = join::Wish {
        name: &application.name,
        cluster_id: &application.cluster_id,
        hub_id: hub_id.as_deref(),
        hub: &hub.server,
        again: *again,
    };
    let existing = match application.name.as_str() {
        name if is_cluster_name(name) => cluster(executor, name).await?,
        _ => None,
    };
    join::check(&wish, existing.as_ref(), record.as_ref())?;
    Ok(if existing.is_some() { Place::Prepared } else { Place::Free })
}

/// The request of an earlier attempt, unless it is gone or was denied.
async fn standing_request(executor: &Executor, pending: &Pending) -> Option<String> {
    let request = Some(&pending.request).filter(|request| !request.is_empty())?;
    issued(executor, request).await.is_ok().then(|| request.clone())
}

/// By what the hub is known, if it lets us know: a cluster must not join itself.
pub async fn hub_id(executor: &Executor) -> Option<String> {
    cluster_id(executor, Side::Hub).await.ok()
}

async fn cluster(executor: &Executor, name: &str) -> Result<Option<ManagedCluster>, Error> {
    let what = "look at the cluster on the hub";
    match executor.read(Side::Hub, &hub::target(name)).await {
        Read::Present(object) => serde_json::from_value(object)
            .map(Some)
            .map_err(|error| no_answer(what, error.to_string())),
        Read::Absent => Ok(None),
        Read::NoSuchKind => Err(no_answer(
            what,
            "it is no hub: it does not serve ManagedClusters. Run `cleat init` there".to_owned(),
        )),
        Read::Unknown { message } => Err(no_answer(what, message)),
    }
}

/// Asks for a certificate, and returns the name of the request.
pub(super) async fn submit(
    executor: &Executor,
    agent: &Agent,
    asked: &Asked,
    lifetime_seconds: Option<i32>,
) -> Result<String, Error> {
    let mut spec = json!({
        "request": BASE64.encode(&asked.request),
        "signerName": SIGNER,
        "usages": ["digital signature", "client auth"],
    });
    if let (Some(seconds), Some(spec)) = (lifetime_seconds, spec.as_object_mut()) {
        spec.insert("expirationSeconds".to_owned(), json!(seconds));
    }
    let object = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {
            "generateName": format!("{}-", agent.cluster),
            "labels": { CLUSTER_NAME_LABEL: agent.cluster },
        },
        "spec": spec,
    });
    let write = Write::Create(object);
    let action = Action { side: Side::Hub, target: request_target(String::new()), write };
    let what = "ask for a certificate";
    match executor.execute(vec![vec![action]]).await.into_iter().flatten().next() {
        Some(Outcome::Done(made)) => text(&made, "/metadata/name")
            .ok_or_else(|| no_answer(what, "the hub gave the request no name".to_owned())),
        Some(Outcome::Refused(refusal)) => Err(Error::RefusedByHub(refusal.message)),
        Some(Outcome::Lost(message)) => Err(no_answer(what, message)),
        other => Err(no_answer(what, unserved(&other))),
    }
}

/// The certificate, if it was issued by now.
pub(super) async fn issued(executor: &Executor, request: &str) -> Result<Option<String>, Error> {
    let object = match executor.read(Side::Hub, &request_target(request.to_owned())).await {
        Read::Present(object) => object,
        // Requests that nobody decides are cleaned away after a day.
        Read::Absent | Read::NoSuchKind => {
            let message = "it was removed before anybody decided; try again".to_owned();
            return Err(Error::Denied { name: request.to_owned(), message });
        }
        // The next look may see more.
        Read::Unknown { message } => {
            tracing::debug!(message, "the request cannot be read");
            return Ok(None);
        }
    };
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    for condition in conditions.into_iter().flatten() {
        if matches!(text(condition, "/type").as_deref(), Some("Denied" | "Failed")) {
            let message = text(condition, "/message").unwrap_or_default();
            return Err(Error::Denied { name: request.to_owned(), message });
        }
    }
    let Some(encoded) = text(&object, "/status/certificate") else { return Ok(None) };
    let certificate = BASE64.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    certificate.map(Some).ok_or_else(|| Error::BadCredentials("the certificate is not PEM".into()))
}

fn request_target(name: String) -> Target {
    let id = Id {
        group: "certificates.k8s.io".to_owned(),
        resource: "certificatesigningrequests".to_owned(),
        namespace: String::new(),
        name,
    };
    Target { version: "v1".to_owned(), id }
}

fn text(object: &Value, pointer: &str) -> Option<String> {
    object.pointer(pointer).and_then(Value::as_str).map(ToOwned::to_owned)
}

fn no_answer(what: &str, message: String) -> Error {
    Error::NoAnswer { what: what.to_owned(), message }
}

fn unserved(outcome: &Option<Outcome>) -> String {
    match outcome {
        Some(Outcome::NoSuchKind) => {
            "it is no hub: it does not serve what it needs. Run `cleat init` there".to_owned()
        }
        other => format!("{other:?}"),
    }
}
