//! Who makes this request? Decisions over what the request carries and what the store says.
//!
//! The chain of a client certificate is verified where the connection is accepted (`tls`); nothing
//! here reads the store or the clock itself.

mod bootstrap_token;
mod impersonation;
mod jwt;
mod secret_token;
mod service_account;
mod token_request;
mod x509;

pub use impersonation::{Habits, impersonate};
pub use jwt::{SigningKey, SigningKeyError};
pub(crate) use secret_token::{ACCOUNT_NAME, ACCOUNT_UID, TOKEN_SECRET};
pub use service_account::{Bound, ServiceAccountTokens, TokenAsk};
pub use token_request::token_request;
pub use x509::PeerIdentity;

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    authz::Decision,
    status::Status,
    user::{AUTHENTICATED, User},
};

#[cfg(test)]
mod tests;

/// Objects tokens refer to, as the store has them now.
pub trait Lookup {
    /// `resource` is a plural of the core group. `namespace` is empty for nodes.
    fn get(&self, resource: &'static str, namespace: &str, name: &str) -> Option<Arc<Value>>;
}

impl<F> Lookup for F
where
    F: Fn(&'static str, &str, &str) -> Option<Arc<Value>>,
{
    fn get(&self, resource: &'static str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self(resource, namespace, name)
    }
}

/// A known user, and for which audiences the credential vouches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticated {
    pub user: User,
    /// Empty for credentials that know no audience.
    pub audiences: Vec<String>,
}

/// What a request shows of its sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Credentials<'a> {
    /// From the TLS layer.
    pub peer: Option<&'a PeerIdentity>,
    /// The `Authorization` header.
    pub authorization: Option<&'a str>,
}

/// How this server recognises users.
#[derive(Debug, Default)]
pub struct Authenticator {
    /// By the digest of the token, so that looking one up tells nothing about the others.
    static_tokens: BTreeMap<[u8; 32], User>,
    service_accounts: Option<ServiceAccountTokens>,
    anonymous: bool,
    habits: Habits,
}

impl Authenticator {
    pub(crate) fn habits(&self) -> &Habits {
        &self.habits
    }

    /// Knows nobody but `system:anonymous`.
    pub fn new() -> Self {
        Self { anonymous: true, ..Self::default() }
    }

    pub fn with_static_token(mut self, token: &str, mut user: User) -> Self {
        user.add_group(AUTHENTICATED);
        self.static_tokens.insert(Sha256::digest(token.as_bytes()).into(), user);
        self
    }

    pub fn with_service_accounts(mut self, tokens: ServiceAccountTokens) -> Self {
        self.service_accounts = Some(tokens);
        self
    }

    /// Answers 401 to requests without credentials.
    pub fn without_anonymous(mut self) -> Self {
        self.anonymous = false;
        self
    }

    pub fn service_accounts(&self) -> Option<&ServiceAccountTokens> {
        self.service_accounts.as_ref()
    }

    /// The user of a request. A certificate counts before a token; a token that is none of ours
    /// is refused rather than taken for no token.
    pub fn authenticate(
        &self,
        credentials: Credentials<'_>,
        now: Timestamp,
        lookup: &dyn Lookup,
    ) -> Result<User, Status> {
        let mut refused = false;
        if let Some(peer) = credentials.peer {
            match peer.user_at(now) {
                Ok(Some(user)) => return Ok(user.clone()),
                Ok(None) => {}
                Err(_) => refused = true,
            }
        }
        if let Some(token) = credentials.authorization.and_then(bearer_token) {
            let found = self.authenticate_token(token, &[], now, lookup);
            return found.map(|found| found.user).map_err(|_| Status::unauthorized());
        }
        if refused || !self.anonymous {
            return Err(Status::unauthorized());
        }
        Ok(User::anonymous())
    }

    /// The user of a bearer token that is good for one of `audiences` (none: this server's own).
    /// The error is what a TokenReview says.
    pub fn authenticate_token(
        &self,
        token: &str,
        audiences: &[String],
        now: Timestamp,
        lookup: &dyn Lookup,
    ) -> Result<Authenticated, String> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(user) = self.static_tokens.get(&digest) {
            return Ok(Authenticated { user: user.clone(), audiences: audiences.to_vec() });
        }
        let mut found = None;
        if let Some(tokens) = &self.service_accounts {
            found = tokens
                .authenticate(token, audiences, now, lookup)
                .map_err(|why| format!("[invalid bearer token, {why}]"))?;
        }
        if found.is_none() {
            found = bootstrap_token::authenticate(token, now, lookup)
                .map(|user| Authenticated { user, audiences: audiences.to_vec() });
        }
        let mut found = found.ok_or("invalid bearer token")?;
        found.user.add_group(AUTHENTICATED);
        Ok(found)
    }
}

/// The token of an `Authorization` header. A second space before it makes it no token.
fn bearer_token(header: &str) -> Option<&str> {
    let mut parts = header.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The refusal for an attempt the authorizer said no to.
fn refused(user: &User, attributes: &crate::authz::Attributes<'_>, decision: &Decision) -> Status {
    crate::authz::forbidden(user, attributes, &decision.reason)
}
