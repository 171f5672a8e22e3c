//! The framing of Arrow IPC: messages, and the heads of batches, which say where in a body the
//! buffers are (Arrow columnar format, "Encapsulated message format").
//!
//! All FlatBuffers are verified, all places checked against what they lie in, so that nothing here
//! can be led astray.

use std::ops::Range;

use arrow_ipc::{Buffer, FieldNode, MessageHeader, RecordBatch};

use crate::error::Fault;

/// The continuation mark and the length before a batch's head.
pub const PREFIX_BYTES: usize = 8;

/// The fault of bytes that are no valid FlatBuffer.
#[cold]
pub fn unverified(what: &str, error: &dyn std::fmt::Display) -> Fault {
    // The verifier's own words go on for lines.
    let error = error.to_string();
    let first = error.lines().next().unwrap_or_default();
    Fault::new(0, format!("a {what} that is no valid FlatBuffer ({first})"), "one that is")
}

/// Values of one column in one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnNode {
    /// How many values.
    pub len: u64,
    /// How many of them are missing.
    pub nulls: u64,
}

/// What the head of a batch says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Rows of the batch.
    pub rows: u64,
    /// Of a dictionary's batch: which dictionary, and whether it adds to what came before.
    pub dictionary: Option<(i64, bool)>,
    /// One for each column, those inside of others included.
    pub nodes: Vec<ColumnNode>,
    /// Where the columns' buffers are, within the body.
    pub buffers: Vec<Range<u64>>,
}

impl Head {
    /// Reads the head of a batch, prefix included, whose body has `body` bytes.
    ///
    /// # Errors
    /// A FlatBuffer that does not verify, something other than a batch, buffers outside the body, a
    /// compressed body.
    pub fn parse(bytes: &[u8], body: u64) -> Result<Self, Fault> {
        let message = message(bytes)?;
        let message =
            arrow_ipc::root_as_message(message).map_err(|e| unverified("batch head", &e))?;
        let (batch, dictionary) = match message.header_type() {
            MessageHeader::RecordBatch => (message.header_as_record_batch(), None),
            MessageHeader::DictionaryBatch => {
                let of = message.header_as_dictionary_batch();
                (of.and_then(|of| of.data()), of.map(|of| (of.id(), of.isDelta())))
            }
            other => return Err(Fault::new(0, format!("a message of type {other:?}"), "a batch")),
        };
        let batch = batch
            .ok_or_else(|| Fault::new(0, "a batch without contents", "its nodes and buffers"))?;
        Self::of(batch, dictionary, body)
    }

    fn of(
        batch: RecordBatch<'_>,
        dictionary: Option<(i64, bool)>,
        body: u64,
    ) -> Result<Self, Fault> {
        if let Some(compression) = batch.compression() {
            let found = format!("a batch whose body is compressed ({:?})", compression.codec());
            return Err(Fault::new(0, found, PLAIN_BODY));
        }
        let count = |value: i64, what: &str| {
            u64::try_from(value)
                .map_err(|_| Fault::new(0, format!("{value} {what}"), "none or more"))
        };
        let node = |node: &FieldNode| {
            Ok(ColumnNode {
                len: count(node.length(), "values")?,
                nulls: count(node.null_count(), "missing values")?,
            })
        };
        let buffer = |buffer: &Buffer| {
            let start = u64::try_from(buffer.offset()).ok();
            let end = start
                .zip(u64::try_from(buffer.length()).ok())
                .and_then(|(start, len)| start.checked_add(len));
            start
                .zip(end)
                .filter(|&(_, end)| end <= body)
                .map(|(start, end)| start..end)
                .ok_or_else(|| {
                    let found = format!(
                        "a buffer of {} bytes at byte {} of a body",
                        buffer.length(),
                        buffer.offset()
                    );
                    Fault::new(0, found, format!("one within the body's {body} bytes"))
                })
        };
        Ok(Self {
            rows: count(batch.length(), "rows")?,
            dictionary,
            nodes: batch.nodes().into_iter().flatten().map(node).collect::<Result<_, Fault>>()?,
            buffers: batch
                .buffers()
                .into_iter()
                .flatten()
                .map(buffer)
                .collect::<Result<_, Fault>>()?,
        })
    }
}

/// What a fault about a compressed body expects: such files are whole, but nobody writes them.
pub(crate) const PLAIN_BODY: &str = "an uncompressed one, as POD5 files have";

/// The FlatBuffer of a message that starts `bytes`.
fn message(bytes: &[u8]) -> Result<&[u8], Fault> {
    let (mark, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| short(bytes))?;
    let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(|| short(bytes))?;
    if *mark != [0xff; 4] {
        return Err(Fault::new(
            0,
            format!("\"{}\"", mark.escape_ascii()),
            "the continuation mark of an Arrow message",
        ));
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
#[derive(Debug, Clone)]
pub enum Message<'a> {
    /// The columns of what follows.
    Schema(arrow_ipc::Schema<'a>),
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

impl<'a> Message<'a> {
    /// Stands where no more messages follow.
    pub const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

    /// Bytes of the head that starts `bytes`, prefix and padding included; `None` where no message
    /// starts, as after the last one.
    pub fn head_len(bytes: &[u8]) -> Option<usize> {
        let (mark, rest) = bytes.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*rest.first_chunk()?) as usize;
        (*mark == [0xff; 4] && length > 0).then(|| length.saturating_add(PREFIX_BYTES))
    }

    /// Reads the head of a message, prefix included.
    ///
    /// # Errors
    /// A FlatBuffer that does not verify, a body of less than no bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Fault> {
        let message =
            arrow_ipc::root_as_message(message(bytes)?).map_err(|e| unverified("message", &e))?;
        let body = u64::try_from(message.bodyLength()).map_err(|_| {
            Fault::new(0, format!("a body of {} bytes", message.bodyLength()), "none or more")
        })?;
        Ok(match message.header_type() {
            MessageHeader::Schema => match message.header_as_schema() {
                Some(schema) => Self::Schema(schema),
                None => Self::Other,
            },
            MessageHeader::RecordBatch => Self::Batch { body, is_dictionary: false },
            MessageHeader::DictionaryBatch => Self::Batch { body, is_dictionary: true },
            _ => Self::Other,
        })
    }
}
