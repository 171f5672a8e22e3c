//! Neighbour lists of many vertices, held in memory.

/// Neighbour lists of many vertices. The vertices ascend.
#[derive(Debug, Default)]
pub(crate) struct GroupedLists {
    /// The vertices, ascending.
    pub(crate) keys: Vec<u64>,
    /// Where each vertex's list ends in `ids`.
    pub(crate) ends: Vec<usize>,
    /// The vertices at the other ends, ascending in each list.
    pub(crate) ids: Vec<u64>,
    /// The numbers of the edges, if they have any.
    pub(crate) numbers: Vec<u64>,
}

impl GroupedLists {
    /// The lists in order: the vertex, its neighbours, the numbers of the edges.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (u64, &[u64], &[u64])> {
        let mut from = 0;
        self.keys.iter().zip(&self.ends).map(move |(key, end)| {
            let range = std::mem::replace(&mut from, *end)..*end;
            (*key, &self.ids[range.clone()], self.numbers.get(range).unwrap_or_default())
        })
    }

    /// Sorts the ids of each list.
    pub(crate) fn sort_lists(&mut self) {
        let mut from = 0;
        for end in &self.ends {
            let list = &mut self.ids[std::mem::replace(&mut from, *end)..*end];
            if list.len() > 1 && !list.is_sorted() {
                list.sort_unstable();
            }
        }
    }

    /// Ends the list of a vertex after the ids so far.
    pub(crate) fn end_list(&mut self, key: u64) {
        self.keys.push(key);
        self.ends.push(self.ids.len());
    }
}
