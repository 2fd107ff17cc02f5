use serde_json::Value;

use super::{validate_create, validate_update};
use crate::builtin;
use crate::resource::ResourceType;
use crate::rules::defaults::default;

fn read(yaml: &str) -> (&'static ResourceType, Value) {
    let mut object: Value = serde_saphyr::from_str(yaml).unwrap();
    let api_version = object["apiVersion"].as_str().unwrap().to_owned();
    let kind = object["kind"].as_str().unwrap().to_owned();
    default(&api_version, &kind, &mut object);
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let ty = builtin::resources()
        .iter()
        .find(|ty| *ty.group == *group && *ty.kind == *kind)
        .unwrap_or_else(|| panic!("{api_version} {kind}"));
    (ty, object)
}

fn refusals(yaml: &str) -> Vec<String> {
    let (ty, object) = read(yaml);
    validate_create(ty, &object).iter().map(ToString::to_string).collect()
}

fn update_refusals(old: &str, new: &str) -> Vec<String> {
    let ((ty, old), (_, new)) = (read(old), read(new));
    validate_update(ty, None, &old, &new).iter().map(ToString::to_string).collect()
}

const POD: &str = "{containers: [{name: a, image: b}]}";

#[test]
fn good_objects_pass() {
    let template = format!("{{metadata: {{labels: {{a: b}}}}, spec: {POD}}}");
    let selector = "selector: {matchLabels: {a: b}}";
    for yaml in [
        format!("{{apiVersion: v1, kind: Pod, metadata: {{name: a}}, spec: {POD}}}"),
        format!("{{apiVersion: apps/v1, kind: Deployment, spec: {{{selector}, template: {template}}}}}"),
        format!("{{apiVersion: apps/v1, kind: ReplicaSet, spec: {{{selector}, template: {template}}}}}"),
        format!("{{apiVersion: apps/v1, kind: DaemonSet, spec: {{{selector}, template: {template}}}}}"),
        format!("{{apiVersion: apps/v1, kind: StatefulSet, spec: {{{selector}, serviceName: s, template: {template}}}}}"),
        format!("{{apiVersion: v1, kind: ReplicationController, spec: {{template: {template}}}}}"),
        "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}".into(),
        "{apiVersion: v1, kind: ConfigMap, data: {a.b_c-D: x}}".into(),
        "{apiVersion: v1, kind: Secret, stringData: {a: b}}".into(),
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, rules: [{verbs: ['*'], nonResourceURLs: ['*']}]}".into(),
        "{apiVersion: v1, kind: PersistentVolumeClaim, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}".into(),
        "{apiVersion: coordination.k8s.io/v1, kind: Lease, spec: {leaseDurationSeconds: 15}}".into(),
        "{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {rules: [{host: a.b, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}}]}}".into(),
        "{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: 50%}}".into(),
        "{apiVersion: v1, kind: Event, metadata: {namespace: default}, involvedObject: {}}".into(),
    ] {
        assert_eq!(refusals(&yaml), Vec::<String>::new(), "{yaml}");
    }
}

#[test]
fn a_cron_job_in_a_time_zone_that_nobody_knows_was_taken() {
    let in_zone = |zone: &str| {
        let template =
            "{spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}";
        refusals(&format!(
            "{{apiVersion: batch/v1, kind: CronJob, metadata: {{name: a}}, spec: {{schedule: '0 0 * * *', timeZone: '{zone}', jobTemplate: {template}}}}}"
        ))
    };
    for zone in
        ["Europe/Berlin", "UTC", "Etc/GMT+1", "America/Argentina/Buenos_Aires", "Asia/Kathmandu"]
    {
        assert_eq!(in_zone(zone), Vec::<String>::new(), "{zone}");
    }
    for zone in ["Europe/Atlantis", "europe/berlin", "Mars", "../x", "Europe"] {
        let want = format!("spec.timeZone: Invalid value: \"{zone}\": unknown time zone {zone}");
        assert_eq!(in_zone(zone), [want], "{zone}");
    }
    let explicit =
        "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
    let local = format!("spec.timeZone: Invalid value: \"Local\": {explicit}");
    assert_eq!(in_zone("Local"), [local]);
    assert_eq!(in_zone("local").len(), 2, "it is unknown as well");
}

#[test]
fn a_container_that_may_not_gain_the_privileges_it_has_was_taken() {
    let with = |context: &str| {
        refusals(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: a}}, spec: {{containers: [{{name: a, image: b, securityContext: {context}}}]}}}}"
        ))
    };
    let rest = r#""ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}"#;
    let none = r#""SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false"#;
    let path = "spec.containers[0].securityContext: Invalid value: ";
    assert_eq!(
        with("{privileged: true, allowPrivilegeEscalation: false}"),
        [format!(
            "{path}{{\"Capabilities\":null,\"Privileged\":true,{none},{rest}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        )],
    );
    assert_eq!(
        with("{capabilities: {add: [CAP_SYS_ADMIN]}, allowPrivilegeEscalation: false}"),
        [format!(
            "{path}{{\"Capabilities\":{{\"Add\":[\"CAP_SYS_ADMIN\"],\"Drop\":null}},\"Privileged\":null,{none},{rest}: cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
        )],
    );
    for fine in [
        "{privileged: true}",
        "{allowPrivilegeEscalation: false}",
        "{privileged: true, allowPrivilegeEscalation: true}",
        "{capabilities: {add: [SYS_ADMIN]}, allowPrivilegeEscalation: false}",
    ] {
        assert_eq!(with(fine), Vec::<String>::new(), "{fine}");
    }
}

#[test]
fn mistakes_in_workloads_read_like_upstream() {
    let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
                 '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
                 '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    for (yaml, expected) in [
        (
            format!("{{apiVersion: apps/v1, kind: Deployment, spec: {{selector: {{matchLabels: {{app: x}}}}, template: {{metadata: {{labels: {{app: z}}}}, spec: {POD}}}}}}}"),
            vec!["spec.template.metadata.labels: Invalid value: {\"app\":\"z\"}: `selector` does not match template `labels`".to_owned()],
        ),
        (
            format!("{{apiVersion: apps/v1, kind: Deployment, spec: {{replicas: -1, template: {{metadata: {{labels: {{app: z}}}}, spec: {POD}}}}}}}"),
            vec![
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0".into(),
                "spec.selector: Required value".into(),
                "spec.template.metadata.labels: Invalid value: {\"app\":\"z\"}: `selector` does not match template `labels`".into(),
            ],
        ),
        (
            "{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: A_b}]}}}}".into(),
            vec![
                format!("spec.template.spec.containers[0].name: Invalid value: \"A_b\": {label}"),
                "spec.template.spec.containers[0].image: Required value".into(),
                "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"".into(),
            ],
        ),
        (
            "{apiVersion: batch/v1, kind: Job, metadata: {name: j, uid: u}, spec: {manualSelector: true, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}}".into(),
            vec!["spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"".into()],
        ),
        (
            "{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}, spec: {schedule: 'every day', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}}}".into(),
            vec!["spec.schedule: Invalid value: \"every day\": expected exactly 5 fields, found 2: [every day]".into()],
        ),
        (
            "{apiVersion: v1, kind: Pod, spec: {containers: []}}".into(),
            vec!["spec.containers: Required value".into()],
        ),
        (
            "{apiVersion: v1, kind: Pod, spec: {restartPolicy: Sometimes, containers: [{name: a, image: b, ports: [{containerPort: 70000}], imagePullPolicy: Maybe, env: [{value: x}], volumeMounts: [{name: v, mountPath: /x}]}, {name: a, image: b}]}}".into(),
            vec![
                "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive".into(),
                "spec.containers[0].env[0].name: Required value".into(),
                "spec.containers[0].volumeMounts[0].name: Not found: \"v\"".into(),
                "spec.containers[0].imagePullPolicy: Unsupported value: \"Maybe\": supported values: \"Always\", \"IfNotPresent\", \"Never\"".into(),
                "spec.containers[1].name: Duplicate value: \"a\"".into(),
                "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"".into(),
            ],
        ),
        (
            "{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, image: b, resources: {limits: {cpu: 1}, requests: {cpu: 2, gold: 3}}}]}}".into(),
            vec![
                "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1".into(),
                "spec.containers[0].resources.requests[gold]: Invalid value: \"gold\": must be a standard resource type or fully qualified".into(),
                "spec.containers[0].resources.requests[gold]: Invalid value: \"gold\": must be a standard resource for containers".into(),
            ],
        ),
        (
            "{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, image: b, livenessProbe: {periodSeconds: 3}}]}}".into(),
            vec!["spec.containers[0].livenessProbe: Required value: must specify a handler type".into()],
        ),
    ] {
        assert_eq!(refusals(&yaml), expected, "{yaml}");
    }
}

#[test]
fn mistakes_in_other_kinds_read_like_upstream() {
    for (yaml, expected) in [
        (
            "{apiVersion: v1, kind: Service, metadata: {name: a}}",
            vec!["spec.ports: Required value"],
        ),
        (
            "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: Best, ports: [{port: 0}]}}",
            vec![
                "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
                "spec.type: Unsupported value: \"Best\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
            ],
        ),
        (
            "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}, {port: 81, name: b}]}}",
            vec!["spec.ports[0].name: Required value"],
        ),
        (
            "{apiVersion: v1, kind: ConfigMap, data: {'a b': c}}",
            vec![
                "data[a b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
            ],
        ),
        (
            "{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, data: {}}",
            vec!["data[tls.crt]: Required value", "data[tls.key]: Required value"],
        ),
        (
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{resources: [pods]}]}",
            vec![
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            ],
        ),
        (
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, roleRef: {kind: Role}, subjects: [{kind: ServiceAccount, name: s}, {kind: Robot, name: r}]}",
            vec![
                "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"",
                "roleRef.name: Required value",
                "subjects[0].namespace: Required value",
                "subjects[1].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
            ],
        ),
        (
            "{apiVersion: v1, kind: PersistentVolumeClaim, spec: {accessModes: [Some]}}",
            vec![
                "spec.accessModes: Unsupported value: \"Some\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"",
                "spec.resources[storage]: Required value",
            ],
        ),
        (
            "{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {}}",
            vec!["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"],
        ),
        (
            "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [11.0.0.0/16]}}, {}]}]}}",
            vec![
                "spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: \"11.0.0.0/16\": must be a strict subset of `cidr`",
                "spec.ingress[0].from[1]: Required value: must specify a peer",
            ],
        ),
        (
            "{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: 101%}}",
            vec!["spec.minAvailable: Invalid value: \"101%\": must not be greater than 100%"],
        ),
        (
            "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {scaleTargetRef: {kind: Deployment}}}",
            vec![
                "spec.maxReplicas: Required value: must be set and greater than 0",
                "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
                "spec.scaleTargetRef.name: Required value",
                "spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group",
            ],
        ),
        (
            "{apiVersion: v1, kind: Event, metadata: {namespace: a}, involvedObject: {namespace: b}}",
            vec!["involvedObject.namespace: Invalid value: \"b\": does not match event.namespace"],
        ),
        (
            "{apiVersion: storage.k8s.io/v1, kind: StorageClass}",
            vec!["provisioner: Required value"],
        ),
        (
            "{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, spec: {signerName: me}}",
            vec![
                "spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST",
                "spec.usages: Required value",
                "spec.signerName: Invalid value: \"me\": must be a fully qualified domain and path of the form 'example.com/signer-name'",
            ],
        ),
    ] {
        assert_eq!(refusals(yaml), expected, "{yaml}");
    }
}

#[test]
fn what_may_not_change_does_not() {
    let deployment = |label: &str| {
        format!(
            "{{apiVersion: apps/v1, kind: Deployment, spec: {{selector: {{matchLabels: {{a: {label}}}}}, template: {{metadata: {{labels: {{a: {label}}}}}, spec: {POD}}}}}}}"
        )
    };
    for (old, new, expected) in [
        (
            deployment("b"),
            deployment("c"),
            vec!["spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"c\"}}: field is immutable"],
        ),
        (
            "{apiVersion: v1, kind: Secret, type: a}".into(),
            "{apiVersion: v1, kind: Secret, type: b}".into(),
            vec!["type: Invalid value: \"b\": field is immutable"],
        ),
        (
            "{apiVersion: v1, kind: ConfigMap, immutable: true, data: {a: b}}".into(),
            "{apiVersion: v1, kind: ConfigMap, data: {a: c}}".into(),
            vec![
                "immutable: Forbidden: field is immutable when `immutable` is set",
                "data: Forbidden: field is immutable when `immutable` is set",
            ],
        ),
        (
            "{apiVersion: v1, kind: Service, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80}]}}".into(),
            "{apiVersion: v1, kind: Service, spec: {clusterIP: 10.0.0.2, clusterIPs: [10.0.0.2], ports: [{port: 80}]}}".into(),
            vec!["spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set"],
        ),
        (
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {kind: Role, name: a}}".into(),
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {kind: Role, name: b}}".into(),
            vec!["roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"b\"}: cannot change roleRef"],
        ),
        (
            "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, value: 1}".into(),
            "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, value: 2}".into(),
            vec!["value: Forbidden: may not be changed in an update."],
        ),
        (
            format!("{{apiVersion: apps/v1, kind: StatefulSet, spec: {{serviceName: a, selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, spec: {POD}}}}}}}"),
            format!("{{apiVersion: apps/v1, kind: StatefulSet, spec: {{serviceName: b, selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, spec: {POD}}}}}}}"),
            vec!["spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"],
        ),
    ] {
        assert_eq!(update_refusals(&old, &new), expected, "{new}");
        assert_eq!(update_refusals(&old, &old), Vec::<String>::new(), "{old}");
    }
}

#[test]
fn a_pod_keeps_all_but_its_images() {
    let pod = |image: &str, command: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, spec: {{containers: [{{name: a, image: '{image}', command: [{command}]}}]}}}}"
        )
    };
    assert_eq!(update_refusals(&pod("a:1", "x"), &pod("b:2", "x")), Vec::<String>::new());
    let refused = update_refusals(&pod("a:1", "x"), &pod("a:1", "z"));
    assert_eq!(refused.len(), 1);
    assert!(
        refused[0].starts_with("spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"),
        "{refused:?}"
    );
}

#[test]
fn hostile_shapes_do_not_panic() {
    for ty in builtin::resources() {
        for object in [
            serde_json::json!({ "metadata": 1, "spec": 2, "data": [], "rules": "x", "status": [] }),
            serde_json::json!({ "spec": { "template": [], "ports": [1, {}], "selector": "x" },
                "roleRef": [], "subjects": [null], "webhooks": [1] }),
            serde_json::json!({}),
        ] {
            validate_create(ty, &object);
            validate_update(ty, None, &object, &serde_json::json!({ "spec": {} }));
            validate_update(ty, Some("status"), &object, &object);
        }
    }
}
