//! The version of a file: three bytes in BLOW5 and in indexes, `major.minor.patch` in text.

use std::fmt;

use thalweg_io::Fault;

use super::{number, quoted};

/// A file version. Ordered: 0.1.0 < 0.2.0 < 1.0.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Increases with incompatible changes.
    pub major: u8,
    /// Increases with additions.
    pub minor: u8,
    /// Increases with corrections.
    pub patch: u8,
}

impl Version {
    /// The first published version: no signal compression, no zstd, no enumerations.
    pub const V0_1_0: Self = Self::new(0, 1, 0);
    /// The version that introduced signal compression, zstd and enumerations. 1.0.0 has the same
    /// layout.
    pub const V0_2_0: Self = Self::new(0, 2, 0);
    /// The version of the published specification.
    pub const V1_0_0: Self = Self::new(1, 0, 0);
    /// The newest supported version. Files with version 1.1.0 exist, and have the layout of 1.0.0.
    pub const NEWEST: Self = Self::new(1, 1, 0);

    /// The version `major.minor.patch`.
    pub const fn new(major: u8, minor: u8, patch: u8) -> Self {
        Self { major, minor, patch }
    }

    /// The three bytes as BLOW5 and indexes store them.
    pub const fn to_bytes(self) -> [u8; 3] {
        [self.major, self.minor, self.patch]
    }

    /// Refuses versions newer than [`Version::NEWEST`]. `at` is the version's offset for the fault.
    pub(crate) fn supported(self, at: usize) -> Result<Self, Fault> {
        if self > Self::NEWEST {
            let expected =
                format!("a version up to {}; this file needs a newer reader", Self::NEWEST);
            return Err(Fault::new(at, format!("file version {self}"), expected));
        }
        Ok(self)
    }

    /// Parses `major.minor.patch`. `at` is the text's offset for the fault.
    pub(crate) fn parse(text: &[u8], at: usize) -> Result<Self, Fault> {
        let fault = || Fault::new(at, quoted(text), "a version such as 1.0.0");
        let mut parts =
            text.split(|&b| b == b'.').map(|part| number::parse_unsigned(part, u64::from(u8::MAX)));
        let mut part =
            || parts.next().flatten().and_then(|n| u8::try_from(n).ok()).ok_or_else(fault);
        let version = Self::new(part()?, part()?, part()?);
        if parts.next().is_some() {
            return Err(fault());
        }
        version.supported(at)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_order() {
        assert_eq!(Version::parse(b"0.2.0", 0), Ok(Version::V0_2_0));
        assert_eq!(Version::V1_0_0.to_string(), "1.0.0");
        assert!(Version::V0_2_0 < Version::V1_0_0 && Version::V1_0_0 < Version::NEWEST);
        for bad in
            ["", "1", "1.0", "1.0.0.0", "1.0.256", "01.0.0", "1.0.x", "1.1.1", "2.0.0", "1..0"]
        {
            assert!(Version::parse(bad.as_bytes(), 0).is_err(), "{bad}");
        }
    }
}
