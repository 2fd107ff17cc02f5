//! Deletes that are only tried: whether one would pass, and what was said about it.

use cleat_core::id::Target;
use cleat_core::write::{Action, Propagation, Refusal, Side, Write};
use http::HeaderMap;

use super::request::{self, Asking};
use super::{Executor, unconnected};
use crate::status::Status;
use crate::wire::{Answer, causes};

/// What came of a delete that was not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rehearsal {
    /// It would have passed, with these warnings.
    Passed {
        warnings: Vec<String>,
    },
    Refused(Refusal),
    Unknown(String),
}

impl Executor {
    /// Asks for the deletion of an incarnation in a dry run.
    pub async fn rehearse_delete(&self, side: Side, target: &Target, uid: &str) -> Rehearsal {
        let unknown = Rehearsal::Unknown;
        let Some(line) = self.line(side) else { return unknown(unconnected(side)) };
        let propagation = Propagation::Background;
        let write = Write::Delete { uid: uid.to_owned(), resource_version: None, propagation };
        let action = Action { side, target: target.clone(), write };
        let asking = Asking { dry_run: true, ..Asking::default() };
        let agent = self.user_agent.as_deref();
        let request = match request::write(&action, &asking, None, agent, false) {
            Ok(request) => request,
            Err(error) => return unknown(error.to_string()),
        };
        let Ok(_permit) = line.in_flight.acquire().await else {
            return unknown(unconnected(side));
        };
        let whole = async {
            let (head, body) = line.client.send(request.map(Into::into)).await?.into_parts();
            let body = body.collect_bytes().await?;
            Ok::<_, kube::Error>((head.headers, Answer { code: head.status.as_u16(), body }))
        };
        match tokio::time::timeout(self.patience, whole).await {
            Ok(Ok((headers, answer))) if answer.is_success() => {
                Rehearsal::Passed { warnings: warnings(&headers) }
            }
            Ok(Ok((_, answer))) => match Status::of(&answer) {
                status if matches!(answer.code, 401 | 403 | 409) || status.is_from_webhook() => {
                    Rehearsal::Refused(status.refusal())
                }
                status => unknown(status.message),
            },
            Ok(Err(error)) => unknown(causes(&error)),
            Err(_) => unknown("the server did not answer in time".to_owned()),
        }
    }
}

/// The texts of `Warning` headers, which look like `299 - "text"`.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let all = headers.get_all(http::header::WARNING).into_iter();
    let texts = all.filter_map(|value| value.to_str().ok());
    texts
        .filter_map(|value| {
            let (_, quoted) = value.split_once('"')?;
            let (text, _) = quoted.rsplit_once('"')?;
            Some(text.replace("\\\"", "\""))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn warnings_are_read_as_servers_write_them() {
        let mut headers = HeaderMap::new();
        for value in [r#"299 - "one, \"two\"""#, "nonsense", r#"299 - "three""#] {
            headers.append(http::header::WARNING, HeaderValue::from_static(value));
        }
        assert_eq!(warnings(&headers), [r#"one, "two""#, "three"]);
    }
}
