//! Whatever clusters do, and wherever the process dies, the jobs are those that the oracle names.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::super::*;
use super::oracle::{Change, Oracle, State};
use super::world::{Brain, Dice, Ended, Luck, Made, SOUND, World};

const HISTORIES: u64 = 2000;

/// How long nothing happens, in milliseconds.
const GAPS: [i64; 8] = [100, 100, 300, 1_000, 3_000, 20_000, 61_000, 650_000];

#[derive(Default)]
struct Tally {
    changes: usize,
    jobs: usize,
    deaths: usize,
}

struct History {
    dice: Dice,
    world: World,
    oracle: Oracle,
    expected: Vec<Made>,
    wake: Option<Timestamp>,
    brain: Brain,
    names: Vec<String>,
    /// The mode is everyEvent from the beginning to the end.
    steady: bool,
    tally: Tally,
}

fn automation(mode: &str, delay: i64) -> Value {
    json!({
        "apiVersion": "policy.open-cluster-management.io/v1beta1",
        "kind": "PolicyAutomation",
        "metadata": { "name": "ticket" },
        "spec": {
            "mode": mode, "policyRef": "p", "delayAfterRunSeconds": delay,
            "automationDef": { "name": "Demo", "secret": "s" },
        },
    })
}

fn begin() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

impl History {
    fn new(seed: u64, brain: Brain) -> Self {
        let mut dice = Dice(seed);
        let delay = [0, 0, 2, 30, 600][dice.roll(5)];
        let steady = dice.roll(2) == 0;
        let mode = match steady {
            true => "everyEvent",
            false => ["once", "everyEvent", "disabled"][dice.roll(3)],
        };
        let mut world = World::new(begin(), automation(mode, delay));
        world.tick = SignedDuration::from_micros(10);
        world.reaps = dice.roll(4) == 0;
        let clusters = [1, 1, 2, 2, 3, 3, 4, 5, 8, 40][dice.roll(10)];
        Self {
            oracle: Oracle::new(mode, delay),
            names: (0..clusters).map(|number| format!("c{number:02}")).collect(),
            expected: Vec::new(),
            wake: None,
            tally: Tally::default(),
            dice,
            world,
            brain,
            steady,
        }
    }

    fn change(&mut self) -> Change {
        let Self { dice, names, .. } = self;
        let name = names[dice.roll(names.len())].clone();
        match dice.roll(if self.steady { 20 } else { 26 }) {
            0..=8 => Change::Stands(name, State::NonCompliant),
            9..=15 => Change::Stands(name, State::Compliant),
            16 => Change::Stands(name, State::Pending),
            17 => Change::Stands(name, State::Unknown),
            18 => Change::Stands(name, State::Gone),
            19 | 20 => Change::Rerun,
            21 => Change::Disable(!self.is_disabled()),
            22 => Change::Mode("once"),
            23 => Change::Mode("disabled"),
            _ => Change::Mode("everyEvent"),
        }
    }

    fn is_disabled(&self) -> bool {
        self.world.policy["spec"]["disabled"] == true
    }

    fn apply(&mut self, change: &Change, watched: bool) {
        self.tally.changes += 1;
        match change {
            Change::Mode(mode) => self.world.edit(json!({ "spec": { "mode": mode } })),
            Change::Rerun => {
                let annotations = json!({ cleat_api::policyautomation::RERUN: "true" });
                self.world.edit(json!({ "metadata": { "annotations": annotations } }));
            }
            Change::Disable(disabled) => self.world.change_policy(
                |policy| {
                    policy["spec"]["disabled"] = json!(disabled);
                    policy["status"]["status"] = json!([]);
                },
                watched,
            ),
            // A policy that is disabled is on no cluster.
            Change::Stands(..) if self.is_disabled() => {}
            Change::Stands(name, state) => {
                let compliant = match state {
                    State::NonCompliant => Some("NonCompliant"),
                    State::Compliant => Some("Compliant"),
                    State::Pending => Some("Pending"),
                    State::Unknown => Some(""),
                    State::Gone => None,
                };
                self.world.stands(name, compliant, watched);
            }
        }
    }

    fn told(&mut self, change: &Change) {
        if !(self.oracle.is_disabled() && matches!(change, Change::Stands(..))) {
            let second = self.world.now.as_second();
            self.oracle.change(change, second);
        }
    }

    /// A change that leaves a trace on the cluster, or in the automation, whoever looks.
    fn lasting_change(&mut self) -> Change {
        loop {
            match self.change() {
                Change::Stands(_, State::Gone) | Change::Disable(_) => {}
                change => return change,
            }
        }
    }

    /// Passes until one ends well.
    fn look(&mut self, mortal: bool) {
        let second = self.world.now.as_second();
        let mut deaths = 0;
        loop {
            let Self { world, dice, brain, .. } = self;
            let ended = world.pass(*brain, || match dice.roll(7) {
                0 if mortal && deaths < 20 => Luck::DiesBefore,
                1 if mortal && deaths < 20 => Luck::DiesAfter,
                2 => Luck::Meddled,
                _ => Luck::Good,
            });
            match ended {
                Ended::Died => deaths += 1,
                Ended::Well(wake) => {
                    self.wake = wake;
                    break;
                }
            }
        }
        self.tally.deaths += deaths;
        self.expected.extend(self.oracle.jobs(second));
    }

    /// Everything that happens by itself until then.
    fn until(&mut self, then: Timestamp) {
        loop {
            let alarm = self.oracle.alarm(self.world.now.as_second());
            let alarm = alarm.map(|second| Timestamp::from_second(second).unwrap());
            let Some(next) = [self.wake, alarm].into_iter().flatten().min() else { break };
            if next > then {
                break;
            }
            // An alarm that nobody but the oracle has set is not heard.
            let heard = self.wake.is_some_and(|wake| wake <= next);
            self.world.now = next.max(self.world.now);
            if heard {
                self.look(true);
            } else {
                self.expected.extend(self.oracle.jobs(next.as_second()));
            }
            if self.expected != self.world.made {
                break;
            }
        }
        self.world.now = then;
    }

    fn step(&mut self, at: Timestamp) {
        self.until(at);
        let count = 1 + self.dice.roll(3);
        let mut hinted = false;
        let watched = match self.dice.roll(6) {
            // Several changes before the next look, heard by a process that may die before it has
            // written down anything of them.
            0 => true,
            // Or while the process is not there.
            1 => {
                self.world.die();
                false
            }
            // Or the policy shows only the last of them.
            2 => {
                hinted = true;
                false
            }
            // What no cluster tells of is lost with whoever heard it.
            3 => {
                for _ in 0..count {
                    let change = self.change();
                    self.apply(&change, true);
                    self.told(&change);
                }
                return self.look(false);
            }
            // Unless it is the current state.
            _ => {
                let change = self.change();
                self.apply(&change, true);
                self.told(&change);
                return self.look(true);
            }
        };
        for _ in 0..count {
            let change = self.lasting_change();
            self.apply(&change, watched);
            if let (true, Change::Stands(name, State::Compliant)) = (hinted, &change) {
                self.world.hints.insert(name.clone());
            }
            self.told(&change);
        }
        self.look(true);
    }

    fn check(&self) -> Result<(), String> {
        let Self { world, oracle, expected, .. } = self;
        if world.made != *expected {
            let at = world.made.iter().zip(expected).take_while(|(one, other)| one == other);
            let at = at.count();
            let [made, expected] = [&world.made, expected].map(|all| all.get(at));
            return Err(format!("job {at} is {made:?}, expected {expected:?}"));
        }
        let status = world.status();
        if world.automation["spec"]["mode"] != oracle.mode() {
            return Err(format!("the mode is not {}", oracle.mode()));
        }
        if world.parsed().metadata.annotations.iter().any(|all| all.contains_key(RERUN)) {
            return Err("the wish for a rerun is still there".into());
        }
        if !status.pending_jobs.is_empty() || !status.waiting_clusters.is_empty() {
            return Err("something is left to be done".into());
        }
        // Who was noncompliant between two looks only, and is unclear since, may be held or not.
        let entries = status.clusters_with_event.keys().filter(|name| !oracle.is_unclear(name));
        let entries: Vec<String> = entries.cloned().collect();
        let wanted = oracle.entries();
        if self.steady && entries != wanted {
            return Err(format!("entries {entries:?}, wanted {wanted:?}"));
        }
        for (name, entry) in &status.clusters_with_event {
            let newer = entry.event_time > entry.automation_start_time;
            if newer && entry.since_run.is_none() {
                return Err(format!("{name} became noncompliant after its job"));
            }
        }
        Ok(())
    }

    fn play(mut self) -> Result<Tally, String> {
        self.look(true);
        let mut at = begin();
        for step in 0..40 {
            at += SignedDuration::from_millis(GAPS[self.dice.roll(GAPS.len())]);
            self.step(at);
            self.check().map_err(|why| format!("step {step}: {why}"))?;
        }
        let end = at + SignedDuration::from_secs(2000);
        self.until(end);
        self.check().map_err(|why| format!("at the end: {why}"))?;
        self.tally.jobs = self.world.made.len();
        Ok(self.tally)
    }
}

fn play_all(seeds: core::ops::Range<u64>) {
    let mut sum = Tally::default();
    for seed in seeds.clone() {
        match History::new(seed, SOUND).play() {
            Ok(Tally { changes, jobs, deaths }) => {
                sum.changes += changes;
                sum.jobs += jobs;
                sum.deaths += deaths;
            }
            Err(why) => panic!("seed {seed}: {why}"),
        }
    }
    std::println!(
        "{} histories: {} changes, {} jobs, {} deaths of the process, no job too many or too few",
        seeds.end - seeds.start,
        sum.changes,
        sum.jobs,
        sum.deaths
    );
}

#[test]
fn the_jobs_of_every_history_are_those_the_oracle_names() {
    play_all(0..HISTORIES / 2);
}

/// The other half, so that two processors share the time.
#[test]
fn the_jobs_of_every_other_history_are_those_the_oracle_names() {
    play_all(HISTORIES / 2..HISTORIES);
}

fn with_policy(seen: &Observed, change: impl FnOnce(&mut Policy)) -> Observed {
    let mut seen = seen.clone();
    if let Sight::Present(policy) = &mut seen.policy {
        change(policy);
    }
    seen
}

fn with_status(seen: &Observed, change: impl FnOnce(&mut PolicyAutomationStatus)) -> Observed {
    let mut seen = seen.clone();
    change(seen.automation.status.get_or_insert_default());
    seen
}

fn with_spec(seen: &Observed, change: impl FnOnce(&mut Observed)) -> Observed {
    let mut seen = seen.clone();
    change(&mut seen);
    seen
}

fn without(mut plan: Plan, drops: impl Fn(&Action) -> bool) -> Plan {
    plan.iter_mut().for_each(|step| step.retain(|action| !drops(action)));
    plan.retain(|step| !step.is_empty());
    plan
}

/// A plan, or a report, with one thing wrong.
const FAULTS: [(&str, Brain); 14] = [
    (
        "jobs get new names each time",
        Brain {
            plan: |seen| {
                let mut plan = plan(seen);
                for action in plan.iter_mut().flatten() {
                    if let Write::Create(object) = &mut action.write {
                        let name = format!("ticket-everyevent-{}", seen.now.as_microsecond());
                        object["metadata"]["name"] = json!(name);
                        action.target.id.name = name;
                    }
                }
                plan
            },
            ..SOUND
        },
    ),
    (
        "jobs are decided anew after a crash",
        Brain {
            plan: |seen| {
                let pending = unsettled(&seen.automation);
                let made = |name: &String| matches!(seen.sighting(name), Sighting::Present(_));
                // Now and then the job that was decided on is not looked for.
                if pending.iter().any(made) && seen.now.as_microsecond() % 3 == 0 {
                    return plan(&with_status(seen, |status| {
                        status.pending_jobs.clear();
                        status.jobs_decided = Some(status.jobs_decided.unwrap_or_default() + 7);
                    }));
                }
                plan(seen)
            },
            ..SOUND
        },
    ),
    (
        "that nobody knows counts as complying",
        Brain {
            plan: |seen| {
                plan(&with_policy(seen, |policy| {
                    for cluster in policy.clusters.values_mut() {
                        if cluster.compliance == Compliance::Unclear {
                            cluster.compliance = Compliance::Compliant;
                        }
                    }
                }))
            },
            ..SOUND
        },
    ),
    (
        "a cluster that left counts as unknown",
        Brain { plan: |seen| plan(&with_policy(seen, |policy| policy.told = false)), ..SOUND },
    ),
    (
        "the delay is not kept",
        Brain {
            plan: |seen| {
                plan(&with_spec(seen, |seen| seen.automation.spec.delay_after_run_seconds = None))
            },
            ..SOUND
        },
    ),
    (
        "the delay is a second too long",
        Brain {
            plan: |seen| {
                plan(&with_spec(seen, |seen| {
                    let delay = &mut seen.automation.spec.delay_after_run_seconds;
                    *delay = delay.map(|delay| if delay > 0 { delay + 1 } else { 0 });
                }))
            },
            ..SOUND
        },
    ),
    (
        "what was glimpsed between two looks is forgotten",
        Brain { plan: |seen| plan(&with_spec(seen, |seen| seen.glimpses.clear())), ..SOUND },
    ),
    (
        "clusters are not asked what nobody heard",
        Brain { plan: |seen| plan(&with_spec(seen, |seen| seen.told.clear())), ..SOUND },
    ),
    (
        "a recovery is known by whole seconds only",
        Brain {
            plan: |seen| {
                plan(&with_status(seen, |status| {
                    status
                        .clusters_with_event
                        .values_mut()
                        .for_each(|entry| entry.since_run = None);
                }))
            },
            ..SOUND
        },
    ),
    (
        "once stays once",
        Brain {
            plan: |seen| {
                without(
                    plan(seen),
                    |action| matches!(&action.write, Write::Merge(patch) if patch.get("spec").is_some()),
                )
            },
            ..SOUND
        },
    ),
    (
        "the wish for a rerun is not taken away",
        Brain {
            plan: |seen| {
                without(plan(seen), |action| {
                    matches!(&action.write, Write::Merge(patch)
                    if patch.pointer("/metadata/annotations").is_some())
                })
            },
            ..SOUND
        },
    ),
    (
        "a rerun counts for nobody",
        Brain {
            plan: |seen| {
                plan(&with_status(seen, |status| {
                    for job in status.pending_jobs.iter_mut().filter(|job| job.mode == MANUAL) {
                        job.clusters.clear();
                    }
                }))
            },
            ..SOUND
        },
    ),
    (
        "nobody looks when a delay ends",
        Brain { report: |seen| Verdict { wake: None, ..report(seen) }, ..SOUND },
    ),
    (
        "entries stay for ever",
        Brain {
            plan: |seen| {
                let mut plan = plan(seen);
                for action in plan.iter_mut().flatten() {
                    if let Write::MergeStatus(patch) = &mut action.write
                        && let Some(entries) = patch["status"]["clustersWithEvent"].as_object_mut()
                    {
                        entries.retain(|_, entry| !entry.is_null());
                    }
                }
                plan
            },
            ..SOUND
        },
    ),
];

#[test]
fn every_planted_fault_is_noticed() {
    for (fault, brain) in FAULTS {
        let noticed =
            (0..400).find_map(|seed| History::new(seed, brain).play().err().map(|why| (seed, why)));
        let Some((seed, why)) = noticed else { panic!("nobody noticed that {fault}") };
        std::println!("{fault}: noticed by seed {seed}, {why}");
    }
}

/// What is deleted before it was noted is made again.
#[test]
fn a_runner_that_deletes_what_nobody_noted_is_noticed() {
    let noticed = (0..400).find_map(|seed| {
        let mut history = History::new(seed, SOUND);
        (history.world.reaps, history.world.careless) = (true, true);
        history.play().err()
    });
    assert!(noticed.unwrap().contains("job"));
}

/// Answers that do not come, and noes: the same jobs, only later.
#[test]
fn no_lost_answer_makes_a_job_too_many_or_too_few() {
    for seed in 0..200 {
        let mut dice = Dice(seed);
        let mut world = World::new(begin(), automation("everyEvent", 0));
        let mut oracle = Oracle::new("everyEvent", 0);
        let mut expected: Vec<Made> = Vec::new();
        for step in 0..25 {
            let name = format!("c{}", dice.roll(4));
            let (state, word) = match dice.roll(2) {
                0 => (State::NonCompliant, "NonCompliant"),
                _ => (State::Compliant, "Compliant"),
            };
            world.stands(&name, Some(word), true);
            oracle.change(&Change::Stands(name, state), 0);
            expected.extend(oracle.jobs(0));
            let mut troubles = 0;
            loop {
                let ended = world.pass(SOUND, || {
                    troubles += 1;
                    match dice.roll(if troubles < 15 { 9 } else { 1 }) {
                        1 => Luck::LostBefore,
                        2 => Luck::LostAfter,
                        3 => Luck::Refused,
                        4 => Luck::DiesBefore,
                        5 => Luck::DiesAfter,
                        6 => Luck::Meddled,
                        _ => Luck::Good,
                    }
                });
                match ended {
                    Ended::Died => {}
                    Ended::Well(Some(wake)) => world.now = wake,
                    Ended::Well(None) => break,
                }
                assert!(troubles < 1000, "seed {seed}, step {step}: never ends");
            }
            let targets = |all: &[Made]| -> Vec<Vec<String>> {
                all.iter().map(|job| job.clusters.clone()).collect()
            };
            assert_eq!(targets(&world.made), targets(&expected), "seed {seed}, step {step}");
            world.now += SignedDuration::from_secs(100);
        }
    }
}
