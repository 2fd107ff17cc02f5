//! Policies tried on given objects; what is printed reads as upstream's.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::ConfigurationPolicySpec;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::policy::dryrun::{DryRun, Input, dry_run};
use crate::policy::observed::{
    Definition, KindName, Pick, Resolution, Served, Template, Templates,
};

fn say(_: &str, _: &Value) -> Result<String, String> {
    Err("none".into())
}

fn tried(spec: Value, objects: Vec<Value>) -> DryRun {
    let spec: ConfigurationPolicySpec = serde_json::from_value(spec).unwrap();
    let templates = spec.object_templates.clone().unwrap_or_default();
    let plain = |spec: cleat_api::configurationpolicy::ObjectTemplate| {
        let templated = serde_json::to_string(&spec.object_definition).unwrap().contains("{{");
        let definition = match templated {
            false => Definition::Plain,
            true => Definition::Templated { name: false, namespace: false, resolved: [].into() },
        };
        Template { spec, definition }
    };
    let served = |group: &str, resource: &str, namespaced| Served {
        group: group.into(),
        version: "v1".into(),
        resource: resource.into(),
        namespaced,
    };
    let kinds = [
        ("v1", "Pod", served("", "pods", true)),
        ("v1", "Secret", served("", "secrets", true)),
        ("v1", "Namespace", served("", "namespaces", false)),
    ];
    let kinds = kinds.into_iter().map(|(api, kind, served)| {
        (KindName { api_version: api.into(), kind: kind.into() }, served)
    });
    let definition = templates.first().map(|one| one.object_definition.clone()).unwrap_or_default();
    let mut resolve = |_: usize, pick: &Pick| {
        let mut object = definition.clone();
        object["metadata"]["labels"] = json!({ "namespace": pick.namespace });
        Resolution::Object { object, read_secrets: false }
    };
    dry_run(Input {
        name: "p".into(),
        namespace: "managed".into(),
        templates: Templates::Known(templates.into_iter().map(plain).collect()),
        spec,
        objects,
        kinds: kinds.collect(),
        now: Timestamp::UNIX_EPOCH,
        say,
        resolve: &mut resolve,
    })
}

fn pod(metadata: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": { "containers": [{ "image": "nginx:1.7.9", "name": "nginx" }] },
    })
}

fn musthave(action: &str, definition: Value) -> Value {
    json!({
        "remediationAction": action,
        "object-templates": [{ "complianceType": "musthave", "objectDefinition": definition }],
    })
}

#[test]
fn a_difference_is_shown_and_the_code_says_so() {
    let live = pod(json!({ "name": "web", "namespace": "default" }));
    let labelled = pod(json!({ "name": "web", "namespace": "default", "labels": { "a": "b" } }));
    let run = tried(musthave("enforce", labelled.clone()), vec![live.clone()]);
    let expected = "\
# Diffs:
v1 Pod default/web:
--- default/web : existing
+++ default/web : updated
@@ -1,8 +1,10 @@
 apiVersion: v1
 kind: Pod
 metadata:
+  labels:
+    a: b
   name: web
   namespace: default
 spec:
   containers:
   - image: nginx:1.7.9
# Compliance messages:
NonCompliant; violation - pods [web] found but not as specified in namespace default
";
    assert_eq!(run.render(false), expected);
    assert_eq!((run.exit_code(), run.objects), (2, vec![labelled]));
    let run = tried(musthave("inform", live.clone()), vec![live.clone()]);
    let expected = "\
# Diffs:
v1 Pod default/web:

# Compliance messages:
Compliant; notification - pods [web] found as specified in namespace default
";
    assert_eq!(run.render(false), expected);
    assert_eq!((run.exit_code(), run.objects), (0, vec![live]));
}

#[test]
fn namespaces_that_are_spelled_out_are_there() {
    let mut spec = musthave("inform", pod(json!({ "name": "web" })));
    spec["namespaceSelector"] = json!({ "include": ["n1", "n2"], "exclude": ["kube-*"] });
    let run = tried(spec, vec![]);
    let expected = "\
# Diffs:
v1 Pod n1/web:

v1 Pod n2/web:

# Compliance messages:
NonCompliant; violation - pods [web] not found in namespaces: n1, n2
";
    assert_eq!(run.render(true), expected);
}

#[test]
fn what_cannot_be_merged_is_said_after_what_was_found() {
    let live = pod(json!({ "name": "web", "namespace": "default" }));
    let wrong =
        pod(json!({ "name": "web", "namespace": "default", "annotations": { "case": 10 } }));
    let run = tried(musthave("inform", wrong), vec![live]);
    assert_eq!(
        run.messages,
        [
            "NonCompliant; violation - pods [web] found but not as specified in namespace default",
            "NonCompliant; violation - invalid annotation, error: contains non-string value in the map under key \"case\": 10 is of the type int64, expected string",
        ]
    );
}

#[test]
fn secrets_are_not_shown() {
    let secret = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "s", "namespace": "default" }, "data": { "a": value },
        })
    };
    let run = tried(musthave("inform", secret("Yg==")), vec![secret("Yw==")]);
    assert!(
        run.render(true)
            .contains("# The difference is redacted because it contains sensitive data.")
    );
    assert!(!run.render(true).contains("Yw=="));
}

#[test]
fn templates_are_resolved_for_each_object() {
    let definition =
        pod(json!({ "name": "web", "labels": { "namespace": "{{ .ObjectNamespace }}" } }));
    let mut spec = musthave("enforce", definition);
    spec["namespaceSelector"] = json!({ "include": ["n1", "n2"] });
    let run = tried(spec, vec![]);
    let labels: Vec<&Value> =
        run.objects.iter().map(|object| &object["metadata"]["labels"]["namespace"]).collect();
    assert_eq!(labels, ["n1", "n2"]);
}
