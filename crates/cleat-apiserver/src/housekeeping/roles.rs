//! Aggregated cluster roles: their rules are the union of the roles their selectors find.

use std::sync::Arc;

use serde_json::Value;

use super::{ObjectRef, Outcome, rewrite};
use crate::authz;
use crate::server::Inner;
use crate::status::Status;

pub(super) async fn aggregate(server: &Arc<Inner>) -> Result<Outcome, Status> {
    let types = server.types();
    let Some(ty) = types.get("rbac.authorization.k8s.io", "clusterroles") else {
        return Ok(Outcome::Done);
    };
    let roles = server.objects.all(ty, &ty.storage_version, "")?;
    for role in
        roles.iter().filter(|role| role.get("aggregationRule").is_some_and(Value::is_object))
    {
        let Some(rules) = authz::aggregated_rules(role, roles.iter()) else { continue };
        let at = ObjectRef::of(ty, role);
        rewrite(server, ty, &at, ("clusterrole-aggregation-controller", ""), |current| {
            if let Some(map) = current.as_object_mut() {
                map.insert("rules".into(), rules.clone());
            }
            true
        })
        .await?;
    }
    Ok(Outcome::Done)
}
