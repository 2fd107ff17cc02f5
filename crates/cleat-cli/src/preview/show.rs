//! A plan as people and as programs read it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::IsTerminal as _;

use cleat_api::removalpreview::{PreviewVerdict, PreviewedObject};
use cleat_core::number::number;
use serde_json::{Value, json};

use super::ask::{Answer, Foreseen};

/// Whether whoever reads it sees colours.
pub(super) fn colours() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

pub(super) fn text(foreseen: &Foreseen, colours: bool) -> String {
    let mut text = String::new();
    for one in &foreseen.clusters {
        cluster(&mut text, one, colours);
    }
    // Writing to a string cannot fail.
    for note in &foreseen.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let _ = writeln!(text, "plan {}: {}", foreseen.plan, summary(foreseen));
    text
}

fn cluster(text: &mut String, one: &Answer, colours: bool) {
    let Some(answer) = &one.answer else {
        let _ = writeln!(text, "{}: no answer, so what would happen there is unknown", one.cluster);
        for object in &one.believed {
            let kind = kind(&object.group, &object.resource);
            let place = place(&object.namespace, &object.name);
            let _ = writeln!(text, "  {:<12} {kind} {place}: believed to be there", "unknown");
        }
        return notes(text, &one.notes);
    };
    let _ = writeln!(text, "{}", one.cluster);
    if answer.objects.is_empty() && answer.problems.is_empty() && one.notes.is_empty() {
        let _ = writeln!(text, "  nothing is there");
    }
    let names: Vec<String> = answer.objects.iter().map(named).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    for (object, name) in answer.objects.iter().zip(&names) {
        let verdict = painted(object.verdict, colours);
        let field = match object.decided_by.as_str() {
            "" => String::new(),
            field => format!(" ({field})"),
        };
        let adopted = if object.adopted { ", was there before" } else { "" };
        let _ = writeln!(text, "  {verdict} {name:<width$}  {}{field}{adopted}", object.why);
        for effect in &object.effects {
            let _ = writeln!(text, "  {:<12} {:<width$}  + {effect}", "", "");
        }
        for blocker in &object.blockers {
            let _ = writeln!(text, "  {:<12} {:<width$}  ! {blocker}", "", "");
        }
    }
    if answer.more > 0 {
        let _ = writeln!(text, "  and {} more", answer.more);
    }
    for problem in &answer.problems {
        let _ = writeln!(text, "  {:<12} {problem}", "unknown");
    }
    notes(text, &answer.notes);
    notes(text, &one.notes);
}

fn notes(text: &mut String, notes: &[String]) {
    for note in notes {
        let _ = writeln!(text, "  {:<12} {note}", "note");
    }
}

fn named(object: &PreviewedObject) -> String {
    format!("{} {}", kind(&object.group, &object.resource), place(&object.namespace, &object.name))
}

fn kind(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

fn place(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

fn painted(verdict: PreviewVerdict, colours: bool) -> String {
    let padded = format!("{:<12}", verdict.as_str());
    let colour = match verdict {
        _ if !colours => return padded,
        PreviewVerdict::Delete | PreviewVerdict::Recreate => "31",
        PreviewVerdict::Create | PreviewVerdict::Change | PreviewVerdict::Adopt => "36",
        PreviewVerdict::Orphan | PreviewVerdict::Keep | PreviewVerdict::StripMarks => "32",
        PreviewVerdict::Gone | PreviewVerdict::Unchanged => "2",
        PreviewVerdict::Stuck | PreviewVerdict::Unknown => "33",
    };
    format!("\u{1b}[{colour}m{padded}\u{1b}[0m")
}

/// `2 to delete, 1 to orphan on 2 clusters; 1 cluster did not answer`.
pub(crate) fn summary(foreseen: &Foreseen) -> String {
    let mut counts: BTreeMap<PreviewVerdict, usize> = BTreeMap::new();
    let mut along = 0;
    for object in
        foreseen.clusters.iter().filter_map(|one| one.answer.as_ref()).flat_map(|a| &a.objects)
    {
        *counts.entry(object.verdict).or_default() += 1;
        along += object.takes_along;
    }
    let answered = foreseen.clusters.iter().filter(|one| one.answer.is_some()).count();
    let silent = foreseen.clusters.len() - answered;
    let clusters = |count: usize| number(count, "cluster", "clusters");
    let mut counted: Vec<String> =
        counts.iter().map(|(verdict, count)| format!("{count} {}", told(*verdict))).collect();
    if along > 0 {
        counted.push(format!("{along} taken along"));
    }
    let mut text = match counted.is_empty() {
        true => "nothing".to_owned(),
        false => counted.join(", "),
    };
    let _ = write!(text, " on {}", clusters(answered));
    if silent > 0 {
        let _ = write!(text, "; {} did not answer", clusters(silent));
    }
    text
}

fn told(verdict: PreviewVerdict) -> &'static str {
    match verdict {
        PreviewVerdict::Delete => "to delete",
        PreviewVerdict::Recreate => "to delete and make anew",
        PreviewVerdict::Create => "to create",
        PreviewVerdict::Change => "to change",
        PreviewVerdict::Adopt => "to adopt",
        PreviewVerdict::Orphan => "to orphan",
        PreviewVerdict::Keep => "to keep",
        PreviewVerdict::StripMarks => "to keep without our marks",
        PreviewVerdict::Gone => "gone already",
        PreviewVerdict::Stuck => "stuck",
        PreviewVerdict::Unchanged => "unchanged",
        PreviewVerdict::Unknown => "unknown",
    }
}

pub(super) fn value(foreseen: &Foreseen) -> Value {
    let clusters: Vec<Value> = foreseen
        .clusters
        .iter()
        .map(|one| match &one.answer {
            Some(answer) => json!({
                "cluster": one.cluster, "answered": true, "answer": answer, "notes": one.notes,
            }),
            None => json!({
                "cluster": one.cluster, "answered": false, "believed": one.believed,
                "notes": one.notes,
            }),
        })
        .collect();
    json!({ "plan": foreseen.plan, "clusters": clusters, "notes": foreseen.notes })
}

#[cfg(test)]
mod tests {
    use cleat_api::removalpreview::RemovalPreviewStatus;

    use super::*;

    fn object(verdict: PreviewVerdict, name: &str, why: &str) -> PreviewedObject {
        PreviewedObject {
            resource: "configmaps".to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            verdict,
            why: why.to_owned(),
            decided_by: "spec.deleteOption".to_owned(),
            ..PreviewedObject::default()
        }
    }

    #[test]
    fn a_plan_reads_like_this() {
        let mut first = object(PreviewVerdict::Delete, "prices", "it goes with the work");
        first.blockers.push("waits for finalizer x/y".to_owned());
        let second = object(PreviewVerdict::Orphan, "till", "it is declared to stay");
        let answer = RemovalPreviewStatus {
            objects: vec![first, second],
            ..RemovalPreviewStatus::default()
        };
        let foreseen = Foreseen {
            plan: "0123".to_owned(),
            clusters: vec![
                Answer {
                    cluster: "c1".to_owned(),
                    answer: Some(answer),
                    believed: vec![],
                    notes: vec!["policy a/b stays".to_owned()],
                },
                Answer { cluster: "c2".to_owned(), answer: None, believed: vec![], notes: vec![] },
            ],
            notes: vec!["there is more".to_owned()],
            asked: vec![],
        };
        let expected = "\
c1
  delete       configmaps shop/prices  it goes with the work (spec.deleteOption)
                                       ! waits for finalizer x/y
  orphan       configmaps shop/till    it is declared to stay (spec.deleteOption)
  note         policy a/b stays
c2: no answer, so what would happen there is unknown
note: there is more
plan 0123: 1 to delete, 1 to orphan on 1 cluster; 1 cluster did not answer
";
        assert_eq!(text(&foreseen, false), expected);
        assert!(text(&foreseen, true).contains("\u{1b}[31mdelete"));
    }
}
