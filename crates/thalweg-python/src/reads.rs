//! Files of nanopore reads.

use std::ffi::OsString;
use std::sync::Arc;

use arrow_schema::ArrowError;
use pyo3::prelude::*;
use thalweg::condition::Condition;
use thalweg::control::Control;
use thalweg::format::pod5::{RowCoding, RunInfo, RunValue};
use thalweg::format::slow5::{AuxField, AuxType};
use thalweg::reads::{self, BatchOptions, Order, ScanOptions, Selection, Strings};
use thalweg::{Error, Result};

use crate::arrow::{Batch, Rows, places};
use crate::run::run;
use crate::stream::{BatchStream, Batches, Item};

/// Of a POD5 file: identifier, version, software, whether signals are compressed, and rows of a
/// batch of signals.
type Pod5 = (String, String, String, bool, u64);

/// The columns that the signal may be in; batches have one of them.
const SIGNAL: [&str; 3] = ["signal", "signal_pa", "samples"];

/// Files of reads as one data set.
#[pyclass(frozen, module = "thalweg._thalweg")]
pub(crate) struct ReadSet {
    pub(crate) set: reads::ReadSet,
    pub(crate) control: Control,
}

#[pymethods]
impl ReadSet {
    /// The files, in the order of reading.
    #[getter]
    fn paths(&self) -> Vec<OsString> {
        self.set.paths().map(OsString::from).collect()
    }

    /// How many reads there are. SLOW5 and BLOW5 say it in their index, which is made if there is
    /// none.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        run(py, || self.set.count()).map(|count| usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// All read ids, in the order of the files.
    fn ids(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        run(py, || {
            let of = |index| self.set.file(index)?.read_ids();
            Ok((0..self.set.paths().len()).map(of).collect::<Result<Vec<_>>>()?.concat())
        })
    }

    /// The name of a file's format.
    fn format(&self, py: Python<'_>, file: usize) -> PyResult<String> {
        run(py, || Ok(self.set.file(file)?.format().to_string()))
    }

    /// The number of read groups of a file, and their attributes: name, and a value a group.
    fn attributes(&self, py: Python<'_>, file: usize) -> PyResult<(u32, Vec<Attribute>)> {
        run(py, || {
            let header = self.set.header(file)?;
            let attributes = header.attributes.iter();
            let attributes = attributes.map(|one| (one.name.clone(), one.values.clone())).collect();
            Ok((header.read_groups, attributes))
        })
    }

    /// The auxiliary fields of a file: name, SLOW5 type, and labels of an enumeration.
    fn fields(&self, py: Python<'_>, file: usize) -> PyResult<Vec<(String, String, Vec<String>)>> {
        run(py, || {
            let fields = self.set.header(file)?.aux.iter();
            let type_of = |field: &AuxField| match field.kind {
                AuxType::Scalar(scalar) => scalar.name().to_owned(),
                AuxType::Array(scalar) => format!("{}*", scalar.name()),
            };
            Ok(fields.map(|one| (one.name.clone(), type_of(one), one.labels.clone())).collect())
        })
    }

    /// The columns of POD5's run information, for each read group of a file.
    fn runs(&self, py: Python<'_>, file: usize) -> PyResult<Vec<Vec<(String, Value)>>> {
        run(py, || {
            let header = self.set.header(file)?;
            let of = |group| {
                let columns = RunInfo::of_group(header, group).columns.into_iter();
                columns.map(|(name, value)| (name, value.into())).collect()
            };
            Ok((0..header.read_groups).map(of).collect())
        })
    }

    /// General properties of a POD5 file.
    fn pod5(&self, py: Python<'_>, file: usize) -> PyResult<Option<Pod5>> {
        run(py, || {
            let file = self.set.file(file)?;
            Ok(file.pod5_info().map(|info| {
                (
                    info.identifier.to_owned(),
                    info.version.to_owned(),
                    info.software.to_owned(),
                    info.signal == RowCoding::Vbz,
                    info.signal_rows,
                )
            }))
        })
    }

    /// The ids that no file has.
    fn missing(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<Vec<String>> {
        run(py, || Ok(self.set.locate(&ids)?.missing.into_iter().map(str::to_owned).collect()))
    }

    /// A read of the first file.
    fn row(&self, py: Python<'_>, id: &str) -> PyResult<Batch> {
        let record = run(py, || self.set.file(0)?.row(id, Strings::default()))?;
        Ok(Batch::kept(record, 0))
    }

    /// The size of a read of the first file, as it is stored: that of its signal in POD5, or else
    /// that of its record.
    fn stored_bytes(&self, py: Python<'_>, id: &str) -> PyResult<u64> {
        run(py, || {
            let file = self.set.file(0)?;
            let mut getter = file.getter()?;
            getter.fetch(id)?;
            Ok(getter.stored_bytes())
        })
    }

    /// The selected reads as batches of all columns or some, and of at most `size` rows. Without
    /// `signal`, the number of samples is in its place; with `picoampere`, the column `signal_pa`.
    #[pyo3(signature = (
        ids=None, *, signal=true, picoampere=false, in_order=true, columns=None, size=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn batches(
        &self,
        py: Python<'_>,
        ids: Option<Vec<String>>,
        signal: bool,
        picoampere: bool,
        in_order: bool,
        columns: Option<Vec<String>>,
        size: Option<usize>,
    ) -> PyResult<BatchStream> {
        let (order, strings) = (order(in_order), Strings::default());
        let options = BatchOptions { order, strings, picoampere };
        run(py, || {
            let (set, selection) = (&self.set, selection(ids));
            let (schema, batches): (_, Lent) = if signal {
                (set.schema(options)?, Box::new(set.batches_with(&selection, options)?))
            } else {
                (set.scan_schema(strings)?, Box::new(set.fields(&selection, options)?))
            };
            let places = columns.map(|names| places(&schema, &names, &SIGNAL)).transpose()?;
            let schema = match &places {
                Some(places) => Arc::new(schema.project(places).map_err(|e| refused(&e))?),
                None => schema,
            };
            Ok(BatchStream::new(schema, cut(batches, places, size)))
        })
    }

    /// A table of the selected reads that meet a condition, with their files, and with attributes
    /// of their read groups. All its batches have the number 0.
    #[pyo3(signature = (ids=None, *, columns=None, condition=None, in_order=true))]
    fn scan(
        &self,
        py: Python<'_>,
        ids: Option<Vec<String>>,
        columns: Option<Vec<String>>,
        condition: Option<&str>,
        in_order: bool,
    ) -> PyResult<BatchStream> {
        run(py, || {
            let options = ScanOptions {
                columns: columns.unwrap_or_default(),
                condition: condition.map(Condition::parse).transpose()?,
                order: order(in_order),
                ..ScanOptions::default()
            };
            let scan = self.set.scan(&selection(ids), &options)?;
            let schema = scan.schema();
            let batches =
                Box::new(scan.map(|record| Ok(Item { rows: Rows::Kept(record?), file: 0 })));
            Ok(BatchStream::new(schema, batches))
        })
    }
}

/// An attribute: its name, and its value for each read group.
type Attribute = (String, Vec<Option<String>>);

/// A value of a run. Times are milliseconds since 1970.
#[derive(IntoPyObject)]
enum Value {
    Missing(Option<()>),
    Text(String),
    Integer(i64),
    Float(f64),
    Tags(Vec<(String, String)>),
}

impl From<RunValue> for Value {
    fn from(value: RunValue) -> Self {
        match value {
            RunValue::Missing => Self::Missing(None),
            RunValue::Text(text) => Self::Text(text),
            RunValue::Integer(value) | RunValue::Millis(value) => Self::Integer(value),
            RunValue::Float(value) => Self::Float(value),
            RunValue::Tags(tags) => Self::Tags(tags),
        }
    }
}

fn order(in_order: bool) -> Order {
    if in_order { Order::Selection } else { Order::AsTheyCome }
}

fn selection(ids: Option<Vec<String>>) -> Selection {
    ids.map_or(Selection::All, |ids| Selection::Ids(Arc::new(ids)))
}

fn refused(error: &ArrowError) -> Error {
    Error::Usage(error.to_string().into())
}

type Lent = Box<dyn Iterator<Item = Result<reads::Batch>> + Send>;

/// Batches of the columns in `places`, and of at most `size` rows: slices, not copies, which are
/// out of the run's budget.
fn cut(batches: Lent, places: Option<Vec<usize>>, size: Option<usize>) -> Batches {
    let Some(size) = size else {
        return Box::new(batches.map(move |batch| {
            let batch = batch?;
            let file = batch.file();
            let rows = Rows::lent(batch, places.as_deref()).map_err(|error| refused(&error))?;
            Ok(Item { file, rows })
        }));
    };
    let slices = move |batch: reads::Batch| {
        let file = batch.file();
        let mut record = batch.into_inner();
        if let Some(places) = &places {
            record = record.project(places).map_err(|error| refused(&error))?;
        }
        let rows = record.num_rows();
        let slice = |at| Ok(Item { rows: Rows::Kept(record.slice(at, size.min(rows - at))), file });
        Ok((0..rows).step_by(size).map(slice).collect::<Vec<_>>())
    };
    Box::new(
        batches.flat_map(move |batch| {
            batch.and_then(&slices).unwrap_or_else(|error| vec![Err(error)])
        }),
    )
}
