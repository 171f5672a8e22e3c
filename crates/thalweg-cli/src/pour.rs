//! Reads of any number of files into new ones: what `filter`, `merge` and `split` share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg::format::slow5::{Encoder, Encoding, Header, Merged, RecordPress, SignalPress};
use thalweg::reads::{ReadSet, Selection};
use thalweg::{Error, Fault};

use crate::common::{Failure, Outcome};

/// How outputs are stored.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Coding {
    /// BLOW5: compression of each record: none, zlib or zstd
    #[arg(long, value_name = "NAME")]
    record: Option<RecordPress>,
    /// BLOW5: compression of each signal: none, svb-zd or ex-zd
    #[arg(long, value_name = "NAME")]
    signal: Option<SignalPress>,
}

impl Coding {
    /// Checks that files with this ending can be written so.
    pub(crate) fn check(&self, path: &Path) -> Outcome {
        let text = match path.extension().and_then(|e| e.to_str()) {
            Some("slow5") => true,
            Some("blow5") => false,
            _ => {
                let message = format!("{}: the name must end in .slow5 (text) or .blow5 (binary)", path.display());
                return Err(Failure::Usage(message));
            }
        };
        if text && (self.record.is_some() || self.signal.is_some()) {
            return Err(Failure::Usage("SLOW5 is text: --record and --signal are for BLOW5".into()));
        }
        if self.record.is_some_and(|press| !press.is_released())
            || self.signal.is_some_and(|press| !press.is_released())
        {
            return Err(Failure::Usage("no released program reads that compression".into()));
        }
        Ok(())
    }

    /// The header of an output at `path` that has the read groups and fields of `from`.
    pub(crate) fn header(&self, path: &Path, from: &Header) -> Header {
        let text = path.extension().is_some_and(|e| e == "slow5");
        let (encoding, record_press, signal_press) = if text {
            (Encoding::Ascii, RecordPress::None, SignalPress::None)
        } else {
            let signal = self.signal.unwrap_or(SignalPress::SvbZd);
            (Encoding::Binary, self.record.unwrap_or(RecordPress::Zstd), signal)
        };
        Header { encoding, record_press, signal_press, ..from.clone() }
    }
}

/// The headers of a data set as one.
pub(crate) fn merged(set: &ReadSet) -> Result<Merged, Failure> {
    Merged::new(set.headers()).map_err(|(file, fault)| {
        let path = set.paths().nth(file).map_or_else(String::new, |path| path.display().to_string());
        Failure::Failed(Error::Unsupported {
            file: path.into(),
            what: format!("{} (expected {}) beside the other files", fault.found, fault.expected).into(),
            advice: "convert files with different fields on their own".into(),
        })
    })
}

/// What one output is made of: the headers of its reads, as one and as it is written.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) path: PathBuf,
    pub(crate) merged: Merged,
    pub(crate) header: Header,
}

/// A read as it is stored in one of the targets.
pub(crate) struct Frame {
    pub(crate) target: usize,
    pub(crate) read_id: String,
    pub(crate) bytes: Vec<u8>,
}

/// Encodes reads of file number `file` on all cores, and hands them on in order. `target` says where the read with an
/// ordinal goes.
pub(crate) fn pour(
    set: &ReadSet,
    file: usize,
    selection: &Selection,
    targets: &Arc<Vec<Target>>,
    target: impl Fn(u64) -> Option<usize> + Send + Sync + 'static,
    mut push: impl FnMut(Frame) -> Outcome,
) -> Outcome {
    let shared = targets.clone();
    let frames = set.file(file)?.map_with(
        selection,
        || (Encoder::new(), Vec::new()),
        move |(encoder, aux), read| {
            let Some(to) = target(read.ordinal) else { return Ok(None) };
            let Some(Target { merged, header, .. }) = shared.get(to) else { return Ok(None) };
            let failed = |fault| (to, fault);
            let encoder = encoder.as_mut().map_err(|fault| failed(fault.clone()))?;
            let record = merged.record(file, read.header, read.record, aux).map_err(failed)?;
            let mut bytes = Vec::new();
            encoder.record(header, &record, read.samples, &mut bytes).map_err(failed)?;
            Ok::<_, (usize, Fault)>(Some(Frame { target: to, read_id: record.read_id.to_owned(), bytes }))
        },
    )?;
    for frame in frames {
        let frame = frame?.map_err(|(to, fault)| {
            let path = targets.get(to).map_or_else(String::new, |target| target.path.display().to_string());
            Error::Usage(format!("{path}: {}, expected {}", fault.found, fault.expected).into())
        })?;
        frame.map_or(Ok(()), &mut push)?;
    }
    Ok(())
}
