//! The keys with which values travel to a cluster encrypted. They live in a secret in the cluster's
//! namespace, which the agent reads as well.

use cleat_api::policy::name::{ENCRYPTION_KEY_SECRET, LAST_ROTATED};
use cleat_core::id::{Id, Target};
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runtime::execute::{Asking, Read};
use cleat_template::Keys;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::Value;

use super::{Purpose, Resolver};

/// Keeps the secret in backups of the hub.
const BACKUP: (&str, &str) = ("cluster.open-cluster-management.io/backup", "policy");

const KEY: usize = 32;
const VECTOR: usize = 16;

impl Resolver {
    /// The keys of a cluster, made if there are none, and the base64 of the vector.
    pub(super) async fn keys(
        &self,
        cluster: &str,
        iv: Option<String>,
    ) -> Result<(Keys, String), String> {
        let said = |why: &str| format!("the key of cluster {cluster}: {why}");
        let target = target(cluster);
        let found = match self.executor.read(Side::Hub, &target).await {
            Read::Present(found) => found,
            Read::Absent if self.purpose == Purpose::Show => {
                return Err(said("it is not made yet"));
            }
            Read::Absent => self.make(&target).await.map_err(|why| said(&why))?,
            Read::NoSuchKind => return Err(said("the hub serves no secrets")),
            Read::Unknown { message } => return Err(said(&message)),
        };
        let found: Secret = serde_json::from_value(found).map_err(|e| said(&e.to_string()))?;
        let data = found.data.unwrap_or_default();
        let bytes = |name: &str| data.get(name).map(|ByteString(bytes)| bytes.clone());
        let previous = bytes("previousKey").filter(|bytes| !bytes.is_empty());
        let (vector, text) = match iv.and_then(|text| Some((decoded(&text)?, text))) {
            Some(kept) => kept,
            None => {
                let vector = random::<VECTOR>()?.to_vec();
                let text = encoded(&vector);
                (vector, text)
            }
        };
        let keys = Keys { key: bytes("key").unwrap_or_default(), previous, iv: vector };
        Ok((keys, text))
    }
}

impl Resolver {
    async fn make(&self, target: &Target) -> Result<Value, String> {
        let secret = serde_json::to_value(fresh()?).map_err(|error| error.to_string())?;
        let (side, write) = (Side::Hub, Write::Create(secret));
        let action = Action { side, target: target.clone(), write };
        match self.executor.perform(&action, &Asking::default()).await {
            Outcome::Done(made) => Ok(made),
            // Somebody else was first, and theirs is as good.
            Outcome::AlreadyExists => match self.executor.read(side, target).await {
                Read::Present(theirs) => Ok(theirs),
                other => Err(format!("it was there and cannot be read: {other:?}")),
            },
            Outcome::Refused(refusal) => Err(refusal.message),
            Outcome::Lost(message) => Err(message),
            other => Err(format!("{other:?}")),
        }
    }
}

pub(super) fn target(cluster: &str) -> Target {
    let id = Id {
        group: String::new(),
        resource: "secrets".to_owned(),
        namespace: cluster.to_owned(),
        name: ENCRYPTION_KEY_SECRET.to_owned(),
    };
    Target { version: "v1".to_owned(), id }
}

fn fresh() -> Result<Secret, String> {
    let key = ByteString(random::<KEY>()?.to_vec());
    let now = jiff::Timestamp::now();
    let now = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    let metadata = ObjectMeta {
        name: Some(ENCRYPTION_KEY_SECRET.to_owned()),
        labels: Some([(BACKUP.0.to_owned(), BACKUP.1.to_owned())].into()),
        annotations: Some([(LAST_ROTATED.to_owned(), now)].into()),
        ..ObjectMeta::default()
    };
    let data = Some([("key".to_owned(), key)].into());
    Ok(Secret { metadata, data, ..Secret::default() })
}

/// The base64 of a key that nobody has.
pub(in crate::propagation) fn fresh_key() -> Result<String, String> {
    Ok(encoded(&random::<KEY>()?))
}

fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| "the system has no random numbers".to_owned())?;
    Ok(bytes)
}

/// A `ByteString` is base64 wherever it is JSON.
fn encoded(bytes: &[u8]) -> String {
    let text = serde_json::to_value(ByteString(bytes.to_vec())).unwrap_or_default();
    text.as_str().unwrap_or_default().to_owned()
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let ByteString(bytes) = serde_json::from_value(text.into()).ok()?;
    (bytes.len() == VECTOR).then_some(bytes)
}
