//! Finds the processes that map or open a file. A page that a process maps can't be evicted.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fmt, fs};

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// How a process holds a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// The process maps the file into its address space, so the mapped pages can't be evicted.
    Mapped,
    /// The process has an open descriptor, so it may read the file into memory again at any moment.
    Open,
}

/// One process that holds a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The id of the process.
    pub pid: u32,
    /// The name of its command.
    pub command: String,
    /// The strongest way in which it holds the file.
    pub hold: Hold,
}

/// The processes that hold a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holders {
    /// The processes that were found.
    pub seen: Vec<Holder>,
    /// The number of processes that could not be inspected, because other users own them.
    pub unseen: usize,
}

impl fmt::Display for Holders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<String> = self
            .seen
            .iter()
            .map(|h| {
                let how = if h.hold == Hold::Mapped { "mapped" } else { "open" };
                format!("{} (pid {}, {how})", h.command, h.pid)
            })
            .collect();
        if self.unseen > 0 {
            names.push(format!(
                "perhaps one of {} processes that only root can look into",
                self.unseen
            ));
        }
        f.write_str(&names.join(", "))
    }
}

/// Finds every process that has `path` mapped or open, this one included.
pub fn holders(path: &Path) -> Result<Holders> {
    let meta = fs::metadata(path).map_err(|e| Error::io(path, "looking up", e))?;
    let full = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let proc = fs::read_dir("/proc").map_err(|e| Error::io("/proc", "listing", e))?;
    let mut found = Holders::default();
    for entry in proc.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|s| s.parse().ok()) else { continue };
        let mapped =
            fs::read(entry.path().join("maps")).map(|maps| is_mapped(&maps, meta.ino(), &full));
        let open = fs::read_dir(entry.path().join("fd")).map(|fds| {
            fds.flatten()
                .filter_map(|fd| fs::metadata(fd.path()).ok())
                .any(|fd| fd.ino() == meta.ino() && fd.dev() == meta.dev())
        });
        let denied = |e: &std::io::Error| e.kind() == std::io::ErrorKind::PermissionDenied;
        let hold = match (mapped, open) {
            (Ok(true), _) => Hold::Mapped,
            (_, Ok(true)) => Hold::Open,
            (Err(e), _) | (_, Err(e)) if denied(&e) => {
                found.unseen += 1;
                continue;
            }
            _ => continue,
        };
        let command =
            fs::read_to_string(entry.path().join("comm")).unwrap_or_default().trim().to_owned();
        found.seen.push(Holder { pid, command, hold });
    }
    found.seen.sort_by_key(|h| (h.hold == Hold::Open, h.pid));
    Ok(found)
}

/// Looks for the inode *and* the path: device numbers in `maps` differ from stat(2)'s on btrfs and
/// overlayfs, and an inode number alone is not unique.
fn is_mapped(maps: &[u8], inode: u64, path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let wanted = path.as_os_str().as_bytes();
    maps.split(|&b| b == b'\n').any(|line| {
        // address perms offset dev inode, then the path after spaces (proc_pid_maps(5))
        let mut fields = line.splitn(6, |&b| b == b' ');
        let at = fields
            .nth(4)
            .and_then(|f| std::str::from_utf8(f).ok())
            .and_then(|f| f.parse::<u64>().ok());
        at == Some(inode) && fields.next().is_some_and(|rest| rest.trim_ascii_start() == wanted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_must_name_inode_and_path() {
        let maps = b"7f00-7f01 r--s 00000000 fe:00 4711                       /data/a file\n\
                     7f02-7f03 rw-p 00000000 00:00 0\n";
        assert!(is_mapped(maps, 4711, Path::new("/data/a file")));
        assert!(!is_mapped(maps, 4712, Path::new("/data/a file")));
        assert!(!is_mapped(maps, 4711, Path::new("/data/a")));
        assert!(!is_mapped(maps, 0, Path::new("/data/a")));
    }
}
