//! What makes a file slow, and what would be gained by mending it.

use std::time::Duration;

use thalweg_io::model::StoreModel;
use thalweg_io::plan::Load;

use super::layout::SMALL;
use super::{ArrayLayout, Costs, Predicted, of_libhdf5, of_thalweg};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingKind {
    /// Chunks of a dataset lie apart.
    Scattered,
    /// Chunks are short.
    SmallChunks,
    /// Decoding takes longer than the store.
    SlowFilter,
    /// A chunk is longer than libhdf5's cache, so that it is decoded again for each part of it that
    /// is read.
    LargeChunks,
}

impl FindingKind {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scattered => "scattered",
            Self::SmallChunks => "small_chunks",
            Self::SlowFilter => "slow_filter",
            Self::LargeChunks => "large_chunks",
        }
    }
}

/// Something that costs time, and its mending.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What.
    pub kind: FindingKind,
    /// In words.
    pub what: String,
    /// What whoever writes such files should set.
    pub writer: &'static str,
    /// Options of `thalweg convert --repack` that mend it; none where that does not.
    pub repack: Option<String>,
    /// The predicted times once that is done.
    pub gain: Option<Gain>,
}

/// Predicted times of the mended file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// thalweg's.
    pub thalweg: Predicted,
    /// That of a reader through libhdf5.
    pub libhdf5: Predicted,
    /// Bytes stored for its arrays: the last chunk of a dataset is stored whole, so that longer
    /// ones take more where no filter makes them shorter.
    pub stored: u64,
}

/// Decoded bytes of a good chunk: of those that are measured, longer ones gain nothing.
const GOOD_CHUNK: u64 = 4 << 20;

/// libhdf5's cache of chunks of a dataset, before its version 2 (`H5Pset_chunk_cache`).
const CACHE: u64 = 1 << 20;

/// Less than this share of the bytes is not worth a word.
const WORTH: f64 = 0.1;

/// Mended layouts: chunks beside each other, in other shapes, with other filters.
fn mended(
    layouts: &[ArrayLayout],
    rows: Option<u64>,
    filters: Option<&[&str]>,
) -> Vec<ArrayLayout> {
    let mend = |layout: &ArrayLayout| {
        let mut layout = layout.clone();
        layout.followed = layout.pairs;
        let (Some(chunk), None) = (&mut layout.chunk, &layout.library) else { return layout };
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

/// Finds what is wrong. `block` is how long thalweg's requests are at most.
pub(super) fn findings(
    layouts: &[ArrayLayout],
    (thalweg, libhdf5): (&Predicted, &Predicted),
    model: &StoreModel,
    index: Duration,
    costs: &Costs,
    block: usize,
) -> Vec<Finding> {
    let stored: u64 = layouts.iter().map(|layout| layout.stored).sum();
    if stored == 0 {
        return Vec::new();
    }
    let share = |bytes: u64| bytes as f64 / stored as f64;
    let gain = |layouts: &[ArrayLayout]| {
        // One run of bytes, or a few. What fills up a last chunk is not fetched.
        let fetched = |layout: &ArrayLayout| {
            if layout.filters.is_empty() { layout.stored.min(layout.bytes) } else { layout.stored }
        };
        let bytes: u64 = layouts.iter().map(fetched).sum();
        let load = Load { requests: bytes.div_ceil(block.max(1) as u64), bytes };
        Gain {
            thalweg: of_thalweg(layouts, load, 1, model, index, costs, thalweg.threads),
            libhdf5: of_libhdf5(layouts, model, index, costs),
            stored: layouts.iter().map(|layout| layout.stored).sum(),
        }
    };
    let mut found = Vec::new();
    let (pairs, followed) =
        layouts.iter().fold((0, 0), |(p, f), layout| (p + layout.pairs, f + layout.followed));
    let rows = good_rows(layouts);
    let small = share(layouts.iter().map(|layout| layout.small).sum());
    if pairs > 0 && (followed as f64) < pairs as f64 * (1.0 - WORTH) {
        let what = format!(
            "{:.0} % of {pairs} chunks do not follow the one before of their dataset: \
             {} jumps for a reader of whole datasets",
            100.0 * (pairs - followed) as f64 / pairs as f64,
            libhdf5.jumps
        );
        let chunk = if small > WORTH { Some(rows) } else { None };
        found.push(Finding {
            kind: FindingKind::Scattered,
            what,
            writer: "write each dataset's chunks together: gather more of a dataset \
                before it is flushed, in longer chunks",
            repack: Some(chunk.map_or_else(String::new, |rows| format!("--chunk {}", count(rows)))),
            gain: Some(gain(&mended(layouts, chunk, None))),
        });
    } else if small > WORTH {
        let what = format!(
            "{:.0} % of the bytes are in chunks shorter than {} KiB",
            100.0 * small,
            SMALL >> 10
        );
        found.push(Finding {
            kind: FindingKind::SmallChunks,
            what,
            writer: "set chunks of about 1 to 4 MiB (H5Pset_chunk), and a cache that \
                holds them (H5Pset_chunk_cache)",
            repack: Some(format!("--chunk {}", count(rows))),
            gain: Some(gain(&mended(layouts, Some(rows), None))),
        });
    }
    if layouts.iter().any(ArrayLayout::is_compressed)
        && (thalweg.is_bound_by_processor() || libhdf5.cpu_s > libhdf5.store_s)
    {
        let chunk = if small > WORTH { Some(rows) } else { None };
        let choices: [(&str, &[&str]); 3] = [
            ("none", &[]),
            ("shuffle+zstd", &["shuffle", "zstd"]),
            ("shuffle+lz4", &["shuffle", "lz4"]),
        ];
        let best = choices
            .iter()
            .map(|(name, filters)| (*name, gain(&mended(layouts, chunk, Some(filters)))))
            .min_by(|a, b| a.1.thalweg.total_s.total_cmp(&b.1.thalweg.total_s));
        if let Some((name, gain)) =
            best.filter(|(_, gain)| gain.thalweg.total_s < thalweg.total_s * (1.0 - WORTH))
        {
            let chunk = chunk.map_or_else(String::new, |rows| format!("--chunk {} ", count(rows)));
            found.push(Finding {
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
            });
        }
    }
    let large: u64 = layouts
        .iter()
        .filter(|layout| layout.chunk_bytes().is_some_and(|bytes| bytes > CACHE))
        .map(|layout| layout.stored)
        .sum();
    if share(large) > WORTH {
        let most = layouts.iter().filter_map(ArrayLayout::chunk_bytes).max().unwrap_or(0);
        found.push(Finding {
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
        });
    }
    let saved =
        |finding: &Finding| finding.gain.map_or(0.0, |gain| libhdf5.total_s - gain.libhdf5.total_s);
    found.sort_by(|a, b| saved(b).total_cmp(&saved(a)));
    found
}

/// Elements of the first dimension that make a good chunk, of the dataset with the most bytes.
fn good_rows(layouts: &[ArrayLayout]) -> u64 {
    let largest =
        layouts.iter().filter(|layout| layout.chunk.is_some()).max_by_key(|layout| layout.stored);
    let Some(layout) = largest else { return 1 };
    let row = layout.chunk.iter().flatten().skip(1).product::<u64>() * layout.element;
    let rows = (GOOD_CHUNK / row.max(1)).max(1);
    if rows.is_power_of_two() { rows } else { rows.next_power_of_two() / 2 }
}

/// A number of elements, as `--chunk` takes it.
fn count(rows: u64) -> String {
    match rows {
        rows if rows.is_multiple_of(1 << 20) => format!("{}Mi", rows >> 20),
        rows if rows.is_multiple_of(1 << 10) => format!("{}Ki", rows >> 10),
        rows => rows.to_string(),
    }
}
