//! Whether the fields of a policy are fields of policies.
//!
//! A server would drop a field that it does not know, and the policy would mean something else. The
//! original takes fields in any case, so what differs in nothing else is read as it is meant, and told.

use anyhow::{Result, bail};
use serde_json::{Map, Value};

/// Reads a spec as it is meant. Returns what a server would not take that way.
pub(super) fn meant(kind: &str, spec: &mut Value) -> Result<Vec<String>> {
    let definitions = cleat_api::cluster_definitions();
    let definition = definitions.iter().find(|one| one.spec.names.kind == kind);
    let version = definition.and_then(|one| one.spec.versions.first());
    let schema = serde_json::to_value(version.and_then(|version| version.schema.as_ref()))?;
    let Some(schema) = schema.pointer("/openAPIV3Schema/properties/spec") else {
        bail!("there is no definition of {kind}");
    };
    let mut told = Told::default();
    told.look(spec, schema, "spec");
    if !told.unknown.is_empty() {
        bail!("a {kind} has no such fields: {}", told.unknown.join(", "));
    }
    Ok(told.otherwise)
}

#[derive(Default)]
struct Told {
    otherwise: Vec<String>,
    unknown: Vec<String>,
}

impl Told {
    fn look(&mut self, value: &mut Value, schema: &Value, path: &str) {
        match value {
            Value::Object(fields) => self.fields(fields, schema, path),
            Value::Array(items) => {
                let Some(schema) = schema.get("items") else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    self.look(item, schema, &format!("{path}[{index}]"));
                }
            }
            _ => {}
        }
    }

    fn fields(&mut self, fields: &mut Map<String, Value>, schema: &Value, path: &str) {
        if let Some(each) = schema.get("additionalProperties") {
            for (name, value) in fields {
                self.look(value, each, &format!("{path}.{name}"));
            }
            return;
        }
        let Some(known) = schema.get("properties").and_then(Value::as_object) else { return };
        let open = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
        for (name, mut value) in std::mem::take(fields) {
            let meant = known
                .get_key_value(&name)
                .or_else(|| known.iter().find(|(other, _)| other.eq_ignore_ascii_case(&name)));
            let Some((meant, schema)) = meant else {
                if !open {
                    self.unknown.push(format!("{path}.{name}"));
                }
                fields.insert(name, value);
                continue;
            };
            if *meant != name {
                self.otherwise.push(format!("{path}.{name} is read as {meant}"));
            }
            self.look(&mut value, schema, &format!("{path}.{meant}"));
            fields.insert(meant.clone(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_read_as_they_are_meant_and_strange_ones_are_refused() {
        let mut spec = json!({
            "remediationAction": "inform",
            "namespaceSelector": { "matchlabels": { "Anything": "goes" } },
            "object-templates": [{
                "complianceType": "musthave", "objectDefinition": { "anything": { "goes": 1 } },
            }],
        });
        let told = meant("ConfigurationPolicy", &mut spec).unwrap();
        assert_eq!(told, ["spec.namespaceSelector.matchlabels is read as matchLabels"]);
        assert_eq!(spec["namespaceSelector"], json!({ "matchLabels": { "Anything": "goes" } }));
        let mut spec = json!({ "object-templates": [{ "complianceKind": "musthave" }] });
        let error = meant("ConfigurationPolicy", &mut spec).unwrap_err().to_string();
        assert!(error.contains("spec.object-templates[0].complianceKind"), "{error}");
    }
}
