//! Signatures for requests to S3 that the `object_store` crate does not make: lists whose keys are
//! encoded, and requests for keys that it does not name, such as `a//b` or one with a line feed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use http::Method;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsAuthorizer, AwsCredentialProvider};
use object_store::client::HttpRequest;
use object_store::path::Path;
use object_store::signer::Signer;
use url::Url;

/// What signs requests.
pub(crate) struct Signing {
    credentials: AwsCredentialProvider,
    region: String,
    pays: bool,
}

impl fmt::Debug for Signing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signing").field("region", &self.region).finish_non_exhaustive()
    }
}

impl Signing {
    /// What signs as a builder says; `None` for requests without a signature.
    pub(crate) fn new(builder: &AmazonS3Builder) -> object_store::Result<Option<Arc<Self>>> {
        let value = |key| builder.get_config_value(&key);
        let is_on = |key| value(key).is_some_and(|value| value == "true");
        if is_on(AmazonS3ConfigKey::SkipSignature) {
            return Ok(None);
        }
        Ok(Some(Arc::new(Self {
            credentials: builder.clone().build()?.credentials().clone(),
            region: value(AmazonS3ConfigKey::Region).unwrap_or_else(|| "us-east-1".into()),
            pays: is_on(AmazonS3ConfigKey::RequestPayer),
        })))
    }

    /// Adds the headers of a signature.
    pub(crate) async fn sign(&self, request: &mut HttpRequest) -> object_store::Result<()> {
        let credential = self.credentials.get_credential().await?;
        AwsAuthorizer::new(&credential, "s3", &self.region)
            .with_request_payer(self.pays)
            .try_authorize(request, None)
    }
}

/// The URL of the bucket of a builder, without `/` at the end.
pub(crate) fn bucket_url(builder: &AmazonS3Builder) -> object_store::Result<Url> {
    // A signed URL shows what the crate makes of end points and regions. Its credentials are made
    // up, so that nobody has to be asked for them.
    let made_up =
        builder.clone().with_access_key_id("any").with_secret_access_key("any").build()?;
    let second = Duration::from_secs(1);
    let signed = made_up.signed_url(Method::GET, &Path::from("any"), second).now_or_never();
    let no_url =
        || object_store::Error::Generic { store: "S3", source: "the bucket has no URL".into() };
    let mut url = signed.ok_or_else(no_url)??;
    url.set_query(None);
    url.path_segments_mut().map_err(|()| no_url())?.pop();
    Ok(url)
}

/// The URL of an object. Every byte is escaped that signatures want to be escaped.
pub(crate) fn object_url(bucket: &Url, key: &str) -> Result<Url, url::ParseError> {
    Url::parse(&format!("{}/{}", bucket.as_str().trim_end_matches('/'), escaped(key)))
}

/// A key as it is in a URL.
pub(crate) fn escaped(key: &str) -> String {
    let mut text = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                text.push(byte.into());
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use object_store::aws::AmazonS3Builder;

    use super::{bucket_url, object_url};
    use crate::transport::Connector;

    #[test]
    fn keys_are_encoded() -> Result<(), Box<dyn std::error::Error>> {
        let bucket = "http://h:1/bucket".parse()?;
        let url = object_url(&bucket, "a b/é+\n%?#&//~'")?;
        assert_eq!(url.as_str(), "http://h:1/bucket/a%20b/%C3%A9%2B%0A%25%3F%23%26//~%27");
        Ok(())
    }

    #[test]
    fn the_address_of_a_bucket_is_that_of_its_objects() -> Result<(), object_store::Error> {
        let plain = AmazonS3Builder::new()
            .with_http_connector(Connector::default())
            .with_bucket_name("b")
            .with_region("eu-north-1");
        let at = |builder: &AmazonS3Builder| bucket_url(builder).map(String::from);
        assert_eq!(at(&plain)?, "https://s3.eu-north-1.amazonaws.com/b");
        let hosted = plain.clone().with_virtual_hosted_style_request(true);
        assert_eq!(at(&hosted)?, "https://b.s3.eu-north-1.amazonaws.com/");
        let own = plain.with_endpoint("http://127.0.0.1:7").with_allow_http(true);
        assert_eq!(at(&own)?, "http://127.0.0.1:7/b");
        Ok(())
    }
}
