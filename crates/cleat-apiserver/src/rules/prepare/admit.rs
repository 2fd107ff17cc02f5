//! What kube-apiserver's own admission plugins add to new objects, as far as they look at nothing
//! but the object and its service account.

use serde_json::{Map, Value, json};

use super::Env;
use crate::resource::ResourceType;
use crate::rules::read::{Read, child, fill, list, object as object_of, objects};

type Object = Map<String, Value>;

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How the names of volumes begin that hold tokens.
const TOKEN_VOLUME: &str = "kube-api-access-";

pub(super) fn create(ty: &ResourceType, object: &mut Value, env: &Env<'_>) {
    match (&*ty.group, &*ty.plural) {
        ("", "pods") => {
            let spec = child(object_of(object), "spec");
            service_account(spec, env);
            tolerations(spec);
            priority(spec);
        }
        ("", "persistentvolumeclaims") => finalizer(object, "kubernetes.io/pvc-protection"),
        ("", "persistentvolumes") => finalizer(object, "kubernetes.io/pv-protection"),
        ("storage.k8s.io", "volumeattributesclasses") => {
            finalizer(object, "kubernetes.io/vac-protection");
        }
        ("", "nodes") => not_ready(child(object_of(object), "spec")),
        _ => {}
    }
}

/// A pod stays five minutes on a node that went away, unless it says otherwise.
pub(super) fn tolerations(spec: &mut Object) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = spec.list("tolerations").iter().any(|toleration| {
            [key, ""].contains(&toleration.text("key"))
                && ["NoExecute", ""].contains(&toleration.text("effect"))
        });
        if !tolerated {
            let toleration = json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300
            });
            list(spec, "tolerations").push(toleration);
        }
    }
}

/// Gives a new pod its number in the queue. `class` is the PriorityClass the pod names, or the one
/// marked as default when it names none; the two that every cluster has need not be looked up.
///
/// Errors with the sentence that follows `pods "name" is forbidden: `.
pub(crate) fn pod_priority(pod: &mut Value, class: Option<&Value>) -> Result<(), String> {
    let spec = child(object_of(pod), "spec");
    let name = spec.text("priorityClassName").to_owned();
    let (number, policy) = match (&*name, class) {
        (_, Some(class)) => {
            let policy = class.at("preemptionPolicy").as_str().unwrap_or(PREEMPT);
            fill(spec, "priorityClassName", class.at("metadata").at("name").clone());
            (class.number("value").unwrap_or(0), policy)
        }
        ("", None) => (0, PREEMPT),
        (name, None) => match builtin_priority(name) {
            Some(number) => (number, PREEMPT),
            None => return Err(format!("no PriorityClass with name {name} was found")),
        },
    };
    if let Some(given) = spec.number("priority").filter(|given| *given != number) {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority \
             admission controller computed {number} from the given PriorityClass name"
        ));
    }
    let given = spec.text("preemptionPolicy");
    if !given.is_empty() && given != policy {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
             priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    spec.insert("priority".into(), number.into());
    spec.insert("preemptionPolicy".into(), policy.into());
    Ok(())
}

/// Gives a new pod what its RuntimeClass says a pod of its kind costs and where it can run.
///
/// Errors with the sentence that follows `pods "name" is forbidden: `.
pub(crate) fn pod_runtime(pod: &mut Value, class: &Value) -> Result<(), String> {
    let spec = child(object_of(pod), "spec");
    let cost = class.at("overhead").at("podFixed");
    if !cost.is_null() {
        if spec.has("overhead") && spec.at("overhead") != cost {
            return Err("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined \
                        Overhead"
                .to_owned());
        }
        spec.insert("overhead".into(), cost.clone());
    }
    let scheduling = class.at("scheduling");
    for (key, wanted) in scheduling.map("nodeSelector").into_iter().flatten() {
        let selector = child(spec, "nodeSelector");
        match selector.get(key) {
            Some(given) if given != wanted => {
                return Err(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; \
                     pod.spec.nodeSelector[{key}] = {}",
                    wanted.as_str().unwrap_or(""),
                    given.as_str().unwrap_or("")
                ));
            }
            _ => selector.insert(key.clone(), wanted.clone()),
        };
    }
    for toleration in scheduling.list("tolerations") {
        let tolerations = list(spec, "tolerations");
        if !tolerations.contains(toleration) {
            tolerations.push(toleration.clone());
        }
    }
    Ok(())
}

const PREEMPT: &str = "PreemptLowerPriority";

fn builtin_priority(name: &str) -> Option<i64> {
    match name {
        "system-cluster-critical" => Some(2_000_000_000),
        "system-node-critical" => Some(2_000_001_000),
        _ => None,
    }
}

/// For pods whose class nobody looked up: what can be known without.
fn priority(spec: &mut Object) {
    let number = match spec.text("priorityClassName") {
        "" => Some(0),
        name => builtin_priority(name),
    };
    if let Some(number) = number {
        fill(spec, "priority", number);
        fill(spec, "preemptionPolicy", PREEMPT);
    }
}

fn service_account(spec: &mut Object, env: &Env<'_>) {
    fill(spec, "serviceAccountName", "default");
    let name = spec.at("serviceAccountName").clone();
    spec.insert("serviceAccount".into(), name);
    let Some(account) = env.service_account else { return };
    if spec.list("imagePullSecrets").is_empty() && !account.list("imagePullSecrets").is_empty() {
        spec.insert("imagePullSecrets".into(), account.at("imagePullSecrets").clone());
    }
    let wanted = spec.at("automountServiceAccountToken").as_bool();
    let offered = account.at("automountServiceAccountToken").as_bool();
    if wanted.or(offered).unwrap_or(true) {
        mount_token(spec, env.suffix);
    }
}

fn mount_token(spec: &mut Object, suffix: &str) {
    let mut volumes = spec.list("volumes").iter().map(|volume| volume.text("name"));
    let known = volumes.find(|name| name.starts_with(TOKEN_VOLUME)).map(str::to_owned);
    let there = known.is_some();
    let volume = known.unwrap_or_else(|| format!("{TOKEN_VOLUME}{suffix}"));
    let mut mounted = false;
    for containers in ["initContainers", "containers"] {
        for container in objects(spec, containers) {
            let there = container
                .list("volumeMounts")
                .iter()
                .any(|mount| mount.text("mountPath").trim_end_matches('/') == TOKEN_PATH);
            if !there {
                let mount = json!({ "name": volume, "readOnly": true, "mountPath": TOKEN_PATH });
                list(container, "volumeMounts").push(mount);
                mounted = true;
            }
        }
    }
    if mounted && !there {
        let sources = json!([
            { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
            { "configMap": {
                "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }]
            } },
            { "downwardAPI": { "items": [{
                "path": "namespace",
                "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" }
            }] } }
        ]);
        list(spec, "volumes").push(json!({ "name": volume, "projected": { "sources": sources } }));
    }
}

fn finalizer(object: &mut Value, name: &str) {
    let finalizers = list(child(object_of(object), "metadata"), "finalizers");
    if !finalizers.iter().any(|finalizer| finalizer == name) {
        finalizers.push(name.into());
    }
}

/// A new node takes no pods until its controller says it is ready.
fn not_ready(spec: &mut Object) {
    const KEY: &str = "node.kubernetes.io/not-ready";
    let there = |taint: &Value| taint.text("key") == KEY && taint.text("effect") == "NoSchedule";
    if !spec.list("taints").iter().any(there) {
        list(spec, "taints").push(json!({ "key": KEY, "effect": "NoSchedule" }));
    }
}
