//! Fetches a whole object in ranges and does nothing with the bytes: what the client can reach on
//! this machine. `fetch URL [REQUESTS IN FLIGHT] [BYTES A REQUEST]`

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use thalweg_io::control::Control;
use thalweg_io::store::{AlignedBuf, Feed, Next, Request, Store};
use thalweg_io::{Error, Result};
use thalweg_object::{Patience, open};

/// Requests one range after the other.
struct Ranges {
    size: u64,
    block: usize,
    next: AtomicU64,
    buffers: Mutex<Vec<AlignedBuf>>,
    failure: Mutex<Option<Error>>,
}

impl Feed for Ranges {
    fn next(&self, _: bool) -> Next {
        let offset = self.next.fetch_add(self.block as u64, Ordering::Relaxed);
        if offset >= self.size {
            return Next::End;
        }
        let idle = self.buffers.lock().ok().and_then(|mut buffers| buffers.pop());
        Next::Read(Request {
            offset,
            len: self.block.min((self.size - offset) as usize),
            buf: Some(idle.unwrap_or_else(|| AlignedBuf::new(self.block))),
            at: 0,
            tag: 0,
            issued: Instant::now(),
        })
    }

    fn put(&self, request: Request, outcome: Result<()>) {
        if let (Err(error), Ok(mut failure)) = (outcome, self.failure.lock()) {
            *failure = Some(error);
        }
        if let (Some(buf), Ok(mut buffers)) = (request.buf, self.buffers.lock()) {
            buffers.push(buf);
        }
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let url = words.first().ok_or("fetch URL [REQUESTS IN FLIGHT] [BYTES A REQUEST]")?;
    let depth = words.get(1).map_or(Ok(16), |word| word.parse())?;
    let block = words.get(2).map_or(Ok(2 << 20), |word| word.parse())?;
    let started = Instant::now();
    let object = open(url, &Control::new(), Patience::default())?;
    let ranges = Ranges {
        size: object.size(),
        block,
        next: AtomicU64::new(0),
        buffers: Mutex::default(),
        failure: Mutex::default(),
    };
    object.serve(depth, &ranges);
    if let Some(error) = ranges.failure.into_inner()? {
        return Err(error.into());
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{:.3} s, {:.0} MB/s, {:?}",
        seconds,
        ranges.size as f64 / seconds / 1e6,
        object.counts()
    );
    Ok(())
}
