//! Which gaps between wanted ranges are read, and which are skipped.

use std::ops::Range;

use super::Load;
use crate::model::StoreModel;

/// Bytes. The smallest gap that is tried besides none: a page.
const FIRST_LOG: u32 = 12;

/// A lean rule may take so many times the least time: what is read and not wanted fills the page
/// cache, and takes others' share of the store. Chosen for pages of networks
/// (docs/formats/graph.md).
const LEAN_SLACK: f64 = 1.25;

/// Bytes. What lies this close together is one extent in any case: half of what Linux reads ahead
/// by default (128 KiB), so that skipping it saves a disc nothing.
const NEAR: u64 = 64 << 10;

/// The rule that decides which gaps between wanted ranges are read.
///
/// Two ranges with a gap between them are one request if the gap is read, and two if it is skipped.
/// The rule counts, for gaps of none, 4 KiB, and on to a block in steps of about a half, the
/// requests and bytes that would come of each, and takes the smallest that costs the store least
/// time. That cost is the longer of transfer and requests, and half of the shorter: a store that
/// transfers and accepts requests at once is quickest where both take as long, so that no fixed
/// number suits all lists (docs/formats/hdf5.md, "Which gaps are read").
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

    /// The rule, unless the user gave a gap in bytes.
    #[must_use]
    pub fn or_given(self, gap: Option<u64>) -> Self {
        Self { given: gap, ..self }
    }

    /// The rule for readers whose unwanted bytes stay in the page cache: of the gaps that take at
    /// most a quarter more than the least time, the smallest.
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
        costs.iter().find(|cost| cost.1 <= least * self.slack).map_or(0, |cost| cost.0)
    }

    /// What one more request costs, in bytes: bandwidth over request rate.
    ///
    /// For readers that decide about one gap at a time and cannot see the list that
    /// [`GapRule::gap`] needs, this is the gap. Because half of the shorter of transfer and
    /// requests counts, the gap that a list gets is worth between half and twice of it.
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

/// The gaps that are tried: none, then 4 KiB, 6 KiB, 8 KiB, 12 KiB and so on up to a block.
fn ladder(block: usize) -> impl Iterator<Item = u64> {
    let steps = (FIRST_LOG..u64::BITS - 1).flat_map(|log| [1 << log, 3 << (log - 1)]);
    std::iter::once(0).chain(steps.take_while(move |gap| *gap <= block as u64))
}

/// Whether parts of one value, `own` bytes that lie in a span of `span` bytes, are fetched as one
/// extent, gaps included. An extent is a matter of layout: it is decided once for a file, before
/// its store is known. At most as much is read in vain as is wanted, or 64 KiB.
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
