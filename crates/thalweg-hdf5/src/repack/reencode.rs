//! Decodes tiles, assembles new tiles from them, and encodes these.
//!
//! The store is read in the order of its bytes, over all datasets at once. A tile of the new file
//! is open from its first piece to its last. If the open tiles would not fit into memory, some wait
//! for another pass.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_io::engine::{Decoder, Delivery, Run};
use thalweg_io::extent::{Extent, Group, Source};
use thalweg_io::plan::GapRule;
use thalweg_io::store::Store;
use thalweg_io::{Error, Fault, InFile, Result, plan};

use super::copy_bytes::{OutputFile, WINDOW};
use crate::encode::{ChunkEncoder, Coder};
use crate::filter::{Contexts, Pipeline};
use crate::grid::RepackGrid;
use crate::types::Chunk;

/// A dataset whose tiles change.
#[derive(Debug)]
pub(super) struct ReencodeJob {
    pub(super) path: Arc<str>,
    pub(super) element: usize,
    pub(super) fill: Vec<u8>,
    pub(super) from: RepackGrid,
    /// The stored tiles, by number.
    pub(super) stored: Vec<Chunk>,
    pub(super) pipeline: Pipeline,
    pub(super) to: RepackGrid,
    pub(super) coders: Vec<Coder>,
    /// Offsets of new tiles without filters, by number.
    pub(super) places: HashMap<u64, u64>,
}

/// An encoded tile in the spill file, until its final offset is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpilledChunk {
    pub(super) job: usize,
    pub(super) chunk: Chunk,
}

/// A tile of the new file, from its first piece in the store to its last.
#[derive(Debug, Clone, Copy)]
struct OpenTile {
    job: usize,
    number: u64,
    first: u64,
    last: u64,
    bytes: u64,
    pieces: u32,
}

/// The tiles of a pass: stored tiles, by job and index in its list, and for each new tile the
/// number of stored tiles that it needs.
struct ReencodePass {
    extents: Vec<(u32, u32)>,
    pieces: HashMap<(usize, u64), u32>,
}

/// Ends and sizes of open tiles. The first to end is on top.
type Ends = BinaryHeap<Reverse<(u64, u64)>>;

/// Tiles that are being assembled, by job and number.
type Partials = HashMap<(usize, u64), Arc<Mutex<Partial>>>;

/// Assigns new tiles to passes, so that at most `most` bytes of them are open at a time.
fn passes(jobs: &[ReencodeJob], most: u64) -> Vec<ReencodePass> {
    let mut open: HashMap<(usize, u64), OpenTile> = HashMap::new();
    for (job, what) in jobs.iter().enumerate() {
        for stored in &what.stored {
            for number in what.to.over(&what.from.area(stored.first)) {
                let end = stored.offset + stored.size;
                let one = open.entry((job, number)).or_insert_with(|| {
                    let bytes = what.to.bytes(number);
                    OpenTile { job, number, first: stored.offset, last: end, bytes, pieces: 0 }
                });
                (one.first, one.last) = (one.first.min(stored.offset), one.last.max(end));
                one.pieces += 1;
            }
        }
    }
    let mut open: Vec<OpenTile> = open.into_values().collect();
    open.sort_unstable_by_key(|one| (one.first, one.job, one.number));
    let mut assigned: HashMap<(usize, u64), usize> = HashMap::new();
    // For each pass, the bytes of its open tiles and their ends.
    let mut loads: Vec<(u64, Ends)> = Vec::new();
    let mut made: Vec<ReencodePass> = Vec::new();
    for one in open {
        let fits = loads.iter_mut().position(|(bytes, ends)| {
            while let Some(&Reverse((_, closed))) =
                ends.peek().filter(|Reverse((end, _))| *end <= one.first)
            {
                *bytes -= closed;
                ends.pop();
            }
            *bytes == 0 || *bytes + one.bytes <= most
        });
        let at = fits.unwrap_or_else(|| {
            loads.push((0, BinaryHeap::new()));
            made.push(ReencodePass { extents: Vec::new(), pieces: HashMap::new() });
            loads.len() - 1
        });
        loads[at].0 += one.bytes;
        loads[at].1.push(Reverse((one.last, one.bytes)));
        made[at].pieces.insert((one.job, one.number), one.pieces);
        assigned.insert((one.job, one.number), at);
    }
    for (job, what) in jobs.iter().enumerate() {
        for (place, stored) in what.stored.iter().enumerate() {
            let numbers = what.to.over(&what.from.area(stored.first));
            let mut wanted: Vec<usize> = numbers
                .iter()
                .filter_map(|&number| assigned.get(&(job, number)).copied())
                .collect();
            wanted.sort_unstable();
            wanted.dedup();
            wanted.into_iter().for_each(|pass| made[pass].extents.push((job as u32, place as u32)));
        }
    }
    made
}

/// Makes the tiles of all jobs. Tiles with known offsets go to the output, the others into `spill`.
/// Returns the number of passes and the spilled tiles.
pub(super) fn reencode(
    store: &Arc<dyn Store>,
    jobs: Vec<ReencodeJob>,
    output: &OutputFile,
    spill: &Arc<File>,
) -> Result<(usize, Vec<SpilledChunk>)> {
    // The engine gets the other half.
    let most = (output.budget.memory / 2) as u64;
    let passes = passes(&jobs, most);
    let count = passes.len();
    let end = Arc::new(AtomicU64::new(0));
    let jobs = Arc::new(jobs);
    let aside = Arc::new(Mutex::new(Vec::new()));
    for mut pass in passes {
        let budget = plan::Budget { memory: output.budget.memory / 2, ..output.budget };
        let shape = plan::shape(&output.model, budget, Delivery::Worker);
        let block = shape.block - store.alignment();
        let offset = |&(job, place): &(u32, u32)| jobs[job as usize].stored[place as usize].offset;
        pass.extents.sort_unstable_by_key(offset);
        let extents = Arc::new(pass.extents);
        let listed = extents.clone();
        let known = jobs.clone();
        let ranges = (0..extents.len()).map(move |i| {
            let (job, place) = listed[i];
            let chunk = known[job as usize].stored[place as usize];
            chunk.offset..chunk.offset + chunk.size
        });
        let fetches = plan::gather(ranges, GapRule::new(&output.model), block, WINDOW);
        let recoder = Recoder {
            file: store.name().clone(),
            jobs: jobs.clone(),
            extents,
            pieces: pass.pieces,
            open: Mutex::default(),
            output: output.clone(),
            spill: spill.clone(),
            end: end.clone(),
            aside: aside.clone(),
        };
        Run::start(
            store.clone(),
            Source::Planned(Box::new(fetches)),
            recoder,
            shape,
            output.control.clone(),
        )?
        .finish()?;
    }
    let mut aside = std::mem::take(&mut *aside.lock().unwrap_or_else(PoisonError::into_inner));
    aside.sort_unstable_by_key(|one: &SpilledChunk| (one.job, one.chunk.first));
    Ok((count, aside))
}

/// A new tile while it is assembled.
#[derive(Debug)]
struct Partial {
    bytes: Vec<u8>,
    missing: u32,
}

struct Recoder {
    file: Arc<str>,
    jobs: Arc<Vec<ReencodeJob>>,
    extents: Arc<Vec<(u32, u32)>>,
    pieces: HashMap<(usize, u64), u32>,
    open: Mutex<Partials>,
    output: OutputFile,
    spill: Arc<File>,
    /// The end of the spill file.
    end: Arc<AtomicU64>,
    aside: Arc<Mutex<Vec<SpilledChunk>>>,
}

#[derive(Default)]
struct ReencodeWorker {
    contexts: Contexts,
    encoder: ChunkEncoder,
    done: u64,
}

impl Recoder {
    fn tile(&self, worker: &mut ReencodeWorker, extent: &Extent<'_>) -> Result<()> {
        let ReencodeWorker { contexts, encoder, done } = worker;
        let (number, place) = self.extents[extent.ordinal as usize];
        let at = number as usize;
        let place = place as usize;
        let job = &self.jobs[at];
        let stored = job.stored[place];
        let bytes = job.from.bytes(stored.first) as usize;
        let named = |fault: Fault| {
            fault.in_file(
                &self.file,
                extent.offset,
                format!("chunk {} of {}", stored.first, job.path),
            )
        };
        let tile: &[u8] = if job.pipeline.0.is_empty() {
            if extent.bytes.len() != bytes {
                return Err(named(Fault::new(
                    0,
                    format!("{} bytes", extent.bytes.len()),
                    format!("{bytes}"),
                )));
            }
            extent.bytes
        } else {
            let needed = job.from.needed_bytes(stored.first) as usize;
            contexts
                .undo_needed(&job.pipeline, stored.mask, extent.bytes, needed, bytes)
                .map_err(named)?
        };
        *done += bytes as u64;
        let mut whole = Vec::new();
        for number in job.to.over(&job.from.area(stored.first)) {
            let Some(&pieces) = self.pieces.get(&(at, number)) else { continue };
            let partial = self.partial(at, job, number, pieces);
            let mut partial = partial.lock().unwrap_or_else(PoisonError::into_inner);
            job.from.copy(stored.first, tile, &job.to, number, &mut partial.bytes);
            partial.missing = partial.missing.saturating_sub(1);
            if partial.missing == 0 {
                self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&(at, number));
                whole.push((number, std::mem::take(&mut partial.bytes)));
            }
        }
        whole.into_iter().try_for_each(|(number, bytes)| self.write(encoder, at, number, bytes))
    }

    fn partial(
        &self,
        at: usize,
        job: &ReencodeJob,
        number: u64,
        pieces: u32,
    ) -> Arc<Mutex<Partial>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            let size = job.to.bytes(number) as usize;
            let bytes = if job.fill.is_empty() {
                vec![0; size]
            } else {
                job.fill.repeat(size / job.element.max(1))
            };
            Arc::new(Mutex::new(Partial { bytes, missing: pieces }))
        };
        open.entry((at, number)).or_insert_with(new).clone()
    }

    fn write(
        &self,
        encoder: &mut ChunkEncoder,
        at: usize,
        number: u64,
        mut bytes: Vec<u8>,
    ) -> Result<()> {
        let job = &self.jobs[at];
        if let Some(&place) = job.places.get(&number) {
            return self.output.write(&bytes, place);
        }
        let coded = encoder.encode(&job.coders, job.element, &mut bytes);
        let mask = coded.map_err(|fault| {
            fault.in_file(&self.output.name, 0, format!("chunk {number} of {}", job.path))
        })?;
        let offset = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.spill
            .write_all_at(&bytes, offset)
            .map_err(|e| Error::io(&self.output.name, "putting chunks aside for", e))?;
        let chunk = Chunk { first: number, offset, size: bytes.len() as u64, mask };
        self.aside
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(SpilledChunk { job: at, chunk });
        Ok(())
    }
}

impl Decoder for Recoder {
    type Worker = ReencodeWorker;
    type Batch = ();

    fn worker(&self) -> ReencodeWorker {
        ReencodeWorker::default()
    }

    fn batch(&self) {}

    fn decode(
        &self,
        worker: &mut ReencodeWorker,
        group: &Group,
        next: &mut usize,
        (): &mut (),
    ) -> Result<()> {
        while let Some(extent) = group.get(*next) {
            self.tile(worker, &extent)?;
            *next += 1;
        }
        Ok(())
    }

    fn decoded_bytes(worker: &ReencodeWorker) -> u64 {
        worker.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A dataset of 64 tiles of 8 bytes in the given order in the file. Each new tile consists of
    /// four.
    fn job(order: &[u64]) -> ReencodeJob {
        let tile =
            |(first, &place): (u64, &u64)| Chunk { first, offset: place * 8, size: 8, mask: 0 };
        ReencodeJob {
            path: "d".into(),
            element: 1,
            fill: Vec::new(),
            from: RepackGrid::chunks(&[512], &[8], 1),
            stored: (0..).zip(order).map(tile).collect(),
            pipeline: Pipeline::default(),
            to: RepackGrid::chunks(&[512], &[32], 1),
            coders: Vec::new(),
            places: HashMap::new(),
        }
    }

    proptest! {
        #[test]
        fn no_more_files_are_open_than_allowed(
            order in Just((0..128).collect::<Vec<u64>>()).prop_shuffle(), most in 32..600_u64,
        ) {
            let jobs = [job(&order[..64]), job(&order[64..])];
            let passes = passes(&jobs, most);
            let mut seen = HashMap::new();
            for pass in &passes {
                // Simulates a run: pieces come by offset, and each tile is open from its first
                // piece to its last.
                let mut extents = pass.extents.clone();
                extents.sort_by_key(|&(job, place)| {
                    jobs[job as usize].stored[place as usize].offset
                });
                let mut missing = pass.pieces.clone();
                let mut open = 0;
                for (job, place) in extents {
                    let what = &jobs[job as usize];
                    for number in what.to.over(&what.from.area(what.stored[place as usize].first)) {
                        let key = (job as usize, number);
                        let Some(left) = missing.get_mut(&key) else { continue };
                        if *left == pass.pieces[&key] {
                            open += 32;
                            prop_assert!(open <= most.max(32));
                        }
                        *left -= 1;
                        if *left == 0 {
                            open -= 32;
                            *seen.entry(key).or_insert(0) += 1;
                        }
                    }
                }
            }
            prop_assert_eq!(seen.len(), 32);
            prop_assert!(seen.values().all(|&times| times == 1));
        }
    }
}
