//! `as=Table`: objects as the rows that `kubectl get` prints, and the other reduced views of
//! objects, `PartialObjectMetadata` and its list.
//!
//! Custom resources take their columns from their definition, built-in kinds from the tables in
//! the modules below; kinds without any show name and creation. What a column is called and what
//! stands in it follows kube-apiserver; descriptions are our own.

mod access;
mod age;
mod cell;
mod core;
mod custom;
mod network;
mod pods;
mod storage;
#[cfg(test)]
mod tests;
mod workloads;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::negotiate::MetaVersion;
use crate::query::Include;
use crate::resource::{Origin, ResourceType};
use cell::{Column, Row};
use custom::CustomColumn;

pub use age::human_duration;

/// The columns of one kind, ready to print many objects.
#[derive(Debug)]
pub struct Printer {
    columns: Columns,
    /// A built-in kind without columns of its own.
    plain: bool,
    /// A row's conditions, for the one kind that has any.
    conditions: Option<fn(&Row<'_>) -> Option<Value>>,
}

#[derive(Debug)]
enum Columns {
    Builtin(&'static [Column]),
    Custom(Vec<CustomColumn>),
}

/// How a Table is wanted.
#[derive(Clone, Copy, Debug)]
pub struct TableOptions {
    pub version: MetaVersion,
    pub include: Include,
    /// Watches repeat no headers after their first event.
    pub headers: bool,
    /// For the ages.
    pub now: Timestamp,
}

/// The kinds of one API group that have columns of their own, by plural name.
type Tables = &'static [(&'static str, &'static [Column])];

impl Printer {
    /// Columns whose JSONPath cannot be read, and all after them, are left out.
    pub fn new(resource: &ResourceType, version: &str) -> Self {
        let own = builtin(&resource.group, &resource.plural);
        let columns = match resource.origin {
            Origin::Builtin => Columns::Builtin(own.unwrap_or(cell::DEFAULT)),
            Origin::Custom { .. } => {
                let declared = resource.version(version).map(|version| version.columns.as_slice());
                Columns::Custom(custom::columns(declared.unwrap_or_default()))
            }
        };
        let is_pods = resource.group.is_empty() && &*resource.plural == "pods";
        let plain = resource.origin == Origin::Builtin && own.is_none();
        Self { columns, plain, conditions: is_pods.then_some(pods::conditions) }
    }

    /// `list` is the metadata of the list, or that of the one object: what it says of version and
    /// continuation is repeated.
    pub fn table<'a>(
        &self,
        list: Option<&Value>,
        objects: impl IntoIterator<Item = &'a Value>,
        options: &TableOptions,
    ) -> Value {
        let rows: Vec<Value> =
            objects.into_iter().map(|object| self.row(object, options)).collect();
        // Upstream's way of printing what has no columns of its own begins with no list at all.
        let rows = if self.plain && rows.is_empty() { Value::Null } else { Value::Array(rows) };
        json!({
            "kind": "Table",
            "apiVersion": options.version.api_version(),
            "metadata": list_metadata(list),
            "columnDefinitions": if options.headers { self.headers() } else { Value::Null },
            "rows": rows,
        })
    }

    fn headers(&self) -> Value {
        match &self.columns {
            Columns::Builtin(columns) => columns.iter().map(Column::header).collect(),
            Columns::Custom(columns) => {
                let name = cell::header("Name", "string", "name", cell::NAME, 0);
                std::iter::once(name).chain(columns.iter().map(CustomColumn::header)).collect()
            }
        }
    }

    pub(crate) fn row(&self, object: &Value, options: &TableOptions) -> Value {
        let row = Row { object, now: options.now };
        let cells: Vec<Value> = match &self.columns {
            Columns::Builtin(columns) => columns.iter().map(|column| column.cell(&row)).collect(),
            Columns::Custom(columns) => std::iter::once(Value::from(row.text("metadata.name")))
                .chain(columns.iter().map(|column| column.cell(&row)))
                .collect(),
        };
        let shown = match options.include {
            Include::Object => object.clone(),
            Include::Metadata => partial_metadata(object, options.version),
            // The end of a watch's initial events is told by an annotation.
            Include::None if ends_initial_events(object) => {
                partial_metadata(object, options.version)
            }
            Include::None => Value::Null,
        };
        let mut fields = Map::new();
        fields.insert("cells".to_owned(), Value::Array(cells));
        if let Some(conditions) = self.conditions.and_then(|conditions| conditions(&row)) {
            fields.insert("conditions".to_owned(), conditions);
        }
        fields.insert("object".to_owned(), shown);
        Value::Object(fields)
    }
}

/// An object reduced to its metadata.
pub fn partial_metadata(object: &Value, version: MetaVersion) -> Value {
    let metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": version.api_version(),
        "metadata": metadata,
    })
}

/// A list reduced to the metadata of its objects.
pub fn partial_metadata_list<'a>(
    list: Option<&Value>,
    objects: impl IntoIterator<Item = &'a Value>,
    version: MetaVersion,
) -> Value {
    let items: Vec<Value> =
        objects.into_iter().map(|object| partial_metadata(object, version)).collect();
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": version.api_version(),
        "metadata": list_metadata(list),
        // Unlike lists of whole objects and tables, this one has no list at all when it is empty.
        "items": if items.is_empty() { Value::Null } else { Value::Array(items) },
    })
}

pub(crate) fn list_metadata(list: Option<&Value>) -> Value {
    let mut metadata = Map::new();
    for field in ["resourceVersion", "continue", "remainingItemCount"] {
        let value = list.and_then(|list| list.get(field));
        if let Some(value) = value.filter(|value| *value != "") {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    Value::Object(metadata)
}

fn ends_initial_events(object: &Value) -> bool {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get("annotations"))
        .and_then(|annotations| annotations.get("k8s.io/initial-events-end"))
        .is_some_and(|value| value == "true")
}

fn builtin(group: &str, plural: &str) -> Option<&'static [Column]> {
    let tables: &[Tables] = match group {
        "" => &[core::CORE, network::CORE, storage::CORE, workloads::CORE],
        "events.k8s.io" => &[core::EVENTS],
        "apps" => &[workloads::APPS],
        "batch" => &[workloads::BATCH],
        "autoscaling" => &[workloads::AUTOSCALING],
        "policy" => &[workloads::POLICY],
        "scheduling.k8s.io" => &[workloads::SCHEDULING],
        "node.k8s.io" => &[workloads::NODE],
        "networking.k8s.io" => &[network::NETWORKING],
        "discovery.k8s.io" => &[network::DISCOVERY],
        "storage.k8s.io" => &[storage::STORAGE],
        "rbac.authorization.k8s.io" => &[access::RBAC],
        "certificates.k8s.io" => &[access::CERTIFICATES],
        "coordination.k8s.io" => &[access::COORDINATION],
        "admissionregistration.k8s.io" => &[access::ADMISSION],
        "apiregistration.k8s.io" => &[access::REGISTRATION],
        "flowcontrol.apiserver.k8s.io" => &[access::FLOW_CONTROL],
        _ => &[],
    };
    tables
        .iter()
        .flat_map(|table| table.iter())
        .find(|(name, _)| *name == plural)
        .map(|(_, columns)| *columns)
}
