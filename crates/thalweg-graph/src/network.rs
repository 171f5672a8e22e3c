//! A network as it was at one moment, to be asked.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use thalweg_io::control::Control;
use thalweg_io::disk::{Disk, Folder};
use thalweg_io::model::StoreModel;
use thalweg_io::plan::Budget;
use thalweg_io::{Error, InFile, Result};

use super::fetch::Fetcher;
use super::level::{Level, Side};
use super::manifest::{self, Edges, Manifest, VertexType};
use super::neighbours::Neighbours;
use super::recent::Recent;
use super::{effects, log};

/// How to read a network.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads and memory.
    pub budget: Budget,
    /// Stops what takes long, from elsewhere.
    pub control: Control,
    /// What the store can do, where it is known better than from its device.
    pub model: Option<StoreModel>,
    /// Whether files are mapped into memory. They are never changed once written; but on file
    /// systems where somebody else may shorten them all the same, say no.
    pub is_mapped: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { budget: Budget::default(), control: Control::new(), model: None, is_mapped: true }
    }
}

/// What there was at one moment. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) manifest: Arc<Manifest>,
    pub(super) levels: Vec<Arc<Level>>,
    pub(super) recent: Arc<Recent>,
}

/// A network, as it was when it was opened: what others write since does not show.
#[derive(Debug, Clone)]
pub struct Network {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) state: State,
    pub(super) fetcher: Fetcher,
}

/// One way to go from a vertex: along the edges of a population, from one of their ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// The number of the population.
    pub population: usize,
    /// The end at which the vertices are that one goes from.
    pub side: Side,
}

/// Which edges are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Those that leave, and undirected ones; where there are none of that kind between the two
    /// types, those that arrive.
    #[default]
    Auto,
    /// Those that leave, and undirected ones.
    Out,
    /// Those that arrive, and undirected ones.
    In,
    /// All.
    Both,
}

/// Neighbours that are as quickly read as one is looked for among many.
const WORTH: u64 = 1024;

/// Whether edges are followed.
type Wanted = fn(&Edges) -> bool;

/// A manifest may be replaced, and its files removed, while they are opened: then there is a newer
/// one, this many times at most.
const TRIES: usize = 20;

impl Network {
    /// Opens the network in a folder.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none; [`Error::Malformed`] if it is damaged.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        Self::open_on(Arc::new(Folder::new(path, options.is_mapped)), options)
    }

    /// Whether there is a network in a folder: it has a manifest.
    pub fn is_at(path: &Path) -> bool {
        path.join(manifest::FILE).is_file()
    }

    /// The same on any disk.
    ///
    /// # Errors
    /// As [`Network::open`].
    pub fn open_on(disk: Arc<dyn Disk>, options: Options) -> Result<Self> {
        let mut tries = 0;
        loop {
            let manifest = Manifest::load(&*disk)?.ok_or_else(|| Error::NotFound {
                file: disk.name().clone(),
                what: "a network".into(),
                advice: "`thalweg graph import FILE STORE` makes one".into(),
            })?;
            let (number, log) = (manifest.number, manifest.log_file());
            match State::open(&*disk, manifest) {
                Ok((state, _)) => {
                    let fetcher = Fetcher {
                        model: options.model.unwrap_or_else(|| disk.model()),
                        budget: options.budget,
                        control: options.control,
                    };
                    return Ok(Self { disk, state, fetcher });
                }
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

    /// What a state says, read with what is the default.
    pub(super) fn of_state(disk: Arc<dyn Disk>, state: State) -> Self {
        let Options { budget, control, .. } = Options::default();
        Self { fetcher: Fetcher { model: disk.model(), budget, control }, disk, state }
    }

    /// What messages call it: the path of its folder.
    pub fn name(&self) -> Arc<str> {
        self.disk.name().clone()
    }

    /// The types of its vertices.
    pub fn types(&self) -> &[VertexType] {
        &self.state.manifest.types
    }

    /// Its populations of edges.
    pub fn populations(&self) -> &[Edges] {
        &self.state.manifest.edges
    }

    /// The number of the type of this name; capitals do not matter where that leaves one.
    ///
    /// # Errors
    /// [`Error::NotFound`], which names those that there are.
    pub fn type_of(&self, name: &str) -> Result<usize> {
        let names: Vec<&str> = self.types().iter().map(|known| known.name.as_str()).collect();
        self.named(name, &names, "a type")
    }

    /// The number of the population of this name; capitals do not matter where that leaves one.
    ///
    /// # Errors
    /// [`Error::NotFound`], which names those that there are.
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

    /// How many vertices of a type there are.
    pub fn vertex_count(&self, vertex_type: usize) -> u64 {
        let more = self.state.recent.vertices(vertex_type).map_or(0, |changes| changes.more);
        self.types()[vertex_type].count.saturating_add_signed(more)
    }

    /// How many edges of a population there are.
    pub fn edge_count(&self, population: usize) -> u64 {
        let more = self.state.recent.edges(population).map_or(0, |changes| changes.more);
        self.populations()[population].count.saturating_add_signed(more)
    }

    /// The ways from one type to another (any, if none is named).
    pub fn ways(&self, from: usize, to: Option<usize>, direction: Direction) -> Vec<Way> {
        let along = |side: Side, wanted: Wanted| {
            let fits = move |edges: &Edges| {
                let (here, there) = match side {
                    Side::Out => (edges.source, edges.target),
                    Side::In => (edges.target, edges.source),
                };
                here == from && to.is_none_or(|to| to == there) && wanted(edges)
            };
            let all = self.populations().iter().enumerate();
            all.filter(move |(_, edges)| fits(edges))
                .map(move |(population, _)| Way { population, side })
        };
        let (any, undirected): (Wanted, Wanted) = (|_| true, |edges| !edges.population.is_directed);
        let ways =
            |out, into| along(Side::Out, out).chain(along(Side::In, into)).collect::<Vec<_>>();
        match direction {
            Direction::Out => ways(any, undirected),
            Direction::In => ways(undirected, any),
            Direction::Both => ways(any, any),
            Direction::Auto => match ways(any, undirected) {
                none if none.is_empty() => ways(undirected, any),
                some => some,
            },
        }
    }

    /// Whether there is a vertex.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Io`].
    pub fn has_vertex(&self, vertex_type: usize, id: u64) -> Result<bool> {
        let recent = self.state.recent.vertices(vertex_type);
        if let Some(is_there) = recent.and_then(|changes| changes.is_there.get(&id)) {
            return Ok(*is_there);
        }
        for level in self.state.levels.iter().rev() {
            let Some(vertices) = level.vertices(vertex_type)? else { continue };
            for (column, is_there) in [(&vertices.added, true), (&vertices.removed, false)] {
                if let Some(column) = column
                    && column.find(&level.segment, id)?.is_ok()
                {
                    return Ok(is_there);
                }
            }
        }
        Ok(false)
    }

    /// Shows `f` the ids of a type's vertices in a range, ascending, some at a time.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Io`]; those of `f`.
    pub fn vertices(
        &self,
        vertex_type: usize,
        ids: RangeInclusive<u64>,
        f: &mut dyn FnMut(&[u64]) -> Result<()>,
    ) -> Result<()> {
        let mut streams = super::merge::vertices(self, vertex_type, ids)?;
        let mut batch = Vec::with_capacity(super::merge::BATCH);
        while streams.next(&mut batch)? {
            f(&batch)?;
        }
        Ok(())
    }

    /// The numbers of the edges between two vertices, by a population; a 0 for an edge without.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Io`].
    pub fn edges_between(&self, population: usize, source: u64, target: u64) -> Result<Vec<u64>> {
        let (source, target) = self.in_order(population, source, target);
        let mut found: Vec<u64> = Vec::new();
        for level in &self.state.levels {
            let Some(edges) = level.edges(population, Side::Out)? else { continue };
            if let Some(lists) = &edges.removed {
                let gone = lists.between(&level.segment, source, target)?;
                found.retain(|number| !gone.contains(number));
            }
            if let Some(lists) = &edges.added {
                found.extend(lists.between(&level.segment, source, target)?);
            }
        }
        if let Some(change) =
            self.state.recent.edges(population).and_then(|c| c.side(Side::Out).get(&source))
        {
            found.retain(|number| change.removed.binary_search(&(target, *number)).is_err());
            let added = &change.added;
            let first = added.partition_point(|end| end.0 < target);
            found.extend(added[first..].iter().take_while(|end| end.0 == target).map(|end| end.1));
        }
        Ok(found)
    }

    /// The ends of an edge as they are kept: where it does not matter which is which, the lesser
    /// first.
    pub(super) fn in_order(&self, population: usize, source: u64, target: u64) -> (u64, u64) {
        let swap = self.populations()[population].is_symmetric() && source > target;
        if swap { (target, source) } else { (source, target) }
    }

    /// Whether there is an edge between two vertices, by a population.
    ///
    /// # Errors
    /// As [`Network::edges_between`].
    pub fn has_edge(&self, population: usize, source: u64, target: u64) -> Result<bool> {
        Ok(!self.edges_between(population, source, target)?.is_empty())
    }

    /// Which of these edges, ascending and with their ends in order, there are.
    pub(super) fn has_edges(&self, population: usize, edges: &[(u64, u64)]) -> Result<Vec<bool>> {
        let ways = [Way { population, side: Side::Out }];
        let groups: Vec<&[(u64, u64)]> = edges.chunk_by(|a, b| a.0 == b.0).collect();
        let sources: Vec<u64> = groups.iter().map(|group| group[0].0).collect();
        let degrees = self.degrees(&ways, &sources)?;
        let (mut out, mut list) = (Vec::with_capacity(edges.len()), Neighbours::default());
        for (group, degree) in groups.into_iter().zip(degrees) {
            let (source, is_long) = (group[0].0, degree > group.len() as u64 * WORTH);
            if !is_long {
                self.neighbours(&ways, &[source], &mut list)?;
            }
            for (_, target) in group {
                out.push(if is_long {
                    self.has_edge(population, source, *target)?
                } else {
                    list.ids.binary_search(target).is_ok()
                });
            }
        }
        Ok(out)
    }

    /// Which of these vertices, ascending, there are.
    pub(super) fn has_vertices(&self, vertex_type: usize, ids: &[u64]) -> Result<Vec<bool>> {
        let mut there = vec![None; ids.len()];
        if let Some(changes) = self.state.recent.vertices(vertex_type) {
            there
                .iter_mut()
                .zip(ids)
                .for_each(|(there, id)| *there = changes.is_there.get(id).copied());
        }
        for level in self.state.levels.iter().rev() {
            let Some(vertices) = level.vertices(vertex_type)? else { continue };
            for (column, is_there) in [(&vertices.added, true), (&vertices.removed, false)] {
                let Some(column) = column else { continue };
                let mut finder = column.finder(&level.segment);
                for (there, id) in there.iter_mut().zip(ids).filter(|(there, _)| there.is_none()) {
                    *there = finder.find(*id)?.ok().map(|_| is_there);
                }
            }
        }
        Ok(there.into_iter().map(|there| there == Some(true)).collect())
    }

    /// What its files take, and how many changes are in the log.
    pub fn storage(&self) -> Storage {
        let Manifest { segments, .. } = &*self.state.manifest;
        Storage {
            segments: segments.len(),
            bytes: segments.iter().map(|part| part.bytes).sum(),
            recent: self.state.recent.weight,
        }
    }
}

/// What a network's files take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storage {
    /// Segments.
    pub segments: usize,
    /// Bytes of the segments.
    pub bytes: u64,
    /// Edges and vertices in the log, which came or went since the last segment.
    pub recent: usize,
}

impl State {
    /// Opens what a manifest names; and the log's bytes that are whole.
    pub(super) fn open(disk: &dyn Disk, manifest: Manifest) -> Result<(Self, u64)> {
        let levels = manifest
            .segments
            .iter()
            .map(|part| Level::open(disk, &part.file, &manifest))
            .collect::<Result<Vec<_>>>()?;
        for level in &levels {
            if let Some(edges) =
                level.footer.edges.iter().find(|edges| edges.population >= manifest.edges.len())
            {
                return Err(unknown(level, "population", edges.population));
            }
            let mut vertices = level.footer.vertices.iter();
            if let Some(vertices) =
                vertices.find(|vertices| vertices.vertex_type >= manifest.types.len())
            {
                return Err(unknown(level, "type", vertices.vertex_type));
            }
        }
        let mut recent = Recent::default();
        let (populations, types) = (manifest.edges.len(), manifest.types.len());
        let whole = log::replay(disk, &manifest.log_file(), manifest.log, &mut |_, change| {
            effects::of_bytes(change, populations, types)?
                .iter()
                .for_each(|effect| recent.apply(effect));
            Ok(())
        })?;
        Ok((Self { manifest: Arc::new(manifest), levels, recent: Arc::new(recent) }, whole))
    }
}

fn unknown(level: &Level, what: &str, number: usize) -> Error {
    let fault = thalweg_io::Fault::new(
        0,
        format!("{what} {number}"),
        format!("one that `{}` names", manifest::FILE),
    );
    fault.in_file(level.segment.store().name(), 0, "footer of a segment")
}
