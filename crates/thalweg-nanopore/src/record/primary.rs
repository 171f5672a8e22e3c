//! One read: the primary fields, the stored signal, and the auxiliary bytes (section "BLOW5
//! record").
//!
//! ```text
//! u16 id length, id, u32 read group, f64 digitisation, f64 offset, f64 range, f64 sampling rate,
//! u64 signal length, signal, auxiliary fields
//! ```

use thalweg_codec::{ex_zd, svb};
use thalweg_io::Fault;

use super::auxiliary::{self, AuxValues};
use super::{Header, SignalPress, quoted};

/// Bytes of a read id's length.
const ID_LEN_BYTES: usize = 2;

/// Bytes of a plain sample.
const SAMPLE_BYTES: usize = 2;

/// A record, borrowed from its decompressed bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Record<'a> {
    /// The read's id.
    pub read_id: &'a str,
    /// The number of the read's group in the header.
    pub read_group: u32,
    /// Steps of the analog-to-digital converter: picoampere = (sample + offset) · range /
    /// digitisation.
    pub digitisation: f64,
    /// Added to a sample before scaling.
    pub offset: f64,
    /// The converter's full scale in picoampere.
    pub range: f64,
    /// Samples per second.
    pub sampling_rate: f64,
    /// The stored signal, in the header's signal compression. Empty for a record from text, whose
    /// samples are parsed separately.
    pub signal: &'a [u8],
    /// The stored auxiliary fields.
    pub aux: &'a [u8],
}

/// Reads the fields of a record one after the other.
struct FieldReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> FieldReader<'a> {
    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Fault> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(value) = rest.first_chunk() else { return Err(self.cut_short(what)) };
        self.at += N;
        Ok(*value)
    }

    fn slice(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], Fault> {
        let slice = self.at.checked_add(len).and_then(|end| self.bytes.get(self.at..end));
        let Some(slice) = slice else { return Err(self.cut_short(what)) };
        self.at += len;
        Ok(slice)
    }

    fn double(&mut self, what: &'static str) -> Result<f64, Fault> {
        self.array(what).map(f64::from_le_bytes)
    }

    #[cold]
    fn cut_short(&self, what: &'static str) -> Fault {
        Fault::new(
            self.at,
            format!("{} bytes left in the record", self.bytes.len() - self.at),
            what,
        )
    }
}

fn read_id(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|e| {
        Fault::new(
            ID_LEN_BYTES + e.valid_up_to(),
            format!("the read id {}", quoted(bytes)),
            "UTF-8 text",
        )
    })
}

impl<'a> Record<'a> {
    /// Parses a record from its decompressed bytes without allocation.
    ///
    /// # Errors
    ///
    /// When the fields do not fill the bytes exactly, the header does not have the read group, or
    /// the id is not UTF-8.
    #[inline]
    pub fn parse(payload: &'a [u8], header: &Header) -> Result<Self, Fault> {
        let mut fields = FieldReader { bytes: payload, at: 0 };
        let id_len = u16::from_le_bytes(fields.array("the length of the read id")?);
        let read_id = read_id(fields.slice(usize::from(id_len), "the read id")?)?;
        let group_at = fields.at;
        let read_group = u32::from_le_bytes(fields.array("the read group")?);
        if read_group >= header.read_groups {
            let expected = format!("less than {}, the number of read groups", header.read_groups);
            return Err(Fault::new(group_at, format!("read group {read_group}"), expected));
        }
        let digitisation = fields.double("the digitisation")?;
        let offset = fields.double("the offset")?;
        let range = fields.double("the range")?;
        let sampling_rate = fields.double("the sampling rate")?;
        let len_at = fields.at;
        let len = u64::from_le_bytes(fields.array("the length of the signal")?);
        let bytes = signal_bytes(len, header.signal_press)
            .filter(|&bytes| bytes <= payload.len() - fields.at)
            .ok_or_else(|| {
                too_long(len, header.signal_press, payload.len() - fields.at).shifted(len_at)
            })?;
        let signal = fields.slice(bytes, "the signal")?;
        let aux = payload.get(fields.at..).unwrap_or_default();
        auxiliary::verify(&header.aux, aux).map_err(|fault| fault.shifted(fields.at))?;
        Ok(Self { read_id, read_group, digitisation, offset, range, sampling_rate, signal, aux })
    }

    /// The read id from the first decompressed bytes of a record; `None` if there are too few
    /// bytes.
    ///
    /// # Errors
    ///
    /// When the id is not UTF-8.
    pub fn read_id_of(prefix: &'a [u8]) -> Result<Option<&'a str>, Fault> {
        let Some((len, rest)) = prefix.split_first_chunk() else { return Ok(None) };
        rest.get(..usize::from(u16::from_le_bytes(*len))).map(read_id).transpose()
    }

    /// The number of samples of the signal, if it is known without decompressing it.
    ///
    /// # Errors
    ///
    /// When the signal is too short for its own count. Other damage is detected by decoding.
    pub fn sample_count(&self, signal_press: SignalPress) -> Result<Option<usize>, Fault> {
        match signal_press {
            SignalPress::None => Ok(Some(self.signal.len() / SAMPLE_BYTES)),
            SignalPress::SvbZd => svb::zd::samples(self.signal).map(Some),
            SignalPress::ExZd => ex_zd::samples(self.signal).map(Some),
            // A 32-bit count, then at least one byte per sample.
            SignalPress::Svb16Zd => match self.signal.split_first_chunk() {
                Some((count, rest)) if u32::from_le_bytes(*count) as usize <= rest.len() => {
                    Ok(Some(u32::from_le_bytes(*count) as usize))
                }
                _ => Err(Fault::new(
                    0,
                    format!("{} bytes of signal", self.signal.len()),
                    "a count that fits them",
                )),
            },
            SignalPress::Zlib | SignalPress::Zstd | SignalPress::Vbz => Ok(None),
        }
    }

    /// The auxiliary values, in the order of the header that the record was parsed with.
    pub fn aux_values<'h>(&self, header: &'h Header) -> AuxValues<'a, 'h> {
        AuxValues::new(&header.aux, self.aux)
    }

    /// Appends the record's bytes before record compression. `signal_press` is the compression of
    /// [`Record::signal`].
    ///
    /// # Errors
    ///
    /// When the read id is longer than 65,535 bytes, or plain samples have an odd number of bytes.
    pub fn encode(&self, signal_press: SignalPress, out: &mut Vec<u8>) -> Result<(), Fault> {
        let id_len = u16::try_from(self.read_id.len()).map_err(|_| {
            Fault::new(0, format!("a read id of {} bytes", self.read_id.len()), "at most 65535")
        })?;
        let len = match signal_press {
            SignalPress::None if !self.signal.len().is_multiple_of(SAMPLE_BYTES) => {
                return Err(Fault::new(
                    0,
                    format!("{} bytes of samples", self.signal.len()),
                    "an even number",
                ));
            }
            SignalPress::None => self.signal.len() / SAMPLE_BYTES,
            _ => self.signal.len(),
        };
        out.extend(id_len.to_le_bytes());
        out.extend(self.read_id.as_bytes());
        out.extend(self.read_group.to_le_bytes());
        for field in [self.digitisation, self.offset, self.range, self.sampling_rate] {
            out.extend(field.to_le_bytes());
        }
        out.extend((len as u64).to_le_bytes());
        out.extend(self.signal);
        out.extend(self.aux);
        Ok(())
    }
}

/// The number of bytes of a signal. The stored length is the number of samples for plain samples,
/// and the number of bytes for compressed ones.
fn signal_bytes(len: u64, press: SignalPress) -> Option<usize> {
    let len = usize::try_from(len).ok()?;
    match press {
        SignalPress::None => len.checked_mul(SAMPLE_BYTES),
        _ => Some(len),
    }
}

#[cold]
fn too_long(len: u64, press: SignalPress, room: usize) -> Fault {
    let unit = if press == SignalPress::None { "samples" } else { "bytes" };
    Fault::new(
        0,
        format!("a signal of {len} {unit}"),
        format!("at most the {room} bytes left in the record"),
    )
}

#[cfg(test)]
mod tests;
