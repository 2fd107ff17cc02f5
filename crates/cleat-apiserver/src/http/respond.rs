//! Answers as HTTP responses.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use cleat_dialect::yaml;
use futures::Stream;
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;

use super::Asked;
use crate::form::Pieces;
use crate::negotiate::{self, Endpoint, Format};
use crate::status::Status;

/// An answer, and what the client is told besides.
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) body: AnswerBody,
    pub(super) warnings: Vec<String>,
}

pub(super) enum AnswerBody {
    Value(Value),
    /// JSON already.
    Raw(Bytes),
    /// JSON that is made as it is sent, if it is long.
    List(Box<Pieces>),
}

/// `text/plain`, for the few paths that speak it.
pub(super) fn text(code: u16, body: &str) -> Response {
    response(code, "text/plain; charset=utf-8", Body::from(body.to_owned()))
}

/// A refusal in the form the client reads.
pub(super) fn refusal(asked: &Asked, status: &Status) -> Response {
    let format = format(asked);
    let mut response = value(status.code, format, &status.to_json());
    if status.details.retry_after_seconds > 0 {
        let seconds = HeaderValue::from(status.details.retry_after_seconds);
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    warn(&mut response, &status.details.warnings);
    response
}

fn warn(response: &mut Response, warnings: &[String]) {
    for warning in warnings {
        let header = format!("299 - \"{}\"", escaped(warning));
        if let Ok(header) = HeaderValue::from_str(&header) {
            response.headers_mut().append(header::WARNING, header);
        }
    }
}

/// How to write what is no resource. A client that wants none of it gets JSON.
pub(super) fn format(asked: &Asked) -> Format {
    let answer = negotiate::answer(asked.header(header::ACCEPT), Endpoint::Plain);
    answer.map(|answer| answer.format).unwrap_or_default()
}

pub(super) fn value(code: u16, format: Format, value: &Value) -> Response {
    match format {
        Format::Json => response(code, "application/json", Body::from(value.to_string() + "\n")),
        Format::Yaml => response(code, "application/yaml", Body::from(yaml::to_string(value))),
    }
}

pub(super) fn answer(answer: Answer, format: Format) -> Response {
    let Answer { code, body, warnings } = answer;
    let mut response = match (body, format) {
        (AnswerBody::List(list), Format::Json) if list.is_long() => {
            response(code, "application/json", pieces(list))
        }
        (AnswerBody::List(list), _) => raw(code, format, list.whole()),
        (AnswerBody::Raw(bytes), _) => raw(code, format, bytes),
        (AnswerBody::Value(shown), _) => value(code, format, &shown),
    };
    warn(&mut response, &warnings);
    response
}

fn raw(code: u16, format: Format, json: Bytes) -> Response {
    match format {
        Format::Json => response(code, "application/json", Body::from(json)),
        Format::Yaml => {
            let parsed: Value = serde_json::from_slice(&json).unwrap_or_default();
            value(code, format, &parsed)
        }
    }
}

/// Nothing but a status code.
pub(super) fn empty(code: u16) -> Response {
    let mut response = response(code, "", Body::empty());
    response.headers_mut().remove(header::CONTENT_TYPE);
    response
}

/// A watch: lines of JSON for as long as it lasts.
pub(super) fn stream(
    lines: impl Stream<Item = Result<Bytes, std::convert::Infallible>> + Send + 'static,
) -> Response {
    response(200, "application/json", Body::from_stream(lines))
}

/// Bytes that are no text, made as they are sent.
pub(super) fn binary(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Response {
    response(200, "application/octet-stream", self::pieces(pieces))
}

fn pieces(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Body {
    Body::from_stream(futures::stream::iter(pieces.map(Ok::<_, std::convert::Infallible>)))
}

pub(super) fn response(code: u16, content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// The inside of a quoted string in a header.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}
