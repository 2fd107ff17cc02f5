//! The sample policies in docs/samples, tried with the binary itself.
//!
//! What each prints is kept beside this file; `CLEAT_BLESS=1` writes it anew.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that is wrong about its surroundings must fail"
)]

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
fn a_policy_that_holds_ends_well_and_a_file_that_is_none_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let policy = "\
apiVersion: policy.open-cluster-management.io/v1
kind: ConfigurationPolicy
metadata: {name: p}
spec:
  remediationAction: inform
  object-templates:
  - complianceType: musthave
    objectDefinition: {apiVersion: v1, kind: Namespace, metadata: {name: team-a}}
";
    std::fs::write(path("policy.yaml"), policy).unwrap();
    std::fs::write(path("status.yaml"), "compliant: Compliant\n").unwrap();
    let (policy, status) = (path("policy.yaml"), path("status.yaml"));
    let output = dryrun(&["-p", &policy, "-c", &status, "docs/samples/cluster.yaml"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    let expected = "\
# Status compare:
.compliant: 'Compliant' does match 'Compliant'
 Expected status matches the actual status

# Diffs:
v1 Namespace team-a:

# Compliance messages:
Compliant; notification - namespaces [team-a] found as specified
";
    assert_eq!((printed.as_str(), output.status.code()), (expected, Some(0)));
    let nothing = dryrun(&["-p", &status]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("no ConfigurationPolicy in it"));
}
