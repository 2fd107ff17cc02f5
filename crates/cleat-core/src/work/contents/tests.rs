use super::*;
use crate::work::ownership::LEDGER_KIND;
use std::vec;

fn found(resource: &str, name: &str) -> Found {
    let id =
        Id { resource: resource.into(), namespace: "n".into(), name: name.into(), ..Id::default() };
    Found {
        uid: format!("{resource}/{name}"),
        id,
        terminating: false,
        owners: vec![],
        account: None,
        above: BTreeMap::new(),
        labels: BTreeMap::new(),
        finalizers: vec![],
    }
}

fn owner(kind: &str, name: &str, uid: &str) -> Owner {
    let api_version =
        if kind == LEDGER_KIND { "work.open-cluster-management.io/v1" } else { "apps/v1" };
    Owner {
        api_version: api_version.into(),
        kind: kind.into(),
        name: name.into(),
        uid: uid.into(),
        controller: None,
        block_owner_deletion: None,
    }
}

#[test]
fn what_comes_with_every_namespace_is_nobodys() {
    let token = Found { account: Some("default".into()), ..found("secrets", "default-token") };
    let all = [
        found("configmaps", "kube-root-ca.crt"),
        found("serviceaccounts", "default"),
        found("events", "e"),
        token,
    ];
    assert_eq!(judge(&all, "hub"), Contents::Ours);
}

#[test]
fn what_others_brought_is_foreign_even_beside_what_goes() {
    let going = Found { terminating: true, ..found("pods", "p") };
    let map = found("configmaps", "theirs");
    assert_eq!(judge(&[going, map.clone()], "hub"), Contents::Foreign(vec![map.id]));
}

#[test]
fn dependents_follow_and_orphans_are_waited_for() {
    let deployment = found("deployments", "d");
    let mut set = found("replicasets", "r");
    set.owners = vec![owner("Deployment", "d", &deployment.uid)];
    set.above = [(deployment.uid.clone(), Above::Gone)].into();
    assert_eq!(judge(&[set.clone()], "hub"), Contents::Waiting(set.id.to_string()));
    let id = deployment.id.clone();
    assert_eq!(judge(&[deployment, set], "hub"), Contents::Foreign(vec![id]));
}

#[test]
fn another_hubs_objects_are_foreign_and_another_works_are_waited_for() {
    let mut held = found("configmaps", "m");
    held.owners = vec![owner(LEDGER_KIND, "hub-other-work", "l1")];
    assert_eq!(judge(&[held.clone()], "hub"), Contents::Waiting(held.id.to_string()));
    held.owners.push(owner(LEDGER_KIND, "elsewhere-work", "l2"));
    assert_eq!(judge(&[held.clone()], "hub"), Contents::Foreign(vec![held.id]));
}

fn there(owners: Vec<Owner>) -> Above {
    Above::There { terminating: false, owners }
}

/// One object, who owns it, and what is known of the owners.
fn owned(owners: &[Owner], above: &[(&str, Above)]) -> Found {
    let mut one = found("configmaps", "m");
    one.owners = owners.to_vec();
    one.above = above.iter().map(|(uid, above)| ((*uid).into(), above.clone())).collect();
    one
}

#[test]
fn what_belonged_to_something_that_lives_outside_was_waited_for_for_ever() {
    let bundle = || owner("Bundle", "b", "b");
    let ledger = |name: &str| owner(LEDGER_KIND, name, name);
    let dying = Above::There { terminating: true, owners: vec![] };
    let both = [bundle(), owner("Bundle", "c", "c")];
    let id = found("configmaps", "m").id;
    let foreign = Contents::Foreign(vec![id.clone()]);
    let waiting = Contents::Waiting(id.to_string());
    let dark = |why: &str| {
        let why = format!("whose {id} is cannot be told: its owner Bundle b {why}");
        Contents::Unknown(why)
    };
    for (what, one, expected) in [
        ("it lives", owned(&[bundle()], &[("b", there(vec![]))]), &foreign),
        ("it is gone", owned(&[bundle()], &[("b", Above::Gone)]), &waiting),
        ("it is going", owned(&[bundle()], &[("b", dying.clone())]), &waiting),
        ("one of two lives", owned(&both, &[("b", Above::Gone), ("c", there(vec![]))]), &foreign),
        (
            "one of two cannot be seen",
            owned(&both, &[("b", Above::Unknown("no".into())), ("c", Above::Gone)]),
            &dark("cannot be seen: no"),
        ),
        ("nobody looked", owned(&[bundle()], &[]), &dark("was not looked for")),
        ("it is ours", owned(&[bundle()], &[("b", there(vec![ledger("hub-w")]))]), &Contents::Ours),
        (
            "it is another hub's as well",
            owned(&[bundle()], &[("b", there(vec![ledger("hub-w"), ledger("x-w")]))]),
            &foreign,
        ),
        (
            "who owns it is gone",
            owned(&[bundle()], &[("b", there(vec![owner("Root", "r", "r")])), ("r", Above::Gone)]),
            &waiting,
        ),
        (
            "who owns it lives",
            owned(
                &[bundle()],
                &[("b", there(vec![owner("Root", "r", "r")])), ("r", there(vec![]))],
            ),
            &foreign,
        ),
        ("they own each other", owned(&[bundle()], &[("b", there(vec![bundle()]))]), &foreign),
    ] {
        assert_eq!(judge(&[one], "hub"), *expected, "{what}");
    }
}

#[test]
fn what_belongs_to_somebody_outside_as_well_does_not_follow_who_is_here() {
    let ours = owned(
        &[owner("Bundle", "b", "b")],
        &[("b", there(vec![owner(LEDGER_KIND, "hub-w", "l")]))],
    );
    let mut both = found("secrets", "s");
    both.owners = vec![owner("ConfigMap", "m", &ours.uid), owner("Node", "x", "x")];
    for (above, expected) in [
        (there(vec![]), Contents::Foreign(vec![both.id.clone()])),
        (Above::Gone, Contents::Waiting(both.id.to_string())),
    ] {
        both.above = [("x".into(), above)].into();
        assert_eq!(judge(&[ours.clone(), both.clone()], "hub"), expected);
    }
    both.owners.pop();
    assert_eq!(judge(&[ours, both], "hub"), Contents::Ours);
}

#[test]
fn a_namespace_that_may_be_spared_yet_takes_nothing_along() {
    let space = Owner { api_version: "v1".into(), ..owner("Namespace", "n", "n") };
    let one = owned(&[space], &[("n", there(vec![owner(LEDGER_KIND, "hub-w", "l")]))]);
    let foreign = Contents::Foreign(vec![one.id.clone()]);
    assert_eq!(judge(std::slice::from_ref(&one), "hub"), foreign);
    assert_eq!(
        judge(&[one.once_going(|_| true)], "hub"),
        Contents::Waiting("configmaps n/m".into())
    );
}

#[test]
fn what_whoever_asks_takes_along_does_not_count_and_what_belongs_to_it_is_waited_for() {
    let deployment = found("deployments", "d");
    let mut set = found("replicasets", "r");
    set.owners = vec![owner("Deployment", "d", &deployment.uid)];
    let own: BTreeSet<&str> = [deployment.uid.as_str()].into();
    let all = [deployment.clone(), set.clone()];
    assert_eq!(judge_beside(&all[..1], &own, "hub"), Contents::Ours);
    assert_eq!(judge_beside(&all, &own, "hub"), Contents::Waiting(set.id.to_string()));
}
