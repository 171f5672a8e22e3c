//! A server of the files in a folder as objects, with the delays and rates of an object store: for
//! measurements on one machine.
//!
//! It understands as much of S3 as readers ask for: `GET` and `HEAD` of `/bucket/key` with a range
//! and `If-Match`, lists (`list-type=2`), and `HEAD` of a bucket. It checks no signature. `GET
//! /-/counts` tells what was asked since the last `GET /-/reset`.

use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::sendfile;
use thalweg_io::random::hash01;

use crate::http_server::{Asked, decoded, next_request};

/// What a store can do. `None` is what this machine can do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shape {
    /// Time to the first byte: the median, and what 99 of 100 answers keep within. Between them it
    /// is distributed log-normally.
    pub latency: Option<(Duration, Duration)>,
    /// Bytes per second of one connection.
    pub connection: Option<f64>,
    /// Bytes per second of all connections together.
    pub total: Option<f64>,
    /// The part of the requests that is answered with 503.
    pub refused: f64,
    /// The part of the answers that end in the middle.
    pub torn: f64,
    /// Other delays for another seed.
    pub seed: u64,
}

/// Bytes that are sent at a time under a rate.
const SLICE: u64 = 128 << 10;

impl Shape {
    /// The time to the first byte of an answer.
    fn delay(&self, number: u64) -> Duration {
        /// Standard deviations from the median to the 99th percentile of a normal distribution.
        const P99: f64 = 2.326_348;
        let Some((median, p99)) = self.latency else { return Duration::ZERO };
        // Box and Muller's normal deviate.
        let radius = (-2.0 * (1.0 - hash01(self.seed, 0, number)).ln()).sqrt();
        let deviate = radius * (std::f64::consts::TAU * hash01(self.seed, 1, number)).cos();
        let spread = (p99.as_secs_f64() / median.as_secs_f64()).ln() / P99;
        median.mul_f64((spread * deviate).exp())
    }

    fn is_refused(&self, number: u64) -> bool {
        hash01(self.seed, 2, number) < self.refused
    }

    fn is_torn(&self, number: u64) -> bool {
        hash01(self.seed, 3, number) < self.torn
    }
}

/// When bytes may be sent under a rate.
#[derive(Debug)]
struct Pace {
    rate: Option<f64>,
    next: Mutex<Instant>,
}

impl Pace {
    fn new(rate: Option<f64>) -> Self {
        Self { rate, next: Mutex::new(Instant::now()) }
    }

    /// When the last of `len` bytes may arrive that are sent now.
    fn reserve(&self, len: u64) -> Instant {
        let now = Instant::now();
        let Some(rate) = self.rate else { return now };
        let mut next = self.next.lock().unwrap();
        *next = now.max(*next) + Duration::from_secs_f64(len as f64 / rate);
        *next
    }
}

#[derive(Debug, Default)]
struct Counts {
    gets: AtomicU64,
    heads: AtomicU64,
    lists: AtomicU64,
    bytes: AtomicU64,
    connections: AtomicU64,
}

impl Counts {
    fn all(&self) -> [(&str, &AtomicU64); 5] {
        [
            ("gets", &self.gets),
            ("heads", &self.heads),
            ("lists", &self.lists),
            ("bytes", &self.bytes),
            ("connections", &self.connections),
        ]
    }
}

#[derive(Debug)]
struct Server {
    root: PathBuf,
    shape: Shape,
    total: Pace,
    counts: Counts,
    next: AtomicU64,
}

/// Serves the files below `root` from now on: `root/bucket/key` is `/bucket/key`. Returns the
/// address.
///
/// # Errors
/// Those of the socket.
pub fn serve(root: &Path, port: u16, shape: Shape) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let address = listener.local_addr()?;
    let server = Arc::new(Server {
        root: root.to_owned(),
        shape,
        total: Pace::new(shape.total),
        counts: Counts::default(),
        next: AtomicU64::new(0),
    });
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let server = server.clone();
            // A connection that breaks is the client's affair.
            std::thread::spawn(move || server.connection(stream).ok());
        }
    });
    Ok(address)
}

/// Whether the connection stays open.
type Goes = io::Result<bool>;

impl Server {
    fn connection(&self, stream: TcpStream) -> io::Result<()> {
        self.counts.connections.fetch_add(1, Ordering::Relaxed);
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut out = stream;
        let pace = Pace::new(self.shape.connection);
        while let Some(asked) = next_request(&mut reader, &self.next) {
            if !self.respond(&asked, &pace, &mut out)? {
                break;
            }
        }
        Ok(())
    }

    fn respond(&self, asked: &Asked, pace: &Pace, out: &mut TcpStream) -> Goes {
        let (path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
        // The answer to a HEAD has no body: its bytes would be taken for the next answer.
        let is_head = asked.method == "HEAD";
        let mut text = |status: u16, body: &str| text(out, status, if is_head { "" } else { body });
        match path {
            "/-/counts" => return text(200, &self.tell()),
            "/-/reset" => {
                self.counts.all().iter().for_each(|(_, count)| count.store(0, Ordering::Relaxed));
                return text(200, "{}");
            }
            _ => {}
        }
        // s3fs asks for a list without its type.
        let is_list = query.contains("list-type=2") || !path.trim_matches('/').contains('/');
        let count = match (asked.method.as_str(), is_list) {
            ("GET", true) => &self.counts.lists,
            ("GET", false) => &self.counts.gets,
            ("HEAD", _) => &self.counts.heads,
            _ => return text(405, ""),
        };
        count.fetch_add(1, Ordering::Relaxed);
        sleep(self.shape.delay(asked.number));
        if self.shape.is_refused(asked.number) {
            return text(503, "<Error><Code>SlowDown</Code></Error>");
        }
        let path = decoded(path);
        // No path leads out of the folder.
        if path.split('/').any(|part| part == "..") {
            return text(400, "");
        }
        let bucket = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        if !self.root.join(bucket).is_dir() {
            return text(404, "<Error><Code>NoSuchBucket</Code></Error>");
        }
        if is_list {
            return text(200, &self.list(path.trim_matches('/'), query));
        }
        match File::open(self.root.join(path.trim_start_matches('/'))) {
            Ok(file) if file.metadata()?.is_file() => self.object(&file, asked, pace, out),
            _ => text(404, "<Error><Code>NoSuchKey</Code></Error>"),
        }
    }

    fn tell(&self) -> String {
        let counts = self.counts.all();
        let counts = counts.map(|(n, count)| format!("\"{n}\": {}", count.load(Ordering::Relaxed)));
        format!("{{{}}}", counts.join(", "))
    }

    fn object(&self, file: &File, asked: &Asked, pace: &Pace, out: &mut TcpStream) -> Goes {
        let meta = file.metadata()?;
        let (size, tag) = (meta.len(), tag(&meta));
        let refused = |code: &str| match asked.method.as_str() {
            "HEAD" => String::new(),
            _ => format!("<Error><Code>{code}</Code></Error>"),
        };
        if asked.headers.get("if-match").is_some_and(|wanted| *wanted != tag) {
            return text(out, 412, &refused("PreconditionFailed"));
        }
        let (status, range) = match asked.range_in(size) {
            Some(range) if range.start >= size => return text(out, 416, &refused("InvalidRange")),
            Some(range) => (206, range.start..range.end.min(size)),
            None => (200, 0..size),
        };
        let mut head = format!(
            "HTTP/1.1 {status} OK\r\nETag: {tag}\r\nContent-Length: {}\r\nAccept-Ranges: bytes\r\n\
             Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\
             Content-Type: application/octet-stream\r\n",
            range.end - range.start
        );
        if status == 206 {
            let last = range.end - 1;
            head += &format!("Content-Range: bytes {}-{last}/{size}\r\n", range.start);
        }
        out.write_all(format!("{head}\r\n").as_bytes())?;
        if asked.method == "HEAD" {
            return Ok(true);
        }
        let is_torn = self.shape.is_torn(asked.number);
        let end = if is_torn { (range.start + range.end) / 2 } else { range.end };
        self.send(file, range.start..end, pace, out)?;
        Ok(!is_torn)
    }

    fn send(
        &self,
        file: &File,
        range: std::ops::Range<u64>,
        pace: &Pace,
        out: &TcpStream,
    ) -> io::Result<()> {
        let is_paced = pace.rate.is_some() || self.total.rate.is_some();
        let mut at = range.start;
        while at < range.end {
            let left = range.end - at;
            let len = if is_paced { left.min(SLICE) } else { left.min(1 << 30) };
            let due = pace.reserve(len).max(self.total.reserve(len));
            sleep(due.saturating_duration_since(Instant::now()));
            let end = at + len;
            while at < end {
                let left = (end - at) as usize;
                let sent = sendfile(out, file, Some(&mut at), left)?;
                if sent == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.counts.bytes.fetch_add(sent as u64, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// The objects of a bucket, all of them in one answer.
    fn list(&self, bucket: &str, query: &str) -> String {
        let parameter = |name: &str| {
            let found = query.split('&').filter_map(|pair| pair.split_once('='));
            found.filter(|(key, _)| *key == name).map(|(_, value)| decoded(value)).next()
        };
        let prefix = parameter("prefix").unwrap_or_default();
        let delimiter = parameter("delimiter").filter(|delimiter| !delimiter.is_empty());
        let mut keys = Vec::new();
        files(&self.root.join(bucket), "", &mut keys);
        keys.sort_unstable();
        let (mut objects, mut folders) = (String::new(), Vec::new());
        for (key, size, tag) in keys.iter().filter(|(key, ..)| key.starts_with(&prefix)) {
            let rest = &key[prefix.len()..];
            if let Some(end) = delimiter.as_ref().and_then(|delimiter| rest.find(delimiter)) {
                folders.push(format!("{prefix}{}", &rest[..=end]));
                continue;
            }
            objects += &format!(
                "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
                 <ETag>{tag}</ETag><Size>{size}</Size><StorageClass>STANDARD</StorageClass>\
                 </Contents>"
            );
        }
        folders.dedup();
        let folders: String = folders
            .iter()
            .map(|folder| format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>"))
            .collect();
        let keys = keys.len();
        format!(
            "<?xml version=\"1.0\"?><ListBucketResult><Name>{bucket}</Name>\
             <Prefix>{prefix}</Prefix><KeyCount>{keys}</KeyCount><MaxKeys>1000</MaxKeys>\
             <IsTruncated>false</IsTruncated>{objects}{folders}</ListBucketResult>"
        )
    }
}

/// The tag of a file: another one when it was written again.
fn tag(meta: &fs::Metadata) -> String {
    format!("\"{:x}-{:x}-{:x}\"", meta.ino(), meta.len(), meta.mtime_nsec())
}

/// All files below a folder: their keys, sizes and tags.
fn files(folder: &Path, prefix: &str, found: &mut Vec<(String, u64, String)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(meta) = fs::metadata(entry.path()) else { continue };
        let key = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if meta.is_dir() {
            files(&entry.path(), &format!("{key}/"), found);
        } else {
            found.push((key, meta.len(), tag(&meta)));
        }
    }
}

fn text(out: &mut TcpStream, status: u16, body: &str) -> Goes {
    let len = body.len();
    let head = format!("HTTP/1.1 {status} OK\r\nContent-Length: {len}\r\n\r\n");
    out.write_all(format!("{head}{body}").as_bytes())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Duration;

    use super::{Shape, decoded, serve};

    /// The answers to requests on one connection.
    fn answers(requests: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("lab")).unwrap();
        std::fs::write(folder.path().join("lab/key"), "value").unwrap();
        let mut stream = TcpStream::connect(serve(folder.path(), 0, Shape::default()).unwrap());
        let stream = stream.as_mut().unwrap();
        for request in requests {
            write!(stream, "{request} HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        }
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        all
    }

    #[test]
    fn the_answer_to_a_head_has_no_body() {
        for head in ["HEAD /lab", "HEAD /lab/?list-type=2", "HEAD /lab/none", "HEAD /none/key"] {
            let all = answers(&[head, "GET /lab/key"]);
            let (first, second) = all.split_once("\r\n\r\n").unwrap();
            assert!(first.starts_with("HTTP/1.1 "), "{head}: {all}");
            assert!(second.starts_with("HTTP/1.1 200 "), "{head}: {all}");
            assert!(second.ends_with("\r\n\r\nvalue"), "{head}: {all}");
        }
    }

    #[test]
    fn a_bucket_that_is_not_there_is_told_from_a_key() {
        assert!(answers(&["GET /lab/none"]).contains("NoSuchKey"));
        for request in ["GET /none/key", "GET /none?list-type=2"] {
            assert!(answers(&[request]).contains("NoSuchBucket"), "{request}");
        }
    }

    #[test]
    fn delays_are_as_asked_for() {
        let (p50, p99) = (Duration::from_millis(30), Duration::from_millis(200));
        let shape = Shape { latency: Some((p50, p99)), ..Shape::default() };
        let mut delays: Vec<_> = (0..100_000).map(|number| shape.delay(number)).collect();
        delays.sort_unstable();
        let near = |at: usize, wanted: f64| (delays[at].as_secs_f64() / wanted - 1.0).abs() < 0.05;
        assert!(near(50_000, 0.03) && near(99_000, 0.2), "{:?}", (delays[50_000], delays[99_000]));
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(decoded("/a%20b%2fc%"), "/a b/c%");
    }
}
