//! One operation on one path: what it is called, takes, gives, and may be asked with.

use serde_json::{Map, Value, json};

use super::REFERENCE;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// An operation before it is written down.
pub(super) struct Operation<'a> {
    /// What Kubernetes calls it: `list`, `post`, `deletecollection`, `get`, …
    action: &'static str,
    pub(super) method: &'static str,
    /// How its id begins.
    pub(super) verb: &'static str,
    /// Whether it is about one object, not a collection.
    pub(super) on_item: bool,
    /// Group, version and kind.
    kind: (&'a str, &'a str, &'a str),
    /// Definition names.
    takes: Option<String>,
    gives: String,
}

impl<'a> Operation<'a> {
    /// What `verb` means for a kind whose definition is `object`. Nothing for `watch`, which is a
    /// form of `list` here.
    pub(super) fn of(
        verb: &str,
        kind: (&'a str, &'a str, &'a str),
        object: &str,
        list: Option<&str>,
    ) -> Option<Self> {
        let object = || object.to_owned();
        let options = || Some(format!("{META}.DeleteOptions"));
        let status = || format!("{META}.Status");
        let (action, method, verb, takes, gives) = match verb {
            "list" => ("list", "get", "list", None, list?.to_owned()),
            "create" => ("post", "post", "create", Some(object()), object()),
            "deletecollection" => {
                ("deletecollection", "delete", "deletecollection", options(), status())
            }
            "get" => ("get", "get", "read", None, object()),
            "update" => ("put", "put", "replace", Some(object()), object()),
            "patch" => ("patch", "patch", "patch", Some(format!("{META}.Patch")), object()),
            "delete" => ("delete", "delete", "delete", options(), status()),
            _ => return None,
        };
        let on_item = matches!(action, "get" | "put" | "patch" | "delete");
        Some(Self { action, method, verb, on_item, kind, takes, gives })
    }

    /// Everything but what depends on the path.
    pub(super) fn to_json(&self, custom: bool) -> Map<String, Value> {
        let (group, version, kind) = self.kind;
        let gvk = json!({ "group": group, "version": version, "kind": kind });
        let mut written = Map::new();
        written.insert("responses".into(), responses(self.action, &self.gives));
        written.insert("x-kubernetes-action".into(), self.action.into());
        written.insert("x-kubernetes-group-version-kind".into(), gvk);
        let parameters = parameters(self.action);
        if !parameters.is_empty() {
            written.insert("parameters".into(), parameters.into());
        }
        if let Some(takes) = &self.takes {
            let media = bodies(self.action, custom).iter();
            let content: Map<String, Value> =
                media.map(|media| ((*media).to_owned(), schema(takes))).collect();
            let body = match self.method {
                "delete" => json!({ "content": content }),
                _ => json!({ "content": content, "required": true }),
            };
            written.insert("requestBody".into(), body);
        }
        written
    }
}

/// What an action may answer, `gives` being the definition of its body.
pub(super) fn responses(action: &str, gives: &str) -> Value {
    let mut responses = Map::new();
    responses.insert("401".into(), json!({ "description": "Unauthorized" }));
    for (code, description) in codes(action) {
        let content = json!({ "application/json": schema(gives) });
        let response = json!({ "description": description, "content": content });
        responses.insert((*code).into(), response);
    }
    responses.into()
}

fn schema(name: &str) -> Value {
    json!({ "schema": { "$ref": format!("{REFERENCE}{name}") } })
}

fn codes(action: &str) -> &'static [(&'static str, &'static str)] {
    match action {
        "post" => &[("200", "OK"), ("201", "Created"), ("202", "Accepted")],
        "put" | "patch" => &[("200", "OK"), ("201", "Created")],
        "delete" => &[("200", "OK"), ("202", "Accepted")],
        _ => &[("200", "OK")],
    }
}

fn bodies(action: &str, custom: bool) -> &'static [&'static str] {
    match (action, custom) {
        ("patch", false) => &[
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
        ],
        ("patch", true) => &[
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
        ],
        (_, false) => &["*/*"],
        (_, true) => &["application/json", "application/yaml"],
    }
}

fn parameters(action: &str) -> Vec<Value> {
    const STRING: &str = "string";
    const INTEGER: &str = "integer";
    const BOOLEAN: &str = "boolean";
    let all: &[(&str, &str)] = match action {
        "list" => &[
            ("allowWatchBookmarks", BOOLEAN),
            ("continue", STRING),
            ("fieldSelector", STRING),
            ("labelSelector", STRING),
            ("limit", INTEGER),
            ("resourceVersion", STRING),
            ("resourceVersionMatch", STRING),
            ("sendInitialEvents", BOOLEAN),
            ("timeoutSeconds", INTEGER),
            ("watch", BOOLEAN),
        ],
        "deletecollection" => &[
            ("continue", STRING),
            ("dryRun", STRING),
            ("fieldSelector", STRING),
            ("gracePeriodSeconds", INTEGER),
            ("labelSelector", STRING),
            ("limit", INTEGER),
            ("orphanDependents", BOOLEAN),
            ("propagationPolicy", STRING),
            ("resourceVersion", STRING),
            ("resourceVersionMatch", STRING),
            ("sendInitialEvents", BOOLEAN),
            ("timeoutSeconds", INTEGER),
        ],
        "delete" => &[
            ("dryRun", STRING),
            ("gracePeriodSeconds", INTEGER),
            ("orphanDependents", BOOLEAN),
            ("propagationPolicy", STRING),
        ],
        "post" | "put" => {
            &[("dryRun", STRING), ("fieldManager", STRING), ("fieldValidation", STRING)]
        }
        "patch" => &[
            ("dryRun", STRING),
            ("fieldManager", STRING),
            ("fieldValidation", STRING),
            ("force", BOOLEAN),
        ],
        _ => &[],
    };
    all.iter().map(|(name, kind)| in_query(name, kind)).collect()
}

pub(super) fn in_query(name: &str, kind: &str) -> Value {
    json!({ "name": name, "in": "query", "schema": { "type": kind, "uniqueItems": true } })
}

pub(super) fn in_path(name: &str) -> Value {
    let schema = json!({ "type": "string", "uniqueItems": true });
    json!({ "name": name, "in": "path", "required": true, "schema": schema })
}
