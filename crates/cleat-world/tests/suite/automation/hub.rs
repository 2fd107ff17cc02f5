//! A hub with a policy whose status, and that of its copies, the test itself writes.

use std::collections::BTreeMap;
use std::sync::Mutex;

use anyhow::Result;
use cleat_api::ansiblejob::AnsibleJob;
use cleat_api::policy::Policy;
use cleat_api::policyautomation::PolicyAutomation;
use cleat_hub::{automation, prepare};
use cleat_runtime::clock::Clock;
use cleat_runtime::tasks::Tasks;
use cleat_world::within;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::{Place, create, seen};

pub(super) struct Hub {
    pub(super) place: Place,
    /// Their names, which are those of their namespaces.
    pub(super) clusters: Vec<String>,
    /// What each has said, the newest first.
    said: Mutex<BTreeMap<String, Vec<Value>>>,
}

/// The controllers of automations, for one namespace.
pub(super) struct Controllers(pub(super) Tasks);

impl Controllers {
    pub(super) async fn stop(self) {
        self.0.shutdown().await;
    }
}

pub(super) const POLICY: &str = "enable-etcd-encryption";

impl Hub {
    pub(super) async fn new(topic: &str, clusters: usize) -> Result<Self> {
        let place = Place::new(topic).await?;
        prepare::prepare_hub(&place.client).await?;
        Self::at(place, topic, clusters).await
    }

    /// On a server that has what it needs.
    pub(super) async fn at(place: Place, topic: &str, clusters: usize) -> Result<Self> {
        let namespaces: Api<Namespace> = Api::all(place.client.clone());
        let mut names = Vec::new();
        for number in 1..=clusters {
            let name = place.world.unique(&format!("{topic}-c{number}"));
            create(&namespaces, json!({ "metadata": { "name": name } })).await?;
            names.push(name);
        }
        let hub = Self { place, clusters: names, said: Mutex::default() };
        let spec = json!({ "disabled": false, "policy-templates": [] });
        create(&hub.policies(), json!({ "metadata": { "name": POLICY }, "spec": spec })).await?;
        let replica = hub.replica();
        for cluster in &hub.clusters {
            let replicas: Api<Policy> = Api::namespaced(hub.place.client.clone(), cluster);
            let labels = json!({ "policy.open-cluster-management.io/root-policy": replica });
            let metadata = json!({ "name": replica, "labels": labels });
            create(&replicas, json!({ "metadata": metadata, "spec": spec })).await?;
        }
        hub.stand(&vec!["Compliant"; clusters]).await?;
        Ok(hub)
    }

    pub(super) fn run(&self) -> Controllers {
        self.run_with(self.place.client.clone())
    }

    pub(super) fn run_with(&self, hub_client: Client) -> Controllers {
        let tasks = Tasks::new();
        let namespace = Some(self.place.namespace.clone());
        let config = automation::Config { hub_client, namespace, clock: Clock::system() };
        automation::start(config, &tasks);
        Controllers(tasks)
    }

    pub(super) fn policies(&self) -> Api<Policy> {
        self.place.api()
    }

    pub(super) fn automations(&self) -> Api<PolicyAutomation> {
        self.place.api()
    }

    fn replica(&self) -> String {
        format!("{}.{POLICY}", self.place.namespace)
    }

    /// With their status as it is: our type knows nothing of it.
    pub(super) fn jobs(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("tower.ansible.com", "v1alpha1", "AnsibleJob");
        let kind = ApiResource::from_gvk_with_plural(&kind, "ansiblejobs");
        Api::namespaced_with(self.place.client.clone(), &self.place.namespace, &kind)
    }

    /// What the copy of that cluster tells after it said this, once for each change.
    fn says(&self, cluster: &str, compliant: &str) -> Vec<Value> {
        let message = format!("{compliant}; violation on {cluster}");
        let mut said = self.said.lock().unwrap();
        let said = said.entry(cluster.to_owned()).or_default();
        if said.first().is_none_or(|last| last["message"] != message) {
            let event = format!("p.{:x}", jiff::Timestamp::now().as_nanosecond());
            let line = json!({
                "lastTimestamp": "2026-01-01T00:00:00Z", "message": message, "eventName": event,
            });
            said.insert(0, line);
            said.truncate(10);
        }
        said.clone()
    }

    /// What the copy of a cluster tells in one write: how it stood, the last one last.
    pub(super) async fn tell(&self, cluster: &str, all: &[&str]) -> Result<()> {
        let replicas: Api<Policy> = Api::namespaced(self.place.client.clone(), cluster);
        let mut history = Vec::new();
        for compliant in all {
            history = self.says(cluster, compliant);
        }
        let details = json!([{
            "templateMeta": { "name": "t" }, "compliant": all.last(), "history": history,
        }]);
        let status = json!({ "compliant": all.last(), "details": details });
        let patch = Patch::Merge(json!({ "status": status }));
        replicas.patch_status(&self.replica(), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// How the policy stands on each cluster, in order; the copies say why.
    pub(super) async fn stand(&self, all: &[&str]) -> Result<()> {
        for (cluster, compliant) in self.clusters.iter().zip(all) {
            self.tell(cluster, &[compliant]).await?;
        }
        self.show(all).await
    }

    /// What the policy itself shows of it.
    pub(super) async fn show(&self, all: &[&str]) -> Result<()> {
        let each = self.clusters.iter().zip(all).map(|(cluster, compliant)| {
            json!({ "clustername": cluster, "clusternamespace": cluster, "compliant": compliant })
        });
        let status = json!({ "status": each.collect::<Vec<Value>>() });
        let patch = Patch::Merge(json!({ "status": status }));
        self.policies().patch_status(POLICY, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// The automation of the proposal, with whatever else its spec says.
    pub(super) async fn automate(&self, name: &str, more: Value) -> Result<PolicyAutomation> {
        let yaml = format!(
            r"
apiVersion: policy.open-cluster-management.io/v1beta1
kind: PolicyAutomation
metadata:
  name: {name}
spec:
  mode: everyEvent
  policyRef: enable-etcd-encryption
  eventHook: noncompliant
  automationDef:
    name: Demo Job Template
    secret: ansible-automation-platform-secret-name
    extra_vars:
      sn_severity: 1
      sn_priority: 1
"
        );
        let mut automation: Value = serde_saphyr::from_str(&yaml)?;
        if let Value::Object(more) = more {
            automation["spec"].as_object_mut().unwrap().extend(more);
        }
        create(&self.automations(), automation).await
    }

    pub(super) async fn edit(&self, name: &str, patch: Value) -> Result<()> {
        let patch = Patch::Merge(patch);
        self.automations().patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// The jobs of an automation by name, as soon as `holds` of them. They never grow less.
    pub(super) async fn jobs_when(
        &self,
        automation: &str,
        holds: impl Fn(&BTreeMap<String, AnsibleJob>) -> bool,
    ) -> Result<BTreeMap<String, AnsibleJob>> {
        let api: Api<AnsibleJob> = self.place.api();
        let label = format!("policy.open-cluster-management.io/policyautomation-name={automation}");
        let config = watcher::Config::default().labels(&label);
        let mut events = Box::pin(watcher(api, config).boxed());
        let mut jobs = BTreeMap::new();
        let mut listed = false;
        let watching = async {
            while let Some(event) = events.try_next().await? {
                match event {
                    Event::Apply(job) | Event::InitApply(job) => {
                        jobs.insert(job.name_any(), job);
                    }
                    Event::Delete(job) => drop(jobs.remove(&job.name_any())),
                    Event::Init => jobs.clear(),
                    Event::InitDone => listed = true,
                }
                if listed && holds(&jobs) {
                    break;
                }
            }
            anyhow::Ok(())
        };
        within(&format!("the jobs of {automation}"), watching).await??;
        Ok(jobs)
    }

    /// The clusters of each job of an automation, by number, as soon as there are so many jobs.
    pub(super) async fn targets(&self, automation: &str, count: usize) -> Result<Vec<String>> {
        let jobs = self.jobs_when(automation, |jobs| jobs.len() >= count).await?;
        let mut targets: Vec<String> = jobs.values().map(|job| self.targets_of(job)).collect();
        targets.sort();
        Ok(targets)
    }

    pub(super) fn targets_of(&self, job: &AnsibleJob) -> String {
        let vars = job.spec.extra_vars.as_ref().unwrap();
        let names = vars["target_clusters"].as_array().unwrap().iter();
        let number = |name: &Value| {
            let at = self.clusters.iter().position(|one| *name == **one).unwrap();
            (at + 1).to_string()
        };
        names.map(number).collect::<Vec<_>>().join("+")
    }

    /// The automation as soon as its status says what `holds` asks for.
    pub(super) async fn told(
        &self,
        name: &str,
        holds: impl Fn(&cleat_api::policyautomation::PolicyAutomationStatus) -> bool,
    ) -> Result<PolicyAutomation> {
        let holds = |automation: &PolicyAutomation| automation.status.as_ref().is_some_and(&holds);
        seen(&self.automations(), name, holds).await
    }

    /// Returns when these clusters, and no others, have had their job.
    pub(super) async fn noted(&self, name: &str, clusters: &[usize]) -> Result<PolicyAutomation> {
        let wanted: Vec<&String> = clusters.iter().map(|one| &self.clusters[one - 1]).collect();
        self.told(name, |status| {
            let mut noted: Vec<&String> = status.clusters_with_event.keys().collect();
            let mut wanted = wanted.clone();
            noted.sort();
            wanted.sort();
            noted == wanted && status.pending_jobs.is_empty()
        })
        .await
    }
}
