//! How reads are written to SLOW5 and BLOW5.

use std::path::Path;

use thalweg_io::new_file::NewFile;
use thalweg_io::{Fault, Result};

use super::{ReadWriter, RecordEncoder};
use crate::losses::Losses;
use crate::output::{CreateFile, WriteFile, WriteFormat};
use crate::record::{Encoding, Header, Index, Record, RecordPress, SignalPress, StoredRow};

/// The header as the file has it: with the encoding and compressions of the file.
#[derive(Debug)]
pub(crate) struct Slow5Target(Header);

impl Slow5Target {
    pub(crate) fn text(header: &Header) -> Self {
        Self::new(header, Encoding::Ascii, RecordPress::None, SignalPress::None)
    }

    pub(crate) fn binary(header: &Header, record: RecordPress, signal: SignalPress) -> Self {
        Self::new(header, Encoding::Binary, record, signal)
    }

    fn new(
        header: &Header,
        encoding: Encoding,
        record_press: RecordPress,
        signal_press: SignalPress,
    ) -> Self {
        Self(Header { encoding, record_press, signal_press, ..header.clone() })
    }
}

impl WriteFormat for Slow5Target {
    type Encoder = RecordEncoder;
    type Writer = ReadWriter;

    fn encode(
        &self,
        encoder: &mut RecordEncoder,
        record: &Record<'_>,
        samples: &[i16],
    ) -> Result<(Vec<u8>, Losses), Fault> {
        let mut frame = Vec::new();
        encoder.record(&self.0, record, samples, &mut frame)?;
        Ok((frame, Losses::default()))
    }

    /// The only row is the whole frame.
    fn copy(
        &self,
        record: &Record<'_>,
        rows: &[StoredRow<'_>],
    ) -> Result<(Vec<u8>, Losses), Fault> {
        match rows {
            [frame] => Ok((frame.bytes.to_vec(), Losses::default())),
            _ => {
                let found = format!("{} frames of read {}", rows.len(), record.read_id);
                Err(Fault::new(0, found, "one"))
            }
        }
    }

    fn create(&self, path: &Path, new: CreateFile) -> Result<ReadWriter> {
        ReadWriter::start(new(path)?, &self.0)
    }
}

impl WriteFile for ReadWriter {
    type Body = Vec<u8>;

    fn push(&mut self, read_id: &str, frame: Vec<u8>) -> Result<Losses> {
        self.push(read_id, &frame)?;
        Ok(Losses::default())
    }

    fn seal(self) -> Result<(NewFile, Option<Index>)> {
        let (file, index) = self.seal()?;
        Ok((file, Some(index)))
    }
}
