//! Moving the log to a segment, and starting and installing compactions.

use std::sync::Arc;

use thalweg_io::Result;
use thalweg_io::control::Control;
use thalweg_io::pool::Background;

use crate::read::memtable::Memtable;
use crate::read::network::Network;
use crate::read::snapshot::Snapshot;
use crate::storage::segment::SegmentEntry;
use crate::storage::segment_reader::SegmentReader;
use crate::write::compaction::{BackgroundCompaction, Compaction};
use crate::write::writer::Writer;

/// A compaction starts if there are more segments than this: a reader searches each of them.
const MOST_SEGMENTS: usize = 6;

impl Writer {
    /// Installs the result of a compaction that has finished, or starts one if there are many
    /// segments.
    pub(crate) fn advance_compaction(&mut self) -> Result<()> {
        if let Some(done) = self.background.take_if(|background| background.thread.is_finished()) {
            let part = match done.thread.join() {
                Ok(part) => part,
                // The network stays as it is; the next compaction may succeed.
                Err(_) => {
                    let _ = self.network.disk.remove(&done.file);
                    return Ok(());
                }
            };
            return self.replace_oldest(done.count, part);
        }
        if self.background.is_some() || self.network.state.readers.len() <= MOST_SEGMENTS {
            return Ok(());
        }
        self.start_compaction()
    }

    /// Starts a compaction of all segments, beside the changes that go on.
    fn start_compaction(&mut self) -> Result<()> {
        let Network { state, disk, .. } = &mut self.network;
        let file = Arc::make_mut(&mut state.manifest).new_file("seg");
        let control = Control::new();
        let job = {
            let manifest = state.manifest.clone();
            let readers = state.readers.clone();
            let disk = disk.clone();
            let coding = self.coding;
            let name = file.clone();
            let stop = control.clone();
            move || {
                let merged = Compaction {
                    manifest: &manifest,
                    readers: &readers,
                    memtable: None,
                    is_lowest: true,
                    coding,
                    control: &stop,
                };
                merged.write(&*disk, &name)
            }
        };
        let count = state.readers.len();
        let thread = Background::start("thalweg-compact", disk.name(), job)?;
        self.background = Some(BackgroundCompaction { thread, file, count, control });
        Ok(())
    }

    /// Replaces the `count` oldest segments by one with the same contents. The log stays.
    fn replace_oldest(&mut self, count: usize, part: SegmentEntry) -> Result<()> {
        let disk = self.network.disk.clone();
        let mut manifest = (*self.network.state.manifest).clone();
        let reader = SegmentReader::open(&*disk, &part, &manifest)?;
        let old: Vec<SegmentEntry> = manifest.segments.splice(..count, [part]).collect();
        self.save(&mut manifest)?;
        self.network.state.manifest = Arc::new(manifest);
        self.network.state.readers.splice(..count, [reader]);
        old.iter().try_for_each(|part| disk.remove(&part.file))
    }

    /// Moves the changes in the log to a segment.
    ///
    /// # Errors
    /// [`Error::Io`](thalweg_io::Error::Io), as on a full disk: the network stays as it was.
    pub fn flush(&mut self) -> Result<()> {
        self.log.check()?;
        if self.network.state.memtable.is_empty() {
            return Ok(());
        }
        self.log.sync()?;
        let mut manifest = (*self.network.state.manifest).clone();
        let file = manifest.new_file("seg");
        let memtable = self.network.state.memtable.clone();
        let first = self.network.state.readers.len();
        let merged = Compaction {
            manifest: &manifest,
            readers: &[],
            memtable: Some(&memtable),
            is_lowest: first == 0,
            coding: self.coding,
            control: &self.network.fetcher.control,
        };
        let part = merged.write(&*self.network.disk, &file)?;
        self.install_flushed(first, vec![part], manifest.next, &memtable)?;
        self.advance_compaction()
    }

    /// Writes all segments and the log as one segment.
    ///
    /// # Errors
    /// [`Error::Io`](thalweg_io::Error::Io), as on a full disk: the network stays as it was.
    pub fn compact(&mut self) -> Result<()> {
        self.log.check()?;
        if let Some(background) = self.background.take() {
            background.stop(&*self.network.disk);
        }
        let Snapshot { readers, memtable, .. } = &self.network.state;
        if readers.len() + usize::from(!memtable.is_empty()) < 2
            && !readers.iter().any(|reader| reader.is_partial)
        {
            return self.flush();
        }
        self.log.sync()?;
        let mut manifest = (*self.network.state.manifest).clone();
        let file = manifest.new_file("seg");
        let readers = self.network.state.readers.clone();
        let memtable = self.network.state.memtable.clone();
        let merged = Compaction {
            manifest: &manifest,
            readers: &readers,
            memtable: Some(&memtable),
            is_lowest: true,
            coding: self.coding,
            control: &self.network.fetcher.control,
        };
        let part = merged.write(&*self.network.disk, &file)?;
        self.install_flushed(0, vec![part], manifest.next, &memtable)
    }

    /// Installs segments that hold the log's changes, and counts these.
    fn install_flushed(
        &mut self,
        first: usize,
        parts: Vec<SegmentEntry>,
        next: u64,
        memtable: &Memtable,
    ) -> Result<()> {
        self.install(first, parts, |manifest| {
            manifest.log = next;
            manifest.next = next + 1;
            for (number, vertices) in manifest.types.iter_mut().enumerate() {
                let more = memtable.vertices(number).map_or(0, |changes| changes.more);
                vertices.count = vertices.count.saturating_add_signed(more);
            }
            for (number, edges) in manifest.edges.iter_mut().enumerate() {
                let Some(changes) = memtable.edges(number) else { continue };
                edges.count = edges.count.saturating_add_signed(changes.more);
                edges.next = edges.next.max(changes.next);
            }
        })
    }
}
