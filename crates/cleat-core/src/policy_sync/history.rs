//! What was said about a template, put together from everything that tells of it.
//!
//! Events, the template's own history and what was reported before overlap; a message counts once.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::policy::{ComplianceHistory, TemplateDetail, TemplateMeta};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

/// How many messages are kept.
const MOST: usize = 10;
/// The same message so close together is one.
const CLOSE: i128 = 5_000;

/// One message about a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub at: Timestamp,
    pub message: String,
    /// The event that said it.
    pub event: String,
}

/// What an event about a policy says: of which template, and what. `None`: it says nothing of that.
pub fn told(event: &Value) -> Option<(String, Told)> {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
    let template = about(text("/reason")?)?;
    let name = text("/metadata/name")?;
    let times = ["/lastTimestamp", "/eventTime", "/firstTimestamp", "/metadata/creationTimestamp"];
    let stated = || times.iter().find_map(|pointer| text(pointer)?.parse::<Timestamp>().ok());
    let at = moment(name).or_else(stated)?;
    let message = text("/message").unwrap_or_default();
    let message = message.strip_prefix("(combined from similar events):").unwrap_or(message);
    let told = Told { at, message: message.trim_start().to_owned(), event: name.to_owned() };
    Some((template.to_owned(), told))
}

/// The template's name in `policy: <namespace>/<name>`.
fn about(reason: &str) -> Option<&str> {
    let (word, rest) = reason.split_once(':')?;
    if !word.eq_ignore_ascii_case("policy") {
        return None;
    }
    let rest = rest.trim_start();
    let plain =
        |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.');
    let name = match rest.split_once('/') {
        Some((namespace, name)) if plain(namespace.trim_end()) => name,
        _ => rest,
    };
    (!name.is_empty()).then_some(name)
}

/// The moment in an event's name: its last part is nanoseconds, in hexadecimal digits.
pub(crate) fn moment(event: &str) -> Option<Timestamp> {
    let (_, digits) = event.rsplit_once('.')?;
    let nanoseconds = u64::from_str_radix(digits, 16).ok()?;
    Timestamp::from_nanosecond(i128::from(nanoseconds)).ok()
}

/// How an event of that moment is called.
pub(crate) fn event_name(policy: &str, at: Timestamp) -> String {
    let nanoseconds = u64::try_from(at.as_nanosecond()).unwrap_or_default();
    format!("{policy}.{nanoseconds:x}")
}

/// What an object says of its own past.
pub(crate) fn of_object(policy: &str, object: &Value) -> Vec<Told> {
    let entries = object.pointer("/status/history").and_then(Value::as_array);
    let each = entries.into_iter().flatten().filter_map(|entry| {
        let at: Timestamp = entry.get("lastTimestamp")?.as_str()?.parse().ok()?;
        let message = entry.get("message")?.as_str()?.to_owned();
        Some(Told { at, message, event: event_name(policy, at) })
    });
    each.collect()
}

/// What was reported before.
fn of_detail(detail: Option<&TemplateDetail>) -> impl Iterator<Item = Told> {
    let history = detail.into_iter().flat_map(|detail| &detail.history);
    history.filter_map(|entry| {
        let ComplianceHistory { last_timestamp, message, event_name } = entry;
        let at = moment(event_name).or_else(|| Some(last_timestamp.as_ref()?.0))?;
        Some(Told { at, message: message.clone(), event: event_name.clone() })
    })
}

pub(crate) fn newest(told: &[Told]) -> Option<&Told> {
    told.iter().max_by(|one, other| (one.at, &one.event).cmp(&(other.at, &other.event)))
}

/// Everything that was said of a template: newest first, each once, and not too much.
pub(crate) fn merged(told: Vec<Told>, before: Option<&TemplateDetail>) -> Vec<Told> {
    let known: BTreeSet<String> = told.iter().map(|one| one.event.clone()).collect();
    let mut all = told;
    all.extend(of_detail(before).filter(|one| !known.contains(&one.event)));
    all.sort_by(|one, other| (other.at, &other.event).cmp(&(one.at, &one.event)));
    let mut kept: Vec<Told> = Vec::new();
    for one in all {
        let repeated = kept.last().is_some_and(|newer| {
            let apart = newer.at.as_nanosecond() - one.at.as_nanosecond();
            newer.message == one.message && apart <= CLOSE
        });
        if !repeated {
            kept.push(one);
        }
    }
    kept.truncate(MOST);
    kept
}

/// What the status says of a template.
pub(crate) fn detail(name: &str, told: Vec<Told>) -> TemplateDetail {
    let compliant = told.first().map(|newest| state(&newest.message).to_owned());
    let history = told.into_iter().map(|Told { at, message, event }| {
        let whole = Timestamp::from_second(at.as_second()).unwrap_or(at);
        ComplianceHistory { last_timestamp: Some(Time(whole)), message, event_name: event }
    });
    TemplateDetail {
        template_meta: TemplateMeta { name: name.to_owned() },
        compliant,
        history: history.collect(),
    }
}

/// How a template stands, by what was said of it last.
fn state(message: &str) -> &'static str {
    let begins = |word: &str| {
        message.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    if begins("compliant") {
        "Compliant"
    } else if begins("pending") {
        "Pending"
    } else {
        "NonCompliant"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use serde_json::json;

    fn at(nanoseconds: i128) -> Timestamp {
        Timestamp::from_nanosecond(1_700_000_000_000_000_000 + nanoseconds).unwrap()
    }

    fn said(nanoseconds: i128, message: &str) -> Told {
        let at = at(nanoseconds);
        Told { at, message: message.into(), event: event_name("p", at) }
    }

    #[test]
    fn events_say_which_template_they_are_about() {
        for (reason, template) in [
            ("policy: managed/web", Some("web")),
            ("Policy:managed/web", Some("web")),
            ("policy: web", Some("web")),
            ("policy: a_b/web", Some("a_b/web")),
            ("PolicyUpdate", None),
            ("policy: ", None),
        ] {
            assert_eq!(about(reason), template, "{reason}");
        }
        let event = json!({
            "metadata": { "name": "p.1797f40a9ed4c000" }, "reason": "policy: m/web",
            "message": "(combined from similar events): Compliant; all good",
        });
        let (template, told) = told(&event).unwrap();
        assert_eq!((template.as_str(), told.message.as_str()), ("web", "Compliant; all good"));
        assert_eq!(event_name("p", told.at), "p.1797f40a9ed4c000");
    }

    #[test]
    fn a_message_counts_once_and_the_newest_first() {
        let told = vec![
            said(0, "NonCompliant; a"),
            said(9_000_000, "Compliant; b"),
            said(1_000, "NonCompliant; a"),
        ];
        let merged = merged(told, None);
        let messages: Vec<&str> = merged.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(messages, ["Compliant; b", "NonCompliant; a"]);
        let detail = detail("web", merged);
        assert_eq!(detail.compliant.as_deref(), Some("Compliant"));
        let again = super::merged(Vec::new(), Some(&detail));
        assert_eq!(super::detail("web", again), detail);
    }

    #[test]
    fn what_is_neither_good_nor_waiting_is_bad() {
        for (message, expected) in [
            ("Compliant; x", "Compliant"),
            ("pending; x", "Pending"),
            ("Terminating; x", "NonCompliant"),
            ("", "NonCompliant"),
        ] {
            assert_eq!(state(message), expected, "{message}");
        }
    }
}
