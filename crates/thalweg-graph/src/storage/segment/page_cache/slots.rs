//! The slots of the cache. A page that was used since the last look stays once more, and of the
//! others the oldest makes room (the clock algorithm).

use std::collections::HashMap;
use std::ops::Range;

use crate::storage::segment::PAGE;

/// The number of a segment, and of a page in it.
pub(super) type Key = (usize, u64);

/// Pages, at most `most` of them.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) most: usize,
    places: HashMap<Key, usize>,
    slots: Vec<Slot>,
    /// The slot that is looked at next for room.
    hand: usize,
}

#[derive(Debug)]
struct Slot {
    key: Key,
    bytes: Box<[u8]>,
    is_used: bool,
}

impl Slots {
    pub(super) fn new(most: usize) -> Self {
        Self { most, places: HashMap::new(), slots: Vec::new(), hand: 0 }
    }

    /// The bytes of a page, which is then used.
    fn get(&mut self, key: Key) -> Option<&[u8]> {
        let slot = &mut self.slots[*self.places.get(&key)?];
        slot.is_used = true;
        Some(&slot.bytes)
    }

    /// Those of `pages` that are not there. The others are used.
    pub(super) fn missing(&mut self, segment: usize, pages: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut missing: Vec<Range<u64>> = Vec::new();
        for page in pages.iter().cloned().flatten() {
            if self.get((segment, page)).is_some() {
                continue;
            }
            match missing.last_mut() {
                Some(last) if last.end == page => last.end += 1,
                _ => missing.push(page..page + 1),
            }
        }
        missing
    }

    /// Copies `pages` to `out`. Returns those that are not there.
    pub(super) fn copy(
        &mut self,
        segment: usize,
        pages: &Range<u64>,
        out: &mut [u8],
    ) -> Vec<Range<u64>> {
        for (page, out) in pages.clone().zip(out.chunks_exact_mut(PAGE)) {
            if let Some(bytes) = self.get((segment, page)) {
                out.copy_from_slice(bytes);
            }
        }
        self.missing(segment, std::slice::from_ref(pages))
    }

    /// Adds a page. It stays at least until the hand comes round.
    pub(super) fn insert(&mut self, key: Key, bytes: Box<[u8]>) {
        let slot = Slot { key, bytes, is_used: false };
        if let Some(&place) = self.places.get(&key) {
            self.slots[place] = slot;
            return;
        }
        let place = if self.slots.len() < self.most {
            self.slots.push(slot);
            self.slots.len() - 1
        } else {
            while std::mem::take(&mut self.slots[self.hand].is_used) {
                self.hand = (self.hand + 1) % self.most;
            }
            let place = self.hand;
            self.hand = (place + 1) % self.most;
            let old = std::mem::replace(&mut self.slots[place], slot);
            self.places.remove(&old.key);
            place
        };
        self.places.insert(key, place);
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    fn page(fill: u8) -> Box<[u8]> {
        vec![fill; PAGE].into()
    }

    #[test]
    fn used_pages_stay_and_the_number_is_bounded() {
        let mut slots = Slots::new(4);
        for number in 0..4 {
            slots.insert((0, number), page(number as u8));
        }
        slots.insert((0, 4), page(4));
        assert_eq!(slots.missing(0, &[1..5]), [], "the oldest made room");
        slots.insert((1, 1), page(9));
        assert_eq!(slots.slots.len(), 4);
        let mut out = vec![0; 2 * PAGE];
        assert_eq!(slots.copy(1, &(0..2), &mut out), [0..1]);
        assert!(out[PAGE..].iter().all(|byte| *byte == 9));
        for number in 10..20 {
            // The page is used again and again.
            assert!(slots.get((1, 1)).is_some(), "{number}");
            slots.insert((0, number), page(1));
        }
        assert_eq!((slots.slots.len(), slots.places.len()), (4, 4));
    }
}
