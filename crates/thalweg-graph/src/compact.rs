//! Segments made of the log, and one segment made of several.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use thalweg_io::control::Control;
use thalweg_io::disk::Disk;
use thalweg_io::{Error, InFile, Result, pool};

use super::column::{Coding, ColumnWriter, Meta};
use super::level::{EdgePart, Footer, Level, ListsWriter, Side, VERSION, VertexPart};
use super::manifest::{Manifest, Part};
use super::network::State;
use super::recent::Recent;
use super::segment::SegmentWriter;
use super::table::{TableMeta, TableWriter};
use super::writer::Writer;
use super::{attributes, merge};

/// Rows of attributes that are written together.
const ROWS: usize = 1 << 16;

/// Levels, and what the log says if it is given, as one.
pub(super) struct Merged<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) levels: &'a [Arc<Level>],
    pub(super) recent: Option<&'a Recent>,
    /// Whether there is nothing below them, that something could be taken away from.
    pub(super) is_lowest: bool,
    pub(super) coding: Coding,
    pub(super) control: &'a Control,
}

impl Merged<'_> {
    /// Writes a segment.
    pub(super) fn write(&self, disk: &dyn Disk, file: &str) -> Result<Part> {
        let mut segment = SegmentWriter::create(disk, file)?;
        let mut footer = Footer { version: VERSION, edges: Vec::new(), vertices: Vec::new() };
        for (population, edges) in self.manifest.edges.iter().enumerate() {
            for side in [Side::Out, Side::In] {
                let mut added = ListsWriter::new(self.coding, edges.is_numbered());
                let mut removed = ListsWriter::new(Coding::Packed, edges.is_numbered());
                let mut gone = HashSet::new();
                let mut lists = merge::Lists::new(self.levels, self.recent, population, side)?;
                let (mut ids, mut numbers) = (Vec::new(), Vec::new());
                let mut since = 0;
                while let Some(vertex) = lists.next()? {
                    for (ends, writer) in
                        [(&lists.change.added, &mut added), (&lists.change.removed, &mut removed)]
                    {
                        if ends.is_empty() {
                            continue;
                        }
                        ids.clear();
                        numbers.clear();
                        ids.extend(ends.iter().map(|end| end.0));
                        if edges.is_numbered() {
                            numbers.extend(ends.iter().map(|end| end.1));
                        }
                        writer.push(&mut segment, vertex, &ids, &numbers)?;
                        since += ends.len();
                    }
                    if side == Side::Out {
                        gone.extend(lists.change.removed.iter().map(|end| end.1));
                    }
                    if since > ROWS {
                        since = 0;
                        self.look(disk)?;
                    }
                }
                let removed = removed.finish(&mut segment)?;
                if self.is_lowest && removed.is_some() {
                    let what =
                        format!("edges of {:?} that went and never were", edges.population.name);
                    return Err(thalweg_io::Fault::new(0, what, "edges that were").in_file(
                        disk.name(),
                        0,
                        "segments",
                    ));
                }
                let added = added.finish(&mut segment)?;
                let table = if side == Side::Out && edges.is_numbered() {
                    self.edge_table(&mut segment, population, &gone)?
                } else {
                    None
                };
                if added.is_some() || removed.is_some() || table.is_some() {
                    footer.edges.push(EdgePart { population, side, added, removed, table });
                }
            }
        }
        for vertex_type in 0..self.manifest.types.len() {
            let part = self.vertices(&mut segment, vertex_type)?;
            if part.added.is_some() || part.removed.is_some() || part.table.is_some() {
                footer.vertices.push(part);
            }
        }
        Ok(Part { file: file.to_owned(), bytes: segment.finish(&footer)? })
    }

    fn look(&self, disk: &dyn Disk) -> Result<()> {
        if self.control.is_cancelled() {
            let _ = disk;
            return Err(Error::Cancelled);
        }
        Ok(())
    }

    /// Attributes of edges, by their numbers: those of later levels are greater.
    fn edge_table(
        &self,
        segment: &mut SegmentWriter,
        population: usize,
        gone: &HashSet<u64>,
    ) -> Result<Option<TableMeta>> {
        let mut out = TableWriter::new();
        // An edge that came and went within these levels is in none of the merged lists.
        let mut dead = gone.clone();
        for level in self.levels {
            if let Some(removed) =
                level.edges(population, Side::Out)?.and_then(|edges| edges.removed.as_ref())
            {
                removed.each(&level.segment, &mut |_, _, numbers| {
                    dead.extend(numbers);
                    Ok(())
                })?;
            }
        }
        if let Some(changes) = self.recent.and_then(|recent| recent.edges(population)) {
            dead.extend(
                changes
                    .side(Side::Out)
                    .values()
                    .flat_map(|change| change.removed.iter().map(|end| end.1)),
            );
        }
        for level in self.levels {
            let Some(table) =
                level.edges(population, Side::Out)?.and_then(|edges| edges.table.as_ref())
            else {
                continue;
            };
            for number in 0..table.batches() {
                let batch = table.batch(&level.segment, number)?;
                let mut ids = vec![0; batch.num_rows()];
                table.rows.read(
                    &level.segment,
                    table.first(number)..table.first(number + 1),
                    &mut ids,
                )?;
                let rows: Vec<(usize, usize)> = (0..ids.len())
                    .filter(|row| !dead.contains(&ids[*row]))
                    .map(|row| (0, row))
                    .collect();
                if rows.len() == ids.len() {
                    out.push(segment, &ids, &batch)?;
                } else if !rows.is_empty() {
                    ids.retain(|id| !dead.contains(id));
                    out.push(segment, &ids, &self.pick(segment, &[&batch], &rows)?)?;
                }
            }
        }
        if let Some(changes) = self.recent.and_then(|recent| recent.edges(population)) {
            let rows: Vec<(u64, &RecordBatch, usize)> =
                changes.rows.iter().map(|(id, (batch, row))| (*id, &**batch, *row)).collect();
            self.push_rows(segment, &mut out, &rows)?;
        }
        out.finish(segment)
    }

    fn pick(
        &self,
        segment: &SegmentWriter,
        batches: &[&RecordBatch],
        rows: &[(usize, usize)],
    ) -> Result<RecordBatch> {
        attributes::pick(batches, rows)
            .map_err(|e| Error::Usage(format!("{}: {e}", segment.name()).into()))
    }

    fn push_rows(
        &self,
        segment: &mut SegmentWriter,
        out: &mut TableWriter,
        rows: &[(u64, &RecordBatch, usize)],
    ) -> Result<()> {
        for rows in rows.chunks(ROWS) {
            let mut batches: Vec<&RecordBatch> = Vec::new();
            let mut places = Vec::with_capacity(rows.len());
            let mut known = std::collections::HashMap::new();
            for (_, batch, row) in rows {
                let number = *known.entry(std::ptr::from_ref(*batch)).or_insert_with(|| {
                    batches.push(batch);
                    batches.len() - 1
                });
                places.push((number, *row));
            }
            let ids: Vec<u64> = rows.iter().map(|(id, ..)| *id).collect();
            let batch = self.pick(segment, &batches, &places)?;
            out.push(segment, &ids, &batch)?;
        }
        Ok(())
    }

    /// Vertices of a type and their attributes.
    fn vertices(&self, segment: &mut SegmentWriter, vertex_type: usize) -> Result<VertexPart> {
        let mut columns =
            [ColumnWriter::new(Coding::Packed, true), ColumnWriter::new(Coding::Packed, true)];
        let mut verdicts =
            merge::Vertices::new(self.levels, self.recent, vertex_type, 0..=u64::MAX)?;
        let has_attributes = !self.manifest.types[vertex_type].attributes.fields().is_empty();
        while let Some(verdict) = verdicts.step()? {
            let [added, removed] = &mut columns;
            if verdict.is_there {
                added.push(segment, verdict.id)?;
            }
            // Attributes that one had that went before are not its own.
            if !self.is_lowest && (!verdict.is_there || has_attributes && verdict.is_reborn) {
                removed.push(segment, verdict.id)?;
            }
        }
        let [added, removed] = columns.map(|column| -> Result<Option<Meta>> {
            if column.len() == 0 { Ok(None) } else { column.finish(segment).map(Some) }
        });
        let table = if has_attributes { self.vertex_table(segment, vertex_type)? } else { None };
        Ok(VertexPart { vertex_type, added: added?, removed: removed?, table })
    }

    fn vertex_table(
        &self,
        segment: &mut SegmentWriter,
        vertex_type: usize,
    ) -> Result<Option<TableMeta>> {
        let mut out = TableWriter::new();
        let mut rows = merge::Rows::new(self.levels, self.recent, vertex_type)?;
        let mut held: Vec<(u64, Arc<RecordBatch>, usize)> = Vec::new();
        loop {
            let next = rows.next()?;
            let is_over = next.is_none();
            held.extend(next);
            if held.len() == ROWS || is_over {
                let rows: Vec<(u64, &RecordBatch, usize)> =
                    held.iter().map(|(id, batch, row)| (*id, &**batch, *row)).collect();
                self.push_rows(segment, &mut out, &rows)?;
                held.clear();
            }
            if is_over {
                return out.finish(segment);
            }
        }
    }
}

/// Segments beyond which they are made one: each costs a reader a look.
const MANY: usize = 6;

/// One segment being made of several, while the log goes on.
pub(super) struct Background {
    thread: pool::Background<Result<Part>>,
    /// The file that it is in.
    pub(super) file: String,
    /// How many segments, from the oldest on.
    count: usize,
    control: Control,
}

impl Background {
    /// Stops it; what it wrote is of no use.
    pub(super) fn stop(self, disk: &dyn Disk) {
        self.control.cancel();
        self.thread.wait();
        let _ = disk.remove(&self.file);
    }
}

impl Writer {
    /// Begins to make one segment of many, or installs the one that was made.
    pub(super) fn tidy(&mut self) -> Result<()> {
        if let Some(done) = self.background.take_if(|background| background.thread.is_finished()) {
            let part = match done.thread.join() {
                Ok(part) => part,
                // It goes on as it is; the next one may come further.
                Err(_) => {
                    let _ = self.network.disk.remove(&done.file);
                    return Ok(());
                }
            };
            return self.exchange(done.count, part);
        }
        if self.background.is_some() || self.network.state.levels.len() <= MANY {
            return Ok(());
        }
        let file = Arc::make_mut(&mut self.network.state.manifest).new_file("seg");
        let (manifest, levels) =
            (self.network.state.manifest.clone(), self.network.state.levels.clone());
        let (disk, coding, control) = (self.network.disk.clone(), self.coding, Control::new());
        let (count, name, stop) = (levels.len(), file.clone(), control.clone());
        let job = move || {
            let merged = Merged {
                manifest: &manifest,
                levels: &levels,
                recent: None,
                is_lowest: true,
                coding,
                control: &stop,
            };
            merged.write(&*disk, &name)
        };
        let thread = pool::Background::start("thalweg-compact", self.network.disk.name(), job)?;
        self.background = Some(Background { thread, file, count, control });
        Ok(())
    }

    /// Puts a segment in the place of the oldest ones, whose sum it is. The log stays.
    fn exchange(&mut self, count: usize, part: Part) -> Result<()> {
        let disk = self.network.disk.clone();
        let mut manifest = (*self.network.state.manifest).clone();
        let level = Level::open(&*disk, &part.file, &manifest)?;
        let old: Vec<Part> = manifest.segments.splice(..count, [part]).collect();
        self.save(&mut manifest)?;
        self.network.state.manifest = Arc::new(manifest);
        self.network.state.levels.splice(..count, [level]);
        old.iter().try_for_each(|part| disk.remove(&part.file))
    }

    /// Moves what is in the log to a segment.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk: the network is as it was.
    pub fn flush(&mut self) -> Result<()> {
        self.log.check()?;
        if self.network.state.recent.is_empty() {
            return Ok(());
        }
        self.log.sync()?;
        let mut manifest = (*self.network.state.manifest).clone();
        let file = manifest.new_file("seg");
        let recent = self.network.state.recent.clone();
        let first = self.network.state.levels.len();
        let merged = Merged {
            manifest: &manifest,
            levels: &[],
            recent: Some(&recent),
            is_lowest: first == 0,
            coding: self.coding,
            control: &self.network.fetcher.control,
        };
        let part = merged.write(&*self.network.disk, &file)?;
        self.settle(first, vec![part], manifest.next, &recent)?;
        self.tidy()
    }

    /// Makes one segment of all, and of the log.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk: the network is as it was.
    pub fn compact(&mut self) -> Result<()> {
        self.log.check()?;
        if let Some(background) = self.background.take() {
            background.stop(&*self.network.disk);
        }
        let State { levels, recent, .. } = &self.network.state;
        if levels.len() + usize::from(!recent.is_empty()) < 2
            && !levels.iter().any(|level| level.is_partial)
        {
            return self.flush();
        }
        self.log.sync()?;
        let mut manifest = (*self.network.state.manifest).clone();
        let file = manifest.new_file("seg");
        let (levels, recent) =
            (self.network.state.levels.clone(), self.network.state.recent.clone());
        let merged = Merged {
            manifest: &manifest,
            levels: &levels,
            recent: Some(&recent),
            is_lowest: true,
            coding: self.coding,
            control: &self.network.fetcher.control,
        };
        let part = merged.write(&*self.network.disk, &file)?;
        self.settle(0, vec![part], manifest.next, &recent)
    }

    /// Installs segments that hold what the log said.
    fn settle(&mut self, first: usize, parts: Vec<Part>, next: u64, recent: &Recent) -> Result<()> {
        self.install(first, parts, |manifest| {
            manifest.log = next;
            manifest.next = next + 1;
            for (number, vertices) in manifest.types.iter_mut().enumerate() {
                let more = recent.vertices(number).map_or(0, |changes| changes.more);
                vertices.count = vertices.count.saturating_add_signed(more);
            }
            for (number, edges) in manifest.edges.iter_mut().enumerate() {
                let Some(changes) = recent.edges(number) else { continue };
                edges.count = edges.count.saturating_add_signed(changes.more);
                edges.next = edges.next.max(changes.next);
            }
        })
    }
}
