//! The smaller groups: policy, scheduling, coordination, storage, certificates, node, discovery, and
//! events.
//!
//! Left out: names in slices, flow control.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::check::{Errors, IMMUTABLE, shown_struct};
use super::net;
use crate::names;
use crate::quote::quoted;
use crate::rules::read::Read;

pub(super) fn disruption_budget(errors: &mut Errors, object: &Value) {
    let spec = object.at("spec");
    if spec.has("minAvailable") && spec.has("maxUnavailable") {
        let shown = serde_json::json!({
            "MinAvailable": spec.at("minAvailable"),
            "Selector": spec.at("selector"),
            "MaxUnavailable": spec.at("maxUnavailable"),
            "UnhealthyPodEvictionPolicy": spec.at("unhealthyPodEvictionPolicy"),
        });
        errors.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set");
    }
    for field in ["minAvailable", "maxUnavailable"] {
        let path = format!("spec.{field}");
        errors.number_or_percent(&path, spec.at(field));
        errors.at_most_everything(&path, spec.at(field));
    }
    errors.selector("spec.selector", spec.at("selector"));
    let policy = spec.at("unhealthyPodEvictionPolicy");
    let policies = ["AlwaysAllow", "IfHealthyBudget"];
    errors.maybe_one_of("spec.unhealthyPodEvictionPolicy", policy, &policies);
}

pub(super) fn ingress_class(errors: &mut Errors, object: &Value) {
    const PATH: &str = "spec.controller";
    let controller = object.at("spec").text("controller");
    if controller.len() > 250 {
        errors.too_long(PATH, 250);
    }
    match controller.split_once('/') {
        _ if controller.is_empty() => errors.required(PATH, ""),
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
            errors.subdomain(PATH, domain);
        }
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.invalid(PATH, controller, why);
        }
    }
    if object.at("spec").has("parameters") {
        class_parameters(errors, object.at("spec").at("parameters"));
    }
}

fn class_parameters(errors: &mut Errors, parameters: &Value) {
    let at = |field: &str| format!("spec.parameters.{field}");
    for field in ["kind", "name"] {
        if parameters.text(field).is_empty() {
            errors.required(at(field), "");
        }
    }
    match (parameters.text("scope"), parameters.has("namespace")) {
        ("", _) => errors.required(at("scope"), ""),
        ("Cluster", true) => {
            errors.forbidden(at("namespace"), "`parameters.scope` is set to 'Cluster'");
        }
        ("Namespace", false) => {
            errors.required(at("namespace"), "`parameters.scope` is set to 'Namespace'");
        }
        ("Cluster" | "Namespace", _) => {}
        (other, _) => errors.not_supported(at("scope"), other, &["Cluster", "Namespace"]),
    }
}

pub(super) fn priority_class(errors: &mut Errors, object: &Value) {
    const HIGHEST: i64 = 1_000_000_000;
    let (name, value) = (object.at("metadata").text("name"), object.number("value").unwrap_or(0));
    if name.starts_with("system-") {
        let known =
            [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];
        match known.iter().find(|(known, _)| *known == name) {
            None => errors.forbidden(
                "metadata.name",
                format!(
                    "priority class names with 'system-' prefix are reserved for system use only. \
                     error: {name} is not a known system priority class"
                ),
            ),
            Some((_, wanted)) if *wanted != value => errors.forbidden(
                "metadata.name",
                format!(
                    "priority class names with 'system-' prefix are reserved for system use only. \
                     error: value of {name} PriorityClass must be {wanted}"
                ),
            ),
            Some(_) => {}
        }
    } else if value > HIGHEST {
        let why = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        errors.forbidden("value", why);
    }
    let policies = ["PreemptLowerPriority", "Never"];
    errors.maybe_one_of("preemptionPolicy", object.at("preemptionPolicy"), &policies);
}

pub(super) fn priority_class_update(errors: &mut Errors, old: &Value, new: &Value) {
    if old.at("value") != new.at("value") {
        errors.forbidden("value", "may not be changed in an update.");
    }
    errors.immutable("", old, new, &["preemptionPolicy"]);
}

pub(super) fn lease(errors: &mut Errors, object: &Value) {
    let spec = object.at("spec");
    if let Some(seconds) = spec.number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        errors.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0");
    }
    if let Some(count) = spec.number("leaseTransitions").filter(|count| *count < 0) {
        errors.invalid("spec.leaseTransitions", count, "must be greater than or equal to 0");
    }
    if !spec.text("preferredHolder").is_empty() && spec.text("strategy").is_empty() {
        let why = "may only be specified if `strategy` is defined";
        errors.forbidden("spec.preferredHolder", why);
    }
}

pub(super) fn storage_class(errors: &mut Errors, object: &Value) {
    match object.text("provisioner") {
        "" => errors.required("provisioner", ""),
        name => {
            let name = name.to_lowercase();
            errors.complaints("provisioner", &name, names::label_key(&name));
        }
    }
    let policy = object.at("reclaimPolicy");
    errors.maybe_one_of("reclaimPolicy", policy, &["Delete", "Retain"]);
    for (key, _) in object.map("parameters").into_iter().flatten() {
        if key.is_empty() {
            errors.invalid("parameters", "", "field can not be empty.");
        }
    }
    let mode = object.at("volumeBindingMode");
    errors.maybe_one_of("volumeBindingMode", mode, &["Immediate", "WaitForFirstConsumer"]);
}

pub(super) fn csi_node(errors: &mut Errors, object: &Value) {
    for (index, driver) in object.at("spec").list("drivers").iter().enumerate() {
        for field in ["name", "nodeID"] {
            if driver.text(field).is_empty() {
                errors.required(format!("spec.drivers[{index}].{field}"), "");
            }
        }
    }
}

pub(super) fn csi_driver(errors: &mut Errors, object: &Value) {
    let spec = object.at("spec");
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    errors.maybe_one_of("spec.fsGroupPolicy", spec.at("fsGroupPolicy"), &policies);
    for mode in spec.list("volumeLifecycleModes") {
        let modes = ["Persistent", "Ephemeral"];
        errors.maybe_one_of("spec.volumeLifecycleModes", mode, &modes);
    }
}

pub(super) fn csi_driver_update(errors: &mut Errors, old: &Value, new: &Value) {
    let (before, spec) = (old.at("spec"), new.at("spec"));
    if before.at("attachRequired") != spec.at("attachRequired") {
        // The name is upstream's.
        let value = spec.at("attachRequired").clone();
        errors.invalid("spec.attachedRequired", value, IMMUTABLE);
    }
    errors.immutable("spec", before, spec, &["volumeLifecycleModes"]);
}

pub(super) fn volume_attachment_update(errors: &mut Errors, old: &Value, new: &Value) {
    let spec = new.at("spec");
    if old.at("spec") != spec {
        let source = shown_struct(&[
            ("PersistentVolumeName", spec.path(&["source", "persistentVolumeName"])),
            ("InlineVolumeSpec", spec.path(&["source", "inlineVolumeSpec"])),
        ]);
        let shown = shown_struct(&[
            ("Attacher", spec.at("attacher")),
            ("Source", &source),
            ("NodeName", spec.at("nodeName")),
        ]);
        errors.invalid("spec", shown, IMMUTABLE);
    }
}

pub(super) fn volume_attachment(errors: &mut Errors, object: &Value) {
    let spec = object.at("spec");
    if spec.text("attacher").is_empty() {
        errors.required("spec.attacher", "");
    }
    let source = spec.at("source");
    if !source.has("persistentVolumeName") && !source.has("inlineVolumeSpec") {
        let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        errors.required("spec.source", why);
    }
    errors.subdomain("spec.nodeName", spec.text("nodeName"));
}

pub(super) fn runtime_class(errors: &mut Errors, object: &Value) {
    match object.text("handler") {
        "" => errors.required("handler", ""),
        handler => errors.label("handler", handler),
    }
    // The names are upstream's.
    for (name, amount) in object.at("overhead").map("podFixed").into_iter().flatten() {
        errors.quantity(&format!("overhead.limits[{name}]"), name, amount);
    }
}

/// `addresses` is the kind of address to look for, which an update cannot change.
pub(super) fn endpoint_slice(errors: &mut Errors, object: &Value, addresses: &str) {
    let kinds = ["FQDN", "IPv4", "IPv6"];
    errors.one_of("addressType", object.text("addressType"), &kinds);
    let mut seen = BTreeSet::new();
    for (index, port) in object.list("ports").iter().enumerate() {
        let name = port.text("name");
        if !name.is_empty() {
            errors.label(&format!("ports[{index}].name"), name);
        }
        if !seen.insert(name) {
            errors.duplicate(format!("ports[{index}].name"), name);
        }
        errors.protocol(format!("ports[{index}].protocol"), port.text("protocol"));
    }
    for (index, endpoint) in object.list("endpoints").iter().enumerate() {
        if endpoint.list("addresses").is_empty() {
            let why = "must contain at least 1 address";
            errors.required(format!("endpoints[{index}].addresses"), why);
        }
        for (place, address) in endpoint.list("addresses").iter().enumerate() {
            let path = format!("endpoints[{index}].addresses[{place}]");
            let address = address.as_str().unwrap_or("");
            match addresses {
                "IPv4" | "IPv6" if address.parse::<std::net::IpAddr>().is_err() => {
                    net::address(errors, &path, address);
                }
                "IPv4" if address.contains(':') => {
                    errors.invalid(path, address, "must be an IPv4 address");
                }
                "IPv6" if !address.contains(':') => {
                    errors.invalid(path, address, "must be an IPv6 address");
                }
                "IPv4" | "IPv6" => net::endpoint(errors, &path, address),
                _ => {}
            }
        }
    }
}

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

pub(super) fn certificate_request(errors: &mut Errors, object: &Value) {
    let spec = object.at("spec");
    if let Err(why) = signed_request(spec.text("request")) {
        // Go shows bytes that are not there as null.
        let given = Some(spec.text("request")).filter(|text| !text.is_empty());
        errors.invalid("spec.request", given.map_or(Value::Null, Value::from), why);
    }
    let usages = spec.list("usages");
    if usages.is_empty() {
        errors.required("spec.usages", "");
    }
    for (index, usage) in usages.iter().enumerate() {
        errors.maybe_one_of(format!("spec.usages[{index}]"), usage, &USAGES);
    }
    for (index, usage) in usages.iter().enumerate() {
        if usages.iter().take(index).any(|earlier| earlier == usage) {
            errors.duplicate(format!("spec.usages[{index}]"), usage.clone());
        }
    }
    signer(errors, spec.text("signerName"));
    if let Some(seconds) = spec.number("expirationSeconds").filter(|seconds| *seconds < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.invalid("spec.expirationSeconds", seconds, why);
    }
    conditions(errors, object);
}

/// Whether the text is a certificate request, signed with the key it is for.
fn signed_request(text: &str) -> Result<(), String> {
    use x509_parser::{certification_request::X509CertificationRequest, prelude::FromDer};
    let bytes = STANDARD.decode(text).unwrap_or_default();
    let block = x509_parser::pem::parse_x509_pem(&bytes).ok().map(|(_, block)| block);
    let Some(block) = block.filter(|block| block.label == "CERTIFICATE REQUEST") else {
        return Err("PEM block type must be CERTIFICATE REQUEST".to_owned());
    };
    let (_, request) = X509CertificationRequest::from_der(&block.contents)
        .map_err(|_| "asn1: structure error: malformed certificate request".to_owned())?;
    request.verify_signature().map_err(|error| format!("x509: {error}"))
}

/// Whether the text is certificates and nothing else; none at all is well, too.
fn certificates(text: &str) -> Result<(), String> {
    use x509_parser::pem::Pem;
    if text.is_empty() {
        return Ok(());
    }
    let bytes = STANDARD.decode(text).unwrap_or_default();
    let mut blocks = 0;
    for block in Pem::iter_from_buffer(&bytes) {
        let Ok(block) = block else { break };
        if block.label != "CERTIFICATE" {
            let found = quoted(&block.label);
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {found}"));
        }
        if block.parse_x509().is_err() {
            return Err("x509: malformed certificate".to_owned());
        }
        blocks += 1;
    }
    match blocks {
        0 => Err("must contain at least one CERTIFICATE PEM block".to_owned()),
        _ => Ok(()),
    }
}

fn signer(errors: &mut Errors, name: &str) {
    const PATH: &str = "spec.signerName";
    if name.is_empty() {
        return errors.required(PATH, "");
    }
    if name == "kubernetes.io/legacy-unknown" {
        let why = "the legacy signerName is not allowed via this API version";
        return errors.invalid(PATH, name, why);
    }
    let (domain, path) = match name.split_once('/') {
        Some((domain, path)) if !path.contains('/') => (domain, path),
        _ => {
            let why =
                "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            return errors.invalid(PATH, name, why);
        }
    };
    if domain.len() > 253 {
        errors.too_long(PATH, 253);
    }
    let mut labels = |part: &str, check: fn(&str) -> Vec<String>| {
        for label in part.split('.') {
            let complaints = check(label);
            if !complaints.is_empty() {
                for complaint in complaints {
                    errors.invalid(PATH, part, format!("validating label {label:?}: {complaint}"));
                }
                break;
            }
        }
    };
    labels(domain, names::dns_label);
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.invalid(PATH, domain, why);
    }
    let mut labels = |part: &str| {
        for label in part.split('.') {
            let complaints = names::dns_subdomain(label);
            if !complaints.is_empty() {
                for complaint in complaints {
                    errors.invalid(PATH, part, format!("validating label {label:?}: {complaint}"));
                }
                break;
            }
        }
    };
    labels(path);
}

fn conditions(errors: &mut Errors, object: &Value) {
    let mut seen = BTreeSet::new();
    for (index, condition) in object.at("status").list("conditions").iter().enumerate() {
        let path = format!("status.conditions[{index}]");
        let (kind, status) = (condition.text("type"), condition.text("status"));
        if kind.is_empty() {
            errors.required(format!("{path}.type"), "");
        }
        if ["Approved", "Denied", "Failed"].contains(&kind) {
            errors.one_of(format!("{path}.status"), status, &["True"]);
        } else {
            errors.one_of(format!("{path}.status"), status, &["True", "False", "Unknown"]);
        }
        let opposite = match kind {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if seen.contains(opposite) {
            let why = "Approved and Denied conditions are mutually exclusive";
            errors.invalid("status.conditions", kind, why);
        }
        if !seen.insert(kind) {
            errors.duplicate(format!("{path}.type"), kind);
        }
    }
}

pub(super) fn certificate_request_update(
    errors: &mut Errors,
    subresource: Option<&str>,
    old: &Value,
    new: &Value,
) {
    certificate_request(errors, new);
    let issued = new.at("status").text("certificate");
    if issued != old.at("status").text("certificate")
        && let Err(why) = certificates(issued)
    {
        errors.invalid("status.certificate", "<certificate data>", why);
    }
    let conditions = |object: &Value, kind: &str| -> Vec<Value> {
        let all = object.at("status").list("conditions").iter();
        all.filter(|condition| condition.text("type") == kind).cloned().collect()
    };
    for kind in ["Approved", "Denied", "Failed"] {
        let (before, now) = (conditions(old, kind), conditions(new, kind));
        let kept = now.len() >= before.len();
        if !kept {
            let why = format!("updates may not remove a condition of type {kind:?}");
            errors.forbidden("status.conditions", why);
        } else if now.len() > before.len() && kind != "Failed" && subresource != Some("approval") {
            let why = format!("updates may not add a condition of type {kind:?}");
            errors.forbidden("status.conditions", why);
        }
    }
    let certificate = old.at("status").text("certificate");
    if !certificate.is_empty() && certificate != new.at("status").text("certificate") {
        let why = "updates may not change or unset the certificate once it has been set";
        errors.forbidden("status.certificate", why);
    }
}

/// What an event of the newer group says stays; only how often it was seen may change. Upstream
/// finds each difference twice.
pub(super) fn event_update(errors: &mut Errors, old: &Value, new: &Value) {
    for (field, shown) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        if old.at(field) != new.at(field) {
            for _ in 0..2 {
                errors.invalid(shown, new.at(field).clone(), IMMUTABLE);
            }
        }
    }
}

/// `legacy` is the view of the core group.
pub(super) fn event(errors: &mut Errors, object: &Value, legacy: bool) {
    let space = object.at("metadata").text("namespace");
    let field = if legacy { "involvedObject" } else { "regarding" };
    let about = object.at(field).text("namespace");
    let timed = object.has("eventTime");
    let wrong = match (timed, about) {
        (false, "") => !["", "default"].contains(&space),
        (false, about) => about != space,
        (true, "") => !["default", "kube-system"].contains(&space),
        (true, _) => false,
    };
    if wrong {
        errors.invalid("involvedObject.namespace", about, "does not match event.namespace");
    }
    if timed {
        let field = if legacy { "reportingComponent" } else { "reportingController" };
        let controller = object.text(field);
        if controller.is_empty() {
            errors.required(field, "");
        }
        errors.complaints(field, controller, names::label_key(controller));
        for field in ["reportingInstance", "action", "reason"] {
            let text = object.text(field);
            if text.is_empty() {
                errors.required(field, "");
            }
            if text.len() > 128 {
                errors.invalid(field, "", "can have at most 128 characters");
            }
        }
        if object.text(if legacy { "message" } else { "note" }).len() > 1024 {
            errors.invalid("message", "", "can have at most 1024 characters");
        }
    }
    if legacy {
        return;
    }
    if !timed {
        errors.required("eventTime", "");
    }
    let kind = object.text("type");
    if !["Normal", "Warning"].contains(&kind) {
        errors.invalid("type", "", format!("has invalid value: {kind}"));
    }
    for (field, shown) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
    ] {
        if object.has(field) {
            errors.invalid(shown, "", "needs to be unset");
        }
    }
    if object.number("deprecatedCount").unwrap_or(0) != 0 {
        errors.invalid("count", "", "needs to be unset");
    }
    let source = object.at("deprecatedSource");
    if !source.text("component").is_empty() || !source.text("host").is_empty() {
        errors.invalid("source", "", "needs to be unset");
    }
}
