//! Copies byte ranges of a store to the output, without decoding them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use thalweg_io::control::Control;
use thalweg_io::engine::{Decoder, Delivery, Run};
use thalweg_io::extent::{Group, Source};
use thalweg_io::model::StoreModel;
use thalweg_io::plan::{Budget, GapRule};
use thalweg_io::store::Store;
use thalweg_io::{Error, Result, plan};

use super::slot_writer::SlotWriter;

/// A byte range that is copied from one offset to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ByteMove {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) len: u64,
}

/// The output file, and the resources for writing it.
#[derive(Debug, Clone)]
pub(super) struct OutputFile {
    pub(super) model: StoreModel,
    pub(super) budget: Budget,
    pub(super) control: Control,
    pub(super) out: Arc<File>,
    /// The temporary path of the output.
    pub(super) path: PathBuf,
    /// The name of the output in errors.
    pub(super) name: Arc<str>,
}

impl OutputFile {
    pub(super) fn write(&self, bytes: &[u8], at: u64) -> Result<()> {
        self.out.write_all_at(bytes, at).map_err(|e| Error::io_at(&self.name, "writing", at, e))
    }
}

/// Bytes of requests per planning window.
pub(super) const WINDOW: u64 = 256 << 20;

/// The least number of workers. They mostly wait for the disc that they write to; this many keep it
/// busy on any machine.
const WRITERS: usize = 4;

/// Copies bytes from a store to the output, in the order of the store.
pub(super) fn copy_moves(
    store: &Arc<dyn Store>,
    moves: Vec<ByteMove>,
    output: &OutputFile,
) -> Result<()> {
    // The slots of `SlotWriter` take up to half of the memory, blocks three eighths.
    let memory = output.budget.memory;
    let threads = output.budget.threads.max(WRITERS);
    let shape =
        plan::shape(&output.model, Budget { memory: memory / 2, threads }, Delivery::Worker);
    let block = shape.block - store.alignment();
    let moves = Arc::new(joined(moves, block as u64));
    if moves.is_empty() {
        return Ok(());
    }
    let listed = moves.clone();
    let ranges = (0..moves.len()).map(move |i| listed[i].from..listed[i].from + listed[i].len);
    let fetches = plan::gather(ranges, GapRule::new(&output.model), block, WINDOW);
    let slots = SlotWriter::new(&output.path, &moves, (memory / 2) as u64);
    let carrier = Carrier { moves, slots, output: output.clone() };
    let source = Source::Planned(Box::new(fetches));
    Run::start(store.clone(), source, carrier, shape, output.control.clone())?.finish().map(drop)
}

/// Sorts moves by their source and joins moves that are adjacent in both files. No joined move is
/// longer than `most` bytes.
fn joined(mut moves: Vec<ByteMove>, most: u64) -> Vec<ByteMove> {
    moves.sort_unstable();
    let mut all: Vec<ByteMove> = Vec::with_capacity(moves.len());
    for next in moves {
        match all.last_mut() {
            Some(last) if last.from + last.len == next.from && last.to + last.len == next.to => {
                last.len += next.len;
            }
            _ => all.push(next),
        }
    }
    if all.iter().all(|one| one.len <= most) {
        return all;
    }
    let cut = |one: ByteMove| {
        (0..one.len.div_ceil(most)).map(move |i| {
            let at = i * most;
            ByteMove { from: one.from + at, to: one.to + at, len: most.min(one.len - at) }
        })
    };
    all.into_iter().flat_map(cut).collect()
}

struct Carrier {
    moves: Arc<Vec<ByteMove>>,
    slots: Option<SlotWriter>,
    output: OutputFile,
}

impl Decoder for Carrier {
    type Worker = u64;
    type Batch = ();

    fn worker(&self) -> u64 {
        0
    }

    fn batch(&self) {}

    fn decode(&self, done: &mut u64, group: &Group, next: &mut usize, (): &mut ()) -> Result<()> {
        while let Some(extent) = group.get(*next) {
            let to = self.moves[extent.ordinal as usize].to;
            match &self.slots {
                Some(slots) => {
                    slots.put(extent.bytes, to, |bytes, at| self.output.write(bytes, at))?;
                }
                None => self.output.write(extent.bytes, to)?,
            }
            *done += extent.bytes.len() as u64;
            *next += 1;
        }
        Ok(())
    }

    fn decoded_bytes(done: &u64) -> u64 {
        *done
    }
}

#[cfg(test)]
mod tests {
    use super::{ByteMove, joined};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_same_bytes_go_to_the_same_places(
            parts in prop::collection::vec((1..50_u64, 0..3_u64, 0..3_u64), 1..60),
            most in 1..80_u64,
        ) {
            let mut from = 0;
            let mut to = 1000;
            let moves: Vec<ByteMove> = parts.iter().map(|&(len, gap, other)| {
                let one = ByteMove { from: from + gap, to: to + other, len };
                (from, to) = (one.from + len, one.to + len);
                one
            }).collect();
            let bytes = |moves: &[ByteMove]| -> Vec<(u64, u64)> {
                let each = |one: &ByteMove| {
                    let ByteMove { from, to, len } = *one;
                    (0..len).map(move |i| (from + i, to + i))
                };
                moves.iter().flat_map(each).collect()
            };
            let all = joined(moves.iter().rev().copied().collect(), most);
            prop_assert_eq!(bytes(&all), bytes(&moves));
            prop_assert!(all.iter().all(|one| one.len <= most));
        }
    }
}
