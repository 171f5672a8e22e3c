//! Reads into new files of any format.

pub use crate::fast5::Fast5Writer;
pub use crate::file::save_index;
pub use crate::format::Coding;
pub use crate::output::{Encoded, ReadEncoder, ReadSink, Sealed, Target, WrittenFile};
pub use crate::pod5::Pod5Writer;
pub use crate::slow5::ReadWriter;
