//! Refuses or leaves out a read that another input of an output had before.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use thalweg_io::urls;
use thalweg_io::{Error, Result};

use super::SetPart;
use crate::reads::ReadSet;
use crate::record::quoted;

/// From which input each read of an output came.
///
/// A read takes up to 50 bytes, whatever the length of its id, because two keyed hashes of 64 bits
/// stand for the id. The memory budget does not limit them: a budget that is too small would let a
/// read pass twice. The index of a BLOW5 file takes more.
#[derive(Default)]
pub(super) struct Origins {
    keys: [RandomState; 2],
    files: HashMap<[u32; 4], u32>,
    takes_first: bool,
    /// Reads that files before had.
    pub(super) left_out: u64,
}

impl Origins {
    /// For an output of several inputs. A single input may have a read twice: that is for the
    /// format of the output to refuse.
    pub(super) fn of(parts: &[SetPart], takes_first: bool) -> Option<Self> {
        let first = parts.first()?.file;
        let are_several = parts.iter().any(|part| part.file != first);
        are_several.then(|| Self { takes_first, ..Self::default() })
    }

    /// Notes a read of file number `file` of a set. Returns whether it is to be written: not if it
    /// came from another file before, and the first counts.
    ///
    /// # Errors
    /// [`Error::Usage`] if it came from another file before, and that is not allowed.
    pub(super) fn note(
        &mut self,
        id: &str,
        file: usize,
        set: &ReadSet,
        output: &str,
    ) -> Result<bool> {
        let [high, low] = self.keys.each_ref().map(|key| key.hash_one(id));
        let hash = [(high >> 32) as u32, high as u32, (low >> 32) as u32, low as u32];
        let before = *self.files.entry(hash).or_insert(file as u32) as usize;
        if before == file {
            return Ok(true);
        }
        if self.takes_first {
            self.left_out += 1;
            return Ok(false);
        }
        let name = |file| set.paths().nth(file).map_or_else(String::new, urls::shown_path);
        let message = format!(
            "{output}: found read {} in {} and in {}, expected each read in one file; leave one \
             of the files out",
            quoted(id.as_bytes()),
            name(before),
            name(file)
        );
        Err(Error::Usage(message.into()))
    }
}
