//! Asking admission about a write: first those who may change the object, then those who may only
//! refuse it.

use serde_json::Value;

use super::{Call, delete, intake};
use crate::admission::{self, GroupVersionKind, GroupVersionResource, Operation, Verdict};
use crate::object;
use crate::query::DeleteOptions;
use crate::status::Status;

/// What webhooks are shown of a write beside the objects.
pub(crate) struct Asking {
    /// `CreateOptions`, `UpdateOptions` or `DeleteOptions`.
    pub(crate) options: Value,
    pub(crate) dry_run: bool,
}

impl Call<'_> {
    /// Whether anybody may change objects of this kind before they are written.
    pub(crate) fn has_mutators(&self, shown: &Value) -> bool {
        self.server.admission().mutates(&kind_of(shown))
    }

    /// Lets mutating webhooks change what is about to be written; `None` if they leave it as it is.
    /// `old` is `None` for a creation.
    pub(crate) async fn mutate(
        &mut self,
        new: &Value,
        old: Option<&Value>,
        asking: &Asking,
    ) -> Result<Option<Value>, Status> {
        if !self.has_mutators(new) {
            return Ok(None);
        }
        let name = self.shown_name(new);
        let mutated = {
            let request = self.request(operation(old), &name, (Some(new), old), asking);
            let call = &*self;
            // Below a resource another kind may be written, which has no defaults of its own.
            let own = new.get("kind").and_then(Value::as_str) == Some(&*call.ty.kind);
            let reshape = |object: Value| match own {
                true => intake::reshape(call, object),
                false => Ok(object),
            };
            let admission = call.server.admission();
            admission.mutate(&request, call.server, &reshape).await
        };
        self.heed(mutated.verdict)?;
        Ok(mutated.object)
    }

    /// Asks the validating webhooks about a write. `old` is `None` for a creation.
    pub(crate) async fn admit_write(
        &mut self,
        new: &Value,
        old: Option<&Value>,
        asking: &Asking,
    ) -> Result<(), Status> {
        let name = self.shown_name(new);
        let verdict = {
            let request = self.request(operation(old), &name, (Some(new), old), asking);
            self.server.validate(&request).await
        };
        self.heed(verdict)
    }

    /// Asks all webhooks about a delete, in which nobody can change anything.
    pub(crate) async fn admit_delete(
        &mut self,
        old: &Value,
        options: &DeleteOptions,
        collection: bool,
    ) -> Result<(), Status> {
        self.refuse_immortal()?;
        let name = if collection { String::new() } else { self.name.clone() };
        let asking = Asking { options: options.to_json(), dry_run: options.dry_run };
        let mutated = {
            let request = self.request(Operation::Delete, &name, (None, Some(old)), &asking);
            let unchanged = |object: Value| -> Result<Value, Status> { Ok(object) };
            let admission = self.server.admission();
            admission.mutate(&request, self.server, &unchanged).await
        };
        self.heed(mutated.verdict)?;
        let verdict = {
            let request = self.request(Operation::Delete, &name, (None, Some(old)), &asking);
            self.server.validate(&request).await
        };
        self.heed(verdict)
    }

    /// Passes on what came with a verdict, and the verdict itself.
    fn heed(&mut self, verdict: Verdict) -> Result<(), Status> {
        let Verdict { result, warnings, annotations } = verdict;
        self.warnings.extend(warnings);
        if let Some(notes) = self.notes {
            notes.add(annotations);
        }
        result
    }

    /// The object's name, or of what lies below one, that of the one it lies below. An object whose
    /// name is yet to be generated has none.
    fn shown_name(&self, new: &Value) -> String {
        match &*self.subresource {
            "" => object::name(new).to_owned(),
            _ => self.name.clone(),
        }
    }

    fn request<'r>(
        &'r self,
        operation: Operation,
        name: &'r str,
        (object, old_object): (Option<&'r Value>, Option<&'r Value>),
        asking: &'r Asking,
    ) -> admission::Request<'r> {
        let namespace = match delete::is_namespace(&self.ty) {
            true => object.or(old_object).map(object::name).unwrap_or_default(),
            false => &*self.namespace,
        };
        admission::Request {
            operation,
            kind: object.or(old_object).map(kind_of).unwrap_or_default(),
            resource: GroupVersionResource {
                group: self.ty.group.to_string(),
                version: self.version.to_string(),
                resource: self.ty.plural.to_string(),
            },
            subresource: &self.subresource,
            name,
            namespace,
            user: &self.user,
            object,
            old_object,
            options: Some(&asking.options),
            dry_run: asking.dry_run,
        }
    }

    /// Some namespaces and priorities are never deleted.
    fn refuse_immortal(&self) -> Result<(), Status> {
        let critical = matches!(&*self.name, "system-node-critical" | "system-cluster-critical");
        if (&*self.ty.group, &*self.ty.plural) == ("scheduling.k8s.io", "priorityclasses")
            && critical
        {
            let why = "this is a system priority class and cannot be deleted";
            return Err(Status::forbidden(self.gr(), &self.name, why));
        }
        let immortal = matches!(&*self.name, "default" | "kube-system" | "kube-public");
        if delete::is_namespace(&self.ty) && immortal {
            let why = "this namespace may not be deleted";
            return Err(Status::forbidden(self.gr(), &self.name, why));
        }
        Ok(())
    }
}

fn operation(old: Option<&Value>) -> Operation {
    match old {
        None => Operation::Create,
        Some(_) => Operation::Update,
    }
}

/// What an object says it is, which below a resource may be another kind than the resource's.
fn kind_of(object: &Value) -> GroupVersionKind {
    let text = |field| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let api_version = text("apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    GroupVersionKind { group: group.into(), version: version.into(), kind: text("kind").into() }
}
