//! How objects are compared with what policies want of them, how differences are shown, and when a
//! policy looks again.

use anyhow::Result;
use cleat_api::configurationpolicy::{ConfigurationPolicy, RelatedObject};
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::{Site, enforce, inform, musthave, related};
use crate::{create, delete, seen};

fn diff(entry: &RelatedObject) -> &str {
    entry.properties.as_ref().map(|known| known.diff.as_str()).unwrap_or_default()
}

#[tokio::test]
async fn an_object_has_only_what_it_must_have_but_for_metadata_of_others() -> Result<()> {
    let site = Site::start("only").await?;
    for name in ["kept", "bared"] {
        let metadata = json!({ "name": name, "labels": { "theirs": "1", "ours": "0" } });
        let data = json!({ "key": "0", "more": "2" });
        create(&site.maps(), json!({ "metadata": metadata, "data": data })).await?;
    }
    let only = |name: &str| {
        let mut definition = site.map(name, "1");
        definition["metadata"]["labels"] = json!({ "ours": "1" });
        json!({ "complianceType": "mustonlyhave", "objectDefinition": definition })
    };
    let mut kept = only("kept");
    kept["metadataComplianceType"] = json!("musthave");
    site.policy("p", enforce(vec![kept, only("bared")])).await?;
    site.settles("p").await?;
    let labels = |map: &ConfigMap| {
        map.labels().iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
    };
    let (kept, bared) = (site.maps().get("kept").await?, site.maps().get("bared").await?);
    for map in [&kept, &bared] {
        let data: Vec<_> =
            map.data.iter().flatten().map(|(key, value)| (&**key, &**value)).collect();
        assert_eq!(data, [("key", "1")]);
    }
    assert_eq!(labels(&kept), ["ours=1", "theirs=1"]);
    assert_eq!(labels(&bared), ["ours=1"]);
    Ok(())
}

#[tokio::test]
async fn differences_are_shown_unless_they_may_be_secret_or_nobody_wants_them() -> Result<()> {
    let site = Site::start("diffs").await?;
    create(&site.maps(), site.map("a", "0")).await?;
    let services: Api<Service> = Api::namespaced(site.cluster.clone(), &site.name);
    let service = |port: u16| {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": "s", "namespace": site.name },
            "spec": { "selector": { "app": "a" }, "ports": [{ "port": port }] },
        })
    };
    create(&services, service(80)).await?;
    let recorded = |mut template: Value, how: &str| {
        template["recordDiff"] = json!(how);
        template
    };
    let wanted = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "s", "namespace": site.name },
        "spec": { "selector": { "app": "b" } },
    });
    let map = musthave(site.map("a", "1"));
    for (name, templates) in [
        ("usual", vec![map.clone(), musthave(wanted.clone())]),
        ("open", vec![recorded(map, "InStatus")]),
        ("silent", vec![recorded(musthave(wanted), "None")]),
    ] {
        site.policy(name, inform(templates)).await?;
    }
    let usual = site.stands("usual", "NonCompliant").await?;
    let shown = diff(related(&usual, "s").unwrap());
    let header = format!("--- {0}/s : existing\n+++ {0}/s : updated\n", site.name);
    assert!(shown.starts_with(&header) && shown.contains("-    app: a\n+    app: b\n"), "{shown}");
    let secret = diff(related(&usual, "a").unwrap());
    assert!(secret.starts_with("# The difference is redacted"), "{secret}");
    let open = site.stands("open", "NonCompliant").await?;
    let shown = diff(related(&open, "a").unwrap());
    assert!(shown.contains("-  key: \"0\"\n+  key: \"1\"\n"), "{shown}");
    let silent = site.stands("silent", "NonCompliant").await?;
    assert_eq!(diff(related(&silent, "s").unwrap()), "");
    Ok(())
}

#[tokio::test]
async fn a_policy_looks_again_as_often_as_it_says_and_not_at_all_if_it_says_so() -> Result<()> {
    let site = Site::start("intervals").await?;
    let spec = |name: &str, compliant: &str| {
        let mut spec = enforce(vec![musthave(site.map(name, "1"))]);
        spec["evaluationInterval"] = json!({ "compliant": compliant, "noncompliant": "watch" });
        spec
    };
    site.policy("often", spec("often", "1s")).await?;
    site.policy("once", spec("once", "never")).await?;
    let never = "will not be evaluated again due to spec.evaluationInterval.compliant";
    site.says("once", never).await?;
    site.stands("often", "Compliant").await?;
    delete(&site.maps(), "once").await?;
    delete(&site.maps(), "often").await?;
    seen(&site.maps(), "often", |_: &ConfigMap| true).await?;
    // Others were looked at since, and one that is new.
    site.passes("other").await?;
    assert!(site.maps().get_opt("once").await?.is_none(), "it was looked at again");
    // What changes itself is looked at whatever it says.
    let patch = Patch::Merge(json!({ "spec": { "severity": "high" } }));
    site.policies().patch("once", &PatchParams::default(), &patch).await?;
    seen(&site.maps(), "once", |_: &ConfigMap| true).await?;
    seen(&site.policies(), "often", |policy: &ConfigurationPolicy| {
        policy.status.as_ref().is_some_and(|status| status.last_evaluated.is_some())
    })
    .await?;
    Ok(())
}
