//! FASTQ files.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use thalweg::Error;
use thalweg::fastq::{FastqFile, Target, schema};
use thalweg::new_file::{Existing, Inputs, NewFile};

use crate::arrow::Rows;
use crate::buffer::Buffer;
use crate::run::run;
use crate::stream::{BatchStream, Item};

/// An open file.
#[pyclass(frozen, module = "thalweg._thalweg")]
pub(crate) struct Fastq {
    pub(crate) file: FastqFile,
}

/// Reads, bases, GC; n50, min, median, mean and max of lengths; bases of each quality.
type Figures = (u64, u64, u64, Option<(u64, u64, u64, f64, u64)>, Buffer);

/// Reads, bases, bytes of text, bytes written.
type Written = (u64, u64, u64, u64);

#[pymethods]
impl Fastq {
    #[getter]
    fn path(&self) -> Option<OsString> {
        self.file.path().map(OsString::from)
    }

    #[getter]
    fn compression(&self) -> &'static str {
        self.file.compression().name()
    }

    #[getter]
    fn note(&self) -> Option<&str> {
        self.file.note()
    }

    /// The number of reads and of bases.
    fn count(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        run(py, || self.file.count().map(|count| (count.reads, count.bases)))
    }

    fn summary(&self, py: Python<'_>) -> PyResult<Figures> {
        let summary = run(py, || self.file.summary())?;
        let lengths = summary.lengths.map(|of| (of.n50, of.min, of.median, of.mean, of.max));
        let qualities = Buffer::ids(summary.qualities.to_vec());
        Ok((summary.reads, summary.bases, summary.gc, lengths, qualities))
    }

    /// All records as batches.
    fn batches(&self, py: Python<'_>) -> PyResult<BatchStream> {
        let batches = run(py, || self.file.batches())?;
        let items = batches.map(|batch| Ok(Item { rows: Rows::Kept(batch?), file: 0 }));
        Ok(BatchStream::new(schema(), Box::new(items)))
    }

    /// Writes the text in another compression: "none", "gzip" or "bgzf".
    fn convert(
        &self,
        py: Python<'_>,
        output: PathBuf,
        compression: &str,
        level: u8,
        verify: bool,
        replace: bool,
    ) -> PyResult<Written> {
        run(py, || {
            let target = match compression {
                "none" => Target::Plain,
                "gzip" => Target::Gzip(level.into()),
                "bgzf" => Target::Bgzf(level.into()),
                other => {
                    let expected = r#""none", "gzip" or "bgzf""#;
                    let what = format!("compression: found {other:?}, expected {expected}");
                    return Err(Error::Usage(what.into()));
                }
            };
            let existing = if replace { Existing::Replace } else { Existing::Keep };
            Inputs::new(self.file.path()).check(&output, existing)?;
            let mut out = NewFile::create(&output)?;
            let done = self.file.convert(target, verify, None, |part| out.push(part))?;
            out.finish()?;
            Ok((done.count.reads, done.count.bases, done.text, done.written))
        })
    }
}
