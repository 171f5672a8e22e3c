//! The manifest: the files of a network, its vertex types and its populations.
//!
//! The file `manifest` is JSON, a newline, and the XXH3 hash of the JSON as 16 hexadecimal digits.
//! It is replaced in one step, by a rename.

use std::collections::HashSet;
use std::io::ErrorKind;

use serde::{Deserialize, Serialize};
use thalweg_io::disk::Disk;
use thalweg_io::{Error, Fault, InFile, Result};
use twox_hash::XxHash3_64;

use crate::storage::checkpoint::ImportCheckpoint;
use crate::storage::footer::Footer;
use crate::storage::schema::{PopulationEntry, VertexType};
use crate::storage::segment::SegmentEntry;

/// The name of the file.
pub(crate) const FILE: &str = "manifest";
const NEW: &str = "manifest.new";
const COPY: &str = "manifest.copy";
/// The file that [`Disk::lock`] makes.
const LOCK: &str = "lock";
const VERSION: u32 = 1;
/// The most bytes of a manifest: room for 300,000 segments.
const MOST_BYTES: u64 = 16 << 20;

/// The manifest of a network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    version: u32,
    /// How many manifests the network had before.
    pub(crate) number: u64,
    pub(crate) types: Vec<VertexType>,
    pub(crate) edges: Vec<PopulationEntry>,
    /// Segments, the oldest first.
    pub(crate) segments: Vec<SegmentEntry>,
    /// The number of the log with the changes after the segments.
    pub(crate) log: u64,
    /// The number of the next file.
    pub(crate) next: u64,
    /// The checkpoint of an interrupted import, which readers ignore.
    #[serde(rename = "unfinished_import", default, skip_serializing_if = "Option::is_none")]
    pub(crate) unfinished: Option<Box<ImportCheckpoint>>,
}

impl Manifest {
    /// The manifest of an empty network.
    pub(crate) fn new() -> Self {
        Self { version: VERSION, next: 1, ..Self::default() }
    }

    /// Loads the manifest of a network; `None` if there is none.
    pub(crate) fn load(disk: &dyn Disk) -> Result<Option<Self>> {
        Self::load_from(disk, FILE)
    }

    /// Loads the manifest or, if it is damaged or missing, its copy. Also returns the damage.
    pub(crate) fn load_or_copy(disk: &dyn Disk) -> Result<Option<(Self, Option<Error>)>> {
        let damage = match Self::load(disk) {
            Ok(Some(manifest)) => return Ok(Some((manifest, None))),
            Ok(None) => Error::io(&disk.path_of(FILE), "opening", std::io::ErrorKind::NotFound),
            Err(damage @ Error::Malformed { .. }) => damage,
            Err(e) => return Err(e),
        };
        match Self::load_from(disk, COPY) {
            Ok(Some(manifest)) => Ok(Some((manifest, Some(damage)))),
            // The names of types and populations are in no other file.
            _ if matches!(damage, Error::Malformed { .. }) => Err(damage),
            outcome => Ok(outcome?.map(|manifest| (manifest, Some(damage)))),
        }
    }

    fn load_from(disk: &dyn Disk, file: &str) -> Result<Option<Self>> {
        let store = match disk.open(file) {
            Ok(store) => store,
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        let wrong = |at: usize, found: String, expected: &'static str| {
            Fault::new(at, found, expected).in_file(store.name(), 0, "the manifest of a network")
        };
        if store.size() > MOST_BYTES {
            let expected = "at most 16 MiB";
            return Err(wrong(0, format!("{} bytes", store.size()), expected));
        }
        let mut bytes = vec![0; store.size() as usize];
        store.read_at(0, &mut bytes)?;
        let Some((line, sum)) = bytes.strip_suffix(b"\n").and_then(|bytes| {
            let at = bytes.iter().rposition(|byte| *byte == b'\n')?;
            Some((&bytes[..at], &bytes[at + 1..]))
        }) else {
            return Err(wrong(0, "no checksum".into(), "JSON, a line break and a checksum"));
        };
        let expected = format!("{:016x}", XxHash3_64::oneshot(line));
        if sum != expected.as_bytes() {
            return Err(wrong(
                line.len() + 1,
                String::from_utf8_lossy(sum).into_owned(),
                "the checksum of what it says",
            ));
        }
        let manifest: Self = serde_json::from_slice(line)
            .map_err(|e| wrong(e.column(), e.to_string(), "what this version writes"))?;
        if manifest.version != VERSION {
            return Err(Error::Unsupported {
                file: store.name().clone(),
                what: format!("version {} of networks", manifest.version).into(),
                advice: format!("this program reads version {VERSION}").into(),
            });
        }
        if let Some(file) = manifest.foreign_name() {
            let expected = "the number of a segment, as in 00000001.seg";
            return Err(wrong(0, format!("a segment in the file {file:?}"), expected));
        }
        let types = manifest.types.len();
        if let Some(edges) =
            manifest.edges.iter().find(|edges| edges.source >= types || edges.target >= types)
        {
            return Err(wrong(
                0,
                format!("{:?} between types that do not exist", edges.population.name),
                "their numbers",
            ));
        }
        Ok(Some(manifest))
    }

    /// A name of a segment that no writer of this crate gives. Such a name may lead out of the
    /// network, or to another of its files.
    fn foreign_name(&self) -> Option<&str> {
        let unfinished = self.unfinished.iter().map(|import| &import.file);
        let mut files = self.segments.iter().map(|segment| &segment.file).chain(unfinished);
        let is_segment = |file: &str| file.ends_with(".seg") && number_of(file).is_some();
        files.find(|file| !is_segment(file)).map(String::as_str)
    }

    /// Replaces the manifest of the network, durably.
    pub(crate) fn save(&mut self, disk: &dyn Disk) -> Result<()> {
        self.number += 1;
        let failed = |e| Error::io(&disk.path_of(FILE), "writing", e);
        let mut bytes = serde_json::to_vec(self).map_err(failed)?;
        let sum = XxHash3_64::oneshot(&bytes);
        bytes.extend_from_slice(format!("\n{sum:016x}\n").as_bytes());
        if bytes.len() as u64 > MOST_BYTES {
            return Err(Error::io(&disk.path_of(FILE), "writing", ErrorKind::FileTooLarge));
        }
        let mut sink = disk.create(NEW)?;
        sink.write(&bytes)?;
        sink.sync()?;
        drop(sink);
        // The files that the manifest names must be durable before the manifest itself.
        disk.sync()?;
        disk.rename(NEW, FILE)?;
        disk.sync()?;
        // The copy serves repair only, so a failure to write it is no error.
        let _ = disk.create(COPY).and_then(|mut sink| sink.write(&bytes));
        Ok(())
    }

    /// A name for a new file.
    pub(crate) fn new_file(&mut self, ending: &str) -> String {
        self.next += 1;
        format!("{:08}.{ending}", self.next - 1)
    }

    /// The name of the log's file.
    pub(crate) fn log_file(&self) -> String {
        format!("{:08}.log", self.log)
    }

    /// Files that an earlier writer left behind and the manifest does not name.
    pub(crate) fn strays(&self, disk: &dyn Disk) -> Result<Vec<String>> {
        let mut own: HashSet<String> = self.segments.iter().map(|part| part.file.clone()).collect();
        own.insert(self.log_file());
        own.extend(self.unfinished.iter().map(|unfinished| unfinished.file.clone()));
        let mut names = disk.list()?;
        names.retain(|name| {
            name == NEW || is_sort_file(name) || number_of(name).is_some() && !own.contains(name)
        });
        Ok(names)
    }

    /// Those of `names` that are files newer than the manifest.
    pub(crate) fn newer(&self, names: &[String]) -> Vec<String> {
        names
            .iter()
            .filter(|name| number_of(name).is_some_and(|number| number >= self.next))
            .cloned()
            .collect()
    }

    /// Removes the sections that no longer count from a segment's footer.
    pub(crate) fn hide(&self, file: &str, footer: &mut Footer) {
        let number = number_of(file).unwrap_or_default();
        footer.edges.retain(|part| {
            self.edges.get(part.population).is_none_or(|edges| edges.since <= number)
        });
        footer.vertices.retain(|part| {
            self.types.get(part.vertex_type).is_none_or(|known| known.since <= number)
        });
    }

    /// The number of the type with a name.
    pub(crate) fn type_of(&self, name: &str) -> Option<usize> {
        self.types.iter().position(|known| known.name == name)
    }

    /// The number of the population with a name.
    pub(crate) fn population(&self, name: &str) -> Option<usize> {
        self.edges.iter().position(|known| known.population.name == name)
    }
}

/// The number in the name of a segment's or a log's file.
fn number_of(name: &str) -> Option<u64> {
    let (number, ending) = name.split_once('.')?;
    let is_number = number.len() == 8 && number.bytes().all(|b| b.is_ascii_digit());
    (is_number && matches!(ending, "seg" | "log" | "tmp")).then(|| number.parse().ok()).flatten()
}

/// Whether there is a copy of a manifest. It is written after the manifest, so without a manifest
/// it means that the manifest was lost.
pub(crate) fn has_copy(disk: &dyn Disk) -> bool {
    disk.list().is_ok_and(|names| names.iter().any(|name| name == COPY))
}

/// Whether the name may be that of a file of a network.
pub(crate) fn is_of_network(name: &str) -> bool {
    [FILE, NEW, COPY, LOCK].contains(&name) || is_sort_file(name) || number_of(name).is_some()
}

/// Removes all files of a network. The copy of the manifest is the first: without its manifest, it
/// would mean that the manifest was lost.
pub(crate) fn remove_all(disk: &dyn Disk) -> Result<()> {
    disk.remove(COPY)?;
    let mut names = disk.list()?;
    names.retain(|name| is_of_network(name));
    names.iter().try_for_each(|name| disk.remove(name))
}

/// Whether a file is a sort file that is left over: its process ended before it removed the name.
fn is_sort_file(name: &str) -> bool {
    ["sort.", ".thalweg-"].iter().any(|start| name.starts_with(start)) && name.ends_with(".tmp")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use thalweg_io::disk::{Disk, Folder};
    use twox_hash::XxHash3_64;

    use super::{COPY, Manifest};

    fn put(folder: &Path, name: &str, line: &str) {
        let sum = XxHash3_64::oneshot(line.as_bytes());
        fs::write(folder.join(name), format!("{line}\n{sum:016x}\n")).unwrap();
    }

    fn told(folder: &Path) -> String {
        Manifest::load(&Folder::new(folder, false)).unwrap_err().to_string()
    }

    #[test]
    fn segments_are_files_of_the_network() {
        let folder = tempfile::tempdir().unwrap();
        let of = |file: &str| {
            format!(
                r#"{{"version":1,"number":1,"types":[],"edges":[],"log":2,"next":3,
                    "segments":[{{"file":{file:?},"bytes":4096}}]}}"#
            )
            .replace('\n', "")
        };
        for file in ["../x", "/etc/passwd", "a/00000001.seg", "manifest", "", "..", "00000001.log"]
        {
            put(folder.path(), "manifest", &of(file));
            assert!(told(folder.path()).contains("a segment in the file"), "{file}");
        }
        put(folder.path(), "manifest", &of("00000001.seg"));
        assert!(Manifest::load(&Folder::new(folder.path(), false)).unwrap().is_some());
    }

    #[test]
    fn an_unfinished_import_is_in_a_file_of_the_network() {
        let folder = tempfile::tempdir().unwrap();
        put(
            folder.path(),
            "manifest",
            concat!(
                r#"{"version":1,"number":1,"types":[],"edges":[],"segments":[],"log":2,"next":3,"#,
                r#""unfinished_import":{"origin":{"path":"/a","bytes":1,"modified":1,"#,
                r#""options":""},"file":"../x","pages":0,"hash":0,"written":[],"#,
                r#""done":{"read":0,"edges":0,"vertices":0,"resumed":0}}}"#
            ),
        );
        assert!(told(folder.path()).contains(r#"a segment in the file "../x""#));
    }

    #[test]
    fn a_manifest_is_small() {
        let folder = tempfile::tempdir().unwrap();
        let sparse = fs::File::create(folder.path().join("manifest")).unwrap();
        sparse.set_len(3 << 30).unwrap();
        let told = told(folder.path());
        assert!(told.contains("found 3221225472 bytes, expected at most 16 MiB"), "{told}");
    }

    #[test]
    fn links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        let disk = Folder::new(&store, true);
        let mut manifest = Manifest::new();
        manifest.save(&disk).unwrap();
        let other = folder.path().join("other");
        fs::write(&other, b"of the user").unwrap();
        for name in [COPY, super::NEW] {
            let _ = fs::remove_file(store.join(name));
            symlink(&other, store.join(name)).unwrap();
            let _ = manifest.save(&disk);
            assert_eq!(fs::read(&other).unwrap(), b"of the user", "{name}");
            fs::remove_file(store.join(name)).unwrap();
        }
        fs::rename(store.join("manifest"), &other).unwrap();
        symlink(&other, store.join("manifest")).unwrap();
        assert!(told(&store).contains("symbolic link"));
        assert!(disk.open("../other").unwrap_err().to_string().contains("plain names"));
        fs::remove_file(store.join("manifest")).unwrap();
        let lock = store.join("lock");
        symlink(&other, &lock).unwrap();
        assert!(disk.lock().unwrap_err().to_string().contains("symbolic link"));
    }
}
