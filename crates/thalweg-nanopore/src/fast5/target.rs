//! How reads are written to FAST5.

use std::path::Path;

use thalweg_io::new_file::NewFile;
use thalweg_io::{Fault, Result};

use super::{Compression, EncodedRead, Fast5Writer, SignalCompressor, holds, lost};
use crate::losses::{Loss, Losses};
use crate::output::{CreateFile, WriteFile, WriteFormat};
use crate::record::{AuxValue, Header, Index, Record};

/// The header of the reads, and what of it FAST5 cannot hold.
#[derive(Debug)]
pub(crate) struct Fast5Target {
    header: Header,
    compression: Compression,
    lost: Vec<String>,
}

impl Fast5Target {
    pub(crate) fn new(header: &Header, compression: Compression) -> Self {
        Self { header: header.clone(), compression, lost: lost(header) }
    }
}

impl WriteFormat for Fast5Target {
    type Encoder = SignalCompressor;
    type Writer = Fast5Writer;

    fn lost(&self) -> &[String] {
        &self.lost
    }

    fn holds(&self, field: &str) -> bool {
        self.header.aux_field(field).is_some_and(|(_, field)| holds(field))
    }

    fn keeps_order(&self) -> bool {
        false
    }

    fn encode(
        &self,
        encoder: &mut SignalCompressor,
        record: &Record<'_>,
        samples: &[i16],
    ) -> Result<(EncodedRead, Losses), Fault> {
        let mut losses = Losses::default();
        for value in record.aux_values(&self.header) {
            match value? {
                (_, AuxValue::String(text)) if std::str::from_utf8(text).is_err() => {
                    losses.add(Loss::Text);
                }
                (field, AuxValue::Enum(code)) if field.label(code).is_none() => {
                    losses.add(Loss::Value);
                }
                _ => {}
            }
        }
        Ok((encoder.encode(record, samples)?, losses))
    }

    fn create(&self, path: &Path, _: CreateFile) -> Result<Fast5Writer> {
        Fast5Writer::create(path, &self.header, self.compression)
    }
}

impl WriteFile for Fast5Writer {
    type Body = EncodedRead;

    fn push(&mut self, _read_id: &str, read: EncodedRead) -> Result<Losses> {
        self.push(&read)?;
        Ok(Losses::default())
    }

    fn seal(self) -> Result<(NewFile, Option<Index>)> {
        Ok((self.seal()?, None))
    }
}
