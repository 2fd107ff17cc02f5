//! From an object template to the objects it is about.
//!
//! Templates in the definition were resolved elsewhere; what comes in is what they said for each
//! object. A template whose objects cannot be told says why, and is then no reason to prune.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{NamespaceSelector, reason};
use serde_json::{Map, Value};

use super::finding::{Finding, State};
use super::observed::{
    Definition, Kind, ListOf, Pick, Resolution, Served, Template, TerminatingNamespaces,
};
use super::reader::{Gap, Reader};
use super::select;
use crate::id::Target;

/// The policy's part in finding the objects of its templates.
pub(crate) struct Scope<'a> {
    pub(crate) policy_name: &'a str,
    pub(crate) selector: &'a NamespaceSelector,
    pub(crate) terminating: TerminatingNamespaces,
}

/// What a template is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Desired {
    /// Known for certain, even if there are none.
    Known {
        kind: Served,
        objects: Vec<Wanted>,
        /// The namespaces in which it chooses by labels, also where it finds nothing. An empty one:
        /// in all, or of a kind that has none.
        selects_in: Vec<String>,
        /// What to say if there are none.
        otherwise: Finding,
    },
    /// Not known; the finding says why.
    Undetermined {
        finding: Finding,
        /// Trying again may help, and no watch tells when.
        passing: bool,
    },
    /// Something has to be read first.
    Unread,
}

/// One object a template is about, or all of a kind in a namespace if the name is empty.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) target: Target,
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// As it must be, with its name and namespace.
    pub(crate) definition: Value,
    pub(crate) read_secrets: bool,
    /// Chosen by the objectSelector, not named by the template.
    pub(crate) selected: bool,
}

pub(crate) fn desired(
    scope: &Scope<'_>,
    index: usize,
    template: &Template,
    reader: &mut Reader<'_>,
) -> Desired {
    match find(scope, index, template, reader) {
        Ok(known) => known,
        Err(Stop::Unread) => Desired::Unread,
        Err(Stop::Problem { reason, message, passing }) => {
            let finding = Finding::new(State::NonCompliant, reason, message);
            Desired::Undetermined { finding, passing }
        }
    }
}

enum Stop {
    Unread,
    Problem { reason: &'static str, message: String, passing: bool },
}

/// What stands in the way of several objects. All are looked at even if one is missing, so that one
/// round of reading is enough for any number of them; only then the first problem counts.
#[derive(Default)]
struct Stops {
    unread: bool,
    problem: Option<Stop>,
}

impl Stops {
    fn note(&mut self, stop: Stop) {
        match stop {
            Stop::Unread => self.unread = true,
            problem @ Stop::Problem { .. } => {
                self.problem.get_or_insert(problem);
            }
        }
    }

    fn check(self) -> Result<(), Stop> {
        if self.unread {
            return Err(Stop::Unread);
        }
        self.problem.map_or(Ok(()), Err)
    }
}

fn problem<T>(reason: &'static str, message: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Problem { reason, message: message.into(), passing: false })
}

fn find(
    scope: &Scope<'_>,
    index: usize,
    template: &Template,
    reader: &mut Reader<'_>,
) -> Result<Desired, Stop> {
    let definition = &template.spec.object_definition;
    let (api_version, kind) = (field(definition, "apiVersion"), field(definition, "kind"));
    if api_version.is_empty() || kind.is_empty() {
        let policy = scope.policy_name;
        return problem(
            reason::DECODE_ERROR,
            format!(
                "The kind and apiVersion fields are required on the object template at index {index} in policy {policy}"
            ),
        );
    }
    let served = match reader.kind(api_version, kind) {
        None => return Err(Stop::Unread),
        Some(Kind::Served(served)) => served.clone(),
        Some(Kind::Absent) if all_skipped(template) => {
            return Ok(nothing(Served::unknown(api_version, kind), skipped(kind)));
        }
        Some(Kind::Absent) => {
            return problem(
                reason::KIND_ERROR,
                format!(
                    "couldn't find mapping resource with kind {kind} in API version {api_version}, please check if you have CRD deployed"
                ),
            );
        }
        Some(Kind::Unknown(why)) => return problem(reason::KIND_ERROR, why.clone()),
    };
    let namespaces = namespaces(scope, template, &served, kind, reader)?;
    let picks = picks(index, template, &served, namespaces.clone(), reader)?;
    let by_selector = picks.selected;
    let (mut objects, mut skips) = (Vec::new(), 0_usize);
    let mut stops = Stops::default();
    for pick in picks.all {
        let found = resolved(index, template, &pick, reader).and_then(|found| match found {
            None => Ok(None),
            Some((object, read_secrets)) => {
                let object = placed(object, &served, kind, &pick, by_selector)?;
                Ok(Some((object, read_secrets)))
            }
        });
        match found {
            Err(stop) => stops.note(stop),
            Ok(None) => skips += 1,
            Ok(Some((object, read_secrets))) => {
                let (namespace, name) = (metadata(&object, "namespace"), metadata(&object, "name"));
                objects.push(Wanted {
                    target: served.target(namespace, name),
                    api_version: api_version.to_owned(),
                    kind: kind.to_owned(),
                    read_secrets,
                    selected: by_selector,
                    definition: object,
                });
            }
        }
    }
    stops.check()?;
    let otherwise = match (skips > 0, by_selector) {
        (true, _) => skipped(kind),
        (false, true) => matched(kind, "policy objectSelector"),
        (false, false) => matched(kind, "objectDefinition metadata"),
    };
    let selects_in = if by_selector { namespaces } else { Vec::new() };
    Ok(Desired::Known { kind: served, objects, selects_in, otherwise })
}

fn nothing(kind: Served, otherwise: Finding) -> Desired {
    Desired::Known { kind, objects: Vec::new(), selects_in: Vec::new(), otherwise }
}

fn skipped(kind: &str) -> Finding {
    let message =
        format!("All objects of kind {kind} were skipped by the `skipObject` template function");
    Finding::new(State::Compliant, "", message)
}

fn matched(kind: &str, by: &str) -> Finding {
    let message = format!("No objects of kind {kind} were matched from the {by}");
    Finding::new(State::Compliant, "", message)
}

/// Whether the template said to skip whatever it was asked about, without a kind to ask for.
fn all_skipped(template: &Template) -> bool {
    match &template.definition {
        Definition::Plain => false,
        Definition::Templated { resolved, .. } => {
            !resolved.is_empty() && resolved.values().all(|one| *one == Resolution::Skipped)
        }
    }
}

fn namespaces(
    scope: &Scope<'_>,
    template: &Template,
    served: &Served,
    kind: &str,
    reader: &mut Reader<'_>,
) -> Result<Vec<String>, Stop> {
    if !served.namespaced {
        return Ok(vec![String::new()]);
    }
    let definition = &template.spec.object_definition;
    let own = metadata(definition, "namespace");
    let templated = matches!(template.definition, Definition::Templated { namespace: true, .. });
    if !own.is_empty() && !templated {
        return Ok(vec![own.to_owned()]);
    }
    if templated && scope.selector.is_empty() {
        return Ok(vec![String::new()]);
    }
    let chosen = if scope.selector.is_empty() {
        Vec::new()
    } else {
        let all = match reader.namespaces() {
            Ok(all) => all,
            Err(Gap::Unread) => return Err(Stop::Unread),
            Err(Gap::Failed(why)) => {
                return problem(
                    reason::NAMESPACE_SELECTOR_ERROR,
                    format!("Error filtering namespaces with provided namespaceSelector: {why}"),
                );
            }
        };
        match select::namespaces(scope.selector, scope.terminating, all) {
            Ok(chosen) => chosen,
            Err(why) => {
                return problem(
                    reason::NAMESPACE_SELECTOR_ERROR,
                    format!("Error filtering namespaces with provided namespaceSelector: {why}"),
                );
            }
        }
    };
    if chosen.is_empty() {
        // Choosing none is taken for a mistake rather than for a wish: nothing is pruned over it.
        let name = spaced(metadata(definition, "name"));
        return problem(
            reason::MISSING_NAMESPACE,
            format!(
                "namespaced object{name} of kind {kind} has no namespace specified from the policy namespaceSelector nor the object metadata"
            ),
        );
    }
    Ok(chosen)
}

struct Picks {
    all: Vec<Pick>,
    selected: bool,
}

fn picks(
    index: usize,
    template: &Template,
    served: &Served,
    namespaces: Vec<String>,
    reader: &mut Reader<'_>,
) -> Result<Picks, Stop> {
    let own = metadata(&template.spec.object_definition, "name");
    let templated = matches!(template.definition, Definition::Templated { name: true, .. });
    let selector = template.spec.object_selector.as_ref();
    let Some(selector) = selector.filter(|_| own.is_empty() || templated) else {
        let name = if templated { "" } else { own };
        let pick = |namespace| Pick { namespace, name: name.to_owned() };
        return Ok(Picks { all: namespaces.into_iter().map(pick).collect(), selected: false });
    };
    let labels = match select::text(selector) {
        Ok(labels) => labels,
        Err(why) => {
            return problem(
                reason::OBJECT_SELECTOR_ERROR,
                format!(
                    "Error parsing provided objectSelector in the object-template at index [{index}]: {why}"
                ),
            );
        }
    };
    let (mut all, mut stops) = (Vec::new(), Stops::default());
    for namespace in namespaces {
        let of = ListOf { kind: served.clone(), namespace, labels: labels.clone() };
        match reader.list(of) {
            Ok(objects) => all.extend(objects.iter().map(|object| Pick {
                namespace: metadata(object, "namespace").to_owned(),
                name: metadata(object, "name").to_owned(),
            })),
            Err(Gap::Unread) => stops.note(Stop::Unread),
            Err(Gap::Failed(why)) => stops.note(Stop::Problem {
                reason: reason::OBJECT_SELECTOR_ERROR,
                message: format!(
                    "Error listing resources with provided objectSelector in the object-template at index [{index}]: {why}"
                ),
                passing: false,
            }),
        }
    }
    stops.check()?;
    all.sort();
    Ok(Picks { all, selected: true })
}

/// What the definition says for one object; `None` if it says to skip it.
fn resolved(
    index: usize,
    template: &Template,
    pick: &Pick,
    reader: &mut Reader<'_>,
) -> Result<Option<(Value, bool)>, Stop> {
    let found = match &template.definition {
        Definition::Plain => return Ok(Some((template.spec.object_definition.clone(), false))),
        Definition::Templated { resolved, .. } => {
            reader.resolution(index, pick.clone(), resolved.get(pick))
        }
    };
    match found {
        None => Err(Stop::Unread),
        Some(Resolution::Skipped) => Ok(None),
        Some(Resolution::Failed { message, passing }) => Err(Stop::Problem {
            reason: reason::TEMPLATE_ERROR,
            message: message.clone(),
            passing: *passing,
        }),
        Some(Resolution::Object { object, read_secrets }) => {
            Ok(Some((object.clone(), *read_secrets)))
        }
    }
}

/// The object where it belongs.
fn placed(
    mut object: Value,
    served: &Served,
    kind: &str,
    pick: &Pick,
    selected: bool,
) -> Result<Value, Stop> {
    let (namespace, name) =
        (metadata(&object, "namespace").to_owned(), metadata(&object, "name").to_owned());
    let picked = |own: &str, picked: &str| !picked.is_empty() && !own.is_empty() && own != picked;
    if served.namespaced && picked(&namespace, &pick.namespace) {
        return problem(
            reason::TEMPLATE_ERROR,
            "The object definition's namespace must match the result from the namespace selector after template resolution",
        );
    }
    if selected && picked(&name, &pick.name) {
        return problem(
            reason::TEMPLATE_ERROR,
            "The object definition's name must match the result from the object selector after template resolution",
        );
    }
    let namespace = match served.namespaced {
        true if namespace.is_empty() => pick.namespace.clone(),
        true => namespace,
        false => String::new(),
    };
    if served.namespaced && namespace.is_empty() {
        let name = spaced(&name);
        return problem(
            reason::TEMPLATE_ERROR,
            format!(
                "namespaced object{name} of kind {kind} has no namespace specified after template resolution"
            ),
        );
    }
    let name = if name.is_empty() { pick.name.clone() } else { name };
    let Some(fields) = object.as_object_mut() else {
        return problem(reason::DECODE_ERROR, "The object definition is not an object");
    };
    let own = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if !own.is_object() {
        *own = Value::Object(Map::new());
    }
    if let Some(own) = own.as_object_mut() {
        for (field, value) in [("namespace", namespace), ("name", name)] {
            if value.is_empty() {
                own.remove(field);
            } else {
                own.insert(field.to_owned(), Value::String(value));
            }
        }
    }
    Ok(object)
}

fn spaced(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" {name}") }
}

pub(crate) fn field<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn metadata<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get("metadata").map_or("", |metadata| field(metadata, name))
}

impl Served {
    /// A stand-in for a kind nobody serves, to speak of it.
    pub(crate) fn unknown(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: kind.to_lowercase(),
            namespaced: false,
        }
    }
}
