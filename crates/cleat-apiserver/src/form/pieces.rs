//! A list as JSON, made piece by piece as it is sent: of a long one only the stored objects are held,
//! which everybody shares.

use bytes::{BufMut, Bytes, BytesMut};

use crate::negotiate::MetaVersion;
use crate::objects::Envelope;
use crate::table::{self, Printer, TableOptions};

/// A piece of so many bytes is not added to.
const PIECE: usize = 64 << 10;

/// What a list says of each of its objects.
pub(super) enum Item {
    /// Built-in lists leave out what the list says.
    Whole {
        builtin: bool,
    },
    Metadata(MetaVersion),
    /// `none` is the table without rows.
    Table {
        printer: Printer,
        options: TableOptions,
        none: Bytes,
    },
}

/// What is left of a list.
pub(crate) struct Pieces {
    envelope: Envelope,
    item: Item,
    /// Up to the first object, then what comes before each that follows.
    before: Bytes,
    entries: std::vec::IntoIter<Bytes>,
    ended: bool,
}

impl Pieces {
    /// `head` is everything up to the first object.
    pub(super) fn new(envelope: Envelope, item: Item, head: String, entries: Vec<Bytes>) -> Self {
        let entries = entries.into_iter();
        Self { envelope, item, before: head.into(), entries, ended: false }
    }

    /// A list that there is already.
    pub(super) fn made(envelope: Envelope, list: String) -> Self {
        let item = Item::Whole { builtin: false };
        Self { envelope, item, before: list.into(), entries: Vec::new().into_iter(), ended: true }
    }

    /// Whether it is better made as it is sent.
    pub(crate) fn is_long(&self) -> bool {
        self.size() > PIECE
    }

    /// All of it at once.
    pub(crate) fn whole(mut self) -> Bytes {
        self.fill(self.size(), usize::MAX)
    }

    /// About how long it is.
    fn size(&self) -> usize {
        let entries = self.entries.as_slice();
        self.before.len() + 256 + entries.iter().map(|entry| entry.len() + 80).sum::<usize>()
    }

    fn fill(&mut self, room: usize, most: usize) -> Bytes {
        if self.ended {
            return std::mem::take(&mut self.before);
        }
        let mut out = BytesMut::with_capacity(room);
        while out.len() < most {
            let Some(entry) = self.entries.next() else {
                match (&self.item, &*self.before == b",") {
                    (_, true) => out.put_slice(b"]}"),
                    (Item::Table { none, .. }, false) => out.put_slice(none),
                    (_, false) => {
                        out.put_slice(&self.before);
                        out.put_slice(b"]}");
                    }
                }
                self.before = Bytes::new();
                self.ended = true;
                break;
            };
            self.write(&entry, &mut out);
        }
        out.freeze()
    }

    /// What cannot be read has no metadata, and is left out.
    fn write(&mut self, entry: &Bytes, out: &mut BytesMut) {
        match &self.item {
            Item::Whole { builtin } => {
                out.put_slice(&self.before);
                self.envelope.write_item(entry, *builtin, out);
            }
            Item::Metadata(version) => {
                let Some(object) = self.envelope.open(entry) else { return };
                out.put_slice(&self.before);
                let shown = table::partial_metadata(&object, *version);
                out.put_slice(shown.to_string().as_bytes());
            }
            Item::Table { printer, options, .. } => {
                let Some(object) = self.envelope.open(entry) else { return };
                out.put_slice(&self.before);
                out.put_slice(printer.row(&object, options).to_string().as_bytes());
            }
        }
        self.before = Bytes::from_static(b",");
    }
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let piece = self.fill(2 * PIECE, PIECE);
        (!piece.is_empty()).then_some(piece)
    }
}
