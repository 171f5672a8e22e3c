//! Files: the objects that their links lead to, found in rounds.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use thalweg_io::control::Control;
use thalweg_io::store::{JoinedStore, Store};
use thalweg_io::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use thalweg_io::{Error, Fault};

use super::ByteSource;
use super::dataset::{DatasetHeader, ExternalPiece, Layout};
use super::dataspace::Dataspace;
use super::datatype::Class;
use super::elements::element_type;
use super::group::{Link, Target};
use super::heap::{Collections, GlobalId, reference};
use super::rounds::{FetchOptions, Rounds};
use super::superblock::{self, Superblock};
use super::{NOWHERE, Object, Reader, Refused, Result, damaged, foreign, now, virtual_layout};
use crate::array::{Array, ElementPlace, ElementType, Found, Variable, longest_run};
use crate::convert::Conversion;
use crate::dtype::Dtype;
use crate::extents::{Extents, SavedMetadata};
use crate::filter::{Filter, Pipeline};
use crate::mapping::Mapping;
use crate::other_files::OtherFiles;
use crate::types::{Chunk, Value};

/// The most bytes of metadata that are read for one object: so many times the size of the file, and
/// so many more. The structures of an object do not overlap, and those that lead to themselves end.
const MOST_OF_OBJECT: (u64, u64) = (4, 1 << 20);
/// The most bytes of copies of objects of a heap, as a factor of the heap's bytes and a constant.
pub(super) const COPIES: (u64, u64) = (4, 1 << 20);
/// The same for all objects together. They may share heaps and types.
const MOST_OF_ALL: (u64, u64) = (64, 64 << 20);
/// The most bytes of metadata that are read for the superblock and what belongs to it.
const MOST_OF_SUPERBLOCK: u64 = 1 << 20;

/// An open HDF5 file.
#[derive(Debug)]
pub struct MetadataFile {
    rounds: Rounds,
    superblock: Superblock,
    name: Arc<str>,
    /// The store to which pieces of other files are added, if they can be read.
    joined: Option<Arc<JoinedStore>>,
    other_files: OtherFiles,
    /// The saved extents, if they are in use.
    extents: OnceLock<Extents>,
    /// What [`MetadataFile::entities`] has found.
    known: Mutex<Known>,
    /// Bytes of metadata that may still be read for objects.
    left: AtomicU64,
}

/// Objects that are known already.
#[derive(Debug, Default)]
struct Known {
    /// By the addresses of their headers.
    entities: HashMap<u64, Entity>,
    /// The attribute `NX_class` of groups; `None` for a group without it.
    classes: HashMap<u64, Option<Value>>,
    /// Whether all objects that hard links lead to from the root were looked for.
    is_complete: bool,
}

/// What is at an address.
#[derive(Debug, Clone)]
pub enum Entity {
    /// A group, and its links in the order of their names.
    Group(Arc<Vec<Link>>),
    /// A dataset.
    Dataset(Found),
    /// A committed type.
    Type,
}

/// The objects of a file, by the addresses of their headers.
pub type Entities = HashMap<u64, Result<Entity>>;

impl MetadataFile {
    /// Opens the file in a store.
    ///
    /// # Errors
    /// [`Error::Malformed`] for what is not HDF5; the errors of the store.
    pub fn open(
        store: &Arc<dyn Store>,
        control: &Control,
        options: FetchOptions,
    ) -> Result<Self, Error> {
        let rounds = Rounds::new(store.clone(), control, options);
        let opened = rounds.one(async {
            let start = Superblock::default();
            let mut reader = Reader::new(&rounds, start, MOST_OF_SUPERBLOCK);
            superblock::parse(&mut reader).await?;
            Ok(reader.superblock().clone())
        })?;
        let name = store.name().clone();
        let none = Superblock::default();
        let superblock = opened.map_err(|refused| error(&name, &none, refused, "HDF5 file"))?;
        if superblock.end > store.size() {
            return Err(Error::Truncated {
                file: name,
                what: format!("an HDF5 file of {} bytes", superblock.end).into(),
                offset: 0,
                size: store.size(),
                advice: ", or still being written; fetch the file again, or close it in its writer",
            });
        }
        Ok(Self {
            rounds,
            superblock,
            name,
            joined: None,
            other_files: OtherFiles::default(),
            extents: OnceLock::new(),
            known: Mutex::default(),
            left: AtomicU64::new(limit(store.size(), MOST_OF_ALL)),
        })
    }

    /// Lets datasets have values in other files, which are read through the joined store.
    #[must_use]
    pub(crate) fn joined(self, joined: &Arc<JoinedStore>, other_files: OtherFiles) -> Self {
        Self { joined: Some(joined.clone()), other_files, ..self }
    }

    /// The other files that it may open.
    pub(crate) fn other_files(&self) -> &OtherFiles {
        &self.other_files
    }

    /// Uses saved extents for datasets that are described from now on. The file must be in the
    /// state that the extents name. If other extents are in use already, these stay.
    pub fn know(&self, mut extents: Extents) -> &Extents {
        self.rounds.know(extents.take_metadata());
        self.extents.get_or_init(|| extents)
    }

    /// Records which bytes of the file are read from now on.
    pub(crate) fn record(mut self) -> Self {
        self.rounds.record();
        self
    }

    /// The metadata that were read since [`MetadataFile::record`]; none if they are more than
    /// `most` bytes.
    pub(crate) fn recorded(&self, most: u64) -> Result<SavedMetadata, Error> {
        self.rounds.recorded(most)
    }

    /// Whether the file says that it is open for writing. That is also so if its writer was killed.
    pub(crate) fn is_unclosed(&self) -> bool {
        self.superblock.is_open_for_writing
    }

    /// A reader of one object.
    pub(super) fn reader(&self) -> Reader<'_> {
        self.reader_of_values().within(&self.left)
    }

    /// A reader of values that are in heaps. These may be read again and again.
    pub(super) fn reader_of_values(&self) -> Reader<'_> {
        let most = limit(self.rounds.size(), MOST_OF_OBJECT);
        Reader::new(&self.rounds, self.superblock.clone(), most)
    }

    /// Runs a parser of the object at `path`.
    pub(super) fn wait<T: Send>(
        &self,
        path: &str,
        parser: impl Future<Output = Result<T>> + Send,
    ) -> Result<T, Error> {
        self.rounds.one(parser)?.map_err(|refused| self.error(refused, path))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The attribute `NX_class` of the group at `address`, if [`MetadataFile::entities`] has found
    /// it; `Some(None)` if the group has no such attribute.
    pub(super) fn known_class(&self, address: u64) -> Option<Option<Value>> {
        self.known().classes.get(&address).cloned()
    }

    /// The object at `address`, if [`MetadataFile::entities`] has found it.
    fn known_entity(&self, address: u64) -> Option<Entity> {
        self.known().entities.get(&address).cloned()
    }

    /// The object at `address`. It is kept, so that whoever asks again and again stays within the
    /// limit of bytes for all objects.
    pub(super) fn entity_at(&self, address: u64, path: &str) -> Result<Entity, Error> {
        if let Some(known) = self.known_entity(address) {
            return Ok(known);
        }
        let (entity, class) = self.wait(path, self.entity(address))?;
        self.keep(address, entity.clone(), class);
        Ok(entity)
    }

    /// Whether the object at `address` is a group.
    pub(super) fn is_group(&self, address: u64, path: &str) -> Result<bool, Error> {
        if let Some(known) = self.known_entity(address) {
            return Ok(matches!(known, Entity::Group(_)));
        }
        let reader = self.reader();
        self.wait(path, async { Ok(Object::read(&reader, address).await?.is_group()) })
    }

    /// The links of the group at `address`. They are kept as [`MetadataFile::entity_at`] does.
    pub(super) fn links(&self, address: u64, path: &str) -> Result<Arc<Vec<Link>>, Error> {
        if let Some(Entity::Group(links)) = self.known_entity(address) {
            return Ok(links);
        }
        let reader = self.reader();
        let found = self.wait(path, async {
            let object = Object::read(&reader, address).await?;
            self.group(&reader, &object).await
        });
        let (group, class) = found?;
        self.keep(address, group.clone(), class);
        match group {
            Entity::Group(links) => Ok(links),
            _ => Ok(Arc::default()),
        }
    }

    /// What the dataset at `address` holds, and where; `None` if the object is not a dataset.
    pub(super) fn array(&self, address: u64, path: &str) -> Result<Option<Found>, Error> {
        match self.known_entity(address) {
            Some(Entity::Dataset(found)) => return Ok(Some(found)),
            Some(Entity::Group(_) | Entity::Type) => return Ok(None),
            None => {}
        }
        self.wait(path, async {
            let reader = self.reader();
            let object = Object::read(&reader, address).await?;
            match object.dataset(&reader).await? {
                Some(header) => self.found_array(&reader, header, address).await.map(Some),
                None => Ok(None),
            }
        })
    }

    /// The dataset of elements of any length at `address`; `None` for any other object.
    pub(super) fn variable(&self, address: u64, path: &str) -> Result<Option<Variable>, Error> {
        self.wait(path, async {
            // It is asked for with each read.
            let reader = self.reader_of_values();
            let object = Object::read(&reader, address).await?;
            let Some(header) = object.dataset(&reader).await? else { return Ok(None) };
            let Dataspace::Simple { shape, .. } = &header.space else { return Ok(None) };
            let shape = shape.clone();
            let item = match &header.datatype.class {
                Class::LongText { .. } => None,
                Class::List { base } => match element_type(base) {
                    Ok(item) if item.converted.is_none() && item.inner.is_empty() => {
                        Some(item.dtype)
                    }
                    _ => return Ok(None),
                },
                _ => return Ok(None),
            };
            let kind = ElementType {
                dtype: Dtype::void(header.datatype.size),
                inner: Vec::new(),
                converted: None,
            };
            match self.array_of(&reader, header, kind, address).await? {
                Found::Array(references) => Ok(Some(Variable { shape, item, references })),
                Found::Other(_) => Ok(None),
            }
        })
    }

    /// The strings or lists that references lead to, which are `elements` of `size` bytes each.
    /// `item` is the number of bytes of an item of a list; 1 for strings.
    ///
    /// # Errors
    /// [`Error::Malformed`]; the errors of the store.
    pub(crate) fn referenced(
        &self,
        path: &str,
        elements: &[u8],
        item: usize,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let size = 4 + usize::from(self.superblock.widths.address) + 4;
        let reader = self.reader_of_values();
        self.wait(path, async {
            let mut references = Vec::with_capacity(elements.len() / size);
            for element in elements.chunks_exact(size) {
                references.push(reference(&mut reader.cursor(element, 0))?);
            }
            let is_stored = |(count, (at, _)): &(u64, GlobalId)| *count > 0 && *at != 0;
            let ids = references.iter().filter(|found| is_stored(found)).map(|(_, id)| *id);
            let collections = Collections::read(&reader, ids).await?;
            // Each object has one reference in practice.
            let mut left = limit(collections.bytes(), COPIES);
            let mut found = Vec::with_capacity(references.len());
            for (count, id) in references {
                if !is_stored(&(count, id)) {
                    found.push(Vec::new());
                    continue;
                }
                let object = collections.object(id)?;
                let len = usize::try_from(count).ok().and_then(|count| count.checked_mul(item));
                let Some(bytes) = len.and_then(|len| object.get(..len)) else {
                    let words = format!("an object of {} bytes", object.len());
                    return damaged(id.0, words, format!("{count} items of {item} bytes"));
                };
                let Some(fewer) = left.checked_sub(bytes.len() as u64) else {
                    return damaged(id.0, "an object with very many references", "one for each");
                };
                left = fewer;
                found.push(bytes.to_vec());
            }
            Ok(found)
        })
    }

    /// The superblock.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// What finding has cost so far.
    pub fn cost(&self) -> super::Cost {
        self.rounds.cost()
    }

    /// The error about an object.
    pub fn error(&self, refused: Refused, what: &str) -> Error {
        error(&self.name, &self.superblock, refused, what)
    }

    /// Looks for the objects at these addresses, and all that hard links lead to from there, unless
    /// they were looked for before.
    ///
    /// # Errors
    /// As [`MetadataFile::entities`].
    pub(crate) fn find_below(&self, mut from: Vec<u64>) -> Result<(), Error> {
        if !self.known().is_complete {
            from.sort_unstable();
            from.dedup();
            let has_root = from.contains(&self.superblock.root);
            self.entities(from)?;
            self.known().is_complete |= has_root;
        }
        Ok(())
    }

    /// Looks for the links of those objects at these addresses that are groups. A group that cannot
    /// be parsed does not prevent the others.
    ///
    /// # Errors
    /// As [`MetadataFile::entities`].
    pub(crate) fn find_links(&self, mut of: Vec<u64>) -> Result<(), Error> {
        of.sort_unstable();
        of.dedup();
        of.retain(|&address| self.known_entity(address).is_none());
        let found = self.rounds.run(of, |address| async move {
            let reader = self.reader();
            let group = async {
                let object = Object::read(&reader, address).await?;
                if object.is_group() {
                    let (group, class) = self.group(&reader, &object).await?;
                    self.keep(address, group, class);
                }
                Ok(())
            };
            (group.await, Vec::new())
        })?;
        let store = found.into_iter().find_map(|group| match group {
            Err(Refused::Store(error)) => Some(error),
            _ => None,
        });
        store.map_or(Ok(()), Err)
    }

    /// Keeps an object that was parsed, and what its attribute `NX_class` is, if that is known.
    fn keep(&self, address: u64, entity: Entity, class: Option<Option<Value>>) {
        let mut known = self.known();
        known.entities.insert(address, entity);
        known.classes.extend(class.map(|class| (address, class)));
    }

    /// Parses the objects at these addresses, and all that hard links lead to from there. An object
    /// that cannot be parsed does not prevent the others.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; the errors of the store.
    pub fn entities(&self, from: Vec<u64>) -> Result<Entities, Error> {
        let seen: Mutex<HashSet<u64>> = Mutex::new(from.iter().copied().collect());
        let seen = &seen;
        let found = self.rounds.run(from, |address| async move {
            let entity = match self.known_entity(address) {
                Some(known) => Ok(known),
                None => self.entity(address).await.map(|(entity, class)| {
                    self.keep(address, entity.clone(), class);
                    entity
                }),
            };
            let mut next = Vec::new();
            if let Ok(Entity::Group(links)) = &entity {
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                for link in &**links {
                    if let Target::Object(at) = link.target
                        && seen.insert(at)
                    {
                        next.push(at);
                    }
                }
            }
            ((address, entity), next)
        })?;
        let mut entities = HashMap::with_capacity(found.len());
        for (address, entity) in found {
            match entity {
                Err(Refused::Store(error)) => return Err(error),
                entity => drop(entities.insert(address, entity)),
            }
        }
        Ok(entities)
    }

    /// Parses the object at an address. Also returns the attribute `NX_class` of a group, if its
    /// bytes need not be waited for; `Some(None)` if the group has no such attribute.
    async fn entity(&self, address: u64) -> Result<(Entity, Option<Option<Value>>)> {
        let reader = self.reader();
        let object = Object::read(&reader, address).await?;
        if object.is_group() {
            return self.group(&reader, &object).await;
        }
        // Boxed, because thousands of parsers may wait, and those of groups do not come here.
        let entity = match Box::pin(object.dataset(&reader)).await? {
            Some(header) => {
                Entity::Dataset(Box::pin(self.found_array(&reader, header, address)).await?)
            }
            None => Entity::Type,
        };
        Ok((entity, None))
    }

    /// The group that an object is, and its attribute `NX_class` as [`MetadataFile::entity`]
    /// returns it.
    async fn group(
        &self,
        reader: &Reader<'_>,
        object: &Object,
    ) -> Result<(Entity, Option<Option<Value>>)> {
        let mut links = object.links(reader).await?;
        links.sort_by(|a, b| a.name.cmp(&b.name));
        // Whoever looks for the objects of a NeXus file asks for it next. To wait for bytes would
        // delay the objects below. Damage matters only to those who ask.
        let class = now(object.value(reader, "NX_class")).ok();
        Ok((Entity::Group(Arc::new(links)), class))
    }

    /// What a dataset holds, and where. Every range in the file that it names is inside the file.
    async fn found_array(
        &self,
        reader: &Reader<'_>,
        header: DatasetHeader,
        address: u64,
    ) -> Result<Found> {
        if header.space == Dataspace::Null {
            return Ok(Found::Other("a dataset without values".into()));
        }
        match element_type(&header.datatype) {
            Ok(kind) => self.array_of(reader, header, kind, address).await,
            Err(what) => Ok(Found::Other(what)),
        }
    }

    /// The array of elements of this kind.
    async fn array_of(
        &self,
        reader: &Reader<'_>,
        header: DatasetHeader,
        kind: ElementType,
        address: u64,
    ) -> Result<Found> {
        let shape = match &header.space {
            Dataspace::Simple { shape, .. } => &shape[..],
            Dataspace::Null => &[0],
        };
        let ElementType { dtype, inner, converted: conversion } = kind;
        let mut array = Array {
            shape: shape.iter().chain(&inner).copied().collect(),
            dtype,
            fill: Vec::new(),
            place: ElementPlace::Contiguous(None),
            pipeline: Pipeline::default(),
        };
        let size = array.dtype.size() as u64;
        let bytes = array.shape.iter().try_fold(size, |bytes, &n| bytes.checked_mul(n));
        let Some(bytes) = bytes.filter(|&bytes| bytes <= i64::MAX as u64) else {
            let found = format!("{:?} elements of {size} bytes", array.shape);
            return damaged(address, found, "a dataset that a machine can address");
        };
        let element = conversion.map_or(array.dtype.size(), |conversion| conversion.from);
        if let Layout::Virtual(id) = &header.layout {
            array.place = ElementPlace::Virtual(mappings_at(reader, *id, &inner).await?);
            array.fill = fill_of(header.fill_value(), element);
            if let Some(conversion) = conversion {
                array.fill = conversion.converted(&array.fill).map_err(Refused::Damaged)?;
            }
            array.dtype.to_little_endian(&mut array.fill);
            array.dtype = array.dtype.into_plain();
            return Ok(Found::Array(Arc::new(array)));
        }
        let pipeline = header.pipeline();
        let stored_bytes = bytes / size * element as u64;
        let base = reader.superblock().base;
        array.place = match &header.layout {
            Layout::Compact(values) => {
                let Some(values) = values.get(..stored_bytes as usize) else {
                    let found = format!("{} bytes of values", values.len());
                    return damaged(address, found, format!("{stored_bytes}"));
                };
                ElementPlace::Inline(values.to_vec())
            }
            Layout::Contiguous(_) if !header.external.is_empty() => {
                match self.external(&header.external, stored_bytes, address)? {
                    Ok(at) => ElementPlace::Contiguous(at),
                    Err(why) => return Ok(Found::Other(why)),
                }
            }
            Layout::Contiguous(at) => {
                if *at != NOWHERE {
                    reader.check(*at, stored_bytes)?;
                }
                ElementPlace::Contiguous((*at != NOWHERE).then(|| at.saturating_add(base)))
            }
            Layout::Chunked(grid) => {
                let saved = self.extents.get();
                let saved = saved.and_then(|saved| saved.get(address, shape, &grid.chunk));
                let chunks = match saved {
                    Some(chunks) => chunks,
                    None => grid.chunks(reader, &header.space, pipeline.0.len()).await?,
                };
                reader.check_chunks(&chunks)?;
                array.pipeline = pipeline.of_chunks(chunks.iter().map(|chunk| chunk.mask));
                let chunk = grid.chunk.iter().chain(&inner).copied().collect();
                ElementPlace::Chunked(chunk, chunks)
            }
            Layout::Virtual(_) => return foreign("a virtual dataset"),
        };
        array.fill = fill_of(header.fill_value(), element);
        if let Some(conversion) = conversion {
            array = converted(array, conversion).map_err(Refused::Damaged)?;
        }
        Ok(Found::Array(Arc::new(array)))
    }

    /// Adds the `bytes` bytes of values that are in other files to the joined store, and returns
    /// their offset in it, or why they cannot be read.
    fn external(
        &self,
        pieces: &[ExternalPiece],
        bytes: u64,
        address: u64,
    ) -> Result<Result<Option<u64>, String>> {
        let Some(joined) = &self.joined else {
            return Ok(Err("values in another file".into()));
        };
        let mut parts: Vec<(PathBuf, u64, u64)> = Vec::new();
        let mut left = bytes;
        for piece in pieces {
            let len = piece.size.min(left);
            if len == 0 {
                break;
            }
            let path = match self.other_files.find(&piece.file, joined.name()) {
                Ok(Some(path)) => path,
                Ok(None) => {
                    let name = String::from_utf8_lossy(&piece.file);
                    return Ok(Err(format!("values in another file, {name}, that is not there")));
                }
                Err(error) => return Ok(Err(error.to_string())),
            };
            parts.push((path, piece.offset, len));
            left -= len;
        }
        if left > 0 {
            let found = format!("other files that hold {} bytes", bytes - left);
            return damaged(address, found, format!("{bytes}"));
        }
        let open = |path: &Path| self.other_files.open(path, self.rounds.control());
        Ok(joined.append(&parts, open).map_err(|error| match error {
            Error::Io { file, source, .. } if source.kind() == ErrorKind::NotFound => {
                format!("values in another file, {file}, that is not there")
            }
            error => error.to_string(),
        }))
    }
}

/// The mappings of a virtual dataset.
async fn mappings_at(reader: &Reader<'_>, id: GlobalId, inner: &[u64]) -> Result<Arc<[Mapping]>> {
    if id.0 == NOWHERE {
        return Ok(Arc::default());
    }
    let collections = Collections::read(reader, [id]).await?;
    let block = reader.cursor(collections.object(id)?, id.0);
    Ok(virtual_layout::mappings(&block, inner)?.into())
}

/// The value of elements that are not stored, out of a fill value: one element of `size` bytes, or
/// one for each part of an array type whose parts differ.
fn fill_of(fill: &[u8], size: usize) -> Vec<u8> {
    let mut parts = fill.chunks(size);
    match parts.next() {
        Some(first) if parts.all(|part| part == first) => first.to_vec(),
        _ => fill.to_vec(),
    }
}

/// An array of elements that have to be converted after all filters are undone. Values in one run
/// become chunks, so that they are read part by part.
fn converted(array: Array, conversion: Conversion) -> Result<Array, Fault> {
    let fill = conversion.converted(&array.fill)?;
    let place = match array.place {
        ElementPlace::Inline(stored) => ElementPlace::Inline(conversion.converted(&stored)?),
        ElementPlace::Contiguous(Some(offset)) => {
            let (chunk, chunks) = runs(&array.shape, offset, conversion.from as u64);
            ElementPlace::Chunked(chunk, chunks)
        }
        // The conversion is the first filter, so that the bits for skipped filters are those of
        // the next ones.
        ElementPlace::Chunked(chunk, mut chunks) => {
            chunks.iter_mut().for_each(|chunk| chunk.mask <<= 1);
            ElementPlace::Chunked(chunk, chunks)
        }
        place => place,
    };
    let filters = [Filter::Convert(conversion)].into_iter().chain(array.pipeline.0);
    Ok(Array { fill, place, pipeline: Pipeline(filters.collect()), ..array })
}

/// The usual bytes of a run of values that are converted together.
const RUN: u64 = 1 << 20;
/// About the most runs of an array. Its values in another file may claim any number of bytes.
const MOST_RUNS: u64 = 1 << 18;

/// Divides the elements of an array of this shape, which are `size` bytes each and follow each
/// other from `offset` on, into chunks.
fn runs(shape: &[u64], offset: u64, size: u64) -> (Vec<u64>, Vec<Chunk>) {
    if shape.contains(&0) {
        return (vec![1; shape.len()], Vec::new());
    }
    let bytes = shape.iter().product::<u64>().saturating_mul(size);
    let chunk = longest_run(shape, size, RUN.max(bytes / MOST_RUNS));
    let counts = shape.iter().zip(&chunk).map(|(length, part)| length.div_ceil(*part));
    let count: u64 = counts.product();
    let mut at = offset;
    let mut chunks = Vec::new();
    for first in 0..count {
        // The place of the chunk in each dimension, the last first.
        let mut left = first;
        let mut elements = 1;
        for (length, part) in shape.iter().zip(&chunk).rev() {
            let parts = length.div_ceil(*part);
            elements *= (length - left % parts * part).min(*part);
            left /= parts;
        }
        chunks.push(Chunk { first, offset: at, size: elements * size, mask: 0 });
        at += elements * size;
    }
    (chunk, chunks)
}

/// The limit of bytes for a file of `size` bytes: a factor of the size, plus a constant.
pub(super) fn limit(size: u64, (times, more): (u64, u64)) -> u64 {
    size.saturating_mul(times).saturating_add(more)
}

/// The error about what is at `what` of a file with this superblock.
fn error(name: &Arc<str>, superblock: &Superblock, refused: Refused, what: &str) -> Error {
    let mut refused = refused;
    if let Refused::Damaged(fault) = &mut refused
        && superblock.is_open_for_writing
    {
        fault.expected += "; the file is being written, or its writer was killed";
    }
    refused.in_file(name, superblock.base, what.to_owned(), "repack the file with h5repack")
}
