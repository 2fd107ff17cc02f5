//! What is on record though nobody told of it: which resource serves its kind the cluster says.

use std::collections::BTreeMap;

use cleat_api::leftoverrecord::LeftoverRecord;
use cleat_core::id::Id;
use cleat_core::leave::clean::{Look, id};
use cleat_core::policy::observed::{Kind, KindName};

use super::Context;
use crate::served_kind::served_kind;

impl Context {
    /// Gives each the resource that serves its kind. Returns those of which nobody can tell.
    pub(super) async fn resolve(&self, records: &mut [LeftoverRecord]) -> BTreeMap<Id, Look> {
        let mut kinds: BTreeMap<KindName, Kind> = BTreeMap::new();
        let mut unknown = BTreeMap::new();
        let all = records.iter_mut().flat_map(|record| &mut record.spec.objects);
        for object in all.filter(|object| object.believed && !object.kind.is_empty()) {
            let api_version = match object.group.as_str() {
                "" => object.version.clone(),
                group => format!("{group}/{}", object.version),
            };
            let name = KindName { api_version, kind: object.kind.clone() };
            if !kinds.contains_key(&name) {
                let kind = served_kind(&self.job.cluster_client, &self.kinds, &name).await;
                kinds.insert(name.clone(), kind);
            }
            match kinds.get(&name) {
                Some(Kind::Served(served)) => {
                    object.resource.clone_from(&served.resource);
                    if !served.namespaced {
                        object.namespace.clear();
                    }
                }
                Some(Kind::Unknown(why)) => {
                    unknown.insert(id(object), Look::Unknown(why.clone()));
                }
                Some(Kind::Absent) | None => {}
            }
        }
        unknown
    }
}
