//! The paths of one group version and what may be done at each.

use serde_json::{Map, Value, json};

use super::custom::definition_name;
use super::operation::{self, Operation};
use crate::builtin;
use crate::resource::{Origin, ResourceType, Subresource};

/// The paths gathered so far.
pub(super) struct PathSet<'a> {
    group: &'a str,
    version: &'a str,
    /// `/apis/apps/v1`
    base: String,
    paths: Map<String, Value>,
}

impl<'a> PathSet<'a> {
    pub(super) fn new(group: &'a str, version: &'a str) -> Self {
        let base = match group {
            "" => format!("/api/{version}"),
            _ => format!("/apis/{group}/{version}"),
        };
        Self { group, version, base, paths: Map::new() }
    }

    pub(super) fn into_json(self) -> Value {
        Value::Object(self.paths)
    }

    /// The list of the group version's resources.
    pub(super) fn add_root(&mut self) {
        let get = json!({
            "operationId": operation_id("get", self.group, self.version, "APIResources"),
            "responses": operation::responses("get", "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList"),
            "tags": [tag(self.group, self.version)],
        });
        self.paths.insert(format!("{}/", self.base), json!({ "get": get }));
    }

    /// Adds everything below one resource.
    pub(super) fn add(&mut self, resource: &ResourceType) {
        let Some(version) = resource.version(self.version) else { return };
        let custom = resource.origin != Origin::Builtin;
        let kind = (self.group, self.version, &*resource.kind);
        let Some(object) = definition(kind, custom) else { return };
        let list = definition((self.group, self.version, &*resource.list_kind), custom);
        let everywhere = format!("{}/{}", self.base, resource.plural);
        let (collection, suffix) = match resource.namespaced {
            true => (
                format!("{}/namespaces/{{namespace}}/{}", self.base, resource.plural),
                format!("Namespaced{}", resource.kind),
            ),
            false => (everywhere.clone(), resource.kind.to_string()),
        };
        let item = format!("{collection}/{{name}}");
        for verb in &version.verbs {
            let Some(operation) = Operation::of(verb, kind, &object, list.as_deref()) else {
                continue;
            };
            let path = if operation.on_item { &item } else { &collection };
            self.insert(path, &operation, &suffix, custom);
            if &**verb == "list" && resource.namespaced {
                let suffix = format!("{}ForAllNamespaces", resource.kind);
                self.insert(&everywhere, &operation, &suffix, custom);
            }
        }
        for subresource in &version.subresources {
            let suffix = format!("{suffix}{}", capitalised(&subresource.name));
            let path = format!("{item}/{}", subresource.name);
            self.add_subresource(&path, &suffix, resource, subresource);
        }
    }

    /// Subresources that are streams (logs, exec, proxies) have no paths here: they take and give
    /// nothing that has a schema.
    fn add_subresource(
        &mut self,
        path: &str,
        suffix: &str,
        resource: &ResourceType,
        subresource: &Subresource,
    ) {
        let custom = resource.origin != Origin::Builtin;
        let (group, version, named_by_rule) = match (&*subresource.group, &*subresource.version) {
            ("", "") => (self.group, self.version, custom),
            (group, version) => (group, version, false),
        };
        let kind = (group, version, &*subresource.kind);
        let object = definition(kind, named_by_rule).filter(|_| &*subresource.name != "log");
        let Some(object) = object else { return };
        // Custom kinds' operations all go under the kind itself, `scale` too.
        let kind = if custom { (self.group, self.version, &*resource.kind) } else { kind };
        for verb in &subresource.verbs {
            if let Some(operation) = Operation::of(verb, kind, &object, None) {
                self.insert(path, &operation, suffix, custom);
            }
        }
    }

    fn insert(&mut self, path: &str, operation: &Operation<'_>, suffix: &str, custom: bool) {
        let mut written = operation.to_json(custom);
        let id = operation_id(operation.verb, self.group, self.version, suffix);
        written.insert("operationId".into(), id.into());
        written.insert("tags".into(), json!([tag(self.group, self.version)]));
        let entry = self.paths.entry(path).or_insert_with(|| {
            let names = ["name", "namespace"].into_iter();
            let in_path = names.filter(|name| path.contains(&format!("{{{name}}}")));
            let mut parameters: Vec<Value> = in_path.map(operation::in_path).collect();
            parameters.push(operation::in_query("pretty", "string"));
            json!({ "parameters": parameters })
        });
        if let Value::Object(entry) = entry {
            entry.insert(operation.method.into(), written.into());
        }
    }
}

/// The name of a kind's definition. `custom` kinds are named by rule, the others looked up.
fn definition((group, version, kind): (&str, &str, &str), custom: bool) -> Option<String> {
    if custom {
        return Some(definition_name(group, version, kind));
    }
    builtin::messages().of_kind(group, version, kind).map(|message| message.name.to_owned())
}

/// `readAppsV1NamespacedDeployment`
fn operation_id(verb: &str, group: &str, version: &str, suffix: &str) -> String {
    let (verb, collection) = match verb {
        "deletecollection" => ("delete", "Collection"),
        verb => (verb, ""),
    };
    format!("{verb}{}{}{collection}{suffix}", group_word(group, true), capitalised(version))
}

/// `apps_v1`
fn tag(group: &str, version: &str) -> String {
    format!("{}_{version}", group_word(group, false))
}

/// `rbac.authorization.k8s.io` → `RbacAuthorization`
fn group_word(group: &str, capital: bool) -> String {
    let group = match group {
        "" => "core",
        group => group.strip_suffix(".k8s.io").unwrap_or(group),
    };
    let mut word = String::new();
    for (index, part) in group.split(|c: char| !c.is_ascii_alphanumeric()).enumerate() {
        match index == 0 && !capital {
            true => word.push_str(part),
            false => word.push_str(&capitalised(part)),
        }
    }
    word
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
