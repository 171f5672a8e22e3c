//! The formats that reads come in.

pub use crate::losses::{Loss, Losses};

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use thalweg_io::Fault;

/// The formats that reads come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// SLOW5: tab-separated text.
    Slow5,
    /// BLOW5: binary records.
    Blow5,
    /// POD5: Arrow tables in a container.
    Pod5,
    /// FAST5: HDF5 with one group a read.
    Fast5,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::Slow5, Self::Blow5, Self::Pod5, Self::Fast5];

    /// The format of a file that begins with `head`. What is none of the others is taken for text:
    /// SLOW5 has no signature, and its parser says best what is wrong.
    pub fn of(head: &[u8]) -> Self {
        if head.starts_with(crate::slow5::MAGIC) {
            Self::Blow5
        } else if head.starts_with(&crate::pod5::SIGNATURE) {
            Self::Pod5
        } else if head.starts_with(&thalweg_hdf5::SIGNATURE) {
            Self::Fast5
        } else {
            Self::Slow5
        }
    }

    /// The format that a path's extension stands for.
    pub fn of_path(path: &Path) -> Option<Self> {
        path.extension()?.to_str()?.parse().ok()
    }

    /// The end of the names of its files, without the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Slow5 => "slow5",
            Self::Blow5 => "blow5",
            Self::Pod5 => "pod5",
            Self::Fast5 => "fast5",
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slow5 => "SLOW5",
            Self::Blow5 => "BLOW5",
            Self::Pod5 => "POD5",
            Self::Fast5 => "FAST5",
        }
    }
}

/// By the end of its files' names.
impl FromStr for Format {
    type Err = Fault;

    fn from_str(name: &str) -> Result<Self, Fault> {
        let known = Self::ALL.into_iter().find(|format| format.extension() == name);
        known.ok_or_else(|| {
            Fault::new(0, format!("{name:?}"), "a format: slow5, blow5, pod5 or fast5")
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
