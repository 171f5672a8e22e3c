//! The seed for the identity of an output.

use thalweg_codec::splitmix::{STEP, checksum, mix};

use super::{Output, SetPart};
use crate::reads::{ReadSet, Selection};
use crate::write::Coding;

/// A seed that is derived from the content of an output, so that the same conversion makes the
/// same bytes.
pub(super) fn seed(set: &ReadSet, parts: &[SetPart], output: &Output, coding: &Coding) -> u64 {
    let mut seed = Seed::default();
    seed.add_text(format!("{coding:?}").as_bytes());
    for path in set.paths().chain([output.path.as_path()]) {
        seed.add_text(path.file_name().unwrap_or_default().as_encoded_bytes());
    }
    seed.add(set.bytes());
    for SetPart { file, selection, to } in parts {
        seed.add(*file as u64);
        seed.add(to.len() as u64);
        to.iter().for_each(|to| seed.add(u64::from(*to)));
        if let Selection::Ids(ids) = selection {
            ids.iter().for_each(|id| seed.add_text(id.as_bytes()));
        }
    }
    seed.0
}

/// A seed that values are mixed into. The hashers of the standard library may give other numbers
/// with each of its releases; this one gives the same on every machine.
#[derive(Default)]
struct Seed(u64);

impl Seed {
    fn add(&mut self, number: u64) {
        self.0 = mix(self.0.wrapping_add(STEP) ^ number);
    }

    fn add_text(&mut self, text: &[u8]) {
        self.add(text.len() as u64);
        self.add(checksum(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Identities of files come from it, so the values must never change.
    #[test]
    fn seeds_stay_what_they_were() {
        let mut seed = Seed::default();
        seed.add_text(b"reads.blow5");
        seed.add(7);
        assert_eq!(seed.0, 0x2d70_a304_3867_1ea9);
    }
}
