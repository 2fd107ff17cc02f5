//! Which clusters would get, keep or lose copies of policies, and what would go with them. What a
//! policy that comes or changes would make there is not foreseen: its cluster tells once it has it.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use cleat_api::policy::Policy;
use cleat_api::removalpreview::{RemovalPreviewSpec, TakenTemplates};
use cleat_core::leave::carried::Carried;
use cleat_core::propagation::outlook::Proposed;
use cleat_core::propagation::replica_name;
use cleat_hub::outlook::{self, Given};
use kube::Client;
use kube::api::Api;
use serde_json::Value;

use super::super::questions::{Question, Questions, of_copy};

type Key = (String, String);

pub(super) async fn questions(
    hub_client: &Client,
    namespace: &str,
    given: &Given,
    questions: &mut Questions,
) -> Result<()> {
    for name in outlook::concerned_by(hub_client, namespace, given).await? {
        let root = given.roots.get(&name);
        let key = (namespace.to_owned(), name);
        let copies = outlook::proposed(hub_client, &key, given).await?;
        if copies.is_empty() {
            let note = format!("policy {namespace}/{} is placed on no cluster", key.1);
            questions.notes.push(note);
        }
        for (cluster, proposed) in copies {
            questions.all.push(of_policy(hub_client, &key, root, cluster, proposed).await?);
        }
    }
    Ok(())
}

async fn of_policy(
    hub_client: &Client,
    key: &Key,
    root: Option<&Value>,
    cluster: String,
    proposed: Proposed,
) -> Result<Question> {
    let (namespace, name) = key;
    let note = match proposed {
        Proposed::Goes(prospect) => return of_copy(hub_client, key, cluster, prospect).await,
        Proposed::Changes => return of_changed(hub_client, key, root, cluster).await,
        Proposed::Arrives => format!("policy {namespace}/{name} comes to this cluster"),
        Proposed::Unchanged => format!("policy {namespace}/{name} stays as it is"),
        Proposed::Unsure(why) => {
            format!("whether policy {namespace}/{name} changes is not known: {why}")
        }
    };
    Ok(Question { cluster, spec: None, believed: Vec::new(), notes: vec![note] })
}

/// A copy that changes. Of the templates that it has no more, what they hold is asked for.
async fn of_changed(
    hub_client: &Client,
    key: &Key,
    root: Option<&Value>,
    cluster: String,
) -> Result<Question> {
    let (namespace, name) = key;
    let copies: Api<Policy> = Api::namespaced(hub_client.clone(), &cluster);
    let copy = copies.get_opt(&replica_name(key)).await.context("look at a copy of the policy")?;
    let left: Vec<String> = match (&copy, root) {
        (Some(copy), Some(root)) => {
            let stay = templates(root);
            let had = copy.spec.policy_templates.iter();
            let had = had.filter_map(|one| name_of(&one.object_definition));
            had.filter(|name| !stay.contains(name)).collect()
        }
        _ => Vec::new(),
    };
    let notes = vec![match left.is_empty() {
        true => format!("policy {namespace}/{name} changes"),
        false => format!("policy {namespace}/{name} changes, and loses {}", left.join(", ")),
    }];
    if left.is_empty() {
        return Ok(Question { cluster, spec: None, believed: Vec::new(), notes });
    }
    let taken = TakenTemplates { policy: replica_name(key), names: left };
    let spec = RemovalPreviewSpec { templates: Some(taken), ..RemovalPreviewSpec::default() };
    let believed = copy.map(|Policy { metadata, spec, status }| {
        Carried::policy(&metadata, Some(&spec), status.unwrap_or_default()).objects
    });
    Ok(Question { cluster, spec: Some(spec), believed: believed.unwrap_or_default(), notes })
}

/// The names of a root's templates. One whose name is made on the hub is named as it is written.
fn templates(root: &Value) -> BTreeSet<String> {
    let all = root.pointer("/spec/policy-templates").and_then(Value::as_array);
    let definitions = all.into_iter().flatten().filter_map(|one| one.get("objectDefinition"));
    definitions.filter_map(name_of).collect()
}

fn name_of(definition: &Value) -> Option<String> {
    Some(definition.pointer("/metadata/name")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn templates_are_known_by_name() {
        let template = |name: &str| json!({ "objectDefinition": { "metadata": { "name": name } } });
        let root = json!({ "spec": { "policy-templates": [template("a"), template("b"), {}] } });
        assert_eq!(templates(&root), ["a".to_owned(), "b".to_owned()].into());
        assert_eq!(templates(&json!({})), BTreeSet::new());
    }
}
