//! The `scale` subresource: reading and writing how many replicas an object shall have.

use std::sync::Arc;

use cleat_dialect::gotypes::types;
use serde_json::Value;

use super::{Call, intake, update};
use crate::apply::{self, SCALE_VERSION, lend_managers, return_managers};
use crate::builtin;
use crate::http::Asked;
use crate::http::dispatch::read_patch;
use crate::object;
use crate::patch::{self, Accepts, Language, Patch};
use crate::query::WriteOptions;
use crate::quote::{self, quoted};
use crate::resource::Origin;
use crate::rules;
use crate::rules::scale::{self, Place};
use crate::status::{FieldError, Status};

/// Answers a request for the Scale of an object.
pub(super) async fn answer(call: &mut Call<'_>, asked: &Asked) -> Result<(u16, Value), Status> {
    let ty = Arc::clone(&call.ty);
    let place = match (&ty.origin, ty.version(&call.version).and_then(|v| v.scale.as_ref())) {
        (Origin::Builtin, _) => Place::Builtin,
        (Origin::Custom { .. }, Some(paths)) => Place::Custom(paths),
        (Origin::Custom { .. }, None) => return Err(Status::no_such_path()),
    };
    let (wish, options) = match &*asked.info.verb {
        "get" => {
            let current = call.current()?.ok_or_else(|| call.not_found())?;
            if scale::wanted(&current.value, &place).is_none() {
                let path = quoted(&format!(".{}", place.path().join(".")));
                let why = format!("the spec replicas field {path} does not exist");
                return Err(Status::internal(why));
            }
            return Ok((200, scale::view(&current.value, &place)));
        }
        "update" => {
            let options = WriteOptions::update(&asked.query)?;
            let body = super::subresource::parse(asked, SCALE_VERSION, "Scale")?;
            intake::check_name(call, &body)?;
            (Wish::Whole(body), options)
        }
        _ => {
            let language = match asked.header(http::header::CONTENT_TYPE) {
                "application/strategic-merge-patch+json" => Language::Strategic,
                other => patch::language(other, Accepts::Custom)?,
            };
            let (patch, options) = read_patch(call, asked, language)?;
            (Wish::Patch(patch), options)
        }
    };
    let change = Rescale { place: &place, wish, options: &options };
    let written = update::update(call, &change, &options).await?;
    Ok((200, scale::view(&written.value, &place)))
}

enum Wish {
    Whole(Value),
    Patch(Patch),
}

struct Rescale<'a> {
    place: &'a Place<'a>,
    wish: Wish,
    options: &'a WriteOptions,
}

impl Rescale<'_> {
    /// The Scale as the client wants it, with who manages what in it.
    fn wanted(&self, call: &Call<'_>, current: &Value) -> Result<Value, Status> {
        let live = scale::view(current, self.place);
        let mut tracked = live.clone();
        lend_managers(current, &self.place.path(), &mut tracked);
        let target = apply::Target {
            kind: "Scale",
            schema: builtin::schemas().named("io.k8s.api.autoscaling.v1.Scale"),
            reset: &[&["status"]],
            api_versions: &[SCALE_VERSION],
        };
        let manager = apply::Manager {
            name: &call.manager(&self.options.field_manager),
            subresource: &call.subresource,
            api_version: SCALE_VERSION,
            time: &call.server.clock.now_text(),
        };
        let mut wanted = match &self.wish {
            Wish::Whole(body) => body.clone(),
            Wish::Patch(Patch::Apply(config)) => {
                let force = self.options.force;
                return apply::server_side_apply(Some(&tracked), config, &target, &manager, force);
            }
            Wish::Patch(patch) => {
                let mut scale = patch::apply_patch(&live, patch, None)?;
                match unreadable(patch, &mut scale) {
                    None => scale,
                    Some(why) => {
                        // It is shown with its managers.
                        let scale = patch::apply_patch(&tracked, patch, None)?;
                        let shape = types().shape(SCALE_VERSION, "Scale");
                        let shown = match patch {
                            Patch::Strategic(patch) => quote::plain(patch),
                            patch => patch::shown(&tracked, patch, &scale, shape),
                        };
                        let error = FieldError::invalid("patch", shown, why);
                        return Err(Status::invalid("", "", "", &[error]));
                    }
                }
            }
        };
        scale::forget_none(&mut wanted);
        apply::track_update(Some(&tracked), &mut wanted, &target, &manager);
        Ok(wanted)
    }
}

/// Why a patched Scale is none.
fn unreadable(patch: &Patch, scale: &mut Value) -> Option<String> {
    match patch {
        Patch::Strategic(_) => rules::restore(SCALE_VERSION, "Scale", scale).err(),
        _ => rules::unreadable(SCALE_VERSION, "Scale", scale),
    }
}

impl update::Change for Rescale<'_> {
    fn apply(&self, call: &mut Call<'_>, current: Option<&Value>) -> Result<Value, Status> {
        let mut new = current.cloned().ok_or_else(|| call.not_found())?;
        let wanted = self.wanted(call, &new)?;
        scale::apply(&mut new, self.place, &wanted)
            .map_err(|errors| Status::invalid("autoscaling", "Scale", &call.name, &errors))?;
        if let Place::Custom(_) = self.place {
            // What the path to the number created has defaults of its own.
            intake::fill_defaults(call, &mut new);
        }
        let revision = object::resource_version(&wanted);
        if !revision.is_empty() {
            object::metadata_mut(&mut new).insert("resourceVersion".into(), revision.into());
        }
        return_managers(&mut new, &self.place.path(), &call.api_version(), &wanted);
        Ok(new)
    }

    fn creates(&self, _call: &Call<'_>) -> bool {
        false
    }

    fn retries(&self) -> bool {
        true
    }

    fn options_kind(&self) -> &'static str {
        "UpdateOptions"
    }

    fn shown(&self, object: &Value) -> Option<Value> {
        Some(scale::view(object, self.place))
    }

    fn adopt(&self, call: &Call<'_>, new: &mut Value, shown: Value) -> Result<(), Status> {
        scale::apply(new, self.place, &shown)
            .map_err(|errors| Status::invalid("autoscaling", "Scale", &call.name, &errors))
    }
}
