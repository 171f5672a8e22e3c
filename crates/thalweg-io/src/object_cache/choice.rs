//! The choice of a cache, as users write it.

use std::path::PathBuf;
use std::str::FromStr;

use super::ObjectCache;
use crate::text::parse_bytes;

/// A cache as the variable `THALWEG_CACHE` and the option `--cache` name it: `20GB`, or
/// `20GB,free=50GB,folder=/scratch/objects`, or `off`.
///
/// ```
/// use thalweg_io::object_cache::CacheChoice;
///
/// let choice: CacheChoice = "20GB,free=50GB,folder=/scratch/objects".parse()?;
/// assert_eq!(choice.limit, Some(20_000_000_000));
/// assert_eq!("off".parse::<CacheChoice>()?.limit, None);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheChoice {
    /// The most bytes of the disc that the cache takes. Without a limit the cache is off.
    pub limit: Option<u64>,
    /// Bytes of the file system that stay free.
    pub free: Option<u64>,
    /// The folder; [`ObjectCache::usual_folder`] by default.
    pub folder: Option<PathBuf>,
}

impl CacheChoice {
    /// The choice of the variable `THALWEG_CACHE`.
    ///
    /// # Errors
    /// What is wrong with its text, in words.
    pub fn of_environment() -> Result<Self, String> {
        match std::env::var("THALWEG_CACHE") {
            Ok(text) => text.parse().map_err(|error| format!("THALWEG_CACHE: {error}")),
            Err(std::env::VarError::NotPresent) => Ok(Self::default()),
            Err(error) => Err(format!("THALWEG_CACHE: {error}")),
        }
    }

    /// The cache, if it is on. It calls `warn` once, if it cannot be written.
    pub fn cache(&self, warn: fn(&str)) -> Option<ObjectCache> {
        self.limit.and_then(|_| self.folder(warn))
    }

    /// The cache, on or off. `None` if no folder is named and the user has none.
    pub fn folder(&self, warn: fn(&str)) -> Option<ObjectCache> {
        let folder = self.folder.clone().or_else(ObjectCache::usual_folder)?;
        Some(ObjectCache::with(&folder, self.limit.unwrap_or(0), self.free, warn))
    }
}

/// The least size of a cache. Whoever gives less forgot the unit: no cache of so few blocks of 64
/// KiB saves a read anything.
const LEAST_LIMIT: u64 = 1 << 20;

impl FromStr for CacheChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (size, mut rest) = text.split_once(',').unwrap_or((text, ""));
        let mut choice = Self::default();
        if !matches!(size, "" | "off") {
            let limit = parse_bytes(size)?;
            if limit < LEAST_LIMIT {
                return Err(format!("{size:?} is {limit} bytes: give 1 MiB or more, as in 20GB"));
            }
            choice.limit = Some(limit);
        }
        while !rest.is_empty() {
            if let Some(folder) = rest.strip_prefix("folder=").filter(|path| !path.is_empty()) {
                choice.folder = Some(folder.into());
                break;
            }
            let (part, after) = rest.split_once(',').unwrap_or((rest, ""));
            let size = part.strip_prefix("free=").ok_or_else(|| {
                format!("{part:?} is neither free=SIZE nor, as the last part, folder=PATH")
            })?;
            choice.free = Some(parse_bytes(size)?);
            rest = after;
        }
        Ok(choice)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_a_size_and_more() {
        let parse = |text: &str| text.parse::<CacheChoice>();
        let choice = |limit, free, folder: Option<&str>| {
            Ok(CacheChoice { limit, free, folder: folder.map(PathBuf::from) })
        };
        assert_eq!(parse("20GB"), choice(Some(20_000_000_000), None, None));
        assert_eq!(parse("1MiB,free=2MiB"), choice(Some(1 << 20), Some(2 << 20), None));
        let least = Some(LEAST_LIMIT);
        assert_eq!(parse("1Mi,folder=/a,b=c"), choice(least, None, Some("/a,b=c")));
        assert_eq!(parse("1Mi,free=1,folder=x"), choice(least, Some(1), Some("x")));
        assert_eq!(parse("off,folder=x"), choice(None, None, Some("x")));
        assert_eq!(parse("off"), choice(None, None, None));
        assert_eq!(parse(""), choice(None, None, None));
        for wrong in ["x", "1Mi,x", "1Mi,free", "1Mi,folder=", "1Mi,folder", "-7"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let told = parse("10").unwrap_err();
        assert!(told.contains("10 bytes") && told.contains("as in 20GB"), "{told}");
    }
}
