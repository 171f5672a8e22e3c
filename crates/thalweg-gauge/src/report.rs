//! A comparison for people: plain text for a terminal, Markdown, and one self-contained HTML page.
//!
//! All three say the same, from the same [`facts`]; none leaves out what was rejected, refused or unverified.

mod chart;
mod facts;
mod html;
mod markdown;
mod table;

pub use html::html;
pub use markdown::markdown;
pub use table::{machine, text};
