//! One run of `ansible-playbook`: begun without a shell, bounded in time and in what it may print, and
//! under a guard that ends whatever it started.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cleat_core::ansiblejob::Ended;
use cleat_runtime::tasks::Stop;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use crate::credentials::Credentials;
use crate::family::{self, Folder};
use crate::guard;
use crate::log::{Lines, Mask, Tail};
use crate::playbook::Playbook;

/// What is run.
pub(crate) struct Order {
    /// The program that stands guard, and its arguments.
    pub(crate) guard: Vec<OsString>,
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

/// How long a guard may take to end everything, after which it is ended itself.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long after the end what was printed may take to arrive.
const AFTERMATH: Duration = Duration::from_secs(2);

/// The only host there is unless the operator names others.
const INVENTORY: &str = "localhost ansible_connection=local ansible_python_interpreter=\"{{ ansible_playbook_python }}\"\n";

/// Runs it to its end, its timeout, until it is time to stop, or until it is `lost`: the hub could not
/// be told any more that it is under way.
pub(crate) async fn run(order: Order, stop: &mut Stop, lost: impl Future<Output = ()>) -> Outcome {
    let folder = match Folder::make() {
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
        Err(error) => return broken(format!("no guard can be started: {error}")),
    };
    // As long as this is open, the playbook may run.
    let line = child.stdin.take();
    let readers = [
        child.stdout.take().map(|from| tokio::spawn(drain(from, Arc::clone(&tail)))),
        child.stderr.take().map(|from| tokio::spawn(drain(from, Arc::clone(&tail)))),
    ];
    let ended = tokio::select! {
        status = child.wait() => Way::Exited(status),
        () = tokio::time::sleep(order.timeout) => Way::TimedOut,
        () = stop.stopped() => Way::Stopped,
        () = lost => Way::Lost,
    };
    drop(line);
    let last = match &ended {
        Way::Exited(Ok(status)) => Some(*status),
        Way::Exited(Err(_)) => None,
        Way::TimedOut | Way::Stopped | Way::Lost => {
            tokio::time::timeout(PATIENCE, child.wait()).await.ok().and_then(Result::ok)
        }
    };
    // A guard that did not end by itself has ended nothing else.
    if last.and_then(|status| status.code()).is_none() {
        drop(child.kill().await);
        let home = folder.path().to_owned();
        drop(tokio::task::spawn_blocking(move || family::end_all(&home)).await);
    }
    for reader in readers.into_iter().flatten() {
        let abort = reader.abort_handle();
        if tokio::time::timeout(AFTERMATH, reader).await.is_err() {
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
    Lost,
}

fn judge(ended: Way, timeout: Duration, log: String) -> Outcome {
    let (result, exit_code, message) = match ended {
        Way::Exited(Ok(status)) if status.success() => {
            (Ended::Successful, status.code(), String::new())
        }
        Way::Exited(Ok(status)) => match status.code() {
            Some(guard::CANNOT) => {
                (Ended::Error, None, "ansible-playbook cannot be started".to_owned())
            }
            Some(code) if code > guard::BY_SIGNAL => {
                let signal = code.saturating_sub(guard::BY_SIGNAL);
                (Ended::Error, None, format!("ansible-playbook was ended by signal {signal}"))
            }
            Some(code) => {
                (Ended::Failed, Some(code), format!("ansible-playbook ended with code {code}"))
            }
            None => (Ended::Error, None, format!("the playbook's guard was ended: {status}")),
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
        Way::Lost => {
            let message = "the hub could not be told any more that the playbook ran, or took it \
                           for lost, so it was ended";
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
    let mut arguments: Vec<OsString> =
        vec!["--inventory".into(), inventory.into(), "--extra-vars".into(), variables];
    if let Some(password) = &order.credentials.vault_password {
        arguments.extend(["--vault-password-file".into(), write("vault", password)?.into()]);
    }
    if let Some(key) = &order.credentials.private_key {
        arguments.extend(["--private-key".into(), write("key", key)?.into()]);
    }
    arguments.push(playbook.into());
    let told = [folder.into(), order.program.clone().into()].into_iter().chain(arguments);
    let told: Option<Vec<String>> = told.map(|part: OsString| part.into_string().ok()).collect();
    let told = told.and_then(|told| serde_json::to_string(&told).ok());
    let told = told.ok_or_else(|| std::io::Error::other("a path is not UTF-8"))?;
    let mut guard = order.guard.iter();
    let mut command = Command::new(guard.next().map_or(OsStr::new(""), |name| name));
    command.args(guard).env_clear();
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
        // Hosts that cannot be read are no reason to do nothing and say that it went well.
        .env("ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED", "1")
        .env("ANSIBLE_LOCAL_TEMP", folder.join("tmp"))
        .env(guard::ORDER, told)
        .current_dir(order.directory.as_deref().unwrap_or(folder))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    Ok(command)
}

/// Whole lines, so that what two streams print is not mixed within one.
async fn drain(mut from: impl AsyncRead + Unpin, tail: Arc<Mutex<Tail>>) {
    let mut piece = [0; 8192];
    let mut lines = Lines::default();
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        let whole = lines.push(piece.get(..count).unwrap_or_default());
        tail.lock().unwrap_or_else(PoisonError::into_inner).push(&whole);
    }
    tail.lock().unwrap_or_else(PoisonError::into_inner).push(&lines.rest());
}
