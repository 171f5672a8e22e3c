//! Fetches reads of a BLOW5 object one by one, each with a request of its own, over many
//! connections: the way of slow5curl (Wong et al., 2024), without decoding. It prints a line of
//! JSON, as peers do.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use thalweg_testing::raw_client::{Connection, host_and_path};

const USAGE: &str = "get-each http://HOST:PORT/PATH INDEX IDS [CONNECTIONS]";

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let wrong = || io::Error::other(USAGE);
    let [url, index, ids, rest @ ..] = &words[..] else { return Err(wrong()) };
    let (host, path) = host_and_path(url).ok_or_else(wrong)?;
    let connections = rest.first().map_or(Ok(128), |word| word.parse()).map_err(|_| wrong())?;
    let ids = std::fs::read_to_string(ids)?;
    let started = Instant::now();
    let index = std::fs::read(index)?;
    let places = places(&index).ok_or_else(|| io::Error::other("no index of BLOW5"))?;
    let wanted: Option<Vec<_>> = ids.lines().map(|id| places.get(id.as_bytes())).collect();
    let wanted = wanted.ok_or_else(|| io::Error::other("a read is not in the index"))?;
    let next = AtomicUsize::new(0);
    let fetch = || -> io::Result<u64> {
        let mut connection = Connection::new(host, path)?;
        let (mut buf, mut bytes) = (Vec::new(), 0);
        while let Some(range) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
            let len = range.end - range.start;
            buf.resize(buf.len().max(len as usize), 0);
            connection.get((*range).clone(), &mut buf)?;
            bytes += len;
        }
        Ok(bytes)
    };
    let bytes = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections).map(|_| scope.spawn(fetch)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<io::Result<u64>>()
    })?;
    println!(
        "{{\"workload\": \"a request for each read\", \"open_to_last_s\": {}, \
         \"bytes_stored\": {bytes}, \"reads\": {}, \"requests\": {}}}",
        started.elapsed().as_secs_f64(),
        wanted.len(),
        wanted.len()
    );
    Ok(())
}

/// The places of reads by their ids, from slow5lib's index: a header of 64 bytes, and for each read
/// the length of its id (16 bits), the id, and its offset and size (64 bits each).
fn places(index: &[u8]) -> Option<HashMap<&[u8], Range<u64>>> {
    let mut rest = index.strip_prefix(b"SLOW5IDX\x01").and_then(|_| index.get(64..))?;
    let mut places = HashMap::new();
    while rest != b"XDI5WOLS" {
        let (len, after) = rest.split_first_chunk()?;
        let (id, after) = after.split_at_checked(u16::from_le_bytes(*len).into())?;
        let (offset, after) = after.split_first_chunk()?;
        let (size, after) = after.split_first_chunk()?;
        let offset = u64::from_le_bytes(*offset);
        places.insert(id, offset..offset.checked_add(u64::from_le_bytes(*size))?);
        rest = after;
    }
    Some(places)
}
