//! Finding reads by id.

use std::path::Path;
use std::sync::Arc;

use thalweg_io::index_fetch::fetch_index;
use thalweg_io::new_file::{NewFile, create_parent};
use thalweg_io::sidecar::{index_places, is_current, places_to_keep};
use thalweg_io::{Error, Fault, InFile, Result};

use super::Pod5File;
use super::index::{Owner, Pod5Index};
use super::look_ahead::WantedReads;
use super::lookup::{Lookup, Needed};
use super::work_list::WorkList;
use crate::file::{IndexOrigin, OpenFile, Selection};
use crate::pod5::{UUID_BYTES, format_uuid, parse_uuid};
use crate::record::{Entry, Index};

/// Batch of the Reads table, and row in it.
type Row = (usize, usize);

/// Batches of the Reads table fetched at a time.
const AHEAD: usize = 4;

impl Pod5File {
    fn owner(&self, file: &OpenFile) -> Owner {
        Owner::new(file.store.size(), &self.container.file_identifier, &self.tables)
    }

    /// The saved index, if a current one exists.
    pub(crate) fn saved_rows(&self, file: &OpenFile) -> Result<Option<Arc<Pod5Index>>> {
        if let Some(index) = self.tables.index.get() {
            return Ok(Some(index));
        }
        let Some(path) = &file.path else { return Ok(None) };
        for place in index_places(path) {
            if is_current(&place, path)
                && let Some(index) = Pod5Index::open(&place, self.owner(file))?
            {
                return Ok(Some(self.tables.index.keep(index)));
            }
        }
        Ok(None)
    }

    /// The index that lies beside an object at a URL, if there is one that fits.
    pub(super) fn fetch_rows(&self, file: &OpenFile) -> Result<Option<Arc<Pod5Index>>> {
        let Some(path) = &file.path else { return Ok(None) };
        let owner = self.owner(file);
        let fits = |place: &Path| {
            let index = Pod5Index::open(place, owner).ok().flatten();
            index.filter(|index| index.verify().is_ok())
        };
        let size = file.store.size();
        let index = fetch_index(path, size, &file.options, Pod5Index::is_start, fits)?;
        Ok(index.map(|index| self.tables.index.keep(index)))
    }

    /// The index: the saved one, or a new one, which is saved if possible.
    pub(crate) fn row_index(&self, file: &OpenFile) -> Result<(Arc<Pod5Index>, IndexOrigin)> {
        if let Some(index) = self.saved_rows(file)? {
            return Ok((index, IndexOrigin::Loaded));
        }
        if let Some(index) = self.fetch_rows(file)? {
            return Ok((index, IndexOrigin::Loaded));
        }
        self.new_rows(file)
    }

    /// A new index, which is saved if possible.
    fn new_rows(&self, file: &OpenFile) -> Result<(Arc<Pod5Index>, IndexOrigin)> {
        let owner = self.owner(file);
        let options = &file.options;
        let build = |new: Option<NewFile>| {
            Pod5Index::build(&self.tables, owner, new, options.budget.memory, &options.control)
        };
        let keep = |index| self.tables.index.keep(index);
        let places = |path| places_to_keep(path, options.keep_index);
        for place in file.path.as_deref().into_iter().flat_map(places) {
            if create_parent(&place).is_ok()
                && let Ok(new) = NewFile::sidecar(&place, Pod5Index::is_start)
            {
                match build(Some(new)) {
                    Ok(index) => {
                        options.index_kept.inspect(|kept| kept(&place));
                        return Ok((keep(index), IndexOrigin::Built));
                    }
                    // Writing failed at this place; it may succeed at the next one.
                    Err(Error::Io { file: name, .. }) if name != *file.store.name() => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok((keep(build(None)?), IndexOrigin::Unsaved))
    }

    /// Builds the index at `place`.
    pub(crate) fn write_row_index(&self, file: &OpenFile, place: &Path) -> Result<()> {
        let memory = file.options.budget.memory;
        let control = &file.options.control;
        create_parent(place)?;
        let new = NewFile::replacing(place)?;
        Pod5Index::write_to(&self.tables, self.owner(file), new, memory, control)
    }

    /// The place of a read in the Reads table. If the index turns out to be damaged, a new one
    /// takes its place: the file itself says where its reads are.
    pub(super) fn row(&self, file: &OpenFile, id: &str) -> Result<Option<Row>> {
        // Ids are formatted in lower case. As in the other formats, ids that differ in case are
        // different ids.
        let Some(uuid) = parse_uuid(id).filter(|_| !id.bytes().any(|b| b.is_ascii_uppercase()))
        else {
            return Ok(None);
        };
        let (index, _) = self.row_index(file)?;
        let rows = match index.candidates(&uuid) {
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(damage) => {
                let warning = format!("{damage}: a new index is made of the file");
                self.tables.index.warn(&file.options.control, &warning);
                self.tables.index.drop(&index);
                let (index, _) = self.new_rows(file)?;
                index.candidates(&uuid)?
            }
            rows => rows?,
        };
        if rows.len() < 2 {
            return Ok(rows.first().copied());
        }
        for row in rows {
            if self.id_of(file, row)? == uuid {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    fn id_of(&self, file: &OpenFile, (index, row): Row) -> Result<[u8; UUID_BYTES]> {
        let gone =
            || Fault::new(0, "nothing", "a read id").in_file(file.store.name(), 0, "Reads table");
        let batch = self
            .tables
            .reads_batches(&[index], &file.options.control)?
            .pop()
            .ok_or_else(gone)??;
        let at = |fault: Fault| fault.in_file(file.store.name(), batch.offset, "Reads table");
        self.tables.reads.read_id(&batch.batch(), row).map_err(at)
    }
}

impl Pod5File {
    /// The rows of the Reads table that a selection contains.
    pub(super) fn wanted(&self, file: &OpenFile, selection: &Selection) -> Result<WantedReads> {
        let Selection::Ids(ids) = selection else { return Ok(WantedReads::All) };
        let mut missing = Vec::new();
        let mut rows = Vec::with_capacity(ids.len());
        for id in ids.iter() {
            match self.row(file, id)? {
                Some(row) => rows.push(row),
                None => missing.push(id.as_str()),
            }
        }
        if missing.is_empty() {
            Ok(WantedReads::Rows(rows))
        } else {
            Err(file.not_found(&missing, ids.len()))
        }
    }

    /// The ids of all reads.
    pub(crate) fn all_ids(&self, file: &OpenFile) -> Result<Vec<String>> {
        let mut all = Vec::new();
        let mut text = String::new();
        for stride in self.tables.strides(AHEAD) {
            for batch in
                self.tables.reads_batches(&stride.collect::<Vec<_>>(), &file.options.control)?
            {
                let batch = batch?;
                let at = |fault: Fault| fault.in_file(file.store.name(), batch.offset, "read ids");
                let view = batch.batch();
                let ids = self.tables.reads.read_ids(&view).map_err(at)?;
                for row in 0..ids.len() {
                    format_uuid(&ids.fixed(row).map_err(at)?, &mut text);
                    all.push(text.clone());
                }
            }
        }
        Ok(all)
    }

    /// An index of all read ids with the places and sizes of their signal.
    pub(crate) fn entries(&self, file: &OpenFile) -> Result<Index> {
        let mut index = Index::new(file.header.version);
        let mut lookup = Lookup::new(self.tables.clone(), file.options.control.clone());
        let mut text = String::new();
        for stride in self.tables.strides(AHEAD) {
            for batch in
                self.tables.reads_batches(&stride.collect::<Vec<_>>(), &file.options.control)?
            {
                let batch = batch?;
                let mut needed = Needed::default();
                let listed: Vec<_> =
                    (0..batch.rows()).map(|row| lookup.listed(&batch, row, &mut needed)).collect();
                let found = lookup.places(&mut needed)?;
                let mut list = WorkList::default();
                for (row, listed) in listed.into_iter().enumerate() {
                    lookup.entry(&batch, row, &listed?, &needed, &found, &mut list)?;
                    let at =
                        |fault: Fault| fault.in_file(file.store.name(), batch.offset, "read ids");
                    format_uuid(
                        &self.tables.reads.read_id(&batch.batch(), row).map_err(at)?,
                        &mut text,
                    );
                    let pieces = list.last_pieces();
                    let entry = Entry {
                        offset: pieces.first().map_or(0, |piece| piece.offset),
                        size: pieces.iter().map(|piece| piece.len).sum(),
                    };
                    index.push(&text, entry).map_err(at)?;
                }
            }
        }
        Ok(index)
    }
}
