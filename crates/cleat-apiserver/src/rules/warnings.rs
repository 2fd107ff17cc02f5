//! Warnings kube-apiserver sends along with an accepted write. Only the common and cheap ones.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::read::Read;
use crate::names;
use crate::resource::ResourceType;

/// What clients are told about an object that is otherwise fine.
pub(crate) fn warnings(ty: &ResourceType, object: &Value) -> Vec<String> {
    let mut all = Vec::new();
    match (&*ty.group, &*ty.plural) {
        ("", "pods") => {
            let complaints = names::dns_label(object.at("metadata").text("name"));
            if !complaints.is_empty() {
                all.push(format!(
                    "metadata.name: this is used in the Pod's hostname, which can result in \
                     surprising behavior; a DNS label is recommended: [{}]",
                    complaints.join(" ")
                ));
            }
            pod(&mut all, "spec", object.at("spec"));
        }
        ("", "podtemplates") => pod(&mut all, "template.spec", object.path(&["template", "spec"])),
        ("apps", _) | ("", "replicationcontrollers") | ("batch", "jobs") => {
            pod(&mut all, "spec.template.spec", object.path(&["spec", "template", "spec"]));
        }
        ("batch", "cronjobs") => {
            let keys = ["spec", "jobTemplate", "spec", "template", "spec"];
            pod(&mut all, "spec.jobTemplate.spec.template.spec", object.path(&keys));
        }
        ("", "services") => {
            let spec = object.at("spec");
            if spec.text("clusterIP") == "None" && spec.text("sessionAffinity") == "ClientIP" {
                all.push("spec.SessionAffinity is ignored for headless services".to_owned());
            }
        }
        ("", "secrets") if object.text("type") == "kubernetes.io/tls" => {
            all.extend(key_pair(object.at("data")));
        }
        ("discovery.k8s.io", "endpointslices") if object.text("addressType") == "FQDN" => {
            all.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
        }
        _ => {}
    }
    if (&*ty.group, &*ty.plural) == ("apps", "statefulsets")
        && object.at("spec").number("revisionHistoryLimit").is_some_and(|limit| limit < 0)
    {
        all.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value \
             >= 0 is recommended"
                .to_owned(),
        );
    }
    all
}

/// What keeps a certificate and its key from being used. Whether they fit is for the user to find
/// out.
fn key_pair(data: &Value) -> Option<String> {
    let blocks = |key: &str| {
        let bytes = STANDARD.decode(data.text(key)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains("-----BEGIN ")
    };
    if !blocks("tls.crt") {
        return Some("tls: failed to find any PEM data in certificate input".to_owned());
    }
    (!blocks("tls.key")).then(|| "tls: failed to find any PEM data in key input".to_owned())
}

fn pod(all: &mut Vec<String>, path: &str, spec: &Value) {
    const NODE_LABELS: [(&str, &str); 5] = [
        ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
        ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
        (
            "failure-domain.beta.kubernetes.io/region",
            "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
        ),
        (
            "failure-domain.beta.kubernetes.io/zone",
            "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
        ),
        (
            "beta.kubernetes.io/instance-type",
            "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
        ),
    ];
    for (label, why) in NODE_LABELS {
        if spec.at("nodeSelector").has(label) {
            all.push(format!("{path}.nodeSelector[{label}]: {why}"));
        }
    }
    for (index, secret) in spec.list("imagePullSecrets").iter().enumerate() {
        if secret.text("name").is_empty() {
            all.push(format!("{path}.imagePullSecrets[{index}].name: invalid empty name \"\""));
        }
    }
    for kind in ["initContainers", "containers"] {
        for (index, container) in spec.list(kind).iter().enumerate() {
            fractional(all, &format!("{path}.{kind}[{index}]"), container);
            let mut seen = BTreeSet::new();
            for (place, variable) in container.list("env").iter().enumerate() {
                let name = variable.text("name");
                if !seen.insert(name) {
                    all.push(format!(
                        "{path}.{kind}[{index}].env[{place}]: hides previous definition of \
                         {name:?}, which may be dropped when using apply"
                    ));
                }
            }
        }
    }
    if spec.number("terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        all.push(format!(
            "{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and \
             will be treated as 1"
        ));
    }
}

/// Bytes cannot be split; `100m` of memory is a typing error for `100M`.
fn fractional(all: &mut Vec<String>, path: &str, container: &Value) {
    for name in ["memory", "ephemeral-storage"] {
        for list in ["limits", "requests"] {
            let amount = container.at("resources").at(list).at(name);
            let Ok(quantity) = crate::quantity::Quantity::from_json(amount) else { continue };
            if !quantity.is_whole() {
                let shown = crate::quote::quoted(&quantity.to_string());
                all.push(format!(
                    "{path}.resources.{list}[{name}]: fractional byte value {shown} is invalid, \
                     must be an integer"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_careless_pod_is_warned_about() {
        let spec = json!({
            "nodeSelector": { "beta.kubernetes.io/os": "linux" },
            "containers": [{
                "env": [{ "name": "A" }, { "name": "A" }],
                "resources": { "limits": { "memory": "100m" } }
            }]
        });
        let mut all = Vec::new();
        pod(&mut all, "spec", &spec);
        assert_eq!(
            all,
            [
                "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \
                 \"kubernetes.io/os\" instead",
                "spec.containers[0].resources.limits[memory]: fractional byte value \"100m\" is \
                 invalid, must be an integer",
                "spec.containers[0].env[1]: hides previous definition of \"A\", which may be \
                 dropped when using apply",
            ]
        );
    }
}
