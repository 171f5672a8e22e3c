//! Nanopore reads: SLOW5, BLOW5, POD5 and FAST5, through the engine of `thalweg-io`.
//!
//! [`reads`] opens a file of any of these formats and decodes it on all cores; [`mod@convert`]
//! makes one of another; [`synth`] makes realistic ones.

pub mod bam;
pub mod convert;
pub mod fast5;
#[doc(hidden)]
pub mod file;
pub mod format;
pub mod losses;
pub mod pod5;
pub mod reads;
pub mod record;
pub mod slow5;
pub mod synth;
pub mod write;
