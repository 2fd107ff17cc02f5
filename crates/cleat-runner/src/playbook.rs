//! Which playbook a job template's name means.
//!
//! The name only chooses: it is never a path, and what is not among the operator's playbooks is not
//! run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::Api;

/// Where playbooks are.
#[derive(Clone, Debug)]
pub enum Playbooks {
    /// `<name>.yml` or `<name>.yaml` in this directory.
    Directory(PathBuf),
    /// The same as keys of this ConfigMap on the hub.
    ConfigMap { namespace: String, name: String },
}

/// A playbook to run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Playbook {
    File(PathBuf),
    Text(String),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Missing {
    #[error("{0:?} cannot be the name of a playbook")]
    Name(String),
    #[error("there is no playbook {} in {place}", .names.join(" or "))]
    Playbook { names: Vec<String>, place: String },
    #[error("the ConfigMap {namespace}/{name} cannot be read")]
    ConfigMap {
        namespace: String,
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
}

/// The longest name that is looked for.
const LONGEST: usize = 200;

impl Playbooks {
    pub(crate) async fn find(&self, hub_client: &Client, name: &str) -> Result<Playbook, Missing> {
        let names = names(name)?;
        match self {
            Self::Directory(directory) => {
                let found =
                    names.iter().map(|name| directory.join(name)).find(|path| path.is_file());
                let place = || directory.display().to_string();
                found.map(Playbook::File).ok_or_else(|| missing(&names, place()))
            }
            Self::ConfigMap { namespace, name } => {
                let maps: Api<ConfigMap> = Api::namespaced(hub_client.clone(), namespace);
                let map = maps.get(name).await.map_err(|source| Missing::ConfigMap {
                    namespace: namespace.clone(),
                    name: name.clone(),
                    source: Box::new(source),
                })?;
                let place = format!("the ConfigMap {namespace}/{name}");
                choose(&map.data.unwrap_or_default(), &names).ok_or_else(|| missing(&names, place))
            }
        }
    }

    /// In which directory a playbook's relative paths begin.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Self::Directory(directory) => Some(directory),
            Self::ConfigMap { .. } => None,
        }
    }
}

fn missing(names: &[String], place: String) -> Missing {
    Missing::Playbook { names: names.to_vec(), place }
}

fn choose(data: &BTreeMap<String, String>, names: &[String]) -> Option<Playbook> {
    names.iter().find_map(|name| data.get(name)).map(|text| Playbook::Text(text.clone()))
}

/// The files that a name may mean: itself, and as a plain word, as keys of ConfigMaps must be.
fn names(name: &str) -> Result<Vec<String>, Missing> {
    let bad = |char: char| char == '/' || char == '\\' || char.is_control();
    if name.is_empty() || name.len() > LONGEST || name.starts_with('.') || name.contains(bad) {
        return Err(Missing::Name(name.chars().take(LONGEST).collect()));
    }
    let plain = |char: char| if char.is_ascii_alphanumeric() { char } else { '-' };
    let word: String = name.to_ascii_lowercase().chars().map(plain).collect();
    let mut stems = vec![name.to_owned()];
    if word != name {
        stems.push(word);
    }
    let with = |stem: &String| [format!("{stem}.yml"), format!("{stem}.yaml")];
    Ok(stems.iter().flat_map(with).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_a_path() {
        let long = "x".repeat(LONGEST + 1);
        for name in ["", ".", "..", "../x", "a/b", "a\\b", ".hidden", "a\nb", "a\0b", &long] {
            assert!(matches!(names(name), Err(Missing::Name(_))), "{name:?}");
        }
    }

    #[test]
    fn a_name_may_have_spaces() {
        let found = names("Demo Job Template").unwrap();
        assert_eq!(
            found,
            [
                "Demo Job Template.yml",
                "Demo Job Template.yaml",
                "demo-job-template.yml",
                "demo-job-template.yaml",
            ]
        );
        assert_eq!(names("ticket").unwrap(), ["ticket.yml", "ticket.yaml"]);
        let data = BTreeMap::from([("demo-job-template.yml".to_owned(), "- hosts: x".to_owned())]);
        assert_eq!(choose(&data, &found), Some(Playbook::Text("- hosts: x".to_owned())));
        assert_eq!(choose(&BTreeMap::new(), &found), None);
    }
}
