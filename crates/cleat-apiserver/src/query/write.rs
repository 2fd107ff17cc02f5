//! `CreateOptions`, `UpdateOptions` and `PatchOptions`, and what else comes with writing.

use serde_json::Value;

use super::Query;
use crate::quote::{code_point, is_printable};
use crate::status::{FieldError, Problem, Status};

/// The options of one write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Everything but the storing.
    pub dry_run: bool,
    /// Empty when not given; see [`field_manager`].
    pub field_manager: String,
    pub field_validation: FieldValidation,
    /// The client said which; webhooks are shown only that.
    pub names_validation: bool,
    /// Of an apply patch only: take fields from other managers.
    pub force: bool,
}

/// What to do about fields the schema does not have, and duplicate ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// How much of each object a Table carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    None,
    #[default]
    Metadata,
    Object,
}

impl WriteOptions {
    pub fn create(query: &Query) -> Result<Self, Status> {
        Self::checked(query, "CreateOptions", Vec::new())
    }

    pub fn update(query: &Query) -> Result<Self, Status> {
        Self::checked(query, "UpdateOptions", Vec::new())
    }

    /// `apply` says whether the patch is a server-side apply.
    pub fn patch(query: &Query, apply: bool) -> Result<Self, Status> {
        let force = query.flag("force");
        let mut errors = Vec::new();
        if apply && query.text("fieldManager").is_empty() {
            errors.push(FieldError::required("fieldManager", "is required for apply patch"));
        }
        if !apply && force.is_some() {
            errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
        let options = Self::checked(query, "PatchOptions", errors)?;
        Ok(Self { force: force.unwrap_or(false), ..options })
    }

    fn checked(query: &Query, kind: &str, mut errors: Vec<FieldError>) -> Result<Self, Status> {
        let manager = query.text("fieldManager");
        errors.extend(manager_errors(manager));
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        errors.extend(dry_run_error(&dry_run));
        let field_validation = match query.text("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported("fieldValidation", other, &supported));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(Status::invalid("meta.k8s.io", kind, "", &errors));
        }
        Ok(Self {
            dry_run: !dry_run.is_empty(),
            field_manager: manager.to_owned(),
            field_validation,
            names_validation: !query.text("fieldValidation").is_empty(),
            force: false,
        })
    }
}

pub(super) fn dry_run_error(given: &[&str]) -> Option<FieldError> {
    if given.iter().all(|value| *value == "All") {
        return None;
    }
    let shown: Value = given.iter().copied().collect();
    Some(FieldError::not_supported("dryRun", shown, &["All"]))
}

const LONGEST_MANAGER: usize = 128;

fn manager_errors(manager: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if manager.len() > LONGEST_MANAGER {
        let problem = Problem::TooLong { max: LONGEST_MANAGER };
        errors.push(FieldError { field: "fieldManager".to_owned(), problem });
    }
    for (position, c) in manager.char_indices().filter(|(_, c)| !is_printable(*c)) {
        let detail = format!("invalid character {} (at position {position})", code_point(c));
        errors.push(FieldError::invalid("fieldManager", manager, detail));
    }
    errors
}

/// Who is writing: the manager given, else the first word of the user agent.
pub fn field_manager(given: &str, user_agent: &str) -> String {
    if !given.is_empty() {
        return given.to_owned();
    }
    let mut manager = String::new();
    for c in user_agent.split('/').next().unwrap_or_default().chars() {
        if !is_printable(c) {
            continue;
        }
        if manager.len() + c.len_utf8() > LONGEST_MANAGER {
            break;
        }
        manager.push(c);
    }
    manager
}

/// `includeObject` of a request for a Table.
pub fn include_object(query: &Query) -> Result<Include, Status> {
    match query.text("includeObject") {
        "" | "Metadata" => Ok(Include::Metadata),
        "Object" => Ok(Include::Object),
        "None" => Ok(Include::None),
        other => {
            let detail = "must be 'Metadata', 'Object', 'None', or empty";
            let error = FieldError::invalid("includeObject", other, detail);
            Err(Status::bad_request(format!("Unable to convert to Table as requested: {error}")))
        }
    }
}
