//! `ListOptions`, for list, watch and deletecollection.

use super::{Query, integer, not_a_number};
use crate::resource::ResourceType;
use crate::selector::{FieldSelector, LabelSelector, Selector};
use crate::status::{FieldError, Status};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListOptions {
    pub selector: Selector,
    pub watch: bool,
    pub allow_watch_bookmarks: bool,
    /// As written; `""` and `"0"` have meanings of their own.
    pub resource_version: String,
    pub version_match: VersionMatch,
    pub timeout_seconds: Option<i64>,
    /// 0 for no limit.
    pub limit: usize,
    pub continue_token: String,
    /// For watches: begin with what there is. Also set for old watches from `""` and `"0"`, which
    /// mean the same.
    pub send_initial_events: Option<bool>,
}

/// `resourceVersionMatch`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VersionMatch {
    #[default]
    Unset,
    Exact,
    NotOlderThan,
}

impl ListOptions {
    /// Reads and checks the options for a list or watch of that type, field selectors included.
    /// `watch_in_path` is for the old paths that say so.
    pub fn checked(
        query: &Query,
        watch_in_path: bool,
        resource: &ResourceType,
        version: &str,
    ) -> Result<Self, Status> {
        let mut options = Self::read(query).map_err(Status::bad_request)?;
        let given = query.text("resourceVersionMatch");
        let old = matches!(&*options.resource_version, "" | "0");
        if options.watch && old && options.send_initial_events.is_none() && given.is_empty() {
            options.send_initial_events = Some(true);
            options.version_match = VersionMatch::NotOlderThan;
        } else {
            let errors = options.errors(given);
            if !errors.is_empty() {
                return Err(Status::invalid("meta.k8s.io", "ListOptions", "", &errors));
            }
        }
        let fields = std::mem::take(&mut options.selector.fields);
        options.selector.fields = fields.bind(resource, version).map_err(Status::bad_request)?;
        options.watch |= watch_in_path;
        Ok(options)
    }

    /// Reads the options without looking at how they fit together. The error is Kubernetes'
    /// sentence.
    pub(crate) fn read(query: &Query) -> Result<Self, String> {
        let timeout_seconds = query.integer("timeoutSeconds")?;
        let limit = query.integer("limit")?.unwrap_or(0);
        let labels = LabelSelector::parse(query.text("labelSelector"))?;
        let fields = FieldSelector::parse(query.text("fieldSelector"))?;
        Ok(Self {
            selector: Selector { labels, fields },
            watch: query.flag("watch").unwrap_or(false),
            allow_watch_bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            resource_version: query.text("resourceVersion").to_owned(),
            version_match: match query.text("resourceVersionMatch") {
                "Exact" => VersionMatch::Exact,
                "NotOlderThan" => VersionMatch::NotOlderThan,
                _ => VersionMatch::Unset,
            },
            timeout_seconds,
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token: query.text("continue").to_owned(),
            send_initial_events: query.flag("sendInitialEvents"),
        })
    }

    fn errors(&self, given: &str) -> Vec<FieldError> {
        const MATCH: &str = "resourceVersionMatch";
        let mut errors = Vec::new();
        if self.watch {
            if self.send_initial_events.is_some() && given != "NotOlderThan" {
                errors.push(FieldError::forbidden(
                    MATCH,
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ));
            }
            if !given.is_empty() {
                if self.send_initial_events.is_none() {
                    errors.push(FieldError::forbidden(
                        MATCH,
                        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
                         provided",
                    ));
                }
                if given != "NotOlderThan" {
                    errors.push(FieldError::not_supported(MATCH, given, &["NotOlderThan"]));
                }
                if !self.continue_token.is_empty() {
                    errors.push(FieldError::forbidden(
                        MATCH,
                        "resourceVersionMatch is forbidden when continue is provided",
                    ));
                }
            }
            return errors;
        }
        if !given.is_empty() {
            if self.resource_version.is_empty() {
                errors.push(FieldError::forbidden(
                    MATCH,
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if !self.continue_token.is_empty() {
                errors.push(FieldError::forbidden(
                    MATCH,
                    "resourceVersionMatch is forbidden when continue is provided",
                ));
            }
            if given != "Exact" && given != "NotOlderThan" {
                let supported = ["Exact", "NotOlderThan", ""];
                errors.push(FieldError::not_supported(MATCH, given, &supported));
            }
            if given == "Exact" && self.resource_version == "0" {
                errors.push(FieldError::forbidden(
                    MATCH,
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                ));
            }
        }
        if self.send_initial_events.is_some() {
            errors.push(FieldError::forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        errors
    }
}

/// A resource version as a number; `""` is 0. Lists answer 500 with the error's text, watches an
/// `Invalid` of the resource.
pub fn resource_version(text: &str) -> Result<u64, FieldError> {
    let number = match text {
        "" | "0" => return Ok(0),
        // Go takes no sign here.
        text if text.starts_with('+') => Err(not_a_number("ParseUint", text)),
        text => integer("ParseUint", text),
    };
    number.map_err(|error| FieldError::invalid("resourceVersion", text, error))
}
