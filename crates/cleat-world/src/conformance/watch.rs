//! An open watch of a case: events one by one, as they arrive.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::play::holds;
use crate::server::Body;

pub(crate) struct Watch {
    body: Body,
    unread: Vec<u8>,
}

/// What came next.
enum Next {
    Event(Value),
    End,
    Late,
}

impl Watch {
    pub(crate) fn new(body: Body) -> Self {
        Self { body, unread: Vec::new() }
    }

    /// Reads until there are `count` events, or one fits `until`, or the stream ends.
    pub(crate) async fn collect(
        &mut self,
        count: Option<usize>,
        until: Option<&BTreeMap<String, Value>>,
        bookmarks: bool,
        patience: Duration,
    ) -> Result<Value> {
        let deadline = Instant::now() + patience;
        let mut events = Vec::new();
        while count.is_none_or(|count| events.len() < count) {
            let event = match self.next(deadline).await? {
                Next::Event(event) => event,
                Next::End => return Ok(json!({"events": events, "ended": true})),
                Next::Late => return Ok(json!({"events": events, "late": true})),
            };
            if !bookmarks && by_the_clock(&event) {
                continue;
            }
            let last = until.is_some_and(|until| holds(until, &event));
            events.push(event);
            if last {
                break;
            }
        }
        Ok(json!({"events": events}))
    }

    async fn next(&mut self, deadline: Instant) -> Result<Next> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                let event = serde_json::from_slice(&line).context("read an event")?;
                return Ok(Next::Event(event));
            }
            match timeout_at(deadline, self.body.frame()).await {
                Err(_) => return Ok(Next::Late),
                Ok(None) => return Ok(Next::End),
                Ok(Some(frame)) => {
                    if let Some(data) = frame.context("read the watch")?.data_ref() {
                        self.unread.extend_from_slice(data);
                    }
                }
            }
        }
    }
}

/// A bookmark that a server may send at any time, unlike the one that ends the initial events.
fn by_the_clock(event: &Value) -> bool {
    event.pointer("/type").and_then(Value::as_str) == Some("BOOKMARK")
        && event.pointer("/object/metadata/annotations/k8s.io~1initial-events-end").is_none()
}
