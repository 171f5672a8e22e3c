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

/// Whether two URLs name the same object, as far as they show it: some services have several
/// schemes.
pub fn is_same_object(one: &str, other: &str) -> bool {
    parts(one).is_some_and(|one| parts(other) == Some(one))
}

/// The service of a URL, by one of its schemes, and what follows the scheme.
fn parts(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let service = match scheme {
        "s3a" => "s3",
        "azure" | "abfs" | "abfss" => "az",
        scheme => scheme,
    };
    Some((service, rest))
}

/// Whether a URL is of a bucket, whose objects can be listed. Names in it are taken as they are.
pub fn is_in_bucket(url: &str) -> bool {
    !["http:", "https:", "file:"].iter().any(|scheme| url.starts_with(scheme))
}

/// An object of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its URL.
    pub url: String,
    /// Its size in bytes.
    pub size: u64,
    /// What tells its version from others, such as its tag.
    pub version: Option<String>,
}

/// What is in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// An object.
    Object(Listed),
    /// The URL of a folder, with `/` at the end: there are objects whose URLs begin with it.
    Folder(String),
}

/// How far down a list goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// To the next `/`: the objects before it, and the folders that end there.
    One,
    /// To every object.
    All,
}

/// A URL without what may be secret: without a user, a password and a query.
pub fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    if !matches!(scheme, "http" | "https") {
        return url.to_owned();
    }
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// A path for messages: a URL as [`shown`] shows it.
pub fn shown_path(path: &Path) -> String {
    url(path).map_or_else(|| path.to_string_lossy().into_owned(), shown)
}

/// The URL of a file in the folder at a URL. What follows a `?` of an HTTP URL is of the request,
/// and stays at the end.
pub fn in_folder(folder: &str, file: &str) -> String {
    let is_http = folder.starts_with("http");
    let end = if is_http { folder.find(['?', '#']) } else { None };
    let (path, request) = folder.split_at(end.unwrap_or(folder.len()));
    format!("{}/{file}{request}", path.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{in_folder, is_same_object, shown, shown_path, url};

    #[test]
    fn messages_have_no_secrets() {
        assert_eq!(shown("https://me:word@h:8/p/q?X-Amz-Signature=1#f"), "https://h:8/p/q");
        assert_eq!(shown("s3://b/a?b#c"), "s3://b/a?b#c");
        assert_eq!(shown("http://h"), "http://h");
        assert_eq!(shown_path(Path::new("/a?b")), "/a?b");
        assert_eq!(shown_path(Path::new("http://h/a?b")), "http://h/a");
    }

    #[test]
    fn files_are_in_the_folder_at_a_url() {
        assert_eq!(in_folder("s3://b/net", "f"), "s3://b/net/f");
        assert_eq!(in_folder("s3://b/a?b/", "f"), "s3://b/a?b/f");
        assert_eq!(in_folder("s3://b", "f"), "s3://b/f");
        assert_eq!(in_folder("https://h/net/?key=a/b", "f"), "https://h/net/f?key=a/b");
    }

    #[test]
    fn schemes_of_one_service_name_one_object() {
        assert!(is_same_object("s3://b/k", "s3a://b/k"));
        assert!(is_same_object("az://c/k", "abfss://c/k"));
        assert!(!is_same_object("s3://b/k", "gs://b/k"));
        assert!(!is_same_object("s3://b/k", "s3://b/k2"));
        assert!(!is_same_object("b/k", "b/k"), "paths are compared elsewhere");
    }

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
