//! What a server says it serves, version by version.

use futures::StreamExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::Client;

/// How many groups are asked at the same time.
const AT_ONCE: usize = 8;

/// One version of a group.
pub(crate) struct Version {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resources: Vec<APIResource>,
}

#[derive(Default)]
pub(crate) struct Discovery {
    /// The version that the server prefers comes first in its group.
    pub(crate) versions: Vec<Version>,
    /// Versions that did not say what they serve, and why.
    pub(crate) stale: Vec<(String, String)>,
}

impl Discovery {
    pub(crate) async fn read(client: &Client) -> Result<Self, kube::Error> {
        let mut versions: Vec<(String, String)> = Vec::new();
        for version in client.list_core_api_versions().await?.versions {
            versions.push((String::new(), version));
        }
        for group in client.list_api_groups().await?.groups {
            let preferred = group.preferred_version.map(|one| one.version).unwrap_or_default();
            let mut names: Vec<String> =
                group.versions.into_iter().map(|one| one.version).collect();
            names.sort_by_key(|version| *version != preferred);
            versions.extend(names.into_iter().map(|version| (group.name.clone(), version)));
        }
        let read = versions.into_iter().map(async |(group, version)| {
            let read = match group.as_str() {
                "" => client.list_core_api_resources(&version).await,
                group => client.list_api_group_resources(&format!("{group}/{version}")).await,
            };
            (group, version, read)
        });
        let mut answers = futures::stream::iter(read).buffered(AT_ONCE);
        let mut all = Self::default();
        while let Some((group, version, read)) = answers.next().await {
            match read {
                Ok(list) => {
                    // What has a slash is a part of another, such as its status.
                    let whole = |one: &APIResource| !one.name.contains('/');
                    let resources = list.resources.into_iter().filter(whole).collect();
                    all.versions.push(Version { group, version, resources });
                }
                Err(error) => all.stale.push((format!("{group}/{version}"), error.to_string())),
            }
        }
        Ok(all)
    }
}
