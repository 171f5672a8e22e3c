//! Rebuilding a population of edges.

use thalweg_io::Result;

use super::attributes::write_edge_table;
use super::damaged::DamagedNetwork;
use super::edge_merge::{EdgeMerge, stamped};
use super::gaps::VertexGaps;
use super::report::{LostRecords, RepairSummary};
use crate::external_sort::EdgeSorter;
use crate::storage::column::NumberCoding;
use crate::storage::footer::EdgeSection;
use crate::storage::lists::{ListsMeta, ListsWriter};
use crate::storage::schema::{PopulationEntry, Side};
use crate::storage::segment::SegmentWriter;

/// Vertices of a population whose lists are not whole.
struct PopulationGaps {
    /// By side, then by the stamp of the lists.
    by_side: [Vec<VertexGaps>; 2],
    /// Sources whose list in any segment is not whole.
    sources: VertexGaps,
}

impl DamagedNetwork<'_> {
    /// Writes the lists of a population and the table of its attributes, and updates its entry.
    pub(super) fn population(
        &self,
        segment: &mut SegmentWriter,
        population: usize,
        known: &mut PopulationEntry,
    ) -> Result<(Vec<EdgeSection>, RepairSummary)> {
        let mut gaps = self.source_gaps(population)?;
        let from_targets = self.edges_from_targets(population, &mut gaps)?;
        let mut merge = EdgeMerge::new(self, population, known);
        from_targets.drain(&mut |lists| {
            for (vertex, ids, stamped) in lists.lists() {
                merge.write_until(segment, Some(vertex))?;
                merge.write_list(segment, vertex, ids, stamped)?;
            }
            Ok(())
        })?;
        merge.write_until(segment, None)?;
        let EdgeMerge { out, into, with_attributes, found, restored, next, .. } = merge;
        known.count = out.len();
        known.next = next;
        let out = out.finish(segment)?;
        let mut by_target = ListsWriter::new(NumberCoding::Packed, known.is_numbered());
        into.drain(&mut |lists| by_target.push_all(segment, lists))?;
        let into = by_target.finish(segment)?;
        let mut attributes_lost = 0;
        let mut table = None;
        if let Some(numbers) = with_attributes {
            let schema = &mut known.population.attributes;
            let tables = self.edge_tables(population);
            let logged = &self.logged[population].rows;
            (table, attributes_lost) = write_edge_table(&tables, logged, numbers, schema, segment)?;
        }
        let sides = [(Side::Out, out, table), (Side::In, into, None)];
        let sections = sides
            .into_iter()
            .filter(|(_, added, _)| added.is_some())
            .map(|(side, added, table)| EdgeSection {
                population,
                side,
                added,
                removed: None,
                table,
            })
            .collect();
        let (lost, is_in_doubt) = self.lost_edges(population, &found, &gaps);
        let kept = RepairSummary {
            name: known.population.name.clone(),
            kept: known.count,
            expected: self.expected_edges(population),
            restored,
            attributes_lost,
            lost,
            is_in_doubt,
        };
        Ok((sections, kept))
    }

    fn expected_edges(&self, population: usize) -> Option<u64> {
        let more = self.logged[population].more;
        let expected = self.manifest.edges[population].count.saturating_add_signed(more);
        self.is_complete.then_some(expected)
    }

    /// Reads all lists by source, to find which are not whole.
    fn source_gaps(&self, population: usize) -> Result<PopulationGaps> {
        let none = || vec![VertexGaps::default(); 2 * self.segments.len()];
        let mut by_side = [none(), none()];
        let mut sources = VertexGaps::default();
        let mut seen = 0;
        for mut stream in self.streams(population, Side::Out) {
            while stream.cursor.next().is_some() {
                self.check_cancelled(&mut seen)?;
            }
            sources.add(&stream.cursor.gaps);
            by_side[0][stream.stamp] = stream.cursor.gaps;
        }
        Ok(PopulationGaps { by_side, sources })
    }

    /// Collects what the lists by target say of sources whose own lists are not whole: the edges'
    /// numbers with the records' stamps, grouped by source.
    fn edges_from_targets(
        &self,
        population: usize,
        gaps: &mut PopulationGaps,
    ) -> Result<EdgeSorter> {
        let mut sorter = self.sorter(true);
        if gaps.sources.ranges.is_empty() {
            return Ok(sorter);
        }
        let mut sources = Vec::new();
        let mut numbers = Vec::new();
        let mut seen = 0;
        for mut stream in self.streams(population, Side::In) {
            while let Some(target) = stream.cursor.next() {
                self.check_cancelled(&mut seen)?;
                sources.clear();
                numbers.clear();
                let list = stream.cursor.list.iter();
                for (source, number) in list.filter(|end| gaps.sources.contains(end.0)) {
                    if let Some(stamped) = stamped(*number, stream.stamp) {
                        sources.push(*source);
                        numbers.push(stamped);
                    }
                }
                sorter.push(target, &sources, &numbers)?;
            }
            gaps.by_side[1][stream.stamp] = stream.cursor.gaps;
        }
        Ok(sorter)
    }

    /// The edges of each segment that were found on neither side; and whether records of removed
    /// edges are missing. `found` is the number of records found, by stamp.
    fn lost_edges(
        &self,
        population: usize,
        found: &[u64],
        gaps: &PopulationGaps,
    ) -> (Vec<LostRecords>, bool) {
        let mut lost: Vec<LostRecords> = self.lost_segments().collect();
        let mut is_in_doubt = !self.has_all_segments();
        let len = |lists: &Option<ListsMeta>| lists.as_ref().map_or(0, |lists| lists.ids.len());
        for (age, segment) in self.segments() {
            let own = || {
                let sections = segment.footer.edges.iter();
                sections.filter(|section| section.population == population)
            };
            let removed = own().map(|section| len(&section.removed)).max().unwrap_or(0);
            let added = own().map(|section| len(&section.added)).max().unwrap_or(0);
            is_in_doubt |= found[2 * age] < removed;
            let count = added.saturating_sub(found[2 * age + 1]);
            if count > 0 {
                lost.push(LostRecords {
                    file: segment.file.clone(),
                    count: Some(count),
                    sources: gaps.by_side[0][2 * age + 1].ranges.clone(),
                    targets: gaps.by_side[1][2 * age + 1].ranges.clone(),
                });
            }
        }
        (lost, is_in_doubt)
    }
}
