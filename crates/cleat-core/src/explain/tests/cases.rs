//! What can be stuck, and how.

use std::borrow::ToOwned as _;
use std::vec::Vec;

use super::Case;
use super::servers::Servers;
use crate::explain::object::id;
use crate::explain::{Place, Subject, Wish};
use crate::id::Id;

/// A namespace that ends, with one object left that a controller holds.
const SHOP: &str = r#"
apiVersion: v1
kind: Namespace
metadata: { name: shop, uid: u-shop, deletionTimestamp: "2026-11-16T11:55:00Z" }
spec: { finalizers: [kubernetes] }
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: orders
  namespace: shop
  uid: u-orders
  deletionTimestamp: "2026-11-16T11:55:00Z"
  finalizers: [audit.example/archive]
  managedFields:
  - manager: audit-controller
    operation: Update
    time: "2026-11-16T10:00:00Z"
    fieldsV1: { "f:metadata": { "f:finalizers": { ".": {}, 'v:"audit.example/archive"': {} } } }
"#;

fn controller(replicas: u32, ready: u32) -> std::string::String {
    std::format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: auditor, namespace: audit, uid: u-auditor }}
spec:
  replicas: {replicas}
  selector: {{ matchLabels: {{ app: auditor }} }}
  template:
    metadata: {{ labels: {{ app: auditor }} }}
    spec:
      containers: [{{ name: main, image: "registry.example/audit-controller:v2" }}]
status: {{ readyReplicas: {ready} }}
"#
    )
}

const CLUSTER: &str = r#"
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: { name: c1, uid: u-c1 }
spec: { hubAcceptsClient: true }
status:
  clusterClaims: [{ name: id.k8s.io, value: u-system }]
  conditions:
  - { type: ManagedClusterJoined, status: "True" }
  - { type: ManagedClusterConditionAvailable, status: "True" }
"#;

const LOST: &str = r#"
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: { name: c1, uid: u-c1 }
spec: { hubAcceptsClient: true }
status:
  conditions:
  - { type: ManagedClusterJoined, status: "True" }
  - type: ManagedClusterConditionAvailable
    status: Unknown
    reason: ManagedClusterLeaseUpdateStopped
    lastTransitionTime: "2026-11-16T09:00:00Z"
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: { name: managed-cluster-lease, namespace: c1, uid: u-lease }
spec: { renewTime: "2026-11-16T08:55:00Z" }
"#;

const WORK_GOING: &str = r#"
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata:
  name: shop
  namespace: c1
  uid: u-work
  deletionTimestamp: "2026-11-16T11:00:00Z"
  finalizers: [cluster.open-cluster-management.io/manifest-work-cleanup]
status:
  conditions:
  - { type: Applied, status: "True" }
  - { type: Deleting, status: "True", reason: WorkDeleting, message: "waits for configmaps shop/orders" }
"#;

const ON_C1: &str = r#"
apiVersion: v1
kind: Namespace
metadata: { name: kube-system, uid: u-system }
---
apiVersion: work.open-cluster-management.io/v1
kind: AppliedManifestWork
metadata:
  name: hash-shop
  uid: u-ledger
  deletionTimestamp: "2026-11-16T11:00:00Z"
  finalizers: [cluster.open-cluster-management.io/applied-manifest-work-cleanup]
spec:
  manifestWorkName: shop
  claims:
  - { resource: configmaps, namespace: shop, names: [orders], origin: Created }
  - { resource: configmaps, namespace: shop, name: prices, origin: Created, kept: true }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: prices, namespace: shop, uid: u-prices }
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: orders
  namespace: shop
  uid: u-orders
  deletionTimestamp: "2026-11-16T11:00:00Z"
  finalizers: [shop.example/hold]
  managedFields:
  - manager: kubectl-edit
    operation: Update
    time: "2026-11-16T10:30:00Z"
    fieldsV1: { "f:metadata": { "f:finalizers": { 'v:"shop.example/hold"': {} } } }
"#;

const SERVER: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: { name: server, namespace: web, uid: u-server }
spec: { replicas: 1, selector: { matchLabels: { app: server } }, template: { metadata: { labels: { app: server } } } }
status: { readyReplicas: 1 }
"#;

const GUARD: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: { name: guard, uid: u-guard }
webhooks:
- name: guard.shop.example
  clientConfig: { service: { namespace: guard, name: guard } }
---
apiVersion: v1
kind: Service
metadata: { name: guard, namespace: guard, uid: u-guard-service }
spec: { selector: { app: guard } }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: guard, namespace: guard, uid: u-guard-deployment }
spec:
  replicas: 1
  selector: { matchLabels: { app: guard } }
  template: { metadata: { labels: { app: guard } } }
status: { readyReplicas: 0 }
---
apiVersion: v1
kind: Pod
metadata: { name: guard-1, namespace: guard, uid: u-guard-1, labels: { app: guard } }
status:
  phase: Pending
  containerStatuses:
  - name: main
    state: { waiting: { reason: ImagePullBackOff, message: "no such image" } }
"#;

const CRITICAL: &str = r#"
apiVersion: protection.open-cluster-management.io/v1alpha1
kind: CriticalService
metadata: { name: widgets, uid: u-widgets }
spec:
  provider: { group: apps, resource: deployments, namespace: web, name: server }
  criteria:
  - type: Finalizer
    finalizer: { group: shop.example, resource: widgets, finalizerName: shop.example/clean-up }
status:
  criteria:
  - { type: Finalizer, subject: widgets.shop.example, state: Unsatisfied, count: 2, samples: [a/one, a/two] }
  conditions:
  - { type: Effective, status: "True" }
---
apiVersion: shop.example/v1
kind: Widget
metadata: { name: one, namespace: a, uid: u-one, finalizers: [shop.example/clean-up] }
---
apiVersion: shop.example/v1
kind: Widget
metadata:
  name: two
  namespace: a
  uid: u-two
  deletionTimestamp: "2026-11-16T11:59:00Z"
  finalizers: [shop.example/clean-up]
"#;

fn here(yaml: &str) -> Servers {
    Servers::default().with(Place::Here, yaml)
}

fn case(name: &'static str, servers: Servers, id: Id, wish: Wish) -> Case {
    let cluster = Some("c1".to_owned());
    Case { name, servers, subject: Subject { id, wish, cluster } }
}

fn shop() -> Id {
    id("", "namespaces", "", "shop")
}

fn ours(resource: &str, namespace: &str, name: &str) -> Id {
    let group = match resource {
        "managedclusters" => "cluster.open-cluster-management.io",
        "criticalservices" => "protection.open-cluster-management.io",
        one if one.contains("polic") => "policy.open-cluster-management.io",
        _ => "work.open-cluster-management.io",
    };
    id(group, resource, namespace, name)
}

pub(super) fn all() -> Vec<Case> {
    let mut all = plain();
    all.extend(refusals());
    all.extend(fleet());
    all.extend(policies());
    all
}

fn plain() -> Vec<Case> {
    let whatever = Wish::Whatever;
    let forbidden = r#"deployments.apps is forbidden: User "eve" cannot list"#;
    let orders = id("", "configmaps", "shop", "orders");
    [
        (
            "a namespace waits for a finalizer whose controller is scaled to zero",
            here(SHOP).with(Place::Here, &controller(0, 0)),
            shop(),
        ),
        (
            "the controller of the finalizer runs",
            here(SHOP).with(Place::Here, &controller(1, 1)),
            shop(),
        ),
        ("nobody serves the finalizer", here(SHOP), shop()),
        (
            "who serves the finalizer must not be read",
            here(SHOP).hides("deployments", forbidden, true),
            shop(),
        ),
        (
            "a namespace waits for an API service that does not answer",
            here(
                r#"
apiVersion: v1
kind: Namespace
metadata: { name: shop, uid: u-shop, deletionTimestamp: "2026-11-16T11:55:00Z" }
spec: { finalizers: [kubernetes] }
status:
  conditions:
  - { type: NamespaceDeletionDiscoveryFailure, status: "True", message: "Discovery failed for some groups, 1 failing: metrics.example/v1: stale GroupVersion discovery" }
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: { name: v1.metrics.example, uid: u-api }
spec: { service: { namespace: metrics, name: server } }
status:
  conditions:
  - { type: Available, status: "False", reason: ServiceNotFound, message: "service/server in metrics is not present" }
"#,
            ),
            shop(),
        ),
        ("what is in a namespace cannot be deleted, and is tried again", here(r#"
apiVersion: v1
kind: Namespace
metadata: { name: shop, uid: u-shop, deletionTimestamp: "2026-11-16T11:55:00Z" }
spec: { finalizers: [kubernetes] }
status:
  conditions:
  - { type: NamespaceDeletionContentFailure, status: "True", message: "Failed to delete all resource types, 1 remaining: the server is currently unable to handle the request" }
"#), shop()),
        ("an object is fine", here(r#"
apiVersion: v1
kind: ConfigMap
metadata: { name: orders, namespace: shop, uid: u-orders }
"#), orders.clone()),
        ("an object went before its namespace", here(r#"
apiVersion: v1
kind: Namespace
metadata: { name: shop, uid: u-shop, deletionTimestamp: "2026-11-16T11:55:00Z" }
"#), orders.clone()),
        (
            "an object cannot be read",
            here(SHOP).hides("configmaps", "the server did not answer within 15 s", false),
            orders,
        ),
        (
            "a definition waits for its objects",
            here(
                r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.shop.example
  uid: u-crd
  deletionTimestamp: "2026-11-16T11:50:00Z"
  finalizers: [customresourcecleanup.apiextensions.k8s.io]
spec: { group: shop.example, names: { plural: widgets } }
---
apiVersion: shop.example/v1
kind: Widget
metadata:
  name: one
  namespace: a
  uid: u-one
  deletionTimestamp: "2026-11-16T11:50:00Z"
  finalizers: [shop.example/clean-up]
---
apiVersion: shop.example/v1
kind: Widget
metadata:
  name: two
  namespace: a
  uid: u-two
  deletionTimestamp: "2026-11-16T11:50:00Z"
  finalizers: [shop.example/clean-up]
"#,
            ),
            id("apiextensions.k8s.io", "customresourcedefinitions", "", "widgets.shop.example"),
        ),
        (
            "an owner waits for what it owns",
            here(
                r#"
apiVersion: apps/v1
kind: Deployment
metadata:
  name: server
  namespace: web
  uid: u-server
  deletionTimestamp: "2026-11-16T11:50:00Z"
  finalizers: [foregroundDeletion]
---
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: server-1
  namespace: web
  uid: u-server-1
  deletionTimestamp: "2026-11-16T11:50:00Z"
  finalizers: [foregroundDeletion]
  ownerReferences:
  - { apiVersion: apps/v1, kind: Deployment, name: server, uid: u-server, blockOwnerDeletion: true }
---
apiVersion: v1
kind: Pod
metadata:
  name: server-1-a
  namespace: web
  uid: u-a
  deletionTimestamp: "2026-11-16T11:51:00Z"
  deletionGracePeriodSeconds: 30
  ownerReferences:
  - { apiVersion: apps/v1, kind: ReplicaSet, name: server-1, uid: u-server-1, blockOwnerDeletion: true }
spec: { nodeName: n1 }
---
apiVersion: v1
kind: Node
metadata: { name: n1, uid: u-n1 }
status:
  conditions:
  - { type: Ready, status: Unknown, lastTransitionTime: "2026-11-16T11:40:00Z" }
"#,
            ),
            id("apps", "deployments", "web", "server"),
        ),
        (
            "a pod has time left",
            here(
                r#"
apiVersion: v1
kind: Pod
metadata:
  name: a
  namespace: web
  uid: u-a
  deletionTimestamp: "2026-11-16T12:00:20Z"
  deletionGracePeriodSeconds: 30
spec: { nodeName: n1 }
"#,
            ),
            id("", "pods", "web", "a"),
        ),
        (
            "a claim is used by a pod",
            here(
                r#"
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data
  namespace: web
  uid: u-data
  deletionTimestamp: "2026-11-16T11:00:00Z"
  finalizers: [kubernetes.io/pvc-protection]
---
apiVersion: v1
kind: Pod
metadata: { name: db-0, namespace: web, uid: u-db }
spec: { volumes: [{ name: data, persistentVolumeClaim: { claimName: data } }] }
status: { phase: Running }
"#,
            ),
            id("", "persistentvolumeclaims", "web", "data"),
        ),
        (
            "nobody has looked at the latest change",
            here(
                r#"
apiVersion: shop.example/v1
kind: Widget
metadata:
  name: one
  namespace: a
  uid: u-one
  generation: 3
  managedFields:
  - { manager: audit-controller, operation: Update, subresource: status }
status:
  observedGeneration: 2
  conditions:
  - { type: Ready, status: "False", reason: NoParts, message: "parts are missing", lastTransitionTime: "2026-11-16T11:00:00Z" }
"#,
            )
            .with(Place::Here, &controller(0, 0)),
            id("shop.example", "widgets", "a", "one"),
        ),
    ]
    .into_iter()
    .map(|(name, servers, id)| case(name, servers, id, whatever))
    .collect()
}

fn refusals() -> Vec<Case> {
    let server = || id("apps", "deployments", "web", "server");
    let denied = "admission webhook \"guard.shop.example\" denied the request: orders are open";
    let failed = "Internal error occurred: failed calling webhook \"guard.shop.example\": failed to \
                  call webhook: connection refused";
    let protected = "admission webhook \"provider-0.deployments.apps\" denied the request: \
                     protected by CriticalService widgets: 2 widgets.shop.example have it";
    let guarded = || here(SERVER).with(Place::Here, GUARD);
    let critical = || here(SERVER).with(Place::Here, CRITICAL);
    let forbidden = "deployments.apps \"server\" is forbidden: User \"eve\" cannot delete it";
    let unapproved = "admission webhook \"deletions.manifestworks.work.open-cluster-management.io\" \
                      denied the request: deleting it concerns 31 objects on 1 cluster, and no plan was \
                      approved. Look with `cleat preview delete manifestwork/shop -n c1`, then `cleat \
                      delete manifestwork/shop -n c1 --plan HASH`";
    let busy = "the server has received too many requests and has asked us to try again later";
    let dry = "admission webhook \"guard.shop.example\" does not support dry run";
    [
        ("a webhook denies a delete", guarded().refuses(server(), 403, denied), Wish::Gone),
        (
            "a delete would be denied, and nobody wants it",
            guarded().refuses(server(), 403, denied),
            Wish::Whatever,
        ),
        ("a webhook does not answer", guarded().refuses(server(), 500, failed), Wish::Gone),
        (
            "a webhook cannot be asked in a dry run",
            guarded().refuses(server(), 400, dry),
            Wish::Gone,
        ),
        ("a CriticalService protects", critical().refuses(server(), 403, protected), Wish::Gone),
        ("who asks may not delete", here(SERVER).refuses(server(), 403, forbidden), Wish::Gone),
        (
            "a hub waits for somebody to approve a plan",
            here(SERVER).refuses(server(), 403, unapproved),
            Wish::Gone,
        ),
        ("a server is too busy to delete", here(SERVER).refuses(server(), 429, busy), Wish::Gone),
    ]
    .into_iter()
    .map(|(name, servers, wish)| case(name, servers, server(), wish))
    .chain([case(
        "a finalizer that a CriticalService names the provider of",
        here(CRITICAL).with(Place::Here, &SERVER.replace("replicas: 1", "replicas: 0")),
        id("shop.example", "widgets", "a", "two"),
        Wish::Whatever,
    )])
    .collect()
}

fn fleet() -> Vec<Case> {
    let work = || ours("manifestworks", "c1", "shop");
    let leaving = CLUSTER.replace(
        "metadata: { name: c1, uid: u-c1 }",
        "metadata: { name: c1, uid: u-c1, deletionTimestamp: \"2026-11-16T10:00:00Z\", finalizers: \
         [cluster.open-cluster-management.io/api-resource-cleanup] }",
    ) + r#"
  - { type: Unjoining, status: "True" }
  - { type: UnjoinFailed, status: "True", reason: ResourcesRemain, message: "work shop cannot be removed" }
  - { type: ResourcesReleased, status: "False", reason: Required, message: "1 ledger is left" }
"#;
    let set = r#"
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: { name: shop, namespace: default, uid: u-set }
spec: { placementRefs: [{ name: everywhere }] }
status:
  conditions:
  - { type: PlacementVerified, status: "False", reason: PlacementDecisionEmpty }
  summary: { desiredTotal: 0, updated: 0, applied: 0, available: 0 }
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: { name: everywhere, namespace: default, uid: u-placement }
status:
  conditions:
  - { type: PlacementSatisfied, status: "False", reason: NoManagedClusterSetBindings, message: "no ManagedClusterSetBinding is in namespace default" }
"#;
    let rolling = r#"
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: { name: shop, namespace: default, uid: u-set }
spec: { placementRefs: [] }
status:
  conditions:
  - { type: PlacementVerified, status: "True" }
  - { type: PlacementRolledOut, status: "False", reason: Progressing }
  summary: { desiredTotal: 2, updated: 1, applied: 1, available: 0 }
---
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata:
  name: shop
  namespace: c1
  uid: u-work
  labels: { work.open-cluster-management.io/manifestworkreplicaset: default.shop }
status:
  conditions:
  - { type: Applied, status: "True" }
  - { type: Available, status: "False", reason: ResourcesNotAvailable, message: "1 of 1 resources are not available" }
"#;
    let request = r#"
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: { name: c1, uid: u-c1 }
spec: { hubAcceptsClient: false }
---
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: { name: c1-x7, uid: u-csr, labels: { open-cluster-management.io/cluster-name: c1 } }
spec: { username: "system:bootstrap:abc", signerName: kubernetes.io/kube-apiserver-client }
"#;
    let whatever = Wish::Whatever;
    let other = ON_C1.replace("u-system", "u-another");
    [
        (
            "a work waits for a cluster that is not heard of",
            here(WORK_GOING).with(Place::Here, LOST).hides(
                "namespaces",
                "connection refused",
                false,
            ),
            work(),
        ),
        (
            "a work waits for an object on the cluster",
            here(WORK_GOING).with(Place::Here, CLUSTER).with(Place::Cluster, ON_C1),
            work(),
        ),
        (
            "the cluster that was named is another",
            here(WORK_GOING).with(Place::Here, CLUSTER).with(Place::Cluster, &other),
            work(),
        ),
        ("a ledger on its cluster", here(ON_C1), ours("appliedmanifestworks", "", "hash-shop")),
        ("a cluster waits to be accepted", here(request), ours("managedclusters", "", "c1")),
        (
            "a request waits for approval",
            here(request),
            id("certificates.k8s.io", "certificatesigningrequests", "", "c1-x7"),
        ),
        ("a cluster is not heard of", here(LOST), ours("managedclusters", "", "c1")),
        (
            "a cluster cannot leave",
            here(&leaving).with(Place::Here, WORK_GOING).with(Place::Cluster, ON_C1),
            ours("managedclusters", "", "c1"),
        ),
        (
            "a set waits for its placement",
            here(set),
            ours("manifestworkreplicasets", "default", "shop"),
        ),
        (
            "a set waits for its rollout",
            here(rolling).with(Place::Here, CLUSTER),
            ours("manifestworkreplicasets", "default", "shop"),
        ),
    ]
    .into_iter()
    .map(|(name, servers, id)| case(name, servers, id, whatever))
    .collect()
}

fn policies() -> Vec<Case> {
    let root = r#"
apiVersion: policy.open-cluster-management.io/v1
kind: Policy
metadata: { name: limits, namespace: rules, uid: u-root }
spec: { disabled: false }
status:
  compliant: NonCompliant
  placement: [{ placementBinding: limits, placement: everywhere }]
  status:
  - { clustername: c1, clusternamespace: c1, compliant: NonCompliant }
---
apiVersion: policy.open-cluster-management.io/v1
kind: Policy
metadata:
  name: rules.limits
  namespace: c1
  uid: u-replica
  labels: { policy.open-cluster-management.io/root-policy: rules.limits }
spec: { disabled: false }
status:
  compliant: NonCompliant
  details:
  - compliant: NonCompliant
    templateMeta: { name: quota }
    history: [{ message: "NonCompliant; violation - configmaps [limits] not found in namespace shop" }]
"#;
    let template = r#"
apiVersion: v1
kind: Namespace
metadata: { name: kube-system, uid: u-system }
---
apiVersion: policy.open-cluster-management.io/v1
kind: ConfigurationPolicy
metadata: { name: quota, namespace: c1, uid: u-quota }
spec: { remediationAction: enforce }
status:
  compliant: NonCompliant
  compliancyDetails:
  - Compliant: NonCompliant
    conditions: [{ type: violation, message: "configmaps [limits] not found in namespace shop, and cannot be created, as namespace shop is being deleted" }]
  relatedObjects:
  - compliant: NonCompliant
    reason: Resource not found but should exist
    object: { apiVersion: v1, kind: ConfigMap, metadata: { namespace: shop, name: limits } }
"#;
    let pruning = r#"
apiVersion: policy.open-cluster-management.io/v1
kind: ConfigurationPolicy
metadata:
  name: quota
  namespace: c1
  uid: u-quota
  deletionTimestamp: "2026-11-16T11:00:00Z"
  finalizers: [policy.open-cluster-management.io/delete-related-objects]
spec: { remediationAction: enforce, pruneObjectBehavior: DeleteIfCreated }
status:
  compliant: Terminating
  relatedObjects:
  - compliant: NonCompliant
    object: { apiVersion: v1, kind: ConfigMap, metadata: { namespace: shop, name: orders } }
    properties: { createdByPolicy: true, uid: u-orders }
"#;
    let automation = r#"
apiVersion: policy.open-cluster-management.io/v1beta1
kind: PolicyAutomation
metadata: { name: ticket, namespace: rules, uid: u-automation }
spec: { policyRef: limits, mode: disabled }
status:
  conditions:
  - { type: JobsSucceed, status: "False", reason: Failed, message: "job ticket-1 failed" }
"#;
    let service = CRITICAL.replace(
        "type: Effective, status: \"True\"",
        "type: Effective, status: \"False\", reason: NotAsked, message: \"a dry-run delete was not asked about\"",
    );
    let whatever = Wish::Whatever;
    [
        (
            "a policy does not hold on a cluster",
            here(root).with(Place::Here, CLUSTER).with(Place::Cluster, template),
            ours("policies", "rules", "limits"),
        ),
        (
            "a policy prunes what is held",
            here(pruning).with(Place::Here, SHOP),
            ours("configurationpolicies", "c1", "quota"),
        ),
        (
            "an automation is disabled and failed",
            here(automation),
            ours("policyautomations", "rules", "ticket"),
        ),
        (
            "a CriticalService that does not protect",
            here(&service),
            ours("criticalservices", "", "widgets"),
        ),
    ]
    .into_iter()
    .map(|(name, servers, id)| case(name, servers, id, whatever))
    .collect()
}
