//! Neutron events in NeXus files.

use std::path::Path;

use thalweg::synth::nexus::{
    ChunkCoding, ChunkOrder, DatasetLayout, Libver, NexusRecipe, PulseTimes, Weights,
};
use thalweg_io::urls;

use crate::common::parse_bytes;

const HEADING: &str = "NeXus events";

/// The properties of a file of events.
#[derive(Debug, clap::Args)]
pub(super) struct NexusArgs {
    /// Bytes of events, uncompressed; an event takes eight
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "1.6GB",
        value_parser = parse_bytes,
        help_heading = HEADING
    )]
    size: u64,
    /// Banks of detectors
    #[arg(long, value_name = "N", default_value_t = 40, help_heading = HEADING)]
    banks: u32,
    /// Distribution of events over banks: even; or skewed, with 3.5 times the mean in the first and
    /// a ninth of it in the last
    #[arg(long, value_name = "HOW", default_value = "skewed", help_heading = HEADING)]
    weights: Weights,
    /// Elements of a chunk, as in 2048 or 1Mi; or contiguous
    #[arg(long, value_name = "N", default_value = "2048", help_heading = HEADING)]
    chunk: DatasetLayout,
    /// Order of the chunks in the file: live (random, as events arrive), interleaved (the banks in
    /// turn), or ordered (dataset after dataset, as contiguous datasets always are)
    #[arg(long, value_name = "HOW", help_heading = HEADING)]
    order: Option<ChunkOrder>,
    /// Filters of the chunks: none, gzip, lz4, zstd, or one of these after shuffle as in
    /// shuffle+gzip; with a level as in gzip:6
    #[arg(long, value_name = "NAME", default_value = "none", help_heading = HEADING)]
    filter: ChunkCoding,
    /// Versions of libhdf5 that can read it: earliest (all), or latest (1.10 and later)
    #[arg(long, value_name = "WHICH", default_value = "earliest", help_heading = HEADING)]
    libver: Libver,
    /// What event_time_zero holds: seconds (float64), or nanoseconds (uint64)
    #[arg(long, value_name = "UNIT", default_value = "seconds", help_heading = HEADING)]
    pulse_times: PulseTimes,
    /// The mean number of events of a pulse
    #[arg(long, value_name = "N", default_value_t = 20_000.0, help_heading = HEADING)]
    events_per_pulse: f64,
}

impl NexusArgs {
    pub(super) fn recipe(&self, seed: u64) -> thalweg::Result<NexusRecipe> {
        let mut recipe = NexusRecipe {
            banks: self.banks,
            weights: self.weights,
            coding: self.filter,
            libver: self.libver,
            pulse_times: self.pulse_times,
            events_per_pulse: self.events_per_pulse,
            ..NexusRecipe::with_bytes(seed, self.size)
        };
        recipe.lay(self.chunk);
        if let Some(order) = self.order {
            recipe.order = order;
        }
        recipe.check()?;
        Ok(recipe)
    }
}

/// Writes a file of events. All cores make pieces; this thread writes them in the order of the
/// file.
pub(super) fn write(
    path: &Path,
    recipe: NexusRecipe,
    stopped: &dyn Fn() -> bool,
) -> thalweg::Result<()> {
    use thalweg::synth::nexus::{EncodedPiece, Encoder, NexusWriter, SynthRun};

    let failed = |fault: thalweg::Fault| {
        let message =
            format!("{}: {}, expected {}", urls::shown_path(path), fault.found, fault.expected);
        thalweg::Error::Usage(message.into())
    };
    let run = SynthRun::new(recipe)?;
    let mut out = NexusWriter::create(path, &run)?;
    let mut order = run.pieces();
    let bar = super::bar(run.bytes());
    let make = || {
        let mut encoder = Encoder::new(run.recipe().coding);
        let mut pieces = run.pieces();
        let mut at = 0;
        let run = &run;
        move |i: u64| {
            let piece = pieces.nth((i - at) as usize);
            at = i + 1;
            piece.map_or(Ok(EncodedPiece { bytes: Vec::new(), mask: 0 }), |piece| {
                encoder.encode(run, piece)
            })
        }
    };
    super::in_order(path, run.piece_count(), make, stopped, |encoded| {
        let encoded = encoded.map_err(failed)?;
        if let Some(piece) = order.next() {
            bar.inc(run.piece_bytes(piece));
            out.push(piece, &encoded)?;
        }
        Ok(())
    })?;
    out.finish()?;
    Ok(())
}
