//! Which blocks of a section this process knows to be right.

use std::sync::atomic::{AtomicU64, Ordering};

/// A set of the numbers of blocks, which only grows.
#[derive(Debug)]
pub(super) struct Sound {
    count: u64,
    noted: AtomicU64,
    words: Vec<AtomicU64>,
}

impl Sound {
    /// The empty set of numbers below `count`.
    pub(super) fn new(count: u64) -> Self {
        let words = (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Self { count, noted: AtomicU64::new(0), words }
    }

    /// Adds a number.
    pub(super) fn note(&self, number: u64) {
        let bit = 1 << (number % 64);
        let before = self.words[(number / 64) as usize].fetch_or(bit, Ordering::Relaxed);
        if before & bit == 0 {
            self.noted.fetch_add(1, Ordering::Release);
        }
    }

    /// Whether all numbers are in the set.
    pub(super) fn are_all(&self) -> bool {
        self.noted.load(Ordering::Acquire) == self.count
    }
}

#[cfg(test)]
mod tests {
    use super::Sound;

    #[test]
    fn all_numbers_are_needed() {
        for count in [1, 63, 64, 65, 200] {
            let sound = Sound::new(count);
            (0..count - 1).for_each(|number| sound.note(number));
            (0..count - 1).for_each(|number| sound.note(number));
            assert!(!sound.are_all());
            sound.note(count - 1);
            assert!(sound.are_all());
        }
    }
}
