//! Arrow IPC files: a footer with the schema and the places of all batches, and the head of each batch, which says where
//! in it the buffers are (Arrow columnar format, "IPC File Format" and "Encapsulated message format").
//!
//! ```text
//! "ARROW1\0\0"  schema message  { batch: ff ff ff ff, i32 head length, head, padding, body }*
//! footer (FlatBuffers)  i32 footer length  "ARROW1"
//! ```
//!
//! All FlatBuffers are verified, all places checked against what they lie in, so that nothing here can be led astray.

use std::ops::Range;

use arrow_ipc::{Buffer, FieldNode, MessageHeader, RecordBatch};

use crate::Fault;

use super::schema::Schema;

/// First and, without its padding, last bytes of a table.
pub const MAGIC: &[u8; 6] = b"ARROW1";

/// Footer length and magic at the end of a table.
pub const END_BYTES: usize = 4 + MAGIC.len();

/// The continuation mark and the length before a batch's head.
pub(super) const PREFIX_BYTES: usize = 8;

/// Most bytes of a batch's head: it holds a few numbers for each column.
pub const MOST_HEAD: usize = 1 << 20;

/// Where a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Where it starts, from the start of the table.
    pub offset: u64,
    /// Bytes of its head, prefix and padding included.
    pub head: u32,
    /// Bytes of its body.
    pub body: u64,
}

impl Block {
    /// Where its body is, from the start of the table.
    pub fn body_range(&self) -> Range<u64> {
        let start = self.offset + u64::from(self.head);
        start..start + self.body
    }

    /// All of it, from the start of the table.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.body_range().end
    }
}

/// A table's footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// Its columns.
    pub schema: Schema,
    /// The dictionary batches.
    pub dictionaries: Vec<Block>,
    /// The record batches.
    pub batches: Vec<Block>,
}

/// Bytes of the footer before the last [`END_BYTES`] bytes of a table, given those.
///
/// # Errors
/// When the table of `len` bytes does not end as one, or its footer would not fit.
pub fn footer_len(end: &[u8], len: u64) -> Result<u64, Fault> {
    let Some((length, _)) = end.split_first_chunk::<4>().filter(|(_, magic)| *magic == MAGIC) else {
        return Err(Fault::new(0, format!("\"{}\"", end.escape_ascii()), "the end of an Arrow IPC file"));
    };
    let length = i32::from_le_bytes(*length);
    let most = len.saturating_sub((END_BYTES + MAGIC.len() + 2) as u64);
    u64::try_from(length)
        .ok()
        .filter(|&length| length <= most)
        .ok_or_else(|| Fault::new(0, format!("a footer of {length} bytes"), format!("one of at most {most} bytes")))
}

impl Footer {
    /// Reads the footer of a table whose batches lie in its first `limit` bytes.
    ///
    /// # Errors
    /// A FlatBuffer that does not verify, types that POD5 files do not have, batches outside the table.
    pub fn parse(bytes: &[u8], limit: u64) -> Result<Self, Fault> {
        let footer = arrow_ipc::root_as_footer(bytes).map_err(|e| unverified("footer", &e))?;
        let schema = footer.schema().ok_or_else(|| Fault::new(0, "a footer without a schema", "one with"))?;
        let place = |block: &arrow_ipc::Block| place(block, limit);
        let footer = Self {
            schema: Schema::parse(schema)?,
            dictionaries: footer.dictionaries().into_iter().flatten().map(place).collect::<Result<_, _>>()?,
            batches: footer.recordBatches().into_iter().flatten().map(place).collect::<Result<_, _>>()?,
        };
        footer.check_gaps(limit)?;
        Ok(footer)
    }

    /// Batches follow one another up to the footer, as a stream's messages do: a gap is a batch that the footer has lost.
    fn check_gaps(&self, limit: u64) -> Result<(), Fault> {
        let mut blocks: Vec<Range<u64>> = self.dictionaries.iter().chain(&self.batches).map(Block::range).collect();
        blocks.sort_unstable_by_key(|block| block.start);
        let ends = blocks.iter().map(|block| block.end);
        let next = blocks.iter().skip(1).map(|block| block.start).chain([limit]);
        match ends.zip(next).find(|(end, next)| next.checked_sub(*end).is_none_or(|gap| gap > MOST_GAP)) {
            None => Ok(()),
            Some((end, next)) => {
                let found = format!("batches that end at byte {end} and go on at byte {next} of their table");
                Err(Fault::new(0, found, "batches that follow one another"))
            }
        }
    }
}

/// Between two batches there is padding at most, and behind the last one the mark that ends them.
const MOST_GAP: u64 = 64;

fn place(block: &arrow_ipc::Block, limit: u64) -> Result<Block, Fault> {
    let parts = || {
        let offset = u64::try_from(block.offset()).ok()?;
        let head = u32::try_from(block.metaDataLength()).ok()?;
        let body = u64::try_from(block.bodyLength()).ok()?;
        let fits = offset.checked_add(u64::from(head))?.checked_add(body)? <= limit;
        (fits && head as usize >= PREFIX_BYTES && head as usize <= MOST_HEAD).then_some(Block { offset, head, body })
    };
    parts().ok_or_else(|| {
        let (offset, head, body) = (block.offset(), block.metaDataLength(), block.bodyLength());
        let found = format!("a batch at byte {offset} with a head of {head} and a body of {body} bytes");
        Fault::new(0, found, format!("one within the {limit} bytes of its table, its head at most {MOST_HEAD} bytes"))
    })
}

#[cold]
fn unverified(what: &str, error: &dyn std::fmt::Display) -> Fault {
    // The verifier's own words go on for lines.
    let error = error.to_string();
    let first = error.lines().next().unwrap_or_default();
    Fault::new(0, format!("a {what} that is no valid FlatBuffer ({first})"), "one that is")
}

/// Values of one column in one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) len: u64,
    pub(super) nulls: u64,
}

/// What the head of a batch says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Rows of the batch.
    pub rows: u64,
    /// Of a dictionary's batch: which dictionary, and whether it adds to what came before.
    pub dictionary: Option<(i64, bool)>,
    pub(super) nodes: Vec<Node>,
    /// Within the body.
    pub(super) buffers: Vec<Range<u64>>,
}

impl Head {
    /// Reads the head of a batch, prefix included, whose body has `body` bytes.
    ///
    /// # Errors
    /// A FlatBuffer that does not verify, something other than a batch, buffers outside the body, a compressed body.
    pub fn parse(bytes: &[u8], body: u64) -> Result<Self, Fault> {
        let message = message(bytes)?;
        let message = arrow_ipc::root_as_message(message).map_err(|e| unverified("batch head", &e))?;
        let (batch, dictionary) = match message.header_type() {
            MessageHeader::RecordBatch => (message.header_as_record_batch(), None),
            MessageHeader::DictionaryBatch => {
                let of = message.header_as_dictionary_batch();
                (of.and_then(|of| of.data()), of.map(|of| (of.id(), of.isDelta())))
            }
            other => return Err(Fault::new(0, format!("a message of type {other:?}"), "a batch")),
        };
        let batch = batch.ok_or_else(|| Fault::new(0, "a batch without contents", "its nodes and buffers"))?;
        Self::of(batch, dictionary, body)
    }

    fn of(batch: RecordBatch<'_>, dictionary: Option<(i64, bool)>, body: u64) -> Result<Self, Fault> {
        if let Some(compression) = batch.compression() {
            let found = format!("a batch whose body is compressed ({:?})", compression.codec());
            return Err(Fault::new(0, found, PLAIN_BODY));
        }
        let count = |value: i64, what: &str| {
            u64::try_from(value).map_err(|_| Fault::new(0, format!("{value} {what}"), "none or more"))
        };
        let node = |node: &FieldNode| {
            Ok(Node { len: count(node.length(), "values")?, nulls: count(node.null_count(), "missing values")? })
        };
        let buffer = |buffer: &Buffer| {
            let start = u64::try_from(buffer.offset()).ok();
            let end = start.zip(u64::try_from(buffer.length()).ok()).and_then(|(start, len)| start.checked_add(len));
            start.zip(end).filter(|&(_, end)| end <= body).map(|(start, end)| start..end).ok_or_else(|| {
                let found = format!("a buffer of {} bytes at byte {} of a body", buffer.length(), buffer.offset());
                Fault::new(0, found, format!("one within the body's {body} bytes"))
            })
        };
        Ok(Self {
            rows: count(batch.length(), "rows")?,
            dictionary,
            nodes: batch.nodes().into_iter().flatten().map(node).collect::<Result<_, Fault>>()?,
            buffers: batch.buffers().into_iter().flatten().map(buffer).collect::<Result<_, Fault>>()?,
        })
    }
}

/// What a fault about a compressed body expects: such files are whole, but nobody writes them.
pub const PLAIN_BODY: &str = "an uncompressed one, as POD5 files have";

/// The FlatBuffer of a message that starts `bytes`.
fn message(bytes: &[u8]) -> Result<&[u8], Fault> {
    let (mark, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| short(bytes))?;
    let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(|| short(bytes))?;
    if *mark != [0xff; 4] {
        return Err(Fault::new(0, format!("\"{}\"", mark.escape_ascii()), "the continuation mark of an Arrow message"));
    }
    let length = u32::from_le_bytes(*length) as usize;
    rest.get(..length).ok_or_else(|| {
        Fault::new(
            4,
            format!("a head of {length} bytes"),
            format!("at most the {} bytes that the footer gives it", rest.len()),
        )
    })
}

#[cold]
fn short(bytes: &[u8]) -> Fault {
    Fault::new(0, format!("{} bytes", bytes.len()), "the head of an Arrow message")
}

/// What a message is, for whoever meets it without a footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// The columns of what follows.
    Schema(Schema),
    /// A batch: its body has so many bytes and follows.
    Batch {
        /// Bytes.
        body: u64,
        /// Whether it is a dictionary's.
        is_dictionary: bool,
    },
    /// Something else.
    Other,
}

impl Message {
    /// Stands where no more messages follow.
    pub const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

    /// Bytes of the head that starts `bytes`, prefix and padding included; `None` where no message starts, as after the
    /// last one.
    pub fn head_len(bytes: &[u8]) -> Option<usize> {
        let (mark, rest) = bytes.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*rest.first_chunk()?) as usize;
        (*mark == [0xff; 4] && length > 0).then(|| length.saturating_add(PREFIX_BYTES))
    }

    /// Reads the head of a message, prefix included.
    ///
    /// # Errors
    /// A FlatBuffer that does not verify, a body of less than no bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let message = arrow_ipc::root_as_message(message(bytes)?).map_err(|e| unverified("message", &e))?;
        let body = u64::try_from(message.bodyLength())
            .map_err(|_| Fault::new(0, format!("a body of {} bytes", message.bodyLength()), "none or more"))?;
        Ok(match message.header_type() {
            MessageHeader::Schema => match message.header_as_schema() {
                Some(schema) => Self::Schema(Schema::parse(schema)?),
                None => Self::Other,
            },
            MessageHeader::RecordBatch => Self::Batch { body, is_dictionary: false },
            MessageHeader::DictionaryBatch => Self::Batch { body, is_dictionary: true },
            _ => Self::Other,
        })
    }
}
