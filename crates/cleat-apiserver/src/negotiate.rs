//! Media types: in which form a client wants its answer, and in which it has sent its body.
//!
//! Answers are JSON or YAML; protobuf is read but never written, so that a client that accepts
//! nothing else gets a 406. Nothing here encodes or decodes.

mod accept;
#[cfg(test)]
mod tests;

use crate::query::Query;
use crate::status::Status;
use accept::{Clause, clauses};

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub format: Format,
    pub view: View,
    /// Asked for in the media type; see [`is_pretty`].
    pub pretty: bool,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Json,
    Yaml,
}

/// What of the objects an answer shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// As they are.
    #[default]
    Object,
    Table(MetaVersion),
    PartialObjectMetadata(MetaVersion),
    PartialObjectMetadataList(MetaVersion),
    /// All groups in one document.
    AggregatedDiscovery,
}

/// The version of `meta.k8s.io` that a [`View`] is answered in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVersion {
    V1,
    V1Beta1,
}

/// What is being answered, which decides on the views it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// An object or a list.
    Resource,
    Watch,
    /// `/api` and `/apis`.
    Discovery,
    /// Everything else.
    Plain,
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    Json,
    Yaml,
    Protobuf,
}

/// What a patch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

impl Format {
    /// For the `Content-Type` of an answer.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::Yaml => YAML,
        }
    }
}

impl MetaVersion {
    /// `meta.k8s.io/v1`
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// Chooses the form of an answer by the `Accept` header, which may be empty.
pub fn answer(accept: &str, endpoint: Endpoint) -> Result<Answer, Status> {
    if accept.is_empty() {
        return Ok(Answer { format: Format::Json, view: View::Object, pretty: false });
    }
    let clauses = clauses(accept);
    let choose = |endpoint| clauses.iter().find_map(|clause| offer(clause, endpoint));
    // Aggregated discovery goes first, wherever it stands in the header.
    let chosen = match endpoint {
        Endpoint::Discovery => choose(Endpoint::Discovery).or_else(|| choose(Endpoint::Plain)),
        endpoint => choose(endpoint),
    };
    match chosen {
        Some(Answer { format: Format::Yaml, .. }) if endpoint == Endpoint::Watch => {
            Err(not_acceptable(&format!("{JSON};stream=watch, {PROTOBUF};stream=watch")))
        }
        Some(answer) => Ok(answer),
        // Built-in routes refuse before anybody looks at the kind.
        None if !clauses.iter().any(Clause::is_ours) => Err(not_routed()),
        None => Err(none_accepted()),
    }
}

/// Why the routes of built-in kinds refuse a client before anybody looks at the kind: unlike those
/// of custom kinds, they do not know `application/*`.
pub fn unrouted(accept: &str) -> Option<Status> {
    let clauses = clauses(accept);
    (!accept.is_empty() && !clauses.iter().any(Clause::is_ours)).then(not_routed)
}

fn not_routed() -> Status {
    let message =
        format!("406: Not Acceptable\n\nAvailable representations: {JSON}, {YAML}, {PROTOBUF}");
    let mut status = Status::not_acceptable(message);
    status.details.always = true;
    status
}

/// There is an answer, but in no form that the client accepts.
pub fn none_accepted() -> Status {
    not_acceptable(&format!("{JSON}, {YAML}, {PROTOBUF}"))
}

fn not_acceptable(accepted: &str) -> Status {
    Status::not_acceptable(format!("only the following media types are accepted: {accepted}"))
}

/// What one clause of the header would be answered with.
fn offer(clause: &Clause<'_>, endpoint: Endpoint) -> Option<Answer> {
    [Format::Json, Format::Yaml].into_iter().find_map(|format| {
        let subtype = match format {
            Format::Json => "json",
            Format::Yaml => "yaml",
        };
        let fits = match (clause.kind, clause.subtype) {
            ("*", "*") | ("application", "*") => true,
            (kind, wanted) => kind == "application" && wanted == subtype,
        };
        let streams = match clause.parameter("stream") {
            None | Some("") => true,
            Some(stream) => stream == "watch" && format == Format::Json,
        };
        let server_version = match clause.parameter("sv") {
            None | Some("") => true,
            Some(version) => {
                version == "v1" && matches!(endpoint, Endpoint::Resource | Endpoint::Watch)
            }
        };
        if !(fits && streams && server_version) {
            return None;
        }
        let view = view(clause, endpoint)?;
        Some(Answer { format, view, pretty: clause.parameter("pretty") == Some("1") })
    })
}

fn view(clause: &Clause<'_>, endpoint: Endpoint) -> Option<View> {
    let conversion = [clause.parameter("as"), clause.parameter("g"), clause.parameter("v")];
    if conversion == [None; 3] {
        return (endpoint != Endpoint::Discovery).then_some(View::Object);
    }
    let [kind, group, version] = conversion.map(Option::unwrap_or_default);
    match (endpoint, group, version, kind) {
        (Endpoint::Discovery, "apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList") => {
            Some(View::AggregatedDiscovery)
        }
        (Endpoint::Resource | Endpoint::Watch, "meta.k8s.io", "v1" | "v1beta1", kind) => {
            let version = if version == "v1" { MetaVersion::V1 } else { MetaVersion::V1Beta1 };
            match kind {
                "Table" => Some(View::Table(version)),
                "PartialObjectMetadata" => Some(View::PartialObjectMetadata(version)),
                "PartialObjectMetadataList" => Some(View::PartialObjectMetadataList(version)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether to indent: asked for in the query or the media type, or the client is one that people
/// look at.
pub fn is_pretty(answer: Answer, query: &Query, user_agent: &str) -> bool {
    if answer.pretty {
        return true;
    }
    match query.text("pretty") {
        "" => ["curl", "Wget", "Mozilla/5.0"].iter().any(|agent| user_agent.starts_with(agent)),
        text => matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True"),
    }
}

/// The form of a body by its `Content-Type`, which may be empty.
pub fn body_format(content_type: &str) -> Result<BodyFormat, Status> {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    match &*media_type.to_ascii_lowercase() {
        "" if content_type.is_empty() => Ok(BodyFormat::Json),
        JSON => Ok(BodyFormat::Json),
        YAML => Ok(BodyFormat::Yaml),
        PROTOBUF => Ok(BodyFormat::Protobuf),
        _ => Err(unsupported(&[JSON, YAML, PROTOBUF])),
    }
}

/// What a patch is by its `Content-Type`. `strategic` says whether the kind has strategic merge
/// patches, which custom resources do not.
pub fn patch_type(content_type: &str, strategic: bool) -> Result<PatchType, Status> {
    const TYPES: [&str; 4] = [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ];
    let [json, merge, with_keys, apply] = TYPES;
    let media_type = match content_type.split_once(';') {
        Some((media_type, _)) if !media_type.is_empty() => media_type,
        _ => content_type,
    };
    match media_type {
        given if given == json => Ok(PatchType::Json),
        given if given == merge => Ok(PatchType::Merge),
        given if given == with_keys && strategic => Ok(PatchType::Strategic),
        given if given == apply => Ok(PatchType::Apply),
        _ if strategic => Err(unsupported(&TYPES)),
        _ => Err(unsupported(&[json, merge, apply])),
    }
}

fn unsupported(accepted: &[&str]) -> Status {
    Status::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    ))
}
