//! The other files that hold values of an HDF5 file (external and virtual datasets), and the
//! folders in which they may lie.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg_io::urls::url;
use thalweg_io::{Error, Result};

/// What a user can do about values that are refused here.
pub(crate) const ADVICE: &str = "if they should be read, say that the file is trusted (--trusted)";

/// Where the files of external and virtual datasets may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExternalAccess {
    /// In the folder of the file, and below. A symbolic link counts as the file that it leads to.
    #[default]
    Folder,
    /// Wherever the file says. The file can then expose any file that this process may read.
    Anywhere,
}

/// Finds the other files that an HDF5 file names.
#[derive(Debug, Clone, Default)]
pub struct OtherFiles {
    /// The path of the file with symbolic links resolved; `None` for a store that is not a file.
    path: Option<PathBuf>,
    reach: ExternalAccess,
}

impl OtherFiles {
    /// The other files of the file at `path`. Those of an object at a URL are not read.
    ///
    /// # Errors
    /// [`Error::Io`] if there is no file at the path.
    pub fn new(path: &Path, reach: ExternalAccess) -> Result<Self> {
        if url(path).is_some() {
            return Ok(Self { path: None, reach });
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

    fn folder(&self) -> Option<&Path> {
        self.path.as_deref().and_then(Path::parent)
    }

    /// The path with this name, relative to the folder of the file or to the working directory,
    /// with symbolic links resolved.
    fn real(&self, name: &[u8]) -> Option<PathBuf> {
        let name = Path::new(OsStr::from_bytes(name));
        self.folder()?.join(name).canonicalize().or_else(|_| name.canonicalize()).ok()
    }
}

/// The last part of an absolute name; `None` for a relative one.
pub(crate) fn last_part(name: &[u8]) -> Option<&[u8]> {
    if name.first() == Some(&b'/') { name.rsplit(|&byte| byte == b'/').next() } else { None }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::{ExternalAccess, OtherFiles};

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
