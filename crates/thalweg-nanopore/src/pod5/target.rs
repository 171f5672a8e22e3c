//! How reads are written to POD5.

use std::path::Path;

use thalweg_io::new_file::NewFile;
use thalweg_io::{Fault, Result};

use super::write::{
    EncodedSignal, Mapping, Pod5Layout, ReadsRow, Runs, SignalCoding, SignalEncoder,
};
use super::{Pod5Writer, RowCoding};
use crate::losses::Losses;
use crate::output::{CreateFile, WriteFile, WriteFormat};
use crate::record::{AuxField, AuxValue, Header, Index, Record, StoredRow};

/// The header of the reads, and what it becomes in the columns of POD5.
#[derive(Debug)]
pub(crate) struct Pod5Target {
    header: Header,
    layout: Pod5Layout,
    mapping: Mapping,
}

impl Pod5Target {
    pub(crate) fn new(header: &Header, layout: Pod5Layout) -> Result<Self, Fault> {
        Ok(Self { header: header.clone(), layout, mapping: Mapping::new(header)? })
    }

    pub(crate) fn encoder(layout: &Pod5Layout) -> Result<SignalEncoder, Fault> {
        SignalEncoder::new(layout.coding, layout.row_samples)
    }

    /// The coding of stored signal that a file of this layout takes as it is.
    pub(crate) fn stored_coding(layout: &Pod5Layout) -> RowCoding {
        match layout.coding {
            SignalCoding::Vbz { .. } => RowCoding::Vbz,
            SignalCoding::Plain => RowCoding::Plain,
        }
    }

    fn encoded(
        &self,
        record: &Record<'_>,
        signal: impl FnOnce() -> Result<EncodedSignal, Fault>,
    ) -> Result<(EncodedPod5, Losses), Fault> {
        let (row, losses) = self.mapping.row(record, &self.header)?;
        let Record { digitisation, sampling_rate, .. } = *record;
        Ok((EncodedPod5 { row, signal: signal()?, digitisation, sampling_rate }, losses))
    }
}

/// A read as POD5 stores it, and what its run is held against.
#[derive(Debug)]
pub(crate) struct EncodedPod5 {
    row: ReadsRow,
    signal: EncodedSignal,
    digitisation: f64,
    sampling_rate: f64,
}

/// A POD5 file that is being written, with the runs of its reads so far.
#[derive(Debug)]
pub(crate) struct Pod5Sink {
    writer: Pod5Writer,
    runs: Runs,
}

impl WriteFormat for Pod5Target {
    type Encoder = SignalEncoder;
    type Writer = Pod5Sink;

    fn lost(&self) -> &[String] {
        self.mapping.lost()
    }

    fn holds(&self, field: &str) -> bool {
        self.mapping.holds(field)
    }

    fn absent(&self, field: &AuxField) -> AuxValue<'static> {
        self.mapping.absent(field)
    }

    fn encode(
        &self,
        encoder: &mut SignalEncoder,
        record: &Record<'_>,
        samples: &[i16],
    ) -> Result<(EncodedPod5, Losses), Fault> {
        self.encoded(record, || encoder.encode(samples))
    }

    fn copy(
        &self,
        record: &Record<'_>,
        rows: &[StoredRow<'_>],
    ) -> Result<(EncodedPod5, Losses), Fault> {
        let rows = rows.iter().map(|row| (row.samples, row.bytes.to_vec()));
        self.encoded(record, || Ok(EncodedSignal::stored(rows.collect())))
    }

    fn create(&self, path: &Path, new: CreateFile) -> Result<Pod5Sink> {
        let layout = self.layout.clone();
        let writer = Pod5Writer::start(new(path)?, layout, self.mapping.extra_columns());
        Ok(Pod5Sink { writer, runs: self.mapping.runs() })
    }
}

impl WriteFile for Pod5Sink {
    type Body = EncodedPod5;

    fn push(&mut self, _read_id: &str, read: EncodedPod5) -> Result<Losses> {
        let losses = self.runs.note(read.row.run_info, read.digitisation, read.sampling_rate);
        self.writer.push(&read.row, read.signal)?;
        Ok(losses)
    }

    fn seal(self) -> Result<(NewFile, Option<Index>)> {
        Ok((self.writer.seal(&self.runs.into_infos())?, None))
    }
}
