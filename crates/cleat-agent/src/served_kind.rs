//! How a kind is served of which something was made.

use cleat_core::policy::observed::{Kind, KindName};
use cleat_runtime::kinds::{Kinds, Mapping};
use kube::Client;

use crate::policy::kinds::Server;

/// What has no kind is taken for gone, so before that discovery is asked anew, and after it the
/// definitions: what was made in a version that is no longer served is there in another.
pub(crate) async fn served_kind(client: &Client, kinds: &Kinds, name: &KindName) -> Kind {
    if kinds.map(&name.api_version, &name.kind).await == Mapping::NoSuchKind {
        kinds.forget();
    }
    Server { client, kinds }.kind_of_made(name).await
}
