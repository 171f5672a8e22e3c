//! SLOW5 (text) and BLOW5 (binary): nanopore reads, one record per read.
//!
//! Both encodings have the same header and the same fields of a record. A reader calls
//! [`Header::parse`], then [`Framing::next`] and [`RecordDecoder::record`] for each record, and
//! gets the same [`Record`] from either encoding. Section names in this module refer to the SLOW5
//! specification, version 1.0.0.
//!
//! ```
//! use thalweg_nanopore::slow5::Header;
//! use thalweg_nanopore::slow5::Parsed;
//!
//! let text = b"#slow5_version\t0.2.0\n#num_read_groups\t1\n@run_id\tabc\n\
//!     #char*\tuint32_t\tdouble\tdouble\tdouble\tdouble\tuint64_t\tint16_t*\n\
//!     #read_id\tread_group\tdigitisation\toffset\trange\tsampling_rate\t\
//!     len_raw_signal\traw_signal\n";
//! let Parsed::Done(header) = Header::parse(text)? else { return Ok(()) };
//! assert_eq!(header.attribute("run_id", 0), Some("abc"));
//! assert_eq!(header.data_offset, text.len() as u64);
//! # Ok::<(), thalweg_io::Fault>(())
//! ```

pub mod ascii;
mod coding;
mod file;
mod frame;
mod header;
pub mod resync;
mod target;
mod writer;

pub use crate::record::{
    Attribute, AuxArray, AuxField, AuxType, AuxValue, AuxValues, Encoding, Entry, Header, Index,
    Merged, Record, RecordPress, Scalar, SignalPress, Version,
};
pub use coding::{RecordDecoder, RecordEncoder};
pub(crate) use file::{Slow5Unpacker, open};
pub use frame::{Frame, Framing};
pub(crate) use header::MAGIC;
pub use header::Parsed;
pub(crate) use target::Slow5Target;
pub use writer::ReadWriter;

use crate::record::{auxiliary, number, quoted};
