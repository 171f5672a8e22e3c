//! Which edges a query follows.

use std::path::Path;

use thalweg::graph::{Adjacency, Direction, Network};

use crate::common::{Failure, shown_path};

/// Where edges lead to, of which population they are, and in which direction they are followed.
#[derive(Debug, clap::Args)]
pub(super) struct FollowArgs {
    /// The type of the neighbours (default: all types)
    #[arg(long, value_name = "TYPE")]
    pub(super) to: Option<String>,
    /// Follow only edges of this population (default: all populations)
    #[arg(long, value_name = "POPULATION", visible_alias = "population")]
    edges: Option<String>,
    /// Which edges to follow
    #[arg(long, value_enum, default_value_t)]
    direction: DirectionChoice,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum DirectionChoice {
    /// Edges that leave, and undirected ones; if there are none, edges that arrive
    #[default]
    Auto,
    /// Edges that leave, and undirected ones
    Out,
    /// Edges that arrive, and undirected ones
    In,
    /// All
    Both,
}

impl From<DirectionChoice> for Direction {
    fn from(choice: DirectionChoice) -> Self {
        match choice {
            DirectionChoice::Auto => Self::Auto,
            DirectionChoice::Out => Self::Out,
            DirectionChoice::In => Self::In,
            DirectionChoice::Both => Self::Both,
        }
    }
}

impl FollowArgs {
    /// The edges to follow from vertices of a type. Fails if there are none.
    pub(super) fn adjacencies(
        &self,
        network: &Network,
        store: &Path,
        vertex_type: usize,
    ) -> Result<Vec<Adjacency>, Failure> {
        let to = self.to.as_ref().map(|name| network.type_of(name)).transpose()?;
        let only = self.edges.as_ref().map(|name| network.population_of(name)).transpose()?;
        let found = network.adjacencies_of(only, vertex_type, to, self.direction.into());
        if found.is_empty() {
            let from = &network.types()[vertex_type].name;
            let to = self.to.as_deref().unwrap_or("anything");
            let what = match &self.edges {
                Some(name) => format!("edges of {name} do not lead from {from} to {to}"),
                None => format!("no population connects {from} with {to}"),
            };
            return Err(Failure::Usage(format!(
                "{}: {what} in this direction; `thalweg graph info` says what each connects",
                shown_path(store)
            )));
        }
        Ok(found)
    }
}
