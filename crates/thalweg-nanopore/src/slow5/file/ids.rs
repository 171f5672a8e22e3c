//! Building the index from the read ids and places of all records.

use std::sync::Arc;

use thalweg_io::engine::{self, Delivery};
use thalweg_io::extent::Group;
use thalweg_io::{Error, Fault, InFile, Result};

use super::{label, stream, unframe};
use crate::file::OpenFile;
use crate::record::{Entry, Header, Index};
use crate::slow5::RecordDecoder;

/// Builds the index of a file by reading it.
pub(super) fn index(file: &OpenFile) -> Result<Index> {
    let mut index = Index::new(file.header.version);
    let decoder = IdDecoder { name: file.name().clone(), header: file.header.clone() };
    let mut run = file.start(stream(file)?, decoder, file.shape(Delivery::Ordered))?;
    while let Some(batch) = run.next() {
        let mut batch = batch?;
        for (id, entry) in batch.drain(..) {
            index.push(&id, entry).map_err(|fault| Error::Malformed {
                file: file.name().clone(),
                what: "read ids".into(),
                offset: entry.offset,
                found: fault.found,
                expected: fault.expected,
            })?;
        }
        run.recycle(batch);
    }
    Ok(index)
}

/// Decodes only read ids.
struct IdDecoder {
    name: Arc<str>,
    header: Arc<Header>,
}

/// Limit of decompressed bytes of a record. A read id ends within the first 65,537 bytes.
const ID_LIMIT: usize = 1 << 20;

impl engine::Decoder for IdDecoder {
    type Worker = (RecordDecoder, u64);
    type Batch = Vec<(String, Entry)>;

    fn worker(&self) -> Self::Worker {
        (RecordDecoder::new(ID_LIMIT), 0)
    }

    fn batch(&self) -> Self::Batch {
        Vec::new()
    }

    fn decode(
        &self,
        (contexts, bytes): &mut Self::Worker,
        group: &Group,
        next: &mut usize,
        batch: &mut Self::Batch,
    ) -> Result<()> {
        batch.clear();
        while let Some(extent) = group.get(*next) {
            let at = |fault: Fault| {
                fault.in_file(&self.name, extent.offset, label(&self.header, &extent))
            };
            let (start, stored) = unframe(&self.header, &extent, None).map_err(at)?;
            let id =
                contexts.read_id(&self.header, stored).map_err(|fault| at(fault.shifted(start)))?;
            *bytes += id.len() as u64;
            batch.push((
                id.to_owned(),
                Entry { offset: extent.offset, size: extent.bytes.len() as u64 },
            ));
            *next += 1;
        }
        Ok(())
    }

    fn decoded_bytes((_, bytes): &Self::Worker) -> u64 {
        *bytes
    }
}
