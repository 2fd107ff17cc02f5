//! Policies of a cluster that leaves: what they made goes or stays as the strategy says, nothing of
//! theirs is forgotten, and no copy of them is left.

use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result};
use cleat_api::configurationpolicy::ConfigurationPolicy;
use cleat_api::leftoverrecord::Part;
use cleat_api::managedcluster::RemoveStrategy::{Needless, Required};
use cleat_api::manifestwork::LEAVE_FINALIZER;
use cleat_api::policy::Policy;
use cleat_api::removalpreview::{PreviewVerdict, PreviewedObject, RemovalPreview};
use cleat_hub::clusters;
use cleat_runtime::tasks::Tasks;
use cleat_world::eventually;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::guard::Guard;
use super::party::Party;
use super::required::{definition, gear};
use super::stale::Half;
use super::unreachable::unrecognized;
use crate::{create, delete, gone, seen};

impl Party {
    fn replicas(&self) -> Api<Policy> {
        Api::namespaced(self.fleet.hub.clone(), &self.name)
    }

    /// A policy with a template for each of the maps, and what deleting it does to the map.
    fn replica(&self, name: &str, maps: &[(&str, &str)]) -> Value {
        let templates = maps.iter().map(|(map, prune)| {
            let mut wanted = self.map(map);
            wanted["data"] = json!({ "by": "policy" });
            template(map, prune, wanted)
        });
        self.replica_of(name, templates.collect())
    }

    pub(super) fn replica_of(&self, name: &str, templates: Vec<Value>) -> Value {
        json!({
            "metadata": { "name": name, "labels": {
                "policy.open-cluster-management.io/root-policy": name,
                "policy.open-cluster-management.io/cluster-name": self.name,
                "policy.open-cluster-management.io/cluster-namespace": self.name,
            } },
            "spec": {
                "disabled": false, "remediationAction": "enforce",
                "policy-templates": templates,
            },
        })
    }

    /// What the cluster says would become of everything if it left now.
    pub(super) async fn foreseen(&self, strategy: &str) -> Result<Vec<PreviewedObject>> {
        let questions: Api<RemovalPreview> = Api::namespaced(self.fleet.hub.clone(), &self.name);
        let question = json!({ "metadata": { "name": "leave" }, "spec": { "leave": strategy } });
        create(&questions, question).await?;
        let answered = |one: &RemovalPreview| {
            one.status.as_ref().is_some_and(|status| status.answered_at.is_some())
        };
        let status = seen(&questions, "leave", answered).await?.status.unwrap_or_default();
        assert_eq!(status.problems, [] as [String; 0]);
        Ok(status.objects)
    }

    /// Sends a policy and waits until its maps are there and the hub was told which they are.
    pub(super) async fn policy(&self, name: &str, maps: &[(&str, &str)]) -> Result<Vec<ConfigMap>> {
        self.enforced(self.replica(name, maps)).await?;
        let mut made = Vec::new();
        for (map, _) in maps {
            made.push(self.maps().get(map).await?);
        }
        Ok(made)
    }

    /// Sends a policy and waits until the hub was told what each of its templates made.
    pub(super) async fn enforced(&self, replica: Value) -> Result<()> {
        let sent = create(&self.replicas(), replica).await?;
        let count = sent.spec.policy_templates.len();
        let told = |policy: &Policy| {
            policy.status.as_ref().is_some_and(|status| {
                let known = status.objects.iter().filter(|one| !one.uid.is_empty());
                status.compliant.as_deref() == Some("Compliant") && known.count() == count
            })
        };
        let name = sent.name_any();
        seen(&self.replicas(), &name, told).await.context("the policy was not enforced")?;
        Ok(())
    }

    /// Neither policies nor what their templates became are on the cluster.
    pub(super) async fn no_policies(&self) -> Result<()> {
        let all = ListParams::default();
        let copies: Api<Policy> = Api::namespaced(self.cluster.clone(), &self.name);
        assert_eq!(names(copies.list(&all).await?.items), [""; 0]);
        let templates: Api<ConfigurationPolicy> = Api::namespaced(self.cluster.clone(), &self.name);
        assert_eq!(names(templates.list(&all).await?.items), [""; 0]);
        Ok(())
    }

    /// The hub loses a policy while nobody looks after it.
    async fn lose_policy(&mut self, name: &str) -> Result<()> {
        self.stop_agent().await;
        let replica = self.replicas().get(name).await?;
        delete(&self.replicas(), name).await?;
        let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        self.replicas().patch(name, &Default::default(), &free).await?;
        gone(&self.replicas(), &replica).await
    }

    async fn stays(&self, made: &[ConfigMap]) -> Result<()> {
        for one in made {
            let live = self.maps().get(&one.name_any()).await.context("it is to stay")?;
            assert_eq!((live.uid(), live.metadata.deletion_timestamp), (one.uid(), None));
        }
        Ok(())
    }

    /// Name, source and reason of everything on record that is no part of a policy itself; each with
    /// the uid of what is there.
    async fn recorded(&self) -> Result<Vec<[String; 3]>> {
        let mut recorded = Vec::new();
        for one in self.on_record().await?.into_iter().filter(|one| one.part.is_none()) {
            let live = self.maps().get(&one.name).await?;
            assert_eq!(Some(&one.uid), live.uid().as_ref(), "{one:?}");
            recorded.push([one.name, one.source, one.why]);
        }
        Ok(recorded)
    }
}

/// A template that makes an object, and what deleting it does to that.
pub(super) fn template(name: &str, prune: &str, wanted: Value) -> Value {
    json!({ "objectDefinition": {
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
        "metadata": { "name": name },
        "spec": {
            "remediationAction": "enforce", "pruneObjectBehavior": prune,
            "object-templates": [{ "complianceType": "musthave", "objectDefinition": wanted }],
        },
    }})
}

fn names<K: kube::Resource<DynamicType = ()>>(all: Vec<K>) -> Vec<String> {
    all.iter().map(|one| one.name_any()).collect()
}

#[tokio::test]
async fn a_needless_leave_deleted_what_policies_had_made() -> Result<()> {
    let mut party = Party::new("needlessp", Needless).await?;
    create(&party.maps(), party.map("found")).await?;
    let prunes = [("all", "DeleteAll"), ("found", "DeleteAll"), ("made", "DeleteIfCreated")];
    let mut made = party.policy("root.p", &prunes).await?;
    made.extend(party.policy("root.q", &[("none", "None")]).await?);
    party.leave().await?;
    party.left().await?;
    party.stays(&made).await?;
    let kept = "kept by removeStrategy Needless";
    let expected = [
        ["all", "root.p", kept],
        ["found", "root.p", kept],
        ["made", "root.p", kept],
        ["none", "root.q", "kept by pruneObjectBehavior None"],
    ];
    assert_eq!(party.recorded().await?, expected);
    party.no_policies().await?;
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn what_policies_do_not_prune_was_on_no_record_and_their_copies_stayed() -> Result<()> {
    let mut party = Party::new("prunes", Required).await?;
    party.policy("root.p", &[("goes", "DeleteIfCreated"), ("stays", "None")]).await?;
    let kept = party.policy("root.q", &[("none", "None")]).await?;
    party.leave().await?;
    party.left().await?;
    assert!(party.maps().get_opt("goes").await?.is_none(), "it was to be pruned");
    party.stays(&kept).await?;
    let why = "kept by pruneObjectBehavior None";
    assert_eq!(party.recorded().await?, [["none", "root.q", why], ["stays", "root.p", why]]);
    party.no_policies().await?;
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn a_policy_deleted_its_namespace_with_what_others_had_put_there() -> Result<()> {
    let mut party = Party::new("sparep", Required).await?;
    let (shared, own) = (format!("{}-shared", party.name), format!("{}-own", party.name));
    let namespace = |template_name: &str, name: &str| {
        let wanted =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        template(template_name, "DeleteIfCreated", wanted)
    };
    let map = |name: &str, namespace: &str| {
        let metadata = json!({ "name": name, "namespace": namespace });
        let wanted = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
        template(name, "DeleteIfCreated", wanted)
    };
    // What other templates of the policy made in a namespace does not keep it.
    let templates = vec![
        namespace("shared", &shared),
        map("first", &shared),
        namespace("own", &own),
        map("second", &own),
    ];
    party.enforced(party.replica_of("root.p", templates)).await?;
    let namespaces: Api<Namespace> = Api::all(party.cluster.clone());
    let made = namespaces.get(&shared).await?;
    let maps: Api<ConfigMap> = Api::namespaced(party.cluster.clone(), &shared);
    let theirs = create(&maps, json!({ "metadata": { "name": "theirs" } })).await?;
    // A preview says of each namespace what then becomes of it.
    let foreseen = party.foreseen("Required").await?;
    let of = |name: &str| -> Vec<(PreviewVerdict, &str)> {
        let one = foreseen.iter().filter(|one| one.name == name);
        one.map(|one| (one.verdict, one.why.as_str())).collect()
    };
    let why = format!("it holds what is not ours: configmaps {shared}/theirs");
    assert_eq!(of(&shared), [(PreviewVerdict::Keep, &*why)], "{foreseen:?}");
    for goes in [&own, "first", "second"] {
        assert_eq!(of(goes), [(PreviewVerdict::Delete, "it goes with its policy")], "{foreseen:?}");
    }
    party.leave().await?;
    party.left().await?;
    let live = maps.get("theirs").await.context("it is not ours")?;
    assert_eq!((live.uid(), live.metadata.deletion_timestamp), (theirs.uid(), None));
    let live = namespaces.get(&shared).await.context("somebody else has something there")?;
    assert_eq!((live.uid(), live.metadata.deletion_timestamp), (made.uid(), None));
    assert!(maps.get_opt("first").await?.is_none(), "it was to be pruned");
    assert!(namespaces.get_opt(&own).await?.is_none(), "nobody else had anything there");
    let uid = made.uid().unwrap_or_default();
    let left = party.on_record().await?;
    let left: Vec<_> = left.iter().filter(|one| one.part.is_none()).collect();
    let told: Vec<_> =
        left.iter().map(|one| [&*one.resource, &*one.name, &*one.uid, &*one.source]).collect();
    assert_eq!(told, [["namespaces", &*shared, &*uid, "root.p"]]);
    assert_eq!(left[0].why, why);
    party.no_policies().await?;
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn a_policy_that_could_not_be_pruned_was_never_named() -> Result<()> {
    let mut party = Party::new("stuckp", Required).await?;
    party.policy("root.p", &[("orders", "DeleteIfCreated"), ("free", "DeleteIfCreated")]).await?;
    let guard = Guard::refusing(&party, "orders").await?;
    party.leave().await?;
    let said = party.says("UnjoinFailed", "True", "orders are open").await?;
    let template = format!("policy root.p: configurationpolicies {}/orders (", party.name);
    assert!(said.starts_with(&template), "{said}");
    let object = format!("Kind=ConfigMap \"orders\" in namespace {}", party.name);
    assert!(said.contains(&object), "{said}");
    party.absent("free").await?;
    guard.allow();
    party.left().await?;
    assert!(party.maps().get_opt("orders").await?.is_none());
    party.no_policies().await?;
    party.stop_agent().await;
    guard.remove().await
}

/// Somebody takes a template's hold away: nobody prunes what it made any more.
#[tokio::test]
async fn what_a_policy_was_to_prune_stayed_and_was_on_no_record() -> Result<()> {
    for goes in [true, false] {
        let mut party = Party::new("unpruned", Required).await?;
        let made = party.policy("root.p", &[("orders", "DeleteIfCreated")]).await?;
        let guard = Guard::refusing(&party, "orders").await?;
        party.leave().await?;
        party.says("UnjoinFailed", "True", "orders are open").await?;
        let templates: Api<ConfigurationPolicy> =
            Api::namespaced(party.cluster.clone(), &party.name);
        let stripped = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        templates.patch("orders", &Default::default(), &stripped).await?;
        let named = format!("policy root.p: configmaps {}/orders (it is there", party.name);
        let said = party.says("UnjoinFailed", "True", &named).await?;
        assert!(said.contains("delete it, or let it stay"), "{said}");
        party.stays(&made).await?;
        guard.allow();
        if goes {
            delete(&party.maps(), "orders").await?;
        } else {
            let needless = json!({ "spec": { "removeStrategy": "Needless" } });
            party.fleet.patch(&party.name, needless).await?;
        }
        party.left().await?;
        let kept = ["orders", "root.p", "kept by removeStrategy Needless"];
        let expected = if goes { vec![] } else { vec![kept.map(ToOwned::to_owned)] };
        assert_eq!(party.recorded().await?, expected);
        party.no_policies().await?;
        party.stop_agent().await;
        guard.remove().await?;
    }
    Ok(())
}

/// What a policy made is of a group that nobody answers for: nobody can tell whether it is there.
#[tokio::test]
async fn a_policy_that_could_not_say_what_stays_hung_a_leave_without_a_word() -> Result<()> {
    let mut party = Party::new("mute", Required).await?;
    let group = format!("{}.example", party.name);
    let definitions: Api<CustomResourceDefinition> = Api::all(party.cluster.clone());
    create(&definitions, definition(&group)).await?;
    let wanted = template("gear", "DeleteIfCreated", gear(&group, &party.name));
    party.enforced(party.replica_of("root.p", vec![wanted])).await?;
    party.stop_agent().await;
    let half = Half::new(&party.cluster, &group);
    party.start_agent_on(Client::new(half.clone(), "default"));
    party.leave().await?;
    let said = party.says("UnjoinFailed", "True", "what stays of it (it cannot be told").await?;
    assert!(said.starts_with("policy root.p: "), "{said}");
    let made = format!("configurationpolicies {}/gear made Gear g", party.name);
    for part in [&made, &group, "kubectl get apiservices"] {
        assert!(said.contains(part), "{said}");
    }
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, "v1", "Gear"));
    let gears: Api<DynamicObject> = Api::namespaced_with(party.cluster.clone(), &party.name, &kind);
    let live = gears.get("g").await.context("nobody could tell what stays")?;
    assert_eq!(live.metadata.deletion_timestamp, None);
    half.stale.store(false, Ordering::SeqCst);
    party.left().await?;
    assert!(gears.get_opt("g").await?.is_none(), "it was to be pruned");
    party.no_policies().await?;
    party.stop_agent().await;
    delete(&definitions, &format!("gears.{group}")).await
}

#[tokio::test]
async fn what_a_policy_could_not_prune_stays_when_the_strategy_changes() -> Result<()> {
    let mut party = Party::new("changesp", Required).await?;
    let made = party.policy("root.p", &[("stuck", "DeleteIfCreated")]).await?;
    party.policy("root.q", &[("goes", "DeleteIfCreated")]).await?;
    let guard = Guard::refusing(&party, "stuck").await?;
    party.leave().await?;
    party.absent("goes").await?;
    // Until its template is gone too, it is not known that nothing of it is left.
    let templates: Api<ConfigurationPolicy> = Api::namespaced(party.cluster.clone(), &party.name);
    eventually("the end of the template", || async {
        Ok(templates.get_opt("goes").await?.is_none().then_some(()))
    })
    .await?;
    party.fleet.patch(&party.name, json!({ "spec": { "removeStrategy": "Needless" } })).await?;
    party.left().await?;
    party.stays(&made).await?;
    assert_eq!(party.recorded().await?, [["stuck", "root.p", "kept by removeStrategy Needless"]]);
    party.no_policies().await?;
    party.stop_agent().await;
    guard.remove().await
}

#[tokio::test]
async fn a_lost_cluster_with_a_policy_that_prunes_never_left() -> Result<()> {
    let mut party = Party::new("lostp", Required).await?;
    let prunes = [("all", "DeleteAll"), ("none", "None")];
    let made = party.policy("root.p", &prunes).await?;
    party.link.cut();
    party.leave().await?;
    party.says("UnjoinFailed", "True", "unreachable since").await?;
    let declare = json!({ "metadata": { "annotations": {
        "cleat.dev/cluster-destroyed": party.name,
    } } });
    party.fleet.patch(&party.name, declare).await?;
    party.left().await?;
    let why = "the cluster was declared destroyed";
    assert_eq!(party.recorded().await?, [["all", "root.p", why], ["none", "root.p", why]]);
    let copies: Api<Policy> = Api::namespaced(party.cluster.clone(), &party.name);
    let copy = copies.get("root.p").await?.uid();
    let left = party.on_record().await?;
    assert!(left.iter().any(|one| one.part == Some(Part::Copy) && Some(&one.uid) == copy.as_ref()));
    // It comes back, and its hub does not know it.
    party.link.restore();
    unrecognized(&party).await?;
    party.stays(&made).await?;
    party.stop_agent().await;
    // What the policy would have pruned is worked off, and nothing else.
    let report = party.clean(false).await?;
    let stays: Vec<_> = report.stays.iter().map(|(id, _)| &*id.name).collect();
    assert_eq!((stays, report.stuck), (vec!["none"], vec![]));
    assert!(party.maps().get_opt("all").await?.is_none());
    party.no_policies().await?;
    party.stays(&made[1..]).await
}

/// The agent of a cluster that came back lives, and makes anew what is taken from under a policy.
#[tokio::test]
async fn copies_of_policies_stayed_on_a_lost_cluster_and_were_enforced_for_ever() -> Result<()> {
    let mut party = Party::new("copies", Required).await?;
    let made = party.policy("root.p", &[("goes", "DeleteIfCreated"), ("none", "None")]).await?;
    party.link.cut();
    let declare = json!({ "metadata": { "annotations": {
        "cleat.dev/cluster-destroyed": party.name,
    } } });
    party.fleet.patch(&party.name, declare).await?;
    party.leave().await?;
    party.left().await?;
    party.link.restore();
    unrecognized(&party).await?;
    let report = party.clean(false).await?;
    let stays: Vec<_> = report.stays.iter().map(|(id, _)| &*id.name).collect();
    assert_eq!((stays, report.stuck), (vec!["none"], vec![]));
    party.no_policies().await?;
    assert!(party.maps().get_opt("goes").await?.is_none());
    party.stays(&made[1..]).await?;
    party.stop_agent().await;
    Ok(())
}

/// An agent that told nothing of copies, and nothing of what it made since: all is known by names and
/// marks, and is on record before a template goes that lists it.
#[tokio::test]
async fn what_no_agent_had_told_of_a_policy_is_found_by_its_marks() -> Result<()> {
    for (topic, strategy) in [("untoldr", Required), ("untoldn", Needless)] {
        let mut party = Party::new(topic, strategy).await?;
        let made = party.policy("root.p", &[("goes", "DeleteIfCreated"), ("none", "None")]).await?;
        party.stop_agent().await;
        let silent = Patch::Merge(json!({ "status": { "copies": null, "objects": null } }));
        party.replicas().patch_status("root.p", &Default::default(), &silent).await?;
        party.lose().await?;
        let left = party.on_record().await?;
        let known: Vec<_> = left.iter().map(|one| (one.part, &*one.name, &*one.uid)).collect();
        let place = (Some(Part::Place), &*party.name, "");
        let copy = (Some(Part::Copy), "root.p", "");
        assert_eq!(known, [(None, "goes", ""), (None, "none", ""), place, copy]);
        assert!(left[..2].iter().all(|one| one.believed && one.why.contains("never told")));
        let report = party.clean(false).await?;
        let stays: Vec<_> = report.stays.iter().map(|(id, _)| &*id.name).collect();
        let kept = if strategy == Required { vec!["none"] } else { vec!["goes", "none"] };
        assert_eq!((stays, report.stuck), (kept, vec![]));
        party.no_policies().await?;
        assert_eq!(party.maps().get_opt("goes").await?.is_some(), strategy == Needless);
        party.stays(&made[1..]).await?;
        let names: Vec<_> = party.on_record().await?.into_iter().map(|one| one.name).collect();
        let listed = |name: &str| names.iter().any(|one| one == name);
        assert!(listed("goes") && listed("none"), "{names:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_hub_that_forgot_the_cluster_made_policies_prune() -> Result<()> {
    let mut party = Party::new("forgotp", Required).await?;
    let made = party.policy("root.p", &[("m", "DeleteAll")]).await?;
    party.fleet.tasks.shutdown().await;
    // As if the hub were restored from before the cluster joined.
    let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    let replica = party.replicas().get("root.p").await?;
    party.fleet.patch(&party.name, json!({ "metadata": { "finalizers": null } })).await?;
    party.leave().await?;
    gone(&party.fleet.clusters(), &party.joined).await?;
    unrecognized(&party).await?;
    crate::delete(&party.replicas(), "root.p").await?;
    party.replicas().patch("root.p", &Default::default(), &free).await?;
    gone(&party.replicas(), &replica).await?;
    // A person on the cluster deletes the copy too; what it made is not for this hub to take.
    let copies: Api<Policy> = Api::namespaced(party.cluster.clone(), &party.name);
    crate::delete(&copies, "root.p").await?;
    let templates: Api<ConfigurationPolicy> = Api::namespaced(party.cluster.clone(), &party.name);
    seen(&templates, "m", |one: &ConfigurationPolicy| {
        let details = one.status.iter().flat_map(|status| &status.compliancy_details);
        let mut said =
            details.flat_map(|one| &one.conditions).filter_map(|one| one.message.as_deref());
        said.any(|said| said.contains("does not know this cluster"))
    })
    .await?;
    party.stays(&made).await?;
    party.stop_agent().await;
    // Nobody else lets go of it.
    templates.patch("m", &Default::default(), &free).await?;
    Ok(())
}

#[tokio::test]
async fn what_a_policy_left_that_the_hub_had_lost_was_on_no_record() -> Result<()> {
    let mut party = Party::new("strandp", Needless).await?;
    let made = party.policy("root.p", &[("m", "DeleteIfCreated")]).await?;
    party.lose_policy("root.p").await?;
    party.start_agent();
    party.leave().await?;
    party.left().await?;
    party.stays(&made).await?;
    assert_eq!(party.recorded().await?, [["m", "root.p", "kept by removeStrategy Needless"]]);
    party.no_policies().await?;
    party.stop_agent().await;
    Ok(())
}

/// The hub has lost the policy, and somebody takes its template's hold away: nobody prunes what it made
/// any more, and no status of a replica could say so.
#[tokio::test]
async fn what_a_policy_that_the_hub_had_lost_was_to_prune_was_believed_to_be_gone() -> Result<()> {
    let mut party = Party::new("strandr", Required).await?;
    let made = party.policy("root.p", &[("orders", "DeleteIfCreated")]).await?;
    party.lose_policy("root.p").await?;
    let guard = Guard::refusing(&party, "orders").await?;
    party.start_agent();
    party.leave().await?;
    let templates: Api<ConfigurationPolicy> = Api::namespaced(party.cluster.clone(), &party.name);
    seen(&templates, "orders", |one: &ConfigurationPolicy| {
        one.metadata.deletion_timestamp.is_some()
    })
    .await?;
    let stripped = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    templates.patch("orders", &Default::default(), &stripped).await?;
    let named = format!("policy root.p waits for configmaps {}/orders: it is there", party.name);
    party.says("ResourcesReleased", "False", &named).await?;
    party.stays(&made).await?;
    guard.allow();
    delete(&party.maps(), "orders").await?;
    party.left().await?;
    assert_eq!(party.on_record().await?, []);
    party.no_policies().await?;
    party.stop_agent().await;
    guard.remove().await
}

/// What was made in a version of its kind that the cluster does not serve any more is there in another.
#[tokio::test]
async fn what_a_policy_made_in_a_version_that_is_served_no_more_was_forgotten() -> Result<()> {
    let mut party = Party::new("versions", Needless).await?;
    let group = format!("{}.example", party.name);
    let definitions: Api<CustomResourceDefinition> = Api::all(party.cluster.clone());
    let mut both = definition(&group);
    let mut second = both["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    both["spec"]["versions"] = json!([both["spec"]["versions"][0], second]);
    create(&definitions, both.clone()).await?;
    let wanted = template("gear", "None", gear(&group, &party.name));
    party.enforced(party.replica_of("root.p", vec![wanted])).await?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, "v2", "Gear"));
    let gears: Api<DynamicObject> = Api::namespaced_with(party.cluster.clone(), &party.name, &kind);
    let made = gears.get("g").await?;
    party.stop_agent().await;
    let crd = format!("gears.{group}");
    both["spec"]["versions"][0]["served"] = json!(false);
    let unserved = Patch::Merge(json!({ "spec": { "versions": both["spec"]["versions"] } }));
    definitions.patch(&crd, &Default::default(), &unserved).await?;
    let old = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, "v1", "Gear"));
    let old: Api<DynamicObject> = Api::namespaced_with(party.cluster.clone(), &party.name, &old);
    eventually("the end of the first version", || async {
        Ok(old.get("g").await.is_err().then_some(()))
    })
    .await?;
    party.leave().await?;
    party.start_agent();
    party.left().await?;
    let left = party.on_record().await?;
    let left: Vec<_> = left.iter().filter(|one| one.part.is_none()).collect();
    let told: Vec<_> = left.iter().map(|one| [&*one.resource, &*one.version, &*one.uid]).collect();
    assert_eq!(told, [["gears", "v2", &*made.uid().unwrap_or_default()]]);
    let live = gears.get("g").await.context("nothing was to be removed")?;
    assert_eq!((live.uid(), live.metadata.deletion_timestamp), (made.uid(), None));
    party.no_policies().await?;
    party.stop_agent().await;
    delete(&definitions, &crd).await
}

/// What was being deleted before the leave cannot be held on the hub: the agent waits, with nothing of it
/// left on the cluster, until the hub says that what stays is written down.
#[tokio::test]
async fn what_stays_of_a_policy_that_was_deleted_before_the_leave_was_on_no_record() -> Result<()> {
    let mut party = Party::new("earlierp", Needless).await?;
    let made = party.policy("root.p", &[("stuck", "DeleteIfCreated")]).await?;
    let guard = Guard::refusing(&party, "stuck").await?;
    crate::delete(&party.replicas(), "root.p").await?;
    let templates: Api<ConfigurationPolicy> = Api::namespaced(party.cluster.clone(), &party.name);
    seen(&templates, "stuck", |one: &ConfigurationPolicy| {
        one.metadata.deletion_timestamp.is_some()
    })
    .await?;
    // Nobody on the hub writes anything down.
    party.fleet.tasks.shutdown().await;
    party.leave().await?;
    let replica = seen(&party.replicas(), "root.p", |policy: &Policy| {
        let removal = policy.status.as_ref().and_then(|status| status.removal.as_ref());
        let blocked = removal.into_iter().flat_map(|removal| &removal.blocked);
        blocked.map(|one| &*one.object).eq(["what stays of it"])
    })
    .await
    .context("the policy was let go of before anything was written down")?;
    let finalizers = replica.finalizers();
    assert!(!finalizers.iter().any(|one| one == LEAVE_FINALIZER), "{finalizers:?}");
    party.no_policies().await?;
    assert_eq!(party.on_record().await?, []);
    let hub = Tasks::new();
    clusters::start(party.fleet.config(), &hub);
    party.left().await?;
    party.stays(&made).await?;
    assert_eq!(party.recorded().await?, [["stuck", "root.p", "kept by removeStrategy Needless"]]);
    party.stop_agent().await;
    hub.shutdown().await;
    guard.remove().await
}

#[tokio::test]
async fn what_a_policy_held_again_since_its_cluster_joined_again_was_deleted() -> Result<()> {
    let mut party = Party::new("againp", Required).await?;
    let prunes = [("m", "DeleteIfCreated")];
    let made = party.policy("root.p", &prunes).await?;
    party.lose().await?;
    party.join_again(Required).await?;
    create(&party.replicas(), party.replica("root.p", &prunes)).await?;
    seen(&party.replicas(), "root.p", |policy: &Policy| {
        let status = policy.status.as_ref();
        status.is_some_and(|status| status.compliant.as_deref() == Some("Compliant"))
    })
    .await
    .context("the policy was not enforced again")?;
    let templates: Api<ConfigurationPolicy> = Api::namespaced(party.cluster.clone(), &party.name);
    let template = templates.get("m").await?;
    for include_kept in [false, true] {
        let report = party.clean(include_kept).await?;
        assert_eq!(report.stuck, vec![]);
        party.stays(&made).await?;
        assert_eq!(templates.get("m").await?.uid(), template.uid(), "it is of today");
    }
    party.stop_agent().await;
    // Nobody is left to prune.
    let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    templates.patch("m", &Default::default(), &free).await?;
    Ok(())
}

/// Somebody else's policy, which did not make the map and lists it.
#[tokio::test]
async fn what_a_policy_on_no_record_had_found_was_deleted_with_a_record() -> Result<()> {
    let mut party = Party::new("foundp", Required).await?;
    let prunes = [("goes", "DeleteIfCreated"), ("m", "DeleteIfCreated")];
    let made = party.policy("root.p", &prunes).await?;
    party.lose().await?;
    let templates: Api<ConfigurationPolicy> = Api::namespaced(party.cluster.clone(), &party.name);
    let theirs = json!({
        "metadata": { "name": "theirs" },
        "spec": { "remediationAction": "inform", "object-templates": [
            { "complianceType": "musthave", "objectDefinition": party.map("m") },
        ] },
    });
    create(&templates, theirs).await?;
    let found = json!({ "status": { "relatedObjects": [
        { "object": party.map("m"), "compliant": "Compliant" },
    ] } });
    templates.patch_status("theirs", &Default::default(), &Patch::Merge(found)).await?;
    let report = party.clean(false).await?;
    let stays: Vec<_> = report.stays.iter().map(|(id, _)| &*id.name).collect();
    assert_eq!((stays, report.stuck), (vec!["m"], vec![]));
    assert!(party.maps().get_opt("goes").await?.is_none());
    party.stays(&made[1..]).await?;
    crate::delete(&templates, "theirs").await
}
