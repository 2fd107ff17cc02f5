//! Requests for certificates: reads what they ask for, asks what the decision needs, and says what
//! was decided. `cleat_core::registration::approval` decides.

mod subject;

use cleat_api::managedcluster::CLUSTER_NAME_LABEL;
use cleat_core::registration::access::{RENEWAL_GROUP, RENEWAL_RESOURCE, RENEWAL_SUBRESOURCE};
use cleat_core::registration::approval::{self, Cluster, Judgement, Request};
use cleat_core::write::Action;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt as _};

use crate::mirror::Mirror;

/// How long what was just made may take to be known everywhere.
const MOMENT: jiff::SignedDuration = jiff::SignedDuration::from_secs(10);

/// The requests on the hub.
pub(crate) struct Requests {
    hub_client: Client,
    requests: Mirror<CertificateSigningRequest>,
}

impl Requests {
    pub(crate) fn new(hub_client: Client, requests: Mirror<CertificateSigningRequest>) -> Self {
        Self { hub_client, requests }
    }

    pub(crate) async fn ready(&self) {
        self.requests.ready().await;
    }

    /// What to write about the request of this name. `accepted` says of a cluster whether the hub
    /// accepts it, if it knows it.
    pub(crate) async fn decide(
        &self,
        name: &str,
        accepted: impl Fn(&str) -> Option<bool>,
    ) -> Option<Action> {
        let request = read(&*self.requests.get("", name)?);
        if request.decided {
            return None;
        }
        let agent = approval::cluster(&request);
        let cluster = agent.as_ref().and_then(|agent| Some((agent, accepted(&agent.cluster)?)));
        let cluster = match cluster {
            Some((agent, accepted)) => {
                let may_renew = self.may_renew(&request, &agent.cluster).await;
                Some(Cluster { accepted, may_renew })
            }
            None => None,
        };
        let cluster = self.settled(name, &request, cluster);
        let judgement = approval::judge(&request, cluster);
        match &judgement {
            Judgement::Deny(why) => tracing::warn!(request = name, why, "a request is denied"),
            Judgement::Approve => tracing::info!(request = name, "a certificate is renewed"),
            Judgement::Ignore | Judgement::Ask(_) | Judgement::Later => {}
        }
        approval::decide(&request, &judgement)
    }

    /// A denial is for good, and rights and clusters may be younger than what authorizers and this
    /// process have heard of. So for a moment nobody is denied for want of
    /// either.
    fn settled(&self, name: &str, request: &Request, cluster: Option<Cluster>) -> Option<Cluster> {
        let lacking = !matches!(cluster, Some(Cluster { accepted: true, may_renew: Some(true) }));
        let made = self.requests.get("", name).and_then(|one| one.creation_timestamp());
        let age = made.map(|made| jiff::Timestamp::now().duration_since(made.0));
        let young = age.is_some_and(|age| age < MOMENT);
        let own = approval::cluster(request).is_some();
        if lacking && young && own {
            return Some(Cluster { accepted: true, may_renew: None });
        }
        cluster
    }

    /// Whether the request of this name still needs an answer of the hub's own.
    pub(crate) fn is_waiting(&self, name: &str) -> bool {
        let Some(request) = self.requests.get("", name) else { return false };
        let request = read(&request);
        let unknown = Cluster { accepted: true, may_renew: None };
        approval::judge(&request, Some(unknown)) == Judgement::Later
    }

    /// Whether whoever asks may renew certificates of the cluster; nothing if nobody says.
    async fn may_renew(&self, request: &Request, cluster: &str) -> Option<bool> {
        let question = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(request.username.clone()),
                groups: Some(request.groups.clone()),
                resource_attributes: Some(ResourceAttributes {
                    group: Some(RENEWAL_GROUP.to_owned()),
                    resource: Some(RENEWAL_RESOURCE.to_owned()),
                    subresource: Some(RENEWAL_SUBRESOURCE.to_owned()),
                    verb: Some("renew".to_owned()),
                    name: Some(cluster.to_owned()),
                    ..Default::default()
                }),
                ..Default::default()
            },
            ..Default::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.hub_client.clone());
        match reviews.create(&PostParams::default(), &question).await {
            Ok(answer) => Some(answer.status.is_some_and(|status| status.allowed)),
            Err(error) => {
                tracing::warn!(%error, "the hub does not say who may renew");
                None
            }
        }
    }
}

/// A request as the decision sees it.
pub fn read(request: &CertificateSigningRequest) -> Request {
    let spec = &request.spec;
    let status = request.status.as_ref();
    let decided = status.is_some_and(|status| {
        status.certificate.is_some() || status.conditions.iter().flatten().next().is_some()
    });
    Request {
        name: request.name_any(),
        uid: request.uid().unwrap_or_default(),
        resource_version: request.resource_version().unwrap_or_default(),
        username: spec.username.clone().unwrap_or_default(),
        groups: spec.groups.clone().unwrap_or_default(),
        signer: spec.signer_name.clone(),
        usages: spec.usages.clone().unwrap_or_default(),
        label: request.labels().get(CLUSTER_NAME_LABEL).cloned(),
        subject: subject::read(&spec.request.0),
        decided,
    }
}

/// A short name for the key in a request, by which two people can compare it.
pub fn fingerprint(request: &CertificateSigningRequest) -> Option<String> {
    subject::fingerprint(&request.spec.request.0)
}
