//! Arrays of HDF5 files (NeXus, netCDF-4, SONATA and any other), through the engine.
//!
//! [`metadata`](crate::metadata) finds the datasets of a file and the offsets of their bytes. The
//! engine fetches the bytes in the order of the file, and all threads decode them.

mod at_hand;
mod cast;
mod check;
mod explain;
mod fill;
mod grid;
mod kerchunk;
mod memory;
mod path_pattern;
mod row_bands;
mod selection;
mod shared_buffer;
mod sidecar;
mod slice;
mod spare_memory;
mod strings;
mod tally;
mod value_files;
mod virtual_values;
mod window;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg_codec::deflate;
use thalweg_io::model::{Origin, StoreModel};
use thalweg_io::open::{OpenedStore, Options};
use thalweg_io::plan::Budget;
use thalweg_io::store::joined::JoinedPiece;
use thalweg_io::store::{JoinedStore, Store};
use thalweg_io::{Error, Result};

use crate::array::{Array, ElementPlace, Found};
use crate::metadata::{Cost, Entity, FetchOptions, MetadataFile, Node, NodeLink};
use crate::other_files::{ExternalAccess, OtherFiles};
use crate::types::Value;
use virtual_values::{NestedAllowance, Sources};

pub use crate::superblock::is_hdf5;
pub use check::ArrayCheck;
pub use explain::Requests;
pub use fill::{ArrayRequest, ArraySummary};
pub use kerchunk::References;
pub use memory::Memory;
pub use selection::{Selection, Slab};
pub use sidecar::is_index;
pub use slice::{Share, Slice};

/// An HDF5 file, open for its arrays.
#[derive(Debug)]
pub struct ArrayFile {
    /// The same store as `joined`, as a trait object.
    store: Arc<dyn Store>,
    joined: Arc<JoinedStore>,
    file: Arc<MetadataFile>,
    /// The files that its virtual datasets show.
    sources: Sources,
    /// How many files show this one, each the next, through virtual datasets.
    level: usize,
    /// Mappings of virtual datasets that may still be read for tiles of others.
    nested: Arc<NestedAllowance>,
    options: Options,
    /// Where the model of the store comes from.
    origin: Origin,
    note: Option<String>,
    path: Option<PathBuf>,
    /// The path of the index of chunk offsets that is in use, if any.
    index: Option<PathBuf>,
}

/// A dataset of a file.
#[derive(Debug)]
pub struct Dataset {
    node: Node,
    /// What the dataset holds.
    pub found: Found,
}

impl Dataset {
    /// The object that it is.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Its path in the file, such as `/entry/bank1_events/event_id`.
    pub fn path(&self) -> &str {
        self.node.path()
    }

    /// Why [`ArrayFile::read`] cannot read it, in words: it is no array of elements of one size, or
    /// has a filter that this crate does not have.
    pub fn not_read(&self) -> Option<&str> {
        match &self.found {
            Found::Array(array) => array.pipeline.unknown(),
            Found::Other(what) => Some(what),
        }
    }

    /// Whether its elements are codes of an enumeration. The names of the codes are not read.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn is_enumeration(&self) -> Result<bool> {
        self.node.is_enumeration()
    }

    /// One of its attributes; `None` if no attribute has that name.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn attribute(&self, name: &str) -> Result<Option<Value>> {
        self.node.attribute(name)
    }

    /// Its attributes, in the order of the file.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn attributes(&self) -> Result<Vec<(String, Value)>> {
        self.node.attributes()
    }

    /// The strings of one of its attributes; `None` if no attribute has that name, or if the
    /// attribute is of another type.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn texts(&self, name: &str) -> Result<Option<Vec<String>>> {
        self.node.texts(name)
    }
}

/// The datasets of a file or of a part of it, and what could not be read there.
#[derive(Debug, Default)]
pub struct Survey {
    /// The datasets, in the order of their paths.
    pub datasets: Vec<Dataset>,
    /// Why other objects could not be read; each error names its object.
    pub unreadable: Vec<Error>,
    /// Links to other files: `PATH: a link to PATH of FILE, which is not followed`.
    pub external: Vec<String>,
}

impl Survey {
    /// The datasets, if everything could be read.
    fn whole(self) -> Result<Vec<Dataset>> {
        self.unreadable.into_iter().next().map_or(Ok(self.datasets), Err)
    }

    /// Keeps the error about an object.
    ///
    /// # Errors
    /// Errors about the whole file.
    fn keep(&mut self, error: Error) -> Result<()> {
        match error {
            Error::Malformed { .. }
            | Error::Truncated { .. }
            | Error::Unsupported { .. }
            | Error::NotFound { .. } => {
                self.unreadable.push(error);
                Ok(())
            }
            error => Err(error),
        }
    }
}

/// The metadata of a file that are kept in memory take the memory budget divided by this number.
pub(crate) const METADATA_SHARE: usize = 8;

/// The most levels of nested groups that are followed. Deeper nesting is an error.
pub(crate) const MOST_GROUP_LEVELS: usize = 256;

/// The most decoded bytes for each stored byte that are accepted for a chunk that is larger than
/// the memory budget. It is the highest ratio of deflate.
const LIKELY_RATIO: usize = deflate::MOST_BYTES_PER_BYTE;

/// Whether so many decoded bytes fit in `memory` bytes, or may come of so many stored bytes.
fn is_likely(decoded: u64, stored: u64, memory: u64) -> bool {
    decoded <= memory.max(stored.saturating_mul(LIKELY_RATIO as u64))
}

/// The size of a window of decoded bytes is the memory budget divided by this number.
const WINDOW_SHARE: usize = 8;

/// Datasets by how all their values are read.
#[derive(Debug, Default)]
pub(crate) struct ByReading<'a> {
    /// Arrays, all in one pass.
    pub(crate) together: Vec<&'a Dataset>,
    /// Virtual datasets, each by itself.
    pub(crate) apart: Vec<&'a Dataset>,
    /// Arrays of far more values than the file can hold.
    pub(crate) sparse: Vec<&'a Dataset>,
    /// Strings, lists, and what is not read.
    pub(crate) others: Vec<&'a Dataset>,
}

impl ArrayFile {
    /// Whether a file of `size` bytes may hold all elements of an array. If not, most of them are
    /// fill values, which may take hours to count.
    pub(crate) fn may_hold(&self, array: &Array, size: u64) -> bool {
        is_likely(array.bytes(), size, self.options.budget.memory as u64)
    }

    /// The bytes of the files that hold an array's elements, or all of them if that is not known.
    /// This file has `size` bytes.
    fn room(&self, dataset: &Dataset, array: &Array, size: u64) -> u64 {
        match &array.place {
            ElementPlace::Inline(_) => u64::MAX,
            ElementPlace::Chunked(..) | ElementPlace::Contiguous(None) => size,
            ElementPlace::Contiguous(Some(_)) => match &*self.elsewhere(dataset) {
                // They lie in this file, which was checked.
                [] => u64::MAX,
                pieces => {
                    let bytes = |piece: &JoinedPiece| {
                        fs::metadata(&piece.path).map_or(u64::MAX, |meta| meta.len().min(piece.len))
                    };
                    pieces.iter().map(bytes).fold(0, u64::saturating_add)
                }
            },
            ElementPlace::Virtual(mappings) => self.room_of_sources(mappings),
        }
    }

    /// Whether an array has far more values than its files can hold. Most of them are fill values,
    /// which may take hours to count.
    pub fn is_sparse(&self, dataset: &Dataset) -> bool {
        let array = dataset.array().filter(|_| dataset.not_read().is_none());
        array.is_some_and(|array| self.is_sparse_in(dataset, array, self.store.size()))
    }

    /// [`ArrayFile::is_sparse`] for an array that is read, and a file of `size` bytes.
    fn is_sparse_in(&self, dataset: &Dataset, array: &Array, size: u64) -> bool {
        // For an array that fits into memory, no other file is looked at.
        !self.may_hold(array, 0) && !self.may_hold(array, self.room(dataset, array, size))
    }

    /// Divides datasets by how all their values are read. The file has `size` bytes.
    pub(crate) fn by_reading<'a>(&self, datasets: &'a [Dataset], size: u64) -> ByReading<'a> {
        let mut divided = ByReading::default();
        for dataset in datasets {
            let part = match dataset.array().filter(|_| dataset.not_read().is_none()) {
                None => &mut divided.others,
                Some(array) if self.is_sparse_in(dataset, array, size) => &mut divided.sparse,
                Some(array) if array.is_by_rows() => &mut divided.apart,
                Some(_) => &mut divided.together,
            };
            part.push(dataset);
        }
        divided
    }

    /// Opens a file. The offsets of chunks come from an index that [`ArrayFile::write_index`]
    /// saved, if there is one that matches the state of the file. If an index is not used,
    /// [`ArrayFile::note`] says why.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be opened or read; [`Error::Malformed`] if it is not HDF5.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        Self::open_with_access(path, ExternalAccess::Folder, options)
    }

    /// Opens a file. `reach` says where values in other files may be read.
    ///
    /// # Errors
    /// As [`ArrayFile::open`].
    pub(crate) fn open_with_access(
        path: &Path,
        reach: ExternalAccess,
        options: Options,
    ) -> Result<Self> {
        Self::from_opened(path, OpenedStore::new(path, &options)?, reach, options)
    }

    /// Opens the file at `path`, whose store `opened` is open already.
    ///
    /// # Errors
    /// As [`ArrayFile::open`].
    pub fn from_opened(
        path: &Path,
        opened: OpenedStore,
        reach: ExternalAccess,
        options: Options,
    ) -> Result<Self> {
        let OpenedStore { store, model: (model, origin), note, .. } = opened;
        let other_files = OtherFiles::new(path, reach)?;
        let mut file = Self::of(store, other_files, options.on(model))?;
        file.origin = origin;
        file.note = note;
        file.path = Some(path.to_owned());
        if !file.options.own_index {
            file.find_index(path)?;
        }
        Ok(file)
    }

    /// Opens the file that a store holds. Values in other files are refused.
    ///
    /// # Errors
    /// As [`ArrayFile::open`].
    pub fn from_store(store: Arc<dyn Store>, options: Options) -> Result<Self> {
        Self::of(store, OtherFiles::default(), options)
    }

    /// Opens the file that a store holds, with values in these other files.
    ///
    /// # Errors
    /// As [`ArrayFile::open`].
    pub(crate) fn of(
        store: Arc<dyn Store>,
        other_files: OtherFiles,
        options: Options,
    ) -> Result<Self> {
        let joined = Arc::new(JoinedStore::new(store));
        let main = joined.main();
        let model = options.model.unwrap_or(StoreModel::LOCAL);
        let Budget { threads, memory } = options.budget;
        let memory = (memory / METADATA_SHARE) as u64;
        let origin = if options.model.is_some() { Origin::Given } else { Origin::Prior };
        let in_rounds = options.finds_in_rounds;
        let fetch = FetchOptions { model, threads, memory, in_rounds };
        let file = MetadataFile::open(main, &options.control, fetch)?;
        Ok(Self {
            store: joined.clone(),
            file: Arc::new(file.joined(&joined, other_files)),
            joined,
            sources: Sources::default(),
            level: 0,
            nested: Arc::default(),
            options,
            origin,
            note: None,
            path: None,
            index: None,
        })
    }

    /// A warning about the file, if there is one.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The groups, links and attributes of the file.
    pub fn metadata(&self) -> &Arc<MetadataFile> {
        &self.file
    }

    /// The store that holds the file.
    pub fn store(&self) -> &Arc<dyn Store> {
        self.joined.main()
    }

    /// What finding datasets has cost so far.
    pub fn finding(&self) -> Cost {
        self.file.cost()
    }

    /// Where the model of the store comes from.
    pub fn model_origin(&self) -> Origin {
        self.origin
    }

    /// The options that the file was opened with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// All datasets, in the order of their paths. A dataset with several paths appears once, under
    /// the first.
    ///
    /// # Errors
    /// The first defect.
    pub fn datasets(&self) -> Result<Vec<Dataset>> {
        self.below("/")
    }

    /// The dataset at a path, or all datasets below the group at that path.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is neither; the first defect.
    pub fn below(&self, path: &str) -> Result<Vec<Dataset>> {
        self.survey_below(path)?.whole()
    }

    /// The dataset at a path, or all datasets below the group at that path that can be read.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is neither; defects of the objects on the way to the path;
    /// [`Error::Cancelled`].
    pub fn survey_below(&self, path: &str) -> Result<Survey> {
        let node = self.node(path)?.ok_or_else(|| self.missing(path))?;
        // All objects below are found together.
        self.file.find_below(vec![node.address()])?;
        self.survey_found(node)
    }

    /// The error for a path at which nothing is.
    fn missing(&self, path: &str) -> Error {
        Error::NotFound {
            file: self.store.name().clone(),
            what: format!("dataset or group {path}").into(),
            advice: "`thalweg info FILE` lists the datasets".into(),
        }
    }

    /// The dataset at a node, or all datasets below it, once they are found.
    fn survey_found(&self, node: Node) -> Result<Survey> {
        let mut survey = Survey::default();
        let mut seen = HashSet::from([node.address()]);
        let mut links: Vec<(NodeLink, usize)> = Vec::new();
        let mut next = Some((node, 0));
        while let Some((node, level)) = next.take() {
            self.options.control.check()?;
            if let Err(error) = self.visit(node, level, &mut survey, &mut links) {
                survey.keep(error)?;
            }
            while next.is_none()
                && let Some((link, level)) = links.pop()
            {
                if seen.insert(link.address) {
                    next = Some((self.file.follow(&link), level));
                }
            }
        }
        survey.datasets.sort_by(|a, b| a.path().cmp(b.path()));
        Ok(survey)
    }

    /// The object at a path; `None` if it does not exist.
    ///
    /// # Errors
    /// Defects of the objects on the way.
    pub fn node(&self, path: &str) -> Result<Option<Node>> {
        let mut node = self.file.root();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            if !node.is_group()? {
                return Ok(None);
            }
            let Some(next) = node.child(name)? else { return Ok(None) };
            node = next;
        }
        Ok(Some(node))
    }

    /// The paths of all objects by the addresses of their headers, which is what references hold.
    /// An object with several paths has the first. What is below a damaged group is left out.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; the errors of the store.
    pub fn paths(&self) -> Result<HashMap<u64, String>> {
        let root = self.file.root();
        self.file.find_below(vec![root.address()])?;
        let mut paths = HashMap::from([(root.address(), root.path().to_owned())]);
        let mut groups = vec![(root, 0)];
        while let Some((group, level)) = groups.pop() {
            self.options.control.check()?;
            let Ok(links) = group.links() else { continue };
            let start = groups.len();
            for link in links {
                let node = self.file.follow(&link);
                if let Entry::Vacant(new) = paths.entry(link.address) {
                    new.insert(link.path);
                    if level < MOST_GROUP_LEVELS && matches!(node.is_group(), Ok(true)) {
                        groups.push((node, level + 1));
                    }
                }
            }
            // They are popped from the end.
            groups[start..].reverse();
        }
        Ok(paths)
    }

    /// The dataset at a node; `None` if the node is a group or a type.
    ///
    /// # Errors
    /// [`Error::Malformed`] if its header is damaged.
    pub fn dataset(&self, node: &Node) -> Result<Option<Dataset>> {
        node.array()?.map(|found| self.dataset_of(node.clone(), found)).transpose()
    }

    /// The dataset at a node, which holds this.
    fn dataset_of(&self, node: Node, mut found: Found) -> Result<Dataset> {
        if let Found::Array(array) = &mut found {
            *array = self.resolved(&node, array)?;
        }
        Ok(Dataset { node, found })
    }

    /// Adds the object at a node to `survey`, and its links to `links`.
    fn visit(
        &self,
        node: Node,
        level: usize,
        survey: &mut Survey,
        links: &mut Vec<(NodeLink, usize)>,
    ) -> Result<()> {
        let all = match node.entity()? {
            Entity::Group(all) => all,
            Entity::Dataset(found) => {
                survey.datasets.push(self.dataset_of(node, found)?);
                return Ok(());
            }
            Entity::Type => return Ok(()),
        };
        let words = |[at, file, path]: [String; 3]| {
            format!("{at}: a link to {path} of {file}, which is not followed")
        };
        survey.external.extend(node.external_links(&all).into_iter().map(words));
        if level >= MOST_GROUP_LEVELS {
            return Err(Error::Unsupported {
                file: self.store.name().clone(),
                what: format!("groups in more than {MOST_GROUP_LEVELS} levels").into(),
                advice: "name a group further down".into(),
            });
        }
        // Links are popped from the end, so they are in reverse order.
        links.extend(node.hard_links(&all).into_iter().rev().map(|link| (link, level + 1)));
        Ok(())
    }
}
