//! What a work's rules make of one state of an object.

use serde_json::Value;

use super::observed::{Feedback, Judged};
use super::wanted::Rules;
use super::{feedback, rules};

/// The longest structure that is reported; the definition of works allows no more.
const LONGEST_JSON: usize = 1024;

/// `structures`: whether lists and objects are reported too, as JSON text.
pub fn judge(object: &Value, asked: &Rules<'_>, structures: bool) -> Judged {
    let feedback = match asked.feedback {
        [] => Feedback::NoRules,
        rules => {
            let (values, told) = feedback::values(object, rules, structures, LONGEST_JSON);
            Feedback::Values { values, problem: told.err() }
        }
    };
    Judged { feedback, conditions: rules::evaluate(object, asked.conditions) }
}
