//! Makes a sequence that shows a difference as small as it can be: fewer steps, fewer watches, less
//! in each request.
//!
//! What is tried is a pure function of the sequence; whether a smaller one still shows the
//! difference, only the servers know.

use anyhow::Result;
use serde_json::Value;

use super::sequence::{Sequence, Watching};
use crate::conformance::case::Step;

/// How many smaller sequences are played at once.
const AT_ONCE: usize = 8;

/// Tries smaller sequences until none shows the difference, or `budget` have been tried. Every play
/// has a number of its own, from one.
pub(crate) async fn shrink<F, P>(sequence: &Sequence, budget: usize, shows: F) -> Result<Sequence>
where
    F: Fn(Sequence, usize) -> P,
    P: Future<Output = Result<bool>>,
{
    let mut smallest = sequence.clone();
    let mut played = 0;
    'smaller: loop {
        for some in smaller(&smallest).chunks(AT_ONCE) {
            if played >= budget {
                return Ok(smallest);
            }
            let plays = some.iter().map(|candidate| {
                played += 1;
                shows(candidate.clone(), played)
            });
            let shown = futures::future::try_join_all(plays).await?;
            let first = some.iter().zip(shown).find_map(|(found, shown)| shown.then_some(found));
            if let Some(found) = first {
                smallest = found.clone();
                continue 'smaller;
            }
        }
        return Ok(smallest);
    }
}

/// Sequences that are smaller by one cut, the deepest cuts first.
pub(crate) fn smaller(sequence: &Sequence) -> Vec<Sequence> {
    let mut candidates = Vec::new();
    let count = sequence.steps.len();
    let mut size = count / 2;
    while size > 0 {
        for start in (0..count).step_by(size) {
            let steps = without(&sequence.steps, start, start + size);
            if !steps.is_empty() {
                candidates.push(Sequence { steps, ..sequence.clone() });
            }
        }
        size /= 2;
    }
    for unwatched in &sequence.watched {
        let watched = sequence.watched.iter().copied().filter(|kind| kind != unwatched).collect();
        candidates.push(Sequence { watched, ..sequence.clone() });
    }
    if sequence.watching != Watching::Everything {
        candidates.push(Sequence { watching: Watching::Everything, ..sequence.clone() });
    }
    for (index, step) in sequence.steps.iter().enumerate() {
        for simpler in simpler(step) {
            let mut candidate = sequence.clone();
            if let Some(place) = candidate.steps.get_mut(index) {
                *place = simpler;
            }
            candidates.push(candidate);
        }
    }
    candidates
}

/// Leaves out the steps from `start` to before `end`. A step that waits for a deletion goes with it:
/// alone it would wait in vain. As long as the deletion takes its time, it also stays with it:
/// otherwise what follows would depend on who is faster.
fn without(steps: &[Step], start: usize, end: usize) -> Vec<Step> {
    let waits = |index: usize| steps.get(index).is_some_and(|step| step.until.is_some());
    let takes_time = |index: usize| {
        let deleted = steps.get(index).and_then(|step| step.delete.as_deref());
        deleted.is_some_and(|path| path.contains("propagationPolicy="))
    };
    let before = start.saturating_sub(1);
    let start = if waits(start) && takes_time(before) { before } else { start };
    let end = if waits(end) { end + 1 } else { end };
    steps
        .iter()
        .enumerate()
        .filter(|(index, _)| !(start..end).contains(index))
        .map(|(_, step)| step.clone())
        .collect()
}

/// The step with one thing less to say.
fn simpler(step: &Step) -> Vec<Step> {
    let mut simpler = Vec::new();
    if !step.headers.is_empty() {
        simpler.push(Step { headers: [].into(), ..step.clone() });
    }
    for (index, method) in paths(&mut step.clone()).into_iter().enumerate() {
        for shorter in method.as_deref().map(fewer_options).unwrap_or_default() {
            let mut candidate = step.clone();
            if let Some(path) = paths(&mut candidate).into_iter().nth(index) {
                *path = Some(shorter);
            }
            simpler.push(candidate);
        }
    }
    for body in step.body.as_ref().map(less).unwrap_or_default() {
        simpler.push(Step { body: Some(body), ..step.clone() });
    }
    simpler
}

fn paths(step: &mut Step) -> [&mut Option<String>; 5] {
    [&mut step.get, &mut step.post, &mut step.put, &mut step.patch, &mut step.delete]
}

/// The path with each of its options left out in turn. Selectors stay: without them a request would
/// also be about what the control plane keeps in every namespace.
fn fewer_options(path: &str) -> Vec<String> {
    let Some((path, query)) = path.split_once('?') else { return Vec::new() };
    let options: Vec<&str> = query.split('&').collect();
    (0..options.len())
        .filter(|index| options.get(*index).is_some_and(|option| !option.contains("Selector=")))
        .map(|left_out| {
            let mut options = options.clone();
            options.remove(left_out);
            if options.is_empty() {
                path.to_owned()
            } else {
                format!("{path}?{}", options.join("&"))
            }
        })
        .collect()
}

/// The value with each of its parts left out in turn, the outer ones first. What says which object is
/// meant stays: without it the request would be another.
fn less(value: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    match value {
        Value::Object(fields) => {
            for name in fields.keys().filter(|name| !identifies(name)) {
                let mut fields = fields.clone();
                fields.remove(name);
                found.push(Value::Object(fields));
            }
            for (name, field) in fields {
                for field in less(field) {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), field);
                    found.push(Value::Object(fields));
                }
            }
        }
        Value::Array(items) => {
            for index in 0..items.len() {
                let mut items = items.clone();
                items.remove(index);
                found.push(Value::Array(items));
            }
            for (index, item) in items.iter().enumerate() {
                for item in less(item) {
                    let mut items = items.clone();
                    if let Some(place) = items.get_mut(index) {
                        *place = item;
                    }
                    found.push(Value::Array(items));
                }
            }
        }
        _ => {}
    }
    found
}

fn identifies(field: &str) -> bool {
    matches!(field, "apiVersion" | "kind" | "metadata" | "name" | "op" | "path")
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use futures::executor::block_on;
    use serde_json::json;

    use super::*;
    use crate::conformance::sequences::generate;
    use crate::conformance::sequences::kind::Kind;

    /// A difference that shows when a config map with a label is deleted after it was made.
    fn planted(sequence: &Sequence) -> bool {
        let labelled = |step: &Step| {
            step.post.as_deref().is_some_and(|path| path.starts_with("<core>/configmaps"))
                && step.body.as_ref().and_then(|body| body.pointer("/metadata/labels/tier"))
                    == Some(&json!("web"))
        };
        let deleted = |step: &Step| {
            step.delete.as_deref().is_some_and(|path| path.starts_with("<core>/configmaps/"))
        };
        let made = sequence.steps.iter().position(labelled);
        made.is_some_and(|made| sequence.steps.iter().skip(made).any(deleted))
    }

    #[test]
    fn a_planted_difference_is_all_that_is_left() {
        let found: Vec<Sequence> =
            (0..400).map(|index| generate::sequence(1, index)).filter(planted).take(5).collect();
        assert_eq!(found.len(), 5);
        for sequence in found {
            let shows = |candidate: Sequence, _: usize| ready(Ok(planted(&candidate)));
            let smallest = block_on(shrink(&sequence, 2000, shows)).unwrap();
            assert!(planted(&smallest));
            assert_eq!(smallest.steps.len(), 2, "{smallest:#?}");
            assert_eq!(smallest.watched, Vec::<Kind>::new());
            let [made, deleted] = smallest.steps.as_slice() else { unreachable!() };
            let body = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": made.body.as_ref().unwrap()["metadata"]["name"],
                    "labels": {"tier": "web"}}});
            assert_eq!(made.body, Some(body));
            assert_eq!(made.post.as_deref(), Some("<core>/configmaps"));
            assert!(!deleted.delete.as_deref().unwrap().contains('?'));
        }
    }

    #[test]
    fn what_shows_nothing_smaller_stays_as_it_is() {
        let sequence = generate::sequence(1, 1);
        let shows = |candidate: Sequence, _: usize| {
            assert_ne!(candidate, sequence);
            ready(Ok(false))
        };
        assert_eq!(block_on(shrink(&sequence, 2000, shows)).unwrap(), sequence);
    }

    #[test]
    fn a_step_that_waits_goes_with_the_one_it_waits_for() {
        let step = |name: &str, delete: Option<&str>, waits: bool| Step {
            name: Some(name.to_owned()),
            delete: delete.map(str::to_owned),
            until: waits.then(|| [("/code".to_owned(), json!(404))].into()),
            ..Step::default()
        };
        let left = |delete, start, end| -> Vec<String> {
            let steps = [
                step("a", None, false),
                step("b", Some(delete), false),
                step("c", None, true),
                step("d", None, false),
            ];
            without(&steps, start, end).into_iter().filter_map(|step| step.name).collect()
        };
        let slow = "<core>/configmaps/a?propagationPolicy=Foreground";
        assert_eq!(left(slow, 0, 1), ["b", "c", "d"]);
        assert_eq!(left(slow, 1, 2), ["a", "d"]);
        assert_eq!(left(slow, 2, 3), ["a", "d"]);
        assert_eq!(left(slow, 0, 2), ["d"]);
        assert_eq!(left("<core>/configmaps/a", 2, 3), ["a", "b", "d"]);
    }
}
