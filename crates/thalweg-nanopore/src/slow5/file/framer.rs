//! The engine's framer for SLOW5 and BLOW5 files.

use std::ops::Range;
use std::sync::Arc;

use thalweg_io::extent::{Framer, Step};
use thalweg_io::{InFile, Result};

use crate::record::Header;
use crate::slow5::{Frame, Framing};

/// Finds the records of a file of known size.
pub(super) struct RecordFramer {
    name: Arc<str>,
    size: u64,
    framing: Framing,
    records: u64,
}

impl RecordFramer {
    pub(super) fn new(name: Arc<str>, size: u64, header: &Header) -> Self {
        Self { name, size, framing: Framing::new(header.encoding), records: 0 }
    }
}

impl Framer for RecordFramer {
    fn frame(
        &mut self,
        at: u64,
        bytes: &[u8],
        _last: bool,
        found: &mut Vec<Range<usize>>,
    ) -> Result<Step> {
        let mut used = 0;
        loop {
            let here = at + used as u64;
            let frame = self.framing.next(&bytes[used..], self.size - here).map_err(|fault| {
                fault.in_file(&self.name, here, format!("after {} records", self.records))
            })?;
            match frame {
                Frame::Record { len, .. } => {
                    found.push(used..used + len);
                    used += len;
                    self.records += 1;
                }
                Frame::End => return Ok(Step::End),
                Frame::NeedMore(need) => return Ok(Step::More { used, need }),
            }
        }
    }
}
