//! A sequence: requests about a few objects of one namespace, and the kinds that are watched
//! meanwhile. It is played, masked, compared and printed as a case.

use serde_json::{Value, json};

use super::kind::{HOLD, Kind, NAMES};
use crate::conformance::case::{Case, Namespace, Step};

/// The object that ends a watch: it is made last, so every event before it has arrived.
const END: &str = "end";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sequence {
    pub(crate) name: String,
    pub(crate) watched: Vec<Kind>,
    pub(crate) watching: Watching,
    pub(crate) steps: Vec<Step>,
}

/// How kinds are watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Watching {
    /// All objects, from a list on.
    #[default]
    Everything,
    /// Those that a selector picks, which objects come and go by as they change.
    Selected(&'static str),
    /// Beginning with what is there, in the watch itself. Bookmarks are not asked for: when they
    /// come is a matter of time.
    Streamed,
}

impl Watching {
    pub(crate) const ALL: [Self; 8] = [
        Self::Everything,
        Self::Everything,
        Self::Everything,
        Self::Selected("labelSelector=tier=web"),
        Self::Selected("labelSelector=tier%20in%20(web,db),!env"),
        Self::Selected("labelSelector=tier,env!=prod"),
        Self::Selected("fieldSelector=metadata.name!=a"),
        Self::Streamed,
    ];

    fn query(self, plural: &str) -> String {
        let from = format!("watch=1&resourceVersion=<list-{plural}/metadata/resourceVersion>");
        match self {
            Self::Everything => from,
            Self::Selected(selector) => format!("{from}&{selector}"),
            Self::Streamed => {
                format!("{from}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
            }
        }
    }
}

impl Sequence {
    /// The whole case: watches are opened, the steps are played, and what the watches told is
    /// collected up to an object that is made for it.
    pub(crate) fn case(&self) -> Case {
        let mut steps = Vec::new();
        for kind in &self.watched {
            let (path, plural) = (kind.path(), kind.plural());
            steps.push(Step {
                get: Some(path.to_owned()),
                name: Some(format!("list-{plural}")),
                silent: true,
                ..Step::default()
            });
            steps.push(Step {
                watch: Some(format!("{path}?{}", self.watching.query(plural))),
                name: Some(format!("watch-{plural}")),
                ..Step::default()
            });
        }
        steps.extend(self.steps.iter().cloned());
        for kind in &self.watched {
            let mut last = kind.smallest(END);
            if let Some(Value::Object(metadata)) = last.get_mut("metadata") {
                // Whatever a watch selects, it is told of this one.
                metadata.insert("labels".to_owned(), json!({"tier": "web"}));
            }
            steps.push(Step {
                post: Some(kind.path().to_owned()),
                body: Some(last),
                silent: true,
                ..Step::default()
            });
            steps.push(Step {
                collect: Some(format!("watch-{}", kind.plural())),
                name: Some(format!("events-{}", kind.plural())),
                until: Some([("/object/metadata/name".to_owned(), json!(END))].into()),
                ..Step::default()
            });
        }
        steps.extend(self.releases());
        let custom = |step: &Step| path(step).is_some_and(|path| path.contains("<widgets>"));
        let before = if steps.iter().any(custom) { vec!["widgets".to_owned()] } else { Vec::new() };
        Case {
            name: self.name.clone(),
            about: format!("Found by {}.", self.name),
            namespace: Namespace::Fresh,
            before,
            values: [].into(),
            steps,
            cleanup: Vec::new(),
        }
    }

    /// Lets go of what a finalizer may still hold: its namespace would never end.
    fn releases(&self) -> Vec<Step> {
        let mut held: Vec<Kind> = self
            .steps
            .iter()
            .filter(|step| step.body.as_ref().is_some_and(holds))
            .filter_map(|step| Some(Kind::of(path(step)?)?.0))
            .collect();
        held.sort_unstable();
        held.dedup();
        let mut names = NAMES.to_vec();
        names.dedup();
        held.iter()
            .flat_map(|kind| names.iter().map(move |name| format!("{}/{name}", kind.path())))
            .map(|path| Step {
                patch: Some(path),
                media: Some("merge".to_owned()),
                body: Some(json!({"metadata": {"finalizers": null}})),
                silent: true,
                ..Step::default()
            })
            .collect()
    }
}

/// Whether a body may put a finalizer on its object.
pub(crate) fn holds(body: &Value) -> bool {
    body.to_string().contains(HOLD)
}

/// Method and path of a request, the latter as a template.
pub(crate) fn request(step: &Step) -> Option<(&'static str, &String)> {
    [
        ("GET", &step.get),
        ("POST", &step.post),
        ("PUT", &step.put),
        ("PATCH", &step.patch),
        ("DELETE", &step.delete),
        ("WATCH", &step.watch),
    ]
    .into_iter()
    .find_map(|(method, path)| Some((method, path.as_ref()?)))
}

fn path(step: &Step) -> Option<&str> {
    request(step).map(|(_, path)| path.as_str())
}

/// What a step does, in a line: `PATCH merge <widgets>/a`.
pub(crate) fn sent(step: &Step) -> String {
    match (request(step), &step.collect) {
        (Some((method, path)), _) => match &step.media {
            Some(media) => format!("{method} {media} {path}"),
            None => format!("{method} {path}"),
        },
        (None, Some(watch)) => format!("COLLECT {watch}"),
        (None, None) => "nothing".to_owned(),
    }
}
