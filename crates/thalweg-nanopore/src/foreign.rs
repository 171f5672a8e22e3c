//! Names of files that are no files of reads, by their first bytes.

use std::io::Read;

use flate2::read::GzDecoder;

const DECOMPRESS: &str = "decompress it first; of compressions, gzip and BGZF of FASTQ are read";
const RENAME: &str = "its name says another format, so rename it";

/// The first bytes of a format, its name, and what to do with such a file.
const KNOWN: [(&[u8], &str, &str); 20] = [
    (b">", "FASTA", "FASTA has no qualities, and is not read"),
    (b"@HD\t", "SAM", SAM),
    (b"@SQ\t", "SAM", SAM),
    (b"@RG\t", "SAM", SAM),
    (b"@PG\t", "SAM", SAM),
    (b"@CO\t", "SAM", SAM),
    (b"CRAM", "CRAM", SAM),
    (b"\x28\xb5\x2f\xfd", "zstd", DECOMPRESS),
    (b"BZh", "bzip2", DECOMPRESS),
    (b"\xfd7zXZ\0", "xz", DECOMPRESS),
    (b"\x04\x22\x4d\x18", "lz4", DECOMPRESS),
    (b"PK\x03\x04", "zip", "unpack it first"),
    (b"\x8bPOD\r\n", "POD5", RENAME),
    (b"\x89HDF\r\n", "HDF5", RENAME),
    (b"PAR1", "Parquet", TABLE),
    (b"ARROW1", "Arrow IPC", TABLE),
    (b"\x93NUMPY", "an array of numpy's", "numpy.load reads it"),
    (b"CDF\x01", "netCDF-3", NETCDF),
    (b"CDF\x02", "netCDF-3", NETCDF),
    (b"CDF\x05", "netCDF-3", NETCDF),
];

const SAM: &str = "samtools fastq makes FASTQ of it, which is read";
const TABLE: &str = "tables are written, and read only as lists of edges by `thalweg graph import`";
const NETCDF: &str = "nccopy -k nc4 makes netCDF-4 of it, which is read";

/// The name of the format that a file begins like, and what to do with it; `None` if it is unknown.
pub(crate) fn foreign(head: &[u8]) -> Option<(&'static str, &'static str)> {
    if head.starts_with(b"\x1f\x8b") {
        let mut inner = Vec::new();
        // The head of a file ends anywhere. What comes before its end is enough.
        let _ = GzDecoder::new(head).take(8).read_to_end(&mut inner);
        if inner.starts_with(b"BAM\x01") {
            let advice = "`thalweg filter --bam` takes its reads; samtools fastq makes FASTQ";
            return Some(("BAM", advice));
        }
        let of_text = foreign(&inner).filter(|(name, _)| ["FASTA", "SAM"].contains(name));
        return of_text.or(Some(("gzip, and no FASTQ within", "decompress it first")));
    }
    let known = KNOWN.iter().find(|(start, ..)| head.starts_with(start));
    known.map(|(_, name, advice)| (*name, *advice))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::foreign;

    #[test]
    fn what_is_in_gzip_is_looked_at() {
        let gzip = |text: &[u8]| {
            let mut out = GzEncoder::new(Vec::new(), Compression::fast());
            out.write_all(text).unwrap();
            out.finish().unwrap()
        };
        assert_eq!(foreign(&gzip(b"BAM\x01....")).unwrap().0, "BAM");
        assert_eq!(foreign(&gzip(b"@PG\tID:a")).unwrap().0, "SAM");
        assert_eq!(foreign(&gzip(b">a\nAC\n")).unwrap().0, "FASTA");
        for other in [gzip(b"text"), gzip(b""), b"\x1f\x8b".to_vec()] {
            assert_eq!(foreign(&other).unwrap().0, "gzip, and no FASTQ within");
        }
        assert_eq!((foreign(b"text"), foreign(b"")), (None, None));
    }
}
