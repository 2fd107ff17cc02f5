//! One run of `ansible-playbook`: begun without a shell, bounded in time and in what it may print.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cleat_core::ansiblejob::Ended;
use cleat_runtime::tasks::Stop;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use crate::credentials::Credentials;
use crate::log::{Mask, Tail};
use crate::playbook::Playbook;

/// What is run.
pub(crate) struct Order {
    pub(crate) program: PathBuf,
    pub(crate) playbook: Playbook,
    /// Where relative paths begin; a directory of its own without.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) inventory: Option<PathBuf>,
    /// The text of the file with variables.
    pub(crate) variables: String,
    pub(crate) credentials: Credentials,
    pub(crate) timeout: Duration,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) result: Ended,
    pub(crate) exit_code: Option<i32>,
    pub(crate) message: String,
    pub(crate) log: String,
}

/// How long a playbook that is told to end may take to do so.
const GRACE: Duration = Duration::from_secs(10);
/// How long what a playbook left behind may go on printing.
const AFTERMATH: Duration = Duration::from_secs(2);

/// The only host there is unless the operator names others.
const INVENTORY: &str = "localhost ansible_connection=local ansible_python_interpreter=\"{{ ansible_playbook_python }}\"\n";

/// Runs it to its end, its timeout, or until it is time to stop.
pub(crate) async fn run(order: Order, stop: &mut Stop) -> Outcome {
    let folder = match tempfile::Builder::new().prefix("cleat-job-").tempdir() {
        Ok(folder) => folder,
        Err(error) => return broken(format!("no temporary directory can be made: {error}")),
    };
    let tail = Arc::new(Mutex::new(Tail::new(Mask::new(order.credentials.secrets()))));
    let mut command = match command(&order, folder.path()) {
        Ok(command) => command,
        Err(error) => return broken(format!("the job's files cannot be written: {error}")),
    };
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            return broken(format!("{} cannot be started: {error}", order.program.display()));
        }
    };
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let readers = [
        child.stdout.take().map(|from| tokio::spawn(drain(from, Arc::clone(&tail)))),
        child.stderr.take().map(|from| tokio::spawn(drain(from, Arc::clone(&tail)))),
    ];
    let ended = tokio::select! {
        status = child.wait() => Way::Exited(status),
        () = tokio::time::sleep(order.timeout) => Way::TimedOut,
        () = stop.stopped() => Way::Stopped,
    };
    if !matches!(ended, Way::Exited(_)) {
        put_down(&mut child, group).await;
    }
    for reader in readers.into_iter().flatten() {
        let abort = reader.abort_handle();
        if tokio::time::timeout(AFTERMATH, reader).await.is_err() {
            // Something of its group still holds the pipe, so the group is still the playbook's.
            signal(group, Signal::KILL);
            abort.abort();
        }
    }
    let log = tail.lock().unwrap_or_else(PoisonError::into_inner).show();
    judge(ended, order.timeout, log)
}

enum Way {
    Exited(std::io::Result<ExitStatus>),
    TimedOut,
    Stopped,
}

fn judge(ended: Way, timeout: Duration, log: String) -> Outcome {
    let (result, exit_code, message) = match ended {
        Way::Exited(Ok(status)) if status.success() => {
            (Ended::Successful, status.code(), String::new())
        }
        Way::Exited(Ok(status)) => match status.code() {
            Some(code) => {
                (Ended::Failed, Some(code), format!("ansible-playbook ended with code {code}"))
            }
            None => (Ended::Error, None, format!("ansible-playbook was ended: {status}")),
        },
        Way::Exited(Err(error)) => {
            (Ended::Error, None, format!("nobody knows how it ended: {error}"))
        }
        Way::TimedOut => {
            let message = format!("it took longer than {} s and was ended", timeout.as_secs());
            (Ended::Error, None, message)
        }
        Way::Stopped => {
            let message = "the runner was stopped, and the playbook with it";
            (Ended::Error, None, message.to_owned())
        }
    };
    Outcome { result, exit_code, message, log }
}

pub(crate) fn broken(message: String) -> Outcome {
    Outcome { result: Ended::Error, exit_code: None, message, log: String::new() }
}

fn command(order: &Order, folder: &Path) -> std::io::Result<Command> {
    let write = |name: &str, content: &[u8]| -> std::io::Result<PathBuf> {
        let path = folder.join(name);
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600).open(&path)?.write_all(content)?;
        Ok(path)
    };
    let mut variables = OsString::from("@");
    variables.push(write("variables.json", order.variables.as_bytes())?);
    let inventory = match &order.inventory {
        Some(path) => path.clone(),
        None => write("inventory", INVENTORY.as_bytes())?,
    };
    let playbook = match &order.playbook {
        Playbook::File(path) => path.clone(),
        Playbook::Text(text) => write("playbook.yml", text.as_bytes())?,
    };
    let mut command = Command::new(&order.program);
    command.env_clear();
    for name in ["PATH", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .envs(&order.credentials.environment)
        .env("HOME", folder)
        .env("LANG", "C.UTF-8")
        .env("LC_ALL", "C.UTF-8")
        .env("PYTHONUNBUFFERED", "1")
        .env("ANSIBLE_NOCOLOR", "1")
        .env("ANSIBLE_RETRY_FILES_ENABLED", "0")
        .env("ANSIBLE_LOCAL_TEMP", folder.join("tmp"))
        .arg("--inventory")
        .arg(inventory)
        .arg("--extra-vars")
        .arg(variables);
    if let Some(password) = &order.credentials.vault_password {
        command.arg("--vault-password-file").arg(write("vault", password)?);
    }
    if let Some(key) = &order.credentials.private_key {
        command.arg("--private-key").arg(write("key", key)?);
    }
    command
        .arg(playbook)
        .current_dir(order.directory.as_deref().unwrap_or(folder))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    Ok(command)
}

async fn drain(mut from: impl AsyncRead + Unpin, tail: Arc<Mutex<Tail>>) {
    let mut piece = [0; 8192];
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        let piece = piece.get(..count).unwrap_or_default();
        tail.lock().unwrap_or_else(PoisonError::into_inner).push(piece);
    }
}

/// Asks, waits, and then does not ask any more.
async fn put_down(child: &mut Child, group: Option<Pid>) {
    signal(group, Signal::TERM);
    if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
        signal(group, Signal::KILL);
        let _ = child.wait().await;
    }
}

fn signal(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // It may have ended by itself.
        let _ = kill_process_group(group, signal);
    }
}
