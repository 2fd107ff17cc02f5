//! `cleat explain`: why something is stuck, down to somebody who can do something.
//!
//! What is told is decided in `cleat-core`; this asks servers what it wants to know, and prints. It
//! reads, and rehearses deletes in dry runs; nothing is ever written.

mod answer;
mod kinds;

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use cleat_core::explain::{
    Contexts, Explanation, Progress, Seen, Style, Subject, Verdict, Wish, explain, text,
};
use cleat_core::id::{Id, Target};
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::Client;
use kube::config::Kubeconfig;

use self::answer::Servers;
use self::kinds::Table;
use crate::connection::{ClusterArgs, Which, block_on};
use crate::{HALTED, Misunderstood, REFUSED, Refused};

/// How many questions are under way at the same time.
const AT_ONCE: usize = 8;
/// How many questions one explanation may take; each list it asks for is bounded as well.
const MOST_QUESTIONS: usize = 1000;
/// How often `--watch` looks.
const PAUSE: Duration = Duration::from_secs(2);

/// The exit code where nothing was found in the way, but not everything could be read.
const UNKNOWN: u8 = 5;

/// Says why something is stuck: what it waits for, who has to act, and what they can do.
///
/// Works for anything that is being deleted or is not as it should be, on a hub or on a cluster:
/// namespaces, pods, definitions, works and sets of works, policies, automations, clusters of the
/// fleet, and any other object.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  cleat explain namespace/shop                        why it is still Terminating
  cleat explain pod/web-0 -n shop                     why it does not run, or does not end
  cleat explain manifestwork/shop -n cluster1         on the hub; follows it to context cluster1
  cleat explain managedcluster/cluster1               why it does not join, or does not leave
  cleat explain deployment/server -n web --deleted    what would refuse its deletion
  cleat explain crd/widgets.shop.example -o json      for programs
  cleat explain ns/shop --watch                       until it is gone

It follows finalizers to whoever set them and to the workload that serves them, refusals to the webhook
or CriticalService that refuses, and works to the cluster they are on. It only reads; deletes are
rehearsed in dry runs.

Exit codes:
  0  nothing stands in the way
  1  it did not work
  3  there is no such kind or object
  4  something stands in the way, and is named
  5  nothing was found in the way, but not everything could be read")]
pub struct Args {
    /// What is asked about: KIND/NAME, or KIND and NAME. A kind may be written as `kubectl` takes it:
    /// deploy, deployments, deployment.apps
    #[arg(required = true, num_args = 1..=2, value_names = ["KIND/NAME", "NAME"])]
    what: Vec<String>,
    /// Its namespace [default: the context's]
    #[arg(long, short)]
    namespace: Option<String>,
    /// Judge it as something that has to go: what would refuse its deletion
    #[arg(long)]
    deleted: bool,
    /// How to print it [default: a tree]
    #[arg(long, short)]
    output: Option<Output>,
    /// Look again until nothing stands in the way any more
    #[arg(long, short)]
    watch: bool,
    /// The kubeconfig of the server it is on, hub or cluster [default: $KUBECONFIG or
    /// ~/.kube/config]
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Which context of it [default: the current one]
    #[arg(long)]
    context: Option<String>,
    /// For what is on a hub: the cluster to follow it to [default: the one it is for, by way of the
    /// context of that name]
    #[arg(long)]
    cluster: Option<String>,
    #[command(flatten)]
    there: ClusterArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Json,
    Yaml,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    block_on(async {
        let (kind, name) = named(&args.what)?;
        let which = Which { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
        let config = which.config().await?;
        let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let servers = Servers::new(which.client().await?);
        let id = servers.find(&kind, &name, &namespace).await?;
        let cluster = args.cluster.clone().or_else(|| cluster_of(&id));
        let connected = match &cluster {
            Some(name) => connect(args, &which, name).await?,
            None => None,
        };
        let contexts = Contexts {
            here: args.context.clone(),
            cluster: cluster.as_deref().and_then(|name| context_of(args, name)),
        };
        let subject = Subject {
            id,
            wish: if args.deleted { Wish::Gone } else { Wish::Whatever },
            cluster: cluster.filter(|_| connected.is_some()),
        };
        let servers = servers.with_cluster(connected);
        if args.watch {
            watch(args, &servers, &subject, &contexts).await
        } else {
            once(args, &servers, &subject, &contexts).await
        }
    })
}

/// Explains one object to whoever has clients already.
pub async fn ask(
    here: Client,
    cluster: Option<(String, Client)>,
    what: (&str, &str, &str),
    wish: Wish,
) -> Result<Explanation> {
    let (kind, namespace, name) = what;
    let servers = Servers::new(here);
    let id = servers.find(kind, name, namespace).await?;
    let (cluster, client) = cluster.unzip();
    let subject = Subject { id, wish, cluster };
    let servers = servers.with_cluster(client);
    Ok(told(&servers, &subject, Timestamp::now()).await?.0)
}

/// Where an object is that somebody named as `kubectl` would take it.
pub(crate) async fn locate(
    client: &Client,
    kind: &str,
    name: &str,
    namespace: &str,
) -> Result<Target> {
    let table = Table::read(client).await.context("ask the server what it serves")?;
    let served = table.meant(kind)?;
    if served.namespaced && namespace.is_empty() {
        let hint = format!("{kind} {name} lives in a namespace; say which with -n");
        return Err(Refused(hint).into());
    }
    let id = Id {
        group: served.group.clone(),
        resource: served.resource.clone(),
        namespace: if served.namespaced { namespace.to_owned() } else { String::new() },
        name: name.to_owned(),
    };
    Ok(Target { version: served.version.clone(), id })
}

/// `KIND/NAME`, or `KIND NAME`.
fn named(what: &[String]) -> Result<(String, String)> {
    let pair = match what {
        [one] => one.split_once('/'),
        [kind, name] => Some((kind.as_str(), name.as_str())),
        _ => None,
    };
    match pair {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok((kind.to_owned(), name.to_owned()))
        }
        _ => Err(Misunderstood(format!(
            "{:?} is not KIND/NAME; write, for example, `cleat explain namespace/shop`",
            what.join(" ")
        ))
        .into()),
    }
}

/// The cluster that something on a hub is for.
fn cluster_of(id: &Id) -> Option<String> {
    match (id.group.as_str(), id.resource.as_str()) {
        ("cluster.open-cluster-management.io", "managedclusters") => Some(id.name.clone()),
        (
            "work.open-cluster-management.io" | "policy.open-cluster-management.io",
            "manifestworks" | "policies",
        ) => Some(id.namespace.clone()),
        _ => None,
    }
}

/// The way to the cluster: what was said, or the context of its name.
async fn connect(args: &Args, which: &Which, name: &str) -> Result<Option<Client>> {
    let ClusterArgs { cluster_kubeconfig, cluster_context } = &args.there;
    if cluster_kubeconfig.is_some() || cluster_context.is_some() {
        let there = Which {
            kubeconfig: cluster_kubeconfig.clone().or_else(|| which.kubeconfig.clone()),
            context: cluster_context.clone(),
        };
        return Ok(Some(there.client().await.context("reach the cluster")?));
    }
    let read = match &which.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    // In a pod there is no such file, and no cluster in it.
    let known = read.is_ok_and(|read| read.contexts.iter().any(|context| context.name == name));
    if !known {
        return Ok(None);
    }
    let there = Which { kubeconfig: which.kubeconfig.clone(), context: Some(name.to_owned()) };
    Ok(Some(there.client().await.context("reach the cluster")?))
}

/// By which context the cluster is reached, where commands can say so: in the same file.
fn context_of(args: &Args, name: &str) -> Option<String> {
    let ClusterArgs { cluster_kubeconfig, cluster_context } = &args.there;
    match (cluster_kubeconfig, cluster_context) {
        (Some(_), _) => None,
        (None, Some(context)) => Some(context.clone()),
        (None, None) => Some(name.to_owned()),
    }
}

/// Asks until there is something to tell; also how it would have been told at `then`.
async fn told(
    servers: &Servers,
    subject: &Subject,
    then: Timestamp,
) -> Result<(Explanation, Explanation)> {
    let mut seen = Seen::default();
    loop {
        let now = Timestamp::now();
        let asks = match explain(subject, &seen, now) {
            Progress::Told(told) => {
                let Progress::Told(before) = explain(subject, &seen, then) else {
                    return Ok(((*told).clone(), *told));
                };
                return Ok((*told, *before));
            }
            Progress::Asks(asks) => asks,
        };
        if seen.len() + asks.len() > MOST_QUESTIONS {
            bail!("this takes more than {MOST_QUESTIONS} questions; ask about one of its parts");
        }
        let answers = asks.into_iter().map(async |question| {
            let answer = servers.answer(&question).await;
            (question, answer)
        });
        let answers: Vec<_> =
            futures::stream::iter(answers).buffer_unordered(AT_ONCE).collect().await;
        for (question, answer) in answers {
            seen.answer(question, answer);
        }
    }
}

fn code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Fine => 0,
        Verdict::Absent => REFUSED,
        Verdict::Blocked => HALTED,
        Verdict::Unknown => UNKNOWN,
    }
}

async fn once(
    args: &Args,
    servers: &Servers,
    subject: &Subject,
    contexts: &Contexts,
) -> Result<ExitCode> {
    let (mut told, _) = told(servers, subject, Timestamp::now()).await?;
    contexts.in_commands(&mut told.tree);
    print(args, &told)?;
    Ok(ExitCode::from(code(told.verdict)))
}

/// Prints whenever something changed, until nothing stands in the way.
async fn watch(
    args: &Args,
    servers: &Servers,
    subject: &Subject,
    contexts: &Contexts,
) -> Result<ExitCode> {
    let begun = Timestamp::now();
    let mut pause = tokio::time::interval(PAUSE);
    let mut before: Option<Explanation> = None;
    let screen = std::io::stdout().is_terminal() && args.output.is_none();
    loop {
        pause.tick().await;
        let (mut told, same_time) = told(servers, subject, begun).await?;
        contexts.in_commands(&mut told.tree);
        let first = before.is_none();
        let changed = before.as_ref() != Some(&same_time);
        if screen {
            // Ages go on, so a screen is drawn anew each time.
            print!("\u{1b}[H\u{1b}[2J");
        }
        if told.verdict == Verdict::Absent && !first {
            // Programs are told in the form that they read.
            match args.output {
                None => println!("{} is gone", subject.id),
                Some(_) => print(args, &told)?,
            }
            return Ok(ExitCode::SUCCESS);
        }
        if changed || screen {
            print(args, &told)?;
        }
        if matches!(told.verdict, Verdict::Absent | Verdict::Fine) {
            return Ok(ExitCode::from(code(told.verdict)));
        }
        before = Some(same_time);
    }
}

fn print(args: &Args, told: &Explanation) -> Result<()> {
    let terminal = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let style = if terminal { Style::Colour } else { Style::Plain };
    let printed = match args.output {
        None => text(&told.tree, style),
        Some(Output::Json) => {
            format!("{}\n", serde_json::to_string_pretty(told).context("write JSON")?)
        }
        Some(Output::Yaml) => {
            let value = serde_json::to_value(told).context("write YAML")?;
            format!("---\n{}", serde_saphyr::to_string(&value).context("write YAML")?)
        }
    };
    std::io::stdout().lock().write_all(printed.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_is_read_from_one_word_or_two() {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        for (what, expected) in [
            (&["ns/shop"][..], Some(("ns", "shop"))),
            (&["ns", "shop"], Some(("ns", "shop"))),
            (&["deploy.apps/x"], Some(("deploy.apps", "x"))),
            (&["shop"], None),
            (&["ns/"], None),
            (&["/shop"], None),
            (&["ns", "a/b"], None),
            (&["a/b/c"], None),
        ] {
            let read = named(&words(what)).ok();
            let expected = expected.map(|(kind, name)| (kind.to_owned(), name.to_owned()));
            assert_eq!(read, expected, "{what:?}");
        }
        assert!(named(&words(&["shop"])).unwrap_err().is::<Misunderstood>());
    }
}
