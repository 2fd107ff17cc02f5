//! What a cluster itself has said of a policy: evidence that outlives whoever was watching.
//!
//! The copy of the policy in the cluster's namespace on the hub has, for each template, its last
//! messages. Only what they say outright counts: a template whose messages do not reach back far
//! enough was neither well nor ill then.

use alloc::vec::Vec;

use cleat_api::policy as api;
use jiff::{SignedDuration, Timestamp};

/// What is read from the messages of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// When it last said anything.
    pub newest: Timestamp,
    /// Whether every template is well by what was said last.
    pub well: bool,
    /// Whether the policy does not hold there, by what its copy says now.
    pub violated: bool,
    /// When it last ceased to be so, if that was said.
    pub well_until: Option<Timestamp>,
    /// When it became noncompliant, if it is.
    pub began: Option<Timestamp>,
}

/// The same message may be told twice, a little apart.
const SAME: SignedDuration = SignedDuration::from_millis(1);

/// No more messages of a template are kept.
const MOST: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Well,
    Ill,
    Neither,
}

fn word(message: &str) -> Word {
    match message.split(';').next().unwrap_or_default().trim() {
        "Compliant" => Word::Well,
        "NonCompliant" => Word::Ill,
        _ => Word::Neither,
    }
}

impl Told {
    /// Nothing where the moments of its messages are not known to less than a second.
    pub fn read(replica: &api::Policy) -> Option<Self> {
        let status = replica.status.as_ref()?;
        let details = &status.details;
        let mut lines: Vec<(Timestamp, usize, Word)> = Vec::new();
        for (template, detail) in details.iter().enumerate() {
            for line in &detail.history {
                let at = crate::policy_sync::moment(&line.event_name)?;
                lines.push((at, template, word(&line.message)));
            }
        }
        // Messages of one moment count in the order in which they are kept: the newest first.
        lines.reverse();
        lines.sort_by_key(|(at, ..)| *at);
        let newest = lines.last().map(|(at, ..)| *at)?;
        let mut words: Vec<Option<Word>> = details.iter().map(|_| None).collect();
        let (mut well, mut well_until, mut began) = (false, None, None);
        for (at, template, word) in lines {
            if let Some(last) = words.get_mut(template) {
                *last = Some(word);
            }
            let now_well = words.iter().all(|word| *word == Some(Word::Well));
            if well && !now_well {
                well_until = Some(at);
            }
            well = now_well;
            match word {
                Word::Ill => began = began.or(Some(at)),
                Word::Well | Word::Neither if well => began = None,
                Word::Well | Word::Neither => {}
            }
        }
        // The first message of a violation may have been dropped with what came before it.
        let whole = details.iter().all(|detail| detail.history.len() < MOST);
        let began = began.filter(|_| whole || well_until.is_some());
        let violated = status.compliant.as_deref() == Some("NonCompliant");
        Some(Self { newest, well, violated, well_until, began })
    }

    /// Whether it was well at some moment since then, and is so no more. While it is well, whoever
    /// tells that it is not has not heard yet.
    pub(super) fn recovered_since(&self, said: Timestamp) -> bool {
        !self.well && self.well_until.is_some_and(|until| until.duration_since(said) > SAME)
    }

    /// Whether it does not comply, and has not done so since then: whoever tells that it does is late.
    pub(super) fn persists_since(&self, said: Timestamp) -> bool {
        self.violated && !self.well && !self.recovered_since(said)
    }

    /// Whether it has said nothing since then.
    pub(super) fn is_silent_since(&self, said: Timestamp) -> bool {
        self.newest.duration_since(said) <= SAME
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use serde_json::{Value, json};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    /// For each template its messages, the newest first.
    fn read(details: &[&[(i64, &str)]]) -> Option<Told> {
        let details = details.iter().map(|lines| {
            let history = lines.iter().map(|(second, word)| {
                let event = format!("p.{:x}", at(*second).as_nanosecond());
                json!({ "message": format!("{word}; so it is"), "eventName": event })
            });
            json!({ "history": history.collect::<Vec<Value>>() })
        });
        let status = json!({ "details": details.collect::<Vec<Value>>() });
        let spec = json!({ "disabled": false, "policy-templates": [] });
        let policy = json!({ "metadata": {}, "spec": spec, "status": status });
        Told::read(&serde_json::from_value(policy).unwrap())
    }

    #[test]
    fn a_recovery_is_known_only_if_every_template_said_so() {
        let (good, bad) = ("Compliant", "NonCompliant");
        let told = read(&[&[(30, bad), (20, good), (10, bad)]]).unwrap();
        assert!(told.recovered_since(at(10)) && !told.recovered_since(at(30)));
        assert_eq!((told.began, told.newest), (Some(at(30)), at(30)));
        // One template is well while the other is not: nothing was over in between.
        let told = read(&[&[(30, good), (10, bad), (5, good)], &[(20, bad), (5, good)]]).unwrap();
        assert!(told.recovered_since(at(4)) && !told.recovered_since(at(10)));
        assert_eq!(told.began, Some(at(10)));
        // Of the second nobody knows how it was before.
        let told = read(&[&[(30, bad), (20, good), (10, bad)], &[(40, bad)]]).unwrap();
        assert!(!told.recovered_since(at(10)));
        // That it waits for something ends nothing.
        let told = read(&[&[(30, bad), (20, "Pending"), (10, bad), (5, good)]]).unwrap();
        assert!(!told.recovered_since(at(10)));
        assert_eq!(told.began, Some(at(10)));
        let told = read(&[&[(20, good), (10, bad)]]).unwrap();
        assert!(!told.recovered_since(at(10)) && told.began.is_none());
    }

    #[test]
    fn messages_that_do_not_say_when_prove_nothing() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[&[]]), None);
        let history =
            json!([{ "message": "NonCompliant; x", "lastTimestamp": "2026-01-01T00:00:00Z" }]);
        let spec = json!({ "disabled": false, "policy-templates": [] });
        let status = json!({ "details": [{ "history": history }] });
        let policy = json!({ "metadata": {}, "spec": spec, "status": status });
        assert_eq!(Told::read(&serde_json::from_value(policy).unwrap()), None);
        // What began before the oldest message kept began nobody knows when.
        let lines: Vec<(i64, &str)> =
            (0..10).rev().map(|second| (second, "NonCompliant")).collect();
        assert_eq!(read(&[&lines]).unwrap().began, None);
    }
}
