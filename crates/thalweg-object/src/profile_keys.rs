//! Keys of a profile that a program, a role or single sign-on gives, by the SDK for AWS.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_credential_types::provider::ProvideCredentials;
use aws_smithy_http_client::{Builder, tls};
use aws_types::region::Region;
use object_store::CredentialProvider;
use object_store::aws::{AmazonS3Builder, AwsCredential};
use thalweg_io::Result;
use tokio::sync::Mutex;

/// Keys are fetched again so long before they expire.
const EARLY: Duration = Duration::from_secs(300);

/// Makes a client take its keys from where a profile says. The service for single sign-on is in
/// `region`.
pub(crate) fn elsewhere(
    name: &str,
    region: Option<&str>,
    builder: AmazonS3Builder,
    _: &str,
) -> Result<AmazonS3Builder> {
    let region = region.map(str::to_owned);
    let keys = ProfileKeys { name: name.to_owned(), region, last: Mutex::new(None) };
    Ok(builder.with_credentials(Arc::new(keys)))
}

/// The keys of a profile, and when they expire.
type Last = Option<(Arc<AwsCredential>, Option<SystemTime>)>;

#[derive(Debug)]
struct ProfileKeys {
    name: String,
    region: Option<String>,
    last: Mutex<Last>,
}

impl ProfileKeys {
    /// Asks the program, the role or the service.
    async fn fetch(&self) -> object_store::Result<(Arc<AwsCredential>, Option<SystemTime>)> {
        let provider = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
        let config = ProviderConfig::default()
            .with_http_client(Builder::new().tls_provider(provider).build_https())
            .with_region(self.region.clone().map(Region::new));
        let provider = ProfileFileCredentialsProvider::builder()
            .configure(&config)
            .profile_name(&self.name)
            .build();
        let keys = provider.provide_credentials().await.map_err(|error| {
            let name = &self.name;
            let error = aws_smithy_types::error::display::DisplayErrorContext(error);
            let why = format!("the profile {name} gives no keys: {error}; try aws sso login");
            object_store::Error::Generic { store: "S3", source: why.into() }
        })?;
        let credential = AwsCredential {
            key_id: keys.access_key_id().to_owned(),
            secret_key: keys.secret_access_key().to_owned(),
            token: keys.session_token().map(str::to_owned),
        };
        Ok((Arc::new(credential), keys.expiry()))
    }
}

#[async_trait]
impl CredentialProvider for ProfileKeys {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let mut last = self.last.lock().await;
        if let Some((keys, expiry)) = &*last
            && expiry.is_none_or(|expiry| expiry > SystemTime::now() + EARLY)
        {
            return Ok(keys.clone());
        }
        let (keys, expiry) = self.fetch().await?;
        *last = Some((keys.clone(), expiry));
        Ok(keys)
    }
}
