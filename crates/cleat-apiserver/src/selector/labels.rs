//! Label selectors in their parsed form: matching and printing.

use std::fmt;

use serde_json::{Map, Value};

use super::{labels_of, object, parse};
use crate::names;
use crate::status::FieldError;

/// Requirements that labels must all meet. The default one selects everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelSelector {
    /// What an absent LabelSelector object means.
    Nothing,
    /// In order of their keys.
    All(Vec<Requirement>),
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: Box<str>,
    operator: Operator,
    values: Vec<Box<str>>,
}

/// How a requirement relates its key to its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    In,
    NotIn,
    Equals,
    DoubleEquals,
    NotEquals,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

impl Default for LabelSelector {
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

impl LabelSelector {
    pub const EVERYTHING: Self = Self::All(Vec::new());

    /// The string form, `a=b,c in (d,e),!f`. The error is Kubernetes' sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut requirements = parse::requirements(text)?;
        requirements.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(Self::All(requirements))
    }

    /// The object form, with `matchLabels` and `matchExpressions`. `None` and `null` select
    /// nothing, an empty object everything. The error is Kubernetes' sentence.
    pub fn from_object(object: Option<&Value>) -> Result<Self, String> {
        object::selector(object)
    }

    /// What Kubernetes' validation has against an object form found at `path`.
    pub fn check_object(object: &Value, path: &str) -> Vec<FieldError> {
        object::check(object, path)
    }

    /// Every one of these labels, as in a Service's selector. No labels select everything.
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut requirements: Vec<Requirement> = labels
            .into_iter()
            .map(|(key, value)| Requirement {
                key: key.into(),
                operator: Operator::Equals,
                values: vec![value.into()],
            })
            .collect();
        requirements.sort_by(|one, other| one.key.cmp(&other.key));
        Self::All(requirements)
    }

    pub(super) fn of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|one, other| one.key.cmp(&other.key));
        Self::All(requirements)
    }

    /// Whether an object's `metadata.labels` are selected.
    pub fn matches(&self, object: &Value) -> bool {
        match self {
            Self::Nothing => false,
            Self::All(requirements) if requirements.is_empty() => true,
            Self::All(_) => self.matches_labels(labels_of(object)),
        }
    }

    pub fn matches_labels(&self, labels: Option<&Map<String, Value>>) -> bool {
        match self {
            Self::Nothing => false,
            Self::All(requirements) => requirements.iter().all(|requirement| {
                let value =
                    labels.and_then(|labels| labels.get(&*requirement.key)).and_then(Value::as_str);
                requirement.matches(value)
            }),
        }
    }

    pub fn is_everything(&self) -> bool {
        matches!(self, Self::All(requirements) if requirements.is_empty())
    }

    /// Empty for both the selector of everything and that of nothing.
    pub fn requirements(&self) -> &[Requirement] {
        match self {
            Self::Nothing => &[],
            Self::All(requirements) => requirements,
        }
    }
}

impl Requirement {
    /// Checks key and values. The error is Kubernetes' sentence.
    pub fn new(key: &str, operator: Operator, values: Vec<Box<str>>) -> Result<Self, String> {
        let errors = check(key, operator, &values);
        if errors.is_empty() {
            Ok(Self { key: key.into(), operator, values })
        } else {
            Err(joined(&errors))
        }
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn operator(&self) -> Operator {
        self.operator
    }

    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(AsRef::as_ref)
    }

    /// Whether a label of this value, or an absent one, meets the requirement.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|one| **one == *value);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => value.is_some_and(listed),
            Operator::NotIn | Operator::NotEquals => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let number = value.and_then(integer);
                let bound = self.values.first().and_then(|bound| integer(bound));
                match (number, bound) {
                    (Some(number), Some(bound)) if self.operator == Operator::LessThan => {
                        number < bound
                    }
                    (Some(number), Some(bound)) => number > bound,
                    _ => false,
                }
            }
        }
    }
}

/// A whole number as Go's `ParseInt` takes it.
fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn check(key: &str, operator: Operator, values: &[Box<str>]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let complaints = names::label_key(key);
    if !complaints.is_empty() {
        errors.push(FieldError::invalid("key", key, complaints.join("; ")));
    }
    let count = match operator {
        Operator::In | Operator::NotIn if values.is_empty() => {
            Some("for 'in', 'notin' operators, values set can't be empty")
        }
        Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if values.len() != 1 => {
            Some("exact-match compatibility requires one single value")
        }
        Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
            Some("values set must be empty for exists and does not exist")
        }
        Operator::GreaterThan | Operator::LessThan if values.len() != 1 => {
            Some("for 'Gt', 'Lt' operators, exactly one value is required")
        }
        _ => None,
    };
    if let Some(complaint) = count {
        let shown = match values {
            [] => Value::Null,
            values => values.iter().map(|value| Value::from(&**value)).collect(),
        };
        errors.push(FieldError::invalid("values", shown, complaint));
    }
    if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
        for (index, value) in values.iter().enumerate() {
            if integer(value).is_none() {
                errors.push(FieldError::invalid(
                    format!("values[{index}]"),
                    &**value,
                    "for 'Gt', 'Lt' operators, the value must be an integer",
                ));
            }
        }
    }
    for (index, value) in values.iter().enumerate() {
        let complaints = names::label_value(value);
        if !complaints.is_empty() {
            let field = format!("values[{index}][{key}]");
            errors.push(FieldError::invalid(field, &**value, complaints.join("; ")));
        }
    }
    errors
}

/// Several errors in one sentence, each said once.
fn joined(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements().iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values: Vec<&str> = self.values().collect();
        values.sort_unstable();
        let values = values.join(",");
        let key = &self.key;
        match self.operator {
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
        }
    }
}
