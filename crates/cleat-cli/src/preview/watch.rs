//! Looking again and again: what was foreseen is shown whenever it is something else.

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use cleat_api::removalpreview::PreviewedObject;
use kube::Client;
use tokio::time::MissedTickBehavior;

use super::ask::{Foreseen, Patience, retract};
use super::{Args, Subject, Verb, ask, print, subject};
use crate::Refused;

/// How long at least from one look to the next.
const PAUSE: Duration = Duration::from_secs(5);

/// Looks until somebody interrupts it.
pub(super) async fn watch(args: &Args, hub_client: &Client, usual: &str) -> Result<()> {
    if let Verb::Apply { plan: Some(_), .. } = &args.verb {
        let hint = "--plan compares once, and --watch looks again and again; choose one";
        return Err(Refused(hint.to_owned()).into());
    }
    let screen = std::io::stdout().is_terminal() && args.output.is_none();
    let looking = looks(args, hub_client, usual, |foreseen| {
        if screen {
            print!("\u{1b}[H\u{1b}[2J");
        }
        print(args, foreseen)
    });
    tokio::select! {
        ended = looking => ended,
        interrupted = tokio::signal::ctrl_c() => interrupted.context("wait for the end"),
    }
}

async fn looks(
    args: &Args,
    hub_client: &Client,
    usual: &str,
    mut show: impl FnMut(&Foreseen) -> Result<()>,
) -> Result<()> {
    let patience = Patience::typed(args.timeout);
    let mut pause = tokio::time::interval(PAUSE);
    pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut subject = subject(args, usual)?.placed(hub_client).await?;
    let mut shown: Option<Foreseen> = None;
    let mut told = String::new();
    loop {
        pause.tick().await;
        // A file may be another by now; what came by standard input is read once.
        if shown.is_some() && !args.reads_standard_input() {
            match reread(args, hub_client, usual).await {
                Ok(now) => subject = now,
                // Somebody is writing it just now, perhaps.
                Err(error) => {
                    tell_once(&mut told, &error);
                    continue;
                }
            }
        }
        let foreseen = match ask(hub_client, &subject, patience).await {
            Ok(foreseen) => foreseen,
            Err(error) if shown.is_some() => {
                tell_once(&mut told, &error);
                continue;
            }
            Err(error) => return Err(error).with_context(|| subject.purpose()),
        };
        match &shown {
            // Only the last of several questions that were answered the same is of use to anybody.
            Some(before) if is_same(before, &foreseen) && told.is_empty() => {
                retract(hub_client, &before.asked).await;
            }
            _ => show(&foreseen)?,
        }
        told.clear();
        shown = Some(foreseen);
    }
}

async fn reread(args: &Args, hub_client: &Client, usual: &str) -> Result<Subject> {
    subject(args, usual)?.placed(hub_client).await
}

/// It may be over in a moment, and it is told once until then.
fn tell_once(told: &mut String, error: &anyhow::Error) {
    let says = format!("{error:#}");
    if says != *told {
        eprintln!("{says}");
        *told = says;
    }
}

/// Whether somebody would read the same, but for how long something lasts.
fn is_same(before: &Foreseen, now: &Foreseen) -> bool {
    before.plan == now.plan && rows(before) == rows(now)
}

fn rows(foreseen: &Foreseen) -> Vec<String> {
    let mut rows = foreseen.notes.clone();
    for one in &foreseen.clusters {
        rows.push(one.cluster.clone());
        rows.extend(one.notes.clone());
        let Some(answer) = &one.answer else { continue };
        rows.extend(answer.notes.iter().chain(&answer.problems).cloned());
        for object in &answer.objects {
            let PreviewedObject { why, decided_by, effects, blockers, .. } = object;
            rows.push(format!("{} {} {why} {decided_by}", object.namespace, object.name));
            rows.extend(effects.clone());
            rows.extend(blockers.iter().map(|text| ageless(text)));
        }
    }
    rows
}

/// Without words such as `5s` or `3m`.
fn ageless(text: &str) -> String {
    let is_age = |word: &&str| {
        let digits = |text: &str| !text.is_empty() && text.chars().all(|one| one.is_ascii_digit());
        word.trim_end_matches([',', ')', ';'])
            .strip_suffix(['s', 'm', 'h', 'd'])
            .is_some_and(digits)
    };
    text.split(' ').filter(|word| !is_age(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use cleat_api::removalpreview::{PreviewVerdict, RemovalPreviewStatus};

    use super::super::ask::Answer;
    use super::*;

    fn foreseen(plan: &str, blocker: &str) -> Foreseen {
        let object = PreviewedObject {
            name: "prices".to_owned(),
            verdict: PreviewVerdict::Delete,
            blockers: vec![blocker.to_owned()],
            ..PreviewedObject::default()
        };
        let answer =
            RemovalPreviewStatus { objects: vec![object], ..RemovalPreviewStatus::default() };
        let cluster = Answer {
            cluster: "c1".to_owned(),
            answer: Some(answer),
            believed: vec![],
            notes: vec![],
        };
        Foreseen { plan: plan.to_owned(), clusters: vec![cluster], notes: vec![], asked: vec![] }
    }

    #[test]
    fn only_what_reads_otherwise_is_shown_again() {
        let before = foreseen("1", "refused for 5s, by a webhook");
        assert!(is_same(&before, &foreseen("1", "refused for 3m, by a webhook")));
        assert!(!is_same(&before, &foreseen("1", "waits for finalizer x/y")));
        assert!(!is_same(&before, &foreseen("2", "refused for 5s, by a webhook")));
    }
}
