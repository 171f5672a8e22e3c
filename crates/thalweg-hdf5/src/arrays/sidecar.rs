//! Finds and saves the index beside a file, which holds the file's metadata and says where its
//! chunks lie.

use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use thalweg_codec::splitmix::checksum;
use thalweg_io::index_fetch::fetch_index;
use thalweg_io::model::StoreModel;
use thalweg_io::new_file::{NewFile, create_parent};
use thalweg_io::open::Options;
use thalweg_io::plan::Budget;
use thalweg_io::sidecar::{index_places, places_to_keep, version};
use thalweg_io::store::Store;
use thalweg_io::urls::url;
use thalweg_io::{Error, InFile, Result};

use super::{ArrayFile, METADATA_SHARE};
use crate::array::{ElementPlace, Found};
use crate::extents::{
    DatasetChunks, Extents, IndexedFile, MAGIC, MOST_METADATA, START, SavedMetadata,
    checksum_of_start,
};
use crate::metadata::{FetchOptions, MetadataFile};

/// Two changes within this time, a tick of the kernel's clock, may get the same modification time.
const TICK: Duration = Duration::from_millis(20);
/// Two changes within this time may get the same modification time if times are whole seconds.
const COARSE_TICK: Duration = Duration::from_secs(2);

fn modified(meta: &Metadata) -> Option<i64> {
    let time = meta.modified().ok()?;
    let nanos = |time: Duration| i64::try_from(time.as_nanos()).ok();
    time.duration_since(UNIX_EPOCH)
        .map_or_else(|before| nanos(before.duration()).map(|nanos| -nanos), nanos)
}

/// The state of an open file; `None` if the file at its path has another size by now.
fn state(path: &Path, store: &dyn Store) -> Result<Option<IndexedFile>> {
    let size = store.size();
    let modified = match url(path) {
        // A store reads one version of an object only. Its tag stands for the time: an index beside
        // it may have been made of another version.
        Some(url) => version(url).map_or(0, |version| checksum(version.as_bytes()).cast_signed()),
        None => {
            let meta = fs::metadata(path).map_err(|e| Error::io(store.name(), "looking at", e))?;
            let Some(modified) = modified(&meta).filter(|_| meta.len() == size) else {
                return Ok(None);
            };
            modified
        }
    };
    let mut start = vec![0; size.min(START) as usize];
    store.read_at(0, &mut start)?;
    Ok(Some(IndexedFile { size, modified, start: checksum_of_start(&start) }))
}

/// Waits until a later change of the file is sure to get another modification time.
fn settle(path: &Path) {
    let Some(changed) = fs::metadata(path).and_then(|meta| meta.modified()).ok() else { return };
    let is_coarse = changed.duration_since(UNIX_EPOCH).is_ok_and(|time| time.subsec_nanos() == 0);
    let tick = if is_coarse { COARSE_TICK } else { TICK };
    // If the clock is behind the file's time, the wait is one tick.
    let since = SystemTime::now().duration_since(changed).unwrap_or_default();
    std::thread::sleep(tick.saturating_sub(since));
}

/// Loads the index at `place`; `None` if there is no file. The error says in words why the index
/// cannot be used.
fn load(place: &Path, most: u64) -> Option<Result<Extents, String>> {
    // Opening a pipe would block.
    let size = match fs::metadata(place) {
        Ok(meta) if meta.is_file() => meta.len(),
        Ok(_) => return Some(Err("it is no regular file".into())),
        Err(e) => return (e.kind() != ErrorKind::NotFound).then(|| Err(e.to_string())),
    };
    // An index is not larger than its file: an entry takes fewer bytes than an entry of HDF5's own
    // index.
    if size > most.max(START) {
        return Some(Err(format!("it has {size} bytes, and the file {most}")));
    }
    let mut bytes = Vec::with_capacity(size as usize);
    if let Err(e) = File::open(place).and_then(|file| file.take(size).read_to_end(&mut bytes)) {
        return Some(Err(e.to_string()));
    }
    Some(Extents::parse(bytes).map_err(|fault| fault.to_string()))
}

impl ArrayFile {
    /// The path of the index that says where chunks lie, if one is used.
    pub fn index(&self) -> Option<&Path> {
        self.index.as_deref()
    }

    /// Uses the index of the file if there is one. If an index cannot be used, adds the reason to
    /// the note.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub(super) fn find_index(&mut self, path: &Path) -> Result<()> {
        let mut why_not = None;
        let most = self.store.size();
        let fits = |place: &Path| {
            let extents = load(place, most)?.ok()?;
            state(path, &*self.store).ok()?.filter(|state| *state == extents.state())
        };
        fetch_index(path, most, &self.options, is_index, fits)?;
        for place in index_places(path) {
            let refused = match load(&place, self.store.size()) {
                None => continue,
                Some(Err(why)) => why,
                Some(Ok(_)) if self.file.is_unclosed() => {
                    "the file is still being written".to_owned()
                }
                Some(Ok(extents)) => match state(path, &*self.store) {
                    Ok(Some(state)) if state == extents.state() => {
                        self.file.know(extents);
                        self.index = Some(place);
                        return Ok(());
                    }
                    Err(error) => error.to_string(),
                    Ok(_) => "the file has changed since".to_owned(),
                },
            };
            why_not.get_or_insert_with(|| format!("{} is not used: {refused}", place.display()));
        }
        let notes = self
            .note
            .take()
            .into_iter()
            .chain(why_not.map(|why| format!("{why}; `thalweg index` makes a new one")));
        self.note = notes.reduce(|all, note| format!("{all}; {note}"));
        Ok(())
    }

    /// The metadata of all objects and attributes, but for the indexes of these chunks. None if
    /// they are too many.
    fn metadata_to_save(
        &self,
        state: IndexedFile,
        grids: &[DatasetChunks],
    ) -> Result<SavedMetadata> {
        let Options { model, budget: Budget { threads, memory }, .. } = self.options;
        let model = model.unwrap_or(StoreModel::LOCAL);
        let memory = (memory / METADATA_SHARE) as u64;
        let fetch = FetchOptions { model, threads, memory, in_rounds: false };
        let file = MetadataFile::open(self.store(), &self.options.control, fetch)?;
        let file = Arc::new(file.record());
        let none = SavedMetadata::default();
        let known = encoded(state, grids.to_vec(), &none, self.store())?;
        if let Ok(extents) = Extents::parse(known) {
            file.know(extents);
        }
        let entities = file.entities(vec![file.superblock().root])?;
        for address in entities.into_keys() {
            // Whoever asks for what cannot be read gets the error.
            let _ = file.at(address, "").attributes();
        }
        file.recorded(MOST_METADATA)
    }

    /// Saves an index that says where the chunks of all datasets lie. It goes to `place`; without
    /// one, to `FILE.idx` beside the file, or to the user's cache folder if the file's folder
    /// cannot be written. Returns the path of the index and the number of chunks.
    ///
    /// # Errors
    /// The first defect of the file; [`Error::Unsupported`] if the file is being written, or if a
    /// file of another kind has the index's name; [`Error::Usage`] if the file was opened with an
    /// index or without a path; [`Error::Io`] if the index cannot be written.
    pub fn write_index(&self, place: Option<&Path>) -> Result<(PathBuf, u64)> {
        let changing = || Error::Unsupported {
            file: self.store.name().clone(),
            what: "an index of a file that is being written".into(),
            advice: "wait until its writer has closed it".into(),
        };
        let Some(path) = self.path.as_deref() else {
            return Err(Error::Usage("an index belongs to a file: open it by its path".into()));
        };
        if self.index.is_some() {
            return Err(Error::Usage("the file was opened with its index: set `own_index`".into()));
        }
        settle(path);
        let Some(before) = state(path, &*self.store)? else { return Err(changing()) };
        // Metadata of the open file may be older, so the file is opened again.
        let options = Options { own_index: true, ..self.options.clone() };
        let anew = Self::of(self.store().clone(), self.file.other_files().clone(), options)?;
        let mut grids = Vec::new();
        for dataset in anew.datasets()? {
            let Found::Array(array) = &dataset.found else { continue };
            let ElementPlace::Chunked(chunk, chunks) = &array.place else { continue };
            // These chunks are made up, or the bits of their filters are.
            if array.pipeline.conversion().is_some() {
                continue;
            }
            let dimensions = array.shape.iter().copied().zip(chunk.iter().copied()).collect();
            grids.push(DatasetChunks {
                address: dataset.node.address(),
                dimensions,
                chunks: chunks.clone(),
            });
        }
        let chunks = grids.iter().map(|grid| grid.chunks.len() as u64).sum();
        let metadata = self.metadata_to_save(before, &grids)?;
        if anew.file.is_unclosed() || state(path, &*self.store)? != Some(before) {
            return Err(changing());
        }
        let bytes = encoded(before, grids, &metadata, &self.store)?;
        if let Some(place) = place {
            save(NewFile::replacing, place, &bytes)?;
            return Ok((place.to_owned(), chunks));
        }
        let mut failed = None;
        for place in places_to_keep(path, self.options.keep_index) {
            match save(sidecar, &place, &bytes) {
                Ok(()) => return Ok((place, chunks)),
                // The next place may be writable.
                Err(error @ Error::Io { .. }) => failed.get_or_insert(error),
                Err(error) => return Err(error),
            };
        }
        Err(failed.unwrap_or(Error::Cancelled))
    }
}

/// An index of the file in a store.
fn encoded(
    state: IndexedFile,
    grids: Vec<DatasetChunks>,
    metadata: &SavedMetadata,
    store: &Arc<dyn Store>,
) -> Result<Vec<u8>> {
    Extents::encode(state, grids, metadata)
        .map_err(|fault| fault.in_file(store.name(), 0, "the index"))
}

/// Whether a file that begins so is an index of arrays, as [`ArrayFile::write_index`] writes it.
pub fn is_index(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// A new index that replaces only another one.
fn sidecar(place: &Path) -> Result<NewFile> {
    NewFile::sidecar(place, is_index)
}

/// Writes an index, and creates its folder if necessary.
fn save(create: fn(&Path) -> Result<NewFile>, place: &Path, bytes: &[u8]) -> Result<()> {
    create_parent(place)?;
    create(place)?.finish_with(bytes)
}
