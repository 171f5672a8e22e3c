//! Files of synthetic reads.

use std::path::Path;

use thalweg_io::urls;
use thalweg_io::{Error, Fault, Result};

use super::{Synth, SynthRead};
use crate::format::Format;
use crate::record::{RecordPress, SignalPress};
use crate::write::{Coding, WrittenFile};

impl Synth {
    /// Writes all reads to a file, one after the other on the caller's thread. The file gets its
    /// name when it is complete.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written; [`Error::Usage`] for a coding that this build
    /// does not have.
    pub fn write(&self, path: &Path, coding: Coding) -> Result<WrittenFile> {
        let failed = |fault: Fault| {
            let Fault { found, expected, .. } = fault;
            Error::Usage(format!("{}: {found}, expected {expected}", urls::shown_path(path)).into())
        };
        let header = match coding.format() {
            Format::Slow5 | Format::Blow5 => self.header(RecordPress::None, SignalPress::None),
            _ => self.full_header(),
        };
        let mut encoder = coding.encoder().map_err(failed)?;
        let target = coding.target(&header).map_err(failed)?;
        let mut out = target.create(path)?;
        let mut read = SynthRead::default();
        let mut aux = Vec::new();
        for i in 0..self.recipe().reads {
            self.read(i, &mut read);
            let record = read.record(&header, &mut aux).map_err(failed)?;
            out.push(encoder.encode(&target, &record, &read.samples).map_err(failed)?)?;
        }
        out.finish()
    }
}
