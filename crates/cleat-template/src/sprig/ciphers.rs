//! AES with a password, as Sprig writes it: the vector, then the blocks, in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::encrypt;
use crate::library::{Answer, Args, Env, Table, Ty, fixed};
use crate::limits::Fault;
use crate::value::Value;

const TWO: &[Ty] = &[Ty::Text, Ty::Text];

pub(super) const TABLE: Table =
    &[("decryptAES", fixed(TWO, decrypt)), ("encryptAES", fixed(TWO, encrypt))];

const BLOCK: usize = 16;

/// A password is cut or filled up with zeros.
fn key(password: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    key.iter_mut().zip(password).for_each(|(to, from)| *to = *from);
    key
}

/// The vector follows from what is encrypted and the key: the same text gives the same at each look.
fn encrypt(env: &Env, args: &Args<'_>) -> Answer {
    let (key, plain) = (key(args.bytes(0)), args.bytes(1));
    if plain.is_empty() {
        return Ok(Value::text(""));
    }
    env.budget.charge(plain.len().saturating_mul(2))?;
    let digest = Sha256::new().chain_update(b"vector").chain_update(key).chain_update(plain);
    let vector: Vec<u8> = digest.finalize().into_iter().take(BLOCK).collect();
    let blocks = encrypt::encrypt_with(&key, &vector, plain).map_err(fault)?;
    Ok(Value::text(STANDARD.encode([vector, blocks].concat())))
}

fn decrypt(env: &Env, args: &Args<'_>) -> Answer {
    let (key, encoded) = (key(args.bytes(0)), args.bytes(1));
    if encoded.is_empty() {
        return Ok(Value::text(""));
    }
    env.budget.charge(encoded.len())?;
    let line_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let bytes: Vec<u8> = encoded.iter().copied().filter(|byte| !line_break(byte)).collect();
    let bytes = STANDARD.decode(bytes).map_err(|_| {
        let at = super::base64_mistake(encoded);
        Fault::text(format!("illegal base64 data at input byte {at}"))
    })?;
    let Some((vector, blocks)) = bytes.split_at_checked(BLOCK) else {
        return Err(Fault::text("the encrypted text is shorter than its vector"));
    };
    let mut plain = encrypt::decrypt_with(&key, vector, blocks).map_err(fault)?;
    let padding = plain.last().copied().map_or(0, usize::from);
    let Some(kept) = plain.len().checked_sub(padding) else {
        return Err(Fault::text("the password is not that of the encrypted text"));
    };
    plain.truncate(kept);
    Ok(Value::bytes(plain))
}

fn fault(error: encrypt::EncryptionError) -> Fault {
    Fault::text(error.to_string())
}
