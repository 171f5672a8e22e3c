//! The objects below a URL.

use std::io;
use std::sync::Arc;

use thalweg_io::open::{ObjectVersion, OpenedStore, Options, has_bucket, list_buckets, list_url};
use thalweg_io::store::Store;
use thalweg_io::urls::{Depth, Entry, Listed};
use thalweg_io::{Error, Result};

use crate::draft::Draft;
use crate::names;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Folder,
    File(ObjectVersion),
    /// A symbolic link: an object that has the path to which it leads.
    Link(ObjectVersion),
    /// A file that is being written, or was not long ago.
    Draft(Arc<Draft>),
}

impl Kind {
    /// The draft, if it is one.
    pub(crate) fn draft(&self) -> Option<&Arc<Draft>> {
        match self {
            Self::Draft(draft) => Some(draft),
            _ => None,
        }
    }

    /// How the keys of objects of its kind end, beyond the name.
    pub(crate) fn suffix(&self) -> &'static str {
        match self {
            Self::Folder => "/",
            Self::Link(_) => LINK,
            Self::File(_) | Self::Draft(_) => "",
        }
    }
}

/// How the keys of symbolic links end. It is what rclone gives them with `--links`.
pub(crate) const LINK: &str = ".rclonelink";

/// A file or a folder in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its name, which may be escaped.
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// The objects whose URLs begin with a URL that ends with `/`. If it is that of a service, without
/// a bucket (`s3://`), its folders are buckets.
#[derive(Debug)]
pub(crate) struct Bucket {
    url: String,
    options: Options,
}

/// Whether a URL is that of a service with its buckets.
pub(crate) fn is_service(url: &str) -> bool {
    url.ends_with("://")
}

/// The part of a key below a URL that names the bucket, with `/`, or nothing if the URL names it.
pub(crate) fn bucket_of<'a>(url: &str, key: &'a str) -> &'a str {
    let end = if is_service(url) { key.find('/').map_or(0, |end| end + 1) } else { 0 };
    &key[..end]
}

/// Whether a bucket may have a name. Amazon's have 3 to 63 letters, digits, dots and hyphens, and
/// older ones capital letters and underscores, too.
fn is_bucket_name(name: &str) -> bool {
    let is_first = |c: &u8| c.is_ascii_alphanumeric();
    let is_right = |c: &u8| c.is_ascii_alphanumeric() || b".-_".contains(c);
    let bytes = name.as_bytes();
    bytes.len() >= 3 && bytes.first().is_some_and(is_first) && bytes.iter().all(is_right)
}

/// Entries of a list that are looked at to find one name. Names that begin alike may lie between
/// an object and the folder of its name.
const MOST_BETWEEN: usize = 1000;

impl Bucket {
    pub(crate) fn new(url: &str, options: Options) -> Self {
        let slash = if url.ends_with('/') { "" } else { "/" };
        Self { url: format!("{url}{slash}"), options }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Whether a folder is that of all buckets.
    pub(crate) fn has_buckets(&self, folder: &str) -> bool {
        folder.is_empty() && is_service(&self.url)
    }

    /// [`bucket_of`] for a key here.
    pub(crate) fn bucket_of<'a>(&self, key: &'a str) -> &'a str {
        bucket_of(&self.url, key)
    }

    /// Whether a folder is a bucket, or what is mounted: it has no mark.
    pub(crate) fn is_top(&self, folder: &str) -> bool {
        folder == self.bucket_of(folder)
    }

    /// Whether what is mounted can be listed. Buckets that cannot be listed may open by name.
    ///
    /// # Errors
    /// Those of listing it.
    pub(crate) fn check(&self) -> Result<bool> {
        let control = &self.options.control;
        match is_service(&self.url) {
            true => Ok(list_buckets(&self.url, control)?.is_some()),
            false => {
                list_url(&self.url, Depth::One, control, &mut |_| Ok(false))?;
                Ok(true)
            }
        }
    }

    /// What is in the folder whose keys begin with `folder`, in the order of the names.
    ///
    /// # Errors
    /// Those of listing it; [`Error::Io`] if it is not there.
    pub(crate) fn list(&self, folder: &str) -> Result<Vec<Found>> {
        Ok(self.list_up_to(folder, usize::MAX)?.unwrap_or_default())
    }

    /// [`Bucket::list`] for a folder of up to `most` names. `None` if it has more.
    ///
    /// # Errors
    /// Those of [`Bucket::list`].
    pub(crate) fn list_up_to(&self, folder: &str, most: usize) -> Result<Option<Vec<Found>>> {
        if self.has_buckets(folder) {
            let names = list_buckets(&self.url, &self.options.control)?;
            let names = names.ok_or_else(|| {
                let why = "these credentials may not list the buckets: each opens by its name";
                let why = io::Error::new(io::ErrorKind::PermissionDenied, why);
                Error::io(&self.url.as_str().into(), "listing buckets of", why)
            })?;
            let found = names.into_iter().map(|name| Found { name, kind: Kind::Folder });
            let mut found: Vec<_> = found.collect();
            found.sort_by(|one, other| one.name.cmp(&other.name));
            return Ok(Some(found).filter(|found| found.len() <= most));
        }
        let prefix = format!("{}{folder}", self.url);
        let mut found: Vec<Found> = Vec::new();
        let mut is_there = folder.is_empty();
        list_url(&prefix, Depth::One, &self.options.control, &mut |entry| {
            is_there = true;
            found.extend(entry_of(&prefix, entry));
            Ok(found.len() <= most)
        })?;
        if found.len() > most {
            return Ok(None);
        }
        if !is_there {
            let gone = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(Error::io(&prefix.into(), "listing", gone));
        }
        // The folder of a name goes before the object, whose name is then escaped, and before the
        // link, which then is a file of its whole name.
        let rank = |kind: &Kind| match kind {
            Kind::Folder => 0,
            Kind::File(_) | Kind::Draft(_) => 1,
            Kind::Link(_) => 2,
        };
        found.sort_by(|one, other| {
            one.name.cmp(&other.name).then(rank(&one.kind).cmp(&rank(&other.kind)))
        });
        let mut last: Option<String> = None;
        for entry in &mut found {
            if last.as_deref() != Some(&entry.name) {
                last = Some(entry.name.clone());
            } else if let Kind::Link(version) = &entry.kind {
                entry.name += LINK;
                entry.kind = Kind::File(version.clone());
            } else {
                entry.name = names::escaped(&entry.name);
            }
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found.dedup_by(|one, other| one.name == other.name);
        Ok(Some(found))
    }

    /// Whether a name in a folder is a file or a folder. `None` if it is not there.
    ///
    /// # Errors
    /// Those of listing it.
    pub(crate) fn find(&self, folder: &str, name: &str) -> Result<Option<Kind>> {
        if self.has_buckets(folder) {
            return self.find_bucket(name);
        }
        let Some(part) = names::part(name) else { return Ok(None) };
        let own = names::name(&part).is_some_and(|usual| usual == name);
        let object = format!("{}{folder}{part}", self.url);
        let (below, link_url) = (format!("{object}/"), format!("{object}{LINK}"));
        let (mut file, mut link, mut is_folder, mut between) = (None, None, false, 0);
        list_url(&object, Depth::One, &self.options.control, &mut |entry| {
            match entry {
                Entry::Object(listed) if listed.url == object => file = Some(version(listed)),
                Entry::Object(listed) if listed.url == link_url => link = Some(version(listed)),
                Entry::Folder(url) if url == below => is_folder = true,
                _ => between += 1,
            }
            Ok(!is_folder && between < MOST_BETWEEN)
        })?;
        if !is_folder && between >= MOST_BETWEEN {
            list_url(&below, Depth::One, &self.options.control, &mut |_| {
                is_folder = true;
                Ok(false)
            })?;
            if file.is_none() {
                list_url(&link_url, Depth::One, &self.options.control, &mut |entry| {
                    if let Entry::Object(listed) = entry
                        && listed.url == link_url
                    {
                        link = Some(version(listed));
                    }
                    Ok(false)
                })?;
            }
        }
        // An escaped name that is not the usual one is that of an object beside a folder.
        Ok(match (is_folder, own) {
            (true, true) => Some(Kind::Folder),
            (false, false) => None,
            (false, true) if file.is_none() => link.map(Kind::Link),
            _ => file.map(Kind::File),
        })
    }

    /// A bucket, if it is there. It need not be in the list of buckets.
    fn find_bucket(&self, name: &str) -> Result<Option<Kind>> {
        if !is_bucket_name(name) {
            return Ok(None);
        }
        let is_there = has_bucket(&format!("{}{name}/", self.url), &self.options.control)?;
        Ok(is_there.then_some(Kind::Folder))
    }

    /// Whether there is an object in a folder, other than the mark of the folder itself.
    ///
    /// # Errors
    /// Those of listing it.
    pub(crate) fn has_any(&self, folder: &str) -> Result<bool> {
        let prefix = format!("{}{folder}", self.url);
        let mut has_any = false;
        list_url(&prefix, Depth::One, &self.options.control, &mut |entry| {
            has_any |= !matches!(entry, Entry::Object(listed) if listed.url == prefix);
            Ok(!has_any)
        })?;
        Ok(has_any)
    }

    /// All objects whose keys begin with `prefix`: what follows it, and the version.
    ///
    /// # Errors
    /// Those of listing them.
    pub(crate) fn below(&self, prefix: &str) -> Result<Vec<(String, ObjectVersion)>> {
        let prefix = format!("{}{prefix}", self.url);
        let mut found = Vec::new();
        list_url(&prefix, Depth::All, &self.options.control, &mut |entry| {
            if let Entry::Object(listed) = entry
                && let Some(rest) = listed.url.strip_prefix(&prefix)
            {
                found.push((rest.to_owned(), version(listed)));
            }
            Ok(true)
        })?;
        Ok(found)
    }

    /// Opens a version of an object. That takes no request if its tag is certain.
    ///
    /// # Errors
    /// Those of opening it.
    pub(crate) fn open(&self, key: &str, version: &ObjectVersion) -> Result<Arc<dyn Store>> {
        let url = format!("{}{key}", self.url);
        let options = Options { version: Some(version.clone()), ..self.options.clone() };
        Ok(OpenedStore::new(url.as_ref(), &options)?.store)
    }
}

fn version(listed: Listed) -> ObjectVersion {
    let Listed { size, version, modified, .. } = listed;
    ObjectVersion { size, tag: version.unwrap_or_default(), modified }
}

/// What an entry of the list of a folder is. `None` for the mark of the folder itself, and for
/// names that no file has.
fn entry_of(prefix: &str, entry: Entry) -> Option<Found> {
    match entry {
        Entry::Folder(url) => {
            let part = url.strip_prefix(prefix)?.strip_suffix('/')?;
            Some(Found { name: names::name(part)?.into_owned(), kind: Kind::Folder })
        }
        Entry::Object(listed) => {
            let part = listed.url.strip_prefix(prefix)?;
            if part.is_empty() && listed.size == 0 {
                return None;
            }
            let (part, kind) = match part.strip_suffix(LINK).filter(|part| !part.is_empty()) {
                Some(link) => (link.to_owned(), Kind::Link as fn(ObjectVersion) -> Kind),
                None => (part.to_owned(), Kind::File as fn(ObjectVersion) -> Kind),
            };
            let name = names::name(&part)?.into_owned();
            Some(Found { name, kind: kind(version(listed)) })
        }
    }
}
