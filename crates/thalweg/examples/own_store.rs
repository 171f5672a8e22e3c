//! A custom store: bytes in a vector, with a count of the requests. A file is read through it.
//!
//! `cargo run -p thalweg --example own_store`
//!
//! Three methods are enough. The default of `Store::serve` keeps several requests in flight with
//! threads; a store that can do so without threads implements `serve` itself.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg::format::slow5::{Framing, RecordEncoder, RecordPress, SignalPress};
use thalweg::reads::{Options, ReadFile, Selection};
use thalweg::store::Store;
use thalweg::synth::{Recipe, Synth, SynthRead};

/// Bytes in memory, with the number of requests and of requested bytes.
#[derive(Debug)]
struct CountingStore {
    name: Arc<str>,
    contents: Vec<u8>,
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl Store for CountingStore {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn size(&self) -> u64 {
        self.contents.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> thalweg::Result<()> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(buf.len() as u64, Ordering::Relaxed);
        let found = usize::try_from(offset).ok().and_then(|start| {
            let end = start.checked_add(buf.len())?;
            self.contents.get(start..end)
        });
        let found = found.ok_or_else(|| thalweg::Error::Truncated {
            file: self.name.clone(),
            what: "a read".into(),
            offset,
            size: self.size(),
            advice: "",
        })?;
        buf.copy_from_slice(found);
        Ok(())
    }
}

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(CountingStore {
        name: "reads in a vector".into(),
        contents: synthetic()?,
        requests: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    });
    let file = ReadFile::from_store(store.clone(), Options::default())?;
    let mut samples = 0;
    for row in file.map(&Selection::All, |read| read.samples.len())? {
        samples += row?;
    }
    let requests = store.requests.load(Ordering::Relaxed);
    let bytes = store.bytes.load(Ordering::Relaxed);
    println!("{samples} samples by {requests} requests of {bytes} bytes; size {}", store.size());
    Ok(())
}

/// The bytes of a BLOW5 file: a header, frames of records, an end marker.
fn synthetic() -> Result<Vec<u8>, Box<dyn Error>> {
    let synth = Synth::new(Recipe::with_samples(1, 2_000_000))?;
    let header = synth.header(RecordPress::Zstd, SignalPress::SvbZd);
    let mut contents = header.write()?;
    let mut encoder = RecordEncoder::new()?;
    let mut read = SynthRead::default();
    for number in 0..synth.recipe().reads {
        synth.read(number, &mut read);
        contents.extend(read.frame(&header, &mut encoder)?);
    }
    contents.extend(Framing::new(header.encoding).end_marker());
    Ok(contents)
}
