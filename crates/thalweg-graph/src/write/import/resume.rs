//! Checkpoints of an import, and continuing after one.

use thalweg_io::{Error, Result};

use super::ImportRun;
use crate::input::{ImportOrigin, Input};
use crate::storage::checkpoint::ImportCheckpoint;
use crate::storage::segment::SegmentWriter;
use crate::write::writer::Writer;

impl Writer {
    /// Discards the checkpoint of an interrupted import: the next import starts from the beginning.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn forget_import(&mut self) -> Result<()> {
        let mut manifest = (*self.network.state.manifest).clone();
        if manifest.unfinished.is_some() {
            self.save(&mut manifest)?;
            self.network.state.manifest = std::sync::Arc::new(manifest);
        }
        self.sweep()
    }

    /// Whether there is a checkpoint of the same file, with other contents or options.
    pub(super) fn has_checkpoint_of_changed(&self, origin: Option<&ImportOrigin>) -> bool {
        let unfinished = &self.network.state.manifest.unfinished;
        origin
            .zip(unfinished.as_ref())
            .is_some_and(|(new, old)| new.path == old.origin.path && *new != old.origin)
    }

    /// The segment and the checkpoint of an interrupted import of these populations, if there is
    /// one.
    pub(super) fn resumed(
        &self,
        input: &Input,
        populations: &[usize],
    ) -> Result<Option<(SegmentWriter, Box<ImportCheckpoint>)>> {
        let unfinished = self.network.state.manifest.unfinished.as_ref();
        let Some((origin, old)) = input.origin.as_ref().zip(unfinished) else { return Ok(None) };
        if self.has_checkpoint_of_changed(Some(origin)) {
            return Err(self.changed_input(origin, old, populations.len()));
        }
        let is_same = old.origin == *origin
            && old.written.len() <= populations.len()
            && old
                .written
                .iter()
                .zip(populations)
                .all(|(written, population)| written.population == *population);
        if !is_same {
            return Ok(None);
        }
        let segment = SegmentWriter::resume(&*self.network.disk, &old.file, old.pages, old.hash)?;
        Ok(segment.map(|segment| (segment, old.clone())))
    }

    fn changed_input(
        &self,
        origin: &ImportOrigin,
        old: &ImportCheckpoint,
        populations: usize,
    ) -> Error {
        let what = format!(
            "{}: the file or the options were others when an import of it into {} was stopped, \
             which kept {} of its {populations} populations: put it back as it was, or forget \
             what was kept (--anew)",
            origin.path,
            self.network.disk.name(),
            old.written.len(),
        );
        Error::Usage(what.into())
    }

    /// Makes the segment so far durable, and saves its checkpoint in the manifest. Readers do not
    /// see it.
    pub(super) fn save_checkpoint(
        &mut self,
        run: &mut ImportRun,
        origin: &ImportOrigin,
        next_file: u64,
    ) -> Result<()> {
        let hash = run.segment.sync()?;
        let checkpoint = ImportCheckpoint {
            origin: origin.clone(),
            file: run.file.clone(),
            pages: run.segment.pages(),
            hash,
            written: run.written.clone(),
            done: run.done,
        };
        let mut manifest = (*self.network.state.manifest).clone();
        manifest.next = next_file;
        manifest.unfinished = Some(Box::new(checkpoint));
        self.replace(&mut manifest)?;
        self.network.state.manifest = std::sync::Arc::new(manifest);
        Ok(())
    }
}
