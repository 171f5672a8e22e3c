//! The store behind an open file, and the blocks of it that are kept for the next read. Blocks are
//! fetched ahead if it is known which ones libhdf5 reads next.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_io::control::Control;
use thalweg_io::store::Store;
use thalweg_io::store::many::read_many;
use thalweg_io::{Error, Result};

use super::DriverStatus;
use super::expect::children;
use super::trees::Trees;
use crate::libhdf5::allowance;

/// Bytes of a block. In a file that was written live, the nodes of an index lie far apart, so
/// longer blocks would be read for nothing: of the 450 MB that were read for the 200,000 chunks of
/// such a file, 10 MB were needed.
const BLOCK: u64 = 16 << 10;
/// The number of blocks that are kept.
const KEPT: usize = 256;
/// Blocks that are read at a time if the block before them is kept.
const AHEAD: u64 = 4;

/// A store that answers within this time has the bytes in memory. Waiting for it then takes less
/// time than starting threads.
const AT_ONCE: Duration = Duration::from_micros(40);
/// Requests in flight for blocks that are fetched ahead.
const DEPTH: usize = 16;
/// The most blocks that are fetched ahead and not used. With more, nothing is fetched ahead any
/// more, because the nodes of the file are misleading.
const MOST_UNUSED: u64 = 512;

/// A block of the file.
struct BackingBlock {
    number: u64,
    bytes: Vec<u8>,
    /// Whether it was fetched ahead and has not been used yet.
    expected: bool,
}

/// The store behind an open file, and the blocks of it that are kept.
pub(super) struct Backing {
    store: Arc<dyn Store>,
    control: Control,
    driver_status: Arc<DriverStatus>,
    /// Whether the file may change, so that blocks are not kept.
    changes: bool,
    /// The blocks that are kept, the latest used last.
    blocks: Vec<BackingBlock>,
    /// The number of blocks that were fetched ahead, less those that were used.
    unused: u64,
    trees: Trees,
}

impl Backing {
    pub(super) fn new(
        store: Arc<dyn Store>,
        changes: bool,
        control: &Control,
        driver_status: &Arc<DriverStatus>,
    ) -> Self {
        Self {
            store,
            control: control.clone(),
            driver_status: driver_status.clone(),
            changes,
            blocks: Vec::new(),
            unused: 0,
            trees: Trees::default(),
        }
    }

    /// The size of the file in bytes.
    pub(super) fn size(&self) -> u64 {
        self.store.size()
    }

    /// Keeps the store's error, for the caller that turns the error of libhdf5 into its own.
    pub(super) fn fail(&self, error: Error) {
        self.driver_status.fail(error);
    }

    /// Fills `out` from byte `at` of the store on; addresses in the file count from `base` on.
    pub(super) fn read(&mut self, at: u64, out: &mut [u8], base: u64) -> Result<()> {
        let mut done = 0;
        if self.changes {
            self.blocks.clear();
        }
        while done < out.len() {
            let here = at.saturating_add(done as u64);
            let block = self.block(here / BLOCK)?;
            let Some(bytes) =
                block.get((here % BLOCK) as usize..).filter(|bytes| !bytes.is_empty())
            else {
                return Err(Error::Truncated {
                    file: self.store.name().clone(),
                    what: "metadata".into(),
                    offset: at,
                    size: self.store.size(),
                    advice: ", or an address in it is damaged",
                });
            };
            let part = bytes.len().min(out.len() - done);
            out[done..done + part].copy_from_slice(&bytes[..part]);
            done += part;
        }
        if !self.changes {
            let nodes =
                children(out).unwrap_or_else(|| self.trees.children(at.wrapping_sub(base), out));
            self.expect(&nodes, out.len() as u64, base);
        }
        Ok(())
    }

    fn block(&mut self, number: u64) -> Result<&[u8]> {
        if let Some(at) = self.blocks.iter().position(|block| block.number == number) {
            self.blocks[at..].rotate_left(1);
        } else {
            if self.control.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let goes_on = number.checked_sub(1).is_some_and(|before| self.has(before));
            let start = number.saturating_mul(BLOCK);
            let most = if goes_on { AHEAD * BLOCK } else { BLOCK };
            let len = self.store.size().saturating_sub(start).min(most) as usize;
            let mut bytes = vec![0; len];
            if len > 0 {
                self.store.read_at(start, &mut bytes)?;
                allowance::read(len as u64);
            }
            // The wanted block is pushed last, as the latest used.
            for (i, part) in bytes.chunks(BLOCK as usize).enumerate().rev() {
                let number = number + i as u64;
                if !self.has(number) {
                    self.blocks.push(BackingBlock {
                        number,
                        bytes: part.to_vec(),
                        expected: false,
                    });
                }
            }
            self.blocks.drain(..self.blocks.len().saturating_sub(KEPT));
            if len == 0 {
                return Ok(&[]);
            }
        }
        let Some(block) = self.blocks.last_mut() else { return Ok(&[]) };
        if std::mem::take(&mut block.expected) {
            self.unused -= 1;
        }
        Ok(&block.bytes)
    }

    fn has(&self, number: u64) -> bool {
        self.blocks.iter().any(|block| block.number == number)
    }

    /// Fetches nodes of `len` bytes together that libhdf5 would fetch one after the other. A node
    /// that cannot be fetched is left out; a later read of it reports the error.
    fn expect(&mut self, nodes: &[u64], len: u64, base: u64) {
        let mut wanted = Vec::new();
        for node in nodes {
            let Some(end) = node.checked_add(base).and_then(|start| start.checked_add(len)) else {
                continue;
            };
            if end > self.size() {
                continue;
            }
            for number in (end - len) / BLOCK..=(end - 1) / BLOCK {
                if !wanted.contains(&number) && !self.has(number) && wanted.len() < KEPT / 2 {
                    wanted.push(number);
                }
            }
        }
        if wanted.len() < 2 || self.unused + wanted.len() as u64 > MOST_UNUSED {
            return;
        }
        let range = |number: &u64| number * BLOCK..(number * BLOCK + BLOCK).min(self.size());
        let ranges: Vec<_> = wanted.iter().map(range).collect();
        let fetch =
            |ranges| read_many(&*self.store, ranges, DEPTH, &self.control).unwrap_or_default();
        // The time of the first request shows whether threads are worth it.
        let started = Instant::now();
        let mut fetched = fetch(&ranges[..1]);
        if started.elapsed() > AT_ONCE {
            fetched.extend(fetch(&ranges[1..]));
        }
        // The block that is needed next is pushed last, so it is dropped last.
        for (number, bytes) in wanted.into_iter().zip(fetched).rev() {
            let Ok(bytes) = bytes else { continue };
            allowance::read(bytes.len() as u64);
            self.unused += 1;
            self.blocks.push(BackingBlock { number, bytes, expected: true });
        }
        self.blocks.drain(..self.blocks.len().saturating_sub(KEPT));
    }
}
