//! What works and templates mean for each other in one answer: each of them foresees only what it does
//! itself.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::id::Id;
use crate::work::along::take_along;
use crate::work::outlook::{Foreseen, Prospect};
use crate::work::proposal::MANIFESTS;

/// Puts right what is foreseen by what others do: what any of them deletes does not stay, or is made anew
/// by those who ask for it; and what is in a namespace or of a definition that goes does not stay either.
/// Says of which objects something else is foreseen now.
pub fn together(outlooks: &mut BTreeMap<String, Vec<Foreseen>>) -> BTreeSet<Id> {
    let mut gone = BTreeSet::new();
    let mut deleted: BTreeMap<(Id, String), (String, &'static str)> = BTreeMap::new();
    for (source, all) in outlooks.iter() {
        let going = all.iter().filter(|one| one.prospect == Prospect::Delete);
        for one in going.filter(|one| !one.uid.is_empty()) {
            let by = || (source.clone(), one.decided_by);
            deleted.entry((one.id.clone(), one.uid.clone())).or_insert_with(by);
        }
    }
    let mut each: Vec<&mut Foreseen> = outlooks.values_mut().flatten().collect();
    for one in &mut each {
        let by = deleted.get(&(one.id.clone(), one.uid.clone()));
        let Some((source, decided_by)) = by else { continue };
        if let Some((prospect, why)) = after(one, source, decided_by) {
            (one.prospect, one.why, one.decided_by) = (prospect, why, decided_by);
            gone.insert(one.id.clone());
        }
    }
    let asked: BTreeSet<Id> =
        each.iter().filter(|one| is_asked_for(one)).map(|one| one.id.clone()).collect();
    gone.extend(take_along(&mut each, |id| asked.contains(id)));
    gone
}

/// What becomes of an object that another (`source`) deletes, if that is not what is foreseen anyway.
fn after(one: &Foreseen, source: &str, decided_by: &str) -> Option<(Prospect, String)> {
    match one.prospect {
        Prospect::Keep | Prospect::Orphan | Prospect::StripMarks => Some((
            Prospect::Delete,
            format!("it stays as far as this is concerned, and goes with {source}"),
        )),
        // Nobody makes it anew who only reports.
        Prospect::Unchanged if ![TEMPLATES, MANIFESTS].contains(&one.decided_by) => Some((
            Prospect::Delete,
            format!("nothing is done about it here, and it goes with {source}"),
        )),
        Prospect::Unchanged | Prospect::Change | Prospect::Adopt if decided_by == COMPLIANCE => {
            Some((Prospect::Stuck, format!("{source} says that it must not be there")))
        }
        Prospect::Unchanged | Prospect::Change | Prospect::Adopt => {
            Some((Prospect::Recreate, format!("it goes with {source}, and is made anew")))
        }
        Prospect::Delete
        | Prospect::Recreate
        | Prospect::Create
        | Prospect::Gone
        | Prospect::Stuck
        | Prospect::Unknown => None,
    }
}

/// The field by which a template asks for an object.
pub(super) const TEMPLATES: &str = "spec.object-templates";
/// The field by which one says that an object must not be there.
pub(super) const COMPLIANCE: &str = "complianceType";

/// Whether a manifest or a template asks for it, so that it is made anew where it can be.
fn is_asked_for(one: &Foreseen) -> bool {
    matches!(
        one.prospect,
        Prospect::Recreate
            | Prospect::Create
            | Prospect::Change
            | Prospect::Adopt
            | Prospect::Unchanged
    )
}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;
    use std::vec;

    use super::*;

    fn foreseen(resource: &str, namespace: &str, name: &str, prospect: Prospect) -> Foreseen {
        Foreseen {
            id: Id {
                group: String::new(),
                resource: resource.into(),
                namespace: namespace.into(),
                name: name.into(),
            },
            version: "v1".into(),
            uid: name.into(),
            prospect,
            why: "by itself".into(),
            decided_by: "its own",
            adopted: false,
            finalizers: vec![],
        }
    }

    fn told(outlooks: &BTreeMap<String, Vec<Foreseen>>, source: &str) -> (Prospect, String) {
        let one = &outlooks[source][0];
        (one.prospect, one.why.clone())
    }

    #[test]
    fn what_is_in_the_namespace_of_another_work_was_shown_as_staying() {
        let shop = foreseen("namespaces", "", "shop", Prospect::Delete);
        let map = |prospect| foreseen("configmaps", "shop", "prices", prospect);
        let mut outlooks: BTreeMap<String, Vec<Foreseen>> = [
            ("a".to_string(), vec![shop]),
            ("b".to_string(), vec![map(Prospect::Keep)]),
            ("c".to_string(), vec![map(Prospect::Unchanged)]),
        ]
        .into();
        let changed = together(&mut outlooks);
        assert_eq!(changed, [map(Prospect::Keep).id].into());
        assert_eq!(told(&outlooks, "b").0, Prospect::Delete);
        let (prospect, why) = told(&outlooks, "c");
        assert_eq!(prospect, Prospect::Delete);
        assert!(why.ends_with("cannot be made anew without it"), "{why}");
        // Once is enough.
        let before = outlooks.clone();
        assert_eq!(together(&mut outlooks), BTreeSet::new());
        assert_eq!(outlooks, before);
    }

    #[test]
    fn what_one_template_keeps_and_another_deletes_was_shown_as_staying() {
        let map = |prospect| foreseen("configmaps", "shop", "prices", prospect);
        let mut anew = map(Prospect::Keep);
        anew.uid = "another".into();
        let mut outlooks: BTreeMap<String, Vec<Foreseen>> = [
            ("a".to_string(), vec![map(Prospect::Delete)]),
            ("b".to_string(), vec![map(Prospect::Keep)]),
            ("c".to_string(), vec![anew]),
        ]
        .into();
        together(&mut outlooks);
        let why = "it stays as far as this is concerned, and goes with a";
        assert_eq!(told(&outlooks, "b"), (Prospect::Delete, why.to_string()));
        assert_eq!(told(&outlooks, "c").0, Prospect::Keep);
    }

    #[test]
    fn what_moves_between_templates_was_shown_as_deleted_and_as_unchanged() {
        let moved = |deleted_by: &'static str, asked_by: &'static str| {
            let row = |prospect, decided_by| Foreseen {
                decided_by,
                ..foreseen("configmaps", "shop", "prices", prospect)
            };
            let mut outlooks: BTreeMap<String, Vec<Foreseen>> = [
                ("old".to_string(), vec![row(Prospect::Delete, deleted_by)]),
                ("new".to_string(), vec![row(Prospect::Unchanged, asked_by)]),
            ]
            .into();
            together(&mut outlooks);
            told(&outlooks, "new")
        };
        const PRUNED: &str = "spec.pruneObjectBehavior";
        assert_eq!(
            moved(PRUNED, TEMPLATES),
            (Prospect::Recreate, "it goes with old, and is made anew".to_string())
        );
        assert_eq!(moved(PRUNED, MANIFESTS).0, Prospect::Recreate);
        assert_eq!(moved(COMPLIANCE, TEMPLATES).0, Prospect::Stuck);
        // Who only reports makes nothing.
        assert_eq!(moved(PRUNED, "spec.remediationAction").0, Prospect::Delete);
    }
}
