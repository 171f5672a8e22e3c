//! Connections of HTTP/1.1 for ranges: the bytes of a body go straight into the reader's buffer.
//!
//! A client for everything hands a body over in pieces that it received on a task of its own. Each
//! piece is copied once more, and wakes a thread: that took twice the processor time of receiving.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use rustix::net::{RecvFlags, recv};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::{Position, Url};

/// How long a connection may take to come about.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);
/// The most bytes of an error message that are looked at.
pub(crate) const MOST_WORDS: usize = 64 << 10;
/// The name of this client.
pub(crate) const USER_AGENT: &str = concat!("thalweg/", env!("CARGO_PKG_VERSION"));
/// The most bytes and fields of the headers of an answer.
const MOST_HEAD: usize = 64 << 10;
const MOST_FIELDS: usize = 100;
/// Services close connections that were idle for longer, S3 after 20 s or so.
const MOST_IDLE: Duration = Duration::from_secs(10);

/// How this process speaks TLS.
pub(crate) fn tls() -> io::Result<Arc<ClientConfig>> {
    static TLS: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(tls) = TLS.get() {
        return Ok(tls.clone());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(io::Error::other)?
        .with_no_client_auth();
    Ok(TLS.get_or_init(|| Arc::new(tls)).clone())
}

/// A connection to a server, and what is left of the answer that it is receiving.
#[derive(Debug)]
pub(crate) struct Connection<S = Stream> {
    stream: S,
    /// Scheme, host and port.
    to: String,
    /// Bytes of the body that came with the headers.
    early: Vec<u8>,
    /// Bytes of the body that were not read yet.
    left: u64,
    /// Whether the body comes in chunks (RFC 9112, section 7.1).
    is_chunked: bool,
    /// Whether the server takes another request.
    stays: bool,
    idle_since: Instant,
}

#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The headers of an answer.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
}

impl Connection {
    /// Connects to the server of a URL.
    pub(crate) async fn open(url: &Url) -> io::Result<Self> {
        let (host, port) = (url.host_str(), url.port_or_known_default());
        let (host, port) =
            host.zip(port).ok_or_else(|| io::Error::other("a URL without a host"))?;
        let connecting = async {
            // The brackets of an address of IPv6 are the URL's.
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            if url.scheme() == "http" {
                return io::Result::Ok(Stream::Plain(stream));
            }
            let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
            let stream = TlsConnector::from(tls()?).connect(name, stream).await?;
            Ok(Stream::Tls(Box::new(stream)))
        };
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
        let connected = timeout(CONNECT, connecting).await.map_err(late).flatten();
        Ok(Self::over(connected.map_err(|error| not_connected(url, &error))?, url))
    }

    /// Whether it can be used for another request: it was not idle for too long, and the server
    /// neither closed it nor sent more than it had announced.
    pub(crate) fn is_alive(&self) -> bool {
        let socket = match &self.stream {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => stream.get_ref().0,
        };
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let waits = || recv(socket, &mut [0; 1], flags).map(drop) == Err(rustix::io::Errno::AGAIN);
        self.idle_since.elapsed() < MOST_IDLE && waits()
    }
}

/// The error for a server that gives no connection. It names the address, which may come from a
/// setting that the user has forgotten.
fn not_connected(url: &Url, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("no connection to {}: {error}", address(url)))
}

/// The host and the port of a URL.
pub(crate) fn address(url: &Url) -> String {
    let port = url.port_or_known_default().map(|port| format!(":{port}"));
    format!("{}{}", url.host_str().unwrap_or_default(), port.unwrap_or_default())
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// A connection over a stream to the server of a URL.
    pub(crate) fn over(stream: S, url: &Url) -> Self {
        Self {
            stream,
            to: url[..Position::BeforePath].to_owned(),
            early: Vec::new(),
            left: 0,
            is_chunked: false,
            stays: true,
            idle_since: Instant::now(),
        }
    }

    /// Whether it goes to the server of a URL.
    pub(crate) fn leads_to(&self, url: &Url) -> bool {
        self.to == url[..Position::BeforePath]
    }

    /// Whether a request failed because the server had closed the connection before it came.
    pub(crate) fn was_closed(&self, error: &io::Error) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        self.early.is_empty()
            && matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
    }

    /// Asks for a URL, and returns the headers of the answer.
    pub(crate) async fn get(&mut self, url: &Url, headers: &HeaderMap) -> io::Result<Head> {
        let mut text =
            format!("GET {} HTTP/1.1\r\n", &url[Position::BeforePath..Position::AfterQuery])
                .into_bytes();
        let mut field = |name: &str, value: &[u8]| {
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value);
            text.extend_from_slice(b"\r\n");
        };
        if !headers.contains_key(HOST) {
            field("host", url[Position::BeforeHost..Position::AfterPort].as_bytes());
        }
        field("user-agent", USER_AGENT.as_bytes());
        field("accept", b"*/*");
        for (name, value) in headers {
            field(name.as_str(), value.as_bytes());
        }
        text.extend_from_slice(b"\r\n");
        self.stream.write_all(&text).await?;
        self.stream.flush().await?;
        loop {
            let head = self.head().await?;
            if !head.status.is_informational() {
                return self.announced(head);
            }
        }
    }

    /// Receives headers.
    async fn head(&mut self) -> io::Result<Head> {
        loop {
            if let Some((head, len)) = parse(&self.early)? {
                self.early.drain(..len);
                return Ok(head);
            }
            if self.early.len() >= MOST_HEAD {
                return Err(invalid("the server sends endless headers"));
            }
            self.early.reserve(8 << 10);
            if self.stream.read_buf(&mut self.early).await? == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the server closed the connection",
                ));
            }
        }
    }

    /// Notes how long the body is.
    fn announced(&mut self, head: Head) -> io::Result<Head> {
        let mut lengths = head.headers.get_all(CONTENT_LENGTH).iter();
        // Digits only (RFC 9110, section 8.6); `parse` would take a sign.
        let number = |len: &str| len.bytes().all(|c| c.is_ascii_digit()).then(|| len.parse().ok());
        let len = lengths.next().map(|len| len.to_str().ok().and_then(number).flatten());
        self.is_chunked = head.headers.contains_key(TRANSFER_ENCODING);
        let is_odd = lengths.next().is_some() || self.is_chunked;
        self.left = match len {
            Some(Some(len)) if !is_odd => len,
            None if !is_odd && head.status == StatusCode::NO_CONTENT => 0,
            Some(None) => return Err(invalid("the server says an impossible length")),
            // Until the server closes the connection, or in pieces.
            _ => u64::MAX,
        };
        self.stays = self.left < u64::MAX
            && !head.headers.get_all(CONNECTION).iter().any(|value| value == "close");
        Ok(head)
    }

    /// How many bytes of the body are left; `None` if the server did not say.
    pub(crate) fn left(&self) -> Option<u64> {
        Some(self.left).filter(|&left| left < u64::MAX)
    }

    /// Whether another request can follow now.
    pub(crate) fn is_free(&mut self) -> bool {
        self.idle_since = Instant::now();
        self.stays && self.left == 0 && self.early.is_empty()
    }

    /// Receives some bytes of the body; 0 at its end, and where the server ended it early.
    pub(crate) async fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        let buf = &mut buf[..most];
        // A read of no bytes would wait for some.
        if buf.is_empty() {
            return Ok(0);
        }
        let len = if self.early.is_empty() {
            self.stream.read(buf).await?
        } else {
            let len = buf.len().min(self.early.len());
            buf[..len].copy_from_slice(&self.early[..len]);
            self.early.drain(..len);
            len
        };
        if self.left < u64::MAX {
            self.left -= len as u64;
        }
        Ok(len)
    }

    /// The first bytes of a body that says why a request was refused.
    pub(crate) async fn words(&mut self) -> Vec<u8> {
        let mut words = vec![0; MOST_WORDS];
        let mut filled = 0;
        while let Ok(len) = self.read(&mut words[filled..]).await
            && len > 0
        {
            filled += len;
            // The server may close the connection seconds later, or never.
            if self.is_chunked && unchunked(&words[..filled]).1 {
                break;
            }
        }
        words.truncate(filled);
        if self.is_chunked { unchunked(&words).0 } else { words }
    }
}

/// What chunks hold, as far as they are there, and whether the last one is.
fn unchunked(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut text = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = bytes[..end].split(|byte| *byte == b';').next().unwrap_or_default();
        let size = str::from_utf8(size).ok().map(|size| usize::from_str_radix(size.trim(), 16));
        match size {
            Some(Ok(0)) => return (text, true),
            Some(Ok(size)) => {
                let rest = &bytes[end + 2..];
                text.extend_from_slice(&rest[..size.min(rest.len())]);
                let Some(rest) = size.checked_add(2).and_then(|next| rest.get(next..)) else {
                    break;
                };
                bytes = rest;
            }
            _ => break,
        }
    }
    (text, false)
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// The headers at the start of `bytes`, and their length; `None` if their end has not come.
fn parse(bytes: &[u8]) -> io::Result<Option<(Head, usize)>> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut answer = httparse::Response::new(&mut fields);
    let no_http = |_| invalid("the server does not speak HTTP");
    let httparse::Status::Complete(len) =
        answer.parse(bytes).map_err(|error| no_http(error.to_string()))?
    else {
        return Ok(None);
    };
    let status = StatusCode::from_u16(answer.code.unwrap_or_default());
    let status = status.map_err(|error| no_http(error.to_string()))?;
    let mut headers = HeaderMap::new();
    for field in answer.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes());
        let value = HeaderValue::from_bytes(field.value);
        let (Ok(name), Ok(value)) = (name, value) else {
            return Err(invalid("the server sends headers that cannot be"));
        };
        headers.append(name, value);
    }
    Ok(Some((Head { status, headers }, len)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{parse, unchunked};

    #[test]
    fn chunks_are_put_together() {
        let text = b"3\r\nabc\r\nA;x\r\n0123456789\r\n0\r\n\r\n";
        assert_eq!(unchunked(text), (b"abc0123456789".to_vec(), true));
        for len in 0..text.len() - 4 {
            let (found, is_whole) = unchunked(&text[..len]);
            assert!(b"abc0123456789".starts_with(&found) && !is_whole, "{len}");
        }
        for odd in [&b"x\r\nabc"[..], b"\r\n", b"fffffffffffffffff\r\n", b"ffffffffffffffff\r\na"] {
            assert!(!unchunked(odd).1);
        }
    }

    #[test]
    fn headers_end_with_an_empty_line() {
        let text = b"HTTP/1.1 206 Partial Content\r\nETag: \"x\"\r\nContent-Length: 3\r\n\r\nabc";
        let end = text.len() - 3;
        for len in 0..end {
            assert!(parse(&text[..len]).unwrap().is_none(), "{len}");
        }
        let (head, len) = parse(text).unwrap().unwrap();
        assert_eq!((head.status.as_u16(), len), (206, end));
        assert_eq!(head.headers["etag"], "\"x\"");
    }

    #[test]
    fn what_is_not_http_is_an_error() {
        for text in [&b"SSH-2.0-OpenSSH\r\n"[..], b"HTTP/1.1 99 X\r\n\r\n", b"\0\0\0\0\0\0"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        let many = "a: b\r\n".repeat(101);
        assert!(parse(format!("HTTP/1.1 200 OK\r\n{many}\r\n").as_bytes()).is_err());
    }
}
