//! Trees, as people see them: `tests/trees.txt` has them all; `CLEAT_RECORD=1` writes it anew.

mod cases;
mod servers;

use std::format;
use std::string::String;
use std::vec::Vec;

use self::servers::Servers;
use super::*;

/// One thing to explain.
struct Case {
    name: &'static str,
    servers: Servers,
    subject: Subject,
}

fn now() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().unwrap()
}

/// Asks and answers until it is told, and by which questions.
fn told(case: &Case, answer: impl Fn(&Question) -> Answer) -> (Explanation, Vec<Question>) {
    let mut seen = Seen::default();
    let mut asked = Vec::new();
    for _ in 0..40 {
        match explain(&case.subject, &seen, now()) {
            Progress::Told(told) => return (*told, asked),
            Progress::Asks(questions) => {
                for question in questions {
                    let answer = answer(&question);
                    seen.answer(question.clone(), answer);
                    asked.push(question);
                }
            }
        }
    }
    panic!("{}: it never ends", case.name)
}

#[test]
fn every_chain_ends_in_somebody_who_can_act() {
    let mut all = String::new();
    let mut helpless = Vec::new();
    for case in cases::all() {
        let (explanation, _) = told(&case, |question| case.servers.answer(question));
        all.push_str(&format!(
            "# {}\n{}[{:?}]\n\n",
            case.name,
            text(&explanation.tree, Style::Plain),
            explanation.verdict
        ));
        if explanation.verdict == Verdict::Blocked && explanation.actions.is_empty() {
            helpless.push(case.name);
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/explain/tests/trees.txt");
    if std::env::var_os("CLEAT_RECORD").is_some() {
        std::fs::write(path, &all).unwrap();
    }
    assert_eq!(all, std::fs::read_to_string(path).unwrap());
    assert!(helpless.is_empty(), "nobody can act: {helpless:?}");
}

/// Whatever single answer is missing, something stuck never looks well, or gone.
#[test]
fn what_cannot_be_read_is_never_taken_for_absent() {
    for case in cases::all() {
        let (whole, asked) = told(&case, |question| case.servers.answer(question));
        if whole.verdict != Verdict::Blocked {
            continue;
        }
        for hidden in &asked {
            for forbidden in [false, true] {
                let (blind, _) = told(&case, |question| {
                    if question == hidden {
                        return Answer::Unread(Unread { why: "no answer".into(), forbidden });
                    }
                    case.servers.answer(question)
                });
                let (name, verdict) = (case.name, blind.verdict);
                let stuck = matches!(verdict, Verdict::Blocked | Verdict::Unknown);
                assert!(stuck, "{name} is {verdict:?} without {hidden:?}");
            }
        }
    }
}

/// It ended in what was not said, and not in what to type.
#[test]
fn a_chain_that_leads_to_a_cluster_ended_without_a_command() {
    for (name, command) in [
        ("a cluster cannot leave", "cleat explain manifestworks/shop -n c1"),
        (
            "a work waits for an object on the cluster",
            "cleat explain manifestworks/shop -n c1 --cluster-kubeconfig FILE",
        ),
    ] {
        let mut case = cases::all().into_iter().find(|case| case.name == name).unwrap();
        case.subject.cluster = None;
        let (mut explanation, _) = told(&case, |question| case.servers.answer(question));
        let commands = |told: &Explanation| -> Vec<String> {
            let shown = text(&told.tree, Style::Plain);
            shown.lines().filter(|line| line.contains("cleat explain ")).map(String::from).collect()
        };
        let shown = commands(&explanation);
        assert!(shown.iter().any(|line| line.trim_end().ends_with(command)), "{name}: {shown:?}");
        let contexts = Contexts { here: Some("hub".into()), cluster: None };
        contexts.in_commands(&mut explanation.tree);
        let shown = commands(&explanation);
        let expected = format!("{command} --context hub");
        assert!(shown.iter().any(|line| line.trim_end().ends_with(&expected)), "{name}: {shown:?}");
    }
}

#[test]
fn no_server_writes_to_the_terminal_but_text() {
    let node = Node::note("a\u{1b}[31mb\nc\u{7}d");
    assert_eq!(text(&node, Style::Plain), "a[31mb\n   cd\n");
    let red = Node::blocks(Reason::CrdTerminating, "x");
    assert_eq!(
        text(&red, Style::Colour),
        "\u{1b}[31mx\u{1b}[0m\u{1b}[2m  [CRDTerminating]\u{1b}[0m\n"
    );
}
