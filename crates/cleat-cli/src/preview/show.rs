//! A plan as people and as programs read it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::IsTerminal;

use cleat_api::removalpreview::{PreviewVerdict, PreviewedObject};
use cleat_core::number::number;
use serde_json::{Value, json};

use super::ask::{Answer, Foreseen};

/// Whether whoever reads it there sees colours.
pub(crate) fn colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

pub(crate) fn text(foreseen: &Foreseen, colours: bool) -> String {
    let mut text = String::new();
    for one in &foreseen.clusters {
        cluster(&mut text, one, colours);
    }
    // Writing to a string cannot fail.
    for note in &foreseen.notes {
        let _ = writeln!(text, "note: {}", plain(note));
    }
    let _ = writeln!(text, "plan {}: {}", foreseen.plan, summary(foreseen));
    text
}

fn cluster(text: &mut String, one: &Answer, colours: bool) {
    let Some(answer) = &one.answer else {
        let _ = writeln!(text, "{}: no answer, so what would happen there is unknown", one.cluster);
        for object in &one.believed {
            let kind = kind(&object.group, &object.resource);
            let name = plain(&format!("{kind} {}", place(&object.namespace, &object.name)));
            let _ = writeln!(text, "  {:<12} {name}: believed to be there", "unknown");
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
        let why = plain(&object.why);
        let _ = writeln!(text, "  {verdict} {name:<width$}  {why}{field}{adopted}");
        for effect in &object.effects {
            let _ = writeln!(text, "  {:<12} {:<width$}  + {}", "", "", plain(effect));
        }
        for blocker in &object.blockers {
            let _ = writeln!(text, "  {:<12} {:<width$}  ! {}", "", "", plain(blocker));
        }
    }
    if answer.more > 0 {
        let _ = writeln!(text, "  and {} more", answer.more);
    }
    if answer.objects.len() > COUNTED_AT_A_GLANCE {
        for (kind, counts) in by_kind(&answer.objects) {
            let _ = writeln!(text, "  {:<12} {kind}: {}", "in all", counted(&counts));
        }
    }
    for problem in &answer.problems {
        let _ = writeln!(text, "  {:<12} {}", "unknown", plain(problem));
    }
    notes(text, &answer.notes);
    notes(text, &one.notes);
}

fn notes(text: &mut String, notes: &[String]) {
    for note in notes {
        let _ = writeln!(text, "  {:<12} {}", "note", plain(note));
    }
}

/// What servers say may have lines of its own, and anything in them that a terminal obeys.
fn plain(text: &str) -> String {
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" ");
    line.chars().filter(|one| !one.is_control()).collect()
}

fn named(object: &PreviewedObject) -> String {
    let kind = kind(&object.group, &object.resource);
    plain(&format!("{kind} {}", place(&object.namespace, &object.name)))
}

/// Longer lists are counted for people.
const COUNTED_AT_A_GLANCE: usize = 10;

type Counts = BTreeMap<PreviewVerdict, usize>;

/// How much of each kind gets which verdict.
fn by_kind(objects: &[PreviewedObject]) -> BTreeMap<String, Counts> {
    let mut all: BTreeMap<String, Counts> = BTreeMap::new();
    for object in objects {
        let counts = all.entry(plain(&kind(&object.group, &object.resource))).or_default();
        *counts.entry(object.verdict).or_default() += 1;
    }
    all
}

/// `2 to delete, 1 to orphan`.
fn counted(counts: &Counts) -> String {
    let each = counts.iter().map(|(verdict, count)| format!("{count} {}", told(*verdict)));
    each.collect::<Vec<_>>().join(", ")
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

/// `2 to delete, 1 to orphan, 3 removed after them on 2 clusters; 1 cluster did not answer`.
pub(crate) fn summary(foreseen: &Foreseen) -> String {
    let mut counts = Counts::new();
    let (mut along, mut followed, mut more) = (0, 0, 0);
    for answer in foreseen.clusters.iter().filter_map(|one| one.answer.as_ref()) {
        for object in &answer.objects {
            *counts.entry(object.verdict).or_default() += 1;
            along += object.takes_along;
            followed += object.followed;
        }
        more += answer.more;
        if !answer.problems.is_empty() {
            *counts.entry(PreviewVerdict::Unknown).or_default() += answer.problems.len();
        }
    }
    let answered = foreseen.clusters.iter().filter(|one| one.answer.is_some()).count();
    let silent = foreseen.clusters.len() - answered;
    let clusters = |count: usize| number(count, "cluster", "clusters");
    let mut all = Vec::new();
    if !counts.is_empty() {
        all.push(counted(&counts));
    }
    if more > 0 {
        all.push(format!("{more} more that are not listed"));
    }
    if along > 0 {
        all.push(format!("{along} taken along"));
    }
    if followed > 0 {
        all.push(format!("{followed} removed after them by the garbage collector"));
    }
    let mut text = match all.is_empty() {
        true => "nothing".to_owned(),
        false => all.join(", "),
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

/// By kind and verdict, for programs.
fn totals(objects: &[PreviewedObject]) -> Value {
    let of_kind = |counts: Counts| -> Value {
        counts
            .into_iter()
            .map(|(verdict, count)| (verdict.as_str().to_owned(), json!(count)))
            .collect()
    };
    by_kind(objects).into_iter().map(|(kind, counts)| (kind, of_kind(counts))).collect()
}

pub(super) fn value(foreseen: &Foreseen) -> Value {
    let clusters: Vec<Value> = foreseen
        .clusters
        .iter()
        .map(|one| match &one.answer {
            Some(answer) => json!({
                "cluster": one.cluster, "answered": true, "answer": answer, "notes": one.notes,
                "totals": totals(&answer.objects),
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

    #[test]
    fn a_total_left_out_what_follows_and_what_could_not_be_seen() {
        let mut web = object(PreviewVerdict::Delete, "web", "it goes with the work");
        (web.takes_along, web.followed) = (2, 3);
        let answer = RemovalPreviewStatus {
            objects: vec![web, object(PreviewVerdict::Unknown, "till", "no answer")],
            problems: vec!["what goes along with pods shop/a cannot be seen: no".to_owned()],
            more: 5,
            ..RemovalPreviewStatus::default()
        };
        let cluster = Answer {
            cluster: "c1".to_owned(),
            answer: Some(answer),
            believed: vec![],
            notes: vec![],
        };
        let foreseen =
            Foreseen { plan: String::new(), clusters: vec![cluster], notes: vec![], asked: vec![] };
        assert_eq!(
            summary(&foreseen),
            "1 to delete, 2 unknown, 5 more that are not listed, 2 taken along, 3 removed after them \
             by the garbage collector on 1 cluster"
        );
    }

    fn one_cluster(answer: RemovalPreviewStatus) -> Foreseen {
        let cluster = Answer {
            cluster: "c1".to_owned(),
            answer: Some(answer),
            believed: vec![],
            notes: vec![],
        };
        Foreseen { plan: String::new(), clusters: vec![cluster], notes: vec![], asked: vec![] }
    }

    /// A refusal of three lines broke the table, and could have moved the cursor.
    #[test]
    fn what_servers_said_was_printed_as_it_came() {
        let mut first = object(PreviewVerdict::Delete, "prices", "it goes\u{1b}[2J with the work");
        first.blockers.push("would be refused: no\n\n  not now\r\n".to_owned());
        let answer =
            RemovalPreviewStatus { objects: vec![first], ..RemovalPreviewStatus::default() };
        let text = text(&one_cluster(answer), false);
        assert!(!text.contains('\u{1b}') && !text.contains('\r'), "{text:?}");
        assert!(text.contains("! would be refused: no   not now\n"), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
    }

    #[test]
    fn long_lists_are_counted_by_kind() {
        let mut objects: Vec<PreviewedObject> = (0..10)
            .map(|number| object(PreviewVerdict::Delete, &number.to_string(), "it goes"))
            .collect();
        let shown = |objects: &[PreviewedObject]| {
            let objects = objects.to_vec();
            let answer = RemovalPreviewStatus { objects, ..RemovalPreviewStatus::default() };
            let foreseen = one_cluster(answer);
            let lines: Vec<String> = text(&foreseen, false)
                .lines()
                .filter(|line| line.starts_with("  in all"))
                .map(str::to_owned)
                .collect();
            (lines, value(&foreseen)["clusters"][0]["totals"].clone())
        };
        assert_eq!(shown(&objects), (vec![], json!({ "configmaps": { "delete": 10 } })));
        let mut namespace = object(PreviewVerdict::Keep, "shop", "it stays");
        namespace.resource = "namespaces".to_owned();
        objects.extend([object(PreviewVerdict::Orphan, "till", "it stays"), namespace]);
        let (lines, totals) = shown(&objects);
        assert_eq!(
            lines,
            [
                "  in all       configmaps: 10 to delete, 1 to orphan",
                "  in all       namespaces: 1 to keep",
            ]
        );
        assert_eq!(totals["namespaces"], json!({ "keep": 1 }));
    }
}
