//! `cleat policy dryrun generate`: the kinds of a cluster, for dry runs without it.

use anyhow::{Context as _, Result};

use super::kinds::Mapping;
use crate::Which;
use crate::connection::block_on;
use crate::discovery::{Discovery, Version};

/// What nearly everything can be asked to do.
const USUAL: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

pub(super) fn run(which: &Which) -> Result<()> {
    let found = block_on(async {
        let client = which.client().await?;
        Discovery::read(&client).await.context("ask the cluster what it serves")
    })?;
    for (group, why) in &found.stale {
        eprintln!("the kinds of {group} are missing: {why}");
    }
    let value = serde_json::to_value(mappings(found.versions))?;
    print!("{}", cleat_dialect::yaml::to_string(&value));
    Ok(())
}

fn mappings(versions: Vec<Version>) -> Vec<Mapping> {
    let mut all = Vec::new();
    for Version { group, version, resources } in versions {
        for mut one in resources {
            one.verbs.sort();
            let usual = one.verbs == USUAL;
            all.push(Mapping {
                group: group.clone(),
                kind: one.kind,
                plural: one.name,
                scope: if one.namespaced { "namespace" } else { "root" }.to_owned(),
                singular: one.singular_name,
                verbs: if usual { Vec::new() } else { one.verbs },
                version: version.clone(),
            });
        }
    }
    let place = |one: &Mapping| (one.group.clone(), one.version.clone(), one.plural.clone());
    all.sort_by_key(place);
    all
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;

    use super::super::kinds::Kinds;
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let resource = |name: &str, kind: &str, namespaced, verbs: &[&str]| APIResource {
            name: name.to_owned(),
            kind: kind.to_owned(),
            namespaced,
            verbs: verbs.iter().map(ToString::to_string).collect(),
            ..APIResource::default()
        };
        let made = mappings(vec![Version {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            resources: vec![
                resource("things", "Thing", false, &USUAL),
                resource("others", "Other", true, &["list", "get"]),
            ],
        }]);
        assert!(made[0].plural == "others" && made[0].verbs == ["get", "list"]);
        assert!(made[1].plural == "things" && made[1].verbs.is_empty());
        let text = cleat_dialect::yaml::to_string(&serde_json::to_value(&made).unwrap());
        let mut kinds = Kinds::known();
        kinds.read(&text).unwrap();
        assert!(!kinds.named("example.com/v1", "Thing").unwrap().namespaced);
        assert!(kinds.named("example.com/v1", "Other").unwrap().namespaced);
    }
}
