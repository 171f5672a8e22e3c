//! Checking a POD5 file by decoding every read. Damage is counted and does not end the pass. Intact
//! reads may be written to a new file.

use std::path::Path;
use std::sync::Arc;

use thalweg_io::engine::Delivery;
use thalweg_io::urls;
use thalweg_io::{Error, Fault, Result};

use super::open::footer_defects;
use super::{Pod5File, ReadPurpose};
use crate::file::{
    CheckReport, CountIntact, IndexState, KeepIntact, LostReads, OpenFile, Selection, check_reads,
};
use crate::losses::Losses;
use crate::pod5::write::{EncodedSignal, Mapping, Pod5Layout, ReadsRow, Runs};
use crate::pod5::{Pod5Writer, RowCoding, write};
use crate::record::{Header, Record, StoredRow};

/// A new file of intact reads.
pub(super) struct Salvage {
    header: Arc<Header>,
    mapping: Arc<Mapping>,
    runs: Runs,
    writer: Pod5Writer,
    reads: u64,
}

/// Makes rows for a new file from intact reads.
struct KeepRows {
    header: Arc<Header>,
    mapping: Arc<Mapping>,
}

/// An intact read on its way to the new file.
struct IntactRead {
    row: ReadsRow,
    signal: EncodedSignal,
    losses: Losses,
    digitisation: f64,
    sampling_rate: f64,
}

impl KeepIntact for KeepRows {
    type Kept = IntactRead;

    fn wants_rows(&self) -> bool {
        true
    }

    fn keep(&self, record: &Record<'_>, rows: &[StoredRow<'_>]) -> Result<IntactRead, Fault> {
        let (row, losses) = self.mapping.row(record, &self.header)?;
        let stored = rows.iter().map(|row| (row.samples, row.bytes.to_vec())).collect();
        Ok(IntactRead {
            row,
            signal: EncodedSignal::stored(stored),
            losses,
            digitisation: record.digitisation,
            sampling_rate: record.sampling_rate,
        })
    }
}

impl Salvage {
    fn push(&mut self, read: IntactRead) -> Result<Losses> {
        let IntactRead { row, signal, losses, digitisation, sampling_rate } = read;
        let losses = losses.and(self.runs.note(row.run_info, digitisation, sampling_rate));
        self.writer.push(&row, signal)?;
        self.reads += 1;
        Ok(losses)
    }

    fn finish(self) -> Result<u64> {
        self.writer.finish(&self.runs.into_infos())?;
        Ok(self.reads)
    }
}

impl Pod5File {
    /// Checks the file, and writes intact reads to a new file at `out`.
    pub(super) fn salvage_to(&self, file: &OpenFile, out: &Path) -> Result<CheckReport> {
        let coding = match self.tables.coding() {
            RowCoding::Vbz => write::SignalCoding::default(),
            RowCoding::Plain => write::SignalCoding::Plain,
        };
        let layout = Pod5Layout { coding, ..Pod5Layout::default() };
        let mapping = Mapping::new(&file.header).map_err(|fault| {
            Error::Usage(
                format!("{}: {}, expected {}", urls::shown_path(out), fault.found, fault.expected)
                    .into(),
            )
        })?;
        let writer = Pod5Writer::create(out, layout, mapping.extra_columns())?;
        let runs = mapping.runs();
        let header = file.header.clone();
        let salvage = Salvage { header, mapping: Arc::new(mapping), runs, writer, reads: 0 };
        self.check_all(file, Some(salvage))
    }

    /// Decodes all reads, and reports the defects of the reads and of the index.
    pub(super) fn check_all(
        &self,
        file: &OpenFile,
        salvage: Option<Salvage>,
    ) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        let shape = file.shape(Delivery::Ordered);
        let (source, queue) = self.plan(file, &Selection::All, &shape, ReadPurpose::Defects)?;
        let source = (source, self.unpacker(queue));
        if let Some(salvage) = &salvage {
            report.left_out = self.left_out.iter().chain(salvage.mapping.lost()).cloned().collect();
        }
        if self.is_recovered {
            footer_defects(&*file.store, file.options.budget)?
                .into_iter()
                .for_each(|error| report.defect(error));
        }
        match salvage {
            None => {
                check_reads(file, source, CountIntact, |()| Ok(Losses::default()), &mut report)?;
            }
            Some(mut salvage) => {
                let keep =
                    KeepRows { header: salvage.header.clone(), mapping: salvage.mapping.clone() };
                check_reads(file, source, keep, |read| salvage.push(read), &mut report)?;
                report.salvaged = salvage.finish()?;
            }
        }
        report.lost_reads = self.lost_reads(file, report.reads)?;
        self.check_index(file, &mut report);
        Ok(report)
    }

    fn check_index(&self, file: &OpenFile, report: &mut CheckReport) {
        let verified = match self.saved_rows(file) {
            Ok(None) => return,
            Ok(Some(index)) => index.verify(),
            Err(error) => Err(error),
        };
        match verified {
            Ok(()) => report.index = IndexState::Consistent,
            Err(error) => {
                report.index = IndexState::Wrong;
                report.defect(error);
            }
        }
    }

    /// The number of reads of the file besides the `intact` ones. A batch without a readable head
    /// counts as at least one read.
    fn lost_reads(&self, file: &OpenFile, intact: u64) -> Result<LostReads> {
        let rows = self.tables.rows(&file.options.control)?;
        let headless =
            rows.iter().filter(|rows| rows.is_err()).count() as u64 + u64::from(self.tables.is_cut);
        let lost = rows.iter().flatten().sum::<u64>().saturating_sub(intact);
        Ok(if headless == 0 { LostReads::Known(lost) } else { LostReads::AtLeast(lost + headless) })
    }
}
