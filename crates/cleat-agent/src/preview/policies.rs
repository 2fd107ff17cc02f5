//! What would become of what policies hold on this cluster.

use std::collections::BTreeSet;

use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::policy::GROUP;
use cleat_api::policy::name::PARENT_POLICY;
use cleat_core::id::Id;
use cleat_core::work::outlook::{Change, Foreseen, Prospect};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;

use super::{Answer, Context};
use crate::policy_sync::marked_now;

impl Context {
    /// If a policy that the hub sent were taken away: all its templates go, each in its own way.
    pub(super) async fn foresee_policy(&self, policy: &str) -> Answer {
        let mut answer = Answer::default();
        self.foresee_templates(Some(policy), Change::Deleted, &mut answer).await;
        answer
    }

    /// If one template were deleted on the cluster.
    pub(super) async fn foresee_template(&self, name: &str) -> Answer {
        let mut answer = Answer::default();
        self.foresee_one(name, &mut answer).await;
        let found = marked_now(&self.config.cluster_client, &self.config.cluster, None).await;
        let parent = found.ok().and_then(|all| {
            let same = |(kind, metadata): &&(ApiResource, ObjectMeta)| {
                is_ours(kind) && metadata.name.as_deref() == Some(name)
            };
            let labels = all.iter().find(same)?.1.labels.as_ref()?;
            labels.get(PARENT_POLICY).cloned()
        });
        if let Some(policy) = parent {
            answer.notes.push(format!(
                "policy {policy} would make it anew, and with it what it makes; to end it, take it \
                 out of that policy"
            ));
        }
        answer
    }

    /// What a cluster that leaves has from policies that the hub sent.
    pub(super) async fn foresee_leaving_policies(
        &self,
        mut answer: Answer,
        strategy: RemoveStrategy,
    ) -> Answer {
        self.foresee_templates(None, Change::Leaving(strategy), &mut answer).await;
        answer
    }

    async fn foresee_templates(&self, policy: Option<&str>, change: Change, answer: &mut Answer) {
        let (client, cluster) = (&self.config.cluster_client, &self.config.cluster);
        let marked = match marked_now(client, cluster, policy).await {
            Ok(marked) => marked,
            Err(why) => return answer.problems.push(why),
        };
        // What works take along is gone before a policy goes that made its namespace.
        let going = answer.going();
        for (kind, metadata) in marked {
            let name = metadata.name.clone().unwrap_or_default();
            if is_ours(&kind) {
                self.foresee_end(&name, change, &going, answer).await;
                continue;
            }
            let source = metadata.labels.as_ref().and_then(|labels| labels.get(PARENT_POLICY));
            let source = source.cloned().unwrap_or_default();
            answer.outlooks.entry(source).or_default().push(foreign(kind, metadata));
        }
    }

    /// If one were deleted.
    pub(super) async fn foresee_one(&self, name: &str, answer: &mut Answer) {
        self.foresee_end(name, Change::Deleted, &BTreeSet::new(), answer).await;
    }

    async fn foresee_end(
        &self,
        name: &str,
        change: Change,
        going: &BTreeSet<String>,
        answer: &mut Answer,
    ) {
        let (cluster, policies) = (&self.config.cluster, self.config.policies.as_ref());
        match self.inquirer.of_policy(cluster, name, change, going, policies).await {
            Ok(foreseen) => {
                answer
                    .outlooks
                    .entry(name.to_owned())
                    .or_default()
                    .extend(foreseen.unwrap_or_default());
            }
            Err(why) => answer.problems.push(format!("configurationpolicy {name}: {why}")),
        }
    }
}

fn is_ours(kind: &ApiResource) -> bool {
    kind.group == GROUP && kind.plural == "configurationpolicies"
}

/// A template of a kind that somebody else looks after.
fn foreign(kind: ApiResource, metadata: ObjectMeta) -> Foreseen {
    Foreseen {
        id: Id {
            group: kind.group,
            resource: kind.plural,
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
        },
        version: kind.version,
        uid: metadata.uid.unwrap_or_default(),
        prospect: Prospect::Delete,
        why: "it goes with its policy; its own controller decides what goes with it".to_owned(),
        decided_by: "",
        adopted: false,
        finalizers: match metadata.deletion_timestamp {
            Some(_) => metadata.finalizers.unwrap_or_default(),
            None => Vec::new(),
        },
    }
}
