//! HTTP requests of the `object_store` crate over one client with kept connections.
//!
//! The client speaks HTTP/1.1: each range then has a connection of its own, and so its own share of
//! the bandwidth.

use std::error::Error as _;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use http::header::{CONTENT_RANGE, HeaderMap};
use http_body_util::{BodyExt, Limited};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use thalweg_io::{Error, Result};
use tokio::runtime::{Builder, Runtime};
use url::Url;

use crate::refusal::Refusal;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// The most bytes of an error message that are looked at.
const MOST_WORDS: usize = 64 << 10;
/// The most threads that receive. Each can receive about a gigabyte per second.
const MOST_THREADS: usize = 4;

/// The threads that receive. They start with the first object that is opened.
///
/// # Errors
/// [`Error::Io`] if the system starts no thread.
pub(crate) fn runtime(name: &Arc<str>) -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let start = || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(threads).thread_name("thalweg-http").enable_all().build().ok()
    };
    RUNTIME.get_or_init(start).as_ref().ok_or_else(|| {
        let full = io::Error::other("the system starts no more threads");
        Error::io(name, "starting threads to receive", full)
    })
}

/// The client of this process. Its connections are shared by all objects.
fn client() -> Result<reqwest::Client, HttpError> {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    if let Some(client) = CLIENT.get() {
        return Ok(client.clone());
    }
    // Fails where another library has chosen already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .user_agent(concat!("thalweg/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .tcp_nodelay(true)
        .build()
        .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
    Ok(CLIENT.get_or_init(|| client).clone())
}

/// Why a request got no answer, or what the answer said.
#[derive(Debug, Clone)]
pub(crate) enum Trouble {
    /// The server refused it.
    Refused(Refusal),
    /// No answer came, for this reason.
    NoAnswer(String),
    /// The machine's own service for credentials has none.
    NoCredentials,
}

/// Addresses of the services from which machines and containers in a cloud get credentials.
fn has_credentials(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host.starts_with("169.254.") || host == "metadata.google.internal"
}

tokio::task_local! {
    /// What went wrong with the requests of this task. The errors of `object_store` do not have the
    /// headers.
    static TROUBLE: Arc<Mutex<Option<Trouble>>>;
}

/// Runs requests, and also returns what went wrong with the last of them.
pub(crate) async fn with_trouble<T>(request: impl Future<Output = T>) -> (T, Option<Trouble>) {
    let trouble = Arc::new(Mutex::new(None));
    let answer = TROUBLE.scope(trouble.clone(), request).await;
    let trouble = trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
    (answer, trouble)
}

fn note(trouble: Trouble) {
    // A request that nobody watches is the store's own, such as one for credentials.
    let _ = TROUBLE.try_with(|place| {
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(trouble);
    });
}

/// Makes transports.
#[derive(Debug, Default)]
pub(crate) struct Connector {
    /// The URL of all requests, in place of the one that `object_store` makes.
    pub(crate) exact: Option<Url>,
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = client().map_err(|source| object_store::Error::Generic {
            store: "HTTP",
            source: Box::new(source),
        })?;
        Ok(HttpClient::new(Transport { client, exact: self.exact.clone() }))
    }
}

#[derive(Debug)]
struct Transport {
    client: reqwest::Client,
    exact: Option<Url>,
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let url = match &self.exact {
            Some(url) => url.clone(),
            None => Url::parse(&parts.uri.to_string())
                .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?,
        };
        let is_for_credentials = has_credentials(&url);
        let mut request = reqwest::Request::new(parts.method, url);
        *request.headers_mut() = parts.headers;
        *request.body_mut() = Some(reqwest::Body::wrap(body));
        let answer = self.client.execute(request).await.map_err(failed);
        if is_for_credentials {
            note(Trouble::NoCredentials);
        }
        let answer = answer?;
        let answer: http::Response<reqwest::Body> = answer.into();
        let (parts, body) = answer.into_parts();
        if !is_credible(&parts.headers) {
            note(Trouble::NoAnswer("the server says an impossible range".into()));
            return Err(HttpError::new(HttpErrorKind::Decode, io::Error::other("a wrong range")));
        }
        if parts.status.is_success() {
            return Ok(HttpResponse::from_parts(
                parts,
                HttpResponseBody::new(body.map_err(failed)),
            ));
        }
        let words = Limited::new(body, MOST_WORDS).collect().await;
        let words = words.map(|words| words.to_bytes()).unwrap_or_default();
        if !is_for_credentials {
            note(Trouble::Refused(Refusal::new(parts.status, &parts.headers, &words)));
        }
        Ok(HttpResponse::from_parts(parts, words.into()))
    }
}

/// Whether the header of a range can be right. `object_store` adds 1 to the number of its last
/// byte.
fn is_credible(headers: &HeaderMap) -> bool {
    let Some(range) = headers.get(CONTENT_RANGE) else { return true };
    let Ok(range) = range.to_str() else { return false };
    let numbers = range.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    numbers.map(str::parse::<u64>).all(|number| number.is_ok_and(|number| number < u64::MAX))
}

/// The failure of a request or of the body of an answer, which is noted.
fn failed(error: reqwest::Error) -> HttpError {
    let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request };
    // The URL may hold secrets.
    let error = error.without_url();
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words = cause.to_string();
        source = cause.source();
    }
    note(Trouble::NoAnswer(words));
    HttpError::new(kind, error)
}
