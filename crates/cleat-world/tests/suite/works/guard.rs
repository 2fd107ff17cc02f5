//! A webhook that is asked before config maps of a fleet's namespace are deleted.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cleat_world::{Fleet, Webhook, eventually};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::{Api, DeleteParams};
use serde_json::json;

use crate::{create, delete};

pub(crate) struct Guard {
    webhook: Webhook,
    /// The map that is refused, and why.
    refused: Arc<Mutex<Option<(String, String)>>>,
    configurations: Api<ValidatingWebhookConfiguration>,
    name: String,
}

impl Guard {
    /// It lets everything pass until told otherwise.
    pub(crate) async fn install(fleet: &Fleet) -> Result<Self> {
        let refused: Arc<Mutex<Option<(String, String)>>> = Arc::default();
        let wish = Arc::clone(&refused);
        let webhook = Webhook::start(move |request| match &*wish.lock().unwrap() {
            Some((name, why)) if request["name"] == name.as_str() => Err(why.clone()),
            _ => Ok(()),
        })
        .await?;
        let only_here = json!({ "kubernetes.io/metadata.name": fleet.name });
        let configurations: Api<ValidatingWebhookConfiguration> = Api::all(fleet.cluster.clone());
        let configuration = json!({
            "metadata": { "name": fleet.name },
            "webhooks": [{
                "name": "guard.cleat.example",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": { "url": webhook.url, "caBundle": BASE64.encode(&webhook.authority) },
                "namespaceSelector": { "matchLabels": only_here },
                "rules": [{
                    "operations": ["DELETE"],
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "resources": ["configmaps"],
                }],
            }],
        });
        create(&configurations, configuration).await?;
        create(&fleet.maps(), json!({ "metadata": { "name": "probe" } })).await?;
        let probe = DeleteParams { dry_run: true, ..DeleteParams::default() };
        eventually("the webhook to be asked", || async {
            fleet.maps().delete("probe", &probe).await?;
            Ok((!webhook.asked().is_empty()).then_some(()))
        })
        .await?;
        Ok(Self { webhook, refused, configurations, name: fleet.name.clone() })
    }

    pub(crate) fn refuse(&self, map: &str, why: &str) {
        *self.refused.lock().unwrap() = Some((map.to_owned(), why.to_owned()));
        self.webhook.forget();
    }

    pub(crate) fn allow(&self) {
        *self.refused.lock().unwrap() = None;
    }

    /// Returns when the refused map was asked about, twice: once refused, it was tried again.
    pub(crate) async fn refused(&self) -> Result<()> {
        eventually("the webhook to refuse", || async {
            let map = self.refused.lock().unwrap().as_ref().map(|(map, _)| map.clone());
            let asked = self.webhook.asked();
            let about = asked.iter().filter(|request| request["name"].as_str() == map.as_deref());
            Ok((about.count() > 1).then_some(()))
        })
        .await
    }

    pub(crate) async fn remove(self) -> Result<()> {
        delete(&self.configurations, &self.name).await
    }
}
