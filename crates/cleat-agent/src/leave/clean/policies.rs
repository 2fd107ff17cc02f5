//! What stands for the policies on record on the cluster, and what it lists as made by it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use cleat_api::configurationpolicy::ConfigurationPolicy;
use cleat_api::leftoverrecord::{LeftObject, LeftoverRecord, Part};
use cleat_api::policy::name::PARENT_POLICY;
use cleat_core::id::{Id, Target};
use cleat_core::leave::clean::{Holder, Holders, Look, Observed, copies_on_record, id, objects};
use cleat_core::policy::observed::{Kind, KindName};
use cleat_core::policy_sync::observed::Marked;
use cleat_core::policy_sync::{listed, made_kinds};
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use serde_json::Value;

use super::{Context, Error};
use crate::policy_sync::marked_now;
use crate::served_kind::served_kind;

impl Context {
    /// Everything on the cluster that is marked as a template of a policy on record. Which of it is
    /// theirs is not decided here.
    pub(super) async fn templates(
        &self,
        records: &[LeftoverRecord],
    ) -> Result<Vec<LeftObject>, Error> {
        let copies = copies_on_record(records);
        let namespaces: BTreeSet<&String> = copies.iter().map(|(namespace, _)| namespace).collect();
        let mut found = Vec::new();
        for namespace in namespaces {
            let marked = marked_now(&self.job.cluster_client, namespace, None).await;
            let marked = marked.map_err(|message| {
                let namespace = namespace.clone();
                Error::Templates { namespace, message }
            })?;
            for (kind, metadata) in marked {
                let policy = metadata.labels.as_ref().and_then(|all| all.get(PARENT_POLICY));
                let policy = policy.cloned().unwrap_or_default();
                if !copies.contains(&(namespace.clone(), policy.clone())) {
                    continue;
                }
                found.push(LeftObject {
                    group: kind.group,
                    version: kind.version,
                    resource: kind.plural,
                    namespace: namespace.clone(),
                    name: metadata.name.unwrap_or_default(),
                    uid: metadata.uid.unwrap_or_default(),
                    source: policy,
                    part: Some(Part::Template),
                    ..LeftObject::default()
                });
            }
        }
        Ok(found)
    }

    /// What the templates that are there list as made by them.
    pub(super) async fn made(
        &self,
        seen: &Observed,
    ) -> BTreeMap<Id, Result<Vec<LeftObject>, String>> {
        let mut resources: BTreeMap<KindName, Kind> = BTreeMap::new();
        let mut made = BTreeMap::new();
        for template in objects(seen) {
            let id = id(&template);
            let (Some(Part::Template), Some(Look::Present(live))) =
                (template.part, seen.live.get(&id))
            else {
                continue;
            };
            let kind = live.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
            let target = Target { version: template.version.clone(), id: id.clone() };
            let marked = Marked::read(target, kind, live);
            for name in made_kinds(std::slice::from_ref(&marked)) {
                if let Entry::Vacant(unread) = resources.entry(name) {
                    let kind =
                        served_kind(&self.job.cluster_client, &self.kinds, unread.key()).await;
                    unread.insert(kind);
                }
            }
            let listed = listed(&marked, &resources).map(|all| {
                let of_policy = |one| LeftObject { source: template.source.clone(), ..one };
                all.into_iter().map(of_policy).collect()
            });
            made.insert(id, listed);
        }
        made
    }

    /// All policies on the cluster, whoever sent them, and what they are about.
    pub(super) async fn holders(&self) -> Holders {
        let kind = ApiResource::erase::<ConfigurationPolicy>(&());
        let policies: Api<DynamicObject> = Api::all_with(self.job.cluster_client.clone(), &kind);
        let policies = match policies.list(&ListParams::default()).await {
            Ok(list) => list.items,
            // A server without the kind has none.
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => return Holders::Unknown(error.to_string()),
        };
        let read = policies.into_iter().map(|policy| {
            let id = Id {
                group: kind.group.clone(),
                resource: kind.plural.clone(),
                namespace: policy.namespace().unwrap_or_default(),
                name: policy.name_any(),
            };
            Holder::read(id, policy.uid().unwrap_or_default(), &policy.data)
        });
        let read: Result<Vec<Holder>, String> = read.collect();
        match read {
            Ok(all) => Holders::Listed(all),
            Err(why) => Holders::Unknown(why),
        }
    }
}
