use serde_json::{Map, Value, json};

use super::{Policies, validate_binding, validate_policy};
use crate::{
    admission::{
        GroupVersionKind, GroupVersionResource, Operation, Request, Surroundings, Verdict,
    },
    user::User,
};

/// A namespace `dev`, limits of two teams in it, and one that every cluster has.
struct Around;

impl Surroundings for Around {
    fn namespace_labels(&self, namespace: &str) -> Option<Map<String, Value>> {
        self.namespace(namespace)?.pointer("/metadata/labels")?.as_object().cloned()
    }

    fn namespace(&self, name: &str) -> Option<Value> {
        (name == "dev").then(|| {
            json!({"metadata": {"name": "dev", "labels": {"env": "test"}, "managedFields": []},
                   "status": {"phase": "Active", "conditions": []}})
        })
    }

    fn is_namespaced(&self, _: &str, kind: &str) -> Option<bool> {
        match kind {
            "Limit" => Some(true),
            "ClusterLimit" => Some(false),
            _ => None,
        }
    }

    fn parameter(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, String> {
        let mut all = self.parameters(api_version, kind, namespace)?;
        all.retain(|object| object["metadata"]["name"] == name);
        Ok(all.pop())
    }

    fn parameters(&self, _: &str, kind: &str, namespace: &str) -> Result<Vec<Value>, String> {
        let limit = |name: &str, most: i64| json!({"metadata": {"name": name, "labels": {"of": "limits"}}, "most": most});
        match (kind, namespace) {
            (_, "broken") => Err("cannot be read".to_owned()),
            ("Limit", "dev") => Ok(vec![limit("low", 2), limit("high", 5)]),
            ("ClusterLimit", "") => Ok(vec![limit("all", 3)]),
            _ => Ok(Vec::new()),
        }
    }
}

fn policy(change: Value) -> Value {
    let mut policy = json!({
        "metadata": {"name": "few"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
                "resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": ["apps"],
                    "apiVersions": ["v1"], "resources": ["deployments"], "scope": "*"}],
            },
            "validations": [{"expression": "object.spec.replicas <= 3"}],
        },
    });
    json_patch::merge(&mut policy, &json!({"spec": change}));
    policy
}

fn binding(change: Value) -> Value {
    let mut binding = json!({
        "metadata": {"name": "bound"},
        "spec": {"policyName": "few", "validationActions": ["Deny"]},
    });
    json_patch::merge(&mut binding, &json!({"spec": change}));
    binding
}

fn judged(policy: &Value, bindings: &[Value], operation: Operation, object: &Value) -> Verdict {
    let mut policies = Policies::default();
    policies.put_policy(policy);
    for binding in bindings {
        policies.put_binding(binding);
    }
    let user = User::new("ann", ["g"]);
    let deleted = operation == Operation::Delete;
    let request = Request {
        operation,
        kind: GroupVersionKind {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            kind: "Deployment".to_owned(),
        },
        resource: GroupVersionResource {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            resource: "deployments".to_owned(),
        },
        subresource: "",
        name: "web",
        namespace: "dev",
        user: &user,
        object: (!deleted).then_some(object),
        old_object: deleted.then_some(object),
        options: None,
        dry_run: false,
    };
    policies.judge(&request, &Around)
}

fn deployment(replicas: i64) -> Value {
    json!({"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"replicas": replicas}})
}

/// The message of the refusal of five replicas, after what all of them begin with; or nothing.
fn refused(change: Value, bound: Value) -> Option<String> {
    let verdict = judged(&policy(change), &[binding(bound)], Operation::Create, &deployment(5));
    let status = verdict.result.err()?;
    let begin = "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'few'";
    let message = status.message.strip_prefix(begin).unwrap_or(&status.message);
    Some(message.strip_prefix(" with binding 'bound' denied request: ").unwrap_or(message).into())
}

#[test]
fn a_failed_validation_refuses() {
    let (few, bound) = (policy(json!({})), [binding(json!({}))]);
    assert_eq!(judged(&few, &bound, Operation::Create, &deployment(3)), Verdict::allowed());
    let status =
        judged(&few, &bound, Operation::Create, &deployment(4)).result.unwrap_err().to_json();
    let message = "ValidatingAdmissionPolicy 'few' with binding 'bound' denied request: failed \
                   expression: object.spec.replicas <= 3";
    assert_eq!(
        status,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("deployments.apps \"web\" is forbidden: {message}"),
            "reason": "Invalid",
            "details": {"name": "web", "group": "apps", "kind": "deployments",
                        "causes": [{"message": message}]},
            "code": 422,
        })
    );
    // Nobody is concerned by what is not bound, or not matched.
    assert_eq!(judged(&few, &[], Operation::Create, &deployment(4)), Verdict::allowed());
    assert_eq!(judged(&few, &bound, Operation::Delete, &deployment(4)), Verdict::allowed());
}

#[test]
fn the_message_is_computed_or_given_or_the_expression() {
    let validation = |more: Value| {
        let mut one = json!({"expression": "object.spec.replicas <= 3"});
        json_patch::merge(&mut one, &more);
        json!({"validations": [one]})
    };
    let computed = "'at most 3, not ' + string(object.spec.replicas)";
    for (more, want) in [
        (json!({"message": " too many "}), "too many"),
        (json!({"message": "m", "messageExpression": computed}), "at most 3, not 5"),
        (json!({"message": "m", "messageExpression": "object.spec.none"}), "m"),
        (json!({"message": "m", "messageExpression": "'a\\nb'"}), "m"),
        (json!({"message": "m", "messageExpression": "' '"}), "m"),
    ] {
        assert_eq!(refused(validation(more.clone()), json!({})).as_deref(), Some(want), "{more}");
    }
    for (reason, code) in [
        ("Unauthorized", 401),
        ("Forbidden", 403),
        ("RequestEntityTooLarge", 413),
        ("Invalid", 422),
    ] {
        let policy = policy(validation(json!({"reason": reason})));
        let verdict = judged(&policy, &[binding(json!({}))], Operation::Create, &deployment(4));
        let status = verdict.result.unwrap_err();
        assert_eq!((status.code, &*status.reason), (code, reason));
    }
}

#[test]
fn expressions_see_the_request_its_namespace_and_what_was_computed() {
    for (expression, want) in [
        ("request.operation == 'CREATE' && request.userInfo.username == 'ann'", None),
        ("oldObject == null && params == null", None),
        ("namespaceObject.metadata.labels.env == 'test'", None),
        ("has(namespaceObject.metadata.managedFields)", Some("")),
        ("has(namespaceObject.status.conditions)", Some("")),
        ("variables.most >= 5 && variables.enough", None),
        ("variables.most < 5", Some("")),
    ] {
        let change = json!({
            "variables": [
                {"name": "most", "expression": "object.spec.replicas"},
                {"name": "enough", "expression": "variables.most > 4"},
            ],
            "validations": [{"expression": expression, "message": "no"}],
        });
        let want = want.map(|_| "no".to_owned());
        assert_eq!(refused(change, json!({})), want, "{expression}");
    }
}

#[test]
fn what_fails_follows_the_policy() {
    let broken = json!({"validations": [{"expression": "object.spec.none > 1"}]});
    assert_eq!(
        refused(broken.clone(), json!({})).as_deref(),
        Some("expression 'object.spec.none > 1' resulted in error: no such key: none")
    );
    let mut open = broken;
    open["failurePolicy"] = "Ignore".into();
    assert_eq!(refused(open, json!({})), None);
    let variable = json!({
        "variables": [{"name": "v", "expression": "object.spec.none"}],
        "validations": [{"expression": "variables.v == 1"}],
    });
    assert_eq!(
        refused(variable, json!({})).as_deref(),
        Some(
            "expression 'variables.v == 1' resulted in error: composited variable \"v\" fails to \
             evaluate: no such key: none"
        )
    );
}

#[test]
fn conditions_and_constraints_say_whom_it_concerns() {
    let exempt =
        |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    assert_eq!(refused(exempt("object.spec.replicas > 9"), json!({})), None);
    assert!(refused(exempt("object.spec.replicas > 1"), json!({})).is_some());
    assert_eq!(
        refused(exempt("object.none == 1"), json!({})).as_deref(),
        Some("expression 'object.none == 1' resulted in error: no such key: none")
    );
    let rule = |change: Value| {
        let mut rule = policy(json!({}))["spec"]["matchConstraints"]["resourceRules"][0].clone();
        json_patch::merge(&mut rule, &change);
        rule
    };
    let named = |names: &[&str]| rule(json!({"resourceNames": names}));
    for (constraints, want) in [
        (json!({"resourceRules": [named(&["web"])]}), true),
        (json!({"resourceRules": [named(&["other"])]}), false),
        (json!({"excludeResourceRules": [named(&["web"])]}), false),
        (json!({"excludeResourceRules": [named(&["other"])]}), true),
        (json!({"namespaceSelector": {"matchLabels": {"env": "test"}}}), true),
        (json!({"namespaceSelector": {"matchLabels": {"env": "prod"}}}), false),
        (json!({"objectSelector": {"matchLabels": {"app": "db"}}}), false),
    ] {
        let of_policy = json!({"matchConstraints": constraints});
        assert_eq!(refused(of_policy, json!({})).is_some(), want, "{constraints}");
        let of_binding = json!({"matchResources": constraints});
        assert_eq!(refused(json!({}), of_binding).is_some(), want, "{constraints}");
    }
}

#[test]
fn bindings_bring_parameters() {
    let by = |kind: &str| {
        json!({
            "paramKind": {"apiVersion": "example.com/v1", "kind": kind},
            "validations": [{
                "expression": "object.spec.replicas <= params.most",
                "messageExpression": "'more than ' + string(params.most)",
            }],
        })
    };
    let reference = |change: Value| json!({"paramRef": change});
    let found = json!({"matchLabels": {"of": "limits"}});
    for (kind, given, want) in [
        ("Limit", json!({"name": "low"}), Some("more than 2")),
        ("Limit", json!({"name": "high"}), None),
        ("Limit", json!({"name": "low", "namespace": "dev"}), Some("more than 2")),
        ("Limit", json!({"selector": found}), Some("more than 2")),
        ("ClusterLimit", json!({"name": "all"}), Some("more than 3")),
        ("Limit", json!({"name": "none", "parameterNotFoundAction": "Allow"}), None),
        (
            "Limit",
            json!({"name": "none", "parameterNotFoundAction": "Deny"}),
            Some(
                "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
            ),
        ),
        (
            "Limit",
            json!({"selector": {"matchLabels": {"of": "nothing"}}, "parameterNotFoundAction": "Deny"}),
            Some(
                "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
            ),
        ),
        (
            "ClusterLimit",
            json!({"name": "all", "namespace": "dev"}),
            Some(
                "failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
            ),
        ),
        (
            "Unheard",
            json!({"name": "all"}),
            Some(
                "failed to configure binding: paramKind kind `&ParamKind{Kind:Unheard,APIVersion:example.com/v1,}` not known",
            ),
        ),
        // What cannot be read is not what is not there.
        (
            "Limit",
            json!({"name": "low", "namespace": "broken", "parameterNotFoundAction": "Allow"}),
            Some("failed to configure binding: cannot be read"),
        ),
    ] {
        let refused = refused(by(kind), reference(given.clone()));
        assert_eq!(refused.as_deref(), want, "{kind} {given}");
    }
}

#[test]
fn bindings_warn_and_leave_notes() {
    let policy = policy(json!({"validations": [
        {"expression": "true"}, {"expression": "object.spec.replicas <= 3", "message": "many"}]}));
    let soft = [binding(json!({"validationActions": ["Warn", "Audit"]}))];
    let verdict = judged(&policy, &soft, Operation::Create, &deployment(4));
    assert_eq!(verdict.result, Ok(()));
    let warning =
        "Validation failed for ValidatingAdmissionPolicy 'few' with binding 'bound': many";
    assert_eq!(verdict.warnings, [warning]);
    let note = &verdict.annotations["validation.policy.admission.k8s.io/validation_failure"];
    assert_eq!(
        serde_json::from_str::<Value>(note).unwrap(),
        json!([{"message": "many", "policy": "few", "binding": "bound", "expressionIndex": 1,
                "validationActions": ["Warn", "Audit"]}])
    );
}

#[test]
fn annotations_are_computed_once_for_all_bindings() {
    let annotated = |value: &str| {
        let annotation = json!({"key": "count", "valueExpression": value});
        policy(json!({"auditAnnotations": [annotation], "validations": null}))
    };
    let mut second = binding(json!({}));
    second["metadata"]["name"] = "second".into();
    let both = [binding(json!({})), second];
    let notes = |value: &str| {
        let verdict = judged(&annotated(value), &both, Operation::Create, &deployment(4));
        verdict.result.map(|()| verdict.annotations.get("few/count").cloned())
    };
    assert_eq!(notes("string(object.spec.replicas) + ' of them'"), Ok(Some("4 of them".into())));
    assert_eq!(notes("null"), Ok(None));
    assert_eq!(notes("'  '"), Ok(None));
    assert!(notes("object.none").unwrap_err().message.ends_with("no such key: none"));
    assert!(notes("1 + 1").is_err());
}

#[test]
fn policies_and_bindings_are_validated() {
    let check = |change: Value| -> Vec<String> {
        validate_policy(&policy(change)).iter().map(ToString::to_string).collect()
    };
    assert_eq!(check(json!({})), Vec::<String>::new());
    for (change, want) in [
        (
            json!({"failurePolicy": "Maybe"}),
            "spec.failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\"",
        ),
        (json!({"matchConstraints": null}), "spec.matchConstraints: Required value"),
        (
            json!({"matchConstraints": {"resourceRules": []}}),
            "spec.matchConstraints.resourceRules: Required value",
        ),
        (json!({"paramKind": {"kind": "Limit"}}), "spec.paramKind.apiVersion: Required value"),
        (
            json!({"validations": null}),
            "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
        ),
        (
            json!({"validations": [{"expression": " "}]}),
            "spec.validations[0].expression: Required value: expression is not specified",
        ),
        (
            json!({"validations": [{"expression": "true", "reason": "Sad"}]}),
            "spec.validations[0].reason: Unsupported value: \"Sad\": supported values: \"Forbidden\", \"Invalid\", \"RequestEntityTooLarge\"",
        ),
        (
            json!({"validations": [{"expression": "true", "message": "a\nb"}]}),
            "spec.validations[0].message: Invalid value: \"a\\nb\": must not contain line breaks",
        ),
        (
            json!({"variables": [{"name": "1st", "expression": "1"}]}),
            "spec.variables[0].name: Invalid value: \"1st\": must be a valid CEL identifier",
        ),
        (
            json!({"auditAnnotations": [{"key": "k", "valueExpression": ""}]}),
            "spec.auditAnnotations[0].valueExpression: Required value: valueExpression is not specified",
        ),
    ] {
        assert_eq!(check(change.clone()).first().map(String::as_str), Some(want), "{change}");
    }
    for (change, field) in [
        (json!({"validations": [{"expression": "nobody > 1"}]}), "spec.validations[0].expression"),
        (json!({"validations": [{"expression": "'text'"}]}), "spec.validations[0].expression"),
        (
            json!({"validations": [{"expression": "variables.none > 1"}]}),
            "spec.validations[0].expression",
        ),
        (
            json!({"validations": [{"expression": "true", "messageExpression": "1 == 1"}]}),
            "spec.validations[0].messageExpression",
        ),
        (
            json!({"variables": [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}]}),
            "spec.variables[0].expression",
        ),
    ] {
        let errors = validate_policy(&policy(change.clone()));
        assert_eq!(errors.first().map(|error| &*error.field), Some(field), "{change}");
    }
    for (change, want) in [
        (json!({"policyName": null}), Some("spec.policyName: Required value")),
        (
            json!({"validationActions": null}),
            Some(
                "spec.validationActions: Required value: at least one validation action is required",
            ),
        ),
        (
            json!({"validationActions": ["Shout"]}),
            Some(
                "spec.validationActions[0]: Unsupported value: \"Shout\": supported values: \"Audit\", \"Deny\", \"Warn\"",
            ),
        ),
        (
            json!({"validationActions": ["Audit", "Audit"]}),
            Some("spec.validationActions[1]: Duplicate value: \"Audit\""),
        ),
        (
            json!({"paramRef": {"parameterNotFoundAction": "Deny"}}),
            Some("spec.paramRef: Required value: one of name or selector must be specified"),
        ),
        (
            json!({"paramRef": {"name": "a", "selector": {}, "parameterNotFoundAction": "Deny"}}),
            Some("spec.paramRef.name: Forbidden: name and selector are mutually exclusive"),
        ),
        (
            json!({"paramRef": {"name": "a"}}),
            Some("spec.paramRef.parameterNotFoundAction: Required value"),
        ),
        (json!({"validationActions": ["Warn", "Audit"]}), None),
    ] {
        let errors = validate_binding(&binding(change.clone()));
        assert_eq!(errors.first().map(ToString::to_string).as_deref(), want, "{change}");
    }
}
