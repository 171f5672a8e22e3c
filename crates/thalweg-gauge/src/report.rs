//! A comparison for people: plain text for a terminal, Markdown, and one self-contained HTML page.
//!
//! All three say the same, from the same `facts`; none leaves out what was rejected, refused or
//! unverified.

mod compared;
mod facts;
mod figure;
mod html;
mod markdown;
mod page;
mod table;

pub use compared::{html as compared_html, text as compared_text};
pub(crate) use facts::clock;
pub use figure::Figure;
pub use html::html;
pub use markdown::markdown;
pub use page::figures_page;
pub use table::{machine, text};
