//! Checksums that a store of the protocol of S3 gives for an object.
//!
//! Only one for the whole object is taken (`x-amz-checksum-type: FULL_OBJECT`). One of a composite
//! upload is a checksum of checksums, and in an answer to a request for a range S3 leaves out the
//! number of parts that would tell. Some servers give the checksum of the object for each range.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crc_fast::CrcAlgorithm;
use http::header::HeaderMap;
use ring::digest;

/// Asks for the checksum.
pub(crate) const MODE: &str = "x-amz-checksum-mode";

/// The checksum of a whole object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checksum {
    algorithm: Algorithm,
    /// In base64, as the store gives it.
    expected: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Crc64Nvme,
    Crc32c,
    Crc32,
    Sha256,
    Sha1,
}

impl Algorithm {
    /// The quickest first.
    const ALL: [Self; 5] = [Self::Crc64Nvme, Self::Crc32c, Self::Crc32, Self::Sha256, Self::Sha1];

    fn name(self) -> &'static str {
        match self {
            Self::Crc64Nvme => "crc64nvme",
            Self::Crc32c => "crc32c",
            Self::Crc32 => "crc32",
            Self::Sha256 => "sha256",
            Self::Sha1 => "sha1",
        }
    }

    /// The checksum of bytes, in base64.
    fn of(self, bytes: &[u8]) -> String {
        let crc32 = |kind| (crc_fast::checksum(kind, bytes) as u32).to_be_bytes().to_vec();
        let hash = |kind| digest::digest(kind, bytes).as_ref().to_vec();
        STANDARD.encode(match self {
            Self::Crc64Nvme => {
                crc_fast::checksum(CrcAlgorithm::Crc64Nvme, bytes).to_be_bytes().to_vec()
            }
            Self::Crc32c => crc32(CrcAlgorithm::Crc32Iscsi),
            Self::Crc32 => crc32(CrcAlgorithm::Crc32IsoHdlc),
            Self::Sha256 => hash(&digest::SHA256),
            Self::Sha1 => hash(&digest::SHA1_FOR_LEGACY_USE_ONLY),
        })
    }
}

impl Checksum {
    /// The checksum of the whole object, if an answer has it.
    pub(crate) fn of_object(headers: &HeaderMap) -> Option<Self> {
        if headers.get("x-amz-checksum-type")? != "FULL_OBJECT" {
            return None;
        }
        Algorithm::ALL.into_iter().find_map(|algorithm| {
            let value = headers.get(format!("x-amz-checksum-{}", algorithm.name()))?;
            let expected = value.to_str().ok()?.to_owned();
            // With `-` and the number of parts, it is one of checksums.
            STANDARD.decode(&expected).is_ok().then_some(Self { algorithm, expected })
        })
    }

    /// Compares it with that of `bytes`, the whole object.
    ///
    /// # Errors
    /// What differs, in words.
    pub(crate) fn verify(&self, bytes: &[u8]) -> Result<(), String> {
        let Self { algorithm, expected } = self;
        let found = algorithm.of(bytes);
        if found == *expected {
            return Ok(());
        }
        let end = bytes.len();
        let name = algorithm.name();
        Err(format!("bytes 0 to {end} have the {name} {found}, and the store says {expected}"))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::{HeaderMap, HeaderName};

    use super::{Algorithm, Checksum};

    fn of(headers: &[(&'static str, &'static str)]) -> Option<Checksum> {
        let pairs = headers.iter();
        let map: HeaderMap = pairs
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        Checksum::of_object(&map)
    }

    /// The check values of the catalogue of CRCs, and of FIPS 180 (`abc`).
    #[test]
    fn the_algorithms_are_those_of_the_names() {
        for (algorithm, bytes, expected) in [
            (Algorithm::Crc32, "123456789", "y/Q5Jg=="),
            (Algorithm::Crc32c, "123456789", "4waSgw=="),
            (Algorithm::Crc64Nvme, "123456789", "rosUhgp5mIg="),
            (Algorithm::Sha1, "abc", "qZk+NkcGgWq6PiVxeFDCbJzQ2J0="),
            (Algorithm::Sha256, "abc", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="),
        ] {
            assert_eq!(algorithm.of(bytes.as_bytes()), expected, "{algorithm:?}");
        }
    }

    #[test]
    fn only_one_of_the_whole_object_is_taken() {
        let full = ("x-amz-checksum-type", "FULL_OBJECT");
        let crc = ("x-amz-checksum-crc32", "y/Q5Jg==");
        let sum = of(&[full, crc]);
        assert!(sum.is_some_and(|sum| sum.verify(b"123456789").is_ok()));
        assert_eq!(of(&[crc]), None, "older servers do not say what it is of");
        assert_eq!(of(&[full, ("x-amz-checksum-crc32", "y/Q5Jg==-3")]), None);
        assert_eq!(of(&[full, ("x-amz-checksum-md5", "y/Q5Jg==")]), None);
        assert_eq!(of(&[("x-amz-checksum-type", "COMPOSITE"), crc]), None);
        let quick = ("x-amz-checksum-crc64nvme", "rosUhgp5mIg=");
        let sum = of(&[full, crc, quick]);
        assert_eq!(sum.map(|sum| sum.algorithm), Some(Algorithm::Crc64Nvme));
    }

    #[test]
    fn what_differs_is_said() {
        let sum = Checksum { algorithm: Algorithm::Crc32, expected: "AAAAAA==".into() };
        let words = "bytes 0 to 9 have the crc32 y/Q5Jg==, and the store says AAAAAA==";
        assert_eq!(sum.verify(b"123456789"), Err(words.into()));
    }
}
