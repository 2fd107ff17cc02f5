//! What depends on time and on faults. What servers tell is tried on servers.

use serde_json::json;

use super::*;
use crate::mirror::meta;
use crate::watch::Form;

fn id(name: &str) -> Id {
    let [group, resource, namespace] = ["", "configmaps", "n"].map(ToOwned::to_owned);
    Id { group, resource, namespace, name: name.to_owned() }
}

fn text(name: &str, revision: u64) -> Box<RawValue> {
    let metadata = json!({
        "name": name, "namespace": "n", "uid": "u", "resourceVersion": revision.to_string(),
    });
    RawValue::from_string(json!({ "metadata": metadata }).to_string()).unwrap()
}

/// A kind that was listed at revision 10, with these objects in it.
fn listed(kind: &mut Kind, names: &[&str]) {
    let mut owners = Owners::default();
    kind.list_began();
    for name in names {
        let object = text(name, 5);
        kind.listed(&meta::head(&object).unwrap(), &object, Some(10), &mut owners);
    }
    kind.list_ended(Some(10));
    kind.up(Instant::now());
}

fn failed() -> Fault {
    Fault::Failed("cut".to_owned())
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_counts_for_a_while_after_the_connection_is_gone() {
    let mut kind = Kind::new();
    let a = id("a");
    kind.care(&a, "v1");
    listed(&mut kind, &["a"]);
    let (told, first) = kind.down(&failed(), Instant::now());
    assert!(told.is_empty() && first);
    assert!(matches!(kind.look(&a, Instant::now()), Look::Present(_)));
    tokio::time::advance(GRACE / 2).await;
    let (told, first) = kind.down(&failed(), Instant::now());
    assert!(told.is_empty() && !first, "only the first time counts");
    tokio::time::advance(GRACE / 2).await;
    let look = kind.look(&a, Instant::now());
    assert!(matches!(look, Look::Unknown(Reason::Unreachable { .. })), "{look:?}");
    assert_eq!(kind.up(Instant::now()).len(), 1, "that it is back is news");
    assert!(matches!(kind.look(&a, Instant::now()), Look::Present(_)));
}

#[tokio::test(start_paused = true)]
async fn of_a_kind_that_cannot_be_watched_nothing_is_known_however_lately_it_was_listed() {
    let mut kind = Kind::new();
    let a = id("a");
    kind.care(&a, "v1");
    listed(&mut kind, &["a"]);
    let (told, _) = kind.down(&Fault::Unwatchable, Instant::now());
    assert_eq!(told.len(), 1, "and that is news");
    assert_eq!(kind.look(&a, Instant::now()), Look::Unknown(Reason::Unwatchable));
    assert_eq!(kind.up(Instant::now()).len(), 1);
    assert!(matches!(kind.look(&a, Instant::now()), Look::Present(_)));
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_unserved_only_when_every_version_is() {
    let mut kind = Kind::new();
    let a = id("a");
    for version in ["v1beta1", "v1"] {
        kind.care(&a, version);
    }
    assert_eq!(kind.version(), "v1beta1");
    kind.down(&Fault::NoSuchKind, Instant::now());
    assert_eq!((kind.version(), kind.is_unserved()), ("v1", false));
    kind.down(&Fault::NoSuchKind, Instant::now());
    assert_eq!(kind.look(&a, Instant::now()), Look::NoSuchKind);
}

#[tokio::test]
async fn an_interest_during_a_list_is_settled_by_it_or_read() {
    let mut kind = Kind::new();
    let (a, b, c) = (id("a"), id("b"), id("c"));
    kind.care(&a, "v1");
    kind.list_began();
    let passed = text("b", 5);
    let mut owners = Owners::default();
    kind.listed(&meta::head(&passed).unwrap(), &passed, Some(10), &mut owners);
    kind.care(&b, "v1");
    kind.care(&c, "v1");
    let changed = kind.list_ended(Some(10));
    assert_eq!(changed.len(), 2);
    assert_eq!(kind.look(&a, Instant::now()), Look::Absent);
    assert_eq!(kind.look(&c, Instant::now()), Look::Absent);
    assert_eq!(kind.look(&b, Instant::now()), Look::Unknown(Reason::NotReadYet));
    assert_eq!(kind.settle().read, [Arc::new(b)]);
}

/// It was tried again for ever, and nobody was told anything.
#[tokio::test]
async fn that_an_object_may_be_listed_and_not_read_was_never_told() {
    let mut kind = Kind::new();
    let (a, b) = (id("a"), id("b"));
    kind.care(&a, "v1");
    listed(&mut kind, &["a", "b"]);
    let named = kind.care(&b, "v1");
    let refused = || "configmaps \"b\" is forbidden".to_owned();
    assert_eq!(kind.unreadable(&named, refused()).as_ref(), Some(&named));
    assert_eq!(kind.unreadable(&named, refused()), None, "that is no news");
    let forbidden = Look::Unknown(Reason::Forbidden(refused()));
    assert_eq!(kind.look(&b, Instant::now()), forbidden);
    assert_eq!(kind.settle().read, [Arc::clone(&named)], "it is tried again");
    listed(&mut kind, &["a", "b"]);
    assert!(matches!(kind.look(&b, Instant::now()), Look::Present(_)), "or a list tells");
}

#[tokio::test]
async fn what_we_wrote_before_anybody_cared_is_not_absent_until_the_watch_got_there() {
    let mut kind = Kind::new();
    kind.care(&id("a"), "v1");
    listed(&mut kind, &[]);
    let mut owners = Owners::default();
    let b = id("b");
    let meta = owners.meta_of_text(&text("b", 20)).unwrap();
    kind.wrote(&b, meta);
    kind.care(&b, "v1");
    assert_eq!(kind.look(&b, Instant::now()), Look::Unknown(Reason::NotReadYet));
    kind.reached(20);
    kind.care(&id("c"), "v1");
    assert_eq!(kind.look(&id("c"), Instant::now()), Look::Absent);
}

#[tokio::test]
async fn many_are_listed_and_few_are_read() {
    let names: Vec<String> = (0..READS_PER_PAGE + 1).map(|index| format!("m{index}")).collect();
    let mut kind = Kind::new();
    kind.care(&id("a"), "v1");
    listed(&mut kind, &names.iter().map(String::as_str).collect::<Vec<_>>());
    for name in &names[1..] {
        kind.care(&id(name), "v1");
    }
    assert_eq!(kind.settle().read.len(), READS_PER_PAGE);
    assert_eq!(kind.wish(Duration::ZERO), Wish::GoOn);
    kind.care(&id(&names[0]), "v1");
    assert_eq!(kind.settle().read.len(), 0);
    assert_eq!(kind.wish(Duration::ZERO), Wish::List);
}

/// Nothing else was listed, and still nothing is known of the rest: the list may end anywhere.
#[tokio::test]
async fn what_a_list_has_not_told_of_yet_is_not_absent() {
    let mut kind = Kind::new();
    let (a, b) = (id("a"), id("b"));
    kind.care(&a, "v1");
    kind.care(&b, "v1");
    kind.list_began();
    let told = text("a", 5);
    let mut owners = Owners::default();
    kind.listed(&meta::head(&told).unwrap(), &told, Some(10), &mut owners);
    kind.page_ended(1, 1, Some(100));
    assert!(matches!(kind.look(&a, Instant::now()), Look::Present(_)));
    assert_eq!(kind.look(&b, Instant::now()), Look::Unknown(Reason::NotReadYet));
    kind.down(&failed(), Instant::now());
    for id in [&a, &b] {
        let look = kind.look(id, Instant::now());
        assert!(matches!(look, Look::Unknown(Reason::Unreachable { .. })), "{look:?}");
    }
}

#[tokio::test]
async fn objects_are_listed_whole_while_many_are_unread_and_never_for_who_keeps_none() {
    const ROOM: usize = 1 << 20;
    let names: Vec<String> = (0..=READS_PER_PAGE).map(|index| format!("m{index}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut kind = Kind::new();
    for name in &names {
        kind.care(&id(name), "v1");
    }
    kind.list_began();
    assert_eq!((kind.ask(ROOM).form, kind.ask(0).form), (Form::Whole, Form::Metadata));
    listed(&mut kind, &names);
    kind.list_began();
    assert_eq!(kind.ask(ROOM).form, Form::Metadata, "all of them are known");
}

#[tokio::test]
async fn the_last_who_cares_is_known_to_be_the_last() {
    let mut kind = Kind::new();
    let a = id("a");
    kind.care(&a, "v1");
    kind.care(&a, "v1");
    assert_eq!((kind.care_less(&a), kind.care_less(&a)), (false, true));
}
