use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::resource::{Origin, ResourceType, Subresource, Version};

struct Counter(u16);

impl Addresses for Counter {
    fn cluster_ip(&mut self) -> Option<String> {
        self.0 += 1;
        Some(format!("10.0.0.{}", self.0))
    }

    fn node_port(&mut self) -> Option<u16> {
        self.0 += 1;
        Some(30000 + self.0)
    }
}

fn resource(group: &str, kind: &str, plural: &str, origin: Origin) -> ResourceType {
    let status = Subresource {
        name: "status".into(),
        group: "".into(),
        version: "".into(),
        kind: kind.into(),
        verbs: Vec::new(),
    };
    let without = ["Secret", "ConfigMap"].contains(&kind);
    let version = Version {
        name: "v1".into(),
        served: true,
        deprecation: None,
        schema: None,
        verbs: Vec::new(),
        subresources: if without { Vec::new() } else { vec![status] },
        scale: None,
        columns: Vec::new(),
        selectable_fields: Vec::new(),
    };
    ResourceType {
        group: group.into(),
        plural: plural.into(),
        singular: "".into(),
        kind: kind.into(),
        list_kind: "".into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        versions: vec![version],
        storage_version: "v1".into(),
        origin,
    }
}

fn builtin_type(group: &str, kind: &str, plural: &str) -> ResourceType {
    resource(group, kind, plural, Origin::Builtin)
}

fn with_env<R>(run: impl FnOnce(&mut Env<'_>) -> R) -> R {
    let extra = BTreeMap::new();
    let groups = ["system:authenticated".to_owned()];
    let account = json!({});
    run(&mut Env {
        now: "2026-11-15T21:07:54Z".parse().unwrap(),
        user: Requester { name: "jane", uid: "", groups: &groups, extra: &extra },
        addresses: &mut Counter(0),
        service_account: Some(&account),
        suffix: "abcde",
    })
}

fn create(ty: &ResourceType, mut object: Value) -> Value {
    let api_version = ty.api_version("v1");
    object["apiVersion"] = api_version.clone().into();
    object["kind"] = ty.kind.to_string().into();
    defaults::default(&api_version, &ty.kind, &mut object);
    with_env(|env| prepare_create(ty, "v1", &mut object, env));
    object
}

fn update(ty: &ResourceType, subresource: Option<&str>, old: &Value, mut new: Value) -> Value {
    with_env(|env| prepare_update(ty, "v1", subresource, old, &mut new, env));
    new
}

#[test]
fn a_new_pod_is_pending_and_gets_what_admission_adds() {
    let ty = builtin_type("", "Pod", "pods");
    let pod = create(
        &ty,
        json!({ "metadata": { "name": "a" }, "spec": { "containers": [{ "name": "a", "image": "a" }] },
            "status": { "phase": "Running" } }),
    );
    assert_eq!(pod["status"], json!({ "phase": "Pending", "qosClass": "BestEffort" }));
    assert_eq!(pod["metadata"]["generation"], json!(1));
    assert_eq!(pod["spec"]["serviceAccountName"], json!("default"));
    assert_eq!(pod["spec"]["priority"], json!(0));
    assert_eq!(pod["spec"]["tolerations"].as_array().unwrap().len(), 2);
    assert_eq!(pod["spec"]["volumes"][0]["name"], json!("kube-api-access-abcde"));
    assert_eq!(pod["spec"]["volumes"][0]["projected"]["defaultMode"], json!(420));
    assert_eq!(pod["spec"]["containers"][0]["volumeMounts"][0]["readOnly"], json!(true));
}

#[test]
fn quality_of_service_follows_the_containers() {
    let limits = json!({ "cpu": "1", "memory": "1Gi" });
    for (resources, class) in [
        (json!({}), "BestEffort"),
        (json!({ "requests": { "cpu": "1" } }), "Burstable"),
        (json!({ "limits": limits, "requests": limits }), "Guaranteed"),
    ] {
        let spec = json!({ "containers": [{ "resources": resources }] });
        assert_eq!(quality_of_service(&spec), class);
    }
}

#[test]
fn a_namespace_gets_its_finalizer_and_keeps_it() {
    let ty = builtin_type("", "Namespace", "namespaces");
    let space = create(&ty, json!({ "metadata": { "name": "a" } }));
    assert_eq!(space["spec"], json!({ "finalizers": ["kubernetes"] }));
    assert_eq!(space["status"], json!({ "phase": "Active" }));
    let mut wish = space.clone();
    wish["spec"] = json!({});
    wish["status"] = json!({ "phase": "Terminating" });
    assert_eq!(update(&ty, None, &space, wish.clone()), space);
    let finalized = update(&ty, Some("finalize"), &space, wish);
    assert_eq!(finalized["spec"], json!({}));
    assert_eq!(finalized["status"], json!({ "phase": "Active" }));
}

#[test]
fn generation_counts_changes_of_the_spec() {
    let ty = builtin_type("apps", "Deployment", "deployments");
    let old = create(&ty, json!({ "metadata": { "name": "a" }, "spec": {} }));
    assert_eq!(old["metadata"]["generation"], json!(1));
    let mut new = old.clone();
    new["spec"]["replicas"] = json!(3);
    new["status"] = json!({ "replicas": 7 });
    let new = update(&ty, None, &old, new);
    assert_eq!(new["metadata"]["generation"], json!(2));
    assert_eq!(new["status"], json!({}));
    let mut status = new.clone();
    status["spec"]["replicas"] = json!(9);
    status["metadata"]["labels"] = json!({ "a": "b" });
    status["status"] = json!({ "replicas": 3 });
    let status = update(&ty, Some("status"), &new, status);
    assert_eq!(status["spec"]["replicas"], json!(3));
    assert_eq!(status["status"], json!({ "replicas": 3 }));
    assert_eq!(status["metadata"].get("labels"), None);
    assert_eq!(status["metadata"]["generation"], json!(2));
}

#[test]
fn kinds_without_generation_stay_without() {
    let ty = builtin_type("", "ConfigMap", "configmaps");
    let old = create(&ty, json!({ "metadata": { "name": "a" }, "data": { "a": "b" } }));
    let mut new = old.clone();
    new["data"]["a"] = json!("c");
    new["metadata"]["generation"] = json!(7);
    assert_eq!(update(&ty, None, &old, new)["metadata"].get("generation"), None);
}

#[test]
fn a_service_is_given_an_address_and_keeps_it() {
    let ty = builtin_type("", "Service", "services");
    let service = json!({ "metadata": { "name": "a" },
        "spec": { "type": "NodePort", "ports": [{ "port": 80 }], "selector": { "a": "b" } } });
    let old = create(&ty, service.clone());
    assert_eq!(old["spec"]["clusterIP"], json!("10.0.0.1"));
    assert_eq!(old["spec"]["clusterIPs"], json!(["10.0.0.1"]));
    assert_eq!(old["spec"]["ipFamilies"], json!(["IPv4"]));
    assert_eq!(old["spec"]["ipFamilyPolicy"], json!("SingleStack"));
    assert_eq!(old["spec"]["ports"][0]["nodePort"], json!(30002));
    let mut new = service;
    new["spec"]["ports"][0]["port"] = json!(81);
    defaults::default("v1", "Service", &mut new);
    let kept = update(&ty, None, &old, new);
    assert_eq!(kept["spec"]["clusterIP"], json!("10.0.0.1"));
    assert_eq!(kept["spec"]["ports"][0]["nodePort"], json!(30002));
    let mut plain = kept.clone();
    plain["spec"]["type"] = json!("ClusterIP");
    let plain = update(&ty, None, &kept, plain);
    assert_eq!(plain["spec"]["ports"][0].get("nodePort"), None);
    assert_eq!(plain["spec"].get("externalTrafficPolicy"), None);
    let headless =
        create(&ty, json!({ "spec": { "clusterIP": "None", "selector": { "a": "b" } } }));
    assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
    assert_eq!(headless["spec"]["ipFamilyPolicy"], json!("SingleStack"));
}

#[test]
fn a_certificate_request_says_who_asked_and_stays_as_it_is() {
    let ty = builtin_type(
        "certificates.k8s.io",
        "CertificateSigningRequest",
        "certificatesigningrequests",
    );
    let old = create(
        &ty,
        json!({ "metadata": { "name": "a" },
            "spec": { "request": "eA==", "signerName": "a.b/c", "username": "root" },
            "status": { "certificate": "eA==" } }),
    );
    assert_eq!(old["spec"]["username"], json!("jane"));
    assert_eq!(old["spec"]["groups"], json!(["system:authenticated"]));
    assert_eq!(old["status"], json!({}));
    let mut new = old.clone();
    new["spec"]["signerName"] = json!("x.y/z");
    new["status"] = json!({ "certificate": "eA==",
        "conditions": [{ "type": "Approved", "status": "True" }] });
    assert_eq!(update(&ty, None, &old, new.clone()), old);
    let approved = update(&ty, Some("approval"), &old, new);
    assert_eq!(
        approved["status"],
        json!({ "conditions": [{ "type": "Approved", "status": "True",
            "lastUpdateTime": "2026-11-15T21:07:54Z",
            "lastTransitionTime": "2026-11-15T21:07:54Z" }] })
    );
}

#[test]
fn a_job_selects_its_pods_by_its_uid() {
    let ty = builtin_type("batch", "Job", "jobs");
    let job = create(&ty, json!({ "metadata": { "name": "a", "uid": "u" } }));
    assert_eq!(
        job["spec"]["selector"],
        json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": "u" } })
    );
    assert_eq!(job["spec"]["template"]["metadata"]["labels"]["job-name"], json!("a"));
}

#[test]
fn a_daemon_set_counts_its_templates_in_an_annotation() {
    let ty = builtin_type("apps", "DaemonSet", "daemonsets");
    let old = create(&ty, json!({ "metadata": { "name": "a" } }));
    let annotation = |object: &Value| {
        object["metadata"]["annotations"][TEMPLATE_GENERATION].as_str().unwrap().to_owned()
    };
    assert_eq!(annotation(&old), "1");
    let mut new = old.clone();
    new["spec"]["template"]["metadata"]["labels"] = json!({ "a": "b" });
    new["metadata"]["annotations"] = json!({});
    let new = update(&ty, None, &old, new);
    assert_eq!(annotation(&new), "2");
    assert_eq!(new["metadata"]["generation"], json!(2));
}

#[test]
fn custom_resources_follow_their_status_subresource() {
    let ty = resource(
        "example.com",
        "Widget",
        "widgets",
        Origin::Custom { name: "widgets.example.com".into(), uid: "u".into() },
    );
    let old = create(&ty, json!({ "metadata": { "name": "a" }, "spec": {}, "status": { "x": 1 } }));
    assert_eq!(old.get("status"), None);
    assert_eq!(old["metadata"]["generation"], json!(1));
    let mut new = old.clone();
    new["extra"] = json!(1);
    new["status"] = json!({ "x": 1 });
    let new = update(&ty, None, &old, new);
    assert_eq!(new["metadata"]["generation"], json!(2));
    assert_eq!(new.get("status"), None);
    let mut status = new.clone();
    status["metadata"]["labels"] = json!({ "a": "b" });
    status["spec"] = json!({ "y": 1 });
    status["status"] = json!({ "x": 2 });
    let status = update(&ty, Some("status"), &new, status);
    assert_eq!(status["spec"], json!({}));
    assert_eq!(status["metadata"].get("labels"), None);
    assert_eq!(status["status"], json!({ "x": 2 }));
}

#[test]
fn hostile_shapes_do_not_panic() {
    for (group, kind, plural) in [
        ("", "Pod", "pods"),
        ("", "Service", "services"),
        ("", "Namespace", "namespaces"),
        ("batch", "Job", "jobs"),
        ("apps", "DaemonSet", "daemonsets"),
    ] {
        let ty = builtin_type(group, kind, plural);
        for object in [
            json!({ "metadata": 3, "spec": [], "status": "x" }),
            json!({ "metadata": { "annotations": [] }, "spec": { "ports": [1, {}], "containers": [[]] } }),
        ] {
            let old = create(&ty, object.clone());
            update(&ty, None, &old, object.clone());
            update(&ty, Some("status"), &old, object);
        }
    }
}

#[test]
fn a_pod_cannot_choose_its_own_priority() {
    let mut pod = json!({ "spec": {} });
    assert_eq!(pod_priority(&mut pod, None), Ok(()));
    assert_eq!(pod["spec"], json!({ "priority": 0, "preemptionPolicy": "PreemptLowerPriority" }));
    let class = json!({ "metadata": { "name": "high" }, "value": 7, "preemptionPolicy": "Never" });
    let mut pod = json!({ "spec": { "priorityClassName": "high" } });
    assert_eq!(pod_priority(&mut pod, Some(&class)), Ok(()));
    assert_eq!(pod["spec"]["priority"], json!(7));
    assert_eq!(pod["spec"]["preemptionPolicy"], json!("Never"));
    let mut pod = json!({ "spec": { "priorityClassName": "nope" } });
    assert_eq!(
        pod_priority(&mut pod, None).unwrap_err(),
        "no PriorityClass with name nope was found"
    );
    let mut pod = json!({ "spec": { "priority": 5 } });
    assert_eq!(
        pod_priority(&mut pod, None).unwrap_err(),
        "the integer value of priority (5) must not be provided in pod spec; priority admission \
         controller computed 0 from the given PriorityClass name"
    );
}
