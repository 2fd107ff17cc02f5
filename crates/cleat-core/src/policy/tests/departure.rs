//! What lets go of policies, case by case: whatever is not known for certain prunes nothing.

use alloc::string::String;
use alloc::vec;

use cleat_api::configurationpolicy::{
    ConfigurationPolicySpec, ConfigurationPolicyStatus, PruneObjectBehavior, UNINSTALLING,
};
use cleat_api::managedcluster::RemoveStrategy;
use serde_json::{Value, json};

use crate::leave::agent::Standing;
use crate::policy::departure::{
    Told, of_definition, of_deployment, of_hub, of_leave, of_member, of_owner, outlived, together,
};
use crate::policy::observed::{Departure, Owner, Policy};

fn unknown(why: &str) -> Departure {
    Departure::Unknown(why.into())
}

fn present(metadata: Value) -> Told {
    Told::Present(json!({ "metadata": metadata }))
}

fn lost() -> Told {
    Told::Unknown("no answer".into())
}

fn owner(api_version: &str, kind: &str) -> Owner {
    let [api_version, kind, name, uid] = [api_version, kind, "o", "u1"].map(String::from);
    Owner { api_version, kind, name, uid }
}

const POLICIES: &str = "policy.open-cluster-management.io/v1";

#[test]
fn whoever_leaves_leaves_and_what_is_not_known_stops_the_rest() {
    use Departure::{Emptying, Leaving, Staying};
    for (all, expected) in [
        (vec![], Staying),
        (vec![Staying, Staying], Staying),
        (vec![Staying, unknown("a"), unknown("b")], unknown("a")),
        (vec![unknown("a"), Leaving], Leaving),
        (vec![Staying, Emptying, Staying], Emptying),
        (vec![Emptying, unknown("a")], unknown("a")),
        (vec![unknown("a"), Emptying], unknown("a")),
        (vec![Emptying, Leaving], Leaving),
    ] {
        assert_eq!(together(all.clone()), expected, "{all:?}");
    }
}

#[test]
fn a_kind_goes_with_its_definition() {
    for (told, expected) in [
        (present(json!({ "name": "d" })), Departure::Staying),
        (present(json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" })), Departure::Leaving),
        (Told::Absent, Departure::Leaving),
        (Told::NotServed, unknown("definitions are not served now")),
        (lost(), unknown("no answer")),
    ] {
        assert_eq!(of_definition(&told), expected, "{told:?}");
    }
}

#[test]
fn a_deployment_says_that_its_controller_goes() {
    let said = |value: &str| present(json!({ "annotations": { UNINSTALLING: value } }));
    let missing = unknown("the Deployment ns/c is not there");
    for (told, expected) in [
        (present(json!({})), Departure::Staying),
        (said(""), Departure::Staying),
        (said("false"), Departure::Staying),
        (said("true"), Departure::Leaving),
        (said("2026-01-01T00:00:00Z"), Departure::Leaving),
        (Told::Absent, missing.clone()),
        (Told::NotServed, missing),
        (lost(), unknown("no answer")),
    ] {
        assert_eq!(of_deployment(&told, "ns", "c"), expected, "{told:?}");
    }
}

#[test]
fn an_owner_that_is_there_has_nothing_to_do_with_it() {
    for (told, expected) in [
        (present(json!({ "uid": "u1" })), Some(Departure::Staying)),
        (present(json!({ "uid": "u2" })), None),
        (Told::Absent, None),
        (Told::NotServed, Some(unknown("policies are not served now"))),
        (lost(), Some(unknown("no answer"))),
    ] {
        assert_eq!(of_owner(&owner(POLICIES, "Policy"), &told), expected, "{told:?}");
    }
}

#[test]
fn a_policy_older_than_the_definition_of_its_owner_lost_it_with_the_definition() {
    let made = |second: u8| {
        present(json!({ "creationTimestamp": alloc::format!("2026-01-01T00:00:{second:02}Z") }))
    };
    for (policy, definition, expected) in [
        (made(1), made(2), Departure::Leaving),
        (made(2), made(2), Departure::Staying),
        (made(10), made(9), Departure::Staying),
        (made(1), Told::Absent, Departure::Staying),
        (lost(), made(1), unknown("no answer")),
        (made(1), lost(), unknown("no answer")),
    ] {
        assert_eq!(outlived(&policy, &definition), expected, "{policy:?} {definition:?}");
    }
}

/// A policy of the cluster `c1` that the hub sent, is going, and would prune.
fn sent() -> Policy {
    Policy {
        namespace: "c1".into(),
        name: "p".into(),
        uid: "u".into(),
        resource_version: "1".into(),
        generation: 1,
        labels: [].into(),
        annotations: [].into(),
        finalizers: vec!["f".into()],
        deleting: true,
        stopped: false,
        owner: Some(owner(POLICIES, "Policy")),
        spec: ConfigurationPolicySpec {
            prune_object_behavior: PruneObjectBehavior::DeleteAll,
            ..ConfigurationPolicySpec::default()
        },
        status: ConfigurationPolicyStatus::default(),
    }
}

#[test]
fn the_hub_is_asked_before_a_policy_that_it_sent_prunes() {
    let member = |policy: &Policy| of_member(policy, "c1", &Standing::Member);
    assert_eq!(member(&sent()), None);
    let stays = Some(Departure::Staying);
    assert_eq!(member(&Policy { deleting: false, ..sent() }), stays);
    assert_eq!(member(&Policy { finalizers: vec![], ..sent() }), stays);
    assert_eq!(member(&Policy { spec: ConfigurationPolicySpec::default(), ..sent() }), stays);
    for (answer, expected) in [
        (Ok(None), Departure::Staying),
        (Ok(Some(RemoveStrategy::Required)), Departure::Emptying),
        (
            Ok(Some(RemoveStrategy::Needless)),
            unknown("the cluster leaves its hub and keeps everything"),
        ),
        (Err("no answer".into()), unknown("no answer")),
    ] {
        assert_eq!(of_hub(answer.clone()), expected, "{answer:?}");
    }
}

#[test]
fn a_policy_that_the_hub_did_not_send_is_let_go_of_with_the_agent() {
    let elsewhere = Policy { namespace: "other".into(), ..sent() };
    let unowned = Policy { owner: None, ..sent() };
    let other = Policy { owner: Some(owner("example.com/v1", "Policy")), ..sent() };
    let kind = Policy { owner: Some(owner(POLICIES, "PolicySet")), ..sent() };
    for policy in [elsewhere, unowned, other, kind] {
        for (standing, expected) in [
            (Standing::Unknown, Departure::Staying),
            (Standing::Member, Departure::Staying),
            (Standing::Unrecognized("another hub".into()), Departure::Staying),
            (Standing::Leaving(RemoveStrategy::Required), Departure::Leaving),
            (Standing::Leaving(RemoveStrategy::Needless), Departure::Leaving),
        ] {
            assert_eq!(of_member(&policy, "c1", &standing), Some(expected), "{standing:?}");
        }
    }
}

#[test]
fn a_leave_was_foreseen_as_if_the_cluster_stayed() {
    let unowned = Policy { owner: None, ..sent() };
    for (policy, strategy, expected) in [
        (sent(), RemoveStrategy::Required, Departure::Emptying),
        // It is told not to prune, and goes after that.
        (sent(), RemoveStrategy::Needless, Departure::Staying),
        (unowned.clone(), RemoveStrategy::Required, Departure::Leaving),
        (unowned, RemoveStrategy::Needless, Departure::Leaving),
    ] {
        assert_eq!(of_leave(&policy, "c1", strategy), expected, "{strategy:?}");
    }
}
