//! JSON web tokens, as far as service accounts need them: compact, ES256, our own key.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
        UnparsedPublicKey,
    },
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Longer tokens are not looked at.
const MAX_TOKEN: usize = 64 << 10;

/// What precedes the point in the DER form of a P-256 public key.
const SPKI_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// The key that signs service account tokens, and that they are verified with.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    pem: String,
    id: String,
    random: SystemRandom,
}

/// A signing key could not be made or read.
#[derive(Debug, thiserror::Error)]
#[error("not a usable P-256 private key")]
pub struct SigningKeyError;

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SigningKey {
    pub fn generate() -> Result<Self, SigningKeyError> {
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256);
        Self::from_pem(&pair.map_err(|_| SigningKeyError)?.serialize_pem())
    }

    /// From PKCS #8, as [`Self::to_pem`] writes it.
    pub fn from_pem(pem: &str) -> Result<Self, SigningKeyError> {
        let der = rcgen::KeyPair::from_pem(pem).map_err(|_| SigningKeyError)?.serialize_der();
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, &random)
            .map_err(|_| SigningKeyError)?;
        let mut digest = Sha256::new();
        digest.update(SPKI_PREFIX);
        digest.update(pair.public_key().as_ref());
        let id = BASE64.encode(digest.finalize());
        Ok(Self { pair, pem: pem.to_owned(), id, random })
    }

    pub fn to_pem(&self) -> &str {
        &self.pem
    }

    pub(crate) fn sign(&self, claims: &Value) -> Result<String, SigningKeyError> {
        let header = json!({"alg": "ES256", "kid": self.id});
        let mut token =
            format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
        let signature =
            self.pair.sign(&self.random, token.as_bytes()).map_err(|_| SigningKeyError)?;
        token.push('.');
        token.push_str(&BASE64.encode(signature));
        Ok(token)
    }

    /// The claims, or what a TokenReview says is wrong.
    pub(crate) fn verify(&self, token: &str) -> Result<Value, String> {
        // In upstream's words, which are its library's.
        let bad = || "go-jose/go-jose: error in cryptographic primitive".to_owned();
        let (signed, signature) = token.rsplit_once('.').ok_or_else(bad)?;
        let (header, claims) = signed.split_once('.').ok_or_else(bad)?;
        let header: Value = decode(header).ok_or_else(bad)?;
        let kid = header.get("kid").and_then(Value::as_str).unwrap_or_default();
        if !kid.is_empty() && kid != self.id {
            return Err("invalid signature, no keys found".to_owned());
        }
        if header.get("alg").and_then(Value::as_str) != Some("ES256") {
            return Err(bad());
        }
        let signature = BASE64.decode(signature).map_err(|_| bad())?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key().as_ref())
            .verify(signed.as_bytes(), &signature)
            .map_err(|_| bad())?;
        decode(claims).ok_or_else(bad)
    }

    /// The public half as a JWK set, for `/openid/v1/jwks`.
    pub fn jwks(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let coordinate = |from: usize| {
            BASE64.encode(point.get(from..from.saturating_add(32)).unwrap_or_default())
        };
        json!({"keys": [{
            "use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256",
            "x": coordinate(1), "y": coordinate(33),
        }]})
    }
}

/// The claims of a token, not verified. `None` for what has not the shape of one.
pub(crate) fn unverified_claims(token: &str) -> Option<Value> {
    if token.len() > MAX_TOKEN {
        return None;
    }
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    decode(claims)
}

fn decode(part: &str) -> Option<Value> {
    serde_json::from_slice(&BASE64.decode(part).ok()?).ok()
}
