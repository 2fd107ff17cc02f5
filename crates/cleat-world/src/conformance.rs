//! Whether our API server answers as a real kube-apiserver does.
//!
//! The same requests go to both; what cannot be equal is masked; what differs must stand in
//! `differences.yaml` with a reason, and what stands there must differ. The real server's answers
//! are also recorded, so that ours can be checked where there is no real one.
//!
//! Deliberately absent: expectations written by hand. What is right is what Kubernetes does.

mod case;
mod compare;
mod embedded;
mod mask;
mod play;
mod recorded;
mod select;
pub mod sequences;
mod template;
mod watch;
mod webhook;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

pub use self::case::Case;
pub use self::compare::{Difference, Known};
pub use self::embedded::embedded;
use self::play::Ground;
use self::webhook::Webhooks;
use crate::server::Server;

/// The masked answers to one case: the step's label and what the server said.
pub type Answers = Vec<(String, Value)>;

/// How many cases are played at once.
const AT_ONCE: usize = 8;

/// The cases, the known differences and the recorded answers.
pub struct Suite {
    folder: PathBuf,
    cases: Vec<Case>,
    shared: BTreeMap<String, case::Shared>,
    known: Vec<Known>,
    patience: Duration,
}

impl Suite {
    /// Where the suite is in the repository.
    #[must_use]
    pub fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance")
    }

    pub fn load(folder: &Path) -> Result<Self> {
        let (cases, shared) = case::load(folder)?;
        let known = compare::known(&folder.join("differences.yaml"))?;
        let patience = Duration::from_secs(60);
        Ok(Self { folder: folder.to_owned(), cases, shared, known, patience })
    }

    /// Leaves only cases whose name contains `part`.
    pub fn only(&mut self, part: &str) {
        self.cases.retain(|case| case.name.contains(part));
    }

    /// How long to wait for what a server does by and by. A minute, unless set.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    #[must_use]
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// Plays all cases. `run` makes the names of this run's objects different from other runs';
    /// servers whose answers are to be compared must be given the same.
    pub async fn play(&self, server: &dyn Server, run: &str) -> Result<BTreeMap<String, Answers>> {
        let webhooks = Webhooks::start().await.context("start the webhooks")?;
        let ground = Ground {
            server,
            webhooks: &webhooks,
            patience: self.patience,
            group: None,
            fleeting: false,
        };
        futures::stream::iter(&self.cases)
            .map(|case| async move {
                let id = id(run, &case.name);
                let answers =
                    play::play(case, &self.shared, ground, &id).await.unwrap_or_else(|error| {
                        vec![("*".to_owned(), json!({"not played": format!("{error:#}")}))]
                    });
                (case.name.clone(), answers)
            })
            .buffer_unordered(AT_ONCE)
            .map(Ok)
            .collect::<Vec<Result<_>>>()
            .await
            .into_iter()
            .collect()
    }

    pub fn record(&self, answers: &BTreeMap<String, Answers>) -> Result<()> {
        for (case, answers) in answers {
            recorded::write(&self.folder.join("recorded"), case, answers)?;
        }
        Ok(())
    }

    /// The real server's recorded answers, also to cases that no longer exist.
    pub fn recorded(&self) -> Result<BTreeMap<String, Answers>> {
        recorded::read(&self.folder.join("recorded"))
    }

    #[must_use]
    pub fn compare(
        &self,
        real: &BTreeMap<String, Answers>,
        ours: &BTreeMap<String, Answers>,
    ) -> Report {
        let none = Answers::new();
        let mut report = Report { shown_per_case: 6, ..Report::default() };
        let mut used = BTreeSet::new();
        for case in &self.cases {
            let name = &case.name;
            let real = real.get(name).unwrap_or(&none);
            let differences = if real.is_empty() {
                vec![missing(name)]
            } else {
                compare::answers(name, real, ours.get(name).unwrap_or(&none))
            };
            report.compared += 1;
            if differences.is_empty() {
                report.equal += 1;
            }
            for difference in differences {
                match self.known.iter().position(|known| known.covers(&difference)) {
                    Some(known) => {
                        used.insert(known);
                    }
                    None => report.unlisted.push(difference),
                }
            }
        }
        let played: BTreeSet<&str> = self.cases.iter().map(|case| case.name.as_str()).collect();
        report.listed = used.len();
        for (index, known) in self.known.iter().enumerate() {
            if played.contains(known.case.as_str()) && !used.contains(&index) {
                report.no_longer.push(known.clone());
            }
        }
        report
    }

    /// Entries of the list, and recorded answers, that belong to no case.
    pub fn strays(&self) -> Result<Vec<String>> {
        let names: BTreeSet<&str> = self.cases.iter().map(|case| case.name.as_str()).collect();
        let recorded = self.recorded()?;
        let listed = self.known.iter().map(|known| known.case.clone());
        Ok(listed
            .chain(recorded.into_keys())
            .filter(|name| !names.contains(name.as_str()))
            .collect())
    }
}

/// What a comparison found.
#[derive(Debug, Default)]
pub struct Report {
    pub compared: usize,
    pub equal: usize,
    /// How many entries of the list of differences were needed.
    pub listed: usize,
    pub unlisted: Vec<Difference>,
    /// Entries of the list that no longer differ.
    pub no_longer: Vec<Known>,
    /// How many differences of a case are shown.
    pub shown_per_case: usize,
}

impl Report {
    #[must_use]
    pub fn passed(&self) -> bool {
        self.unlisted.is_empty() && self.no_longer.is_empty()
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut by_case: BTreeMap<&str, Vec<&Difference>> = BTreeMap::new();
        for difference in &self.unlisted {
            by_case.entry(&difference.case).or_default().push(difference);
        }
        for differences in by_case.values() {
            for difference in differences.iter().take(self.shown_per_case) {
                writeln!(formatter, "{difference}")?;
            }
            if let Some(more) =
                differences.len().checked_sub(self.shown_per_case).filter(|more| *more > 0)
            {
                writeln!(formatter, "    … and {more} more in this case")?;
            }
        }
        if !by_case.is_empty() {
            writeln!(formatter, "cases with unlisted differences: {}", by_case.len())?;
        }
        for known in &self.no_longer {
            writeln!(
                formatter,
                "listed, but no longer different: {} step {} at {} ({})",
                known.case, known.step, known.at, known.reason
            )?;
        }
        write!(
            formatter,
            "cases compared {}, equal {}, listed differences {}",
            self.compared, self.equal, self.listed
        )
    }
}

fn missing(case: &str) -> Difference {
    Difference {
        case: case.to_owned(),
        step: "*".to_owned(),
        at: String::new(),
        real: Some(json!("not recorded: run `cargo xtask conformance --record`")),
        ours: None,
    }
}

/// Eight letters and digits, beginning with a letter: good in every kind of name, and always the
/// same length, so that no limit is met by accident.
fn id(run: &str, case: &str) -> String {
    let digest = Sha256::new().chain_update(run).chain_update([0]).chain_update(case).finalize();
    let mut id = String::from("t");
    for byte in digest.iter().take(7) {
        id.push(char::from_digit(u32::from(byte % 36), 36).unwrap_or('0'));
    }
    id
}
