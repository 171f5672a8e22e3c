//! The other files that hold values of an HDF5 file (external and virtual datasets), and the
//! folders in which they may lie.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg_io::control::Control;
use thalweg_io::open::{OpenedStore, Options};
use thalweg_io::store::{FileStore, Store};
use thalweg_io::urls::{is_web, url};
use thalweg_io::{Error, Result};

/// What a user can do about values that are refused here.
pub(crate) const ADVICE: &str = "if they should be read, say that the file is trusted (--trusted)";

/// Where the files of external and virtual datasets may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExternalAccess {
    /// In the folder of the file, and below. A symbolic link counts as the file that it leads to.
    #[default]
    Folder,
    /// Wherever the file says. The file can then expose any file that this process may read. An
    /// object at a URL can only name objects of its own bucket or server.
    Anywhere,
}

/// Finds the other files that an HDF5 file names.
#[derive(Debug, Clone, Default)]
pub struct OtherFiles {
    /// The path of the file with symbolic links resolved, or its URL; `None` for a store that is
    /// neither.
    path: Option<PathBuf>,
    reach: ExternalAccess,
}

impl OtherFiles {
    /// The other files of the file at `path`.
    ///
    /// # Errors
    /// [`Error::Io`] if there is no file at the path.
    pub fn new(path: &Path, reach: ExternalAccess) -> Result<Self> {
        if url(path).is_some() {
            return Ok(Self { path: Some(path.to_owned()), reach });
        }
        let real = path
            .canonicalize()
            .map_err(|e| Error::io(&path.to_string_lossy().into(), "finding", e))?;
        Ok(Self { path: Some(real), reach })
    }

    /// Where they may lie.
    pub(crate) fn reach(&self) -> ExternalAccess {
        self.reach
    }

    /// The path of the other file with this name. A relative name is searched in the folder of the
    /// file, then in the working directory. `None` if there is no such file. Errors call the file
    /// `of`.
    ///
    /// Of a file at a URL, it is the URL of an object of the same bucket or server, which may not
    /// exist. No file of this machine is one of its other files, and no URL is one of a local file.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a file outside of the folders that may be read, and if this file
    /// has no path.
    pub(crate) fn find(&self, name: &[u8], of: &Arc<str>) -> Result<Option<PathBuf>> {
        let refused = |what: String, advice: &'static str| {
            Err(Error::Unsupported { file: of.clone(), what: what.into(), advice: advice.into() })
        };
        let Some(folder) = self.folder() else {
            let name = Path::new(OsStr::from_bytes(name)).display();
            return refused(
                format!("values in another file ({name})"),
                "copy both files, and open the copy by its path",
            );
        };
        if let Some(url) = self.url() {
            let Some(name) = std::str::from_utf8(name).ok().filter(|name| !name.starts_with('/'))
            else {
                return Ok(None);
            };
            return match beside(url, name) {
                Some((there, true)) => Ok(Some(there.into())),
                Some((there, false)) if self.reach == ExternalAccess::Anywhere => {
                    Ok(Some(there.into()))
                }
                Some(_) => refused(
                    format!("values in another file, {name}, outside the folder of this one"),
                    ADVICE,
                ),
                None => refused(
                    format!("values in another file, {name}, outside the bucket of this one"),
                    "copy both files, and open the copy by its path",
                ),
            };
        }
        let Some(real) = self.real(name) else { return Ok(None) };
        if self.reach == ExternalAccess::Folder && !real.starts_with(folder) {
            let what = format!(
                "values in another file, {}, outside the folder of this one",
                real.display()
            );
            return refused(what, ADVICE);
        }
        Ok(Some(real))
    }

    /// The path of the other file with this name, whether it may be read or not; `None` if there is
    /// no such file. As for a source of a virtual dataset, libhdf5 looks for a file with an
    /// absolute name beside this one, too.
    pub(crate) fn place(&self, name: &[u8]) -> Option<PathBuf> {
        self.real(name).or_else(|| self.real(last_part(name)?))
    }

    /// Opens one of the other files, to read it as it is.
    pub(crate) fn open(&self, path: &Path, control: &Control) -> Result<Arc<dyn Store>> {
        if url(path).is_none() {
            return Ok(Arc::new(FileStore::open(path)?));
        }
        let options = Options { control: control.clone(), ..Options::default() };
        Ok(OpenedStore::unthrottled(path, &options)?.store)
    }

    fn url(&self) -> Option<&str> {
        url(self.path.as_deref()?)
    }

    fn folder(&self) -> Option<&Path> {
        self.path.as_deref().and_then(Path::parent)
    }

    /// The path with this name, relative to the folder of the file or to the working directory,
    /// with symbolic links resolved.
    fn real(&self, name: &[u8]) -> Option<PathBuf> {
        if self.url().is_some() {
            return None;
        }
        let name = Path::new(OsStr::from_bytes(name));
        self.folder()?.join(name).canonicalize().or_else(|_| name.canonicalize()).ok()
    }
}

/// The URL of the file with a relative name, and whether it is in the folder of the file at the URL
/// `of` or below; `None` outside of the bucket or server.
fn beside(of: &str, name: &str) -> Option<(String, bool)> {
    let is_web = is_web(of);
    let end = if is_web { of.find(['?', '#']) } else { None };
    let (plain, query) = of.split_at(end.unwrap_or(of.len()));
    let start = plain.find("://")? + 3;
    let root = start + plain[start..].find('/')? + 1;
    let folder = plain[root..].rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<String> = folder.split('/').map(str::to_owned).collect();
    if folder.is_empty() {
        parts.clear();
    }
    let depth = parts.len();
    let mut lowest = depth;
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
                lowest = lowest.min(parts.len());
            }
            part if is_web => parts.push(escaped(part)),
            part => parts.push(part.to_owned()),
        }
    }
    let there = format!("{}{}{query}", &plain[..root], parts.join("/"));
    Some((there, lowest == depth))
}

/// A part of a name in a URL of a web server.
fn escaped(part: &str) -> String {
    let escape = |byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    part.bytes().map(escape).collect()
}

/// The last part of an absolute name; `None` for a relative one.
pub(crate) fn last_part(name: &[u8]) -> Option<&[u8]> {
    if name.first() == Some(&b'/') { name.rsplit(|&byte| byte == b'/').next() } else { None }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::{ExternalAccess, OtherFiles, beside};

    #[test]
    fn a_url_leads_to_its_own_server_only() -> Result<(), thalweg_io::Error> {
        let of = "s3://b/runs/x/f.h5";
        let at = |of: &str, name: &str| beside(of, name);
        let is = |url: &str, near| Some((url.to_owned(), near));
        assert_eq!(at(of, "raw/a b#?%.bin"), is("s3://b/runs/x/raw/a b#?%.bin", true));
        assert_eq!(at(of, "./raw/../g.h5"), is("s3://b/runs/x/g.h5", true));
        assert_eq!(at(of, "../x/g.h5"), is("s3://b/runs/x/g.h5", false));
        assert_eq!(at(of, "../../g.h5"), is("s3://b/g.h5", false));
        assert_eq!(at(of, "../../../other/g.h5"), None);
        assert_eq!(at(of, "s3://other/g.h5"), is("s3://b/runs/x/s3:/other/g.h5", true));
        assert_eq!(at("s3://b/f.h5", "../g.h5"), None);
        let web = "https://me@h:8/d/f.h5?key=1";
        assert_eq!(
            at(web, "a b?\\..#.bin"),
            is("https://me@h:8/d/a%20b%3F%5C..%23.bin?key=1", true)
        );
        assert_eq!(at(web, "//evil.org/g"), is("https://me@h:8/d/evil.org/g?key=1", true));

        let name = "f.h5".into();
        let near = OtherFiles::new(of.as_ref(), ExternalAccess::Folder)?;
        let found = |files: &OtherFiles, what: &str| files.find(what.as_bytes(), &name).ok();
        assert_eq!(found(&near, "g.h5"), Some(Some("s3://b/runs/x/g.h5".into())));
        assert_eq!(found(&near, "../g.h5"), None);
        assert_eq!(found(&near, "/etc/passwd"), Some(None));
        assert_eq!(near.place(b"/etc/passwd"), None);
        let far = OtherFiles::new(of.as_ref(), ExternalAccess::Anywhere)?;
        assert_eq!(found(&far, "../g.h5"), Some(Some("s3://b/runs/g.h5".into())));
        assert_eq!(found(&far, "../../../g.h5"), None);
        assert_eq!(found(&far, "/etc/passwd"), Some(None));
        Ok(())
    }

    #[test]
    fn names_cannot_lead_out_of_the_folder() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let inner = folder.path().join("inner");
        let root = folder.path().canonicalize()?;
        fs::create_dir_all(inner.join("below"))?;
        for name in ["outside", "inner/f.h5", "inner/beside", "inner/below/deep"] {
            fs::write(folder.path().join(name), name)?;
        }
        symlink("../outside", inner.join("out"))?;
        symlink("below/deep", inner.join("in"))?;
        let name = "f.h5".into();
        let near = OtherFiles::new(&inner.join("f.h5"), ExternalAccess::Folder)?;
        let found =
            |other_files: &OtherFiles, what: &str| other_files.find(what.as_bytes(), &name).ok();
        let at = |place: &str| Some(Some(root.join(place)));
        assert_eq!(found(&near, "beside"), at("inner/beside"));
        assert_eq!(found(&near, "below/../below/deep"), at("inner/below/deep"));
        assert_eq!(found(&near, "in"), at("inner/below/deep"));
        assert_eq!(found(&near, "nothing"), Some(None));
        for far in ["../outside", "out", "/etc/passwd"] {
            assert_eq!(found(&near, far), None, "{far}");
        }
        let far = OtherFiles::new(&inner.join("f.h5"), ExternalAccess::Anywhere)?;
        assert_eq!(found(&far, "out"), at("outside"));
        assert_eq!(found(&OtherFiles::default(), "beside"), None);
        Ok(())
    }
}
