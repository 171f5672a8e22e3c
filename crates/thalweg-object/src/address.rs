//! URLs of objects.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::HttpClient;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore, RetryConfig};
use thalweg_io::{Error, Result};
use url::{Position, Url};

use crate::checksums;
use crate::profile::Profile;
use crate::transport::Connector;

/// The service that has an object, and the object's name there.
pub(crate) struct Address {
    pub(crate) service: Arc<dyn ObjectStore>,
    pub(crate) key: Path,
    /// The URL for messages: without a user, a password and a query, which may hold secrets.
    pub(crate) shown: Arc<str>,
}

impl Address {
    /// The address that a URL stands for. Regions, end points and credentials come from the
    /// environment variables of each service's own tools (`AWS_*`, `AZURE_*`, `GOOGLE_*`).
    ///
    /// # Errors
    /// [`Error::Usage`] if it is no URL of an object, or if the environment does not fit.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        Self::parse_with(text, None)
    }

    /// The address, whose requests something else answers in place of a network.
    pub(crate) fn parse_with(text: &str, stand_in: Option<HttpClient>) -> Result<Self> {
        let wrong = |why: &str| {
            Error::Usage(
                format!("{}: {why}; an object is named as in s3://bucket/key", shown(text)).into(),
            )
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("no URL"))?;
        let shown: Arc<str> = shown(text).into();
        if matches!(scheme, "http" | "https") {
            let url = Url::parse(text).map_err(|e| wrong(&e.to_string()))?;
            return Ok(Self {
                service: http(&url, &shown, stand_in)?,
                key: Path::default(),
                shown,
            });
        }
        // A key is taken as it is: `#`, `?` and `%` have no meaning in it.
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(wrong("no bucket"));
        }
        let key = Path::parse(key).map_err(|e| wrong(&e.to_string()))?;
        if key.as_ref().is_empty() {
            return Err(wrong("a bucket, and no object in it"));
        }
        let service = match scheme {
            "s3" | "s3a" => s3(bucket, &shown)?,
            "gs" => google(bucket, &shown)?,
            "az" | "azure" | "abfs" | "abfss" => azure(scheme, bucket, &shown)?,
            _ => return Err(wrong("an unknown kind of URL")),
        };
        Ok(Self { service, key, shown })
    }
}

/// A URL without what may be secret.
fn shown(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    if !matches!(scheme, "http" | "https") {
        return text.to_owned();
    }
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// What is tried again, and how often, is decided in [`object`](crate::object).
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// The failure to configure a service.
fn misconfigured(shown: &str) -> impl Fn(object_store::Error) -> Error {
    move |error| Error::Usage(format!("{shown}: {error}").into())
}

fn s3(bucket: &str, shown: &str) -> Result<Arc<dyn ObjectStore>> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    if let Some(profile) = Profile::load(&|name| std::env::var(name).ok())? {
        builder = profile.apply(builder)?;
    }
    let signs =
        builder.get_config_value(&AmazonS3ConfigKey::SkipSignature).as_deref() != Some("true");
    // The variable of the tools for AWS.
    let asks = std::env::var("AWS_RESPONSE_CHECKSUM_VALIDATION").as_deref() != Ok("when_required");
    let mode = (HeaderName::from_static(checksums::MODE), HeaderValue::from_static("ENABLED"));
    let headers = asks.then_some(mode).into_iter().collect();
    // Other implementations of S3 are often reached by an address without a certificate.
    let options = ClientOptions::new().with_allow_http(true).with_default_headers(headers);
    let built = builder
        .with_client_options(options)
        .with_retry(no_retries())
        .with_http_connector(Connector { signs, ..Connector::default() })
        .build();
    Ok(Arc::new(built.map_err(misconfigured(shown))?))
}

fn google(bucket: &str, shown: &str) -> Result<Arc<dyn ObjectStore>> {
    let builder = GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(bucket)
        .with_retry(no_retries())
        .with_http_connector(Connector::default());
    Ok(Arc::new(builder.build().map_err(misconfigured(shown))?))
}

fn azure(scheme: &str, container: &str, shown: &str) -> Result<Arc<dyn ObjectStore>> {
    let builder = MicrosoftAzureBuilder::from_env()
        .with_url(format!("{scheme}://{container}"))
        .with_retry(no_retries())
        .with_http_connector(Connector::default());
    Ok(Arc::new(builder.build().map_err(misconfigured(shown))?))
}

/// A server on which the URL is asked for as it stands, with its query and its escapes.
fn http(url: &Url, shown: &str, stand_in: Option<HttpClient>) -> Result<Arc<dyn ObjectStore>> {
    let mut exact = url.clone();
    exact.set_fragment(None);
    let builder = HttpBuilder::new()
        .with_url(&url[..Position::BeforePath])
        .with_retry(no_retries())
        .with_http_connector(Connector { exact: Some(exact), stand_in, signs: false });
    Ok(Arc::new(builder.build().map_err(misconfigured(shown))?))
}

#[cfg(test)]
mod tests {
    use super::{Address, shown};

    #[test]
    fn messages_have_no_secrets() {
        assert_eq!(shown("https://me:word@h:8/p/q?X-Amz-Signature=1#f"), "https://h:8/p/q");
        assert_eq!(shown("s3://b/a?b#c"), "s3://b/a?b#c");
        assert_eq!(shown("http://h"), "http://h");
    }

    #[test]
    fn what_names_no_object_is_refused() {
        for (url, why) in [
            ("s3://", "no bucket"),
            ("s3://b", "no object in it"),
            ("s3://b/", "no object in it"),
            ("s3://b/a//c", "empty"),
            ("s3://b/a/../c", ".."),
            ("http://", "host"),
        ] {
            let error = Address::parse(url).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.contains(why), "{url}: {error}");
        }
    }
}
