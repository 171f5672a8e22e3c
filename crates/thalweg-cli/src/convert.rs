//! `thalweg convert`: SLOW5 to BLOW5 and back, any compression to any other, all reads or some.

use std::path::PathBuf;
use std::sync::Arc;

use thalweg::Error;
use thalweg::format::slow5::{Encoder, Encoding, Header, RecordPress, SignalPress};
use thalweg::reads::{ReadFile, Selection};
use thalweg::write::ReadWriter;

use crate::common::{Failure, Outcome, ReadArgs, open, read_ids};
use crate::progress::Progress;

/// Convert between SLOW5 (text) and BLOW5 (binary), and between compressions
///
/// The name of OUT says which: .slow5 is text, .blow5 is binary.
///
/// Example: thalweg convert reads.slow5 reads.blow5 --record zstd --signal svb-zd
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file to convert
    input: PathBuf,
    /// The file to write; it appears when it is whole
    output: PathBuf,
    /// Compression of each record: none, zlib or zstd
    #[arg(long, value_name = "NAME")]
    record: Option<RecordPress>,
    /// Compression of each signal: none, svb-zd or ex-zd
    #[arg(long, value_name = "NAME")]
    signal: Option<SignalPress>,
    /// Allow compressions that no released reader knows (svb16-zd)
    #[arg(long)]
    experimental: bool,
    /// Only the reads in this list (one id a line), in its order
    #[arg(long, value_name = "LIST")]
    ids: Option<PathBuf>,
    /// Sort the reads by id
    #[arg(long, conflicts_with = "ids")]
    sort: bool,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let options = args.read.options();
    let control = options.control.clone();
    let file = open(&args.input, options)?;
    let header = Arc::new(output_header(args, file.header())?);
    let selection = selection(args, &file)?;
    let mut out = ReadWriter::create(&args.output, &header)?;
    let _progress = Progress::watch(&control, file.store().size());
    let frames = file.map_with(&selection, Encoder::new, move |encoder, read| {
        let mut frame = Vec::new();
        let encoder = encoder.as_mut().map_err(|fault| fault.clone())?;
        encoder.record(&header, read.record, read.samples, &mut frame)?;
        Ok::<_, thalweg::Fault>((read.record.read_id.to_owned(), frame))
    })?;
    for item in frames {
        let (id, frame) = item?.map_err(|fault| {
            Error::Usage(format!("{}: {}, expected {}", args.output.display(), fault.found, fault.expected).into())
        })?;
        out.push(&id, &frame)?;
    }
    out.finish()?;
    Ok(())
}

fn selection(args: &Args, file: &ReadFile) -> Result<Selection, Failure> {
    if let Some(list) = &args.ids {
        return Ok(Selection::Ids(Arc::new(read_ids(list)?)));
    }
    if !args.sort {
        return Ok(Selection::All);
    }
    let (index, _) = file.index()?;
    let mut ids: Vec<String> = index.iter().map(|(id, _)| id.to_owned()).collect();
    ids.sort_unstable();
    Ok(Selection::Ids(Arc::new(ids)))
}

fn output_header(args: &Args, from: &Header) -> Result<Header, Failure> {
    let text = match args.output.extension().and_then(|e| e.to_str()) {
        Some("slow5") => true,
        Some("blow5") => false,
        _ => {
            let message = format!("{}: the name must end in .slow5 (text) or .blow5 (binary)", args.output.display());
            return Err(Failure::Usage(message));
        }
    };
    if text && (args.record.is_some() || args.signal.is_some()) {
        return Err(Failure::Usage("SLOW5 is text: --record and --signal are for BLOW5".into()));
    }
    let record_press = if text { RecordPress::None } else { args.record.unwrap_or(RecordPress::Zstd) };
    let signal_press = if text { SignalPress::None } else { args.signal.unwrap_or(SignalPress::SvbZd) };
    let wanted = signal_press.is_released() || (args.experimental && signal_press == SignalPress::Svb16Zd);
    if !(wanted && record_press.is_released()) {
        let message = format!(
            "record {} with signal {}: no released program reads it{}",
            record_press.name(),
            signal_press.name(),
            if signal_press == SignalPress::Svb16Zd { "; --experimental writes it all the same" } else { "" }
        );
        return Err(Failure::Usage(message));
    }
    let encoding = if text { Encoding::Ascii } else { Encoding::Binary };
    Ok(Header { encoding, record_press, signal_press, ..from.clone() })
}
