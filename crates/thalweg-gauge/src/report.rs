//! Reports of comparisons: plain text for a terminal, Markdown, and one self-contained HTML page.
//!
//! All three show the same facts, including everything that was rejected, refused or
//! unverified.

mod bottleneck;
mod columns;
mod compared;
mod facts;
mod figure;
mod headline;
mod html;
mod markdown;
mod page;
mod table;

pub use columns::wrapped;
pub use compared::{html as compared_html, text as compared_text};
pub use figure::{Figure, plotly_text};
pub use html::html;
pub use markdown::{is_markdown_file, markdown, markdown_file};
pub use page::{figures_page, is_page};
pub use table::{machine, text};
