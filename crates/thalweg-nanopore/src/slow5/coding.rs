//! Decoding and encoding records: record compression, the record's fields, and signal compression.
//! A worker reuses contexts and scratch memory for all records.

use std::fmt;

use thalweg_codec::{deflate, ex_zd, svb, svb16, zstd};
use thalweg_io::Fault;

use super::{Encoding, Framing, Header, Record, RecordPress, SignalPress, ascii, auxiliary};

/// Bytes of a plain sample.
const SAMPLE_BYTES: usize = 2;

/// Bytes that are decompressed first to find a read id. Almost all ids are UUIDs of 36 characters.
const ID_PREFIX_BYTES: usize = 2 + 62;

/// Bytes that contain any read id.
const LONGEST_ID_BYTES: usize = 2 + u16::MAX as usize;

/// The compression level of zlib, which is also slow5lib's. It is used for records with plain
/// samples. For coded samples, [`deflate::RunCompressor`] compresses better.
const ZLIB_LEVEL: i32 = 6;

/// The compression level of zstd, which is also slow5lib's. Higher levels gain little on signal.
const ZSTD_LEVEL: i32 = 1;

/// Decodes records for one worker.
pub struct RecordDecoder {
    limit: usize,
    codecs: Codecs,
    payload: Vec<u8>,
    samples: Vec<i16>,
}

impl fmt::Debug for RecordDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// The decompressors, and scratch memory between two decompressions. The payload is separate,
/// because records borrow from it.
struct Codecs {
    zstd: zstd::ZstdDecompressor,
    deflate: deflate::DeflateDecompressor,
    plain: Vec<u8>,
    samples: Vec<i16>,
}

impl RecordDecoder {
    /// A decoder that refuses records and compressed signals of more than `limit` decompressed
    /// bytes. Without a limit, a small file could decompress to more than the memory budget.
    pub fn new(limit: usize) -> Self {
        let codecs = Codecs {
            zstd: zstd::ZstdDecompressor::new(),
            deflate: deflate::DeflateDecompressor::new(),
            plain: Vec::new(),
            samples: Vec::new(),
        };
        Self { limit, codecs, payload: Vec::new(), samples: Vec::new() }
    }

    /// Sets the limit of decompressed bytes.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Decompresses a record to the bytes for [`Record::parse`]. A record without compression is
    /// returned unchanged.
    ///
    /// # Errors
    ///
    /// When the bytes are not valid for the compression, or decompress beyond the limit.
    pub fn payload<'a>(
        &'a mut self,
        press: RecordPress,
        stored: &'a [u8],
    ) -> Result<&'a [u8], Fault> {
        self.codecs.payload(press, stored, &mut self.payload, self.limit)
    }

    /// Decompresses a signal, and appends the samples to `out`.
    ///
    /// # Errors
    ///
    /// When the bytes are not valid for the compression, or decompress beyond the limit. `out` is
    /// then unchanged.
    pub fn signal(
        &mut self,
        press: SignalPress,
        stored: &[u8],
        out: &mut Vec<i16>,
    ) -> Result<(), Fault> {
        self.codecs.signal(press, stored, out, self.limit)
    }

    /// Decodes a stored record or row from [`Framing::next`], and appends its samples to `samples`.
    ///
    /// # Errors
    ///
    /// When the record is malformed. `samples` is then unchanged.
    pub fn record<'a>(
        &'a mut self,
        header: &Header,
        stored: &'a [u8],
        samples: &mut Vec<i16>,
    ) -> Result<Record<'a>, Fault> {
        let Self { limit, codecs, payload, .. } = self;
        if header.encoding == Encoding::Ascii {
            return ascii::parse_row(stored, header, payload, samples);
        }
        let payload = codecs.payload(header.record_press, stored, payload, *limit)?;
        let record = Record::parse(payload, header)?;
        let signal_at = payload.len() - record.aux.len() - record.signal.len();
        codecs
            .signal(header.signal_press, record.signal, samples, *limit)
            .map_err(|fault| fault.shifted(signal_at))?;
        Ok(record)
    }

    /// Decodes a stored record without its signal. Returns the record and its number of samples.
    ///
    /// # Errors
    ///
    /// Those of [`RecordDecoder::record`], except for defects inside the signal.
    pub fn fields<'a>(
        &'a mut self,
        header: &Header,
        stored: &'a [u8],
    ) -> Result<(Record<'a>, u64), Fault> {
        let Self { limit, codecs, payload, samples } = self;
        if header.encoding == Encoding::Ascii {
            return ascii::parse_fields(stored, header, payload);
        }
        let payload = codecs.payload(header.record_press, stored, payload, *limit)?;
        let record = Record::parse(payload, header)?;
        let signal_at = payload.len() - record.aux.len() - record.signal.len();
        let shifted = |fault: Fault| fault.shifted(signal_at);
        let count = match record.sample_count(header.signal_press).map_err(shifted)? {
            Some(count) => count,
            // Some development compressions do not store the number of samples.
            None => {
                samples.clear();
                codecs
                    .signal(header.signal_press, record.signal, samples, *limit)
                    .map_err(shifted)?;
                samples.len()
            }
        };
        Ok((record, count as u64))
    }

    /// The read id of a stored record. Decompresses only the start of the record where possible.
    ///
    /// # Errors
    ///
    /// When the start of the record is malformed.
    pub fn read_id<'a>(&'a mut self, header: &Header, stored: &'a [u8]) -> Result<&'a str, Fault> {
        let Self { limit, codecs, payload, .. } = self;
        if header.encoding == Encoding::Ascii {
            return ascii::read_id_of(stored)?.ok_or_else(|| {
                Fault::new(stored.len(), "the end of the row", "a tab after the read id")
            });
        }
        let press = header.record_press;
        codecs.prefix(press, stored, payload, ID_PREFIX_BYTES, *limit)?;
        if matches!(Record::read_id_of(payload), Ok(None)) {
            codecs.prefix(press, stored, payload, LONGEST_ID_BYTES, *limit)?;
        }
        Record::read_id_of(payload)?.ok_or_else(|| {
            Fault::new(payload.len(), format!("{} bytes of record", payload.len()), "the read id")
        })
    }

    /// Frees scratch memory beyond `keep` bytes per buffer, after a record of unusual size.
    pub fn trim(&mut self, keep: usize) {
        for buffer in [&mut self.payload, &mut self.codecs.plain] {
            buffer.clear();
            buffer.shrink_to(keep);
        }
        for buffer in [&mut self.samples, &mut self.codecs.samples] {
            buffer.clear();
            buffer.shrink_to(keep / SAMPLE_BYTES);
        }
    }
}

impl Codecs {
    fn payload<'a>(
        &mut self,
        press: RecordPress,
        stored: &'a [u8],
        scratch: &'a mut Vec<u8>,
        limit: usize,
    ) -> Result<&'a [u8], Fault> {
        match press {
            RecordPress::None => return Ok(stored),
            RecordPress::Zlib => self.deflate.decompress(stored, scratch, limit)?,
            RecordPress::Zstd => self.zstd.decompress(stored, scratch, limit)?,
            RecordPress::SvbZd => {
                self.samples.clear();
                svb::zd::decode(stored, &mut self.samples)?;
                scratch.clear();
                push_plain(&self.samples, scratch);
            }
        }
        Ok(scratch)
    }

    fn signal(
        &mut self,
        press: SignalPress,
        stored: &[u8],
        out: &mut Vec<i16>,
        limit: usize,
    ) -> Result<(), Fault> {
        match press {
            SignalPress::None => plain(stored, out),
            SignalPress::SvbZd => svb::zd::decode(stored, out),
            SignalPress::ExZd => ex_zd::decode(stored, out),
            SignalPress::Svb16Zd => svb16::decode_prefixed(stored, out),
            SignalPress::Zlib => {
                self.deflate.decompress(stored, &mut self.plain, limit)?;
                plain(&self.plain, out)
            }
            SignalPress::Zstd => {
                self.zstd.decompress(stored, &mut self.plain, limit)?;
                plain(&self.plain, out)
            }
            SignalPress::Vbz => {
                self.zstd.decompress(stored, &mut self.plain, limit)?;
                svb16::decode_prefixed(&self.plain, out)
            }
        }
    }

    /// Replaces `out` by the first `n` bytes of the record, or by all bytes of a shorter record.
    fn prefix(
        &mut self,
        press: RecordPress,
        stored: &[u8],
        out: &mut Vec<u8>,
        n: usize,
        limit: usize,
    ) -> Result<(), Fault> {
        match press {
            RecordPress::Zlib => self.deflate.prefix(stored, out, n),
            RecordPress::Zstd => self.zstd.prefix(stored, out, n),
            RecordPress::None => {
                out.clear();
                out.extend(stored.get(..n).unwrap_or(stored));
                Ok(())
            }
            // This compression is not used in practice, so that it has no decoder that stops early.
            RecordPress::SvbZd => self.payload(press, stored, out, limit).map(|_| ()),
        }
    }
}

/// Appends plain little-endian samples.
fn plain(bytes: &[u8], out: &mut Vec<i16>) -> Result<(), Fault> {
    let (samples, rest) = bytes.as_chunks::<SAMPLE_BYTES>();
    if !rest.is_empty() {
        return Err(Fault::new(
            bytes.len() - 1,
            format!("{} bytes of samples", bytes.len()),
            "an even number",
        ));
    }
    out.extend(samples.iter().map(|&sample| i16::from_le_bytes(sample)));
    Ok(())
}

fn push_plain(samples: &[i16], out: &mut Vec<u8>) {
    out.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
}

/// Encodes records for one worker.
pub struct RecordEncoder {
    codecs: Compressors,
    plain: Vec<u8>,
    signal: Vec<u8>,
    payload: Vec<u8>,
    stored: Vec<u8>,
}

impl fmt::Debug for RecordEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

impl RecordEncoder {
    /// An encoder with the compression levels of slow5lib.
    ///
    /// # Errors
    ///
    /// When there is no memory for the contexts of the compressors.
    pub fn new() -> Result<Self, Fault> {
        Ok(Self {
            codecs: Compressors {
                zstd: zstd::ZstdCompressor::new(ZSTD_LEVEL)?,
                deflate: deflate::DeflateCompressor::new(ZLIB_LEVEL)?,
                runs: deflate::RunCompressor::default(),
            },
            plain: Vec::new(),
            signal: Vec::new(),
            payload: Vec::new(),
            stored: Vec::new(),
        })
    }

    /// Compresses samples and appends them to `out`, in the form of [`Record::signal`].
    ///
    /// # Errors
    ///
    /// When there are more samples than the compression can count.
    pub fn signal(
        &mut self,
        press: SignalPress,
        samples: &[i16],
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        self.plain.clear();
        match press {
            SignalPress::None => {
                push_plain(samples, out);
                return Ok(());
            }
            SignalPress::SvbZd => return svb::zd::encode(samples, out),
            SignalPress::ExZd => return ex_zd::encode(samples, out),
            SignalPress::Svb16Zd => return svb16::encode_prefixed(samples, out),
            SignalPress::Zlib | SignalPress::Zstd => push_plain(samples, &mut self.plain),
            SignalPress::Vbz => svb16::encode_prefixed(samples, &mut self.plain)?,
        }
        if press == SignalPress::Zlib {
            self.codecs.deflate.compress(&self.plain, &mut self.stored)?;
        } else {
            self.codecs.zstd.compress(&self.plain, &mut self.stored)?;
        }
        out.extend(&self.stored);
        Ok(())
    }

    /// Appends an encoded record with the size before it, or a row with the newline after it. The
    /// samples come from `samples`; [`Record::signal`] is ignored.
    ///
    /// # Errors
    ///
    /// When the record does not fit the header.
    pub fn record(
        &mut self,
        header: &Header,
        record: &Record<'_>,
        samples: &[i16],
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        if record.read_group >= header.read_groups {
            let expected = format!("less than {}, the number of read groups", header.read_groups);
            return Err(Fault::new(0, format!("read group {}", record.read_group), expected));
        }
        if header.encoding == Encoding::Ascii {
            return ascii::write_row(record, samples, header, out);
        }
        auxiliary::verify(&header.aux, record.aux)?;
        let mut signal = std::mem::take(&mut self.signal);
        signal.clear();
        let coded = self.signal(header.signal_press, samples, &mut signal);
        let Self { codecs, payload, stored, .. } = self;
        payload.clear();
        let encoded = coded
            .and_then(|()| {
                Record { signal: &signal, ..*record }.encode(header.signal_press, payload)
            })
            .and_then(|()| codecs.payload(header, payload, stored));
        self.signal = signal;
        Framing::new(header.encoding).push(encoded?, out);
        Ok(())
    }
}

/// The compressors.
struct Compressors {
    zstd: zstd::ZstdCompressor,
    deflate: deflate::DeflateCompressor,
    runs: deflate::RunCompressor,
}

impl Compressors {
    /// Compresses a record.
    fn payload<'a>(
        &mut self,
        header: &Header,
        payload: &'a [u8],
        stored: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Fault> {
        match header.record_press {
            RecordPress::None => return Ok(payload),
            RecordPress::Zlib if header.signal_press == SignalPress::None => {
                self.deflate.compress(payload, stored)?;
            }
            RecordPress::Zlib => self.runs.compress(payload, stored),
            RecordPress::Zstd => self.zstd.compress(payload, stored)?,
            RecordPress::SvbZd => {
                return Err(Fault::new(
                    0,
                    "record compression svb-zd",
                    "none, zlib or zstd; svb-zd is only read",
                ));
            }
        }
        Ok(stored)
    }
}

#[cfg(test)]
mod tests;
