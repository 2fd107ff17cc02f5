//! `cargo xtask tidy`: what no compiler checks. Licences and sources of dependencies, dependency
//! arrows between our crates, sizes and names of files, tests that documents name.

mod cited;

use std::collections::{BTreeSet, VecDeque};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::Value;

/// A file this long before its tests is more than one concept.
const LONGEST_FILE: usize = 600;

/// What a crate must never depend on, directly: these absences are the architecture.
const FORBIDDEN: &[(&str, &[&str])] = &[
    (
        "cleat-store",
        &["cleat-apiserver", "cleat-world", "axum", "http", "kube", "k8s-openapi", "serde_json"],
    ),
    ("cleat-apiserver", &["cleat-world", "cleat-api", "cleat-core", "kube", "k8s-openapi"]),
    ("cleat-dialect", &["cleat-apiserver", "cleat-core", "kube", "tokio"]),
    ("cleat-template", &["cleat-apiserver", "cleat-core", "kube", "k8s-openapi", "tokio"]),
    ("cleat-api", &["cleat-core", "cleat-apiserver", "kube", "kube-client", "tokio"]),
    (
        "cleat-core",
        &["cleat-apiserver", "cleat-runtime", "cleat-store", "kube", "kube-client", "tokio"],
    ),
    ("cleat-runtime", &["cleat-agent", "cleat-apiserver", "cleat-hub", "cleat-world"]),
    ("cleat-agent", &["axum", "cleat-apiserver", "cleat-hub", "cleat-webhook", "cleat-world"]),
    ("cleat-protection", &["cleat-agent", "cleat-apiserver", "cleat-hub", "cleat-world"]),
    ("cleat-hub", &["cleat-agent", "cleat-apiserver", "cleat-runner", "cleat-world"]),
    ("cleat-webhook", &["cleat-agent", "cleat-apiserver", "cleat-hub", "cleat-world"]),
    (
        "cleat-runner",
        &["axum", "cleat-agent", "cleat-apiserver", "cleat-hub", "cleat-webhook", "cleat-world"],
    ),
    ("cleat", &["cleat-world"]),
];

/// Names that say nothing about what is inside.
const MEANINGLESS: &[&str] =
    &["common", "helper", "helpers", "manager", "misc", "mod", "util", "utils"];

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    name: String,
    reason: String,
}

pub(crate) fn run() -> Result<()> {
    let root = crate::root();
    let deny = std::fs::read_to_string(root.join("deny.toml")).context("read deny.toml")?;
    let deny: Deny = toml::from_str(&deny).context("understand deny.toml")?;
    let metadata = metadata()?;
    let packages = metadata.get("packages").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut complaints = Vec::new();
    for package in &packages {
        dependency(package, &deny, &mut complaints);
        arrows(package, &mut complaints);
    }
    let files = files(&mut complaints)?;
    if !complaints.is_empty() {
        complaints.sort();
        bail!("untidy:\n  {}", complaints.join("\n  "));
    }
    println!("tidy: {} packages, {files} source files", packages.len());
    Ok(())
}

fn metadata() -> Result<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .current_dir(crate::root())
        .output()
        .context("run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("read cargo metadata")
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Where a package comes from, what it is called and under which licence it is.
fn dependency(package: &Value, deny: &Deny, complaints: &mut Vec<String>) {
    let name = text(package, "name");
    let Some(source) = package.get("source").and_then(Value::as_str) else { return };
    if !source.starts_with("registry+") {
        complaints.push(format!("{name} comes from {source}: only the registry is allowed"));
    }
    if let Some(ban) = deny.bans.deny.iter().find(|ban| ban.name == name) {
        complaints.push(format!("{name} is banned: {}", ban.reason));
    }
    let licence = text(package, "license");
    if !allowed(licence, &deny.licenses.allow) {
        complaints
            .push(format!("{name} has the licence {licence:?}, which deny.toml does not allow"));
    }
}

/// Whether a licence expression can be met with what is allowed. `AND` binds closer than `OR`.
fn allowed(expression: &str, allow: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut tokens: VecDeque<&str> = spaced.split_whitespace().collect();
    !tokens.is_empty() && alternatives(&mut tokens, allow) && tokens.is_empty()
}

fn alternatives(tokens: &mut VecDeque<&str>, allow: &BTreeSet<String>) -> bool {
    let mut met = every(tokens, allow);
    while tokens.front() == Some(&"OR") {
        tokens.pop_front();
        met |= every(tokens, allow);
    }
    met
}

fn every(tokens: &mut VecDeque<&str>, allow: &BTreeSet<String>) -> bool {
    let mut met = single(tokens, allow);
    while tokens.front() == Some(&"AND") {
        tokens.pop_front();
        met &= single(tokens, allow);
    }
    met
}

fn single(tokens: &mut VecDeque<&str>, allow: &BTreeSet<String>) -> bool {
    match tokens.pop_front() {
        Some("(") => {
            let met = alternatives(tokens, allow);
            tokens.pop_front() == Some(")") && met
        }
        Some(licence) if tokens.front() == Some(&"WITH") => {
            tokens.pop_front();
            let exception = tokens.pop_front().unwrap_or_default();
            allow.contains(&format!("{licence} WITH {exception}"))
        }
        Some(licence) => allow.contains(licence),
        None => false,
    }
}

fn arrows(package: &Value, complaints: &mut Vec<String>) {
    let name = text(package, "name");
    let Some((_, forbidden)) = FORBIDDEN.iter().find(|(of, _)| *of == name) else { return };
    if package.get("source").is_some_and(Value::is_string) {
        return;
    }
    let dependencies = package.get("dependencies").and_then(Value::as_array);
    for dependency in dependencies.into_iter().flatten() {
        let target = text(dependency, "name");
        // Tests may look where the code must not.
        if text(dependency, "kind") != "dev" && forbidden.contains(&target) {
            complaints.push(format!("{name} must not depend on {target}"));
        }
    }
}

/// Counts our source files, and complains of those that are too long or badly named.
fn files(complaints: &mut Vec<String>) -> Result<usize> {
    let output = Command::new("git")
        .args(["ls-files", "crates/*.rs", "xtask/*.rs"])
        .current_dir(crate::root())
        .output()
        .context("list the source files with git")?;
    let listed = String::from_utf8(output.stdout).context("read the list of files")?;
    let mut count = 0;
    let mut functions = BTreeSet::new();
    for name in listed.lines() {
        let Ok(source) = std::fs::read_to_string(crate::root().join(name)) else { continue };
        count += 1;
        functions.extend(cited::functions(&source).map(str::to_owned));
        let test = name.ends_with("/tests.rs") || name.contains("/tests/");
        let lines = source.lines().take_while(|line| *line != "#[cfg(test)]").count();
        if lines > LONGEST_FILE && !test {
            complaints.push(format!(
                "{name} has {lines} lines before its tests (at most {LONGEST_FILE})"
            ));
        }
        let stem = name.rsplit('/').next().and_then(|file| file.strip_suffix(".rs"));
        if stem.is_some_and(|stem| MEANINGLESS.contains(&stem)) {
            complaints.push(format!("{name}: the name says nothing"));
        }
    }
    for name in cited::DOCUMENTS {
        let document = std::fs::read_to_string(crate::root().join(name))
            .with_context(|| format!("read {name}"))?;
        complaints.extend(cited::complaints(name, &document, &functions));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alternative_is_enough_but_all_its_parts_count() {
        let allow = ["MIT", "Apache-2.0"].map(str::to_owned).into();
        for (expression, expected) in [
            ("MIT", true),
            ("MIT OR GPL-3.0", true),
            ("MIT/Apache-2.0", true),
            ("(MIT OR GPL-3.0) AND Apache-2.0", true),
            ("(MIT OR Apache-2.0) AND GPL-3.0", false),
            ("MIT OR Apache-2.0 WITH LLVM-exception", true),
            ("Apache-2.0 WITH LLVM-exception", false),
            ("GPL-3.0", false),
            ("MIT AND GPL-3.0", false),
            ("", false),
        ] {
            assert_eq!(allowed(expression, &allow), expected, "{expression}");
        }
    }
}
