//! The options of each format that is written.

use thalweg::format::Format;
use thalweg::format::slow5::{RecordPress, SignalPress};
use thalweg::write::{Coding, CodingChoice};

use crate::arrays;
use crate::common::Failure;

/// How reads are stored, for every verb that writes them.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CodingArgs {
    /// BLOW5: compression of each record: none, zlib or zstd. Records of BLOW5 files with zstd and
    /// svb-zd are copied as they are, damaged signal too, unless this option, --signal or --verify
    /// is given
    #[arg(long, value_name = "NAME")]
    record: Option<RecordPress>,
    /// Compression of each signal. BLOW5: none, svb-zd or ex-zd; POD5: none or vbz; FAST5: none,
    /// zlib or vbz
    #[arg(long, value_name = "NAME")]
    signal: Option<SignalPress>,
    /// BLOW5: allow compressions that no released reader supports (svb16-zd)
    #[arg(long)]
    experimental: bool,
    /// POD5 and FAST5: level of zstd within vbz; FAST5: level of zlib; FASTQ: level of gzip
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(-7..=22))]
    #[arg(allow_negative_numbers = true)]
    level: Option<i32>,
    /// POD5: the most samples in a row of the Signal table. Signal from POD5 is copied as it is,
    /// unless this option, --signal or --level is given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    row_samples: Option<u32>,
    /// POD5: rows of a batch of the Signal table
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    signal_rows: Option<u32>,
    /// POD5: rows of a batch of the Reads table
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    reads_rows: Option<u32>,
}

impl CodingArgs {
    /// The coding in a format.
    pub(crate) fn coding(&self, format: Format) -> Result<Coding, Failure> {
        if format == Format::Fast5 {
            arrays::check_fast5()?;
        }
        self.choice().coding(format).map_err(Failure::of_argument)
    }

    /// Whether reads must be encoded again, even from a file of the same coding.
    pub(crate) fn recodes(&self) -> bool {
        self.choice().recodes()
    }

    pub(crate) fn level(&self) -> Option<i32> {
        self.level
    }

    fn choice(&self) -> CodingChoice {
        let &Self { record, signal, experimental, level, row_samples, signal_rows, reads_rows } =
            self;
        CodingChoice { record, signal, experimental, level, row_samples, signal_rows, reads_rows }
    }
}
