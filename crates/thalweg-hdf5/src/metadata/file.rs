//! Files: the objects that their links lead to, found in rounds.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_io::control::Control;
use thalweg_io::model::StoreModel;
use thalweg_io::store::Store;
use thalweg_io::{Error, Fault, InFile};

use super::dataset::{DatasetHeader, Layout};
use super::dataspace::Dataspace;
use super::elements::element_type;
use super::group::{Link, Target};
use super::rounds::Rounds;
use super::{NOWHERE, Object, Reader, Refused, Result, Superblock, damaged};
use crate::array::{Array, ElementPlace, Found};
use crate::filter::Pipeline;

/// The most bytes of metadata that are read for one object.
const MOST_OF_OBJECT: u64 = 4 << 30;
/// The most bytes of metadata that are read for the superblock and what belongs to it.
const MOST_OF_SUPERBLOCK: u64 = 1 << 20;

/// An open HDF5 file.
#[derive(Debug)]
pub struct MetadataFile {
    rounds: Rounds,
    superblock: Superblock,
    name: Arc<str>,
}

/// What is at an address.
#[derive(Debug)]
pub enum Entity {
    /// A group, and its links in the order of their names.
    Group(Vec<Link>),
    /// A dataset.
    Dataset(Found),
    /// A committed type.
    Type,
}

/// The objects of a file, by the addresses of their headers.
pub type Entities = HashMap<u64, Result<Entity>>;

impl MetadataFile {
    /// Opens the file in a store. Keeps about `memory` bytes of metadata.
    ///
    /// # Errors
    /// [`Error::Malformed`] for what is not HDF5; the errors of the store.
    pub fn open(
        store: &Arc<dyn Store>,
        control: &Control,
        model: StoreModel,
        threads: usize,
        memory: u64,
    ) -> Result<Self, Error> {
        let rounds = Rounds::new(store.clone(), control, model, threads, memory);
        let opened = rounds.one(async {
            let reader = Reader::open(&rounds, MOST_OF_SUPERBLOCK).await?;
            Ok(reader.superblock().clone())
        })?;
        let name = store.name().clone();
        match opened {
            Ok(superblock) => Ok(Self { rounds, superblock, name }),
            Err(refused) => Err(error(&name, 0, refused, "HDF5 file")),
        }
    }

    /// The superblock.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// What finding has cost so far.
    pub fn found(&self) -> super::Found {
        self.rounds.found()
    }

    /// The error about an object.
    pub fn error(&self, refused: Refused, what: &str) -> Error {
        error(&self.name, self.superblock.base, refused, what)
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
            let entity = self.entity(address).await;
            let mut next = Vec::new();
            if let Ok(Entity::Group(links)) = &entity {
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                for link in links {
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

    async fn entity(&self, address: u64) -> Result<Entity> {
        let reader = Reader::new(&self.rounds, self.superblock.clone(), MOST_OF_OBJECT);
        let object = Object::read(&reader, address).await?;
        if object.is_group() {
            let mut links = object.links(&reader).await?;
            links.sort_by(|a, b| a.name.cmp(&b.name));
            return Ok(Entity::Group(links));
        }
        match object.dataset(&reader).await? {
            Some(header) => array(&reader, header, address).await.map(Entity::Dataset),
            None => Ok(Entity::Type),
        }
    }
}

/// The error about what is at `what` of a file whose address 0 is at byte `base`.
fn error(name: &Arc<str>, base: u64, refused: Refused, what: &str) -> Error {
    match refused {
        Refused::Store(error) => error,
        Refused::Damaged(Fault { at, found, expected }) => {
            Fault { at: 0, found, expected }.in_file(name, at.saturating_add(base), what.to_owned())
        }
        Refused::Foreign(found) => Error::Unsupported {
            file: name.clone(),
            what: format!("{what}: {found}").into(),
            advice: "repack the file with h5repack".into(),
        },
    }
}

/// What a dataset holds, and where. Every range in the file that it names is inside the file.
async fn array(reader: &Reader<'_, Rounds>, header: DatasetHeader, address: u64) -> Result<Found> {
    let Dataspace::Simple { shape, .. } = &header.space else {
        return Ok(Found::Other("a dataset without values".into()));
    };
    let kind = match element_type(&header.datatype) {
        Ok(kind) => kind,
        Err(what) => return Ok(Found::Other(what)),
    };
    let mut array = Array {
        shape: shape.iter().chain(&kind.inner).copied().collect(),
        dtype: kind.dtype,
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
    let base = reader.superblock().base;
    array.place = match (kind.converted, header.pipeline(), &header.layout) {
        (Some(why), ..) | (None, Err(why), _) => ElementPlace::Library(why),
        (None, Ok(_), Layout::Compact(values)) => {
            let Some(values) = values.get(..bytes as usize) else {
                let found = format!("{} bytes of values", values.len());
                return damaged(address, found, format!("{bytes}"));
            };
            ElementPlace::Inline(values.to_vec())
        }
        (None, Ok(_), Layout::Contiguous(_)) if !header.external.is_empty() => {
            ElementPlace::Library("values in other files".into())
        }
        (None, Ok(_), Layout::Contiguous(at)) => {
            if *at != NOWHERE {
                reader.check(*at, bytes)?;
            }
            ElementPlace::Contiguous((*at != NOWHERE).then_some(at.saturating_add(base)))
        }
        (None, Ok(pipeline), Layout::Chunked(grid)) => {
            let chunks = grid.chunks(reader, &header.space, pipeline.0.len()).await?;
            for chunk in &chunks {
                reader.check(chunk.offset - base, chunk.size)?;
            }
            array.pipeline = pipeline;
            let chunk = grid.chunk.iter().chain(&kind.inner).copied().collect();
            ElementPlace::Chunked(chunk, chunks)
        }
        (None, Ok(_), Layout::Virtual(_)) => ElementPlace::Library("a virtual dataset".into()),
    };
    // The fill value of an array type has a value for each of its elements; the first is kept. The
    // library fills in the value itself where it converts.
    if header.datatype.size as u64 == size * kind.inner.iter().product::<u64>() {
        array.fill = header.fill;
        array.fill.truncate(size as usize);
    }
    Ok(Found::Array(Arc::new(array)))
}
