//! Nanopore reads, one after the other.

use std::ffi::{CString, c_char};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int16Type, UInt32Type};
use arrow_array::{Array, Float64Array, ListArray, RecordBatch, StringArray, UInt32Array};
use thalweg::cells::{Number, numbers, shown};
use thalweg::control::Control;
use thalweg::reads::{Batch, ReadSet, Selection};
use thalweg::{Error, Options, Result};

use crate::status::{c_text, wrong};
use crate::types::{thw_batch, thw_read};

/// Files of reads.
pub(crate) struct Reads {
    set: ReadSet,
    control: Control,
}

type Batches = Box<dyn Iterator<Item = Result<Batch>> + Send>;

/// Reads that come one after the other.
pub(crate) struct Run {
    batches: Batches,
    current: Option<Current>,
    /// The id of the read that was given last.
    id: Vec<u8>,
    /// The text that was given last.
    text: CString,
}

/// The batch that reads are given from.
struct Current {
    // Before the batch, whose memory is used again if nobody else has its columns.
    columns: Columns,
    batch: Batch,
    /// The first row that was not given yet.
    next: usize,
    /// The row that was given last, alone.
    given: Option<usize>,
}

struct Columns {
    ids: StringArray,
    signal: ListArray,
    digitisation: Float64Array,
    offset: Float64Array,
    range: Float64Array,
    sampling_rate: Float64Array,
    read_group: UInt32Array,
}

impl Columns {
    fn of(batch: &RecordBatch) -> Result<Self> {
        let column = |name: &str| {
            batch.column_by_name(name).ok_or_else(|| wrong(format!("a batch without {name:?}")))
        };
        let real = |name| Ok(column(name)?.as_primitive::<Float64Type>().clone());
        Ok(Self {
            ids: column("read_id")?.as_string().clone(),
            signal: column("signal")?.as_list().clone(),
            digitisation: real("digitisation")?,
            offset: real("offset")?,
            range: real("range")?,
            sampling_rate: real("sampling_rate")?,
            read_group: column("read_group")?.as_primitive::<UInt32Type>().clone(),
        })
    }
}

impl Reads {
    pub(crate) fn open(path: &str, options: Options) -> Result<Self> {
        let control = options.control.clone();
        Ok(Self { set: ReadSet::open([path], options)?, control })
    }

    pub(crate) fn count(&self) -> Result<u64> {
        self.set.count()
    }

    /// An attribute of a file's header; `None` if it has none of this name.
    pub(crate) fn header(&self, file: u32, group: u32, name: &str) -> Result<Option<CString>> {
        let header = self.set.header(file as usize)?;
        Ok(header.attribute(name, group).map(c_text))
    }

    pub(crate) fn cancel(&self) {
        self.control.cancel();
    }

    /// A run of all reads, or of those with some ids.
    pub(crate) fn run(&self, ids: Option<Vec<String>>) -> Result<Run> {
        let selection = ids.map_or(Selection::All, |ids| Selection::Ids(Arc::new(ids)));
        let batches = Box::new(self.set.batches(&selection)?);
        Ok(Run { batches, current: None, id: Vec::new(), text: CString::default() })
    }
}

impl Run {
    /// The batch that has reads which were not given yet; `None` at the end.
    fn ahead(&mut self) -> Result<Option<&mut Current>> {
        while self.current.as_ref().is_none_or(|one| one.next == one.batch.num_rows()) {
            // Its memory goes back before the next batch takes some.
            self.current = None;
            let Some(batch) = self.batches.next().transpose()? else { return Ok(None) };
            let columns = Columns::of(&batch)?;
            self.current = Some(Current { columns, batch, next: 0, given: None });
        }
        Ok(self.current.as_mut())
    }

    /// The next read.
    pub(crate) fn next(&mut self) -> Result<Option<thw_read>> {
        let mut id = std::mem::take(&mut self.id);
        let Some(current) = self.ahead()? else { return Ok(None) };
        let Current { columns, batch, next, given } = current;
        let row = *next;
        *next += 1;
        *given = Some(row);
        id.clear();
        id.extend_from_slice(columns.ids.value(row).as_bytes());
        let id_length = id.len();
        id.push(0);
        let samples = columns.signal.value_offsets();
        let (start, end) = (samples[row] as usize, samples[row + 1] as usize);
        let values = columns.signal.values().as_primitive::<Int16Type>().values();
        let read = thw_read {
            id: id.as_ptr().cast(),
            id_length,
            samples: values[start..end].as_ptr(),
            sample_count: (end - start) as u64,
            digitisation: columns.digitisation.value(row),
            offset: columns.offset.value(row),
            range: columns.range.value(row),
            sampling_rate: columns.sampling_rate.value(row),
            read_group: columns.read_group.value(row),
            file: batch.file() as u32,
        };
        self.id = id;
        Ok(Some(read))
    }

    /// The next reads.
    pub(crate) fn next_batch(&mut self) -> Result<Option<thw_batch>> {
        let Some(Current { columns, batch, next, given }) = self.ahead()? else { return Ok(None) };
        let first = *next;
        *next = batch.num_rows();
        *given = None;
        let real = |column: &Float64Array| column.values()[first..].as_ptr();
        let samples = columns.signal.values().as_primitive::<Int16Type>().values();
        Ok(Some(thw_batch {
            reads: (batch.num_rows() - first) as u64,
            ids: columns.ids.value_data().as_ptr().cast(),
            id_offsets: columns.ids.value_offsets()[first..].as_ptr(),
            samples: samples.as_ptr(),
            sample_offsets: columns.signal.value_offsets()[first..].as_ptr(),
            digitisation: real(&columns.digitisation),
            offset: real(&columns.offset),
            range: real(&columns.range),
            sampling_rate: real(&columns.sampling_rate),
            read_group: columns.read_group.values()[first..].as_ptr(),
            file: batch.file() as u32,
        }))
    }

    /// The value of an attribute of the read that was given last; `None` if it has none.
    fn attribute<T>(
        &self,
        name: &str,
        value: impl FnOnce(&dyn Array) -> Option<T>,
    ) -> Result<Option<T>> {
        let given = self.current.as_ref().and_then(|one| Some((one, one.given?)));
        let Some((current, row)) = given else {
            return Err(wrong("attributes are those of the read that thw_next gave last"));
        };
        let column = current.batch.column_by_name(name);
        Ok(column.and_then(|column| value(&*column.slice(row, 1))))
    }

    fn number(&self, name: &str) -> Result<Option<Number>> {
        let text = self.attribute(name, |cell| Some(shown(cell)(0)?.into_owned()))?;
        let found = self.attribute(name, |cell| numbers(cell)(0))?;
        match (text, found) {
            (Some(text), None) => Err(wrong(format!("{name} is {text:?}, not a number"))),
            (_, found) => Ok(found),
        }
    }

    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>> {
        let whole = |number| {
            let whole = match number {
                Number::Whole(whole) => i64::try_from(whole).ok(),
                Number::Real(_) => None,
            };
            whole.ok_or_else(|| wrong(format!("{name} is no whole number of 64 bits")))
        };
        self.number(name)?.map(whole).transpose()
    }

    pub(crate) fn real(&self, name: &str) -> Result<Option<f64>> {
        Ok(self.number(name)?.map(Number::real))
    }

    /// A text that is valid until the next call.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<*const c_char>> {
        let text = self.attribute(name, |cell| Some(c_text(&shown(cell)(0)?)))?;
        Ok(text.map(|text| {
            self.text = text;
            self.text.as_ptr()
        }))
    }
}

/// An error in place of an id that is a null pointer.
pub(crate) fn null_id(place: usize) -> Error {
    wrong(format!("ids: found a null pointer at place {place}"))
}
