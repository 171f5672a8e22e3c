//! The fuzz targets of objects at URLs.
//!
//! For that of HTTP answers, whatever a server sends, a read gives bytes that it sent for
//! the range that was asked for, or an error. No network is needed, and no time passes: a
//! connection is a pipe in memory, and the clock jumps to whatever is waited for.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{CONTENT_RANGE, ETAG, RANGE};
use http_body::{Body, Frame, SizeHint};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use object_store::client::{
    HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use thalweg_io::Error;
use thalweg_io::store::Store;
use thalweg_object::testing::{answers, open_over, profile_settings};
use thalweg_object::{Object, Patience};
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex,
};
use tokio::runtime::{Builder, Runtime};

use crate::sample;

/// Lies between two answers.
const SEPARATOR: &[u8] = b"\n~~\n";
/// In an answer, this byte and a number of two bytes, low byte first, stand for that number of
/// pseudorandom bytes and one more, so that small inputs have large bodies.
const MANY: u8 = 0x1a;
/// The most such places in an input.
const MOST_MANY: usize = 8;
/// The most requests that may be made for one input.
const MOST_REQUESTS: usize = 200;
/// The first bytes of an object that are asked for when it is opened.
const HEAD: u64 = 64 << 10;
/// The most bytes of a body that may be taken beyond those that were asked for: the buffers of the
/// pipe and of the client.
const MOST_BEYOND: usize = 1 << 20;

/// What follows an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ending {
    Close,
    /// Nothing, on an open connection.
    Silence,
    /// The answer's last byte, without end.
    Flood,
}

/// A request and its answer, as the client of HTTP understood it.
#[derive(Debug, Clone)]
struct Seen {
    asked: Option<Range<u64>>,
    /// The range and the size of the object that a partial answer says, and its tag.
    said: Option<(Range<u64>, u64)>,
    etag: Option<Vec<u8>>,
    /// The bytes of the body that were taken.
    body: Arc<Mutex<Vec<u8>>>,
}

impl Seen {
    /// Whether the body has the bytes that were asked for, of an object of this size and tag.
    fn is_right(&self, size: u64, etag: Option<&[u8]>) -> bool {
        let asked = self.asked.clone().map(|asked| asked.start..asked.end.min(size));
        let is_same = self.etag.as_deref().zip(etag).is_none_or(|(one, other)| one == other);
        is_same && asked.zip(self.said.clone()).is_some_and(|(asked, said)| said == (asked, size))
    }

    fn body(&self) -> Vec<u8> {
        self.body.lock().unwrap().clone()
    }
}

/// A server of given answers.
#[derive(Debug)]
struct Answers {
    left: Mutex<VecDeque<Vec<u8>>>,
    /// The last answer is given again and again.
    repeats: bool,
    ending: Ending,
    /// Bytes that are sent at a time.
    piece: usize,
    seen: Mutex<Vec<Seen>>,
}

impl Answers {
    fn new(pick: u8, data: &[u8]) -> Self {
        let mut answers = VecDeque::new();
        let mut rest = data;
        while let Some(at) = rest.windows(SEPARATOR.len()).position(|part| part == SEPARATOR) {
            answers.push_back(rest[..at].to_vec());
            rest = &rest[at + SEPARATOR.len()..];
        }
        answers.push_back(rest.to_vec());
        let mut left = MOST_MANY;
        let expanded = answers.iter().map(|answer| expanded(answer, &mut left)).collect();
        Self {
            left: Mutex::new(expanded),
            repeats: pick & 0x10 != 0,
            ending: [Ending::Close, Ending::Silence, Ending::Flood, Ending::Close]
                [usize::from(pick >> 2 & 3)],
            piece: [1, 13, 1000, usize::MAX][usize::from(pick & 3)],
            seen: Mutex::default(),
        }
    }

    fn next(&self) -> Vec<u8> {
        let mut left = self.left.lock().unwrap();
        if self.repeats && left.len() == 1 {
            return left[0].clone();
        }
        left.pop_front().unwrap_or_default()
    }

    /// The requests from number `first` on.
    fn seen(&self, first: usize) -> Vec<Seen> {
        self.seen.lock().unwrap()[first..].to_vec()
    }
}

/// The bytes of an answer, with those that [`MANY`] stands for.
fn expanded(answer: &[u8], left: &mut usize) -> Vec<u8> {
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| sample(1 << 16));
    let mut out = Vec::new();
    let mut rest = answer;
    while let Some((&first, after)) = rest.split_first() {
        match after {
            [low, high, after @ ..] if first == MANY && *left > 0 => {
                *left -= 1;
                out.extend_from_slice(&BYTES[..=usize::from(u16::from_le_bytes([*low, *high]))]);
                rest = after;
            }
            _ => {
                out.push(first);
                rest = after;
            }
        }
    }
    out
}

/// The end of a connection at which the server is: takes a request, and sends an answer.
async fn serve(mut stream: DuplexStream, answer: Vec<u8>, ending: Ending, piece: usize) {
    /// So much is sent in pieces.
    const IN_PIECES: usize = 2000;
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => request.push(byte),
            Err(_) => return,
        }
    }
    let (first, rest) = answer.split_at(answer.len().min(IN_PIECES));
    for piece in first.chunks(piece).chain([rest]) {
        if stream.write_all(piece).await.is_err() {
            return;
        }
        tokio::task::yield_now().await;
    }
    match ending {
        Ending::Close => {}
        Ending::Silence => drop(stream.read_u8().await),
        Ending::Flood => {
            let flood = vec![answer.last().copied().unwrap_or_default(); 4096];
            while stream.write_all(&flood).await.is_ok() {}
        }
    }
}

#[derive(Debug)]
struct StandIn(Arc<Answers>);

#[async_trait]
impl HttpService for StandIn {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let failed = |error| HttpError::new(HttpErrorKind::Request, error);
        let header = |headers: &http::HeaderMap, name| headers.get(name).cloned();
        let asked = header(request.headers(), RANGE).and_then(|range| {
            let (first, last) = range.to_str().ok()?.strip_prefix("bytes=")?.split_once('-')?;
            Some(first.parse().ok()?..last.parse::<u64>().ok()? + 1)
        });
        let (client, server) = duplex(64 << 10);
        tokio::spawn(serve(server, self.0.next(), self.0.ending, self.0.piece));
        let mut seen = Seen { asked, said: None, etag: None, body: Arc::default() };
        let number = {
            let mut all = self.0.seen.lock().unwrap();
            all.push(seen.clone());
            assert!(all.len() <= MOST_REQUESTS, "requests without end");
            all.len() - 1
        };
        let (mut sender, connection) = handshake(TokioIo::new(client)).await.map_err(failed)?;
        tokio::spawn(connection);
        let answer = sender.send_request(request).await.map_err(failed)?;
        let (parts, body) = answer.into_parts();
        seen.etag = header(&parts.headers, ETAG).map(|tag| tag.as_bytes().to_vec());
        let range = header(&parts.headers, CONTENT_RANGE).filter(|_| parts.status == 206);
        seen.said = range.and_then(|range| {
            let (range, size) =
                range.to_str().ok()?.trim().strip_prefix("bytes ")?.split_once('/')?;
            let (first, last) = range.split_once('-')?;
            let end = last.parse::<u64>().ok()?.checked_add(1)?;
            Some((first.parse().ok()?..end, size.parse().ok()?))
        });
        let most = seen.asked.clone().map_or(0, |asked| asked.end - asked.start) as usize;
        let taken = seen.body.clone();
        self.0.seen.lock().unwrap()[number] = seen;
        let body = Taken { body, taken, most: most + MOST_BEYOND };
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}

/// A body that notes what is taken of it.
struct Taken {
    body: hyper::body::Incoming,
    taken: Arc<Mutex<Vec<u8>>>,
    most: usize,
}

impl Body for Taken {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(bytes) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
            let mut taken = self.taken.lock().unwrap();
            taken.extend_from_slice(bytes);
            assert!(taken.len() <= self.most, "{} bytes were taken", taken.len());
        }
        let failed = |error| HttpError::new(HttpErrorKind::Request, error);
        Poll::Ready(frame.map(|frame| frame.map_err(failed)))
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

thread_local! {
    /// Time passes only where nothing else is to do, and then at once. It lives as long as the
    /// process, as the runtime of objects does.
    static RUNTIME: &'static Runtime = Box::leak(Box::new(
        Builder::new_current_thread().enable_time().start_paused(true).build().unwrap(),
    ));
}

/// Checks what is made of a server's answers. The first input byte says how they are sent, the
/// second what is read. The rest are answers, with `SEPARATOR` between them.
pub fn http_answers(data: &[u8]) {
    let [pick, plan, rest @ ..] = data else { return };
    let runtime = RUNTIME.with(|runtime| *runtime);
    let answers = Arc::new(Answers::new(*pick, rest));
    let stand_in = HttpClient::new(StandIn(answers.clone()));
    match open_over("http://host/object?secret", stand_in, runtime, Patience::default()) {
        Ok(object) => check_reads(&object, *plan, &answers),
        Err(error) => check_error(&error),
    }
    // Connections end.
    runtime.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
}

/// An error names the object, and not its query.
fn check_error(error: &Error) {
    let words = error.to_string();
    assert!(words.contains("http://host/object"), "{words}");
    assert!(!words.contains("secret"), "{words}");
}

fn check_reads(object: &Object, plan: u8, answers: &Answers) {
    let size = object.size();
    let etag = object.etag().map(str::as_bytes);
    let mut head = vec![0; size.min(HEAD) as usize];
    assert!(object.read_at_hand(0, &mut head) || head.is_empty());
    if let Some(last) = answers.seen(0).last().filter(|_| size > 0) {
        assert!(last.is_right(size, etag) && last.body() == head, "{last:?}");
    }
    let reads = [
        (HEAD, 100),
        (size.saturating_sub(10), 10),
        (size / 2, 70_000),
        (1, 70_000),
        (HEAD - 7, 20),
        (0, 70_000),
    ];
    for (number, (offset, most)) in reads.into_iter().enumerate() {
        let len = most.min(size.saturating_sub(offset)) as usize;
        if plan >> number & 1 == 0 || len == 0 {
            continue;
        }
        let first = answers.seen(0).len();
        let mut buf = vec![0; len];
        match object.read_at(offset, &mut buf) {
            Ok(()) => {
                let seen = answers.seen(first);
                let right = seen.iter().filter(|seen| seen.is_right(size, etag));
                let mut sent: Vec<u8> = right.flat_map(Seen::body).collect();
                if seen.is_empty() {
                    sent = head[offset as usize..offset as usize + len].to_vec();
                }
                assert!(buf == sent, "{offset}+{len}: other bytes than were sent: {seen:?}");
            }
            Err(error) => check_error(&error),
        }
    }
}

/// What a server sends over one connection, a piece at a time.
struct Sent<'a> {
    bytes: &'a [u8],
    piece: usize,
}

impl AsyncRead for Sent<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let len = self.piece.min(buf.remaining()).min(self.bytes.len());
        let (piece, rest) = self.bytes.split_at(len);
        buf.put_slice(piece);
        self.bytes = rest;
        Poll::Ready(Ok(()))
    }
}

/// What is written goes nowhere.
impl AsyncWrite for Sent<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Checks what a connection for ranges makes of the bytes of a server. The first byte says in what
/// pieces they come. Bodies are bytes behind the headers, as many as announced at most, and a
/// connection is free only at the very end of a body.
pub fn http_connection(data: &[u8]) {
    let [piece, sent @ ..] = data else { return };
    let piece = usize::from(*piece) + 1;
    let most = if piece % 2 == 0 { 100 } else { 100_000 };
    let runtime = RUNTIME.with(|runtime| *runtime);
    let answers = runtime.block_on(answers(Sent { bytes: sent, piece }, most));
    let mut rest = sent;
    for answer in answers {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                return;
            }
        };
        assert!(answer.body.len() <= most);
        assert!(answer.announced.is_none_or(|len| answer.body.len() as u64 <= len), "{answer:?}");
        // Empty lines may come before an answer, and answers that only inform before the one that
        // counts.
        let ends = ends_of_headers(rest);
        let here = |at: &usize| rest[*at..].starts_with(&answer.body);
        let body = ends.into_iter().find(here);
        let Some(at) = body else { panic!("other bytes than were sent: {answer:?}") };
        if answer.is_free {
            assert_eq!(answer.announced, Some(answer.body.len() as u64), "{answer:?}");
            assert!((100..1000).contains(&answer.status));
            rest = &rest[at + answer.body.len()..];
        }
    }
}

/// Where bytes lie that follow an empty line.
fn ends_of_headers(bytes: &[u8]) -> Vec<usize> {
    let follows = |at: &usize| {
        let before = &bytes[..*at];
        before.ends_with(b"\n\n") || before.ends_with(b"\r\n\r\n") || before.ends_with(b"\n\r\n")
    };
    (0..=bytes.len()).filter(follows).collect()
}

/// Checks the settings of a profile of the tools for AWS: they stand in lines of the text, and
/// another profile does not change them.
pub fn aws_profile(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for profile in ["default", "lab"] {
        let Some(found) = profile_settings(&text, profile) else { continue };
        for (name, value) in &found {
            let is_line = |line: &str| {
                let (before, after) = line.split_once('=').unwrap_or_default();
                before.trim().to_lowercase() == *name && after.contains(value)
            };
            assert!(text.lines().any(is_line), "{name}={value}");
        }
        let more = format!("{text}\n[other]\nregion=x\n[profile {profile}]\n");
        assert_eq!(profile_settings(&more, profile), Some(found));
    }
}
