//! Parts of lists of objects, as services give them.

use std::sync::Arc;

use jiff::Timestamp;
use object_store::client::{HttpClient, HttpRequest, HttpRequestBody};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thalweg_io::urls::{Depth, Entry, Listed};
use url::Url;
use url::form_urlencoded::parse as parse_form;

/// The most bytes of one page of a list: a thousand keys of a kilobyte, escaped, have less.
pub(crate) const MOST_OF_A_PAGE: usize = 16 << 20;

/// A part of a list. The URLs of its entries are keys.
pub(crate) struct Page {
    pub(crate) entries: Vec<Entry>,
    /// What to ask for the next part with.
    pub(crate) next: Option<String>,
}

/// What lists the objects of a bucket.
pub(crate) enum Lister {
    S3 { client: HttpClient, bucket: Url },
    Other(Arc<dyn PaginatedListStore>),
}

impl Lister {
    /// A part of the list of keys that begin with `prefix`: the one of a token, or else the first.
    pub(crate) async fn page(
        &self,
        prefix: &str,
        depth: Depth,
        token: Option<&str>,
    ) -> object_store::Result<Page> {
        let store = match self {
            Self::S3 { client, bucket } => {
                return of_s3(client, bucket, prefix, depth, token).await;
            }
            Self::Other(store) => store,
        };
        let options = PaginatedListOptions {
            delimiter: (depth == Depth::One).then(|| "/".into()),
            page_token: token.map(str::to_owned),
            ..PaginatedListOptions::default()
        };
        let listed = store.list_paginated(Some(prefix), options).await?;
        let objects = listed.result.objects.into_iter().map(|meta| {
            Entry::Object(Listed {
                url: meta.location.to_string(),
                size: meta.size,
                version: meta.e_tag,
                modified: Some(meta.last_modified.timestamp()),
            })
        });
        let folders = listed.result.common_prefixes.into_iter();
        let folders = folders.map(|folder| Entry::Folder(format!("{folder}/")));
        Ok(Page { entries: objects.chain(folders).collect(), next: listed.page_token })
    }
}

/// Asks for a page of the list of a bucket (`ListObjectsV2`). `client` signs.
async fn of_s3(
    client: &HttpClient,
    bucket: &Url,
    prefix: &str,
    depth: Depth,
    token: Option<&str>,
) -> object_store::Result<Page> {
    let mut url = bucket.clone();
    {
        let mut query = url.query_pairs_mut();
        query.append_pair("list-type", "2").append_pair("encoding-type", "url");
        query.append_pair("prefix", prefix);
        if depth == Depth::One {
            query.append_pair("delimiter", "/");
        }
        if let Some(token) = token {
            query.append_pair("continuation-token", token);
        }
    }
    Ok(ask::<ListResult>(client, &url).await?.into_page())
}

/// The names of the buckets that a service of S3 has for who asks (`ListBuckets`). `client` signs.
pub(crate) async fn buckets(
    client: &HttpClient,
    service: &Url,
) -> object_store::Result<Vec<String>> {
    let listed = ask::<BucketsResult>(client, service).await?;
    Ok(listed.buckets.bucket.into_iter().map(|bucket| bucket.name).collect())
}

/// What a service of S3 answers.
async fn ask<T: DeserializeOwned>(client: &HttpClient, url: &Url) -> object_store::Result<T> {
    let wrong = |source| object_store::Error::Generic { store: "S3", source };
    let mut request = HttpRequest::new(HttpRequestBody::empty());
    *request.uri_mut() = url.as_str().parse().map_err(|error| wrong(Box::new(error)))?;
    let answer = client.execute(request).await.map_err(|error| wrong(Box::new(error)))?;
    let status = answer.status();
    if !status.is_success() {
        return Err(wrong(format!("the server answered {status}").into()));
    }
    let body = answer.into_body().bytes().await.map_err(|error| wrong(Box::new(error)))?;
    quick_xml::de::from_reader(&*body).map_err(|error| wrong(Box::new(error)))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BucketsResult {
    #[serde(default)]
    buckets: BucketList,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
struct BucketList {
    #[serde(default)]
    bucket: Vec<BucketName>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BucketName {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListResult {
    encoding_type: Option<String>,
    #[serde(default)]
    contents: Vec<Contents>,
    #[serde(default)]
    common_prefixes: Vec<CommonPrefix>,
    next_continuation_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Contents {
    key: String,
    size: u64,
    #[serde(rename = "ETag")]
    e_tag: Option<String>,
    last_modified: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CommonPrefix {
    prefix: String,
}

impl ListResult {
    fn into_page(self) -> Page {
        let is_encoded = self.encoding_type.as_deref() == Some("url");
        let key = |text: String| if is_encoded { decoded(&text) } else { text };
        let objects = self.contents.into_iter().map(|found| {
            let Contents { key: name, size, e_tag, last_modified } = found;
            let modified = last_modified.and_then(|time| time.parse::<Timestamp>().ok());
            let modified = modified.map(Timestamp::as_second);
            Entry::Object(Listed { url: key(name), size, version: e_tag, modified })
        });
        let folders =
            self.common_prefixes.into_iter().map(|found| Entry::Folder(key(found.prefix)));
        Page { entries: objects.chain(folders).collect(), next: self.next_continuation_token }
    }
}

/// A key as forms encode it: a space is `+` or `%20`.
fn decoded(text: &str) -> String {
    let form = format!("key={}", text.replace('&', "%26"));
    parse_form(form.as_bytes()).next().map(|(_, key)| key.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn keys_are_decoded() {
        assert_eq!(decoded("a+b/%C3%A9%2B%0A%25%3F&=x%20y"), "a b/é+\n%?&=x y");
    }
}
