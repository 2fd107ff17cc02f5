//! Events are the same whether they are read from the old group or the new one.

use anyhow::Result;
use k8s_openapi::api::core::v1::{self as core, ConfigMap};
use k8s_openapi::api::events::v1 as events;
use kube::Resource as _;
use kube::api::{Api, ListParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use serde_json::json;

use crate::{Place, create};

#[tokio::test]
async fn an_event_of_the_old_group_is_seen_in_the_new() -> Result<()> {
    let place = Place::new("events").await?;
    let made = create(
        &place.api::<core::Event>(),
        json!({
            "metadata": { "name": "a" },
            "involvedObject": { "kind": "ConfigMap", "name": "subject", "namespace": place.namespace },
            "reason": "Tested",
            "message": "it was tested",
            "source": { "component": "suite" },
            "firstTimestamp": "2026-01-02T03:04:05Z",
            "lastTimestamp": "2026-01-02T03:04:05Z",
            "count": 3,
            "type": "Normal",
        }),
    )
    .await?;
    let seen = place.api::<events::Event>().get("a").await?;
    assert_eq!(seen.metadata.uid, made.metadata.uid);
    assert_eq!(seen.note.as_deref(), Some("it was tested"));
    assert_eq!(seen.reason.as_deref(), Some("Tested"));
    assert_eq!(seen.deprecated_count, Some(3));
    let source = seen.deprecated_source.and_then(|source| source.component);
    assert_eq!(source.as_deref(), Some("suite"));
    let regarding = seen.regarding.and_then(|object| object.name);
    assert_eq!(regarding.as_deref(), Some("subject"));
    Ok(())
}

#[tokio::test]
async fn what_kubes_recorder_publishes_is_found_by_its_object() -> Result<()> {
    let place = Place::new("events").await?;
    let subject: ConfigMap = place.config_map("subject").await?;
    place.config_map("other").await?;
    let reporter = Reporter { controller: "cleat-suite".to_owned(), instance: None };
    let recorder = Recorder::new(place.client.clone(), reporter);
    let event = Event {
        type_: EventType::Warning,
        reason: "Tested".to_owned(),
        note: Some("it was tested".to_owned()),
        action: "Testing".to_owned(),
        secondary: None,
    };
    recorder.publish(&event, &subject.object_ref(&())).await?;
    // The same again counts up instead of making another.
    recorder.publish(&event, &subject.object_ref(&())).await?;
    let events: Api<core::Event> = place.api();
    let of = |name: &str| ListParams::default().fields(&format!("involvedObject.name={name}"));
    let found = events.list(&of("subject")).await?.items;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].message.as_deref(), Some("it was tested"));
    assert_eq!(found[0].reporting_component.as_deref(), Some("cleat-suite"));
    assert_eq!(found[0].series.as_ref().and_then(|series| series.count), Some(2));
    assert!(events.list(&of("other")).await?.items.is_empty());
    Ok(())
}
