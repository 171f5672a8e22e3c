//! An HTTP server for tests, which has objects and behaves badly on request.
//!
//! It works on sockets, and not with a library for HTTP, because such a library would not send what
//! a broken server sends: bodies that end early, lengths that lie, answers that never come.

use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::SockRef;
use uploads::{Uploads, tag};

mod uploads;

/// A request that the server got.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its number, counted from 0.
    pub number: u64,
    /// Such as `GET`.
    pub method: String,
    /// The path and the query.
    pub target: String,
    /// The bytes that are asked for, if not all. Of an object that is there, also its end.
    pub range: Option<Range<u64>>,
    /// How many bytes of the end are asked for, if it is those.
    pub suffix: Option<u64>,
    /// The headers, with names in lower case.
    pub headers: HashMap<String, String>,
}

impl Asked {
    /// The bytes that are asked for of an object of `size` bytes, if not all.
    pub(crate) fn range_in(&self, size: u64) -> Option<Range<u64>> {
        let end = self.suffix.filter(|_| size > 0).map(|len| size.saturating_sub(len)..size);
        end.or_else(|| self.range.clone())
    }
}

/// How the server answers a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// As it should.
    Right,
    /// As it should, after this time.
    Late(Duration),
    /// Not at all, as long as the server lives.
    Never,
    /// By closing the connection.
    Closed,
    /// With this status, and this code in an XML body.
    Refused(u16, &'static str),
    /// With this status and these header lines, without a body.
    Headers(u16, &'static str),
    /// With only this part of the body, and then a closed connection.
    Torn(f64),
    /// With this part of the body, and then with nothing, as long as the server lives.
    Stuck(f64),
    /// With a byte of the body every hundredth of a second.
    Trickling,
    /// With this part of the body, and then a reset connection.
    Reset(f64),
    /// With this part of the body, whose length the header says.
    Short(f64),
    /// As it should, and with these header lines.
    With(String),
    /// With all bytes of the object, as a server that knows no ranges.
    Whole,
    /// With a range that starts so many bytes further on.
    OtherRange(u64),
    /// With so many bytes beyond those that the header says.
    TooLong(usize),
    /// As if the object had been replaced by one of other bytes, even if its old tag is asked for.
    OtherVersion,
    /// As it should, after the object was replaced by one of other bytes.
    Replaced,
    /// With this body, whole and with its right length.
    Body(&'static str),
    /// With these bytes in place of an answer.
    Raw(&'static [u8]),
    /// With these bytes, and then with nothing, as long as the server lives.
    RawAndOpen(&'static [u8]),
    /// By doing what is asked, and then closing the connection without an answer.
    Lost,
    /// As it should, but without heeding `If-None-Match`.
    Careless,
}

/// The bytes of each object, and when it was put.
type Objects = HashMap<String, (Vec<u8>, u64)>;

type Behaviour = dyn Fn(&Asked) -> Answer + Send + Sync;

struct Shared {
    objects: Mutex<Objects>,
    /// Counts the puts, each of which takes a second.
    clock: AtomicU64,
    uploads: Uploads,
    /// Entries in a part of a list.
    page: AtomicUsize,
    behaviour: Box<Behaviour>,
    asked: Mutex<Vec<Asked>>,
    next: AtomicU64,
    sent: AtomicU64,
    ended: AtomicBool,
}

impl Shared {
    /// The time of the next put.
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// A server on a port of this machine. It ends when it is dropped.
pub struct ObjectServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

impl ObjectServer {
    /// Starts a server with objects by their paths, such as `/bucket/key`.
    pub fn start(
        objects: impl IntoIterator<Item = (&'static str, Vec<u8>)>,
        behaviour: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let objects = objects.into_iter();
        let objects = objects.map(|(path, bytes)| (path.to_owned(), (bytes, 0))).collect();
        let shared = Arc::new(Shared {
            objects: Mutex::new(objects),
            clock: AtomicU64::new(0),
            uploads: Uploads::default(),
            page: AtomicUsize::new(1000),
            behaviour: Box::new(behaviour),
            asked: Mutex::default(),
            next: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        });
        let of_server = shared.clone();
        let accept = move || {
            for stream in listener.incoming() {
                if of_server.ended.load(Ordering::SeqCst) {
                    break;
                }
                let of_connection = of_server.clone();
                std::thread::spawn(move || {
                    stream.ok().and_then(|stream| connection(&of_connection, stream))
                });
            }
        };
        Self { address, shared, listener: Some(std::thread::spawn(accept)) }
    }

    /// The URL of an object.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Adds or replaces an object. It is a second younger than the last one.
    pub fn put(&self, path: &str, bytes: Vec<u8>) {
        let time = self.shared.tick();
        self.shared.objects.lock().unwrap().insert(path.to_owned(), (bytes, time));
        self.shared.uploads.forget_metadata(path);
    }

    /// Changes an object, as a program does whose put replaces only what it has read.
    pub fn change(&self, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let new = self.shared.tick();
        if let Some((bytes, time)) = self.shared.objects.lock().unwrap().get_mut(path) {
            change(bytes);
            *time = new;
        }
        self.shared.uploads.forget_metadata(path);
    }

    /// Sets how many entries a part of a list has.
    pub fn set_page(&self, entries: usize) {
        self.shared.page.store(entries, Ordering::SeqCst);
    }

    /// Removes an object.
    pub fn remove(&self, path: &str) {
        self.shared.objects.lock().unwrap().remove(path);
    }

    /// Forgets the requests so far, which are as many as a long test makes.
    pub fn forget(&self) {
        self.shared.asked.lock().unwrap().clear();
    }

    /// An object, if it is visible.
    pub fn object(&self, path: &str) -> Option<Vec<u8>> {
        self.shared.objects.lock().unwrap().get(path).map(|(bytes, _)| bytes.clone())
    }

    /// The paths of all objects.
    pub fn objects(&self) -> Vec<String> {
        self.shared.objects.lock().unwrap().keys().cloned().collect()
    }

    /// The user-defined metadata of an object, by the names of their headers.
    pub fn metadata(&self, path: &str) -> HashMap<String, String> {
        self.shared.uploads.metadata(path)
    }

    /// The number of uploads in parts that are neither complete nor aborted.
    pub fn unfinished(&self) -> usize {
        self.shared.uploads.unfinished()
    }

    /// The requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// The bytes of bodies that were sent so far.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::SeqCst)
    }

    /// Ends the server: no connection is accepted or answered any more.
    pub fn end(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        // Wakes the listener.
        drop(TcpStream::connect(self.address));
        if let Some(listener) = self.listener.take() {
            listener.join().unwrap();
        }
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads the next request of a connection; `None` at its end. `next` counts the requests.
pub(crate) fn next_request(reader: &mut BufReader<TcpStream>, next: &AtomicU64) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|&len| len > 0)?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|&len| len > 0)?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let range = headers.get("range").and_then(|range: &String| {
        let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
        let end = if to.is_empty() { u64::MAX } else { to.parse::<u64>().ok()? + 1 };
        Some(from.parse().ok()?..end)
    });
    let suffix = headers.get("range").and_then(|range| range.strip_prefix("bytes=-")?.parse().ok());
    let number = next.fetch_add(1, Ordering::SeqCst);
    Some(Asked { number, method, target, range, suffix, headers })
}

fn connection(shared: &Shared, stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut out = stream;
    while let Some(mut asked) = next_request(&mut reader, &shared.next) {
        let path = decoded(asked.target.split('?').next()?);
        if let Some((bytes, _)) = shared.objects.lock().unwrap().get(&path) {
            asked.range = asked.range_in(bytes.len() as u64);
        }
        shared.asked.lock().unwrap().push(asked.clone());
        let answer = (shared.behaviour)(&asked);
        if shared.ended.load(Ordering::SeqCst) {
            return None;
        }
        let len = asked.headers.get("content-length").and_then(|len| len.parse().ok());
        let len: usize = len.unwrap_or(0);
        let taken = match answer {
            Answer::Closed => 0,
            Answer::Torn(part) | Answer::Stuck(part) => (len as f64 * part) as usize,
            _ => len,
        };
        let mut body = vec![0; taken];
        reader.read_exact(&mut body).ok()?;
        // What is not signed asks for credentials, whatever its method is.
        let is_signed =
            asked.headers.get("authorization").is_some_and(|by| by.starts_with("AWS4-"));
        let is_write = is_signed && !matches!(&*asked.method, "GET" | "HEAD");
        if is_write && matches!(answer, Answer::Torn(_)) {
            return None;
        }
        let is_ready =
            matches!(answer, Answer::Right | Answer::Late(_) | Answer::Lost | Answer::Careless);
        if is_write && is_ready {
            if let Answer::Late(time) = answer {
                std::thread::sleep(time);
            }
            let done = shared.uploads.carry_out(shared, &asked, body, &answer);
            if answer == Answer::Lost {
                return None;
            }
            out.write_all(done.as_bytes()).ok()?;
            continue;
        }
        if is_write && matches!(answer, Answer::Stuck(_)) {
            wait_for_the_end(shared, &out);
            return None;
        }
        respond(shared, &asked, answer, &mut out)?;
    }
    None
}

/// Waits until the server ends or the client has gone.
fn wait_for_the_end(shared: &Shared, stream: &TcpStream) {
    let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
    while !shared.ended.load(Ordering::SeqCst) {
        match stream.peek(&mut [0]) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            // It sends another request to a server that does not answer.
            Ok(1..) => std::thread::sleep(Duration::from_millis(20)),
            Ok(0) | Err(_) => return,
        }
    }
}

/// The bytes of another version of an object.
fn other_version(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte ^= 0xff);
}

/// A path or query without `%` escapes.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = (first == b'%').then(|| tail.get(..2)).flatten();
        let escaped = escaped.and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = &tail[if byte.is_some() { 2 } else { 0 }..];
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A key as it is in a list.
fn encoded(key: &str) -> String {
    let encode = |byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' => {
            char::from(byte).to_string()
        }
        b' ' => "+".into(),
        _ => format!("%{byte:02X}"),
    };
    key.bytes().map(encode).collect()
}

/// The list of all buckets that have objects, as S3 gives it.
fn buckets(shared: &Shared) -> Vec<u8> {
    let objects = shared.objects.lock().unwrap();
    let names = objects.keys().filter_map(|path| path.trim_start_matches('/').split('/').next());
    let names: BTreeSet<&str> = names.collect();
    let mut xml =
        "<?xml version=\"1.0\"?><ListAllMyBucketsResult><Owner><ID>me</ID></Owner><Buckets>"
            .to_owned();
    for name in names {
        xml += &format!("<Bucket><Name>{name}</Name></Bucket>");
    }
    (xml + "</Buckets></ListAllMyBucketsResult>").into_bytes()
}

/// A part of the list of a bucket, as S3 gives it.
fn list(shared: &Shared, bucket: &str, query: &str) -> Vec<u8> {
    let value = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| value.replace('+', " ")).next()
    };
    let prefix = decoded(&value("prefix").unwrap_or_default());
    // It was encoded for the list, and again for the query.
    let after = value("continuation-token").map(|token| decoded(&token).replace('+', " "));
    let after = decoded(&after.unwrap_or_default());
    assert_eq!(value("encoding-type").as_deref(), Some("url"), "keys may have any character");
    let is_deep = value("delimiter").is_none();
    let objects = shared.objects.lock().unwrap();
    let below = format!("{}/", bucket.trim_end_matches('/'));
    let mut entries = BTreeSet::new();
    for path in objects.keys() {
        let Some(key) = path.strip_prefix(&below).filter(|key| key.starts_with(&prefix)) else {
            continue;
        };
        // What has a delimiter behind the prefix is rolled up, even if it stands for a folder.
        let end = key[prefix.len()..].find('/').filter(|_| !is_deep);
        entries.insert(end.map_or((key, false), |end| (&key[..=prefix.len() + end], true)));
    }
    let page = shared.page.load(Ordering::SeqCst);
    let left: Vec<(&str, bool)> =
        entries.into_iter().filter(|(entry, _)| **entry > *after).collect();
    let part = &left[..left.len().min(page)];
    let mut xml = "<?xml version=\"1.0\"?><ListBucketResult>".to_owned();
    xml += "<EncodingType>url</EncodingType>";
    for (entry, is_folder) in part {
        let object = objects.get(&format!("{below}{entry}")).filter(|_| !is_folder);
        xml += &match object {
            Some((bytes, _)) => format!(
                "<Contents><Key>{}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
                 <ETag>{}</ETag><Size>{}</Size></Contents>",
                encoded(entry),
                tag(bytes).replace('"', "&quot;"),
                bytes.len()
            ),
            None => {
                format!("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", encoded(entry))
            }
        };
    }
    if let Some((last, _)) = part.last().filter(|_| left.len() > page) {
        xml += &format!("<NextContinuationToken>{}</NextContinuationToken>", encoded(last));
    }
    (xml + "</ListBucketResult>").into_bytes()
}

/// Answers a request. `None` if the connection is to be closed.
fn respond(shared: &Shared, asked: &Asked, answer: Answer, out: &mut TcpStream) -> Option<()> {
    let (path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
    let found = if path == "/" {
        Some((buckets(shared), 0))
    } else if query.contains("list-type=2") {
        Some((list(shared, path, query), 0))
    } else {
        let mut objects = shared.objects.lock().unwrap();
        let found = objects.get_mut(&decoded(path));
        if let (Some((bytes, _)), Answer::Replaced) = (found, &answer) {
            other_version(bytes);
        }
        objects.get(&decoded(path)).cloned()
    };
    let mut refuse = |status: u16, code: &str| {
        let body = format!("<Error><Code>{code}</Code><Message>a message</Message></Error>");
        let body = if asked.method == "HEAD" { String::new() } else { body };
        let len = body.len();
        let text = format!("HTTP/1.1 {status} No\r\nContent-Length: {len}\r\n\r\n{body}");
        out.write_all(text.as_bytes()).ok()
    };
    match answer {
        Answer::Late(time) => std::thread::sleep(time),
        Answer::Never => {
            wait_for_the_end(shared, out);
            return None;
        }
        Answer::Closed => return None,
        Answer::Refused(status, code) => return refuse(status, code),
        Answer::Headers(status, lines) => {
            let text = format!("HTTP/1.1 {status} No\r\n{lines}\r\nContent-Length: 0\r\n\r\n");
            return out.write_all(text.as_bytes()).ok();
        }
        Answer::Raw(bytes) => {
            out.write_all(bytes).ok()?;
            return None;
        }
        Answer::RawAndOpen(bytes) => {
            out.write_all(bytes).ok()?;
            wait_for_the_end(shared, out);
            return None;
        }
        _ => {}
    }
    let found = match answer {
        Answer::Body(text) => Some((text.into(), 0)),
        _ => found,
    };
    let Some((mut bytes, time)) = found else { return refuse(404, "NoSuchKey") };
    if answer == Answer::OtherVersion {
        other_version(&mut bytes);
    }
    let is_other = asked.headers.get("if-match").is_some_and(|wanted| *wanted != tag(&bytes));
    if is_other && answer != Answer::OtherVersion {
        return refuse(412, "PreconditionFailed");
    }
    let size = bytes.len() as u64;
    let range = asked.range.clone().filter(|_| answer != Answer::Whole);
    let (status, range) = match range {
        Some(range) if range.start >= size => return refuse(416, "InvalidRange"),
        Some(range) => (206, range.start..range.end.min(size)),
        None => (200, 0..size),
    };
    let mut body = &bytes[range.start as usize..range.end as usize];
    if let Answer::Short(part) = answer {
        body = &body[..(body.len() as f64 * part) as usize];
    }
    let mut said = range.clone();
    if let Answer::OtherRange(further) = answer {
        said = said.start + further..said.end + further;
    }
    let mut head = format!(
        "HTTP/1.1 {status} OK\r\nETag: {}\r\nContent-Length: {}\r\nAccept-Ranges: bytes\r\n\
         Last-Modified: Thu, 01 Jan 2026 {:02}:{:02}:{:02} GMT\r\n",
        tag(&bytes),
        body.len(),
        time / 3600 % 24,
        time / 60 % 60,
        time % 60,
    );
    if let Answer::With(lines) = &answer {
        head += lines;
    }
    if status == 206 {
        let last = said.end - 1;
        head += &format!("Content-Range: bytes {}-{last}/{size}\r\n", said.start);
    }
    for (name, value) in shared.uploads.metadata(&decoded(path)) {
        head += &format!("{name}: {value}\r\n");
    }
    out.write_all(format!("{head}\r\n").as_bytes()).ok()?;
    if asked.method == "HEAD" {
        return Some(());
    }
    let sent = match answer {
        Answer::Torn(part) | Answer::Stuck(part) | Answer::Reset(part) => {
            (body.len() as f64 * part) as usize
        }
        Answer::Trickling => 0,
        _ => body.len(),
    };
    out.write_all(&body[..sent]).ok()?;
    shared.sent.fetch_add(sent as u64, Ordering::SeqCst);
    match answer {
        Answer::Torn(_) => None,
        Answer::Reset(_) => {
            // Closing a socket that does not linger sends a reset.
            SockRef::from(&*out).set_linger(Some(Duration::ZERO)).ok()?;
            None
        }
        Answer::Trickling => {
            for byte in body.iter().take_while(|_| !shared.ended.load(Ordering::SeqCst)) {
                out.write_all(&[*byte]).ok()?;
                std::thread::sleep(Duration::from_millis(10));
            }
            None
        }
        Answer::Stuck(_) => {
            wait_for_the_end(shared, out);
            None
        }
        Answer::TooLong(more) => {
            out.write_all(&vec![7; more]).ok()?;
            None
        }
        _ => Some(()),
    }
}
