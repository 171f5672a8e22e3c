//! Reads by id: the sidecar index, and the places of a list of reads.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use thalweg_io::sidecar::{index_places, is_current};
use thalweg_io::{Error, InFile, Result};

use super::layout::Layout;
use super::{ReadFile, Selection};
use crate::record::{Entry, Index};
use crate::write::save_index;

/// How many missing ids a message names.
const NAMED: usize = 3;

/// Where an index came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexOrigin {
    /// It lay beside the file, or in the user's cache folder.
    Loaded,
    /// It was built by reading the file, and saved.
    Built,
    /// It was built by reading the file; it could be saved nowhere.
    Unsaved,
}

impl ReadFile {
    /// The index of the file: loaded where there is one that fits, else built and saved. It is held
    /// in memory, about 65 bytes a read; POD5's own, by which reads are found, is not, and
    /// [`ReadFile::load_index`] asks for no more.
    ///
    /// It lies beside the file as slow5tools names it (`reads.blow5.idx`), or in the user's cache
    /// folder where the file's own folder cannot be written. An index older than the file is built
    /// anew.
    ///
    /// # Errors
    /// A defect of the file, or an index beside it that is not one: that is somebody's file, and is
    /// not overwritten.
    pub fn index(&self) -> Result<(Arc<Index>, IndexOrigin)> {
        if let Some(index) = self.index.get() {
            return Ok((index.clone(), IndexOrigin::Loaded));
        }
        let (index, origin) = self.load_or_build()?;
        let index = self.index.get_or_init(|| Arc::new(index)).clone();
        Ok((index, origin))
    }

    /// The index of the file if there is one already: nothing is read but that.
    ///
    /// # Errors
    /// An index beside the file that is not one, or another file's.
    pub fn saved_index(&self) -> Result<Option<Arc<Index>>> {
        if let Some(index) = self.index.get() {
            return Ok(Some(index.clone()));
        }
        let Some(path) = &self.path else { return Ok(None) };
        let index = self.load(path)?;
        Ok(index.map(|index| self.index.get_or_init(|| Arc::new(index)).clone()))
    }

    /// How many reads the file has, if that is known without reading all of it: from the index, or
    /// from the heads of POD5's tables.
    ///
    /// # Errors
    /// As [`ReadFile::saved_index`]; a damaged table.
    pub fn known_reads(&self) -> Result<Option<u64>> {
        if let Layout::Pod5(file) = &self.layout {
            let rows = file.tables.rows(&self.options.control)?;
            return rows.into_iter().sum::<Result<u64>>().map(Some);
        }
        Ok(self.saved_index()?.map(|index| index.len() as u64))
    }

    /// Makes ready what reads by id need: as [`ReadFile::index`], but for a format with an index of
    /// its own kind that is all that is loaded or built.
    ///
    /// # Errors
    /// As [`ReadFile::index`].
    pub fn load_index(&self) -> Result<IndexOrigin> {
        match &self.layout {
            Layout::Pod5(file) => file.index(self).map(|(_, origin)| origin),
            _ => self.index().map(|(_, origin)| origin),
        }
    }

    /// The ids of all reads in the order of the file. Memory: what the ids take, about 70 bytes
    /// each.
    ///
    /// # Errors
    /// As [`ReadFile::index`], but for a read id that occurs twice.
    pub fn read_ids(&self) -> Result<Vec<String>> {
        if let Layout::Pod5(file) = &self.layout {
            return self.pod5_ids(file);
        }
        Ok(self.index()?.0.iter().map(|(id, _)| id.to_owned()).collect())
    }

    fn load(&self, path: &Path) -> Result<Option<Index>> {
        if let Layout::Fast5(file) = &self.layout {
            return file.index(self.store.name()).map(Some);
        }
        if let Layout::Pod5(file) = &self.layout {
            // Its own index knows rows and no sizes: enough for all but those who ask for this one.
            return Ok(if file.saved_index(self)?.is_some() {
                Some(self.pod5_entries(file)?)
            } else {
                None
            });
        }
        for place in index_places(path) {
            if is_current(&place, path)
                && let Some(index) = load(&place)?
            {
                let name: Arc<str> = place.to_string_lossy().into();
                index
                    .check(&self.header, self.store.size())
                    .map_err(|fault| fault.in_file(&name, 0, "index"))?;
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    fn load_or_build(&self) -> Result<(Index, IndexOrigin)> {
        if let Layout::Fast5(file) = &self.layout {
            return Ok((file.index(self.store.name())?, IndexOrigin::Unsaved));
        }
        if let Layout::Pod5(file) = &self.layout {
            let (_, origin) = file.index(self)?;
            return Ok((self.pod5_entries(file)?, origin));
        }
        let Some(path) = &self.path else { return Ok((self.build_index()?, IndexOrigin::Unsaved)) };
        if let Some(index) = self.load(path)? {
            return Ok((index, IndexOrigin::Loaded));
        }
        let index = self.build_index()?;
        let saved = index_places(path).any(|place| save_index(&index, &place).is_ok());
        Ok((index, if saved { IndexOrigin::Built } else { IndexOrigin::Unsaved }))
    }

    /// Builds the index by reading the file, decoding no more of each record than its read id
    /// takes.
    ///
    /// # Errors
    /// A defect of the file: a damaged record, a missing end, a read id that occurs twice.
    pub fn build_index(&self) -> Result<Index> {
        if let Layout::Pod5(file) = &self.layout {
            return self.pod5_entries(file);
        }
        let mut index = Index::new(self.header.version);
        for batch in self.ids()? {
            for (id, entry) in batch? {
                index.push(&id, entry).map_err(|fault| Error::Malformed {
                    file: self.store.name().clone(),
                    what: "read ids".into(),
                    offset: entry.offset,
                    found: fault.found,
                    expected: fault.expected,
                })?;
            }
        }
        Ok(index)
    }

    /// Builds the index and writes it to `place`, in the form that belongs to the file's format.
    ///
    /// # Errors
    /// As [`ReadFile::build_index`]; [`Error::Io`] when it cannot be written.
    pub fn write_index(&self, place: &Path) -> Result<()> {
        if let Layout::Pod5(file) = &self.layout {
            return file.write_index(self, place);
        }
        save_index(&self.build_index()?, place)
    }

    /// Where the selected reads lie, in the order of the selection. `None` for all of them.
    pub(super) fn places(&self, selection: &Selection) -> Result<Option<Vec<Range<u64>>>> {
        let Selection::Ids(ids) = selection else { return Ok(None) };
        let (index, _) = self.index()?;
        let mut missing = Vec::new();
        let mut places = Vec::with_capacity(ids.len());
        for id in ids.iter() {
            match index.get(id) {
                Some(Entry { offset, size }) => places.push(offset..offset + size),
                None => missing.push(id.as_str()),
            }
        }
        if missing.is_empty() { Ok(Some(places)) } else { Err(self.not_found(&missing, ids.len())) }
    }

    /// The error about some of `of` ids.
    pub(super) fn not_found(&self, missing: &[&str], of: usize) -> Error {
        let named = missing[..missing.len().min(NAMED)].join(", ");
        let more = if missing.len() > NAMED { ", ..." } else { "" };
        Error::NotFound {
            file: self.store.name().clone(),
            what: format!("{} of {of} reads ({named}{more})", missing.len()).into(),
            advice: "check the ids; if the file has changed, delete its .idx".into(),
        }
    }

    /// Which of `ids` the file has.
    ///
    /// # Errors
    /// As [`ReadFile::index`].
    pub(super) fn has<'i>(&self, ids: impl Iterator<Item = &'i str>) -> Result<Vec<bool>> {
        if let Layout::Pod5(file) = &self.layout {
            return file.has(self, ids);
        }
        let (index, _) = self.index()?;
        Ok(ids.map(|id| index.get(id).is_some()).collect())
    }
}

/// The index at `place`; `None` if it went away meanwhile.
pub(super) fn load(place: &Path) -> Result<Option<Index>> {
    let name: Arc<str> = place.to_string_lossy().into();
    match fs::read(place) {
        Ok(bytes) => {
            Index::parse(bytes).map(Some).map_err(|fault| fault.in_file(&name, 0, "index"))
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(&name, "reading", e)),
    }
}
