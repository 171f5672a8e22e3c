//! Permissions, owners, times and extended attributes of files, in the metadata of objects.
//!
//! They are written as s3fs writes them: `mode`, `uid`, `gid`, `mtime` and `ctime` as decimal
//! numbers, and `xattr` as JSON with values in base64, escaped as in a URL.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::{FileType, Mode};
use serde::{Deserialize, Serialize};
use thalweg_object::Metadata;

use crate::names::unescaped;

/// The most bytes of user-defined metadata that S3 takes, less those of an upload's own.
const MOST: usize = 1900;

/// What somebody has set of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attributes {
    /// Its permissions.
    pub(crate) mode: Option<u32>,
    /// Its owner and its group.
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    /// When it was changed, in seconds since 1970 and nanoseconds.
    pub(crate) mtime: Option<(i64, u32)>,
    /// When its attributes were changed.
    pub(crate) ctime: Option<(i64, u32)>,
    /// Its extended attributes.
    pub(crate) xattrs: BTreeMap<String, Vec<u8>>,
    /// Metadata of the object that are none of these.
    pub(crate) other: Metadata,
}

impl Attributes {
    /// The attributes in the metadata of an object. What cannot be read is kept as it is.
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let mut attributes = Self::default();
        for (name, value) in metadata {
            let is_read = match name.as_str() {
                "mode" => {
                    let mode = value.parse::<u32>().ok();
                    attributes.mode = mode.map(|mode| mode & 0o7777);
                    mode.is_some()
                }
                "uid" | "gid" => {
                    let number = value.parse::<u32>().ok();
                    let is_user = name == "uid";
                    let own = if is_user { &mut attributes.uid } else { &mut attributes.gid };
                    *own = number;
                    number.is_some()
                }
                "mtime" => {
                    attributes.mtime = time(value);
                    attributes.mtime.is_some()
                }
                "ctime" => {
                    attributes.ctime = time(value);
                    attributes.ctime.is_some()
                }
                "xattr" => {
                    let xattrs = xattrs(value);
                    let is_read = xattrs.is_some();
                    attributes.xattrs = xattrs.unwrap_or_default();
                    is_read
                }
                _ => false,
            };
            if !is_read {
                attributes.other.insert(name.clone(), value.clone());
            }
        }
        attributes
    }

    /// The metadata of an object. `None` if S3 takes no so many bytes.
    pub(crate) fn metadata(&self, of: FileType) -> Option<Metadata> {
        let mut metadata = self.other.clone();
        let mode = self.mode.map(|mode| of.as_raw_mode() | mode);
        for (name, number) in [("mode", mode), ("uid", self.uid), ("gid", self.gid)] {
            if let Some(number) = number {
                metadata.insert(name.into(), number.to_string());
            }
        }
        for (name, time) in [("mtime", self.mtime), ("ctime", self.ctime)] {
            if let Some((seconds, nanoseconds)) = time {
                metadata.insert(name.into(), format!("{seconds}.{nanoseconds:09}"));
            }
        }
        if !self.xattrs.is_empty() {
            let encoded = self.xattrs.iter().map(|(name, value)| (name, STANDARD.encode(value)));
            let json = serde_json::to_string(&encoded.collect::<BTreeMap<_, _>>()).ok()?;
            metadata.insert("xattr".into(), escaped(&json));
        }
        let bytes: usize = metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
        (bytes <= MOST).then_some(metadata)
    }

    /// Takes the permission from a file to run as its owner or its group, after other bytes or
    /// another owner were given to it.
    pub(crate) fn end_privileges(&mut self) {
        if let Some(mode) = &mut self.mode {
            *mode &= !Mode::SUID.bits();
            if *mode & Mode::XGRP.bits() != 0 {
                *mode &= !Mode::SGID.bits();
            }
        }
    }

    /// When the file was changed, if somebody has set it.
    pub(crate) fn modified(&self) -> Option<SystemTime> {
        system_time(self.mtime?)
    }

    /// When its attributes were changed, if that is known.
    pub(crate) fn changed(&self) -> Option<SystemTime> {
        system_time(self.ctime?)
    }

    /// Sets when the file was changed.
    pub(crate) fn set_modified(&mut self, time: SystemTime) {
        self.mtime = Some(since_1970(time));
    }

    /// Notes that attributes are changed now.
    pub(crate) fn touch(&mut self) {
        self.ctime = Some(since_1970(SystemTime::now()));
    }
}

fn system_time((seconds, nanoseconds): (i64, u32)) -> Option<SystemTime> {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let time = match seconds >= 0 {
        true => SystemTime::UNIX_EPOCH.checked_add(whole),
        false => SystemTime::UNIX_EPOCH.checked_sub(whole),
    };
    time?.checked_add(Duration::from_nanos(nanoseconds.into()))
}

/// Seconds since 1970, and nanoseconds.
fn since_1970(time: SystemTime) -> (i64, u32) {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => (since.as_secs() as i64, since.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            let nanoseconds = before.subsec_nanos();
            let seconds = -(before.as_secs() as i64);
            match nanoseconds {
                0 => (seconds, 0),
                _ => (seconds - 1, 1_000_000_000 - nanoseconds),
            }
        }
    }
}

/// A decimal number of seconds.
fn time(text: &str) -> Option<(i64, u32)> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = fraction.get(..fraction.len().min(9))?;
    let nanoseconds = format!("{digits:0<9}").parse().ok()?;
    Some((seconds.parse().ok()?, nanoseconds))
}

fn xattrs(text: &str) -> Option<BTreeMap<String, Vec<u8>>> {
    let json: BTreeMap<String, String> = serde_json::from_str(&unescaped(text)?).ok()?;
    json.into_iter().map(|(name, value)| Some((name, STANDARD.decode(value).ok()?))).collect()
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_metadata_and_back() {
        let mut attributes = Attributes { mode: Some(0o640), ..Attributes::default() };
        attributes.set_modified(SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 5));
        attributes.xattrs.insert("user.é".into(), vec![0, 255, b'"']);
        attributes.other.insert("origin".into(), "lab".into());
        (attributes.uid, attributes.gid) = (Some(1000), Some(7));
        assert_eq!(attributes.metadata(FileType::Directory).unwrap()["mode"], "16800");
        let metadata = attributes.metadata(FileType::RegularFile).unwrap();
        assert_eq!((&*metadata["mode"], &*metadata["uid"]), ("33184", "1000"));
        assert_eq!(metadata["mtime"], "1700000000.000000005");
        assert!(metadata["xattr"].is_ascii() && !metadata["xattr"].contains(['{', '"', ' ']));
        assert_eq!(Attributes::of(&metadata), attributes);
        attributes.xattrs.insert("user.long".into(), vec![7; 2000]);
        assert_eq!(attributes.metadata(FileType::RegularFile), None);
    }

    #[test]
    fn times_before_1970_are_times() {
        for time in [
            SystemTime::UNIX_EPOCH - Duration::from_millis(1500),
            SystemTime::UNIX_EPOCH - Duration::from_secs(7),
            SystemTime::UNIX_EPOCH,
        ] {
            let mut attributes = Attributes::default();
            attributes.set_modified(time);
            assert_eq!(attributes.modified(), Some(time));
        }
    }

    #[test]
    fn metadata_of_other_programs_are_kept() {
        let metadata: Metadata = [("mode", "rw"), ("mtime", "1.5"), ("xattr", "%zz"), ("a", "b")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let attributes = Attributes::of(&metadata);
        assert_eq!(attributes.mtime, Some((1, 500_000_000)));
        let back = attributes.metadata(FileType::RegularFile).unwrap();
        assert_eq!((&*back["mode"], &*back["xattr"], &*back["a"]), ("rw", "%zz", "b"));
        assert_eq!(time("1.1234567891"), Some((1, 123_456_789)));
        assert_eq!(time("1.5é"), None);
    }
}
