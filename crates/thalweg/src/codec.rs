//! Stored bytes to values: pure functions, no I/O, no threads.
//!
//! Signal codecs *append* decoded samples to a `Vec<i16>`, so that many reads share one buffer, and never allocate
//! more than the coded bytes can hold. A defect is a [`Fault`](crate::Fault) with the offset inside the coded bytes,
//! and leaves the buffer as it was. Byte codecs ([`zstd`], [`deflate`]) *replace* the contents of their output and obey a limit.
//!
//! The SIMD kernels of the signal codecs stand in one place, `lanes`; each codec has a scalar twin that decides alone
//! what is a defect, so that every machine accepts and refuses the same bytes.

pub mod deflate;
pub mod ex_zd;
mod kernel;
mod lanes;
pub mod svb;
pub mod svb16;
pub mod vbz;
mod zigzag;
pub mod zstd;

#[doc(hidden)]
pub use kernel::Kernel;
