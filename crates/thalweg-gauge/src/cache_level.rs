//! Cache levels: the state of the caches when a trial starts, and the evidence for it.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thalweg_io::sidecar::index_places;
use thalweg_io::urls::url;

use crate::Result;
use crate::cache::{self, CACHED_SHARE_SLACK, EvictOptions, Eviction, Residency};

/// The number of bytes that a hot trial may read from the device, such as a page of its program or
/// a directory.
const HOT_BYTES: u64 = 1 << 20;

/// The state of the caches that a trial asks for, or that was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheLevel {
    /// The whole file is in the page cache, which is checked before the trial. Nothing but a small
    /// allowance is read from the device, which is checked after the trial.
    Hot,
    /// The caches stay as the previous process left them. Residency is recorded, and nothing is
    /// required.
    Lukewarm,
    /// The file is evicted on this machine, and this is checked, or it is an object at a URL, which
    /// no page cache of this machine has. The cache of a server can't be evicted.
    ClientCold,
    /// The file is evicted, which is checked before the trial. The bytes that the trial reads from
    /// the device are counted.
    Cold,
    /// This machine cannot give the evidence that the requested level needs.
    Unverified,
}

impl fmt::Display for CacheLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hot => "hot",
            Self::Lukewarm => "lukewarm",
            Self::ClientCold => "client-cold",
            Self::Cold => "cold",
            Self::Unverified => "unverified",
        })
    }
}

impl std::str::FromStr for CacheLevel {
    type Err = crate::Error;

    fn from_str(s: &str) -> Result<Self> {
        [Self::Hot, Self::Lukewarm, Self::ClientCold, Self::Cold, Self::Unverified]
            .into_iter()
            .find(|level| level.to_string() == s)
            .ok_or_else(|| {
                crate::Error::Usage(format!(
                    "{s}: not a level; hot, lukewarm, client-cold, cold or unverified"
                ))
            })
    }
}

/// The preparation of the caches before a trial, and the state after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// The residency of all files together, right before the start.
    pub residency: Residency,
    /// Whether the file lies on another machine (NFS, Lustre, FUSE, ...).
    pub remote: bool,
    /// The number of objects at URLs. The residency is that of the other files.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub objects: u64,
    /// The evidence against the level, if there is any; the trial then need not run.
    pub objection: Option<String>,
    /// The eviction of each file; empty for levels that do not evict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evictions: Vec<Eviction>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Brings `files` to `level`, outside anything that is timed. A folder stands for all files in it.
/// The indexes that readers look for beside each file are included.
pub fn prepare(level: CacheLevel, files: &[PathBuf], options: EvictOptions) -> Result<Prepared> {
    let files = with_indexes(
        files.iter().map(|f| cache::files_of(f)).collect::<Result<Vec<_>>>()?.concat(),
    );
    let (objects, files): (Vec<_>, Vec<_>) = files.into_iter().partition(|f| url(f).is_some());
    let (objects, files) = (objects.len() as u64, &files);
    let remote = files.iter().any(|f| crate::host::is_remote(f));
    let mut evictions = Vec::new();
    let mut objection = None;
    match level {
        CacheLevel::Cold | CacheLevel::ClientCold => {
            for file in files {
                let eviction = cache::evict(file, options)?;
                // Unknown residency is missing evidence, not evidence against the level: `judge`
                // makes it "unverified".
                if eviction.after.fraction().is_some()
                    && let Some(why) = eviction.objection()
                {
                    let kind = crate::host::place(file).map(|p| p.file_system).unwrap_or_default();
                    let hint = if matches!(kind.as_str(), "tmpfs" | "ramfs") {
                        format!(" ({kind} keeps everything in memory)")
                    } else {
                        String::new()
                    };
                    objection.get_or_insert(format!("{}: {why}{hint}", file.display()));
                }
                evictions.push(eviction);
            }
        }
        CacheLevel::Hot => {
            for file in files {
                let residency = cache::warm(file)?;
                if let Some(f) = residency.fraction()
                    && f < 1.0
                {
                    let why = format!(
                        "{}: only {:.1} % stayed in memory once read",
                        file.display(),
                        f * 100.0
                    );
                    objection.get_or_insert(why);
                }
            }
        }
        CacheLevel::Lukewarm | CacheLevel::Unverified => {}
    }
    Ok(Prepared { residency: residency_of_all(files)?, remote, objects, objection, evictions })
}

fn with_indexes(mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    let indexes = files.iter().flat_map(|file| index_places(file)).filter(|place| place.is_file());
    let indexes: Vec<PathBuf> = indexes.collect();
    files.extend(indexes);
    let mut seen = HashSet::new();
    files.retain(|file| seen.insert(file.clone()));
    files
}

fn residency_of_all(files: &[impl AsRef<Path>]) -> Result<Residency> {
    let none =
        Residency { pages_total: 0, pages_resident: Some(0), method: cache::Method::Cachestat };
    files.iter().try_fold(none, |sum, file| Ok(sum.and(cache::residency(file.as_ref())?)))
}

/// The verdict on a trial's level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// The trial ran at this level, which may be weaker than the requested one.
    Reached(CacheLevel),
    /// The trial contradicts its level and must not be averaged.
    Rejected(String),
}

/// Judges a trial by the bytes that it read from the device (`device`, `None` if the system does
/// not account them) and the bytes that it needed from its files (`needed`, `None` if unknown).
pub fn judge(
    asked: CacheLevel,
    prepared: &Prepared,
    device: Option<u64>,
    needed: Option<u64>,
) -> Judgement {
    if let Some(why) = &prepared.objection {
        return Judgement::Rejected(why.clone());
    }
    let known = prepared.residency.fraction();
    if prepared.objects > 0 {
        return Judgement::Reached(with_objects(asked, &prepared.residency));
    }
    match asked {
        CacheLevel::Unverified | CacheLevel::Lukewarm => Judgement::Reached(asked),
        CacheLevel::Hot => match (known, device) {
            (_, Some(read)) if read > hot_allowance(needed) => {
                Judgement::Rejected(format!("not hot: {read} bytes came from the device"))
            }
            (None, None) => Judgement::Reached(CacheLevel::Unverified),
            _ => Judgement::Reached(CacheLevel::Hot),
        },
        CacheLevel::ClientCold | CacheLevel::Cold => {
            let (Some(_), Some(device), Some(needed)) = (known, device, needed) else {
                return Judgement::Reached(CacheLevel::Unverified);
            };
            if !is_most_of(device, needed) {
                return Judgement::Rejected(format!(
                    "not cold: {device} bytes came from the device, {needed} were needed"
                ));
            }
            Judgement::Reached(if prepared.remote { CacheLevel::ClientCold } else { asked })
        }
    }
}

/// Whether so many bytes from the device show that a trial that needed `needed` bytes was cold.
pub(crate) fn is_most_of(device: u64, needed: u64) -> bool {
    device as f64 >= needed as f64 * (1.0 - CACHED_SHARE_SLACK)
}

/// The level of a trial that reads objects at URLs. Nothing of them is in the page cache, and bytes
/// from the network are not counted, nor can be said what a server keeps in memory. `residency`:
/// that of the files on this machine.
fn with_objects(asked: CacheLevel, residency: &Residency) -> CacheLevel {
    let is_known = residency.pages_total == 0 || residency.fraction().is_some();
    match asked {
        CacheLevel::Lukewarm | CacheLevel::Unverified => asked,
        CacheLevel::Cold | CacheLevel::ClientCold if is_known => CacheLevel::ClientCold,
        _ => CacheLevel::Unverified,
    }
}

fn hot_allowance(needed: Option<u64>) -> u64 {
    // The slack is 1 % of the needed bytes, as for cold trials, but at least the size of a
    // program's own pages.
    (needed.unwrap_or(0) / 100).max(HOT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Method;

    fn prepared(resident: Option<u64>) -> Prepared {
        let method = if resident.is_some() {
            Method::Cachestat
        } else {
            Method::Unknown("old kernel".into())
        };
        let residency = Residency { pages_total: 1000, pages_resident: resident, method };
        Prepared { residency, remote: false, objects: 0, objection: None, evictions: Vec::new() }
    }

    #[test]
    fn cold_needs_the_bytes_to_come_from_the_device() {
        let p = prepared(Some(0));
        assert_eq!(
            judge(CacheLevel::Cold, &p, Some(990), Some(1000)),
            Judgement::Reached(CacheLevel::Cold)
        );
        assert!(matches!(
            judge(CacheLevel::Cold, &p, Some(989), Some(1000)),
            Judgement::Rejected(_)
        ));
    }

    #[test]
    fn missing_evidence_is_unverified_and_contrary_evidence_is_rejected() {
        let unverified = Judgement::Reached(CacheLevel::Unverified);
        assert_eq!(judge(CacheLevel::Cold, &prepared(None), Some(1000), Some(1000)), unverified);
        assert_eq!(judge(CacheLevel::Cold, &prepared(Some(0)), None, Some(1000)), unverified);
        assert_eq!(judge(CacheLevel::Cold, &prepared(Some(0)), Some(1000), None), unverified);
        assert_eq!(judge(CacheLevel::Hot, &prepared(None), None, None), unverified);
        let mut held = prepared(Some(500));
        held.objection = Some("held".into());
        assert_eq!(
            judge(CacheLevel::Cold, &held, Some(1000), Some(1000)),
            Judgement::Rejected("held".into())
        );
        assert!(matches!(
            judge(CacheLevel::Hot, &prepared(Some(1000)), Some(2 << 20), Some(1000)),
            Judgement::Rejected(_)
        ));
    }

    #[test]
    fn the_cache_of_another_machine_cannot_be_evicted() {
        let p = Prepared { remote: true, ..prepared(Some(0)) };
        assert_eq!(
            judge(CacheLevel::Cold, &p, Some(1000), Some(1000)),
            Judgement::Reached(CacheLevel::ClientCold)
        );
    }

    #[test]
    fn an_object_is_client_cold_at_best() -> std::result::Result<(), Box<dyn std::error::Error>> {
        let files = [PathBuf::from("s3://bucket/a.blow5")];
        for (level, reached) in [
            (CacheLevel::Cold, CacheLevel::ClientCold),
            (CacheLevel::ClientCold, CacheLevel::ClientCold),
            (CacheLevel::Hot, CacheLevel::Unverified),
            (CacheLevel::Lukewarm, CacheLevel::Lukewarm),
            (CacheLevel::Unverified, CacheLevel::Unverified),
        ] {
            let prepared = prepare(level, &files, EvictOptions::default())?;
            assert_eq!(prepared.objects, 1);
            let judgement = judge(level, &prepared, Some(0), Some(1000));
            assert_eq!(judgement, Judgement::Reached(reached), "{level}");
        }
        // A list of ids beside it must be evicted as ever.
        let mut held = Prepared { objects: 1, ..prepared(Some(500)) };
        held.objection = Some("held".into());
        assert_eq!(
            judge(CacheLevel::Cold, &held, Some(0), Some(1000)),
            Judgement::Rejected("held".into())
        );
        let unknown = Prepared { objects: 1, ..prepared(None) };
        assert_eq!(
            judge(CacheLevel::Cold, &unknown, Some(0), Some(1000)),
            Judgement::Reached(CacheLevel::Unverified)
        );
        Ok(())
    }

    #[test]
    fn indexes_go_with_their_files() -> std::result::Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let path = |name: &str| dir.path().join(name);
        for name in ["a.h5", "a.h5.idx", "b.h5"] {
            std::fs::write(path(name), [7; 5000])?;
        }
        let pages = |count| count * 5000_u64.div_ceil(rustix::param::page_size() as u64);
        for level in [CacheLevel::Hot, CacheLevel::Cold] {
            let prepared = prepare(level, &[path("a.h5"), path("b.h5")], EvictOptions::default())?;
            assert_eq!(prepared.residency.pages_total, pages(3), "{level}");
            assert_eq!(prepared.evictions.len(), if level == CacheLevel::Cold { 3 } else { 0 });
        }
        // A file that is both named and in a folder counts once.
        let prepared =
            prepare(CacheLevel::Cold, &[path("a.h5"), path("a.h5.idx")], EvictOptions::default())?;
        assert_eq!(prepared.evictions.len(), 2);
        assert_eq!(
            prepare(CacheLevel::Cold, &[dir.path().to_owned()], EvictOptions::default())?
                .evictions
                .len(),
            3
        );
        Ok(())
    }

    #[test]
    fn names_round_trip() {
        for level in [
            CacheLevel::Hot,
            CacheLevel::Lukewarm,
            CacheLevel::ClientCold,
            CacheLevel::Cold,
            CacheLevel::Unverified,
        ] {
            assert_eq!(level.to_string().parse::<CacheLevel>().ok(), Some(level));
        }
        assert!("tepid".parse::<CacheLevel>().is_err());
    }
}
