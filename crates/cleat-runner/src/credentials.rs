//! The secret of a job, as a playbook gets it. Pure.
//!
//! | key | what becomes of it |
//! |---|---|
//! | `vault_password` | the file that `--vault-password-file` names |
//! | `ssh-privatekey` | the file that `--private-key` names |
//! | any other | an environment variable of that name |

use std::collections::BTreeMap;

use k8s_openapi::ByteString;

pub(crate) const VAULT_PASSWORD: &str = "vault_password";
pub(crate) const PRIVATE_KEY: &str = "ssh-privatekey";

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
    #[error(
        "the secret's key {0} cannot be an environment variable: use letters, digits and underscores"
    )]
    Name(String),
    #[error("the secret's key {0} would change how programs run; use another name")]
    Reserved(String),
    #[error("the value of the secret's key {0} is not text")]
    Text(String),
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) vault_password: Option<Vec<u8>>,
    pub(crate) private_key: Option<Vec<u8>>,
}

impl Credentials {
    pub(crate) fn read(data: &BTreeMap<String, ByteString>) -> Result<Self, Unfit> {
        let mut read = Self::default();
        for (key, ByteString(value)) in data {
            match &**key {
                VAULT_PASSWORD => read.vault_password = Some(value.clone()),
                PRIVATE_KEY => read.private_key = Some(value.clone()),
                _ => {
                    let text = variable(key, value)?;
                    read.environment.insert(key.clone(), text);
                }
            }
        }
        Ok(read)
    }

    /// Everything that must not be shown.
    pub(crate) fn secrets(&self) -> Vec<&[u8]> {
        let variables = self.environment.values().map(String::as_bytes);
        let files = [&self.vault_password, &self.private_key].into_iter().flatten();
        variables.chain(files.map(Vec::as_slice)).collect()
    }
}

fn variable(key: &str, value: &[u8]) -> Result<String, Unfit> {
    let plain = |char: char| char.is_ascii_alphanumeric() || char == '_';
    if !key.chars().all(plain) || key.starts_with(|char: char| char.is_ascii_digit()) {
        return Err(Unfit::Name(key.to_owned()));
    }
    let upper = key.to_ascii_uppercase();
    let reserved = ["PATH", "HOME", "IFS", "SHELL", "ENV", "BASH_ENV"].contains(&&*upper)
        || ["LD_", "DYLD_", "PYTHON", "ANSIBLE_"].iter().any(|start| upper.starts_with(start));
    if reserved {
        return Err(Unfit::Reserved(key.to_owned()));
    }
    let text = String::from_utf8(value.to_vec()).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| Unfit::Text(key.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &[u8])]) -> Result<Credentials, Unfit> {
        let data = pairs.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.to_vec())));
        Credentials::read(&data.collect())
    }

    #[test]
    fn keys_become_variables_and_files() {
        let read = read(&[
            ("host", b"https://tower"),
            ("SN_PASSWORD", b"hunter2"),
            (VAULT_PASSWORD, b"vault"),
            (PRIVATE_KEY, b"key"),
        ])
        .unwrap();
        assert_eq!(read.environment["host"], "https://tower");
        assert_eq!(read.environment.len(), 2);
        assert_eq!(read.secrets().len(), 4);
    }

    #[test]
    fn keys_that_would_do_more_are_refused() {
        for key in ["LD_PRELOAD", "PATH", "PYTHONPATH", "ansible_library", "BASH_ENV"] {
            assert_eq!(read(&[(key, b"x")]), Err(Unfit::Reserved(key.to_owned())));
        }
        for key in ["a.b", "1a", "a-b"] {
            assert_eq!(read(&[(key, b"x")]), Err(Unfit::Name(key.to_owned())));
        }
        assert_eq!(read(&[("a", b"\xff")]), Err(Unfit::Text("a".to_owned())));
        assert_eq!(read(&[("a", b"x\0y")]), Err(Unfit::Text("a".to_owned())));
    }
}
