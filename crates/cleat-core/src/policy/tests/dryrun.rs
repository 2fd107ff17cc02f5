//! Policies tried on given objects; what is printed reads as upstream's.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::ConfigurationPolicySpec;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::policy::dryrun::{DryRun, Given, Input, dry_run};
use crate::policy::observed::{
    Definition, KindName, Pick, Resolution, Served, Template, Templates,
};

fn say(_: &str, _: &Value) -> Result<String, String> {
    Err("none".into())
}

fn tried(spec: Value, objects: Vec<Value>) -> DryRun {
    let spec: ConfigurationPolicySpec = serde_json::from_value(spec).unwrap();
    let namespaces = spec.namespace_selector.include.clone();
    let templates = spec.object_templates.clone().unwrap_or_default();
    let plain = |spec: cleat_api::configurationpolicy::ObjectTemplate| {
        let templated = serde_json::to_string(&spec.object_definition).unwrap().contains("{{");
        let definition = match templated {
            false => Definition::Plain,
            true => {
                let name = &spec.object_definition["metadata"]["name"];
                let name = name.as_str().is_some_and(|name| name.contains("{{"));
                Definition::Templated { name, namespace: false, resolved: [].into() }
            }
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
        if object["metadata"]["name"].as_str().is_some_and(|name| name.contains("{{")) {
            object["metadata"]["name"] = pick.name.clone().into();
        }
        Resolution::Object { object, read_secrets: false }
    };
    let kinds = kinds.collect();
    let world = Given { objects: &objects, kinds: &kinds, namespaces: &namespaces };
    dry_run(Input {
        name: "p".into(),
        namespace: "managed".into(),
        labels: [].into(),
        annotations: [].into(),
        templates: Templates::Known(templates.into_iter().map(plain).collect()),
        spec,
        world: &world,
        now: Timestamp::UNIX_EPOCH,
        say,
        resolve: &mut resolve,
    })
    .unwrap()
}

fn render(run: &DryRun, full_diffs: bool) -> String {
    run.shown_diffs(full_diffs) + &run.shown_messages()
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
    let run = tried(musthave("enforce", labelled), vec![live.clone()]);
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
    assert_eq!(render(&run, false), expected);
    assert_eq!(run.exit_code(), 2);
    let run = tried(musthave("inform", live.clone()), vec![live]);
    let expected = "\
# Diffs:
v1 Pod default/web:

# Compliance messages:
Compliant; notification - pods [web] found as specified in namespace default
";
    assert_eq!(render(&run, false), expected);
    assert_eq!(run.exit_code(), 0);
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
    assert_eq!(render(&run, true), expected);
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
        render(&run, true)
            .contains("# The difference is redacted because it contains sensitive data.")
    );
    assert!(!render(&run, true).contains("Yw=="));
}

#[test]
fn templates_are_resolved_for_each_object() {
    let definition =
        pod(json!({ "name": "web", "labels": { "namespace": "{{ .ObjectNamespace }}" } }));
    let mut spec = musthave("enforce", definition);
    spec["namespaceSelector"] = json!({ "include": ["n1", "n2"] });
    let live = |namespace: &str| pod(json!({ "name": "web", "namespace": namespace }));
    let run = tried(spec, vec![live("n1"), live("n2")]);
    let added = |index: usize, namespace: &str| {
        run.diffs[index].recorded.contains(&alloc::format!("+    namespace: {namespace}"))
    };
    assert!(added(0, "n1") && added(1, "n2"), "{:?}", run.diffs);
}

/// Reading must not take a round for every object, for the number of rounds is limited.
#[test]
fn any_number_of_namespaces_and_objects_is_looked_at() {
    let names: Vec<String> = (0..100).map(|index| alloc::format!("n{index:02}")).collect();
    let live = |namespace: &String| pod(json!({ "name": "web", "namespace": namespace }));
    let objects: Vec<Value> = names.iter().map(live).collect();
    let labels = json!({ "namespace": "{{ .ObjectNamespace }}" });
    let named = musthave("inform", pod(json!({ "name": "web", "labels": labels })));
    let mut selected = musthave("inform", pod(json!({ "labels": labels })));
    selected["object-templates"][0]["objectSelector"] = json!({});
    for mut spec in [named, selected] {
        spec["namespaceSelector"] = json!({ "include": names });
        assert_eq!(tried(spec, objects.clone()).diffs.len(), 100);
    }
}

#[test]
fn a_name_makes_mustnothave_blind_for_contents() {
    let labelled = |name: &str, image: &str| {
        let mut pod = pod(json!({ "name": name, "namespace": "default", "labels": { "a": "b" } }));
        pod["spec"]["containers"][0]["image"] = image.into();
        pod
    };
    let objects = vec![labelled("one", "nginx:1.7.9"), labelled("two", "other")];
    let unwanted = |name: Option<&str>| {
        let mut spec = musthave("inform", pod(json!({ "namespace": "default" })));
        spec["object-templates"][0]["complianceType"] = "mustnothave".into();
        spec["object-templates"][0]["objectSelector"] = json!({ "matchLabels": { "a": "b" } });
        if let Some(name) = name {
            spec["object-templates"][0]["objectDefinition"]["metadata"]["name"] = name.into();
        }
        spec
    };
    let run = tried(unwanted(None), objects.clone());
    assert_eq!(run.messages, ["NonCompliant; violation - pods [one] found in namespace default"]);
    assert_eq!(run.status.history[0].message, run.messages[0]);
    let run = tried(unwanted(Some("{{ .ObjectName }}")), objects);
    assert_eq!(
        run.messages,
        ["NonCompliant; violation - pods [one, two] found in namespace default"]
    );
}
