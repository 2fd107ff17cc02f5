use std::sync::{Arc, Mutex};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use futures::FutureExt as _;
use serde_json::{Value, json};

use super::{Mutated, PATCH_NOTES};
use crate::{
    admission::{
        Admission, GroupVersionKind, GroupVersionResource, Operation, Phase, Request,
        tests::{Around, hook, reply},
    },
    status::Status,
    user::User,
};

/// Adds `/data/NAME` with the value `yes`.
fn adds(name: &str) -> Value {
    json!([{"op": "add", "path": format!("/data/{name}"), "value": "yes"}])
}

fn patch(operations: &Value) -> Value {
    let patch = BASE64.encode(operations.to_string());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
}

/// A hook that is served under its own name.
fn named(name: &str, change: Value) -> Value {
    let mut whole = hook(json!({
        "name": name, "clientConfig": {"url": format!("https://in.process/{name}")},
    }));
    json_patch::merge(&mut whole, &change);
    whole
}

/// What was asked, in order: the hook's name and the data it was shown.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// Has each hook answer with what `answer` says, given its name and the object it is shown.
fn serve(
    admission: &Admission,
    answer: impl Fn(&str, &Value) -> Value + Send + Sync + 'static,
) -> Asked {
    let asked = Asked::default();
    let record = asked.clone();
    admission.serve_url(
        "https://in.process/",
        Arc::new(move |path, review| {
            let name = path.trim_start_matches('/').to_owned();
            let request = &review["request"];
            record.lock().unwrap().push((name.clone(), request["object"]["data"].clone()));
            let mut response = answer(&name, &request["object"]);
            response["uid"] = request["uid"].clone();
            let whole = reply(response);
            async move { whole }.boxed()
        }),
    );
    asked
}

fn configured(hooks: Vec<Value>) -> Admission {
    let admission = Admission::default();
    let configuration = json!({"metadata": {"name": "one"}, "webhooks": hooks});
    admission.put(Phase::Mutating, &configuration);
    admission
}

async fn ask_as(admission: &Admission, operation: Operation, dry_run: bool) -> Mutated {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {}});
    let user = User::new("ann", ["g"]);
    let deleted = operation == Operation::Delete;
    let request = Request {
        operation,
        kind: GroupVersionKind {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
        },
        resource: GroupVersionResource {
            group: String::new(),
            version: "v1".to_owned(),
            resource: "configmaps".to_owned(),
        },
        subresource: "",
        name: "x",
        namespace: "dev",
        user: &user,
        object: (!deleted).then_some(&object),
        old_object: deleted.then_some(&object),
        options: None,
        dry_run,
    };
    let reshape = |mut object: Value| -> Result<Value, Status> {
        // A default, such as a kind may have.
        if let Some(data) = object["data"].as_object_mut() {
            data.entry("given").or_insert("default".into());
        }
        Ok(object)
    };
    admission.mutate(&request, &Around, &reshape).await
}

async fn ask(admission: &Admission) -> Mutated {
    ask_as(admission, Operation::Create, false).await
}

fn names(asked: &Asked) -> Vec<String> {
    asked.lock().unwrap().iter().map(|(name, _)| name.clone()).collect()
}

#[tokio::test]
async fn each_sees_what_the_ones_before_it_made() {
    let admission = Admission::default();
    for (name, hooks) in [("b", ["third.b.c"]), ("a", ["first.b.c"]), ("a0", ["second.b.c"])] {
        let hooks: Vec<Value> = hooks.iter().map(|name| named(name, json!({}))).collect();
        let configuration = json!({"metadata": {"name": name}, "webhooks": hooks});
        admission.put(Phase::Mutating, &configuration);
    }
    let asked = serve(&admission, |name, _| match name {
        "second.b.c" => json!({"allowed": true}),
        name => patch(&adds(name.split('.').next().unwrap())),
    });
    let mutated = ask(&admission).await;
    assert_eq!(mutated.verdict.result, Ok(()));
    let data = json!({"given": "default", "first": "yes", "third": "yes"});
    assert_eq!(mutated.object.unwrap()["data"], data);
    let after_first = json!({"given": "default", "first": "yes"});
    let expected = [
        ("first.b.c".to_owned(), json!({})),
        ("second.b.c".to_owned(), after_first.clone()),
        ("third.b.c".to_owned(), after_first),
    ];
    assert_eq!(*asked.lock().unwrap(), expected);
}

#[tokio::test]
async fn who_asked_for_it_sees_the_object_again_if_it_changed_since() {
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    for (policies, expected) in [
        // The last one changed it: the first looks once more, the second does not care to.
        ([&again, &json!({}), &json!({})], vec!["a.b.c", "b.b.c", "c.b.c", "a.b.c"]),
        ([&json!({}), &json!({}), &again], vec!["a.b.c", "b.b.c", "c.b.c"]),
        ([&again, &again, &again], vec!["a.b.c", "b.b.c", "c.b.c", "a.b.c", "b.b.c"]),
    ] {
        let hooks = ["a.b.c", "b.b.c", "c.b.c"].into_iter().zip(policies);
        let admission =
            configured(hooks.map(|(name, policy)| named(name, policy.clone())).collect());
        let asked = serve(&admission, |name, object| match object["data"][name].is_null() {
            true => patch(&adds(name)),
            false => json!({"allowed": true}),
        });
        let mutated = ask(&admission).await;
        assert_eq!(mutated.verdict.result, Ok(()));
        assert_eq!(names(&asked), expected);
    }
}

#[tokio::test]
async fn two_that_undo_each_other_come_to_an_end() {
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let admission = configured(vec![named("on.b.c", again.clone()), named("off.b.c", again)]);
    let asked = serve(&admission, |name, _| {
        patch(&json!([{"op": "add", "path": "/data/light", "value": name}]))
    });
    let mutated = ask(&admission).await;
    assert_eq!(names(&asked), ["on.b.c", "off.b.c", "on.b.c", "off.b.c"]);
    assert_eq!(mutated.object.unwrap()["data"]["light"], "off.b.c");
}

#[tokio::test]
async fn a_webhook_that_matches_only_what_another_made_is_asked_only_after_it() {
    let selects = json!({"matchConditions": [
        {"name": "made", "expression": "has(object.data.late)"}]});
    let early = configured(vec![named("early.b.c", selects.clone()), named("late.b.c", json!({}))]);
    let asked = serve(&early, |_, _| patch(&adds("late")));
    ask(&early).await;
    assert_eq!(names(&asked), ["late.b.c"]);
    let after = configured(vec![named("late.b.c", json!({})), named("z.b.c", selects)]);
    let asked = serve(&after, |_, _| patch(&adds("late")));
    ask(&after).await;
    assert_eq!(names(&asked), ["late.b.c", "z.b.c"]);
}

#[tokio::test]
async fn a_refusal_ends_the_row() {
    let admission = configured(vec![named("a.b.c", json!({})), named("b.b.c", json!({}))]);
    let asked = serve(
        &admission,
        |_, _| json!({"allowed": false, "warnings": ["w"], "status": {"message": "no"}}),
    );
    let mutated = ask(&admission).await;
    assert_eq!(mutated.object, None);
    let status = mutated.verdict.result.unwrap_err();
    assert_eq!(status.message, "admission webhook \"a.b.c\" denied the request: no");
    assert_eq!(mutated.verdict.warnings, ["w"]);
    assert_eq!(names(&asked), ["a.b.c"]);
}

/// What one answer of one hook comes to.
async fn answered(change: Value, operation: Operation, dry_run: bool, response: Value) -> Mutated {
    let admission = configured(vec![named("a.b.c", change)]);
    serve(&admission, move |_, _| response.clone());
    ask_as(&admission, operation, dry_run).await
}

#[tokio::test]
async fn what_is_no_patch_is_the_webhooks_fault() {
    let failed = "Internal error occurred: failed calling webhook \"a.b.c\"";
    let invalid = format!("{failed}: received invalid webhook response");
    let coded = |text: &str| BASE64.encode(text);
    for (response, want) in [
        (
            json!({"allowed": true, "patch": coded("[]")}),
            format!("{invalid}: webhook returned response.patch but not response.patchType"),
        ),
        (
            json!({"allowed": true, "patchType": "JSONPatch"}),
            format!("{invalid}: webhook returned response.patchType but not response.patch"),
        ),
        (
            json!({"allowed": true, "patchType": "", "patch": coded("[]")}),
            format!("{invalid}: webhook returned invalid response.patchType of \"\""),
        ),
        (
            json!({"allowed": true, "patchType": "MergePatch", "patch": coded("{}")}),
            format!("{failed}: unsupported patch type \"MergePatch\""),
        ),
        (
            json!({"allowed": true, "patchType": "JSONPatch", "patch": "????"}),
            format!("{failed}: failed to call webhook: illegal base64 data at input byte 0"),
        ),
        (
            patch(&json!([{"op": "remove", "path": "/data/none"}])),
            "Internal error occurred: the patch of admission webhook \"a.b.c\" does not apply"
                .to_owned(),
        ),
        (
            patch(&json!([{"op": "replace", "path": "/kind", "value": "Secret"}])),
            "Internal error occurred: the patch of admission webhook \"a.b.c\" changes kind"
                .to_owned(),
        ),
    ] {
        let mutated = answered(json!({}), Operation::Create, false, response).await;
        let status = mutated.verdict.result.unwrap_err();
        assert_eq!((status.code, status.message), (500, want));
    }
    // Not to have an answer is the policy's business; to have a bad patch is not.
    let open = json!({"failurePolicy": "Ignore"});
    let unpatched = json!({"allowed": true, "patchType": "JSONPatch"});
    let mutated = answered(open.clone(), Operation::Create, false, unpatched).await;
    assert_eq!((mutated.object, mutated.verdict.result), (None, Ok(())));
    let note = "failed-open.mutating.webhook.admission.k8s.io/round_0_index_0";
    assert_eq!(mutated.verdict.annotations[note], "a.b.c");
    let misses = patch(&json!([{"op": "remove", "path": "/data/none"}]));
    let mutated = answered(open, Operation::Create, false, misses).await;
    assert!(mutated.verdict.result.is_err());
}

#[tokio::test]
async fn a_delete_cannot_be_changed() {
    let mutated = answered(json!({}), Operation::Delete, false, patch(&adds("a"))).await;
    assert_eq!(
        mutated.verdict.result.unwrap_err().message,
        "Internal error occurred: admission webhook \"a.b.c\" attempted to modify the object, \
         which is not supported for this operation"
    );
    let mutated = answered(json!({}), Operation::Delete, false, json!({"allowed": true})).await;
    assert_eq!((mutated.object, mutated.verdict.result), (None, Ok(())));
}

#[tokio::test]
async fn dry_runs_reach_only_those_without_side_effects() {
    let some = json!({"sideEffects": "Some", "failurePolicy": "Ignore"});
    let mutated = answered(some, Operation::Create, true, patch(&adds("a"))).await;
    assert_eq!(
        mutated.verdict.result.unwrap_err().message,
        "admission webhook \"a.b.c\" does not support dry run"
    );
    let none = json!({"sideEffects": "NoneOnDryRun"});
    let mutated = answered(none, Operation::Create, true, patch(&adds("a"))).await;
    assert_eq!(mutated.object.unwrap()["data"]["a"], "yes");
}

#[tokio::test]
async fn who_owns_which_field_is_not_for_webhooks_to_say() {
    let claims = json!([
        {"op": "add", "path": "/metadata", "value": {"managedFields": [{"manager": "me"}]}},
        {"op": "add", "path": "/data/a", "value": "yes"},
    ]);
    let mutated = answered(json!({}), Operation::Create, false, patch(&claims)).await;
    let object = mutated.object.unwrap();
    assert_eq!(object["data"]["a"], "yes");
    assert_eq!(object["metadata"], json!({}));
}

#[tokio::test]
async fn the_log_is_told_who_changed_what() {
    let mutated = answered(json!({}), Operation::Create, false, patch(&adds("a"))).await;
    let annotations = mutated.verdict.annotations;
    let note = |key: &str| -> Value { serde_json::from_str(&annotations[key]).unwrap() };
    assert_eq!(
        note("mutation.webhook.admission.k8s.io/round_0_index_0"),
        json!({"configuration": "one", "webhook": "a.b.c", "mutated": true})
    );
    assert_eq!(
        note(&format!("{PATCH_NOTES}round_0_index_0")),
        json!({"configuration": "one", "webhook": "a.b.c", "patch": adds("a"),
               "patchType": "JSONPatch"})
    );
}
