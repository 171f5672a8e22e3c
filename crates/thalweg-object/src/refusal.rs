//! What servers say when they refuse a request.

use std::io;
use std::time::Duration;

use http::StatusCode;
use http::header::{HeaderMap, RETRY_AFTER};

use crate::cloud::Cloud;

/// The most characters of a server's message that are passed on.
const MOST_CHARS: usize = 200;
/// The longest time that a server may ask us to wait.
const MOST_WAIT: Duration = Duration::from_secs(60);

/// A refused request.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    status: StatusCode,
    /// The service's name for the reason, such as `NoSuchKey`.
    code: String,
    message: String,
    /// Where the bucket is.
    region: Option<String>,
    /// How long the server asks us to wait.
    pub(crate) wait: Option<Duration>,
    request: RequestKind,
}

/// The start of a message in plain text or JSON; `None` for a page.
fn plain(body: &str) -> Option<String> {
    let is_page = body.trim_start().starts_with('<');
    (!is_page).then(|| body.trim().chars().take(MOST_CHARS).collect())
}

/// What a refused request was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// To read an object of a bucket.
    Read(Cloud),
    /// To write one.
    Write(Cloud),
    /// To read what an HTTP URL leads to, which may be signed for a time.
    Link,
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// Takes the reason from the answer: from the XML of S3, Google and Azure, or from headers.
    pub(crate) fn new(
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        request: RequestKind,
    ) -> Self {
        let body = String::from_utf8_lossy(body);
        let header = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
        let tag = |name: &str| {
            let (_, rest) = body.split_once(&format!("<{name}>"))?;
            let (text, _) = rest.split_once('<')?;
            Some(text.chars().take(MOST_CHARS).collect::<String>())
        };
        let wait = header(RETRY_AFTER.as_str()).and_then(|text| text.trim().parse().ok());
        Self {
            status,
            code: tag("Code").or_else(|| header("x-ms-error-code")).unwrap_or_default(),
            message: tag("Message").or_else(|| plain(&body)).unwrap_or_default(),
            region: header("x-amz-bucket-region").or_else(|| tag("Region")),
            wait: wait.map(|seconds| Duration::from_secs(seconds).min(MOST_WAIT)),
            request,
        }
    }

    /// Whether the request may succeed later.
    pub(crate) fn is_passing(&self) -> bool {
        self.status.is_server_error() && self.status != StatusCode::NOT_IMPLEMENTED
            || matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
            || self.code == "RequestTimeout"
            // Another program wrote the object at this very moment.
            || matches!(&*self.code, "ConditionalRequestConflict" | "OperationAborted")
    }

    /// Whether there is no object. Services say that access is denied where they would not say
    /// whether there is one.
    pub(crate) fn is_absence(&self) -> bool {
        self.is_missing() || self.is_silence()
    }

    /// Whether the service says that there is no object.
    pub(crate) fn is_missing(&self) -> bool {
        self.status == StatusCode::NOT_FOUND && !self.is_of_bucket()
    }

    /// Whether the service does not say if there is an object.
    pub(crate) fn is_silence(&self) -> bool {
        self.status == StatusCode::FORBIDDEN && matches!(&*self.code, "AccessDenied" | "")
    }

    /// Whether a write was refused because there is an object.
    pub(crate) fn is_presence(&self) -> bool {
        self.status == StatusCode::PRECONDITION_FAILED || self.code == "BlobAlreadyExists"
    }

    /// Whether the upload is not there any more.
    pub(crate) fn is_of_upload(&self) -> bool {
        self.code == "NoSuchUpload"
    }

    /// Whether the service does not know what is asked for.
    pub(crate) fn is_unknown(&self) -> bool {
        self.status == StatusCode::NOT_IMPLEMENTED
    }

    /// Whether there is no bucket.
    pub(crate) fn is_of_bucket(&self) -> bool {
        matches!(&*self.code, "NoSuchBucket" | "ContainerNotFound" | "InvalidBucketName")
    }

    /// Whether the server has too many requests.
    pub(crate) fn is_overload(&self) -> bool {
        matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
    }

    /// Whether the range is not in the object.
    pub(crate) fn is_outside(&self) -> bool {
        self.status == StatusCode::RANGE_NOT_SATISFIABLE
    }

    /// Whether the object is not the one that was opened.
    pub(crate) fn is_other_version(&self) -> bool {
        self.status == StatusCode::PRECONDITION_FAILED || self.is_outside()
    }

    /// As an error, with what to do about it.
    pub(crate) fn as_error(&self) -> io::Error {
        let kind = match self.status {
            // A bucket that is not there is not taken for an object that is not there.
            StatusCode::NOT_FOUND if !self.is_of_bucket() => io::ErrorKind::NotFound,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => io::ErrorKind::PermissionDenied,
            status if status.is_server_error() => io::ErrorKind::ConnectionAborted,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, self.clone())
    }

    /// What the server said, without advice.
    pub(crate) fn said(&self) -> String {
        let mut said = self.status.as_u16().to_string();
        if !self.code.is_empty() {
            said += &format!(" {}", self.code);
        }
        if !self.message.is_empty() {
            said += &format!(" ({})", self.message);
        }
        said
    }

    fn cloud(&self) -> Cloud {
        match self.request {
            RequestKind::Read(cloud) | RequestKind::Write(cloud) => cloud,
            RequestKind::Link => Cloud::default(),
        }
    }

    fn advice(&self) -> String {
        match (self.code.as_str(), self.status) {
            _ if self.is_of_bucket() => format!(
                "there is no such bucket at this service: check the bucket's name, and {} if it is \
                 set",
                self.cloud().address()
            ),
            ("RequestTimeTooSkewed", _) => {
                "this machine's clock is wrong: set it, and try again".into()
            }
            ("ExpiredToken" | "ExpiredTokenException", _) => {
                "the credentials have expired: get new ones".into()
            }
            (_, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
                if self.request == RequestKind::Link =>
            {
                "the URL alone does not permit to read it; a signed URL is valid for a time: get a \
                 new one"
                    .into()
            }
            ("InvalidAccessKeyId" | "InvalidClientTokenId" | "XAdminUserNotFound", _) => {
                "the service does not know this access key: check AWS_ACCESS_KEY_ID".into()
            }
            ("SignatureDoesNotMatch", _) => {
                "the secret key does not belong to the access key: check AWS_SECRET_ACCESS_KEY"
                    .into()
            }
            ("AuthorizationHeaderMalformed" | "PermanentRedirect", _)
            | (_, StatusCode::MOVED_PERMANENTLY) => match &self.region {
                Some(region) => format!("the bucket is in {region}: set AWS_REGION={region}"),
                None => "the bucket is in another region, or at another end point: set \
                             AWS_REGION or AWS_ENDPOINT_URL"
                    .into(),
            },
            ("NoSuchUpload", _) => {
                "something else has ended the upload, such as a rule for old ones".into()
            }
            (_, StatusCode::NOT_FOUND) if matches!(self.request, RequestKind::Read(_)) => {
                "there is no such object (the name of a folder ends with /)".into()
            }
            (_, StatusCode::NOT_FOUND) => "there is no such object".into(),
            (_, StatusCode::UNAUTHORIZED) => {
                format!("the service wants credentials: {}", self.cloud().keys())
            }
            (_, StatusCode::FORBIDDEN) if matches!(self.request, RequestKind::Write(_)) => {
                "these credentials may not write it".into()
            }
            (_, StatusCode::FORBIDDEN) => {
                let pays = match self.cloud() {
                    Cloud::S3 => ", and for data whose reader pays, AWS_REQUEST_PAYER=true",
                    Cloud::Google | Cloud::Azure => "",
                };
                let unsigned = self.cloud().unsigned();
                format!("these credentials may not read it; for public data, set {unsigned}{pays}")
            }
            (_, StatusCode::RANGE_NOT_SATISFIABLE) => "the object is shorter".into(),
            (_, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => {
                "the service is overloaded".into()
            }
            (_, status) if status.is_server_error() => "the service has a fault".into(),
            _ => String::new(),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the server answered {}", self.said())?;
        let advice = self.advice();
        if advice.is_empty() { Ok(()) } else { write!(f, ": {advice}") }
    }
}

#[cfg(test)]
mod tests {
    use http::header::HeaderMap;
    use http::{HeaderValue, StatusCode};

    use super::{Refusal, RequestKind};
    use crate::cloud::Cloud;

    fn refusal(status: u16, body: &str) -> Refusal {
        let status = StatusCode::from_u16(status).unwrap_or_default();
        Refusal::new(status, &HeaderMap::new(), body.as_bytes(), RequestKind::Read(Cloud::S3))
    }

    #[test]
    fn each_reason_has_its_own_words() {
        let xml = |code: &str| format!("<?xml?><Error><Code>{code}</Code><Message>m</Message>");
        for (status, code, words) in [
            (404, "NoSuchKey", "there is no such object"),
            (404, "NoSuchBucket", "there is no such bucket"),
            (403, "AccessDenied", "AWS_SKIP_SIGNATURE"),
            (403, "RequestTimeTooSkewed", "clock"),
            (403, "InvalidAccessKeyId", "AWS_ACCESS_KEY_ID"),
            (403, "SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"),
            (400, "ExpiredToken", "expired"),
            (401, "Unauthorized", "wants credentials"),
            (301, "PermanentRedirect", "another region"),
            (429, "TooMany", "overloaded"),
            (503, "SlowDown", "overloaded"),
            (500, "InternalError", "has a fault"),
        ] {
            let shown = refusal(status, &xml(code)).to_string();
            assert!(shown.contains(&format!("{status} {code} (m): ")), "{shown}");
            assert!(shown.contains(words), "{shown}");
        }
        let mut headers = HeaderMap::new();
        headers.insert("x-amz-bucket-region", HeaderValue::from_static("eu-north-1"));
        let moved = Refusal::new(
            StatusCode::MOVED_PERMANENTLY,
            &headers,
            b"",
            RequestKind::Read(Cloud::S3),
        );
        assert!(moved.to_string().contains("AWS_REGION=eu-north-1"), "{moved}");
        for (request, words) in [
            (RequestKind::Write(Cloud::S3), "may not write it"),
            (RequestKind::Link, "get a new one"),
        ] {
            let denied = Refusal::new(StatusCode::FORBIDDEN, &HeaderMap::new(), b"", request);
            assert!(denied.to_string().contains(words), "{denied}");
            assert!(!denied.to_string().contains("AWS_"), "{denied}");
        }
    }

    #[test]
    fn advice_names_the_variables_of_the_service() {
        for (cloud, name) in
            [(Cloud::S3, "AWS_"), (Cloud::Google, "GOOGLE_"), (Cloud::Azure, "AZURE_")]
        {
            for (status, body) in [(401, ""), (403, ""), (404, "<Code>NoSuchBucket</Code>")] {
                let status = StatusCode::from_u16(status).unwrap_or_default();
                let headers = HeaderMap::new();
                let read = RequestKind::Read(cloud);
                let shown = Refusal::new(status, &headers, body.as_bytes(), read).to_string();
                assert!(shown.contains(name), "{shown}");
                let others = ["AWS_", "GOOGLE_", "AZURE_"].into_iter().filter(|one| *one != name);
                assert!(!others.into_iter().any(|one| shown.contains(one)), "{shown}");
            }
        }
    }

    #[test]
    fn only_what_may_pass_is_passing() {
        for status in [408, 429, 500, 502, 503, 504] {
            assert!(refusal(status, "").is_passing(), "{status}");
        }
        for status in [400, 401, 403, 404, 412, 416, 501] {
            assert!(!refusal(status, "").is_passing(), "{status}");
        }
    }

    #[test]
    fn a_server_cannot_make_us_wait_for_long() {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", HeaderValue::from_static("99999999"));
        let slow = Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            &headers,
            b"",
            RequestKind::Read(Cloud::S3),
        );
        assert_eq!(slow.wait.map(|wait| wait.as_secs()), Some(60));
        let words = "x".repeat(100_000);
        let long = refusal(500, &format!("<Message>{words}</Message>"));
        assert!(long.to_string().len() < 400);
    }
}
