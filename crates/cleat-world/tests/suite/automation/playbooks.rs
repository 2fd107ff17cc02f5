//! Jobs that are run for real: with ansible-playbook, from violation to ticket.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use cleat_api::ansiblejob::AnsibleJob;
use cleat_api::policyautomation::condition;
use cleat_core::condition::find;
use cleat_runner::{Config, Playbooks};
use cleat_runtime::tasks::Tasks;
use cleat_world::ansible;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};

use super::hub::Hub;
use super::{BAD, GOOD};
use crate::{create, gone, seen};

const SECRET: &str = "ansible-automation-platform-secret-name";

/// A playbook that opens a ticket, as the proposal's second story has it.
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
    - name: show what must not be shown
      ansible.builtin.debug:
        msg: "the password is {{ lookup('ansible.builtin.env', 'SN_PASSWORD') }}"
"#;

const FAILS: &str = r"
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.fail:
        msg: the ticket system is on fire
";

const SLEEPS: &str = r"
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.command: sleep 6000
";

/// One task whose processes ignore that they are asked to end, and are in no group of the playbook's.
const STUBBORN: &str = r#"
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.shell: |
        trap '' TERM
        sleep 6000 &
        echo "$$ $!" > {{ marks }}/new
        mv {{ marks }}/new {{ marks }}/stubborn
        wait
"#;

/// One that leaves something behind and is done.
const LITTERS: &str = r#"
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.shell: |
        setsid sleep 6000 > /dev/null 2>&1 < /dev/null &
        echo "$!" > {{ marks }}/litter
"#;

/// Not a test by itself: what runners in here start to stand guard over a playbook.
#[test]
fn stands_guard() {
    if let Some(code) = cleat_runner::stand_guard() {
        std::process::exit(code);
    }
}

fn guard() -> Result<Vec<OsString>> {
    let program = std::env::current_exe()?;
    let test = "automation::playbooks::stands_guard";
    Ok(vec![program.into(), test.into(), "--exact".into(), "--nocapture".into()])
}

/// Those of the processes whose numbers are in the file that have not ended.
fn alive(file: &Path) -> Result<Vec<String>> {
    let numbers = std::fs::read_to_string(file)?;
    let alive = |number: &&str| {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    };
    Ok(numbers.split_whitespace().filter(alive).map(ToOwned::to_owned).collect())
}

pub(super) struct Runner(Tasks);

impl Runner {
    pub(super) async fn start(hub: &Hub, config: Config) -> Result<Self> {
        let program = tokio::task::spawn_blocking(ansible::install).await??;
        let tasks = Tasks::new();
        let namespace = Some(hub.place.namespace.clone());
        let guard = guard()?;
        cleat_runner::start(Config { program, guard, namespace, ..config }, &tasks).await?;
        Ok(Self(tasks))
    }

    pub(super) async fn stop(self) {
        self.0.shutdown().await;
    }
}

pub(super) fn config(hub: &Hub, folder: &Path) -> Config {
    Config::new(hub.place.client.clone(), Playbooks::Directory(folder.to_owned()))
}

async fn secret(hub: &Hub, data: Value) -> Result<()> {
    let secrets: Api<Secret> = hub.place.api();
    create(&secrets, json!({ "metadata": { "name": SECRET }, "stringData": data })).await?;
    Ok(())
}

async fn job(hub: &Hub, name: &str, spec: Value) -> Result<AnsibleJob> {
    let jobs: Api<AnsibleJob> = hub.place.api();
    create(&jobs, json!({ "metadata": { "name": name }, "spec": spec })).await
}

/// The result of a job as soon as it has ended.
pub(super) async fn result(hub: &Hub, name: &str) -> Result<Value> {
    // This takes Python its time, on a busy machine more than others wait for anything.
    let ended = |job: Option<&DynamicObject>| {
        let finished = job.and_then(|job| job.data.pointer("/status/ansibleJobResult/finished"));
        finished.is_some()
    };
    let waiting = kube::runtime::wait::await_condition(hub.jobs(), name, ended);
    let job = tokio::time::timeout(Duration::from_secs(300), waiting).await??.unwrap();
    Ok(job.data["status"]["ansibleJobResult"].clone())
}

/// The whole way: a cluster stops to comply, and a ticket says so.
#[tokio::test]
async fn a_violation_opens_a_ticket() -> Result<()> {
    let hub = Hub::new("ticket", 2).await?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("Demo Job Template.yml"), TICKET)?;
    let tickets = folder.path().join("tickets");
    std::fs::create_dir(&tickets)?;
    secret(&hub, json!({ "SN_PASSWORD": "correct horse battery" })).await?;
    let controllers = hub.run();
    let runner = Runner::start(&hub, config(&hub, folder.path())).await?;
    let vars = json!({ "sn_severity": 1, "ticket_folder": tickets });
    let definition = json!({
        "name": "Demo Job Template", "secret": SECRET, "jobTtl": 86_400, "extra_vars": vars,
    });
    hub.automate("create-ticket", json!({ "automationDef": definition })).await?;
    hub.stand(&[GOOD, BAD]).await?;

    let jobs = hub.jobs_when("create-ticket", |jobs| jobs.len() == 1).await?;
    let name = jobs.into_keys().next().unwrap();
    let result = result(&hub, &name).await?;
    assert_eq!(result["status"], "successful", "{result:#}");
    assert_eq!((&result["failed"], &result["exitCode"]), (&json!(false), &json!(0)));
    let log = result["log"].as_str().unwrap();
    assert!(log.contains("the password is ***") && !log.contains("horse"), "{log}");
    let cluster = &hub.clusters[1];
    let ticket = std::fs::read_to_string(tickets.join(format!("{cluster}.txt")))?;
    let namespace = &hub.place.namespace;
    assert_eq!(
        ticket,
        format!(
            "severity 1\npolicy {namespace}/enable-etcd-encryption\nclusters {cluster}\n\
             NonCompliant; violation on {cluster}\n"
        )
    );
    // The automation knows how its job ended.
    let told = hub
        .told("create-ticket", |status| {
            find(&status.conditions, condition::JOBS_SUCCEED)
                .is_some_and(|one| one.status == "True")
        })
        .await?;
    assert_eq!(told.status.unwrap().recent_jobs[0].result.as_deref(), Some("successful"));
    assert_eq!(std::fs::read_dir(&tickets)?.count(), 1);
    runner.stop().await;
    controllers.stop().await;
    Ok(())
}

/// What comes from clusters is data: no template in it is evaluated, and no shell sees it.
#[tokio::test]
async fn nothing_in_the_variables_of_a_job_is_run() -> Result<()> {
    let hub = Hub::new("inject", 0).await?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("ticket.yml"), TICKET)?;
    secret(&hub, json!({ "SN_PASSWORD": "unused" })).await?;
    let runner = Runner::start(&hub, config(&hub, folder.path())).await?;
    let evil = folder.path().join("evil");
    let word = format!("$(touch {0}) `touch {0}` ; touch {0}", evil.display());
    let template = format!("{{{{ lookup('ansible.builtin.pipe', 'touch {}') }}}}", evil.display());
    let vars = json!({
        "sn_severity": word, "ticket_folder": folder.path(), "policy_name": template,
        "policy_namespace": "n", "target_clusters": ["c1"],
        "policy_violations": { "c1": { "violation_message": template } },
    });
    let spec = json!({
        "job_template_name": "ticket", "tower_auth_secret": SECRET, "extra_vars": vars,
    });
    job(&hub, "inject", spec).await?;
    let result = result(&hub, "inject").await?;
    assert_eq!(result["status"], "successful", "{result:#}");
    let ticket = std::fs::read_to_string(folder.path().join("c1.txt"))?;
    assert_eq!(ticket, format!("severity {word}\npolicy n/{template}\nclusters c1\n{template}\n"));
    assert!(!evil.exists());

    for (name, spec, message) in [
        (
            "path",
            json!({ "job_template_name": "../ticket", "tower_auth_secret": SECRET }),
            "cannot be the name of a playbook",
        ),
        (
            "reserved",
            json!({
                "job_template_name": "ticket", "tower_auth_secret": SECRET,
                "extra_vars": { "ansible_python_interpreter": "/bin/false" },
            }),
            "is Ansible's own",
        ),
        (
            "unknown",
            json!({ "job_template_name": "no such", "tower_auth_secret": SECRET }),
            "there is no playbook no such.yml or",
        ),
        (
            "poor",
            json!({ "job_template_name": "ticket", "tower_auth_secret": "none" }),
            "there is no Secret",
        ),
    ] {
        job(&hub, name, spec).await?;
        let result = self::result(&hub, name).await?;
        assert_eq!(result["status"], "error", "{name}");
        assert!(result["message"].as_str().unwrap().contains(message), "{name}: {result}");
    }
    runner.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_playbook_that_fails_or_takes_too_long_says_so_and_goes_in_its_time() -> Result<()> {
    let hub = Hub::new("fails", 0).await?;
    let maps: Api<ConfigMap> = hub.place.api();
    let data = json!({ "it-fails.yml": FAILS, "sleeps.yaml": SLEEPS });
    create(&maps, json!({ "metadata": { "name": "playbooks" }, "data": data })).await?;
    let playbooks = Playbooks::ConfigMap {
        namespace: hub.place.namespace.clone(),
        name: "playbooks".to_owned(),
    };
    let base = Config::new(hub.place.client.clone(), playbooks);
    let runner = Runner::start(&hub, base.clone()).await?;
    job(&hub, "fails", json!({ "job_template_name": "It fails" })).await?;
    let ended = result(&hub, "fails").await?;
    assert_eq!((&ended["status"], &ended["exitCode"]), (&json!("failed"), &json!(2)));
    assert!(ended["log"].as_str().unwrap().contains("the ticket system is on fire"));
    let at = |key: &str| ended[key].as_str().unwrap().parse::<jiff::Timestamp>();
    assert!(at("started")? < at("finished")?, "{ended}");
    // One that may go goes; the other one stays.
    let goes = job(&hub, "goes", json!({ "job_template_name": "It fails", "job_ttl": 0 })).await?;
    gone(&hub.place.api(), &goes).await?;
    hub.jobs().get("fails").await?;
    runner.stop().await;

    let runner =
        Runner::start(&hub, Config { timeout: Duration::from_secs(3), ..base.clone() }).await?;
    job(&hub, "late", json!({ "job_template_name": "sleeps" })).await?;
    let result = result(&hub, "late").await?;
    assert_eq!(result["status"], "error");
    assert_eq!(result["message"], "it took longer than 3 s and was ended");
    runner.stop().await;

    // One that is stopped ends its playbooks and says so.
    let runner = Runner::start(&hub, base).await?;
    job(&hub, "stopped", json!({ "job_template_name": "sleeps" })).await?;
    let running = |job: &DynamicObject| job.data.pointer("/status/runner/name").is_some();
    seen(&hub.jobs(), "stopped", running).await?;
    runner.stop().await;
    let job = hub.jobs().get("stopped").await?;
    assert_eq!(job.data["status"]["ansibleJobResult"]["status"], "error");
    assert_eq!(job.name_any(), "stopped");
    Ok(())
}

#[tokio::test]
async fn nothing_that_a_playbook_started_outlives_it() -> Result<()> {
    let hub = Hub::new("outlives", 0).await?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("stubborn.yml"), STUBBORN)?;
    std::fs::write(folder.path().join("litters.yml"), LITTERS)?;
    let vars = json!({ "marks": folder.path() });
    let runner = Runner::start(&hub, config(&hub, folder.path())).await?;
    job(&hub, "litters", json!({ "job_template_name": "litters", "extra_vars": vars })).await?;
    let ended = result(&hub, "litters").await?;
    assert_eq!(ended["status"], "successful", "{ended:#}");
    assert_eq!(alive(&folder.path().join("litter"))?, [""; 0]);

    job(&hub, "stubborn", json!({ "job_template_name": "stubborn", "extra_vars": vars })).await?;
    let mark = folder.path().join("stubborn");
    cleat_world::eventually("the task", || async { Ok(mark.exists().then_some(())) }).await?;
    assert_eq!(alive(&mark)?.len(), 2);
    runner.stop().await;
    assert_eq!(alive(&mark)?, [""; 0]);
    let job = hub.jobs().get("stubborn").await?;
    assert_eq!(job.data["status"]["ansibleJobResult"]["status"], "error");

    // The same when it takes too long.
    std::fs::remove_file(&mark)?;
    let soon = Config { timeout: Duration::from_secs(20), ..config(&hub, folder.path()) };
    let runner = Runner::start(&hub, soon).await?;
    self::job(&hub, "late", json!({ "job_template_name": "stubborn", "extra_vars": vars })).await?;
    let ended = result(&hub, "late").await?;
    assert_eq!(ended["message"], "it took longer than 20 s and was ended");
    if mark.exists() {
        assert_eq!(alive(&mark)?, [""; 0]);
    }
    runner.stop().await;
    Ok(())
}

#[tokio::test]
async fn no_more_playbooks_run_at_once_than_allowed() -> Result<()> {
    let hub = Hub::new("atonce", 0).await?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("fails.yml"), FAILS)?;
    let config = Config { at_once: 2, ..config(&hub, folder.path()) };
    let runner = Runner::start(&hub, config).await?;
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        job(&hub, name, json!({ "job_template_name": "fails" })).await?;
    }
    let mut marks = Vec::new();
    for name in names {
        let ended = result(&hub, name).await?;
        let at = |key: &str| ended[key].as_str().unwrap().parse::<jiff::Timestamp>();
        marks.extend([(at("started")?, 1), (at("finished")?, -1)]);
    }
    marks.sort();
    let mut running = 0;
    for (_, change) in marks {
        running += change;
        assert!(running <= 2);
    }
    runner.stop().await;
    Ok(())
}

/// The secret's files: a variable that only the vault's password opens.
#[tokio::test]
async fn a_vault_is_opened_with_the_password_of_the_secret() -> Result<()> {
    let hub = Hub::new("vault", 0).await?;
    let folder = tempfile::tempdir()?;
    let program = tokio::task::spawn_blocking(ansible::install).await??;
    let password = folder.path().join("password");
    std::fs::write(&password, "open sesame")?;
    let sealed = tokio::process::Command::new(program.with_file_name("ansible-vault"))
        .args(["encrypt_string", "--name", "sealed", "the treasure", "--vault-password-file"])
        .arg(&password)
        .env("HOME", folder.path())
        .output()
        .await?;
    assert!(sealed.status.success(), "{}", String::from_utf8_lossy(&sealed.stderr));
    let sealed = String::from_utf8(sealed.stdout)?.replace('\n', "\n    ");
    let text = format!(
        "- hosts: localhost\n  gather_facts: false\n  vars:\n    {sealed}\n  tasks:\n    \
         - ansible.builtin.copy: {{ dest: \"{{{{ place }}}}/found\", mode: \"0600\", content: \
         \"{{{{ sealed }}}}\" }}\n"
    );
    std::fs::write(folder.path().join("vault.yml"), text)?;
    secret(&hub, json!({ "vault_password": "open sesame" })).await?;
    let runner = Runner::start(&hub, config(&hub, folder.path())).await?;
    let vars = json!({ "place": folder.path() });
    let spec = json!({
        "job_template_name": "vault", "tower_auth_secret": SECRET, "extra_vars": vars,
    });
    job(&hub, "vault", spec).await?;
    let ended = result(&hub, "vault").await?;
    assert_eq!(ended["status"], "successful", "{ended:#}");
    assert_eq!(std::fs::read_to_string(folder.path().join("found"))?, "the treasure");
    runner.stop().await;
    Ok(())
}

#[tokio::test]
async fn an_inventory_that_is_not_there_is_refused_at_the_start() -> Result<()> {
    let hub = Hub::new("inventory", 0).await?;
    let folder = tempfile::tempdir()?;
    let inventory = Some("no-such-hosts.ini".into());
    let refused = Runner::start(&hub, Config { inventory, ..config(&hub, folder.path()) }).await;
    let message = refused.err().unwrap().to_string();
    assert_eq!(message, "there is no inventory no-such-hosts.ini");
    Ok(())
}
