//! Events and logs of NeXus files.
//!
//! A bank is a group of class `NXevent_data`, or a group with the datasets of that class:
//! `event_id` and `event_time_offset` for each event, `event_weight` where there are weights, and
//! `event_index` and `event_time_zero` for each pulse. [`Nexus::events`] reads the events of
//! selected banks, pulses, times and times of flight. It checks the pulse index and returns each
//! problem as a [`EventFinding`].
//!
//! Events of one bank in the first second of a run:
//!
//! ```
//! use thalweg_hdf5::arrays::ArrayFile;
//! use thalweg_hdf5::nexus::{Moment, Nexus, EventSelection};
//! use thalweg_hdf5::synth::{NexusWriter, NexusRecipe, SynthRun};
//! use thalweg_io::open::Options;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("run.nxs");
//! let small = NexusRecipe::with_bytes(1, 100_000);
//! let recipe = NexusRecipe { banks: 2, events_per_pulse: 100.0, ..small };
//! NexusWriter::write(&path, &SynthRun::new(recipe)?)?;
//!
//! let file = ArrayFile::open(&path, Options::default())?;
//! let nexus = Nexus::find(&file)?;
//! let wanted = EventSelection {
//!     banks: vec!["bank1_*".into()],
//!     time: Some((Some(Moment::parse("0")?), Some(Moment::parse("1")?))),
//!     ..EventSelection::default()
//! };
//! let mut events = 0;
//! let summary = nexus.events(&wanted, &mut |batch| {
//!     events += batch.pulses.len() as u64;
//!     Ok(())
//! })?;
//! assert!(events > 0 && events < nexus.banks().iter().map(|bank| bank.events()).sum::<u64>());
//! assert!(summary.findings.is_empty());
//! # Ok(())
//! # }
//! ```

mod columns;
mod defects;
mod discovery;
mod event_windows;
mod log;
mod number;
mod pulse_numbers;
mod pulses;
mod read;
mod selection;
mod time;

use thalweg_io::{Error, Result};

use crate::array::{ElementPlace, Found};
use crate::arrays::{ArrayFile, ArrayRequest, Dataset};
use number::ExactNumber;
use pulse_numbers::{PULSE_BYTES, PulseNumbers};

pub use defects::{Defect, EventFinding};
pub use log::{Log, LogColumn, LogValues};
pub use number::NumericType;
pub use pulses::Pulses;
pub use read::{EventBatch, EventOrder, EventsSummary};
pub use selection::EventSelection;
pub(crate) use time::parse_iso;
pub use time::{Moment, NO_TIME, Unit, iso};

/// The event data and logs of a file.
#[derive(Debug)]
pub struct Nexus<'a> {
    file: &'a ArrayFile,
    banks: Vec<Bank>,
    logs: Vec<Log>,
    unread_logs: Vec<(String, String)>,
    unreadable: Vec<Error>,
    entries: Vec<NexusEntry>,
}

/// A measurement: a group of class `NXentry`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NexusEntry {
    /// The group's path.
    pub path: String,
    /// The start time, as the file stores it.
    pub start_time: Option<String>,
    /// The title.
    pub title: Option<String>,
}

/// The events of a bank of detectors.
#[derive(Debug)]
pub struct Bank {
    path: String,
    name: String,
    events: u64,
    /// The columns of the events, in the order of [`EventColumn::ALL`].
    columns: [Option<ColumnDataset>; 3],
    event_time_zero: Option<ColumnDataset>,
    event_index: Option<ColumnDataset>,
    cue_index: Option<ColumnDataset>,
    cue_timestamp_zero: Option<ColumnDataset>,
    /// The unit of `event_time_offset`.
    unit: Unit,
    /// The unit of `event_time_zero`.
    zero_unit: Unit,
    /// The time that `event_time_zero` counts from, in nanoseconds since 1970.
    epoch: i64,
    /// Defects that are found without reading values.
    findings: Vec<EventFinding>,
}

/// A column of event values that a bank may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventColumn {
    /// `event_id`: the pixel of the detector.
    Id,
    /// `event_time_offset`: the time since its pulse, in [`Bank::unit`].
    Offset,
    /// `event_weight`: the number of events that it counts for.
    Weight,
}

impl EventColumn {
    /// All columns.
    pub const ALL: [Self; 3] = [Self::Id, Self::Offset, Self::Weight];

    /// The name of the column's dataset.
    pub fn name(self) -> &'static str {
        match self {
            Self::Id => "event_id",
            Self::Offset => "event_time_offset",
            Self::Weight => "event_weight",
        }
    }
}

/// A dataset that is a list of numbers.
#[derive(Debug)]
struct ColumnDataset {
    dataset: Dataset,
    number: NumericType,
    len: u64,
}

impl Bank {
    /// The group's path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The last part of the path, or the whole path if another bank has the same last part.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of events.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The number of entries of `event_time_zero`, or of the index if there are no times.
    pub fn pulses(&self) -> u64 {
        self.event_time_zero.as_ref().or(self.event_index.as_ref()).map_or(0, |list| list.len)
    }

    fn list(&self, column: EventColumn) -> Option<&ColumnDataset> {
        self.columns[column as usize].as_ref()
    }

    /// The type of a column; `None` if the bank does not have the column.
    pub fn number(&self, column: EventColumn) -> Option<NumericType> {
        self.list(column).map(|list| list.number)
    }

    /// The dataset of a column; `None` if the bank does not have the column.
    pub fn dataset(&self, column: EventColumn) -> Option<&Dataset> {
        self.list(column).map(|list| &list.dataset)
    }

    /// The unit of `event_time_offset`.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// The datasets that hold a value for each event.
    pub fn datasets(&self) -> impl Iterator<Item = &Dataset> {
        self.columns.iter().flatten().map(|list| &list.dataset)
    }
}

impl<'a> Nexus<'a> {
    /// The banks, in the order of their paths.
    pub fn banks(&self) -> &[Bank] {
        &self.banks
    }

    /// The logs, in the order of their paths.
    pub fn logs(&self) -> &[Log] {
        &self.logs
    }

    /// The paths of logs that cannot be read, and why, as for a log without times.
    pub fn unread_logs(&self) -> &[(String, String)] {
        &self.unread_logs
    }

    /// The defects of groups, banks and logs that cannot be read. Each error names its object.
    pub fn unreadable(&self) -> &[Error] {
        &self.unreadable
    }

    /// The measurements, in the order of their paths.
    pub fn entries(&self) -> &[NexusEntry] {
        &self.entries
    }

    /// The file.
    pub fn file(&self) -> &'a ArrayFile {
        self.file
    }

    /// Stored bytes of the events of some banks, given by their indices in [`Nexus::banks`].
    pub fn stored_bytes(&self, banks: &[usize]) -> u64 {
        let stored = |dataset: &Dataset| match &dataset.found {
            Found::Array(array) => match &array.place {
                ElementPlace::Chunked(_, chunks) => chunks.iter().map(|chunk| chunk.size).sum(),
                _ => array.bytes(),
            },
            Found::Other(_) => 0,
        };
        banks.iter().filter_map(|&at| self.banks.get(at)).flat_map(Bank::datasets).map(stored).sum()
    }

    /// Reads the pulses of a bank. Also returns all defects of the bank.
    ///
    /// # Errors
    /// The first defect of the file; [`Error::Unsupported`] if the pulses do not fit into the
    /// memory budget.
    pub fn pulses(&self, bank: &Bank) -> Result<(Pulses, Vec<EventFinding>)> {
        let mut one = [(bank, PulseNumbers::default())];
        self.read_pulses(&mut one)?;
        let [(_, numbers)] = one;
        Ok(bank.pulses_from(numbers))
    }

    /// The earliest time of a bank's first pulse, in nanoseconds since 1970. [`Moment::Into`]
    /// counts from it.
    ///
    /// # Errors
    /// The first defect of the file.
    pub fn start(&self) -> Result<Option<i64>> {
        let mut firsts = Vec::new();
        for bank in &self.banks {
            if let Some(list) = bank.pulse_times().filter(|list| list.len > 0) {
                firsts.push((bank, list, vec![0; list.number.size()]));
            }
        }
        let mut wanted: Vec<ArrayRequest<'_>> = firsts
            .iter_mut()
            .map(|(_, list, out)| read::want(&list.dataset, &(0..1), out))
            .collect();
        self.file.read(&mut wanted)?;
        let mut start = None;
        for (bank, list, bytes) in &firsts {
            list.number.scalars(bytes, |first| {
                let first = bank.zero_unit.after(bank.epoch, first);
                if first != NO_TIME {
                    start = Some(start.map_or(first, |start: i64| start.min(first)));
                }
            });
        }
        Ok(start)
    }

    /// Reads a whole list of numbers.
    fn numbers<T>(
        &self,
        list: &ColumnDataset,
        convert: impl Fn(ExactNumber) -> T,
    ) -> Result<Vec<T>> {
        self.check_room(list)?;
        let mut numbers = Vec::new();
        self.file.values(&list.dataset, &mut |part| {
            list.number.scalars(part, |number| numbers.push(convert(number)));
            Ok(())
        })?;
        Ok(numbers)
    }

    /// Checks that a list with a number for each pulse fits into the memory budget.
    fn check_room(&self, list: &ColumnDataset) -> Result<()> {
        let needed = list.len.saturating_mul(PULSE_BYTES);
        if needed <= self.file.options().budget.memory as u64 {
            return Ok(());
        }
        Err(Error::Unsupported {
            file: self.file.store().name().clone(),
            what: format!(
                "{}: reading {} pulses, which need {needed} bytes of memory,",
                list.dataset.path(),
                list.len
            )
            .into(),
            advice: "raise --memory above that".into(),
        })
    }
}

impl NexusEntry {
    /// The start time, in nanoseconds since 1970.
    pub fn start(&self) -> Option<i64> {
        parse_iso(self.start_time.as_ref()?)
    }
}

/// The text of a dataset, if it holds a single text.
fn text(file: &ArrayFile, dataset: &Dataset) -> Result<Option<String>> {
    let mut found = None;
    let mut take = |bytes: &[u8]| {
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        found = Some(String::from_utf8_lossy(&bytes[..end]).trim().to_owned());
        Ok(())
    };
    match &dataset.found {
        Found::Array(array) if array.dtype.to_string().starts_with("|S") && array.len() == 1 => {
            file.values(dataset, &mut take)?;
        }
        Found::Array(_) => {}
        Found::Other(_) => {
            if file
                .variable(dataset)?
                .is_some_and(|variable| variable.item.is_none() && variable.len() == 1)
            {
                file.each_variable(dataset, &mut take)?;
            }
        }
    }
    Ok(found)
}
