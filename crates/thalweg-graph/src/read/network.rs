//! A network open for reading.

use crate::read::merge::{BATCH, MergedVertices};
use crate::read::snapshot::Snapshot;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use thalweg_io::control::Control;
use thalweg_io::disk::{Disk, Folder, UrlFolder};
use thalweg_io::model::StoreModel;
use thalweg_io::object_cache::ObjectCache;
use thalweg_io::open::Options;
use thalweg_io::plan::Budget;
use thalweg_io::store::throttled::Limits;
use thalweg_io::urls::{shown, url};
use thalweg_io::{Error, Result};

use crate::read::fetch::Fetcher;
use crate::storage::manifest::{self, Manifest};
use crate::storage::schema::{PopulationEntry, Side, VertexType};
use crate::storage::segment::{Ahead, PageCache, PlannedFetches, plan_ahead};
use crate::storage::segment_reader::{Section, announce_indexes};

/// Options for opening a network.
#[derive(Debug, Clone)]
pub struct NetworkOptions {
    /// Threads and memory.
    pub budget: Budget,
    /// Cancels long operations from another thread.
    pub control: Control,
    /// The model of the store; `None` for the model of the device that holds the network.
    pub model: Option<StoreModel>,
    /// Whether files are mapped into memory; those at URLs never are. They never change once
    /// written. Set this to `false` on file systems where another program may shorten them.
    pub is_mapped: bool,
    /// Slows down the fetching of pages on purpose, for measurements. What opening the network
    /// reads is not slowed down.
    pub throttle: Option<Limits>,
    /// At a URL: a read without a byte for this long, all tries included, fails.
    pub timeout: Option<Duration>,
    /// At a URL: where what is read is kept. By default nothing is.
    pub cache: Option<ObjectCache>,
}

impl Default for NetworkOptions {
    fn default() -> Self {
        Self {
            budget: Budget::default(),
            control: Control::new(),
            model: None,
            is_mapped: true,
            throttle: None,
            timeout: None,
            cache: None,
        }
    }
}

impl From<&Options> for NetworkOptions {
    fn from(options: &Options) -> Self {
        Self {
            budget: options.budget,
            control: options.control.clone(),
            model: options.model,
            throttle: options.throttle,
            timeout: options.timeout,
            cache: options.cache.clone(),
            ..Self::default()
        }
    }
}

/// A network as it was when it was opened. Later changes of a writer are not visible.
#[derive(Debug, Clone)]
pub struct Network {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) state: Snapshot,
    pub(crate) fetcher: Fetcher,
}

/// The edges of a population as seen from one of their ends: which neighbour lists a query reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adjacency {
    /// The number of the population.
    pub population: usize,
    /// The end at which the vertices of the query are.
    pub side: Side,
}

/// Which edges a query follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Edges that leave the vertices, and undirected edges; if the two types have no such
    /// population, edges that arrive.
    #[default]
    Auto,
    /// Edges that leave the vertices, and undirected edges.
    Out,
    /// Edges that arrive at the vertices, and undirected edges.
    In,
    /// All edges.
    Both,
}

/// Tells if a query follows a population's edges.
type IsFollowed = fn(&PopulationEntry) -> bool;

/// How often opening is tried again with a newer manifest: a writer may replace the manifest and
/// remove files while they are opened.
const TRIES: usize = 20;

/// The error about a folder without a manifest.
pub(crate) fn no_manifest(disk: &dyn Disk) -> Error {
    let (what, advice) = if disk.is_far() {
        (
            "the object `manifest` of a network",
            "a network is copied there as it is in its folder, segments first and the manifest \
             last, as with `aws s3 cp --recursive FOLDER URL`",
        )
    } else if manifest::has_copy(disk) {
        (
            "the file `manifest` of the network",
            "its copy is there: `thalweg graph check STORE --repair OUT` restores the network",
        )
    } else {
        ("a network", "`thalweg graph import FILE STORE` makes one")
    };
    Error::NotFound { file: disk.name().clone(), what: what.into(), advice: advice.into() }
}

/// The error about changing the network at a URL.
pub(crate) fn read_only(url: &str) -> Error {
    Error::Unsupported {
        file: shown(url).into(),
        what: "changing a network at a URL".into(),
        advice:
            "copy it to a folder, as with `aws s3 cp --recursive URL FOLDER`, change the copy, \
                 and copy that to a new place"
                .into(),
    }
}

impl Network {
    /// Opens the network in a folder, or at a URL. At a URL, pages are kept in a cache that takes a
    /// quarter of the memory budget.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no network; [`Error::Malformed`] if it is damaged.
    pub fn open(path: &Path, options: NetworkOptions) -> Result<Self> {
        if let Some(url) = url(path) {
            let read = Options {
                budget: options.budget,
                control: options.control.clone(),
                model: options.model,
                throttle: options.throttle,
                timeout: options.timeout,
                cache: options.cache.clone(),
                ..Options::default()
            };
            return Self::open_on(Arc::new(UrlFolder::new(url, read)), options);
        }
        let folder = Folder::new(path, options.is_mapped).throttled(options.throttle);
        Self::open_on(Arc::new(folder), options)
    }

    /// Whether a folder holds a network, which is a folder with a manifest.
    pub fn is_at(path: &Path) -> bool {
        path.join(manifest::FILE).is_file()
    }

    /// Opens the network on a disk: [`Network::open`] for disks other than folders.
    ///
    /// # Errors
    /// As [`Network::open`].
    pub fn open_on(disk: Arc<dyn Disk>, options: NetworkOptions) -> Result<Self> {
        let mut tries = 0;
        loop {
            let manifest = Manifest::load(&*disk)?.ok_or_else(|| no_manifest(&*disk))?;
            let number = manifest.number;
            let log = manifest.log_file();
            let fetcher = Fetcher {
                model: options.model.unwrap_or_else(|| disk.model()),
                budget: options.budget,
                control: options.control.clone(),
                planned: Arc::default(),
            };
            let cache = disk.is_far().then(|| {
                let Fetcher { model, budget, control, planned } = fetcher.clone();
                Arc::new(PageCache::new(disk.name().clone(), model, budget, control, planned))
            });
            match Snapshot::open(&*disk, manifest, &options.control, cache.as_ref()) {
                Ok(state) => return Ok(Self { disk, state, fetcher }),
                Err(Error::Io { file, source, .. })
                    if source.kind() == std::io::ErrorKind::NotFound =>
                {
                    tries += 1;
                    let is_newer =
                        Manifest::load(&*disk)?.is_some_and(|newer| newer.number != number);
                    if !is_newer || tries == TRIES {
                        return Err(Error::NotFound {
                            file: disk.name().clone(),
                            what: format!("{file}, a part of the network (its log is {log}),")
                                .into(),
                            advice: "put it back from a copy, or import again".into(),
                        });
                    }
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// A network of a snapshot, with default options.
    pub(crate) fn of_state(disk: Arc<dyn Disk>, state: Snapshot) -> Self {
        let NetworkOptions { budget, control, .. } = NetworkOptions::default();
        let planned = Arc::default();
        Self { fetcher: Fetcher { model: disk.model(), budget, control, planned }, disk, state }
    }

    /// The path of the network's folder, as error messages show it.
    pub fn name(&self) -> Arc<str> {
        self.disk.name().clone()
    }

    /// The vertex types, by number.
    pub fn types(&self) -> &[VertexType] {
        &self.state.manifest.types
    }

    /// The populations of edges, by number.
    pub fn populations(&self) -> &[PopulationEntry] {
        &self.state.manifest.edges
    }

    /// The number of the type with this name. Capitals are ignored if that leaves a single type.
    ///
    /// # Errors
    /// [`Error::NotFound`], with the names that exist.
    pub fn type_of(&self, name: &str) -> Result<usize> {
        let names: Vec<&str> = self.types().iter().map(|known| known.name.as_str()).collect();
        self.named(name, &names, "a type")
    }

    /// The number of the population with this name. Capitals are ignored if that leaves a single
    /// population.
    ///
    /// # Errors
    /// [`Error::NotFound`], with the names that exist.
    pub fn population_of(&self, name: &str) -> Result<usize> {
        let names: Vec<&str> =
            self.populations().iter().map(|known| known.population.name.as_str()).collect();
        self.named(name, &names, "a population")
    }

    fn named(&self, name: &str, names: &[&str], what: &str) -> Result<usize> {
        let alike = |known: &&str| known.eq_ignore_ascii_case(name);
        let exact = names.iter().position(|known| *known == name);
        let only = || {
            names
                .iter()
                .position(alike)
                .filter(|_| names.iter().filter(|known| alike(known)).count() == 1)
        };
        exact.or_else(only).ok_or_else(|| Error::NotFound {
            file: self.disk.name().clone(),
            what: format!("{what} {name:?}").into(),
            advice: match names {
                [] => "there is none".into(),
                names => format!("there are {}", names.join(", ")).into(),
            },
        })
    }

    /// How many vertices a type has.
    pub fn vertex_count(&self, vertex_type: usize) -> u64 {
        let more = self.state.memtable.vertices(vertex_type).map_or(0, |changes| changes.more);
        self.types()[vertex_type].count.saturating_add_signed(more)
    }

    /// How many edges a population has.
    pub fn edge_count(&self, population: usize) -> u64 {
        let more = self.state.memtable.edges(population).map_or(0, |changes| changes.more);
        self.populations()[population].count.saturating_add_signed(more)
    }

    /// The adjacencies from one type to another, or to any type if `to` is `None`.
    pub fn adjacencies(
        &self,
        from: usize,
        to: Option<usize>,
        direction: Direction,
    ) -> Vec<Adjacency> {
        self.adjacencies_of(None, from, to, direction)
    }

    /// As [`Network::adjacencies`], but only those of one population, unless that is `None`.
    pub fn adjacencies_of(
        &self,
        population: Option<usize>,
        from: usize,
        to: Option<usize>,
        direction: Direction,
    ) -> Vec<Adjacency> {
        let along = |side: Side, wanted: IsFollowed| {
            let fits = move |edges: &PopulationEntry| {
                let (here, there) = match side {
                    Side::Out => (edges.source, edges.target),
                    Side::In => (edges.target, edges.source),
                };
                here == from && to.is_none_or(|to| to == there) && wanted(edges)
            };
            let all = self.populations().iter().enumerate();
            let chosen = move |number: usize| population.is_none_or(|only| only == number);
            all.filter(move |(number, edges)| chosen(*number) && fits(edges))
                .map(move |(population, _)| Adjacency { population, side })
        };
        let (any, undirected): (IsFollowed, IsFollowed) =
            (|_| true, |edges| !edges.population.is_directed);
        let adjacencies =
            |out, into| along(Side::Out, out).chain(along(Side::In, into)).collect::<Vec<_>>();
        match direction {
            Direction::Out => adjacencies(any, undirected),
            Direction::In => adjacencies(undirected, any),
            Direction::Both => adjacencies(any, any),
            Direction::Auto => match adjacencies(any, undirected) {
                none if none.is_empty() => adjacencies(undirected, any),
                some => some,
            },
        }
    }

    /// Passes the ids of a type's vertices in a range to `f`, ascending, up to 8,192 at a time.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Io`]; the errors of `f`.
    pub fn vertices(
        &self,
        vertex_type: usize,
        ids: RangeInclusive<u64>,
        f: &mut dyn FnMut(&[u64]) -> Result<()>,
    ) -> Result<()> {
        let mut streams = MergedVertices::new(
            &self.state.readers,
            Some(&self.state.memtable),
            vertex_type,
            ids,
            &self.fetcher.control,
        )?;
        let mut batch = Vec::with_capacity(BATCH);
        while streams.next(&mut batch)? {
            f(&batch)?;
        }
        Ok(())
    }

    /// Whether pages have to be waited for, and are in a cache.
    pub(crate) fn is_far(&self) -> bool {
        self.disk.is_far()
    }

    /// Says that the lists of all vertices along some adjacencies will be read, and the attributes
    /// of the edges if `with_attributes`, a part at a time, until the returned value is dropped.
    /// What is fetched of a network at a URL then goes beyond each part.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Io`].
    pub fn read_ahead(
        &self,
        adjacencies: &[Adjacency],
        with_attributes: bool,
    ) -> Result<ReadAhead<'_>> {
        let readers = &self.state.readers;
        let is_asked = |section| {
            adjacencies.iter().any(|to| section == Section::Edges(to.population, to.side))
        };
        let _indexes = announce_indexes(readers, is_asked)?;
        let mut wanted = Vec::new();
        for reader in readers.iter().filter(|reader| reader.segment.cached().is_some()) {
            for adjacency in adjacencies {
                let edges = reader.edges(adjacency.population, adjacency.side)?;
                let pages = edges.map(|edges| edges.pages(with_attributes));
                wanted.extend(pages.map(|pages| (&reader.segment, pages)));
            }
        }
        Ok(ReadAhead { _ahead: plan_ahead(wanted) })
    }

    /// The ends of an edge as they are stored: in a symmetric population, the lesser first.
    pub(crate) fn stored_ends(&self, population: usize, source: u64, target: u64) -> (u64, u64) {
        let swap = self.populations()[population].is_symmetric() && source > target;
        if swap { (target, source) } else { (source, target) }
    }

    /// The requests for pages that queries on this network and its clones have planned so far.
    pub fn planned(&self) -> PlannedFetches {
        self.fetcher.planned()
    }

    /// The size of the network's files, and how many changes are in the log.
    pub fn storage(&self) -> StorageUse {
        let Manifest { segments, .. } = &*self.state.manifest;
        StorageUse {
            segments: segments.len(),
            bytes: segments.iter().fold(0, |sum: u64, part| sum.saturating_add(part.bytes)),
            changes_in_log: self.state.memtable.weight,
        }
    }
}

/// Says that all lists will be read: see [`Network::read_ahead`].
#[derive(Debug)]
pub struct ReadAhead<'a> {
    _ahead: Ahead<'a>,
}

/// The size of a network's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageUse {
    /// How many segments there are.
    pub segments: usize,
    /// The bytes of all segments.
    pub bytes: u64,
    /// Changes of edges and vertices in the log, since the last segment.
    pub changes_in_log: usize,
}
