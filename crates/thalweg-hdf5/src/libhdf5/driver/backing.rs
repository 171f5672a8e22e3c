//! The store behind an open file, and the blocks of it that are kept for the next read.

use std::sync::Arc;

use thalweg_io::control::Control;
use thalweg_io::store::Store;
use thalweg_io::{Error, Result};

use super::DriverStatus;
use crate::libhdf5::allowance;

/// Bytes of a block. In a file that was written live, the nodes of an index lie far apart, so
/// longer blocks would be read for nothing: of the 450 MB that were read for the 200,000 chunks of
/// such a file, 10 MB were needed.
const BLOCK: u64 = 16 << 10;
/// The number of blocks that are kept.
const KEPT: usize = 256;
/// Blocks that are read at a time if the block before them is kept.
const AHEAD: u64 = 4;

/// A block of the file.
struct BackingBlock {
    number: u64,
    bytes: Vec<u8>,
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

    /// Fills `out` from byte `at` of the store on.
    pub(super) fn read(&mut self, at: u64, out: &mut [u8]) -> Result<()> {
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
                    self.blocks.push(BackingBlock { number, bytes: part.to_vec() });
                }
            }
            self.blocks.drain(..self.blocks.len().saturating_sub(KEPT));
            if len == 0 {
                return Ok(&[]);
            }
        }
        Ok(self.blocks.last().map_or(&[], |block| &block.bytes))
    }

    fn has(&self, number: u64) -> bool {
        self.blocks.iter().any(|block| block.number == number)
    }
}
