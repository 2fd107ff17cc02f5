//! The templates of a policy: what they say for each object, with lookups answered from watches.
//!
//! The engine is `cleat-template`; here its questions are answered and its answers handed on. A
//! question that cannot be answered fails the template, and a template that failed prunes nothing.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cleat_api::configurationpolicy::{DISABLE_TEMPLATES, ENCRYPTION_IV, ObjectTemplate, reason};
use cleat_api::policy::name::ENCRYPTION_KEY_SECRET;
use cleat_core::policy::compare::diff::CENSORED;
use cleat_core::policy::observed::{
    Definition, Kind, KindName, ListOf, Observed, Pick, Policy, Resolution, Seen, Served, Template,
    Templates,
};
use cleat_template::{
    Context as Dot, Delimiters, Encryption, Keys, LookupError, Lookups, Query, RenderOptions,
    ResolveOptions, Scope, Source, TemplateError, has_template, read_yaml, render, resolve,
};
use jiff::Timestamp;
use serde_json::Value;

use super::Context;
use super::observe::Looking;

/// More lookups than these, no template needs.
const MOST_LOOKUPS: usize = 1000;

const NO_HUB: &str = "the governance-standalone-hub-templating addon must be enabled to resolve hub templates on the managed cluster";

/// What lookups found so far, and how encrypted values are read.
#[derive(Default)]
pub(super) struct Answers {
    objects: BTreeMap<Query, Result<Value, LookupError>>,
    lists: BTreeMap<Query, Result<Vec<Value>, LookupError>>,
    encryption: Encryption,
}

impl Lookups for Answers {
    fn get(&self, query: &Query) -> Result<Value, LookupError> {
        self.objects.get(query).cloned().unwrap_or(Err(LookupError::NotYetRead))
    }

    fn list(&self, query: &Query) -> Result<Vec<Value>, LookupError> {
        self.lists.get(query).cloned().unwrap_or(Err(LookupError::NotYetRead))
    }

    /// Only asked where lookups are restricted to a namespace, which they are not here.
    fn scope(&self, _: &str, _: &str) -> Result<Scope, LookupError> {
        Ok(Scope::Namespaced)
    }
}

/// A custom message of a policy.
pub fn say(template: &str, data: &Value) -> Result<String, String> {
    let options = RenderOptions::new(Timestamp::now());
    render(template, data, &options).map_err(|error| error.to_string())
}

/// Object templates, with what has to be resolved in them marked as such. `plain`: nothing has.
pub fn prepared(all: Vec<ObjectTemplate>, plain: bool, encrypted: bool) -> Vec<Template> {
    let has = |text: &str| has_template(text, &Delimiters::default(), encrypted);
    let one = |spec: ObjectTemplate| {
        let definition = &spec.object_definition;
        if plain || !has(&definition.to_string()) {
            return Template { spec, definition: Definition::Plain };
        }
        let field =
            |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).is_some_and(has);
        let definition = Definition::Templated {
            name: field("/metadata/name"),
            namespace: field("/metadata/namespace"),
            resolved: BTreeMap::new(),
        };
        Template { spec, definition }
    };
    all.into_iter().map(one).collect()
}

/// What stands in `object-templates-raw` without templates. The error is for users.
pub fn unresolved(raw: &str) -> Result<Value, String> {
    read_yaml(raw).map_err(|error| format!("error converting YAML to JSON: {error}"))
}

/// The object templates that `object-templates-raw` gave. `sensitive`: secrets went into them, and
/// nobody can tell into which, so how any of them differs is nobody's business. The error is for users.
pub fn parsed_raw(value: Value, sensitive: bool) -> Result<Vec<ObjectTemplate>, String> {
    let mut all: Vec<ObjectTemplate> = match value {
        Value::Null => Vec::new(),
        value => serde_json::from_value(value).map_err(|error| error.to_string())?,
    };
    for template in all.iter_mut().filter(|_| sensitive) {
        template.record_diff.get_or_insert_with(|| CENSORED.to_owned());
    }
    Ok(all)
}

/// Whether there is an object that templates of a definition may look at: one that a selector found, or
/// one of that name, unless they are yet to say in which namespace it is.
pub fn sees_object(template: &Template, pick: &Pick) -> bool {
    let elsewhere = matches!(template.definition, Definition::Templated { namespace: true, .. });
    !pick.name.is_empty() && (template.spec.object_selector.is_some() || !elsewhere)
}

/// What templates of a definition see as their dot: only what makes sense for the object.
pub fn dot(pick: &Pick, namespaced: bool, live: &Value) -> Dot {
    let mut dot = Dot::empty();
    if !pick.name.is_empty() {
        dot = dot.object("Object", live).text("ObjectName", &pick.name);
    }
    if namespaced { dot.text("ObjectNamespace", &pick.namespace) } else { dot }
}

/// What a resolved definition means for an object.
pub fn meant(resolved: Result<cleat_template::Resolution, TemplateError>) -> Resolution {
    match resolved {
        Ok(resolution) if resolution.skip => Resolution::Skipped,
        Ok(resolution) => {
            Resolution::Object { object: resolution.value, read_secrets: resolution.sensitive }
        }
        Err(error) => {
            Resolution::Failed { message: error.condition(), passing: error.is_transient() }
        }
    }
}

enum Failure {
    /// Something was not read yet.
    Unread,
    Said(&'static str, String),
    /// The same, and trying again may help.
    Passing(&'static str, String),
}

impl Context {
    /// The object templates. `None`: something was not read yet.
    pub(super) async fn templates(
        &self,
        policy: &Policy,
        annotations: &BTreeMap<String, String>,
        look: &mut Looking<'_>,
    ) -> Option<Templates> {
        match self.object_templates(policy, annotations, look).await {
            Ok(all) => Some(Templates::Known(all)),
            Err(Failure::Unread) => None,
            Err(Failure::Said(reason, message)) => {
                Some(Templates::Failed { reason, message, passing: false })
            }
            Err(Failure::Passing(reason, message)) => {
                Some(Templates::Failed { reason, message, passing: true })
            }
        }
    }

    async fn object_templates(
        &self,
        policy: &Policy,
        annotations: &BTreeMap<String, String>,
        look: &mut Looking<'_>,
    ) -> Result<Vec<Template>, Failure> {
        let disabled = annotations.get(DISABLE_TEMPLATES).is_some_and(|value| value == "true");
        let text = serde_json::to_string(&policy.spec).unwrap_or_default();
        if !disabled && text.contains(&Delimiters::hub().left) {
            return Err(Failure::Said(reason::HUB_TEMPLATE_ERROR, NO_HUB.to_owned()));
        }
        let vector = annotations.get(ENCRYPTION_IV).filter(|vector| !vector.is_empty());
        if let (false, Some(vector)) = (disabled, vector) {
            look.answers.encryption = self.encryption(policy, vector, look).await?;
        }
        let encrypted = look.answers.encryption != Encryption::Off;
        let templates = match &policy.spec.object_templates_raw {
            Some(raw) => self.raw(raw, disabled, encrypted, look).await?,
            None => policy.spec.object_templates.clone().unwrap_or_default(),
        };
        // What stood in the raw text was resolved with it.
        let plain = disabled || policy.spec.object_templates_raw.is_some();
        Ok(prepared(templates, plain, encrypted))
    }

    async fn raw(
        &self,
        raw: &str,
        disabled: bool,
        encrypted: bool,
        look: &mut Looking<'_>,
    ) -> Result<Vec<ObjectTemplate>, Failure> {
        let mut sensitive = false;
        let value = if disabled || !has_template(raw, &Delimiters::default(), encrypted) {
            unresolved(raw)
        } else {
            let options = self.options(look);
            let resolved = self.resolved(Source::Yaml(raw), &Dot::empty(), &options, look).await;
            match resolved.ok_or(Failure::Unread)? {
                Ok(resolution) => {
                    sensitive = resolution.sensitive;
                    Ok(resolution.value)
                }
                Err(TemplateError::Result(message)) => Err(message),
                Err(error) if error.is_transient() => {
                    return Err(Failure::Passing(reason::TEMPLATE_ERROR, error.condition()));
                }
                Err(error) => {
                    return Err(Failure::Said(reason::TEMPLATE_ERROR, error.condition()));
                }
            }
        };
        value.and_then(|value| parsed_raw(value, sensitive)).map_err(|error| {
            let message = format!("Error parsing object-templates-raw YAML: {error}");
            Failure::Said(reason::TEMPLATE_ERROR, message)
        })
    }

    /// What the definition of a template is for one object. `None`: something was not read yet.
    pub(super) async fn resolution(
        &self,
        template: &Template,
        pick: &Pick,
        seen: &Observed,
        look: &mut Looking<'_>,
    ) -> Option<Resolution> {
        let definition = &template.spec.object_definition;
        let served = kind_of(definition).and_then(|name| match seen.cluster.kinds.get(&name) {
            Some(Kind::Served(served)) => Some(served.clone()),
            _ => None,
        });
        let seen = sees_object(template, pick) && speaks_of_object(&definition.to_string());
        let live = match served.as_ref().filter(|_| seen) {
            Some(served) => match self.live(served, pick, look).await? {
                Ok(live) => live,
                Err(message) => return Some(Resolution::Failed { message, passing: true }),
            },
            None => Value::Null,
        };
        let dot = dot(pick, served.is_some_and(|served| served.namespaced), &live);
        let mut options = ResolveOptions { skip_object: true, ..self.options(look) };
        let Pick { namespace, name } = pick;
        options.seed = Some(format!("{}/{namespace}/{name}", look.seed));
        let resolved = self.resolved(Source::Object(definition), &dot, &options, look).await?;
        Some(meant(resolved))
    }

    /// The object itself, as templates see it.
    async fn live(
        &self,
        served: &Served,
        pick: &Pick,
        look: &mut Looking<'_>,
    ) -> Option<Result<Value, String>> {
        let target = served.target(&pick.namespace, &pick.name);
        look.needs.targets.insert(target.clone());
        self.care_more(look);
        Some(match self.sight(&target, look.fresh).await? {
            Seen::Present(present) => Ok((*present.object).clone()),
            Seen::Absent => Ok(Value::Null),
            Seen::Unknown(why) => Err(why),
            Seen::Unwatchable => Err("watch not supported on this resource".to_owned()),
        })
    }

    fn options(&self, look: &Looking<'_>) -> ResolveOptions {
        ResolveOptions {
            encryption: look.answers.encryption.clone(),
            denied: self.config.denied_functions.clone(),
            seed: Some(look.seed.clone()),
            ..ResolveOptions::managed(Timestamp::now())
        }
    }

    /// Resolves, answering whatever is asked. `None`: something was not read yet.
    async fn resolved(
        &self,
        source: Source<'_>,
        dot: &Dot,
        options: &ResolveOptions,
        look: &mut Looking<'_>,
    ) -> Option<Result<cleat_template::Resolution, TemplateError>> {
        for _ in 0..MOST_LOOKUPS {
            let result = resolve(source, dot, &look.answers, options);
            let unread = result.as_ref().err().and_then(TemplateError::unread).cloned();
            match unread {
                None => return Some(result),
                Some(query) => self.answer(query, look).await?,
            }
        }
        None
    }

    /// Answers one question. `None`: the answer was not read yet.
    async fn answer(&self, query: Query, look: &mut Looking<'_>) -> Option<()> {
        let served = match self.kinds.map(&query.api_version, &query.kind).await {
            cleat_runtime::kinds::Mapping::Mapped(mapped) => Ok(Served {
                group: mapped.group,
                version: mapped.version,
                resource: mapped.resource,
                namespaced: mapped.namespaced,
            }),
            cleat_runtime::kinds::Mapping::NoSuchKind => {
                look.needs.lacks_a_kind = true;
                Err(LookupError::MissingApi)
            }
            cleat_runtime::kinds::Mapping::Unknown(message) => {
                look.needs.lacks_a_kind = true;
                Err(LookupError::Failed(message))
            }
        };
        let namespace = match &served {
            Ok(served) if served.namespaced => query.namespace.clone(),
            _ => String::new(),
        };
        if query.is_list() {
            let found = match served {
                Err(error) => Err(error),
                Ok(kind) => {
                    let of = ListOf { kind, namespace, labels: query.selector.clone() };
                    look.needs.lists.insert(of.clone());
                    self.care_more(look);
                    let all = self.list(&of, look.fresh).await?.map_err(LookupError::Failed);
                    all.map(|all| all.iter().map(|object| (**object).clone()).collect())
                }
            };
            look.answers.lists.insert(query, found);
            return Some(());
        }
        let found = match served {
            Err(error) => Err(error),
            Ok(served) if served.namespaced && namespace.is_empty() => {
                let kind = &query.kind;
                Err(LookupError::Refused(format!("the namespace of the {kind} must be specified")))
            }
            Ok(served) => self.found(&served, &namespace, &query.name, look).await?,
        };
        look.answers.objects.insert(query, found);
        Some(())
    }

    async fn found(
        &self,
        served: &Served,
        namespace: &str,
        name: &str,
        look: &mut Looking<'_>,
    ) -> Option<Result<Value, LookupError>> {
        let target = served.target(namespace, name);
        look.needs.targets.insert(target.clone());
        self.care_more(look);
        Some(match self.sight(&target, look.fresh).await? {
            Seen::Present(present) => Ok((*present.object).clone()),
            Seen::Absent => {
                let kind = match served.group.as_str() {
                    "" => served.resource.clone(),
                    group => format!("{}.{group}", served.resource),
                };
                Err(LookupError::NotFound(format!("{kind} \"{name}\" not found")))
            }
            Seen::Unknown(why) => Err(LookupError::Failed(why)),
            Seen::Unwatchable => {
                Err(LookupError::Failed("watch not supported on this resource".to_owned()))
            }
        })
    }

    /// How encrypted values of this policy are read.
    async fn encryption(
        &self,
        policy: &Policy,
        vector: &str,
        look: &mut Looking<'_>,
    ) -> Result<Encryption, Failure> {
        let said = |message: String| Failure::Said(reason::ENCRYPTION_ERROR, message);
        let secrets = Served {
            group: String::new(),
            version: "v1".to_owned(),
            resource: "secrets".to_owned(),
            namespaced: true,
        };
        let namespace = &policy.namespace;
        let found = self.found(&secrets, namespace, ENCRYPTION_KEY_SECRET, look).await;
        let secret = found.ok_or(Failure::Unread)?.map_err(|error| {
            let message =
                format!("failed to get the Secret {namespace}/{ENCRYPTION_KEY_SECRET}: {error}");
            match error {
                LookupError::Failed(_) => Failure::Passing(reason::ENCRYPTION_ERROR, message),
                _ => said(message),
            }
        })?;
        let entry = |key: &str| {
            let text = secret.get("data").and_then(|data| data.get(key)).and_then(Value::as_str);
            text.and_then(|text| STANDARD.decode(text).ok()).filter(|bytes| !bytes.is_empty())
        };
        let iv = STANDARD.decode(vector).ok().filter(|iv| iv.len() == 16).ok_or_else(|| {
            said(format!(
                "The \"{ENCRYPTION_IV}\" annotation value is not a valid initialization vector"
            ))
        })?;
        let keys =
            Keys { key: entry("key").unwrap_or_default(), previous: entry("previousKey"), iv };
        let good = |key: &Vec<u8>| matches!(key.len(), 16 | 24 | 32);
        if !good(&keys.key) || keys.previous.as_ref().is_some_and(|key| !good(key)) {
            return Err(said(format!(
                "The \"{ENCRYPTION_KEY_SECRET}\" Secret contains an invalid AES key"
            )));
        }
        Ok(Encryption::Decrypt(keys))
    }
}

pub(super) fn kind_of(definition: &Value) -> Option<KindName> {
    let field = |name: &str| definition.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(KindName { api_version: field("apiVersion")?, kind: field("kind")? })
}

/// Whether a template may look at the object itself, and not only at what it is called.
fn speaks_of_object(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(".Object") {
        rest = rest.get(at + ".Object".len()..).unwrap_or_default();
        if !rest.starts_with("Name") {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_object_itself_has_to_be_read() {
        for (text, speaks) in [
            ("{{ .ObjectName }}-{{ .ObjectNamespace }}", false),
            ("{{ .Object.data.a }}", true),
            ("{{ .ObjectName }} {{ .Object }}", true),
            ("", false),
        ] {
            assert_eq!(speaks_of_object(text), speaks, "{text}");
        }
    }
}
