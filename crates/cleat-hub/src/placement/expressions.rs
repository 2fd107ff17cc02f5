//! CEL expressions of placements, each parsed once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cleat_core::placement::{Cluster, Scores, Unfit};
use cleat_dialect::cel::{Answer, Expression, Failure, Functions, SCORES, from_json};
use serde_json::{Value, json};

/// How many are remembered.
const MOST: usize = 1000;

type Parsed = Result<Arc<Expression>, String>;

#[derive(Default)]
pub(crate) struct Expressions {
    parsed: Mutex<BTreeMap<String, Parsed>>,
}

impl Expressions {
    /// Whether it holds of a cluster of which add-ons say this.
    pub(crate) fn holds(
        &self,
        expression: &str,
        cluster: &Cluster,
        scores: &[&Scores],
    ) -> Result<bool, Unfit> {
        let expression = self.parsed(expression).map_err(Unfit::Invalid)?;
        let mut object = cluster.object.clone();
        if let (false, Some(object)) = (scores.is_empty(), object.as_object_mut()) {
            let all = scores.iter().map(|scores| {
                let each = scores.values.iter();
                let list = each.map(|(name, value)| json!({ "name": name, "value": value }));
                (scores.name.clone(), Value::Array(list.collect()))
            });
            object.insert(SCORES.to_owned(), Value::Object(all.collect()));
        }
        let variables = [("managedCluster", from_json(&object))];
        match expression.evaluate_with(Functions::Placements, &variables) {
            Ok(value) => match Answer::of(&value) {
                Answer::Truth(truth) => Ok(truth),
                other => {
                    let name = other.type_name();
                    Err(Unfit::Invalid(format!("expected bool result, got {name}")))
                }
            },
            Err(Failure::OverBudget) => {
                Err(Unfit::Invalid("CEL evaluation budget exceeded".to_owned()))
            }
            Err(Failure::NoSuchOverload | Failure::Other(_)) => Err(Unfit::Unanswered),
        }
    }

    fn parsed(&self, expression: &str) -> Parsed {
        let mut parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = parsed.get(expression) {
            return found.clone();
        }
        if parsed.len() >= MOST {
            parsed.clear();
        }
        let fresh = Expression::parse(expression).map(Arc::new);
        parsed.insert(expression.to_owned(), fresh.clone());
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_sees_the_cluster_and_its_scores() {
        let object = json!({ "metadata": { "name": "a", "labels": { "env": "dev" } } });
        let cluster = Cluster { name: "a".to_owned(), object, ..Cluster::default() };
        let scores = Scores {
            name: "disk".to_owned(),
            values: [("free".to_owned(), 30)].into(),
            ..Scores::default()
        };
        let expressions = Expressions::default();
        let ask = |text: &str| expressions.holds(text, &cluster, &[&scores]);
        assert_eq!(ask(r#"managedCluster.metadata.labels["env"] == "dev""#), Ok(true));
        assert_eq!(ask(r#"managedCluster.metadata.labels["no"] == "dev""#), Err(Unfit::Unanswered));
        let free = r#"managedCluster.scores("disk").filter(s, s.name == "free")[0].value > "#;
        assert_eq!(ask(&format!("{free} 20")), Ok(true));
        assert_eq!(ask(&format!("{free} 40")), Ok(false));
        assert_eq!(ask(r#"managedCluster.scores("none").size() == 0"#), Ok(true));
        assert!(matches!(ask("managedCluster."), Err(Unfit::Invalid(_))));
        assert!(matches!(ask("1"), Err(Unfit::Invalid(_))));
    }
}
