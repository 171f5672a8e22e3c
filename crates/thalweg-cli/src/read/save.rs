//! `thalweg read --out` of reads: as the rows of a table, or as numpy's arrays.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Float64Type, Int16Type, UInt32Type};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::ToByteSlice;
use thalweg::new_file::{NpyArray, NpyFolder};
use thalweg::reads::{BatchOptions, PICOAMPERE_COLUMN, ReadSet, Selection};

use crate::common::{Failure, VerbResult};
use crate::table_sink::{TableOut, TableSink};

/// Writes the reads. Returns how many there are.
pub(super) fn save(
    set: &ReadSet,
    selection: &Selection,
    out: TableOut<'_>,
    pa: bool,
) -> Result<u64, Failure> {
    let options = BatchOptions { picoampere: pa, ..BatchOptions::default() };
    let mut sink = if out.is_npy() {
        ReadSink::Arrays(Box::new(ReadArrays::create(out.path, pa)?))
    } else {
        ReadSink::Table(Box::new(TableSink::create(out, &*set.schema(options)?)?))
    };
    let mut reads = 0;
    for batch in set.batches_with(selection, options)? {
        let batch = batch?;
        reads += batch.num_rows() as u64;
        sink.push(&batch)?;
    }
    match sink {
        ReadSink::Table(table) => table.finish()?,
        ReadSink::Arrays(arrays) => arrays.finish()?,
    }
    Ok(reads)
}

enum ReadSink {
    Table(Box<TableSink>),
    Arrays(Box<ReadArrays>),
}

impl ReadSink {
    fn push(&mut self, batch: &RecordBatch) -> VerbResult {
        match self {
            Self::Table(table) => table.push(batch),
            Self::Arrays(arrays) => arrays.push(batch),
        }
    }
}

/// A folder of numpy's arrays with a value for each read, and one of the samples of all reads one
/// after the other.
struct ReadArrays {
    folder: NpyFolder,
    signal: NpyArray,
    in_picoampere: bool,
    /// How many samples a read has.
    samples: NpyArray,
    read_group: NpyArray,
    calibration: Vec<NpyArray>,
    /// A file of numpy's has one length for all texts, which is known at the end.
    ids: Vec<String>,
}

/// The numbers from which picoampere follow, and the rate.
const CALIBRATION: [&str; 4] = ["digitisation", "offset", "range", "sampling_rate"];

impl ReadArrays {
    fn create(to: &Path, in_picoampere: bool) -> thalweg::Result<Self> {
        let folder = NpyFolder::create(to)?;
        let double = |name: &&str| folder.array(name, "<f8", size_of::<f64>(), &[]);
        Ok(Self {
            signal: match in_picoampere {
                true => folder.array(PICOAMPERE_COLUMN, "<f4", size_of::<f32>(), &[])?,
                false => folder.array("signal", "<i2", size_of::<i16>(), &[])?,
            },
            in_picoampere,
            samples: folder.array("samples", "<u8", size_of::<u64>(), &[])?,
            read_group: folder.array("read_group", "<u4", size_of::<u32>(), &[])?,
            calibration: CALIBRATION.iter().map(double).collect::<thalweg::Result<_>>()?,
            ids: Vec::new(),
            folder,
        })
    }

    fn push(&mut self, batch: &RecordBatch) -> VerbResult {
        let of = |name: &str| {
            let missing = || Failure::Said(format!("reads without a column {name}"));
            batch.column_by_name(name).ok_or_else(missing)
        };
        self.ids.extend(of("read_id")?.as_string::<i32>().iter().flatten().map(str::to_owned));
        self.read_group.push(bytes::<UInt32Type>(of("read_group")?))?;
        for (name, array) in CALIBRATION.iter().zip(&mut self.calibration) {
            array.push(bytes::<Float64Type>(of(name)?))?;
        }
        let signal = of(if self.in_picoampere { PICOAMPERE_COLUMN } else { "signal" })?;
        for values in signal.as_list::<i32>().iter().flatten() {
            self.samples.push(&(values.len() as u64).to_le_bytes())?;
            self.signal.push(match self.in_picoampere {
                true => bytes::<Float32Type>(&values),
                false => bytes::<Int16Type>(&values),
            })?;
        }
        Ok(())
    }

    fn finish(self) -> VerbResult {
        let longest = self.ids.iter().map(String::len).max().unwrap_or(0).max(1);
        let mut ids = self.folder.array("read_id", &format!("|S{longest}"), longest, &[])?;
        for id in self.ids {
            let mut id = id.into_bytes();
            id.resize(longest, 0);
            ids.push(&id)?;
        }
        let arrays = [ids, self.signal, self.samples, self.read_group];
        arrays.into_iter().chain(self.calibration).try_for_each(|array| array.finish(None))?;
        Ok(self.folder.finish()?)
    }
}

/// The bytes of a column of numbers.
fn bytes<T: ArrowPrimitiveType>(column: &ArrayRef) -> &[u8] {
    column.as_primitive::<T>().values().to_byte_slice()
}
