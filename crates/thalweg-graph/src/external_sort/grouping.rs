//! Grouping the edges of a bucket by key, in memory.

use crate::storage::grouped_lists::GroupedLists;

/// Keys with a span of more than this many times their number are sparse: counting each possible
/// key would take longer than sorting.
const SPARSE: u64 = 4;

/// Bits that a pass of the radix sort sorts by: its counts fit the L1 cache.
const DIGIT: u32 = 11;

/// The edges of a bucket, and buffers that are reused from one bucket to the next.
#[derive(Debug, Default)]
pub(super) struct BucketEdges {
    pub(super) keys: Vec<u64>,
    /// The vertex at the other end of each edge.
    pub(super) others: Vec<u64>,
    /// The number of each edge; empty if edges have none.
    pub(super) numbers: Vec<u64>,
    starts: Vec<u32>,
    sorted: Vec<(u64, u64)>,
    pairs: Vec<(u32, u32)>,
    spare: Vec<(u32, u32)>,
    out: GroupedLists,
}

impl BucketEdges {
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.others.clear();
        self.numbers.clear();
    }

    /// Groups the edges by key.
    pub(super) fn grouped(&mut self) -> &GroupedLists {
        self.out.keys.clear();
        self.out.ends.clear();
        self.out.ids.clear();
        self.out.numbers.clear();
        let mut least = u64::MAX;
        let mut most = 0;
        for key in &self.keys {
            least = least.min(*key);
            most = most.max(*key);
        }
        let count = self.keys.len();
        if count == 0 {
            return &self.out;
        }
        let span = most - least;
        let is_sparse = span > SPARSE * count as u64;
        let fits_u32 = count <= u32::MAX as usize;
        if is_sparse && fits_u32 && span <= u32::MAX.into() && self.numbers.is_empty() {
            self.group_by_radix(least, span);
        } else if is_sparse || !fits_u32 {
            self.group_by_comparing();
        } else {
            self.group_by_counting(least, most);
        }
        &self.out
    }

    /// Groups edges without numbers, whose keys are sparse.
    fn group_by_radix(&mut self, least: u64, span: u64) {
        let Self { keys, others, pairs, spare, out, .. } = self;
        pairs.clear();
        pairs.extend(keys.iter().zip(0..).map(|(key, place)| ((key - least) as u32, place)));
        radix_sort(pairs, spare, 64 - span.leading_zeros());
        out.ids.extend(pairs.iter().map(|pair| others[pair.1 as usize]));
        out.keys.reserve(pairs.len());
        out.ends.reserve(pairs.len());
        for (place, (key, _)) in pairs.iter().enumerate() {
            if pairs.get(place + 1).is_none_or(|next| next.0 != *key) {
                out.keys.push(least + u64::from(*key));
                out.ends.push(place + 1);
            }
        }
        out.sort_lists();
    }

    /// Groups edges of any keys.
    fn group_by_comparing(&mut self) {
        let Self { keys, others, numbers, out, .. } = self;
        let number = |place: usize| numbers.get(place).copied().unwrap_or_default();
        let mut edges: Vec<(u64, u64, u64)> =
            (0..keys.len()).map(|i| (keys[i], others[i], number(i))).collect();
        edges.sort_unstable();
        for same in edges.chunk_by(|a, b| a.0 == b.0) {
            out.ids.extend(same.iter().map(|edge| edge.1));
            if !numbers.is_empty() {
                out.numbers.extend(same.iter().map(|edge| edge.2));
            }
            out.end_list(same[0].0);
        }
    }

    /// Groups edges whose keys are dense: counts the edges of each key, then places them.
    fn group_by_counting(&mut self, least: u64, most: u64) {
        let Self { keys, starts, out, .. } = self;
        starts.clear();
        starts.resize((most - least) as usize + 1, 0);
        keys.iter().for_each(|key| starts[(key - least) as usize] += 1);
        let mut sum = 0;
        for (key, start) in (least..=most).zip(&mut *starts) {
            let count = std::mem::replace(start, sum);
            sum += count;
            if count > 0 {
                out.keys.push(key);
                out.ends.push(sum as usize);
            }
        }
        if self.numbers.is_empty() {
            self.place_ids(least);
        } else {
            self.place_numbered(least);
        }
    }

    fn place_ids(&mut self, least: u64) {
        let Self { keys, others, starts, out, .. } = self;
        out.ids.resize(keys.len(), 0);
        for (key, other) in keys.iter().zip(&*others) {
            let start = &mut starts[(key - least) as usize];
            out.ids[*start as usize] = *other;
            *start += 1;
        }
        out.sort_lists();
    }

    fn place_numbered(&mut self, least: u64) {
        let Self { keys, others, numbers, starts, sorted, out, .. } = self;
        sorted.resize(keys.len(), (0, 0));
        for ((key, other), number) in keys.iter().zip(&*others).zip(&*numbers) {
            let start = &mut starts[(key - least) as usize];
            sorted[*start as usize] = (*other, *number);
            *start += 1;
        }
        let mut from = 0;
        for end in &out.ends {
            sorted[std::mem::replace(&mut from, *end)..*end].sort_unstable();
        }
        out.ids.extend(sorted.iter().map(|edge| edge.0));
        out.numbers.extend(sorted.iter().map(|edge| edge.1));
    }
}

/// Sorts pairs by their first numbers, which have at most `bits` bits. The sort is stable.
fn radix_sort(pairs: &mut Vec<(u32, u32)>, spare: &mut Vec<(u32, u32)>, bits: u32) {
    spare.resize(pairs.len(), (0, 0));
    for shift in (0..bits).step_by(DIGIT as usize) {
        let digit = |pair: &(u32, u32)| (pair.0 >> shift) as usize & ((1 << DIGIT) - 1);
        let mut starts = [0_u32; 1 << DIGIT];
        pairs.iter().for_each(|pair| starts[digit(pair)] += 1);
        let mut sum = 0;
        starts.iter_mut().for_each(|start| sum += std::mem::replace(start, sum));
        for pair in pairs.iter() {
            let start = &mut starts[digit(pair)];
            spare[*start as usize] = *pair;
            *start += 1;
        }
        std::mem::swap(pairs, spare);
    }
}
