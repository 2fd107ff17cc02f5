//! Policies that stay on a cluster whose record is worked off, and what they hold: another hub's, one
//! that was made anew or has another name now, or one that somebody wrote there.
//!
//! What policies made bears no mark of ours, so whoever is about it now keeps it, having made it or
//! only found it.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{ObjectResource, RelatedObject};
use cleat_api::leftoverrecord::{LeftObject, Part};
use serde_json::Value;

use super::{Fate, Look, Observed, id};
use crate::id::Id;

/// The policies on the cluster, on record or not.
#[derive(Clone, Debug, PartialEq)]
pub enum Holders {
    Listed(Vec<Holder>),
    /// Why they cannot be told.
    Unknown(String),
}

impl Default for Holders {
    fn default() -> Self {
        Self::Unknown("they were not looked at".to_string())
    }
}

/// A policy on the cluster, and what it says that it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    pub id: Id,
    pub uid: String,
    pub objects: Vec<RelatedObject>,
}

impl Holder {
    /// Says why if it cannot be read what the policy is about.
    pub fn read(id: Id, uid: String, object: &Value) -> Result<Self, String> {
        let listed = object.pointer("/status/relatedObjects").cloned().unwrap_or_default();
        match serde_json::from_value::<Option<Vec<RelatedObject>>>(listed) {
            Ok(objects) => Ok(Self { id, uid, objects: objects.unwrap_or_default() }),
            Err(error) => Err(format!("what {id} is about cannot be read: {error}")),
        }
    }
}

/// Lets stay what is held by a policy that stays itself. While it cannot be told what those hold,
/// nothing goes that policies made.
pub(super) fn spare(seen: &Observed, fates: &mut [(LeftObject, Fate)]) {
    let held = Held::by_what_stays(seen, fates);
    for (object, fate) in fates {
        if !object.unmarked || object.part.is_some() {
            continue;
        }
        let Some(Look::Present(live)) = seen.live.get(&id(object)) else { continue };
        let open = matches!(fate, Fate::Delete | Fate::Unknown(_));
        if let Some(holder) = held.holder(object, live).filter(|_| open) {
            *fate = Fate::Stays(format!("{holder} holds it"));
        } else if let Some(why) = held.unknown.as_ref().filter(|_| *fate == Fate::Delete) {
            *fate = Fate::Unknown(why.clone());
        }
    }
}

/// What policies hold that stay.
struct Held<'a> {
    /// What templates on record say that they made.
    made: Vec<(Id, &'a LeftObject)>,
    about: Vec<(&'a Id, &'a RelatedObject)>,
    /// Why there may be more.
    unknown: Option<String>,
}

impl<'a> Held<'a> {
    fn by_what_stays(seen: &'a Observed, fates: &[(LeftObject, Fate)]) -> Self {
        let mut held = Self { made: Vec::new(), about: Vec::new(), unknown: None };
        let templates = || fates.iter().filter(|(one, _)| one.part == Some(Part::Template));
        match &seen.holders {
            Holders::Listed(all) => {
                let goes = |holder: &&Holder| {
                    templates().any(|(one, fate)| {
                        let is = id(one) == holder.id && one.uid == holder.uid;
                        is && !matches!(fate, Fate::Stays(_))
                    })
                };
                let stay = all.iter().filter(|holder| !goes(holder));
                held.about = stay
                    .flat_map(|one| one.objects.iter().map(move |object| (&one.id, object)))
                    .collect();
            }
            Holders::Unknown(why) => {
                held.unknown = Some(format!("the policies that may hold it cannot be told: {why}"));
            }
        }
        for (template, _) in templates().filter(|(_, fate)| matches!(fate, Fate::Stays(_))) {
            let template = id(template);
            match seen.made.get(&template) {
                Some(Ok(made)) => {
                    held.made.extend(made.iter().map(|object| (template.clone(), object)));
                }
                Some(Err(why)) => {
                    let why = format!("what {template} holds cannot be told: {why}");
                    held.unknown.get_or_insert(why);
                }
                None => {
                    let why = format!("what {template} holds was not looked at");
                    held.unknown.get_or_insert(why);
                }
            }
        }
        held
    }

    fn holder(&self, object: &LeftObject, live: &Value) -> Option<&Id> {
        let own = id(object);
        let made = self.made.iter().find(|(_, one)| id(one) == own).map(|(template, _)| template);
        let about = || self.about.iter().find(|(_, one)| is_about(one, live)).map(|(one, _)| *one);
        made.or_else(about)
    }
}

/// Whether a policy is about an object: about this incarnation, or about one of its name, for it wants
/// whichever there is.
fn is_about(listed: &RelatedObject, live: &Value) -> bool {
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let uid = listed.properties.as_ref().map(|known| known.uid.as_str()).unwrap_or_default();
    let ObjectResource { kind, metadata, api_version } = &listed.object;
    let namespace = text("/metadata/namespace");
    // What no namespace holds may be listed with one.
    let is_named = metadata.name == text("/metadata/name")
        && (namespace.is_empty() || metadata.namespace == namespace)
        && kind == text("/kind")
        && group(api_version) == group(text("/apiVersion"));
    is_named || (!uid.is_empty() && uid == text("/metadata/uid"))
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}
