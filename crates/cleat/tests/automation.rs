//! From a violation on a cluster to a ticket: an agent, the hub, and `cleat ansible-runner` as a process
//! with a real Ansible. On embedded servers and, with `cargo xtask kubernetes test`, on real ones.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that is wrong about its surroundings must fail"
)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use cleat_agent::{policy, policy_sync};
use cleat_api::ansiblejob::AnsibleJob;
use cleat_api::managedcluster::ManagedCluster;
use cleat_api::placement::{self, Placement, PlacementDecision};
use cleat_api::placementbinding::PlacementBinding;
use cleat_api::policy::Policy;
use cleat_api::policyautomation::PolicyAutomation;
use cleat_hub::{hub, prepare};
use cleat_runtime::tasks::Tasks;
use cleat_world::world::WORLD;
use cleat_world::{Link, World, ansible, eventually, within};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::await_condition;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A hub with its controllers, a cluster with an agent, and a way for processes to the hub.
struct Site {
    world: World,
    hub: Client,
    cluster: Client,
    /// The cluster's name, and that of every namespace.
    name: String,
    /// The namespace of policies.
    place: String,
    folder: tempfile::TempDir,
    tasks: Tasks,
    kubeconfig: PathBuf,
    _link: Option<Link>,
}

/// A running process; killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<K>
where
    K: Clone + serde::Serialize + DeserializeOwned + std::fmt::Debug,
{
    Ok(api.create(&PostParams::default(), &serde_json::from_value(object)?).await?)
}

/// Ansible takes its time on a busy machine, more than others wait for anything.
const LONG: Duration = Duration::from_secs(300);

impl Site {
    async fn new(topic: &str) -> Result<Self> {
        let world = World::with_clusters(1).await?;
        let cluster = world.clusters.first().context("a world has a cluster")?.client();
        let hub = world.hub.client();
        prepare::prepare_hub(&hub).await?;
        prepare::prepare_cluster(&cluster).await?;
        let (name, place) = (world.unique(topic), world.unique(&format!("{topic}-policies")));
        for (client, name) in [(&hub, &name), (&hub, &place), (&cluster, &name)] {
            let all: Api<Namespace> = Api::all(client.clone());
            create(&all, json!({ "metadata": { "name": name } })).await?;
        }
        let all: Api<ManagedCluster> = Api::all(hub.clone());
        create(&all, json!({ "metadata": { "name": name }, "spec": {} })).await?;
        let folder = tempfile::tempdir()?;
        let mut kubeconfig = folder.path().join("kubeconfig");
        let mut link = None;
        match std::env::var_os(WORLD) {
            Some(path) => kubeconfig = path.into(),
            None => {
                let (kept, config) = world.hub.link().await?;
                link = Some(kept);
                let file = json!({
                    "apiVersion": "v1", "kind": "Config", "current-context": "hub",
                    "clusters": [{
                        "name": "hub", "cluster": { "server": config.cluster_url.to_string() },
                    }],
                    "users": [{ "name": "hub", "user": {} }],
                    "contexts": [{ "name": "hub", "context": { "cluster": "hub", "user": "hub" } }],
                });
                std::fs::write(&kubeconfig, file.to_string())?;
            }
        }
        let tasks = Tasks::new();
        Ok(Self { world, hub, cluster, name, place, folder, tasks, kubeconfig, _link: link })
    }

    /// Everything that runs for a fleet.
    fn run(&self) {
        let config = hub::Config {
            namespace: Some(self.place.clone()),
            ..hub::Config::new(self.hub.clone())
        };
        self.tasks.spawn("hub", hub::run(config, self.tasks.stop()));
        policy::start(policy::Config::of_member(self.cluster.clone(), &self.name), &self.tasks);
        let config = policy_sync::Config::new(self.hub.clone(), self.cluster.clone(), &self.name);
        policy_sync::start(config, &self.tasks);
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.hub.clone(), &self.place)
    }

    fn jobs(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("tower.ansible.com", "v1alpha1", "AnsibleJob");
        let kind = ApiResource::from_gvk_with_plural(&kind, "ansiblejobs");
        Api::namespaced_with(self.hub.clone(), &self.place, &kind)
    }

    /// A policy that wants a ConfigMap on the cluster, and says so if there is none.
    async fn policy(&self) -> Result<()> {
        let wanted = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "encryption", "namespace": self.name },
            "data": { "provider": "aescbc" },
        });
        let template = json!({ "objectDefinition": {
            "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
            "metadata": { "name": "etcd-encryption" },
            "spec": {
                "remediationAction": "inform", "severity": "low",
                "object-templates": [{
                    "complianceType": "musthave", "objectDefinition": wanted,
                }],
            },
        }});
        let spec = json!({
            "disabled": false, "remediationAction": "inform", "policy-templates": [template],
        });
        let policies: Api<Policy> = self.api();
        let name = "enable-etcd-encryption";
        create(&policies, json!({ "metadata": { "name": name }, "spec": spec })).await?;
        let bindings: Api<PlacementBinding> = self.api();
        let binding = json!({
            "metadata": { "name": "b" },
            "placementRef": {
                "apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": "all",
            },
            "subjects": [{
                "apiGroup": "policy.open-cluster-management.io", "kind": "Policy", "name": name,
            }],
        });
        create(&bindings, binding).await?;
        let placements: Api<Placement> = self.api();
        let ours = json!({ placement::SCHEDULING_DISABLED: "true" });
        let metadata = json!({ "name": "all", "annotations": ours });
        create(&placements, json!({ "metadata": metadata, "spec": {} })).await?;
        let decisions: Api<PlacementDecision> = self.api();
        let labels = json!({ placement::PLACEMENT_LABEL: "all" });
        let metadata = json!({ "name": "all-decision-1", "labels": labels });
        create(&decisions, json!({ "metadata": metadata })).await?;
        let chosen = json!([{ "clusterName": self.name, "reason": "" }]);
        let patch = Patch::Merge(json!({ "status": { "decisions": chosen } }));
        decisions.patch_status("all-decision-1", &PatchParams::default(), &patch).await?;
        Ok(())
    }

    fn cleat(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cleat"));
        command.env("CLEAT_HUB_KUBECONFIG", &self.kubeconfig);
        command
    }

    /// Starts the runner, as people do.
    async fn runner(&self) -> Result<Running> {
        let program = tokio::task::spawn_blocking(ansible::install).await??;
        let child = self
            .cleat()
            .args(["ansible-runner", "--context", "hub", "--namespace", &self.place])
            .arg("--playbooks")
            .arg(self.folder.path())
            .arg("--ansible-playbook")
            .arg(program)
            .env("TMPDIR", self.folder.path().join("tmp"))
            .stdin(Stdio::null())
            .spawn()?;
        Ok(Running(child))
    }

    /// How a job ended, as soon as it has.
    async fn result(&self, name: &str) -> Result<Value> {
        let ended = |job: Option<&DynamicObject>| {
            job.is_some_and(|job| job.data.pointer("/status/ansibleJobResult/finished").is_some())
        };
        let waiting = await_condition(self.jobs(), name, ended);
        let job = tokio::time::timeout(LONG, waiting).await??.context("it has ended")?;
        Ok(job.data["status"]["ansibleJobResult"].clone())
    }

    /// The automation as soon as so many jobs are noted, and as many clusters have their event.
    async fn noted(&self, jobs: usize, clusters: usize) -> Result<PolicyAutomation> {
        let noted = |one: Option<&PolicyAutomation>| {
            let status = one.and_then(|one| one.status.as_ref());
            status.is_some_and(|status| {
                status.pending_jobs.is_empty()
                    && status.recent_jobs.len() == jobs
                    && status.clusters_with_event.len() == clusters
            })
        };
        let waiting = await_condition(self.api(), "create-ticket", noted);
        within("the automation's note", waiting).await??.context("it is there")
    }
}

const TICKET: &str = r#"
- name: open a ticket
  hosts: localhost
  gather_facts: false
  tasks:
    - name: write the ticket
      ansible.builtin.copy:
        dest: "{{ ticket_folder }}/{{ item }}.txt"
        mode: "0600"
        content: |
          severity {{ sn_severity }}
          policy {{ policy_namespace }}/{{ policy_name }}
          clusters {{ target_clusters | join(',') }}
          {{ policy_violations[item].violation_message }}
      loop: "{{ target_clusters }}"
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_violation_on_a_cluster_opens_a_ticket() -> Result<()> {
    let site = Site::new("e2e").await?;
    let tickets = site.folder.path().join("tickets");
    std::fs::create_dir(&tickets)?;
    std::fs::create_dir(site.folder.path().join("tmp"))?;
    std::fs::write(site.folder.path().join("Demo Job Template.yml"), TICKET)?;
    let secrets: Api<Secret> = site.api();
    create(&secrets, json!({ "metadata": { "name": "ticket-credentials" } })).await?;
    let automations: Api<PolicyAutomation> = site.api();
    let vars = json!({ "sn_severity": 1, "ticket_folder": tickets });
    let spec = json!({
        "policyRef": "enable-etcd-encryption", "mode": "everyEvent",
        "automationDef": {
            "name": "Demo Job Template", "secret": "ticket-credentials", "extra_vars": vars,
        },
    });
    create(&automations, json!({ "metadata": { "name": "create-ticket" }, "spec": spec })).await?;
    site.run();
    let mut runner = site.runner().await?;
    site.policy().await?;

    // Nothing on the cluster is as the policy wants it.
    let noted = site.noted(1, 1).await?.status.unwrap();
    let name = noted.recent_jobs[0].name.clone();
    let result = site.result(&name).await?;
    assert_eq!(result["status"], "successful", "{result:#}");
    assert_eq!((&result["exitCode"], &result["failed"]), (&json!(0), &json!(false)));
    assert!(result["started"].as_str().unwrap() <= result["finished"].as_str().unwrap());
    let path = tickets.join(format!("{}.txt", site.name));
    let ticket = std::fs::read_to_string(&path)?;
    let replicas: Api<Policy> = Api::namespaced(site.hub.clone(), &site.name);
    let replica = replicas.get(&format!("{}.enable-etcd-encryption", site.place)).await?;
    let said = replica.status.unwrap().details[0].history[0].message.clone();
    assert!(said.starts_with("NonCompliant; violation") && said.contains("encryption"), "{said}");
    let (cluster, place) = (&site.name, &site.place);
    let head =
        format!("severity 1\npolicy {place}/enable-etcd-encryption\nclusters {cluster}\n{said}\n");
    assert_eq!(ticket, head);
    println!("the ticket {}:\n{ticket}", path.display());

    // It complies, and then no more: a second ticket.
    std::fs::remove_file(&path)?;
    let maps: Api<ConfigMap> = Api::namespaced(site.cluster.clone(), &site.name);
    let map = json!({ "metadata": { "name": "encryption" }, "data": { "provider": "aescbc" } });
    create(&maps, map).await?;
    site.noted(1, 0).await?;
    maps.delete("encryption", &Default::default()).await?;
    let noted = site.noted(2, 1).await?.status.unwrap();
    let second = &noted.recent_jobs[0].name;
    assert_eq!(site.result(second).await?["status"], "successful");
    assert_eq!(std::fs::read_to_string(&path)?, head);
    assert_eq!(site.jobs().list(&ListParams::default()).await?.items.len(), 2);

    let mut history = site.cleat();
    history.args(["automation", "history", "create-ticket", "--context", "hub", "-n", place]);
    let history = tokio::task::spawn_blocking(move || history.output()).await??;
    let shown = String::from_utf8(history.stdout)?;
    assert!(history.status.success(), "{}", String::from_utf8_lossy(&history.stderr));
    println!("{shown}");
    for word in [&*name, &**second, "everyEvent", "successful", cluster] {
        assert!(shown.contains(word), "{word} is not in\n{shown}");
    }
    stop(&mut runner.0).await?;
    site.tasks.shutdown().await;
    Ok(())
}

/// As Ctrl-C does.
async fn stop(child: &mut Child) -> Result<()> {
    let pid = child.id().to_string();
    let asked = Command::new("kill").args(["-INT", &pid]).status()?;
    assert!(asked.success());
    eventually("the runner's end", || {
        let ended = child.try_wait();
        async move { Ok(ended?) }
    })
    .await?;
    Ok(())
}

const SLEEPS: &str = r#"
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.shell: |
        trap '' TERM
        sleep 6000 &
        echo "$$ $!" > {{ marks }}/new
        mv {{ marks }}/new {{ marks }}/asleep
        wait
"#;

fn alive(numbers: &str) -> Vec<&str> {
    let alive = |number: &&str| {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    };
    numbers.split_whitespace().filter(alive).collect()
}

fn left_in(folder: &Path) -> Result<usize> {
    Ok(std::fs::read_dir(folder)?.count())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runner_that_is_killed_leaves_neither_processes_nor_credentials() -> Result<()> {
    let site = Site::new("killed").await?;
    let tmp = site.folder.path().join("tmp");
    std::fs::create_dir(&tmp)?;
    std::fs::write(site.folder.path().join("sleeps.yml"), SLEEPS)?;
    let secrets: Api<Secret> = site.api();
    let data = json!({ "vault_password": "open sesame" });
    create(&secrets, json!({ "metadata": { "name": "s" }, "stringData": data })).await?;
    let mut runner = site.runner().await?;
    let jobs: Api<AnsibleJob> = site.api();
    let vars = json!({ "marks": site.folder.path() });
    let spec =
        json!({ "job_template_name": "sleeps", "tower_auth_secret": "s", "extra_vars": vars });
    create(&jobs, json!({ "metadata": { "name": "sleeps" }, "spec": spec })).await?;
    let mark = site.folder.path().join("asleep");
    eventually("the task", || async { Ok(mark.exists().then_some(())) }).await?;
    let numbers = std::fs::read_to_string(&mark)?;
    assert_eq!(alive(&numbers).len(), 2);
    assert!(left_in(&tmp)? > 0);
    runner.0.kill()?;
    runner.0.wait()?;
    eventually("the end of everything", || async {
        Ok((alive(&numbers).is_empty() && left_in(&tmp)? == 0).then_some(()))
    })
    .await?;

    // It said how long it would be there; after that, the next one says that it is not.
    let before = site.jobs().get("sleeps").await?;
    let told = |path: &str| before.data.pointer(path).and_then(Value::as_str).map(str::to_owned);
    assert_eq!(told("/status/ansibleJobResult/status").as_deref(), Some("running"));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")?;
    assert_eq!(told("/status/runner/name").as_deref(), Some(host.trim()));
    let long_ago = json!({ "runner": { "deadline": "2026-01-01T00:00:00Z" } });
    let patch = Patch::Merge(json!({ "status": long_ago }));
    site.jobs().patch_status("sleeps", &PatchParams::default(), &patch).await?;
    let _next = site.runner().await?;
    let result = site.result("sleeps").await?;
    assert_eq!(result["status"], "error");
    assert!(result["message"].as_str().unwrap().contains("is not run again"), "{result}");
    drop(site.world);
    Ok(())
}
