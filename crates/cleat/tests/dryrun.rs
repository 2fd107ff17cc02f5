//! `cleat policy dryrun` without a cluster: the sample policies in docs/samples, and what the command
//! takes and says.
//!
//! What each prints is kept beside this file; `CLEAT_BLESS=1` writes it anew.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that is wrong about its surroundings must fail"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn dryrun(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cleat"));
    command.current_dir(root()).args(["policy", "dryrun"]).args(args).output().unwrap()
}

/// Tries a sample on the sample cluster.
fn check(sample: &str, more: &[&str], code: i32) {
    let policy = format!("docs/samples/{sample}.yaml");
    let mut args = vec!["-p", &policy, "docs/samples/cluster.yaml"];
    args.extend(more);
    let output = dryrun(&args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{sample}: {errors}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let kept = root().join("crates/cleat/tests/dryrun").join(format!("{sample}.txt"));
    if std::env::var_os("CLEAT_BLESS").is_some() {
        std::fs::write(&kept, &printed).unwrap();
    }
    assert_eq!(printed, std::fs::read_to_string(&kept).unwrap(), "{sample}");
}

#[test]
fn stuck_deletions_are_reported() {
    check("stuck-deletions", &[], 2);
}

#[test]
fn a_quota_that_differs_is_shown() {
    check("team-namespace", &["--full-diffs"], 2);
}

#[test]
fn what_must_not_run_is_found() {
    check("no-default-pods", &[], 2);
}

#[test]
fn settings_that_are_not_copied_yet_are_missing() {
    check("copied-settings", &[], 2);
}

#[test]
fn every_sample_is_tried() {
    let names = |folder: &str| -> BTreeSet<String> {
        let entries = root().join(folder).read_dir().unwrap();
        let stem = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
        entries.map(|entry| stem(entry.unwrap().path())).collect()
    };
    let mut samples = names("docs/samples");
    assert!(samples.remove("cluster"), "what they are tried on");
    assert_eq!(samples, names("crates/cleat/tests/dryrun"));
}

const POLICY: &str = "\
apiVersion: policy.open-cluster-management.io/v1
kind: ConfigurationPolicy
metadata: {name: p}
spec:
  remediationAction: inform
  object-templates:
  - complianceType: musthave
    objectDefinition: {apiVersion: v1, kind: Namespace, metadata: {name: team-a}}
";
const HOLDS: &str = "Compliant; notification - namespaces [team-a] found as specified\n";
const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n";
const TEAM: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a}\n";

/// A folder with files of these contents, and their paths.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

fn printed(output: &Output) -> (String, String, Option<i32>) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

#[test]
fn a_status_is_compared_and_the_code_tells_whether_the_policy_holds() {
    let files = Files::new(&[
        ("policy.yaml", POLICY),
        ("right.yaml", "compliant: Compliant\n"),
        ("wrong.yaml", "compliant: NonCompliant\n"),
    ]);
    for (status, word) in [("right.yaml", "does match"), ("wrong.yaml", "does not match")] {
        let (policy, status) = (files.path("policy.yaml"), files.path(status));
        let output = dryrun(&["-p", &policy, "-c", &status, "docs/samples/cluster.yaml"]);
        let (expected, verdict) = match word {
            "does match" => ("Compliant", "matches"),
            _ => ("NonCompliant", "does not match"),
        };
        let expected = format!(
            "# Status compare:\n.compliant: '{expected}' {word} 'Compliant'\n Expected status {verdict} the actual status\n\n# Diffs:\nv1 Namespace team-a:\n\n# Compliance messages:\n{HOLDS}"
        );
        let (out, errors, code) = printed(&output);
        assert_eq!((out, code), (expected, Some(0)), "{errors}");
    }
    let (_, errors, code) = printed(&dryrun(&["-p", &files.path("right.yaml")]));
    assert_eq!(code, Some(1));
    assert!(errors.contains("no ConfigurationPolicy in it"), "{errors}");
}

#[test]
fn what_is_printed_and_written_is_chosen() {
    let files = Files::new(&[("policy.yaml", POLICY), ("team.yaml", TEAM), ("log", "")]);
    let paths = ["policy.yaml", "team.yaml", "messages", "status", "log"];
    let [policy, team, messages, status, log] = paths.map(|name| files.path(name));
    let output = dryrun(&[
        "-p",
        &policy,
        &team,
        "--print-diffs=false",
        "--messages-path",
        &messages,
        "--status-path",
        &status,
        "--log-path",
        &log,
    ]);
    assert_eq!(printed(&output), (String::new(), String::new(), Some(0)));
    assert_eq!(files.read("messages"), HOLDS);
    assert!(files.read("status").contains("compliant: Compliant\n"));
    let said = "policy p\nkind v1 Namespace: namespaces, in no namespace\n";
    assert!(files.read("log").starts_with(said), "{}", files.read("log"));
    let (out, errors, code) = printed(&dryrun(&["-p", &policy, "--log", &team]));
    assert_eq!((out.ends_with(HOLDS), code), (true, Some(0)));
    assert!(errors.starts_with(said), "{errors}");
    let output = dryrun(&["-p", &policy, "--log=false", "--log-path", &log, &team]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn objects_come_from_files_folders_and_standard_input() {
    let list =
        format!("apiVersion: v1\nkind: List\nitems:\n- {}", TEAM.trim().replace('\n', "\n  "));
    let files = Files::new(&[
        ("policy.yaml", POLICY),
        ("both.yaml", &format!("{MAP}---\n{TEAM}")),
        ("list.yaml", &list),
        ("folder/team.yaml", TEAM),
        ("outer/inner/team.yaml", TEAM),
    ]);
    let policy = files.path("policy.yaml");
    for (objects, code) in
        [("both.yaml", 0), ("list.yaml", 0), ("folder", 0), ("outer", 2), ("policy.yaml", 2)]
    {
        let (out, errors, found) = printed(&dryrun(&["-p", &policy, &files.path(objects)]));
        assert_eq!(found, Some(code), "{objects}: {out}{errors}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_cleat"));
    command.args(["policy", "dryrun", "-p", &policy, "-"]);
    let input = std::fs::File::open(files.path("both.yaml")).unwrap();
    let (out, errors, code) = printed(&command.stdin(input).output().unwrap());
    assert_eq!(code, Some(0), "{out}{errors}");
}

#[test]
fn what_cannot_be_tried_is_an_error() {
    let files = Files::new(&[
        ("policy.yaml", POLICY),
        ("field.yaml", &POLICY.replace("complianceType", "complianceKind")),
        ("case.yaml", &POLICY.replace("remediationAction", "remediationaction")),
        ("template.yaml", &POLICY.replace("name: team-a", "name: '{{ index .Nothing 1 }}'")),
        ("team.yaml", TEAM),
        ("strange.yaml", "apiVersion: example.com/v1\nkind: Strange\nmetadata: {name: s}\n"),
    ]);
    let team = files.path("team.yaml");
    for (policy, objects, said) in [
        ("field.yaml", "team.yaml", "spec.object-templates[0].complianceKind"),
        ("template.yaml", "team.yaml", "cannot try p: failed to resolve the template"),
        ("policy.yaml", "strange.yaml", "there is no kind example.com/v1 Strange"),
        ("policy.yaml", "nowhere.yaml", "nowhere.yaml"),
    ] {
        let output = dryrun(&["-p", &files.path(policy), &files.path(objects)]);
        let (out, errors, code) = printed(&output);
        assert_eq!((out.as_str(), code), ("", Some(1)), "{policy}");
        assert!(errors.contains(said), "{errors}");
    }
    // Not the code of a policy that does not hold.
    for misused in [vec![], vec!["-p", &team, "--nonsense"], vec!["generate", "--nonsense"]] {
        assert_eq!(dryrun(&misused).status.code(), Some(1), "{misused:?}");
    }
    assert_eq!(dryrun(&["--help"]).status.code(), Some(0));
    let (_, errors, code) = printed(&dryrun(&["-p", &files.path("case.yaml"), &team]));
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("spec.remediationaction is read as remediationAction"), "{errors}");
}
