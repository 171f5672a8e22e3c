//! A client of HTTP that does no more than receive ranges: what measurements compare with.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::Range;

/// The host and port, and the path, of a URL without encryption.
pub fn host_and_path(url: &str) -> Option<(&str, &str)> {
    let url = url.strip_prefix("http://")?;
    Some(url.split_at(url.find('/')?))
}

/// A connection for one object.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
    path: String,
}

impl Connection {
    /// Connects to a host and port, for the object at a path.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn new(host: &str, path: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), host: host.into(), path: path.into() })
    }

    /// Fetches a range into the start of `buf`. Returns the size of the object.
    ///
    /// # Errors
    /// Those of the socket, and an answer without a range.
    pub fn get(&mut self, range: Range<u64>, buf: &mut [u8]) -> io::Result<u64> {
        let text = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nRange: bytes={}-{}\r\n\r\n",
            self.path,
            self.host,
            range.start,
            range.end - 1
        );
        self.stream.get_mut().write_all(text.as_bytes())?;
        let mut size = None;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if line.to_lowercase().starts_with("content-range:") {
                size = line.rsplit('/').next().and_then(|size| size.parse().ok());
            }
        }
        // A reader without a buffer takes over: the bytes go straight into `buf`.
        self.stream.read_exact(&mut buf[..(range.end - range.start) as usize])?;
        size.ok_or_else(|| io::Error::other("no range in the answer"))
    }
}
