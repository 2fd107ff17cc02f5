//! How protection is served: by several at once, while certificates change, and not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result};
use cleat_apiserver::certificates::Authority;
use cleat_apiserver::tls::{self, ServeOptions, ServerCertificate, ServerTls};
use cleat_world::within;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::*;

#[tokio::test]
async fn two_replicas_decide_alike() -> Result<()> {
    let guarded = Guarded::all("replicas").await?;
    let second = format!("{}-second", guarded.name);
    let (other, _, tasks) = protect_as(&guarded.client, &guarded.name, &second).await?;
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    refusal(guarded.deployments().delete("server", &dry).await);
    refusal(guarded.namespaces().delete(&guarded.home(), &dry).await);
    refusal(guarded.services().delete(&guarded.name, &dry).await);
    let asked = guarded.asked.lock().unwrap().clone();
    assert!(asked.len() >= 3);
    for request in asked {
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request,
        });
        let (one, two) = (guarded.protection.answer(&review).await?, other.answer(&review).await?);
        assert_eq!(one, two);
    }
    tasks.shutdown().await;
    uninstall(&guarded.client, &second).await?;
    guarded.end().await
}

/// Whoever ends protection is told to do so before the webhook is stopped.
#[tokio::test]
async fn a_running_webhook_put_back_what_uninstalling_took_away() -> Result<()> {
    let guarded = Guarded::all("ended").await?;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(guarded.client.clone());
    uninstall(&guarded.client, &guarded.name).await?;
    // Something happens that makes the webhook look at its configuration.
    let mut touched = service(&guarded.name, &guarded.home());
    touched["metadata"]["name"] = json!(format!("{}-more", guarded.name));
    let more = create(&guarded.services(), touched).await?;
    let more = more.metadata.name.unwrap();
    seen(&guarded.services(), &more, |one: &CriticalService| {
        one.status.as_ref().is_some_and(|status| !status.criteria.is_empty())
    })
    .await?;
    guarded.services().delete(&more, &DeleteParams::default()).await?;
    assert!(configurations.get_opt(&guarded.name).await?.is_none());
    begin_again(&guarded.client, &guarded.name).await?;
    seen(&configurations, &guarded.name, |_| true).await?;
    eventually("protection to begin again", || async {
        let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
        Ok(guarded.deployments().delete("server", &dry).await.is_err().then_some(()))
    })
    .await?;
    guarded.end().await
}

/// One that knows less than another must not take away what the other asked for.
#[tokio::test]
async fn replicas_with_their_own_authorities_answer_by_one_configuration() -> Result<()> {
    let guarded = Guarded::all("authorities").await?;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(guarded.client.clone());
    let other = Authority::generate("another-ca", Timestamp::now())?;
    let before = configurations.get(&guarded.name).await?;
    let url = before.webhooks.iter().flatten().find_map(|one| one.client_config.url.clone());
    let served = Served {
        url: url.context("it has a URL")?.trim_end_matches(cleat_protection::PATH).to_owned(),
        authority: other.certificate_pem().to_owned(),
    };
    let (second, tasks) = start_protection(&guarded.client, &guarded.name, &guarded.name, &served);
    within("the second authority", second.until_believed(other.certificate_pem())).await?;
    let after = configurations.get(&guarded.name).await?;
    let bundles = |one: &ValidatingWebhookConfiguration| -> Vec<String> {
        let hooks = one.webhooks.iter().flatten();
        let bundles = hooks.filter_map(|hook| hook.client_config.ca_bundle.clone());
        bundles.map(|bundle| String::from_utf8(bundle.0).unwrap()).collect()
    };
    for (old, new) in bundles(&before).iter().zip(bundles(&after)) {
        assert!(new.starts_with(old.trim_end()), "{new} lost {old}");
        assert!(new.contains(other.certificate_pem().trim_end()), "{new}");
    }
    // The first has nothing to put right: it goes on to be asked.
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let status = refusal(guarded.deployments().delete("server", &dry).await);
    assert!(status.message.contains("ProtectedBy"), "{}", status.message);
    let still = configurations.get(&guarded.name).await?;
    assert_eq!(still.metadata.resource_version, after.metadata.resource_version);
    tasks.shutdown().await;
    guarded.end().await
}

#[tokio::test]
async fn a_webhook_that_is_down_lets_nothing_protected_go_and_uninstalling_frees_it() -> Result<()>
{
    let guarded = Guarded::all("down").await?;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(guarded.client.clone());
    guarded.tasks.shutdown().await;
    let mut configuration = configurations.get(&guarded.name).await?;
    for webhook in configuration.webhooks.iter_mut().flatten() {
        webhook.client_config.url = Some("https://127.0.0.1:1/".to_owned());
    }
    configurations.replace(&guarded.name, &PostParams::default(), &configuration).await?;
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let status = eventually("the webhook to be missed", || async {
        let status = refusal(guarded.deployments().delete("server", &dry).await);
        Ok((status.code != 403).then_some(status))
    })
    .await?;
    assert!(status.message.contains("failed calling webhook"), "{}", status.message);
    uninstall(&guarded.client, &guarded.name).await?;
    assert!(configurations.get_opt(&guarded.name).await?.is_none());
    eventually("the deletion", || async {
        let params = DeleteParams::default();
        Ok(guarded.deployments().delete("server", &params).await.ok().map(drop))
    })
    .await?;
    guarded.end().await
}

#[tokio::test]
async fn what_somebody_changes_in_the_configuration_is_put_right() -> Result<()> {
    let guarded = Guarded::all("meddled").await?;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(guarded.client.clone());
    let mut configuration = configurations.get(&guarded.name).await?;
    let wanted = configuration.webhooks.clone();
    configuration.webhooks = Some(vec![]);
    configurations.replace(&guarded.name, &PostParams::default(), &configuration).await?;
    let whole = |one: &ValidatingWebhookConfiguration| one.webhooks == wanted;
    seen(&configurations, &guarded.name, whole).await?;
    configurations.delete(&guarded.name, &DeleteParams::default()).await?;
    seen(&configurations, &guarded.name, whole).await?;
    guarded.end().await
}

/// Certificates change all the while; every question is answered.
#[tokio::test]
async fn no_request_is_lost_while_certificates_are_replaced() -> Result<()> {
    let guarded = Guarded::all("rotation").await?;
    let authority = Authority::generate("webhook-ca", Timestamp::now())?;
    let issue = || {
        let day = SignedDuration::from_hours(24);
        authority.issue_server("webhook", &["127.0.0.1"], Timestamp::now(), day)
    };
    let certificate = ServerCertificate::new(&issue()?)?;
    let own = [authority.certificate().clone()];
    let tls = ServerTls::new(Arc::clone(&certificate), &own)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let served = Served {
        url: format!("https://{}/", listener.local_addr()?),
        authority: authority.certificate_pem().to_owned(),
    };
    guarded.tasks.shutdown().await;
    let (protection, tasks) =
        start_protection(&guarded.client, &guarded.name, &guarded.name, &served);
    let forever = std::future::pending();
    let options = ServeOptions::default();
    tokio::spawn(tls::serve(listener, Some(tls), protection.routes(), options, forever));
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(guarded.client.clone());
    let moved = |one: &ValidatingWebhookConfiguration| {
        let urls = one.webhooks.iter().flatten().filter_map(|one| one.client_config.url.as_ref());
        urls.clone().count() > 0 && urls.clone().all(|url| url.starts_with(&served.url))
    };
    seen(&configurations, &guarded.name, moved).await?;
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let ours = |status: &Status| status.message.contains("ProtectedBy");
    eventually("the move to be heeded", || async {
        let mut rounds = 0;
        while rounds < 3 && ours(&refusal(guarded.deployments().delete("server", &dry).await)) {
            rounds += 1;
        }
        Ok((rounds == 3).then_some(()))
    })
    .await?;
    let done = Arc::new(AtomicBool::new(false));
    let mut asking = JoinSet::new();
    for _ in 0..4 {
        let (done, deployments, dry) = (Arc::clone(&done), guarded.deployments(), dry.clone());
        asking.spawn(async move {
            let mut answered = 0_usize;
            while !done.load(Ordering::Relaxed) {
                let status = refusal(deployments.delete("server", &dry).await);
                assert!(status.message.contains("ProtectedBy"), "{}", status.message);
                answered += 1;
            }
            answered
        });
    }
    for _ in 0..20 {
        certificate.replace(&issue()?)?;
        // A new connection meets the new certificate.
        refusal(guarded.deployments().delete("server", &dry).await);
    }
    done.store(true, Ordering::Relaxed);
    while let Some(answered) = within("those who ask", asking.join_next()).await? {
        assert!(answered.context("one of them failed")? > 0);
    }
    tasks.shutdown().await;
    guarded.end().await
}
