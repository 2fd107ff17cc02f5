//! What a controller that begins makes of what its first lists tell: objects that were listed whole
//! are not read once more, and are not taken for more than they are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as Polling, Poll};

use anyhow::Result;
use cleat_agent::policy;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::client::Body;
use kube::{Client, ResourceExt as _};
use serde_json::json;
use tower::{BoxError, Service};

use super::{Site, enforce, musthave};
use crate::{create, definitions, delete, seen};

/// Somebody changes an object after a list was answered and before the answer arrives. Writes down
/// which objects are read by themselves.
#[derive(Clone)]
struct Overtaken {
    through: Client,
    widgets: Api<DynamicObject>,
    done: Arc<AtomicBool>,
    read: Arc<Mutex<Vec<String>>>,
}

impl Service<Request<Body>> for Overtaken {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Polling<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let uri = request.uri().clone();
            let query = uri.query().unwrap_or_default();
            let lists = uri.path().ends_with("/widgets") && !query.contains("watch=");
            if request.method() == Method::GET
                && let Some((_, name)) = uri.path().split_once("/widgets/")
            {
                this.read.lock().unwrap().push(name.to_owned());
            }
            let answer = this.through.send(request).await?;
            if lists && !this.done.swap(true, Ordering::SeqCst) {
                let patch = Patch::Merge(json!({ "spec": { "size": 2, "text": "theirs" } }));
                this.widgets.patch("w12", &PatchParams::default(), &patch).await?;
            }
            Ok(answer)
        })
    }
}

/// What was listed of it says that all is well; what the watch tells next counts.
#[tokio::test]
async fn an_object_that_changed_since_it_was_listed_is_put_right_from_what_it_is_now() -> Result<()>
{
    let mut site = Site::without_controller("first-list").await?;
    let kind = definitions::define_for(&site.cluster, &site.name).await?;
    let names: Vec<String> = (10..60).map(|number| format!("w{number}")).collect();
    let definition = |name: &String| {
        json!({
            "apiVersion": kind.api_version, "kind": "Widget",
            "metadata": { "name": name, "namespace": site.name }, "spec": { "size": 1 },
        })
    };
    for name in &names {
        create(&kind.objects, definition(name)).await?;
    }
    for (index, some) in names.chunks(25).enumerate() {
        let templates = some.iter().map(|name| musthave(definition(name))).collect();
        site.policy(&format!("p{index}"), enforce(templates)).await?;
    }
    let overtaken = Overtaken {
        through: site.cluster.clone(),
        widgets: kind.objects.clone(),
        done: Arc::default(),
        read: Arc::default(),
    };
    let cluster_client = Client::new(overtaken.clone(), "default");
    site.run(policy::Config { cluster_client, ..site.config() });
    let put_right = |widget: &DynamicObject| {
        let spec = &widget.data["spec"];
        spec["size"] == 1 && spec["text"] == "theirs"
    };
    seen(&kind.objects, "w12", put_right).await?;
    for policy in ["p0", "p1"] {
        site.settles(policy).await?;
    }
    site.passes("after").await?;
    let read = overtaken.read.lock().unwrap().clone();
    let others: Vec<&String> = read.iter().filter(|name| *name != "w12").collect();
    assert_eq!(others, [] as [&String; 0], "they were listed whole");
    site.stop().await;
    delete(&kind.definitions, &kind.definition.name_any()).await
}
