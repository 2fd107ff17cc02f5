//! The requests that servers are loaded with, made without a client's help so that they cost little.

use anyhow::Result;
use http::Request;
use kube::Client;
use serde_json::json;

use super::super::bare;

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

fn maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

pub(crate) fn ready() -> Result<Request<Vec<u8>>> {
    Ok(Request::get("/readyz").body(Vec::new())?)
}

pub(crate) fn create(namespace: &str, name: &str) -> Result<Request<Vec<u8>>> {
    let body = serde_json::to_vec(&bare::map(namespace, name))?;
    Ok(Request::post(maps(namespace)).header("content-type", JSON).body(body)?)
}

/// A merge patch of one field.
pub(crate) fn patch(
    namespace: &str,
    name: &str,
    field: &str,
    to: &str,
) -> Result<Request<Vec<u8>>> {
    let body = serde_json::to_vec(&json!({ "data": { field: to } }))?;
    let path = format!("{}/{name}", maps(namespace));
    Ok(Request::patch(path).header("content-type", MERGE).body(body)?)
}

/// A server-side apply that takes a field over from whoever made the object.
pub(crate) fn apply(namespace: &str, name: &str, to: &str) -> Result<Request<Vec<u8>>> {
    let mut object = bare::map(namespace, name);
    if let Some(key) = object.pointer_mut("/data/key") {
        *key = json!(to);
    }
    let path = format!("{}/{name}?fieldManager=bench&force=true", maps(namespace));
    let body = serde_json::to_vec(&object)?;
    Ok(Request::patch(path).header("content-type", APPLY).body(body)?)
}

pub(crate) fn get(namespace: &str, name: &str) -> Result<Request<Vec<u8>>> {
    Ok(Request::get(format!("{}/{name}", maps(namespace))).body(Vec::new())?)
}

pub(crate) fn delete(namespace: &str, name: &str) -> Result<Request<Vec<u8>>> {
    Ok(Request::delete(format!("{}/{name}", maps(namespace))).body(Vec::new())?)
}

/// Everything in a namespace, in one answer.
pub(crate) fn list(namespace: &str) -> Result<Request<Vec<u8>>> {
    Ok(Request::get(maps(namespace)).body(Vec::new())?)
}

/// What changes in a namespace after a revision.
pub(crate) fn watch(namespace: &str, from: &str) -> Result<Request<Vec<u8>>> {
    let path = format!("{}?watch=true&resourceVersion={from}", maps(namespace));
    Ok(Request::get(path).body(Vec::new())?)
}

/// Reads an answer to its end and keeps nothing of it. Says how many bytes it had.
pub(crate) async fn drain(client: &Client, request: Request<Vec<u8>>) -> Result<u64> {
    let body = client.request_stream(request).await?;
    Ok(futures::io::copy_buf(body, &mut futures::io::sink()).await?)
}
