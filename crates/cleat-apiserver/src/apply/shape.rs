//! The schema as server-side apply sees it: what is a leaf, what merges, and by which keys.
//!
//! Both worlds end here. Built-in kinds have definitions; custom resources have structural schemas
//! whose `metadata` stands for the real ObjectMeta; whatever a schema leaves open is deduced from
//! the value: maps merge, lists do not.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::schema::{Additional, ListType, Schema, Schemas, Type};

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// Fields that Go's structs never leave out although they are not required.
const ALWAYS_THERE: [(&str, &str); 6] = [
    ("io.k8s.api.apps.v1.StatefulSetSpec", "serviceName"),
    ("io.k8s.api.authentication.v1.TokenRequestSpec", "boundObjectRef"),
    ("io.k8s.api.core.v1.Event", "reportingComponent"),
    ("io.k8s.api.core.v1.Event", "reportingInstance"),
    ("io.k8s.api.flowcontrol.v1.FlowSchemaSpec", "matchingPrecedence"),
    ("io.k8s.api.scheduling.v1.PriorityClass", "value"),
];
/// Required fields that they do leave out.
const LEFT_OUT: [(&str, &str); 5] = [
    ("io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec", "policyName"),
    (
        "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec",
        "validationActions",
    ),
    ("io.k8s.api.networking.v1.IPAddressSpec", "parentRef"),
    ("io.k8s.api.networking.v1.ParentReference", "name"),
    ("io.k8s.api.networking.v1.ParentReference", "resource"),
];

/// The type of one value.
#[derive(Clone, Copy)]
pub(super) enum Shape<'a> {
    Declared(Declared<'a>),
    /// Unknown: maps merge field by field, lists are leaves.
    Deduced,
    /// Unknown, and a leaf whatever it is.
    Opaque,
}

/// A type the schema describes.
#[derive(Clone, Copy)]
pub(super) struct Declared<'a> {
    schema: Schema<'a>,
    /// An object of its own, with apiVersion, kind and metadata.
    resource: bool,
    /// A parent keeps unknown fields, and so its descendants do.
    preserve: bool,
    /// What the property that holds this type says about merging it.
    atomic: Option<bool>,
}

/// What a value of some type may be; a type left open may be all three.
#[derive(Clone, Copy)]
pub(super) struct Forms<'a> {
    pub(super) map: Option<MapForm<'a>>,
    pub(super) scalar: Option<ScalarForm>,
    pub(super) list: Option<ListForm<'a>>,
}

/// The one form that applies to a value.
#[derive(Clone, Copy)]
pub(super) enum Form<'a> {
    Map(MapForm<'a>),
    Scalar(ScalarForm),
    List(ListForm<'a>),
}

#[derive(Clone, Copy)]
pub(super) struct MapForm<'a> {
    pub(super) atomic: bool,
    declared: Option<Declared<'a>>,
    /// Of fields that are not declared; `None` if there must not be any.
    others: Others<'a>,
}

#[derive(Clone, Copy)]
enum Others<'a> {
    Forbidden,
    Deduced,
    Opaque,
    Declared(Declared<'a>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarForm {
    Numeric,
    String,
    Boolean,
    Any,
}

#[derive(Clone, Copy)]
pub(super) struct ListForm<'a> {
    pub(super) identity: Identity<'a>,
    pub(super) element: Shape<'a>,
}

/// How the elements of a list are told apart.
#[derive(Clone, Copy)]
pub(super) enum Identity<'a> {
    /// Not at all: the list is one value.
    Atomic,
    /// By themselves.
    Itself,
    /// By some of their fields.
    Keys(&'a [Box<str>]),
}

/// A scalar field that every object has, whether or not its schema says so.
static TEXT: LazyLock<Schemas> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let map = json!({"type": "object", "additionalProperties": text});
    let time = json!({"type": "string", "format": "date-time"});
    let count = json!({"type": "integer"});
    let flag = json!({"type": "boolean"});
    let definitions = json!({
        "Text": text,
        "ObjectMeta": {"type": "object", "properties": {
            "annotations": map, "creationTimestamp": time, "deletionGracePeriodSeconds": count,
            "deletionTimestamp": time,
            "finalizers": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
            "generateName": text, "generation": count, "labels": map,
            "managedFields": {
                "type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "atomic"
            },
            "name": text, "namespace": text,
            "ownerReferences": {
                "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
                "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                    "apiVersion": text, "blockOwnerDeletion": flag, "controller": flag,
                    "kind": text, "name": text, "uid": text
                }}
            },
            "resourceVersion": text, "selfLink": text, "uid": text
        }}
    });
    // The literal above is a valid schema, as the tests of this module notice if it is not.
    definitions.as_object().and_then(|all| Schemas::from_definitions(all).ok()).unwrap_or_default()
});

impl<'a> Shape<'a> {
    /// The type of a whole object.
    pub(super) fn root(schema: Option<Schema<'a>>) -> Self {
        match schema {
            Some(schema) => {
                let resource = true;
                Self::Declared(Declared { schema, resource, preserve: false, atomic: None })
            }
            None => Self::Deduced,
        }
    }

    fn common(name: &str) -> Self {
        match TEXT.named(name) {
            Some(schema) => Declared::plain(schema, false),
            None => Self::Deduced,
        }
    }

    pub(super) fn forms(self) -> Forms<'a> {
        match self {
            Self::Declared(declared) => declared.forms(),
            Self::Deduced => Forms::open(Others::Deduced, false),
            Self::Opaque => Forms::open(Others::Opaque, true),
        }
    }

    /// The form for `value`. A value that fits none, or none at all, gets the first there is.
    pub(super) fn form(self, value: Option<&Value>) -> Form<'a> {
        let forms = self.forms();
        let fitting = match value {
            Some(Value::Object(_)) => forms.map.map(Form::Map),
            Some(Value::Array(_)) => forms.list.map(Form::List),
            None | Some(Value::Null) => None,
            Some(_) => forms.scalar.map(Form::Scalar),
        };
        fitting
            .or_else(|| forms.map.map(Form::Map))
            .or_else(|| forms.scalar.map(Form::Scalar))
            .or_else(|| forms.list.map(Form::List))
            .unwrap_or(Form::Scalar(ScalarForm::Any))
    }
}

impl Forms<'_> {
    fn open(others: Others<'_>, atomic: bool) -> Forms<'_> {
        Forms {
            map: Some(MapForm { atomic, declared: None, others }),
            scalar: Some(ScalarForm::Any),
            list: Some(ListForm { identity: Identity::Atomic, element: Shape::Opaque }),
        }
    }
}

impl Form<'_> {
    pub(super) fn is_like(self, other: Form<'_>) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

impl<'a> Declared<'a> {
    fn plain(schema: Schema<'a>, preserve: bool) -> Shape<'a> {
        let resource = schema.node().embedded_resource;
        Shape::Declared(Self { schema, resource, preserve, atomic: None })
    }

    fn forms(self) -> Forms<'a> {
        let node = self.schema.node();
        let only = |scalar| Forms { map: None, scalar: Some(scalar), list: None };
        match node.name.as_deref() {
            Some(QUANTITY) => return only(ScalarForm::Any),
            Some(RAW_EXTENSION) => return Shape::Opaque.forms(),
            _ => {}
        }
        match node.kind {
            Some(Type::Object) => Forms { map: Some(self.map()), scalar: None, list: None },
            Some(Type::Array) => Forms { map: None, scalar: None, list: Some(self.list()) },
            Some(Type::Integer | Type::Number) => only(ScalarForm::Numeric),
            Some(Type::Boolean) => only(ScalarForm::Boolean),
            Some(Type::String) => match node.format.as_deref() {
                None | Some("byte") => only(ScalarForm::String),
                Some(_) => only(ScalarForm::Any),
            },
            None => Forms {
                map: Some(self.map()),
                scalar: Some(ScalarForm::Any),
                list: Some(self.list()),
            },
        }
    }

    fn preserves(self) -> bool {
        self.preserve || self.schema.node().preserve_unknown_fields
    }

    fn map(self) -> MapForm<'a> {
        let node = self.schema.node();
        let others = match node.additional {
            Additional::Absent if self.preserves() || node.properties.is_empty() => Others::Deduced,
            Additional::Boolean(true) => Others::Deduced,
            Additional::Absent | Additional::Boolean(false) => Others::Forbidden,
            Additional::Schema(id) => match Self::plain(self.schema.child(id), self.preserves()) {
                Shape::Declared(declared) => Others::Declared(declared),
                _ => Others::Deduced,
            },
        };
        let atomic = self.atomic.unwrap_or(node.atomic_map);
        MapForm { atomic, declared: Some(self), others }
    }

    fn list(self) -> ListForm<'a> {
        let node = self.schema.node();
        let element = match self.schema.items() {
            Some(items) => Self::plain(items, self.preserves()),
            None => Shape::Opaque,
        };
        let merges = || node.patch_strategy.iter().any(|strategy| &**strategy == "merge");
        let identity = match node.list_type {
            Some(ListType::Atomic) => Identity::Atomic,
            Some(ListType::Set) => Identity::Itself,
            Some(ListType::Map) => Identity::Keys(&node.list_map_keys),
            // Old types only say how to patch them.
            None if merges() => match &node.patch_merge_key {
                Some(key) => Identity::Keys(std::slice::from_ref(key)),
                None => Identity::Itself,
            },
            None => Identity::Atomic,
        };
        ListForm { identity, element }
    }

    /// The type of a declared field.
    fn field(self, name: &str) -> Option<Shape<'a>> {
        let node = self.schema.node();
        let property = node.properties.get(name).map(|id| self.schema.child(*id));
        if self.resource {
            match name {
                "metadata" if property.is_none_or(|meta| meta.node().name.is_none()) => {
                    return Some(Shape::common("ObjectMeta"));
                }
                "apiVersion" | "kind" if property.is_none() => return Some(Shape::common("Text")),
                _ => {}
            }
        }
        let atomic = node.refined.get(name).and_then(|refined| refined.atomic_map);
        match Self::plain(property?, self.preserves()) {
            Shape::Declared(declared) => Some(Shape::Declared(Self { atomic, ..declared })),
            other => Some(other),
        }
    }
}

impl<'a> MapForm<'a> {
    /// The type of a field the schema names.
    pub(super) fn field(self, name: &str) -> Option<Shape<'a>> {
        self.declared?.field(name)
    }

    /// The type of any field; `None` if there must not be such a field.
    pub(super) fn field_or_other(self, name: &str) -> Option<Shape<'a>> {
        self.field(name).or(match self.others {
            Others::Forbidden => None,
            Others::Deduced => Some(Shape::Deduced),
            Others::Opaque => Some(Shape::Opaque),
            Others::Declared(declared) => Some(Shape::Declared(declared)),
        })
    }

    /// Whether nothing at all is declared about the fields.
    pub(super) fn is_deduced(self) -> bool {
        let declares = |declared: Declared<'_>| !declared.schema.node().properties.is_empty();
        matches!(self.others, Others::Deduced) && !self.declared.is_some_and(declares)
    }

    /// What upstream's typed objects hold where JSON may have nothing: structs held by value are
    /// empty rather than absent, what is required has its zero value, and what the `other` object
    /// has as null is never left out.
    pub(super) fn stand_in(self, name: &str, other: Option<&Value>) -> Option<&'static Value> {
        static NULL: Value = Value::Null;
        static FALSE: Value = Value::Bool(false);
        static TEXT: Value = Value::String(String::new());
        static ZERO: LazyLock<Value> = LazyLock::new(|| json!(0));
        static EMPTY: LazyLock<Value> = LazyLock::new(|| json!({}));
        let declared = self.declared?;
        let node = declared.schema.node();
        // Only built-in types are Go's structs; they all have names.
        let structure = &**node.name.as_ref()?;
        if node.refined.get(name).is_some_and(|refined| refined.by_value) {
            return Some(&EMPTY);
        }
        let property = declared.schema.child(*node.properties.get(name)?).node();
        if other == Some(&NULL) || property.name.as_deref() == Some(RAW_EXTENSION) {
            return Some(&NULL);
        }
        let required = node.required.iter().any(|required| &**required == name)
            && !LEFT_OUT.contains(&(structure, name));
        if !required && !ALWAYS_THERE.contains(&(structure, name)) {
            return None;
        }
        match property.kind {
            Some(Type::String) if property.name.is_none() => Some(&TEXT),
            Some(Type::Integer | Type::Number) => Some(&ZERO),
            Some(Type::Boolean) => Some(&FALSE),
            _ => Some(&NULL),
        }
    }
}

impl ListForm<'_> {
    pub(super) fn is_atomic(self) -> bool {
        matches!(self.identity, Identity::Atomic)
    }

    /// What a key field is worth in an element that does not have it.
    pub(super) fn key_default(self, name: &str) -> Option<Value> {
        let Shape::Declared(element) = self.element else { return None };
        let property = element.schema.node().properties.get(name)?;
        element.schema.child(*property).node().default.clone()
    }
}
