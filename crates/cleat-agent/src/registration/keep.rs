//! Where an agent keeps its credentials: a secret of its cluster, or a directory.

mod hubs;
mod pending;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cleat_api::managedcluster::RemoveStrategy;
use cleat_core::id::{Id, Target};
use cleat_core::leave::parts::CREDENTIALS as SECRET;
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runtime::execute::{Executor, Read};
use serde_json::{Value, json};

pub(super) use self::pending::Pending;
use super::{Credentials, Error, FIELD_MANAGER};

/// Where credentials are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// A secret in this namespace of the cluster.
    Secret {
        namespace: String,
    },
    Directory(PathBuf),
}

impl Keep {
    /// What is kept, if anything.
    pub async fn load(&self, executor: &Executor) -> Result<Option<Credentials>, Error> {
        match self {
            Self::Secret { namespace } => load_secret(executor, namespace).await,
            Self::Directory(path) => load_directory(path),
        }
    }

    /// Keeps what a cluster has joined with. Returns once it is kept; before, nobody must rely on it.
    ///
    /// Guarantees: whoever finds these credentials does not find that the cluster has left, whatever an
    /// earlier one noted here.
    pub async fn save(&self, executor: &Executor, credentials: &Credentials) -> Result<(), Error> {
        match self {
            Self::Secret { namespace } => {
                let note = Some(json!({ LEFT[0]: "false" }));
                apply_secret(executor, secret(namespace), &credentials.files(), note).await
            }
            Self::Directory(path) => {
                remove(&path.join(LEFT[1]))?;
                save_directory(path, credentials)
            }
        }
    }

    /// Keeps others in place of those with which the cluster has joined. What is noted beside them
    /// stays: a cluster may get a new certificate while it leaves.
    pub async fn renew(&self, executor: &Executor, credentials: &Credentials) -> Result<(), Error> {
        match self {
            Self::Secret { namespace } => {
                apply_secret(executor, secret(namespace), &credentials.files(), None).await
            }
            Self::Directory(path) => save_directory(path, credentials),
        }
    }

    /// Notes whether the cluster has left, for whoever finds the credentials later.
    pub async fn set_left(&self, executor: &Executor, left: bool) -> Result<(), Error> {
        self.note(executor, LEFT, left.then_some("true")).await
    }

    pub async fn is_left(&self, executor: &Executor) -> Result<bool, Error> {
        Ok(self.noted(executor, LEFT).await?.as_deref() == Some("true"))
    }

    /// Notes what was last declared about everything that was carried to the cluster.
    pub(crate) async fn set_strategy(
        &self,
        executor: &Executor,
        strategy: RemoveStrategy,
    ) -> Result<(), Error> {
        self.note(executor, STRATEGY, Some(strategy.as_str())).await
    }

    pub(crate) async fn strategy(
        &self,
        executor: &Executor,
    ) -> Result<Option<RemoveStrategy>, Error> {
        let noted = self.noted(executor, STRATEGY).await?;
        Ok(noted.map(|noted| match noted.as_str() {
            "Required" => RemoveStrategy::Required,
            _ => RemoveStrategy::Needless,
        }))
    }

    /// Writes something down beside the credentials: an annotation of the secret, or a file.
    async fn note(
        &self,
        executor: &Executor,
        [annotation, name]: [&str; 2],
        value: Option<&str>,
    ) -> Result<(), Error> {
        match self {
            Self::Secret { namespace } => {
                let patch = json!({ "metadata": { "annotations": { annotation: value } } });
                let write = Write::Merge(patch);
                let action = Action { side: Side::Cluster, target: secret(namespace), write };
                match executor.execute(vec![vec![action]]).await.into_iter().flatten().next() {
                    Some(Outcome::Done(_)) => Ok(()),
                    other => Err(no_answer("annotate", format!("{other:?}"))),
                }
            }
            Self::Directory(path) => {
                let file = path.join(name);
                match value {
                    Some(value) => {
                        write(&file, value).map_err(|source| failed("write", &file, source))
                    }
                    None => remove(&file),
                }
            }
        }
    }

    async fn noted(
        &self,
        executor: &Executor,
        [annotation, name]: [&str; 2],
    ) -> Result<Option<String>, Error> {
        match self {
            Self::Secret { namespace } => {
                match executor.read(Side::Cluster, &secret(namespace)).await {
                    Read::Present(object) => {
                        let annotations = object.pointer("/metadata/annotations");
                        let said = annotations.and_then(|all| all.get(annotation));
                        Ok(said.and_then(Value::as_str).map(ToOwned::to_owned))
                    }
                    Read::Absent | Read::NoSuchKind => Ok(None),
                    Read::Unknown { message } => Err(no_answer("read", message)),
                }
            }
            Self::Directory(path) => match fs::read_to_string(path.join(name)) {
                Ok(text) => Ok(Some(text)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(source) => Err(failed("read", &path.join(name), source)),
            },
        }
    }

    /// Removes the files of a directory; a secret is removed with the agent's other parts.
    pub(crate) fn forget(&self) -> Result<(), Error> {
        let Self::Directory(path) = self else { return Ok(()) };
        // Without the first nobody uses the rest.
        let files = ["kubeconfig", "tls.key", "tls.crt", "cluster-name", "agent-name"];
        for name in files.into_iter().chain([LEFT[1], STRATEGY[1], pending::FILE]) {
            remove(&path.join(name))?;
        }
        Ok(())
    }
}

/// On the secret of a cluster that has left, and its file in a directory.
const LEFT: [&str; 2] = ["cleat.dev/left", "left"];
/// On the secret, and its file in a directory: what was last declared about everything there.
const STRATEGY: [&str; 2] = ["cleat.dev/remove-strategy", "remove-strategy"];

fn remove(file: &Path) -> Result<(), Error> {
    match fs::remove_file(file) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(failed("remove", file, source)),
    }
}

async fn load_secret(executor: &Executor, namespace: &str) -> Result<Option<Credentials>, Error> {
    match executor.read(Side::Cluster, &secret(namespace)).await {
        Read::Present(object) => {
            let data = object.get("data").cloned().unwrap_or_default();
            let file = |name: &'static str| {
                let bytes = BASE64.decode(data.get(name)?.as_str()?).ok()?;
                String::from_utf8(bytes).ok()
            };
            Credentials::from_files(file).map(Some)
        }
        Read::Absent => Ok(None),
        Read::NoSuchKind => Err(no_answer("read", "the cluster serves no secrets".to_owned())),
        Read::Unknown { message } => Err(no_answer("read", message)),
    }
}

/// Makes a secret what these files and annotations say, and its namespace if there is none.
async fn apply_secret(
    executor: &Executor,
    target: Target,
    files: &BTreeMap<&'static str, String>,
    annotations: Option<Value>,
) -> Result<(), Error> {
    let namespace = target.id.namespace.clone();
    let apply = |target: Target, object: Value| {
        let write = Write::Apply { object, manager: FIELD_MANAGER.to_owned(), force: true };
        vec![Action { side: Side::Cluster, target, write }]
    };
    let place = Target {
        version: "v1".to_owned(),
        id: Id { resource: "namespaces".to_owned(), name: namespace.clone(), ..Id::default() },
    };
    let made =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    let data: BTreeMap<&str, String> =
        files.iter().map(|(name, text)| (*name, BASE64.encode(text))).collect();
    let mut metadata = json!({ "name": target.id.name, "namespace": namespace });
    if let (Some(annotations), Some(metadata)) = (annotations, metadata.as_object_mut()) {
        metadata.insert("annotations".to_owned(), annotations);
    }
    let object = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data,
    });
    let here = executor.read(Side::Cluster, &place).await;
    let mut plan = vec![apply(target, object)];
    if here == Read::Absent {
        plan.insert(0, apply(place, made));
    }
    for outcome in executor.execute(plan).await.into_iter().flatten() {
        match outcome {
            Outcome::Done(_) => {}
            Outcome::Refused(refusal) => return Err(no_answer("write", refusal.message)),
            Outcome::Lost(message) => return Err(no_answer("write", message)),
            other => return Err(no_answer("write", format!("{other:?}"))),
        }
    }
    Ok(())
}

fn secret(namespace: &str) -> Target {
    let id = Id {
        resource: "secrets".to_owned(),
        namespace: namespace.to_owned(),
        name: SECRET.to_owned(),
        ..Id::default()
    };
    Target { version: "v1".to_owned(), id }
}

fn no_answer(verb: &str, message: String) -> Error {
    Error::NoAnswer { what: format!("{verb} the secret {SECRET}"), message }
}

fn load_directory(path: &Path) -> Result<Option<Credentials>, Error> {
    let mut files = BTreeMap::new();
    for name in ["agent-name", "cluster-name", "kubeconfig", "tls.crt", "tls.key"] {
        let file = path.join(name);
        match fs::read_to_string(&file) {
            Ok(text) => drop(files.insert(name, text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(failed("read", &file, source)),
        }
    }
    // It is written last, so without it the rest means nothing.
    if !files.contains_key("kubeconfig") {
        return Ok(None);
    }
    Credentials::from_files(|name| files.get(name).cloned()).map(Some)
}

fn make_directory(path: &Path) -> Result<(), Error> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| failed("create", path, source))
}

fn save_directory(path: &Path, credentials: &Credentials) -> Result<(), Error> {
    make_directory(path)?;
    let mut files = credentials.files();
    let last = files.remove_entry("kubeconfig");
    for (name, text) in files.into_iter().chain(last) {
        let file = path.join(name);
        write(&file, &text).map_err(|source| failed("write", &file, source))?;
    }
    Ok(())
}

/// Wholly there or not at all, and readable by its owner alone.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let partial = path.with_extension("partial");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&partial)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&partial, path)
}

fn failed(what: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::File { what, path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registration::HubAddress;

    #[tokio::test]
    async fn a_directory_keeps_what_was_last_saved() {
        let dir = tempfile::tempdir().unwrap();
        let keep = Keep::Directory(dir.path().join("hub"));
        let executor = Executor::new(Default::default());
        assert_eq!(keep.load(&executor).await.unwrap(), None);
        let mut credentials = Credentials {
            cluster: "c1".to_owned(),
            agent: "a1".to_owned(),
            hub: HubAddress { server: "https://hub".to_owned(), authority: None },
            certificate: "one".to_owned(),
            key: "key".to_owned(),
        };
        for certificate in ["one", "two"] {
            credentials.certificate = certificate.to_owned();
            keep.save(&executor, &credentials).await.unwrap();
            assert_eq!(keep.load(&executor).await.unwrap().as_ref(), Some(&credentials));
        }
        let mode = std::os::unix::fs::PermissionsExt::mode;
        let file = fs::metadata(dir.path().join("hub/tls.key")).unwrap().permissions();
        assert_eq!(mode(&file) & 0o077, 0);
        // A new certificate changes nothing about whether the cluster has left; joining does.
        keep.set_left(&executor, true).await.unwrap();
        keep.renew(&executor, &credentials).await.unwrap();
        assert!(keep.is_left(&executor).await.unwrap());
        keep.save(&executor, &credentials).await.unwrap();
        assert!(!keep.is_left(&executor).await.unwrap());
    }

    /// An agent that ended while it forgot its credentials left the note behind.
    #[tokio::test]
    async fn a_cluster_that_joined_again_was_believed_to_have_left() {
        let dir = tempfile::tempdir().unwrap();
        let keep = Keep::Directory(dir.path().join("hub"));
        let executor = Executor::new(Default::default());
        let credentials = Credentials {
            cluster: "c1".to_owned(),
            agent: "a1".to_owned(),
            hub: HubAddress { server: "https://hub".to_owned(), authority: None },
            certificate: "one".to_owned(),
            key: "key".to_owned(),
        };
        keep.save(&executor, &credentials).await.unwrap();
        keep.set_left(&executor, true).await.unwrap();
        fs::remove_file(dir.path().join("hub/kubeconfig")).unwrap();
        keep.save(&executor, &credentials).await.unwrap();
        assert_eq!(keep.load(&executor).await.unwrap(), Some(credentials));
        assert!(!keep.is_left(&executor).await.unwrap());
    }
}
