//! Limits, retries, delays and recoveries together. What may be made when is not in the proposal, so
//! this holds what users are promised against what happened, violation by violation.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::policyautomation::condition as kind;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::super::*;
use super::world::{Brain, Dice, Ended, Luck, SOUND, World};
use crate::condition::find;

/// What the automation asks for.
struct Wish {
    most: usize,
    pace: usize,
    delay: i64,
    limit: usize,
    retry: i64,
}

/// One violation of one cluster.
type Violation = (String, u32);

/// What became of a job.
struct Run {
    at: Timestamp,
    of: Vec<Violation>,
    /// When it ended, and whether it failed.
    ended: Option<(Timestamp, bool)>,
}

struct Play {
    dice: Dice,
    brain: Brain,
    wish: Wish,
    world: World,
    /// Which violation each cluster is in, or was in last, and whether it lasts.
    clusters: BTreeMap<String, (u32, bool)>,
    runs: Vec<Run>,
    deaths: usize,
}

fn whole(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap()
}

fn after(at: Timestamp, seconds: i64) -> Timestamp {
    whole(at) + SignedDuration::from_secs(seconds)
}

impl Play {
    fn new(seed: u64, brain: Brain) -> Self {
        let mut dice = Dice(seed);
        let wish = Wish {
            most: 1 + dice.roll(4),
            pace: 1 + dice.roll(4),
            delay: [0, 0, 30, 90][dice.roll(4)],
            limit: dice.roll(3),
            retry: [0, 10, 60, 100][dice.roll(4)],
        };
        let world = World::new(
            "2026-01-01T00:00:00Z".parse().unwrap(),
            json!({
                "apiVersion": "policy.open-cluster-management.io/v1beta1",
                "kind": "PolicyAutomation",
                "metadata": { "name": "ticket" },
                "spec": {
                    "mode": "everyEvent", "policyRef": "p", "delayAfterRunSeconds": wish.delay,
                    "maxClustersPerJob": wish.most, "maxJobsPerMinute": wish.pace,
                    "retry": { "limit": wish.limit, "delaySeconds": wish.retry },
                    "automationDef": { "name": "Demo", "secret": "s" },
                },
            }),
        );
        let (clusters, runs) = (BTreeMap::new(), Vec::new());
        Self { dice, brain, wish, world, clusters, runs, deaths: 0 }
    }

    fn stands(&mut self, name: &str, bad: bool, watched: bool) {
        let word = if bad { "NonCompliant" } else { "Compliant" };
        self.world.stands(name, Some(word), watched);
        let (number, lasts) = self.clusters.entry(name.into()).or_default();
        *number += u32::from(bad && !*lasts);
        *lasts = bad;
    }

    /// One that has not ended does, if there is any.
    fn end_one(&mut self, failed: bool) {
        let open = self.runs.iter().enumerate().filter(|(_, run)| run.ended.is_none());
        let open: Vec<usize> = open.map(|(index, _)| index).collect();
        if open.is_empty() {
            return;
        }
        let index = open[self.dice.roll(open.len())];
        let name = self.world.made_as[index].0.clone();
        self.world.end_job(&name, if failed { "failed" } else { "successful" });
        self.runs[index].ended = Some((self.world.now, failed));
    }

    fn happens(&mut self) {
        for _ in 0..1 + self.dice.roll(2) {
            let name = format!("c{}", self.dice.roll(6));
            let watched = self.dice.roll(4) > 0;
            match self.dice.roll(8) {
                0..=2 => self.stands(&name, true, watched),
                3 | 4 => self.stands(&name, false, watched),
                5 | 6 => {
                    let failed = self.dice.roll(3) > 0;
                    self.end_one(failed);
                }
                _ => self.world.reap(),
            }
            if !watched {
                self.world.die();
            }
        }
    }

    /// Passes until one ends well.
    fn look(&mut self) -> Result<Option<Timestamp>, String> {
        loop {
            let Self { world, dice, brain, deaths, .. } = self;
            let ended = world.pass(*brain, || match dice.roll(12) {
                0 if *deaths < 100 => Luck::DiesBefore,
                1 if *deaths < 100 => Luck::DiesAfter,
                2 => Luck::Meddled,
                _ => Luck::Good,
            });
            self.judge_jobs()?;
            match ended {
                Ended::Died => self.deaths += 1,
                Ended::Well(wake) => return Ok(wake),
            }
        }
    }

    fn runs_of(&self, violation: &Violation) -> Vec<&Run> {
        self.runs.iter().filter(|run| run.of.contains(violation)).collect()
    }

    /// When the next job for that violation may be made; never, if there is to be none.
    fn due(&self, violation: &Violation) -> Option<Timestamp> {
        let runs = self.runs_of(violation);
        if let Some(last) = runs.last() {
            let (at, failed) = last.ended?;
            let again = failed && runs.len() <= self.wish.limit;
            return again.then(|| after(at, self.wish.retry));
        }
        let mut before = self.runs.iter().rev();
        let before = before.find(|run| run.of.iter().any(|(name, _)| *name == violation.0));
        Some(before.map_or(Timestamp::MIN, |run| after(run.at, self.wish.delay)))
    }

    fn judge_jobs(&mut self) -> Result<(), String> {
        for index in self.runs.len()..self.world.made.len() {
            let job = self.world.made[index].clone();
            let at = self.world.made_as[index].1;
            if job.clusters.len() > self.wish.most || job.clusters.is_empty() {
                return Err(format!("a job for {:?}", job.clusters));
            }
            let mut of = Vec::new();
            for name in job.clusters {
                let (number, lasts) = self.clusters[&name];
                if !lasts {
                    return Err(format!("a job for {name}, which complies"));
                }
                let violation = (name, number);
                match self.due(&violation) {
                    None => return Err(format!("a job too many for {violation:?}")),
                    Some(due) if at < due => {
                        return Err(format!("a job for {violation:?} at {at}, before {due}"));
                    }
                    Some(_) => of.push(violation),
                }
            }
            self.runs.push(Run { at, of, ended: None });
            if let Some(first) = index.checked_sub(self.wish.pace) {
                let span = at.duration_since(self.runs[first].at);
                if span < SignedDuration::from_secs(60) {
                    return Err(format!("too many jobs in {span:?}"));
                }
            }
        }
        Ok(())
    }

    /// After a look, what is due and was not made is held back, and users can see it.
    fn judge_rest(&self, wake: Option<Timestamp>) -> Result<(), String> {
        let lasting = self.clusters.iter().filter(|(_, (_, lasts))| *lasts);
        let lasting = lasting.map(|(name, (number, _))| (name.clone(), *number));
        let now = self.world.now;
        let mut due: Vec<String> = Vec::new();
        for violation in lasting {
            match self.due(&violation) {
                Some(at) if at <= now => due.push(violation.0),
                // What is due later is not forgotten.
                Some(at) if wake.is_none_or(|wake| wake > at) => {
                    return Err(format!("{violation:?} is due at {at}, but nobody looks then"));
                }
                _ => {}
            }
        }
        let status = self.world.status();
        let said = find(&status.conditions, kind::HELD_BACK);
        let message = said.filter(|one| one.status == "True").map(|one| one.message.clone());
        let expected = (!due.is_empty()).then(|| {
            let more = due.len().saturating_sub(3);
            let names = due.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let (count, pace) = (due.len(), self.wish.pace);
            format!("{count} clusters wait for jobs, as maxJobsPerMinute is {pace}: {names}{more}")
        });
        if message != expected {
            return Err(format!("held back: {message:?}, but {expected:?}"));
        }
        if !due.is_empty() && wake.is_none() {
            return Err(format!("{due:?} are held back, and nobody looks again"));
        }
        Ok(())
    }

    fn play(mut self) -> Result<usize, String> {
        for _ in 0..50 {
            self.happens();
            let wake = self.look()?;
            self.judge_rest(wake)?;
            let gap = [0, 1, 9, 15, 40, 61][self.dice.roll(6)];
            let soon = self.world.now + SignedDuration::from_secs(gap);
            self.world.now = wake.map_or(soon, |wake| wake.min(soon)).max(self.world.now);
        }
        // From now on, only jobs end, and somebody looks only when they are told to.
        for _ in 0..300 {
            let failed = self.dice.roll(2) == 0;
            let open = self.runs.iter().any(|run| run.ended.is_none());
            self.end_one(failed);
            let wake = self.look()?;
            self.judge_rest(wake)?;
            match wake {
                Some(wake) => self.world.now = wake.max(self.world.now),
                None if !open => break,
                None => {}
            }
        }
        for (name, (number, lasts)) in &self.clusters {
            let violation = (name.clone(), *number);
            if *lasts && self.due(&violation).is_some() {
                return Err(format!("{violation:?} never had the job that it was due"));
            }
        }
        let status = self.world.status();
        if !status.pending_jobs.is_empty() || !status.waiting_clusters.is_empty() {
            return Err("something is left to be done".into());
        }
        Ok(self.runs.len())
    }
}

#[test]
fn limits_and_retries_hold_whatever_clusters_and_jobs_do() {
    let mut jobs = 0;
    for seed in 0..300 {
        match Play::new(seed, SOUND).play() {
            Ok(made) => jobs += made,
            Err(why) => panic!("seed {seed}: {why}"),
        }
    }
    std::println!("300 histories with limits and retries: {jobs} jobs, none too many or too few");
}

fn with(seen: &Observed, change: impl FnOnce(&mut Observed)) -> Observed {
    let mut seen = seen.clone();
    change(&mut seen);
    seen
}

const FAULTS: [(&str, Brain); 5] = [
    (
        "the pace is not kept",
        Brain {
            plan: |seen| {
                plan(&with(seen, |seen| seen.automation.spec.max_jobs_per_minute = Some(60)))
            },
            ..SOUND
        },
    ),
    (
        "jobs are too big",
        Brain {
            plan: |seen| plan(&with(seen, |seen| seen.automation.spec.max_clusters_per_job = None)),
            ..SOUND
        },
    ),
    (
        "one retry too many",
        Brain {
            plan: |seen| {
                plan(&with(seen, |seen| {
                    if let Some(retry) = &mut seen.automation.spec.retry {
                        retry.limit += 1;
                    }
                }))
            },
            ..SOUND
        },
    ),
    (
        "retries do not wait",
        Brain {
            plan: |seen| {
                plan(&with(seen, |seen| {
                    if let Some(retry) = &mut seen.automation.spec.retry {
                        retry.delay_seconds = Some(0);
                    }
                }))
            },
            ..SOUND
        },
    ),
    (
        "nobody looks when a retry is due",
        Brain {
            report: |seen| report(&with(seen, |seen| seen.automation.spec.retry = None)),
            ..SOUND
        },
    ),
];

#[test]
fn every_planted_fault_of_limits_and_retries_is_noticed() {
    for (fault, brain) in FAULTS {
        let noticed = (0..200).find_map(|seed| Play::new(seed, brain).play().err());
        let Some(why) = noticed else { panic!("nobody noticed that {fault}") };
        std::println!("{fault}: {why}");
    }
}
