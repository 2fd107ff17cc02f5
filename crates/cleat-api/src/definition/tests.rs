use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt as _;
use serde_json::{Value, json};

use super::*;

fn found(name: &str) -> CustomResourceDefinition {
    let named = |one: &CustomResourceDefinition| one.metadata.name.as_deref() == Some(name);
    definitions().into_iter().find(named).unwrap()
}

/// A part of the schema by field names; `[]` steps into a list.
fn part(name: &str, path: &str) -> Value {
    let schema = found(name).spec.versions[0].schema.clone().unwrap();
    let mut here = serde_json::to_value(schema.open_api_v3_schema.unwrap()).unwrap();
    for step in path.split('.') {
        here = match step {
            "[]" => here["items"].take(),
            field => here["properties"][field].take(),
        };
        assert!(here.is_object(), "no {step} of {path}");
    }
    let fields = here.as_object_mut().unwrap();
    fields.remove("description");
    fields.remove("properties");
    fields.remove("items");
    here
}

const WORK: &str = "manifestworks.work.open-cluster-management.io";
const SET: &str = "manifestworkreplicasets.work.open-cluster-management.io";
const RECORD: &str = "appliedmanifestworks.work.open-cluster-management.io";
const PLACEMENT: &str = "placements.cluster.open-cluster-management.io";
const DECISION: &str = "placementdecisions.cluster.open-cluster-management.io";
const CLUSTER: &str = "managedclusters.cluster.open-cluster-management.io";
const CLUSTER_SET: &str = "managedclustersets.cluster.open-cluster-management.io";
const BINDING: &str = "managedclustersetbindings.cluster.open-cluster-management.io";
const LEFTOVERS: &str = "leftoverrecords.cleat.dev";
const CLAIM: &str = "clusterclaims.cluster.open-cluster-management.io";
const SCORE: &str = "addonplacementscores.cluster.open-cluster-management.io";
const JOB: &str = "ansiblejobs.tower.ansible.com";
const CONFIGURATION: &str = "configurationpolicies.policy.open-cluster-management.io";
const POLICY: &str = "policies.policy.open-cluster-management.io";
const POLICY_BINDING: &str = "placementbindings.policy.open-cluster-management.io";
const POLICY_SET: &str = "policysets.policy.open-cluster-management.io";
const SERVICE: &str = "criticalservices.protection.open-cluster-management.io";
const PREVIEW: &str = "removalpreviews.cleat.dev";
const AUTOMATION: &str = "policyautomations.policy.open-cluster-management.io";

#[test]
fn they_are_sorted_and_have_a_status_of_their_own() {
    let all = definitions();
    let names: Vec<_> = all.iter().filter_map(|one| one.metadata.name.as_deref()).collect();
    assert_eq!(
        names,
        [
            SCORE,
            JOB,
            RECORD,
            CLAIM,
            CONFIGURATION,
            SERVICE,
            LEFTOVERS,
            CLUSTER,
            BINDING,
            CLUSTER_SET,
            SET,
            WORK,
            POLICY_BINDING,
            DECISION,
            PLACEMENT,
            POLICY,
            AUTOMATION,
            POLICY_SET,
            PREVIEW
        ]
    );
    for definition in &all {
        let version = &definition.spec.versions[0];
        let has_status = version.subresources.as_ref().is_some_and(|some| some.status.is_some());
        assert_eq!(has_status, definition.metadata.name.as_deref() != Some(CLAIM));
        assert_eq!(
            definition.spec.names.list_kind,
            Some(format!("{}List", definition.spec.names.kind))
        );
    }
    let scope = |name| found(name).spec.scope;
    for everywhere in [RECORD, CLAIM, LEFTOVERS, CLUSTER, CLUSTER_SET, SERVICE] {
        assert_eq!(scope(everywhere), "Cluster");
    }
    let policies = [CONFIGURATION, POLICY, POLICY_BINDING, POLICY_SET, AUTOMATION, JOB];
    for namespaced in [WORK, SET, PLACEMENT, DECISION, BINDING, PREVIEW].into_iter().chain(policies)
    {
        assert_eq!(scope(namespaced), "Namespaced");
    }
    let short = |name| found(name).spec.names.short_names.unwrap_or_default();
    assert_eq!(short(SET), ["mwrs"]);
    assert_eq!(short(CLUSTER), ["mcl", "mcls"]);
    assert_eq!(short(CLUSTER_SET), ["mclset", "mclsets"]);
    assert_eq!(short(BINDING), ["mclsetbinding", "mclsetbindings"]);
    assert_eq!(short(POLICY), ["plc"]);
    assert_eq!(short(POLICY_BINDING), ["pb"]);
    assert_eq!(short(POLICY_SET), ["plcset"]);
    assert_eq!(short(AUTOMATION), ["plca"]);
    assert_eq!(found(WORK).spec.names.short_names, None);
    assert_eq!(ManifestWork::crd_name(), WORK);
}

#[test]
fn columns_are_those_of_ocm() {
    let columns = |name| {
        let columns = found(name).spec.versions[0].additional_printer_columns.clone();
        columns.unwrap_or_default().into_iter().map(|column| column.name).collect::<Vec<_>>()
    };
    assert_eq!(columns(SET), ["Placement", "Found", "ManifestWorks", "Applied"]);
    assert_eq!(columns(PLACEMENT), ["Succeeded", "Reason", "SelectedClusters"]);
    let shown = ["Hub Accepted", "Managed Cluster URLs", "Joined", "Available", "Strategy", "Age"];
    assert_eq!(columns(CLUSTER), shown);
    assert_eq!(columns(CLUSTER_SET), ["Empty", "Age"]);
    assert_eq!(columns(POLICY), ["Remediation action", "Compliance state", "Age"]);
    assert_eq!(columns(CONFIGURATION), ["Compliance state"]);
    assert!(columns(WORK).is_empty() && columns(RECORD).is_empty());
}

#[test]
fn nothing_may_be_null() {
    for definition in definitions() {
        let text = serde_json::to_string(&definition).unwrap();
        assert!(!text.contains("nullable"), "{:?}", definition.metadata.name);
    }
}

#[test]
fn a_work_has_the_schema_of_ocm() {
    let by = |key: &str| json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key] });
    let named = |values: Value| json!({ "type": "string", "enum": values });
    let cases = [
        (
            "spec.workload.manifests.[]",
            json!({
                "type": "object",
                "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true,
            }),
        ),
        (
            "spec.deleteOption.propagationPolicy",
            named(json!(["Foreground", "Orphan", "SelectivelyOrphan"])),
        ),
        (
            "spec.deleteOption.ttlSecondsAfterFinished",
            json!({ "type": "integer", "format": "int64" }),
        ),
        (
            "spec.manifestConfigs.[].resourceIdentifier",
            json!({ "type": "object", "required": ["name", "resource"] }),
        ),
        (
            "spec.manifestConfigs.[].feedbackRules.[]",
            json!({ "type": "object", "required": ["type"] }),
        ),
        (
            "spec.manifestConfigs.[].feedbackRules.[].type",
            named(json!(["WellKnownStatus", "JSONPaths"])),
        ),
        ("spec.manifestConfigs.[].feedbackRules.[].jsonPaths", by("name")),
        (
            "spec.manifestConfigs.[].updateStrategy.type",
            json!({
                "type": "string",
                "default": "Update",
                "enum": ["Update", "CreateOnly", "ServerSideApply", "ReadOnly"],
            }),
        ),
        (
            "spec.manifestConfigs.[].updateStrategy",
            json!({ "type": "object", "required": ["type"] }),
        ),
        (
            "spec.manifestConfigs.[].updateStrategy.serverSideApply.fieldManager",
            json!({ "type": "string", "default": "work-agent", "pattern": "^work-agent" }),
        ),
        ("spec.manifestConfigs.[].updateStrategy.serverSideApply.ignoreFields", by("condition")),
        (
            "spec.manifestConfigs.[].updateStrategy.serverSideApply.ignoreFields.[].condition",
            json!({
                "type": "string",
                "default": "OnSpokePresent",
                "enum": ["OnSpokePresent", "OnSpokeChange"],
            }),
        ),
        ("spec.manifestConfigs.[].conditionRules", by("condition")),
        (
            "spec.manifestConfigs.[].conditionRules.[].type",
            named(json!(["WellKnownConditions", "CEL"])),
        ),
        (
            "spec.manifestConfigs.[].feedbackScrapeType",
            json!({ "type": "string", "default": "Poll", "enum": ["Poll", "Watch"] }),
        ),
        ("spec.executor.subject.type", named(json!(["ServiceAccount"]))),
        (
            "spec.executor.subject.serviceAccount",
            json!({ "type": "object", "required": ["name", "namespace"] }),
        ),
        ("status.conditions", by("type")),
        (
            "status.resourceStatus.manifests.[]",
            json!({ "type": "object", "required": ["conditions", "resourceMeta"] }),
        ),
        ("status.resourceStatus.manifests.[].statusFeedback.values", by("name")),
        (
            "status.resourceStatus.manifests.[].statusFeedback.values.[].fieldValue.jsonRaw",
            json!({ "type": "string", "maxLength": 1024 }),
        ),
        (
            "status.resourceStatus.manifests.[].statusFeedback.values.[].fieldValue.type",
            named(json!(["Integer", "String", "Boolean", "JsonRaw"])),
        ),
    ];
    for (path, expected) in cases {
        assert_eq!(part(WORK, path), expected, "{path}");
        if let Some(below) = path.strip_prefix("spec.") {
            let path = format!("spec.manifestWorkTemplate.{below}");
            assert_eq!(part(SET, &path), expected, "{path}");
        }
    }
}

/// Pruning would drop a spelling that is not listed, and with it the wish to keep an object.
#[test]
fn every_spelling_of_rules_survives_pruning() {
    for list in ["selectivelyOrphan.[]", "selectivelyOrphans.orphaningRules.[]"] {
        for field in ["group", "resource", "namespace", "name", "resourceNamespace", "resourceName"]
        {
            let path = format!("spec.deleteOption.{list}.{field}");
            assert_eq!(part(WORK, &path), json!({ "type": "string" }));
        }
    }
}

#[test]
fn the_other_kinds_have_what_their_readers_rely_on() {
    let share = |default: Value, pattern: &str| json!({ "default": default, "pattern": pattern, "x-kubernetes-int-or-string": true });
    let strategy = "spec.placementRefs.[].rolloutStrategy";
    let cases = [
        (
            RECORD,
            "spec".to_owned(),
            json!({ "type": "object", "required": ["hubHash", "manifestWorkName"] }),
        ),
        (
            RECORD,
            "spec.claims.[].origin".to_owned(),
            json!({ "type": "string", "enum": ["Created", "Adopted"] }),
        ),
        (
            RECORD,
            "status.appliedResources.[]".to_owned(),
            json!({ "type": "object", "required": ["name", "resource", "version"] }),
        ),
        (SET, "spec.placementRefs".to_owned(), json!({ "type": "array", "minItems": 1 })),
        (
            SET,
            strategy.to_owned(),
            json!({ "type": "object", "default": { "type": "All", "all": { "progressDeadline": "None" } } }),
        ),
        (
            SET,
            format!("{strategy}.all.maxFailures"),
            share(json!(0), "^((100|[0-9]{1,2})%|[0-9]+)$"),
        ),
        (
            SET,
            "spec.cascadeDeletionPolicy".to_owned(),
            json!({ "type": "string", "default": "Background", "enum": ["Background", "Foreground"] }),
        ),
        (
            PLACEMENT,
            "spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup".to_owned(),
            share(json!("100%"), "^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$"),
        ),
        (
            DECISION,
            "status.decisions.[]".to_owned(),
            json!({ "type": "object", "required": ["clusterName", "reason"] }),
        ),
    ];
    for (name, path, expected) in cases {
        assert_eq!(part(name, &path), expected, "{name} {path}");
    }
}

#[test]
fn clusters_have_what_their_readers_rely_on() {
    let text = |most: u32| json!({ "type": "string", "minLength": 1, "maxLength": most });
    let by = |keys: Value| json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys });
    let cases = [
        (CLUSTER, "spec.hubAcceptsClient", json!({ "type": "boolean", "default": false })),
        (
            CLUSTER,
            "spec.leaseDurationSeconds",
            json!({ "type": "integer", "format": "int32", "default": 60 }),
        ),
        (
            CLUSTER,
            "spec.removeStrategy",
            json!({ "type": "string", "default": "Needless", "enum": ["Needless", "Required"] }),
        ),
        (
            CLUSTER,
            "spec.managedClusterClientConfigs.[]",
            json!({ "type": "object", "required": ["url"] }),
        ),
        (
            CLUSTER,
            "spec.managedClusterClientConfigs.[].caBundle",
            json!({ "type": "string", "format": "byte" }),
        ),
        (
            CLUSTER,
            "spec.taints.[].effect",
            json!({ "type": "string", "enum": ["NoSelect", "PreferNoSelect", "NoSelectIfNew"] }),
        ),
        (CLUSTER, "spec.taints.[]", json!({ "type": "object", "required": ["effect", "key"] })),
        (CLUSTER, "status.clusterClaims.[].name", text(253)),
        (CLUSTER, "status.clusterClaims.[].value", text(1024)),
        (CLUSTER, "status.conditions", by(json!(["type"]))),
        (CLUSTER, "status.managedNamespaces", by(json!(["clusterSet", "name"]))),
        (
            CLUSTER_SET,
            "spec.clusterSelector.selectorType",
            json!({
                "type": "string",
                "default": "ExclusiveClusterSetLabel",
                "enum": ["ExclusiveClusterSetLabel", "LabelSelector"],
            }),
        ),
        (CLUSTER_SET, "spec.managedNamespaces", by(json!(["name"]))),
        (BINDING, "spec.clusterSet", json!({ "type": "string", "minLength": 1 })),
        (CLAIM, "spec.value", text(1024)),
    ];
    for (name, path, expected) in cases {
        assert_eq!(part(name, path), expected, "{name} {path}");
    }
}

#[test]
fn objects_read_and_written_are_the_same() {
    let work = json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": { "name": "w", "namespace": "cluster1" },
        "spec": {
            "workload": { "manifests": [
                { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "b": "c" } },
            ] },
            "deleteOption": {
                "propagationPolicy": "SelectivelyOrphan",
                "selectivelyOrphan": [{ "group": "apps", "resource": "deployments", "resourceName": "x" }],
                "ttlSecondsAfterFinished": 0,
            },
            "manifestConfigs": [{
                "resourceIdentifier": { "resource": "configmaps", "name": "*" },
                "feedbackScrapeType": "Watch",
                "feedbackRules": [{ "type": "JSONPaths", "jsonPaths": [{ "name": "n", "path": ".p" }] }],
                "updateStrategy": {
                    "type": "ServerSideApply",
                    "serverSideApply": { "fieldManager": "work-agent-x", "force": true },
                },
            }],
            "executor": { "subject": {
                "type": "ServiceAccount",
                "serviceAccount": { "namespace": "n", "name": "s" },
            } },
        },
    });
    let read: ManifestWork = serde_json::from_value(work.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), work);
    assert_eq!(
        read.spec.delete_option.as_ref().map(|one| one.selectively_orphans.is_none()),
        Some(true)
    );
    let decision = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "PlacementDecision",
        "metadata": { "name": "p-decision-1", "namespace": "n" },
        "status": { "decisions": [{ "clusterName": "c", "reason": "" }] },
    });
    let read: PlacementDecision = serde_json::from_value(decision.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), decision);
}

#[test]
fn a_value_of_a_later_version_does_not_hide_the_work() {
    let work = json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {},
        "spec": { "deleteOption": { "propagationPolicy": "Background" } },
    });
    let read: ManifestWork = serde_json::from_value(work).unwrap();
    assert!(read.spec.delete_option.unwrap().parse().is_err());
}

#[test]
fn policies_have_the_schema_of_ocm() {
    let text = |values: Value| json!({ "type": "string", "enum": values });
    let actions = json!(["Inform", "inform", "Enforce", "enforce"]);
    let beside = json!({ "enum": ["CertificatePolicy", "ConfigurationPolicy"] });
    let dependency = json!({
        "type": "object",
        "required": ["apiVersion", "compliance", "kind", "name"],
        "oneOf": [
            { "properties": { "kind": beside, "namespace": { "maxLength": 0 } } },
            { "not": { "properties": { "kind": beside } } },
        ],
    });
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let pair = |group: &str, kind: &str| json!({ "properties": { "apiGroup": { "enum": [group] }, "kind": { "enum": [kind] } } });
    let cases = [
        (
            CONFIGURATION,
            "spec",
            json!({
                "type": "object",
                "required": ["remediationAction"],
                "oneOf": [{ "required": ["object-templates"] }, { "required": ["object-templates-raw"] }],
            }),
        ),
        (
            CONFIGURATION,
            "spec.remediationAction",
            json!({ "type": "string", "default": "inform", "enum": actions }),
        ),
        (
            CONFIGURATION,
            "spec.pruneObjectBehavior",
            json!({ "type": "string", "default": "None", "enum": ["DeleteAll", "DeleteIfCreated", "None"] }),
        ),
        (
            CONFIGURATION,
            "spec.object-templates.[]",
            json!({ "type": "object", "required": ["complianceType", "objectDefinition"] }),
        ),
        (CONFIGURATION, "spec.object-templates.[].objectDefinition", anything.clone()),
        (
            CONFIGURATION,
            "spec.object-templates.[].recreateOption",
            json!({ "type": "string", "default": "None", "enum": ["None", "IfRequired", "Always"] }),
        ),
        (
            CONFIGURATION,
            "spec.object-templates.[].recordDiff",
            text(json!(["Log", "InStatus", "None"])),
        ),
        (
            CONFIGURATION,
            "spec.namespaceSelector.include.[]",
            json!({ "type": "string", "minLength": 1 }),
        ),
        (CONFIGURATION, "status.compliancyDetails.[].Validity", json!({ "type": "object" })),
        (
            CONFIGURATION,
            "status.compliancyDetails.[].conditions.[]",
            json!({ "type": "object", "required": ["type"] }),
        ),
        (
            CONFIGURATION,
            "status.relatedObjects.[].properties.createdByPolicy",
            json!({ "type": "boolean" }),
        ),
        (POLICY, "spec", json!({ "type": "object", "required": ["disabled", "policy-templates"] })),
        (POLICY, "spec.remediationAction", text(actions.clone())),
        (POLICY, "spec.dependencies.[]", dependency.clone()),
        (POLICY, "spec.policy-templates.[].extraDependencies.[]", dependency),
        (POLICY, "spec.policy-templates.[].objectDefinition", anything.clone()),
        (
            POLICY_BINDING,
            "placementRef",
            json!({
                "type": "object",
                "required": ["apiGroup", "kind", "name"],
                "oneOf": [
                    pair("cluster.open-cluster-management.io", "Placement"),
                    pair("apps.open-cluster-management.io", "PlacementRule"),
                ],
            }),
        ),
        (POLICY_BINDING, "subjects", json!({ "type": "array", "minItems": 1 })),
        (POLICY_BINDING, "subFilter", text(json!(["restricted"]))),
        (POLICY_BINDING, "bindingOverrides.remediationAction", text(json!(["Enforce", "enforce"]))),
        (POLICY_SET, "spec", json!({ "type": "object", "required": ["policies"] })),
        (
            AUTOMATION,
            "spec",
            json!({ "type": "object", "required": ["automationDef", "mode", "policyRef"] }),
        ),
        (AUTOMATION, "spec.mode", text(json!(["once", "everyEvent", "disabled"]))),
        (
            AUTOMATION,
            "spec.eventHook",
            json!({ "type": "string", "default": "noncompliant", "enum": ["noncompliant"] }),
        ),
        (AUTOMATION, "spec.automationDef.extra_vars", anything),
        (
            AUTOMATION,
            "spec.automationDef.policyViolationsLimit",
            json!({ "type": "integer", "minimum": 0.0, "maximum": 65535.0 }),
        ),
    ];
    for (name, path, expected) in cases {
        assert_eq!(part(name, path), expected, "{name} {path}");
    }
    let labels = found(CONFIGURATION).metadata.labels.unwrap_or_default();
    assert_eq!(
        labels.get("policy.open-cluster-management.io/policy-type").map(String::as_str),
        Some("template")
    );
}

#[test]
fn policies_read_and_written_are_the_same() {
    let policy = json!({
        "apiVersion": "policy.open-cluster-management.io/v1",
        "kind": "ConfigurationPolicy",
        "metadata": { "name": "p", "namespace": "cluster1" },
        "spec": {
            "remediationAction": "Enforce",
            "pruneObjectBehavior": "DeleteIfCreated",
            "namespaceSelector": { "include": ["default"], "matchLabels": {} },
            "evaluationInterval": { "compliant": "never" },
            "object-templates": [{
                "complianceType": "MustHave",
                "objectDefinition": { "kind": "Pod", "apiVersion": "v1" },
                "recreateOption": "None",
            }],
        },
        "status": {
            "compliant": "Compliant",
            "compliancyDetails": [{
                "Compliant": "Compliant",
                "Validity": {},
                "conditions": [{
                    "type": "notification",
                    "status": "True",
                    "lastTransitionTime": "2022-06-09T19:27:13Z",
                    "reason": "K8s `must have` object already exists",
                    "message": "pods [demo] found as specified in namespace default",
                }],
            }],
            "lastEvaluated": "2022-06-09T19:27:53Z",
            "lastEvaluatedGeneration": 1,
            "relatedObjects": [{
                "object": { "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "demo", "namespace": "default" } },
                "compliant": "Compliant",
                "reason": "Resource found as expected",
                "properties": { "createdByPolicy": true, "uid": "u" },
            }],
            "history": [{ "lastTimestamp": "2022-06-09T19:27:13.000000Z", "message": "Compliant; x" }],
        },
    });
    let read: ConfigurationPolicy = serde_json::from_value(policy.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), policy);
    assert!(!read.spec.namespace_selector.is_empty());
    let binding = json!({
        "apiVersion": "policy.open-cluster-management.io/v1",
        "kind": "PlacementBinding",
        "metadata": { "name": "b" },
        "placementRef": { "apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": "p" },
        "subjects": [{ "apiGroup": "policy.open-cluster-management.io", "kind": "Policy", "name": "p" }],
        "bindingOverrides": { "remediationAction": "enforce" },
    });
    let read: PlacementBinding = serde_json::from_value(binding.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), binding);
}
