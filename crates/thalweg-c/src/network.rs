//! Networks.

use thalweg::graph::{self, Direction, Neighbours};
use thalweg::{Error, Options, Result};

use crate::types::thw_lists;

/// A network.
pub(crate) struct Network {
    network: graph::Network,
}

impl Network {
    pub(crate) fn open(path: &str, options: Options) -> Result<Self> {
        Ok(Self { network: graph::Network::open(path.as_ref(), (&options).into())? })
    }

    pub(crate) fn count(&self, vertex_type: &str) -> Result<u64> {
        Ok(self.network.vertex_count(self.network.type_of(vertex_type)?))
    }

    pub(crate) fn neighbours(
        &self,
        from: &str,
        to: Option<&str>,
        ids: &[u64],
    ) -> Result<Neighbours> {
        let from = self.network.type_of(from)?;
        let to = to.map(|to| self.network.type_of(to)).transpose()?;
        let adjacencies = self.network.adjacencies(from, to, Direction::Auto);
        if adjacencies.is_empty() {
            let (name, types) = (self.network.name(), self.network.types());
            let [from, to] = [Some(from), to].map(|of| {
                of.and_then(|number| types.get(number)).map_or("any type", |of| of.name.as_str())
            });
            let what = format!("{name}: no edges lead from {from} to {to}");
            return Err(Error::Usage(what.into()));
        }
        let mut found = Neighbours::default();
        self.network.neighbours(&adjacencies, ids, &mut found)?;
        Ok(found)
    }
}

/// The lists as C has them. `found` is at its place until they are freed.
pub(crate) fn shown(found: &Neighbours, owner: *mut Neighbours) -> thw_lists {
    thw_lists {
        count: found.len() as u64,
        offsets: found.offsets.as_ptr(),
        ids: found.ids.as_ptr(),
        owner: owner.cast(),
    }
}
