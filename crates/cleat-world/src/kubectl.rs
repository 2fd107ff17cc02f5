//! A scripted kubectl session, played on two servers, and what it prints compared line by line.
//!
//! The commands are in `kubectl/session.txt`, the differences that are known and why they are there
//! in `kubectl/differences.txt`. What no two runs have in common is masked ([`mask`]). This knows
//! nothing of how the servers were started.

mod differences;
mod lines;
mod mask;

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

pub use self::differences::{Differences, Report};
use self::mask::Masks;

/// How long one command may take, and how long one is repeated that has to wait for something.
const PATIENCE: Duration = Duration::from_secs(240);

/// Everything that was printed, in the session's folder.
const TRANSCRIPT: &str = "transcript.txt";

/// The commands, in order.
pub struct Session {
    manifests: PathBuf,
    commands: Vec<Command>,
}

/// One command and how it is told from others.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Command {
    /// The text, with `#2` before it when it is there for the second time.
    name: String,
    text: String,
    /// Repeated until it succeeds.
    patient: bool,
}

/// Where and as what a session is played.
pub struct Stage<'a> {
    /// The folder that holds kubectl.
    pub programs: &'a Path,
    pub kubeconfig: &'a Path,
    /// Emptied and used for whatever the commands leave behind.
    pub dir: &'a Path,
}

/// What every command printed, masked, in order.
pub struct Printed(Vec<Vec<String>>);

impl Session {
    /// `crates/cleat-world/kubectl`
    pub fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("kubectl")
    }

    pub fn load(folder: &Path) -> Result<Self> {
        let path = folder.join("session.txt");
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        Ok(Self { manifests: folder.join("manifests"), commands: parse(&text) })
    }

    pub fn len(&self) -> usize {
        self.commands.len()
    }

    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    pub async fn play(&self, stage: &Stage<'_>) -> Result<Printed> {
        if stage.dir.exists() {
            std::fs::remove_dir_all(stage.dir).context("empty the session's folder")?;
        }
        std::fs::create_dir_all(stage.dir).context("make the session's folder")?;
        // The session changes both.
        std::fs::copy(stage.kubeconfig, stage.dir.join("kubeconfig")).context("copy kubeconfig")?;
        for entry in std::fs::read_dir(&self.manifests).context("list the manifests")? {
            let path = entry.context("list the manifests")?.path();
            let name = path.file_name().context("a manifest has a name")?;
            std::fs::copy(&path, stage.dir.join(name)).context("copy a manifest")?;
        }
        let masks = Masks::new(stage.dir)?;
        let mut transcript = String::new();
        let mut printed = Vec::new();
        for command in &self.commands {
            let said = stage.run(command).await.with_context(|| command.name.clone())?;
            transcript.push_str(&format!("$ {}\n{said}\n", command.text));
            printed.push(masks.apply(&command.text, &said));
        }
        // For whoever wants to know what was behind a mask.
        std::fs::write(stage.dir.join(TRANSCRIPT), transcript).context("write the transcript")?;
        Ok(Printed(printed))
    }
}

impl Stage<'_> {
    async fn run(&self, command: &Command) -> Result<String> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let (succeeded, said) = self.run_once(&command.text).await?;
            if succeeded || !command.patient {
                return Ok(said);
            }
            if tokio::time::Instant::now() > deadline {
                bail!("still fails after {} s: {said}", PATIENCE.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// What was printed, then what was complained about, then how it ended if not well.
    async fn run_once(&self, text: &str) -> Result<(bool, String)> {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.programs.display());
        let child = tokio::process::Command::new("sh")
            .args(["-c", text])
            .current_dir(self.dir)
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.dir)
            .env("KUBECONFIG", self.dir.join("kubeconfig"))
            .env("TZ", "UTC")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("start sh")?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let output = match tokio::time::timeout(PATIENCE, child.wait_with_output()).await {
            Ok(output) => output.context("wait for sh")?,
            Err(_) => {
                // The shell alone would leave its children behind.
                group.map(|group| kill_process_group(group, Signal::KILL));
                return Ok((false, format!("(did not end within {} s)", PATIENCE.as_secs())));
            }
        };
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        if !said.is_empty() && !said.ends_with('\n') {
            said.push('\n');
        }
        said.push_str(&String::from_utf8_lossy(&output.stderr));
        if !output.status.success() {
            let end = output.status.code().or(output.status.signal()).unwrap_or_default();
            said.push_str(&format!("\n(ended with {end})"));
        }
        Ok((output.status.success(), said))
    }
}

fn parse(text: &str) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let begun = line.strip_prefix("$ ").map(|text| (text, false));
        match begun.or_else(|| line.strip_prefix("$? ").map(|text| (text, true))) {
            Some((text, patient)) => {
                inside = true;
                let text = text.to_owned();
                commands.push(Command { name: String::new(), text, patient });
            }
            None => match (commands.last_mut(), line.strip_prefix("  ")) {
                (Some(command), Some(more)) if inside => {
                    command.text.push('\n');
                    command.text.push_str(more);
                }
                _ => inside = false,
            },
        }
    }
    let texts: Vec<String> = commands.iter().map(|command| command.text.clone()).collect();
    for (index, command) in commands.iter_mut().enumerate() {
        let before = texts.iter().take(index).filter(|text| **text == command.text).count();
        let first_line = command.text.lines().next().unwrap_or_default();
        command.name = match before {
            0 => first_line.to_owned(),
            _ => format!("#{} {first_line}", before + 1),
        };
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn commands_are_told_apart() {
        let commands = parse("Words\n$ a\n$? b\n  c\n\n  not part\n$ a\n");
        let shown: Vec<_> =
            commands.iter().map(|one| (&*one.name, &*one.text, one.patient)).collect();
        assert_eq!(shown, [("a", "a", false), ("b", "b\nc", true), ("#2 a", "a", false)]);
    }
}
