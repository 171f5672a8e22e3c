//! Writing the Signal table: rows of samples, batch by batch.

use arrow_ipc::writer::DictionaryTracker;
use arrow_ipc::{
    Buffer, FieldNode, MessageBuilder, MessageHeader, MetadataVersion, RecordBatchBuilder,
};
use arrow_schema::{DataType, Field, Schema};
use flatbuffers::FlatBufferBuilder;

use super::ipc::{EncodedMessage, IpcFile, push_metadata};
use super::{EncodedSignal, Identity, SignalCoding, schema};

/// Buffers of a body start at multiples of this many bytes, as with [`super::ipc::options`].
const ALIGNMENT: usize = 64;

/// The Signal table being written.
#[derive(Debug)]
pub(super) struct SignalTable {
    file: IpcFile,
    coding: SignalCoding,
    rows_per_batch: usize,
    /// The number of rows, written and waiting.
    rows: u64,
    ids: Vec<[u8; 16]>,
    samples: Vec<u32>,
    chunks: Vec<Vec<u8>>,
}

/// The columns (specification, "Signal table").
fn columns(coding: SignalCoding) -> Vec<Field> {
    let signal = match coding {
        SignalCoding::Vbz { .. } => {
            schema::extension(Field::new("signal", DataType::LargeBinary, true), "minknow.vbz")
        }
        SignalCoding::Plain => {
            Field::new("signal", DataType::new_large_list(DataType::Int16, true), true)
        }
    };
    vec![schema::read_id(), signal, Field::new("samples", DataType::UInt32, true)]
}

impl SignalTable {
    pub(super) fn start(
        identity: &Identity,
        software: &str,
        coding: SignalCoding,
        rows_per_batch: usize,
        out: &mut Vec<u8>,
    ) -> Self {
        let schema =
            Schema::new_with_metadata(columns(coding), schema::metadata(identity, software));
        let file = IpcFile::start(schema, &mut DictionaryTracker::new(true), out);
        Self {
            file,
            coding,
            rows_per_batch,
            rows: 0,
            ids: Vec::new(),
            samples: Vec::new(),
            chunks: Vec::new(),
        }
    }

    /// Adds a read's signal, and appends full batches to `out`. Returns the numbers of its rows.
    pub(super) fn push(
        &mut self,
        id: [u8; 16],
        signal: EncodedSignal,
        out: &mut Vec<u8>,
    ) -> std::ops::Range<u64> {
        let first = self.rows;
        for (samples, chunk) in signal.chunks {
            self.ids.push(id);
            self.samples.push(samples);
            self.chunks.push(chunk);
            self.rows += 1;
            if self.ids.len() == self.rows_per_batch {
                self.batch(out);
            }
        }
        first..self.rows
    }

    /// Appends the last batch and the end of the table. Returns the table's length.
    pub(super) fn finish(mut self, out: &mut Vec<u8>) -> u64 {
        if !self.ids.is_empty() {
            self.batch(out);
        }
        self.file.finish(out)
    }

    /// Appends the waiting rows as a batch. The body is written directly from the rows. Arrow's own
    /// writer is not used, because it would need a joined copy of all rows.
    fn batch(&mut self, out: &mut Vec<u8>) {
        let rows = self.ids.len() as i64;
        let unit = if self.coding == SignalCoding::Plain { size_of::<i16>() } else { 1 };
        let bytes: usize = self.chunks.iter().map(Vec::len).sum();
        let mut nodes = vec![FieldNode::new(rows, 0); 3];
        // The buffers of each column in order. Validity buffers are empty, because no value is
        // null. The items of a list are a column of their own after the list's validity and
        // offsets.
        let mut lens = vec![0, self.ids.len() * 16, 0, (self.chunks.len() + 1) * size_of::<i64>()];
        if self.coding == SignalCoding::Plain {
            nodes.insert(2, FieldNode::new((bytes / unit) as i64, 0));
            lens.push(0);
        }
        lens.extend([bytes, 0, self.samples.len() * size_of::<u32>()]);
        let mut at = 0;
        let buffers: Vec<Buffer> = lens
            .into_iter()
            .map(|len| {
                let buffer = Buffer::new(at as i64, len as i64);
                at += len.next_multiple_of(ALIGNMENT);
                buffer
            })
            .collect();

        let metadata = push_metadata(&record_batch(rows, &nodes, &buffers, at as i64), out);
        let body = out.len();
        out.reserve(at);
        out.extend(self.ids.as_flattened());
        align(out, body);
        let mut offset = 0_i64;
        out.extend(offset.to_le_bytes());
        for chunk in &self.chunks {
            offset += (chunk.len() / unit) as i64;
            out.extend(offset.to_le_bytes());
        }
        align(out, body);
        for chunk in &self.chunks {
            out.extend(chunk);
        }
        align(out, body);
        for samples in &self.samples {
            out.extend(samples.to_le_bytes());
        }
        align(out, body);
        self.file.batch(EncodedMessage { metadata, body: at as i64 });
        self.ids.clear();
        self.samples.clear();
        self.chunks.clear();
    }
}

fn align(out: &mut Vec<u8>, from: usize) {
    let len = (out.len() - from).next_multiple_of(ALIGNMENT);
    out.resize(from + len, 0);
}

/// The metadata of a record batch message (Arrow, `Message.fbs`).
fn record_batch(rows: i64, nodes: &[FieldNode], buffers: &[Buffer], body: i64) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let nodes = builder.create_vector(nodes);
    let buffers = builder.create_vector(buffers);
    let mut batch = RecordBatchBuilder::new(&mut builder);
    batch.add_length(rows);
    batch.add_nodes(nodes);
    batch.add_buffers(buffers);
    let batch = batch.finish().as_union_value();
    let mut message = MessageBuilder::new(&mut builder);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(MessageHeader::RecordBatch);
    message.add_header(batch);
    message.add_bodyLength(body);
    let message = message.finish();
    builder.finish(message, None);
    builder.finished_data().to_vec()
}
