//! Who serves AnsibleJobs on a hub: only where it is Cleat does a runner touch any.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Api;
use kube::{Client, ResourceExt as _};

const DEFINITION: &str = "ansiblejobs.tower.ansible.com";

/// Who gave the hub its definition of AnsibleJobs. An automation platform's operator brings its own,
/// and Cleat never replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    ByCleat,
    /// By somebody else, as this label of the definition, or the lack of Cleat's, says.
    ByPlatform(String),
    ByNobody,
}

pub async fn served_by(hub_client: &Client) -> Result<Served, kube::Error> {
    let definitions: Api<CustomResourceDefinition> = Api::all(hub_client.clone());
    let found = definitions.get_opt(DEFINITION).await?;
    Ok(found.map_or(Served::ByNobody, |found| judge(&found)))
}

fn judge(definition: &CustomResourceDefinition) -> Served {
    let labels = definition.labels();
    // Operators that the lifecycle manager installs are marked so, also on a definition that was
    // ours before.
    let operator =
        labels.keys().find(|key| *key == "olm.managed" || key.starts_with("operators.coreos.com/"));
    if let Some(key) = operator {
        return Served::ByPlatform(format!("its definition has the label {key}"));
    }
    let (key, value) = cleat_api::ansiblejob::OURS;
    if labels.get(key).is_some_and(|found| found == value) {
        Served::ByCleat
    } else {
        Served::ByPlatform(format!("its definition lacks the label {key}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platforms_definition_is_told_from_ours() {
        let ours = cleat_api::hub_definitions();
        let ours = ours.into_iter().find(|one| one.name_any() == DEFINITION).unwrap();
        assert_eq!(judge(&ours), Served::ByCleat);
        let mut taken = ours.clone();
        let key = "operators.coreos.com/ansible-automation-platform-operator.aap";
        taken.labels_mut().insert(key.to_owned(), String::new());
        assert!(matches!(judge(&taken), Served::ByPlatform(_)));
        let mut theirs = ours;
        theirs.labels_mut().clear();
        assert!(matches!(judge(&theirs), Served::ByPlatform(_)));
    }
}
