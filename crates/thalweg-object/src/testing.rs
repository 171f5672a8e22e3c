//! For tests that answer requests without a network. Not a part of the interface.

use std::collections::BTreeMap;
use std::io;

use http::HeaderMap;
use object_store::client::HttpClient;
use thalweg_io::Result;
use thalweg_io::control::Control;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Runtime;
use url::Url;

use crate::address::{Access, Address};
use crate::connection::Connection;
use crate::object::{HEAD, Object, open_on};
use crate::profile::settings;
use crate::retries::Patience;

/// Opens the object at an `http` URL. `stand_in` answers the requests, and they run on `runtime`,
/// whose clock counts.
///
/// # Errors
/// Those of [`open`](crate::open).
pub fn open_over(
    url: &str,
    stand_in: HttpClient,
    runtime: &'static Runtime,
    patience: Patience,
) -> Result<Object> {
    let access = Access { stand_in: Some(stand_in), ..Access::default() };
    let address = Address::parse_with(url, access)?;
    open_on(address, 0..HEAD, 0, Some(runtime), &Control::new(), patience)
}

/// An answer as a connection for ranges takes it.
#[derive(Debug)]
pub struct Answer {
    /// The number that says whether the request succeeded.
    pub status: u16,
    /// Bytes of the body that the headers announce, if they do.
    pub announced: Option<u64>,
    /// The bytes of the body that came.
    pub body: Vec<u8>,
    /// Whether another request can follow on the connection.
    pub is_free: bool,
}

/// The answers to requests over one stream, of which the last may be an error. Each body has at
/// most `most` bytes.
pub async fn answers<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    most: usize,
) -> Vec<io::Result<Answer>> {
    let Ok(url) = Url::parse("http://host/object") else { return Vec::new() };
    let mut connection = Connection::over(stream, &url);
    let mut answers = Vec::new();
    loop {
        let answer = answer(&mut connection, &url, most).await;
        let is_last = !answer.as_ref().is_ok_and(|answer| answer.is_free);
        answers.push(answer);
        if is_last {
            return answers;
        }
    }
}

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    url: &Url,
    most: usize,
) -> io::Result<Answer> {
    let head = connection.get(url, &HeaderMap::new()).await?;
    let announced = connection.left();
    let mut body = vec![0; most];
    let mut filled = 0;
    loop {
        let len = connection.read(&mut body[filled..]).await?;
        filled += len;
        if len == 0 {
            break;
        }
    }
    body.truncate(filled);
    Ok(Answer { status: head.status.as_u16(), announced, body, is_free: connection.is_free() })
}

/// Reads a profile from the text of a file.
pub fn profile_settings(text: &str, profile: &str) -> Option<BTreeMap<String, String>> {
    settings(text, profile)
}
