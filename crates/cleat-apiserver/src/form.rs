//! The forms in which one and the same object can be asked for: whole, only its metadata, or as
//! rows of a table.

use bytes::{BufMut, Bytes, BytesMut};
use jiff::Timestamp;
use serde_json::Value;

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
    pub(crate) fn list(&self, entries: &[Bytes], meta: &Value) -> Bytes {
        let envelope = Envelope::of(self.ty, self.version);
        let opened =
            || -> Vec<Value> { entries.iter().filter_map(|entry| envelope.open(entry)).collect() };
        match self.form {
            Form::Whole => self.whole_list(&envelope, entries, meta),
            Form::Metadata(version) => {
                let list = table::partial_metadata_list(Some(meta), &opened(), version);
                list.to_string().into()
            }
            Form::Table(version, include) => {
                let options = TableOptions { version, include, headers: true, now: self.now };
                let printer = Printer::new(self.ty, self.version);
                printer.table(Some(meta), &opened(), &options).to_string().into()
            }
        }
    }

    fn whole_list(&self, envelope: &Envelope, entries: &[Bytes], meta: &Value) -> Bytes {
        let builtin = self.ty.origin == Origin::Builtin;
        let size: usize = entries.iter().map(|entry| entry.len() + 80).sum();
        let mut out = BytesMut::with_capacity(size + 256);
        let api_version = self.ty.api_version(self.version);
        let head = format!(
            r#"{{"kind":"{}","apiVersion":"{api_version}","metadata":{meta},"items":["#,
            self.ty.list_kind
        );
        out.put_slice(head.as_bytes());
        for (index, entry) in entries.iter().enumerate() {
            if index > 0 {
                out.put_u8(b',');
            }
            envelope.write_item(entry, builtin, &mut out);
        }
        out.put_slice(b"]}");
        out.freeze()
    }
}
