//! X.509 version 3 certificates in DER, as far as this server issues them.
//!
//! Only writing; reading is `x509-parser`'s.

use std::net::IpAddr;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use jiff::{Timestamp, tz::TimeZone};
use sha2::{Digest, Sha256};

/// Bits of a key usage, the first bit of the standard being the highest.
pub(super) const DIGITAL_SIGNATURE: u16 = 0x8000;
pub(super) const CONTENT_COMMITMENT: u16 = 0x4000;
pub(super) const KEY_ENCIPHERMENT: u16 = 0x2000;
pub(super) const DATA_ENCIPHERMENT: u16 = 0x1000;
pub(super) const KEY_AGREEMENT: u16 = 0x0800;
pub(super) const CERT_SIGN: u16 = 0x0400;
pub(super) const CRL_SIGN: u16 = 0x0200;
pub(super) const ENCIPHER_ONLY: u16 = 0x0100;
pub(super) const DECIPHER_ONLY: u16 = 0x0080;

pub(super) const SERVER_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
pub(super) const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];

const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const ORGANIZATION: &[u8] = &[0x55, 4, 10];
const SUBJECT_KEY_ID: &[u8] = &[0x55, 0x1d, 14];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
pub(super) const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 17];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
const AUTHORITY_KEY_ID: &[u8] = &[0x55, 0x1d, 35];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OID: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// Everything a certificate says but its serial number.
pub(super) struct Template<'a> {
    /// Encoded names.
    pub(super) issuer: &'a [u8],
    pub(super) subject: &'a [u8],
    /// An encoded `SubjectPublicKeyInfo`.
    pub(super) public_key: &'a [u8],
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
    pub(super) extensions: Vec<Vec<u8>>,
}

impl Template<'_> {
    pub(super) fn to_be_signed(&self, serial: &[u8]) -> Vec<u8> {
        let version = tlv(0xa0, &tlv(INTEGER, &[2]));
        let validity = sequence(&[&time(self.not_before), &time(self.not_after)]);
        let extensions = tlv(0xa3, &tlv(SEQUENCE, &self.extensions.concat()));
        sequence(&[
            &version,
            &positive(serial),
            &algorithm(),
            self.issuer,
            &validity,
            self.subject,
            self.public_key,
            &extensions,
        ])
    }
}

pub(super) fn certificate(body: &[u8], signature: &[u8]) -> Vec<u8> {
    sequence(&[body, &algorithm(), &bit_string(0, signature)])
}

/// A distinguished name of a common name and any number of organizations.
pub(super) fn name(common_name: &str, organizations: &[&str]) -> Vec<u8> {
    let part = |kind: &[u8], text: &str| {
        tlv(SET, &sequence(&[&tlv(OID, kind), &tlv(UTF8_STRING, text.as_bytes())]))
    };
    let mut parts: Vec<u8> =
        organizations.iter().flat_map(|group| part(ORGANIZATION, group)).collect();
    parts.extend(part(COMMON_NAME, common_name));
    tlv(SEQUENCE, &parts)
}

pub(super) fn basic_constraints(authority: bool) -> Vec<u8> {
    let value = if authority { tlv(BOOLEAN, &[0xff]) } else { Vec::new() };
    extension(BASIC_CONSTRAINTS, true, &tlv(SEQUENCE, &value))
}

pub(super) fn key_usage(bits: u16) -> Vec<u8> {
    let [high, low] = bits.to_be_bytes();
    let bytes: &[u8] = if low == 0 { &[high] } else { &[high, low] };
    let last = if low == 0 { high } else { low };
    let unused = last.trailing_zeros().min(7) as u8;
    extension(KEY_USAGE, true, &bit_string(unused, bytes))
}

pub(super) fn extended_key_usage(purposes: &[&[u8]]) -> Vec<u8> {
    let purposes: Vec<u8> = purposes.iter().flat_map(|purpose| tlv(OID, purpose)).collect();
    extension(EXTENDED_KEY_USAGE, false, &tlv(SEQUENCE, &purposes))
}

pub(super) fn alternative_names(names: &[&str], addresses: &[IpAddr]) -> Vec<u8> {
    let addresses: Vec<Vec<u8>> = addresses
        .iter()
        .map(|address| match address {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        })
        .collect();
    extension(ALTERNATIVE_NAMES, false, &general_names(names, &[], &addresses, &[]))
}

/// The value of the extension: host names, mail addresses, IP addresses, URIs.
pub(super) fn general_names<S: AsRef<str>>(
    names: &[S],
    emails: &[S],
    addresses: &[Vec<u8>],
    uris: &[S],
) -> Vec<u8> {
    let mut all = Vec::new();
    for (tag, texts) in [(0x82, names), (0x81, emails)] {
        all.extend(texts.iter().flat_map(|text| tlv(tag, text.as_ref().as_bytes())));
    }
    all.extend(addresses.iter().flat_map(|address| tlv(0x87, address)));
    all.extend(uris.iter().flat_map(|uri| tlv(0x86, uri.as_ref().as_bytes())));
    tlv(SEQUENCE, &all)
}

pub(super) fn subject_key_id(id: &[u8]) -> Vec<u8> {
    extension(SUBJECT_KEY_ID, false, &tlv(OCTET_STRING, id))
}

pub(super) fn authority_key_id(id: &[u8]) -> Vec<u8> {
    extension(AUTHORITY_KEY_ID, false, &sequence(&[&tlv(0x80, id)]))
}

/// An extension whose value is encoded already.
pub(super) fn extension(id: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let critical = if critical { tlv(BOOLEAN, &[0xff]) } else { Vec::new() };
    sequence(&[&tlv(OID, id), &critical, &tlv(OCTET_STRING, value)])
}

/// What other certificates call a key by.
pub(super) fn key_id(public_key: &[u8]) -> Vec<u8> {
    Sha256::digest(public_key).into_iter().take(20).collect()
}

pub(super) fn pem(label: &str, der: &[u8]) -> String {
    let mut out = format!("-----BEGIN {label}-----\n");
    for (index, c) in BASE64.encode(der).chars().enumerate() {
        if index > 0 && index % 64 == 0 {
            out.push('\n');
        }
        out.push(c);
    }
    out.push_str(&format!("\n-----END {label}-----\n"));
    out
}

fn algorithm() -> Vec<u8> {
    sequence(&[&tlv(OID, ECDSA_WITH_SHA256)])
}

/// Years from 2050 on have a form of their own.
fn time(at: Timestamp) -> Vec<u8> {
    let at = at.to_zoned(TimeZone::UTC);
    if (1950..2050).contains(&at.year()) {
        tlv(UTC_TIME, at.strftime("%y%m%d%H%M%SZ").to_string().as_bytes())
    } else {
        tlv(GENERALIZED_TIME, at.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes())
    }
}

fn positive(bytes: &[u8]) -> Vec<u8> {
    let mut content = vec![0];
    content.extend(bytes.iter().skip_while(|byte| **byte == 0));
    // A leading zero is only there to keep the number from looking negative.
    if content.get(1).is_some_and(|first| *first < 0x80) {
        content.remove(0);
    }
    tlv(INTEGER, &content)
}

fn bit_string(unused: u8, bytes: &[u8]) -> Vec<u8> {
    let mut content = vec![unused];
    content.extend_from_slice(bytes);
    tlv(BIT_STRING, &content)
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    tlv(SEQUENCE, &parts.concat())
}

fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    if let Ok(short @ 0..0x80) = u8::try_from(length) {
        out.push(short);
    } else {
        let bytes = length.to_be_bytes();
        let significant: Vec<u8> = bytes.into_iter().skip_while(|byte| *byte == 0).collect();
        out.push(0x80 | significant.len() as u8);
        out.extend(significant);
    }
    out.extend_from_slice(content);
    out
}
