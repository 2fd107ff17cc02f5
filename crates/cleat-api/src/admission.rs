//! Which works, sets of works, policies and sets of policies a hub takes.
//!
//! Decides only: objects in, verdict out, nothing asked and nothing changed. Objects are looked at
//! as the JSON they are, because a work may carry half a megabyte of manifests that nobody needs
//! copied to be judged.
//!
//! An update is judged by what it changes. One that leaves the spec alone is never refused, however
//! wrong the spec is: a work that is being deleted must always be able to lose its finalizer.

mod manifests;
mod policies;

pub use policies::{policy, policy_set};
use serde::Deserialize as _;
use serde_json::Value;

use crate::appliedmanifestwork::LONGEST_WORK_NAME;
use crate::manifestwork::{DeleteOption, Keep, ManifestWorkExecutor, Problem};
use crate::manifestworkreplicaset::{LONGEST_KEY, key};

/// What a hub may decide for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The most bytes that all manifests of a work may have together, as JSON.
    pub manifest_bytes: usize,
    /// Whether works without an executor need somebody who may act as the agent itself.
    pub absent_executor: AbsentExecutor,
}

impl Default for Rules {
    fn default() -> Self {
        Self { manifest_bytes: 500 * 1024, absent_executor: AbsentExecutor::Allowed }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsentExecutor {
    Allowed,
    Reviewed,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allowed {
        warnings: Vec<String>,
    },
    Refused(Refusal),
    /// All is well if the one who asks may do this; only an authorizer knows.
    NeedsReview {
        review: Review,
        warnings: Vec<String>,
    },
}

/// Why not. The text says what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub message: String,
}

/// The right to verb `execute-as` on `manifestworks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// Where; empty for every namespace.
    pub namespace: String,
    /// The resource name: the user name of the service account whose rights the work will use.
    pub name: String,
}

/// Whose rights are used when no executor is named, as far as reviews are concerned.
const AGENT_ACCOUNT: &str = "system:serviceaccount::klusterlet-work-sa";

/// The most problems named in one refusal.
const MOST_PROBLEMS: usize = 8;

/// Judges a ManifestWork. `old` is what it is to replace, if anything.
pub fn manifest_work(object: &Value, old: Option<&Value>, rules: &Rules) -> Verdict {
    if old.is_some_and(|old| old.get("spec") == object.get("spec")) {
        return Verdict::Allowed { warnings: Vec::new() };
    }
    let mut problems = Vec::new();
    let name = text(object, "/metadata/name");
    if old.is_none() && name.len() > LONGEST_WORK_NAME {
        problems.push(format!(
            "metadata.name has {} characters; at most {LONGEST_WORK_NAME} are left for it in the \
             name of the record that the agent keeps on the cluster, so choose a shorter one",
            name.len()
        ));
    }
    let spec = object.get("spec");
    let deleting = [Some(object), old].into_iter().flatten().any(is_deleting);
    if let Some(old) = old.filter(|_| deleting)
        && delete_option_changed(old.get("spec"), spec)
    {
        problems.push(
            "spec.deleteOption cannot change while the work is being deleted, because objects may \
             be gone already by what it said before; put it back, and bring back with a new work \
             what you still need"
                .to_owned(),
        );
    }
    let warnings = content("spec", spec, rules, &mut problems);
    if !problems.is_empty() {
        return refused(problems);
    }
    let namespace = text(object, "/metadata/namespace");
    executor(spec, old.map(|old| old.get("spec")), namespace, rules, warnings)
}

/// Judges a ManifestWorkReplicaSet. `old` is what it is to replace, if anything.
pub fn manifest_work_replica_set(object: &Value, old: Option<&Value>, rules: &Rules) -> Verdict {
    if old.is_some_and(|old| old.get("spec") == object.get("spec")) {
        return Verdict::Allowed { warnings: Vec::new() };
    }
    let mut problems = Vec::new();
    let key = key(text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    if old.is_none() && key.len() > LONGEST_KEY {
        problems.push(format!(
            "<namespace>.<name> has {} characters; its works bear it as a label of at most \
             {LONGEST_KEY}, so choose a shorter name",
            key.len()
        ));
    }
    let references = object.pointer("/spec/placementRefs").and_then(Value::as_array);
    if references.is_none_or(Vec::is_empty) {
        problems.push("spec.placementRefs is empty; name at least one placement".to_owned());
    }
    let template = object.pointer("/spec/manifestWorkTemplate");
    let warnings = content("spec.manifestWorkTemplate", template, rules, &mut problems);
    if !problems.is_empty() {
        return refused(problems);
    }
    let before = old.map(|old| old.pointer("/spec/manifestWorkTemplate"));
    // The hub makes the works, in namespaces that placements choose later. So whoever names an
    // executor here must be allowed to everywhere.
    executor(template, before, "", rules, warnings)
}

/// Judges the spec of a work, wherever it stands.
fn content(
    path: &str,
    spec: Option<&Value>,
    rules: &Rules,
    problems: &mut Vec<String>,
) -> Vec<String> {
    let manifests = spec.and_then(|spec| spec.pointer("/workload/manifests"));
    let path_of_manifests = format!("{path}.workload.manifests");
    manifests::check(&path_of_manifests, manifests, rules.manifest_bytes, problems);
    match delete_option(spec) {
        Ok((keep, _)) => warnings(path, &keep),
        Err(problem) => {
            problems.push(format!("{path}.{problem}"));
            Vec::new()
        }
    }
}

fn delete_option(spec: Option<&Value>) -> Result<(Keep, Option<i64>), Problem> {
    DeleteOption::parse_value(spec.and_then(|spec| spec.get("deleteOption")))
}

/// A change of spelling is none. Neither is the repair of what meant nothing: nothing was deleted
/// on its account, and without the repair nothing ever would be.
fn delete_option_changed(old: Option<&Value>, new: Option<&Value>) -> bool {
    match (delete_option(old), delete_option(new)) {
        (Ok(old), Ok(new)) => old != new,
        (Ok(_), Err(_)) => true,
        (Err(_), _) => false,
    }
}

/// A pattern looks as if it kept many objects, and keeps none.
fn warnings(path: &str, keep: &Keep) -> Vec<String> {
    let Keep::Listed(rules) = keep else { return Vec::new() };
    let patterns = rules.iter().any(|rule| rule.name.contains('*') || rule.namespace.contains('*'));
    if !patterns {
        return Vec::new();
    }
    vec![format!(
        "{path}.deleteOption has a rule with *, which stands for nothing else there: each rule \
         names one object"
    )]
}

/// The last question, once everything else is in order: whose rights will be used.
fn executor(
    spec: Option<&Value>,
    old: Option<Option<&Value>>,
    namespace: &str,
    rules: &Rules,
    warnings: Vec<String>,
) -> Verdict {
    let of = |spec: Option<&'_ Value>| {
        spec.and_then(|spec| spec.get("executor")).filter(|value| !value.is_null()).cloned()
    };
    let named = of(spec);
    if old.is_some_and(|old| of(old) == named) {
        return Verdict::Allowed { warnings };
    }
    let Some(named) = named else {
        return match rules.absent_executor {
            AbsentExecutor::Allowed => Verdict::Allowed { warnings },
            AbsentExecutor::Reviewed => review(namespace, AGENT_ACCOUNT.to_owned(), warnings),
        };
    };
    let account = ManifestWorkExecutor::deserialize(&named).ok();
    match account.and_then(|executor| executor.subject.service_account) {
        Some(account) => review(namespace, account.user_name(), warnings),
        None => refused(vec![
            "executor.subject.serviceAccount is not given; set its namespace and name, or remove \
             the executor"
                .to_owned(),
        ]),
    }
}

fn review(namespace: &str, name: String, warnings: Vec<String>) -> Verdict {
    Verdict::NeedsReview { review: Review { namespace: namespace.to_owned(), name }, warnings }
}

fn refused(mut problems: Vec<String>) -> Verdict {
    let more = problems.len().saturating_sub(MOST_PROBLEMS);
    problems.truncate(MOST_PROBLEMS);
    let mut message = problems.join(". ");
    if more > 0 {
        message.push_str(&format!(". And {more} more"));
    }
    Verdict::Refused(Refusal { message })
}

fn is_deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
