//! What admission expressions may speak of, converted once for all expressions about a request.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use cel::{
    IdedExpr, Value as CelValue,
    common::ast::{EntryExpr, Expr},
    objects::{Key, Map},
};
use serde_json::Value;

use super::{Budget, Expression, Failure, Functions, value};

/// Variables by name, and values computed from them.
///
/// A computed value that failed is left out, so that only an expression that gets as far as asking
/// for it fails.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    variables: Vec<(&'static str, CelValue)>,
    computed: HashMap<Key, CelValue>,
    failed: BTreeMap<String, String>,
    /// What all expressions in this scope and its clones may take together.
    budget: Budget,
}

/// What an expression came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Boolean(bool),
    Text(String),
    Null,
    Other,
}

impl Scope {
    pub fn set(&mut self, name: &'static str, value: &Value) {
        self.bind(name, value::untyped(value));
    }

    fn bind(&mut self, name: &'static str, value: CelValue) {
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value));
    }

    /// Computes `variables.NAME` from what is known so far.
    pub fn compute(&mut self, name: &str, expression: &Expression) {
        match self.run(expression) {
            Ok(value) => {
                self.computed.insert(Key::String(Arc::new(name.to_owned())), value);
                self.show_computed();
            }
            Err(why) => self.fail(name, &why),
        }
    }

    /// Notes why there is no `variables.NAME`.
    pub fn fail(&mut self, name: &str, why: &str) {
        self.failed.insert(name.to_owned(), why.to_owned());
        self.show_computed();
    }

    fn show_computed(&mut self) {
        let map = Map { map: Arc::new(self.computed.clone()) };
        self.bind("variables", CelValue::Map(map));
    }

    /// What an expression comes to. The error is worded like kube-apiserver's.
    pub fn evaluate(&self, expression: &Expression) -> Result<Outcome, String> {
        self.run(expression).map(|value| match value {
            CelValue::Bool(flag) => Outcome::Boolean(flag),
            CelValue::String(text) => Outcome::Text(text.to_string()),
            CelValue::Null => Outcome::Null,
            _ => Outcome::Other,
        })
    }

    /// Whether a condition holds.
    pub fn holds(&self, condition: &Expression) -> Result<bool, String> {
        match self.evaluate(condition)? {
            Outcome::Boolean(holds) => Ok(holds),
            _ => Err("cel expression must evaluate to a bool".to_owned()),
        }
    }

    fn run(&self, expression: &Expression) -> Result<CelValue, String> {
        let value =
            expression.evaluate_within(&self.budget, Functions::Kubernetes, &self.variables);
        value.map_err(|failure| match failure {
            Failure::OverBudget => "validation failed due to running out of cost budget, no further validation rules will be run".to_owned(),
            Failure::NoSuchOverload => self.blamed(expression, "no such overload".to_owned()),
            Failure::Other(why) => self.blamed(expression, why),
        })
    }

    /// A computed value that is missing is missing because it failed, and that is what to say. The
    /// engine does not always tell what was missing: where a function got it as an argument, it
    /// only says that the function failed.
    fn blamed(&self, expression: &Expression, why: String) -> String {
        let failed = |name: &str| self.failed.get_key_value(name);
        let culprit = match why.strip_prefix("no such key: ") {
            Some(missing) => failed(missing).filter(|_| expression.uses("variables")),
            None => asked_for(expression.tree(), &failed),
        };
        match culprit {
            Some((name, cause)) => {
                format!("composited variable {name:?} fails to evaluate: {cause}")
            }
            None => why,
        }
    }
}

/// The first computed value that an expression asks for and `find` knows.
fn asked_for<F>(tree: &IdedExpr, find: &impl Fn(&str) -> Option<F>) -> Option<F> {
    match &tree.expr {
        Expr::Select(select) => match &select.operand.expr {
            Expr::Ident(name) if name == "variables" => find(&select.field),
            _ => asked_for(&select.operand, find),
        },
        Expr::Call(call) => {
            let target = call.target.as_deref().and_then(|target| asked_for(target, find));
            target.or_else(|| call.args.iter().find_map(|inner| asked_for(inner, find)))
        }
        Expr::List(list) => list.elements.iter().find_map(|inner| asked_for(inner, find)),
        Expr::Map(map) => map.entries.iter().find_map(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => {
                asked_for(&entry.key, find).or_else(|| asked_for(&entry.value, find))
            }
            EntryExpr::StructField(_) => None,
        }),
        Expr::Comprehension(inner) => [&inner.iter_range, &inner.loop_cond, &inner.loop_step]
            .into_iter()
            .find_map(|inner| asked_for(inner, find)),
        _ => None,
    }
}
