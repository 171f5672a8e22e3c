//! Every read of a POD5 file decoded: damage is counted and does not end the pass, and what is
//! intact may be written to a file of its own.

use std::path::Path;

use thalweg_io::engine::Delivery;
use thalweg_io::{Error, Result};

use super::open::footer_defects;
use super::{Aim, Pod5};
use crate::pod5::write::Layout;
use crate::pod5::{SignalCoding, write};
use crate::reads::check::IndexState;
use crate::reads::{LostReads, ReadFile, Report, Selection, layout};
use crate::write::{Coding, ReadSink, Target};

impl ReadFile {
    /// Decodes all reads; what is wrong with them, and with the index.
    pub(in crate::reads) fn pod5_check(&self, file: &Pod5) -> Result<Report> {
        self.pod5_pass(file, None)
    }

    /// The same; intact reads go to a new file, their signal as it is stored.
    pub(in crate::reads) fn pod5_salvage(&self, file: &Pod5, out: &Path) -> Result<Report> {
        let coding = match file.tables.coding() {
            SignalCoding::Vbz => write::SignalCoding::default(),
            SignalCoding::Plain => write::SignalCoding::Plain,
        };
        let layout = Layout { coding, ..Layout::default() };
        let target = Target::new(Coding::Pod5(layout), &self.header).map_err(|fault| {
            Error::Usage(
                format!("{}: {}, expected {}", out.display(), fault.found, fault.expected).into(),
            )
        })?;
        let sink = target.create(out)?;
        self.pod5_pass(file, Some((target, sink)))
    }

    fn pod5_pass(&self, file: &Pod5, salvage: Option<(Target, ReadSink)>) -> Result<Report> {
        let shape = self.shape(Delivery::Ordered);
        let (source, board) = self.pod5_source(file, &Selection::All, &shape, Aim::Defects)?;
        let mut report = Report::default();
        if let Some((target, _)) = &salvage {
            report.left_out = file.left_out.iter().chain(target.lost()).cloned().collect();
        }
        if file.is_recovered {
            footer_defects(&*self.store, self.options.budget)?
                .into_iter()
                .for_each(|error| report.defect(error));
        }
        self.examine(
            (source, layout::Coding::Pod5(file.tables.clone(), board)),
            salvage,
            &mut report,
        )?;
        report.lost_reads = self.pod5_lost(file, report.reads)?;
        match file.saved_index(self) {
            Ok(None) => {}
            Ok(Some(index)) => match index.verify() {
                Ok(()) => report.index = IndexState::Consistent,
                Err(error) => {
                    report.index = IndexState::Wrong;
                    report.defect(error);
                }
            },
            Err(error) => {
                report.index = IndexState::Wrong;
                report.defect(error);
            }
        }
        Ok(report)
    }

    /// How many reads the file has beside so many intact ones. A batch of which not even the head
    /// is left has at least one.
    fn pod5_lost(&self, file: &Pod5, intact: u64) -> Result<LostReads> {
        let rows = file.tables.rows(&self.options.control)?;
        let headless =
            rows.iter().filter(|rows| rows.is_err()).count() as u64 + u64::from(file.tables.is_cut);
        let lost = rows.iter().flatten().sum::<u64>().saturating_sub(intact);
        Ok(if headless == 0 { LostReads::Known(lost) } else { LostReads::AtLeast(lost + headless) })
    }
}
