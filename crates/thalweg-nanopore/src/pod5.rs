//! POD5: nanopore reads as three Arrow tables in one file.
//!
//! A reader parses the [`Container`], then the [`TableFooter`] of each table. [`ReadsTable`] gives
//! the rows, [`SignalLayout`] the places of their signal, and [`SignalDecoder`] the samples. A row
//! of the Reads table becomes the [`Record`](crate::record::Record) that [`fields`] describes. A
//! run becomes the attributes of a read group ([`RunInfo`]).
//!
//! Section names refer to the POD5 specification, <https://pod5-file-format.readthedocs.io>.

mod batch;
mod container;
mod dictionary;
pub mod fields;
mod file;
mod flatbuffer;
mod ipc;
mod reads;
mod run_info;
mod schema;
mod signal;
mod spill;
mod target;
mod uuid;
pub mod write;
mod writer;

pub use crate::record::StoredRow;
pub use batch::{BatchArray, TableBatch};
pub use container::{Container, SIGNATURE, Section, SectionContent, TAIL_BYTES, head, tail};
pub(crate) use container::{FIRST_SECTION, FOOTER_MAGIC, MARKER_BYTES};
pub use dictionary::Dictionaries;
pub use file::Pod5Info;
pub(crate) use file::{Pod5File, Pod5Unpacker, is_index, open};
pub(crate) use ipc::{END_BYTES, MOST_HEAD, footer_len};
pub use ipc::{IpcBlock, MAGIC, TableFooter};
pub use reads::{ReadsTable, RecordScratch, SignalRows};
pub use run_info::{RunInfo, RunValue, attributes};
pub use schema::{ColumnKind, ColumnSchema, Schema};
pub use signal::{RowCoding, SignalDecoder, SignalLayout, SignalPlaces, SignalRowExtent};
pub(crate) use target::Pod5Target;
pub use uuid::format_uuid;
pub(crate) use uuid::{UUID_BYTES, parse_uuid};
pub use writer::Pod5Writer;
