//! Writes NeXus files piece by piece.

use std::path::Path;

use thalweg_io::Result;
use thalweg_io::new_file::NewFile;

use super::{
    BankField, DatasetLayout, DatasetPiece, EncodedPiece, Encoder, Libver, PulseTimes, SynthRun,
};
use crate::libhdf5::{Hdf5Writer, NewGroup, StoredNumber, Vector, VectorSpec};

/// The start time of runs, for attributes.
const START: &str = "2024-05-14T08:00:00Z";
/// Seconds between readings of the sample's temperature.
const READING_S: f64 = 1.0;

/// A writer for the file of a [`SynthRun`]. The file appears when it is complete. An unfinished
/// file is removed on drop.
#[derive(Debug)]
pub struct NexusWriter<'a> {
    // Declared before `file`, so that the HDF5 file is closed before an unfinished file is removed.
    banks: Vec<[Vector; 4]>,
    writer: Hdf5Writer,
    file: NewFile,
    run: &'a SynthRun,
}

impl<'a> NexusWriter<'a> {
    /// Creates a file with everything but the values of the banks.
    ///
    /// # Errors
    /// [`Error::Io`](thalweg_io::Error::Io) if the folder cannot be written.
    pub fn create(path: &Path, run: &'a SynthRun) -> Result<Self> {
        let file = NewFile::staged(path)?;
        let writer = Hdf5Writer::create_for(
            file.temporary(),
            file.name(),
            run.recipe().libver == Libver::Latest,
        )?;
        let entry = class(&writer, None, "entry", "NXentry")?;
        writer.string(&entry, "title", "synthetic powder")?;
        writer.string(&entry, "definition", "NXevent_data")?;
        writer.string(&entry, "start_time", START)?;
        let instrument = class(&writer, Some(&entry), "instrument", "NXinstrument")?;
        writer.string(&instrument, "name", "THALWEG")?;
        logs(&writer, &entry, run)?;
        let banks = (0..run.recipe().banks)
            .map(|bank| bank_of(&writer, &entry, run, bank))
            .collect::<Result<_>>()?;
        Ok(Self { banks, writer, file, run })
    }

    /// Writes a piece that [`Encoder::encode`] encoded. Chunks lie in the file in the order in
    /// which they are pushed.
    ///
    /// # Errors
    /// [`Error::Io`](thalweg_io::Error::Io), for instance on a full disk.
    pub fn push(&mut self, piece: DatasetPiece, encoded: &EncodedPiece) -> Result<()> {
        let DatasetPiece { bank, field, number } = piece;
        let first = number * self.run.piece(bank, field);
        let Some(vector) = self.banks.get(bank as usize).and_then(|bank| bank.get(place(field)))
        else {
            return Ok(());
        };
        match self.run.recipe().layout {
            DatasetLayout::Contiguous => self.writer.values(vector, first, &encoded.bytes),
            DatasetLayout::Chunked(_) => {
                self.writer.chunk(vector, first, &encoded.bytes, encoded.mask)
            }
        }
    }

    /// Completes the file and renames it to its final path.
    ///
    /// # Errors
    /// [`Error::Io`](thalweg_io::Error::Io).
    pub fn finish(self) -> Result<()> {
        drop(self.banks);
        self.writer.finish()?;
        self.file.finish()
    }

    /// Writes a whole run, on this thread.
    ///
    /// # Errors
    /// The errors of [`NexusWriter::create`], [`NexusWriter::push`] and [`NexusWriter::finish`],
    /// and those of the encoder.
    pub fn write(path: &Path, run: &'a SynthRun) -> Result<()> {
        let failed = |fault: thalweg_io::Fault| {
            thalweg_io::Error::Usage(format!("{}: {fault}", path.display()).into())
        };
        let mut encoder = Encoder::new(run.recipe().coding);
        let mut out = Self::create(path, run)?;
        for piece in run.pieces() {
            out.push(piece, &encoder.encode(run, piece).map_err(failed)?)?;
        }
        out.finish()
    }
}

/// The index of a dataset among the vectors of a bank.
fn place(field: BankField) -> usize {
    BankField::ALL.iter().position(|known| *known == field).unwrap_or(0)
}

/// Creates a group of a NeXus class.
fn class(
    writer: &Hdf5Writer,
    parent: Option<&NewGroup>,
    name: &str,
    class: &str,
) -> Result<NewGroup> {
    let group = writer.group(parent, name)?;
    writer.text(Some(&group), "NX_class", class)?;
    Ok(group)
}

/// Creates the group of a bank's events, without values.
fn bank_of(
    writer: &Hdf5Writer,
    entry: &NewGroup,
    run: &SynthRun,
    bank: u32,
) -> Result<[Vector; 4]> {
    let group = class(writer, Some(entry), &format!("bank{}_events", bank + 1), "NXevent_data")?;
    let coders = run.recipe().coding.coders();
    let make = |field: BankField| {
        let filters: Vec<(i32, [u32; 1])> =
            (coders.iter().map(|coder| coder.registered(field.bytes())))
                .map(|(number, value)| (number, [value]))
                .collect();
        let filters: Vec<(i32, &[u32])> =
            filters.iter().map(|(number, values)| (*number, &values[..])).collect();
        let chunk = matches!(run.recipe().layout, DatasetLayout::Chunked(_))
            .then(|| run.piece(bank, field));
        let kind = match (field, run.recipe().pulse_times) {
            (BankField::EventId, _) => StoredNumber::U32,
            (BankField::EventTimeOffset, _) => StoredNumber::F32,
            (BankField::EventTimeZero, PulseTimes::Seconds) => StoredNumber::F64,
            (BankField::EventIndex, _) | (BankField::EventTimeZero, PulseTimes::Nanoseconds) => {
                StoredNumber::U64
            }
        };
        writer.vector(
            &group,
            field.name(),
            VectorSpec { kind, len: run.len(bank, field), chunk, filters: &filters },
        )
    };
    let [zero, index, id, offset] = BankField::ALL.map(make);
    let zero = zero?;
    let offset = offset?;
    let (units, start) = match run.recipe().pulse_times {
        PulseTimes::Seconds => ("second", START),
        PulseTimes::Nanoseconds => ("ns", "1970-01-01T00:00:00Z"),
    };
    writer.describe(&zero, "units", units)?;
    writer.describe(&zero, "offset", start)?;
    writer.describe(&offset, "units", "microsecond")?;
    let total = VectorSpec { kind: StoredNumber::U64, len: 1, chunk: None, filters: &[] };
    let total = writer.vector(&group, "total_counts", total)?;
    writer.values(&total, 0, &run.events(bank).to_le_bytes())?;
    Ok([zero, index?, id?, offset])
}

/// Writes the logs: the proton charge of every pulse, and the temperature of the sample.
fn logs(writer: &Hdf5Writer, entry: &NewGroup, run: &SynthRun) -> Result<()> {
    let logs = class(writer, Some(entry), "DASlogs", "NXcollection")?;
    let pulses = run.pulses();
    log(writer, &logs, "proton_charge", "picoCoulomb", pulses, |range, times, values| {
        run.times(range.clone(), times);
        run.charges(range, values);
    })?;
    let readings = (run.seconds() / READING_S) as u64 + 1;
    log(writer, &logs, "sample_temperature", "K", readings, |range, times, values| {
        times.extend(range.clone().flat_map(|i| (i as f64 * READING_S).to_le_bytes()));
        values.extend(range.flat_map(|i| run.temperature(i).to_le_bytes()));
    })
}

/// Number of values of a log that one call writes.
const LOG_PIECE: u64 = 1 << 16;

fn log(
    writer: &Hdf5Writer,
    parent: &NewGroup,
    name: &str,
    units: &str,
    len: u64,
    fill: impl Fn(std::ops::Range<u64>, &mut Vec<u8>, &mut Vec<u8>),
) -> Result<()> {
    let group = class(writer, Some(parent), name, "NXlog")?;
    let of = VectorSpec { kind: StoredNumber::F64, len, chunk: None, filters: &[] };
    let time = writer.vector(&group, "time", of)?;
    let value = writer.vector(&group, "value", of)?;
    writer.describe(&time, "units", "second")?;
    writer.describe(&time, "start", START)?;
    writer.describe(&value, "units", units)?;
    let mut times = Vec::new();
    let mut values = Vec::new();
    for first in (0..len).step_by(LOG_PIECE as usize) {
        times.clear();
        values.clear();
        fill(first..(first + LOG_PIECE).min(len), &mut times, &mut values);
        writer.values(&time, first, &times)?;
        writer.values(&value, first, &values)?;
    }
    Ok(())
}
