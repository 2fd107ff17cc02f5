mod policies;

use std::format;
use std::string::{String, ToString as _};
use std::vec;
use std::vec::Vec;

use cleat_api::leftoverrecord::Reason;
use serde_json::json;

use super::*;

const OURS: &str = "aaaa";
const THEIRS: &str = "bbbb";

fn left(name: &str) -> LeftObject {
    LeftObject {
        version: "v1".to_string(),
        resource: "configmaps".to_string(),
        namespace: "shop".to_string(),
        name: name.to_string(),
        uid: format!("u-{name}"),
        source: "web".to_string(),
        ..LeftObject::default()
    }
}

fn namespace() -> LeftObject {
    let (resource, name) = ("namespaces".to_string(), "shop".to_string());
    LeftObject { resource, name, namespace: String::new(), uid: "u-shop".to_string(), ..left("") }
}

fn definition() -> LeftObject {
    LeftObject {
        group: "apiextensions.k8s.io".to_string(),
        resource: "customresourcedefinitions".to_string(),
        name: "widgets.example.com".to_string(),
        uid: "u-widgets".to_string(),
        ..namespace()
    }
}

fn record(objects: Vec<LeftObject>) -> LeftoverRecord {
    let mut record = LeftoverRecord::default();
    record.metadata.name = Some("c1.x.0".to_string());
    record.spec.cluster_id = "here".to_string();
    record.spec.hub_hash = OURS.to_string();
    record.spec.remove_strategy = RemoveStrategy::Required;
    record.spec.reason = Reason::ClusterDestroyed;
    record.spec.objects = objects;
    record
}

/// A ledger that claims these objects, of which the second of a pair says whether it is kept.
fn ledger(hash: &str, work: &str, claims: &[(&LeftObject, bool)]) -> AppliedManifestWork {
    let claim = |(one, kept): &(&LeftObject, bool)| {
        json!({
            "group": one.group, "resource": one.resource, "namespace": one.namespace,
            "names": [one.name], "origin": "Created", "kept": kept,
        })
    };
    let applied = |(one, _): &(&LeftObject, bool)| {
        json!({
            "group": one.group, "version": "v1", "resource": one.resource,
            "namespace": one.namespace, "name": one.name, "uid": one.uid,
        })
    };
    serde_json::from_value(json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
        "metadata": {
            "name": format!("{hash}-{work}"), "uid": format!("l-{hash}-{work}"),
            "resourceVersion": "7", "finalizers": [LEDGER_FINALIZER],
        },
        "spec": {
            "hubHash": hash, "manifestWorkName": work,
            "claims": claims.iter().map(claim).collect::<Vec<_>>(),
        },
        "status": { "appliedResources": claims.iter().map(applied).collect::<Vec<_>>() },
    }))
    .unwrap()
}

fn going(mut ledger: AppliedManifestWork) -> AppliedManifestWork {
    let now = jiff::Timestamp::from_second(1).unwrap();
    ledger.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now));
    ledger
}

fn live(object: &LeftObject, ledgers: &[&AppliedManifestWork]) -> Look {
    let owner = |ledger: &&AppliedManifestWork| {
        json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
            "name": ledger.metadata.name, "uid": ledger.metadata.uid,
        })
    };
    Look::Present(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "namespace": object.namespace, "name": object.name, "uid": object.uid,
            "resourceVersion": "3",
            "ownerReferences": ledgers.iter().map(owner).collect::<Vec<_>>(),
        },
    }))
}

fn seen(
    record: LeftoverRecord,
    ledgers: Vec<AppliedManifestWork>,
    live: Vec<(&LeftObject, Look)>,
) -> Observed {
    Observed {
        records: vec![record],
        ledgers,
        live: live.into_iter().map(|(object, look)| (id(object), look)).collect(),
        ..Observed::default()
    }
}

/// The plan in words.
fn words(seen: &Observed) -> Vec<String> {
    let word = |action: Action| {
        let verb = match action.write {
            Write::Delete { uid, resource_version, propagation } => {
                let orphan = if propagation == Propagation::Orphan { " orphaning" } else { "" };
                format!("delete{orphan} {uid}@{}", resource_version.unwrap_or_default())
            }
            Write::Merge(patch) => match patch.pointer("/metadata/ownerReferences") {
                Some(owners) => format!("own {} {owners}", patch["metadata"]["uid"]),
                None => format!("finalizers {}", patch["metadata"]["finalizers"]),
            },
            other => format!("{other:?}"),
        };
        format!("{} {verb}", action.target.id)
    };
    plan(seen).into_iter().flatten().map(word).collect()
}

fn fate_of(seen: &Observed, object: &LeftObject) -> Fate {
    let mut all = fates(seen).into_iter();
    all.find(|(one, _)| id(one) == id(object)).map(|(_, fate)| fate).unwrap()
}

#[test]
fn what_a_policy_made_goes_by_its_uid_alone_unless_it_was_declared_to_stay() {
    let made = LeftObject { unmarked: true, source: "root.p".to_string(), ..left("made") };
    let kept = LeftObject { stays: Some(Stays::Declared), ..made.clone() };
    let anew = LeftObject { uid: "before".to_string(), ..made.clone() };
    for (object, goes) in [(made.clone(), true), (kept, false), (anew, false)] {
        let mut seen = Observed { records: vec![record(vec![object])], ..Observed::default() };
        seen.holders = Holders::Listed(vec![]);
        seen.live.insert(id(&made), live(&made, &[]));
        let fates = fates(&seen);
        assert_eq!(fates[0].1 == Fate::Delete, goes, "{fates:?}");
        assert_eq!(plan(&seen).is_empty(), !goes);
    }
}

#[test]
fn what_a_policy_held_again_since_its_cluster_joined_again_was_deleted() {
    let made = LeftObject { unmarked: true, source: "root.p".to_string(), ..left("made") };
    let mut seen = Observed { records: vec![record(vec![made.clone()])], ..Observed::default() };
    seen.holders = Holders::Listed(vec![]);
    seen.live.insert(id(&made), live(&made, &[]));
    seen.policies.insert("root.other".to_string(), vec![left("another")]);
    assert_eq!(fate_of(&seen, &made), Fate::Delete, "no policy of today holds it");
    for (policy, lists) in [("root.p", vec![]), ("root.q", vec![made.clone()])] {
        for include_kept in [false, true] {
            let policies = [(policy.to_string(), lists.clone())].into();
            let seen = Observed { include_kept, policies, ..seen.clone() };
            assert_eq!(fate_of(&seen, &made), Fate::Stays(format!("policy {policy} holds it")));
            assert!(plan(&seen).is_empty(), "{policy}");
        }
    }
}

#[test]
fn what_the_hub_believed_and_still_bears_our_mark_goes() {
    let a = left("a");
    let ledger = ledger(OURS, "web", &[(&a, false)]);
    let seen =
        seen(record(vec![a.clone()]), vec![ledger.clone()], vec![(&a, live(&a, &[&ledger]))]);
    assert_eq!(words(&seen), ["configmaps shop/a delete u-a@3"]);
}

#[test]
fn what_a_work_declared_to_keep_went_with_the_record_of_a_destroyed_cluster() {
    let kept = LeftObject { stays: Some(Stays::Declared), ..left("kept") };
    let goes = left("goes");
    let ledger = ledger(OURS, "web", &[(&goes, false)]);
    let mut seen = seen(
        record(vec![kept.clone(), goes.clone()]),
        vec![ledger.clone()],
        vec![(&kept, live(&kept, &[])), (&goes, live(&goes, &[&ledger]))],
    );
    assert_eq!(words(&seen), ["configmaps shop/goes delete u-goes@3"]);
    assert_eq!(fate_of(&seen, &kept), Fate::Stays("it was declared to be kept".to_string()));
    seen.include_kept = true;
    assert_eq!(fate_of(&seen, &kept), Fate::Delete);
}

#[test]
fn a_work_that_changed_its_mind_while_the_cluster_was_away_loses_the_mark_and_keeps_the_object() {
    let kept = LeftObject { stays: Some(Stays::Declared), ..left("kept") };
    let ledger = ledger(OURS, "web", &[(&kept, false)]);
    let seen = seen(
        record(vec![kept.clone()]),
        vec![ledger.clone()],
        vec![(&kept, live(&kept, &[&ledger]))],
    );
    assert_eq!(words(&seen), ["configmaps shop/kept own \"u-kept\" []"]);
}

#[test]
fn what_stayed_when_a_record_was_worked_off_went_when_only_the_agent_was_to_go() {
    let one = left("one");
    let ours = ledger(OURS, "web", &[(&one, false)]);
    let look = live(&one, &[&ours]);
    let mut seen = seen(record(vec![one.clone()]), vec![ours], vec![(&one, look)]);
    assert_eq!(fate_of(&seen, &one), Fate::Delete);
    let done = json!({ "conditions": [{
        "type": "Cleaned", "status": "True", "reason": "Settled", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }] });
    seen.records[0].status = Some(serde_json::from_value(done).unwrap());
    assert!(matches!(fate_of(&seen, &one), Fate::Stays(_)));
    // Another record that is not worked off has it to go.
    seen.records.push(record(vec![one.clone()]));
    assert_eq!(fate_of(&seen, &one), Fate::Delete);
    seen.records.pop();
    seen.include_kept = true;
    assert_eq!(fate_of(&seen, &one), Fate::Delete);
}

#[test]
fn what_the_ledger_says_is_kept_stays_even_if_the_hub_did_not_know() {
    let one = left("one");
    let ledger = ledger(OURS, "web", &[(&one, true)]);
    let seen = seen(record(vec![one.clone()]), vec![ledger], vec![(&one, live(&one, &[]))]);
    assert!(matches!(fate_of(&seen, &one), Fate::Stays(_)));
}

#[test]
fn whether_an_adopted_object_stays_the_ledger_decides_and_without_one_it_stays() {
    let one = LeftObject { stays: Some(Stays::IfAdopted), ..left("one") };
    let created = ledger(OURS, "web", &[(&one, false)]);
    let mut adopted = created.clone();
    adopted.spec.claims[0].origin = Origin::Adopted;
    let look = live(&one, &[&created]);
    let fate = |ledgers: Vec<AppliedManifestWork>, look: Look| {
        fate_of(&seen(record(vec![one.clone()]), ledgers, vec![(&one, look)]), &one)
    };
    assert_eq!(fate(vec![created.clone()], look.clone()), Fate::Delete);
    assert!(matches!(fate(vec![adopted], look), Fate::Stays(_)));
    assert!(matches!(fate(vec![], live(&one, &[])), Fate::Stays(_)));
}

#[test]
fn what_lost_our_mark_was_given_up_and_stays_whatever_is_asked_for() {
    let one = left("one");
    let ledger = ledger(OURS, "web", &[(&one, false)]);
    let mut seen = seen(record(vec![one.clone()]), vec![ledger], vec![(&one, live(&one, &[]))]);
    for include_kept in [false, true] {
        seen.include_kept = include_kept;
        let why = "it bears no mark of ours any more".to_string();
        assert_eq!(fate_of(&seen, &one), Fate::Stays(why));
    }
}

#[test]
fn what_somebody_made_anew_or_nobody_knows_stays() {
    let one = left("one");
    let ledger = ledger(OURS, "web", &[(&one, false)]);
    let anew = LeftObject { uid: "other".to_string(), ..one.clone() };
    let look = vec![(&one, live(&anew, &[&ledger]))];
    let recreated = seen(record(vec![one.clone()]), vec![ledger.clone()], look);
    assert_eq!(fate_of(&recreated, &one), Fate::Stays("somebody made it anew".to_string()));
    let nameless = LeftObject { uid: String::new(), ..one.clone() };
    let unknown = seen(record(vec![nameless]), vec![], vec![(&one, live(&one, &[]))]);
    assert!(matches!(fate_of(&unknown, &one), Fate::Stays(_)));
    // Unless the ledger knows it.
    let nameless = LeftObject { uid: String::new(), ..one.clone() };
    let look = vec![(&one, live(&one, &[&ledger]))];
    let known = seen(record(vec![nameless]), vec![ledger.clone()], look);
    assert_eq!(fate_of(&known, &one), Fate::Delete);
    let listed_anew = LeftObject { stays: Some(Stays::NotOurs), ..anew.clone() };
    let mut told = seen(record(vec![listed_anew]), vec![], vec![(&one, live(&anew, &[]))]);
    told.include_kept = true;
    assert!(matches!(fate_of(&told, &one), Fate::Stays(_)));
}

#[test]
fn of_two_incarnations_on_record_the_one_that_is_there_decides() {
    let (now, before) = (left("one"), LeftObject { uid: "before".to_string(), ..left("one") });
    let ledger = ledger(OURS, "web", &[(&now, false)]);
    let seen = seen(
        record(vec![now.clone(), before]),
        vec![ledger.clone()],
        vec![(&now, live(&now, &[&ledger]))],
    );
    assert_eq!(words(&seen), ["configmaps shop/one delete u-one@3"]);
}

#[test]
fn a_ledger_of_another_hub_with_a_work_of_the_same_name_was_taken_for_ours() {
    let shared = left("shared");
    let (ours, theirs) =
        (ledger(OURS, "web", &[(&shared, false)]), ledger(THEIRS, "web", &[(&shared, false)]));
    let records = [record(vec![shared.clone()])];
    let all = || vec![ours.clone(), theirs.clone()];
    let none = BTreeSet::new();
    let chosen = ledgers(&records, all(), &none, None).unwrap();
    assert_eq!(chosen, std::slice::from_ref(&ours));
    let seen = seen(records[0].clone(), chosen, vec![(&shared, live(&shared, &[&ours, &theirs]))]);
    assert_eq!(fate_of(&seen, &shared), Fate::Stays(format!("{THEIRS}-web holds it")));
    // Our mark comes off, theirs stays.
    let words = words(&seen);
    assert_eq!(words.len(), 1);
    assert!(words[0].contains("own") && words[0].contains("bbbb-web"), "{words:?}");
    assert!(!words[0].contains("aaaa-web"), "{words:?}");
}

#[test]
fn a_record_that_knows_no_hub_does_not_guess_between_two() {
    let one = left("one");
    let mut silent = record(vec![one.clone()]);
    silent.spec.hub_hash = String::new();
    let (ours, theirs) =
        (ledger(OURS, "web", &[(&one, false)]), ledger(THEIRS, "other", &[(&one, false)]));
    let none = BTreeSet::new();
    let records = [silent];
    let both = || vec![ours.clone(), theirs.clone()];
    assert!(matches!(
        ledgers(&records, both(), &none, None),
        Err(Refusal::Ambiguous { hubs: 2, .. })
    ));
    assert_eq!(ledgers(&records, both(), &none, Some(OURS)).unwrap(), std::slice::from_ref(&ours));
    assert_eq!(ledgers(&records, vec![ours.clone()], &none, None).unwrap(), [ours]);
}

#[test]
fn a_work_that_the_hub_has_again_keeps_its_ledger_and_its_objects() {
    let one = left("one");
    let ledger = ledger(OURS, "web", &[(&one, false)]);
    let records = [record(vec![one.clone()])];
    let wanted = BTreeSet::from(["web".to_string()]);
    let chosen = ledgers(&records, vec![ledger.clone()], &wanted, None).unwrap();
    assert_eq!(chosen, []);
    let seen = seen(records[0].clone(), chosen, vec![(&one, live(&one, &[&ledger]))]);
    assert_eq!(fate_of(&seen, &one), Fate::Stays("aaaa-web holds it".to_string()));
    assert_eq!(words(&seen), [] as [&str; 0]);
}

#[test]
fn closing_a_ledger_that_was_going_let_the_collector_have_a_namespace_with_foreign_content() {
    let shop = namespace();
    let ledger = going(ledger(OURS, "web", &[(&shop, false)]));
    let mut seen = seen(
        record(vec![shop.clone()]),
        vec![ledger.clone()],
        vec![(&shop, live(&shop, &[&ledger]))],
    );
    assert_eq!(holders_due(&seen), [id(&shop)]);
    seen.contents.insert(id(&shop), Contents::Foreign(vec![id(&left("theirs"))]));
    // First the mark, and nothing else.
    assert_eq!(words(&seen), ["namespaces shop own \"u-shop\" []"]);
    seen.live.insert(id(&shop), live(&shop, &[]));
    assert_eq!(
        words(&seen),
        ["appliedmanifestworks.work.open-cluster-management.io aaaa-web finalizers []"]
    );
}

#[test]
fn a_definition_on_record_took_along_what_others_had_made_of_it() {
    let definition = definition();
    let ledger = ledger(OURS, "web", &[(&definition, false)]);
    let mut seen = seen(
        record(vec![definition.clone()]),
        vec![ledger.clone()],
        vec![(&definition, live(&definition, &[&ledger]))],
    );
    assert_eq!(holders_due(&seen), [id(&definition)]);
    assert_eq!(words(&seen), [] as [&str; 0], "nobody looked");
    let widget =
        Id { group: "example.com".into(), resource: "widgets".into(), ..id(&left("theirs")) };
    seen.contents.insert(id(&definition), Contents::Foreign(vec![widget]));
    let why = "it holds what is not ours: widgets.example.com shop/theirs";
    assert_eq!(fate_of(&seen, &definition), Fate::Stays(why.to_string()));
    seen.contents.insert(id(&definition), Contents::Ours);
    assert_eq!(fate_of(&seen, &definition), Fate::Delete);
}

#[test]
fn a_ledger_goes_with_the_word_to_spare_what_it_owns_and_keeps_the_finalizers_of_others() {
    let one = left("one");
    let mut ledger = ledger(OURS, "web", &[(&one, false)]);
    ledger.metadata.finalizers = Some(vec!["theirs".to_string(), LEDGER_FINALIZER.to_string()]);
    let mut seen =
        seen(record(vec![one.clone()]), vec![ledger.clone()], vec![(&one, Look::Absent)]);
    assert_eq!(
        words(&seen),
        [
            "appliedmanifestworks.work.open-cluster-management.io aaaa-web delete orphaning l-aaaa-web@7"
        ]
    );
    seen.ledgers = vec![going(ledger.clone())];
    assert_eq!(
        words(&seen),
        ["appliedmanifestworks.work.open-cluster-management.io aaaa-web finalizers [\"theirs\"]"]
    );
    seen.ledgers[0].metadata.finalizers = Some(vec!["theirs".to_string()]);
    assert_eq!(words(&seen), [] as [&str; 0]);
    let report = report(&seen);
    assert_eq!(report.stuck.len(), 1, "{report:?}");
}

#[test]
fn no_ledger_goes_while_something_cannot_be_seen() {
    let (one, two) = (left("one"), left("two"));
    let ledger = ledger(OURS, "web", &[(&one, false), (&two, false)]);
    let unseen = Look::Unknown("forbidden".to_string());
    let seen =
        seen(record(vec![one.clone()]), vec![ledger], vec![(&one, Look::Absent), (&two, unseen)]);
    assert_eq!(words(&seen), [] as [&str; 0]);
    assert_eq!(report(&seen).stuck.len(), 1);
}

#[test]
fn what_only_the_ledger_lists_goes_too_unless_nothing_was_to_be_removed() {
    let (one, pruned) = (left("one"), left("pruned"));
    let ledger = ledger(OURS, "web", &[(&one, false), (&pruned, false)]);
    let live = vec![(&one, Look::Absent), (&pruned, live(&pruned, &[&ledger]))];
    let mut seen = seen(record(vec![one.clone()]), vec![ledger.clone()], live);
    assert_eq!(words(&seen), ["configmaps shop/pruned delete u-pruned@3"]);
    seen.records[0].spec.remove_strategy = RemoveStrategy::Needless;
    assert_eq!(words(&seen), ["configmaps shop/pruned own \"u-pruned\" []"]);
}

#[test]
fn a_definition_stays_with_the_resource_that_stays() {
    let definition = LeftObject {
        group: "apiextensions.k8s.io".to_string(),
        resource: "customresourcedefinitions".to_string(),
        namespace: String::new(),
        name: "widgets.shop.example".to_string(),
        uid: "u-d".to_string(),
        ..left("")
    };
    let widget = LeftObject {
        group: "shop.example".to_string(),
        resource: "widgets".to_string(),
        stays: Some(Stays::Declared),
        ..left("w")
    };
    let ledger = ledger(OURS, "web", &[(&definition, false)]);
    let seen = seen(
        record(vec![definition.clone(), widget.clone()]),
        vec![ledger.clone()],
        vec![(&definition, live(&definition, &[&ledger])), (&widget, live(&widget, &[]))],
    );
    let why = "it holds what stays: widgets.shop.example shop/w".to_string();
    assert_eq!(fate_of(&seen, &definition), Fate::Stays(why));
}

#[test]
fn a_provider_and_the_definition_it_waits_for_waited_for_each_other() {
    let deployment = LeftObject {
        group: "apps".to_string(),
        resource: "deployments".to_string(),
        ..left("operator")
    };
    let definition = LeftObject {
        group: "apiextensions.k8s.io".to_string(),
        resource: "customresourcedefinitions".to_string(),
        namespace: String::new(),
        ..left("widgets.shop.example")
    };
    let role = LeftObject {
        group: "rbac.authorization.k8s.io".to_string(),
        resource: "roles".to_string(),
        ..left("role")
    };
    let all = [&deployment, &definition, &role];
    let ledger = ledger(OURS, "web", &all.map(|one| (one, false)));
    let mut seen = seen(
        record(all.map(Clone::clone).to_vec()),
        vec![ledger.clone()],
        all.map(|one| (one, live(one, &[&ledger]))).to_vec(),
    );
    assert_eq!(words(&seen), ["deployments.apps shop/operator delete u-operator@3"]);
    let said = "admission webhook \"critical.cleat.dev\" denied the request: ProtectedBy \
                CriticalService operator: customresourcedefinitions.apiextensions.k8s.io \
                widgets.shop.example remains. Delete these first.";
    seen.refused.insert(id(&deployment), said.to_string());
    assert_eq!(holders_due(&seen), [id(&definition)], "before its turn");
    seen.contents.insert(id(&definition), Contents::Ours);
    // The role keeps its place: who is protected may need it for as long as it is there.
    let definitions = "customresourcedefinitions.apiextensions.k8s.io widgets.shop.example";
    assert_eq!(
        words(&seen),
        [
            "deployments.apps shop/operator delete u-operator@3".to_string(),
            format!("{definitions} delete u-widgets.shop.example@3"),
        ]
    );
    let report = report(&seen);
    assert_eq!(report.stuck[1], (id(&role), "it was not deleted".to_string()));
    // A refusal of what is not to go any more lets nobody out of turn.
    seen.live.insert(id(&deployment), live(&deployment, &[]));
    assert_eq!(words(&seen), ["roles.rbac.authorization.k8s.io shop/role delete u-role@3"]);
}

#[test]
fn one_record_of_an_earlier_cluster_of_that_name_refused_all() {
    let ours = record(vec![left("a")]);
    let mut other = ours.clone();
    other.spec.cluster_id = "elsewhere".to_string();
    let mut done = ours.clone();
    done.status = serde_json::from_value(json!({ "conditions": [{
        "type": "Cleaned", "status": "True", "reason": "Cleaned", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }] }))
    .unwrap();
    let all = vec![other.clone(), done.clone(), ours.clone()];
    let chosen = choose(all, "here", false).unwrap();
    assert_eq!(chosen.records, std::slice::from_ref(&ours));
    assert_eq!((chosen.done.len(), chosen.others.len()), (1, 1));
    // What was kept then may be asked for later.
    assert_eq!(choose(vec![done.clone()], "here", true).unwrap().records.len(), 1);
    assert!(choose(vec![other.clone(), done], "here", false).unwrap().records.is_empty());
    assert!(matches!(choose(vec![other], "here", false), Err(Refusal::OtherCluster { .. })));
    let mut kept = ours.clone();
    kept.spec.reason = Reason::Kept;
    assert!(matches!(choose(vec![kept.clone()], "here", false), Err(Refusal::Kept { .. })));
    assert_eq!(choose(vec![kept, ours], "here", false).unwrap().records.len(), 2);
}

/// Cleaning stopped after a minute even while it went on.
#[test]
fn whatever_is_done_counts_as_progress() {
    let (a, ledger) = (left("a"), ledger(OURS, "web", &[(&left("a"), false)]));
    let stage = |ledgers: &[&AppliedManifestWork], look: Look| {
        to_do(&seen(record(vec![]), ledgers.iter().copied().cloned().collect(), vec![(&a, look)]))
    };
    let Look::Present(mut accepted) = live(&a, &[&ledger]) else { panic!() };
    accepted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let stages = [
        stage(&[&ledger], live(&a, &[&ledger])),
        stage(&[&ledger], Look::Present(accepted)),
        stage(&[&ledger], Look::Absent),
        stage(&[], Look::Absent),
    ];
    assert!(stages.is_sorted_by(|before, after| before > after), "{stages:?}");
    assert!(stage(&[&ledger], live(&a, &[])) < stages[0], "a mark that came off");
    let unseen = Look::Unknown("away".to_string());
    assert!(stage(&[], unseen) > stages[3], "what cannot be seen is not done");
}
