//! Reads as Arrow batches: one row per read, one column per field.
//!
//! | column | type |
//! |---|---|
//! | `read_id` | utf8 |
//! | `read_group` | uint32 |
//! | `digitisation`, `offset`, `range`, `sampling_rate` | float64 |
//! | `signal` | list of int16, never null; or `signal_pa`, list of float32, in picoampere |
//! | each auxiliary field | its own type; nullable |
//!
//! A missing scalar and an empty array are null, because SLOW5 does not distinguish a missing array
//! from an empty one. Elements of arrays have their stored values. Enumerations are dictionaries of
//! the header's labels. `char` and `char*` are text, see [`Strings`]. The metadata of each field
//! contain its SLOW5 type.

mod batch;
mod column;
mod reorder;
mod rows;
mod table;
mod values;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use thalweg_io::engine::Delivery;
use thalweg_io::{Result, plan};

use super::decoder::Collect;
use super::{ReadFile, Selection};
use rows::Tabulate;
use table::Fit;

pub use batch::{Batch, Batches};
pub(super) use table::Table;

/// The order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The order of the file, or of the list of ids.
    #[default]
    Selection,
    /// The order of decoding. Rows within a batch are in file order, but batches may arrive in any
    /// order.
    AsTheyCome,
}

/// The column type of `char` and `char*` fields. The format does not define their encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strings {
    /// UTF-8 columns. Bytes that are not UTF-8 are an error that names the read.
    #[default]
    Text,
    /// Binary columns with the stored bytes.
    Bytes,
}

/// Options for batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BatchOptions {
    /// The order of rows.
    pub order: Order,
    /// The column type of strings.
    pub strings: Strings,
    /// Whether picoampere, the column [`PICOAMPERE_COLUMN`](super::PICOAMPERE_COLUMN), replace the
    /// samples.
    pub picoampere: bool,
}

impl BatchOptions {
    pub(super) fn signal(self) -> Signal {
        if self.picoampere { Signal::Picoampere } else { Signal::Samples }
    }
}

/// What batches have of the signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Samples,
    Picoampere,
    /// The number of samples.
    Length,
}

impl Signal {
    fn sample_bytes(self) -> usize {
        match self {
            Self::Samples => size_of::<i16>(),
            Self::Picoampere => size_of::<f32>(),
            Self::Length => 0,
        }
    }
}

impl ReadFile {
    /// The columns of [`ReadFile::batches`].
    ///
    /// # Errors
    /// Those of [`ReadFile::batches`] about the header.
    pub fn schema(&self, options: BatchOptions) -> Result<SchemaRef> {
        Ok(self.table(options.strings, options.signal())?.schema)
    }

    fn table(&self, strings: Strings, signal: Signal) -> Result<Table> {
        Table::new([(self.file.name(), self.header())], strings, signal)
    }

    /// The selected reads as Arrow batches, in the order of the selection.
    ///
    /// The memory budget determines the size of a batch. The memory of a dropped batch is reused
    /// for the next one, except for arrays that the caller keeps: they are never overwritten.
    ///
    /// ```
    /// use arrow_array::cast::AsArray;
    /// use thalweg_io::open::Options;
    /// use thalweg_nanopore::reads::{ReadFile, Selection};
    /// # use thalweg_nanopore::{synth::{Recipe, Synth}, write::Coding};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("reads.slow5");
    /// # let recipe = Recipe { reads: 4, mean_length: 500.0, ..Recipe::default() };
    /// # Synth::new(recipe)?.write(&path, Coding::Slow5)?;
    /// let file = ReadFile::open(&path, Options::default())?;
    /// let mut ids = Vec::new();
    /// for batch in file.batches(&Selection::All)? {
    ///     let batch = batch?;
    ///     let column = batch.column_by_name("read_id").expect("every batch has it");
    ///     ids.extend(column.as_string::<i32>().iter().flatten().map(str::to_owned));
    /// }
    /// assert_eq!(ids, file.read_ids()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`](thalweg_io::Error::NotFound) for unknown ids,
    /// [`Error::Io`](thalweg_io::Error::Io) if no thread can be started. A defect is an item at its
    /// place, and the last item.
    pub fn batches(&self, selection: &Selection) -> Result<Batches> {
        self.batches_with(selection, BatchOptions::default())
    }

    /// The selected reads as Arrow batches, in another order or with other columns.
    ///
    /// # Errors
    /// Those of [`ReadFile::batches`].
    pub fn batches_with(&self, selection: &Selection, options: BatchOptions) -> Result<Batches> {
        self.tabulate(selection, options, options.signal())
    }

    /// The selected reads as batches without samples. The column `signal` is replaced by `samples`
    /// (uint64), the number of samples. Samples are not decoded, and not fetched if the format
    /// stores them separately.
    ///
    /// # Errors
    /// Those of [`ReadFile::batches`]. Defects of the signal are not detected.
    pub fn scan(&self, selection: &Selection, options: BatchOptions) -> Result<Batches> {
        self.tabulate(selection, options, Signal::Length)
    }

    /// One read as a batch of one row, decoded on the caller's thread. For a single read this takes
    /// less time than a run.
    ///
    /// # Errors
    /// Those of [`Getter::get`](super::Getter::get), and of [`ReadFile::batches`].
    pub fn row(&self, read_id: &str, strings: Strings) -> Result<RecordBatch> {
        let table = self.table(strings, Signal::Samples)?;
        let fit = Fit::new(Arc::new(table), self.header());
        let tabulate = Tabulate { name: self.file.name().clone(), fit, limit: usize::MAX };
        let mut rows = tabulate.batch();
        self.getter()?.get(read_id, |read| {
            let mut samples = tabulate.lend(&mut rows).unwrap_or_default();
            samples.extend_from_slice(read.samples);
            tabulate.restore(&mut rows, samples);
            tabulate.take(&mut (), &mut rows, read)
        })??;
        rows.export(&tabulate.fit.table)
    }

    fn tabulate(
        &self,
        selection: &Selection,
        options: BatchOptions,
        signal: Signal,
    ) -> Result<Batches> {
        let table = self.table(options.strings, signal)?;
        self.batches_of(selection, &Arc::new(table), options.order, 0)
    }

    /// Batches with the columns of `table`. Their [`Batch::file`] is `file`.
    pub(super) fn batches_of(
        &self,
        selection: &Selection,
        table: &Arc<Table>,
        order: Order,
        file: usize,
    ) -> Result<Batches> {
        let delivery = match order {
            Order::Selection => Delivery::Ordered,
            Order::AsTheyCome => Delivery::AsTheyCome,
        };
        let limit =
            plan::batch_bytes(&self.shape(delivery), self.file.options.budget).min(MOST_BYTES);
        // Rows of a list wait for their turn as samples, which take half of the memory.
        let converts = delivery == Delivery::Ordered
            && matches!(selection, Selection::Ids(_))
            && table.signal == Signal::Picoampere;
        let decoded = if converts { Arc::new(table.with_samples()) } else { table.clone() };
        let fit = Fit::new(decoded, self.header());
        let tabulate = Tabulate { name: self.file.name().clone(), fit, limit };
        let run = self.run(selection, tabulate, delivery)?;
        // A POD5 file may hold signal in another order than its table.
        let reorder = (delivery == Delivery::Ordered).then_some((limit, converts));
        Ok(Batches::new(run, table.clone(), file, reorder))
    }
}

/// A batch is handed over at this size at the latest. List offsets are 32-bit, and half of their
/// range is left for the last read.
const MOST_BYTES: usize = 1 << 30;
