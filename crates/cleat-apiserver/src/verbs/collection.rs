//! Deletecollection: the objects a list finds, deleted one by one.
//!
//! Each object passes admission by itself, without its name; the first refusal ends the rest, so a
//! refused collection is partly gone. That is what clients of Kubernetes expect.

use super::{Call, delete, list};
use crate::form::Pieces;
use crate::object;
use crate::objects::Envelope;
use crate::query::{DeleteOptions, ListOptions};
use crate::status::Status;

pub(crate) async fn delete_collection(
    call: &mut Call<'_>,
    filter: &ListOptions,
    options: &DeleteOptions,
) -> Result<Pieces, Status> {
    let page = list::page(call, filter).await?;
    let envelope = Envelope::of(&call.ty, &call.version);
    for entry in &page.entries {
        let Some(target) = envelope.open(entry) else { continue };
        object::name(&target).clone_into(&mut call.name);
        object::namespace(&target).clone_into(&mut call.namespace);
        match delete::delete_object(call, options, true).await {
            Ok(_) => {}
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
        }
    }
    Ok(list::as_list(call, page.entries, page.revision))
}
