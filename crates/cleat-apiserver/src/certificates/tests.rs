use rcgen::{CertificateParams, DnType, KeyPair, SanType};

use super::*;
use crate::authn::{Authenticator, Credentials, PeerIdentity};

fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

fn authority() -> Authority {
    Authority::generate("kubernetes", now()).unwrap()
}

/// A request made by somebody else's code.
fn request(common_name: &str, organization: &str, names: &[&str]) -> String {
    let mut params =
        CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
            .unwrap();
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.distinguished_name.push(DnType::OrganizationName, organization);
    if names.is_empty() {
        params.subject_alt_names = Vec::<SanType>::new();
    }
    let key = KeyPair::generate().unwrap();
    params.serialize_request(&key).unwrap().pem().unwrap()
}

fn check(pem: &str, authority: &Authority, test: impl FnOnce(&X509Certificate<'_>)) {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let (rest, parsed) = X509Certificate::from_der(&der).unwrap();
    assert!(rest.is_empty());
    let (_, issuer) = X509Certificate::from_der(authority.certificate()).unwrap();
    parsed.verify_signature(Some(issuer.public_key())).unwrap();
    assert_eq!(parsed.issuer(), issuer.subject());
    test(&parsed);
}

#[test]
fn authorities_survive_pem() {
    let first = authority();
    let again = Authority::from_pem(first.certificate_pem(), first.key_pem()).unwrap();
    assert_eq!(again.certificate(), first.certificate());
    check(again.certificate_pem(), &first, |certificate| assert!(certificate.is_ca()));
    let other = authority();
    assert!(matches!(
        Authority::from_pem(first.certificate_pem(), other.key_pem()),
        Err(CertificateError::Mismatch)
    ));
    assert!(Authority::from_pem("x", "y").is_err());
}

#[test]
fn clients_are_known_by_name_and_all_their_groups() {
    let authority = authority();
    let groups = ["system:masters", "two"];
    let issued =
        authority.issue_client("ann", &groups, now(), SignedDuration::from_hours(1)).unwrap();
    check(&issued.certificate, &authority, |certificate| {
        assert!(!certificate.is_ca());
        let usage = certificate.extended_key_usage().unwrap().unwrap();
        assert!(usage.value.client_auth && !usage.value.server_auth);
    });
    let der = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap();
    let peer = PeerIdentity::from_der(&der, true).unwrap();
    let credentials = Credentials { peer: Some(&peer), authorization: None };
    let nothing = |_: &'static str, _: &str, _: &str| None;
    let who = |at| Authenticator::new().authenticate(credentials, at, &nothing);
    let user = who(now()).unwrap();
    assert_eq!(user.name, "ann");
    assert_eq!(user.groups, ["system:masters", "two", "system:authenticated"]);
    assert!(user.extra[crate::user::CREDENTIAL_ID][0].starts_with("X509SHA256="));
    assert_eq!(who(now() + SignedDuration::from_hours(2)).unwrap_err().code, 401);
    let stranger = PeerIdentity::from_der(&der, false).unwrap();
    let credentials = Credentials { peer: Some(&stranger), authorization: None };
    let refused = Authenticator::new().authenticate(credentials, now(), &nothing);
    assert_eq!(refused.unwrap_err().code, 401);
}

#[test]
fn servers_are_known_by_every_name() {
    let authority = authority();
    let names = ["localhost", "kubernetes.default.svc", "127.0.0.1", "::1"];
    let lifetime = SignedDuration::from_hours(20_000_000);
    let issued = authority.issue_server("kube-apiserver", &names, now(), lifetime).unwrap();
    check(&issued.certificate, &authority, |certificate| {
        let names = certificate.subject_alternative_name().unwrap().unwrap();
        assert_eq!(names.value.general_names.len(), 4);
        // No longer than the authority itself.
        let (_, issuer) = X509Certificate::from_der(authority.certificate()).unwrap();
        assert_eq!(certificate.validity().not_after, issuer.validity().not_after);
    });
    assert!(read_private_key(&issued.key).is_ok());
    assert_eq!(read_certificates(&issued.certificate).unwrap().len(), 1);
}

#[test]
fn requests_are_signed_as_asked() {
    let authority = authority();
    let pem = request("system:open-cluster-management:c1:agent", "one", &["c1.example"]);
    let read = CertificateRequest::from_pem(pem.as_bytes()).unwrap();
    assert_eq!(read.common_name, "system:open-cluster-management:c1:agent");
    assert_eq!(read.organizations, ["one"]);
    let usages = ["digital signature", "key encipherment", "client auth"];
    for (seconds, lifetime) in [
        (None, 365 * DAY),
        (Some(1), 600 + 300),
        (Some(7200), 7200 + 300),
        (Some(i64::MAX), 365 * DAY),
    ] {
        let signed =
            authority.sign_request(&read, Signer::Client, &usages, seconds, now()).unwrap();
        check(&signed, &authority, |certificate| {
            let validity = certificate.validity();
            let whole = validity.not_after.timestamp() - validity.not_before.timestamp();
            assert_eq!(whole, lifetime, "{seconds:?}");
            assert_eq!(certificate.subject().as_raw(), read.subject);
            assert!(certificate.subject_alternative_name().unwrap().is_some());
        });
    }
}

#[test]
fn requests_that_break_their_signers_rules_are_refused() {
    let authority = authority();
    let node = ["digital signature", "client auth"];
    for (signer, name, organization, names, usages, want) in [
        (
            Signer::Client,
            "a",
            "o",
            &[][..],
            &["server auth"][..],
            "invalid usage for client certificate: server auth",
        ),
        (
            Signer::Client,
            "a",
            "o",
            &[],
            &["digital signature"],
            "missing required usage for client certificate: client auth",
        ),
        (Signer::KubeletClient, "system:node:n", "system:nodes", &[], &node, ""),
        (
            Signer::KubeletClient,
            "system:node:n",
            "o",
            &[],
            &node,
            "subject organization is not system:nodes",
        ),
        (
            Signer::KubeletClient,
            "system:node:n",
            "system:nodes",
            &["x"],
            &node,
            "DNS subjectAltNames are not allowed",
        ),
        (
            Signer::KubeletClient,
            "n",
            "system:nodes",
            &[],
            &node,
            "subject common name does not begin with system:node:",
        ),
        (
            Signer::KubeletClient,
            "system:node:n",
            "system:nodes",
            &[],
            &["client auth"],
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (
            Signer::KubeletServing,
            "system:node:n",
            "system:nodes",
            &[],
            &["digital signature", "server auth"],
            "DNS or IP subjectAltName is required",
        ),
    ] {
        let pem = request(name, organization, names);
        let read = CertificateRequest::from_pem(pem.as_bytes()).unwrap();
        let result = authority.sign_request(&read, signer, usages, None, now());
        let message = result.err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(message, want);
    }
}

#[test]
fn nonsense_is_no_request() {
    for pem in
        ["", "x", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"]
    {
        assert!(CertificateRequest::from_pem(pem.as_bytes()).is_err());
    }
    let mut forged = request("a", "b", &[]);
    let at = forged.find("\n-----END").unwrap() - 8;
    let change = if &forged[at..=at] == "A" { "B" } else { "A" };
    forged.replace_range(at..=at, change);
    assert!(CertificateRequest::from_pem(forged.as_bytes()).is_err());
}
