//! Events and logs of NeXus files.

use std::fmt::Display;
use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_buffer::MutableBuffer;
use pyo3::prelude::*;
use thalweg::control::Control;
use thalweg::event_table::EventTable;
use thalweg::nexus::{
    Bank, EventColumn, EventOrder, EventSelection, LogColumn, Moment, NO_TIME, Nexus,
};
use thalweg::{Error, Result, arrays};

use crate::arrays::ArrayFile;
use crate::arrow::Rows;
use crate::buffer::Buffer;
use crate::errors::raised;
use crate::run::run;
use crate::stream::{BatchStream, Item, Running};

/// The events and logs of a file.
#[pyclass(frozen, module = "thalweg._thalweg")]
pub(crate) struct Events {
    file: Py<ArrayFile>,
}

/// The name, path, number of events, number of pulses, unit of time of flight and columns of a
/// bank.
type BankParts = (String, String, u64, u64, String, Vec<&'static str>);

/// The number of a bank, its columns in the order of [`EventColumn::ALL`], and the pulse and the
/// time of the pulse of each event.
type BankColumns = (usize, [Option<Buffer>; 3], Buffer, Buffer);

/// The first event of each pulse of a bank, and the times of the pulses.
type BankPulses = (Buffer, Buffer);

/// The path and unit of a log, its times (since 1970, or since an unknown start), and its values.
type LogParts = (String, Option<String>, Buffer, Py<PyAny>);

/// What events are selected.
#[derive(FromPyObject, Debug)]
#[pyo3(from_item_all)]
pub(crate) struct Wanted {
    /// Names, paths and patterns of banks; none for all.
    banks: Vec<String>,
    /// The first pulse, and the one behind the last.
    pulses: Option<(Option<u64>, Option<u64>)>,
    /// Moments, as [`Moment::parse`] reads them.
    time: Option<(Option<String>, Option<String>)>,
    /// Times of flight in nanoseconds.
    tof: Option<(Option<f64>, Option<f64>)>,
    /// The number of a part of each bank, and how many parts there are.
    part: Option<(u64, u64)>,
}

impl Wanted {
    fn selection(self) -> Result<EventSelection> {
        let moment = |text: Option<String>| text.as_deref().map(Moment::parse).transpose();
        let time = self.time.map(|(from, to)| Ok::<_, Error>((moment(from)?, moment(to)?)));
        let pulses = self.pulses.map(|(from, to)| from.unwrap_or(0)..to.unwrap_or(u64::MAX));
        let all = (f64::NEG_INFINITY, f64::INFINITY);
        let flight = self.tof.map(|(from, to)| from.unwrap_or(all.0)..to.unwrap_or(all.1));
        Ok(EventSelection {
            banks: self.banks,
            pulses: pulses.map(|range| in_order("pulses", range)).transpose()?,
            time: time.transpose()?,
            flight: flight.map(|range| in_order("tof", range)).transpose()?,
            part: self.part,
        })
    }
}

/// Refuses a range whose end comes before its start, or is no number.
fn in_order<T: PartialOrd + Display>(name: &str, range: Range<T>) -> Result<Range<T>> {
    if range.start <= range.end {
        return Ok(range);
    }
    let Range { start, end } = range;
    let what =
        format!("{name}: found {start} to {end}, expected an end that is not before the start");
    Err(Error::Usage(what.into()))
}

#[pymethods]
impl Events {
    #[new]
    fn new(file: Py<ArrayFile>) -> Self {
        Self { file }
    }

    /// The banks, in the order of their paths.
    fn banks(&self, py: Python<'_>) -> PyResult<Vec<BankParts>> {
        self.run(py, |file| Ok(Nexus::find(file)?.banks().iter().map(parts).collect()))
    }

    /// The numbers of the banks that names, paths or patterns choose.
    fn find(&self, py: Python<'_>, banks: Vec<String>) -> PyResult<Vec<usize>> {
        let wanted = EventSelection { banks, ..EventSelection::default() };
        self.run(py, |file| wanted.banks(&Nexus::find(file)?))
    }

    /// The pulses of some banks, and the defects of all of them.
    fn pulses(
        &self,
        py: Python<'_>,
        banks: Vec<usize>,
    ) -> PyResult<(Vec<BankPulses>, Vec<String>)> {
        self.run(py, |file| {
            let nexus = Nexus::find(file)?;
            let (mut read, mut defects) = (Vec::new(), Vec::new());
            for number in banks {
                let Some(bank) = nexus.banks().get(number) else {
                    return Err(Error::Usage(format!("no bank {number}").into()));
                };
                let (pulses, findings) = nexus.pulses(bank)?;
                let numbers = || 0..pulses.len();
                let starts: Vec<u64> = numbers().map(|pulse| pulses.events(pulse).start).collect();
                let times = numbers().map(|pulse| pulses.time(pulse).unwrap_or(NO_TIME));
                let times = MutableBuffer::from(times.collect::<Vec<i64>>());
                read.push((Buffer::ids(starts), Buffer::own(times, "<M8[ns]", 8)));
                defects.extend(findings.iter().map(ToString::to_string));
            }
            Ok((read, defects))
        })
    }

    /// What of the file's events and logs cannot be read.
    fn unreadable(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.run(py, |file| {
            let nexus = Nexus::find(file)?;
            let logs = nexus.unread_logs().iter().map(|(path, why)| format!("{path}: {why}"));
            Ok(nexus.unreadable().iter().map(ToString::to_string).chain(logs).collect())
        })
    }

    /// The selected events of each bank, and the defects of the banks.
    fn read(&self, py: Python<'_>, wanted: Wanted) -> PyResult<(Vec<BankColumns>, Vec<String>)> {
        self.run(py, |file| read(file, &wanted.selection()?))
    }

    /// The selected events as batches of a table, bank by bank or in the order of the file.
    fn batches(
        &self,
        py: Python<'_>,
        wanted: Wanted,
        in_file_order: bool,
    ) -> PyResult<BatchStream> {
        let wanted = wanted.selection().map_err(|error| raised(py, &error))?;
        let schema = self.run(py, |file| {
            let nexus = Nexus::find(file)?;
            Ok(table(&nexus, &wanted)?.schema().clone())
        })?;
        let order = if in_file_order { EventOrder::AsStored } else { EventOrder::ByBank };
        let file = self.file.clone_ref(py);
        let name = file.get().file.store().name().clone();
        let run = Running::start(&name, &Control::new(), move |give| {
            let file = &file.get().file;
            let rows = &mut |rows, bank| {
                give.send(Ok(Item { rows: Rows::Kept(rows), file: bank }))
                    .map_err(|_| Error::Cancelled)
            };
            if let Err(error) = give_all(file, &wanted, order, rows) {
                let _ = give.send(Err(error));
            }
        });
        let run = run.map_err(|error| raised(py, &error))?;
        Ok(BatchStream::running(schema, run))
    }

    /// The logs, and why some of them cannot be read.
    fn logs(&self, py: Python<'_>) -> PyResult<(Vec<LogParts>, Vec<String>)> {
        let (logs, refused) = self.run(py, |file| {
            let nexus = Nexus::find(file)?;
            let (mut logs, mut refused) = (Vec::new(), Vec::new());
            for log in nexus.logs() {
                match nexus.log(log) {
                    Ok(values) => {
                        let units = log.units().map(str::to_owned);
                        logs.push((log.path().to_owned(), units, log.start().is_some(), values));
                    }
                    Err(error @ Error::Unsupported { .. }) => refused.push(error.to_string()),
                    Err(error) => return Err(error),
                }
            }
            Ok((logs, refused))
        })?;
        let shown = logs.into_iter().map(|(path, units, is_absolute, log)| {
            let kind = if is_absolute { "<M8[ns]" } else { "<m8[ns]" };
            let times = Buffer::own(MutableBuffer::from(log.times), kind, 8);
            let values = match log.values {
                LogColumn::Numbers(numbers) => {
                    let numbers = Buffer::own(MutableBuffer::from(numbers), "<f8", 8);
                    numbers.into_pyobject(py)?.into_any().unbind()
                }
                LogColumn::Text(text) => text.into_pyobject(py)?.into_any().unbind(),
            };
            Ok((path, units, times, values))
        });
        Ok((shown.collect::<PyResult<_>>()?, refused))
    }
}

impl Events {
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        job: impl FnOnce(&arrays::ArrayFile) -> Result<T> + Send,
    ) -> PyResult<T> {
        let file = &self.file.get().file;
        run(py, || job(file))
    }
}

fn parts(bank: &Bank) -> BankParts {
    let columns = EventColumn::ALL.into_iter().filter(|&column| bank.number(column).is_some());
    (
        bank.name().to_owned(),
        bank.path().to_owned(),
        bank.events(),
        bank.pulses(),
        bank.unit().to_string(),
        columns.map(EventColumn::name).collect(),
    )
}

fn table(nexus: &Nexus<'_>, wanted: &EventSelection) -> Result<EventTable> {
    let numbers = wanted.banks(nexus)?;
    let banks: Vec<&Bank> = numbers.iter().filter_map(|&at| nexus.banks().get(at)).collect();
    EventTable::new(&banks, nexus.file().store().name())
}

/// Passes the selected events to `give` as rows of the table, with the number of their bank.
fn give_all(
    file: &arrays::ArrayFile,
    wanted: &EventSelection,
    order: EventOrder,
    give: &mut dyn FnMut(RecordBatch, usize) -> Result<()>,
) -> Result<()> {
    let nexus = Nexus::find(file)?;
    let table = table(&nexus, wanted)?;
    nexus.events_in(order, wanted, &mut |batch| {
        let Some(bank) = nexus.banks().get(batch.bank) else { return Ok(()) };
        let rows: RecordBatch =
            table.rows(bank, batch).map_err(|error| Error::Usage(error.to_string().into()))?;
        give(rows, batch.bank)
    })?;
    Ok(())
}

/// The events of a bank, while they are read.
#[derive(Default)]
struct Collected {
    columns: [MutableBuffer; 3],
    pulses: MutableBuffer,
    times: MutableBuffer,
}

fn read(
    file: &arrays::ArrayFile,
    wanted: &EventSelection,
) -> Result<(Vec<BankColumns>, Vec<String>)> {
    let nexus = Nexus::find(file)?;
    let mut banks: Vec<(usize, Collected)> =
        wanted.banks(&nexus)?.into_iter().map(|bank| (bank, Collected::default())).collect();
    let summary = nexus.events_in(EventOrder::AsStored, wanted, &mut |batch| {
        let Ok(at) = banks.binary_search_by_key(&batch.bank, |(bank, _)| *bank) else {
            return Ok(());
        };
        let Some((_, to)) = banks.get_mut(at) else { return Ok(()) };
        for (column, bytes) in to.columns.iter_mut().zip(batch.columns) {
            column.extend_from_slice(bytes);
        }
        to.pulses.extend_from_slice(batch.pulses);
        to.times.extend_from_slice(batch.times);
        Ok(())
    })?;
    let shown = banks.into_iter().filter_map(|(at, collected)| {
        let bank = nexus.banks().get(at)?;
        let mut columns = [None, None, None];
        for ((shown, of), bytes) in columns.iter_mut().zip(EventColumn::ALL).zip(collected.columns)
        {
            *shown = bank.number(of).map(|number| Buffer::own(bytes, number.name(), number.size()));
        }
        let pulses = Buffer::own(collected.pulses, "<i8", 8);
        Some((at, columns, pulses, Buffer::own(collected.times, "<M8[ns]", 8)))
    });
    let findings = summary.findings.iter();
    let findings = findings.map(|finding| format!("{}: {finding}", file.store().name()));
    Ok((shown.collect(), findings.collect()))
}
