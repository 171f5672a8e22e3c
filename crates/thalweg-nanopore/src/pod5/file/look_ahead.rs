//! The look-ahead thread: it runs ahead of the engine and turns rows of the Reads table into
//! extents of signal.

use std::ops::Range;
use std::sync::mpsc::{
    Receiver, RecvError, RecvTimeoutError, SyncSender, TryRecvError, sync_channel,
};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use thalweg_io::control::Control;
use thalweg_io::engine::Shape;
use thalweg_io::extent::{Fetch, Plan, Source, Wanted};
use thalweg_io::plan::is_far;
use thalweg_io::pool::{self, Background};
use thalweg_io::{Error, Result, plan};

use super::lookup::{Lookup, MOST_BATCHES, Needed};
use super::signal_ahead::{SignalAhead, THREADS};
use super::tables::{ReadsBatch, Tables};
use super::work_list::{WorkEntry, WorkList, WorkQueue};

/// Most reads of one list, and most extents of one request. Their metadata stays in memory as long
/// as their bytes do.
const MOST_READS: usize = 1024;

/// Reads of the first list on a store that is far away. Each further list has twice as many.
const FEWEST_READS: usize = 64;

/// Batches of the Reads table fetched at a time.
const AHEAD: usize = 4;

/// Most lists that wait for the engine.
const WAITING: usize = 2;

/// The reads to look up, in order.
pub(super) enum WantedReads {
    /// All reads, in the order of the Reads table.
    All,
    /// The reads at these places: batch of the Reads table, row in the batch.
    Rows(Vec<(usize, usize)>),
}

/// A message of the look-ahead thread.
enum LookedUp {
    /// Reads, and the requests for their extents.
    Window { list: Arc<WorkList>, fetches: Vec<Fetch> },
    /// There are no more reads.
    End,
}

/// The purpose of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadPurpose {
    /// To decode the samples.
    Samples,
    /// To get the fields only: no signal is fetched.
    Fields,
    /// To count defects: a damaged read does not end the look-ahead.
    Defects,
}

/// Starts a look-ahead thread. The source yields the requests; the queue receives each list before
/// the source yields the requests of that list.
pub(super) fn start(
    tables: &Arc<Tables>,
    wanted: WantedReads,
    shape: &Shape,
    window: u64,
    control: &Control,
    purpose: ReadPurpose,
) -> Result<(Source, Arc<WorkQueue>)> {
    let (sender, receiver) = sync_channel(WAITING);
    let queue = Arc::new(WorkQueue::default());
    let block = (shape.block - tables.store.alignment().min(shape.block / 2)) as u64;
    let in_order = matches!(wanted, WantedReads::All);
    let look_ahead = LookAhead {
        lookup: Lookup {
            block,
            in_order,
            signal: purpose != ReadPurpose::Fields,
            owners: purpose == ReadPurpose::Defects,
            ..Lookup::new(tables.clone(), control.clone())
        },
        sender,
        window,
        all_faults: purpose == ReadPurpose::Defects,
        next: 0,
        most_reads: MOST_READS,
        ahead: None,
    };
    let job = move || look_ahead.run(wanted);
    let thread = Background::start("thalweg-look-ahead", tables.name(), job)?;
    let fetches = Fetches {
        tables: tables.clone(),
        control: control.clone(),
        receiver,
        thread: Some(thread),
        current: Vec::new().into_iter(),
        queue: Arc::downgrade(&queue),
        next: 0,
        ended: false,
    };
    Ok((Source::Planned(Box::new(fetches)), queue))
}

/// The engine's side of the look-ahead.
struct Fetches {
    tables: Arc<Tables>,
    control: Control,
    receiver: Receiver<LookedUp>,
    /// The look-ahead thread, unless it was joined. It ends when the receiver is dropped.
    thread: Option<Background<()>>,
    current: std::vec::IntoIter<Fetch>,
    /// The decoder owns the queue, and it lives as long as the run. In a run that only fetches no
    /// decoder takes lists, so that none is kept. A list that a worker misses is an error.
    queue: Weak<WorkQueue>,
    /// The ordinal after the last received read.
    next: u64,
    ended: bool,
}

impl Fetches {
    /// Takes the next message.
    fn take(&mut self, message: std::result::Result<LookedUp, RecvError>) {
        let (list, fetches) = match message {
            Ok(LookedUp::Window { list, fetches }) => (list, fetches),
            end => {
                self.ended = true;
                if end.is_ok() {
                    return;
                }
                // Propagates a panic of the look-ahead thread.
                self.thread.take().map(Background::join);
                self.broken_off()
            }
        };
        self.next = list.first + list.entries.len() as u64;
        if let Some(queue) = self.queue.upgrade() {
            queue.put(list);
        }
        self.current = fetches.into_iter();
    }

    /// A list and a request with an error. They replace the remaining reads when the look-ahead
    /// thread ended early, because no read may be left out without an error.
    fn broken_off(&self) -> (Arc<WorkList>, Vec<Fetch>) {
        let error = if self.control.is_cancelled() {
            Error::Cancelled
        } else {
            Error::io(self.tables.name(), "looking ahead in", std::io::ErrorKind::BrokenPipe)
        };
        let mut list = WorkList { first: self.next, ..WorkList::default() };
        push_failure(&mut list, error);
        let extents = vec![Wanted { range: 0..0, ordinal: self.next }];
        (Arc::new(list), vec![Fetch { range: 0..1, extents }])
    }
}

impl Plan for Fetches {
    fn poll(&mut self) -> Poll<Option<Fetch>> {
        while self.current.len() == 0 && !self.ended {
            match self.receiver.try_recv() {
                Ok(message) => self.take(Ok(message)),
                Err(TryRecvError::Empty) => return Poll::Pending,
                Err(TryRecvError::Disconnected) => self.take(Err(RecvError)),
            }
        }
        Poll::Ready(self.current.next())
    }

    fn wait(&mut self, most: Duration) {
        if self.current.len() == 0 && !self.ended {
            match self.receiver.recv_timeout(most) {
                Ok(message) => self.take(Ok(message)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.take(Err(RecvError)),
            }
        }
    }
}

/// A read to look up: an index into the fetched batches, and a row in that batch.
#[derive(Clone, Copy)]
struct PickedRow {
    batch: usize,
    row: usize,
}

struct LookAhead {
    lookup: Lookup,
    sender: SyncSender<LookedUp>,
    window: u64,
    all_faults: bool,
    /// The next read's ordinal.
    next: u64,
    /// The most reads of the next list.
    most_reads: usize,
    /// Fetches places of signal rows ahead of the lists.
    ahead: Option<Arc<SignalAhead>>,
}

/// The look-ahead ends early: the run is over or cancelled, or an error was sent.
struct Stopped;

impl LookAhead {
    fn run(mut self, wanted: WantedReads) {
        let over = match wanted {
            WantedReads::All => self.all(),
            WantedReads::Rows(rows) => self.rows(&rows),
        };
        if over.is_ok() {
            let _ = self.sender.send(LookedUp::End);
        }
    }

    fn all(&mut self) -> Result<(), Stopped> {
        let tables = self.lookup.tables.clone();
        let control = self.lookup.control.clone();
        if !(self.lookup.signal && is_far(&tables.model)) {
            return self.all_batches(&tables);
        }
        self.most_reads = FEWEST_READS;
        let Some(ahead) = SignalAhead::new(&tables).map(Arc::new) else {
            return self.all_batches(&tables);
        };
        self.ahead = Some(ahead.clone());
        pool::scope(|threads| {
            for _ in 0..THREADS {
                // Without threads, each list waits for its own.
                let _ = threads.start("thalweg-ahead", || ahead.run(&tables, &control));
            }
            let _pass = ahead.pass();
            self.all_batches(&tables)
        })
    }

    fn all_batches(&mut self, tables: &Tables) -> Result<(), Stopped> {
        for stride in tables.strides(AHEAD) {
            let indices: Vec<usize> = stride.collect();
            let batches =
                tables.reads_batches(&indices, &self.lookup.control).map_err(|_| Stopped)?;
            for batch in batches {
                match batch {
                    Ok(batch) => {
                        let picks: Vec<PickedRow> =
                            (0..batch.rows()).map(|row| PickedRow { batch: 0, row }).collect();
                        self.look_ahead(&[batch], &picks)?;
                    }
                    Err(error) => self.fail(error)?,
                }
            }
        }
        if self.lookup.tables.is_cut {
            // The delivered reads are complete, but the user must learn that the table was cut.
            let tables = &self.lookup.tables;
            let size = self.lookup.tables.store.size();
            self.fail(Error::Truncated {
                file: tables.name().clone(),
                what: "the Reads table".into(),
                offset: tables.reads_at,
                size,
                advice: "; the reads before are whole",
            })?;
        }
        Ok(())
    }

    fn rows(&mut self, rows: &[(usize, usize)]) -> Result<(), Stopped> {
        let mut rest = rows;
        while !rest.is_empty() {
            // Takes as many reads as lie in batches that fit into the cache together, so that no
            // batch is fetched twice.
            let mut indices: Vec<usize> = Vec::new();
            let mut size = 0;
            let mut take = 0;
            for &(index, _) in rest.iter().take(MOST_READS) {
                if !indices.contains(&index) {
                    size += self.lookup.tables.reads_blocks[index].body as usize;
                    if size > self.lookup.tables.most_batch && take > 0 {
                        break;
                    }
                    indices.push(index);
                }
                take += 1;
            }
            indices.sort_unstable();
            let fetched = self
                .lookup
                .tables
                .reads_batches(&indices, &self.lookup.control)
                .map_err(|_| Stopped)?;
            let mut batches = Vec::with_capacity(fetched.len());
            let mut failed = None;
            for (index, batch) in indices.iter().zip(fetched) {
                match batch {
                    Ok(batch) => batches.push((*index, batch)),
                    Err(error) => failed = Some((*index, error)),
                }
            }
            let (these, later) = rest.split_at(take);
            rest = later;
            let position = |index: usize| batches.binary_search_by_key(&index, |(index, _)| *index);
            let whole = these
                .iter()
                .position(|(index, _)| position(*index).is_err())
                .unwrap_or(these.len());
            let pick = |&(index, row): &(usize, usize)| PickedRow {
                batch: position(index).unwrap_or(0),
                row,
            };
            let picks: Vec<PickedRow> = these[..whole].iter().map(pick).collect();
            let batches: Vec<_> = batches.into_iter().map(|(_, batch)| batch).collect();
            self.look_ahead(&batches, &picks)?;
            if let Some((_, error)) = failed {
                return self.fail(error).and(self.end());
            }
        }
        Ok(())
    }

    /// Sends an error in place of a read.
    fn fail(&mut self, error: Error) -> Result<(), Stopped> {
        let mut list = WorkList { first: self.next, ..WorkList::default() };
        push_failure(&mut list, error);
        self.send(list)?;
        if self.all_faults { Ok(()) } else { self.end() }
    }

    /// Ends the look-ahead after an error was sent.
    fn end(&self) -> Result<(), Stopped> {
        let _ = self.sender.send(LookedUp::End);
        Err(Stopped)
    }

    /// Looks up reads, and sends them in lists of bounded size.
    fn look_ahead(
        &mut self,
        batches: &[Arc<ReadsBatch>],
        picks: &[PickedRow],
    ) -> Result<(), Stopped> {
        let mut rest = picks;
        while !rest.is_empty() {
            let mut needed = Needed::default();
            let mut listed = Vec::new();
            for pick in rest.iter().take(self.most_reads) {
                let batch = &batches[pick.batch];
                listed.push(self.lookup.listed(batch, pick.row, &mut needed));
                if needed.batches.len() >= MOST_BATCHES {
                    break;
                }
            }
            self.most_reads = (self.most_reads * 2).min(MOST_READS);
            if let Some((ahead, &last)) = self.ahead.as_ref().zip(needed.batches.iter().max()) {
                ahead.need(last);
            }
            let found = self.lookup.places(&mut needed).map_err(|_| Stopped)?;
            let (these, later) = rest.split_at(listed.len());
            rest = later;
            let mut list = WorkList { first: self.next, ..WorkList::default() };
            for (pick, listed) in these.iter().zip(listed) {
                let entry = listed.and_then(|listed| {
                    self.lookup.entry(
                        &batches[pick.batch],
                        pick.row,
                        &listed,
                        &needed,
                        &found,
                        &mut list,
                    )
                });
                if let Err(error) = entry {
                    push_failure(&mut list, error);
                    if !self.all_faults {
                        self.send(list)?;
                        return self.end();
                    }
                }
            }
            self.send(list)?;
        }
        Ok(())
    }

    /// Sends a list together with the requests for its extents.
    fn send(&mut self, list: WorkList) -> Result<(), Stopped> {
        if list.entries.is_empty() {
            return Ok(());
        }
        let mut fetches = Vec::new();
        let mut sorted: Vec<Wanted> = Vec::new();
        let mut bytes = 0;
        // A read without signal gets the place of the read before it, so that it needs no request
        // of its own.
        let mut place = list.pieces.first().map_or(0, |piece| piece.offset);
        let mut ascending = true;
        for (i, entry) in list.entries.iter().enumerate() {
            let near = &list.pieces[entry.pieces.clone()][..entry.near];
            let range: Range<u64> = match near {
                [] => place..place,
                [first, ..] => {
                    first.offset..near.last().map_or(first.offset, |last| last.offset + last.len)
                }
            };
            ascending &= range.start >= place;
            if bytes > self.window && !ascending {
                self.cut(&mut sorted, &mut fetches);
                bytes = 0;
                ascending = true;
            }
            place = range.start;
            bytes += range.end - range.start;
            sorted.push(Wanted { range, ordinal: self.next + i as u64 });
        }
        self.cut(&mut sorted, &mut fetches);
        self.next += list.entries.len() as u64;
        self.sender.send(LookedUp::Window { list: Arc::new(list), fetches }).map_err(|_| Stopped)
    }

    /// Turns the wanted extents into requests.
    fn cut(&self, sorted: &mut Vec<Wanted>, fetches: &mut Vec<Fetch>) {
        let block = self.lookup.block;
        let gap = plan::sort(sorted, &self.lookup.gaps, block as usize);
        while let Some(mut fetch) = plan::merge(sorted, gap, block, MOST_READS) {
            if fetch.range.is_empty() {
                // A request has at least one byte.
                let start =
                    fetch.range.start.min(self.lookup.tables.store.size().saturating_sub(1));
                fetch.range = start..start + 1;
            }
            fetches.push(fetch);
        }
    }
}

/// Adds an entry with an error instead of a read.
fn push_failure(list: &mut WorkList, error: Error) {
    let index = list.entries.len();
    list.entries.push(WorkEntry {
        read_group: 0,
        digitisation: 0.0,
        offset: 0.0,
        range: 0.0,
        sampling_rate: 0.0,
        id: 0..0,
        aux: 0..0,
        samples: 0,
        pieces: 0..0,
        near: 0,
    });
    list.failures.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, error));
}
