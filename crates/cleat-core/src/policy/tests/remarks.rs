//! What is only said to people, and what it has to wait for.

use alloc::vec;
use alloc::vec::Vec;

use serde_json::{Value, json};

use super::site::{observed, policy};
use crate::policy::observed::Owner;
use crate::policy::{apart, plan};
use crate::write::Write;

#[test]
fn what_has_to_be_put_right_does_not_wait_for_remarks() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "namespace": "default" },
    });
    let templates = json!([{ "complianceType": "musthave", "objectDefinition": pod }]);
    let spec = json!({ "remediationAction": "enforce", "object-templates": templates });
    let mut seen = observed(spec, &[]);
    policy(&mut seen).owner = Some(Owner {
        api_version: "policy.open-cluster-management.io/v1".into(),
        kind: "Policy".into(),
        name: "owner".into(),
        uid: "owner-uid".into(),
    });
    let whole = plan(&seen);
    let (rest, remarks) = apart(whole.clone());
    let told: Vec<(&str, &str)> = rest
        .iter()
        .flatten()
        .map(|action| {
            let verb = match action.write {
                Write::Create(_) => "create",
                Write::ReplaceStatus(_) => "status",
                _ => "other",
            };
            (verb, action.target.id.resource.as_str())
        })
        .collect();
    let expected = [("create", "events"), ("status", "configurationpolicies"), ("create", "pods")];
    assert_eq!(told, expected, "the owner is told first");
    assert_eq!(rest.len(), 3, "in as many steps");
    // Not before the status shows what they are about.
    assert_eq!(remarks.iter().map(|remark| remark.after).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(whole.iter().flatten().count(), rest.iter().flatten().count() + remarks.len());
}

#[test]
fn an_event_that_a_template_wants_is_no_remark() {
    let spec = json!({ "remediationAction": "enforce", "object-templates": [] });
    let seen = observed(spec, &[]);
    let (_, remarks) = apart(crate::policy::report(&seen).publish);
    let remark = remarks.into_iter().next().unwrap().action;
    let changed = |pointer: &str, value: &str| {
        let mut other = remark.clone();
        let Write::Create(event) = &mut other.write else { panic!("it is created") };
        *event.pointer_mut(pointer).unwrap() = Value::String(value.into());
        other
    };
    for other in [
        changed("/reason", "Started"),
        changed("/source/component", "kubelet"),
        changed("/involvedObject/kind", "Pod"),
    ] {
        assert_eq!(apart(vec![vec![other.clone()]]), (vec![vec![other]], vec![]));
    }
    assert_eq!(apart(vec![vec![remark]]).0, Vec::<Vec<_>>::new());
}
