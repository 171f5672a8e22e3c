//! HTTP requests of the `object_store` crate.
//!
//! They use HTTP/1.1: each range then has a connection of its own, and so its own share of the
//! bandwidth. Ranges go over [connections](crate::connection) of this crate, everything else over
//! `reqwest`, and ranges as well where a proxy, a redirection or a body without a length asks for
//! more than these connections do.

use std::error::Error as _;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, HeaderValue, IF_NONE_MATCH, LOCATION,
    RANGE,
};
use http::request::Parts;
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use reqwest::redirect::Policy;
use url::Url;

use crate::checksums::Checksum;
use crate::cloud::Cloud;
use crate::connection::{CONNECT, Connection, Head, MOST_WORDS, USER_AGENT, address, tls};
use crate::lane;
use crate::refusal::{Refusal, RequestKind};
use crate::signing::Signing;

/// The client for all but ranges. It follows redirections only of requests that are not signed: a
/// signature, and the token that goes with it, are for one server.
fn client(is_signed: bool) -> Result<reqwest::Client, HttpError> {
    let unknown = |error| HttpError::new(HttpErrorKind::Unknown, error);
    lane::client(is_signed, || {
        let tls = tls().map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let builder = reqwest::Client::builder().tls_backend_preconfigured((*tls).clone());
        // The URL may be signed, and is nobody else's concern.
        let builder = builder.referer(false);
        let builder = if is_signed { builder.redirect(Policy::none()) } else { builder };
        let builder = builder.user_agent(USER_AGENT).connect_timeout(CONNECT).tcp_nodelay(true);
        builder.build().map_err(unknown)
    })
}

/// Whether the environment names a proxy, through which only the client for everything goes.
fn has_proxy() -> bool {
    static PROXY: LazyLock<bool> = LazyLock::new(|| {
        let names = ["http_proxy", "https_proxy", "all_proxy"];
        let names = names.iter().flat_map(|name| [(*name).to_owned(), name.to_uppercase()]);
        names.into_iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
    });
    *PROXY
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
    /// This service for credentials gives none, for this reason.
    NoKeys(String),
}

/// Addresses of the services from which machines in a cloud get credentials.
fn has_credentials(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host.starts_with("169.254.") || host == "metadata.google.internal"
}

/// What `object_store` does not pass on of the requests of a task.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    /// What went wrong with the last of them.
    pub(crate) trouble: Option<Trouble>,
    /// The connection that has the body of the last answer.
    pub(crate) body: Option<Connection>,
}

tokio::task_local! {
    static ASIDE: Arc<Mutex<Aside>>;
}

/// Runs requests, and also returns what `object_store` does not pass on of them.
pub(crate) async fn with_aside<T>(request: impl Future<Output = T>) -> (T, Aside) {
    let aside = Arc::default();
    let answer = ASIDE.scope(Arc::clone(&aside), request).await;
    let aside = std::mem::take(&mut *aside.lock().unwrap_or_else(PoisonError::into_inner));
    (answer, aside)
}

/// How a request of an upload goes on.
#[derive(Debug)]
pub(crate) struct Sending {
    started: Instant,
    /// When the last bytes went to the connection, in milliseconds after the start.
    last: AtomicU64,
    /// Whether completing the upload must replace no object. `object_store` has no call for that.
    keeps: bool,
}

impl Sending {
    pub(crate) fn new(keeps: bool) -> Arc<Self> {
        Arc::new(Self { started: Instant::now(), last: AtomicU64::new(0), keeps })
    }

    /// When something went on last.
    pub(crate) fn last(&self) -> Instant {
        self.started + Duration::from_millis(self.last.load(Ordering::Relaxed))
    }

    fn progress(&self) {
        self.last.store(self.started.elapsed().as_millis() as u64, Ordering::Relaxed);
    }
}

tokio::task_local! {
    static SENDING: Arc<Sending>;
}

/// Runs a request of an upload, and also returns what went wrong with it.
pub(crate) async fn with_sending<T>(
    sending: Arc<Sending>,
    request: impl Future<Output = T>,
) -> (T, Option<Trouble>) {
    let (answer, aside) = SENDING.scope(sending, with_aside(request)).await;
    (answer, aside.trouble)
}

fn put_aside(what: impl FnOnce(&mut Aside)) {
    // A request that nobody watches is the store's own, such as one for credentials.
    let _ = ASIDE.try_with(|aside| what(&mut aside.lock().unwrap_or_else(PoisonError::into_inner)));
}

pub(crate) fn note(trouble: Trouble) {
    put_aside(|aside| aside.trouble = Some(trouble));
}

/// Makes transports.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connector {
    /// The URL of all requests, in place of the one that `object_store` makes.
    pub(crate) exact: Option<Url>,
    /// Whether that URL was given, and is not one of a bucket.
    pub(crate) is_link: bool,
    /// What answers requests, in place of a network.
    pub(crate) stand_in: Option<HttpClient>,
    /// Requests are signed as S3 wants it. One that is not is for credentials.
    pub(crate) signs: bool,
    /// What signs the requests, if `object_store` does not.
    pub(crate) signing: Option<Arc<Signing>>,
    /// The most bytes of an answer.
    pub(crate) most: Option<usize>,
    pub(crate) cloud: Cloud,
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let Self { exact, is_link, stand_in, signs, signing, most, cloud } = self.clone();
        let is_plain = AtomicBool::new(!has_proxy() && stand_in.is_none());
        Ok(HttpClient::new(Transport {
            exact,
            is_link,
            stand_in,
            signs,
            signing,
            most,
            cloud,
            is_plain,
        }))
    }
}

#[derive(Debug)]
struct Transport {
    exact: Option<Url>,
    is_link: bool,
    stand_in: Option<HttpClient>,
    signs: bool,
    signing: Option<Arc<Signing>>,
    most: Option<usize>,
    cloud: Cloud,
    /// Whether the server answers requests for ranges with no more than HTTP's plainest.
    is_plain: AtomicBool,
}

/// Whether a request has the signature of S3.
fn is_signed(headers: &HeaderMap) -> bool {
    let value = headers.get(AUTHORIZATION).map(|value| value.as_bytes());
    value.is_some_and(|value| value.starts_with(b"AWS4-"))
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let url = match &self.exact {
            Some(url) => url.clone(),
            None => Url::parse(&request.uri().to_string())
                .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?,
        };
        if let Some(signing) = &self.signing {
            let unknown = |error| HttpError::new(HttpErrorKind::Unknown, error);
            *request.uri_mut() = url.as_str().parse().map_err(unknown)?;
            let signed = signing.sign(&mut request).await;
            signed.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        }
        let (mut parts, body) = request.into_parts();
        let kind = match (parts.method.is_safe(), self.is_link) {
            (false, _) => RequestKind::Write(self.cloud),
            (true, true) => RequestKind::Link,
            (true, false) => RequestKind::Read(self.cloud),
        };
        let is_range = parts.method == Method::GET && parts.headers.contains_key(RANGE);
        let is_plain = url.username().is_empty() && self.is_plain.load(Ordering::Relaxed);
        if is_range && is_plain && lane::is_here() {
            match directly(&url, &parts.headers, kind).await {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => self.is_plain.store(false, Ordering::Relaxed),
                Err(error) => {
                    let kind = match error.kind() {
                        io::ErrorKind::InvalidData => HttpErrorKind::Decode,
                        _ => HttpErrorKind::Request,
                    };
                    note(Trouble::NoAnswer(error.to_string()));
                    return Err(HttpError::new(kind, error));
                }
            }
        }
        let is_for_credentials = has_credentials(&url);
        let other_service = (self.signs && !is_signed(&parts.headers))
            .then(|| format!("{}{}", url.host_str().unwrap_or_default(), url.path()));
        let answer = if let Some(stand_in) = &self.stand_in {
            let answer = stand_in.execute(HttpRequest::from_parts(parts, body)).await;
            answer
                .map_err(noted)
                .map(|answer| answer.map(|body| body.map_err(noted)).map(HttpResponseBody::new))
        } else {
            let body = as_sent(&mut parts, &url, body);
            let mut request = reqwest::Request::new(parts.method, url);
            *request.headers_mut() = parts.headers;
            *request.body_mut() = Some(body);
            let is_signed = self.signs || self.signing.is_some();
            let answer = client(is_signed)?.execute(request).await.map_err(failed);
            answer.map(|answer| {
                let (parts, body) = http::Response::<reqwest::Body>::from(answer).into_parts();
                HttpResponse::from_parts(parts, HttpResponseBody::new(body.map_err(failed)))
            })
        };
        if is_for_credentials {
            note(Trouble::NoCredentials);
        }
        if let (Err(error), Some(service)) = (&answer, &other_service) {
            let why = format!("{service}, which gives credentials, does not answer: {error}");
            note(Trouble::NoAnswer(why));
        }
        let (mut parts, body) = answer?.into_parts();
        check(&parts.headers)?;
        if parts.status.is_success() {
            if let Some(sum) = Checksum::of_object(&parts.headers) {
                parts.extensions.insert(sum);
            }
            let body = match self.most {
                Some(most) => HttpResponseBody::new(
                    Limited::new(body, most)
                        .map_err(|error| HttpError::new_boxed(HttpErrorKind::Decode, error)),
                ),
                None => body,
            };
            return Ok(HttpResponse::from_parts(parts, body));
        }
        let words = Limited::new(body, MOST_WORDS).collect().await;
        let words = words.map(|words| words.to_bytes()).unwrap_or_default();
        let refusal = Refusal::new(parts.status, &parts.headers, &words, kind);
        match other_service {
            _ if is_for_credentials => {}
            Some(service) if !refusal.is_passing() => {
                note(Trouble::NoKeys(format!("{service} answered {}", refusal.said())));
            }
            _ => note(Trouble::Refused(refusal)),
        }
        Ok(HttpResponse::from_parts(parts, words.into()))
    }
}

/// The body of a request, which notes how it goes on if the request is of an upload.
fn as_sent(parts: &mut Parts, url: &Url, body: HttpRequestBody) -> reqwest::Body {
    let body = reqwest::Body::wrap(body);
    let Ok(sending) = SENDING.try_with(Arc::clone) else { return body };
    let is_completion =
        parts.method == Method::POST && url.query_pairs().any(|(name, _)| name == "uploadId");
    if is_completion && sending.keeps {
        parts.headers.insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
    }
    // Only a body whose length stands in a header may hide it.
    if !parts.headers.contains_key(CONTENT_LENGTH) {
        return body;
    }
    reqwest::Body::wrap(body.map_frame(move |frame| {
        sending.progress();
        frame
    }))
}

/// Asks for a range, and puts the connection that has its bytes aside. `None` if the answer is one
/// that needs the client for everything: it leads to another URL, or its body has no length.
async fn directly(
    url: &Url,
    headers: &HeaderMap,
    kind: RequestKind,
) -> io::Result<Option<HttpResponse>> {
    let (mut connection, head) = match lane::idle_connection(url) {
        Some(mut idle) => match idle.get(url, headers).await {
            Ok(head) => (idle, head),
            Err(error) if idle.was_closed(&error) => asked(url, headers).await?,
            Err(error) => return Err(error),
        },
        None => asked(url, headers).await?,
    };
    let leads_on = head.status.is_redirection() && head.headers.contains_key(LOCATION);
    if leads_on || head.status.is_success() && connection.left().is_none() {
        return Ok(None);
    }
    check(&head.headers).map_err(io::Error::other)?;
    let mut answer = HttpResponse::new(Bytes::new().into());
    if !head.status.is_success() {
        let words = connection.words().await;
        note(Trouble::Refused(Refusal::new(head.status, &head.headers, &words, kind)));
        lane::keep(connection);
        *answer.body_mut() = Bytes::from(words).into();
    } else if head.status == StatusCode::PARTIAL_CONTENT {
        put_aside(|aside| aside.body = Some(connection));
    }
    if let Some(sum) = Checksum::of_object(&head.headers) {
        answer.extensions_mut().insert(sum);
    }
    *answer.status_mut() = head.status;
    *answer.headers_mut() = head.headers;
    Ok(Some(answer))
}

/// A new connection, and the headers of the answer to the first request on it.
async fn asked(url: &Url, headers: &HeaderMap) -> io::Result<(Connection, Head)> {
    let mut connection = Connection::open(url).await?;
    let head = connection.get(url, headers).await?;
    Ok((connection, head))
}

/// Fails for a range that cannot be.
fn check(headers: &HeaderMap) -> Result<(), HttpError> {
    if is_credible(headers) {
        return Ok(());
    }
    note(Trouble::NoAnswer("the server says an impossible range".into()));
    Err(HttpError::new(HttpErrorKind::Decode, io::Error::other("a wrong range")))
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
    let to = error.url().filter(|_| error.is_connect()).map(address);
    // The URL may hold secrets.
    let error = HttpError::new(kind, error.without_url());
    match to {
        Some(to) => {
            note(Trouble::NoAnswer(format!("no connection to {to}: {}", first_cause(&error))));
            error
        }
        None => noted(error),
    }
}

/// Notes the first cause of a failure.
fn noted(error: HttpError) -> HttpError {
    note(Trouble::NoAnswer(first_cause(&error)));
    error
}

/// The first cause of a failure in words.
fn first_cause(error: &HttpError) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words = cause.to_string();
        source = cause.source();
    }
    words
}
