//! Every resource type a server has at the moment: the built-in ones and those that established
//! CustomResourceDefinitions add.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::builtin;
use crate::crd;
use crate::discovery;
use crate::follow::Digest;
use crate::openapi::{Document, Documents};
use crate::resource::ResourceType;

/// A picture of all types. Cheap to hold on to while a request runs.
pub(crate) struct Types {
    all: Vec<Arc<ResourceType>>,
    by_resource: BTreeMap<(Box<str>, Box<str>), Arc<ResourceType>>,
    openapi: OnceLock<Documents>,
    aggregated: [OnceLock<Document>; 2],
    /// How often there were others before.
    generation: u64,
}

impl Types {
    fn new(generation: u64, custom: impl Iterator<Item = Arc<ResourceType>>) -> Self {
        // A definition never takes the place of a built-in kind, whatever it calls itself.
        let builtin = builtin::resources();
        let custom = custom.filter(|custom| {
            !builtin.iter().any(|ty| {
                ty.group == custom.group && (ty.plural == custom.plural || ty.kind == custom.kind)
            })
        });
        let all: Vec<_> = builtin.iter().cloned().chain(custom).collect();
        let by_resource =
            all.iter().map(|ty| ((ty.group.clone(), ty.plural.clone()), Arc::clone(ty))).collect();
        let (openapi, aggregated) = (OnceLock::new(), Default::default());
        Self { all, by_resource, openapi, aggregated, generation }
    }

    /// Another number than any other picture that this server had.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Built-in ones first, in the order they are published.
    pub(crate) fn all(&self) -> &[Arc<ResourceType>] {
        &self.all
    }

    /// The OpenAPI documents of these types, made when first asked for.
    pub(crate) fn openapi(&self) -> &Documents {
        self.openapi.get_or_init(|| Documents::new(&self.all))
    }

    /// Discovery in one document, of the core group or of all others, made when first asked for.
    pub(crate) fn aggregated(&self, core: bool) -> &Document {
        let [groups, versions] = &self.aggregated;
        let json = |value: Value| Document::named(value.to_string() + "\n");
        match core {
            true => versions.get_or_init(|| json(discovery::aggregated_core(&self.all))),
            false => groups.get_or_init(|| json(discovery::aggregated_groups(&self.all))),
        }
    }

    pub(crate) fn get(&self, group: &str, plural: &str) -> Option<&Arc<ResourceType>> {
        self.by_resource.get(&(group.into(), plural.into()))
    }

    pub(crate) fn by_kind(&self, group: &str, kind: &str) -> Option<&Arc<ResourceType>> {
        self.all.iter().find(|ty| &*ty.group == group && &*ty.kind == kind)
    }
}

/// The definitions as last seen, and the types they make.
#[derive(Default)]
pub(crate) struct Definitions {
    custom: BTreeMap<Box<str>, Arc<ResourceType>>,
    types: Option<Arc<Types>>,
    generation: u64,
}

impl Definitions {
    pub(crate) const BUCKET: &'static str = "apiextensions.k8s.io/customresourcedefinitions";

    pub(crate) fn types(&self) -> Arc<Types> {
        match &self.types {
            Some(types) => Arc::clone(types),
            None => Arc::new(Types::new(self.generation, self.custom.values().cloned())),
        }
    }
}

impl Digest for Definitions {
    fn clear(&mut self) {
        *self = Self { generation: self.generation, ..Self::default() };
    }

    fn take(&mut self, _bucket: &str, key: &str, value: Option<&[u8]>) {
        let definition = value.and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
        match definition.as_ref().and_then(served) {
            Some(ty) => self.custom.insert(key.into(), Arc::new(ty)),
            None => self.custom.remove(key),
        };
    }

    fn settle(&mut self) {
        self.generation += 1;
        self.types = Some(Arc::new(Types::new(self.generation, self.custom.values().cloned())));
    }
}

/// What an established definition adds. One that is going still counts: its instances remain.
fn served(definition: &Value) -> Option<ResourceType> {
    if !crd::is_established(definition) {
        return None;
    }
    crd::resource_type(definition).ok()
}
