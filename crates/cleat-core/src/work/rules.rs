//! Conditions that follow from the state of objects by a work's `conditionRules`, and from those of
//! its manifests for the work as a whole.
//!
//! A rule that cannot be followed gives a condition that is False and says why; the others give
//! theirs. A condition that the agent itself speaks through cannot be ruled: such rules, and those
//! whose condition has a name no condition may have, give nothing.
//!
//! Expressions are bounded in length, in number and in the steps they may take on an object. A
//! message made by walking a map may come in any order: that is the engine's, not ours.

#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::manifestwork::{
    ConditionRule, ConditionRuleType, ManifestCondition, condition, reason,
};
use cleat_dialect::cel::{Answer, Expression, Failure, Functions, from_json};
use serde_json::Value;

use super::observed::Finding;

/// More expressions than this in one rule are refused.
const MOST_EXPRESSIONS: usize = 32;
/// More rules than this for one object are passed over.
const MOST_RULES: usize = 64;
/// Conditions with longer messages are cut.
const LONGEST_MESSAGE: usize = 1024;
/// The longest type a condition may have.
const LONGEST_TYPE: usize = 316;

/// The conditions that rules give an object, each type once, in the order of the rules.
pub fn evaluate(object: &Value, rules: &[ConditionRule]) -> Vec<Finding> {
    let mut types = BTreeSet::new();
    let mut findings = Vec::new();
    for rule in rules.iter().take(MOST_RULES) {
        let type_ = match (rule.type_, rule.condition.as_str()) {
            (ConditionRuleType::WellKnownConditions, "") => condition::COMPLETE,
            (_, type_) => type_,
        };
        if may_be_ruled(type_) && types.insert(type_) {
            findings.push(follow(object, rule, type_).finding(type_));
        }
    }
    findings
}

/// The conditions of a work that follow from those that rules gave its manifests, sorted by type.
pub fn aggregate(manifests: &[ManifestCondition]) -> Vec<Finding> {
    let mut by_type: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for found in manifests.iter().flat_map(|manifest| &manifest.conditions) {
        if found.reason.starts_with(reason::CONDITION_RULE_PREFIX) && may_be_ruled(&found.type_) {
            by_type.entry(&found.type_).or_default().push((&found.status, &found.message));
        }
    }
    let aggregated = by_type.into_iter().map(|(type_, found)| {
        // One manifest in progress is progress; one that is not complete is not completeness.
        let order = match type_ {
            condition::PROGRESSING => ["True", "Unknown", "False"],
            _ => ["False", "Unknown", "True"],
        };
        let has = |status: &&str| found.iter().any(|(other, _)| other == status);
        Finding {
            condition: type_.to_string(),
            status: order.into_iter().find(has).unwrap_or("Unknown"),
            reason: reason::CONDITION_RULES_AGGREGATED,
            message: match found.as_slice() {
                [(_, message)] => (*message).to_string(),
                several => format!("Aggregated from {} manifest conditions", several.len()),
            },
        }
    });
    aggregated.collect()
}

/// What came of one rule.
enum Verdict {
    Evaluated { holds: bool, message: Option<String> },
    Failed { reason: &'static str, message: String },
}

impl Verdict {
    fn invalid(message: impl Into<String>) -> Self {
        Self::Failed { reason: reason::CONDITION_RULE_INVALID, message: message.into() }
    }

    fn expression_error(message: impl Into<String>) -> Self {
        Self::Failed { reason: reason::CONDITION_RULE_EXPRESSION_ERROR, message: message.into() }
    }

    fn finding(self, type_: &str) -> Finding {
        let (status, reason, message) = match self {
            Self::Evaluated { holds, message } => {
                let message = message.filter(|message| !message.is_empty());
                let message = message.unwrap_or_else(|| match holds {
                    true => format!("Manifest is {type_}"),
                    false => format!("Manifest is not {type_}"),
                });
                let status = if holds { "True" } else { "False" };
                (status, reason::CONDITION_RULE_EVALUATED, message)
            }
            Self::Failed { reason, message } => ("False", reason, message),
        };
        Finding { condition: type_.to_string(), status, reason, message: cut(message) }
    }
}

fn follow(object: &Value, rule: &ConditionRule, type_: &str) -> Verdict {
    match rule.type_ {
        ConditionRuleType::WellKnownConditions => well_known(object, type_),
        ConditionRuleType::Cel => cel(object, rule),
        ConditionRuleType::Unknown => {
            Verdict::invalid("the rule has a type that this agent does not know")
        }
    }
}

fn well_known(object: &Value, type_: &str) -> Verdict {
    let text = |field| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let status = object.get("status");
    match (api_version, kind, type_) {
        ("batch/v1", "Job", condition::COMPLETE) => {
            let conditions = status.and_then(|status| status.get("conditions")?.as_array());
            let holds = conditions.into_iter().flatten().any(|one| {
                let is = |field: &str, values: &[&str]| {
                    let value = one.get(field).and_then(Value::as_str);
                    value.is_some_and(|value| values.contains(&value))
                };
                is("type", &["Complete", "Failed"]) && is("status", &["True"])
            });
            let message = if holds { "Job is finished" } else { "Job is not finished" };
            Verdict::Evaluated { holds, message: Some(message.to_string()) }
        }
        ("v1", "Pod", condition::COMPLETE) => {
            let phase = status.and_then(|status| status.get("phase")?.as_str());
            let phase = phase.unwrap_or("Unknown");
            let holds = matches!(phase, "Succeeded" | "Failed");
            Verdict::Evaluated { holds, message: Some(format!("Pod is in phase {phase}")) }
        }
        _ => Verdict::invalid(format!(
            "{type_} is not well known of {kind} in {api_version}: use CEL"
        )),
    }
}

fn cel(object: &Value, rule: &ConditionRule) -> Verdict {
    let count = rule.cel_expressions.len();
    if count == 0 {
        return Verdict::invalid("the rule has no expressions");
    }
    if count > MOST_EXPRESSIONS {
        return Verdict::invalid(format!(
            "the rule has {count} expressions, at most {MOST_EXPRESSIONS} are evaluated"
        ));
    }
    let mut sources: Vec<&str> =
        rule.cel_expressions.iter().map(|one| one.expression.as_str()).collect();
    if !rule.message_expression.is_empty() {
        sources.push(&rule.message_expression);
    }
    let mut parsed = Expression::parse_all(&sources);
    let message = parsed.split_off(count.min(parsed.len())).pop();
    let object = from_json(object);
    let mut holds = true;
    for expression in parsed {
        let answer = expression.map_err(Failure::Other).and_then(|expression| {
            expression.evaluate_with(Functions::Works, &[("object", object.clone())])
        });
        match answer.map(|value| Answer::of(&value)) {
            // All are evaluated, so that a broken one is told of whatever the others say.
            Ok(Answer::Truth(truth)) => holds &= truth,
            Ok(other) => {
                let name = other.type_name();
                return Verdict::expression_error(format!("expected bool result, got {name}"));
            }
            Err(failure) => return Verdict::expression_error(words(failure)),
        }
    }
    let fixed = || Some(rule.message.clone());
    let message = match message {
        None => fixed(),
        Some(expression) => {
            let variables = [("object", object), ("result", from_json(&Value::Bool(holds)))];
            let answer = expression
                .map_err(Failure::Other)
                .and_then(|expression| expression.evaluate_with(Functions::Works, &variables));
            match answer.map(|value| Answer::of(&value)) {
                Ok(Answer::Text(text)) if !text.trim().is_empty() => Some(text),
                Ok(Answer::Text(_)) => fixed(),
                Ok(other) => Some(format!("expected string result, got {}", other.type_name())),
                Err(failure) => Some(words(failure)),
            }
        }
    };
    Verdict::Evaluated { holds, message }
}

fn words(failure: Failure) -> String {
    match failure {
        Failure::OverBudget => "CEL evaluation budget exceeded".to_string(),
        Failure::NoSuchOverload => "no such overload".to_string(),
        Failure::Other(text) => text,
    }
}

/// Whether a condition of this type may come from a rule: Kubernetes refuses a whole status for one
/// bad type, and the agent's own conditions are the agent's.
fn may_be_ruled(type_: &str) -> bool {
    const OURS: [&str; 5] = [
        condition::APPLIED,
        condition::AVAILABLE,
        condition::DELETING,
        condition::REMOVED,
        condition::STATUS_FEEDBACK_SYNCED,
    ];
    let plain = |byte: &u8| byte.is_ascii_alphanumeric();
    let name = |text: &str| {
        let ends = [text.as_bytes().first(), text.as_bytes().last()];
        ends.into_iter().all(|byte| byte.is_some_and(plain))
            && text.bytes().all(|byte| plain(&byte) || matches!(byte, b'-' | b'_' | b'.'))
    };
    let label = |text: &str| {
        name(text) && text.bytes().all(|byte| !matches!(byte, b'_' | b'.' | b'A'..=b'Z'))
    };
    let fits = match type_.split_once('/') {
        None => name(type_),
        Some((domain, rest)) => domain.split('.').all(label) && name(rest),
    };
    fits && type_.len() <= LONGEST_TYPE && !OURS.contains(&type_)
}

fn cut(mut text: String) -> String {
    if text.len() > LONGEST_MESSAGE {
        let end = (0..=LONGEST_MESSAGE).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}
