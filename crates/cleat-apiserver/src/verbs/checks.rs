//! Preparing and validating objects before they are stored, whatever their kind.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use uuid::Uuid;

use super::{Call, delete};
use crate::addresses::Lazily;
use crate::admission;
use crate::admit::condition_error;
use crate::authz::{Attributes, ResourceTarget, Target};
use crate::certificates::CertificateRequest;
use crate::crd;
use crate::metadata;
use crate::object;
use crate::quote::quoted;
use crate::resource::Origin;
use crate::rules::{self, Env, Requester};
use crate::schema::{Schema, cel, validate};
use crate::standing::Standing;
use crate::status::{FieldError, Status};
use crate::user::MASTERS;

impl Call<'_> {
    /// What a new object is given, and what it may not bring.
    pub(crate) fn prepare_create(&self, new: &mut Value) {
        self.with_env(new, |new, env| rules::prepare_create(&self.ty, &self.version, new, env));
        if self.is_definition() {
            crd::prepare_create(new);
        }
    }

    /// What the server's own admission adds to a new object, before webhooks look at it.
    pub(crate) fn admit_own(&self, new: &mut Value) {
        self.with_env(new, |new, env| rules::admit_create(&self.ty, new, env));
    }

    /// Puts back what this path may not change.
    pub(crate) fn prepare_update(&self, new: &mut Value, old: &Value) {
        let subresource = self.subresource_name();
        self.with_env(new, |new, env| {
            rules::prepare_update(&self.ty, &self.version, subresource, old, new, env);
        });
        if self.is_definition() {
            crd::prepare_update(new, old, subresource);
        }
    }

    fn with_env(&self, new: &mut Value, prepare: impl FnOnce(&mut Value, &mut Env<'_>)) {
        let mut draw = Lazily::new(|| self.server.draw_addresses());
        // Only pods have an account, and a volume with its token.
        let (account, suffix) = match (&*self.ty.group, &*self.ty.plural) {
            ("", "pods") => (self.service_account(new), Uuid::new_v4().simple().to_string()),
            _ => (None, String::new()),
        };
        let mut env = Env {
            now: self.server.clock.now(),
            user: Requester {
                name: &self.user.name,
                uid: &self.user.uid,
                groups: &self.user.groups,
                extra: &self.user.extra,
            },
            addresses: &mut draw,
            service_account: account.as_ref(),
            suffix: suffix.get(..5).unwrap_or_default(),
        };
        prepare(new, &mut env);
    }

    /// Pods run as somebody. The account that every namespace has may be on its way.
    pub(crate) async fn check_service_account(&self, pod: &Value) -> Result<(), Status> {
        const LOOKS: usize = 10;
        const PAUSE: Duration = Duration::from_millis(100);
        let mirror = object::at(pod, "/metadata/annotations/kubernetes.io~1config.mirror");
        if (&*self.ty.group, &*self.ty.plural) != ("", "pods") || mirror.is_some() {
            return Ok(());
        }
        let name = account_name(pod);
        for look in 0..LOOKS {
            if self.service_account(pod).is_some() {
                return Ok(());
            }
            if name != "default" {
                break;
            }
            if look + 1 < LOOKS {
                tokio::time::sleep(PAUSE).await;
            }
        }
        let why = format!(
            "error looking up service account {}/{name}: serviceaccount {} not found",
            self.namespace,
            quoted(name)
        );
        Err(Status::forbidden(self.gr(), &self.name, why))
    }

    fn service_account(&self, pod: &Value) -> Option<Value> {
        let types = self.server.types();
        let ty = types.get("", "serviceaccounts")?;
        let found = self.objects().get(ty, "v1", &self.namespace, account_name(pod));
        found.ok().flatten().map(|stored| stored.value)
    }

    /// A new pod's place in the queue comes from the class it names, never from itself.
    pub(crate) fn give_priority(&self, new: &mut Value) -> Result<(), Status> {
        if (&*self.ty.group, &*self.ty.plural) != ("", "pods") {
            return Ok(());
        }
        let types = self.server.types();
        let classes = types.get("scheduling.k8s.io", "priorityclasses");
        let name = object::at(new, "/spec/priorityClassName").filter(|name| !name.is_empty());
        let class = match (classes, name) {
            (Some(classes), Some(name)) => self.objects().get(classes, "v1", "", name)?,
            _ => None,
        };
        rules::pod_priority(new, class.as_ref().map(|stored| &stored.value))
            .map_err(|why| Status::forbidden(self.gr(), &self.name, why))
    }

    /// A new pod that names a runtime has what that runtime costs, and goes where it is.
    pub(crate) fn give_runtime(&self, new: &mut Value) -> Result<(), Status> {
        let name = object::at(new, "/spec/runtimeClassName").filter(|name| !name.is_empty());
        let Some(name) = name.map(str::to_owned) else { return Ok(()) };
        if (&*self.ty.group, &*self.ty.plural) != ("", "pods") {
            return Ok(());
        }
        let refuse = |why: String| Status::forbidden(self.gr(), &self.name, why);
        let types = self.server.types();
        let class = match types.get("node.k8s.io", "runtimeclasses") {
            Some(classes) => self.objects().get(classes, "v1", "", &name)?,
            None => None,
        };
        let Some(class) = class else {
            let why = format!("pod rejected: RuntimeClass {} not found", quoted(&name));
            return Err(refuse(why));
        };
        rules::pod_runtime(new, &class.value).map_err(refuse)
    }

    pub(crate) fn subresource_name(&self) -> Option<&str> {
        (!self.subresource.is_empty()).then_some(&*self.subresource)
    }

    fn is_definition(&self) -> bool {
        delete::is_definition(&self.ty)
    }

    /// Nothing is created of a kind that is on its way out.
    pub(crate) fn check_kind_stays(&self) -> Result<(), Status> {
        let Origin::Custom { name, .. } = &self.ty.origin else { return Ok(()) };
        match self.server.definition_standing(name) {
            Some(Standing::Stays) => Ok(()),
            Some(Standing::Unreadable) => {
                let why = format!("the stored form of definition {} is damaged", quoted(name));
                Err(Status::internal(why))
            }
            Some(Standing::Goes) | None => {
                let why = "create not allowed while custom resource definition is terminating";
                Err(Status::forbidden(self.gr(), &self.name, why))
            }
        }
    }

    /// What the client is told about an object that is stored all the same.
    pub(crate) fn warn(&mut self, new: &Value, old: Option<&Value>) {
        match self.ty.origin {
            Origin::Custom { .. } => self.warnings.extend(metadata::finalizer_warnings(new, old)),
            Origin::Builtin if self.is_definition() => {
                self.warnings.extend(crd::warnings(new, old));
            }
            Origin::Builtin => self.warnings.extend(rules::warnings(&self.ty, new)),
        }
    }

    /// Who may have, approve and sign which certificates: rights beyond those to the request.
    pub(crate) fn refuse_certificate(
        &self,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        if (&*self.ty.group, &*self.ty.plural)
            != ("certificates.k8s.io", "certificatesigningrequests")
        {
            return Ok(());
        }
        let signer = object::at(new, "/spec/signerName").unwrap_or_default();
        let refuse = |why: String| Err(Status::forbidden(self.gr(), object::name(new), why));
        let certificate = |object: &Value| object.pointer("/status/certificate").cloned();
        match (old, &*self.subresource) {
            (None, _) if signer == "kubernetes.io/kube-apiserver-client" => {
                let request = object::at(new, "/spec/request").unwrap_or_default();
                let pem = STANDARD.decode(request).unwrap_or_default();
                let parsed = CertificateRequest::from_pem(&pem);
                let masters = parsed
                    .is_ok_and(|parsed| parsed.organizations.iter().any(|group| group == MASTERS));
                if masters {
                    return refuse(format!(
                        "use of {signer} signer with {MASTERS} group is not allowed"
                    ));
                }
            }
            (Some(_), "approval") if !self.may_for_signer("approve", signer) => {
                return refuse(format!(
                    "user not permitted to approve requests with signerName {}",
                    quoted(signer)
                ));
            }
            (Some(old), "status")
                if certificate(old) != certificate(new) && !self.may_for_signer("sign", signer) =>
            {
                return refuse(format!(
                    "user not permitted to sign requests with signerName {}",
                    quoted(signer)
                ));
            }
            _ => {}
        }
        Ok(())
    }

    /// A right to one signer, or to all of its domain.
    fn may_for_signer(&self, verb: &str, signer: &str) -> bool {
        let domain = signer.split_once('/').map_or(signer, |(domain, _)| domain);
        let every = format!("{domain}/*");
        [signer, &every].into_iter().any(|name| {
            let target = ResourceTarget {
                group: "certificates.k8s.io",
                resource: "signers",
                name,
                ..ResourceTarget::default()
            };
            let attributes = Attributes { verb, target: Target::Resource(target) };
            self.server.with_rbac(|rbac| rbac.allows(&self.user, &attributes))
        })
    }

    /// Everything that is wrong with a new object.
    pub(crate) fn validate_create(&self, new: &Value) -> Result<(), Status> {
        self.refuse_other_kind(new)?;
        let mut errors = metadata::validate(new, self.ty.namespaced, rules::name_rule(&self.ty));
        match (&self.ty.origin, self.schema()) {
            (Origin::Custom { .. }, Some(schema)) => {
                errors.extend(validate::validate(new, schema));
                errors.extend(self.scale_errors(new));
                errors.extend(rule_errors(&errors, new, None, schema));
            }
            (Origin::Custom { .. }, None) => {}
            (Origin::Builtin, _) => {
                errors.extend(unqualified_finalizers(new));
                let new = rules::with_empty_labels(new, &self.left_empty);
                errors.extend(rules::validate_create(&self.ty, &new));
            }
        }
        errors.extend(self.special_errors(new, None));
        self.refuse(&errors, new)
    }

    /// Everything that is wrong with a changed object, or with the change.
    pub(crate) fn validate_update(&self, new: &Value, old: &Value) -> Result<(), Status> {
        self.refuse_other_kind(new)?;
        let mut errors = metadata::validate_common_update(new, old, self.ty.namespaced);
        // Upstream asks once for all kinds and once more for each.
        errors.extend(metadata::validate_update(new, old));
        let subresource = self.subresource_name();
        match (&self.ty.origin, self.schema()) {
            (Origin::Custom { .. }, Some(schema)) => {
                errors.extend(match subresource {
                    Some("status") => validate::validate_status_update(new, old, schema),
                    _ => validate::validate_update(new, old, schema),
                });
                errors.extend(self.scale_errors(new));
                errors.extend(rule_errors(&errors, new, Some(old), schema));
            }
            (Origin::Custom { .. }, None) => {}
            (Origin::Builtin, _) => {
                if (&*self.ty.group, subresource) == ("", None)
                    && matches!(&*self.ty.plural, "configmaps" | "secrets")
                {
                    // These look at the whole object once more.
                    let again =
                        metadata::validate(new, self.ty.namespaced, rules::name_rule(&self.ty));
                    errors.extend(again.into_iter().filter(|error| {
                        matches!(&*error.field, "metadata.labels" | "metadata.annotations")
                    }));
                }
                errors.extend(unqualified_finalizers(new));
                let new = rules::with_empty_labels(new, &self.left_empty);
                errors.extend(rules::validate_update(&self.ty, subresource, old, &new));
                errors.extend(rules::emptied(old, &self.left_empty));
            }
        }
        errors.extend(self.special_errors(new, Some(old)));
        self.refuse(&errors, new)
    }

    /// An object of a custom kind that says it is of another has nothing else said about it.
    fn refuse_other_kind(&self, new: &Value) -> Result<(), Status> {
        let kind = new.get("kind").and_then(Value::as_str).unwrap_or_default();
        if self.ty.origin == Origin::Builtin || kind == &*self.ty.kind {
            return Ok(());
        }
        let error = FieldError::invalid("kind", kind, format!("must be {}", self.ty.kind));
        Err(Status::invalid(&self.ty.group, kind, object::name(new), &[error]))
    }

    /// A definition that has a scale says where its numbers are.
    fn scale_errors(&self, new: &Value) -> Vec<FieldError> {
        let version = self.ty.version(&self.version);
        let Some(scale) = version.and_then(|version| version.scale.as_ref()) else {
            return Vec::new();
        };
        let mut errors = Vec::new();
        if self.subresource_name() != Some("status") {
            errors.extend(crd::scale::validate_spec(new, scale));
        }
        errors.extend(crd::scale::validate_status(new, scale));
        errors
    }

    /// Kinds whose meaning lies outside the general rules.
    fn special_errors(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        match (&*self.ty.group, &*self.ty.plural, old) {
            _ if self.is_definition() => match old {
                None => crd::validate_create(new),
                // Whoever may write the status may say anything there.
                Some(old) if self.subresource_name() == Some("status") => {
                    metadata::validate_update(new, old)
                }
                Some(old) => crd::validate_update(new, old),
            },
            (
                "admissionregistration.k8s.io",
                "mutatingwebhookconfigurations" | "validatingwebhookconfigurations",
                _,
            ) => match old {
                None => admission::validate_configuration(new, &condition_error),
                Some(old) => admission::validate_configuration_update(new, old, &condition_error),
            },
            ("admissionregistration.k8s.io", "validatingadmissionpolicies", old) => match old {
                // What was taken once may be changed in what has nothing to do with it.
                Some(old) if old.get("spec") == new.get("spec") => Vec::new(),
                _ => admission::validate_policy(new),
            },
            ("admissionregistration.k8s.io", "validatingadmissionpolicybindings", _) => {
                admission::validate_binding(new)
            }
            _ => Vec::new(),
        }
    }

    fn refuse(&self, errors: &[FieldError], new: &Value) -> Result<(), Status> {
        if errors.is_empty() {
            return Ok(());
        }
        // Events are one kind in two groups, and only the older one validates.
        let group = match &*self.ty.group {
            "events.k8s.io" => "",
            group => group,
        };
        Err(Status::invalid(group, &self.ty.kind, object::name(new), errors))
    }
}

/// The account a pod runs as.
fn account_name(pod: &Value) -> &str {
    let name = object::at(pod, "/spec/serviceAccountName").filter(|name| !name.is_empty());
    name.unwrap_or("default")
}

/// Built-in kinds take only finalizers that say whose they are.
fn unqualified_finalizers(new: &Value) -> Vec<FieldError> {
    let standard = ["kubernetes", "orphan", "foregroundDeletion"];
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    let unqualified = |(index, name): (usize, &str)| {
        let bad = !name.contains('/') && !standard.contains(&name);
        bad.then(|| FieldError::invalid(format!("metadata.finalizers[{index}]"), name, why))
    };
    object::finalizers(new).enumerate().filter_map(unqualified).collect()
}

/// What the rules of a schema say, unless the object is too wrong for them to be asked.
fn rule_errors(
    found: &[FieldError],
    new: &Value,
    old: Option<&Value>,
    schema: Schema<'_>,
) -> Vec<FieldError> {
    match cel::blocked_by(found) {
        Some(blocked) if cel::has_rules(schema, 0) => vec![blocked],
        Some(_) => Vec::new(),
        None => cel::validate(new, old, schema),
    }
}
