use serde_json::{Value, json};

use super::default;

fn defaulted(yaml: &str) -> Value {
    let mut object: Value = serde_saphyr::from_str(yaml).unwrap();
    let api_version = object["apiVersion"].as_str().unwrap().to_owned();
    let kind = object["kind"].as_str().unwrap().to_owned();
    default(&api_version, &kind, &mut object);
    let once = object.clone();
    default(&api_version, &kind, &mut object);
    assert_eq!(once, object, "defaulting must be idempotent");
    object
}

#[test]
fn a_deployment_gets_everything_a_real_one_has() {
    let object = defaulted(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {}, creationTimestamp: null}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, creationTimestamp: null}
    spec:
      serviceAccount: robot
      hostNetwork: false
      containers:
      - name: web
        image: nginx:1.27
        ports: [{containerPort: 80}]
        resources: {limits: {cpu: 1000m, memory: 1024Mi}}
        env: [{name: A, value: ''}]
        readinessProbe: {httpGet: {port: 80}}
      volumes:
      - name: scratch
      - name: settings
        configMap: {name: settings}
",
    );
    assert_eq!(
        object,
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": "web" },
            "spec": {
                "replicas": 1,
                "selector": { "matchLabels": { "app": "web" } },
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": { "maxUnavailable": "25%", "maxSurge": "25%" }
                },
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": {
                        "serviceAccount": "robot",
                        "serviceAccountName": "robot",
                        "restartPolicy": "Always",
                        "dnsPolicy": "ClusterFirst",
                        "schedulerName": "default-scheduler",
                        "securityContext": {},
                        "terminationGracePeriodSeconds": 30,
                        "containers": [{
                            "name": "web",
                            "image": "nginx:1.27",
                            "imagePullPolicy": "IfNotPresent",
                            "ports": [{ "containerPort": 80, "protocol": "TCP" }],
                            "resources": { "limits": { "cpu": "1", "memory": "1Gi" } },
                            "env": [{ "name": "A" }],
                            "readinessProbe": {
                                "httpGet": { "path": "/", "port": 80, "scheme": "HTTP" },
                                "timeoutSeconds": 1,
                                "periodSeconds": 10,
                                "successThreshold": 1,
                                "failureThreshold": 3
                            },
                            "terminationMessagePath": "/dev/termination-log",
                            "terminationMessagePolicy": "File"
                        }],
                        "volumes": [
                            { "name": "scratch", "emptyDir": {} },
                            { "name": "settings", "configMap": { "name": "settings", "defaultMode": 420 } }
                        ]
                    }
                }
            },
            "status": {}
        })
    );
}

#[test]
fn a_pod_requests_its_limits_and_a_template_does_not() {
    let object = defaulted(
        "
apiVersion: v1
kind: Pod
metadata: {name: one}
spec:
  hostNetwork: true
  containers:
  - name: one
    image: busybox
    ports: [{containerPort: 80}]
    resources: {limits: {cpu: 0.5}}
",
    );
    let container = &object["spec"]["containers"][0];
    assert_eq!(container["resources"]["requests"], json!({ "cpu": "500m" }));
    assert_eq!(container["ports"][0]["hostPort"], json!(80));
    assert_eq!(container["imagePullPolicy"], json!("Always"));
    assert_eq!(object["spec"]["enableServiceLinks"], json!(true));
}

#[test]
fn empty_fields_appear_or_vanish_as_go_writes_them() {
    let expected = [
        (
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {}, immutable: false}",
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "immutable": false }),
        ),
        (
            "{apiVersion: v1, kind: Namespace, metadata: {name: a}}",
            json!({ "apiVersion": "v1", "kind": "Namespace",
                "metadata": { "name": "a", "labels": { "kubernetes.io/metadata.name": "a" } },
                "spec": {}, "status": { "phase": "Active" } }),
        ),
        (
            "{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: v}, data: {b: Yg==}}",
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" },
                "type": "Opaque", "data": { "k": "dg==", "b": "Yg==" } }),
        ),
        (
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a}}",
            json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
                "metadata": { "name": "a" }, "rules": null }),
        ),
        (
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a},
              roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: u}, {kind: ServiceAccount, name: s, namespace: ns}]}",
            json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": { "name": "a" },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r" },
                "subjects": [
                    { "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "u" },
                    { "kind": "ServiceAccount", "name": "s", "namespace": "ns" }
                ] }),
        ),
        (
            "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}], selector: {a: b}}}",
            json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a" },
                "spec": { "type": "ClusterIP", "sessionAffinity": "None", "selector": { "a": "b" },
                    "internalTrafficPolicy": "Cluster",
                    "ports": [{ "port": 80, "protocol": "TCP", "targetPort": 80 }] },
                "status": { "loadBalancer": {} } }),
        ),
        (
            "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: a},
              spec: {renewTime: '2026-11-15T21:07:54.5+01:00'}}",
            json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "a" },
                "spec": { "renewTime": "2026-11-15T20:07:54.500000Z" } }),
        ),
        (
            "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}, spec: {minAvailable: 0}}",
            json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "a" },
                "spec": { "minAvailable": 0 },
                "status": { "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0 } }),
        ),
        (
            "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}, spec: {egress: [{}]}}",
            json!({ "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": { "name": "a" },
                "spec": { "podSelector": {}, "egress": [{}], "policyTypes": ["Ingress", "Egress"] } }),
        ),
    ];
    for (yaml, expected) in expected {
        assert_eq!(defaulted(yaml), expected, "{yaml}");
    }
}

#[test]
fn jobs_and_their_templates_differ() {
    let job = defaulted(
        "{apiVersion: batch/v1, kind: Job, metadata: {name: a},
          spec: {template: {metadata: {labels: {x: z}}, spec: {restartPolicy: Never}}}}",
    );
    assert_eq!(job["metadata"]["labels"], json!({ "x": "z" }));
    assert_eq!(job["spec"]["completions"], json!(1));
    assert_eq!(job["spec"]["backoffLimit"], json!(6));
    assert_eq!(job["spec"]["podReplacementPolicy"], json!("TerminatingOrFailed"));
    let cron = defaulted(
        "{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {schedule: '@daily',
          jobTemplate: {spec: {template: {spec: {restartPolicy: Never}}}}}}",
    );
    assert_eq!(cron["spec"]["concurrencyPolicy"], json!("Allow"));
    assert_eq!(cron["spec"]["jobTemplate"]["spec"].get("backoffLimit"), None);
    let pod = &cron["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    assert_eq!(pod["dnsPolicy"], json!("ClusterFirst"));
}

#[test]
fn a_stateful_set_names_the_kind_of_its_claims() {
    let set = defaulted(
        "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {selector: {}, template: {},
          volumeClaimTemplates: [{metadata: {name: d}, spec: {resources: {requests: {storage: 1024Mi}}}}]}}",
    );
    assert_eq!(
        set["spec"]["volumeClaimTemplates"][0],
        json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "d" },
            "spec": { "resources": { "requests": { "storage": "1Gi" } }, "volumeMode": "Filesystem" },
            "status": { "phase": "Pending" } })
    );
    assert_eq!(
        set["spec"]["updateStrategy"],
        json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } })
    );
}

#[test]
fn a_webhook_is_filled_in() {
    let object = defaulted(
        "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a},
          webhooks: [{name: a.b.c, admissionReviewVersions: [v1], sideEffects: None,
            clientConfig: {service: {namespace: ns, name: s}},
            rules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods]}]}]}",
    );
    assert_eq!(
        object["webhooks"][0],
        json!({ "name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": { "service": { "namespace": "ns", "name": "s", "port": 443 } },
            "rules": [{ "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["pods"], "scope": "*" }],
            "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {},
            "objectSelector": {}, "timeoutSeconds": 10 })
    );
}

#[test]
fn an_autoscaler_measures_the_processor_by_default() {
    let object = defaulted(
        "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a},
          spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: d}}}",
    );
    assert_eq!(object["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], json!(80));
    assert_eq!(object["status"], json!({ "currentMetrics": null, "desiredReplicas": 0 }));
}

#[test]
fn hostile_shapes_are_left_alone() {
    for yaml in [
        "{apiVersion: v1, kind: Pod, metadata: [], spec: 3}",
        "{apiVersion: v1, kind: Pod, spec: {containers: {a: b}, volumes: [1, null, x]}}",
        "{apiVersion: v1, kind: Service, spec: {ports: [null, 3], type: []}}",
        "{apiVersion: apps/v1, kind: Deployment, spec: {template: x, strategy: [1]}}",
    ] {
        defaulted(yaml);
    }
}
