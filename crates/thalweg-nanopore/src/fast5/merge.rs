//! Turns the groups of reads into rows of a layout: assigns reads to read groups, and discovers
//! fields.

use std::collections::HashMap;
use std::sync::Arc;

use thalweg_hdf5::filter::Pipeline;
use thalweg_hdf5::metadata as meta;
use thalweg_hdf5::metadata::Superblock;
use thalweg_hdf5::types::Value;
use thalweg_io::{Error, Result};

use super::fields::{Calibration, Fields, GroupAttributes, attributes, text};
use super::layout::{Fast5Layout, Fast5Row, Signal};
use super::read_groups::{Attributes, FoundRead, SharedGroups};
use crate::record::Header;

/// The least memory that a read takes besides its values, for the check of the budget.
const ROW_BYTES: usize = size_of::<Fast5Row>() + 64;

/// The read groups and fields of the reads so far, in their order. Later reads only append, so the
/// rows of earlier reads stay valid.
#[derive(Debug, Clone)]
pub struct KnownFields {
    name: Arc<str>,
    /// Attributes of the file, which every read group gets.
    of_file: GroupAttributes,
    is_fast5: bool,
    groups: Vec<GroupAttributes>,
    /// Read groups by their common properties.
    by_key: HashMap<Key, u32>,
    fields: Fields,
    pipelines: Vec<Arc<Pipeline>>,
    left_out: HashMap<String, u64>,
    aux: Vec<u8>,
    /// For parsing the attributes of groups that reads share.
    pub(super) superblock: Superblock,
}

/// Read groups are recognised by their addresses up to this many.
const MOST_KEYS: usize = 4096;

/// The common properties of the reads of a read group: the groups that they share, and some of
/// their own attributes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    shared: SharedGroups,
    own: Vec<(String, String)>,
}

impl KnownFields {
    /// The state before the first read, of a file with these attributes.
    pub(super) fn new(name: &Arc<str>, of_file: Attributes) -> Self {
        let mut known = Self {
            name: name.clone(),
            of_file: GroupAttributes::new(),
            is_fast5: false,
            groups: Vec::new(),
            by_key: HashMap::new(),
            fields: Fields::default(),
            pipelines: Vec::new(),
            left_out: HashMap::new(),
            aux: Vec::new(),
            superblock: Superblock::default(),
        };
        for (name, value) in of_file {
            known.is_fast5 |= name == "file_version" || name == "file_type";
            match text(&value) {
                Some(text) => drop(known.of_file.insert(name, text)),
                None => known
                    .leave_out(format!("the file's attribute {name}, {}", kind_in_words(&value))),
            }
        }
        known
    }

    pub(super) fn leave_out(&mut self, what: String) {
        *self.left_out.entry(what).or_default() += 1;
    }

    /// Makes the row of one read. `attributes_at` parses the attributes of the group at an address.
    pub(super) fn row(
        &mut self,
        found: FoundRead,
        attributes_at: &mut dyn FnMut(u64) -> meta::Result<Attributes>,
    ) -> meta::Result<Fast5Row> {
        let FoundRead { path, named, mut own, raw, channel, shared, others, signal } = found;
        others.into_iter().for_each(|what| self.leave_out(what));
        let signal = Signal::new(signal, &mut self.pipelines);
        let mut values = Vec::new();
        let mut read_id = None;
        for (name, value) in raw {
            match (name.as_str(), value) {
                ("read_id", Value::Text(id)) => read_id = Some(id),
                // It is dropped if it equals the length of the signal.
                ("duration", Value::Unsigned(n, _)) if n == signal.len => {}
                (_, value @ Value::Other(_)) => {
                    self.leave_out(format!("the attribute Raw/{name}, {}", kind_in_words(&value)));
                }
                (_, value) => values.push((name, value)),
            }
        }
        // A field of the read is not repeated as an attribute of its group.
        own.retain(|attribute| !values.contains(attribute));
        let read_group = self.group(own, shared, attributes_at)?;
        let mut calibration = Calibration::UNKNOWN;
        for (name, value) in channel {
            if calibration.take(&name, &value) {
                continue;
            }
            match value {
                Value::Other(_) => {
                    self.leave_out(format!(
                        "the attribute channel_id/{name}, {}",
                        kind_in_words(&value)
                    ));
                }
                value if name == "channel_number" => values.push((name, value)),
                // Under its group's name, so that it can be written back there.
                value => values.push((format!("channel_id/{name}"), value)),
            }
        }
        let Some(read_id) = read_id.or(named) else {
            return Err(missing(&self.name, &path, "an attribute read_id").into());
        };
        self.aux.clear();
        let encoded = self.fields.encode(&mut values, &mut self.aux);
        encoded.map_err(|what| Error::Unsupported {
            file: self.name.clone(),
            what: format!("{path}: {what}").into(),
            advice: "split the file so that each part has one type".into(),
        })?;
        let aux = self.aux.as_slice().into();
        let known = self.fields.len();
        Ok(Fast5Row { read_id: read_id.into(), read_group, calibration, aux, known, signal })
    }

    /// The number of a read's group. A new group is made for the first read of its kind.
    fn group(
        &mut self,
        own: Attributes,
        shared: SharedGroups,
        attributes_at: &mut dyn FnMut(u64) -> meta::Result<Attributes>,
    ) -> meta::Result<u32> {
        let mut texts = Vec::with_capacity(own.len());
        for (name, value) in own {
            match text(&value) {
                Some(text) => texts.push((name, text)),
                None => self.leave_out(format!("the attribute {name}, {}", kind_in_words(&value))),
            }
        }
        texts.sort_unstable();
        let key = Key { shared, own: texts };
        if let Some(&group) = self.by_key.get(&key) {
            return Ok(group);
        }
        let mut all = self.of_file.clone();
        for (part, at) in key.shared.parts() {
            for (name, value) in attributes_at(at)? {
                match text(&value) {
                    Some(text) => put(&mut all, part, name, text),
                    None => {
                        self.leave_out(format!(
                            "the attribute {part}/{name}, {}",
                            kind_in_words(&value)
                        ));
                    }
                }
            }
        }
        for (name, text) in key.own.clone() {
            put(&mut all, "read", name, text);
        }
        // In files that do not share these groups, each read has its own, equal copies.
        let group = self.groups.iter().position(|known| *known == all).unwrap_or_else(|| {
            self.groups.push(all);
            self.groups.len() - 1
        });
        let group = u32::try_from(group).unwrap_or(u32::MAX);
        if self.by_key.len() >= MOST_KEYS {
            self.by_key.clear();
        }
        self.by_key.insert(key, group);
        Ok(group)
    }

    /// The numbers of read groups, fields and labels. They grow with every discovery.
    pub(super) fn extent(&self) -> (usize, usize, usize) {
        (self.groups.len(), self.fields.len(), self.fields.labels())
    }

    /// The header of the reads so far.
    pub(super) fn header(&self) -> Header {
        Fast5Layout::header_of(
            self.fields.fields().to_vec(),
            attributes(&self.groups),
            self.groups.len(),
        )
    }

    /// Descriptions of what the model of a read cannot hold of the reads so far.
    pub(super) fn left_out(&self) -> Vec<String> {
        let reads = |n: &u64| if *n == 1 { "1 read".into() } else { format!("{n} reads") };
        let mut left_out: Vec<String> =
            self.left_out.iter().map(|(what, n)| format!("{what} (of {})", reads(n))).collect();
        left_out.sort_unstable();
        left_out
    }
}

/// A list of rows that grows read by read.
pub(super) struct Merge {
    pub(super) known: KnownFields,
    memory: usize,
    taken: usize,
    rows: Vec<Fast5Row>,
}

impl Merge {
    /// An empty list, which may take `memory` bytes.
    pub(super) fn new(known: KnownFields, memory: usize) -> Self {
        Self { known, memory, taken: 0, rows: Vec::new() }
    }

    /// The file's superblock.
    pub(super) fn superblock(&self) -> &Superblock {
        &self.known.superblock
    }

    /// Adds one read. `attributes_at` parses the attributes of the group at an address.
    pub(super) fn read(
        &mut self,
        found: FoundRead,
        attributes_at: &mut dyn FnMut(u64) -> meta::Result<Attributes>,
    ) -> meta::Result<()> {
        let row = self.known.row(found, attributes_at)?;
        self.taken += ROW_BYTES + row.read_id.len() + row.aux.len() + row.signal.heap_bytes();
        if self.taken > self.memory {
            return Err(too_many(&self.known.name, self.rows.len(), self.memory).into());
        }
        self.rows.push(row);
        Ok(())
    }

    /// The finished layout.
    pub(super) fn finish(self, requests: u64) -> Result<Fast5Layout> {
        let Self { known, rows, .. } = self;
        let left_out = known.left_out();
        // A file that holds something else does not pass for a whole file of no reads.
        let others: Vec<&str> = left_out
            .iter()
            .filter_map(|what| what.strip_prefix("the group ")?.rsplit_once(" (of "))
            .map(|(group, _)| group)
            .collect();
        if rows.is_empty() && !(known.is_fast5 && others.is_empty()) {
            let (first, more) = others.split_at(others.len().min(MOST_NAMED));
            let held = if first.is_empty() { "nothing".to_owned() } else { first.join(", ") };
            let more = if more.is_empty() { "" } else { ", .." };
            return Err(Error::Unsupported {
                file: known.name,
                what: format!("an HDF5 file without reads (it holds {held}{more})").into(),
                advice: "a FAST5 file has groups named read_<id>, or one named Raw/Reads; \
                         `thalweg read FILE /PATH` reads arrays"
                    .into(),
            });
        }
        Ok(Fast5Layout { header: Arc::new(known.header()), reads: rows, left_out, requests })
    }
}

/// Most groups that an error names.
const MOST_NAMED: usize = 5;

pub(super) fn too_many(file: &Arc<str>, reads: usize, memory: usize) -> Error {
    Error::Unsupported {
        file: file.clone(),
        what: format!("an index of more than {reads} reads in {memory} bytes of memory").into(),
        advice: "allow it more memory, or split the file".into(),
    }
}

pub(super) fn missing(file: &Arc<str>, path: &str, expected: &str) -> Error {
    Error::Malformed {
        file: file.clone(),
        what: path.to_owned().into(),
        offset: 0,
        found: "a group without it".into(),
        expected: expected.to_owned().into(),
    }
}

fn kind_in_words(value: &Value) -> &'static str {
    match value {
        Value::Other(what) => what,
        _ => "a value of another type",
    }
}

/// Inserts an attribute under its own name, or prefixed by its group's name if another value has
/// that name.
fn put(all: &mut GroupAttributes, part: &str, name: String, text: String) {
    match all.get(&name) {
        Some(known) if *known != text => drop(all.insert(format!("{part}/{name}"), text)),
        Some(_) => {}
        None => drop(all.insert(name, text)),
    }
}
