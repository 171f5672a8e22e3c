//! The compression methods of BLOW5 and their codes in the file header.

use std::fmt;
use std::str::FromStr;

use thalweg_io::Fault;

/// The first code of experimental methods, which no release of slow5lib reads.
const FIRST_UNRELEASED_CODE: u8 = 250;

/// How a whole record is compressed (byte 9 of the header).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RecordPress {
    /// No compression.
    #[default]
    None,
    /// A zlib stream.
    Zlib,
    /// A zstd frame; since 0.2.0.
    Zstd,
    /// svb-zd, applied to the record's bytes as 16-bit samples. A development code, not used in
    /// practice.
    SvbZd,
}

/// How the signal inside a record is compressed (byte 14 of the header; since 0.2.0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SignalPress {
    /// Plain 16-bit samples.
    #[default]
    None,
    /// StreamVByte of zigzag differences.
    SvbZd,
    /// One byte per difference; exceptions are stored separately.
    ExZd,
    /// A zlib stream of plain samples. A development code.
    Zlib,
    /// A zstd frame of plain samples. A development code.
    Zstd,
    /// A zstd frame of svb16-zd. A development code.
    Vbz,
    /// 16-bit StreamVByte of zigzag differences. A development code that published comparisons use.
    Svb16Zd,
}

impl RecordPress {
    /// Every method, in the order of the codes.
    pub const ALL: [Self; 4] = [Self::None, Self::Zlib, Self::Zstd, Self::SvbZd];

    /// The code in the file header.
    pub const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Zlib => 1,
            Self::Zstd => 2,
            Self::SvbZd => 250,
        }
    }

    /// The method that a code stands for.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|press| press.code() == code)
    }

    /// The name that slow5tools gives it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
            Self::SvbZd => "svb-zd",
        }
    }

    /// Whether released versions of slow5lib read it.
    pub const fn is_released(self) -> bool {
        self.code() < FIRST_UNRELEASED_CODE
    }
}

impl SignalPress {
    /// Every method, in the order of the codes.
    pub const ALL: [Self; 7] =
        [Self::None, Self::SvbZd, Self::ExZd, Self::Zlib, Self::Zstd, Self::Vbz, Self::Svb16Zd];

    /// The code in the file header.
    pub const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::SvbZd => 1,
            Self::ExZd => 2,
            Self::Zlib => 250,
            Self::Zstd => 251,
            Self::Vbz => 252,
            Self::Svb16Zd => 253,
        }
    }

    /// The method that a code stands for.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|press| press.code() == code)
    }

    /// The name that slow5tools gives it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SvbZd => "svb-zd",
            Self::ExZd => "ex-zd",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
            Self::Vbz => "vbz",
            Self::Svb16Zd => "svb16-zd",
        }
    }

    /// Whether released versions of slow5lib read it.
    pub const fn is_released(self) -> bool {
        self.code() < FIRST_UNRELEASED_CODE
    }
}

impl fmt::Display for RecordPress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for SignalPress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for RecordPress {
    type Err = Fault;

    fn from_str(name: &str) -> Result<Self, Fault> {
        let known = Self::ALL.into_iter().find(|press| press.name() == name);
        known.ok_or_else(|| {
            Fault::new(0, format!("{name:?}"), "a record compression: none, zlib, zstd or svb-zd")
        })
    }
}

impl FromStr for SignalPress {
    type Err = Fault;

    fn from_str(name: &str) -> Result<Self, Fault> {
        let known = Self::ALL.into_iter().find(|press| press.name() == name);
        known.ok_or_else(|| {
            let expected = "a signal compression: none, svb-zd, ex-zd, zlib, zstd, vbz or svb16-zd";
            Fault::new(0, format!("{name:?}"), expected)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_round_trip() {
        for press in RecordPress::ALL {
            assert_eq!(RecordPress::from_code(press.code()), Some(press));
            assert_eq!(press.to_string().parse(), Ok(press));
        }
        for press in SignalPress::ALL {
            assert_eq!(SignalPress::from_code(press.code()), Some(press));
            assert_eq!(press.to_string().parse(), Ok(press));
        }
        assert_eq!(RecordPress::from_code(3), None);
        assert_eq!(SignalPress::from_code(3), None);
        assert!("gzip".parse::<RecordPress>().is_err() && "gzip".parse::<SignalPress>().is_err());
    }

    #[test]
    fn released_methods() {
        let released: Vec<_> =
            SignalPress::ALL.into_iter().filter(|p| p.is_released()).map(|p| p.code()).collect();
        assert_eq!(released, [0, 1, 2]);
        let released: Vec<_> =
            RecordPress::ALL.into_iter().filter(|p| p.is_released()).map(|p| p.code()).collect();
        assert_eq!(released, [0, 1, 2]);
    }
}
