//! Objects in folders of buckets, and of patterns.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use glob::{MatchOptions, Pattern};
use thalweg_io::control::Control;
use thalweg_io::open::list_url;
use thalweg_io::pool::try_map;
use thalweg_io::urls::{Depth, Entry, Listed, is_in_bucket, is_web, shown};
use thalweg_io::{Error, Result};

use super::WantedNames;

/// Folders that are listed at the same time. Each takes a request that has to be waited for.
const LISTED_AT_ONCE: usize = 16;
/// The most bytes of the URLs of a data set.
const MOST_BYTES: usize = 64 << 20;
/// Bytes that the URL of an object takes beside its text.
const BESIDE: usize = 64;
/// Matches names as files are matched: `*` ends at `/`.
const AS_FILES: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};
const WILD: [char; 3] = ['*', '?', '['];

/// What a URL stands for.
pub(super) enum Named<'a> {
    Object,
    /// All objects whose URLs begin with this one, which ends in `/`.
    Folder,
    /// The URL of the bucket with `/` at the end, and a pattern of keys.
    Pattern(&'a str, &'a str),
}

impl<'a> Named<'a> {
    pub(super) fn of(url: &'a str, control: &Control) -> Result<Self> {
        if !is_in_bucket(url) {
            // Such characters stand for themselves in a URL of a web server.
            let is_folder = is_web(url) && url.ends_with('/');
            return Ok(if is_folder { Self::Folder } else { Self::Object });
        }
        let start = url.find("://").map_or(0, |at| at + 3);
        let Some(slash) = url[start..].find('/').map(|at| start + at + 1) else {
            // Whoever forgets the key does not mean all that the bucket has.
            let url = shown(url);
            let why = format!("{url}: a bucket: {url}/ stands for all files of reads in it");
            return Err(Error::Usage(why.into()));
        };
        let (bucket, key) = url.split_at(slash);
        if bucket.contains(WILD) {
            return Err(Error::Usage(format!("{url}: no pattern can stand for a bucket").into()));
        }
        if key.contains(WILD) {
            return Ok(if exists(url, control)? {
                Self::Object
            } else {
                Self::Pattern(bucket, key)
            });
        }
        Ok(if key.is_empty() || key.ends_with('/') { Self::Folder } else { Self::Object })
    }
}

/// Whether there is an object of exactly this name. It comes before all longer names.
fn exists(url: &str, control: &Control) -> Result<bool> {
    let mut is_there = false;
    list_url(url, Depth::One, control, &mut |entry| {
        is_there = matches!(entry, Entry::Object(object) if object.url == url);
        Ok(false)
    })?;
    Ok(is_there)
}

/// Adds the objects that a URL stands for.
pub(super) fn add(
    url: &str,
    wanted: &WantedNames,
    control: &Control,
    found: &mut Vec<PathBuf>,
) -> Result<()> {
    let search = Search { url, wanted, control, bytes: AtomicUsize::new(0) };
    let (objects, what, advice) = match Named::of(url, control)? {
        Named::Object => {
            found.push(url.into());
            return Ok(());
        }
        Named::Folder => {
            let what = format!("files that end in {}", wanted.ends);
            let advice = "name the files themselves if they are called otherwise";
            (search.folder(url)?, what, advice)
        }
        Named::Pattern(bucket, pattern) => {
            let advice = "in a bucket, * and ? match no /, and ** matches folders at any depth";
            (search.matching(bucket, pattern)?, "files that match".into(), advice)
        }
    };
    if objects.is_empty() {
        let (what, advice) = (what.into(), advice.into());
        return Err(Error::NotFound { file: url.into(), what, advice });
    }
    found.extend(objects);
    Ok(())
}

/// A search for objects.
struct Search<'a> {
    url: &'a str,
    wanted: &'a WantedNames,
    control: &'a Control,
    /// Bytes of all names that were found.
    bytes: AtomicUsize,
}

/// The rest of a URL behind a folder, unless it is the object that stands for a folder.
fn name<'a>(url: &'a str, folder: &str) -> Option<&'a str> {
    url.strip_prefix(folder).filter(|name| !name.is_empty() && !name.ends_with('/'))
}

impl Search<'_> {
    /// Counts a name. Memory must not grow with what a server says.
    fn keep(&self, names: &mut Vec<String>, url: String) -> Result<bool> {
        let len = url.len() + BESIDE;
        let before = self.bytes.fetch_add(len, Ordering::Relaxed);
        if before + len > MOST_BYTES {
            return Err(Error::Unsupported {
                file: self.url.into(),
                what: format!("a data set of so many files, with {MOST_BYTES} bytes of names,")
                    .into(),
                advice: "name a smaller folder, or a pattern that matches fewer files".into(),
            });
        }
        names.push(url);
        Ok(true)
    }

    /// The files below a folder whose names are looked for.
    fn folder(&self, folder: &str) -> Result<Vec<PathBuf>> {
        self.below(folder, |name| (self.wanted.is_wanted)(Path::new(name)))
    }

    /// The objects below a folder whose names are wanted.
    fn below(&self, folder: &str, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        list_url(folder, Depth::All, self.control, &mut |entry| match entry {
            Entry::Object(Listed { url, .. }) if name(&url, folder).is_some_and(&is_wanted) => {
                self.keep(&mut found, url)
            }
            _ => Ok(true),
        })?;
        Ok(found.into_iter().map(PathBuf::from).collect())
    }

    /// What is right in a folder and has a name that matches: objects and folders.
    fn inside(&self, folder: &str, pattern: &str) -> Result<(Vec<String>, Vec<String>)> {
        let names = self.parse(pattern)?;
        let literal = pattern.split(WILD).next().unwrap_or_default();
        let prefix = format!("{folder}{literal}");
        let is_match =
            |url: &str| name(url, folder).is_some_and(|name| names.matches_with(name, AS_FILES));
        let (mut objects, mut folders) = (Vec::new(), Vec::new());
        list_url(&prefix, Depth::One, self.control, &mut |entry| match entry {
            Entry::Object(Listed { url, .. }) if is_match(&url) => self.keep(&mut objects, url),
            Entry::Folder(url) if is_match(url.strip_suffix('/').unwrap_or(&url)) => {
                self.keep(&mut folders, url)
            }
            _ => Ok(true),
        })?;
        Ok((objects, folders))
    }

    /// The objects whose keys match a pattern, and the files of reads below folders that do.
    fn matching(&self, bucket: &str, pattern: &str) -> Result<Vec<PathBuf>> {
        let only_folders = pattern.ends_with('/');
        let parts: Vec<&str> = pattern.trim_end_matches('/').split('/').collect();
        let mut folders = vec![bucket.to_owned()];
        let mut objects = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let (_, rest) = parts.split_at(at);
            if *part == "**" {
                return self.at_any_depth(folders, rest, only_folders);
            }
            if rest.len() > 1 && !part.contains(WILD) {
                // Its folder need not be listed.
                folders.iter_mut().for_each(|folder| folder.extend([part, "/"]));
                continue;
            }
            let inside = try_map(LISTED_AT_ONCE, folders, |folder| self.inside(&folder, part))?;
            let (found, below): (Vec<_>, Vec<_>) = inside.into_iter().unzip();
            objects = found.concat();
            folders = below.concat();
        }
        let below = try_map(LISTED_AT_ONCE, folders, |folder| self.folder(&folder))?;
        let objects = objects.into_iter().filter(|_| !only_folders).map(PathBuf::from);
        Ok(objects.chain(below.into_iter().flatten()).collect())
    }

    /// What matches a pattern that begins with `**`, below each of the folders.
    fn at_any_depth(
        &self,
        folders: Vec<String>,
        parts: &[&str],
        only_folders: bool,
    ) -> Result<Vec<PathBuf>> {
        let pattern = self.parse(&parts.join("/"))?;
        let is_match = |name: &str| pattern.matches_with(name, AS_FILES);
        let is_any = parts.iter().all(|part| *part == "**");
        let is_wanted = |name: &str| {
            let is_inside = || {
                let mut above = name.match_indices('/').map(|(at, _)| &name[..at]);
                // As of files, `**` at the end stands for the folders below, and not for this one.
                above.any(|folder| is_any || is_match(folder))
            };
            !only_folders && !is_any && is_match(name)
                || (self.wanted.is_wanted)(Path::new(name)) && is_inside()
        };
        let found = try_map(LISTED_AT_ONCE, folders, |folder| self.below(&folder, is_wanted))?;
        Ok(found.concat())
    }

    fn parse(&self, pattern: &str) -> Result<Pattern> {
        let wrong = |e| Error::Usage(format!("{}: not a pattern: {e}", self.url).into());
        Pattern::new(pattern).map_err(wrong)
    }
}
