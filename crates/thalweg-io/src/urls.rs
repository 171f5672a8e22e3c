//! Tells URLs from paths.

use std::borrow::Cow;
use std::path::Path;

use crate::error::Error;

/// The schemes of URLs that are opened.
const SCHEMES: [&str; 10] =
    ["s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https", "file"];

/// The URL that a path is, if it is one, such as `s3://bucket/key`. Its scheme may have letters of
/// either case (RFC 3986, section 3.1): [`scheme`] gives it in lower case.
pub fn url(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    scheme(text).map(|_| text)
}

/// The scheme of a URL in lower case; `None` if URLs of its kind are not opened.
pub fn scheme(url: &str) -> Option<&'static str> {
    let (scheme, _) = url.split_once("://")?;
    SCHEMES.into_iter().find(|known| known.eq_ignore_ascii_case(scheme))
}

/// Whether a URL is one of a web server: `http` or `https`.
pub fn is_web(url: &str) -> bool {
    matches!(scheme(url), Some("http" | "https"))
}

/// Whether a URL is one of a file of this machine.
pub fn is_file(url: &str) -> bool {
    scheme(url) == Some("file")
}

/// A URL with its scheme in lower case: the same text for the same object.
pub fn canonical(url: &str) -> Cow<'_, str> {
    match (scheme(url), url.split_once("://")) {
        (Some(known), Some((given, rest))) if known != given => format!("{known}://{rest}").into(),
        _ => url.into(),
    }
}

/// The error for a path that looks like a URL of a kind that is not opened, such as
/// `ftp://host/name`. `None` for other paths, and where there is a folder of the name `ftp:`, in
/// which such a path is a file.
pub fn unknown_scheme(path: &Path) -> Option<Error> {
    let text = path.to_str().filter(|text| scheme(text).is_none())?;
    let (unknown, _) = text.split_once("://")?;
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if !unknown.starts_with(|c: char| c.is_ascii_alphabetic())
        || !unknown.chars().all(is_scheme)
        || Path::new(&format!("{unknown}:")).exists()
    {
        return None;
    }
    let shown = hidden(text);
    let known = SCHEMES.join("://, ");
    let why = format!("{shown}: URLs of the scheme {unknown} are not opened; known are {known}://");
    Some(Error::Usage(why.into()))
}

/// Whether two URLs name the same object, as far as they show it: some services have several
/// schemes.
pub fn is_same_object(one: &str, other: &str) -> bool {
    parts(one).is_some_and(|one| parts(other) == Some(one))
}

/// The service of a URL, by one of its schemes, and what follows the scheme.
fn parts(url: &str) -> Option<(&str, &str)> {
    let (_, rest) = url.split_once("://")?;
    let service = match scheme(url)? {
        "s3a" => "s3",
        "azure" | "abfs" | "abfss" => "az",
        scheme => scheme,
    };
    Some((service, rest))
}

/// Whether a URL is of a bucket, whose objects can be listed. Names in it are taken as they are.
pub fn is_in_bucket(url: &str) -> bool {
    !is_web(url) && !is_file(url)
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
    /// When the version was made, in seconds since 1970, if the server says it.
    pub modified: Option<i64>,
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
    match url.split_once("://") {
        Some(_) if is_web(url) => hidden(url),
        // A key is taken as it is. A bucket has no `@`.
        Some((given, rest)) => {
            let scheme = scheme(url).unwrap_or(given);
            let (bucket, key) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let bucket = bucket.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{bucket}{key}")
        }
        None => url.to_owned(),
    }
}

/// [`shown`] for a URL of any kind.
fn hidden(url: &str) -> String {
    let Some((given, rest)) = url.split_once("://") else { return url.to_owned() };
    let scheme = scheme(url).unwrap_or(given);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let end = rest.find('/').unwrap_or(rest.len());
    // A port has digits only: what else follows a colon is a password, and may hold a slash.
    let port = rest[..end].rsplit('@').next().and_then(|host| host.rsplit_once(':'));
    let is_broken = port.is_some_and(|(_, port)| !port.bytes().all(|c| c.is_ascii_digit()))
        && !rest[..end].ends_with(']');
    let user = if is_broken { rest.rfind('@') } else { rest[..end].rfind('@') };
    format!("{scheme}://{}", &rest[user.map_or(0, |at| at + 1)..])
}

/// A path for messages: a URL as [`shown`] shows it.
pub fn shown_path(path: &Path) -> String {
    url(path).map_or_else(|| path.to_string_lossy().into_owned(), shown)
}

/// The URL of a file in the folder at a URL. What follows a `?` of an HTTP URL is of the request,
/// and stays at the end.
pub fn in_folder(folder: &str, file: &str) -> String {
    let end = if is_web(folder) { folder.find(['?', '#']) } else { None };
    let (path, request) = folder.split_at(end.unwrap_or(folder.len()));
    format!("{}/{file}{request}", path.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{
        canonical, in_folder, is_in_bucket, is_same_object, is_web, shown, shown_path,
        unknown_scheme, url,
    };

    #[test]
    fn messages_have_no_secrets() {
        assert_eq!(shown("https://me:word@h:8/p/q?X-Amz-Signature=1#f"), "https://h:8/p/q");
        assert_eq!(shown("s3://b/a?b#c"), "s3://b/a?b#c");
        assert_eq!(shown("s3://key:word@b/a@c"), "s3://b/a@c");
        assert_eq!(shown("http://h"), "http://h");
        assert_eq!(shown("http://me:wo/rd@h/p@q"), "http://q");
        assert_eq!(shown("http://[::1]/p@q"), "http://[::1]/p@q");
        assert_eq!(shown("http://me:word@[::1]:8/p@q"), "http://[::1]:8/p@q");
        assert_eq!(shown_path(Path::new("/a?b")), "/a?b");
        assert_eq!(shown_path(Path::new("http://h/a?b")), "http://h/a");
    }

    #[test]
    fn a_url_of_another_kind_is_explained() {
        let why = |text: &str| unknown_scheme(Path::new(text)).map(|error| error.to_string());
        let told = why("ftp://me:word@h/p").unwrap_or_default();
        assert!(told.starts_with("ftp://h/p: URLs of the scheme ftp are not opened"), "{told}");
        assert!(why("s4://b/k").is_some_and(|told| told.contains("s3://, s3a://")));
        for text in ["/p", "p", "://p", "a b://p", "x/s3://b", "S3://b/k"] {
            assert_eq!(why(text), None, "{text}");
        }
    }

    #[test]
    fn a_scheme_may_have_capital_letters() {
        assert_eq!(url(Path::new("S3://b/K")), Some("S3://b/K"));
        assert_eq!(canonical("S3://b/K"), "s3://b/K");
        assert_eq!(canonical("HTTPS://h/P?q"), "https://h/P?q");
        assert_eq!(canonical("s4://b"), "s4://b");
        assert!(is_same_object("S3A://b/k", "s3://b/k") && !is_same_object("S3://b/k", "s3://b/K"));
        assert!(is_web("HTTP://h/p") && !is_web("httpx://h/p") && is_in_bucket("GS://b/k"));
        assert_eq!(shown("HTTP://me:word@h/p?q"), "http://h/p");
        assert_eq!(shown("S3://key:word@b/A"), "s3://b/A");
        assert_eq!(in_folder("HTTPS://h/net/?key=a/b", "f"), "HTTPS://h/net/f?key=a/b");
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
