//! Events of the core group and of `events.k8s.io` are two views of one stored object.

use serde_json::{Map, Value};

use super::defaults;

/// Field names in the core view and in the other.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// The same event as the core group shows it.
pub(crate) fn to_core(event: &Value) -> Value {
    convert(event, "v1", |(core, other)| (other, core))
}

/// The same event as `events.k8s.io/v1` shows it.
pub(crate) fn from_core(event: &Value) -> Value {
    convert(event, "events.k8s.io/v1", |(core, other)| (core, other))
}

fn convert(
    event: &Value,
    api_version: &str,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) -> Value {
    let mut event: Map<String, Value> = event.as_object().cloned().unwrap_or_default();
    for (from, to) in NAMES.map(direction) {
        if let Some(value) = event.remove(from) {
            event.insert(to.to_owned(), value);
        }
    }
    event.insert("apiVersion".into(), api_version.into());
    let mut event = Value::Object(event);
    // Which empty fields are written differs between the two.
    defaults::default(api_version, "Event", &mut event);
    event
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_two_views_hold_the_same() {
        let mut core = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": { "name": "a", "namespace": "default" },
            "involvedObject": { "kind": "Pod", "name": "p" }, "reason": "Started", "message": "hello",
            "source": { "component": "kubelet" }, "firstTimestamp": "2026-11-15T21:07:54Z",
            "count": 2, "type": "Normal", "reportingComponent": "kubelet", "reportingInstance": ""
        });
        defaults::default("v1", "Event", &mut core);
        let other = from_core(&core);
        assert_eq!(other["regarding"], json!({ "kind": "Pod", "name": "p" }));
        assert_eq!(other["note"], json!("hello"));
        assert_eq!(other["deprecatedCount"], json!(2));
        assert_eq!(other["reportingController"], json!("kubelet"));
        assert_eq!(other["eventTime"], json!(null));
        assert_eq!(other.get("message"), None);
        assert_eq!(to_core(&other), core);
    }
}
