//! The options of each format that is written.

use thalweg::format::Format;
use thalweg::format::fast5::Compression;
use thalweg::format::pod5::write::{Pod5Layout, SignalCoding};
use thalweg::format::slow5::{RecordPress, SignalPress};
use thalweg::write::Coding;

use crate::arrays;
use crate::common::Failure;

/// The level that ONT's own tools compress with.
const FAST5_GZIP_LEVEL: i32 = 1;

/// How reads are stored, for every verb that writes them.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CodingArgs {
    /// BLOW5: compression of each record: none, zlib or zstd
    #[arg(long, value_name = "NAME")]
    record: Option<RecordPress>,
    /// Compression of each signal. BLOW5: none, svb-zd or ex-zd; POD5: none or vbz; FAST5: none,
    /// zlib or vbz
    #[arg(long, value_name = "NAME")]
    signal: Option<SignalPress>,
    /// BLOW5: allow compressions that no released reader supports (svb16-zd)
    #[arg(long)]
    experimental: bool,
    /// POD5 and FAST5: level of zstd within vbz; FAST5: level of zlib
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
        let rows =
            self.row_samples.is_some() || self.signal_rows.is_some() || self.reads_rows.is_some();
        if rows && format != Format::Pod5 {
            return Err(Failure::Usage(
                "--row-samples, --signal-rows and --reads-rows are for POD5".into(),
            ));
        }
        if self.level.is_some() && matches!(format, Format::Slow5 | Format::Blow5) {
            return Err(Failure::Usage("--level is for POD5 and FAST5".into()));
        }
        match format {
            Format::Slow5 if self.record.is_some() || self.signal.is_some() => {
                Err(Failure::Usage("SLOW5 is text: --record and --signal are for BLOW5".into()))
            }
            Format::Slow5 => Ok(Coding::Slow5),
            Format::Blow5 => self.blow5(),
            Format::Pod5 => self.pod5(),
            Format::Fast5 => self.fast5(),
            other => Err(Failure::Usage(format!("{other} files are read, but not written"))),
        }
    }

    /// Whether signals must be encoded again, even from a file of the same coding.
    pub(crate) fn recodes(&self) -> bool {
        self.signal.is_some() || self.level.is_some() || self.row_samples.is_some()
    }

    fn blow5(&self) -> Result<Coding, Failure> {
        let record = self.record.unwrap_or(RecordPress::Zstd);
        let signal = self.signal.unwrap_or(SignalPress::SvbZd);
        let wanted = signal.is_released() || (self.experimental && signal == SignalPress::Svb16Zd);
        if wanted && record.is_released() {
            return Ok(Coding::Blow5(record, signal));
        }
        let message = format!(
            "record {} with signal {}: no released program reads it{}",
            record.name(),
            signal.name(),
            if signal == SignalPress::Svb16Zd {
                "; --experimental writes it all the same"
            } else {
                ""
            }
        );
        Err(Failure::Usage(message))
    }

    fn fast5(&self) -> Result<Coding, Failure> {
        arrays::check_fast5()?;
        if self.record.is_some() {
            return Err(Failure::Usage(
                "--record is for BLOW5; FAST5 compresses signals only".into(),
            ));
        }
        let compression = match (self.signal, self.level) {
            (None | Some(SignalPress::Vbz), None) => Compression::default(),
            (None | Some(SignalPress::Vbz), Some(level)) => Compression::Vbz(level),
            (Some(SignalPress::Zlib), level)
                if level.is_none_or(|level| (0..=9).contains(&level)) =>
            {
                Compression::Gzip(level.unwrap_or(FAST5_GZIP_LEVEL))
            }
            (Some(SignalPress::None), None) => Compression::None,
            _ => {
                let message =
                    "FAST5 has vbz, zlib with levels 0 to 9, and none, which has no level";
                return Err(Failure::Usage(message.into()));
            }
        };
        Ok(Coding::Fast5(compression))
    }

    fn pod5(&self) -> Result<Coding, Failure> {
        if self.record.is_some() {
            return Err(Failure::Usage(
                "--record is for BLOW5; POD5 compresses signals only".into(),
            ));
        }
        let defaults = Pod5Layout::default();
        let coding = match self.signal {
            None | Some(SignalPress::Vbz) => {
                self.level.map_or(defaults.coding, |level| SignalCoding::Vbz { level })
            }
            Some(SignalPress::None) if self.level.is_some() => {
                return Err(Failure::Usage(
                    "--level is for vbz, not for signals without compression".into(),
                ));
            }
            Some(SignalPress::None) => SignalCoding::Plain,
            Some(other) => {
                let message = format!("--signal {}: POD5 has none and vbz", other.name());
                return Err(Failure::Usage(message));
            }
        };
        let rows = |asked: Option<u32>, default| asked.map_or(default, |rows| rows as usize);
        Ok(Coding::Pod5(Pod5Layout {
            coding,
            row_samples: self.row_samples.unwrap_or(defaults.row_samples),
            signal_rows: rows(self.signal_rows, defaults.signal_rows),
            reads_rows: rows(self.reads_rows, defaults.reads_rows),
            ..defaults
        }))
    }
}
