//! Keys, requests for certificates, and the life of a certificate.

use cleat_core::registration::identity::Agent;
use jiff::Timestamp;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use sha2::{Digest as _, Sha256};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

use super::Error;

/// A key, and a request to certify it. The key stays here.
pub(super) struct Asked {
    /// PEM
    pub(super) key: String,
    /// PEM
    pub(super) request: String,
    /// A short name for the public key, by which two people can compare it.
    pub(super) fingerprint: String,
}

pub(super) fn ask(agent: &Agent) -> Result<Asked, Error> {
    request(agent, &KeyPair::generate().map_err(Error::Key)?)
}

/// The same for a key that is there already, given as PEM.
pub(super) fn ask_again(agent: &Agent, key: &str) -> Result<Asked, Error> {
    request(agent, &KeyPair::from_pem(key).map_err(Error::Key)?)
}

fn request(agent: &Agent, key: &KeyPair) -> Result<Asked, Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let subject = agent.subject();
    // rcgen keeps one value for each type it knows; the same type by its number is another to it.
    let types = [DnType::OrganizationName, DnType::CustomDnType(ORGANIZATION.to_vec())];
    for (kind, organization) in types.into_iter().zip(subject.organizations) {
        params.distinguished_name.push(kind, organization);
    }
    params.distinguished_name.push(DnType::CommonName, subject.common_name);
    let request = params.serialize_request(key).map_err(Error::Key)?;
    let fingerprint = fingerprint(request.der()).unwrap_or_default();
    let request = request.pem().map_err(Error::Key)?;
    Ok(Asked { key: key.serialize_pem(), request, fingerprint })
}

/// `organizationName`.
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];

fn fingerprint(der: &[u8]) -> Option<String> {
    let (_, request) = X509CertificationRequest::from_der(der).ok()?;
    let hash = Sha256::digest(request.certification_request_info.subject_pki.raw);
    let pairs: Vec<String> = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Some(pairs.join(":"))
}

/// From when to when the first certificate in `pem` is valid.
pub(super) fn validity(pem: &str) -> Option<(Timestamp, Timestamp)> {
    let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).ok()?;
    let certificate = pem.parse_x509().ok()?;
    let validity = certificate.validity();
    let time = |at: i64| Timestamp::from_second(at).ok();
    Some((time(validity.not_before.timestamp())?, time(validity.not_after.timestamp())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_the_agent_and_both_its_groups() {
        let agent = Agent::new("c1", "a1");
        let asked = ask(&agent).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(asked.request.as_bytes()).unwrap();
        let (_, request) = X509CertificationRequest::from_der(&pem.contents).unwrap();
        let subject = &request.certification_request_info.subject;
        let organizations: Vec<_> =
            subject.iter_organization().map(|one| one.as_str().unwrap().to_owned()).collect();
        assert_eq!(organizations, agent.groups());
        let names: Vec<_> =
            subject.iter_common_name().map(|one| one.as_str().unwrap().to_owned()).collect();
        assert_eq!(names, [agent.user()]);
        assert_eq!(asked.fingerprint.len(), 23);
        let again = ask_again(&agent, &asked.key).unwrap();
        assert_eq!((again.fingerprint, again.key), (asked.fingerprint, asked.key));
        assert_eq!(validity("rubbish"), None);
    }
}
