//! A work as it would be seen if it said something else. Only reads, and nothing of it is remembered:
//! the work's own passes go on as if nobody had asked.

use cleat_api::manifestwork::ManifestWorkSpec;
use cleat_api::removalpreview::ProposedWork;
use cleat_core::id::Id;
use cleat_core::work::observed::{Hub, Observed, Seen};
use cleat_core::work::wanted;
use cleat_runtime::mirror::Look;

use super::{Context, Key, recall, records, sight};

impl Context {
    /// `seen`: the last look at the work as it is. Everything that the proposed one wants is read
    /// whole, and so is everything that its ledger has.
    pub(in crate::work) async fn imagine(
        &self,
        mut seen: Observed,
        proposed: &ProposedWork,
    ) -> Result<Observed, String> {
        let spec: ManifestWorkSpec = serde_json::from_value(proposed.spec.clone())
            .map_err(|error| format!("what is proposed cannot be read: {error}"))?;
        if let Hub::Unknown(_) = seen.hub {
            return Ok(seen);
        }
        let key = Key::Work(seen.name.clone());
        let (_, current) = self.hub(&key);
        let changed = current.as_ref() != Some(&spec);
        let cluster = &self.config.cluster;
        let mut work = records::proposed(cluster, seen.hub.work(), proposed, &spec, changed);
        let mappings = self.mappings(&spec).await;
        seen.wanted = wanted::wanted(spec.clone(), &work.status, &mappings);
        // Which of the ledger's objects are looked at depends on whether there is a work.
        seen.hub = Hub::Work(work.clone());
        let targets = self.targets(&seen).await;
        work.read_only = wanted::read_only(&spec.manifest_configs, targets.keys());
        seen.hub = Hub::Work(work);
        self.memory.known(&key, |life| recall(life, &mut seen));
        let reads = self.read(&targets, targets.keys().cloned().collect()).await;
        let unread = || Seen::Unknown("it was not looked at".to_owned());
        let look =
            |id: &Id| reads.get(id).map_or_else(unread, |read| sight(&Look::Absent, Some(read)));
        seen.live = targets.keys().map(|id| (id.clone(), look(id))).collect();
        seen.versions = targets;
        self.permit(None, &mut seen, &spec).await;
        Ok(seen)
    }
}
