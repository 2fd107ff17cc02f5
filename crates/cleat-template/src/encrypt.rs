//! Values that travel encrypted in policies: `$ocm_encrypted:` and the base64 of AES-CBC.
//!
//! The key is shared between hub and cluster through a Secret, the initialisation vector through
//! an annotation; both are handed in.

use std::fmt;
use std::sync::LazyLock;

use aes::cipher::block_padding::{NoPadding, Pkcs7};
use aes::cipher::{BlockDecryptMut as _, BlockEncryptMut as _, KeyIvInit as _};
use aes::{Aes128, Aes192, Aes256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;

use crate::sprig;

/// What stands before an encrypted value.
pub(crate) const PREFIX: &str = "$ocm_encrypted:";

const BLOCK: usize = 16;

static ENCRYPTED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\$ocm_encrypted:([a-zA-Z0-9+/=]+)").ok());

/// Keys as raw bytes. Printing them shows only that they are there.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// 16, 24 or 32 bytes.
    pub key: Vec<u8>,
    /// The key before the last rotation, tried second when decrypting.
    pub previous: Option<Vec<u8>>,
    /// 16 bytes.
    pub iv: Vec<u8>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

/// Which way values are translated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    #[default]
    Off,
    /// On the hub: `protect` works, and what is read from Secrets comes out encrypted.
    Encrypt(Keys),
    /// On the cluster: encrypted values are replaced before templates run.
    Decrypt(Keys),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncryptionError {
    #[error("AESKey must be set to use this encryption mode")]
    KeyNotSet,
    #[error("the AES key is invalid: crypto/aes: invalid key size {0}")]
    InvalidKey(usize),
    #[error("initialization vector must be 128 bits")]
    InvalidIv,
    #[error(
        "{value}: the encrypted string is invalid base64: illegal base64 data at input byte {at}"
    )]
    InvalidBase64 { value: String, at: usize },
    #[error("invalid PCKS7 padding: {0}")]
    InvalidPadding(&'static str),
    #[error("the decrypted value is not valid UTF-8")]
    NotText,
}

impl Keys {
    pub(crate) fn check(&self) -> Result<(), EncryptionError> {
        if self.key.is_empty() {
            return Err(EncryptionError::KeyNotSet);
        }
        for key in std::iter::once(&self.key).chain(&self.previous) {
            if !matches!(key.len(), 16 | 24 | 32) {
                return Err(EncryptionError::InvalidKey(key.len()));
            }
        }
        if self.iv.len() == BLOCK { Ok(()) } else { Err(EncryptionError::InvalidIv) }
    }

    /// Nothing stays nothing.
    pub(crate) fn protect(&self, plain: &[u8]) -> Result<String, EncryptionError> {
        if plain.is_empty() {
            return Ok(String::new());
        }
        let encrypted = encrypt_with(&self.key, &self.iv, plain)?;
        Ok(format!("{PREFIX}{}", STANDARD.encode(encrypted)))
    }

    fn decrypt(&self, encoded: &str) -> Result<String, EncryptionError> {
        let bytes = STANDARD.decode(encoded).map_err(|_| EncryptionError::InvalidBase64 {
            value: encoded.to_owned(),
            at: sprig::base64_mistake(encoded.as_bytes()),
        })?;
        let mut answer = Err(EncryptionError::KeyNotSet);
        for key in std::iter::once(&self.key).chain(&self.previous) {
            let plain = decrypt_with(key, &self.iv, &bytes).and_then(|plain| unpadded(&plain));
            // One wrong key in 256 finds what looks like padding, so what is no text is not it either.
            answer = plain
                .and_then(|plain| String::from_utf8(plain).map_err(|_| EncryptionError::NotText));
            if answer.is_ok() {
                break;
            }
        }
        answer
    }

    /// Replaces every encrypted value in a text. Gives the text and the plain values, or the
    /// value that could not be decrypted.
    pub(crate) fn reveal(
        &self,
        text: &str,
    ) -> Result<(String, Vec<String>), (String, EncryptionError)> {
        let mut out = String::with_capacity(text.len());
        let mut plains = Vec::new();
        let mut end = 0;
        let found = ENCRYPTED.iter().flat_map(|pattern| pattern.captures_iter(text));
        for found in found {
            let (Some(whole), Some(encoded)) = (found.get(0), found.get(1)) else { continue };
            let plain = self
                .decrypt(encoded.as_str())
                .map_err(|error| (whole.as_str().to_owned(), error))?;
            // A line break would end the YAML value that this is part of.
            let plain = plain.replace('\n', "\\n");
            out.push_str(text.get(end..whole.start()).unwrap_or_default());
            out.push_str(&plain);
            plains.push(plain);
            end = whole.end();
        }
        out.push_str(text.get(end..).unwrap_or_default());
        Ok((out, plains))
    }
}

pub(crate) fn encrypt_with(
    key: &[u8],
    iv: &[u8],
    plain: &[u8],
) -> Result<Vec<u8>, EncryptionError> {
    let wrong = |_| EncryptionError::InvalidKey(key.len());
    Ok(match key.len() {
        16 => cbc::Encryptor::<Aes128>::new_from_slices(key, iv)
            .map_err(wrong)?
            .encrypt_padded_vec_mut::<Pkcs7>(plain),
        24 => cbc::Encryptor::<Aes192>::new_from_slices(key, iv)
            .map_err(wrong)?
            .encrypt_padded_vec_mut::<Pkcs7>(plain),
        _ => cbc::Encryptor::<Aes256>::new_from_slices(key, iv)
            .map_err(wrong)?
            .encrypt_padded_vec_mut::<Pkcs7>(plain),
    })
}

/// The padding is left on it.
pub(crate) fn decrypt_with(
    key: &[u8],
    iv: &[u8],
    bytes: &[u8],
) -> Result<Vec<u8>, EncryptionError> {
    let wrong = |_| EncryptionError::InvalidKey(key.len());
    let partial = |_| EncryptionError::InvalidPadding("the value is not made of whole blocks");
    match key.len() {
        16 => cbc::Decryptor::<Aes128>::new_from_slices(key, iv)
            .map_err(wrong)?
            .decrypt_padded_vec_mut::<NoPadding>(bytes)
            .map_err(partial),
        24 => cbc::Decryptor::<Aes192>::new_from_slices(key, iv)
            .map_err(wrong)?
            .decrypt_padded_vec_mut::<NoPadding>(bytes)
            .map_err(partial),
        _ => cbc::Decryptor::<Aes256>::new_from_slices(key, iv)
            .map_err(wrong)?
            .decrypt_padded_vec_mut::<NoPadding>(bytes)
            .map_err(partial),
    }
}

/// As forgiving as the shipped code: padding may be longer than a block.
fn unpadded(bytes: &[u8]) -> Result<Vec<u8>, EncryptionError> {
    let invalid = EncryptionError::InvalidPadding("the padding length is invalid");
    let Some(last) = bytes.last() else { return Err(invalid) };
    let length = usize::from(*last);
    let Some(kept) = bytes.len().checked_sub(length).filter(|_| length > 0) else {
        return Err(invalid);
    };
    let (plain, padding) = bytes.split_at(kept);
    if padding.iter().any(|byte| byte != last) {
        return Err(EncryptionError::InvalidPadding("not all the padding bytes match"));
    }
    Ok(plain.to_vec())
}
