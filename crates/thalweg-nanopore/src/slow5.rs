//! SLOW5 (text) and BLOW5 (binary): nanopore reads, one record a read.
//!
//! Both encodings have one header and one record shape. A reader goes [`Header::parse`] →
//! [`Framing::next`] → [`Decoder::record`], and meets the same [`Record`] whichever encoding it
//! came from. Section numbers in this module refer to the SLOW5 specification, version 1.0.0.
//!
//! ```
//! use thalweg_nanopore::slow5::Header;
//! use thalweg_nanopore::slow5::Parsed;
//!
//! let text = b"#slow5_version\t0.2.0\n#num_read_groups\t1\n@run_id\tabc\n\
//!     #char*\tuint32_t\tdouble\tdouble\tdouble\tdouble\tuint64_t\tint16_t*\n\
//!     #read_id\tread_group\tdigitisation\toffset\trange\tsampling_rate\tlen_raw_signal\traw_signal\n";
//! let Parsed::Done(header) = Header::parse(text)? else { return Ok(()) };
//! assert_eq!(header.attribute("run_id", 0), Some("abc"));
//! assert_eq!(header.data_offset, text.len() as u64);
//! # Ok::<(), thalweg_io::Fault>(())
//! ```

pub mod ascii;
mod auxiliary;
mod coding;
mod frame;
mod header;
mod index;
mod merge;
mod number;
mod press;
mod record;
pub mod resync;
mod version;

pub use auxiliary::{AuxArray, AuxField, AuxType, AuxValue, AuxValues, Scalar};
pub use coding::{Decoder, Encoder};
pub use frame::{Frame, Framing};
pub(super) use header::MAGIC;
pub use header::{Attribute, Encoding, Header, Parsed};
pub use index::{Entry, Index};
pub use merge::Merged;
pub use press::{RecordPress, SignalPress};
pub use record::Record;
pub use version::Version;

/// What a fault quotes of the bytes it found: at most this many, so that a message stays one line.
const QUOTED_BYTES: usize = 40;

/// The bytes as a message shows them: printable, short, in quotation marks.
fn quoted(bytes: &[u8]) -> String {
    match bytes.get(..QUOTED_BYTES) {
        Some(head) if bytes.len() > QUOTED_BYTES => format!("\"{}...\"", head.escape_ascii()),
        _ => format!("\"{}\"", bytes.escape_ascii()),
    }
}
