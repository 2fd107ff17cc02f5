//! What a work's rules make of the state of its objects: values to report, and conditions.
//!
//! A state is judged once. A work that asks for polling has its objects judged at most once per
//! interval, one that asks for watching whenever they change; neither costs anything while they do
//! not.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use cleat_api::manifestwork::{FeedbackScrapeType, ManifestWorkSpec};
use cleat_core::id::Id;
use cleat_core::work::judge::judge;
use cleat_core::work::observed::{Feedback, Judged, Observed, Seen};
use cleat_core::work::wanted::{self, Rules};
use cleat_runtime::execute::Read;
use cleat_runtime::mirror::Meta;
use jiff::Timestamp;
use serde_json::Value;

use super::memory::Judgement;
use super::{Context, Key};

impl Context {
    /// Whether an object has to be read for its rules, now.
    pub(super) fn is_due(
        &self,
        key: &Key,
        id: &Id,
        meta: &Meta,
        rules: &Rules<'_>,
        now: Timestamp,
    ) -> bool {
        if rules.feedback.is_empty() && rules.conditions.is_empty() {
            return false;
        }
        let digest = digest(rules);
        self.memory.with(key, |life| {
            let before = life.objects.get(id).and_then(|object| object.judged.as_ref());
            let Some(before) = before.filter(|before| before.digest == digest) else { return true };
            if before.resource_version == meta.resource_version {
                return false;
            }
            let next = before.at.checked_add(self.config.status_interval).unwrap_or(now);
            if rules.scrape == FeedbackScrapeType::Watch || next <= now {
                return true;
            }
            life.wake = Some(life.wake.map_or(next, |wake| wake.min(next)));
            false
        })
    }

    /// Judges what was read, and fills in what was judged before.
    pub(super) fn judge(
        &self,
        key: &Key,
        seen: &mut Observed,
        spec: &ManifestWorkSpec,
        read: &BTreeMap<Id, Read>,
    ) {
        let Observed { wanted, live, now, .. } = seen;
        for wanted in wanted {
            let Some(id) = wanted.place.id() else { continue };
            let rules = wanted::rules(&spec.manifest_configs, id);
            if rules.feedback.is_empty() && rules.conditions.is_empty() {
                continue;
            }
            let digest = digest(&rules);
            wanted.judged = self.memory.with(key, |life| {
                let object = life.objects.entry(id.clone()).or_default();
                if let Some(Read::Present(state)) = read.get(id) {
                    let version =
                        state.pointer("/metadata/resourceVersion").and_then(Value::as_str);
                    object.judged = Some(Box::new(Judgement {
                        resource_version: version.unwrap_or_default().into(),
                        digest,
                        at: *now,
                        judged: judge(state, &rules, self.config.report_structures),
                    }));
                }
                if let Some(Seen::Absent) = live.get(id) {
                    object.judged = None;
                }
                match &object.judged {
                    Some(before) if before.digest == digest => before.judged.clone(),
                    _ => Judged { feedback: Feedback::Unread, conditions: Vec::new() },
                }
            });
        }
    }
}

fn digest(rules: &Rules<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{rules:?}").hash(&mut hasher);
    hasher.finish()
}
