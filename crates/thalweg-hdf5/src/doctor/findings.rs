//! Causes of slow reading, and the predicted gain of mending each.

use std::time::Duration;

use thalweg_io::model::StoreModel;
use thalweg_io::plan::Load;

use super::layout::SMALL;
use super::{ArrayLayout, Costs, Predicted, of_libhdf5, of_thalweg};

/// The kind of a cause of slow reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingKind {
    /// Consecutive chunks of a dataset are not adjacent in the file.
    Scattered,
    /// Chunks are short.
    SmallChunks,
    /// Decoding takes longer than the store.
    SlowFilter,
    /// A chunk is longer than libhdf5's chunk cache, so that libhdf5 decodes it again for each part
    /// that is read.
    LargeChunks,
}

impl FindingKind {
    /// The name of the kind in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scattered => "scattered",
            Self::SmallChunks => "small_chunks",
            Self::SlowFilter => "slow_filter",
            Self::LargeChunks => "large_chunks",
        }
    }
}

/// A cause of slow reading, and how to mend it.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The kind of the cause.
    pub kind: FindingKind,
    /// A description for the user.
    pub what: String,
    /// A setting for programs that write such files.
    pub writer: &'static str,
    /// Options of `thalweg convert --repack` that mend it; `None` if repacking does not help, or
    /// helps too little.
    pub repack: Option<String>,
    /// The predicted times of the mended file.
    pub gain: Option<Gain>,
}

/// Predicted times of the mended file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// The predicted time of thalweg.
    pub thalweg: Predicted,
    /// The predicted time of a reader through libhdf5.
    pub libhdf5: Predicted,
    /// Stored bytes of the arrays. The last chunk of a dataset is stored whole, so that longer
    /// chunks can take more bytes if they are not compressed.
    pub stored: u64,
}

/// Decoded bytes of a good chunk. In measurements, longer chunks gained nothing.
const GOOD_CHUNK: u64 = 4 << 20;

/// The least share of the bytes that is worth reporting.
const WORTH: f64 = 0.1;

/// A mended file is recommended if it is read this many times as fast at least. Predictions of
/// single runs are off by more than smaller gains (docs/doctor.md).
const LEAST_GAIN: f64 = 1.1;

/// The layouts of a mended file: chunks are adjacent, and may have other shapes and filters.
fn mended(
    layouts: &[ArrayLayout],
    rows: Option<u64>,
    filters: Option<&[&str]>,
) -> Vec<ArrayLayout> {
    let mend = |layout: &ArrayLayout| {
        let mut layout = layout.clone();
        layout.followed = layout.pairs;
        let Some(chunk) = &mut layout.chunk else { return layout };
        if let (Some(rows), [length, ..]) = (rows, &layout.shape[..]) {
            chunk[0] = rows.min(*length).max(chunk[0].min(*length)).max(1);
            let grid = layout
                .shape
                .iter()
                .zip(&*chunk)
                .map(|(length, part)| length.div_ceil(*part).max(1));
            layout.pieces = layout.pieces.min(grid.product());
            layout.pairs = layout.pieces.saturating_sub(1);
            (layout.followed, layout.small) = (layout.pairs, 0);
        }
        if let Some(filters) = filters {
            layout.filters = filters.iter().map(|&filter| filter.to_owned()).collect();
        }
        if layout.filters.is_empty() && (rows.is_some() || filters.is_some()) {
            layout.stored = layout.pieces * chunk.iter().product::<u64>() * layout.element;
        }
        layout
    };
    layouts.iter().map(mend).collect()
}

/// The arrays of a file, and the predictions for reading them.
pub(super) struct Examined<'a> {
    pub layouts: &'a [ArrayLayout],
    /// The time that thalweg takes.
    pub thalweg: &'a Predicted,
    /// The time that a reader through libhdf5 takes.
    pub libhdf5: &'a Predicted,
    pub model: &'a StoreModel,
    /// The time that finding the chunks takes.
    pub index: Duration,
    pub costs: &'a Costs,
    /// The longest request of thalweg, in bytes.
    pub block: usize,
}

impl Examined<'_> {
    /// The findings, the most costly first.
    pub(super) fn findings(&self) -> Vec<Finding> {
        if self.stored() == 0 {
            return Vec::new();
        }
        let small = self.share(|layout| layout.small) > WORTH;
        let rows = small.then(|| good_rows(self.layouts));
        let mut found = Vec::new();
        found.extend(self.scattered(rows).or_else(|| self.small_chunks(rows)));
        found.extend(self.slow_filter(rows));
        found.extend(self.large_chunks());
        for finding in &mut found {
            if finding.gain.is_some_and(|gain| !self.is_worth(&gain)) {
                finding.repack = None;
            }
        }
        let saved = |finding: &Finding| {
            finding.gain.map_or(0.0, |gain| self.libhdf5.total_s - gain.libhdf5.total_s)
        };
        found.sort_by(|a, b| saved(b).total_cmp(&saved(a)));
        found
    }

    /// Whether a mended file is read noticeably faster by thalweg or through libhdf5.
    fn is_worth(&self, gain: &Gain) -> bool {
        let is_faster =
            |before: &Predicted, after: &Predicted| before.total_s >= after.total_s * LEAST_GAIN;
        is_faster(self.thalweg, &gain.thalweg) || is_faster(self.libhdf5, &gain.libhdf5)
    }

    fn stored(&self) -> u64 {
        self.layouts.iter().map(|layout| layout.stored).sum()
    }

    /// The sum of `bytes` over all arrays, as a share of the stored bytes.
    fn share(&self, bytes: impl Fn(&ArrayLayout) -> u64) -> f64 {
        self.layouts.iter().map(bytes).sum::<u64>() as f64 / self.stored() as f64
    }

    /// The predictions for mended layouts.
    fn gain(&self, layouts: &[ArrayLayout]) -> Gain {
        let Self { model, index, costs, .. } = *self;
        // Adjacent chunks are fetched as one run of bytes, or a few. The padding of an uncompressed
        // last chunk is not fetched.
        let fetched = |layout: &ArrayLayout| {
            if layout.filters.is_empty() { layout.stored.min(layout.bytes) } else { layout.stored }
        };
        let bytes: u64 = layouts.iter().map(fetched).sum();
        let load = Load { requests: bytes.div_ceil(self.block.max(1) as u64), bytes };
        Gain {
            thalweg: of_thalweg(layouts, load, 1, model, index, costs, self.thalweg.threads),
            libhdf5: of_libhdf5(layouts, model, index, costs),
            stored: layouts.iter().map(|layout| layout.stored).sum(),
        }
    }

    /// The finding about scattered chunks. `rows` is the length of better chunks, if chunks are
    /// also too short.
    fn scattered(&self, rows: Option<u64>) -> Option<Finding> {
        let pairs: u64 = self.layouts.iter().map(|layout| layout.pairs).sum();
        let followed: u64 = self.layouts.iter().map(|layout| layout.followed).sum();
        if pairs == 0 || followed as f64 >= pairs as f64 * (1.0 - WORTH) {
            return None;
        }
        let what = format!(
            "{:.0} % of {pairs} chunks do not follow the one before of their dataset: \
             {} jumps for a reader of whole datasets",
            100.0 * (pairs - followed) as f64 / pairs as f64,
            self.libhdf5.jumps
        );
        Some(Finding {
            kind: FindingKind::Scattered,
            what,
            writer: "write each dataset's chunks together: gather more of a dataset \
                before it is flushed, in longer chunks",
            repack: Some(rows.map_or_else(String::new, |rows| format!("--chunk {}", count(rows)))),
            gain: Some(self.gain(&mended(self.layouts, rows, None))),
        })
    }

    /// The finding about short chunks. `rows` is the length of better chunks, if chunks are too
    /// short.
    fn small_chunks(&self, rows: Option<u64>) -> Option<Finding> {
        let rows = rows?;
        let what = format!(
            "{:.0} % of the bytes are in chunks shorter than {} KiB",
            100.0 * self.share(|layout| layout.small),
            SMALL >> 10
        );
        Some(Finding {
            kind: FindingKind::SmallChunks,
            what,
            writer: "set chunks of about 1 to 4 MiB (H5Pset_chunk), and a cache that \
                holds them (H5Pset_chunk_cache)",
            repack: Some(format!("--chunk {}", count(rows))),
            gain: Some(self.gain(&mended(self.layouts, Some(rows), None))),
        })
    }

    /// The finding about filters that take longer than the store. `rows` is the length of better
    /// chunks, if chunks are also too short.
    fn slow_filter(&self, rows: Option<u64>) -> Option<Finding> {
        let Self { thalweg, libhdf5, .. } = *self;
        let slow = thalweg.is_bound_by_processor() || libhdf5.cpu_s > libhdf5.store_s;
        if !slow || !self.layouts.iter().any(ArrayLayout::is_compressed) {
            return None;
        }
        let choices: [(&str, &[&str]); 3] = [
            ("none", &[]),
            ("shuffle+zstd", &["shuffle", "zstd"]),
            ("shuffle+lz4", &["shuffle", "lz4"]),
        ];
        let (name, gain) = choices
            .iter()
            .map(|(name, filters)| (*name, self.gain(&mended(self.layouts, rows, Some(filters)))))
            .min_by(|a, b| a.1.thalweg.total_s.total_cmp(&b.1.thalweg.total_s))
            .filter(|(_, gain)| gain.thalweg.total_s < thalweg.total_s * (1.0 - WORTH))?;
        let chunk = rows.map_or_else(String::new, |rows| format!("--chunk {} ", count(rows)));
        Some(Finding {
            kind: FindingKind::SlowFilter,
            what: format!(
                "decoding takes {:.2} s of processor time ({:.2} s through libhdf5), \
                 the store {:.2} s",
                thalweg.cpu_s, libhdf5.cpu_s, thalweg.store_s
            ),
            writer: "leave compression out, or take LZ4 or zstd with shuffle, \
                where reading must be fast",
            repack: Some(format!("{chunk}--filter {name}")),
            gain: Some(gain),
        })
    }

    fn large_chunks(&self) -> Option<Finding> {
        // Chunks that this doctor asks for are none: what it gains is more than the cache costs.
        let is_large = |layout: &ArrayLayout| layout.chunk_bytes().is_some_and(|n| n > GOOD_CHUNK);
        if self.share(|layout| if is_large(layout) { layout.stored } else { 0 }) <= WORTH {
            return None;
        }
        let most = self.layouts.iter().filter_map(ArrayLayout::chunk_bytes).max().unwrap_or(0);
        Some(Finding {
            kind: FindingKind::LargeChunks,
            what: format!(
                "chunks of up to {:.1} MiB do not fit into the cache of 1 MiB that \
                 libhdf5 before 2.0 gives a dataset: who reads parts of a chunk through it \
                 decodes, or reads, all of it each time; thalweg and reads of whole chunks do not \
                 mind",
                most as f64 / f64::from(1 << 20)
            ),
            writer: "have readers set a cache of chunks that holds a few \
                (rdcc_nbytes in h5py, H5Pset_chunk_cache)",
            repack: None,
            gain: None,
        })
    }
}

/// Elements of the first dimension in a good chunk of the chunked dataset with the most stored
/// bytes.
fn good_rows(layouts: &[ArrayLayout]) -> u64 {
    let largest =
        layouts.iter().filter(|layout| layout.chunk.is_some()).max_by_key(|layout| layout.stored);
    let Some(layout) = largest else { return 1 };
    let row = layout.chunk.iter().flatten().skip(1).product::<u64>() * layout.element;
    let rows = (GOOD_CHUNK / row.max(1)).max(1);
    if rows.is_power_of_two() { rows } else { rows.next_power_of_two() / 2 }
}

/// A number of elements in the notation of `--chunk`.
fn count(rows: u64) -> String {
    match rows {
        rows if rows.is_multiple_of(1 << 20) => format!("{}Mi", rows >> 20),
        rows if rows.is_multiple_of(1 << 10) => format!("{}Ki", rows >> 10),
        rows => rows.to_string(),
    }
}
