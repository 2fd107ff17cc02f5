//! One request and its answer, as bytes.
//!
//! Every request but the long ones that are streamed goes through here, so that each has a time
//! limit. There is no retry: whoever asked decides what silence means.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use kube::Client;

/// How long a server has for one answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What a server said, whatever it was.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }
}

/// There was no whole answer, so the request may have had its effect, or may yet have it.
#[derive(Debug)]
pub(crate) enum Silence {
    TimedOut(Duration),
    Failed(kube::Error),
}

impl Silence {
    /// Bounded, and with all causes.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::TimedOut(patience) => {
                format!("the server did not answer within {} s", patience.as_secs())
            }
            Self::Failed(error) => causes(error),
        }
    }
}

pub(crate) async fn exchange(
    client: &Client,
    request: Request<Vec<u8>>,
    patience: Duration,
) -> Result<Answer, Silence> {
    let whole = async {
        let (head, body) = client.send(request.map(Into::into)).await?.into_parts();
        Ok(Answer { code: head.status.as_u16(), body: body.collect_bytes().await? })
    };
    match tokio::time::timeout(patience, whole).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(Silence::Failed(error)),
        Err(_) => Err(Silence::TimedOut(patience)),
    }
}

/// An error with what caused it. Layers that only repeat their cause are said once.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    // No error of ours is nested deeper; a cycle must not keep us.
    for _ in 0..8 {
        let Some(cause) = next else { break };
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = cause.source();
    }
    shorten(text)
}

/// No message is longer than what fits into a condition beside others.
pub(crate) fn shorten(mut text: String) -> String {
    const LONGEST: usize = 1024;
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push('…');
    }
    text
}
