//! The framing of Arrow IPC: messages, and the heads of batches, which locate the buffers in a
//! message body (Arrow columnar format, "Encapsulated message format").
//!
//! Every FlatBuffer is verified, and every offset and length is checked against the bytes that
//! contain it. Damaged or hostile input therefore cannot cause reads outside of these bytes.

use std::ops::Range;

use arrow_ipc::{Buffer, FieldNode, MessageHeader, RecordBatch};

use crate::error::Fault;

/// Bytes of the continuation mark and the length, which precede the head of a batch.
pub const PREFIX_BYTES: usize = 8;

/// The fault for bytes that are not a valid FlatBuffer.
#[cold]
pub fn unverified(what: &str, error: &dyn std::fmt::Display) -> Fault {
    // The verifier's message has several lines; the first is enough.
    let error = error.to_string();
    let first = error.lines().next().unwrap_or_default();
    Fault::new(0, format!("a {what} that is no valid FlatBuffer ({first})"), "one that is")
}

/// The counts of values of one column in one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnNode {
    /// The number of values.
    pub len: u64,
    /// The number of missing values.
    pub nulls: u64,
}

/// The contents of the head of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The number of rows of the batch.
    pub rows: u64,
    /// For a dictionary batch: the id of the dictionary, and whether the batch adds to an earlier
    /// one.
    pub dictionary: Option<(i64, bool)>,
    /// One node for each column, nested columns included.
    pub nodes: Vec<ColumnNode>,
    /// Byte ranges of the columns' buffers within the body.
    pub buffers: Vec<Range<u64>>,
}

impl Head {
    /// Parses the head of a batch, which starts with its prefix. The body of the batch has `body`
    /// bytes.
    ///
    /// # Errors
    /// A FlatBuffer that fails verification, a message that is not a batch, a buffer outside the
    /// body, or a compressed body.
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

/// The expectation in a fault about a compressed body. Arrow permits compressed bodies; POD5 files
/// do not have them.
pub(crate) const PLAIN_BODY: &str = "an uncompressed one, as POD5 files have";

/// The FlatBuffer of the message at the start of `bytes`.
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

/// The kind of a message, for readers that find messages without the file's footer.
#[derive(Debug, Clone)]
pub enum Message<'a> {
    /// The columns of the batches that follow.
    Schema(arrow_ipc::Schema<'a>),
    /// The head of a batch. The body of the batch follows it.
    Batch {
        /// Size of the body in bytes.
        body: u64,
        /// Whether it is a dictionary batch.
        is_dictionary: bool,
    },
    /// A message of another kind.
    Other,
}

impl<'a> Message<'a> {
    /// The end-of-stream mark, after the last message.
    pub const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

    /// Length in bytes of the head at the start of `bytes`, including prefix and padding. `None` if
    /// no message starts there, for instance after the last message.
    pub fn head_len(bytes: &[u8]) -> Option<usize> {
        let (mark, rest) = bytes.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*rest.first_chunk()?) as usize;
        (*mark == [0xff; 4] && length > 0).then(|| length.saturating_add(PREFIX_BYTES))
    }

    /// Parses the head of a message, which starts with its prefix.
    ///
    /// # Errors
    /// A FlatBuffer that fails verification, or a negative body length.
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
