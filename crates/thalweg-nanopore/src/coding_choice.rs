//! A coding out of the options that users name.

use std::borrow::Cow;

use thalweg_io::{Error, Result};

use crate::fast5::Compression;
use crate::format::{Coding, Format};
use crate::pod5::write::{Pod5Layout, SignalCoding};
use crate::slow5::{RecordPress, SignalPress};

/// The level that ONT's own tools compress with.
const FAST5_GZIP_LEVEL: i32 = 1;

/// What a user says about how reads are stored. What is not said is as each format's own tools
/// have it.
#[derive(Debug, Clone, Copy, Default)]
pub struct CodingChoice {
    /// BLOW5: the compression of each record.
    pub record: Option<RecordPress>,
    /// The compression of each signal. BLOW5: none, svb-zd or ex-zd; POD5: none or vbz; FAST5:
    /// none, zlib or vbz.
    pub signal: Option<SignalPress>,
    /// BLOW5: whether compressions are allowed that no released reader supports (svb16-zd).
    pub experimental: bool,
    /// POD5 and FAST5: the level of zstd within vbz; FAST5: the level of zlib.
    pub level: Option<i32>,
    /// POD5: the most samples in a row of the Signal table.
    pub row_samples: Option<u32>,
    /// POD5: rows of a batch of the Signal table.
    pub signal_rows: Option<u32>,
    /// POD5: rows of a batch of the Reads table.
    pub reads_rows: Option<u32>,
}

fn usage<T>(message: impl Into<Cow<'static, str>>) -> Result<T> {
    Err(Error::Usage(message.into()))
}

impl CodingChoice {
    /// The coding in a format.
    ///
    /// # Errors
    /// [`Error::Usage`] for what the format does not have.
    pub fn coding(&self, format: Format) -> Result<Coding> {
        let rows =
            self.row_samples.is_some() || self.signal_rows.is_some() || self.reads_rows.is_some();
        if rows && format != Format::Pod5 {
            return usage("row_samples, signal_rows and reads_rows are for POD5");
        }
        if self.level.is_some() && matches!(format, Format::Slow5 | Format::Blow5) {
            return usage("level is for POD5 and FAST5");
        }
        match format {
            Format::Slow5 if self.record.is_some() || self.signal.is_some() => {
                usage("SLOW5 is text: record and signal are for BLOW5")
            }
            Format::Slow5 => Ok(Coding::Slow5),
            Format::Blow5 => self.blow5(),
            Format::Pod5 => self.pod5(),
            Format::Fast5 => self.fast5(),
            other => usage(format!("{other} files are read, but not written")),
        }
    }

    /// Whether reads must be encoded again, even from a file of the same coding.
    pub fn recodes(&self) -> bool {
        self.record.is_some()
            || self.signal.is_some()
            || self.level.is_some()
            || self.row_samples.is_some()
    }

    fn blow5(&self) -> Result<Coding> {
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
                "; experimental writes it all the same"
            } else {
                ""
            }
        );
        usage(message)
    }

    fn fast5(&self) -> Result<Coding> {
        if self.record.is_some() {
            return usage("record is for BLOW5; FAST5 compresses signals only");
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
                return usage(message);
            }
        };
        Ok(Coding::Fast5(compression))
    }

    fn pod5(&self) -> Result<Coding> {
        if self.record.is_some() {
            return usage("record is for BLOW5; POD5 compresses signals only");
        }
        let defaults = Pod5Layout::default();
        let coding = match self.signal {
            None | Some(SignalPress::Vbz) => {
                self.level.map_or(defaults.coding, |level| SignalCoding::Vbz { level })
            }
            Some(SignalPress::None) if self.level.is_some() => {
                return usage("level is for vbz, not for signals without compression");
            }
            Some(SignalPress::None) => SignalCoding::Plain,
            Some(other) => {
                let message = format!("signal {}: POD5 has none and vbz", other.name());
                return usage(message);
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
