//! Finds the layout of a file through libhdf5: the groups of every read, in the order of the file.

use std::ffi::CString;
use std::sync::Arc;

use thalweg_hdf5::arrays::ArrayFile;
use thalweg_hdf5::libhdf5::{File, Link, Node};
use thalweg_io::control::Control;
use thalweg_io::store::Store;
use thalweg_io::{Error, Result};

use super::layout::Fast5Layout;
use super::merge::{KnownFields, Merge, missing};
use super::read_groups::{Attributes, FoundRead, PREFIX, SharedGroups};

/// Whether an HDF5 file has the groups of FAST5.
///
/// # Errors
/// [`Error::Malformed`].
pub fn has_reads(file: &ArrayFile) -> Result<bool> {
    let root = file.metadata().root();
    if root.links()?.iter().any(|link| link.name.starts_with(PREFIX)) {
        return Ok(true);
    }
    let raw = root.child("Raw")?;
    Ok(raw.map_or(Ok(None), |raw| raw.child("Reads"))?.is_some())
}

/// Finds the reads of a file by libhdf5, to see whether libhdf5 survives it. Returns whether the
/// file is FAST5.
///
/// # Errors
/// The errors of [`Fast5Layout::scan`].
pub fn try_reads(file: &ArrayFile) -> Result<bool> {
    if !has_reads(file)? {
        return Ok(false);
    }
    let options = file.options();
    Fast5Layout::scan(file.store(), &options.control, options.budget.memory)?;
    Ok(true)
}

impl Fast5Layout {
    /// Finds all reads of a file by libhdf5, which takes 0.1 ms for each. The list may take
    /// `memory` bytes.
    ///
    /// # Errors
    /// [`Error::Malformed`] and [`Error::Unsupported`]; the errors of the store;
    /// [`Error::Cancelled`].
    pub fn scan(store: &Arc<dyn Store>, control: &Control, memory: usize) -> Result<Self> {
        let file = File::open(store, control)?;
        let root = file.root()?;
        let links = root.links()?;
        let merge = Merge::new(KnownFields::new(store.name(), root.attributes()?), memory);
        let mut scan = FileScan { name: store.name().clone(), control, merge };
        let raw = root.child(c"Raw")?;
        if let Some(reads) = raw.map_or(Ok(None), |raw| raw.child(c"Reads"))? {
            scan.single(&file, &root, &reads)?;
        } else {
            scan.multi(&file, links)?;
        }
        scan.merge.finish(file.requests())
    }
}

/// The state of the scan.
struct FileScan<'a> {
    name: Arc<str>,
    control: &'a Control,
    merge: Merge,
}

/// The groups that make up a read.
struct ReadParts {
    raw: Option<Node>,
    channel_id: Option<Node>,
    shared: SharedGroups,
    own: Attributes,
    others: Vec<String>,
    /// The id in the group's name.
    named: Option<String>,
}

impl FileScan<'_> {
    fn multi(&mut self, file: &File, mut links: Vec<Link>) -> Result<()> {
        // In the order in which they were written, so that the file is read once from start to end.
        links.sort_by_key(|link| link.address);
        for link in &links {
            let Some(id) = link.name.strip_prefix(PREFIX) else {
                self.merge.known.leave_out(format!("the group {}", link.name));
                continue;
            };
            let read = file.follow(link)?;
            let mut raw = None;
            let mut channel_id = None;
            let mut shared = SharedGroups::default();
            let mut others = Vec::new();
            for part in read.links()? {
                match part.name.as_str() {
                    "Raw" => raw = Some(file.follow(&part)?),
                    "channel_id" => channel_id = Some(file.follow(&part)?),
                    name if shared.take(name, part.address) => {}
                    name => others.push(format!("the group {name}")),
                }
            }
            let own = read.attributes()?;
            let parts =
                ReadParts { raw, channel_id, shared, own, others, named: Some(id.to_owned()) };
            self.read(file, read.path(), parts)?;
        }
        Ok(())
    }

    fn single(&mut self, file: &File, root: &Node, reads: &Node) -> Result<()> {
        for link in root.links()? {
            if !["Raw", "UniqueGlobalKey"].contains(&link.name.as_str()) {
                self.merge.known.leave_out(format!("the group {}", link.name));
            }
        }
        let key = root.child(c"UniqueGlobalKey")?;
        let mut shared = SharedGroups::default();
        for link in key.as_ref().map_or_else(|| Ok(Vec::new()), Node::links)? {
            shared.take(&link.name, link.address);
        }
        let mut links = reads.links()?;
        links.sort_by_key(|link| link.address);
        for link in links {
            let name = CString::new(link.name.as_str()).unwrap_or_default();
            let parts = ReadParts {
                raw: reads.child(&name)?,
                channel_id: key.as_ref().map_or(Ok(None), |key| key.child(c"channel_id"))?,
                shared,
                own: Vec::new(),
                others: Vec::new(),
                named: None,
            };
            self.read(file, &format!("{}/{}", reads.path(), link.name), parts)?;
        }
        Ok(())
    }

    /// Adds one read.
    fn read(&mut self, file: &File, path: &str, parts: ReadParts) -> Result<()> {
        if self.control.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let ReadParts { raw, channel_id, shared, own, others, named } = parts;
        let Some(raw) = raw else { return Err(missing(&self.name, path, "a group Raw")) };
        let Some(signal) = raw.child(c"Signal")? else {
            return Err(missing(&self.name, path, "a dataset Signal"));
        };
        let found = FoundRead {
            path: path.to_owned(),
            named,
            own,
            raw: raw.attributes()?,
            channel: channel_id.map_or_else(|| Ok(Vec::new()), |node| node.attributes())?,
            shared,
            others,
            signal: signal.samples()?,
        };
        self.merge.read(found, &mut |path, at| file.at(at, path)?.attributes())
    }
}
