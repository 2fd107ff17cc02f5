//! How a kind is served of which something was made.

use cleat_core::policy::observed::{Kind, KindName, Served};
use cleat_runtime::kinds::{Kinds, Mapped, Mapping};

/// What has no kind is taken for gone, so before that discovery is asked anew.
pub(crate) async fn served_kind(kinds: &Kinds, name: &KindName) -> Kind {
    let KindName { api_version, kind } = name;
    let mut found = kinds.map(api_version, kind).await;
    if found == Mapping::NoSuchKind {
        kinds.forget();
        found = kinds.map(api_version, kind).await;
    }
    match found {
        Mapping::Mapped(Mapped { group, version, resource, namespaced }) => {
            Kind::Served(Served { group, version, resource, namespaced })
        }
        Mapping::NoSuchKind => Kind::Absent,
        Mapping::Unknown(why) => Kind::Unknown(why),
    }
}
