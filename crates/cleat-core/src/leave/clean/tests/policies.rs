//! Copies of policies, what their templates became, and what the agent made for them.

use cleat_api::configurationpolicy::FINALIZER;

use super::*;
use crate::leave::ground::{MADE_FOR, MADE_FOR_POLICIES};

const POLICY: &str = "root.p";

fn part(resource: &str, name: &str, part: Part) -> LeftObject {
    LeftObject {
        group: "policy.open-cluster-management.io".to_string(),
        version: "v1".to_string(),
        resource: resource.to_string(),
        namespace: "c1".to_string(),
        name: name.to_string(),
        uid: format!("u-{name}"),
        source: POLICY.to_string(),
        part: Some(part),
        ..LeftObject::default()
    }
}

fn copy() -> LeftObject {
    part("policies", POLICY, Part::Copy)
}

fn template() -> LeftObject {
    part("configurationpolicies", "t", Part::Template)
}

fn made() -> LeftObject {
    LeftObject { unmarked: true, source: POLICY.to_string(), ..left("made") }
}

fn place() -> LeftObject {
    LeftObject {
        group: String::new(),
        resource: "namespaces".to_string(),
        namespace: String::new(),
        name: "c1".to_string(),
        uid: String::new(),
        source: MADE_FOR_POLICIES.to_string(),
        ..part("", "", Part::Place)
    }
}

fn metadata(object: &LeftObject) -> Value {
    json!({
        "name": object.name, "namespace": object.namespace, "uid": format!("u-{}", object.name),
        "resourceVersion": "3",
    })
}

/// The copy as an agent makes it.
fn live_copy() -> Value {
    let mut metadata = metadata(&copy());
    metadata["labels"] = json!({
        "policy.open-cluster-management.io/root-policy": POLICY,
        "policy.open-cluster-management.io/cluster-name": "c1",
    });
    json!({ "apiVersion": "policy.open-cluster-management.io/v1", "metadata": metadata })
}

/// A template that prunes, owned by the policy of this name and uid.
fn live_template(owner: Option<(&str, &str)>) -> Value {
    let mut metadata = metadata(&template());
    metadata["labels"] = json!({ "policy.open-cluster-management.io/policy": POLICY });
    metadata["finalizers"] = json!([FINALIZER, "theirs"]);
    let owner = owner.map(|(name, uid)| {
        json!({
            "apiVersion": "policy.open-cluster-management.io/v1", "kind": "Policy",
            "name": name, "uid": uid,
        })
    });
    metadata["ownerReferences"] = owner.into_iter().collect();
    json!({
        "apiVersion": "policy.open-cluster-management.io/v1", "metadata": metadata,
        "spec": { "pruneObjectBehavior": "DeleteIfCreated" },
    })
}

/// Everything of a policy is there, as its agent left it.
fn cluster() -> Observed {
    let mut seen =
        Observed { records: vec![record(vec![copy(), template(), made()])], ..Observed::default() };
    seen.live.insert(id(&copy()), Look::Present(live_copy()));
    let owned = live_template(Some((POLICY, "u-root.p")));
    seen.live.insert(id(&template()), Look::Present(owned));
    seen.live.insert(id(&made()), live(&made(), &[]));
    seen.made.insert(id(&template()), Ok(vec![made()]));
    seen.holders = Holders::Listed(vec![]);
    seen
}

/// The same once its copy and its template are gone.
fn cluster_without_policies() -> Observed {
    let mut seen = cluster();
    seen.live.insert(id(&copy()), Look::Absent);
    seen.live.insert(id(&template()), Look::Absent);
    seen.made.clear();
    seen
}

/// A policy on the cluster, and one object that it lists.
fn holder(object: &LeftObject, uid: &str, listed: &Value) -> Holders {
    let says = json!({ "status": { "relatedObjects": [listed] } });
    Holders::Listed(vec![Holder::read(id(object), uid.to_string(), &says).unwrap()])
}

/// What a policy lists that made or found the object which is there.
fn listed_made() -> Value {
    json!({ "object": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "shop", "name": "made" },
    } })
}

fn patch(seen: &Observed) -> Value {
    let [step] = plan(seen).try_into().unwrap();
    let [action] = step.try_into().unwrap();
    match action.write {
        Write::Merge(patch) => patch,
        other => panic!("{other:?}"),
    }
}

const COPY: &str = "policies.policy.open-cluster-management.io c1/root.p";
const TEMPLATE: &str = "configurationpolicies.policy.open-cluster-management.io c1/t";

#[test]
fn a_policy_goes_before_what_it_made_and_takes_nothing_with_it() {
    let mut seen = cluster();
    assert_eq!(words(&seen), [format!("{COPY} delete orphaning u-root.p@3")]);
    seen.live.insert(id(&copy()), Look::Absent);
    // Let go of by its copy, and not to prune: what it made goes by the record, or stays by it.
    seen.live.insert(id(&template()), Look::Present(live_template(None)));
    let disarm = patch(&seen);
    assert_eq!(disarm["spec"], json!({ "pruneObjectBehavior": "None" }));
    assert_eq!(disarm["metadata"]["finalizers"], json!(["theirs"]));
    assert_eq!(disarm["metadata"]["resourceVersion"], "3");
    let mut harmless = live_template(None);
    harmless["spec"]["pruneObjectBehavior"] = json!("None");
    harmless["metadata"]["finalizers"] = json!(["theirs"]);
    seen.live.insert(id(&template()), Look::Present(harmless));
    assert_eq!(words(&seen), [format!("{TEMPLATE} delete u-t@3")]);
    seen.live.insert(id(&template()), Look::Absent);
    assert_eq!(words(&seen), ["configmaps shop/made delete u-made@3"]);
    seen.live.insert(id(&made()), Look::Absent);
    assert_eq!((words(&seen), report(&seen).gone), (vec![], 3));
}

#[test]
fn a_template_that_the_collector_has_begun_with_prunes_nothing() {
    let mut seen = cluster();
    seen.live.insert(id(&copy()), Look::Absent);
    let mut going = live_template(Some((POLICY, "u-root.p")));
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    seen.live.insert(id(&template()), Look::Present(going));
    assert_eq!(patch(&seen)["spec"], json!({ "pruneObjectBehavior": "None" }));
    // Nobody's finalizer but ours is stripped.
    assert_eq!(patch(&seen)["metadata"]["finalizers"], json!(["theirs"]));
}

#[test]
fn what_a_template_made_since_the_hub_heard_is_on_record_before_the_template_goes() {
    let mut seen = cluster();
    seen.live.insert(id(&copy()), Look::Absent);
    let later = LeftObject { name: "later".to_string(), uid: "u-later".to_string(), ..made() };
    seen.made.insert(id(&template()), Ok(vec![made(), later.clone()]));
    let [step] = plan(&seen).try_into().unwrap();
    let [action] = step.try_into().unwrap();
    assert_eq!((action.side, &*action.target.id.name), (Side::Hub, "c1.x.0"));
    let Write::Merge(patch) = action.write else { panic!() };
    assert_eq!(
        (&patch["spec"]["count"], &patch["spec"]["objects"][3]["name"]),
        (&json!(4), &json!("later"))
    );
    assert_eq!(patch["spec"]["reason"], "ClusterDestroyed");
    // Once it is, the template goes on its way.
    seen.records[0].spec.objects.push(later);
    assert_eq!(plan(&seen)[0][0].target.id, id(&template()));
    for unknown in [None, Some(Err("no discovery".to_string()))] {
        seen.made = unknown.into_iter().map(|made| (id(&template()), made)).collect();
        assert!(matches!(fate_of(&seen, &template()), Fate::Unknown(_)));
        assert_eq!(words(&seen), [""; 0], "what it made would be forgotten");
    }
}

#[test]
fn templates_that_nobody_told_of_are_found_by_their_marks() {
    let mut seen = cluster();
    seen.records = vec![record(vec![LeftObject { uid: String::new(), ..copy() }])];
    assert_eq!(
        copies_on_record(&seen.records),
        BTreeSet::from([("c1".to_string(), POLICY.to_string())])
    );
    seen.found = vec![template()];
    assert_eq!(
        fate_of(&seen, &template()),
        Fate::Going(vec!["the record, which has yet to list what it made".to_string(),])
    );
    seen.records[0].spec.objects.push(made());
    assert_eq!(fate_of(&seen, &template()), Fate::Delete);
    assert_eq!(words(&seen), [format!("{COPY} delete orphaning u-root.p@3")]);
}

#[test]
fn a_copy_that_nobody_told_of_is_ours_only_by_what_it_bears() {
    let by_name = LeftObject { uid: String::new(), ..copy() };
    let mut seen = cluster();
    seen.records = vec![record(vec![by_name, template(), made()])];
    let fate = |seen: &Observed, change: &dyn Fn(&mut Value)| {
        let mut seen = seen.clone();
        let mut live = live_copy();
        change(&mut live);
        seen.live.insert(id(&copy()), Look::Present(live));
        (fate_of(&seen, &copy()) == Fate::Delete, fate_of(&seen, &template()) == Fate::Delete)
    };
    assert_eq!(fate(&seen, &|_| {}), (true, true));
    // A policy that somebody made, that of a cluster which is a hub itself, and another cluster's.
    assert_eq!(fate(&seen, &|live| live["metadata"]["labels"] = json!({})), (false, false));
    let held = json!([crate::policy_sync::HOLD]);
    assert_eq!(fate(&seen, &|live| live["metadata"]["finalizers"] = held.clone()), (false, false));
    let cluster_name = "policy.open-cluster-management.io/cluster-name";
    assert_eq!(
        fate(&seen, &|live| live["metadata"]["labels"][cluster_name] = json!("c2")),
        (false, false)
    );
}

#[test]
fn what_another_copy_of_the_policy_holds_stays() {
    // Another hub sent a policy of that name since.
    for owner in [(POLICY, "u-anew"), ("root.other", "u-root.p")] {
        let mut seen = cluster();
        seen.found = vec![template()];
        seen.live.insert(id(&template()), Look::Present(live_template(Some(owner))));
        let why = format!("policy {} holds it", owner.0);
        assert_eq!(fate_of(&seen, &template()), Fate::Stays(why));
    }
    let mut seen = cluster();
    let mut anew = live_copy();
    anew["metadata"]["uid"] = json!("u-anew");
    seen.live.insert(id(&copy()), Look::Present(anew));
    assert_eq!(fate_of(&seen, &copy()), Fate::Stays("somebody made it anew".to_string()));
    let mut bare = live_template(None);
    bare["metadata"]["labels"] = json!({});
    seen.live.insert(id(&template()), Look::Present(bare));
    assert!(matches!(fate_of(&seen, &template()), Fate::Stays(_)));
}

#[test]
fn a_policy_that_the_hub_has_again_keeps_its_copy_and_its_place() {
    let mut seen = cluster();
    seen.records[0].spec.objects.push(place());
    let labels = json!({ MADE_FOR: MADE_FOR_POLICIES });
    let namespace = json!({ "metadata": {
        "name": "c1", "uid": "u-c1", "resourceVersion": "3", "labels": labels,
    } });
    seen.live.insert(id(&place()), Look::Present(namespace));
    seen.policies.insert(POLICY.to_string(), vec![]);
    for object in [copy(), template(), made(), place()] {
        assert_eq!(fate_of(&seen, &object), Fate::Stays("policy root.p holds it".to_string()));
    }
    assert_eq!(words(&seen), [""; 0], "it is not our mark to take off");
    // Another policy is no reason to keep this one, but needs the place.
    seen.policies = [("root.other".to_string(), vec![])].into();
    assert_eq!(fate_of(&seen, &copy()), Fate::Delete);
    assert!(matches!(fate_of(&seen, &place()), Fate::Stays(_)));
}

#[test]
fn the_place_of_policies_goes_if_it_is_ours_and_empty() {
    let labels = json!({ MADE_FOR: MADE_FOR_POLICIES });
    let namespace = |labels: &Value| {
        Look::Present(json!({ "metadata": {
            "name": "c1", "uid": "u-c1", "resourceVersion": "3", "labels": labels,
        } }))
    };
    let mut seen = Observed { records: vec![record(vec![place()])], ..Observed::default() };
    seen.live.insert(id(&place()), namespace(&labels));
    assert_eq!(holders_due(&seen), [id(&place())]);
    seen.contents.insert(id(&place()), Contents::Ours);
    assert_eq!(words(&seen), ["namespaces c1 delete u-c1@3"]);
    seen.contents.insert(id(&place()), Contents::Foreign(vec![id(&left("theirs"))]));
    assert_eq!(patch(&seen)["metadata"]["labels"], json!({ MADE_FOR: null }));
    // One that was there before the agent is nobody's leftover.
    seen.live.insert(id(&place()), namespace(&json!({})));
    assert_eq!((fate_of(&seen, &place()), plan(&seen)), (Fate::Gone, vec![]));
}

#[test]
fn a_cluster_that_was_to_keep_everything_loses_the_copies_all_the_same() {
    let mut cluster = cleat_api::managedcluster::ManagedCluster::default();
    cluster.spec.remove_strategy = RemoveStrategy::Needless;
    let all = [copy(), template(), made(), place()];
    let more: Vec<&LeftObject> = all.iter().collect();
    let leave = crate::leave::record::leave(&cluster, Reason::Unreachable);
    let actions = crate::leave::record::append(&leave, &[], &more);
    let Write::Create(record) = &actions[0].write else { panic!() };
    let record: LeftoverRecord = serde_json::from_value(record.clone()).unwrap();
    let stays: Vec<_> = record.spec.objects.iter().map(|one| one.stays).collect();
    let declared = Some(Stays::Declared);
    assert_eq!(stays, [None, None, declared, declared]);
    assert_eq!(record.spec.objects[0].part, Some(Part::Copy));
}

#[test]
fn what_another_hub_made_since_under_the_same_name_stays_as_it_is() {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    let mut seen = cluster();
    let by_name = LeftObject { uid: String::new(), ..copy() };
    seen.records = vec![record(vec![by_name, place()])];
    let written = "2026-01-02T00:00:00Z".parse().unwrap();
    seen.records[0].metadata.creation_timestamp = Some(Time(written));
    seen.found = vec![template()];
    for (made, ours) in [
        (json!("2026-01-01T00:00:00Z"), true),
        (json!("2026-01-02T00:00:00Z"), true),
        (json!("2026-01-02T00:00:01Z"), false),
        (Value::Null, false),
    ] {
        let mut copied = live_copy();
        copied["metadata"]["creationTimestamp"] = made.clone();
        seen.live.insert(id(&copy()), Look::Present(copied));
        let namespace = json!({ "metadata": {
            "name": "c1", "uid": "u-c1", "resourceVersion": "3", "creationTimestamp": made,
            "labels": { MADE_FOR: MADE_FOR_POLICIES },
        } });
        seen.live.insert(id(&place()), Look::Present(namespace));
        let spared = |object: &LeftObject| matches!(fate_of(&seen, object), Fate::Stays(_));
        assert_eq!([copy(), template(), place()].map(|one| !spared(&one)), [ours; 3], "{made}");
        assert_eq!(words(&seen).is_empty(), !ours, "{made}");
    }
}

#[test]
fn what_a_template_lists_that_another_copy_holds_now_was_deleted() {
    let mut seen = cluster();
    let mut anew = live_copy();
    anew["metadata"]["uid"] = json!("u-anew");
    seen.live.insert(id(&copy()), Look::Present(anew));
    let theirs = live_template(Some((POLICY, "u-anew")));
    seen.live.insert(id(&template()), Look::Present(theirs));
    for include_kept in [false, true] {
        seen.include_kept = include_kept;
        assert_eq!(fate_of(&seen, &made()), Fate::Stays(format!("{TEMPLATE} holds it")));
        assert_eq!(words(&seen), [""; 0]);
    }
    for unknown in [None, Some(Err("no discovery".to_string()))] {
        seen.made = unknown.into_iter().map(|made| (id(&template()), made)).collect();
        assert!(matches!(fate_of(&seen, &made()), Fate::Unknown(_)));
        assert_eq!(words(&seen), [""; 0], "it may hold anything");
    }
}

#[test]
fn what_a_policy_on_no_record_had_found_or_made_was_deleted() {
    let mut seen = cluster_without_policies();
    let goes = ["configmaps shop/made delete u-made@3"];
    assert_eq!(words(&seen), goes);
    let theirs = LeftObject { namespace: "c2".to_string(), ..template() };
    let listed = |pointer: &str, value: &str, uid: &str| {
        let mut listed = listed_made();
        *listed.pointer_mut(pointer).unwrap() = json!(value);
        listed["properties"] = json!({ "uid": uid });
        listed
    };
    let name = "/object/metadata/name";
    for (listed, held) in [
        (listed_made(), true),
        (listed(name, "made", ""), true),
        (listed(name, "made", "u-before"), true),
        (listed(name, "other", "u-made"), true),
        (listed(name, "other", "u-other"), false),
        (listed(name, "-", ""), false),
        (listed("/object/kind", "Secret", ""), false),
        (listed("/object/apiVersion", "apps/v1", ""), false),
        (listed("/object/metadata/namespace", "till", ""), false),
    ] {
        for include_kept in [false, true] {
            seen.include_kept = include_kept;
            seen.holders = holder(&theirs, "u-theirs", &listed);
            let by = "configurationpolicies.policy.open-cluster-management.io c2/t holds it";
            let spared = Fate::Stays(by.to_string());
            let expected = if held { spared } else { Fate::Delete };
            assert_eq!(fate_of(&seen, &made()), expected, "{listed}");
            assert_eq!(words(&seen).is_empty(), held, "{listed}");
        }
    }
}

#[test]
fn a_template_that_is_to_go_keeps_nothing_unless_it_was_made_anew() {
    let mut seen = cluster();
    seen.holders = holder(&template(), "u-t", &listed_made());
    assert_eq!(fate_of(&seen, &made()), Fate::Delete);
    seen.holders = holder(&template(), "u-anew", &listed_made());
    assert_eq!(fate_of(&seen, &made()), Fate::Stays(format!("{TEMPLATE} holds it")));
}

#[test]
fn what_policies_made_went_though_the_policies_of_the_cluster_could_not_be_listed() {
    let mut seen = cluster_without_policies();
    let web = left("web");
    let ledger = ledger(OURS, "web", &[(&web, false)]);
    seen.records[0].spec.objects.push(web.clone());
    seen.live.insert(id(&web), live(&web, &[&ledger]));
    seen.ledgers = vec![ledger];
    for unknown in [Holders::default(), Holders::Unknown("forbidden".to_string())] {
        seen.holders = unknown;
        assert!(matches!(fate_of(&seen, &made()), Fate::Unknown(_)));
        // What bears our mark is ours whoever looks at it.
        assert_eq!(words(&seen), ["configmaps shop/web delete u-web@3"]);
        assert!(report(&seen).stuck.iter().any(|(one, _)| *one == id(&made())));
    }
    for unread in [json!("many"), json!([{ "object": "made" }])] {
        let says = json!({ "status": { "relatedObjects": unread } });
        assert!(Holder::read(id(&template()), String::new(), &says).is_err());
    }
    let silent = Holder::read(id(&template()), String::new(), &json!({}));
    assert_eq!(silent.unwrap().objects, []);
}

/// What the template made, as a template lists it that keeps it.
fn kept() -> LeftObject {
    let why = "kept by pruneObjectBehavior None".to_string();
    LeftObject { stays: Some(Stays::Declared), why, ..made() }
}

#[test]
fn what_a_template_says_to_keep_since_the_hub_heard_went_after_it() {
    let mut seen = cluster();
    seen.live.insert(id(&copy()), Look::Absent);
    let mut keeps = live_template(None);
    keeps["spec"]["pruneObjectBehavior"] = json!("None");
    seen.live.insert(id(&template()), Look::Present(keeps));
    // One that is about to make it anew does not know its uid.
    for uid in ["u-made", ""] {
        let mut seen = seen.clone();
        seen.made.insert(id(&template()), Ok(vec![LeftObject { uid: uid.to_string(), ..kept() }]));
        let patch = patch(&seen);
        assert_eq!(plan(&seen)[0][0].target.id.name, "c1.x.0");
        let objects = patch["spec"]["objects"].as_array().unwrap();
        assert_eq!(objects.len(), 3, "they are on record already");
        let made = &objects[2];
        assert_eq!((&made["uid"], &made["stays"]), (&json!("u-made"), &json!("Declared")));
    }
    seen.made.insert(id(&template()), Ok(vec![kept()]));
    seen.records[0].spec.objects[2] = kept();
    assert_eq!(plan(&seen)[0][0].target.id, id(&template()), "it goes when that is on record");
    seen.live.insert(id(&template()), Look::Absent);
    seen.made.clear();
    assert_eq!(fate_of(&seen, &made()), Fate::Stays(kept().why));
    assert_eq!(words(&seen), [""; 0]);
}

#[test]
fn a_template_that_was_made_to_prune_nothing_says_no_more_what_to_keep() {
    let mut seen = cluster();
    seen.live.insert(id(&copy()), Look::Absent);
    let disarm = patch(&seen);
    let mut harmless = live_template(None);
    harmless["spec"] = disarm["spec"].clone();
    harmless["metadata"]["finalizers"] = disarm["metadata"]["finalizers"].clone();
    harmless["metadata"]["annotations"] = disarm["metadata"]["annotations"].clone();
    seen.live.insert(id(&template()), Look::Present(harmless));
    seen.made.insert(id(&template()), Ok(vec![kept()]));
    assert_eq!(words(&seen), [format!("{TEMPLATE} delete u-t@3")]);
}
