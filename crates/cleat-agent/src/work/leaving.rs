//! What a pass has to know besides when the cluster may be leaving its hub: whether it is, what the
//! namespaces and definitions hold that are about to go, and whether what seems gone is.

use std::collections::BTreeMap;

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::RemoveStrategy;
use cleat_core::id::Id;
use cleat_core::leave::agent::{Source, Standing};
use cleat_core::work;
use cleat_core::work::asking::must_ask;
use cleat_core::work::contents::Contents;
use cleat_core::work::observed::{Book, Hub, Ledger, Observed};
use cleat_core::work::retire;
use cleat_runtime::contents::contents;
use cleat_runtime::mirror::{Look, Meta};
use jiff::{SignedDuration, Timestamp};

use super::{Context, Key};
use crate::leave::{Presence, ask};

/// How soon to look whether the hub has heard what was handed over.
const HEARD: SignedDuration = SignedDuration::from_millis(500);

impl Context {
    /// What the hub has heard to stay of what it does not have any more.
    pub(super) fn told(&self) -> Vec<LeftObject> {
        self.config.presence.as_ref().map(Presence::told).unwrap_or_default()
    }

    /// Hands what stays of a work that the hub does not have to the leave, which tells the hub; says
    /// when to look whether it has heard.
    pub(super) fn hand_over(&self, key: &Key, seen: &Observed) -> Option<Timestamp> {
        let (Key::Work(name), Some(presence)) = (key, &self.config.presence) else { return None };
        presence.strand(Source::Work(name.clone()), work::stranded(seen)?);
        seen.now.checked_add(HEARD).ok()
    }

    /// Whether the cluster is leaving, and what may be believed of the work accordingly.
    pub(super) async fn leaving(
        &self,
        key: &Key,
        hub: Hub,
        ledger: &Ledger,
    ) -> (Hub, Option<RemoveStrategy>) {
        let Some(presence) = &self.config.presence else { return (hub, None) };
        let ours = matches!(key, Key::Work(_));
        let standing = presence.standing();
        if ours && must_ask(&standing, &hub, ledger) {
            // While the hub cannot be asked, nothing is let go of.
            return match ask(presence, &self.executor, &self.config.cluster).await {
                Ok(leaving) => (hub, leaving),
                Err(why) => (Hub::Unknown(why), None),
            };
        }
        match standing {
            Standing::Leaving(strategy) => (hub, ours.then_some(strategy)),
            Standing::Member => (hub, None),
            Standing::Unknown => {
                let why = "whether the cluster is leaving is not known yet";
                (Hub::Unknown(why.to_owned()), None)
            }
            // Whoever asked for eviction wants what a hub does not have any more to go; but a cluster
            // of which nothing was to be removed may have left, and nobody could tell it.
            Standing::Unrecognized(_)
                if self.agent.eviction_grace.is_some()
                    && matches!(hub, Hub::Absent)
                    && presence.strategy() == Some(RemoveStrategy::Required) =>
            {
                (hub, None)
            }
            Standing::Unrecognized(why) => {
                let why = format!("the hub answers but does not know this cluster: {why}");
                (Hub::Unknown(why), None)
            }
        }
    }

    /// What other works of this hub keep of what a pass may be about to delete because the cluster leaves.
    pub(super) fn kept_elsewhere(
        &self,
        ledger: &Ledger,
        leaving: Option<RemoveStrategy>,
        own: &str,
    ) -> Result<BTreeMap<Id, String>, String> {
        match ledger {
            Ledger::Present(book) if leaving == Some(RemoveStrategy::Required) => {
                self.kept.elsewhere(&self.ledgers, own, book)
            }
            _ => Ok(BTreeMap::new()),
        }
    }

    /// What the namespaces and definitions hold that would go next.
    pub(super) async fn contents(
        &self,
        seen: &Observed,
        looks: &BTreeMap<Id, Look>,
    ) -> BTreeMap<Id, Contents> {
        let mut found = BTreeMap::new();
        let Ledger::Present(book) = &seen.ledger else { return found };
        for id in retire::holders_due(seen, book, |id| is_let_go(looks.get(id), book)) {
            if let Some(Look::Present(_)) = looks.get(id) {
                let (client, hash) = (&self.config.cluster_client, &self.agent.hub_hash);
                found.insert(id.clone(), contents(client, &self.kinds, id, hash).await);
            }
        }
        found
    }

    /// Everything that seems gone, when nothing else is left to do: a cluster leaves only after the
    /// server itself has said so. What went with its definition cannot be asked for.
    pub(super) fn last_reads(&self, seen: &Observed, looks: &BTreeMap<Id, Look>) -> Vec<Id> {
        let Ledger::Present(book) = &seen.ledger else { return Vec::new() };
        if seen.leaving != Some(RemoveStrategy::Required) || !book.deleting {
            return Vec::new();
        }
        let ids = book.ids();
        if !ids.iter().all(|id| is_let_go(looks.get(id), book)) {
            return Vec::new();
        }
        let absent = |id: &&Id| {
            let seems_gone = matches!(looks.get(id), Some(Look::Absent));
            seems_gone && self.mirror.look(id) != Look::NoSuchKind
        };
        ids.into_iter().filter(absent).cloned().collect()
    }
}

/// Whether nothing of ours is to be seen there.
fn is_let_go(look: Option<&Look>, book: &Book) -> bool {
    match look {
        Some(Look::Absent) => true,
        Some(Look::Present(meta)) => !is_marked(meta, book),
        Some(Look::NoSuchKind | Look::Unknown(_)) | None => false,
    }
}

fn is_marked(meta: &Meta, book: &Book) -> bool {
    meta.owner_references.iter().any(|owner| *owner.uid == *book.uid)
}
