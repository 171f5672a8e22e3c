//! Reads into new files of any format.
//!
//! A [`Coding`] names the format and its options. Its encoder serves one worker; its target knows
//! how the reads of one header are written:
//!
//! ```
//! use thalweg_nanopore::pod5::write::Pod5Layout;
//! use thalweg_nanopore::synth::{Recipe, Synth, SynthRead};
//! use thalweg_nanopore::write::Coding;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("reads.pod5");
//! let synth = Synth::new(Recipe { reads: 3, mean_length: 4000.0, ..Recipe::default() })?;
//! let header = synth.full_header();
//! let coding = Coding::Pod5(Pod5Layout::default());
//! let mut encoder = coding.encoder()?;
//! let target = coding.target(&header)?;
//! let mut file = target.create(&path)?;
//! let mut read = SynthRead::default();
//! let mut aux = Vec::new();
//! for number in 0..3 {
//!     synth.read(number, &mut read);
//!     let record = read.record(&header, &mut aux)?;
//!     file.push(encoder.encode(&target, &record, &read.samples)?)?;
//! }
//! assert_eq!(file.finish()?.reads, 3);
//! # Ok(())
//! # }
//! ```

pub use crate::coding_choice::CodingChoice;
pub use crate::fast5::Fast5Writer;
pub use crate::file::{save_index, save_sidecar};
pub use crate::format::Coding;
pub use crate::output::{Encoded, ReadEncoder, ReadSink, Sealed, Target, WrittenFile};
pub use crate::pod5::Pod5Writer;
pub use crate::slow5::ReadWriter;
