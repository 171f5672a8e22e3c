//! Reads into new files of any format.

mod reads;

pub use crate::fast5::Fast5Writer;
pub use crate::file::save_index;
pub use crate::pod5::Pod5Writer;
pub use crate::slow5::ReadWriter;
pub use reads::{Coding, Encoded, ReadEncoder, ReadSink, Sealed, Target, WrittenFile};
