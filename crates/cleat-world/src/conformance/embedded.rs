//! Our own server, in this process, as the conformance cases reach it.

use std::sync::Arc;

use anyhow::Result;
use cleat_apiserver::admission::Admission;
use cleat_apiserver::authn::{Authenticator, ServiceAccountTokens, SigningKey};
use cleat_apiserver::certificates::Authority;
use cleat_apiserver::user::{AUTHENTICATED, MASTERS, User};
use cleat_apiserver::{Config, Server};
use cleat_store::{Limits, Store};

use crate::server::InProcess;

/// A fresh server with what the real control planes are started with: the same issuer, the same
/// name for the administrator, no nodes.
pub async fn embedded() -> Result<(Server, InProcess<axum::Router>)> {
    let authority = Authority::generate("conformance-ca", jiff::Timestamp::now())?;
    let tokens =
        ServiceAccountTokens::new(SigningKey::generate()?, "https://kubernetes.default.svc");
    let server = Server::start(Config {
        store: Store::in_memory(Limits::default()),
        authenticator: Authenticator::new().with_service_accounts(tokens),
        authority: Some(Arc::new(authority)),
        pretend_workloads: false,
        admission: Admission::default(),
        audit: None,
    })
    .await?;
    let admin = server.router_as(User::new("kubernetes-admin", [MASTERS, AUTHENTICATED]));
    let nobody = server.public_router();
    Ok((server, InProcess::new(admin, nobody)))
}
