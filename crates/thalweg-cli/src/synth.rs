//! `thalweg synth`: realistic reads at any size.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};

use thalweg::Error;
use thalweg::engine::default_threads;
use thalweg::format::slow5::{Encoder, RecordPress, SignalPress};
use thalweg::synth::{Recipe, Synth, SynthRead};
use thalweg::write::ReadWriter;

use crate::common::{Failure, Outcome, cancel_on_interrupt, parse_count};
use crate::progress;

/// Write a BLOW5 file of synthetic reads: realistic lengths, levels, dwell times and noise; the same for the same seed
///
/// Example: thalweg synth run.blow5 --samples 1.2G
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file to write; it appears when it is whole
    output: PathBuf,
    /// Samples in all, as in 250M or 1.2G; there are about 1.2 stored bytes to a sample
    #[arg(long, value_name = "N", default_value = "1.2G", value_parser = parse_count)]
    samples: u64,
    /// Everything random follows from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Compression of each record: none, zlib or zstd
    #[arg(long, value_name = "NAME", default_value = "zstd")]
    record: RecordPress,
    /// Compression of each signal: none, svb-zd, ex-zd or svb16-zd
    #[arg(long, value_name = "NAME", default_value = "svb-zd")]
    signal: SignalPress,
}

/// Records that each thread may be ahead.
const AHEAD: usize = 8;

pub(crate) fn run(args: &Args) -> Outcome {
    let control = cancel_on_interrupt();
    write(&args.output, args.samples, args.seed, (args.record, args.signal), &|| control.is_cancelled())
}

/// Writes a file and its index. Ends with [`Error::Cancelled`] soon after `stopped` says so.
pub(crate) fn write(
    path: &Path,
    samples: u64,
    seed: u64,
    (record, signal): (RecordPress, SignalPress),
    stopped: &dyn Fn() -> bool,
) -> Outcome {
    let synth = Synth::new(Recipe::with_samples(seed, samples))?;
    let header = synth.header(record, signal);
    let reads = synth.recipe().reads;
    let threads = default_threads() as u64;
    let mut out = ReadWriter::create(path, &header)?;
    let bar = std::io::IsTerminal::is_terminal(&std::io::stderr()).then(|| progress::bar(samples * 2));
    let failed = |fault: thalweg::Fault| {
        let message = format!("{}: {}, expected {}", path.display(), fault.found, fault.expected);
        Failure::Failed(Error::Usage(message.into()))
    };
    std::thread::scope(|scope| {
        // Thread t makes every threads-th read from t on, so taking turns restores the order.
        let turns: Vec<_> = (0..threads)
            .map(|t| {
                let (send, receive) = sync_channel(AHEAD);
                let (synth, header) = (&synth, &header);
                scope.spawn(move || {
                    let mut read = SynthRead::default();
                    let mut encoder = Encoder::new();
                    for i in (t..reads).step_by(threads as usize) {
                        synth.read(i, &mut read);
                        let frame = encoder.as_mut().map_err(|fault| fault.clone()).and_then(|e| read.frame(header, e));
                        let id = read.read_id.clone();
                        if send.send((id, read.samples.len(), frame)).is_err() {
                            return;
                        }
                    }
                });
                receive
            })
            .collect();
        for i in 0..reads {
            if stopped() {
                return Err(Failure::Failed(Error::Cancelled));
            }
            let Some(Ok((id, samples, frame))) = turns.get((i % threads) as usize).map(Receiver::recv) else { break };
            out.push(&id, &frame.map_err(failed)?)?;
            if let Some(bar) = &bar {
                bar.inc(samples as u64 * 2);
            }
        }
        Ok(())
    })?;
    let index = out.finish()?;
    thalweg::write::save_index(&index, &thalweg::reads::index_path(path))?;
    Ok(())
}
