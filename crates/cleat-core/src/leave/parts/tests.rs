use super::*;

fn binding(name: &str, namespaces: &[&str]) -> Seen {
    let subjects = namespaces.iter().map(|of| json!({ "name": NAME, "namespace": of }));
    let subjects: Vec<Value> = subjects.collect();
    Seen::Present(json!({
        "metadata": { "name": name, "uid": format!("u-{name}") }, "subjects": subjects,
    }))
}

fn seen(contents: Contents, bindings: &[(OwnPart, Seen)]) -> Observed {
    let plain = |uid: &str| Seen::Present(json!({ "metadata": { "uid": uid } }));
    let mut parts: BTreeMap<OwnPart, Seen> =
        OwnPart::ALL.into_iter().map(|part| (part, Seen::Absent)).collect();
    parts.extend([(OwnPart::Account, plain("account")), (OwnPart::Namespace, plain("namespace"))]);
    parts.extend(bindings.iter().cloned());
    Observed { namespace: "ours".to_string(), parts, contents }
}

fn words(seen: &Observed) -> Vec<String> {
    let steps = plan(seen).into_iter();
    let word = |action: Action| match action.write {
        Write::Delete { uid, .. } => uid,
        Write::Merge(patch) => {
            let owner = &patch["metadata"]["ownerReferences"][0]["name"];
            format!("{} under {owner}", action.target.id.name)
        }
        other => format!("{other:?}"),
    };
    steps.map(|step| step.into_iter().map(word).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn the_rights_of_an_agent_of_an_earlier_version_stayed_behind() {
    let new = (OwnPart::Binding, binding("cleat-agent:ours", &["ours"]));
    let old = (OwnPart::OldBinding, binding(NAME, &["ours"]));
    let foreign = || Contents::Foreign(vec![Id::default()]);
    for (contents, bindings, expected) in [
        (
            Contents::Ours,
            vec![old.clone()],
            vec!["cleat-agent under \"ours\"", "namespace", "u-cleat-agent"],
        ),
        (
            Contents::Ours,
            vec![new.clone(), old.clone()],
            vec![
                "u-cleat-agent",
                "cleat-agent:ours under \"ours\"",
                "namespace",
                "u-cleat-agent:ours",
            ],
        ),
        (foreign(), vec![old.clone()], vec!["cleat-agent under \"cleat-agent\"", "u-cleat-agent"]),
        (
            foreign(),
            vec![new, old],
            vec!["u-cleat-agent", "cleat-agent under \"cleat-agent:ours\"", "u-cleat-agent:ours"],
        ),
    ] {
        assert_eq!(words(&seen(contents, &bindings)), expected);
    }
}

#[test]
fn that_the_agent_is_gone_was_believed_of_a_delete_that_was_sent() {
    let mut all =
        seen(Contents::Ours, &[(OwnPart::Binding, binding("cleat-agent:ours", &["ours"]))]);
    let words = |seen: &Observed| -> Vec<String> {
        let word = |one: Remaining| format!("{}: {} {}", one.id, one.why, one.stays);
        remaining(seen).into_iter().map(word).collect()
    };
    let deleted = json!({ "uid": "n", "deletionTimestamp": "2026-01-01T00:00:00Z" });
    all.parts.insert(OwnPart::Namespace, Seen::Present(json!({ "metadata": deleted })));
    all.parts.insert(OwnPart::Credentials, Seen::Unknown);
    assert_eq!(
        words(&all),
        [
            "secrets ours/hub-kubeconfig-secret: it cannot be seen false",
            "serviceaccounts ours/cleat-agent: it was not deleted false",
            "clusterrolebindings.rbac.authorization.k8s.io cleat-agent:ours: it was not \
             deleted false",
            "namespaces ours: it is going false",
        ]
    );
    // A namespace in which others have something stays, and so does a binding of others.
    let map = Id { resource: "configmaps".to_string(), name: "m".to_string(), ..Id::default() };
    let mut kept =
        seen(Contents::Foreign(vec![map]), &[(OwnPart::OldBinding, binding(NAME, &["theirs"]))]);
    kept.parts.insert(OwnPart::Account, Seen::Absent);
    let remaining = remaining(&kept);
    assert!(matches!(&*remaining, [one] if one.stays && one.id.name == "ours"), "{remaining:?}");
}

#[test]
fn a_binding_that_is_also_for_others_stays() {
    for subjects in [&["theirs"] as &[&str], &["ours", "theirs"], &[]] {
        let old = (OwnPart::OldBinding, binding(NAME, subjects));
        assert_eq!(words(&seen(Contents::Unknown(String::new()), &[old])), [""; 0]);
    }
}

#[test]
fn the_right_to_take_things_away_goes_last_and_once() {
    let new = || (OwnPart::Binding, binding("cleat-agent:ours", &["ours"]));
    let mut all = seen(Contents::Ours, &[new()]);
    let plain = |uid: &str| Seen::Present(json!({ "metadata": { "uid": uid } }));
    for (part, uid) in [(OwnPart::Credentials, "secret"), (OwnPart::Deployment, "deployment")] {
        all.parts.insert(part, plain(uid));
    }
    assert_eq!(
        words(&all),
        [
            "cleat-agent:ours under \"ours\"",
            "namespace",
            "deployment",
            "secret",
            "u-cleat-agent:ours",
        ]
    );
    // The namespace is going: what hangs on it is not hung again, and the binding is tried.
    let mut going = seen(Contents::Unknown(String::new()), &[new()]);
    let deleted = json!({ "uid": "namespace", "deletionTimestamp": "2026-01-01T00:00:00Z" });
    going.parts.insert(OwnPart::Namespace, Seen::Present(json!({ "metadata": deleted })));
    going.parts.insert(OwnPart::Account, Seen::Absent);
    assert_eq!(words(&going), ["u-cleat-agent:ours"]);
    // Who cannot look any more does nothing.
    for seen in going.parts.values_mut() {
        *seen = Seen::Unknown;
    }
    assert_eq!(words(&going), [""; 0]);
    assert!(going.is_out_of_sight());
}

#[test]
fn a_binding_that_could_not_be_read_stayed_behind_for_ever() {
    let new = (OwnPart::Binding, binding("cleat-agent:ours", &["ours"]));
    for contents in [Contents::Ours, Contents::Foreign(vec![Id::default()])] {
        let all = seen(contents, core::slice::from_ref(&new));
        assert_ne!(words(&all), [""; 0]);
        for part in OwnPart::ALL {
            let mut blurred = all.clone();
            blurred.parts.insert(part, Seen::Unknown);
            assert_eq!(words(&blurred), [""; 0], "{part:?} may be what the rest has to hang on");
            assert!(!blurred.is_out_of_sight());
        }
    }
}

/// A cluster on which an agent takes itself away, and a collector that is always faster than it.
struct Cluster {
    parts: BTreeMap<OwnPart, Value>,
    contents: Contents,
}

impl Cluster {
    /// `deployed`: the agent has its rights by these bindings; else it runs elsewhere.
    fn new(contents: Contents, deployed: Option<&[OwnPart]>) -> Self {
        let mut parts = vec![OwnPart::Credentials, OwnPart::Pending, OwnPart::Namespace];
        if let Some(bindings) = deployed {
            parts.extend([OwnPart::Bootstrap, OwnPart::Deployment, OwnPart::Account]);
            parts.extend(bindings);
        }
        let live = |part: OwnPart| {
            let name = part.target("ours").id.name;
            let subjects = json!([{ "name": NAME, "namespace": "ours" }]);
            json!({
                "metadata": { "name": name, "uid": format!("{part:?}") }, "subjects": subjects,
            })
        };
        Self { parts: parts.into_iter().map(|part| (part, live(part))).collect(), contents }
    }

    fn observe(&self) -> Observed {
        let seen = |part| self.parts.get(&part).cloned().map_or(Seen::Absent, Seen::Present);
        let parts = OwnPart::ALL.into_iter().map(|part| (part, seen(part))).collect();
        Observed { namespace: "ours".to_string(), parts, contents: self.contents.clone() }
    }

    fn has(&self, part: OwnPart) -> bool {
        self.parts.contains_key(&part)
    }

    /// Whether an agent that starts again can go on.
    fn can_go_on(&self, deployed: bool) -> bool {
        let bound = self.has(OwnPart::Binding) || self.has(OwnPart::OldBinding);
        let runs = self.has(OwnPart::Deployment) && self.has(OwnPart::Account) && bound;
        self.has(OwnPart::Credentials) && (runs || !deployed)
    }

    fn perform(&mut self, action: &Action) {
        let same = |part: &OwnPart| part.target("ours").id == action.target.id;
        let part = OwnPart::ALL.into_iter().find(same).unwrap();
        match &action.write {
            Write::Delete { .. } => drop(self.parts.remove(&part)),
            Write::Merge(patch) => {
                let owners = patch["metadata"]["ownerReferences"].clone();
                self.parts.get_mut(&part).unwrap()["metadata"]["ownerReferences"] = owners;
            }
            other => panic!("{other:?}"),
        }
        loop {
            let there: Vec<String> = self.parts.keys().map(|part| format!("{part:?}")).collect();
            let before = self.parts.len();
            let namespace = self.has(OwnPart::Namespace);
            self.parts.retain(|part, live| {
                let inside = !part.target("ours").id.namespace.is_empty();
                let owner = live["metadata"]["ownerReferences"][0]["uid"].as_str();
                let orphaned = owner.is_some_and(|uid| !there.iter().any(|one| one == uid));
                !(orphaned || (inside && !namespace))
            });
            if self.parts.len() == before {
                return;
            }
        }
    }

    /// Does what is planned until there is nothing to do, the agent ends, or so many actions are done.
    fn run(&mut self, deployed: bool, most: usize) {
        let mut left = most;
        loop {
            let plan = plan(&self.observe());
            if plan.is_empty() {
                return;
            }
            for action in plan.iter().flatten() {
                // It ends with its Deployment, and without rights it can do nothing.
                if left == 0 || (deployed && !self.can_go_on(true)) {
                    return;
                }
                left -= 1;
                let same = |part: &OwnPart| part.target("ours").id == action.target.id;
                if OwnPart::ALL.into_iter().find(same).is_some_and(|part| self.has(part)) {
                    self.perform(action);
                }
            }
        }
    }
}

#[test]
fn an_agent_that_ended_on_its_way_out_left_its_rights_behind() {
    let foreign = || Contents::Foreign(vec![Id::default()]);
    let unknown = || Contents::Unknown("out of sight".to_string());
    let (new, old) = (OwnPart::Binding, OwnPart::OldBinding);
    for contents in [Contents::Ours, foreign(), unknown()] {
        let deployed: [Option<&[OwnPart]>; 4] =
            [Some(&[new]), Some(&[old]), Some(&[old, new]), None];
        for deployed in deployed {
            for crash in 0..12 {
                let mut cluster = Cluster::new(contents.clone(), deployed);
                cluster.run(deployed.is_some(), crash);
                // Another of it starts, if it can.
                if cluster.can_go_on(deployed.is_some()) {
                    cluster.run(deployed.is_some(), 99);
                }
                let mut left: Vec<OwnPart> = cluster.parts.keys().copied().collect();
                left.retain(|part| *part != OwnPart::Namespace || contents == Contents::Ours);
                assert_eq!(left, [], "{contents:?} {deployed:?} {crash}");
            }
        }
    }
}
