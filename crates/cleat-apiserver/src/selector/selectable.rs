//! Which fields of which kinds a field selector may use, and where they are in an object.

use crate::quote::quoted;
use crate::resource::{Origin, ResourceType};

/// Where a selectable field is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Always the empty string.
    Nowhere,
    Name,
    Namespace,
    /// The first of these paths that holds something, else `absent`.
    Known {
        paths: &'static [&'static str],
        absent: &'static str,
    },
    /// A path of a custom resource.
    Custom(Vec<Box<str>>),
}

/// A field of a built-in kind: its label, its paths, and what stands for an absent value.
type Field = (&'static str, &'static [&'static str], &'static str);

/// The fields of one kind, beside `metadata.name`.
struct Fields {
    group: &'static str,
    plural: &'static str,
    namespace: bool,
    fields: &'static [Field],
}

/// Kinds not listed here have `metadata.name` and `metadata.namespace`.
///
/// An event is the same object in both of its groups, so that either spelling may be stored.
const KNOWN: &[Fields] = &[
    Fields {
        group: "",
        plural: "pods",
        namespace: true,
        fields: &[
            ("spec.nodeName", &["spec.nodeName"], ""),
            ("spec.host", &["spec.nodeName"], ""),
            ("spec.restartPolicy", &["spec.restartPolicy"], ""),
            ("spec.schedulerName", &["spec.schedulerName"], ""),
            ("spec.serviceAccountName", &["spec.serviceAccountName"], ""),
            ("spec.hostNetwork", &["spec.hostNetwork"], "false"),
            ("status.phase", &["status.phase"], ""),
            ("status.podIP", &["status.podIP", "status.podIPs.ip"], ""),
            // Allowed, but no pod has ever had it.
            ("status.podIPs", &[], ""),
            ("status.nominatedNodeName", &["status.nominatedNodeName"], ""),
        ],
    },
    Fields {
        group: "",
        plural: "nodes",
        namespace: false,
        fields: &[("spec.unschedulable", &["spec.unschedulable"], "false")],
    },
    Fields {
        group: "",
        plural: "replicationcontrollers",
        namespace: true,
        fields: &[("status.replicas", &["status.replicas"], "0")],
    },
    Fields {
        group: "",
        plural: "events",
        namespace: true,
        fields: &[
            ("involvedObject.kind", &["involvedObject.kind", "regarding.kind"], ""),
            ("involvedObject.namespace", &["involvedObject.namespace", "regarding.namespace"], ""),
            ("involvedObject.name", &["involvedObject.name", "regarding.name"], ""),
            ("involvedObject.uid", &["involvedObject.uid", "regarding.uid"], ""),
            (
                "involvedObject.apiVersion",
                &["involvedObject.apiVersion", "regarding.apiVersion"],
                "",
            ),
            (
                "involvedObject.resourceVersion",
                &["involvedObject.resourceVersion", "regarding.resourceVersion"],
                "",
            ),
            ("involvedObject.fieldPath", &["involvedObject.fieldPath", "regarding.fieldPath"], ""),
            ("reason", &["reason"], ""),
            ("reportingComponent", &["reportingComponent", "reportingController"], ""),
            (
                "source",
                &[
                    "source.component",
                    "deprecatedSource.component",
                    "reportingComponent",
                    "reportingController",
                ],
                "",
            ),
            ("type", &["type"], ""),
        ],
    },
    Fields {
        group: "events.k8s.io",
        plural: "events",
        namespace: true,
        fields: &[
            ("regarding.kind", &["regarding.kind", "involvedObject.kind"], ""),
            ("regarding.namespace", &["regarding.namespace", "involvedObject.namespace"], ""),
            ("regarding.name", &["regarding.name", "involvedObject.name"], ""),
            ("regarding.uid", &["regarding.uid", "involvedObject.uid"], ""),
            ("regarding.apiVersion", &["regarding.apiVersion", "involvedObject.apiVersion"], ""),
            (
                "regarding.resourceVersion",
                &["regarding.resourceVersion", "involvedObject.resourceVersion"],
                "",
            ),
            ("regarding.fieldPath", &["regarding.fieldPath", "involvedObject.fieldPath"], ""),
            ("reason", &["reason"], ""),
            ("reportingController", &["reportingController", "reportingComponent"], ""),
            ("type", &["type"], ""),
        ],
    },
    Fields {
        group: "",
        plural: "namespaces",
        namespace: false,
        fields: &[("status.phase", &["status.phase"], "")],
    },
    Fields { group: "", plural: "secrets", namespace: true, fields: &[("type", &["type"], "")] },
    Fields {
        group: "",
        plural: "services",
        namespace: true,
        fields: &[("spec.clusterIP", &["spec.clusterIP"], ""), ("spec.type", &["spec.type"], "")],
    },
    Fields {
        group: "batch",
        plural: "jobs",
        namespace: true,
        fields: &[("status.successful", &["status.succeeded"], "0")],
    },
    Fields {
        group: "certificates.k8s.io",
        plural: "certificatesigningrequests",
        namespace: false,
        fields: &[("spec.signerName", &["spec.signerName"], "")],
    },
    Fields {
        group: "certificates.k8s.io",
        plural: "clustertrustbundles",
        namespace: false,
        fields: &[("spec.signerName", &["spec.signerName"], "")],
    },
    Fields {
        group: "certificates.k8s.io",
        plural: "podcertificaterequests",
        namespace: false,
        fields: &[
            ("spec.signerName", &["spec.signerName"], ""),
            ("spec.podName", &["spec.podName"], ""),
            ("spec.nodeName", &["spec.nodeName"], ""),
        ],
    },
    Fields {
        group: "resource.k8s.io",
        plural: "resourceslices",
        namespace: false,
        fields: &[("spec.nodeName", &["spec.nodeName"], ""), ("spec.driver", &["spec.driver"], "")],
    },
];

/// The two fields every object has.
pub(super) fn metadata(field: &str) -> Option<Place> {
    match field {
        "metadata.name" => Some(Place::Name),
        "metadata.namespace" => Some(Place::Namespace),
        _ => None,
    }
}

/// Where `field` is in that kind. The error is Kubernetes' sentence, which differs by kind.
pub(super) fn place(resource: &ResourceType, version: &str, field: &str) -> Result<Place, String> {
    if resource.origin != Origin::Builtin {
        return custom(resource, version, field);
    }
    let known =
        KNOWN.iter().find(|one| one.group == &*resource.group && one.plural == &*resource.plural);
    let Some(known) = known else {
        return metadata(field).ok_or_else(|| {
            format!(
                "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                quoted(field)
            )
        });
    };
    if field == "metadata.name" || (field == "metadata.namespace" && known.namespace) {
        return Ok(metadata(field).unwrap_or(Place::Nowhere));
    }
    if let Some((_, paths, absent)) = known.fields.iter().find(|(label, ..)| *label == field) {
        return Ok(Place::Known { paths, absent });
    }
    Err(match known.plural {
        "jobs" => format!("field label {} not supported for Job", quoted(field)),
        "resourceslices" => format!(
            "field label not supported for resource.k8s.io/{version}, Kind=ResourceSlice: {field}"
        ),
        _ => format!("field label not supported: {field}"),
    })
}

fn custom(resource: &ResourceType, version: &str, field: &str) -> Result<Place, String> {
    match field {
        "metadata.name" => return Ok(Place::Name),
        "metadata.namespace" if resource.namespaced => return Ok(Place::Namespace),
        _ => {}
    }
    let fields = resource.version(version).map(|version| version.selectable_fields.as_slice());
    fields
        .unwrap_or_default()
        .iter()
        .map(|path| path.strip_prefix('.').unwrap_or(path))
        .find(|path| *path == field)
        .map(|path| Place::Custom(segments(path)))
        .ok_or_else(|| format!("field label not supported: {field}"))
}

/// CustomResourceDefinitions allow only plain fields here: `spec.color` and `spec['a.b']`.
fn segments(path: &str) -> Vec<Box<str>> {
    let mut segments = Vec::new();
    let mut current = String::new();
    let mut chars = path.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => current.extend(chars.next()),
            '.' | '[' | ']' => {
                if !current.is_empty() {
                    segments.push(std::mem::take(&mut current).into());
                }
            }
            '\'' => current.extend(chars.by_ref().take_while(|c| *c != '\'')),
            c => current.push(c),
        }
    }
    if !current.is_empty() {
        segments.push(current.into());
    }
    segments
}
