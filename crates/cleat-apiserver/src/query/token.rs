//! The continue token of a list in pages: opaque to clients, in the form of kube-apiserver.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::gojson;

/// Where a list goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinueToken {
    /// The revision all pages of the list are taken at; -1 for «whatever is current».
    pub revision: i64,
    /// The first key not yet listed, without the prefix common to the whole list.
    pub start: String,
}

/// A token that is none of ours; the text is the message of a bad request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("continue key is not valid{0}")]
pub struct TokenError(String);

#[derive(Serialize, Deserialize)]
struct Wire {
    #[serde(rename = "v", default)]
    version: String,
    #[serde(rename = "rv", default)]
    revision: i64,
    #[serde(rename = "start", default)]
    start: String,
}

const VERSION: &str = "meta.k8s.io/v1";

impl ContinueToken {
    pub fn encode(&self) -> String {
        let wire = Wire {
            version: VERSION.to_owned(),
            revision: self.revision,
            start: self.start.clone(),
        };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&wire).unwrap_or_default())
    }

    /// A start key that would climb out of the list's prefix is refused.
    pub fn decode(text: &str) -> Result<Self, TokenError> {
        let bytes = URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|_| TokenError(": illegal base64 data at input byte 0".to_owned()))?;
        let wire: Wire = serde_json::from_slice(&bytes)
            .map_err(|error| TokenError(format!(": {}", gojson::json_error(&bytes, &error))))?;
        if wire.version != VERSION {
            let version = wire.version;
            return Err(TokenError(format!(
                ": server does not recognize this encoded version {version}"
            )));
        }
        if wire.revision == 0 {
            return Err(TokenError(format!(
                ": incorrect encoded start resourceVersion (version {VERSION})"
            )));
        }
        if wire.start.is_empty() {
            return Err(TokenError(format!(": encoded start key empty (version {VERSION})")));
        }
        let key = wire.start.strip_prefix('/').unwrap_or(&wire.start);
        if key.is_empty() || key.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(TokenError(format!(": {}", wire.start)));
        }
        Ok(Self { revision: wire.revision, start: wire.start })
    }
}
