//! An object as it was before somebody looked at what its end would do. What is then done about it is
//! done to that state of it, or not at all.

use anyhow::{Context as _, Result, bail};
use cleat_core::id::Target;
use cleat_core::preview::differences;
use cleat_core::write::{Action, Outcome, Propagation, Refusal, Side, Write};
use cleat_runtime::execute::{Executor, Read};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{PlanChanged, Refused};

/// How often somebody who only reports may come in between.
const MOST_TRIES: usize = 10;

/// How many changed fields are named.
const MOST_FIELDS: usize = 5;

/// What has to be the same for a write to be right.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Same {
    /// It is still the one that was read.
    Incarnation,
    /// Nobody has changed what it asks for since. Reports in its status are no such change.
    State,
}

pub(crate) struct Bound {
    target: Target,
    /// How people call it.
    what: String,
    object: Value,
    same: Same,
}

impl Bound {
    /// As it is now on the server that is asked, if it is there.
    pub(crate) async fn read(
        executor: &Executor,
        target: Target,
        what: String,
    ) -> Result<Option<Self>> {
        match executor.read(Side::Hub, &target).await {
            Read::Present(object) => {
                Ok(Some(Self { target, what, object, same: Same::Incarnation }))
            }
            Read::Absent => Ok(None),
            Read::NoSuchKind => {
                bail!("this hub does not serve such a kind. Run `cleat init` on it first")
            }
            Read::Unknown { message } => bail!("cannot read {what}: {message}"),
        }
    }

    pub(crate) fn parse<K: DeserializeOwned>(&self) -> Result<K> {
        let parsed = serde_json::from_value(self.object.clone());
        parsed.with_context(|| format!("read {}", self.what))
    }

    /// From now on only this state of it is meant: somebody looks at what that would do.
    pub(crate) fn looked_at(&mut self) {
        self.same = Same::State;
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    /// How often what it asks for has changed, where the server counts.
    pub(crate) fn generation(&self) -> Option<i64> {
        self.object.pointer("/metadata/generation").and_then(Value::as_i64)
    }

    fn text(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// Which state must be met, if that counts.
    fn version(&self) -> Option<String> {
        let version = self.text("/metadata/resourceVersion").to_owned();
        (self.same == Same::State).then_some(version)
    }

    /// Changes it; a server's no is told.
    pub(crate) async fn merge(
        &mut self,
        executor: &Executor,
        patch: &Value,
    ) -> Result<Result<(), Refusal>> {
        for _ in 0..MOST_TRIES {
            let mut bound = patch.clone();
            let condition = json!({ "uid": self.uid(), "resourceVersion": self.version() });
            if let Some(bound) = bound.as_object_mut() {
                let metadata = bound.entry("metadata").or_insert_with(|| json!({}));
                if let (Some(metadata), Some(condition)) =
                    (metadata.as_object_mut(), condition.as_object())
                {
                    let set = condition.iter().filter(|(_, value)| !value.is_null());
                    metadata.extend(set.map(|(key, value)| (key.clone(), value.clone())));
                }
            }
            match self.perform(executor, Write::Merge(bound)).await {
                Outcome::Done(object) => {
                    self.object = object;
                    return Ok(Ok(()));
                }
                Outcome::Refused(refusal) => return Ok(Err(refusal)),
                Outcome::Conflict(_) | Outcome::NotFound => self.again(executor).await?,
                other => bail!("cannot change {}: {other:?}", self.what),
            }
        }
        Err(self.restless())
    }

    /// Deletes it.
    pub(crate) async fn delete(&mut self, executor: &Executor) -> Result<()> {
        for _ in 0..MOST_TRIES {
            let write = Write::Delete {
                uid: self.uid().to_owned(),
                resource_version: self.version(),
                propagation: Propagation::Background,
            };
            match self.perform(executor, write).await {
                Outcome::Done(_) | Outcome::NotFound => return Ok(()),
                Outcome::Refused(refusal) => {
                    return Err(Refused(format!("the server refuses: {}", refusal.message)).into());
                }
                Outcome::Conflict(_) => self.again(executor).await?,
                other => bail!("cannot delete {}: {other:?}", self.what),
            }
        }
        Err(self.restless())
    }

    async fn perform(&self, executor: &Executor, write: Write) -> Outcome {
        let action = Action { side: Side::Hub, target: self.target.clone(), write };
        let done = executor.execute(vec![vec![action]]).await;
        done.into_iter().flatten().next().unwrap_or(Outcome::NotTried)
    }

    /// Reads it again, and refuses if it is not what it was.
    async fn again(&mut self, executor: &Executor) -> Result<()> {
        let what = &self.what;
        let Some(now) = Self::read(executor, self.target.clone(), what.clone()).await? else {
            return Err(Refused(format!("{what} went away meanwhile; nothing was done")).into());
        };
        if now.uid() != self.uid() {
            let hint = format!("{what} was replaced by another one meanwhile; look again");
            return Err(Refused(hint).into());
        }
        let changed = differences(&self.object, &now.object);
        if self.same == Same::State && !changed.is_empty() {
            let some: Vec<&str> = changed.iter().take(MOST_FIELDS).map(String::as_str).collect();
            let dots = if changed.len() > MOST_FIELDS { ", …" } else { "" };
            return Err(PlanChanged(format!(
                "{what} changed while it was looked at ({}{dots}); nothing was deleted. Look again \
                 with `cleat preview`",
                some.join(", ")
            ))
            .into());
        }
        self.object = now.object;
        Ok(())
    }

    fn restless(&self) -> anyhow::Error {
        Refused(format!("{} changes all the time; look again", self.what)).into()
    }
}
