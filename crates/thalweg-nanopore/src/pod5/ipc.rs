//! Arrow IPC files. The footer has the schema and the places of all batches. The head of each batch
//! has the places of its buffers (Arrow columnar format, "IPC File Format" and "Encapsulated
//! message format").
//!
//! ```text
//! "ARROW1\0\0"  schema message  { batch: ff ff ff ff, i32 head length, head, padding, body }*
//! footer (FlatBuffers)  i32 footer length  "ARROW1"
//! ```
//!
//! All FlatBuffers are verified, and all places are checked to lie within their table.

use std::ops::Range;

use thalweg_io::Fault;
use thalweg_io::arrow_ipc::{PREFIX_BYTES, unverified};

use super::schema::Schema;

/// The first bytes of a table and, without padding, also the last.
pub const MAGIC: &[u8; 6] = b"ARROW1";

/// Size of the footer length and the magic at the end of a table.
pub(crate) const END_BYTES: usize = 4 + MAGIC.len();

/// Largest allowed head of a batch. A head holds a few numbers for each column.
pub(crate) const MOST_HEAD: usize = 1 << 20;

/// The place of a batch in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpcBlock {
    /// The start of the batch, from the start of the table.
    pub offset: u64,
    /// Bytes of the batch's head, including prefix and padding.
    pub head: u32,
    /// Bytes of the batch's body.
    pub body: u64,
}

impl IpcBlock {
    /// The range of the batch's body, from the start of the table.
    pub(crate) fn body_range(&self) -> Range<u64> {
        let start = self.offset + u64::from(self.head);
        start..start + self.body
    }

    /// The range of the whole batch, from the start of the table.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.body_range().end
    }

    /// The range of the whole batch in a file whose table starts at `table`.
    pub(crate) fn range_in_file(&self, table: u64) -> Range<u64> {
        let range = self.range();
        table + range.start..table + range.end
    }
}

/// A table's footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFooter {
    /// The columns of the table.
    pub schema: Schema,
    /// The dictionary batches.
    pub dictionaries: Vec<IpcBlock>,
    /// The record batches.
    pub batches: Vec<IpcBlock>,
}

/// The size of the footer, from the last [`END_BYTES`] bytes of a table of `len` bytes. The footer
/// ends directly before these bytes.
///
/// # Errors
/// When the bytes are not the end of a table, or the footer would not fit into the table.
pub(crate) fn footer_len(end: &[u8], len: u64) -> Result<u64, Fault> {
    let Some((length, _)) = end.split_first_chunk::<4>().filter(|(_, magic)| *magic == MAGIC)
    else {
        return Err(Fault::new(
            0,
            format!("\"{}\"", end.escape_ascii()),
            "the end of an Arrow IPC file",
        ));
    };
    let length = i32::from_le_bytes(*length);
    let most = len.saturating_sub((END_BYTES + MAGIC.len() + 2) as u64);
    u64::try_from(length).ok().filter(|&length| length <= most).ok_or_else(|| {
        Fault::new(0, format!("a footer of {length} bytes"), format!("one of at most {most} bytes"))
    })
}

impl TableFooter {
    /// Parses the footer of a table whose batches lie in its first `limit` bytes.
    ///
    /// # Errors
    /// An invalid FlatBuffer, types that POD5 files do not have, and batches outside the table.
    pub fn parse(bytes: &[u8], limit: u64) -> Result<Self, Fault> {
        let footer = arrow_ipc::root_as_footer(bytes).map_err(|e| unverified("footer", &e))?;
        let schema = footer
            .schema()
            .ok_or_else(|| Fault::new(0, "a footer without a schema", "one with"))?;
        let place = |block: &arrow_ipc::Block| place(block, limit);
        let footer = Self {
            schema: Schema::parse(schema)?,
            dictionaries: footer
                .dictionaries()
                .into_iter()
                .flatten()
                .map(place)
                .collect::<Result<_, _>>()?,
            batches: footer
                .recordBatches()
                .into_iter()
                .flatten()
                .map(place)
                .collect::<Result<_, _>>()?,
        };
        footer.check_gaps(limit)?;
        Ok(footer)
    }

    /// Checks that the batches follow one another up to the footer. A gap means that a batch is
    /// missing in the footer.
    fn check_gaps(&self, limit: u64) -> Result<(), Fault> {
        let mut blocks: Vec<Range<u64>> =
            self.dictionaries.iter().chain(&self.batches).map(IpcBlock::range).collect();
        blocks.sort_unstable_by_key(|block| block.start);
        let ends = blocks.iter().map(|block| block.end);
        let next = blocks.iter().skip(1).map(|block| block.start).chain([limit]);
        match ends
            .zip(next)
            .find(|(end, next)| next.checked_sub(*end).is_none_or(|gap| gap > MOST_GAP))
        {
            None => Ok(()),
            Some((end, next)) => {
                let found = format!(
                    "batches that end at byte {end} and go on at byte {next} of their table"
                );
                Err(Fault::new(0, found, "batches that follow one another"))
            }
        }
    }
}

/// Largest gap between two batches, which can only be padding. After the last batch, the gap holds
/// the end-of-stream marker.
const MOST_GAP: u64 = 64;

fn place(block: &arrow_ipc::Block, limit: u64) -> Result<IpcBlock, Fault> {
    let parts =
        || {
            let offset = u64::try_from(block.offset()).ok()?;
            let head = u32::try_from(block.metaDataLength()).ok()?;
            let body = u64::try_from(block.bodyLength()).ok()?;
            let fits = offset.checked_add(u64::from(head))?.checked_add(body)? <= limit;
            (fits && head as usize >= PREFIX_BYTES && head as usize <= MOST_HEAD)
                .then_some(IpcBlock { offset, head, body })
        };
    parts().ok_or_else(|| {
        let offset = block.offset();
        let head = block.metaDataLength();
        let body = block.bodyLength();
        let found =
            format!("a batch at byte {offset} with a head of {head} and a body of {body} bytes");
        Fault::new(
            0,
            found,
            format!(
                "one within the {limit} bytes of its table, its head at most {MOST_HEAD} bytes"
            ),
        )
    })
}
