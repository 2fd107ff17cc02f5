//! `cleat completions`: what makes a shell complete verbs and flags, made from the command itself.
//!
//! Names of objects are not completed: that would ask a server at every key.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::Result;
use clap::{Command, ValueEnum};

/// Prints what makes a shell complete this command.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  source <(cleat completions bash)
  cleat completions zsh > ~/.zfunc/cleat.zsh     and source it in ~/.zshrc
  cleat completions fish > ~/.config/fish/completions/cleat.fish
  cleat completions kubectl > ~/bin/kubectl_complete-cleat     and make it executable, for `kubectl cleat`")]
pub struct Args {
    shell: Shell,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    /// What kubectl itself asks, in whatever shell it completes.
    Kubectl,
}

/// The command by the name it was called by: installed as `kubectl-cleat` it is `kubectl cleat`.
pub fn called(command: Command) -> Command {
    let program = std::env::args_os().next();
    let plugin = program.as_deref().map(Path::new).and_then(Path::file_stem);
    match plugin.is_some_and(|name| name == "kubectl-cleat") {
        true => command.bin_name("kubectl cleat"),
        false => command,
    }
}

pub fn run(args: &Args, command: &mut Command) -> Result<()> {
    command.build();
    let words = words(command);
    let text = match args.shell {
        Shell::Bash => bash(&words),
        Shell::Zsh => {
            format!("autoload -U +X bashcompinit && bashcompinit\n{}", bash(&words))
        }
        Shell::Fish => fish(&words),
        Shell::Kubectl => kubectl(&words),
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// What can follow each verb: verbs under it, and its flags.
struct Next {
    verbs: Vec<String>,
    flags: Vec<String>,
}

/// By the verbs so far, such as `leftovers clean`.
type Words = BTreeMap<String, Next>;

fn words(command: &Command) -> Words {
    let mut words = Words::new();
    collect(command, String::new(), &mut words);
    words
}

fn collect(command: &Command, path: String, words: &mut Words) {
    let below: Vec<&Command> = command.get_subcommands().filter(|one| !one.is_hide_set()).collect();
    let verbs: Vec<String> = below.iter().map(|one| one.get_name().to_owned()).collect();
    let visible = command.get_arguments().filter(|one| !one.is_hide_set());
    let flags: Vec<String> =
        visible.filter_map(|one| one.get_long()).map(|long| format!("--{long}")).collect();
    for one in below.into_iter().filter(|one| one.get_name() != "help") {
        let separator = if path.is_empty() { "" } else { " " };
        collect(one, format!("{path}{separator}{}", one.get_name()), words);
    }
    words.insert(path, Next { verbs, flags });
}

fn bash(words: &Words) -> String {
    let mut text = String::from(
        "_cleat() {\n  local current=\"${COMP_WORDS[COMP_CWORD]}\" verbs=\"\" word\n  \
         for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    case \"${verbs:+$verbs }$word\" in\n",
    );
    for path in words.keys().filter(|path| !path.is_empty()) {
        let _ = writeln!(text, "      \"{path}\") verbs=\"{path}\" ;;");
    }
    text.push_str("    esac\n  done\n  case \"$verbs\" in\n");
    for (path, Next { verbs, flags }) in words {
        let all: Vec<&str> = verbs.iter().chain(flags).map(String::as_str).collect();
        let _ = writeln!(text, "    \"{path}\") word=\"{}\" ;;", all.join(" "));
    }
    text.push_str(
        "  esac\n  COMPREPLY=($(compgen -W \"$word\" -- \"$current\"))\n}\n\
         complete -o default -F _cleat cleat\n",
    );
    text
}

/// A program that kubectl runs with the words after `kubectl cleat`, the last of which is being typed. The
/// line after what it prints tells kubectl that files may be meant as well.
fn kubectl(words: &Words) -> String {
    let mut text = String::from(
        "#!/bin/sh\nverbs=\"\"\nwhile [ $# -gt 1 ]; do\n  case \"${verbs:+$verbs }$1\" in\n",
    );
    for path in words.keys().filter(|path| !path.is_empty()) {
        let _ = writeln!(text, "    \"{path}\") verbs=\"{path}\" ;;");
    }
    text.push_str("  esac\n  shift\ndone\ncase \"$verbs\" in\n");
    for (path, Next { verbs, flags }) in words {
        let all: Vec<&str> = verbs.iter().chain(flags).map(String::as_str).collect();
        let _ = writeln!(text, "  \"{path}\") words=\"{}\" ;;", all.join(" "));
    }
    text.push_str(
        "esac\nfor word in $words; do\n  case \"$word\" in\n    \"$1\"*) echo \"$word\" ;;\n  \
         esac\ndone\necho \":0\"\n",
    );
    text
}

fn fish(words: &Words) -> String {
    let mut text = String::new();
    for (path, Next { verbs, flags }) in words {
        let when = match path.as_str() {
            "" => "__fish_use_subcommand".to_owned(),
            path => path
                .split(' ')
                .map(|verb| format!("__fish_seen_subcommand_from {verb}"))
                .collect::<Vec<_>>()
                .join("; and "),
        };
        for verb in verbs {
            let _ = writeln!(text, "complete -c cleat -f -n '{when}' -a {verb}");
        }
        for flag in flags {
            let _ =
                writeln!(text, "complete -c cleat -n '{when}' -l {}", flag.trim_start_matches('-'));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    fn command() -> Command {
        Command::new("cleat")
            .subcommand(Command::new("up").arg(Arg::new("dir").long("dir")))
            .subcommand(
                Command::new("leftovers")
                    .subcommand(Command::new("clean").arg(Arg::new("k").long("kept"))),
            )
    }

    #[test]
    fn every_verb_is_followed_by_its_own_flags() {
        let mut command = command();
        command.build();
        let words = words(&command);
        let paths: Vec<&str> = words.keys().map(String::as_str).collect();
        assert_eq!(paths, ["", "leftovers", "leftovers clean", "up"]);
        let bash = bash(&words);
        assert!(bash.contains("\"leftovers clean\") word=\"--kept --help\" ;;"), "{bash}");
        assert!(bash.contains("\"\") word=\"up leftovers help --help\" ;;"), "{bash}");
        let fish = fish(&words);
        let expected = "complete -c cleat -n '__fish_seen_subcommand_from leftovers; and \
                        __fish_seen_subcommand_from clean' -l kept";
        assert!(fish.contains(expected), "{fish}");
    }

    /// A shell that is here takes it, and completes.
    #[test]
    fn bash_takes_it() {
        let mut command = command();
        command.build();
        let script = format!(
            "{}\nCOMP_WORDS=(cleat leftovers cl); COMP_CWORD=2; _cleat; echo \"${{COMPREPLY[@]}}\"",
            bash(&words(&command))
        );
        let Ok(output) = std::process::Command::new("bash").args(["-c", &script]).output() else {
            return;
        };
        assert_eq!(String::from_utf8_lossy(&output.stdout), "clean\n");
    }

    /// Only `cleat` was completed, whatever kubectl was asked.
    #[test]
    fn kubectl_is_told_what_can_follow() {
        let mut command = command();
        command.build();
        let script = kubectl(&words(&command));
        let told = |typed: &[&str]| {
            let asked =
                std::process::Command::new("sh").args(["-c", &script, "sh"]).args(typed).output();
            asked.ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let Some(first) = told(&["le"]) else { return };
        assert_eq!(first, "leftovers\n:0\n");
        assert_eq!(told(&["leftovers", "clean", "--k"]).as_deref(), Some("--kept\n:0\n"));
        assert_eq!(told(&["-v", "up", ""]).as_deref(), Some("--dir\n--help\n:0\n"));
    }
}
