//! Stored bytes to values: pure functions, no I/O, no threads.
//!
//! Signal codecs *append* decoded samples to a `Vec<i16>`, so that many reads share one buffer, and never allocate
//! more than the coded bytes can hold. A defect is a [`Fault`](crate::Fault) with the offset inside the coded bytes.
