//! What a mirror shows of a cluster that changes, stays away, and comes back.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use cleat_core::id::{Id, Target};
use cleat_core::write::{Action, Outcome, Propagation, Side, Write};
use cleat_runtime::connect::connect;
use cleat_runtime::execute::{Config, Executor};
use cleat_runtime::mirror::{Look, Meta, Mirror, Reason};
use cleat_runtime::tasks::Tasks;
use cleat_world::{eventually, within};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{Place, access, create, definitions, delete, gone};

/// A mirror, and a bell that rings when anything in it changes.
struct Glass {
    mirror: Mirror,
    bell: Arc<Notify>,
    tasks: Tasks,
}

impl Glass {
    fn new(client: Client) -> Self {
        let (tasks, bell) = (Tasks::new(), Arc::new(Notify::new()));
        let ring = Arc::clone(&bell);
        let mirror = Mirror::new(client, &tasks, move |_| ring.notify_one());
        Self { mirror, bell, tasks }
    }

    /// One that hands over what it lists.
    fn handing_over(client: Client) -> Self {
        let (tasks, bell) = (Tasks::new(), Arc::new(Notify::new()));
        let ring = Arc::clone(&bell);
        let mirror = Mirror::handing_over(client, &tasks, move |_| ring.notify_one());
        Self { mirror, bell, tasks }
    }

    fn care(&self, owner: &str, targets: &[&Target]) {
        let targets: BTreeSet<Target> = targets.iter().map(|target| (*target).clone()).collect();
        self.mirror.interest(owner, &targets);
    }

    /// The first look that `holds` of, told by nothing but the mirror's own bell.
    async fn until(&self, target: &Target, holds: impl Fn(&Look) -> bool) -> Result<Look> {
        let looking = async {
            loop {
                let look = self.mirror.look(&target.id);
                if holds(&look) {
                    return look;
                }
                self.bell.notified().await;
            }
        };
        let looked = within("the mirror", looking).await;
        looked.with_context(|| format!("it shows {:?}", self.mirror.look(&target.id)))
    }

    async fn present(&self, target: &Target) -> Result<Arc<Meta>> {
        match self.until(target, |look| matches!(look, Look::Present(_))).await? {
            Look::Present(meta) => Ok(meta),
            _ => unreachable!("it was just present"),
        }
    }

    async fn absent(&self, target: &Target) -> Result<()> {
        self.until(target, |look| *look == Look::Absent).await?;
        Ok(())
    }
}

fn map(place: &Place, name: &str) -> Target {
    let (resource, namespace, name) =
        ("configmaps".to_owned(), place.namespace.clone(), name.to_owned());
    Target { version: "v1".to_owned(), id: Id { group: String::new(), resource, namespace, name } }
}

fn widget(place: &Place, name: &str) -> Target {
    let mut target = map(place, name);
    target.id.group = format!("{}.cleat.example", place.namespace);
    target.id.resource = "widgets".to_owned();
    target
}

fn change(place: &Place, name: &str, write: Write) -> Action {
    Action { side: Side::Cluster, target: map(place, name), write }
}

fn executor(client: &Client) -> Executor {
    Executor::new(Config { cluster: Some(client.clone()), ..Config::default() })
}

async fn label(maps: &Api<ConfigMap>, name: &str, value: &str) -> Result<ConfigMap> {
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "l": value } } }));
    Ok(maps.patch(name, &PatchParams::default(), &patch).await?)
}

#[tokio::test]
async fn it_shows_what_others_do() -> Result<()> {
    let place = Place::new("mirror").await?;
    let glass = Glass::new(place.client.clone());
    let maps: Api<ConfigMap> = place.api();
    let (a, b) = (map(&place, "a"), map(&place, "b"));
    assert_eq!(glass.mirror.look(&a.id), Look::Unknown(Reason::NotReadYet));

    let made = place.config_map("a").await?;
    glass.care("work", &[&a, &b]);
    let meta = glass.present(&a).await?;
    assert_eq!(Some(&*meta.uid), made.uid().as_deref());
    glass.absent(&b).await?;

    let labelled = label(&maps, "a", "1").await?;
    let version = labelled.resource_version().context("it has a version")?;
    let newer =
        |look: &Look| matches!(look, Look::Present(now) if *now.resource_version == *version);
    let Look::Present(now) = glass.until(&a, newer).await? else { panic!("it is there") };
    assert_ne!(now.labels_annotations_digest, meta.labels_annotations_digest);

    let hold = Patch::Merge(json!({ "metadata": { "finalizers": ["cleat.example/hold"] } }));
    maps.patch("a", &PatchParams::default(), &hold).await?;
    delete(&maps, "a").await?;
    let dying =
        |look: &Look| matches!(look, Look::Present(now) if now.deletion_timestamp.is_some());
    let Look::Present(now) = glass.until(&a, dying).await? else { panic!("it is there") };
    assert_eq!(&*now.finalizers, &["cleat.example/hold".into()]);
    let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("a", &PatchParams::default(), &free).await?;
    glass.absent(&a).await?;
    place.config_map("b").await?;
    glass.present(&b).await?;
    glass.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn an_interest_that_comes_later_is_met_whether_the_object_is_there_or_not() -> Result<()> {
    let place = Place::new("mirror").await?;
    let glass = Glass::new(place.client.clone());
    let maps: Api<ConfigMap> = place.api();
    let first = map(&place, "first");
    glass.care("first", &[&first]);
    glass.absent(&first).await?;
    // Seen go by, and dropped, before anybody cared.
    for index in 0..30 {
        place.config_map(&format!("m{index}")).await?;
    }
    place.config_map("first").await?;
    glass.present(&first).await?;

    let never = map(&place, "never");
    glass.care("never", &[&never]);
    assert_eq!(glass.mirror.look(&never.id), Look::Absent, "a watch tells of everything");
    let few = map(&place, "m0");
    glass.care("few", &[&few]);
    glass.present(&few).await?;
    let many: Vec<Target> = (0..30).map(|index| map(&place, &format!("m{index}"))).collect();
    glass.care("many", &many.iter().collect::<Vec<_>>());
    for target in &many {
        glass.present(target).await?;
    }
    // Whom nobody cares about any more is forgotten; whom somebody else does is not.
    glass.care("many", &[]);
    assert_eq!(glass.mirror.look(&many[1].id), Look::Unknown(Reason::NotReadYet));
    assert!(matches!(glass.mirror.look(&few.id), Look::Present(_)));
    delete(&maps, "m0").await?;
    glass.absent(&few).await?;
    Ok(())
}

#[tokio::test]
async fn own_writes_are_seen_at_once_and_for_good() -> Result<()> {
    let place = Place::new("mirror").await?;
    let glass = Glass::new(place.client.clone());
    let executor = executor(&place.client);
    let a = map(&place, "a");
    glass.care("work", &[&a]);
    glass.absent(&a).await?;
    for round in 0..20 {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" },
        });
        let mut uid = String::new();
        for write in [
            Write::Create(object),
            Write::Merge(json!({ "data": { "round": round.to_string() } })),
            Write::Merge(json!({ "data": { "more": "text" } })),
        ] {
            let plan = vec![vec![change(&place, "a", write)]];
            let outcomes = executor.execute(&plan).await;
            glass.mirror.wrote_all(&plan, &outcomes);
            let Outcome::Done(done) = &outcomes[0][0] else { panic!("{:?}", outcomes[0][0]) };
            let Look::Present(meta) = glass.mirror.look(&a.id) else { panic!("round {round}") };
            let text = |field: &str| done["metadata"][field].as_str().unwrap().to_owned();
            assert_eq!(*meta.resource_version, *text("resourceVersion"));
            uid = text("uid");
        }
        let propagation = Propagation::Background;
        let write = Write::Delete { uid, resource_version: None, propagation };
        let plan = vec![vec![change(&place, "a", write)]];
        let outcomes = executor.execute(&plan).await;
        assert_eq!(outcomes[0][0], Outcome::Done(Value::Null));
        glass.mirror.wrote_all(&plan, &outcomes);
        assert_eq!(glass.mirror.look(&a.id), Look::Absent);
    }
    Ok(())
}

#[tokio::test]
async fn what_a_lost_write_did_is_read() -> Result<()> {
    let place = Place::new("mirror").await?;
    let glass = Glass::new(place.client.clone());
    let (a, b) = (map(&place, "a"), map(&place, "b"));
    glass.care("work", &[&a, &b]);
    glass.absent(&a).await?;
    place.config_map("a").await?;
    for target in [&a, &b] {
        let action = change(&place, &target.id.name, Write::Create(json!({})));
        glass.mirror.wrote(&action, &Outcome::Lost("cut".to_owned()));
    }
    glass.present(&a).await?;
    glass.absent(&b).await
}

#[tokio::test]
async fn a_cut_connection_is_survived_and_everything_missed_is_learnt() -> Result<()> {
    let place = Place::new("mirror").await?;
    let (link, config) = place.world.hub.link().await?;
    let glass = Glass::new(connect(config, "work-agent")?);
    let maps: Api<ConfigMap> = place.api();
    let targets = ["kept", "changed", "deleted", "replaced", "made"].map(|name| map(&place, name));
    let [kept, changed, deleted, replaced, made] = &targets;
    for name in ["kept", "changed", "deleted", "replaced"] {
        place.config_map(name).await?;
    }
    glass.care("work", &targets.each_ref());
    let before = glass.present(kept).await?;
    let old = glass.present(replaced).await?;
    glass.absent(made).await?;
    for _ in 0..3 {
        link.cut();
        label(&maps, "changed", "x").await?;
        link.restore();
    }
    link.cut();
    let labelled = label(&maps, "changed", "1").await?;
    delete(&maps, "deleted").await?;
    delete(&maps, "replaced").await?;
    place.config_map("replaced").await?;
    place.config_map("made").await?;
    // Not noticed, or noticed and not for long: either way what was seen last still counts.
    assert_eq!(glass.mirror.look(&kept.id), Look::Present(Arc::clone(&before)));
    assert!(matches!(glass.mirror.look(&deleted.id), Look::Present(_)));
    link.restore();
    glass.absent(deleted).await?;
    glass.present(made).await?;
    let version = labelled.resource_version().context("it has a version")?;
    let newer =
        |look: &Look| matches!(look, Look::Present(now) if *now.resource_version == *version);
    glass.until(changed, newer).await?;
    let other = |look: &Look| matches!(look, Look::Present(now) if now.uid != old.uid);
    glass.until(replaced, other).await?;
    assert_eq!(glass.mirror.look(&kept.id), Look::Present(before));
    Ok(())
}

#[tokio::test]
async fn an_unreachable_server_is_unknown_and_not_empty() -> Result<()> {
    let place = Place::new("mirror").await?;
    let (link, config) = place.world.hub.link().await?;
    link.cut();
    let glass = Glass::new(connect(config, "work-agent")?);
    place.config_map("a").await?;
    let (a, b) = (map(&place, "a"), map(&place, "b"));
    glass.care("work", &[&a, &b]);
    let unreachable = |look: &Look| matches!(look, Look::Unknown(Reason::Unreachable { message, .. }) if !message.is_empty());
    glass.until(&a, unreachable).await?;
    assert!(unreachable(&glass.mirror.look(&b.id)));
    link.restore();
    glass.present(&a).await?;
    glass.absent(&b).await
}

#[tokio::test]
async fn a_kind_that_is_not_served_is_neither_absent_nor_asked_for_in_vain() -> Result<()> {
    let place = Place::new("mirror").await?;
    let glass = Glass::new(place.client.clone());
    let widget = widget(&place, "w");
    glass.care("work", &[&widget]);
    glass.until(&widget, |look| *look == Look::NoSuchKind).await?;

    let kind = definitions::define(&place).await?;
    glass.absent(&widget).await?;
    let object = json!({
        "apiVersion": kind.api_version, "kind": "Widget",
        "metadata": { "name": "w", "namespace": place.namespace }, "spec": { "size": 1 },
    });
    let first = create(&kind.objects, object.clone()).await?;
    let seen = glass.present(&widget).await?;
    assert_eq!(Some(&*seen.uid), first.uid().as_deref());

    delete(&kind.definitions, &kind.definition.name_any()).await?;
    gone(&kind.definitions, &kind.definition).await?;
    let unserved = |look: &Look| !matches!(look, Look::Present(_));
    glass.until(&widget, unserved).await?;

    // Another definition of the same name, and another object of the same name.
    let kind = definitions::define(&place).await?;
    let second = eventually("the kind to be served", || async {
        Ok(create(&kind.objects, object.clone()).await.ok())
    })
    .await?;
    let uid = second.uid().context("it has a uid")?;
    let again = |look: &Look| matches!(look, Look::Present(now) if *now.uid == *uid);
    glass.until(&widget, again).await?;
    delete(&kind.definitions, &kind.definition.name_any()).await
}

#[tokio::test]
async fn what_one_may_not_see_is_not_taken_for_absent() -> Result<()> {
    let place = Place::new("mirror").await?;
    let nobody = cleat_world::world::Credentials::Token("nobody's".to_owned());
    let glass = Glass::new(place.world.hub.client_with(nobody).await?);
    place.config_map("a").await?;
    let (a, b) = (map(&place, "a"), map(&place, "b"));
    glass.care("work", &[&a, &b]);
    let forbidden = |look: &Look| matches!(look, Look::Unknown(Reason::Forbidden(_)));
    glass.until(&a, forbidden).await?;
    assert!(forbidden(&glass.mirror.look(&b.id)));
    Ok(())
}

/// It was asked for again and again, and was never anything but not read yet.
#[tokio::test]
async fn what_one_may_list_and_not_read_is_said_to_be_out_of_sight() -> Result<()> {
    let place = Place::new("mirror").await?;
    let robot = access::robot(&place).await?;
    let roles: Api<ClusterRole> = Api::all(place.client.clone());
    let rules =
        |verbs: Value| json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": verbs }]);
    let listing = rules(json!(["list", "watch"]));
    create(&roles, json!({ "metadata": { "name": place.namespace }, "rules": listing })).await?;
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": { "name": place.namespace },
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": place.namespace },
        "subjects": [{ "kind": "ServiceAccount", "name": "robot", "namespace": place.namespace }],
    });
    create(&Api::<ClusterRoleBinding>::all(place.client.clone()), binding).await?;
    let maps: Api<ConfigMap> = Api::namespaced(robot.clone(), &place.namespace);
    eventually("the role to be known", || async {
        Ok(maps.list(&ListParams::default()).await.ok())
    })
    .await?;
    place.config_map("b").await?;
    let glass = Glass::new(robot);
    let (a, b) = (map(&place, "a"), map(&place, "b"));
    glass.care("one", &[&a]);
    glass.absent(&a).await?;
    // The list told that there is one of this name, so it has to be read.
    glass.care("two", &[&b]);
    glass.until(&b, |look| matches!(look, Look::Unknown(Reason::Forbidden(_)))).await?;
    let patch = Patch::Merge(json!({ "rules": rules(json!(["get", "list", "watch"])) }));
    roles.patch(&place.namespace, &PatchParams::default(), &patch).await?;
    glass.present(&b).await?;
    Ok(())
}

/// A kind of its own, since of one that others use as well most objects may be nobody's: and as many
/// of it as are listed rather than read.
#[tokio::test]
async fn what_was_listed_is_handed_over_once_and_never_when_it_is_out_of_date() -> Result<()> {
    let place = Place::new("handover").await?;
    let kind = definitions::define(&place).await?;
    let targets: Vec<Target> =
        (10..40).map(|number| widget(&place, &format!("w{number}"))).collect();
    for target in &targets {
        let object = json!({
            "apiVersion": kind.api_version, "kind": "Widget",
            "metadata": { "name": target.id.name }, "spec": { "size": 1 },
        });
        create(&kind.objects, object).await?;
    }
    let glass = Glass::handing_over(place.client.clone());
    glass.care("work", &targets.iter().collect::<Vec<_>>());
    for target in &targets {
        glass.present(target).await?;
    }
    let [kept, changed, written, doubted, replaced, deleted, left, ..] = targets.as_slice() else {
        panic!("there are more than these");
    };
    for target in [kept, changed, written, doubted, replaced, deleted, left] {
        assert!(glass.mirror.hands_over(target), "{} was listed whole", target.id);
    }

    let meta = glass.present(kept).await?;
    let other = Target { version: "v2".to_owned(), ..kept.clone() };
    assert!(!glass.mirror.hands_over(&other), "in that version it has to be read");
    let object = glass.mirror.take(kept).context("it was listed whole")?;
    assert_eq!(object["metadata"]["uid"], *meta.uid);
    assert_eq!(object["metadata"]["resourceVersion"], *meta.resource_version);
    assert_eq!(object["apiVersion"], *kind.api_version);
    assert_eq!(object["kind"], "Widget");
    assert_eq!(object["spec"], json!({ "size": 1, "colour": "green" }));
    assert_eq!(glass.mirror.take(kept), None, "only the first who asks gets it");

    // As soon as anything newer is known, by whomever.
    let patch = Patch::Merge(json!({ "spec": { "text": "theirs" } }));
    let now = kind.objects.patch(&changed.id.name, &PatchParams::default(), &patch).await?;
    let version = now.resource_version().context("it has a version")?;
    let newer =
        |look: &Look| matches!(look, Look::Present(now) if *now.resource_version == *version);
    glass.until(changed, newer).await?;
    assert_eq!(glass.mirror.take(changed), None);

    let write = Write::Merge(json!({ "spec": { "text": "ours" } }));
    let plan = vec![vec![Action { side: Side::Cluster, target: written.clone(), write }]];
    let outcomes = executor(&place.client).execute(&plan).await;
    assert!(outcomes[0][0].is_done(), "{:?}", outcomes[0][0]);
    glass.mirror.wrote_all(&plan, &outcomes);
    assert_eq!(glass.mirror.take(written), None);

    let write = Write::Merge(json!({ "spec": { "text": "perhaps" } }));
    let action = Action { side: Side::Cluster, target: doubted.clone(), write };
    glass.mirror.wrote(&action, &Outcome::Lost("cut".to_owned()));
    assert_eq!(glass.mirror.take(doubted), None);
    glass.present(doubted).await?;
    assert_eq!(glass.mirror.take(doubted), None, "nor after it was read");

    let old = glass.present(replaced).await?;
    delete(&kind.objects, &replaced.id.name).await?;
    let object = json!({
        "apiVersion": kind.api_version, "kind": "Widget",
        "metadata": { "name": replaced.id.name }, "spec": { "size": 1 },
    });
    create(&kind.objects, object).await?;
    let anew = |look: &Look| matches!(look, Look::Present(now) if now.uid != old.uid);
    glass.until(replaced, anew).await?;
    assert_eq!(glass.mirror.take(replaced), None);

    delete(&kind.objects, &deleted.id.name).await?;
    glass.absent(deleted).await?;
    assert_eq!(glass.mirror.take(deleted), None);

    // Who comes to care later is not served from what nobody cared about.
    glass.care("work", &[kept]);
    glass.care("work", &[kept, left]);
    glass.present(left).await?;
    assert_eq!(glass.mirror.take(left), None);
    glass.tasks.shutdown().await;
    delete(&kind.definitions, &kind.definition.name_any()).await
}
