//! Changes in a bucket of S3: objects that are put, copied and removed, each under a condition.
//!
//! `object_store` has no requests for all of this: it completes no upload under a condition, copies
//! no object with other metadata or in parts, and knows no key that ends with `/`.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, ETAG, IF_MATCH, IF_NONE_MATCH, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue, Method};
use object_store::client::{HttpClient, HttpRequest, HttpRequestBody};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thalweg_io::control::Control;
use thalweg_io::open::ObjectVersion;
use thalweg_io::urls::{is_in_bucket, shown};
use thalweg_io::{Error, Result};
use url::Url;

use crate::address::{Access, Place, Settings};
use crate::cloud::Cloud;
use crate::lister::Lister;
use crate::object::Object;
use crate::refusal::{Refusal, RequestKind};
use crate::retries::Patience;
use crate::signing::{escaped, object_url};
use crate::transport::{Trouble, note};
use crate::upload::{COMPLETION, MARK, mark, refusal};

/// The largest object that S3 copies by one request.
const LARGEST_COPY: u64 = 5 << 30;
/// The bytes of a part that is copied.
const COPIED_PART: u64 = 1 << 30;
/// A request that sends bytes may take longer, as if they went at this rate per second.
const SLOWEST: u64 = 256 << 10;
/// How names of user-defined metadata begin in headers.
const META: &str = "x-amz-meta-";

/// What has to be at a key for an object to be put there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Anything, or nothing.
    Anything,
    /// No object.
    Nothing,
    /// An object with this tag (RFC 9110, section 8.8.3).
    Tag(String),
}

impl Condition {
    /// Holds if nothing has changed since this was found.
    #[must_use]
    pub fn still(found: Option<&ObjectVersion>) -> Self {
        match found {
            None => Self::Nothing,
            Some(found) if found.is_certain() => Self::Tag(found.tag.clone()),
            Some(_) => Self::Anything,
        }
    }

    /// Whether it holds where there is an object with a tag, or none.
    fn holds_for(&self, tag: Option<&String>) -> bool {
        match self {
            Self::Anything => true,
            Self::Nothing => tag.is_none(),
            Self::Tag(wanted) => tag == Some(wanted),
        }
    }
}

/// User-defined metadata of an object, by their names in lower case. The values are ASCII.
pub type Metadata = BTreeMap<String, String>;

/// What is known of an object without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Its version.
    pub version: ObjectVersion,
    /// Its user-defined metadata, but for the mark.
    pub metadata: Metadata,
    /// The mark of the upload that made it, if it has one.
    pub mark: Option<String>,
}

/// An upload in parts, which makes no object until it is completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartsUpload {
    id: String,
    mark: String,
}

impl PartsUpload {
    /// The mark of the object that is made of the parts.
    #[must_use]
    pub fn mark(&self) -> &str {
        &self.mark
    }
}

/// The objects below a URL of S3, such as `s3://bucket/runs/`. They are named by what follows this
/// URL.
#[derive(Debug)]
pub struct Bucket {
    /// Makes requests again where that may help.
    requests: Object,
    client: HttpClient,
    /// The URL of the bucket for requests.
    bucket: Url,
    /// The name of the bucket.
    name: String,
    /// What all keys begin with.
    prefix: String,
    shown: Arc<str>,
    largest_copy: u64,
}

/// An answer that is no refusal.
struct Answer {
    headers: HeaderMap,
    body: Bytes,
}

/// A request.
struct Ask<'a> {
    method: Method,
    key: &'a str,
    query: &'a [(&'a str, &'a str)],
    headers: Vec<(String, String)>,
    body: Bytes,
    /// The time for an answer, in those of a usual request.
    times: u32,
}

impl<'a> Ask<'a> {
    fn new(method: Method, key: &'a str) -> Self {
        Self { method, key, query: &[], headers: Vec::new(), body: Bytes::new(), times: 1 }
    }

    fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    fn marked(mut self, metadata: &Metadata, mark: &str) -> Self {
        let headers = metadata.iter().map(|(name, value)| (format!("{META}{name}"), value.clone()));
        self.headers.extend(headers);
        self.header(format!("{META}{MARK}"), mark)
    }

    fn condition(self, condition: &Condition) -> Self {
        match condition {
            Condition::Anything => self,
            Condition::Nothing => self.header(IF_NONE_MATCH.as_str(), "*"),
            Condition::Tag(tag) => self.header(IF_MATCH.as_str(), tag),
        }
    }
}

impl Bucket {
    /// The objects whose URLs begin with a URL that ends with `/`.
    ///
    /// # Errors
    /// [`Error::Usage`] for a URL of no bucket, and where the environment does not fit;
    /// [`Error::Unsupported`] for other services than S3.
    pub fn new(url: &str, control: &Control, patience: Patience) -> Result<Self> {
        Self::with_settings(url, &[], control, patience)
    }

    /// [`Bucket::new`] with settings of S3, by the names of their environment variables in lower
    /// case (`aws_endpoint_url`), in place of those of the environment.
    ///
    /// # Errors
    /// Those of [`Bucket::new`].
    pub fn with_settings(
        url: &str,
        settings: Settings<'_>,
        control: &Control,
        patience: Patience,
    ) -> Result<Self> {
        let access = Access { settings, writes: true, ..Access::default() };
        let Place { lister, service, prefix, shown: name, .. } = Place::parse_with(url, &access)?;
        let Lister::S3 { client, bucket } = lister else {
            let (what, advice) = if is_in_bucket(url) {
                ("writing files of a bucket that is not of S3", "mount it with --read-only")
            } else {
                ("writing below such a URL", "name a bucket, as in s3://bucket/folder/")
            };
            let (what, advice) = (what.into(), advice.into());
            return Err(Error::Unsupported { file: shown(url).into(), what, advice });
        };
        let (_, rest) = url.split_once("://").unwrap_or_default();
        let (bucket_name, _) = rest.split_once('/').unwrap_or((rest, ""));
        let requests = Object::unopened(name.clone(), service, control, patience);
        // Bytes that were written are not given up after a few tries.
        requests.is_answered();
        Ok(Self {
            requests,
            client,
            bucket,
            name: bucket_name.to_owned(),
            prefix,
            shown: name,
            largest_copy: LARGEST_COPY,
        })
    }

    /// Has larger objects copied in parts of this size. For tests: S3 takes no part of under 5 MiB.
    #[doc(hidden)]
    #[must_use]
    pub fn with_largest_copy(self, bytes: u64) -> Self {
        Self { largest_copy: bytes, ..self }
    }

    /// What is known of an object. `None` if it is not there.
    ///
    /// # Errors
    /// [`Error::Io`] if the service refuses it or does not answer; [`Error::Cancelled`].
    pub fn head(&self, key: &str) -> Result<Option<Head>> {
        let answer = match self.ask(&Ask::new(Method::HEAD, key)) {
            Ok(answer) => answer,
            Err(error) if refused(&error).is_some_and(Refusal::is_missing) => return Ok(None),
            Err(error) => return Err(self.failed(key, "asking for", error)),
        };
        let text = |name: &str| answer.headers.get(name)?.to_str().ok();
        let metadata = answer.headers.iter().filter_map(|(name, value)| {
            let name = name.as_str().strip_prefix(META)?;
            Some((name.to_owned(), value.to_str().ok()?.to_owned()))
        });
        let modified = text(LAST_MODIFIED.as_str())
            .and_then(|text| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok());
        let size = text(CONTENT_LENGTH.as_str()).and_then(|text| text.parse().ok());
        let Some(size) = size else {
            let why = std::io::Error::other("the server does not say how long the object is");
            return Err(Error::io(&self.url(key), "asking for", why));
        };
        let version = ObjectVersion {
            size,
            tag: text(ETAG.as_str()).unwrap_or_default().to_owned(),
            modified: modified.map(jiff::Timestamp::as_second),
        };
        let mut metadata: Metadata = metadata.collect();
        let mark = metadata.remove(MARK);
        Ok(Some(Head { version, metadata, mark }))
    }

    /// Whether a condition holds for an object.
    ///
    /// # Errors
    /// Those of [`Bucket::head`].
    pub fn holds(&self, key: &str, condition: &Condition) -> Result<bool> {
        let head = self.head(key)?;
        Ok(condition.holds_for(head.as_ref().map(|head| &head.version.tag)))
    }

    /// Makes an object of bytes. Returns its tag. No other object has the same mark. It tells
    /// whether an earlier try, whose answer was lost, has made the object.
    ///
    /// # Errors
    /// [`Error::Io`] if the service refuses it or does not answer, of the kind
    /// `StaleNetworkFileHandle` if the condition does not hold; [`Error::Cancelled`].
    pub fn put(
        &self,
        key: &str,
        bytes: Bytes,
        (metadata, mark): (&Metadata, &str),
        condition: &Condition,
    ) -> Result<String> {
        let put = |condition: &Condition| {
            let ask = Ask::new(Method::PUT, key).marked(metadata, mark).condition(condition);
            self.ask(&Ask { body: bytes.clone(), ..ask })
        };
        let put = put(condition).or_else(|error| self.without(key, condition, error, put));
        match put {
            Ok(answer) => self.tag(key, &answer),
            Err(error) => self.end(key, error, mark),
        }
    }

    /// Begins an upload in parts. For the mark, see [`Bucket::put`].
    ///
    /// # Errors
    /// Those of [`Bucket::put`].
    pub fn begin(&self, key: &str, (metadata, mark): (&Metadata, &str)) -> Result<PartsUpload> {
        let ask = Ask::new(Method::POST, key).marked(metadata, mark);
        let ask = Ask { query: &[("uploads", "")], ..ask };
        let answer = self.ask(&ask).map_err(|error| self.failed(key, "writing", error))?;
        let Begun { id } = self.parse(key, &answer)?;
        Ok(PartsUpload { id, mark: mark.to_owned() })
    }

    /// Sends a part, whose number counts from 0. A part that was sent before is replaced. Returns
    /// its tag. S3 takes no part of less than 5 MiB but the last, and 10,000 parts at most.
    ///
    /// # Errors
    /// Those of [`Bucket::put`].
    pub fn put_part(
        &self,
        key: &str,
        upload: &PartsUpload,
        number: usize,
        bytes: Bytes,
    ) -> Result<String> {
        let number = (number + 1).to_string();
        let query = [("partNumber", &*number), ("uploadId", &upload.id)];
        let ask = Ask { query: &query, body: bytes, ..Ask::new(Method::PUT, key) };
        let answer = self.ask(&ask).map_err(|error| self.failed(key, "writing", error))?;
        self.tag(key, &answer)
    }

    /// Makes an object of the parts with these tags. Returns the tag of the object.
    ///
    /// # Errors
    /// Those of [`Bucket::put`].
    pub fn complete(
        &self,
        key: &str,
        upload: &PartsUpload,
        tags: &[String],
        condition: &Condition,
    ) -> Result<String> {
        let part = |(number, tag): (usize, &String)| {
            let tag = tag.replace('"', "&quot;");
            format!("<Part><PartNumber>{}</PartNumber><ETag>{tag}</ETag></Part>", number + 1)
        };
        let parts: String = tags.iter().enumerate().map(part).collect();
        let body = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
        let body = Bytes::from(body);
        let complete = |condition: &Condition| {
            let query = [("uploadId", &*upload.id)];
            let ask = Ask::new(Method::POST, key).condition(condition);
            self.ask(&Ask { query: &query, body: body.clone(), times: COMPLETION, ..ask })
        };
        let completed = complete(condition);
        let completed = completed.or_else(|error| self.without(key, condition, error, complete));
        match completed {
            Ok(answer) => Ok(self.parse::<Tagged>(key, &answer)?.tag),
            Err(error) => self.end(key, error, &upload.mark),
        }
    }

    /// Has the service forget the parts of an upload.
    ///
    /// # Errors
    /// Those of [`Bucket::put`].
    pub fn abort(&self, key: &str, upload: &PartsUpload) -> Result<()> {
        let query = [("uploadId", &*upload.id)];
        let ask = Ask { query: &query, ..Ask::new(Method::DELETE, key) };
        match self.ask(&ask) {
            Err(error) if !refused(&error).is_some_and(Refusal::is_of_upload) => {
                Err(self.failed(key, "giving up", error))
            }
            _ => Ok(()),
        }
    }

    /// Copies an object within the bucket, with its metadata or with others and another mark.
    /// Returns the tag of the copy. Some services ignore conditions of copies, and a copy may have
    /// been made though its answer was lost: who needs the condition to hold asks first, too
    /// ([`Bucket::holds`]).
    ///
    /// # Errors
    /// Those of [`Bucket::put`]; of the kind `StaleNetworkFileHandle` if the object has another
    /// version, and of the kind `AlreadyExists` if the condition does not hold at `to`.
    pub fn copy(
        &self,
        (from, version): (&str, &ObjectVersion),
        to: &str,
        metadata: Option<(&Metadata, &str)>,
        condition: &Condition,
    ) -> Result<String> {
        let copied = match version.size > self.largest_copy {
            true => self.copy_in_parts((from, version), to, metadata, condition),
            false => self.copy_once((from, version), to, metadata, condition),
        };
        let Err(Error::Io { source, .. }) = &copied else { return copied };
        let is_changed = source.kind() == ErrorKind::StaleNetworkFileHandle;
        let is_gone = source.kind() == ErrorKind::NotFound;
        let may_be_unmet = match condition {
            Condition::Anything => false,
            Condition::Nothing => is_changed,
            Condition::Tag(_) => is_changed || is_gone,
        };
        let found = if may_be_unmet { self.head(to)? } else { None };
        let holds = condition.holds_for(found.as_ref().map(|head| &head.version.tag));
        if !may_be_unmet || holds {
            return if is_changed { Err(self.changed(from)) } else { copied };
        }
        // An earlier try, whose answer was lost, may have made the copy. Before, the condition
        // held.
        if let Some(found) = found {
            let own = match metadata {
                Some((_, own)) => Some(own.to_owned()),
                None => self.head(from)?.and_then(|head| head.mark),
            };
            let is_alike = (&found.version.tag, found.version.size) == (&version.tag, version.size);
            if own == found.mark && (own.is_some() || is_alike) {
                return Ok(found.version.tag);
            }
        }
        let why = "another program has changed what is there meanwhile";
        let why = std::io::Error::new(ErrorKind::AlreadyExists, why);
        Err(Error::io(&self.url(to), "copying to", why))
    }

    fn copy_once(
        &self,
        (from, version): (&str, &ObjectVersion),
        to: &str,
        metadata: Option<(&Metadata, &str)>,
        condition: &Condition,
    ) -> Result<String> {
        let copy = |condition: &Condition| {
            let ask = Ask::new(Method::PUT, to).condition(condition);
            let ask = self.copying(ask, from, version);
            let ask = match metadata {
                Some((metadata, mark)) => {
                    ask.header("x-amz-metadata-directive", "REPLACE").marked(metadata, mark)
                }
                None => ask,
            };
            self.ask(&Ask { times: COMPLETION, ..ask })
        };
        let copied = copy(condition).or_else(|error| self.without(to, condition, error, copy));
        let answer = copied.map_err(|error| self.failed(to, "copying to", error))?;
        Ok(self.parse::<Tagged>(to, &answer)?.tag)
    }

    fn copying<'a>(&self, ask: Ask<'a>, from: &str, version: &ObjectVersion) -> Ask<'a> {
        let source = format!("/{}/{}", self.name, escaped(&format!("{}{from}", self.prefix)));
        let ask = ask.header("x-amz-copy-source", source);
        match version.is_certain() {
            true => ask.header("x-amz-copy-source-if-match", &version.tag),
            false => ask,
        }
    }

    fn copy_in_parts(
        &self,
        (from, version): (&str, &ObjectVersion),
        to: &str,
        metadata: Option<(&Metadata, &str)>,
        condition: &Condition,
    ) -> Result<String> {
        let upload = match metadata {
            Some(metadata) => self.begin(to, metadata)?,
            None => {
                let own = self.head(from)?.map(|head| head.metadata).unwrap_or_default();
                self.begin(to, (&own, &mark()))?
            }
        };
        let part = COPIED_PART.min(self.largest_copy);
        let parts = (0..version.size).step_by(part as usize);
        let tags = parts.enumerate().map(|(number, start)| {
            let end = (start + part).min(version.size);
            let number = (number + 1).to_string();
            let query = [("partNumber", &*number), ("uploadId", &upload.id)];
            let range = format!("bytes={start}-{}", end - 1);
            let ask = Ask { query: &query, times: COMPLETION, ..Ask::new(Method::PUT, to) };
            let ask = self.copying(ask, from, version).header("x-amz-copy-source-range", range);
            let answer = self.ask(&ask).map_err(|error| self.failed(to, "copying to", error))?;
            Ok(self.parse::<Tagged>(to, &answer)?.tag)
        });
        let tags: Result<Vec<String>> = tags.collect();
        tags.and_then(|tags| self.complete(to, &upload, &tags, condition)).inspect_err(|_| {
            // The first error is told.
            let _ = self.abort(to, &upload);
        })
    }

    /// Removes an object. It is no error if there is none. Some services ignore conditions of
    /// removals.
    ///
    /// # Errors
    /// Those of [`Bucket::put`].
    pub fn remove(&self, key: &str, condition: &Condition) -> Result<()> {
        let remove =
            |condition: &Condition| self.ask(&Ask::new(Method::DELETE, key).condition(condition));
        let removed = remove(condition);
        match removed.or_else(|error| self.without(key, condition, error, remove)) {
            Err(error) if !refused(&error).is_some_and(Refusal::is_missing) => {
                Err(self.failed(key, "removing", error))
            }
            _ => Ok(()),
        }
    }

    /// The URL of an object for messages.
    fn url(&self, key: &str) -> Arc<str> {
        let slash = if self.shown.ends_with('/') { "" } else { "/" };
        format!("{}{slash}{key}", self.shown).into()
    }

    fn failed(&self, key: &str, doing: &'static str, error: Error) -> Error {
        if refused(&error).is_some_and(Refusal::is_presence) {
            return self.changed(key);
        }
        match error {
            Error::Io { source, .. } => {
                Error::Io { file: self.url(key), doing, offset: None, source }
            }
            other => other,
        }
    }

    /// Repeats a request without its condition, after the service said that it knows no such
    /// condition, if the condition holds now.
    fn without(
        &self,
        key: &str,
        condition: &Condition,
        error: Error,
        request: impl Fn(&Condition) -> Result<Answer>,
    ) -> Result<Answer> {
        let is_unknown = refused(&error).is_some_and(Refusal::is_unknown);
        if !is_unknown || *condition == Condition::Anything {
            return Err(error);
        }
        match self.holds(key, condition)? {
            true => request(&Condition::Anything),
            false => Err(self.changed(key)),
        }
    }

    fn changed(&self, key: &str) -> Error {
        let why = "another program has changed this object meanwhile";
        let why = std::io::Error::new(ErrorKind::StaleNetworkFileHandle, why);
        Error::io(&self.url(key), "writing", why)
    }

    /// What a refusal of the last request of an upload means. An earlier try of it may have made
    /// the object, and its answer got lost.
    fn end(&self, key: &str, error: Error, mark: &str) -> Result<String> {
        let is_unsure = |refusal: &Refusal| refusal.is_presence() || refusal.is_of_upload();
        if refused(&error).is_some_and(is_unsure)
            && let Some(head) = self.head(key)?
            && head.mark.is_some_and(|found| found == mark)
        {
            return Ok(head.version.tag);
        }
        Err(self.failed(key, "writing", error))
    }

    fn tag(&self, key: &str, answer: &Answer) -> Result<String> {
        let tag = answer.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
        let silent = || {
            let why = "the server does not say the tag (ETag) of what was written";
            Error::io(&self.url(key), "writing", std::io::Error::other(why))
        };
        Ok(tag.ok_or_else(silent)?.to_owned())
    }

    fn parse<T: DeserializeOwned>(&self, key: &str, answer: &Answer) -> Result<T> {
        quick_xml::de::from_reader(&*answer.body).map_err(|error| {
            let why = format!("the answer is not what S3 answers: {error}");
            Error::io(&self.url(key), "writing", std::io::Error::other(why))
        })
    }

    fn ask(&self, ask: &Ask<'_>) -> Result<Answer> {
        let key = format!("{}{}", self.prefix, ask.key);
        if key.split('/').any(|part| matches!(part, "." | "..")) {
            return Err(Error::Unsupported {
                file: self.url(ask.key),
                what: "a key with a part . or ..".into(),
                advice: "a URL would lead elsewhere: choose another name".into(),
            });
        }
        let wrong = |why: String| Error::Usage(format!("{}: {why}", self.url(ask.key)).into());
        let mut url = object_url(&self.bucket, &key).map_err(|error| wrong(error.to_string()))?;
        if !ask.query.is_empty() {
            url.query_pairs_mut().extend_pairs(ask.query);
        }
        let uri: http::Uri = url.as_str().parse().map_err(|_| wrong("no URL".into()))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &ask.headers {
            let name: http::HeaderName =
                name.parse().map_err(|_| wrong(format!("{name:?} is no header")))?;
            let value = HeaderValue::from_str(value)
                .map_err(|_| wrong(format!("{value:?} is no value of a header")))?;
            headers.insert(name, value);
        }
        headers.insert(CONTENT_LENGTH, ask.body.len().into());
        let request = || async {
            let mut request = HttpRequest::new(HttpRequestBody::from(ask.body.clone()));
            *request.method_mut() = ask.method.clone();
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = headers.clone();
            self.execute(request).await
        };
        let sending = Duration::from_secs(ask.body.len() as u64 / SLOWEST);
        let patience = self.requests.patience();
        let limit = patience.request * ask.times + sending;
        let patience = Patience { request: limit, read: patience.read.max(limit) };
        self.requests.ask_within(patience, request)
    }

    async fn execute(&self, request: HttpRequest) -> object_store::Result<Answer> {
        let failed = |source| object_store::Error::Generic { store: "S3", source };
        let answer = self.client.execute(request).await;
        let (parts, body) = answer.map_err(|error| failed(error.into()))?.into_parts();
        if !parts.status.is_success() {
            return Err(failed(format!("the server answered {}", parts.status).into()));
        }
        let body = body.bytes().await.map_err(|error| failed(error.into()))?;
        // An upload or a copy that takes long may fail after the status was sent.
        if body.windows(7).take(200).any(|text| text == b"<Error>") {
            let said =
                Refusal::new(parts.status, &parts.headers, &body, RequestKind::Write(Cloud::S3));
            note(Trouble::NoAnswer(said.said()));
            return Err(failed(said.said().into()));
        }
        Ok(Answer { headers: parts.headers, body })
    }
}

fn refused(error: &Error) -> Option<&Refusal> {
    match error {
        Error::Io { source, .. } => refusal(source),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Begun {
    #[serde(rename = "UploadId")]
    id: String,
}

#[derive(Deserialize)]
struct Tagged {
    #[serde(rename = "ETag")]
    tag: String,
}
