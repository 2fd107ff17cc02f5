//! Digests and encodings.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use crate::library::{Answer, Args, Env, Table, Ty, fixed};
use crate::value::Value;

const ONE: &[Ty] = &[Ty::Text];

pub(super) const TABLE: Table = &[
    ("adler32sum", fixed(ONE, |_, args| Ok(Value::text(adler32(args.bytes(0)).to_string())))),
    ("b32dec", fixed(ONE, |_, args| Ok(base32_decode(args.bytes(0))))),
    ("b32enc", fixed(ONE, |_, args| Ok(Value::text(base32_encode(args.bytes(0)))))),
    ("b64dec", fixed(ONE, base64_decode)),
    ("b64enc", fixed(ONE, base64_encode)),
    ("sha1sum", fixed(ONE, |_, args| Ok(hex(&Sha1::digest(args.bytes(0)))))),
    ("sha256sum", fixed(ONE, |_, args| Ok(hex(&Sha256::digest(args.bytes(0)))))),
    ("sha512sum", fixed(ONE, |_, args| Ok(hex(&Sha512::digest(args.bytes(0)))))),
];

fn hex(digest: &[u8]) -> Value {
    Value::text(digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

fn adler32(bytes: &[u8]) -> u32 {
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    (high << 16) | low
}

pub(crate) fn base64_encode(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::text(STANDARD.encode(args.bytes(0))))
}

/// Like Go, line breaks are ignored, and a mistake becomes the answer.
pub(crate) fn base64_decode(_: &Env, args: &Args<'_>) -> Answer {
    let bytes: Vec<u8> =
        args.bytes(0).iter().copied().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    Ok(match STANDARD.decode(&bytes) {
        Ok(decoded) => Value::bytes(decoded),
        Err(_) => Value::text(format!(
            "illegal base64 data at input byte {}",
            base64_mistake(args.bytes(0))
        )),
    })
}

/// Where Go says that the data goes wrong.
pub(crate) fn base64_mistake(bytes: &[u8]) -> usize {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    let mut digits = 0_usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match *byte {
            b'\n' | b'\r' => {}
            byte if is_digit(byte) => digits += 1,
            b'=' => {
                let mut rest =
                    (at..bytes.len()).filter(|at| !matches!(bytes.get(*at), Some(b'\n' | b'\r')));
                return match digits % 4 {
                    0 | 1 => at - 1,
                    2 => match rest.next() {
                        None => bytes.len(),
                        Some(second) if bytes.get(second) != Some(&b'=') => second,
                        Some(_) => rest.next().unwrap_or(bytes.len()),
                    },
                    _ => rest.next().unwrap_or(bytes.len()),
                };
            }
            _ => return at - 1,
        }
    }
    // A quantum that is not full is reported at its beginning.
    let missing = digits % 4;
    bytes.len().saturating_sub(missing)
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn base32_encode(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(5) {
        let mut group = 0_u64;
        for index in 0..5 {
            group = (group << 8) | u64::from(chunk.get(index).copied().unwrap_or(0));
        }
        let used = (chunk.len() * 8).div_ceil(5);
        for index in 0..8 {
            let digit = usize::try_from((group >> (35 - 5 * index)) & 31).unwrap_or(0);
            let digit = BASE32.get(digit).copied().unwrap_or(b'=');
            out.push(if index < used { char::from(digit) } else { '=' });
        }
    }
    out
}

fn base32_decode(bytes: &[u8]) -> Value {
    // Positions in messages do not count line breaks.
    let bytes: Vec<u8> =
        bytes.iter().copied().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    let kept: Vec<(usize, u8)> = bytes.iter().copied().enumerate().collect();
    let wrong = |at: usize| Value::text(format!("illegal base32 data at input byte {at}"));
    let padding = kept.iter().rev().take_while(|(_, byte)| *byte == b'=').count();
    let digits = kept.len() - padding;
    let mut out = Vec::new();
    for chunk in kept.get(..digits).unwrap_or_default().chunks(8) {
        let mut group = 0_u64;
        for (at, byte) in chunk {
            let Some(digit) = BASE32.iter().position(|digit| digit == byte) else {
                return wrong(*at);
            };
            group = (group << 5) | digit as u64;
        }
        let bits = chunk.len() * 5;
        if chunk.len() < 8 && padding == 0 {
            return wrong(bytes.len().saturating_sub(chunk.len()));
        }
        if !matches!(chunk.len(), 2 | 4 | 5 | 7 | 8) {
            return wrong(bytes.len());
        }
        group <<= 40 - bits;
        let whole = group.to_be_bytes();
        out.extend_from_slice(whole.get(3..3 + bits / 8).unwrap_or_default());
    }
    if !kept.len().is_multiple_of(8) || padding > 6 {
        return wrong(bytes.len());
    }
    Value::bytes(out)
}
