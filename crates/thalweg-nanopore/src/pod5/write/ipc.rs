//! The frame of an Arrow IPC file: the bytes before, between and after its batches (Arrow columnar
//! format, "IPC File Format"). Batches are encoded elsewhere, so that they can be kept, or written
//! without joining their parts.

use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_ipc::{Block, FooterBuilder, MetadataVersion};
use arrow_schema::Schema;
use flatbuffers::FlatBufferBuilder;

use crate::pod5::MAGIC;

/// The bytes before the length of a message's metadata.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Every message of the file starts at a multiple of this many bytes.
const ALIGNMENT: usize = 8;

/// Arrow's default options. They align the buffers of a batch as the POD5 library does.
pub(super) fn options() -> IpcWriteOptions {
    IpcWriteOptions::default()
}

/// Pads `out` with zeros, so that it has a multiple of 8 bytes after `from`.
pub(super) fn pad(out: &mut Vec<u8>, from: usize) {
    let len = (out.len() - from).next_multiple_of(ALIGNMENT);
    out.resize(from + len, 0);
}

/// Appends the length of a message's metadata, and the metadata. Returns the number of appended
/// bytes. The caller appends the body.
pub(super) fn push_metadata(metadata: &[u8], out: &mut Vec<u8>) -> i32 {
    let from = out.len();
    // A message's metadata grows with its columns, not its rows.
    let len = metadata.len().next_multiple_of(ALIGNMENT) as i32;
    out.extend(CONTINUATION);
    out.extend(len.to_le_bytes());
    out.extend(metadata);
    pad(out, from);
    (out.len() - from) as i32
}

/// The size of an encoded message.
#[derive(Debug, Clone, Copy)]
pub(super) struct EncodedMessage {
    /// Bytes of the metadata, including its prefix and padding.
    pub(super) metadata: i32,
    /// Bytes of the body.
    pub(super) body: i64,
}

impl EncodedMessage {
    fn len(self) -> i64 {
        i64::from(self.metadata) + self.body
    }
}

/// The places of the messages of an IPC file that is being written.
#[derive(Debug)]
pub(super) struct IpcFile {
    schema: Schema,
    len: i64,
    dictionaries: Vec<Block>,
    batches: Vec<Block>,
}

impl IpcFile {
    /// Appends the magic and the schema. `tracker` numbers the dictionaries of the schema.
    pub(super) fn start(
        schema: Schema,
        tracker: &mut DictionaryTracker,
        out: &mut Vec<u8>,
    ) -> Self {
        let from = out.len();
        out.extend(MAGIC);
        pad(out, from);
        let message = IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(
            &schema,
            tracker,
            &options(),
        );
        push_metadata(&message.ipc_message, out);
        Self {
            schema,
            len: (out.len() - from) as i64,
            dictionaries: Vec::new(),
            batches: Vec::new(),
        }
    }

    /// Records a batch that follows the previous messages.
    pub(super) fn batch(&mut self, message: EncodedMessage) {
        self.batches.push(self.block(message));
        self.len += message.len();
    }

    /// Records a dictionary batch that follows the previous messages.
    pub(super) fn dictionary(&mut self, message: EncodedMessage) {
        self.dictionaries.push(self.block(message));
        self.len += message.len();
    }

    fn block(&self, message: EncodedMessage) -> Block {
        Block::new(self.len, message.metadata, message.body)
    }

    /// Appends the end of the file after the last message. Returns the length of the whole file.
    pub(super) fn finish(self, out: &mut Vec<u8>) -> u64 {
        let from = out.len();
        out.extend(CONTINUATION);
        out.extend(0_i32.to_le_bytes());
        let mut builder = FlatBufferBuilder::new();
        let dictionaries = builder.create_vector(&self.dictionaries);
        let batches = builder.create_vector(&self.batches);
        let schema = IpcSchemaEncoder::new()
            .with_dictionary_tracker(&mut DictionaryTracker::new(true))
            .schema_to_fb_offset(&mut builder, &self.schema);
        let mut footer = FooterBuilder::new(&mut builder);
        footer.add_version(MetadataVersion::V5);
        footer.add_schema(schema);
        footer.add_dictionaries(dictionaries);
        footer.add_recordBatches(batches);
        let footer = footer.finish();
        builder.finish(footer, None);
        let footer = builder.finished_data();
        out.extend(footer);
        // The cast is exact: a batch takes 24 bytes in the footer, so that a footer of 2 GiB would
        // need almost 10^8 batches.
        out.extend((footer.len() as i32).to_le_bytes());
        out.extend(MAGIC);
        self.len as u64 + (out.len() - from) as u64
    }
}
