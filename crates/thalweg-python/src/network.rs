//! Networks of vertices and edges.

use pyo3::prelude::*;
use thalweg::control::Control;
use thalweg::graph::{self, Direction, Neighbours};

use crate::buffer::Buffer;
use crate::run::run;

/// A network.
#[pyclass(frozen, module = "thalweg._thalweg")]
pub(crate) struct Network {
    pub(crate) network: graph::Network,
    pub(crate) control: Control,
}

impl Network {
    fn adjacencies(&self, from: &str, to: Option<&str>) -> thalweg::Result<Vec<graph::Adjacency>> {
        let from = self.network.type_of(from)?;
        let to = to.map(|to| self.network.type_of(to)).transpose()?;
        Ok(self.network.adjacencies(from, to, Direction::Auto))
    }
}

#[pymethods]
impl Network {
    #[getter]
    fn name(&self) -> String {
        self.network.name().to_string()
    }

    /// The types of vertices, and how many vertices of each there are.
    #[getter]
    fn types(&self) -> Vec<(String, u64)> {
        let named = |(number, of): (usize, &graph::VertexType)| {
            (of.name.clone(), self.network.vertex_count(number))
        };
        self.network.types().iter().enumerate().map(named).collect()
    }

    /// The neighbours of vertices: where those of each begin, and all of them.
    fn neighbours(
        &self,
        py: Python<'_>,
        from: &str,
        ids: Vec<u64>,
        to: Option<&str>,
    ) -> PyResult<(Buffer, Buffer)> {
        let found = run(py, &self.control, || {
            let mut found = Neighbours::default();
            self.network.neighbours(&self.adjacencies(from, to)?, &ids, &mut found)?;
            Ok(found)
        })?;
        Ok((Buffer::ids(found.offsets), Buffer::ids(found.ids)))
    }

    /// How many neighbours each vertex has.
    fn degrees(
        &self,
        py: Python<'_>,
        from: &str,
        ids: Vec<u64>,
        to: Option<&str>,
    ) -> PyResult<Buffer> {
        let found =
            run(py, &self.control, || self.network.degrees(&self.adjacencies(from, to)?, &ids))?;
        Ok(Buffer::ids(found))
    }
}
