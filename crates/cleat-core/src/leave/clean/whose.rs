//! Whether the agent on a cluster is the one whose records are worked off: a place for credentials is
//! one hub's, and that hub need not be ours any more.

use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use cleat_api::leftoverrecord::LeftoverRecord;

use super::Refusal;

/// Where an agent of the cluster may be, and what tells whose it is.
#[derive(Clone, Debug, Default)]
pub struct Lodging {
    pub namespace: String,
    /// The addresses of the hubs that are named there, by their hash. Nobody is there if none is.
    pub hubs: BTreeMap<String, String>,
    /// Under which name our hub has this very cluster now, because it joined again.
    pub joined: Option<String>,
}

/// That the agent there is the one of these records, or nobody's. `told` is the hash of the address by
/// which somebody says that the agent knew this hub.
pub fn agent_is_ours(
    records: &[LeftoverRecord],
    lodging: &Lodging,
    told: Option<&str>,
) -> Result<(), Refusal> {
    let Lodging { namespace, hubs, joined } = lodging;
    if let Some(name) = joined {
        return Err(Refusal::Joined { name: name.clone() });
    }
    let known = records.iter().map(|one| one.spec.hub_hash.as_str()).filter(|one| !one.is_empty());
    let ours: BTreeSet<&str> = known.chain(told).collect();
    match hubs.iter().find(|(hash, _)| !ours.contains(hash.as_str())) {
        None => Ok(()),
        Some((_, server)) => {
            let (namespace, server) = (namespace.clone(), server.to_owned());
            Err(match ours.is_empty() {
                true => Refusal::AgentOfSomeHub { namespace, server },
                false => Refusal::AgentOfOtherHub { namespace, server },
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(hashes: &[&str]) -> alloc::vec::Vec<LeftoverRecord> {
        let record = |hash: &&str| {
            let mut record = LeftoverRecord::new("r", Default::default());
            record.spec.hub_hash = (*hash).to_owned();
            record
        };
        hashes.iter().map(record).collect()
    }

    fn lodging(hubs: &[&str]) -> Lodging {
        let hubs = hubs.iter().map(|one| ((*one).to_owned(), alloc::format!("https://{one}")));
        Lodging { namespace: "home".to_owned(), hubs: hubs.collect(), joined: None }
    }

    #[test]
    fn only_an_agent_of_our_hub_is_taken_away() {
        let ours = |hashes: &[&str], hubs: &[&str], told| {
            agent_is_ours(&records(hashes), &lodging(hubs), told)
        };
        assert_eq!(ours(&["a"], &[], None), Ok(()));
        assert_eq!(ours(&[""], &[], None), Ok(()));
        assert_eq!(ours(&["a"], &["a"], None), Ok(()));
        assert_eq!(ours(&["b", "a"], &["a"], None), Ok(()));
        // One hub under two addresses, and somebody says so.
        assert_eq!(ours(&["a"], &["b"], Some("b")), Ok(()));
        assert_eq!(ours(&[""], &["b"], Some("b")), Ok(()));
        for (hashes, hubs, told, expected) in [
            (&["a"], &["b"] as &[&str], None, "is the agent of https://b, and"),
            // Somebody is about to join another hub from there.
            (&["a"], &["a", "b"], None, "is the agent of https://b, and"),
            (&["a"], &["b"], Some("c"), "is the agent of https://b, and"),
            (&[""], &["b"], None, "add --hub-server https://b if"),
        ] {
            let refused = ours(hashes, hubs, told).unwrap_err();
            assert!(alloc::format!("{refused}").contains(expected), "{refused}");
        }
    }

    #[test]
    fn the_agent_of_a_cluster_that_joined_again_stays() {
        let joined = Lodging { joined: Some("c1".to_owned()), ..lodging(&["a"]) };
        let refused = agent_is_ours(&records(&["a"]), &joined, Some("a"));
        assert_eq!(refused, Err(Refusal::Joined { name: "c1".to_owned() }));
    }
}
