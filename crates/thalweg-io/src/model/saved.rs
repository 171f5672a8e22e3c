//! Measured models, saved in the user's cache folder: one small JSON file per device, or per
//! bucket of an object store.
//!
//! A saved model is only a hint. A model that is damaged, expired, dated in the future or of
//! another device is ignored silently, and the prior is used.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{fstat, fstatfs, fstatvfs, major, minor};
use serde::{Deserialize, Serialize};
use thalweg_codec::splitmix::checksum;

use super::StoreModel;
use crate::error::{Error, Result};
use crate::new_file::NewFile;

/// The schema name in the files.
const SCHEMA: &str = "thalweg.store-model/1";

/// How long a measurement stays valid. Devices age, file systems fill and mounts are tuned, so that
/// an older measurement is no better than a prior.
pub const LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Upper limits of a credible model: requests in flight, and bytes per request. A file with greater
/// values is damaged.
const SANE: (usize, usize) = (4096, 1 << 30);

/// The same for bytes and requests a second, and for seconds.
const LEAST_RATE: f64 = 1e-3;
const MOST_RATE: f64 = 1e15;
const MOST_LATENCY_S: f64 = 3600.0;

/// A measured model and the time of the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    schema: String,
    /// The device, as [`device`] names it.
    pub device: String,
    /// The measured model.
    pub model: StoreModel,
    /// Unix time of the measurement, in seconds.
    pub measured_at_unix_s: u64,
    /// Unix time from which the model is no longer valid, in seconds.
    pub expires_at_unix_s: u64,
}

impl Saved {
    /// A record of `model`, measured on `device` at `now`.
    pub fn new(device: String, model: StoreModel, now: SystemTime) -> Self {
        let measured = unix_s(now);
        let expires_at_unix_s = measured + LIFETIME.as_secs();
        Self {
            schema: SCHEMA.into(),
            device,
            model,
            measured_at_unix_s: measured,
            expires_at_unix_s,
        }
    }

    /// Whether the record is credible, is about `device` and is valid at `now`.
    fn holds(&self, device: &str, now: SystemTime) -> bool {
        let of = &self.model;
        let mut rates = [of.bandwidth, of.request_rate].into_iter().chain(of.connection);
        let mut times = [of.latency_s].into_iter().chain(of.latency_p99_s);
        self.schema == SCHEMA
            && self.device == device
            && (self.measured_at_unix_s..self.expires_at_unix_s).contains(&unix_s(now))
            && self.expires_at_unix_s - self.measured_at_unix_s <= LIFETIME.as_secs()
            && rates.all(|rate| (LEAST_RATE..=MOST_RATE).contains(&rate))
            && times.all(|time| (0.0..=MOST_LATENCY_S).contains(&time))
            && of.latency_p99_s.is_none_or(|p99_s| p99_s >= of.latency_s)
            && (1..=SANE.0).contains(&of.depth)
            && (1..=SANE.1).contains(&of.block)
    }
}

fn unix_s(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A name for the file system that holds `file`: its type and its id, or its device number if it
/// has no id. The ids of ext4, XFS and Lustre stay the same after a restart and differ between
/// machines.
pub fn device(file: &File) -> Option<String> {
    let kind = fstatfs(file).ok()?.f_type as u64 & 0xffff_ffff;
    match fstatvfs(file).ok()?.f_fsid {
        0 => {
            let dev = fstat(file).ok()?.st_dev;
            Some(format!("{kind:x}-{}-{}", major(dev), minor(dev)))
        }
        id => Some(format!("{kind:x}-{id:016x}")),
    }
}

/// A name for the line to a bucket of a service at a network address, such as
/// `s3-eu-north-1-runs-<hash>`. What no file can be named after becomes `_`, and the hash tells
/// names apart that then look alike.
pub fn device_of_service(kind: &str, address: &str, bucket: &str) -> String {
    /// Characters of each part. File systems allow names of 255.
    const MOST: usize = 80;
    let hash = checksum(format!("{kind} {address} {bucket}").as_bytes());
    let plain = |text: &str| -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '_' };
        text.chars().take(MOST).map(plain).collect()
    };
    format!("{kind}-{}-{}-{hash:016x}", plain(address), plain(bucket))
}

/// The folder of the saved models; `None` if there is no cache folder.
pub fn folder() -> Option<PathBuf> {
    Some(crate::cache_folder()?.join("models"))
}

/// Loads the model of `device` from `folder`. `None` if there is none that is valid at `now`.
pub fn load(folder: &Path, device: &str, now: SystemTime) -> Option<Saved> {
    let bytes = fs::read(place(folder, device)).ok()?;
    let saved: Saved = serde_json::from_slice(&bytes).ok()?;
    saved.holds(device, now).then_some(saved)
}

/// Saves a model in `folder`, which is created if it does not exist. An earlier model of the device
/// is replaced atomically. Returns the path of the file.
///
/// # Errors
/// [`Error::Io`] if the folder cannot be written, [`Error::Exists`] if a link is there,
/// [`Error::Usage`] for a model that [`load`] would reject.
pub fn save(folder: &Path, saved: &Saved) -> Result<PathBuf> {
    let measured = UNIX_EPOCH + Duration::from_secs(saved.measured_at_unix_s);
    if !saved.holds(&saved.device, measured) {
        return Err(Error::Usage(format!("no store is like this: {:?}", saved.model).into()));
    }
    fs::create_dir_all(folder)
        .map_err(|e| Error::io(&folder.to_string_lossy().into(), "creating", e))?;
    let place = place(folder, &saved.device);
    let text = serde_json::to_vec_pretty(saved).map_err(|e| Error::Usage(e.to_string().into()))?;
    // No link is followed, and damaged models are replaced.
    NewFile::sidecar(&place, |_| true)?.finish_with(&text)?;
    Ok(place)
}

fn place(folder: &Path, device: &str) -> PathBuf {
    folder.join(format!("{device}.json"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_800_000_000)
    }

    fn saved() -> Saved {
        Saved::new(
            "ef53-1".into(),
            StoreModel { depth: 7, request_rate: 50e3, ..StoreModel::LOCAL },
            now(),
        )
    }

    #[test]
    fn saved_models_are_loaded_until_they_expire() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("made/on/demand");
        let place = save(&folder, &saved()).unwrap();
        assert_eq!(load(&folder, "ef53-1", now()), Some(saved()));
        assert_eq!(load(&folder, "ef53-1", now() + 29 * DAY), Some(saved()));
        assert_eq!(load(&folder, "ef53-1", now() + 30 * DAY), None, "expired");
        assert_eq!(load(&folder, "ef53-1", now() - DAY), None, "measured in the future");
        let newer = Saved::new("ef53-1".into(), StoreModel::NETWORK, now() + DAY);
        save(&folder, &newer).unwrap();
        assert_eq!(load(&folder, "ef53-1", now() + DAY), Some(newer));
        let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(names, [place], "nothing temporary stays");
    }

    #[test]
    fn a_model_without_newer_numbers_is_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let place = save(dir.path(), &saved()).unwrap();
        let text = fs::read_to_string(&place).unwrap();
        let older: Vec<_> = text.lines().filter(|line| !line.contains("null")).collect();
        assert_eq!(older.len() + 2, text.lines().count(), "{text}");
        fs::write(&place, older.join("\n")).unwrap();
        assert_eq!(load(dir.path(), "ef53-1", now()), Some(saved()));
    }

    #[test]
    fn a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let mine = dir.path().join("mine");
        fs::write(&mine, "mine").unwrap();
        std::os::unix::fs::symlink(&mine, place(dir.path(), "ef53-1")).unwrap();
        assert!(matches!(save(dir.path(), &saved()), Err(Error::Exists { .. })));
        assert_eq!(fs::read(&mine).unwrap(), b"mine");
    }

    #[test]
    fn another_device_has_another_model() {
        let dir = tempfile::tempdir().unwrap();
        let place = save(dir.path(), &saved()).unwrap();
        assert_eq!(load(dir.path(), "ef53-2", now()), None);
        fs::copy(place, dir.path().join("ef53-2.json")).unwrap();
        assert_eq!(
            load(dir.path(), "ef53-2", now()),
            None,
            "a copied file still names its own device"
        );
    }

    #[test]
    fn damage_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let place = save(dir.path(), &saved()).unwrap();
        let text = fs::read_to_string(&place).unwrap();
        for bad in [
            String::new(),
            "[]".into(),
            text.replace("store-model/1", "store-model/2"),
            text.replace("\"depth\": 7", "\"depth\": 0"),
            text.replace("\"depth\": 7", "\"depth\": 1000000"),
            text.replace("\"depth\": 7", "\"depth\": -7"),
            text.replace("50000.0", "-1.0"),
            text.replace("50000.0", "null"),
            text.replace("\"latency_p99_s\": null", "\"latency_p99_s\": -1.0"),
            text.replace("\"latency_p99_s\": null", "\"latency_p99_s\": 1e-9"),
            text.replace("\"latency_p99_s\": null", "\"latency_p99_s\": 1e30"),
            text.replace("\"latency_s\": 0.0001", "\"latency_s\": 1e300"),
            text.replace("50000.0", "1e308"),
            text.replace("1802592000", "18446744073709551615"),
            text.replace("\"connection\": null", "\"connection\": 0.0"),
            text[..text.len() / 2].into(),
        ] {
            assert_ne!(bad, text);
            fs::write(&place, &bad).unwrap();
            assert_eq!(load(dir.path(), "ef53-1", now()), None, "{bad}");
        }
        fs::remove_file(&place).unwrap();
        fs::create_dir(&place).unwrap();
        assert_eq!(load(dir.path(), "ef53-1", now()), None);
    }

    #[test]
    fn models_without_sense_are_not_saved() {
        let dir = tempfile::tempdir().unwrap();
        let model = StoreModel { bandwidth: f64::INFINITY, ..StoreModel::LOCAL };
        assert!(save(dir.path(), &Saved::new("x".into(), model, now())).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn files_of_one_file_system_share_a_device() {
        let dir = tempfile::tempdir().unwrap();
        let name = |file: &str| device(&File::create(dir.path().join(file)).unwrap()).unwrap();
        assert_eq!(name("a"), name("b"));
        assert!(!name("a").contains('/'));
        let proc = device(&File::open("/proc/self/stat").unwrap()).unwrap();
        assert_ne!(proc, name("a"));
    }
}
