//! The codecs from outside. One program, so that it links once.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod bytes;
mod signal;
