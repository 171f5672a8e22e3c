//! What stands behind an open file: blocks of the store, kept for the next read, and fetched ahead
//! where it can be told which.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use thalweg_io::control::Control;
use thalweg_io::store::Store;
use thalweg_io::store::many::read_many;
use thalweg_io::{Error, Result};

use super::DriverStatus;
use super::expect::children;
use super::trees::Trees;

/// Bytes of a block, and how many are kept. A file that was written live has a node of an index
/// here and there, so that longer ones would be read for nothing: of 450 MB for the 200,000 chunks
/// of such a file, 10 were wanted.
const BLOCK: u64 = 16 << 10;
const KEPT: usize = 256;
/// Blocks read at a time where the one before has been read.
const AHEAD: u64 = 4;

/// A store that answers sooner has it in memory: waiting for it takes less than threads do.
const AT_ONCE: Duration = Duration::from_micros(40);
/// Requests in flight for what is expected.
const DEPTH: usize = 16;
/// So many blocks may be fetched for nothing before no more are expected: the file leads astray.
const IN_VAIN: u64 = 512;

/// A part of the file.
struct BackingBlock {
    number: u64,
    bytes: Vec<u8>,
    /// Nobody has asked for it yet.
    expected: bool,
}

/// What stands behind an open file.
pub(super) struct Backing {
    store: Arc<dyn Store>,
    control: Control,
    driver_status: Arc<DriverStatus>,
    /// Whether the file changes meanwhile, so that blocks are not kept.
    changes: bool,
    /// The latest used last.
    blocks: Vec<BackingBlock>,
    /// Blocks that were expected, less those that were asked for.
    in_vain: u64,
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
            in_vain: 0,
            trees: Trees::default(),
        }
    }

    /// Bytes of the file.
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
                self.driver_status.requests.fetch_add(1, Ordering::Relaxed);
                self.store.read_at(start, &mut bytes)?;
            }
            // The one that is wanted last, as the latest.
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
            self.in_vain -= 1;
        }
        Ok(&block.bytes)
    }

    fn has(&self, number: u64) -> bool {
        self.blocks.iter().any(|block| block.number == number)
    }

    /// Fetches nodes of `len` bytes at once that libhdf5 would fetch one after the other. Only a
    /// hint: what cannot be had is left to whoever asks for it.
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
        if wanted.len() < 2 || self.in_vain + wanted.len() as u64 > IN_VAIN {
            return;
        }
        let range = |number: &u64| number * BLOCK..(number * BLOCK + BLOCK).min(self.size());
        let ranges: Vec<_> = wanted.iter().map(range).collect();
        let fetch =
            |ranges| read_many(&*self.store, ranges, DEPTH, &self.control).unwrap_or_default();
        // The first tells whether it is worth threads.
        let started = Instant::now();
        let mut fetched = fetch(&ranges[..1]);
        if started.elapsed() > AT_ONCE {
            fetched.extend(fetch(&ranges[1..]));
        }
        self.driver_status.requests.fetch_add(fetched.len() as u64, Ordering::Relaxed);
        // The next one as the latest, so that it is the last to go.
        for (number, bytes) in wanted.into_iter().zip(fetched).rev() {
            let Ok(bytes) = bytes else { continue };
            self.in_vain += 1;
            self.blocks.push(BackingBlock { number, bytes, expected: true });
        }
        self.blocks.drain(..self.blocks.len().saturating_sub(KEPT));
    }
}
