//! The sections that this process has open, over all objects.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::section::Section;

/// The most of them.
const MOST: usize = 32;

/// The object, the number of the section, and the count of uses when the object was opened: who
/// opens the object again notes the use in each section again.
pub(super) type Key = ([u64; 2], u64, u64);

/// Open sections. The one that was used last is the last one.
#[derive(Debug, Default)]
pub(super) struct Open(Mutex<Vec<(Key, Arc<Section>)>>);

impl Open {
    fn lock(&self) -> MutexGuard<'_, Vec<(Key, Arc<Section>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, key: Key) -> Option<Arc<Section>> {
        let mut open = self.lock();
        let at = open.iter().rposition(|(other, _)| *other == key)?;
        open[at..].rotate_left(1);
        open.last().map(|(_, section)| section.clone())
    }

    /// Keeps a section open, in place of another one with this key.
    pub(super) fn keep(&self, key: Key, section: Section) -> Arc<Section> {
        let section = Arc::new(section);
        let mut open = self.lock();
        open.retain(|(other, _)| *other != key);
        if open.len() >= MOST {
            open.remove(0);
        }
        open.push((key, section.clone()));
        section
    }
}
