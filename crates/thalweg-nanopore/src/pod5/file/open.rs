//! Opening a POD5 file: footers, schemas, dictionaries and runs.

use std::ops::Range;
use std::sync::Arc;

use thalweg_io::arrow_ipc::Head;
use thalweg_io::control::Control;
use thalweg_io::model::StoreModel;
use thalweg_io::open::{Options, POD5_END};
use thalweg_io::plan::{Budget, is_far, side_depth};
use thalweg_io::store::Store;
use thalweg_io::store::many::{read, read_many};
use thalweg_io::{Error, Fault, InFile, Result};

use super::Pod5File;
use super::cache::{Cache, InFlight};
use super::index::IndexInUse;
use super::recover::{self, FoundTable};
use super::tables::{SignalRowPlace, Tables};
use crate::file::OpenedFormat;
use crate::pod5;
use crate::pod5::{
    Container, Dictionaries, END_BYTES, FIRST_SECTION, FOOTER_MAGIC, IpcBlock, MARKER_BYTES,
    ReadsTable, RunInfo, SIGNATURE, SectionContent, SignalLayout, TAIL_BYTES, TableBatch,
    TableFooter,
};

/// Bytes read from the end of the file, and of a table, in the hope that they contain all footers.
const END_GUESS: u64 = 64 << 10;

/// Most dictionaries fetched at a time. A Reads table has fewer.
const MOST_DICTIONARIES: usize = 8;

/// Most parts of the metadata fetched at a time from a store that is far away.
const MOST_PARTS: usize = 32;

/// Most parts that are kept. A damaged footer may list any number.
const MOST_KEPT: usize = 1024;

/// A cache, and a single batch of metadata, may take the memory budget divided by this number.
const METADATA_SHARE: usize = 8;

/// The name of the end of the file in messages.
const END: &str = "the end of the file";

/// Reads the metadata of a file, and counts the requests.
struct Opening<'a> {
    store: &'a dyn Store,
    /// Bytes of the file that are here already, and the offset of each: first those at its end.
    parts: Vec<(u64, Vec<u8>)>,
    /// Successive requests. Those made at the same time count once.
    requests: u64,
    /// The largest allowed size of one part of the metadata, in bytes.
    most: u64,
}

/// A table's place in the file, and its footer.
struct LocatedTable {
    range: Range<u64>,
    footer: TableFooter,
}

/// The tables of a file.
struct LocatedTables {
    reads: LocatedTable,
    signal: LocatedTable,
    runs: Option<LocatedTable>,
}

impl LocatedTables {
    /// The ranges in the file that opening it needs: runs, dictionaries, and the head of the first
    /// Signal batch.
    fn metadata(&self) -> Vec<Range<u64>> {
        let runs = self.runs.iter().flat_map(|table| table.ranges(&table.footer.batches));
        let dictionaries = self.reads.ranges(&self.reads.footer.dictionaries);
        runs.chain(dictionaries).chain(self.signal.first_head()).collect()
    }
}

impl LocatedTable {
    /// The ranges of blocks in the file.
    fn ranges(&self, blocks: &[IpcBlock]) -> impl Iterator<Item = Range<u64>> {
        let start = self.range.start;
        blocks.iter().map(move |block| block.range_in_file(start))
    }

    /// The range in the file of the head of its first batch.
    fn first_head(&self) -> Option<Range<u64>> {
        let block = self.footer.batches.first()?;
        let start = self.range.start + block.offset;
        Some(start..start + u64::from(block.head))
    }
}

/// Bytes of all ranges. A damaged footer may list the same bytes again and again.
fn total(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().fold(0, |bytes, range| bytes.saturating_add(range.end - range.start))
}

/// The end of a table, in the hope that its footer is there.
fn footer_guess(table: &Range<u64>) -> Range<u64> {
    table.end - (table.end - table.start).min(END_GUESS)..table.end
}

/// Opens a POD5 file.
pub(crate) fn open(store: &Arc<dyn Store>, options: &Options) -> Result<OpenedFormat<Pod5File>> {
    let model = options.model.unwrap_or(StoreModel::MEMORY);
    let budget = options.budget;
    let control = &options.control;
    let guess = if is_far(&model) { POD5_END } else { END_GUESS };
    let mut opening = Opening::new(&**store, budget, guess)?;
    let mut left_out = Vec::new();
    let (container, mut found) = opening.container_or_recovered(control)?;
    let ends = container.tables().map(|table| footer_guess(&table.range)).collect();
    opening.prepare(ends, &model, control)?;
    let located = opening.locate(&container, control, &mut found)?;
    opening.prepare(located.metadata(), &model, control)?;
    let reads = opening.reads_table(&located, &model, control, &mut left_out)?;
    let layout = opening.signal_layout(&located.signal)?;
    let (rows_per_batch, batch_margins) = opening.first_signal_batch(&layout, &located.signal)?;
    left_out.extend(reads.lost.iter().map(|name| format!("column {name} of the Reads table")));
    let share = budget.memory / METADATA_SHARE;
    let tables = Tables {
        store: store.clone(),
        reads,
        reads_at: located.reads.range.start,
        reads_blocks: located.reads.footer.batches,
        layout,
        signal_at: located.signal.range.start,
        signal_blocks: located.signal.footer.batches,
        rows_per_batch,
        batch_margins,
        model,
        most_batch: share,
        is_cut: found.iter().any(|table| table.content == SectionContent::Reads && !table.is_whole),
        reads_cache: Cache::new(share),
        signal_cache: Cache::new(share / 2),
        signal_in_flight: InFlight::default(),
        index: IndexInUse::default(),
    };
    if is_far(&model) {
        tables.keep_reads_batches(|range| opening.known(range));
    }
    let is_recovered = !found.is_empty();
    let header = Arc::new(tables.reads.header());
    let file = Pod5File { is_recovered, container, tables: Arc::new(tables), left_out };
    // One further request detected the format.
    Ok(OpenedFormat { file, header, requests: 1 + opening.requests })
}

/// The defects of the footers of a file that could be opened despite them.
pub(super) fn footer_defects(store: &dyn Store, budget: Budget) -> Result<Vec<Error>> {
    let mut opening = Opening::new(store, budget, END_GUESS)?;
    let Ok(container) = opening.container() else {
        return Ok(vec![Error::Malformed {
            file: store.name().clone(),
            what: "footer".into(),
            offset: store.size(),
            found: "no footer before the end, or a damaged one".into(),
            expected: "one, without which POD5's own programs open no file; \
                       `thalweg convert` makes it whole"
                .into(),
        }]);
    };
    let tables = container.tables();
    Ok(tables.filter_map(|table| opening.footer(&table.range, table.content).err()).collect())
}

impl<'a> Opening<'a> {
    fn new(store: &'a dyn Store, budget: Budget, guess: u64) -> Result<Self> {
        let most = (budget.memory / 2) as u64;
        let start = store.size().saturating_sub(guess.min(most));
        let parts = vec![(start, read(store, &(start..store.size()))?)];
        Ok(Self { store, parts, requests: 1, most })
    }

    /// [`Opening::fetch`] at once, if the store is far away and the parts fit into memory beside
    /// those that are here. Else parts are fetched when they are needed.
    fn prepare(
        &mut self,
        ranges: Vec<Range<u64>>,
        model: &StoreModel,
        control: &Control,
    ) -> Result<()> {
        let kept: usize = self.parts.iter().map(|(_, bytes)| bytes.len()).sum();
        let bytes = total(&ranges).saturating_add(kept as u64);
        if !is_far(model) || bytes > self.most {
            return Ok(());
        }
        self.fetch(ranges, side_depth(model, MOST_PARTS), control)
    }

    /// Fetches those of `ranges` that are not here, up to `depth` at a time. A part that cannot be
    /// read is asked for again when it is needed, and fails then; so is each of too many.
    fn fetch(
        &mut self,
        mut ranges: Vec<Range<u64>>,
        depth: usize,
        control: &Control,
    ) -> Result<()> {
        if self.parts.len() + ranges.len() > MOST_KEPT {
            return Ok(());
        }
        ranges.retain(|range| self.known(range).is_none());
        if ranges.is_empty() {
            return Ok(());
        }
        self.requests += 1;
        let fetched = read_many(self.store, &ranges, depth, control)?;
        let parts = ranges.iter().zip(fetched);
        self.parts.extend(parts.filter_map(|(range, bytes)| Some((range.start, bytes.ok()?))));
        Ok(())
    }

    /// Bytes that are here already.
    fn known(&self, range: &Range<u64>) -> Option<&[u8]> {
        self.parts.iter().find_map(|(start, bytes)| {
            let at = |offset: u64| offset.checked_sub(*start).map(|at| at as usize);
            at(range.start).zip(at(range.end)).and_then(|(from, to)| bytes.get(from..to))
        })
    }

    /// Reads bytes of the file, at most as many as the metadata of a table may have.
    fn get(&mut self, range: &Range<u64>, what: SectionContent) -> Result<Vec<u8>> {
        if let Some(bytes) = self.known(range) {
            return Ok(bytes.to_vec());
        }
        if range.end - range.start > self.most {
            return Err(Error::Unsupported {
                file: self.store.name().clone(),
                what: format!(
                    "{} bytes of metadata in the {}",
                    range.end - range.start,
                    what.name()
                )
                .into(),
                advice: format!("this memory budget allows {}: give more memory", self.most).into(),
            });
        }
        self.requests += 1;
        read(self.store, range)
    }

    /// The container. If the footer is missing or damaged, the container is made from the tables
    /// that recovery finds, and these tables are returned too.
    fn container_or_recovered(
        &mut self,
        control: &Control,
    ) -> Result<(Container, Vec<FoundTable>)> {
        match self.container() {
            Ok(container) => Ok((container, Vec::new())),
            Err(error) => {
                let found = self.recovered(error, control)?;
                Ok((recover::container(&found), found))
            }
        }
    }

    /// Finds the tables and reads their footers. Tables with a damaged footer are added to `found`.
    fn locate(
        &mut self,
        container: &Container,
        control: &Control,
        found: &mut Vec<FoundTable>,
    ) -> Result<LocatedTables> {
        let store = self.store;
        let section = |content: SectionContent| {
            container.section(content).ok_or_else(|| {
                let found = Fault::new(0, "none", "one in the file");
                found.in_file(store.name(), store.size(), content.name())
            })
        };
        let reads = section(SectionContent::Reads)?;
        let signal = section(SectionContent::Signal)?;
        let mut locate = |range: Range<u64>, content| {
            let footer = self.footer_or_recovered(&range, content, control, found)?;
            Ok::<_, Error>(LocatedTable { range, footer })
        };
        let reads = locate(reads, SectionContent::Reads)?;
        let signal = locate(signal, SectionContent::Signal)?;
        let runs = container.section(SectionContent::RunInfo);
        let runs = runs.map(|range| locate(range, SectionContent::RunInfo)).transpose()?;
        Ok(LocatedTables { reads, signal, runs })
    }

    /// The Reads table with its runs and dictionaries. Columns of the RunInfo table that no run
    /// can hold are added to `left_out`.
    fn reads_table(
        &mut self,
        located: &LocatedTables,
        model: &StoreModel,
        control: &Control,
        left_out: &mut Vec<String>,
    ) -> Result<ReadsTable> {
        let runs = match &located.runs {
            Some(table) => self.runs(&table.range, &table.footer, left_out)?,
            None => Vec::new(),
        };
        let LocatedTable { range, footer } = &located.reads;
        let dictionaries = self.dictionaries(&located.reads, model, control)?;
        let name = SectionContent::Reads.name();
        ReadsTable::new(&footer.schema, &dictionaries, runs)
            .map_err(|fault| fault.in_file(self.store.name(), range.start, name))
    }

    fn signal_layout(&self, table: &LocatedTable) -> Result<SignalLayout> {
        let name = SectionContent::Signal.name();
        SignalLayout::of(&table.footer.schema)
            .map_err(|fault| fault.in_file(self.store.name(), table.range.start, name))
    }

    fn container(&mut self) -> Result<Container> {
        let store = self.store;
        let size = self.store.size();
        let head_len = (SIGNATURE.len() + MARKER_BYTES) as u64;
        if size < head_len + TAIL_BYTES as u64 {
            return Err(self.cut());
        }
        let head = self.get(&(0..head_len), SectionContent::Other(0))?;
        let marker = pod5::head(&head).map_err(|fault| fault.in_file(store.name(), 0, "header"))?;
        let tail_at = size - TAIL_BYTES as u64;
        let tail = self.get(&(tail_at..size), SectionContent::Other(0))?;
        let footer_at = pod5::tail(&tail, size, &marker)
            .map_err(|fault| fault.in_file(store.name(), tail_at, END))?;
        let magic_at = footer_at.start - FOOTER_MAGIC.len() as u64;
        let footer = self.get(&(magic_at..footer_at.end), SectionContent::Other(0))?;
        let (magic, footer) = footer.split_at(FOOTER_MAGIC.len());
        if magic != FOOTER_MAGIC {
            let fault = Fault::new(0, format!("\"{}\"", magic.escape_ascii()), "\"FOOTER\\0\\0\"");
            return Err(fault.in_file(store.name(), magic_at, END));
        }
        Container::parse(footer, magic_at)
            .map_err(|fault| fault.in_file(store.name(), footer_at.start, "footer"))
    }

    /// The error about a file that ends before its tables are complete.
    fn cut(&self) -> Error {
        Error::Truncated {
            file: self.store.name().clone(),
            what: "a POD5 file".into(),
            offset: 0,
            size: self.store.size(),
            advice: "; its table of reads, which comes last, is missing: fetch the file again",
        }
    }

    /// The tables of a file with a missing or damaged footer. Fails with `why` if the file has no
    /// batches of reads or of signal, unless it is cut short.
    fn recovered(&mut self, why: Error, control: &Control) -> Result<Vec<FoundTable>> {
        // A file without POD5's signature and a section marker has no tables.
        let head =
            self.get(&(0..FIRST_SECTION.min(self.store.size())), SectionContent::Other(0))?;
        let Ok(marker) = pod5::head(&head) else { return Err(why) };
        let mut found = recover::tables(self.store, &marker, control)?;
        let has = |content| {
            found.iter().any(|table| table.content == content && !table.footer.batches.is_empty())
        };
        if !(has(SectionContent::Reads) && has(SectionContent::Signal)) {
            return Err(if self.parts[0].1.ends_with(&SIGNATURE) { why } else { self.cut() });
        }
        found.retain(|table| !table.footer.batches.is_empty());
        Ok(found)
    }

    /// A table's footer. A damaged footer is rebuilt from the table's messages, and the table is
    /// added to `found`.
    fn footer_or_recovered(
        &mut self,
        range: &Range<u64>,
        content: SectionContent,
        control: &Control,
        found: &mut Vec<FoundTable>,
    ) -> Result<TableFooter> {
        if let Some(table) = found.iter().find(|table| table.content == content) {
            return Ok(table.footer.clone());
        }
        let why = match self.footer(range, content) {
            Err(error @ Error::Malformed { .. }) => error,
            outcome => return outcome,
        };
        let read = recover::table(self.store, range.clone(), control)?.map(|(table, _)| table);
        let table = read
            .filter(|table| table.content == content && !table.footer.batches.is_empty())
            .ok_or(why)?;
        let footer = table.footer.clone();
        found.push(table);
        Ok(footer)
    }

    fn footer(&mut self, table: &Range<u64>, what: SectionContent) -> Result<TableFooter> {
        let at = |offset: u64| {
            let name = self.store.name();
            move |fault: Fault| {
                fault.in_file(name, offset, format!("footer of the {}", what.name()))
            }
        };
        let len = table.end - table.start;
        let end_at = table.end - len.min(END_BYTES as u64);
        let guess = self.get(&footer_guess(table), what)?;
        let end = guess.get(guess.len().saturating_sub(END_BYTES)..).unwrap_or_default();
        let footer_len = pod5::footer_len(end, len).map_err(at(end_at))?;
        let footer_at = end_at - footer_len;
        let known = guess.len() - end.len();
        let bytes = match known.checked_sub(footer_len as usize) {
            Some(start) => guess[start..known].to_vec(),
            None => self.get(&(footer_at..end_at), what)?,
        };
        TableFooter::parse(&bytes, footer_at - table.start).map_err(at(footer_at))
    }

    fn runs(
        &mut self,
        table: &Range<u64>,
        footer: &TableFooter,
        left_out: &mut Vec<String>,
    ) -> Result<Vec<RunInfo>> {
        let mut runs = Vec::new();
        for block in &footer.batches {
            let (head, body) = self.batch(block, table, SectionContent::RunInfo)?;
            let at = |fault: Fault| {
                fault.in_file(self.store.name(), table.start + block.offset, "RunInfo table")
            };
            let batch = TableBatch { head: &head, body: &body };
            let (rows, lost) = RunInfo::rows(&batch, &footer.schema.columns).map_err(at)?;
            if runs.is_empty() {
                left_out.extend(
                    lost.into_iter().map(|name| format!("column {name} of the RunInfo table")),
                );
            }
            runs.extend(rows);
        }
        Ok(runs)
    }

    fn batch(
        &mut self,
        block: &IpcBlock,
        table: &Range<u64>,
        what: SectionContent,
    ) -> Result<(Head, Vec<u8>)> {
        let mut bytes = self.get(&block.range_in_file(table.start), what)?;
        let at = |fault: Fault| {
            fault.in_file(self.store.name(), table.start + block.offset, what.name())
        };
        let head = Head::parse(&bytes[..block.head as usize], block.body).map_err(at)?;
        bytes.drain(..block.head as usize);
        Ok((head, bytes))
    }

    fn dictionaries(
        &mut self,
        table: &LocatedTable,
        model: &StoreModel,
        control: &Control,
    ) -> Result<Dictionaries> {
        let ranges: Vec<_> = table.ranges(&table.footer.dictionaries).collect();
        let bytes = total(&ranges);
        if bytes > self.most {
            return Err(Error::Unsupported {
                file: self.store.name().clone(),
                what: format!("{bytes} bytes of dictionaries in the Reads table").into(),
                advice: format!("this memory budget allows {}: give more memory", self.most).into(),
            });
        }
        let mut dictionaries = Dictionaries::default();
        let depth = side_depth(model, MOST_DICTIONARIES);
        self.fetch(ranges.clone(), depth, control)?;
        for (block, range) in table.footer.dictionaries.iter().zip(&ranges) {
            let at = |fault: Fault| {
                fault.in_file(self.store.name(), range.start, "dictionary of the Reads table")
            };
            let mut bytes = self.get(range, SectionContent::Reads)?;
            let head = Head::parse(&bytes[..block.head as usize], block.body).map_err(at)?;
            bytes.drain(..block.head as usize);
            dictionaries.push(head, bytes).map_err(at)?;
        }
        Ok(dictionaries)
    }

    /// The number of rows of the first Signal batch, and its bytes before and after the signal.
    /// Every batch except the last has this number of rows.
    fn first_signal_batch(
        &mut self,
        layout: &SignalLayout,
        table: &LocatedTable,
    ) -> Result<(u64, (u64, u64))> {
        let batches = &table.footer.batches;
        let Some((block, range)) = batches.first().zip(table.first_head()) else {
            return Ok((0, (0, 0)));
        };
        let head = self.get(&range, SectionContent::Signal)?;
        let at = |fault: Fault| {
            fault.in_file(self.store.name(), range.start, "batch 0 of the Signal table")
        };
        let head = Head::parse(&head, block.body).map_err(at)?;
        let places = layout.places(block, &head).map_err(at)?;
        if places.rows.saturating_mul(size_of::<SignalRowPlace>() as u64)
            > self.most / METADATA_SHARE as u64
        {
            return Err(Error::Unsupported {
                file: self.store.name().clone(),
                what: format!("a batch of {} rows in the Signal table", places.rows).into(),
                advice: "give more memory, or write the file with fewer rows a batch (usually 100)"
                    .into(),
            });
        }
        if places.rows == 0 && batches.len() > 1 {
            return Err(at(Fault::new(0, "a batch of no rows before others", "at least one")));
        }
        let all = block.range();
        let before = layout.offsets_of(&places, &(0..places.rows)).end.saturating_sub(all.start);
        let after = all.end.saturating_sub(places.samples.start);
        // Metadata farther from the ends of a batch is fetched by separate requests.
        let guess = |bytes: u64| if bytes <= END_GUESS { bytes } else { 0 };
        Ok((places.rows, (guess(before).max(u64::from(block.head)), guess(after))))
    }
}
