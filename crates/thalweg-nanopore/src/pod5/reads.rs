//! The Reads table of any version: converting a row to a [`Record`].
//!
//! Values in dictionaries (strings, and version 0's structs) are converted once, when the table is
//! opened. A row then copies the converted value of its index.

mod schema;
mod value;

use std::ops::Range;

use arrow_schema::DataType;
use thalweg_io::Fault;

use super::batch::{BatchArray, TableBatch};
use super::fields::{self, COLUMNS_ATTRIBUTE};
use super::run_info::{RunInfo, attributes};
use super::schema::ColumnSchema;
use super::uuid::{UUID_BYTES, format_uuid};
use crate::record::{
    Attribute, AuxField, Encoding, Header, Record, RecordPress, SignalPress, Version,
};
use value::{AuxSource, ColumnSource, index, pick, push_decimal};

/// The columns of a Reads table, prepared to convert rows to records.
#[derive(Debug)]
pub struct ReadsTable {
    read_id: ColumnSchema,
    signal: ColumnSchema,
    rows: ColumnSchema,
    num_samples: Option<ColumnSchema>,
    offset: ColumnSource<Vec<f32>>,
    scale: ColumnSource<Vec<f32>>,
    group: ColumnSource<Vec<u32>>,
    runs: Vec<RunFields>,
    aux: Vec<AuxSource>,
    wide_channel: Option<ColumnSchema>,
    fields: Vec<AuxField>,
    /// The version of the table, derived from its columns.
    pub version: u8,
    /// Names of columns that a record cannot hold.
    pub lost: Vec<String>,
    /// Arrow types of columns that POD5 does not define, where the type of the auxiliary field does
    /// not imply them.
    types: Vec<(String, DataType)>,
    /// The runs. Each run is one read group.
    pub run_infos: Vec<RunInfo>,
}

/// The fields of a record that come from its run.
#[derive(Debug)]
struct RunFields {
    acquisition_id: String,
    digitisation: f64,
    sampling_rate: f64,
}

/// Reusable memory that a record borrows from.
#[derive(Debug, Default)]
pub struct RecordScratch {
    id: String,
    aux: Vec<u8>,
}

/// The signal rows of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalRows {
    /// The range of the read's row numbers in [`ReadsTable::signal_rows`].
    pub span: Range<usize>,
    /// The read's total number of samples, if the table has it.
    pub samples: Option<u64>,
}

impl ReadsTable {
    /// The header of the file: its read groups, attributes and auxiliary fields.
    pub fn header(&self) -> Header {
        let mut attributes = attributes(&self.run_infos);
        if !self.types.is_empty() {
            let types: serde_json::Map<String, serde_json::Value> = self
                .types
                .iter()
                .map(|(name, kind)| (name.clone(), kind.to_string().into()))
                .collect();
            let text = serde_json::Value::Object(types).to_string();
            let values = vec![Some(text); self.run_infos.len().max(1)];
            attributes.push(Attribute { name: COLUMNS_ATTRIBUTE.into(), values });
        }
        Header {
            version: Version::V1_0_0,
            encoding: Encoding::Binary,
            record_press: RecordPress::None,
            signal_press: SignalPress::None,
            read_groups: (self.run_infos.len() as u32).max(1),
            attributes,
            aux: self.fields.clone(),
            data_offset: 0,
        }
    }

    /// The id of a row.
    ///
    /// # Errors
    /// When the batch has no such row.
    pub fn read_id(&self, batch: &TableBatch<'_>, row: usize) -> Result<[u8; UUID_BYTES], Fault> {
        batch.column(&self.read_id)?.fixed(row)
    }

    /// The ids of a batch.
    ///
    /// # Errors
    /// When the batch has no such column.
    pub fn read_ids<'a>(&self, batch: &TableBatch<'a>) -> Result<BatchArray<'a>, Fault> {
        batch.column(&self.read_id)
    }

    /// The numbers of all signal rows of a batch's reads.
    ///
    /// # Errors
    /// When the batch has no such column.
    pub fn signal_rows<'a>(&self, batch: &TableBatch<'a>) -> Result<BatchArray<'a>, Fault> {
        batch.array(&self.rows)
    }

    /// The signal rows of a row.
    ///
    /// # Errors
    /// When the row's list extends beyond the batch.
    pub fn signal(&self, batch: &TableBatch<'_>, row: usize) -> Result<SignalRows, Fault> {
        let lists = batch.column(&self.signal)?;
        let span = if lists.is_valid(row) { lists.span(row)? } else { 0..0 };
        let rows = self.signal_rows(batch)?.len();
        if span.end > rows {
            return Err(Fault::new(
                0,
                format!("signal rows up to {} of a batch", span.end),
                format!("at most {rows}"),
            ));
        }
        let samples = match &self.num_samples {
            None => None,
            Some(column) => {
                let counts = batch.column(column)?;
                if counts.is_valid(row) {
                    Some(u64::from_le_bytes(counts.fixed(row)?))
                } else {
                    None
                }
            }
        };
        Ok(SignalRows { span, samples })
    }

    /// A row as a record without its signal.
    ///
    /// # Errors
    /// When values are missing in the batch, or the row's run is unknown.
    pub fn record<'s>(
        &self,
        batch: &TableBatch<'_>,
        row: usize,
        scratch: &'s mut RecordScratch,
    ) -> Result<Record<'s>, Fault> {
        format_uuid(&self.read_id(batch, row)?, &mut scratch.id);
        scratch.aux.clear();
        for (aux, field) in self.aux.iter().zip(&self.fields) {
            if aux.is_channel
                && let Some(channel) = self.wide_channel(batch, row)?
            {
                push_decimal(i64::from(channel), &mut scratch.aux);
                continue;
            }
            aux.push(batch, row, &field.labels, &mut scratch.aux)?;
        }
        let read_group = self.group(batch, row)?;
        let run = self
            .runs
            .get(read_group as usize)
            .ok_or_else(|| Fault::new(0, "a read of no run", "one of a run"))?;
        let scale = pick(&self.scale, batch, row)?;
        Ok(Record {
            read_id: &scratch.id,
            read_group,
            digitisation: run.digitisation,
            offset: f64::from(pick(&self.offset, batch, row)?),
            range: fields::range(scale, run.digitisation),
            sampling_rate: run.sampling_rate,
            signal: &[],
            aux: &scratch.aux,
        })
    }

    fn wide_channel(&self, batch: &TableBatch<'_>, row: usize) -> Result<Option<u32>, Fault> {
        let Some(column) = &self.wide_channel else { return Ok(None) };
        let channels = batch.column(column)?;
        let channel =
            if channels.is_valid(row) { u32::from_le_bytes(channels.fixed(row)?) } else { 0 };
        Ok((channel != 0).then_some(channel))
    }

    fn group(&self, batch: &TableBatch<'_>, row: usize) -> Result<u32, Fault> {
        match &self.group {
            ColumnSource::Indexed(column, groups) => {
                let index = index(batch, column, row)?;
                let group = index.and_then(|index| groups.get(index)).copied();
                group.ok_or_else(|| {
                    Fault::new(0, format!("run {index:?}"), format!("one of {} runs", groups.len()))
                })
            }
            ColumnSource::Plain(column) => {
                let id = batch.column(column)?.text(row)?;
                let group = self.runs.iter().position(|run| run.acquisition_id == id);
                group.map(|group| group as u32).ok_or_else(|| no_run(id))
            }
        }
    }
}

impl RunFields {
    fn of(run: &RunInfo) -> Self {
        Self {
            acquisition_id: run.text("acquisition_id").to_owned(),
            digitisation: fields::digitisation(run.integer("adc_min"), run.integer("adc_max")),
            sampling_rate: run.integer("sample_rate") as f64,
        }
    }
}

fn no_run(id: &str) -> Fault {
    Fault::new(0, format!("the acquisition {id:?}"), "one that the RunInfo table has")
}
