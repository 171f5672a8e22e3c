//! URLs of objects.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, Checksum};
use object_store::azure::{AzureConfigKey, MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::client::{HttpClient, HttpConnector};
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore, RetryConfig};
use thalweg_io::model::saved::device_of_service;
use thalweg_io::urls::{scheme, shown};
use thalweg_io::{Error, Result};
use url::{Position, Url};

use crate::checksums;
use crate::cloud::Cloud;
use crate::lister::{Lister, MOST_OF_A_PAGE};
use crate::profile::Profile;
use crate::signing::{Signing, bucket_url, object_url};
use crate::transport::Connector;

/// The service that has an object, and the object's name there.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) service: Arc<dyn ObjectStore>,
    /// The service once more, for uploads in parts; `None` for a plain server.
    pub(crate) uploads: Option<Arc<dyn MultipartStore>>,
    pub(crate) key: Path,
    /// The URL for messages: without a user, a password and a query, which may hold secrets.
    pub(crate) shown: Arc<str>,
    /// What tells the object from all others: the service, and the URL without signatures.
    pub(crate) place: String,
}

/// Settings of S3 by the names of their variables in lower case, in place of those of the
/// environment.
pub(crate) type Settings<'a> = &'a [(&'a str, &'a str)];

/// How an object is asked for.
#[derive(Debug, Default)]
pub(crate) struct Access<'a> {
    pub(crate) settings: Settings<'a>,
    /// Whether it is to be written.
    pub(crate) writes: bool,
    /// What answers requests, in place of a network.
    pub(crate) stand_in: Option<HttpClient>,
}

impl Address {
    /// The address that a URL stands for. Regions, end points and credentials come from the
    /// environment variables of each service's own tools (`AWS_*`, `AZURE_*`, `GOOGLE_*`).
    ///
    /// # Errors
    /// [`Error::Usage`] if it is no URL of an object, or if the environment does not fit.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        Self::parse_with(text, Access::default())
    }

    /// [`Address::parse`] for an access of another kind.
    pub(crate) fn parse_with(text: &str, access: Access<'_>) -> Result<Self> {
        let wrong = |why: &str| {
            Error::Usage(
                format!("{}: {why}; an object is named as in s3://bucket/key", shown(text)).into(),
            )
        };
        let (_, rest) = text.split_once("://").ok_or_else(|| wrong("no URL"))?;
        let scheme = scheme(text).ok_or_else(|| wrong("an unknown kind of URL"))?;
        let shown: Arc<str> = shown(text).into();
        if matches!(scheme, "http" | "https") {
            let url = Url::parse(text).map_err(|e| wrong(&e.to_string()))?;
            let place = unsigned(&url);
            let service = http(&url, &shown, access.stand_in)?;
            return Ok(Self { service, uploads: None, key: Path::default(), shown, place });
        }
        // A key is taken as it is: `#`, `?` and `%` have no meaning in it.
        let (bucket, name) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(wrong("no bucket"));
        }
        if name.is_empty() {
            return Err(wrong("a bucket, and no object in it"));
        }
        if name.ends_with('/') {
            return Err(wrong("a folder of objects, and no object"));
        }
        let connector = Connector { cloud: Cloud::of_url(text), ..Connector::default() };
        let s3 = match scheme {
            "s3" | "s3a" => Some(s3(bucket, &shown, &access)?),
            _ => None,
        };
        let place = format!("{scheme}://{bucket}/{name} of {}", service_of(scheme, s3.as_ref()));
        let key = match (Path::parse(name), &s3) {
            (Ok(key), _) if key.as_ref() == name => key,
            // The key is one that `object_store` does not name.
            (_, Some(s3)) if !name.split('/').any(is_dots) => {
                let service = odd(s3, name, &shown)?;
                return Ok(Self { service, uploads: None, key: Path::default(), shown, place });
            }
            (Ok(_), _) => return Err(wrong("the key begins with /")),
            (Err(e), _) => return Err(wrong(&e.to_string())),
        };
        let (service, uploads) = match (scheme, s3) {
            (_, Some(s3)) => both(connected(&s3).build().map_err(misconfigured(&shown))?),
            ("gs", _) => both(google(bucket, connector, &shown)?),
            ("az" | "azure" | "abfs" | "abfss", _) => {
                both(azure(scheme, bucket, connector, &shown)?)
            }
            _ => return Err(wrong("an unknown kind of URL")),
        };
        Ok(Self { service, uploads: Some(uploads), key, shown, place })
    }
}

/// Where a list is asked for.
pub(crate) struct Place {
    pub(crate) lister: Lister,
    pub(crate) service: Arc<dyn ObjectStore>,
    /// The URL of the bucket, with `/` at the end.
    pub(crate) bucket: String,
    /// What keys begin with.
    pub(crate) prefix: String,
    pub(crate) shown: Arc<str>,
}

impl Place {
    /// The place that a URL stands for, such as `s3://bucket/runs/2024`.
    ///
    /// # Errors
    /// [`Error::Usage`] if it is no URL of a bucket, or if the environment does not fit;
    /// [`Error::Unsupported`] for servers without lists.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        Self::parse_with(text, &Access::default())
    }

    /// [`Place::parse`] for an access of another kind.
    pub(crate) fn parse_with(text: &str, access: &Access<'_>) -> Result<Self> {
        let shown: Arc<str> = shown(text).into();
        let (given, rest) = text.split_once("://").unwrap_or_default();
        let scheme = scheme(text).unwrap_or_default();
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(Error::Usage(
                format!("{shown}: no bucket; a folder is named as in s3://bucket/folder/").into(),
            ));
        }
        let cloud = Cloud::of_url(text);
        let connector = Connector { most: Some(MOST_OF_A_PAGE), cloud, ..Connector::default() };
        let failed = misconfigured(&shown);
        let (lister, service): (_, Arc<dyn ObjectStore>) = match scheme {
            "s3" | "s3a" => {
                let builder = connected(&s3(bucket, &shown, access)?);
                let client = signed(&builder).map_err(&failed)?;
                let lister = Lister::S3 { client, bucket: bucket_url(&builder).map_err(&failed)? };
                (lister, Arc::new(builder.build().map_err(failed)?))
            }
            "gs" => {
                let store = Arc::new(google(bucket, connector, &shown)?);
                (Lister::Other(store.clone()), store)
            }
            "az" | "azure" | "abfs" | "abfss" => {
                let store = Arc::new(azure(scheme, bucket, connector, &shown)?);
                (Lister::Other(store.clone()), store)
            }
            _ => {
                return Err(Error::Unsupported {
                    file: shown.clone(),
                    what: "a folder or pattern at such a URL".into(),
                    advice: "web servers have no lists of files: name each file".into(),
                });
            }
        };
        Ok(Self {
            lister,
            service,
            // As it was given: URLs of a list begin with what was asked for.
            bucket: format!("{given}://{bucket}/"),
            prefix: prefix.to_owned(),
            shown: shown.clone(),
        })
    }
}

/// A client that signs requests as a builder says, for lists.
fn signed(builder: &AmazonS3Builder) -> object_store::Result<HttpClient> {
    let signing = Signing::new(builder)?;
    let (signs, most) = (signing.is_some(), Some(MOST_OF_A_PAGE));
    let connector = Connector { signs, signing, most, ..Connector::default() };
    connector.connect(&ClientOptions::new())
}

/// Where the buckets of a service of S3 are asked for.
pub(crate) struct Account {
    pub(crate) client: HttpClient,
    pub(crate) url: Url,
    pub(crate) service: Arc<dyn ObjectStore>,
    pub(crate) shown: Arc<str>,
}

impl Account {
    /// The account that the environment names, for `s3://`.
    ///
    /// # Errors
    /// [`Error::Usage`] if it is another URL, or if the environment does not fit.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let shown: Arc<str> = shown(text).into();
        let rest = text.split_once("://").map(|(_, rest)| rest);
        if rest != Some("") || !matches!(scheme(text), Some("s3" | "s3a")) {
            let why = "only S3 tells the names of all buckets: s3://";
            return Err(Error::Usage(format!("{shown}: {why}").into()));
        }
        let failed = misconfigured(&shown);
        // The address of any bucket is below that of the service.
        let builder = connected(&s3("any", &shown, &Access::default())?);
        let builder = builder.with_virtual_hosted_style_request(false);
        let client = signed(&builder).map_err(&failed)?;
        let mut url = bucket_url(&builder).map_err(&failed)?;
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop().push("");
        }
        let service = Arc::new(builder.build().map_err(failed)?);
        Ok(Self { client, url, service, shown: shown.clone() })
    }
}

/// Whether a part of a key is one that no URL has.
fn is_dots(part: &str) -> bool {
    matches!(part, "." | "..")
}

/// Where the environment says that a bucket is. Two services may have buckets of one name.
fn service_of(scheme: &str, s3: Option<&AmazonS3Builder>) -> String {
    let values = match scheme {
        "gs" => {
            let builder = GoogleCloudStorageBuilder::from_env();
            [builder.get_config_value(&GoogleConfigKey::BaseUrl), None]
        }
        "az" | "azure" | "abfs" | "abfss" => {
            let builder = MicrosoftAzureBuilder::from_env();
            [AzureConfigKey::Endpoint, AzureConfigKey::AccountName]
                .map(|key| builder.get_config_value(&key))
        }
        _ => [s3.and_then(|s3| s3.get_config_value(&AmazonS3ConfigKey::Endpoint)), None],
    };
    values.map(Option::unwrap_or_default).join(" ")
}

/// A URL without the parameters that sign it for a time: the object is the same without them.
fn unsigned(url: &Url) -> String {
    /// Of presigned URLs of S3, CloudFront and Google, and of shared access signatures of Azure.
    const SIGNING: &str = "awsaccesskeyid expires googleaccessid key-pair-id policy signature se \
                           sig sip ske skoid sks skt sktid skv sp spr st";
    let signs = |parameter: &str| {
        let name = parameter.split('=').next().unwrap_or_default().to_ascii_lowercase();
        let mut known = SIGNING.split(' ');
        name.starts_with("x-amz-") || name.starts_with("x-goog-") || known.any(|one| one == name)
    };
    let query = url.query().unwrap_or_default().split('&').filter(|parameter| !signs(parameter));
    format!("{}?{}", &url[..Position::AfterPath], query.collect::<Vec<_>>().join("&"))
}

/// A name for the service and bucket of a URL, which suits a file: all objects there are read over
/// the same line. For HTTP, the host.
///
/// # Errors
/// As for [`Address::parse`], of the scheme and the host or bucket alone.
pub(crate) fn device(text: &str) -> Result<String> {
    let wrong = || Error::Usage(format!("{}: no URL of an object", shown(text)).into());
    let (_, rest) = text.split_once("://").ok_or_else(wrong)?;
    let scheme = scheme(text).ok_or_else(wrong)?;
    let bucket = rest.split('/').next().unwrap_or_default();
    let (kind, service) = match scheme {
        "http" | "https" => {
            let url = Url::parse(text).map_err(|_| wrong())?;
            let host = &url[Position::BeforeHost..Position::AfterPort];
            return Ok(device_of_service("http", host, ""));
        }
        "s3" | "s3a" => {
            let s3 = s3(bucket, &shown(text), &Access::default())?;
            let value = |key| s3.get_config_value(&key).filter(|value| !value.is_empty());
            let service = value(AmazonS3ConfigKey::S3Endpoint)
                .or_else(|| value(AmazonS3ConfigKey::Endpoint))
                .or_else(|| value(AmazonS3ConfigKey::Region));
            ("s3", service.map(|service| shown(&service)))
        }
        "gs" => ("gs", None),
        "az" | "azure" | "abfs" | "abfss" => {
            let azure = MicrosoftAzureBuilder::from_env();
            ("az", azure.get_config_value(&AzureConfigKey::AccountName))
        }
        _ => return Err(wrong()),
    };
    Ok(device_of_service(kind, &service.unwrap_or_default(), bucket))
}

/// What is tried again, and how often, is decided in [`object`](crate::object).
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// The failure to configure a service.
fn misconfigured(shown: &str) -> impl Fn(object_store::Error) -> Error {
    move |error| Error::Usage(format!("{shown}: {error}").into())
}

/// A service to read from, and to upload to.
type Service = (Arc<dyn ObjectStore>, Arc<dyn MultipartStore>);

fn both(service: impl ObjectStore + MultipartStore) -> Service {
    let service = Arc::new(service);
    (service.clone(), service)
}

/// A builder for a bucket of S3, without a connector.
fn s3(bucket: &str, shown: &str, access: &Access<'_>) -> Result<AmazonS3Builder> {
    let mut builder = AmazonS3Builder::new().with_bucket_name(bucket);
    // As the tools for AWS, and other than `AmazonS3Builder::from_env`, an empty variable is none.
    for (name, value) in std::env::vars_os() {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        if let Ok(key) = name.to_ascii_lowercase().parse()
            && name.starts_with("AWS_")
            && !value.is_empty()
        {
            builder = builder.with_config(key, value);
        }
    }
    for (name, value) in access.settings {
        builder = builder.with_config(name.parse().map_err(misconfigured(shown))?, *value);
    }
    if let Some(profile) = Profile::load(&|name| std::env::var(name).ok())? {
        builder = profile.apply(builder)?;
    }
    for key in [AmazonS3ConfigKey::Endpoint, AmazonS3ConfigKey::S3Endpoint] {
        let is_url = |value: &String| value.starts_with("http://") || value.starts_with("https://");
        if let Some(value) = builder.get_config_value(&key).filter(|value| !is_url(value)) {
            let value = value.escape_debug();
            let why = format!(
                "{shown}: the address of the service (AWS_ENDPOINT_URL) is \"{value}\", and begins \
                 with neither http:// nor https://"
            );
            return Err(Error::Usage(why.into()));
        }
    }
    if access.writes && builder.get_config_value(&AmazonS3ConfigKey::Checksum).is_none() {
        // It is of the bytes that are uploaded. The signature needs the same sum.
        builder = builder.with_checksum_algorithm(Checksum::SHA256);
    }
    // The variable of the tools for AWS. The header goes with every request, and only answers to
    // those that read have checksums.
    let asks = std::env::var("AWS_RESPONSE_CHECKSUM_VALIDATION").as_deref() != Ok("when_required");
    let asks = asks && !access.writes;
    let mode = (HeaderName::from_static(checksums::MODE), HeaderValue::from_static("ENABLED"));
    let headers = asks.then_some(mode).into_iter().collect();
    // Other implementations of S3 are often reached by an address without a certificate.
    let options = ClientOptions::new().with_allow_http(true).with_default_headers(headers);
    Ok(builder.with_client_options(options).with_retry(no_retries()))
}

/// A builder whose requests go over our connections.
fn connected(s3: &AmazonS3Builder) -> AmazonS3Builder {
    // Whether they are signed as S3 wants it.
    let signs = s3.get_config_value(&AmazonS3ConfigKey::SkipSignature).as_deref() != Some("true");
    s3.clone().with_http_connector(Connector { signs, ..Connector::default() })
}

/// The service of one object of S3 whose key `object_store` does not name.
fn odd(s3: &AmazonS3Builder, key: &str, shown: &str) -> Result<Arc<dyn ObjectStore>> {
    let failed = misconfigured(shown);
    let builder = connected(s3);
    let bucket = bucket_url(&builder).map_err(&failed)?;
    let url = object_url(&bucket, key).map_err(|e| Error::Usage(format!("{shown}: {e}").into()))?;
    let signing = Signing::new(&builder).map_err(failed)?;
    let signs = signing.is_some();
    let exact = Some(url.clone());
    at(&url, Connector { exact, signing, signs, ..Connector::default() }, shown)
}

fn google(bucket: &str, connector: Connector, shown: &str) -> Result<GoogleCloudStorage> {
    let builder = GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(bucket)
        .with_retry(no_retries())
        .with_http_connector(connector);
    builder.build().map_err(misconfigured(shown))
}

fn azure(
    scheme: &str,
    container: &str,
    connector: Connector,
    shown: &str,
) -> Result<MicrosoftAzure> {
    let builder = MicrosoftAzureBuilder::from_env()
        .with_url(format!("{scheme}://{container}"))
        .with_retry(no_retries())
        .with_http_connector(connector);
    builder.build().map_err(misconfigured(shown))
}

/// A server on which the URL is asked for as it stands, with its query and its escapes.
fn http(url: &Url, shown: &str, stand_in: Option<HttpClient>) -> Result<Arc<dyn ObjectStore>> {
    let mut exact = url.clone();
    exact.set_fragment(None);
    let exact = Some(exact);
    at(url, Connector { exact, is_link: true, stand_in, ..Connector::default() }, shown)
}

/// The server that a URL names.
fn at(url: &Url, connector: Connector, shown: &str) -> Result<Arc<dyn ObjectStore>> {
    let builder = HttpBuilder::new()
        .with_url(&url[..Position::BeforePath])
        .with_retry(no_retries())
        .with_http_connector(connector);
    Ok(Arc::new(builder.build().map_err(misconfigured(shown))?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use url::Url;

    use super::{Address, device, unsigned};

    #[test]
    fn a_signature_makes_no_other_object() {
        let place = |text: &str| unsigned(&Url::parse(text).unwrap());
        let plain = place("https://h/p?versionId=3");
        assert_eq!(plain, "https://h/p?versionId=3");
        for signed in [
            "https://h/p?X-Amz-Signature=1&versionId=3&X-Amz-Date=2",
            "https://h/p?versionId=3&se=2026&sig=x",
            "https://h/p?Expires=1&Signature=2&versionId=3#part",
        ] {
            assert_eq!(place(signed), plain);
        }
        for other in ["https://h/p?versionId=4", "https://h/p", "https://h:8/p?versionId=3"] {
            assert_ne!(place(other), plain);
        }
    }

    #[test]
    fn objects_of_a_bucket_share_a_device() -> thalweg_io::Result<()> {
        assert_eq!(device("s3://b/a")?, device("s3a://b/d/e")?);
        assert_eq!(device("S3://b/a")?, device("s3://b/d/e")?);
        assert_ne!(device("s3://b/a")?, device("s3://c/a")?);
        assert_eq!(device("http://me:word@h:8/p?q")?, device("http://h:8/other")?);
        assert_ne!(device("http://h:8/p")?, device("http://h:9/p")?);
        assert_ne!(device("gs://a_b/c")?, device("gs://a+b/c")?);
        assert!(device(&format!("gs://{}/c", "é".repeat(500)))?.len() < 200);
        assert!(!device("https://me:word@h/p?secret")?.contains(['/', '?', '@', ':']));
        assert!(device("s3:b").is_err() && device("ftp://b/c").is_err());
        Ok(())
    }

    #[test]
    fn what_names_no_object_is_refused() {
        for (url, why) in [
            ("s3://", "no bucket"),
            ("s3://b", "no object in it"),
            ("s3://b/", "no object in it"),
            ("s3://b/a/", "a folder"),
            ("s3://b/a/../c", ".."),
            ("gs://b/a//c", "empty"),
            ("gs://b//c", "begins with /"),
            ("http://", "host"),
        ] {
            let error = Address::parse(url).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.contains(why), "{url}: {error}");
        }
    }
}
