//! Whom a certificate is asked for, out of the bytes of the request.
//!
//! The signature is not checked here: who signs certificates does that.

use cleat_core::registration::identity::Subject;
use sha2::{Digest as _, Sha256};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::der_parser::oid::Oid;
use x509_parser::oid_registry::{
    OID_X509_COMMON_NAME, OID_X509_EXT_EXTENDED_KEY_USAGE, OID_X509_EXT_KEY_USAGE,
    OID_X509_ORGANIZATION_NAME,
};
use x509_parser::prelude::{FromDer as _, ParsedCriAttribute};

/// The longest request anybody needs.
const LONGEST: usize = 16 << 10;

/// What a PEM request asks for, or why that cannot be read.
pub(super) fn read(pem: &[u8]) -> Result<Subject, String> {
    let der = der(pem)?;
    let (rest, request) = X509CertificationRequest::from_der(&der)
        .map_err(|_| "the request is not a PKCS #10 certification request".to_owned())?;
    if !rest.is_empty() {
        return Err("something follows the request".to_owned());
    }
    let info = &request.certification_request_info;
    let mut subject = Subject::default();
    let mut names = Vec::new();
    for attribute in info.subject.iter_attributes() {
        let value = attribute.as_str().map_err(|_| "a name is not text".to_owned())?.to_owned();
        let oid = attribute.attr_type();
        if *oid == OID_X509_COMMON_NAME {
            names.push(value);
        } else if *oid == OID_X509_ORGANIZATION_NAME {
            subject.organizations.push(value);
        } else {
            subject.others.push(format!("attribute {oid}"));
        }
    }
    let mut names = names.into_iter();
    subject.common_name = names.next().unwrap_or_default();
    subject.others.extend(names.map(|_| "second common name".to_owned()));
    for attribute in info.iter_attributes() {
        match attribute.parsed_attribute() {
            ParsedCriAttribute::ExtensionRequest(wanted) => {
                let odd = wanted.extensions.iter().map(|one| &one.oid).filter(|oid| !plain(oid));
                subject.others.extend(odd.map(|oid| format!("extension {oid}")));
            }
            _ => subject.others.push(format!("attribute {}", attribute.oid)),
        }
    }
    Ok(subject)
}

/// What the key is for is said by the request's usages, whatever else it repeats.
fn plain(oid: &Oid<'_>) -> bool {
    [OID_X509_EXT_KEY_USAGE, OID_X509_EXT_EXTENDED_KEY_USAGE].contains(oid)
}

/// The first bytes of the hash of the public key.
pub(super) fn fingerprint(pem: &[u8]) -> Option<String> {
    let der = der(pem).ok()?;
    let (_, request) = X509CertificationRequest::from_der(&der).ok()?;
    let hash = Sha256::digest(request.certification_request_info.subject_pki.raw);
    let pairs: Vec<String> = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Some(pairs.join(":"))
}

fn der(pem: &[u8]) -> Result<Vec<u8>, String> {
    if pem.len() > LONGEST {
        return Err("the request is too long".to_owned());
    }
    let (_, pem) =
        x509_parser::pem::parse_x509_pem(pem).map_err(|_| "the request is not PEM".to_owned())?;
    Ok(pem.contents)
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair, SanType,
    };

    use super::*;

    fn request(change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "one");
        params.distinguished_name.push(DnType::CommonName, "me");
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        params.serialize_request(&key).unwrap().pem().unwrap().into_bytes()
    }

    #[test]
    fn names_are_read_and_anything_else_is_noticed() {
        let plain = read(&request(|_| {})).unwrap();
        assert_eq!((&*plain.common_name, &*plain.organizations), ("me", &["one".to_owned()][..]));
        assert!(plain.others.is_empty());
        let named = request(|params| {
            params.subject_alt_names =
                vec![SanType::DnsName("kubernetes.default".try_into().unwrap())];
        });
        assert_eq!(read(&named).unwrap().others.len(), 1);
        let unit = request(|params| {
            params.distinguished_name.push(DnType::OrganizationalUnitName, "x");
        });
        assert_eq!(read(&unit).unwrap().others.len(), 1);
        let authority = request(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
        assert!(!read(&authority).unwrap().others.is_empty());
        assert_eq!(fingerprint(&named).unwrap().len(), 23);
    }

    #[test]
    fn rubbish_is_told_apart() {
        for rubbish in [&b""[..], b"rubbish", &[b'x'; LONGEST + 1]] {
            assert!(read(rubbish).is_err());
            assert_eq!(fingerprint(rubbish), None);
        }
    }
}
