//! Whether this controller, the kind of policies, or the cluster's membership in a fleet is about to
//! go: then policies are let go of and nothing of theirs is touched.

use cleat_api::configurationpolicy::{GROUP, PruneObjectBehavior, UNINSTALLING};
use cleat_api::managedcluster::RemoveStrategy;
use cleat_core::id::{Id, Target};
use cleat_core::leave::agent::Standing;
use cleat_core::policy::observed::{Departure, Owner, Policy};
use cleat_core::write::Side;
use cleat_runtime::execute::{Executor, Read};
use cleat_runtime::follow::{Follow, Held, Scope};
use cleat_runtime::mirror::Look;
use cleat_runtime::tasks::Tasks;
use serde_json::Value;

use super::{Config, Context, Fleet};
use crate::leave::ask;

/// The definition of policies.
pub(super) fn definition() -> Target {
    definition_of("configurationpolicies")
}

fn definition_of(resource: &str) -> Target {
    let id = Id {
        group: "apiextensions.k8s.io".to_owned(),
        resource: "customresourcedefinitions".to_owned(),
        namespace: String::new(),
        name: format!("{resource}.{GROUP}"),
    };
    Target { version: "v1".to_owned(), id }
}

/// Watches the Deployment this runs in, if it does.
pub(super) fn follow(
    config: &Config,
    tasks: &Tasks,
    on_change: impl Fn() + Send + Sync + 'static,
) -> Option<Follow> {
    let (namespace, name) = config.deployment.clone()?;
    let scope = Scope {
        group: "apps".to_owned(),
        version: "v1".to_owned(),
        resource: "deployments".to_owned(),
        namespace: Some(namespace),
        fields: Some(format!("metadata.name={name}")),
        ..Scope::default()
    };
    Some(Follow::start(config.cluster_client.clone(), tasks, scope, move |_, _| on_change()))
}

impl Context {
    pub(super) async fn departure(&self, policy: &Policy) -> Departure {
        // A policy goes with its kind, of which a watch may tell later than of the policy. What
        // cannot be undone is not decided from watches alone.
        let (definition, deployment) = match policy.deleting && !policy.finalizers.is_empty() {
            true => (definitions_now(&self.executor, policy).await, self.deployment_now().await),
            false => (self.definition_lately(), self.deployment_lately()),
        };
        let all = [definition, deployment, self.membership(policy).await];
        if all.contains(&Departure::Leaving) {
            return Departure::Leaving;
        }
        let unknown = all.into_iter().find(|one| matches!(one, Departure::Unknown(_)));
        unknown.unwrap_or(Departure::Staying)
    }

    /// What a cluster that leaves its hub means for a policy. Those the hub did not send are let go
    /// of with the agent. Those it did send prune only if it knows the cluster and nothing is to stay;
    /// if everything is, whoever copied them here says so in them first.
    async fn membership(&self, policy: &Policy) -> Departure {
        let Some(Fleet { presence, cluster, .. }) = &self.config.fleet else {
            return Departure::Staying;
        };
        let of_policy = |owner: &Owner| {
            owner.kind == "Policy" && owner.api_version.split('/').next() == Some(GROUP)
        };
        if policy.namespace != *cluster || !policy.owner.as_ref().is_some_and(of_policy) {
            return match presence.standing() {
                Standing::Leaving(_) => Departure::Leaving,
                Standing::Unknown | Standing::Member | Standing::Unrecognized(_) => {
                    Departure::Staying
                }
            };
        }
        let prunes = policy.spec.prune_object_behavior != PruneObjectBehavior::None;
        if !policy.deleting || policy.finalizers.is_empty() || !prunes {
            return Departure::Staying;
        }
        match ask(presence, &self.executor, cluster).await {
            Ok(None | Some(RemoveStrategy::Required)) => Departure::Staying,
            Ok(Some(RemoveStrategy::Needless)) => {
                Departure::Unknown("the cluster leaves its hub and keeps everything".to_owned())
            }
            Err(why) => Departure::Unknown(why),
        }
    }

    fn definition_lately(&self) -> Departure {
        match self.mirror.look(&definition().id) {
            Look::Present(meta) if meta.deletion_timestamp.is_none() => Departure::Staying,
            Look::Present(_) | Look::Absent => Departure::Leaving,
            Look::NoSuchKind => Departure::Unknown("definitions are not served now".to_owned()),
            Look::Unknown(reason) => Departure::Unknown(reason.to_string()),
        }
    }

    fn deployment_lately(&self) -> Departure {
        let (Some(follow), Some((namespace, name))) = (&self.deployment, &self.config.deployment)
        else {
            return Departure::Staying;
        };
        match follow.get(namespace, name) {
            Held::Present(object) => match object.parse::<Value>() {
                Ok(object) => of_deployment(&object),
                Err(error) => Departure::Unknown(error.to_string()),
            },
            Held::Absent => missing(namespace, name),
            Held::Unknown(reason) => Departure::Unknown(reason.to_string()),
        }
    }

    async fn deployment_now(&self) -> Departure {
        let Some((namespace, name)) = &self.config.deployment else { return Departure::Staying };
        let id = Id {
            group: "apps".to_owned(),
            resource: "deployments".to_owned(),
            namespace: namespace.clone(),
            name: name.clone(),
        };
        match self.executor.read(Side::Cluster, &Target { version: "v1".to_owned(), id }).await {
            Read::Present(object) => of_deployment(&object),
            Read::Absent | Read::NoSuchKind => missing(namespace, name),
            Read::Unknown { message } => Departure::Unknown(message),
        }
    }
}

/// Whether a policy goes only because its kind does, or the kind of the policy that it is part of:
/// then everything of that kind goes, and everything that it owns.
pub(super) async fn definitions_now(executor: &Executor, policy: &Policy) -> Departure {
    match definition_now(executor, &definition()).await {
        Departure::Staying => {}
        other => return other,
    }
    let of_policy = |owner: &&Owner| {
        owner.kind == "Policy" && owner.api_version.split('/').next() == Some(GROUP)
    };
    let Some(owner) = policy.owner.as_ref().filter(of_policy) else {
        return Departure::Staying;
    };
    match definition_now(executor, &definition_of("policies")).await {
        Departure::Staying => outlived(executor, policy, owner).await,
        other => other,
    }
}

/// Whether its owner went with a definition that is back since. What collects those whose owner is
/// gone may be slower than that.
async fn outlived(executor: &Executor, policy: &Policy, owner: &Owner) -> Departure {
    let id = Id {
        group: GROUP.to_owned(),
        resource: "policies".to_owned(),
        namespace: policy.namespace.clone(),
        name: owner.name.clone(),
    };
    let owned_by = Target { version: "v1".to_owned(), id };
    match executor.read(Side::Cluster, &owned_by).await {
        Read::Present(found) if text(&found, "/metadata/uid") == owner.uid => {
            return Departure::Staying;
        }
        Read::Present(_) | Read::Absent => {}
        Read::NoSuchKind => {
            return Departure::Unknown("policies are not served now".to_owned());
        }
        Read::Unknown { message } => return Departure::Unknown(message),
    }
    let own = super::policy_target(&policy.namespace, &policy.name);
    let mut made = Vec::new();
    for target in [own, definition_of("policies")] {
        match executor.read(Side::Cluster, &target).await {
            // Whole seconds of one clock, written so that they sort.
            Read::Present(object) => made.push(text(&object, CREATED).to_owned()),
            Read::Absent | Read::NoSuchKind => made.push(String::new()),
            Read::Unknown { message } => return Departure::Unknown(message),
        }
    }
    if made.is_sorted_by(|policy, definition| policy < definition) {
        return Departure::Leaving;
    }
    Departure::Staying
}

async fn definition_now(executor: &Executor, definition: &Target) -> Departure {
    match executor.read(Side::Cluster, definition).await {
        Read::Present(object) if is_deleting(&object) => Departure::Leaving,
        Read::Present(_) => Departure::Staying,
        Read::Absent => Departure::Leaving,
        Read::NoSuchKind => Departure::Unknown("definitions are not served now".to_owned()),
        Read::Unknown { message } => Departure::Unknown(message),
    }
}

/// A process without its Deployment is likely to end soon, and nobody said why.
fn missing(namespace: &str, name: &str) -> Departure {
    Departure::Unknown(format!("the Deployment {namespace}/{name} is not there"))
}

fn of_deployment(object: &Value) -> Departure {
    let annotations = object.pointer("/metadata/annotations");
    let said = annotations.and_then(|all| all.get(UNINSTALLING)).and_then(Value::as_str);
    match said {
        None | Some("" | "false") => Departure::Staying,
        Some(_) => Departure::Leaving,
    }
}

const CREATED: &str = "/metadata/creationTimestamp";

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn is_deleting(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string)
}
