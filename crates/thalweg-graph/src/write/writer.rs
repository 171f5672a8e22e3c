//! Changes to a network.

use crate::write::change::Change;
use crate::write::change::Committed;
use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_schema::SchemaRef;
use thalweg_io::disk::{Disk, Folder};
use thalweg_io::{Error, Result};

use crate::read::network::{Network, NetworkOptions};
use crate::read::snapshot::Snapshot;
use crate::storage::log::LogWriter;
use crate::storage::log_record::{self, LogRecord};
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::schema::{Population, PopulationEntry, VertexType};
use crate::storage::segment_reader::SegmentReader;
use crate::write::compaction::BackgroundCompaction;

/// The only one who may change a network. Others see a change when it is committed and they open
/// the network again.
pub struct Writer {
    pub(crate) network: Network,
    pub(crate) log: LogWriter,
    pub(crate) coding: crate::storage::column::Coding,
    pub(crate) background: Option<BackgroundCompaction>,
    /// How long an import works before it makes sure that it need not do so again.
    pub(crate) keep_every: Duration,
    _lock: Box<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("network", &self.network).finish_non_exhaustive()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(background) = self.background.take() {
            background.stop(&*self.network.disk);
        }
    }
}

/// Changes in the log, by edges and vertices, beyond which they go to a segment: what a reader has
/// to keep in memory, about 100 bytes each.
const LONG_LOG: usize = 1 << 20;

/// The same, of a log that nobody goes on with: reading it again takes each reader some
/// milliseconds.
const LEFT_LOG: usize = 1 << 14;

/// What making sure takes is little beside that.
const KEEP_EVERY: Duration = Duration::from_secs(1);

impl Writer {
    /// Opens the network in a folder to change it, and makes one if there is none.
    ///
    /// # Errors
    /// [`Error::Usage`] while another one writes; else as [`Network::open`].
    pub fn open(path: &Path, options: NetworkOptions) -> Result<Self> {
        Self::open_on(Arc::new(Folder::new(path, options.is_mapped)), options)
    }

    /// The same on any disk.
    ///
    /// # Errors
    /// As [`Writer::open`].
    pub fn open_on(disk: Arc<dyn Disk>, options: NetworkOptions) -> Result<Self> {
        let Some(lock) = disk.lock()? else {
            let what =
                format!("{}: another process writes to it; only one can at a time", disk.name());
            return Err(Error::Usage(what.into()));
        };
        if Manifest::load(&*disk)?.is_none() {
            let mut manifest = Manifest::new();
            drop(LogWriter::create(&*disk, &manifest.log_file(), manifest.log)?);
            manifest.save(&*disk)?;
        }
        let network = Network::open_on(disk.clone(), options)?;
        let manifest = &network.state.manifest;
        // What the manifest came to replace must not go before it is there for good.
        disk.sync()?;
        for stray in manifest.strays(&*disk)? {
            disk.remove(&stray)?;
        }
        // Once more, for what was whole at its end.
        let (_, whole) = Snapshot::open(&*disk, (**manifest).clone())?;
        let log = LogWriter::append(&*disk, &manifest.log_file(), whole)?;
        Ok(Self {
            network,
            log,
            coding: crate::storage::column::Coding::Packed,
            background: None,
            keep_every: KEEP_EVERY,
            _lock: lock,
        })
    }

    /// The network as it is now.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// How the ids of neighbours are kept in segments from now on: packed, unless this says
    /// otherwise.
    pub fn set_coding(&mut self, coding: crate::storage::column::Coding) {
        self.coding = coding;
    }

    /// How long an import of a file works, at least, before it keeps what it has for one that is to
    /// go on; a second, unless this says otherwise. It does so between populations only.
    pub fn set_keep_every(&mut self, time: Duration) {
        self.keep_every = time;
    }

    /// The number of the type of a name, which is made if there is none.
    ///
    /// # Errors
    /// [`Error::Usage`] if it has other attributes; [`Error::Io`].
    pub fn vertex_type(&mut self, name: &str, attributes: &SchemaRef) -> Result<usize> {
        let mut manifest = (*self.network.state.manifest).clone();
        let number = self.type_in(&mut manifest, name, attributes)?;
        self.define(manifest)?;
        Ok(number)
    }

    /// The same in a manifest that is not saved yet.
    pub(crate) fn type_in(
        &self,
        manifest: &mut Manifest,
        name: &str,
        attributes: &SchemaRef,
    ) -> Result<usize> {
        self.check_plain(attributes)?;
        let Some(number) = manifest.type_of(name) else {
            manifest.types.push(VertexType {
                name: name.to_owned(),
                attributes: attributes.clone(),
                count: 0,
                since: 0,
            });
            return Ok(manifest.types.len() - 1);
        };
        let known = &mut manifest.types[number].attributes;
        if known.fields() == attributes.fields() || attributes.fields().is_empty() {
            return Ok(number);
        }
        if !known.fields().is_empty() {
            return Err(self.differs(&format!("vertices of type {name:?}"), known, attributes));
        }
        known.clone_from(attributes);
        Ok(number)
    }

    /// The number of a population, which is made if there is none of its name; so are the types of
    /// its vertices.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is another one of its name; [`Error::Io`].
    pub fn population(&mut self, population: &Population) -> Result<usize> {
        let mut manifest = (*self.network.state.manifest).clone();
        let number = self.population_in(&mut manifest, population)?;
        self.define(manifest)?;
        Ok(number)
    }

    /// The same in a manifest that is not saved yet.
    pub(crate) fn population_in(
        &self,
        manifest: &mut Manifest,
        population: &Population,
    ) -> Result<usize> {
        self.check_plain(&population.attributes)?;
        if let Some(number) = manifest.population(&population.name) {
            let known = &manifest.edges[number].population;
            let same = Population { attributes: population.attributes.clone(), ..known.clone() }
                == *population;
            if !same {
                let what = format!(
                    "{}: there is a population {known:?}, other than {population:?}",
                    self.name()
                );
                return Err(Error::Usage(what.into()));
            }
            if known.attributes.fields() != population.attributes.fields() {
                let what = format!("edges of {:?}", known.name);
                return Err(self.differs(&what, &known.attributes, &population.attributes));
            }
            return Ok(number);
        }
        let none = Arc::new(arrow_schema::Schema::empty());
        let source = self.type_in(manifest, &population.source, &none)?;
        let target = self.type_in(manifest, &population.target, &none)?;
        manifest.edges.push(PopulationEntry {
            population: population.clone(),
            source,
            target,
            count: 0,
            next: 0,
            since: 0,
        });
        Ok(manifest.edges.len() - 1)
    }

    pub(crate) fn differs(&self, what: &str, known: &SchemaRef, given: &SchemaRef) -> Error {
        let names = |schema: &SchemaRef| {
            schema
                .fields()
                .iter()
                .map(|f| format!("{} {}", f.name(), f.data_type()))
                .collect::<Vec<_>>()
                .join(", ")
        };
        Error::Usage(
            format!(
                "{}: {what} have the attributes [{}], not [{}]",
                self.name(),
                names(known),
                names(given)
            )
            .into(),
        )
    }

    /// Attributes are kept as one batch of values, without dictionaries beside it.
    fn check_plain(&self, schema: &SchemaRef) -> Result<()> {
        let has_dictionary = |field: &&arrow_schema::FieldRef| {
            matches!(field.data_type(), arrow_schema::DataType::Dictionary(..))
        };
        match schema.fields().iter().find(has_dictionary) {
            None => Ok(()),
            Some(field) => {
                let what = format!(
                    "{}: attribute {:?} is {}; cast it to its values",
                    self.name(),
                    field.name(),
                    field.data_type()
                );
                Err(Error::Usage(what.into()))
            }
        }
    }

    fn define(&mut self, mut manifest: Manifest) -> Result<()> {
        if manifest != *self.network.state.manifest {
            self.save(&mut manifest)?;
            self.network.state.manifest = Arc::new(manifest);
        }
        Ok(())
    }

    /// Puts a manifest in the place of the one that is there. Where that fails, either may be what
    /// others find: nothing must be added to what only one of them names.
    pub(crate) fn save(&mut self, manifest: &mut Manifest) -> Result<()> {
        // What was brought in was new to the network as it was.
        manifest.unfinished = None;
        self.replace(manifest)
    }

    /// The same, with an import that is not finished.
    pub(crate) fn replace(&mut self, manifest: &mut Manifest) -> Result<()> {
        self.log.check()?;
        let outcome = manifest.save(&*self.network.disk);
        if outcome.is_err() {
            self.log.give_up();
        }
        outcome
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        self.network.disk.name()
    }

    /// Makes changes, in their order, all of them or none. Once it returns, they are there for
    /// good.
    ///
    /// # Errors
    /// [`Error::Usage`] for what cannot be done: nothing is. [`Error::Io`]: whether the changes are
    /// there shows when the network is opened again.
    pub fn commit(&mut self, changes: Vec<Change>) -> Result<Committed> {
        match changes[..] {
            [Change::ClearEdges { population }] => return self.truncate_population(population),
            [Change::ClearVertices { vertex_type }] => return self.truncate_type(vertex_type),
            _ => {}
        }
        let committed = self.push(changes)?;
        self.log.sync()?;
        if self.network.state.memtable.weight > LONG_LOG {
            self.flush()?;
        } else if self.background.is_some() {
            self.tidy()?;
        }
        Ok(committed)
    }

    /// The same, durable only once [`Writer::commit`] or [`Writer::sync`] has returned.
    ///
    /// # Errors
    /// As [`Writer::commit`].
    pub fn push(&mut self, changes: Vec<Change>) -> Result<Committed> {
        // Each sees what those before it did.
        let is_one = changes.len() == 1;
        let mut all = Vec::new();
        for change in changes {
            match self.records_for(change) {
                Ok(records) if is_one => all = records,
                Ok(records) => {
                    self.apply(&records);
                    all.extend(records);
                }
                Err(e) => {
                    self.restore(&all)?;
                    return Err(e);
                }
            }
        }
        let logged = if all.is_empty() {
            Ok(())
        } else {
            log_record::to_bytes(&all).and_then(|bytes| self.log.push(&bytes))
        };
        match logged {
            Ok(()) if is_one => self.apply(&all),
            Ok(()) => {}
            Err(e) => {
                self.restore(if is_one { &[] } else { &all })?;
                return Err(e);
            }
        }
        let mut done = Committed::default();
        for record in &all {
            match record {
                LogRecord::EdgesAdded { edges, .. } => done.edges_added += edges.len() as u64,
                LogRecord::EdgesRemoved { edges, .. } => done.edges_removed += edges.len() as u64,
                LogRecord::VerticesAdded { ids, .. } => done.vertices_added += ids.len() as u64,
                LogRecord::VerticesRemoved { ids, .. } => done.vertices_removed += ids.len() as u64,
                LogRecord::AttributesSet { .. } => {}
            }
        }
        Ok(done)
    }

    fn apply(&mut self, records: &[LogRecord]) {
        let memtable = Arc::make_mut(&mut self.network.state.memtable);
        records.iter().for_each(|record| memtable.apply(record));
    }

    /// Undoes what was done in memory only: reads the log again.
    fn restore(&mut self, done: &[LogRecord]) -> Result<()> {
        if !done.is_empty() {
            let (state, _) =
                Snapshot::open(&*self.network.disk, (*self.network.state.manifest).clone())?;
            self.network.state.memtable = state.memtable;
        }
        Ok(())
    }

    /// Makes all changes durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&mut self) -> Result<()> {
        self.log.sync()
    }

    /// Leaves the network so that it is opened quickly: what is in the log goes to a segment, if it
    /// is much. Without it nothing is lost.
    ///
    /// # Errors
    /// [`Error::Io`]: what was committed is there all the same.
    pub fn finish(&mut self) -> Result<()> {
        if self.network.state.memtable.weight > LEFT_LOG { self.flush() } else { Ok(()) }
    }

    /// Replaces the segments from the `first` on, and the log, by a segment that is written
    /// already.
    pub(crate) fn install(
        &mut self,
        first: usize,
        parts: Vec<SegmentEntry>,
        change: impl FnOnce(&mut Manifest),
    ) -> Result<()> {
        let disk = self.network.disk.clone();
        let old = self.network.state.manifest.clone();
        let mut manifest = (*old).clone();
        manifest.segments.truncate(first);
        manifest.segments.extend(parts);
        manifest.next = manifest.next.max(old.next);
        manifest.log = manifest.next;
        manifest.next += 1;
        change(&mut manifest);
        let log = LogWriter::create(&*disk, &manifest.log_file(), manifest.log)?;
        let mut readers = self.network.state.readers[..first].to_vec();
        for part in &manifest.segments[first..] {
            let known = self.network.state.readers.iter().find(|reader| reader.file == part.file);
            readers.push(match known {
                Some(reader) => reader.clone(),
                None => SegmentReader::open(&*disk, &part.file, &manifest)?,
            });
        }
        self.save(&mut manifest)?;
        self.log = log;
        self.network.state =
            Snapshot { manifest: Arc::new(manifest), readers, memtable: Arc::default() };
        self.sweep()
    }

    /// Removes files that are no part of the network.
    pub(crate) fn sweep(&self) -> Result<()> {
        let Self { network: Network { disk, state, .. }, background, .. } = self;
        let busy = background.as_ref().map(|background| &background.file);
        let strays = state.manifest.strays(&**disk)?;
        strays.iter().filter(|stray| Some(*stray) != busy).try_for_each(|stray| disk.remove(stray))
    }
}
