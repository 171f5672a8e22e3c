//! Which gaps between wanted ranges are read, and which are skipped.

use std::ops::Range;

use super::Load;
use crate::model::StoreModel;

/// Base-2 logarithm of the smallest gap above 0 that is tried, in bytes: a page of 4 KiB.
const FIRST_LOG: u32 = 12;

/// A lean rule may take this multiple of the least time, because unwanted bytes fill the page cache
/// and use bandwidth that other readers need. Chosen for pages of networks (docs/formats/graph.md).
const LEAN_SLACK: f64 = 1.25;

/// Time that is shorter than this part of the latency is not worth unwanted bytes.
const LATENCY_SHARE: f64 = 0.1;

/// In bytes. Unwanted bytes up to this number never split an extent. It is half of the default
/// read-ahead of Linux (128 KiB): skipping fewer bytes saves a disc no time.
const NEAR: u64 = 64 << 10;

/// The rule that decides which gaps between wanted ranges are read.
///
/// Two ranges with a gap between them are one request if the gap is read, and two if it is skipped.
/// The rule tries a limit of 0, 4 KiB, 6 KiB, 8 KiB and so on up to a block. For each it counts the
/// resulting requests and bytes, and chooses the smallest limit with the least cost. The cost is
/// the longer of transfer time and request time plus half of the shorter. A store that transfers
/// and accepts requests at the same time is quickest if both take equally long, so that no fixed
/// limit suits all lists (docs/formats/hdf5.md, "Which gaps are read"). A longer limit must save
/// more than a tenth of the latency.
///
/// ```
/// use thalweg_io::model::StoreModel;
/// use thalweg_io::plan::GapRule;
///
/// // 10 kB wanted of each 100 kB.
/// let ranges: Vec<_> = (0..100).map(|i| i * 100_000..i * 100_000 + 10_000).collect();
/// assert_eq!(GapRule::new(&StoreModel::NVME).gap(&ranges, 1 << 20), 0, "skipping is cheap");
/// assert!(GapRule::new(&StoreModel::HDD).gap(&ranges, 1 << 20) >= 90_000, "a seek is not");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GapRule {
    model: StoreModel,
    given: Option<u64>,
    slack: f64,
}

impl GapRule {
    /// The rule for a store.
    pub fn new(model: &StoreModel) -> Self {
        Self { model: *model, given: None, slack: 1.0 }
    }

    /// Replaces the rule by a fixed gap in bytes, if one is given.
    #[must_use]
    pub fn or_given(self, gap: Option<u64>) -> Self {
        Self { given: gap, ..self }
    }

    /// The rule for readers whose unwanted bytes stay in the page cache: the smallest gap that
    /// takes at most a quarter more than the least time.
    #[must_use]
    pub fn lean(self) -> Self {
        Self { slack: LEAN_SLACK, ..self }
    }

    /// The store's model.
    pub fn model(&self) -> &StoreModel {
        &self.model
    }

    /// The longest gap, in bytes, that is read between `ranges`, which are in offset order;
    /// requests are at most `block` bytes.
    pub fn gap<'a, I>(&self, ranges: I, block: usize) -> u64
    where
        I: IntoIterator<Item = &'a Range<u64>>,
        I::IntoIter: Clone,
    {
        if let Some(gap) = self.given {
            return gap;
        }
        let ranges = ranges.into_iter();
        let cost = |gap| (gap, Load::of(ranges.clone(), gap, block).worth_s(&self.model));
        let costs: Vec<(u64, f64)> = ladder(block).map(cost).collect();
        let least = costs.iter().map(|cost| cost.1).fold(f64::INFINITY, f64::min);
        let most = least * self.slack + self.model.latency_s * LATENCY_SHARE;
        costs.iter().find(|cost| cost.1 <= most).map_or(0, |cost| cost.0)
    }

    /// The cost of one more request, in bytes: bandwidth over request rate.
    ///
    /// Readers that decide about one gap at a time, and do not have the list that [`GapRule::gap`]
    /// needs, read gaps up to this length. Because half of the shorter of transfer and requests
    /// counts, the gap for a list is worth between half and twice this number.
    ///
    /// ```
    /// use thalweg_io::{model::StoreModel, plan::GapRule};
    /// let model = StoreModel { bandwidth: 2e9, request_rate: 40e3, ..StoreModel::LOCAL };
    /// assert_eq!(GapRule::new(&model).break_even(), 50_000);
    /// ```
    pub fn break_even(&self) -> u64 {
        self.given.unwrap_or((self.model.bandwidth / self.model.request_rate.max(1.0)) as u64)
    }
}

/// The gaps that are tried: 0, then 4 KiB, 6 KiB, 8 KiB, 12 KiB and so on up to a block.
fn ladder(block: usize) -> impl Iterator<Item = u64> {
    let steps = (FIRST_LOG..u64::BITS - 1).flat_map(|log| [1 << log, 3 << (log - 1)]);
    std::iter::once(0).chain(steps.take_while(move |gap| *gap <= block as u64))
}

/// Whether the parts of one value are fetched as one extent, gaps included. The parts have `own`
/// bytes in a span of `span` bytes. The unwanted bytes are at most as many as the wanted bytes, or
/// 64 KiB if that is more. Extents depend only on the layout of the file, because they are chosen
/// before its store is known.
///
/// ```
/// use thalweg_io::plan::is_one_extent;
/// assert!(is_one_extent(1_000, 60_000));
/// assert!(is_one_extent(1_000_000, 1_900_000));
/// assert!(!is_one_extent(1_000_000, 2_100_000));
/// ```
pub fn is_one_extent(own: u64, span: u64) -> bool {
    span.saturating_sub(own) <= own.max(NEAR)
}
