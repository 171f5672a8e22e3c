//! The parts in which a draft goes to the store, and which of them the store has.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use thalweg_object::PartsUpload;

use crate::attributes::Attributes;

/// The bytes of the first parts. A file of no more goes as a whole.
pub(crate) const PART: u64 = 8 << 20;
/// The bytes of the parts after the first [`SMALL_PARTS`].
const LARGE_PART: u64 = 64 << 20;
const SMALL_PARTS: u64 = 2000;
/// S3 takes 10,000 parts.
const MOST_PARTS: u64 = 10_000;
/// The largest file.
pub(crate) const LARGEST: u64 = SMALL_PARTS * PART + (MOST_PARTS - SMALL_PARTS) * LARGE_PART;

/// The number of the part that has an offset.
pub(crate) fn part_at(offset: u64) -> usize {
    let small = SMALL_PARTS * PART;
    let number = match offset.checked_sub(small) {
        None => offset / PART,
        Some(over) => SMALL_PARTS + over / LARGE_PART,
    };
    number as usize
}

/// The bytes of a part, if the file is long enough.
pub(crate) fn part(number: usize) -> Range<u64> {
    let start = |number: u64| {
        number.min(SMALL_PARTS) * PART + number.saturating_sub(SMALL_PARTS) * LARGE_PART
    };
    start(number as u64)..start(number as u64 + 1)
}

/// How many parts a file of a size has. One, if it is empty.
pub(crate) fn count(size: u64) -> usize {
    part_at(size.saturating_sub(1)) + 1
}

/// A part of a draft.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    /// The tag that the store gave, if it has the part as it is now.
    pub(crate) tag: Option<String>,
    pub(crate) is_sending: bool,
    /// It was changed while it was sent.
    is_stale: bool,
}

/// An object that was to be made of parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Completion {
    pub(crate) mark: String,
    /// The last change that it has. 0: it has all bytes up to some change, and other attributes.
    pub(crate) change: u64,
    /// Objects with this number or a later one in their marks were made after it.
    pub(crate) next: u64,
}

/// The parts of a draft, and the upload that they are of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) upload: PartsUpload,
    /// The attributes that the upload began with.
    pub(crate) attributes: Attributes,
    pub(crate) list: Vec<Part>,
}

impl Parts {
    pub(crate) fn new(upload: PartsUpload, attributes: Attributes) -> Self {
        Self { upload, attributes, list: Vec::new() }
    }

    /// Notes that bytes were changed.
    pub(crate) fn change(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let last = part_at(range.end - 1).min(self.list.len().saturating_sub(1));
        for number in part_at(range.start)..=last {
            if let Some(part) = self.list.get_mut(number) {
                part.tag = None;
                part.is_stale = part.is_sending;
            }
        }
    }

    /// Notes that the file has a size now: the last part may have another one.
    pub(crate) fn resize(&mut self, old: u64, new: u64) {
        let shorter = old.min(new);
        self.change(part(part_at(shorter)));
        // Parts beyond the end of the file are not of it any more, even those that are being sent.
        self.change(shorter..old.max(new).max(shorter + 1));
    }

    /// Begins to send a part. `false` if the store has it, or if it is being sent.
    pub(crate) fn begin(&mut self, number: usize) -> bool {
        if self.list.len() <= number {
            self.list.resize_with(number + 1, Part::default);
        }
        let part = &mut self.list[number];
        if part.tag.is_some() || part.is_sending {
            return false;
        }
        (part.is_sending, part.is_stale) = (true, false);
        true
    }

    /// Notes that a part was sent, or that this failed.
    pub(crate) fn end(&mut self, number: usize, tag: Option<String>) {
        if let Some(part) = self.list.get_mut(number) {
            part.is_sending = false;
            part.tag = tag.filter(|_| !part.is_stale);
        }
    }

    /// The tags of all parts of a file of a size, if the store has them as they are now.
    pub(crate) fn tags(&self, size: u64) -> Option<Vec<String>> {
        let list = self.list.get(..count(size))?;
        list.iter().map(|part| part.tag.clone()).collect()
    }

    pub(crate) fn is_sending(&self) -> bool {
        self.list.iter().any(|part| part.is_sending)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_all_bytes_once() {
        let mut at = 0;
        for number in 0..MOST_PARTS as usize {
            let part = part(number);
            assert_eq!(part.start, at);
            assert_eq!((part_at(part.start), part_at(part.end - 1)), (number, number));
            assert_eq!((count(part.start + 1), count(part.end)), (number + 1, number + 1));
            at = part.end;
        }
        assert_eq!(at, LARGEST);
        const { assert!(LARGEST > 500 << 30) };
        assert_eq!(count(0), 1);
    }

    fn parts(count: usize) -> Parts {
        let upload = serde_json::from_str(r#"{"id":"1","mark":"2"}"#).unwrap();
        let mut parts = Parts::new(upload, Attributes::default());
        for number in 0..count {
            assert!(parts.begin(number));
            parts.end(number, Some(number.to_string()));
        }
        parts
    }

    #[test]
    fn a_part_that_was_changed_is_sent_again() {
        let mut parts = parts(3);
        let size = 2 * PART + 5;
        assert_eq!(parts.tags(size).unwrap(), ["0", "1", "2"]);
        parts.change(PART - 1..PART + 1);
        assert_eq!(parts.tags(size), None);
        assert!(parts.begin(0) && parts.begin(1) && !parts.begin(1) && !parts.begin(2));
        parts.change(0..1);
        parts.end(0, Some("0".into()));
        parts.end(1, Some("1".into()));
        assert!(!parts.is_sending());
        assert_eq!(parts.tags(size), None, "it was changed while it was sent");
        assert!(parts.begin(0));
        parts.end(0, Some("3".into()));
        assert_eq!(parts.tags(size).unwrap(), ["3", "1", "2"]);
        assert!(parts.begin(4));
        parts.end(4, None);
        assert_eq!(parts.tags(4 * PART + 1), None);
    }

    #[test]
    fn another_size_changes_the_last_part() {
        for (old, new) in [(2 * PART + 5, 2 * PART + 6), (2 * PART + 5, 2 * PART + 4)] {
            let mut parts = parts(3);
            parts.resize(old, new);
            assert_eq!(parts.list.iter().filter(|part| part.tag.is_none()).count(), 1, "{new}");
            assert!(parts.list[2].tag.is_none());
        }
        let mut parts = parts(3);
        parts.resize(2 * PART + 5, PART);
        // The part that ends where the file does now is as it was, and may as well be sent again.
        assert!(parts.list[0].tag.is_some() && parts.list[2].tag.is_none());
        parts.resize(PART, 3 * PART);
        assert_eq!(parts.tags(3 * PART), None);
    }
}
