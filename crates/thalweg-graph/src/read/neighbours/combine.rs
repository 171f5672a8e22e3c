//! Merging a vertex's neighbour list from its parts in several segments and the log.

use thalweg_io::Result;

use super::list::{EdgeEnd, SortedEnds};
use super::locate::{ListPart, LocatedLists};
use crate::read::network::Network;

/// Buffers for merging a list, reused from one list to the next.
#[derive(Default)]
pub(super) struct MergeBuffers<T> {
    list: SortedEnds<T>,
    /// The neighbours along one adjacency.
    own: SortedEnds<T>,
    /// The ends that are added to or removed from these.
    more: SortedEnds<T>,
}

impl Network {
    /// Merges the list of a vertex from all segments and the log.
    pub(super) fn combine<'m, T: EdgeEnd>(
        &self,
        found: &LocatedLists<'_>,
        vertex: usize,
        buffers: &'m mut MergeBuffers<T>,
    ) -> Result<&'m [T]> {
        let MergeBuffers { list, own, more } = buffers;
        list.len = 0;
        for number in 0..found.adjacencies.len() {
            merge_adjacency(found, vertex, number, own, more)?;
            if list.len == 0 {
                std::mem::swap(list, own);
            } else {
                list.merge(own.all());
            }
        }
        Ok(list.all())
    }
}

/// Replaces `own` by the neighbours along one adjacency.
fn merge_adjacency<T: EdgeEnd>(
    found: &LocatedLists<'_>,
    vertex: usize,
    number: usize,
    own: &mut SortedEnds<T>,
    more: &mut SortedEnds<T>,
) -> Result<()> {
    own.len = 0;
    let parts = found.parts(vertex).iter().filter(|part| part.adjacency == number);
    for ListPart { reader, added, removed, .. } in parts {
        if let Some((lists, range)) = removed {
            T::read(lists, &reader.segment, range.clone(), more)?;
            own.subtract(more.all());
        }
        if let Some((lists, range)) = added {
            if own.len == 0 {
                T::read(lists, &reader.segment, range.clone(), own)?;
            } else {
                T::read(lists, &reader.segment, range.clone(), more)?;
                own.merge(more.all());
            }
        }
    }
    if let Some((_, change)) = found.changes(vertex).find(|(adjacency, _)| *adjacency == number) {
        own.subtract(more.set(&change.removed));
        own.merge(more.set(&change.added));
    }
    if found.skips_loops[number] {
        own.retain(|end| end.id() != found.vertices[vertex]);
    }
    Ok(())
}
