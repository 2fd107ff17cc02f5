//! What servers make of manifests still says what the manifests say, for every kind people carry to
//! clusters: otherwise an agent would write for ever.

use anyhow::{Context as _, Result, bail, ensure};
use cleat_core::work::ignore;
use cleat_core::work::merge::{Merge, fresh, restate, update};
use cleat_world::eventually;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use serde::Deserialize;
use serde_json::Value;

use crate::Place;

#[derive(Deserialize)]
struct Case {
    manifest: Value,
    /// A JSON merge patch of the manifest.
    edit: Value,
}

fn cases(unique: &str) -> Result<Vec<Case>> {
    let text = include_str!("works_merge/manifests.yaml").replace("UNIQUE", unique);
    Ok(serde_saphyr::from_str(&text)?)
}

/// One object and the manifests that were applied to it.
struct Subject {
    what: String,
    name: String,
    api: Api<DynamicObject>,
    scope: Scope,
}

impl Subject {
    async fn of(client: &Client, namespace: &str, manifest: &Value) -> Result<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&manifest["apiVersion"]), text(&manifest["kind"]));
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let name = text(&manifest["metadata"]["name"]);
        let what = format!("{kind} {name}");
        let gvk = GroupVersionKind::gvk(group, version, &kind);
        let (resource, capabilities) = eventually(&format!("{what} to be served"), || async {
            Ok(discovery::pinned_kind(client, &gvk).await.ok())
        })
        .await?;
        let api = match capabilities.scope {
            Scope::Cluster => Api::all_with(client.clone(), &resource),
            Scope::Namespaced => Api::namespaced_with(client.clone(), namespace, &resource),
        };
        Ok(Self { what, name, api, scope: capabilities.scope })
    }

    async fn create(&self, manifest: &Value) -> Result<Value> {
        let object: DynamicObject = serde_json::from_value(fresh(manifest))?;
        eventually(&format!("{} to be created", self.what), || async {
            match self.api.create(&params(), &object).await {
                // A definition is discovered a moment before its objects can be made.
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
                answer => Ok(Some(answer.with_context(|| self.what.clone())?)),
            }
        })
        .await?;
        self.read().await
    }

    async fn read(&self) -> Result<Value> {
        Ok(serde_json::to_value(self.api.get(&self.name).await?)?)
    }

    /// Writes what `merge` says once. Controllers write too, and then it has to be asked again.
    async fn replace(&self, merge: impl Fn(&Value) -> Merge) -> Result<Value> {
        eventually(&format!("{} to be written", self.what), || async {
            let Merge::Replace(object) = merge(&self.read().await?) else {
                bail!("{}: there is nothing to write", self.what)
            };
            let typed: DynamicObject = serde_json::from_value(object.clone())?;
            match self.api.replace(&self.name, &params(), &typed).await {
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
                Err(error) => Err(error).with_context(|| format!("{}: {object}", self.what)),
                Ok(_) => Ok(Some(())),
            }
        })
        .await?;
        self.read().await
    }

    /// A life of server-side apply: what was applied is known to be, and an edit to be wanting.
    /// (That an element of an atomic list once said more, no server remembers.)
    async fn is_applied(&self, manifest: &Value, edited: &Value) -> Result<()> {
        let params = PatchParams::apply("work-agent");
        for (manifest, other) in [(manifest, Some(edited)), (edited, None)] {
            let body = ignore::body(manifest, true, &[])?;
            let patch = Patch::Apply(fresh(&body.object));
            eventually(&format!("{} to be applied", self.what), || async {
                match self.api.patch(&self.name, &params, &patch).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
                    answer => Ok(Some(answer.with_context(|| self.what.clone())?)),
                }
            })
            .await?;
            let existing = self.read().await?;
            let what = &self.what;
            ensure!(body.was_applied_to(&existing), "{what}: {manifest} was applied to {existing}");
            if let Some(other) = other {
                let other = ignore::body(other, true, &[])?;
                ensure!(!other.was_applied_to(&existing), "{what}: {existing} is not as edited");
            }
        }
        Ok(())
    }

    fn settled(&self, existing: &Value, manifest: &Value) -> Result<()> {
        for previous in [None, Some(manifest)] {
            let merged = update(existing, manifest, previous);
            let what = &self.what;
            ensure!(
                merged == Merge::Same,
                "{what}: {existing} does not say {manifest}: {merged:?}"
            );
        }
        Ok(())
    }

    /// A life of creation, an edit and its reversal, with and without knowing what was before.
    async fn lives(&self, manifest: &Value, edited: &Value) -> Result<()> {
        let first = self.create(manifest).await?;
        self.settled(&first, manifest)?;
        let second = self.replace(|it| update(it, edited, Some(manifest))).await?;
        self.settled(&second, edited)?;
        let third = self.replace(|it| update(it, manifest, Some(edited))).await?;
        self.settled(&third, manifest)?;
        self.same(&third, &first)?;
        let fourth = self.replace(|it| restate(it, edited)).await?;
        self.settled(&fourth, edited)?;
        self.same(&fourth, &second)
    }

    fn same(&self, now: &Value, then: &Value) -> Result<()> {
        let (now, then) = (body(now), body(then));
        ensure!(
            now == then,
            "{}: something of the edit remains in {now}, not in {then}",
            self.what
        );
        Ok(())
    }
}

fn params() -> PostParams {
    PostParams { field_manager: Some("work-agent".to_owned()), ..Default::default() }
}

fn merge_patch(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge_patch(&mut target[key], value);
        }
    }
}

/// What of an object the manifest and the server's defaults make. Null is nothing.
fn body(object: &Value) -> Value {
    let mut object = object.clone();
    object["status"].take();
    let metadata = object["metadata"].take();
    object["labels"] = metadata["labels"].clone();
    without_nulls(&mut object);
    object
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            entries.retain(|_, value| !value.is_null());
            entries.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

#[derive(Clone, Copy)]
enum Life {
    Updated,
    Applied,
}

/// Lets every manifest live, and fails with all that went wrong.
async fn every_manifest(place: &Place, life: Life) -> Result<()> {
    let mut subjects = Vec::new();
    let mut failures = Vec::new();
    for Case { manifest, edit } in cases(&place.namespace)? {
        let subject = Subject::of(&place.client, &place.namespace, &manifest).await?;
        let mut edited = manifest.clone();
        merge_patch(&mut edited, &edit);
        let lived = match life {
            Life::Updated => subject.lives(&manifest, &edited).await,
            Life::Applied => subject.is_applied(&manifest, &edited).await,
        };
        if let Err(failure) = lived {
            failures.push(format!("{failure:#}"));
        }
        subjects.push(subject);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    for subject in subjects.into_iter().rev().filter(|subject| subject.scope == Scope::Cluster) {
        subject.api.delete(&subject.name, &DeleteParams::default()).await?;
    }
    Ok(())
}

#[tokio::test]
async fn manifests_settle_on_what_servers_make_of_them() -> Result<()> {
    every_manifest(&Place::new("merge").await?, Life::Updated).await
}

#[tokio::test]
async fn manifests_that_were_applied_are_known_to_be() -> Result<()> {
    every_manifest(&Place::new("merge-applied").await?, Life::Applied).await
}
