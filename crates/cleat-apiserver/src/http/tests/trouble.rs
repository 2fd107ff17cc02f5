//! A server whose disk has no room, as its clients see it.

use std::sync::atomic::{AtomicBool, Ordering};

use cleat_store::{Backend, BackendError, Batch, Disk, Revision, Stored};

use super::*;

/// What Linux says when there is no room.
const NO_SPACE: i32 = 28;

/// Keeps nothing but the number of what it was told to keep, unless it is full.
#[derive(Clone, Default)]
struct Keeper {
    full: Arc<AtomicBool>,
    last: u64,
}

impl Keeper {
    fn room(&self) -> Result<(), BackendError> {
        match self.full.load(Ordering::SeqCst) {
            true => Err(BackendError::new(std::io::Error::from_raw_os_error(NO_SPACE))),
            false => Ok(()),
        }
    }
}

impl Backend for Keeper {
    fn load(
        &mut self,
        _store: &str,
        _each: &mut dyn FnMut(Stored<'_>),
    ) -> Result<Option<Revision>, BackendError> {
        Ok(None)
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), BackendError> {
        self.room()?;
        self.last = batch.number;
        Ok(())
    }

    fn settle(&mut self) -> Result<u64, BackendError> {
        self.room()?;
        Ok(self.last)
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })
}

#[tokio::test]
async fn a_full_disk_fails_writes_with_the_reason_and_nothing_else() {
    let keeper = Keeper::default();
    let full = Arc::clone(&keeper.full);
    let disk = Disk::with_backend(keeper).unwrap();
    let config = Config {
        store: Store::open(&disk, "s", Limits::default()).unwrap(),
        authenticator: Authenticator::new(),
        authority: None,
        pretend_workloads: false,
        admission: Admission::default(),
        audit: None,
    };
    let server = Server::start(config).await.unwrap();
    assert_eq!(send(&server, "POST", MAPS, &[], map("before")).await.code, 201);
    let request = Request::get(format!("{MAPS}?watch=true")).body(Body::empty()).unwrap();
    let mut watch = server.router().oneshot(request).await.unwrap().into_body();
    let mut told = async |name: &str| {
        let line = watch.frame().await.unwrap().unwrap().into_data().unwrap();
        let event: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(
            (&event["type"], &event["object"]["metadata"]["name"]),
            (&json!("ADDED"), &json!(name))
        );
    };
    told("before").await;

    full.store(true, Ordering::SeqCst);
    for time in 0..3 {
        let refused = send(&server, "POST", MAPS, &[], map("during")).await;
        assert_eq!(refused.code, 500, "{time}: {}", refused.body);
        let status = refused.json();
        assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(500)));
        let message = status["message"].as_str().unwrap();
        assert!(message.contains("No space left on device"), "{time}: {message}");
        let labels = json!({ "metadata": { "labels": { "a": "b" } } });
        let patch = [("content-type", "application/merge-patch+json")];
        let path = format!("{MAPS}/before");
        assert_eq!(send(&server, "PATCH", &path, &patch, labels).await.code, 500);
        assert_eq!(send(&server, "DELETE", &path, &[], Value::Null).await.code, 500);
        let found = get(&server, &path, &[]).await;
        assert_eq!((found.code, &found.json()["metadata"]["labels"]), (200, &Value::Null));
        assert_eq!(get(&server, &format!("{MAPS}/during"), &[]).await.code, 404);
        assert_eq!(get(&server, MAPS, &[]).await.code, 200);
    }

    full.store(false, Ordering::SeqCst);
    assert_eq!(send(&server, "POST", MAPS, &[], map("after")).await.code, 201);
    told("after").await;
    assert_eq!(send(&server, "POST", MAPS, &[], map("during")).await.code, 201);
    told("during").await;
    server.stop().await;
}
