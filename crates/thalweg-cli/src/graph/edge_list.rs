//! Lists of edges in CSV, TSV and Parquet, for `thalweg graph import`. A row is an edge.
//!
//! The columns `source` and `target`, or else the first two columns, hold the ids of the vertices.
//! The other columns are attributes.

mod parquet;
mod text;

use std::path::Path;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use thalweg::Error;
use thalweg::graph::InputOptions;
use thalweg::graph::{EdgeBatch, EdgeSource, Input, Population};
use thalweg_io::urls::{self, shown_path, url};

use crate::common::{Failure, VerbResult};

/// What the file of a list of edges does not say.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "For lists of edges")]
pub(super) struct EdgeListArgs {
    /// The name of the population (default: the file's name)
    #[arg(long, value_name = "NAME")]
    population: Option<String>,
    /// The type of the vertices that edges leave (default: vertex)
    #[arg(long, value_name = "TYPE")]
    from_type: Option<String>,
    /// The type of the vertices that edges lead to (default: vertex)
    #[arg(long, value_name = "TYPE")]
    to_type: Option<String>,
    /// Edges can be followed in their direction only, unless a query says otherwise (the default)
    #[arg(long, overrides_with = "undirected")]
    directed: bool,
    /// Edges can be followed from either end
    #[arg(long, overrides_with = "directed")]
    undirected: bool,
    /// Keep several edges between two vertices; otherwise only the first is kept
    #[arg(long)]
    several: bool,
}

impl EdgeListArgs {
    /// Refuses these options for a file that says all this itself.
    pub(super) fn refuse(&self, path: &Path) -> VerbResult {
        let options = [
            ("--population", self.population.is_some()),
            ("--from-type", self.from_type.is_some()),
            ("--to-type", self.to_type.is_some()),
            ("--directed", self.directed),
            ("--undirected", self.undirected),
            ("--several", self.several),
        ];
        match options.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(Failure::Usage(format!(
                "{}: {option} is for lists of edges; HDF5 says this itself",
                urls::shown_path(path)
            ))),
            None => Ok(()),
        }
    }

    fn population(&self, path: &Path, attributes: SchemaRef) -> Population {
        let type_name = |name: &Option<String>| name.clone().unwrap_or_else(|| "vertex".into());
        let stem =
            || path.file_stem().map_or("edges".into(), |stem| stem.to_string_lossy().into_owned());
        Population {
            name: self.population.clone().unwrap_or_else(stem),
            source: type_name(&self.from_type),
            target: type_name(&self.to_type),
            is_directed: !self.undirected,
            is_multi: self.several,
            attributes,
        }
    }
}

/// The format of a list of edges, by the ending of the file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListFormat {
    /// Text with this byte between values.
    Text(u8),
    Parquet,
}

impl ListFormat {
    pub(super) fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Text(b',')),
            "tsv" => Some(Self::Text(b'\t')),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }
}

/// The edges of a list.
pub(super) fn open(
    path: &Path,
    format: ListFormat,
    options: &InputOptions,
    args: &EdgeListArgs,
) -> Result<Input, Failure> {
    let name: Arc<str> = shown_path(path).into();
    if url(path).is_some() {
        let advice = "copy it to a folder: it is read twice".into();
        let what = "a list of edges at a URL".into();
        return Err(Error::Unsupported { file: name, what, advice }.into());
    }
    let meta = std::fs::metadata(path).map_err(|e| Error::io(&name, "opening", e))?;
    if !meta.is_file() {
        let advice = "give the path of a regular file: it is read twice".into();
        let what = "a list of edges from a folder, pipe or device".into();
        return Err(Error::Unsupported { file: name, what, advice }.into());
    }
    let edges: Box<dyn EdgeSource> = match format {
        ListFormat::Text(delimiter) => {
            Box::new(text::TextEdges::open(path, &name, delimiter, options, args)?)
        }
        ListFormat::Parquet => Box::new(parquet::ParquetEdges::open(path, &name, options, args)?),
    };
    Ok(Input { edges: vec![edges], ..Input::default() })
}

/// The numbers of the columns of sources and targets: those with these names, or else the first
/// two.
fn end_columns(names: &[&str]) -> [usize; 2] {
    let at = |end: &str| names.iter().position(|name| name.trim().eq_ignore_ascii_case(end));
    match (at("source"), at("target")) {
        (Some(source), Some(target)) => [source, target],
        _ => [0, 1],
    }
}

/// The first name that is repeated.
fn repeated_name<'a>(names: &[&'a str]) -> Option<&'a str> {
    let mut seen = std::collections::HashSet::new();
    names.iter().copied().find(|name| !seen.insert(*name))
}

/// Adds the runs of equal sources: each run is a source, and the number of consecutive edges that
/// leave it.
fn push_runs(sources: &[u64], edges: &mut EdgeBatch) {
    edges.runs.extend(sources.chunk_by(|one, next| one == next).map(|run| (run[0], run.len())));
}
