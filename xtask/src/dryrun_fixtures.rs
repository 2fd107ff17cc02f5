//! `cargo xtask dryrun-fixtures`: our dry run of policies beside what the original's own tests expect
//! of theirs. The fixtures are not ours, so they are fetched, and never kept here.
//!
//! What may differ stands in `dryrun-differences.yaml`, with a reason; an unlisted difference fails, and
//! so does a listed one that is gone.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, bail};

/// Whose fixtures these are, in which version.
const MODULE: &str = "open-cluster-management.io/config-policy-controller@v0.19.0";
/// What policies are tried on and say, printed plain.
const SEMANTICS: &str = "test/dryrun";
/// What the command takes and prints, with colours and whole differences.
const COMMAND: &str = "pkg/dryrun/testdata";

/// Compare our dry run of policies with the fixtures of the original (needs Go)
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only fixtures whose path contains this
    #[arg(long)]
    only: Option<String>,
    /// Show what is expected and what was printed where they differ
    #[arg(long)]
    full: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Told {
    printed: String,
    code: i32,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let path = crate::root().join("xtask/dryrun-differences.yaml");
    let text = std::fs::read_to_string(&path).context("read the list of differences")?;
    let listed: BTreeMap<String, String> =
        serde_saphyr::from_str(&text).context("understand the list of differences")?;
    let cleat = crate::program::build()?;
    let module = crate::modules::download(MODULE)?;
    let mut folders = Vec::new();
    for below in [SEMANTICS, COMMAND] {
        find(&module.join(below), &mut folders)?;
    }
    let (mut equal, mut excused, mut wrong) = (0, 0, Vec::new());
    for folder in &folders {
        let name = folder.strip_prefix(&module)?.display().to_string();
        if args.only.as_ref().is_some_and(|part| !name.contains(part)) {
            continue;
        }
        let (expected, found) = (expected(folder)?, tried(&cleat, &module, folder)?);
        let (word, reason) = match (expected == found, listed.get(&name)) {
            (true, None) => ("equal", String::new()),
            (true, Some(_)) => ("EQUAL", "but listed as different".to_owned()),
            (false, Some(reason)) => ("listed", reason.trim().to_owned()),
            (false, None) => ("DIFFERENT", String::new()),
        };
        println!("{}", format!("{word:<9} {name}  {reason}").trim_end());
        match word {
            "equal" => equal += 1,
            "listed" => excused += 1,
            _ => wrong.push(name),
        }
        if args.full && expected != found {
            println!("--- expected, ends with {}\n{}", expected.code, expected.printed);
            println!("--- found, ends with {}\n{}", found.code, found.printed);
        }
    }
    println!("{equal} equal, {excused} different as listed, {} otherwise", wrong.len());
    let gone = |name: &&String| !folders.iter().any(|folder| folder.ends_with(name));
    let gone: Vec<&String> = listed.keys().filter(gone).collect();
    if !gone.is_empty() {
        bail!("no fixture has these listed names: {gone:?}");
    }
    if !wrong.is_empty() {
        bail!("not as listed: {}; --full shows how", wrong.join(", "));
    }
    Ok(())
}

/// The folders with a policy in them.
fn find(below: &Path, folders: &mut Vec<PathBuf>) -> Result<()> {
    if below.join("policy.yaml").exists() {
        folders.push(below.to_owned());
        return Ok(());
    }
    for entry in entries(below)? {
        if entry.is_dir() {
            find(&entry, folders)?;
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let all = folder.read_dir().with_context(|| format!("read {}", folder.display()))?;
    let all: Result<Vec<PathBuf>, _> = all.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut all = all?;
    all.sort();
    Ok(all)
}

fn expected(folder: &Path) -> Result<Told> {
    let error = folder.join("error.txt");
    if error.exists() {
        let text = std::fs::read_to_string(error)?;
        // What comes before is the original's own way to speak of itself.
        let said = text.trim_end().split_once("reconcile:\n").map_or(&*text, |(_, said)| said);
        return Ok(Told { printed: said.to_owned(), code: 1 });
    }
    let printed = std::fs::read_to_string(folder.join("output.txt"))?;
    let last = printed.trim_end().lines().last().unwrap_or_default();
    let code = if last.starts_with("Compliant") { 0 } else { 2 };
    Ok(Told { printed, code })
}

fn tried(cleat: &Path, module: &Path, folder: &Path) -> Result<Told> {
    let mut command = Command::new(cleat);
    command.args(["policy", "dryrun", "--policy"]).arg(folder.join("policy.yaml"));
    for (file, flag) in
        [("desired_status.yaml", "--desired-status"), ("mappings.yaml", "--mappings-file")]
    {
        if folder.join(file).exists() {
            command.arg(flag).arg(folder.join(file));
        }
    }
    if folder.starts_with(module.join(COMMAND)) {
        command.arg("--full-diffs").env("CLICOLOR_FORCE", "1");
    } else {
        command.arg("--no-colors").env_remove("CLICOLOR_FORCE");
    }
    command.stdin(Stdio::null());
    for entry in entries(folder)? {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == "input_stdin.yaml" {
            command.arg("-").stdin(File::open(&entry)?);
        } else if name.starts_with("input") {
            command.arg(&entry);
        }
    }
    for name in ["DRYRUN_MAPPINGS_FILE", "DRYRUN_FROM_CLUSTER"] {
        command.env_remove(name);
    }
    let Output { status, stdout, stderr } = command.output().context("run cleat")?;
    let code = status.code().unwrap_or(-1);
    let printed = match code {
        1 => {
            let text = String::from_utf8(stderr)?;
            let said = text.lines().find_map(|line| {
                let (_, said) = line.strip_prefix("cleat: cannot try ")?.split_once(": ")?;
                Some(said.replace(": ", ":\n"))
            });
            said.unwrap_or(text)
        }
        _ => String::from_utf8(stdout)?,
    };
    Ok(Told { printed, code })
}
