//! What goes along with a namespace or a definition that goes: the server takes everything in it, and
//! asks nobody whether that was to stay.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::outlook::{Foreseen, Prospect};
use super::retire::is_inside;
use crate::id::Id;

/// A namespace or a definition that goes.
struct Holder {
    id: Id,
    /// Another takes its place.
    anew: bool,
    decided_by: &'static str,
}

/// Puts right what is foreseen of objects by themselves where their namespace or definition goes.
/// `asked`: a manifest asks for the object, so that it is made anew where it can be. Says of which
/// objects something else is foreseen now.
pub(crate) fn take_along(all: &mut [&mut Foreseen], asked: impl Fn(&Id) -> bool) -> BTreeSet<Id> {
    let holders: Vec<Holder> = all
        .iter()
        .filter(|one| matches!(one.prospect, Prospect::Delete | Prospect::Recreate))
        .map(|one| Holder {
            id: one.id.clone(),
            anew: one.prospect == Prospect::Recreate,
            decided_by: one.decided_by,
        })
        .collect();
    let mut taken = BTreeSet::new();
    for one in all.iter_mut() {
        // A definition that stays gone counts for more than a namespace that comes again.
        let around = holders.iter().filter(|holder| is_inside(&holder.id, &one.id));
        let Some(holder) = around.min_by_key(|holder| holder.anew) else { continue };
        if let Some((prospect, why)) = with(holder, one, asked(&one.id)) {
            one.prospect = prospect;
            one.why = why;
            one.decided_by = holder.decided_by;
            taken.insert(one.id.clone());
        }
    }
    taken
}

/// What becomes of an object with what it is in, if that is not what becomes of it anyway.
fn with(holder: &Holder, one: &Foreseen, asked: bool) -> Option<(Prospect, String)> {
    let Holder { id, anew, .. } = holder;
    let there = !one.uid.is_empty();
    match one.prospect {
        Prospect::Delete | Prospect::Gone | Prospect::Stuck | Prospect::Unknown => None,
        Prospect::Create if !anew => {
            Some((Prospect::Stuck, format!("{id} goes, and it cannot be made without it")))
        }
        Prospect::Create => None,
        Prospect::Recreate if *anew => None,
        Prospect::Recreate
        | Prospect::Change
        | Prospect::Adopt
        | Prospect::Orphan
        | Prospect::Keep
        | Prospect::StripMarks
        | Prospect::Unchanged => there.then(|| match (asked, *anew) {
            (true, true) => {
                (Prospect::Recreate, format!("{id} is made anew, and takes it along before"))
            }
            (true, false) => (
                Prospect::Delete,
                format!("{id} goes and takes it along, and it cannot be made anew without it"),
            ),
            (false, _) => (Prospect::Delete, format!("{id} goes, and takes it along")),
        }),
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;
    use std::vec;

    use super::*;

    fn foreseen(resource: &str, namespace: &str, name: &str, prospect: Prospect) -> Foreseen {
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        Foreseen {
            id: Id {
                group: group.into(),
                resource: resource.into(),
                namespace: namespace.into(),
                name: name.into(),
            },
            version: "v1".into(),
            uid: if prospect == Prospect::Create { "" } else { "1" }.into(),
            prospect,
            why: "as it was".into(),
            decided_by: "its own",
            adopted: false,
            finalizers: vec![],
        }
    }

    /// What becomes of one object inside, which a manifest asks for or not.
    fn along(holder: Foreseen, one: Foreseen, asked: bool) -> (Prospect, String) {
        let mut all = [holder, one];
        let mut each: Vec<&mut Foreseen> = all.iter_mut().collect();
        let taken = take_along(&mut each, |_| asked);
        assert_eq!(taken.contains(&all[1].id), all[1].why != "as it was");
        assert!(!taken.contains(&all[0].id));
        (all[1].prospect, all[1].why.clone())
    }

    #[test]
    fn what_is_in_a_namespace_that_goes_was_shown_as_staying() {
        let shop = |prospect| foreseen("namespaces", "", "shop", prospect);
        let map = |prospect| foreseen("configmaps", "shop", "prices", prospect);
        let goes = "namespaces shop goes, and takes it along".to_string();
        let for_good =
            "namespaces shop goes and takes it along, and it cannot be made anew without it";
        for stays in [Prospect::Keep, Prospect::Orphan] {
            let told = along(shop(Prospect::Delete), map(stays), false);
            assert_eq!(told, (Prospect::Delete, goes.clone()));
        }
        for asked in [Prospect::Unchanged, Prospect::Change, Prospect::Adopt, Prospect::Recreate] {
            let told = along(shop(Prospect::Delete), map(asked), true);
            assert_eq!(told, (Prospect::Delete, for_good.to_string()));
        }
        let (prospect, why) = along(shop(Prospect::Delete), map(Prospect::Create), true);
        assert_eq!(prospect, Prospect::Stuck);
        assert_eq!(why, "namespaces shop goes, and it cannot be made without it");
        let (prospect, why) = along(shop(Prospect::Recreate), map(Prospect::Unchanged), true);
        assert_eq!(prospect, Prospect::Recreate);
        assert_eq!(why, "namespaces shop is made anew, and takes it along before");
    }

    #[test]
    fn objects_go_with_their_definition_and_others_do_not() {
        let name = "widgets.example.com";
        let resource = "customresourcedefinitions.apiextensions.k8s.io";
        let definition = || foreseen(resource, "", name, Prospect::Delete);
        let widget = foreseen("widgets.example.com", "shop", "w", Prospect::Keep);
        let (prospect, why) = along(definition(), widget, false);
        assert_eq!(prospect, Prospect::Delete);
        assert!(why.ends_with("widgets.example.com goes, and takes it along"), "{why}");
        let gadget = foreseen("gadgets.example.com", "shop", "g", Prospect::Keep);
        assert_eq!(along(definition(), gadget, false).0, Prospect::Keep);
        // A namespace that stays takes nothing along, and nobody loses what is not there.
        let shop = |prospect| foreseen("namespaces", "", "shop", prospect);
        let map = |prospect| foreseen("configmaps", "shop", "prices", prospect);
        assert_eq!(along(shop(Prospect::Keep), map(Prospect::Keep), false).0, Prospect::Keep);
        let told = along(shop(Prospect::Delete), map(Prospect::Gone), false);
        assert_eq!(told.0, Prospect::Gone);
    }
}
