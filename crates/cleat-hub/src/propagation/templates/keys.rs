//! The keys with which values travel to a cluster encrypted. They live in a secret in the cluster's
//! namespace, which the agent reads as well.

use cleat_api::policy::name::ENCRYPTION_KEY_SECRET;
use cleat_core::id::{Id, Target};
use cleat_template::Keys;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta, PostParams};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::Templates;

/// Keeps the secret in backups of the hub.
const BACKUP: (&str, &str) = ("cluster.open-cluster-management.io/backup", "policy");

const KEY: usize = 32;
const VECTOR: usize = 16;

impl Templates {
    /// The keys of a cluster, made if there are none, and the base64 of the vector.
    pub(super) async fn keys(
        &self,
        cluster: &str,
        iv: Option<String>,
    ) -> Result<(Keys, String), String> {
        let secrets: Api<Secret> = Api::namespaced(self.hub_client.clone(), cluster);
        let said = |error: kube::Error| format!("the key of cluster {cluster}: {error}");
        let found = match secrets.get_opt(ENCRYPTION_KEY_SECRET).await.map_err(said)? {
            Some(found) => found,
            None => match secrets.create(&PostParams::default(), &fresh()?).await {
                Ok(made) => made,
                // Somebody else was first, and theirs is as good.
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    secrets.get(ENCRYPTION_KEY_SECRET).await.map_err(said)?
                }
                Err(error) => return Err(said(error)),
            },
        };
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
    let metadata = ObjectMeta {
        name: Some(ENCRYPTION_KEY_SECRET.to_owned()),
        labels: Some([(BACKUP.0.to_owned(), BACKUP.1.to_owned())].into()),
        ..ObjectMeta::default()
    };
    let data = Some([("key".to_owned(), key)].into());
    Ok(Secret { metadata, data, ..Secret::default() })
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
