//! A hub with our kinds, its controllers, and clusters whose agents are the test itself.

use anyhow::Result;
use cleat_api::manifestwork::ManifestWork;
use cleat_api::manifestworkreplicaset::{ManifestWorkReplicaSet, PLACEMENT_LABEL, SET_LABEL};
use cleat_api::placement::{self, Placement, PlacementDecision};
use cleat_hub::{hub, prepare};
use cleat_runtime::tasks::Tasks;
use cleat_world::within;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::{Value, json};
use std::collections::BTreeMap;

use crate::{Place, create, make_namespace, seen};

pub(super) struct Fleet {
    pub(super) place: Place,
    pub(super) clusters: Vec<String>,
}

/// The hub's controllers, for the sets of one namespace.
pub(super) struct Controllers(Tasks);

impl Controllers {
    pub(super) async fn stop(self) {
        self.0.shutdown().await;
    }
}

impl Fleet {
    pub(super) async fn new(topic: &str, clusters: usize) -> Result<Self> {
        let place = Place::new(topic).await?;
        prepare::prepare_hub(&place.client).await?;
        let mut names = Vec::new();
        for number in 1..=clusters {
            let name = place.world.unique(&format!("{topic}-c{number}"));
            make_namespace(&place.world.hub, &name).await?;
            names.push(name);
        }
        Ok(Self { place, clusters: names })
    }

    pub(super) fn run(&self) -> Controllers {
        let tasks = Tasks::new();
        let config = hub::Config {
            namespace: Some(self.place.namespace.clone()),
            ..hub::Config::new(self.place.client.clone())
        };
        tasks.spawn("hub", hub::run(config, tasks.stop()));
        Controllers(tasks)
    }

    pub(super) fn sets(&self) -> Api<ManifestWorkReplicaSet> {
        self.place.api()
    }

    pub(super) fn works(&self, cluster: &str) -> Api<ManifestWork> {
        Api::namespaced(self.place.client.clone(), cluster)
    }

    pub(super) async fn placement(&self, name: &str) -> Result<()> {
        let placements: Api<Placement> = self.place.api();
        let ours = json!({ placement::SCHEDULING_DISABLED: "true" });
        let metadata = json!({ "name": name, "annotations": ours });
        create(&placements, json!({ "metadata": metadata, "spec": {} })).await?;
        Ok(())
    }

    /// One decision of a placement, for a group of clusters.
    pub(super) async fn decide(
        &self,
        placement: &str,
        group: i32,
        clusters: &[usize],
    ) -> Result<()> {
        let decisions: Api<PlacementDecision> = self.place.api();
        let name = format!("{placement}-decision-{group}");
        if decisions.get_opt(&name).await?.is_none() {
            let group = group.to_string();
            let labels = json!({
                placement::PLACEMENT_LABEL: placement, placement::GROUP_INDEX_LABEL: group,
            });
            create(&decisions, json!({ "metadata": { "name": name, "labels": labels } })).await?;
        }
        let clusters = clusters.iter().map(|index| &self.clusters[*index]);
        let list: Vec<Value> =
            clusters.map(|name| json!({ "clusterName": name, "reason": "" })).collect();
        let patch = Patch::Merge(json!({ "status": { "decisions": list } }));
        decisions.patch_status(&name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// A set that gives each cluster a ConfigMap with this word in it.
    pub(super) async fn set(
        &self,
        name: &str,
        placement: &str,
        strategy: Value,
    ) -> Result<ManifestWorkReplicaSet> {
        let set = json!({
            "metadata": { "name": name, "labels": { "team": "blue" } },
            "spec": {
                "manifestWorkTemplate": template("one"),
                "placementRefs": [{ "name": placement, "rolloutStrategy": strategy }],
            },
        });
        create(&self.sets(), set).await
    }

    pub(super) async fn edit(&self, set: &str, spec: Value) -> Result<()> {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.sets().patch(set, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// The works of a set by cluster and placement, as soon as `holds` of them.
    pub(super) async fn works_when(
        &self,
        set: &str,
        holds: impl Fn(&BTreeMap<String, ManifestWork>) -> bool,
    ) -> Result<BTreeMap<String, ManifestWork>> {
        let works: Api<ManifestWork> = Api::all(self.place.client.clone());
        let key = format!("{SET_LABEL}={}.{set}", self.place.namespace);
        let mut events = watcher(works, watcher::Config::default().labels(&key)).boxed();
        let mut found = BTreeMap::new();
        let mut listed = false;
        let what = format!("the works of {set}");
        within(&what, async {
            while let Some(event) = events.try_next().await? {
                let at = |work: &ManifestWork| (work.namespace().unwrap(), work.name_any());
                match event {
                    Event::Apply(work) | Event::InitApply(work) => {
                        found.insert(at(&work), work);
                    }
                    Event::Delete(work) => drop(found.remove(&at(&work))),
                    Event::Init => found.clear(),
                    Event::InitDone => listed = true,
                }
                let by_cluster: BTreeMap<String, ManifestWork> =
                    found.values().map(|work| (self.short(work), work.clone())).collect();
                assert!(
                    found.len() == by_cluster.len(),
                    "two works for one cluster and placement: {:?}",
                    found.keys()
                );
                if listed && holds(&by_cluster) {
                    return Ok(by_cluster);
                }
            }
            anyhow::bail!("the watch ended")
        })
        .await?
    }

    /// The index of its cluster, and the placement where it is not `all`.
    fn short(&self, work: &ManifestWork) -> String {
        let cluster = work.namespace().unwrap();
        let index = self.clusters.iter().position(|name| *name == cluster).unwrap();
        match work.labels().get(PLACEMENT_LABEL).map(|name| &**name) {
            None | Some("all") => index.to_string(),
            Some(placement) => format!("{index} {placement}"),
        }
    }

    /// As soon as these clusters, and no others, have works with this word.
    pub(super) async fn words(
        &self,
        set: &str,
        expected: &[(&str, &str)],
    ) -> Result<BTreeMap<String, ManifestWork>> {
        let expected: BTreeMap<String, String> =
            expected.iter().map(|(at, word)| (at.to_string(), word.to_string())).collect();
        self.works_when(set, |works| {
            let found: BTreeMap<String, String> =
                works.iter().map(|(at, work)| (at.clone(), word(work))).collect();
            found == expected
        })
        .await
    }

    /// The agent of the work's cluster says how it fares with what it has.
    pub(super) async fn tell(&self, work: &ManifestWork, told: &[(&str, &str)]) -> Result<()> {
        let generation = work.metadata.generation;
        let condition = |(kind, status): &(&str, &str)| {
            json!({
                "type": kind, "status": status, "reason": "Told", "message": "",
                "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        let conditions: Vec<Value> = told.iter().map(condition).collect();
        let patch = Patch::Merge(json!({ "status": { "conditions": conditions } }));
        let works = self.works(&work.namespace().unwrap());
        works.patch_status(&work.name_any(), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// The set as soon as a condition reads `status reason`.
    pub(super) async fn told(
        &self,
        set: &str,
        kind: &str,
        reads: &str,
    ) -> Result<ManifestWorkReplicaSet> {
        seen(&self.sets(), set, |set: &ManifestWorkReplicaSet| says(set, kind) == reads).await
    }
}

pub(super) fn says(set: &ManifestWorkReplicaSet, kind: &str) -> String {
    let all = set.status.iter().flat_map(|status| &status.conditions);
    let mut found = all.filter(|one| one.type_ == kind);
    found.next().map(|one| format!("{} {}", one.status, one.reason)).unwrap_or_default()
}

pub(super) fn message(set: &ManifestWorkReplicaSet, kind: &str) -> String {
    let all = set.status.iter().flat_map(|status| &status.conditions);
    all.filter(|one| one.type_ == kind).map(|one| one.message.clone()).collect()
}

pub(super) fn template(word: &str) -> Value {
    json!({ "workload": { "manifests": [{
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "greeting", "namespace": "default" }, "data": { "word": word },
    }] } })
}

fn word(work: &ManifestWork) -> String {
    let work = serde_json::to_value(work).unwrap();
    work["spec"]["workload"]["manifests"][0]["data"]["word"].as_str().unwrap_or_default().to_owned()
}

pub(super) const DONE: [(&str, &str); 3] =
    [("Applied", "True"), ("Available", "True"), ("Progressing", "False")];
pub(super) const FAILED: [(&str, &str); 4] =
    [("Applied", "True"), ("Available", "True"), ("Progressing", "True"), ("Degraded", "True")];
