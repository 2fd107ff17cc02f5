//! Many objects of one kind and namespace at once: a page of a list costs a server about as much as
//! a few reads, so a controller that begins does not read ten thousand objects one by one. Most of
//! them the mirror's own list hands over; this is for the rest, where a namespace is full of objects of
//! policies and the cluster is not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cleat_core::id::{Id, Target};
use cleat_core::policy::observed::ListOf;
use cleat_runtime::mirror::Look;
use serde::Deserialize;
use serde_json::Value;

use super::Context;

/// Reading one object costs about as much as this part of a page.
const READS_PER_PAGE: usize = 20;
const PAGE: usize = 500;

/// One reading at a time of the objects of a kind in a namespace: who comes meanwhile finds them read.
#[derive(Default)]
pub(super) struct Sweeps {
    under_way: Mutex<BTreeMap<Place, Arc<tokio::sync::Mutex<()>>>>,
}

/// API version, resource and namespace.
type Place = (String, String, String);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    metadata: PageMetadata,
    items: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    #[serde(default)]
    r#continue: String,
    #[serde(default)]
    remaining_item_count: Option<usize>,
}

impl Context {
    /// Reads what these objects are part of, where that is cheaper than reading each. What could not
    /// be read so is read one by one later.
    pub(super) async fn sweep(&self, targets: &[Target]) {
        let mut places: BTreeMap<Place, Vec<&Target>> = BTreeMap::new();
        for target in targets.iter().filter(|target| self.is_unread(target)) {
            let Id { resource, namespace, .. } = &target.id;
            let place = (target.api_version(), resource.clone(), namespace.clone());
            places.entry(place).or_default().push(target);
        }
        for (place, mine) in places {
            let Some(like) = mine.first() else { continue };
            if !self.lacks_more_than(READS_PER_PAGE, like) {
                continue;
            }
            let turn = {
                let mut all = self.sweeps.under_way.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(all.entry(place).or_default())
            };
            let _turn = turn.lock().await;
            // Whoever had the turn before has read most of them, and looking through all names for
            // those that are missing takes long.
            let missing = mine.iter().any(|target| self.is_unread(target));
            if missing && self.lacks_more_than(READS_PER_PAGE, like) {
                self.read_pages(like).await;
            }
        }
    }

    fn is_unread(&self, target: &Target) -> bool {
        match self.mirror.look(&target.id) {
            Look::Present(meta) => {
                !self.contents.has(target, &meta) && !self.mirror.hands_over(target)
            }
            _ => false,
        }
    }

    /// Whether more than so many objects of this kind and namespace have to be read.
    fn lacks_more_than(&self, most: usize, like: &Target) -> bool {
        self.subjects.more_than(most, &like.id, |id| {
            self.is_unread(&Target { version: like.version.clone(), id: id.clone() })
        })
    }

    /// All objects of a kind in a namespace with these labels, as the server has them now.
    pub(super) async fn list_now(&self, of: &ListOf) -> Result<Vec<Arc<Value>>, String> {
        let like = of.kind.target(&of.namespace, "");
        let (mut all, mut next) = (Vec::new(), String::new());
        loop {
            let page = self.page(&like, &of.labels, &next).await?;
            all.extend(page.items.into_iter().map(Arc::new));
            next = page.metadata.r#continue;
            if next.is_empty() {
                return Ok(all);
            }
        }
    }

    async fn page(&self, like: &Target, labels: &str, next: &str) -> Result<Page, String> {
        let uri = uri(like, labels, next).ok_or("it cannot be asked for")?;
        let request =
            http::Request::get(uri).body(Vec::new()).map_err(|error| error.to_string())?;
        let asked = self.config.cluster_client.request(request).await;
        let mut page: Page = asked.map_err(|error| error.to_string())?;
        let kind = page.kind.strip_suffix("List").unwrap_or(&page.kind);
        for fields in page.items.iter_mut().filter_map(Value::as_object_mut) {
            // Lists of built-in kinds leave out what all of their items are.
            fields.entry("apiVersion").or_insert_with(|| page.api_version.clone().into());
            fields.entry("kind").or_insert_with(|| kind.into());
        }
        Ok(page)
    }

    async fn read_pages(&self, like: &Target) {
        let mut next = String::new();
        loop {
            let Page { metadata, items, .. } = match self.page(like, "", &next).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::debug!(%error, resource = like.id.resource, "cannot be listed now");
                    return;
                }
            };
            for item in items {
                let name = item.pointer("/metadata/name").and_then(Value::as_str);
                let Some(name) = name.map(ToOwned::to_owned) else { continue };
                drop(self.contents.keep(&Id { name, ..like.id.clone() }, item));
            }
            next = metadata.r#continue;
            let left = metadata.remaining_item_count.unwrap_or_default();
            // The rest costs more than reading what is wanted of it.
            let most = READS_PER_PAGE * (1 + left / PAGE);
            if next.is_empty() || !self.lacks_more_than(most, like) {
                return;
            }
        }
    }
}

/// Where a page is. Names of kinds and namespaces that were mapped need no escaping.
fn uri(like: &Target, labels: &str, next: &str) -> Option<String> {
    let Id { group, resource, namespace, .. } = &like.id;
    let plain = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'.')
    };
    let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
    let inside =
        if namespace.is_empty() { String::new() } else { format!("namespaces/{namespace}/") };
    let parts = [group, namespace].into_iter().filter(|part| !part.is_empty());
    if !parts.chain([resource, &like.version]).all(|part| plain(part)) {
        return None;
    }
    let asked = |name: &str, value: &str| match value {
        "" => String::new(),
        value => format!("&{name}={}", escaped(value)),
    };
    let (labels, next) = (asked("labelSelector", labels), asked("continue", next));
    let version = &like.version;
    Some(format!("{root}/{version}/{inside}{resource}?limit={PAGE}{labels}{next}"))
}

fn escaped(text: &str) -> String {
    let one = |c: u8| match c {
        b'-' | b'_' | b'.' | b'~' => char::from(c).to_string(),
        c if c.is_ascii_alphanumeric() => char::from(c).to_string(),
        c => format!("%{c:02X}"),
    };
    text.bytes().map(one).collect()
}
