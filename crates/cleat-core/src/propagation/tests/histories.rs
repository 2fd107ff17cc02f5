//! Random lives of a policy: decisions, clusters that come and go, definitions that do, blind spots,
//! old views, crashes, meddlers. A copy is only ever deleted where somebody said so while the cluster
//! could be reached, and in the end all is as decided. Plans with one thing wrong are found out.

mod outlooks;
mod world;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::json;

use self::world::{Decision, Dice, Link, World};
use super::*;

/// How a controller works: what it plans, and whether it asks before it takes away.
#[derive(Clone, Copy)]
struct Controller {
    plan: fn(&Observed) -> Plan,
    asks: bool,
}

/// One reconcile, which dies after `budget` actions.
fn pass(world: &mut World, controller: Controller, can_ask: bool, budget: usize) {
    let mut seen = world.view();
    let mut plan = (controller.plan)(&seen);
    if removes(&plan) && controller.asks {
        seen = world.ask(seen, can_ask);
        plan = (controller.plan)(&seen);
    }
    let verdict = report(&seen, &plan, &[]);
    world.unsure_since = verdict.unsure_since;
    for action in plan.iter().flatten().take(budget) {
        world.perform(action);
    }
}

fn turn(world: &mut World, dice: &mut Dice) {
    let cluster = dice.cluster();
    match dice.roll(22) {
        0..4 => {
            let count = dice.roll(4);
            let chosen = (0..count).map(|_| dice.cluster()).collect();
            world.decide(Decision::Settled(chosen));
        }
        4 => world.decide(Decision::Blind(dice.roll(4))),
        5 => world.decide(Decision::NoPlacement),
        6 | 7 => world.link(&cluster, Link::Away),
        8 | 9 | 20 => world.link(&cluster, Link::Back),
        21 => world.restart(),
        10 => world.link(&cluster, Link::Leaving),
        11 => world.link(&cluster, Link::None),
        12 => world.severity += 1,
        13 => world.disabled = !world.disabled,
        14 => world.bound = !world.bound,
        15 => world.undefine(dice.roll(2) == 0),
        16 => world.meddle(&cluster, dice.roll(4)),
        17 => world.agent(&cluster),
        _ => world.now += 7,
    }
}

fn history(seed: u64, controller: Controller) -> Result<(), String> {
    let mut dice = Dice(seed);
    let mut world = World::new();
    world.tell();
    for step in 0..60 {
        world.now += 1;
        turn(&mut world, &mut dice);
        // A watch may lag behind, but never for ever.
        if dice.roll(3) > 0 {
            world.tell();
        }
        let can_ask = dice.roll(6) > 0;
        pass(&mut world, controller, can_ask, dice.roll(4));
        if let Some(complaint) = world.complaints.first() {
            return Err(format!("step {step}: {complaint}"));
        }
    }
    world.quiet();
    for _ in 0..20 {
        world.now += 20;
        (0..5).for_each(|index| world.agent(&world::name(index)));
        world.tell();
        pass(&mut world, controller, true, usize::MAX);
        if let Some(complaint) = world.complaints.first() {
            return Err(format!("in the end: {complaint}"));
        }
    }
    world.check_end()
}

const SOUND: Controller = Controller { plan, asks: true };

#[test]
fn lives_end_well() {
    for seed in 0..400 {
        if let Err(complaint) = history(seed, SOUND) {
            panic!("seed {seed}: {complaint}");
        }
    }
}

fn decided_as(seen: &Observed, change: impl Fn(&Decided) -> Option<Decided>) -> Observed {
    let each = seen.decided.iter();
    let decided =
        each.map(|(source, at)| (source.clone(), change(at).unwrap_or_else(|| at.clone())));
    Observed { decided: decided.collect(), ..seen.clone() }
}

fn clusters_as(seen: &Observed, change: impl Fn(&mut Cluster)) -> Observed {
    let mut seen = seen.clone();
    for cluster in seen.clusters.values_mut() {
        let mut changed = Cluster::clone(cluster);
        change(&mut changed);
        *cluster = Arc::new(changed);
    }
    seen
}

fn writes_as(mut plan: Plan, change: impl Fn(&mut Write)) -> Plan {
    plan.iter_mut().flatten().for_each(|action| change(&mut action.write));
    plan
}

fn without(mut plan: Plan, drops: impl Fn(&Write) -> bool) -> Plan {
    plan.iter_mut().for_each(|step| step.retain(|action| !drops(&action.write)));
    plan.retain(|step| !step.is_empty());
    plan
}

fn asking(plan: fn(&Observed) -> Plan) -> Controller {
    Controller { plan, asks: true }
}

/// Controllers with one thing wrong each.
fn faults() -> Vec<(&'static str, Controller)> {
    [
        ("takes away what a watch says, without asking", Controller { plan, asks: false }),
        (
            "a decision that cannot be read counts as empty",
            asking(|seen| {
                plan(&decided_as(seen, |at| (*at == Decided::Unknown).then(|| settled(&[]))))
            }),
        ),
        (
            "a placement that has not decided chose nobody",
            asking(|seen| {
                plan(&decided_as(seen, |at| (*at == Decided::Undecided).then(|| settled(&[]))))
            }),
        ),
        (
            "half written decisions count as whole",
            asking(|seen| {
                plan(&decided_as(seen, |at| match at {
                    Decided::Unsettled { listed, .. } => Some(Decided::Settled(listed.clone())),
                    _ => None,
                }))
            }),
        ),
        (
            "a decision that was not looked at chose nobody",
            asking(|seen| {
                let mut seen = seen.clone();
                let source = Source::Placement("all".into());
                seen.decided.entry(source).or_insert_with(|| settled(&[]));
                plan(&seen)
            }),
        ),
        (
            "a cluster out of reach is like any other",
            asking(|seen| {
                plan(&clusters_as(seen, |cluster| {
                    (cluster.object, cluster.taints) = (json!({}), vec![]);
                }))
            }),
        ),
        (
            "clocks of clusters are believed",
            asking(|seen| plan(&Observed { sightings: Sightings::default(), ..seen.clone() })),
        ),
        (
            "ten seconds are enough for a return to be noticed",
            asking(|seen| {
                let mut seen = seen.clone();
                seen.sightings.looked.clear();
                plan(&seen)
            }),
        ),
        (
            "a placement that was ever decided knows of every return",
            asking(|seen| {
                let mut seen = seen.clone();
                seen.sightings.away.clear();
                plan(&seen)
            }),
        ),
        (
            "a hub that begins knows what it decided before",
            asking(|seen| {
                let mut seen = seen.clone();
                let (now, looked) = (seen.now, &mut seen.sightings.looked);
                looked.values_mut().for_each(|one| *one = one.or(Some(now)));
                plan(&seen)
            }),
        ),
        (
            "a cluster that leaves is like any other",
            asking(|seen| plan(&clusters_as(seen, |cluster| cluster.deleting = false))),
        ),
        (
            "every namespace is that of a cluster",
            asking(|seen| {
                let mut seen = seen.clone();
                for name in seen.replicas.keys() {
                    let some = || Arc::new(Cluster { name: name.clone(), ..Cluster::default() });
                    seen.clusters.entry(name.clone()).or_insert_with(some);
                }
                plan(&seen)
            }),
        ),
        (
            "to ask in vain is to be told that all is well",
            asking(|seen| {
                let mut seen = seen.clone();
                if matches!(seen.asked, Asked::Failed(_)) {
                    seen.asked = Asked::NotYet;
                }
                plan(&seen)
            }),
        ),
        (
            "what went with its definition was taken away",
            asking(|seen| plan(&Observed { asked: Asked::NotYet, ..seen.clone() })),
        ),
        (
            "deletes whatever has the name",
            asking(|seen| {
                writes_as(plan(seen), |write| {
                    if let Write::Delete { uid, resource_version, .. } = write {
                        (*uid, *resource_version) = (String::new(), None);
                    }
                })
            }),
        ),
        (
            "takes others' finalizers off",
            asking(|seen| {
                writes_as(plan(seen), |write| {
                    if let Write::Replace(object) = write {
                        object["metadata"]["finalizers"] = json!([]);
                    }
                })
            }),
        ),
        (
            "clusters that leave the decision keep their copies",
            asking(|seen| without(plan(seen), |write| matches!(write, Write::Delete { .. }))),
        ),
        (
            "copies stay as they were made",
            asking(|seen| without(plan(seen), |write| matches!(write, Write::Replace(_)))),
        ),
        (
            "copies are made where there is no cluster",
            asking(|seen| {
                let mut seen = seen.clone();
                for index in 0..5 {
                    let name = world::name(index);
                    let some = || Arc::new(Cluster { name: name.clone(), ..Cluster::default() });
                    seen.clusters.entry(name.clone()).or_insert_with(some);
                }
                plan(&seen)
            }),
        ),
    ]
    .into()
}

#[test]
fn every_planted_fault_is_noticed() {
    for (fault, controller) in faults() {
        let noticed =
            (0..3_000).find_map(|seed| history(seed, controller).err().map(|why| (seed, why)));
        let Some((seed, why)) = noticed else { panic!("nobody noticed that {fault}") };
        std::println!("{fault}: noticed by seed {seed}, {why}");
    }
}
