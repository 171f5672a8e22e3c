//! Checksums of whole files, and the files beside them that say what they should be.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use md5::Md5;
use sha2::{Digest, Sha256};
use thalweg::fastq::OnStored;
use thalweg::{Error, OpenedStore, Options};
use thalweg_io::urls::{self, url};

use crate::digest::hex;

/// Bytes of a file of checksums that are read.
const MOST: u64 = 1 << 20;

/// A kind of checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Md5,
    Sha256,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Md5, Self::Sha256];

    fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha256 => "SHA-256",
        }
    }

    /// The ending of a file with such checksums.
    fn extension(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha256 => "sha256",
        }
    }

    fn digits(self) -> usize {
        match self {
            Self::Md5 => 32,
            Self::Sha256 => 64,
        }
    }
}

/// What a file beside another one says of it.
#[derive(Debug)]
struct Expected {
    kind: Kind,
    digits: String,
    from: PathBuf,
}

/// The checksums of a file, while it is read.
#[derive(Debug, Default)]
pub(super) struct Checksums {
    expected: Vec<Expected>,
    hashes: Arc<Mutex<Hashes>>,
}

#[derive(Debug, Default)]
struct Hashes {
    md5: Option<Md5>,
    sha256: Option<Sha256>,
}

/// A path with something after its name.
fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

impl Checksums {
    /// The checksums in `FILE.md5` and `FILE.sha256`, and an MD5 if `md5`.
    ///
    /// # Errors
    /// A file of checksums that cannot be read, or has none of this file.
    pub(super) fn of(path: Option<&Path>, md5: bool, options: &Options) -> thalweg::Result<Self> {
        let mut expected = Vec::new();
        // Nothing is beside a stream, and what is beside a signed URL has another signature.
        let path = path.filter(|path| url(path).is_none_or(|url| !url.contains('?')));
        for (path, kind) in path.into_iter().flat_map(|path| Kind::ALL.map(|kind| (path, kind))) {
            let from = beside(path, kind.extension());
            let Some(text) = read(&from, options)? else { continue };
            let digits = find(&text, path, kind).map_err(|found| Error::Malformed {
                file: urls::shown_path(&from).into(),
                what: "a list of checksums".into(),
                offset: 0,
                found: format!("{found} {} of {}", kind.name(), urls::shown_path(path)).into(),
                expected: format!("{} hexadecimal digits and its name", kind.digits()).into(),
            })?;
            expected.push(Expected { kind, digits, from });
        }
        let has = |kind| expected.iter().any(|one: &Expected| one.kind == kind);
        let hashes = Hashes {
            md5: (md5 || has(Kind::Md5)).then(Md5::new),
            sha256: has(Kind::Sha256).then(Sha256::new),
        };
        Ok(Self { expected, hashes: Arc::new(Mutex::new(hashes)) })
    }

    /// What is to see the bytes of the file; `None` if no checksum is wanted.
    pub(super) fn on_stored(&self) -> Option<OnStored> {
        let hashes = self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        if hashes.md5.is_none() && hashes.sha256.is_none() {
            return None;
        }
        let hashes = self.hashes.clone();
        Some(Box::new(move |bytes| {
            let mut hashes = hashes.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(md5) = &mut hashes.md5 {
                md5.update(bytes);
            }
            if let Some(sha256) = &mut hashes.sha256 {
                sha256.update(bytes);
            }
        }))
    }

    /// Compares the checksums of the bytes that were seen. Returns the MD5, if it was calculated,
    /// and the names of the files that say the same.
    ///
    /// # Errors
    /// [`Error::Malformed`] if a checksum is another.
    pub(super) fn verify(self, file: &Arc<str>) -> thalweg::Result<Verified> {
        let hashes =
            std::mem::take(&mut *self.hashes.lock().unwrap_or_else(PoisonError::into_inner));
        let md5 = hashes.md5.map(|md5| hex(&md5.finalize()));
        let sha256 = hashes.sha256.map(|sha256| hex(&sha256.finalize()));
        let mut by = Vec::new();
        for Expected { kind, digits, from } in self.expected {
            let found = match kind {
                Kind::Md5 => &md5,
                Kind::Sha256 => &sha256,
            };
            let from = urls::shown_path(&from);
            if found.as_deref() != Some(&digits) {
                return Err(Error::Malformed {
                    file: file.clone(),
                    what: "the whole file".into(),
                    offset: 0,
                    found: format!("{} {}", kind.name(), found.as_deref().unwrap_or("unknown"))
                        .into(),
                    expected: format!("{digits}, as {from} says").into(),
                });
            }
            by.push(from);
        }
        Ok(Verified { md5, by })
    }
}

/// What checksums have shown.
#[derive(Debug, Default)]
pub(crate) struct Verified {
    pub(crate) md5: Option<String>,
    /// The files of checksums that say the same.
    pub(crate) by: Vec<String>,
}

/// The text of a small file; `None` if there is no file.
fn read(path: &Path, options: &Options) -> thalweg::Result<Option<String>> {
    if url(path).is_none() && path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let store = match OpenedStore::unthrottled(path, options) {
        Ok(opened) => opened.store,
        Err(Error::NotFound { .. }) => return Ok(None),
        // A server that may not list says of an object that is not there that it is forbidden.
        Err(Error::Io { source, .. })
            if url(path).is_some()
                && matches!(source.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; store.size().min(MOST) as usize];
    store.read_at(0, &mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The checksum of a file in a list: `digits  name` as md5sum writes it, `MD5 (name) = digits` as
/// `md5sum --tag` does, or nothing but digits. An error says how many there are in place of one.
fn find(text: &str, path: &Path, kind: Kind) -> Result<String, &'static str> {
    let name = path.file_name().and_then(|name| name.to_str()).ok_or("no")?;
    let is_digits =
        |word: &str| word.len() == kind.digits() && word.bytes().all(|b| b.is_ascii_hexdigit());
    let is_name = |found: &str| Path::new(found).file_name().is_some_and(|found| found == name);
    let of_line = |line: &str| {
        if let Some((tag, digits)) = line.split_once(") = ") {
            let (_, found) = tag.split_once(" (")?;
            return (is_name(found) && is_digits(digits)).then(|| digits.to_ascii_lowercase());
        }
        let (digits, found) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let found = found.trim_start().trim_start_matches('*');
        let is_it = is_digits(digits) && (found.is_empty() || is_name(found));
        is_it.then(|| digits.to_ascii_lowercase())
    };
    let mut found = text.lines().map(str::trim).filter_map(of_line);
    let first = found.next().ok_or("no")?;
    if found.all(|other| other == first) { Ok(first) } else { Err("more than one") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_checksums_are_read_as_they_are_written() {
        let (a, b) = ("0123456789abcdef0123456789ABCDEF", "f".repeat(32));
        let find = |text: &str| find(text, Path::new("run/r.fastq.gz"), Kind::Md5);
        for text in [
            format!("{b}  other.fastq.gz\n{a}  r.fastq.gz\n"),
            format!("{a} *./x/r.fastq.gz"),
            format!("MD5 (other) = {b}\nMD5 (r.fastq.gz) = {a}\n"),
            format!("{a}\n"),
        ] {
            assert_eq!(find(&text), Ok(a.to_ascii_lowercase()), "{text}");
        }
        for text in ["", "0123  r.fastq.gz", &format!("{b}  other.fastq.gz"), &"g".repeat(32)] {
            assert_eq!(find(text), Err("no"), "{text}");
        }
        let two = format!("{a}  x/r.fastq.gz\n{b}  y/r.fastq.gz\n");
        assert_eq!(find(&two), Err("more than one"));
    }
}
