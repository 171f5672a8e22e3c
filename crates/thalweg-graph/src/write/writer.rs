//! The writer of a network: opening, committing, and replacing the manifest.

use crate::write::change::Change;
use crate::write::change::Committed;
use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thalweg_io::disk::{Disk, Folder};
use thalweg_io::urls::url;
use thalweg_io::{Error, Result};

use crate::read::network::{Network, NetworkOptions, no_manifest, read_only};
use crate::read::snapshot::Snapshot;
use crate::storage::log::{self, LogWriter};
use crate::storage::log_record::{self, LogRecord};
use crate::storage::manifest::{self, Manifest};
use crate::storage::segment::SegmentEntry;
use crate::storage::segment_reader::SegmentReader;
use crate::write::compaction::BackgroundCompaction;

/// Changes a network. There is one writer at a time. Readers see a change when they open the
/// network after it was committed.
pub struct Writer {
    pub(crate) network: Network,
    pub(crate) log: LogWriter,
    pub(crate) coding: crate::storage::column::NumberCoding,
    pub(crate) background: Option<BackgroundCompaction>,
    /// The time between two checkpoints of an import.
    pub(crate) checkpoint_interval: Duration,
    /// Whether there was no network before.
    is_new: bool,
    /// The folders that were made for it, the innermost first.
    new_folders: Vec<PathBuf>,
    /// Whether definitions wait for the next commit.
    pub(crate) defers: bool,
    /// The manifest before definitions that wait.
    pub(crate) before: Option<Arc<Manifest>>,
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

/// A commit moves the log to a segment if it holds more changed edges and vertices than this: every
/// reader keeps them in memory, at about 100 bytes each.
const MOST_LOGGED: usize = 1 << 20;

/// A finished writer moves the log to a segment if it holds more changed edges and vertices than
/// this: replaying it takes each reader some milliseconds.
const MOST_LOGGED_AT_END: usize = 1 << 14;

/// The default time between two checkpoints of an import. A checkpoint takes much less than this.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);

/// Refuses to make a network among files that are not those of a network. A network that a crash
/// left without a manifest has none.
fn check_has_no_other_files(disk: &dyn Disk) -> Result<()> {
    let names = match disk.list() {
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(());
        }
        names => names?,
    };
    let Some(other) = names.iter().find(|name| !manifest::is_of_network(name)) else {
        return Ok(());
    };
    let store = disk.name();
    let advice = "name a folder that is empty or not there";
    Err(Error::Usage(format!("{store}: no network, but another file, {other}; {advice}").into()))
}

/// Removes folders, the innermost first. A folder that holds something stays.
fn remove_empty(folders: &[PathBuf]) {
    folders.iter().for_each(|folder| drop(std::fs::remove_dir(folder)));
}

impl Writer {
    /// Opens the network in a folder for changes. An empty network is created if there is none.
    ///
    /// # Errors
    /// [`Error::Usage`] while another process has a writer, and for a folder of other files without
    /// a network; [`Error::Unsupported`] for a URL; else as [`Network::open`].
    pub fn open(path: &Path, options: NetworkOptions) -> Result<Self> {
        if let Some(url) = url(path) {
            return Err(read_only(url));
        }
        let missing = path.ancestors().take_while(|folder| !folder.exists());
        let new_folders: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        let mut writer = Self::open_on(Arc::new(Folder::new(path, options.is_mapped)), options)
            .inspect_err(|_| remove_empty(&new_folders))?;
        writer.new_folders = new_folders;
        Ok(writer)
    }

    /// Opens the network on a disk for changes: [`Writer::open`] for disks other than folders.
    ///
    /// # Errors
    /// As [`Writer::open`].
    pub fn open_on(disk: Arc<dyn Disk>, options: NetworkOptions) -> Result<Self> {
        if Manifest::load(&*disk)?.is_none() {
            // A new network would replace the files of the one that lost its manifest.
            if manifest::has_copy(&*disk) {
                return Err(no_manifest(&*disk));
            }
            check_has_no_other_files(&*disk)?;
        }
        let Some(lock) = disk.lock()? else {
            let what =
                format!("{}: another process writes to it; only one can at a time", disk.name());
            return Err(Error::Usage(what.into()));
        };
        let is_new = Manifest::load(&*disk)?.is_none();
        let opened = Self::open_locked(&disk, options, is_new);
        if opened.is_err() && is_new {
            // The failure that is told is the first one.
            let _ = manifest::remove_all(&*disk);
        }
        let (network, log) = opened?;
        Ok(Self {
            network,
            log,
            coding: crate::storage::column::NumberCoding::Packed,
            background: None,
            checkpoint_interval: CHECKPOINT_INTERVAL,
            is_new,
            new_folders: Vec::new(),
            defers: false,
            before: None,
            _lock: lock,
        })
    }

    /// Opens a network that this process has locked, and its log to append to.
    fn open_locked(
        disk: &Arc<dyn Disk>,
        options: NetworkOptions,
        is_new: bool,
    ) -> Result<(Network, LogWriter)> {
        if is_new {
            let mut manifest = Manifest::new();
            drop(LogWriter::create(&**disk, &manifest.log_file(), manifest.log)?);
            manifest.save(&**disk)?;
        }
        let network = Network::open_on(disk.clone(), options)?;
        let manifest = &network.state.manifest;
        // The manifest must be durable before the files that only an older one names are removed.
        disk.sync()?;
        for stray in manifest.strays(&**disk)? {
            disk.remove(&stray)?;
        }
        // The log is read once more, to find where its whole changes end.
        let (file, control) = (manifest.log_file(), &network.fetcher.control);
        let whole = log::replay(&**disk, &file, manifest.log, control, &mut |_, _| Ok(()))?;
        let log = LogWriter::append(&**disk, &file, whole)?;
        Ok((network, log))
    }

    /// Removes the network's files, and the folders that were made for it, if this writer made the
    /// network and nothing has come into it: after an import that failed. A checkpoint, from which
    /// an import goes on, is something.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn undo_new(self) -> Result<()> {
        let Snapshot { manifest, memtable, .. } = &self.network.state;
        let is_empty = manifest.segments.is_empty() && memtable.weight == 0;
        if !self.is_new || !is_empty || manifest.unfinished.is_some() {
            return Ok(());
        }
        manifest::remove_all(&*self.network.disk)?;
        remove_empty(&self.new_folders);
        Ok(())
    }

    /// The network with all changes of this writer.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Sets how segments store the ids of neighbours from now on. The default is packed.
    pub fn set_coding(&mut self, coding: crate::storage::column::NumberCoding) {
        self.coding = coding;
    }

    /// Sets the least time between two checkpoints of an import. The default is a second.
    /// Checkpoints are made between two populations only.
    pub fn set_checkpoint_interval(&mut self, time: Duration) {
        self.checkpoint_interval = time;
    }

    /// Replaces the manifest. After an error, readers may find the old one or the new one, so the
    /// writer rejects further changes.
    pub(crate) fn save(&mut self, manifest: &mut Manifest) -> Result<()> {
        // The checkpoint of an import is valid only for the network as it was.
        manifest.unfinished = None;
        self.replace(manifest)
    }

    /// Replaces the manifest, and keeps the checkpoint of an import.
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

    /// Makes changes in their order, all of them or none. They are durable when this returns.
    ///
    /// # Errors
    /// [`Error::Usage`] for a change that is not possible: nothing is changed then. [`Error::Io`]:
    /// opening the network again shows whether the changes were made, as after
    /// [`Error::Cancelled`].
    pub fn commit(&mut self, changes: Vec<Change>) -> Result<Committed> {
        match changes[..] {
            [Change::ClearEdges { population }] if self.before.is_none() => {
                return self.truncate_population(population);
            }
            [Change::ClearVertices { vertex_type }] if self.before.is_none() => {
                return self.truncate_type(vertex_type);
            }
            _ => {}
        }
        let committed = self.push(changes).inspect_err(|_| self.forget_definitions())?;
        self.before = None;
        self.log.sync()?;
        if self.network.state.memtable.weight > MOST_LOGGED {
            self.flush()?;
        } else if self.background.is_some() {
            self.advance_compaction()?;
        }
        Ok(committed)
    }

    /// From now on, types and populations are defined together with the next commit: if it fails,
    /// they are not. A crash while it is made may leave them, without vertices and edges.
    pub fn define_with_next_commit(&mut self) {
        self.defers = true;
    }

    /// Saves the definitions that wait for this commit.
    fn save_definitions(&mut self) -> Result<()> {
        if self.before.is_some() {
            let mut manifest = (*self.network.state.manifest).clone();
            self.save(&mut manifest)?;
            self.network.state.manifest = Arc::new(manifest);
        }
        Ok(())
    }

    fn forget_definitions(&mut self) {
        if let Some(before) = self.before.take() {
            let mut manifest = (*before).clone();
            let saved = self.network.state.manifest.number;
            if manifest.number != saved {
                manifest.number = saved;
                // The failure that is told is the first one.
                let _ = self.save(&mut manifest);
            }
            self.network.state.manifest = Arc::new(manifest);
        }
    }

    /// Makes changes in their order, all of them or none. They are durable once [`Writer::commit`]
    /// or [`Writer::sync`] has returned.
    ///
    /// # Errors
    /// As [`Writer::commit`].
    pub fn push(&mut self, changes: Vec<Change>) -> Result<Committed> {
        // Each change sees the effects of those before it.
        let is_one = changes.len() == 1;
        let mut all = Vec::new();
        for change in changes {
            match self.records_for(change) {
                Ok(records) if is_one => all = records,
                Ok(records) => {
                    self.apply(&records)?;
                    all.extend(records);
                }
                Err(e) => {
                    self.restore(&all)?;
                    return Err(e);
                }
            }
        }
        let logged = self.save_definitions().and_then(|()| match all.is_empty() {
            true => Ok(()),
            false => log_record::to_bytes(&all).and_then(|bytes| self.log.push(&bytes)),
        });
        match logged {
            Ok(()) if is_one => self.apply(&all)?,
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

    fn apply(&mut self, records: &[LogRecord]) -> Result<()> {
        let Network { state, fetcher, .. } = &mut self.network;
        let memtable = Arc::make_mut(&mut state.memtable);
        let applied =
            records.iter().try_for_each(|record| memtable.apply(record, &fetcher.control));
        if applied.is_err() {
            // The memtable may hold a part of the changes, and nothing may come after a part.
            self.log.give_up();
        }
        applied
    }

    /// Undoes changes that were made in memory only, by replaying the log.
    fn restore(&mut self, done: &[LogRecord]) -> Result<()> {
        if !done.is_empty() {
            let Network { disk, state, fetcher } = &self.network;
            let manifest = (*state.manifest).clone();
            let state = Snapshot::open(&**disk, manifest, &fetcher.control, None)?;
            self.network.state.memtable = state.memtable;
        }
        Ok(())
    }

    /// Makes all changes so far durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&mut self) -> Result<()> {
        self.log.sync()
    }

    /// Moves the log to a segment if it is long, so that the network opens quickly. Without this
    /// call nothing is lost.
    ///
    /// # Errors
    /// [`Error::Io`]: the committed changes remain in the log.
    pub fn finish(&mut self) -> Result<()> {
        if self.network.state.memtable.weight > MOST_LOGGED_AT_END { self.flush() } else { Ok(()) }
    }

    /// Replaces the segments from number `first` on, and the log, by segments that are written
    /// already. `change` updates the new manifest.
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
                None => SegmentReader::open(&*disk, part, &manifest)?,
            });
        }
        self.save(&mut manifest)?;
        self.log = log;
        self.network.state =
            Snapshot { manifest: Arc::new(manifest), readers, memtable: Arc::default() };
        self.sweep()
    }

    /// Removes files that are not part of the network.
    pub(crate) fn sweep(&self) -> Result<()> {
        let Self { network: Network { disk, state, .. }, background, .. } = self;
        let busy = background.as_ref().map(|background| &background.file);
        let strays = state.manifest.strays(&**disk)?;
        strays.iter().filter(|stray| Some(*stray) != busy).try_for_each(|stray| disk.remove(stray))
    }
}
