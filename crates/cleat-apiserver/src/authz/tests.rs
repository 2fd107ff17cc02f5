use serde_json::{Value, json};

use super::*;
use crate::user::{MASTERS, User};

fn role(kind: &str, namespace: &str, name: &str, rules: Value) -> Value {
    json!({"kind": kind, "metadata": {"name": name, "namespace": namespace}, "rules": rules})
}

fn binding(namespace: &str, name: &str, role: (&str, &str), subjects: Value) -> Value {
    json!({
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role.0, "name": role.1},
        "subjects": subjects,
    })
}

fn user(name: &str) -> Value {
    json!([{"kind": "User", "name": name}])
}

fn world() -> Rbac {
    let mut rbac = Rbac::default();
    for (name, rules) in [
        ("reader", json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}])),
        ("scaler", json!([{"apiGroups": ["*"], "resources": ["*/scale"], "verbs": ["*"]}])),
        (
            "named",
            json!([{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"],
                    "verbs": ["get"]}]),
        ),
        ("paths", json!([{"nonResourceURLs": ["/metrics", "/logs/*"], "verbs": ["get"]}])),
        (
            "all",
            json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
                       {"nonResourceURLs": ["*"], "verbs": ["*"]}]),
        ),
        (
            "escalator",
            json!([{"apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["clusterroles"], "verbs": ["escalate", "bind"]}]),
        ),
    ] {
        rbac.put(Kind::ClusterRole, &role("ClusterRole", "", name, rules));
    }
    let local = json!([{"apiGroups": ["apps"], "resources": ["deployments", "deployments/status"],
                        "verbs": ["get"]}]);
    rbac.put(Kind::Role, &role("Role", "ns", "local", local));
    for (name, role, who) in [
        ("b-reader", "reader", user("ann")),
        ("b-scaler", "scaler", json!([{"kind": "Group", "name": "scalers"}])),
        ("b-named", "named", user("ann")),
        ("b-paths", "paths", user("ann")),
        ("b-all", "all", user("root")),
        ("b-missing", "nowhere", user("bob")),
        ("b-escalator", "escalator", user("eve")),
    ] {
        rbac.put(Kind::ClusterRoleBinding, &binding("", name, ("ClusterRole", role), who));
    }
    let account = json!([{"kind": "ServiceAccount", "name": "bot"}]);
    rbac.put(Kind::RoleBinding, &binding("ns", "rb", ("Role", "local"), account));
    rbac.put(Kind::RoleBinding, &binding("ns", "rc", ("ClusterRole", "reader"), user("kim")));
    rbac
}

/// `verb group/resource[/sub][:name][@namespace]`, or `verb /path`.
fn attributes(text: &str) -> Attributes<'_> {
    let (verb, target) = text.split_once(' ').unwrap();
    if target.starts_with('/') && !target.starts_with("/pods") && !target.starts_with("/secrets") {
        return Attributes::path(verb, target);
    }
    let (target, namespace) = target.split_once('@').unwrap_or((target, ""));
    let (target, name) = target.split_once(':').unwrap_or((target, ""));
    let (group, resource) = target.split_once('/').unwrap();
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let target = ResourceTarget { group, resource, subresource, namespace, name };
    Attributes { verb, target: Target::Resource(target) }
}

#[test]
fn decides_by_rules() {
    let rbac = world();
    for (who, what, want) in [
        ("ann", "get /pods@ns", true),
        ("ann", "get /pods", true),
        ("ann", "delete /pods@ns", false),
        ("ann", "get /pods/log@ns", false),
        ("ann", "get /secrets:a@ns", true),
        ("ann", "get /secrets:b@ns", false),
        ("ann", "list /secrets@ns", false),
        ("ann", "get /metrics", true),
        ("ann", "get /metrics/x", false),
        ("ann", "get /logs/a/b", true),
        ("ann", "post /metrics", false),
        ("kim", "get /pods@ns", true),
        ("kim", "get /pods@other", false),
        ("kim", "list /pods", false),
        ("root", "frobnicate x.y/things/part:n@ns", true),
        ("root", "get /anything", true),
        ("system:serviceaccount:ns:bot", "get apps/deployments:d@ns", true),
        ("system:serviceaccount:ns:bot", "get apps/deployments/status:d@ns", true),
        ("system:serviceaccount:ns:bot", "get apps/deployments/scale:d@ns", false),
        ("system:serviceaccount:other:bot", "get apps/deployments:d@ns", false),
        ("nobody", "get /pods@ns", false),
    ] {
        let user = User::new(who, []);
        assert_eq!(rbac.allows(&user, &attributes(what)), want, "{who} {what}");
        assert_eq!(rbac.authorize(&user, &attributes(what)).allowed, want, "{who} {what}");
    }
    let scalers = User::new("any", ["scalers"]);
    assert!(rbac.allows(&scalers, &attributes("update apps/deployments/scale:d@ns")));
    assert!(!rbac.allows(&scalers, &attributes("update apps/deployments:d@ns")));
    assert!(rbac.allows(&User::new("x", [MASTERS]), &attributes("any thing/else")));
}

#[test]
fn says_why() {
    let rbac = world();
    for (who, what, want) in [
        (
            "ann",
            "get /pods@ns",
            r#"RBAC: allowed by ClusterRoleBinding "b-reader" of ClusterRole "reader" to User "ann""#,
        ),
        (
            "system:serviceaccount:ns:bot",
            "get apps/deployments@ns",
            r#"RBAC: allowed by RoleBinding "rb/ns" of Role "local" to ServiceAccount "bot/ns""#,
        ),
        ("bob", "get /pods", r#"RBAC: clusterrole.rbac.authorization.k8s.io "nowhere" not found"#),
        ("nobody", "get /pods", ""),
    ] {
        assert_eq!(rbac.authorize(&User::new(who, []), &attributes(what)).reason, want);
    }
}

#[test]
fn forgets_what_is_removed_or_replaced() {
    let mut rbac = world();
    let ann = User::new("ann", []);
    let pods = attributes("get /pods@ns");
    rbac.put(
        Kind::ClusterRoleBinding,
        &binding("", "b-reader", ("ClusterRole", "reader"), user("joe")),
    );
    assert!(!rbac.allows(&ann, &pods));
    assert!(rbac.allows(&User::new("joe", []), &pods));
    rbac.remove(Kind::ClusterRole, "", "reader");
    assert!(!rbac.allows(&User::new("joe", []), &pods));
    rbac.remove(Kind::RoleBinding, "ns", "rc");
    rbac.remove(Kind::RoleBinding, "ns", "rc");
    rbac.remove(Kind::RoleBinding, "ns", "rb");
    rbac.remove(Kind::Role, "ns", "local");
    let bot = User::new("system:serviceaccount:ns:bot", []);
    assert!(!rbac.allows(&bot, &attributes("get apps/deployments@ns")));
}

#[test]
fn words_refusals_like_upstream() {
    let user = User::new("a<b", []);
    for (what, message) in [
        (
            "list /pods@default",
            r#"pods is forbidden: User "a&lt;b" cannot list resource "pods" in API group "" in the namespace "default""#,
        ),
        (
            "get apps/deployments/scale:web",
            r#"deployments.apps "web" is forbidden: User "a&lt;b" cannot get resource "deployments/scale" in API group "apps" at the cluster scope"#,
        ),
        ("get /x", r#"forbidden: User "a&lt;b" cannot get path "/x""#),
    ] {
        assert_eq!(forbidden(&user, &attributes(what), "").message, message);
    }
    let status = forbidden(&user, &attributes("get /x"), "because <x>");
    assert_eq!(status.message, r#"forbidden: User "a&lt;b" cannot get path "/x": because <x>"#);
    assert_eq!(status.to_json()["details"], json!({}));
}

#[test]
fn refuses_escalation() {
    let rbac = world();
    let write = |new| RoleWrite { namespace: "", url_name: "", old: None, new };
    let wide = role(
        "ClusterRole",
        "",
        "wide",
        json!([
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "delete", "watch"]},
            {"nonResourceURLs": ["/x"], "verbs": ["get"]},
        ]),
    );
    let ann = User::new("ann", ["g1", "g2"]);
    let status = rbac.check_role(&ann, &write(&wide)).unwrap_err();
    assert_eq!(
        status.message,
        "clusterroles.rbac.authorization.k8s.io \"wide\" is forbidden: user \"ann\" \
         (groups=[\"g1\" \"g2\"]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"watch\"]}\n\
         {NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}"
    );
    let narrow = role(
        "ClusterRole",
        "",
        "narrow",
        json!([
            {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"], "verbs": ["get"]},
            {"nonResourceURLs": ["/logs/x*"], "verbs": ["get"]},
        ]),
    );
    assert_eq!(rbac.check_role(&ann, &write(&narrow)), Ok(()));
    assert_eq!(rbac.check_role(&User::new("eve", []), &write(&wide)), Ok(()));
    assert_eq!(rbac.check_role(&User::new("x", [MASTERS]), &write(&wide)), Ok(()));

    let mut aggregating = role("ClusterRole", "", "agg", json!([]));
    aggregating["aggregationRule"] = json!({"clusterRoleSelectors": [{}]});
    let status = rbac.check_role(&ann, &write(&aggregating)).unwrap_err();
    assert!(status.message.ends_with(
        "\"agg\" is forbidden: must have cluster-admin privileges to use the aggregationRule"
    ));
    assert_eq!(rbac.check_role(&User::new("root", []), &write(&aggregating)), Ok(()));

    let mut finalized = wide.clone();
    finalized["metadata"]["finalizers"] = json!(["x"]);
    let update = RoleWrite { namespace: "", url_name: "wide", old: Some(&finalized), new: &wide };
    assert_eq!(rbac.check_role(&ann, &update), Ok(()));
}

#[test]
fn refuses_bindings_to_more_than_held() {
    let rbac = world();
    let check = |who: &str, namespace, role| {
        let new = binding(namespace, "b", role, user("x"));
        let write = BindingWrite { namespace, old: None, new: &new };
        rbac.check_binding(&User::new(who, []), &write)
    };
    assert_eq!(check("ann", "", ("ClusterRole", "reader")), Ok(()));
    assert_eq!(check("kim", "ns", ("ClusterRole", "reader")), Ok(()));
    assert_eq!(check("eve", "", ("ClusterRole", "all")), Ok(()));
    let status = check("kim", "", ("ClusterRole", "reader")).unwrap_err();
    assert_eq!(
        status.message,
        "clusterrolebindings.rbac.authorization.k8s.io \"b\" is forbidden: user \"kim\" \
         (groups=[]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}"
    );
    let status = check("ann", "ns", ("Role", "absent")).unwrap_err();
    assert_eq!(status.message, "rolebindings.rbac.authorization.k8s.io \"absent\" not found");
    assert_eq!(status.code, 404);
    let status = check("bob", "", ("ClusterRole", "scaler")).unwrap_err();
    assert!(status.message.ends_with(
        "; resolution errors: [clusterrolebindings.rbac.authorization.k8s.io \"nowhere\" not found]"
    ));
}

#[test]
fn bootstrap_roles_are_those_people_rely_on() {
    let objects = bootstrap_objects();
    let mut rbac = Rbac::default();
    for object in objects {
        let kind = match object["kind"].as_str().unwrap() {
            "ClusterRole" => Kind::ClusterRole,
            "Role" => Kind::Role,
            "ClusterRoleBinding" => Kind::ClusterRoleBinding,
            _ => Kind::RoleBinding,
        };
        rbac.put(kind, object);
    }
    let find = |name: &str| {
        objects
            .iter()
            .find(|o| o["kind"] == "ClusterRole" && o["metadata"]["name"] == name)
            .unwrap()
    };
    let count = |name: &str| find(name)["rules"].as_array().unwrap().len();
    assert!(count("view") > 5 && count("edit") > count("view") && count("admin") > count("edit"));
    for object in objects {
        assert_eq!(reconciled_bootstrap_object(object, object), None);
    }
    let mut less = find("system:discovery").clone();
    less["rules"][0]["nonResourceURLs"].as_array_mut().unwrap().pop();
    less["metadata"]["labels"]["mine"] = json!("kept");
    let more = reconciled_bootstrap_object(&less, find("system:discovery")).unwrap();
    assert_eq!(more["rules"].as_array().unwrap().len(), 2);
    assert_eq!(more["metadata"]["labels"]["mine"], "kept");

    let authenticated = User::new("ann", ["system:authenticated"]);
    assert!(rbac.allows(&authenticated, &attributes("get /apis")));
    assert!(rbac.allows(
        &authenticated,
        &attributes("create authorization.k8s.io/selfsubjectaccessreviews")
    ));
    assert!(!rbac.allows(&authenticated, &attributes("get /metrics")));
    assert!(rbac.allows(&User::anonymous(), &attributes("get /healthz")));
    assert!(!rbac.allows(&User::anonymous(), &attributes("get /apis")));
    let collector = User::service_account("kube-system", "generic-garbage-collector");
    assert!(rbac.allows(&collector, &attributes("delete x/ys:z@n")));
}

#[test]
fn the_right_to_all_paths_is_none_to_backups() {
    let rule =
        |urls: Value| super::Rule::from_json(&json!({"nonResourceURLs": urls, "verbs": ["*"]}));
    let (all, named) = (rule(json!(["*"])), rule(json!(["/backup"])));
    for path in ["get /backup", "get /backup/"] {
        assert!(!all.allows(&attributes(path)), "{path}");
        assert!(!rule(json!(["/back*"])).allows(&attributes(path)), "{path}");
        assert!(named.allows(&attributes(path)), "{path}");
    }
    assert!(all.allows(&attributes("get /backups")));
    // Nor can it be had by writing it into a role of one's own.
    assert!(!all.covers(&named));
    assert!(named.covers(&named));
}

#[test]
fn aggregates_by_label_and_settles() {
    let labelled = |name: &str, label: &str, rules: Value| {
        let mut role = role("ClusterRole", "", name, rules);
        role["metadata"]["labels"] = json!({"to": label});
        role
    };
    let rule = |verb: &str| json!({"apiGroups": [""], "resources": ["pods"], "verbs": [verb]});
    let mut target = labelled("z", "a", json!([rule("old")]));
    target["aggregationRule"] = json!({"clusterRoleSelectors": [
        {"matchLabels": {"to": "a"}}, {"matchLabels": {"to": "b"}}]});
    let all = [
        labelled("one", "b", json!([rule("get"), rule("list")])),
        labelled("three", "c", json!([rule("delete")])),
        labelled("two", "a", json!([rule("get")])),
        target.clone(),
    ];
    let rules = aggregated_rules(&target, all.iter()).unwrap();
    assert_eq!(rules, json!([rule("get"), rule("list")]));
    target["rules"] = rules;
    assert_eq!(aggregated_rules(&target, all.iter()), None);
    assert_eq!(aggregated_rules(&all[0], all.iter()), None);
}

#[test]
fn reviews_answer() {
    let rbac = world();
    let ann = User::new("ann", []);
    let ask = |verb: &str| {
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "X",
        "spec": {"resourceAttributes": {"verb": verb, "resource": "pods", "namespace": "ns"}}})
    };
    let review = self_subject_access_review(ask("get"), &ann, &rbac).unwrap();
    assert_eq!(review["status"]["allowed"], true);
    assert_eq!(review["metadata"], json!({}));
    let review = self_subject_access_review(ask("delete"), &ann, &rbac).unwrap();
    assert_eq!(review["status"], json!({"allowed": false}));

    let status = subject_access_review(ask("get"), &rbac).unwrap_err();
    assert_eq!(
        status.message,
        ".authorization.k8s.io \"\" is invalid: spec.user: Invalid value: \"\": \
         at least one of user or group must be specified"
    );
    let status = self_subject_access_review(json!({"spec": {}}), &ann, &rbac).unwrap_err();
    assert_eq!(
        status.message,
        ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes: Invalid value: null: \
         exactly one of nonResourceAttributes or resourceAttributes must be specified"
    );

    let mut local = ask("get");
    local["spec"]["user"] = json!("kim");
    local["metadata"] = json!({"namespace": "ns"});
    let review = local_subject_access_review(local.clone(), "ns", &rbac).unwrap();
    assert_eq!(review["status"]["allowed"], true);
    assert_eq!(local_subject_access_review(local, "other", &rbac).unwrap_err().code, 400);

    let rules = self_subject_rules_review(
        &json!({"spec": {"namespace": "ns"}}),
        &User::new("kim", []),
        &rbac,
    );
    assert_eq!(
        rules.unwrap()["status"],
        json!({
            "resourceRules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}],
            "nonResourceRules": [], "incomplete": false,
        })
    );
    let rules = self_subject_rules_review(&json!({"spec": {}}), &ann, &rbac).unwrap_err();
    assert_eq!(rules.message, "no namespace on request");
}
