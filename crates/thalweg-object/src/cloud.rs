//! The services whose protocols are spoken, and the variables that their users set.

/// A protocol of object stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Cloud {
    /// Amazon's, which many others speak, too.
    #[default]
    S3,
    Google,
    Azure,
}

impl Cloud {
    /// The protocol of a URL of a bucket; S3 for any other URL.
    pub(crate) fn of_url(url: &str) -> Self {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            Some("gs") => Self::Google,
            Some("az" | "azure" | "abfs" | "abfss") => Self::Azure,
            _ => Self::S3,
        }
    }

    /// What gives credentials.
    pub(crate) fn keys(self) -> &'static str {
        match self {
            Self::S3 => "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
            Self::Google => {
                "set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT to the path of a key"
            }
            Self::Azure => {
                "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or \
                 AZURE_STORAGE_SAS_TOKEN"
            }
        }
    }

    /// The setting with which nothing is signed.
    pub(crate) fn unsigned(self) -> &'static str {
        match self {
            Self::S3 => "AWS_SKIP_SIGNATURE=true",
            Self::Google => "GOOGLE_SKIP_SIGNATURE=true",
            Self::Azure => "AZURE_SKIP_SIGNATURE=true",
        }
    }

    /// The variable that names another address of the service.
    pub(crate) fn address(self) -> &'static str {
        match self {
            Self::S3 => "AWS_ENDPOINT_URL",
            Self::Google => "GOOGLE_BASE_URL",
            Self::Azure => "AZURE_STORAGE_ENDPOINT",
        }
    }
}
