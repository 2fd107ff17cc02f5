use alloc::string::ToString;
use alloc::vec;

use super::*;

fn request(requester: &Agent, wanted: &Agent) -> Request {
    Request {
        name: "r".to_string(),
        uid: "u".to_string(),
        resource_version: "1".to_string(),
        username: requester.user(),
        groups: requester.groups().into_iter().chain(["system:authenticated".into()]).collect(),
        signer: SIGNER.to_string(),
        usages: vec!["client auth".to_string(), "digital signature".to_string()],
        label: Some(wanted.cluster.clone()),
        subject: Ok(wanted.subject()),
        decided: false,
    }
}

fn bootstrap(wanted: &Agent) -> Request {
    let groups = vec!["system:serviceaccounts".to_string()];
    Request { username: bootstrap_user(), groups, ..request(wanted, wanted) }
}

const ACCEPTED: Option<Cluster> = Some(Cluster { accepted: true, may_renew: Some(true) });

#[test]
fn an_agent_may_renew_its_own_certificate_and_no_other() {
    let (a, b) = (Agent::new("a", "x"), Agent::new("b", "x"));
    assert_eq!(judge(&request(&a, &a), ACCEPTED), Judgement::Approve);
    let denied = |request: Request, cluster| {
        let judgement = judge(&request, cluster);
        assert!(matches!(judgement, Judgement::Deny(_)), "{judgement:?} of {request:?}");
        assert!(decide(&request, &judgement).is_some());
    };
    denied(request(&a, &b), ACCEPTED);
    denied(request(&a, &Agent::new("a", "y")), ACCEPTED);
    denied(request(&a, &a), None);
    denied(request(&a, &a), Some(Cluster { accepted: false, may_renew: Some(true) }));
    denied(request(&a, &a), Some(Cluster { accepted: true, may_renew: Some(false) }));
    let unknown = Some(Cluster { accepted: true, may_renew: None });
    assert_eq!(judge(&request(&a, &a), unknown), Judgement::Later);
}

#[test]
fn exactly_the_names_of_an_agent_are_certified() {
    let a = Agent::new("a", "x");
    let with = |subject: Subject| Request { subject: Ok(subject), ..request(&a, &a) };
    let organizations = |more: &[&str]| {
        let all = a.groups().into_iter().chain(more.iter().map(ToString::to_string));
        with(Subject { organizations: all.collect(), ..a.subject() })
    };
    let odd = [
        organizations(&["system:masters"]),
        organizations(&["system:open-cluster-management:b"]),
        with(Subject { organizations: vec![AGENTS.to_string()], ..a.subject() }),
        with(Subject { others: vec!["DNS name".to_string()], ..a.subject() }),
        with(Subject { common_name: "admin".to_string(), ..a.subject() }),
        Request { subject: Err("rubbish".to_string()), ..request(&a, &a) },
        Request { label: Some("b".to_string()), ..request(&a, &a) },
        Request { usages: vec!["server auth".to_string()], ..request(&a, &a) },
        Request {
            usages: vec!["client auth".to_string(), "cert sign".to_string()],
            ..request(&a, &a)
        },
    ];
    for request in odd {
        let judgement = judge(&request, ACCEPTED);
        assert!(matches!(judgement, Judgement::Deny(_)), "{judgement:?} of {request:?}");
        // The same from those who have no certificate yet.
        let Request { username, groups, .. } = bootstrap(&a);
        let judgement = judge(&Request { username, groups, ..request.clone() }, ACCEPTED);
        assert!(matches!(judgement, Judgement::Deny(_)), "{judgement:?} of {request:?}");
    }
    assert_eq!(judge(&Request { label: None, ..request(&a, &a) }, ACCEPTED), Judgement::Approve);
}

#[test]
fn a_first_certificate_is_a_persons_decision() {
    let a = Agent::new("a", "x");
    for cluster in [None, ACCEPTED] {
        let judgement = judge(&bootstrap(&a), cluster);
        assert_eq!(judgement, Judgement::Ask(a.clone()));
        assert_eq!(decide(&bootstrap(&a), &judgement), None);
    }
}

#[test]
fn what_is_none_of_ours_is_left_alone() {
    let a = Agent::new("a", "x");
    let node = Request {
        username: "system:bootstrap:abc".to_string(),
        groups: vec!["system:bootstrappers".to_string()],
        subject: Ok(Subject {
            common_name: "system:node:n".to_string(),
            organizations: vec!["system:nodes".to_string()],
            others: Vec::new(),
        }),
        ..request(&a, &a)
    };
    assert_eq!(judge(&node, None), Judgement::Ignore);
    let elsewhere = Request { signer: "example.com/s".to_string(), ..request(&a, &a) };
    assert_eq!(judge(&elsewhere, ACCEPTED), Judgement::Ignore);
    assert_eq!(judge(&Request { decided: true, ..request(&a, &a) }, ACCEPTED), Judgement::Ignore);
}
