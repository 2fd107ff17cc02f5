//! A webhook that refuses the deletion of one config map of a party, while it is told to.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cleat_world::{Webhook, eventually};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::{Api, DeleteParams};
use serde_json::json;

use super::party::Party;
use crate::{create, delete};

pub(super) struct Guard {
    refused: Arc<Mutex<Option<String>>>,
    configurations: Api<ValidatingWebhookConfiguration>,
    name: String,
}

impl Guard {
    pub(super) async fn refusing(party: &Party, map: &str) -> Result<Self> {
        let refused = Arc::new(Mutex::new(Some(map.to_owned())));
        let wish = Arc::clone(&refused);
        let webhook = Webhook::start(move |request| match &*wish.lock().unwrap() {
            Some(name) if request["name"] == name.as_str() => Err("orders are open".to_owned()),
            _ => Ok(()),
        })
        .await?;
        let configurations: Api<ValidatingWebhookConfiguration> = Api::all(party.cluster.clone());
        let bundle = BASE64.encode(&webhook.authority);
        create(
            &configurations,
            json!({
                "metadata": { "name": party.name },
                "webhooks": [{
                    "name": "guard.cleat.example",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "clientConfig": { "url": webhook.url, "caBundle": bundle },
                    "namespaceSelector": {
                        "matchLabels": { "kubernetes.io/metadata.name": party.name },
                    },
                    "rules": [{
                        "operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"],
                        "resources": ["configmaps"],
                    }],
                }],
            }),
        )
        .await?;
        create(&party.maps(), json!({ "metadata": { "name": "probe" } })).await?;
        let probe = DeleteParams { dry_run: true, ..DeleteParams::default() };
        eventually("the webhook to be asked", || async {
            party.maps().delete("probe", &probe).await?;
            Ok((!webhook.asked().is_empty()).then_some(()))
        })
        .await?;
        delete(&party.maps(), "probe").await?;
        Ok(Self { refused, configurations, name: party.name.clone() })
    }

    pub(super) fn allow(&self) {
        *self.refused.lock().unwrap() = None;
    }

    pub(super) async fn remove(self) -> Result<()> {
        delete(&self.configurations, &self.name).await
    }
}
