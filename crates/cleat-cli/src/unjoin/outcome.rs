//! What came of a leave, for people and for programs.

use cleat_api::leftoverrecord::LeftoverRecord;
use cleat_core::leave::carried::Carried;
use cleat_core::number::number;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use super::progress::list;

/// How far it got when the command ended.
pub(super) enum Outcome {
    /// It has begun, and nobody waits for it.
    Begun,
    Left {
        /// Those of this leave.
        records: Vec<LeftoverRecord>,
        /// Why its namespace stays on the hub, if it does.
        namespace_kept: Option<String>,
    },
    /// Something stands in the way.
    Stuck {
        /// What the hub says of that.
        said: Option<Condition>,
        carried: Vec<Carried>,
    },
    /// The hub did not answer; how far it got nobody knows.
    Unheard(String),
}

impl Outcome {
    pub(super) fn text(&self, name: &str) -> String {
        let (records, namespace_kept) = match self {
            Self::Begun => {
                return format!("{name} is leaving; `cleat unjoin {name}` shows how that goes");
            }
            Self::Stuck { said, carried } => return list(name, said.as_ref(), carried),
            Self::Unheard(why) => return why.clone(),
            Self::Left { records, namespace_kept } => (records, namespace_kept),
        };
        let left: usize = records.iter().map(|record| record.spec.objects.len()).sum();
        let untold = records.iter().any(|record| !record.spec.untold.is_empty());
        let mut text = match records.first().map(|record| record.spec.reason) {
            Some(reason) if left > 0 => format!(
                "{name} has left; {} there ({}): `cleat leftovers show {name}`",
                number(left, "object stays", "objects stay"),
                reason.as_str()
            ),
            Some(_) if untold => format!(
                "{name} has left; nothing of the fleet is known to stay there: `cleat leftovers show \
                 {name}`"
            ),
            _ => format!("{name} has left; nothing of the fleet stays there"),
        };
        if let Some(why) = namespace_kept {
            text.push_str(&format!("\nthe namespace {name} stays on the hub: {why}"));
        }
        text
    }

    pub(super) fn value(&self, name: &str) -> Value {
        let (records, namespace_kept) = match self {
            Self::Begun => return json!({ "cluster": name, "state": "leaving" }),
            Self::Stuck { said, carried } => return stuck(name, said.as_ref(), carried),
            Self::Unheard(why) => {
                return json!({ "cluster": name, "state": "unknown", "message": why });
            }
            Self::Left { records, namespace_kept } => (records, namespace_kept),
        };
        let record = |one: &LeftoverRecord| {
            let untold: i64 = one.spec.untold.iter().map(|one| one.count).sum();
            json!({
                "name": one.name_any(), "reason": one.spec.reason.as_str(),
                "objects": one.spec.objects.len(), "untold": untold,
            })
        };
        let records: Vec<Value> = records.iter().map(record).collect();
        let mut value = Map::new();
        value.insert("cluster".to_owned(), json!(name));
        value.insert("state".to_owned(), json!("left"));
        value.insert("records".to_owned(), json!(records));
        if let Some(why) = namespace_kept {
            value.insert("namespaceKept".to_owned(), json!(why));
        }
        value.into()
    }
}

/// What stands in the way, for programs.
fn stuck(name: &str, said: Option<&Condition>, carried: &[Carried]) -> Value {
    let blocked = carried.iter().flat_map(|one| {
        one.blocked.iter().map(|block| {
            json!({
                "kind": one.kind.as_str(), "name": one.name,
                "object": block.object, "why": block.why,
            })
        })
    });
    json!({
        "cluster": name, "state": "halted",
        "reason": said.map(|said| said.reason.as_str()).unwrap_or_default(),
        "message": said.map(|said| said.message.as_str()).unwrap_or_default(),
        "blocked": blocked.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use cleat_api::leftoverrecord::{LeftObject, Reason};
    use cleat_api::manifestwork::BlockedObject;
    use cleat_core::leave::carried::Kind;

    use super::*;

    #[test]
    fn programs_are_told_what_stays_and_where_it_is_written_down() {
        let mut record = LeftoverRecord::new("c1.abc.0", Default::default());
        record.spec.reason = Reason::Kept;
        record.spec.objects = vec![LeftObject::default(); 2];
        let kept = Outcome::Left { records: vec![record], namespace_kept: Some("so".to_owned()) };
        let expected = json!({
            "cluster": "c1", "state": "left", "namespaceKept": "so",
            "records": [{ "name": "c1.abc.0", "reason": "Kept", "objects": 2, "untold": 0 }],
        });
        assert_eq!(kept.value("c1"), expected);
        assert_eq!(
            kept.text("c1"),
            "c1 has left; 2 objects stay there (Kept): `cleat leftovers show c1`\nthe namespace c1 \
             stays on the hub: so"
        );
        let clean = Outcome::Left { records: Vec::new(), namespace_kept: None };
        let expected = json!({ "cluster": "c1", "state": "left", "records": [] });
        assert_eq!(clean.value("c1"), expected);
        assert_eq!(clean.text("c1"), "c1 has left; nothing of the fleet stays there");
    }

    #[test]
    fn programs_are_told_what_stands_in_the_way() {
        let mut work = Carried::bare(Kind::Work, &Default::default());
        work.name = "web".to_owned();
        work.blocked = vec![BlockedObject {
            object: "configmaps shop/keep".to_owned(),
            why: "denied".to_owned(),
            refused: true,
            since: None,
        }];
        let told = Outcome::Stuck { said: None, carried: vec![work] }.value("c1");
        assert_eq!(told["state"], "halted");
        let expected = json!({
            "kind": "work", "name": "web", "object": "configmaps shop/keep", "why": "denied",
        });
        assert_eq!(told["blocked"], json!([expected]));
    }
}
