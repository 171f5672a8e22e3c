//! Tells URLs from paths.

use std::path::Path;

/// The schemes of URLs that are opened.
const SCHEMES: [&str; 10] =
    ["s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https", "file"];

/// The URL that a path is, if it is one, such as `s3://bucket/key`.
pub fn url(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    let (scheme, _) = text.split_once("://")?;
    SCHEMES.contains(&scheme).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::url;

    #[test]
    fn urls_are_told_from_paths() {
        for text in ["s3://b/k", "https://h/p", "gs://b/k", "az://c/k", "file:///p"] {
            assert_eq!(url(Path::new(text)), Some(text));
        }
        for text in ["s3:/b/k", "a://b", "/p", "x/s3://b", "", "s3"] {
            assert_eq!(url(Path::new(text)), None, "{text}");
        }
    }
}
