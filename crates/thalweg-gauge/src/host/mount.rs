//! Describes where a file lies: mount, file system and block device.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Stripe, stripe};

/// The block device beneath a file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockDevice {
    /// Its name, as in "nvme0n1".
    pub name: String,
    /// Model, if it has one.
    pub model: Option<String>,
    /// The scheduler in use.
    pub scheduler: Option<String>,
    /// Read-ahead in KiB.
    pub read_ahead_kib: Option<u64>,
    /// Whether it is a spinning disk, or does not report that it is not one.
    pub rotational: Option<bool>,
    /// Requests that its queue holds.
    pub queue_requests: Option<u64>,
}

/// Where a file lies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoragePlace {
    /// Type of the file system, as in "ext4".
    pub file_system: String,
    /// Mount point.
    pub mount_point: String,
    /// The mounted source. For a file server this is only the exported folder, without names of
    /// machines and people.
    pub source: String,
    /// Options of the mount and of the file system, without addresses and names.
    pub options: String,
    /// Whether the bytes lie on another machine, or behind a program.
    pub remote: bool,
    /// The block device, if there is one.
    pub block: Option<BlockDevice>,
    /// Read-ahead of the mount in KiB: that of a file system without a block device (NFS, FUSE,
    /// Lustre).
    pub read_ahead_kib: Option<u64>,
    /// The stripes of the file on Lustre.
    pub stripe: Option<Stripe>,
}

/// File systems whose data are on another machine. FUSE counts as remote, because its store can't
/// be seen.
const REMOTE: &[&str] = &[
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "9p",
    "virtiofs",
    "afs",
    "panfs",
    "pvfs2",
    "orangefs",
    "glusterfs",
    "wekafs",
    "fuse",
    "ncpfs",
    "coda",
];

/// Describes where `path` lies; `None` if the system does not report it.
pub fn place(path: &Path) -> Option<StoragePlace> {
    let full = fs::canonicalize(path).ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = find_mount(&mounts, &full)?;
    let read_ahead = super::text(format!("/sys/class/bdi/{}/read_ahead_kb", mount.device));
    Some(StoragePlace {
        block: block(&mount.device, &mount.place.source),
        read_ahead_kib: read_ahead.and_then(|kib| kib.parse().ok()),
        stripe: (mount.place.file_system == "lustre").then(|| stripe::stripe(&full)).flatten(),
        ..mount.place
    })
}

/// Whether `path` lies on another machine, as far as its mount shows.
pub fn is_remote(path: &Path) -> bool {
    place(path).is_some_and(|p| p.remote)
}

struct Mount {
    place: StoragePlace,
    /// major:minor
    device: String,
}

fn find_mount(mountinfo: &str, path: &Path) -> Option<Mount> {
    mountinfo
        .lines()
        .filter_map(parse_mount)
        .filter(|m| path.starts_with(&m.place.mount_point))
        // The longest mount point holds the file; among equals, the later mount hides the earlier.
        .max_by_key(|m| PathBuf::from(&m.place.mount_point).components().count())
}

/// id parent major:minor root mount-point options [tags...] - type source super-options
/// (proc_pid_mountinfo(5))
fn parse_mount(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let mut right = right.splitn(3, ' ');
    let file_system = right.next()?.to_owned();
    let source = unescape(right.next()?);
    let options = format!("{},{}", left.get(5)?, right.next().unwrap_or_default());
    // "fuse.sshfs" is FUSE; "fuseblk" (ntfs-3g) is a local disk.
    let kind = file_system.split('.').next().unwrap_or_default();
    let remote = REMOTE.contains(&kind);
    let mount_point = unescape(left.get(4)?);
    let (source, options) =
        if remote { (anonymous(&source), nameless(&options)) } else { (source, options) };
    let place = StoragePlace {
        file_system,
        mount_point,
        source,
        options,
        remote,
        ..StoragePlace::default()
    };
    Some(Mount { place, device: (*left.get(2)?).to_owned() })
}

/// What a server exports, without the server: "server:/export", "//server/share", "user@there:".
fn anonymous(source: &str) -> String {
    if let Some(share) = source.strip_prefix("//") {
        return format!("//.../{}", share.split_once('/').map_or("", |(_, share)| share));
    }
    match source.rsplit_once(":/") {
        Some((_, path)) => format!("...:/{path}"),
        // The text before a colon or an @ may name a machine or a person.
        None if source.contains([':', '@']) => "...".into(),
        None => source.into(),
    }
}

/// Mount options that hold names and addresses. Results leave them out.
const NAMES: &[&str] =
    &["addr", "clientaddr", "mountaddr", "mon_addr", "username", "user", "domain", "name", "unc"];

fn nameless(options: &str) -> String {
    let named = |option: &&str| option.split_once('=').is_some_and(|(key, _)| NAMES.contains(&key));
    options.split(',').filter(|option| !named(option)).collect::<Vec<_>>().join(",")
}

/// Space, tab, newline and backslash stand as \040, \011, \012 and \134.
fn unescape(s: &str) -> String {
    s.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

fn block(device: &str, source: &str) -> Option<BlockDevice> {
    // btrfs and overlayfs have a device number of their own; the source may still name a device.
    let by_number = fs::canonicalize(format!("/sys/dev/block/{device}")).ok();
    let by_name = || {
        let real = fs::canonicalize(source).ok()?;
        fs::canonicalize(Path::new("/sys/class/block").join(real.strip_prefix("/dev").ok()?)).ok()
    };
    let mut dir = by_number.or_else(by_name)?;
    if dir.join("partition").exists() {
        dir.pop();
    }
    let queue = dir.join("queue");
    let number = |name: &str| super::text(queue.join(name)).and_then(|s| s.parse::<u64>().ok());
    Some(BlockDevice {
        name: dir.file_name()?.to_string_lossy().into_owned(),
        model: super::text(dir.join("device/model")),
        scheduler: super::text(queue.join("scheduler")).map(|s| super::chosen(&s)),
        read_ahead_kib: number("read_ahead_kb"),
        rotational: number("rotational").map(|n| n != 0),
        queue_requests: number("nr_requests"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /data\\040set rw - nfs4 server:/export rw,vers=4.2
31 22 0:41 / /data\\040set/near rw,nosuid - tmpfs tmpfs rw,size=1g
32 22 8:1 / /win rw - fuseblk /dev/sda1 rw
33 22 0:50 / /far rw - fuse.sshfs user@there: rw
";

    #[test]
    fn the_longest_mount_point_holds_the_file() {
        let kind = |path: &str| {
            find_mount(MOUNTS, Path::new(path)).map(|m| (m.place.file_system, m.place.remote))
        };
        assert_eq!(kind("/home/x"), Some(("ext4".into(), false)));
        assert_eq!(kind("/data set/x"), Some(("nfs4".into(), true)));
        assert_eq!(kind("/data set/near/x"), Some(("tmpfs".into(), false)));
        assert_eq!(kind("/data settled"), Some(("ext4".into(), false)));
        assert_eq!(kind("/win/x"), Some(("fuseblk".into(), false)));
        assert_eq!(kind("/far/x"), Some(("fuse.sshfs".into(), true)));
    }

    #[test]
    fn servers_and_people_are_not_named() {
        let nfs = "30 22 0:40 / /d rw - nfs4 server.example:/export \
             rw,vers=4.2,rsize=1048576,addr=10.0.0.7,clientaddr=10.0.0.8";
        let place = find_mount(nfs, Path::new("/d/x")).map(|m| (m.place.source, m.place.options));
        assert_eq!(place, Some(("...:/export".into(), "rw,rw,vers=4.2,rsize=1048576".into())));
        for (source, left) in [
            ("//server/share/data", "//.../share/data"),
            ("user@there:", "..."),
            ("10.1.2.3@tcp:10.1.2.4@tcp:/scratch", "...:/scratch"),
            ("[fe80::1]:/export", "...:/export"),
            ("user@there:/home", "...:/home"),
            ("overlay", "overlay"),
        ] {
            assert_eq!(anonymous(source), left);
        }
        let local = find_mount(MOUNTS, Path::new("/x")).map(|m| m.place.source);
        assert_eq!(local.as_deref(), Some("/dev/vda"), "a device has no name to hide");
    }
}
