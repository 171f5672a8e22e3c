//! Fetches an object in ranges over several connections, and does nothing with the bytes: what a
//! client on this machine can reach at most. It prints a line of JSON, as peers do.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use thalweg_testing::raw_client::{Connection, host_and_path};

const USAGE: &str = "ranged-client http://HOST:PORT/PATH [CONNECTIONS] [BYTES A REQUEST]";

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let wrong = || io::Error::other(USAGE);
    let (host, path) = words.first().and_then(|url| host_and_path(url)).ok_or_else(wrong)?;
    let number = |at: usize, usual: u64| words.get(at).map_or(Ok(usual), |word| word.parse());
    let connections = number(1, 8).map_err(|_| wrong())?;
    let block = number(2, 8 << 20).map_err(|_| wrong())?;
    let started = Instant::now();
    let mut buf = vec![0; block as usize];
    let mut first = Connection::new(host, path)?;
    let size = first.get(0..1, &mut buf)?;
    let next = AtomicU64::new(0);
    let fetch = || -> io::Result<u64> {
        let (mut buf, mut requests) = (vec![0; block as usize], 0);
        let mut connection = Connection::new(host, path)?;
        loop {
            let at = next.fetch_add(block, Ordering::Relaxed);
            if at >= size {
                return Ok(requests);
            }
            connection.get(at..(at + block).min(size), &mut buf)?;
            requests += 1;
        }
    };
    let requests = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections).map(|_| scope.spawn(fetch)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<io::Result<u64>>()
    })?;
    println!(
        "{{\"workload\": \"raw ranged client\", \"open_to_last_s\": {}, \"bytes_stored\": {size}, \
         \"requests\": {}}}",
        started.elapsed().as_secs_f64(),
        requests + 1
    );
    Ok(())
}
