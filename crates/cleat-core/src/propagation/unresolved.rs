//! Templates that cannot be resolved on the hub. A cluster keeps what it was given last, which says
//! what is wrong now: a name that is not resolved would be that of another object, and whatever bore
//! the old one would be taken away.

use alloc::collections::BTreeSet;
use alloc::string::ToString as _;

use cleat_api::policy::name::HUB_TEMPLATES_ERROR;
use serde_json::{Value, json};

use super::content::has_hub_templates;

/// The object of the template at `index` of `raw`, as a cluster gets it that has `before`. Of each
/// the objects of all templates.
pub fn unresolved(raw: &[Value], index: usize, before: &[Value], why: &str) -> Value {
    let Some(wanted) = raw.get(index) else { return Value::Null };
    let mut object = last(raw, index, wanted, before).unwrap_or(wanted).clone();
    mark(&mut object, why);
    object
}

/// What the cluster has of the template, as far as that can be told.
fn last<'a>(raw: &[Value], index: usize, wanted: &Value, before: &'a [Value]) -> Option<&'a Value> {
    let of_kind = |one: &&Value| field(one, "kind") == field(wanted, "kind");
    let name = name(wanted)?;
    if !has_hub_templates(name) {
        return before.iter().filter(of_kind).find(|one| self::name(one) == Some(name));
    }
    // Only its place tells: not if templates came or went, nor if another template is called so.
    let others: BTreeSet<Option<&str>> = raw.iter().map(|one| self::name(one)?.as_str()).collect();
    let there = before.get(index).filter(|_| before.len() == raw.len()).filter(of_kind)?;
    let called = self::name(there)?;
    (!has_hub_templates(called) && !others.contains(&called.as_str())).then_some(there)
}

fn name(object: &Value) -> Option<&Value> {
    object.pointer("/metadata/name")
}

fn field<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object.get(field)?.as_str()
}

/// Says on the object itself what is wrong with it; its cluster tells users.
fn mark(object: &mut Value, why: &str) {
    let Some(object) = object.as_object_mut() else { return };
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(HUB_TEMPLATES_ERROR.to_string(), why.into());
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn template(name: &str, data: &str) -> Value {
        json!({ "kind": "ConfigurationPolicy", "metadata": { "name": name }, "spec": data })
    }

    /// Name and content of what each template becomes.
    fn kept(raw: &[Value], before: &[Value]) -> Vec<[Value; 2]> {
        let each = (0..raw.len()).map(|index| {
            let object = unresolved(raw, index, before, "why");
            assert_eq!(object["metadata"]["annotations"][HUB_TEMPLATES_ERROR], "why");
            [object["metadata"]["name"].clone(), object["spec"].clone()]
        });
        each.collect()
    }

    #[test]
    fn a_name_that_cannot_be_resolved_stays_what_it_was() {
        let raw = [template("web-{{hub x hub}}", "{{hub y hub}}")];
        let before = [template("web-c1", "1")];
        assert_eq!(kept(&raw, &before), [["web-c1", "1"]]);
        // A cluster that has nothing yet gets what there is.
        assert_eq!(kept(&raw, &[]), [["web-{{hub x hub}}", "{{hub y hub}}"]]);
    }

    #[test]
    fn a_fixed_name_is_found_wherever_it_is() {
        let raw = [template("b", "{{hub y hub}}"), template("a", "{{hub z hub}}")];
        let before = [template("a", "1"), template("b", "2"), template("c", "3")];
        assert_eq!(kept(&raw, &before), [["b", "2"], ["a", "1"]]);
    }

    #[test]
    fn a_place_that_may_be_anothers_is_not_taken() {
        let raw = [template("{{hub x hub}}", "x"), template("a", "y")];
        // Templates came or went, or what is there is what another one is.
        for before in
            [Vec::from([template("c", "1")]), [template("a", "1"), template("c", "2")].into()]
        {
            assert_eq!(kept(&raw, &before)[0], ["{{hub x hub}}", "x"]);
        }
        let mut other = template("c", "1");
        other["kind"] = "OperatorPolicy".into();
        assert_eq!(kept(&raw[..1], &[other])[0], ["{{hub x hub}}", "x"]);
    }
}
