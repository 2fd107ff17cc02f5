//! What is typed: by which name the program is called, and what it makes of what it does not understand.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context as _, Result};

fn run(program: &Path, words: &[&str]) -> Result<Output> {
    Command::new(program)
        .args(words)
        .env("KUBECONFIG", "/nowhere")
        .env_remove("CLEAT_HUB_KUBECONFIG")
        .output()
        .context("run it")
}

/// Nobody had ever called it so.
#[test]
fn as_kubectl_cleat_it_is_a_verb_of_kubectl() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let plugin = folder.path().join("kubectl-cleat");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_cleat"), &plugin)?;
    let help = run(&plugin, &["explain", "--help"])?;
    let told = String::from_utf8(help.stdout)?;
    assert!(told.contains("Usage: kubectl cleat explain"), "{told}");
    assert!(help.status.success());
    let script = run(&plugin, &["completions", "kubectl"])?;
    let helper = folder.path().join("kubectl_complete-cleat");
    std::fs::write(&helper, script.stdout)?;
    let completed = Command::new("sh").arg(&helper).args(["preview", "un"]).output()?;
    assert_eq!(String::from_utf8(completed.stdout)?, "unjoin\n:0\n");
    Ok(())
}

#[test]
fn what_is_no_kind_and_name_was_taken_for_a_refusal() -> Result<()> {
    let cleat = Path::new(env!("CARGO_BIN_EXE_cleat"));
    for words in [
        &["preview", "delete", "shop"],
        &["delete", "shop", "--yes"],
        &["explain", "a/b/c", "-ojson"],
    ] {
        let ended = run(cleat, words)?;
        let told = String::from_utf8(ended.stderr)?;
        assert_eq!(ended.status.code(), Some(2), "{words:?}: {told}");
        assert!(told.contains("is not KIND/NAME"), "{told}");
    }
    Ok(())
}
