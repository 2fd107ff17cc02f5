//! The same on the real shapes of built-in kinds.

use serde_json::{Value, json};

use super::TIME;
use crate::apply::{Manager, Target, server_side_apply, track_update};
use crate::builtin;
use crate::status::Status;

struct Builtin {
    kind: &'static str,
    definition: &'static str,
    api_version: &'static str,
}

const DEPLOYMENT: Builtin = Builtin {
    kind: "Deployment",
    definition: "io.k8s.api.apps.v1.Deployment",
    api_version: "apps/v1",
};
const SERVICE: Builtin =
    Builtin { kind: "Service", definition: "io.k8s.api.core.v1.Service", api_version: "v1" };
const CONFIG_MAP: Builtin =
    Builtin { kind: "ConfigMap", definition: "io.k8s.api.core.v1.ConfigMap", api_version: "v1" };

impl Builtin {
    fn with<R>(&self, name: &str, run: impl FnOnce(&Target<'_>, &Manager<'_>) -> R) -> R {
        let schema = builtin::schemas().named(self.definition);
        assert!(schema.is_some());
        let target = Target { kind: self.kind, schema, reset: &[&["status"]], api_versions: &[] };
        let api_version = self.api_version;
        run(&target, &Manager { name, subresource: "", api_version, time: TIME })
    }

    fn object(&self, parts: Value) -> Value {
        let mut object = json!({
            "apiVersion": self.api_version, "kind": self.kind,
            "metadata": {"name": "x", "namespace": "default"}
        });
        for (key, value) in parts.as_object().unwrap() {
            match key.as_str() {
                "labels" => object["metadata"]["labels"] = value.clone(),
                key => object[key] = value.clone(),
            }
        }
        object
    }

    fn create(&self, name: &str, parts: Value) -> Value {
        self.update(name, None, self.object(parts))
    }

    fn update(&self, name: &str, live: Option<&Value>, mut new: Value) -> Value {
        self.with(name, |target, manager| track_update(live, &mut new, target, manager));
        new
    }

    fn apply(&self, name: &str, live: Option<&Value>, parts: Value) -> Result<Value, Status> {
        let config = self.object(parts);
        self.with(name, |target, manager| server_side_apply(live, &config, target, manager, false))
    }
}

fn fields(object: &Value, index: usize) -> &Value {
    &object["metadata"]["managedFields"][index]["fieldsV1"]
}

/// A deployment as the server has defaulted it.
fn deployment() -> Value {
    json!({
        "labels": {"app": "web"},
        "spec": {
            "progressDeadlineSeconds": 600, "replicas": 1, "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {
                "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
                "type": "RollingUpdate"
            },
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [{
                        "image": "nginx", "imagePullPolicy": "Always", "name": "nginx",
                        "ports": [{"containerPort": 80, "protocol": "TCP"}], "resources": {},
                        "env": [{"name": "A", "value": "1"}]
                    }],
                    "restartPolicy": "Always", "securityContext": {}
                }
            }
        },
        "status": {}
    })
}

#[test]
fn a_created_deployment_is_owned_as_upstream_records_it() {
    let created = DEPLOYMENT.create("kubectl-create", deployment());
    assert_eq!(
        fields(&created, 0),
        &json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {
                "f:progressDeadlineSeconds": {}, "f:replicas": {}, "f:revisionHistoryLimit": {},
                "f:selector": {},
                "f:strategy": {
                    "f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}},
                    "f:type": {}
                },
                "f:template": {
                    "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                    "f:spec": {
                        "f:containers": {"k:{\"name\":\"nginx\"}": {
                            ".": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {},
                            "f:ports": {
                                ".": {},
                                "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {
                                    ".": {}, "f:containerPort": {}, "f:protocol": {}
                                }
                            },
                            "f:resources": {},
                            "f:env": {".": {}, "k:{\"name\":\"A\"}": {
                                ".": {}, "f:name": {}, "f:value": {}
                            }}
                        }},
                        "f:restartPolicy": {}, "f:securityContext": {}
                    }
                }
            }
        })
    );
}

#[test]
fn an_update_takes_what_it_changed() {
    let created = DEPLOYMENT.create("kubectl-create", deployment());
    let mut scaled = created.clone();
    scaled["spec"]["replicas"] = json!(3);
    scaled["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:2");
    let scaled = DEPLOYMENT.update("hpa", Some(&created), scaled);
    assert_eq!(scaled["metadata"]["managedFields"][0]["manager"], "hpa");
    assert_eq!(
        fields(&scaled, 0),
        &json!({"f:spec": {
            "f:replicas": {},
            "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"nginx\"}": {"f:image": {}}}}}
        }})
    );
    assert_eq!(fields(&scaled, 1)["f:spec"].get("f:replicas"), None);
}

#[test]
fn an_applied_deployment_owns_what_it_says() {
    let config = json!({"spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "nginx", "image": "nginx",
                "ports": [{"containerPort": 80}]}]}
        }
    }});
    let applied = DEPLOYMENT.apply("a", None, config).unwrap();
    assert_eq!(
        fields(&applied, 0),
        &json!({"f:spec": {
            "f:selector": {},
            "f:template": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {"f:containers": {"k:{\"name\":\"nginx\"}": {
                    ".": {}, "f:image": {}, "f:name": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {
                        ".": {}, "f:containerPort": {}
                    }}
                }}}
            }
        }})
    );
    let status = DEPLOYMENT
        .apply(
            "b",
            Some(&applied),
            json!({"spec": {"template": {"spec": {"containers": [
                {"name": "nginx", "image": "other"}, {"name": "side", "image": "s"}
            ]}}}}),
        )
        .unwrap_err();
    assert_eq!(
        status.message,
        "Apply failed with 1 conflict: conflict with \"a\": \
         .spec.template.spec.containers[name=\"nginx\"].image"
    );
}

#[test]
fn service_ports_are_told_apart_by_port_and_protocol() {
    let ports = |ports: Value| json!({"spec": {"ports": ports}});
    let one = SERVICE
        .apply("a", None, ports(json!([{"port": 53, "name": "tcp", "protocol": "TCP"}])))
        .unwrap();
    let both = SERVICE
        .apply("b", Some(&one), ports(json!([{"port": 53, "name": "udp", "protocol": "UDP"}])))
        .unwrap();
    assert_eq!(both["spec"]["ports"].as_array().unwrap().len(), 2);
    let rest = SERVICE.apply("a", Some(&both), json!({})).unwrap();
    assert_eq!(rest["spec"]["ports"], json!([{"port": 53, "name": "udp", "protocol": "UDP"}]));
}

#[test]
fn config_maps_are_shared_by_key() {
    let one = CONFIG_MAP.apply("a", None, json!({"data": {"a": "1"}})).unwrap();
    let two = CONFIG_MAP.apply("b", Some(&one), json!({"data": {"b": "2"}})).unwrap();
    assert_eq!(two["data"], json!({"a": "1", "b": "2"}));
    let three = CONFIG_MAP.apply("a", Some(&two), json!({})).unwrap();
    assert_eq!(three["data"], json!({"b": "2"}));
    let status = CONFIG_MAP.apply("a", None, json!({"data": {"a": 1}, "nope": {}})).unwrap_err();
    assert_eq!(
        status.message,
        "failed to create typed patch object (default/x; /v1, Kind=ConfigMap): errors:\n  \
         .data.a: expected string, got &value.valueUnstructured{Value:1}\n  \
         .nope: field not declared in schema"
    );
}

#[test]
fn every_builtin_shape_can_be_walked() {
    for resource in builtin::resources() {
        for version in &resource.versions {
            let Some(root) = &version.schema else { continue };
            let target = Target {
                kind: &resource.kind,
                schema: Some(root.schema()),
                reset: &[],
                api_versions: &[],
            };
            let manager = Manager { name: "m", subresource: "", api_version: "v1", time: TIME };
            let mut new =
                json!({"metadata": {"labels": {"a": "b"}}, "spec": {"x": [1]}, "status": {}});
            track_update(None, &mut new, &target, &manager);
            assert_eq!(
                new["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"],
                json!({"f:labels": {".": {}, "f:a": {}}}),
                "{}",
                resource.kind
            );
        }
    }
}

/// Upstream compares Go structs, in which some fields are there even when JSON has nothing.
#[test]
fn what_go_never_leaves_out_is_not_news() {
    let owned = |builtin: &Builtin, parts: Value| {
        let created = builtin.create("m", parts);
        created["metadata"]["managedFields"][0]["fieldsV1"].clone()
    };
    // Required lists are null, not absent, so their parent gains nothing but elements.
    let pod = Builtin { kind: "Pod", definition: "io.k8s.api.core.v1.Pod", api_version: "v1" };
    assert_eq!(
        owned(&pod, json!({"spec": {"containers": [{"name": "c"}], "volumes": [{"name": "v"}]}})),
        json!({"f:spec": {
            "f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}}},
            "f:volumes": {".": {}, "k:{\"name\":\"v\"}": {".": {}, "f:name": {}}}
        }})
    );
    let role = Builtin {
        kind: "ClusterRole",
        definition: "io.k8s.api.rbac.v1.ClusterRole",
        api_version: "rbac.authorization.k8s.io/v1",
    };
    assert_eq!(owned(&role, json!({"rules": null})), Value::Null);
    let class = Builtin {
        kind: "PriorityClass",
        definition: "io.k8s.api.scheduling.v1.PriorityClass",
        api_version: "scheduling.k8s.io/v1",
    };
    assert_eq!(owned(&class, json!({"value": 0})), Value::Null);
    // A pointer to zero is something.
    assert_eq!(
        owned(&DEPLOYMENT, json!({"spec": {"replicas": 0, "template": {}}})),
        json!({"f:spec": {"f:replicas": {}}})
    );
}
