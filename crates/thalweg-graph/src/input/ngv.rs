//! Reading connectivity of neurons, glia and blood vessels (NGV) from HDF5, in the form that basalt
//! imports.
//!
//! Each kind of vertex has a group with its name. The group has a dataset of lists for each kind
//! that its vertices are linked to, and `offsets`: a column for each of these datasets, named by
//! the attribute `column_names`, with the offset of each vertex's list. For example, the columns
//! `synapse` and `neuron` of `/Astrocyte/offsets` divide `/Astrocyte/synapse` and
//! `/Astrocyte/neuron`. Or the group has `connectivity`, with a column for each linked kind, and
//! `offsets` or a row for each vertex.
//!
//! Links have no direction, and files hold some of them from both sides. These are imported once;
//! [`check`] compares both sides.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::Schema;
use thalweg_codec::splitmix::{STEP, mix};
use thalweg_hdf5::arrays::{ArrayFile, Dataset};
use thalweg_hdf5::metadata::Node;
use thalweg_hdf5::types::Value;
use thalweg_io::{Error, Result};

use super::lists::{ConsecutiveVertices, CsrEdges, ListOffsets, ListTargets, ReversedEdges};
use super::numbers::IdDataset;
use super::{EdgeBatch, EdgeSource, Input, InputOptions, Population};

const OFFSETS: &str = "offsets";
const CONNECTIVITY: &str = "connectivity";
const COLUMNS: &str = "column_names";

/// A dataset of edges.
#[derive(Debug)]
struct Listing {
    population: Population,
    /// The path of the dataset.
    path: String,
    form: ListingForm,
}

#[derive(Debug)]
enum ListingForm {
    Csr(ListOffsets, ListTargets),
    Reversed(IdDataset),
}

impl Listing {
    fn of(source: &str, target: &str, path: &str, form: ListingForm) -> Self {
        let population = Population {
            name: format!("{source}-{target}"),
            source: source.into(),
            target: target.into(),
            is_directed: false,
            is_multi: false,
            attributes: Arc::new(Schema::empty()),
        };
        Self { population, path: path.into(), form }
    }

    /// The two kinds of vertices, as an unordered pair.
    fn pair(&self) -> BTreeSet<String> {
        [self.population.source.clone(), self.population.target.clone()].into()
    }

    /// Whether the targets are not in the file, but follow from the offsets.
    fn is_implied(&self) -> bool {
        matches!(self.form, ListingForm::Csr(_, ListTargets::Places(_)))
    }

    fn edges(self, sources: &Range<u64>) -> Result<Box<dyn EdgeSource>> {
        Ok(match self.form {
            ListingForm::Csr(offsets, targets) => {
                Box::new(CsrEdges::new(self.population, offsets, targets, sources)?)
            }
            ListingForm::Reversed(numbers) => {
                Box::new(ReversedEdges::new(self.population, numbers, sources.clone()))
            }
        })
    }
}

/// The contents of an NGV file.
#[derive(Debug, Default)]
pub(super) struct NgvContents {
    /// The kinds of vertices, and how many vertices each has.
    vertices: Vec<(String, u64)>,
    /// Each kind of link, from one side.
    listings: Vec<Listing>,
    /// The same links from their other side, if the file has these too.
    other_sides: Vec<Listing>,
}

impl NgvContents {
    /// The contents of a file; `None` if it is not an NGV file.
    pub(super) fn of(file: &Arc<ArrayFile>) -> Result<Option<Self>> {
        let mut contents = Self::default();
        let mut groups = Vec::new();
        let mut names = Vec::new();
        for link in file.metadata().root().links()? {
            let node = file.metadata().follow(&link);
            if node.is_group()? {
                names.push(link.name);
                groups.push(node);
            }
        }
        let mut all = Vec::new();
        for (group, name) in groups.iter().zip(&names) {
            let found = VertexGroup { file, group, name, names: &names };
            all.extend(found.listings(&mut contents.vertices)?);
        }
        // Targets that are in the file are preferred to those that follow from the offsets.
        all.sort_by_key(Listing::is_implied);
        let mut seen = BTreeSet::new();
        for listing in all {
            let kept = seen.insert(listing.pair());
            if kept { &mut contents.listings } else { &mut contents.other_sides }.push(listing);
        }
        Ok((!contents.listings.is_empty()).then_some(contents))
    }

    /// The input for an import.
    pub(super) fn input(self, options: &InputOptions) -> Result<Input> {
        let mut input = Input::default();
        for (vertex_type, count) in self.vertices {
            let is_source =
                self.listings.iter().any(|listing| listing.population.source == vertex_type);
            let ids = match &options.sources {
                _ if options.is_all() => 0..count,
                // A selection of edges imports their vertices, and no others.
                sources if is_source => sources.start.min(count)..sources.end.min(count),
                _ => continue,
            };
            input.vertices.push(Box::new(ConsecutiveVertices::new(vertex_type, ids)));
        }
        let other_side = |again: &Listing| {
            format!("{}: links that the file tells from their other side", again.path)
        };
        input.left_out.extend(self.other_sides.iter().map(other_side));
        for listing in self.listings {
            input.edges.push(listing.edges(&options.sources)?);
        }
        Ok(input)
    }
}

/// The group of a kind of vertex.
struct VertexGroup<'a> {
    file: &'a Arc<ArrayFile>,
    group: &'a Node,
    name: &'a str,
    /// The names of all groups.
    names: &'a [String],
}

impl VertexGroup<'_> {
    fn dataset(&self, name: &str) -> Result<Option<Dataset>> {
        self.group.child(name)?.map_or(Ok(None), |node| self.file.dataset(&node))
    }

    fn numbers(&self, name: &str) -> Result<Option<IdDataset>> {
        self.dataset(name)?.map(|dataset| IdDataset::new(self.file, dataset)).transpose()
    }

    /// The edges from the group's vertices. Adds the number of these vertices to `vertices`.
    fn listings(&self, vertices: &mut Vec<(String, u64)>) -> Result<Vec<Listing>> {
        let mut found = Vec::new();
        match (self.numbers(OFFSETS)?, self.numbers(CONNECTIVITY)?) {
            (Some(offsets), connectivity) => {
                let count = ListOffsets::new(offsets, 0)?.count;
                vertices.push((self.name.into(), count));
                if connectivity.is_some() {
                    self.table(&mut found, || ListOffsets::new(self.required(OFFSETS)?, 0))?;
                } else {
                    self.lists(&mut found)?;
                }
            }
            (None, Some(table)) => {
                let count = table.rows;
                if let Some(Value::Signed(1.., _) | Value::Unsigned(1.., _)) = self
                    .dataset(CONNECTIVITY)?
                    .map(|table| table.attribute("min_index"))
                    .transpose()?
                    .flatten()
                {
                    return Err(Error::Unsupported {
                        file: self.file.store().name().clone(),
                        what: format!(
                            "{}: rows that do not begin with the first vertex",
                            table.path()
                        )
                        .into(),
                        advice: "write a row for each vertex".into(),
                    });
                }
                vertices.push((self.name.into(), count));
                self.table(&mut found, || Ok(ListOffsets::one_each(count)))?;
            }
            (None, None) => self.reversed(vertices, &mut found)?,
        }
        Ok(found)
    }

    /// Adds the edges in `connectivity`, which has a column for each linked kind.
    fn table(
        &self,
        found: &mut Vec<Listing>,
        offsets: impl Fn() -> Result<ListOffsets>,
    ) -> Result<()> {
        for (column, name) in (0..).zip(self.columns(CONNECTIVITY)?) {
            let table = self.required(CONNECTIVITY)?;
            let path = format!("{}, column {name}", table.path());
            let form = ListingForm::Csr(offsets()?, ListTargets::Column(table, column));
            found.push(Listing::of(self.name, &self.kind(&name), &path, form));
        }
        Ok(())
    }

    /// Adds the edges of the dataset for each column of `offsets`. Without a dataset, the lists
    /// divide all vertices of the linked kind in order.
    fn lists(&self, found: &mut Vec<Listing>) -> Result<()> {
        for (column, name) in (0..).zip(self.columns(OFFSETS)?) {
            let mut offsets = ListOffsets::new(self.required(OFFSETS)?, column)?;
            let missing = || self.missing(&name);
            let targets = match self.numbers(&name)? {
                Some(numbers) => ListTargets::Column(numbers, 0),
                None if self.names.contains(&self.kind(&name)) => {
                    ListTargets::Places(offsets.at(offsets.count)?)
                }
                None => return Err(missing()),
            };
            let path = format!("/{}/{name}", self.name);
            found.push(Listing::of(
                self.name,
                &self.kind(&name),
                &path,
                ListingForm::Csr(offsets, targets),
            ));
        }
        Ok(())
    }

    /// Adds the edges of datasets that are named like another kind of vertex, and have an element
    /// for each vertex of the group.
    fn reversed(&self, vertices: &mut Vec<(String, u64)>, found: &mut Vec<Listing>) -> Result<()> {
        for link in self.group.links()? {
            let kind = self.kind(&link.name);
            if kind == self.name || !self.names.contains(&kind) {
                continue;
            }
            let node = self.file.metadata().follow(&link);
            let Some(dataset) = self.file.dataset(&node)? else { continue };
            let numbers = IdDataset::new(self.file, dataset)?;
            if numbers.columns != 1 {
                let words = format!("{} columns", numbers.columns);
                return Err(numbers.wrong(0, words, format!("a {kind} for each {}", self.name)));
            }
            vertices.retain(|(known, _)| known != self.name);
            vertices.push((self.name.into(), numbers.rows));
            let path = numbers.path().to_owned();
            found.push(Listing::of(&kind, self.name, &path, ListingForm::Reversed(numbers)));
        }
        Ok(())
    }

    /// The names of a dataset's columns.
    fn columns(&self, name: &str) -> Result<Vec<String>> {
        let Some(dataset) = self.dataset(name)? else { return Ok(Vec::new()) };
        let names = dataset.texts(COLUMNS)?;
        let numbers = IdDataset::new(self.file, dataset)?;
        let count = numbers.columns;
        match names {
            Some(names) if names.len() as u64 == count => Ok(names),
            // The columns of neuroglial files without the attribute.
            None if self.has_all(&["synapse", "neuron"])? && count == 2 => {
                Ok(vec!["synapse".into(), "neuron".into()])
            }
            None if self.has_all(&["astrocyte"])? && count == 1 => Ok(vec!["astrocyte".into()]),
            names => {
                let found = names.map_or("no attribute column_names".into(), |names| {
                    format!("the names {names:?}")
                });
                Err(numbers.wrong(
                    0,
                    found,
                    format!("names for {count} columns in the attribute column_names"),
                ))
            }
        }
    }

    fn has_all(&self, names: &[&str]) -> Result<bool> {
        let links = self.group.links()?;
        Ok(names.iter().all(|name| links.iter().any(|link| link.name == *name)))
    }

    /// The kind of vertex that a column is named after: `Vasculature Segment` for
    /// `vasculature_segment`.
    fn kind(&self, column: &str) -> String {
        let words = column.replace('_', " ");
        if let Some(known) = self.names.iter().find(|name| name.eq_ignore_ascii_case(&words)) {
            return known.clone();
        }
        let capital = |word: &str| {
            let mut letters = word.chars();
            letters
                .next()
                .map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
        };
        words.split(' ').map(capital).collect::<Vec<_>>().join(" ")
    }

    fn required(&self, name: &str) -> Result<IdDataset> {
        self.numbers(name)?.ok_or_else(|| self.missing(name))
    }

    fn missing(&self, name: &str) -> Error {
        Error::NotFound {
            file: self.file.store().name().clone(),
            what: format!("dataset /{}/{name}", self.name).into(),
            advice: format!("the columns of /{}/offsets have a dataset each", self.name).into(),
        }
    }
}

/// The error for an HDF5 file that holds neither SONATA nor NGV connectivity.
pub(super) fn unknown(file: &ArrayFile) -> Error {
    Error::Unsupported {
        file: file.store().name().clone(),
        what: "HDF5 without edges or vertices that are known".into(),
        advice: "SONATA has them in /edges and /nodes, NGV connectivity in groups with offsets"
            .into(),
    }
}

/// Whether links that a file holds from both sides are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreement {
    /// The population that is imported.
    pub population: String,
    /// The dataset with the other side.
    pub path: String,
    /// How many links each side has, the imported side first.
    pub links: [u64; 2],
    /// Whether both sides have equal links, in any order.
    pub is_same: bool,
}

/// Reads all links that a file holds from both sides, and compares them by order-independent sums,
/// in bounded memory.
///
/// # Errors
/// The first defect; [`Error::Unsupported`] for a file of another kind.
pub fn check(path: &Path, options: &InputOptions) -> Result<Vec<Agreement>> {
    let file = Arc::new(ArrayFile::open(path, options.read.clone())?);
    let Some(contents) = NgvContents::of(&file)? else { return Err(unknown(&file)) };
    let mut sums = Vec::new();
    for listing in contents.listings {
        let pair = listing.pair();
        let edges = listing.edges(&(0..u64::MAX))?;
        let first = edges.population().source.clone();
        sums.push((pair, edges.population().name.clone(), first.clone(), sum(edges, &first)?));
    }
    let mut agreements = Vec::new();
    for again in contents.other_sides {
        let pair = again.pair();
        let path = again.path.clone();
        let Some((_, population, first, one)) = sums.iter().find(|(known, ..)| *known == pair)
        else {
            continue;
        };
        let two = sum(again.edges(&(0..u64::MAX))?, first)?;
        let agreement = Agreement {
            population: population.clone(),
            path,
            links: [one.0, two.0],
            is_same: *one == two,
        };
        agreements.push(agreement);
    }
    Ok(agreements)
}

/// How many links there are, and a sum of their hashes that does not depend on their order.
fn sum(mut edges: Box<dyn EdgeSource>, first: &str) -> Result<(u64, u64)> {
    let is_reversed = edges.population().source != first;
    let mut piece = EdgeBatch::default();
    let mut count = 0;
    let mut sum = 0_u64;
    while edges.next(&mut piece)? {
        let mut rest = &piece.targets[..];
        for &(source, len) in &piece.runs {
            let (targets, after) = rest.split_at(len.min(rest.len()));
            rest = after;
            for &target in targets {
                let (one, two) = if is_reversed { (target, source) } else { (source, target) };
                sum = sum.wrapping_add(mix(mix(one).wrapping_add(two.wrapping_mul(STEP))));
            }
        }
        count += piece.targets.len() as u64;
    }
    Ok((count, sum))
}
