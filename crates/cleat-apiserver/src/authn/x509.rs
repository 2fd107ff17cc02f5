//! Client certificates: common name to user, organizations to groups.
//!
//! The chain is not verified here. A certificate is read once per connection; each request only
//! checks that it has not run out meanwhile.

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use x509_parser::{
    certificate::X509Certificate,
    der_parser::{asn1_rs::oid, oid::Oid},
    prelude::FromDer,
};

use crate::user::{AUTHENTICATED, CREDENTIAL_ID, User};

/// A user's uid in a certificate, as Kubernetes numbers it.
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);

/// Who stands at the other end of a connection, by certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerIdentity {
    /// `None` when the certificate names nobody.
    user: Option<User>,
    not_before: i64,
    not_after: i64,
    trusted: bool,
}

/// The certificate identifies nobody at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

impl PeerIdentity {
    /// `trusted` says whether the chain ends in our authority. `None` for what is no certificate.
    pub fn from_der(certificate: &[u8], trusted: bool) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        let validity = parsed.validity();
        Some(Self {
            user: user_of(&parsed, certificate).ok()?,
            not_before: validity.not_before.timestamp(),
            not_after: validity.not_after.timestamp(),
            trusted,
        })
    }

    pub(crate) fn user_at(&self, now: Timestamp) -> Result<Option<&User>, Refused> {
        let now = now.as_second();
        if self.trusted && self.not_before <= now && now <= self.not_after {
            Ok(self.user.as_ref())
        } else {
            Err(Refused)
        }
    }
}

fn user_of(certificate: &X509Certificate<'_>, der: &[u8]) -> Result<Option<User>, Refused> {
    let subject = certificate.subject();
    // The last common name wins, as in Go.
    let name = subject.iter_common_name().last().and_then(|name| name.as_str().ok());
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    let mut uids = subject.iter_by_oid(&UID);
    let uid = match (uids.next(), uids.next()) {
        (None, _) => "",
        (Some(uid), None) => uid.as_str().ok().filter(|uid| !uid.is_empty()).ok_or(Refused)?,
        (Some(_), Some(_)) => return Err(Refused),
    };
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok());
    let mut user = User {
        name: name.to_owned(),
        uid: uid.to_owned(),
        groups: groups.map(str::to_owned).collect(),
        ..User::default()
    };
    user.add_group(AUTHENTICATED);
    let mut fingerprint = String::from("X509SHA256=");
    for byte in Sha256::digest(der) {
        fingerprint.push_str(&format!("{byte:02x}"));
    }
    user.extra.insert(CREDENTIAL_ID.to_owned(), vec![fingerprint]);
    Ok(Some(user))
}
