//! How the server writes objects: as S3 does.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use sha2::{Digest, Sha256};

use super::{Answer, Asked, Objects, Shared, decoded};

/// The smallest part that S3 takes, but for the last.
const LEAST: usize = 5 << 20;

/// What S3 calls user-defined metadata: headers by their names.
type Metadata = HashMap<String, String>;

/// The uploads of a server.
#[derive(Default)]
pub(super) struct Uploads(Mutex<State>);

#[derive(Default)]
struct State {
    next: u64,
    unfinished: HashMap<String, Upload>,
    metadata: HashMap<String, Metadata>,
}

impl State {
    /// Whether an upload is of an object.
    fn is_of(&self, id: &str, path: &str) -> bool {
        self.unfinished.get(id).is_some_and(|upload| upload.path == path)
    }
}

struct Upload {
    path: String,
    metadata: Metadata,
    parts: BTreeMap<u32, Vec<u8>>,
}

/// The tag of the version of an object with these bytes.
pub(super) fn tag(bytes: &[u8]) -> String {
    format!("\"{:016x}\"", thalweg_codec::splitmix::checksum(bytes))
}

fn answer(status: u16, headers: &str, body: &str) -> String {
    let len = body.len();
    format!("HTTP/1.1 {status} Word\r\n{headers}Content-Length: {len}\r\n\r\n{body}")
}

fn refusal(status: u16, code: &str) -> String {
    answer(status, "", &format!("<Error><Code>{code}</Code><Message>a message</Message></Error>"))
}

/// The value of a parameter of a query.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| {
        let (found, value) = pair.split_once('=').unwrap_or((pair, ""));
        (found == name).then_some(value)
    })
}

impl Uploads {
    pub(super) fn unfinished(&self) -> usize {
        self.0.lock().unwrap().unfinished.len()
    }

    pub(super) fn metadata(&self, path: &str) -> Metadata {
        self.0.lock().unwrap().metadata.get(path).cloned().unwrap_or_default()
    }

    /// Notes that an object has no metadata.
    pub(super) fn forget_metadata(&self, path: &str) {
        self.0.lock().unwrap().metadata.remove(path);
    }

    /// Does what a request asks for, and gives the answer.
    pub(super) fn carry_out(
        &self,
        shared: &Shared,
        asked: &Asked,
        body: Vec<u8>,
        how: &Answer,
    ) -> String {
        let sum = asked.headers.get("x-amz-content-sha256").filter(|sum| sum.len() == 64);
        let found: String =
            Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
        if sum.is_some_and(|sum| *sum != found) {
            return refusal(400, "XAmzContentSHA256Mismatch");
        }
        let (path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
        let (path, source) = (decoded(path), asked.headers.get("x-amz-copy-source"));
        let path = &*path;
        let mut objects = shared.objects.lock().unwrap();
        let mut state = self.0.lock().unwrap();
        let upload = parameter(query, "uploadId");
        let is_last =
            matches!((&*asked.method, upload), ("PUT" | "DELETE", None) | ("POST", Some(_)));
        if is_last
            && *how != Answer::Careless
            && let Some(refused) = unmet(asked, objects.get(path).map(|(bytes, _)| &**bytes))
        {
            return refused;
        }
        let body = match source.map(|source| copied(asked, source, &objects)) {
            Some(Ok(bytes)) => bytes,
            Some(Err(refused)) => return refused,
            None => body,
        };
        let metadata = || {
            let headers = asked.headers.iter().filter(|(name, _)| name.starts_with("x-amz-meta-"));
            headers.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        match (&*asked.method, upload) {
            ("POST", None) if parameter(query, "uploads").is_some() => {
                state.next += 1;
                let id = format!("upload-{}", state.next);
                let path = path.to_owned();
                let upload = Upload { path, metadata: metadata(), parts: BTreeMap::new() };
                state.unfinished.insert(id.clone(), upload);
                let name = "InitiateMultipartUploadResult";
                answer(200, "", &format!("<{name}><UploadId>{id}</UploadId></{name}>"))
            }
            ("PUT", None) => {
                let tag = tag(&body);
                let keeps = !asked.headers.contains_key("x-amz-metadata-directive");
                let metadata = match source.filter(|_| keeps) {
                    Some(source) => {
                        state.metadata.get(&decoded(source)).cloned().unwrap_or_default()
                    }
                    None => metadata(),
                };
                state.metadata.insert(path.to_owned(), metadata);
                objects.insert(path.to_owned(), (body, shared.tick()));
                match source {
                    Some(_) => result("CopyObjectResult", &tag),
                    None => answer(200, &format!("ETag: {tag}\r\n"), ""),
                }
            }
            ("DELETE", None) => {
                objects.remove(path);
                state.metadata.remove(path);
                answer(204, "", "")
            }
            ("DELETE", Some(id)) if state.is_of(id, path) => {
                state.unfinished.remove(id);
                answer(204, "", "")
            }
            (_, Some(id)) if !state.is_of(id, path) => refusal(404, "NoSuchUpload"),
            ("PUT", Some(id)) => {
                let number = parameter(query, "partNumber").and_then(|number| number.parse().ok());
                let upload = state.unfinished.get_mut(id);
                let (Some(number), Some(upload)) = (number, upload) else {
                    return refusal(404, "NoSuchUpload");
                };
                let tag = tag(&body);
                upload.parts.insert(number, body);
                match source {
                    Some(_) => result("CopyPartResult", &tag),
                    None => answer(200, &format!("ETag: {tag}\r\n"), ""),
                }
            }
            ("POST", Some(id)) => {
                let Some(upload) = state.unfinished.get(id) else {
                    return refusal(404, "NoSuchUpload");
                };
                let named = match named(upload, &String::from_utf8_lossy(&body)) {
                    Ok(named) => named,
                    Err(code) => return refusal(400, code),
                };
                let Some(mut upload) = state.unfinished.remove(id) else { return String::new() };
                let parts = named.iter().filter_map(|number| upload.parts.remove(number));
                let bytes: Vec<u8> = parts.flatten().collect();
                let tag = tag(&bytes);
                state.metadata.insert(path.to_owned(), upload.metadata);
                objects.insert(path.to_owned(), (bytes, shared.tick()));
                result("CompleteMultipartUploadResult", &tag)
            }
            _ => refusal(405, "MethodNotAllowed"),
        }
    }
}

/// An answer whose body says the tag of an object or a part.
fn result(name: &str, tag: &str) -> String {
    let tag = tag.replace('"', "&quot;");
    answer(200, "", &format!("<{name}><ETag>{tag}</ETag></{name}>"))
}

/// The refusal of a request whose condition does not hold for the object that is there.
fn unmet(asked: &Asked, found: Option<&[u8]>) -> Option<String> {
    let precondition = || Some(refusal(412, "PreconditionFailed"));
    if asked.headers.contains_key("if-none-match") && found.is_some() {
        return precondition();
    }
    match (asked.headers.get("if-match"), found) {
        (Some(_), None) => Some(refusal(404, "NoSuchKey")),
        (Some(wanted), Some(bytes)) if *wanted != tag(bytes) => precondition(),
        _ => None,
    }
}

/// The bytes that a request copies from an object.
fn copied(asked: &Asked, source: &str, objects: &Objects) -> Result<Vec<u8>, String> {
    let found = objects.get(&decoded(source));
    let (bytes, _) = found.ok_or_else(|| refusal(404, "NoSuchKey"))?;
    let wanted = asked.headers.get("x-amz-copy-source-if-match");
    if wanted.is_some_and(|wanted| *wanted != tag(bytes)) {
        return Err(refusal(412, "PreconditionFailed"));
    }
    let range = asked.headers.get("x-amz-copy-source-range");
    let range = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let Some((from, to)) = range else { return Ok(bytes.clone()) };
    let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
    Ok(bytes.get(from..=to).ok_or_else(|| refusal(416, "InvalidRange"))?.to_vec())
}

/// The parts of an upload that a list names, by which the object is made; or what is wrong with the
/// list. Parts that it does not name are forgotten.
fn named(upload: &Upload, list: &str) -> Result<Vec<u32>, &'static str> {
    let mut named = Vec::new();
    for part in list.split("<Part>").skip(1) {
        let value = |name: &str| {
            let (_, rest) = part.split_once(&format!("<{name}>"))?;
            Some(rest.split_once('<')?.0.replace("&quot;", "\""))
        };
        let number = value("PartNumber").and_then(|number| number.parse().ok());
        let number: u32 = number.ok_or("MalformedXML")?;
        let tag_of = |bytes: &Vec<u8>| tag(bytes).trim_matches('"').to_owned();
        let is_same = value("ETag").is_some_and(|tag| {
            upload.parts.get(&number).map(tag_of).as_deref() == Some(tag.trim_matches('"'))
        });
        if !is_same {
            return Err("InvalidPart");
        }
        if named.last().is_some_and(|last| *last >= number) {
            return Err("InvalidPartOrder");
        }
        named.push(number);
    }
    let but_last = &named[..named.len().saturating_sub(1)];
    if named.is_empty() {
        return Err("MalformedXML");
    }
    match but_last.iter().any(|number| upload.parts[number].len() < LEAST) {
        true => Err("EntityTooSmall"),
        false => Ok(named),
    }
}
