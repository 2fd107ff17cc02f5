//! The forms in which one and the same object can be asked for: whole, only its metadata, or as
//! rows of a table.

mod pieces;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

use self::pieces::Item;
pub(crate) use self::pieces::Pieces;
use crate::negotiate::{MetaVersion, View};
use crate::objects::Envelope;
use crate::query::{Include, Query, include_object};
use crate::resource::{Origin, ResourceType};
use crate::status::Status;
use crate::table::{self, Printer, TableOptions};

/// What the client's `Accept` chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    Metadata(MetaVersion),
    Table(MetaVersion, Include),
}

impl Form {
    /// Reads the form from what was negotiated; `includeObject` is in the query.
    pub(crate) fn of(view: View, query: &Query) -> Result<Self, Status> {
        Ok(match view {
            View::Object | View::AggregatedDiscovery => Self::Whole,
            View::PartialObjectMetadata(version) | View::PartialObjectMetadataList(version) => {
                Self::Metadata(version)
            }
            View::Table(version) => Self::Table(version, include_object(query)?),
        })
    }
}

/// Everything needed to show objects of one type in one form.
pub(crate) struct Presenter<'a> {
    pub(crate) form: Form,
    pub(crate) ty: &'a ResourceType,
    pub(crate) version: &'a str,
    pub(crate) now: Timestamp,
}

impl Presenter<'_> {
    /// One object.
    pub(crate) fn one(&self, object: Value) -> Value {
        self.event(object, true)
    }

    /// The object of a watch event. Only the first table of a stream names its columns.
    pub(crate) fn event(&self, object: Value, first: bool) -> Value {
        match self.form {
            Form::Whole => object,
            Form::Metadata(version) => table::partial_metadata(&object, version),
            Form::Table(version, include) => {
                let options = TableOptions { version, include, headers: first, now: self.now };
                let printer = Printer::new(self.ty, self.version);
                printer.table(object.get("metadata"), [&object], &options)
            }
        }
    }

    /// A list, given the stored objects and the list's own metadata.
    pub(crate) fn list(&self, entries: Vec<Bytes>, meta: &Value) -> Pieces {
        let envelope = Envelope::of(self.ty, self.version);
        match self.form {
            Form::Whole => {
                let api_version = self.ty.api_version(self.version);
                let head = format!(
                    r#"{{"kind":"{}","apiVersion":"{api_version}","metadata":{meta},"items":["#,
                    self.ty.list_kind
                );
                let builtin = self.ty.origin == Origin::Builtin;
                Pieces::new(envelope, Item::Whole { builtin }, head, entries)
            }
            Form::Metadata(version) if entries.is_empty() => {
                let none = table::partial_metadata_list(Some(meta), &[], version);
                Pieces::made(envelope, none.to_string())
            }
            Form::Metadata(version) => {
                let head = format!(
                    r#"{{"kind":"PartialObjectMetadataList","apiVersion":"{}","metadata":{},"items":["#,
                    version.api_version(),
                    table::list_metadata(Some(meta)),
                );
                Pieces::new(envelope, Item::Metadata(version), head, entries)
            }
            Form::Table(version, include) => {
                let options = TableOptions { version, include, headers: true, now: self.now };
                let printer = Printer::new(self.ty, self.version);
                // Rows come last in a table, so one without any is all that comes before them.
                let none = printer.table(Some(meta), [], &options).to_string();
                let head = none.trim_end_matches("[]}").trim_end_matches("null}").to_owned() + "[";
                let table = Item::Table { printer, options, none: none.into() };
                Pieces::new(envelope, table, head, entries)
            }
        }
    }
}

#[cfg(test)]
mod tests;
