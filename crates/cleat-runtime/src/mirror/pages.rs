//! How the pages of a list are asked for: as metadata, or whole where what is listed is wanted whole.
//! Pure.
//!
//! A page of metadata costs a server about as much as [`READS_PER_PAGE`] reads, and a page of whole
//! objects hardly more; so where most of a page is wanted, one request stands for hundreds. What the
//! next page will hold nobody knows before, but names come in order, and neighbours are alike: the
//! page before tells.

use super::kind::READS_PER_PAGE;
use crate::watch::{Ask, Form, PAGE};

/// A whole page is as large as this, at most, if objects stay as large as they were so far.
const BYTES: usize = 2 << 20;
/// The first whole page has so few objects, since nobody knows yet how large they are.
const FIRST: usize = 5;
/// By how much the following ones may be larger than everything before.
const GROWTH: usize = 10;

/// What the pages of a list told so far.
#[derive(Default)]
pub(super) struct Pages {
    last: Option<Page>,
    /// Whole objects, and how long they were together.
    whole: usize,
    bytes: usize,
}

struct Page {
    objects: usize,
    /// Those of which something was told that was not known.
    wanted: usize,
}

impl Pages {
    /// Takes in a page. `bytes`: of its objects, if they were whole.
    pub(super) fn told(&mut self, objects: usize, wanted: usize, bytes: Option<usize>) {
        self.last = Some(Page { objects, wanted });
        if let Some(bytes) = bytes {
            self.whole += objects;
            self.bytes += bytes;
        }
    }

    /// How to ask for the next page. `unread`: how many objects that somebody cares about were not
    /// told of yet; `room`: for how many bytes of whole objects there is room.
    pub(super) fn next(&self, unread: usize, room: usize) -> Ask {
        let metadata = Ask { form: Form::Metadata, limit: PAGE };
        let worthwhile = self.last.as_ref().is_none_or(|page| 2 * page.wanted >= page.objects);
        if unread <= READS_PER_PAGE || !worthwhile {
            return metadata;
        }
        let mean = self.bytes.checked_div(self.whole).unwrap_or_default();
        let fitting = BYTES.min(room) / mean.max(1);
        // Few large objects are read sooner one beside another than page after page.
        if fitting < READS_PER_PAGE {
            return metadata;
        }
        let most = (GROWTH * self.whole).clamp(FIRST, PAGE);
        Ask { form: Form::Whole, limit: most.min(fitting) }
    }
}

#[cfg(test)]
mod tests;
