//! Reading SONATA edges and nodes: `/edges/<population>` and `/nodes/<population>`, with attributes
//! in their group `0`.
//!
//! Edges are read in the order of the file; the ids of vertices are SONATA's node ids. The indices
//! of the file are not used. A code without a name is null.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use thalweg_hdf5::arrays::{ArrayFile, Dataset};
use thalweg_hdf5::metadata::Node;
use thalweg_io::{Error, Result};

use super::columns::{AttributeReader, AttributeReaderBuilder, text};
use super::lists::BATCH;
use super::numbers::IdDataset;
use super::{EdgeBatch, EdgeSource, Input, InputOptions, Population, VertexBatch, VertexSource};

/// The contents of a SONATA file; `None` for another HDF5 file.
pub(super) fn input(file: &Arc<ArrayFile>, options: &InputOptions) -> Result<Option<Input>> {
    let root = file.metadata().root();
    let edges = root.child("edges")?;
    let nodes = root.child("nodes")?;
    let edges = group(edges)?;
    let nodes = group(nodes)?;
    if edges.is_none() && nodes.is_none() {
        return Ok(None);
    }
    let mut input = Input::default();
    for (group, is_edges) in [(edges, true), (nodes, false)] {
        let Some(group) = group else { continue };
        for link in group.links()? {
            let node = file.metadata().follow(&link);
            if !node.is_group()? {
                continue;
            }
            let found = SonataPopulation { file, node, name: &link.name };
            if is_edges {
                let edges = found.edges(options, &mut input.left_out)?;
                input.lost.extend(edges.columns.lost());
                input.edges.push(Box::new(edges));
            } else {
                let nodes = found.nodes(&mut input.left_out)?;
                input.lost.extend(nodes.columns.lost());
                input.vertices.push(Box::new(nodes));
            }
        }
    }
    Ok(Some(input))
}

/// The node, if it is a group.
fn group(node: Option<Node>) -> Result<Option<Node>> {
    match node {
        Some(node) if node.is_group()? => Ok(Some(node)),
        _ => Ok(None),
    }
}

/// The group of a population.
struct SonataPopulation<'a> {
    file: &'a Arc<ArrayFile>,
    node: Node,
    name: &'a str,
}

impl SonataPopulation<'_> {
    fn dataset(&self, name: &str) -> Result<Option<Dataset>> {
        self.node.child(name)?.map_or(Ok(None), |node| self.file.dataset(&node))
    }

    /// A dataset with a number for each edge or node.
    fn list(&self, name: &str) -> Result<Option<IdDataset>> {
        let Some(dataset) = self.dataset(name)? else { return Ok(None) };
        let numbers = IdDataset::new(self.file, dataset)?;
        if numbers.columns != 1 {
            return Err(numbers.wrong(0, format!("{} columns", numbers.columns), "one"));
        }
        Ok(Some(numbers))
    }

    fn edges(&self, options: &InputOptions, left_out: &mut Vec<String>) -> Result<SonataEdges> {
        let ends = (self.list("source_node_id")?, self.list("target_node_id")?);
        let kind = |name: &str, end: &str| -> Result<String> {
            let named = self
                .dataset(name)?
                .map_or(Ok(None), |dataset| dataset.attribute("node_population"))?;
            Ok(text(named).unwrap_or_else(|| format!("{}_{end}", self.name)))
        };
        let source = kind("source_node_id", "source")?;
        let target = kind("target_node_id", "target")?;
        let ends = match ends {
            (Some(sources), Some(targets)) if sources.rows == targets.rows => {
                Some((sources, targets))
            }
            (Some(sources), Some(targets)) => {
                let found = format!("{} elements", targets.rows);
                return Err(targets.wrong(
                    targets.rows,
                    found,
                    format!("{}, as source_node_id has", sources.rows),
                ));
            }
            (None, None) => None,
            (sources, _) => {
                let what = if sources.is_some() { "target_node_id" } else { "source_node_id" };
                return Err(Error::NotFound {
                    file: self.file.store().name().clone(),
                    what: format!("dataset {}/{what}", self.node.path()).into(),
                    advice: "edges have both".into(),
                });
            }
        };
        let rows = ends.as_ref().map_or(0, |(sources, _)| sources.rows);
        let columns = self.columns(rows, left_out)?;
        let places = self.places("edge", rows)?;
        let population = Population {
            name: self.name.into(),
            source,
            target,
            is_directed: true,
            is_multi: true,
            attributes: columns.schema.clone(),
        };
        Ok(SonataEdges {
            population,
            ends,
            columns,
            places,
            rows: 0..rows,
            wanted: options.sources.clone(),
            sources: Vec::new(),
        })
    }

    fn nodes(&self, left_out: &mut Vec<String>) -> Result<SonataNodes> {
        let ids = self.list("node_id")?;
        let rows = match (&ids, &self.list("node_type_id")?) {
            (Some(ids), Some(types)) if ids.rows != types.rows => {
                return Err(ids.wrong(
                    ids.rows,
                    format!("{} elements", ids.rows),
                    format!("{}, as node_type_id", types.rows),
                ));
            }
            (Some(numbers), _) | (None, Some(numbers)) => numbers.rows,
            (None, None) => 0,
        };
        let columns = self.columns(rows, left_out)?;
        let places = self.places("node", rows)?;
        Ok(SonataNodes { name: self.name.into(), ids, columns, places, rows: 0..rows, total: rows })
    }

    /// The attributes in group 0.
    fn columns(&self, rows: u64, left_out: &mut Vec<String>) -> Result<AttributeReader> {
        let mut builder = AttributeReaderBuilder::new(self.file, rows);
        for name in self.node.links()?.iter().map(|link| &link.name) {
            let is_group = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
            if is_group && name != "0" {
                left_out.push(format!(
                    "{}/{name}: groups of attributes other than 0",
                    self.node.path()
                ));
            }
        }
        if let Some(dataset) = self.dataset("edge_type_id")?.or(self.dataset("node_type_id")?) {
            left_out.push(format!("{}: types, which other files describe", dataset.path()));
        }
        let Some(group) = group(self.node.child("0")?)? else {
            return Ok(builder.done());
        };
        let library = self::group(group.child("@library")?)?;
        for link in group.links()? {
            let node = self.file.metadata().follow(&link);
            if !node.is_group()? {
                let named = |library: &Node| library.child(&link.name);
                let names = library.as_ref().map_or(Ok(None), named)?;
                let names = names.map_or(Ok(None), |node| self.file.dataset(&node))?;
                self.add(&mut builder, &link.name, node, names.as_ref(), left_out)?;
            } else if link.name == "dynamics_params" {
                for link in node.links()? {
                    let node = self.file.metadata().follow(&link);
                    self.add(
                        &mut builder,
                        &format!("dynamics_params/{}", link.name),
                        node,
                        None,
                        left_out,
                    )?;
                }
            } else if link.name != "@library" {
                left_out.push(format!("{}: a group", node.path()));
            }
        }
        Ok(builder.done())
    }

    fn add(
        &self,
        builder: &mut AttributeReaderBuilder,
        name: &str,
        node: Node,
        names: Option<&Dataset>,
        left_out: &mut Vec<String>,
    ) -> Result<()> {
        let path = node.path().to_owned();
        let why = match self.file.dataset(&node)? {
            Some(dataset) => builder.add(name, dataset, names)?,
            None => Some("no dataset".into()),
        };
        left_out.extend(why.map(|why| format!("{path}: {why}")));
        Ok(())
    }

    /// The datasets that say which group holds the attributes of each edge or node, and where in
    /// it.
    fn places(&self, of: &str, rows: u64) -> Result<AttributePlaces> {
        let [group, index] =
            ["group_id", "group_index"].map(|what| self.list(&format!("{of}_{what}")));
        let places = AttributePlaces { group: group?, index: index?, found: Vec::new() };
        for numbers in [&places.group, &places.index].into_iter().flatten() {
            if numbers.rows != rows {
                return Err(numbers.wrong(
                    numbers.rows,
                    format!("{} elements", numbers.rows),
                    rows.to_string(),
                ));
            }
        }
        Ok(places)
    }
}

/// The group and the place in it of each edge's or node's attributes, if the file has these.
#[derive(Debug)]
struct AttributePlaces {
    group: Option<IdDataset>,
    index: Option<IdDataset>,
    found: Vec<u64>,
}

impl AttributePlaces {
    /// Checks that the attributes are in group 0, in the order of the edges or nodes.
    fn check(&mut self, rows: &Range<u64>, columns: &AttributeReader) -> Result<()> {
        if columns.schema.fields().is_empty() {
            return Ok(());
        }
        for (numbers, is_index) in [(&mut self.group, false), (&mut self.index, true)] {
            let Some(numbers) = numbers else { continue };
            numbers.read(rows.clone(), &mut self.found)?;
            let expected = |at: u64| if is_index { at } else { 0 };
            if let Some((at, found)) =
                (rows.start..).zip(&self.found).find(|(at, found)| **found != expected(*at))
            {
                let words = "attributes in one group, in the order of the edges or nodes";
                return Err(numbers.wrong(
                    at,
                    found.to_string(),
                    format!("{}: {words}", expected(at)),
                ));
            }
        }
        Ok(())
    }
}

/// Reads the edges of a population.
#[derive(Debug)]
struct SonataEdges {
    population: Population,
    /// Sources and targets; `None` for an empty population.
    ends: Option<(IdDataset, IdDataset)>,
    columns: AttributeReader,
    places: AttributePlaces,
    rows: Range<u64>,
    wanted: Range<u64>,
    sources: Vec<u64>,
}

impl EdgeSource for SonataEdges {
    fn population(&self) -> &Population {
        &self.population
    }

    fn total(&self) -> Option<u64> {
        let all = self.ends.as_ref().map_or(0, |(sources, _)| sources.rows);
        (self.wanted == (0..u64::MAX) || all == 0).then_some(all)
    }

    fn next(&mut self, edges: &mut EdgeBatch) -> Result<bool> {
        edges.clear();
        let Some((sources, targets)) = &mut self.ends else { return Ok(false) };
        if self.rows.is_empty() {
            return Ok(false);
        }
        let (step, _) = sources.step(BATCH.min(self.columns.rows()));
        let rows =
            self.rows.start..(self.rows.start / step + 1).saturating_mul(step).min(self.rows.end);
        sources.read(rows.clone(), &mut self.sources)?;
        targets.read(rows.clone(), &mut edges.targets)?;
        self.places.check(&rows, &self.columns)?;
        edges.attributes = self.columns.read(&rows)?;
        self.rows.start = rows.end;
        if self.wanted != (0..u64::MAX) {
            let wanted: Vec<bool> =
                self.sources.iter().map(|source| self.wanted.contains(source)).collect();
            let mut kept = wanted.iter().copied();
            self.sources.retain(|_| kept.next().unwrap_or(false));
            let mut kept = wanted.iter().copied();
            edges.targets.retain(|_| kept.next().unwrap_or(false));
            edges.attributes =
                edges.attributes.take().map(|all| filtered(&all, wanted)).transpose()?;
        }
        edges
            .runs
            .extend(self.sources.chunk_by(|one, two| one == two).map(|same| (same[0], same.len())));
        Ok(true)
    }
}

fn filtered(all: &RecordBatch, wanted: Vec<bool>) -> Result<RecordBatch> {
    arrow_select::filter::filter_record_batch(all, &BooleanArray::from(wanted))
        .map_err(|wrong| Error::Usage(wrong.to_string().into()))
}

/// Reads the nodes of a population.
#[derive(Debug)]
struct SonataNodes {
    name: String,
    /// The ids, if the file has them; else they are 0, 1, 2 and so on.
    ids: Option<IdDataset>,
    columns: AttributeReader,
    places: AttributePlaces,
    rows: Range<u64>,
    total: u64,
}

impl VertexSource for SonataNodes {
    fn vertex_type(&self) -> &str {
        &self.name
    }

    fn attributes(&self) -> &SchemaRef {
        &self.columns.schema
    }

    fn total(&self) -> Option<u64> {
        Some(self.total)
    }

    fn next(&mut self, vertices: &mut VertexBatch) -> Result<bool> {
        vertices.ids.clear();
        vertices.attributes = None;
        if self.rows.is_empty() {
            return Ok(false);
        }
        let step = BATCH.min(self.columns.rows());
        let rows = self.rows.start..self.rows.start.saturating_add(step).min(self.rows.end);
        match &mut self.ids {
            Some(ids) => ids.read(rows.clone(), &mut vertices.ids)?,
            None => vertices.ids.extend(rows.clone()),
        }
        self.places.check(&rows, &self.columns)?;
        vertices.attributes = self.columns.read(&rows)?;
        self.rows.start = rows.end;
        Ok(true)
    }
}
