use serde_json::json;
use serde_json::value::RawValue;

use super::*;
use crate::mirror::Reason;
use crate::mirror::meta::{self, Owners};

fn target(name: &str) -> Target {
    let [group, resource, namespace] = ["", "configmaps", "n"].map(ToOwned::to_owned);
    let id = Id { group, resource, namespace, name: name.to_owned() };
    Target { version: "v1".to_owned(), id }
}

/// An object as a list of a built-in kind has it, without what all of its objects are.
fn text(name: &str, uid: &str, revision: &str) -> Box<RawValue> {
    let metadata = json!({
        "name": name, "namespace": "n", "uid": uid, "resourceVersion": revision,
    });
    let object = json!({ "metadata": metadata, "data": { "key": "value" } });
    RawValue::from_string(object.to_string()).unwrap()
}

fn look(uid: &str, revision: &str) -> Look {
    Look::Present(Owners::default().meta_of_text(&text("a", uid, revision)).unwrap())
}

fn kept(object: &RawValue) -> Kept {
    let shape = Arc::new(Shape::of_list("v1", "ConfigMapList"));
    Kept::new(&meta::head(object).unwrap(), object.get(), &shape)
}

/// With one object in it: that uid, that revision.
fn with(uid: &str, revision: &str) -> Handover {
    let mut handover = Handover::new(1 << 20);
    handover.keep(&Arc::new(target("a").id), kept(&text("a", uid, revision)));
    handover
}

#[test]
fn an_object_is_given_away_once_and_as_a_read_would_have_given_it() {
    let (a, now) = (target("a"), look("u", "5"));
    let mut handover = with("u", "5");
    assert!(handover.has(&a, &now));
    let object = handover.take(&a, &now).unwrap().object().unwrap();
    assert_eq!((&object["apiVersion"], &object["kind"]), (&json!("v1"), &json!("ConfigMap")));
    assert_eq!(object["data"], json!({ "key": "value" }));
    assert!(!handover.has(&a, &now) && handover.take(&a, &now).is_none());
    assert_eq!((handover.is_empty(), handover.bytes), (true, 0));
}

/// Only what the mirror says is there, in that state and no other, whichever is the newer.
#[test]
fn what_the_mirror_does_not_say_any_more_is_never_given() {
    for now in [
        look("u", "6"),
        look("u", "4"),
        look("v", "5"),
        Look::Absent,
        Look::NoSuchKind,
        Look::Unknown(Reason::NotReadYet),
        Look::Unknown(Reason::Forbidden("no".to_owned())),
    ] {
        let (a, mut handover) = (target("a"), with("u", "5"));
        assert!(!handover.has(&a, &now), "{now:?}");
        assert!(handover.take(&a, &now).is_none(), "{now:?}");
        assert!(handover.is_empty(), "it cannot become right again: {now:?}");
    }
}

#[test]
fn an_object_without_an_identity_is_nobodys() {
    for (uid, revision) in [("", "5"), ("u", "")] {
        assert!(!with(uid, revision).has(&target("a"), &look(uid, revision)));
    }
}

/// A list that does not say of what it is one says too little.
#[test]
fn an_object_without_a_kind_has_to_be_read() {
    let object = text("a", "u", "5");
    let shape = Arc::new(Shape::of_list("v1", "List"));
    let mut handover = Handover::new(1 << 20);
    let kept = Kept::new(&meta::head(&object).unwrap(), object.get(), &shape);
    handover.keep(&Arc::new(target("a").id), kept);
    assert!(!handover.has(&target("a"), &look("u", "5")));
}

#[test]
fn another_version_of_an_object_has_to_be_read() {
    let other = Target { version: "v2".to_owned(), ..target("a") };
    assert!(with("u", "5").take(&other, &look("u", "5")).is_none());
}

#[test]
fn what_is_kept_is_bounded_and_counted_right() {
    let object = text("a", "u", "5");
    let each = kept(&object).cost();
    let mut handover = Handover::new(3 * each);
    for name in ["a", "b", "a", "c", "d", "a"] {
        handover.keep(&Arc::new(target(name).id), kept(&object));
    }
    assert_eq!((handover.kept.len(), handover.bytes, handover.room()), (3, 3 * each, 0));
    assert!(!handover.kept.contains_key(&target("d").id));
    handover.forget(&target("b").id);
    handover.forget(&target("b").id);
    assert_eq!(handover.room(), each);
    let name = |resource: &str| KindName { group: "".into(), resource: resource.into() };
    handover.forget_kind(&name("secrets"));
    assert_eq!(handover.kept.len(), 2);
    handover.forget_kind(&name("configmaps"));
    assert_eq!((handover.is_empty(), handover.bytes), (true, 0));
}

#[test]
fn who_does_not_want_objects_is_given_none() {
    let mut handover = Handover::default();
    handover.keep(&Arc::new(target("a").id), kept(&text("a", "u", "5")));
    assert!(handover.is_empty());
}
