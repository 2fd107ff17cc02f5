//! Whether this controller, the kind of policies, or the cluster's membership in a fleet is about to
//! go: asks whoever knows. What the answers mean is decided in `cleat-core`.

use cleat_api::configurationpolicy::GROUP;
use cleat_core::id::{Id, Target};
use cleat_core::policy::departure::{self, Told};
use cleat_core::policy::observed::{Departure, Owner, Policy};
use cleat_core::work::outlook::Change;
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
        let [definition, deployment] = self.end_of_means(policy).await;
        departure::together([definition, deployment, self.membership(policy).await])
    }

    /// The same of a policy that would go because of a change that nobody made yet.
    pub(super) async fn departure_ahead(&self, policy: &Policy, change: Change) -> Departure {
        let [definition, deployment] = self.end_of_means(policy).await;
        let membership = match (change, &self.config.fleet) {
            (Change::Leaving(strategy), Some(Fleet { cluster, .. })) => {
                departure::of_leave(policy, cluster, strategy)
            }
            (Change::Leaving(_), None) | (Change::Deleted, _) => self.membership(policy).await,
        };
        departure::together([definition, deployment, membership])
    }

    /// Whether the kind of policies goes, or this controller.
    async fn end_of_means(&self, policy: &Policy) -> [Departure; 2] {
        // A policy goes with its kind, of which a watch may tell later than of the policy. What
        // cannot be undone is not decided from watches alone.
        match policy.deleting && !policy.finalizers.is_empty() {
            true => [definitions_now(&self.executor, policy).await, self.deployment_now().await],
            false => [self.definition_lately(), self.deployment_lately()],
        }
    }

    async fn membership(&self, policy: &Policy) -> Departure {
        let Some(Fleet { presence, cluster, .. }) = &self.config.fleet else {
            return Departure::Staying;
        };
        match departure::of_member(policy, cluster, &presence.standing()) {
            Some(departure) => departure,
            None => departure::of_hub(ask(presence, &self.executor, cluster).await),
        }
    }

    fn definition_lately(&self) -> Departure {
        match self.mirror.look(&definition().id) {
            Look::Present(meta) if meta.deletion_timestamp.is_none() => Departure::Staying,
            Look::Present(_) | Look::Absent => Departure::Leaving,
            Look::NoSuchKind => departure::of_definition(&Told::NotServed),
            Look::Unknown(reason) => Departure::Unknown(reason.to_string()),
        }
    }

    fn deployment_lately(&self) -> Departure {
        let (Some(follow), Some((namespace, name))) = (&self.deployment, &self.config.deployment)
        else {
            return Departure::Staying;
        };
        let told = match follow.get(namespace, name) {
            Held::Present(object) => match object.parse::<Value>() {
                Ok(object) => Told::Present(object),
                Err(error) => Told::Unknown(error.to_string()),
            },
            Held::Absent => Told::Absent,
            Held::Unknown(reason) => Told::Unknown(reason.to_string()),
        };
        departure::of_deployment(&told, namespace, name)
    }

    async fn deployment_now(&self) -> Departure {
        let Some((namespace, name)) = &self.config.deployment else { return Departure::Staying };
        let id = Id {
            group: "apps".to_owned(),
            resource: "deployments".to_owned(),
            namespace: namespace.clone(),
            name: name.clone(),
        };
        let told = told(&self.executor, &Target { version: "v1".to_owned(), id }).await;
        departure::of_deployment(&told, namespace, name)
    }
}

/// Whether a policy goes only because its kind does, or the kind of the policy that it is part of:
/// then everything of that kind goes, and everything that it owns.
pub(super) async fn definitions_now(executor: &Executor, policy: &Policy) -> Departure {
    match departure::of_definition(&told(executor, &definition()).await) {
        Departure::Staying => {}
        other => return other,
    }
    let Some(owner) = policy.owner.as_ref().filter(|owner| owner.is_policy()) else {
        return Departure::Staying;
    };
    match departure::of_definition(&told(executor, &definition_of("policies")).await) {
        Departure::Staying => outlived(executor, policy, owner).await,
        other => other,
    }
}

async fn outlived(executor: &Executor, policy: &Policy, owner: &Owner) -> Departure {
    let id = Id {
        group: GROUP.to_owned(),
        resource: "policies".to_owned(),
        namespace: policy.namespace.clone(),
        name: owner.name.clone(),
    };
    let owned_by = told(executor, &Target { version: "v1".to_owned(), id }).await;
    if let Some(departure) = departure::of_owner(owner, &owned_by) {
        return departure;
    }
    let own = told(executor, &super::policy_target(&policy.namespace, &policy.name)).await;
    departure::outlived(&own, &told(executor, &definition_of("policies")).await)
}

/// What the cluster says now.
async fn told(executor: &Executor, target: &Target) -> Told {
    match executor.read(Side::Cluster, target).await {
        Read::Present(object) => Told::Present(object),
        Read::Absent => Told::Absent,
        Read::NoSuchKind => Told::NotServed,
        Read::Unknown { message } => Told::Unknown(message),
    }
}
