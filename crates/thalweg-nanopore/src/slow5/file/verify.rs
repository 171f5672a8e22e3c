//! Decoding that continues after a defect. Each record has an outcome, and lost framing is reported
//! separately.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_io::extent::{Framer, Group, Step};
use thalweg_io::{Fault, Result, engine};

use super::unframe;
use crate::file::LIKELY_RATIO;
use crate::record::{Encoding, Header, Record, RecordPress};
use crate::slow5::{Frame, Framing, RecordDecoder, resync};

/// The id and the number of samples of an intact record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WholeRecord {
    pub(super) read_id: String,
    pub(super) samples: u64,
}

/// Decodes records in full.
pub(super) struct Verifier {
    limit: usize,
    /// Decompresses records. A record borrows from it while `signals` decompresses its signal.
    records: RecordDecoder,
    signals: RecordDecoder,
    samples: Vec<i16>,
}

/// Bytes of scratch memory that are kept after a record of unusual size.
const KEEP: usize = 16 << 20;

impl Verifier {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            records: RecordDecoder::new(limit),
            signals: RecordDecoder::new(limit),
            samples: Vec::new(),
        }
    }

    /// Decodes a stored record completely.
    pub(super) fn whole(&mut self, header: &Header, stored: &[u8]) -> Result<WholeRecord, Fault> {
        self.samples.clear();
        let limit = self.limit.max(stored.len().saturating_mul(LIKELY_RATIO));
        self.records.set_limit(limit);
        self.signals.set_limit(limit);
        let record = if header.encoding == Encoding::Ascii {
            self.records.record(header, stored, &mut self.samples)?
        } else {
            let payload = self.records.payload(header.record_press, stored)?;
            if header.record_press == RecordPress::Zlib && !resync::zlib_ends(stored, payload) {
                return Err(Fault::new(
                    0,
                    "bytes after the zlib stream",
                    "a record as long as its stream",
                ));
            }
            let record = Record::parse(payload, header)?;
            let signal_at = payload.len() - record.aux.len() - record.signal.len();
            let decoded =
                self.signals.signal(header.signal_press, record.signal, &mut self.samples);
            decoded.map_err(|fault| fault.shifted(signal_at))?;
            record
        };
        if let Some(fault) = record.aux_values(header).find_map(Result::err) {
            return Err(fault);
        }
        let whole =
            WholeRecord { read_id: record.read_id.to_owned(), samples: self.samples.len() as u64 };
        if self.samples.len() * size_of::<i16>() > KEEP {
            self.records.trim(KEEP);
            self.signals.trim(KEEP);
            self.samples = Vec::new();
        }
        Ok(whole)
    }
}

/// The place and the outcome of a record of the file.
pub(super) struct VerifiedRecord {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) outcome: Result<WholeRecord, Fault>,
    /// The frame's bytes, if they are needed and the record is intact; otherwise empty.
    pub(super) frame: Vec<u8>,
}

/// Verifies records. A damaged record does not end the run.
pub(super) struct VerifyDecoder {
    pub(super) header: Arc<Header>,
    pub(super) limit: usize,
    /// Whether batches contain the bytes of intact records.
    pub(super) keep: bool,
    /// Bytes after which a batch is handed over.
    pub(super) full: usize,
}

impl engine::Decoder for VerifyDecoder {
    type Worker = (Verifier, u64);
    type Batch = Vec<VerifiedRecord>;

    fn worker(&self) -> Self::Worker {
        (Verifier::new(self.limit), 0)
    }

    fn batch(&self) -> Self::Batch {
        Vec::new()
    }

    fn decode(
        &self,
        (verifier, bytes): &mut Self::Worker,
        group: &Group,
        next: &mut usize,
        batch: &mut Self::Batch,
    ) -> Result<()> {
        batch.clear();
        let mut held = 0;
        while let Some(extent) = group.get(*next) {
            let outcome = unframe(&self.header, &extent, None).and_then(|(start, stored)| {
                verifier.whole(&self.header, stored).map_err(|f| f.shifted(start))
            });
            let decoded =
                outcome.as_ref().map_or(0, |whole| whole.samples * size_of::<i16>() as u64);
            *bytes += decoded;
            let frame =
                if self.keep && outcome.is_ok() { extent.bytes.to_vec() } else { Vec::new() };
            // Decoded bytes take no memory here. They count so that a worker hands over its batch,
            // and notices cancellation, after a bounded time.
            held += frame.len() + decoded as usize;
            batch.push(VerifiedRecord {
                offset: extent.offset,
                len: extent.bytes.len() as u64,
                outcome,
                frame,
            });
            *next += 1;
            if held >= self.full {
                break;
            }
        }
        Ok(())
    }

    fn decoded_bytes((_, bytes): &Self::Worker) -> u64 {
        *bytes
    }
}

/// The reason why a stretch of frames ended.
#[derive(Debug, Clone)]
pub(super) enum FramingEnd {
    /// The proper end of the file at this offset.
    End(u64),
    /// There is no valid frame at this offset.
    Damaged(u64, Fault),
    /// The frame at this offset is unusually large (second value, in bytes), and must be searched
    /// for other records.
    Giant(u64, u64),
}

/// Finds records until the framing ends, and stores the reason in `stop`.
pub(super) struct VerifyFramer {
    pub(super) size: u64,
    pub(super) encoding: Encoding,
    /// Least number of stored bytes of a record.
    pub(super) least: u64,
    /// Longer frames are giants, except for the one at `trusted`.
    pub(super) most: u64,
    pub(super) trusted: Option<u64>,
    pub(super) stop: Arc<Mutex<Option<FramingEnd>>>,
}

impl VerifyFramer {
    fn stop(&self, why: FramingEnd) -> Step {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        Step::End
    }

    fn is_giant(&self, here: u64, len: usize) -> bool {
        len as u64 > self.most && self.trusted != Some(here)
    }
}

impl Framer for VerifyFramer {
    fn frame(
        &mut self,
        at: u64,
        bytes: &[u8],
        _last: bool,
        found: &mut Vec<Range<usize>>,
    ) -> Result<Step> {
        let framing = Framing::new(self.encoding);
        let mut used = 0;
        loop {
            let here = at + used as u64;
            let len = match framing.next(&bytes[used..], self.size - here) {
                Err(fault) => return Ok(self.stop(FramingEnd::Damaged(here, fault))),
                Ok(Frame::End) => return Ok(self.stop(FramingEnd::End(here))),
                Ok(Frame::Record { len, .. } | Frame::NeedMore(len))
                    if self.is_giant(here, len) =>
                {
                    return Ok(self.stop(FramingEnd::Giant(here, len as u64)));
                }
                Ok(Frame::NeedMore(need)) => return Ok(Step::More { used, need }),
                Ok(Frame::Record { len, .. }) => len,
            };
            let stored = len as u64 - SIZE_BYTES.min(len as u64);
            if self.encoding == Encoding::Binary && stored < self.least {
                let expected = format!("at least the {} bytes of the smallest record", self.least);
                let fault = Fault::new(0, format!("a record of {stored} bytes"), expected);
                return Ok(self.stop(FramingEnd::Damaged(here, fault)));
            }
            found.push(used..used + len);
            used += len;
        }
    }
}

/// Bytes of the size before a binary record.
const SIZE_BYTES: u64 = 8;
