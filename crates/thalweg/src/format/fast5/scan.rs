//! From an open HDF5 file to a layout: every read's attributes and chunk addresses, in the order of the file.

use std::collections::HashMap;
use std::sync::Arc;

use super::fields::{Calibration, Fields, GroupAttributes, attributes, text};
use super::layout::{Layout, Row, Signal};
use crate::engine::Control;
use crate::error::{Error, Result};
use crate::format::hdf5::{File, Link, Node, Pipeline, Value};
use crate::store::Store;

/// What a group of a multi-read file is called before its read's id.
const PREFIX: &str = "read_";

/// What a read takes at least beside its own values, for the check of the budget.
const ROW_BYTES: usize = size_of::<Row>() + 64;

impl Layout {
    /// Finds all reads of a file. What is known of them may take `memory` bytes.
    ///
    /// # Errors
    /// [`Error::Malformed`] and [`Error::Unsupported`]; the store's own; [`Error::Cancelled`].
    pub fn scan(store: &Arc<dyn Store>, control: &Control, memory: usize) -> Result<Self> {
        let file = File::open(store, control)?;
        let root = file.root()?;
        let links = root.links()?;
        let mut scan = Scan::new(store, control, memory);
        scan.file_attributes(&root)?;
        let raw = root.child(c"Raw")?;
        if let Some(reads) = raw.map_or(Ok(None), |raw| raw.child(c"Reads"))? {
            scan.single(&file, &root, &reads)?;
        } else {
            scan.multi(&file, links)?;
        }
        if scan.rows.is_empty() && !scan.is_fast5 {
            return Err(Error::Unsupported {
                file: store.name().clone(),
                what: "an HDF5 file without reads".into(),
                advice: "a FAST5 file has groups named read_<id>, or one named Raw/Reads".into(),
            });
        }
        let aux = scan.fields.into_fields();
        let header = Self::header_of(aux, attributes(&scan.groups), scan.groups.len());
        let mut left_out: Vec<String> =
            scan.left_out.into_iter().map(|(what, n)| format!("{what} (of {n} reads)")).collect();
        left_out.sort_unstable();
        Ok(Self { header: Arc::new(header), reads: scan.rows, left_out, requests: file.requests() })
    }
}

/// What has been found so far.
struct Scan<'a> {
    name: Arc<str>,
    control: &'a Control,
    memory: usize,
    taken: usize,
    /// Attributes of the file, which go to every read group.
    of_file: GroupAttributes,
    is_fast5: bool,
    groups: Vec<GroupAttributes>,
    /// Read groups by what makes them one.
    by_key: HashMap<Key, u32>,
    fields: Fields,
    pipelines: Vec<Arc<Pipeline>>,
    rows: Vec<Row>,
    left_out: HashMap<String, u64>,
    aux: Vec<u8>,
}

/// The reads of a read group have these in common: the groups that they share, and attributes of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    tracking_id: Option<u64>,
    context_tags: Option<u64>,
    own: Vec<(String, String)>,
}

/// The groups that make up a read.
struct Parts {
    raw: Option<Node>,
    channel_id: Option<Node>,
    tracking_id: Option<Link>,
    context_tags: Option<Link>,
    own: Vec<(String, Value)>,
    /// The id in the group's name.
    named: Option<String>,
}

impl<'a> Scan<'a> {
    fn new(store: &Arc<dyn Store>, control: &'a Control, memory: usize) -> Self {
        Self {
            name: store.name().clone(),
            control,
            memory,
            taken: 0,
            of_file: GroupAttributes::new(),
            is_fast5: false,
            groups: Vec::new(),
            by_key: HashMap::new(),
            fields: Fields::default(),
            pipelines: Vec::new(),
            rows: Vec::new(),
            left_out: HashMap::new(),
            aux: Vec::new(),
        }
    }

    fn file_attributes(&mut self, root: &Node) -> Result<()> {
        for (name, value) in root.attributes()? {
            self.is_fast5 |= name == "file_version" || name == "file_type";
            match text(&value) {
                Some(text) => drop(self.of_file.insert(name, text)),
                None => self.leave_out(format!("the file's attribute {name}, {}", other(&value))),
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, what: String) {
        *self.left_out.entry(what).or_default() += 1;
    }

    fn multi(&mut self, file: &File, mut links: Vec<Link>) -> Result<()> {
        // In the order in which they were written, so that the file is gone through once.
        links.sort_by_key(|link| link.address);
        for link in &links {
            let Some(id) = link.name.strip_prefix(PREFIX) else {
                self.leave_out(format!("the group {}", link.name));
                continue;
            };
            let read = file.follow(link)?;
            let (mut raw, mut channel_id, mut tracking_id, mut context_tags) = (None, None, None, None);
            for part in read.links()? {
                match part.name.as_str() {
                    "tracking_id" => tracking_id = Some(part),
                    "context_tags" => context_tags = Some(part),
                    "Raw" => raw = Some(file.follow(&part)?),
                    "channel_id" => channel_id = Some(file.follow(&part)?),
                    name => self.leave_out(format!("the group {name}")),
                }
            }
            let parts = Parts {
                raw,
                channel_id,
                tracking_id,
                context_tags,
                own: read.attributes()?,
                named: Some(id.to_owned()),
            };
            self.read(file, read.path(), parts)?;
        }
        Ok(())
    }

    fn single(&mut self, file: &File, root: &Node, reads: &Node) -> Result<()> {
        for link in root.links()? {
            if !["Raw", "UniqueGlobalKey"].contains(&link.name.as_str()) {
                self.leave_out(format!("the group {}", link.name));
            }
        }
        let key = root.child(c"UniqueGlobalKey")?;
        let links = key.as_ref().map_or_else(|| Ok(Vec::new()), Node::links)?;
        let shared = |name: &str| links.iter().find(|link| link.name == name).cloned();
        for link in reads.links()? {
            let name = std::ffi::CString::new(link.name.as_str()).unwrap_or_default();
            let parts = Parts {
                raw: reads.child(&name)?,
                channel_id: key.as_ref().map_or(Ok(None), |key| key.child(c"channel_id"))?,
                tracking_id: shared("tracking_id"),
                context_tags: shared("context_tags"),
                own: Vec::new(),
                named: None,
            };
            self.read(file, &format!("{}/{}", reads.path(), link.name), parts)?;
        }
        Ok(())
    }

    /// Takes in one read.
    fn read(&mut self, file: &File, path: &str, parts: Parts) -> Result<()> {
        if self.control.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let Parts { raw, channel_id, tracking_id, context_tags, mut own, named } = parts;
        let Some(raw) = raw else { return Err(self.missing(path, "a group Raw")) };
        let Some(signal) = raw.child(c"Signal")? else { return Err(self.missing(path, "a dataset Signal")) };
        let signal = Signal::new(signal.samples()?, &mut self.pipelines);
        let mut values = Vec::new();
        let mut read_id = None;
        for (name, value) in raw.attributes()? {
            match (name.as_str(), value) {
                ("read_id", Value::Text(id)) => read_id = Some(id),
                // It says what the signal's own length says, or it is kept.
                ("duration", Value::Unsigned(n, _)) if n == signal.len => {}
                (_, value @ Value::Other(_)) => self.leave_out(format!("the attribute Raw/{name}, {}", other(&value))),
                (_, value) => values.push((name, value)),
            }
        }
        // What is a field of the read need not be an attribute of its group.
        own.retain(|attribute| !values.contains(attribute));
        let read_group = self.group(file, own, tracking_id, context_tags)?;
        let mut calibration = Calibration::UNKNOWN;
        for (name, value) in channel_id.map_or_else(|| Ok(Vec::new()), |node| node.attributes())? {
            if calibration.take(&name, &value) {
                continue;
            }
            match value {
                Value::Other(_) => self.leave_out(format!("the attribute channel_id/{name}, {}", other(&value))),
                value if name == "channel_number" => values.push((name, value)),
                // Under its group's name, so that it can go back there.
                value => values.push((format!("channel_id/{name}"), value)),
            }
        }
        let Some(read_id) = read_id.or(named) else { return Err(self.missing(path, "an attribute read_id")) };
        self.aux.clear();
        let encoded = self.fields.encode(&mut values, &mut self.aux);
        encoded.map_err(|what| Error::Unsupported {
            file: self.name.clone(),
            what: format!("{path}: {what}").into(),
            advice: "split the file so that each part has one type".into(),
        })?;
        self.taken += ROW_BYTES + read_id.len() + self.aux.len() + signal.heap_bytes();
        if self.taken > self.memory {
            return Err(Error::Unsupported {
                file: self.name.clone(),
                what: format!("an index of more than {} reads in {} bytes of memory", self.rows.len(), self.memory)
                    .into(),
                advice: "allow it more memory, or split the file".into(),
            });
        }
        let (aux, known) = (self.aux.as_slice().into(), self.fields.len());
        self.rows.push(Row { read_id: read_id.into(), read_group, calibration, aux, known, signal });
        Ok(())
    }

    /// The number of a read's group, which is made where it is the first of its kind.
    fn group(
        &mut self,
        file: &File,
        own: Vec<(String, Value)>,
        tracking_id: Option<Link>,
        context_tags: Option<Link>,
    ) -> Result<u32> {
        let mut texts = Vec::with_capacity(own.len());
        for (name, value) in own {
            match text(&value) {
                Some(text) => texts.push((name, text)),
                None => self.leave_out(format!("the attribute {name}, {}", other(&value))),
            }
        }
        let place = |part: &Option<Link>| part.as_ref().map(|link| link.address);
        let key = Key { tracking_id: place(&tracking_id), context_tags: place(&context_tags), own: texts };
        if let Some(&group) = self.by_key.get(&key) {
            return Ok(group);
        }
        let mut all = self.of_file.clone();
        for link in tracking_id.into_iter().chain(context_tags) {
            let part = &link.name;
            for (name, value) in file.follow(&link)?.attributes()? {
                match text(&value) {
                    Some(text) => put(&mut all, part, name, text),
                    None => self.leave_out(format!("the attribute {part}/{name}, {}", other(&value))),
                }
            }
        }
        for (name, text) in key.own.clone() {
            put(&mut all, "read", name, text);
        }
        // Files that do not share these groups have them once a read, with the same in them.
        let group = self.groups.iter().position(|known| *known == all).unwrap_or_else(|| {
            self.groups.push(all);
            self.groups.len() - 1
        });
        let group = u32::try_from(group).unwrap_or(u32::MAX);
        self.by_key.insert(key, group);
        Ok(group)
    }

    fn missing(&self, path: &str, expected: &str) -> Error {
        Error::Malformed {
            file: self.name.clone(),
            what: path.to_owned().into(),
            offset: 0,
            found: "a group without it".into(),
            expected: expected.to_owned().into(),
        }
    }
}

fn other(value: &Value) -> &'static str {
    match value {
        Value::Other(what) => what,
        _ => "a value of another type",
    }
}

/// Puts an attribute under its own name, or under its group's and its own where that is taken by another value.
fn put(all: &mut GroupAttributes, part: &str, name: String, text: String) {
    match all.get(&name) {
        Some(known) if *known != text => drop(all.insert(format!("{part}/{name}"), text)),
        Some(_) => {}
        None => drop(all.insert(name, text)),
    }
}
