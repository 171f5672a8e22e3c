//! Defining vertex types and populations of edges.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};
use thalweg_io::{Error, Result};

use crate::storage::manifest::Manifest;
use crate::storage::schema::{Population, PopulationEntry, VertexType};
use crate::write::writer::Writer;

impl Writer {
    /// The number of the vertex type with this name. The type is defined if there is none.
    ///
    /// # Errors
    /// [`Error::Usage`] if the type has other attributes; [`Error::Io`].
    pub fn vertex_type(&mut self, name: &str, attributes: &SchemaRef) -> Result<usize> {
        let mut manifest = (*self.network.state.manifest).clone();
        let number = self.type_in(&mut manifest, name, attributes)?;
        self.define(manifest)?;
        Ok(number)
    }

    /// The number of the vertex type with this name in a manifest that is not saved yet. The type
    /// is defined if there is none.
    pub(crate) fn type_in(
        &self,
        manifest: &mut Manifest,
        name: &str,
        attributes: &SchemaRef,
    ) -> Result<usize> {
        self.check_plain(attributes)?;
        let Some(number) = manifest.type_of(name) else {
            manifest.types.push(VertexType {
                name: name.to_owned(),
                attributes: attributes.clone(),
                count: 0,
                since: 0,
            });
            return Ok(manifest.types.len() - 1);
        };
        let known = &mut manifest.types[number].attributes;
        if known.fields() == attributes.fields() || attributes.fields().is_empty() {
            return Ok(number);
        }
        if !known.fields().is_empty() {
            return Err(self.differs(&format!("vertices of type {name:?}"), known, attributes));
        }
        known.clone_from(attributes);
        Ok(number)
    }

    /// The number of the population with this name. It is defined if there is none, along with the
    /// types of its vertices.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is a different population with this name; [`Error::Io`].
    pub fn population(&mut self, population: &Population) -> Result<usize> {
        let mut manifest = (*self.network.state.manifest).clone();
        let number = self.population_in(&mut manifest, population)?;
        self.define(manifest)?;
        Ok(number)
    }

    /// The number of the population with this name in a manifest that is not saved yet. It is
    /// defined if there is none.
    pub(crate) fn population_in(
        &self,
        manifest: &mut Manifest,
        population: &Population,
    ) -> Result<usize> {
        self.check_plain(&population.attributes)?;
        if let Some(number) = manifest.population(&population.name) {
            let known = &manifest.edges[number].population;
            let same = Population { attributes: population.attributes.clone(), ..known.clone() }
                == *population;
            if !same {
                let what = format!("{}: {}", self.name(), population.differs_from(known));
                return Err(Error::Usage(what.into()));
            }
            if known.attributes.fields() != population.attributes.fields() {
                let what = format!("edges of {:?}", known.name);
                return Err(self.differs(&what, &known.attributes, &population.attributes));
            }
            return Ok(number);
        }
        let none = Arc::new(Schema::empty());
        let source = self.type_in(manifest, &population.source, &none)?;
        let target = self.type_in(manifest, &population.target, &none)?;
        manifest.edges.push(PopulationEntry {
            population: population.clone(),
            source,
            target,
            count: 0,
            next: 0,
            since: 0,
        });
        Ok(manifest.edges.len() - 1)
    }

    /// The error for attributes that differ from those that a type or population has.
    pub(crate) fn differs(&self, what: &str, known: &SchemaRef, given: &SchemaRef) -> Error {
        let names = |schema: &SchemaRef| {
            schema
                .fields()
                .iter()
                .map(|f| format!("{} {}", f.name(), f.data_type()))
                .collect::<Vec<_>>()
                .join(", ")
        };
        Error::Usage(
            format!(
                "{}: {what} have the attributes [{}], not [{}]",
                self.name(),
                names(known),
                names(given)
            )
            .into(),
        )
    }

    /// Rejects dictionaries: a table stores batches of values, without the dictionaries that they
    /// would refer to.
    fn check_plain(&self, schema: &SchemaRef) -> Result<()> {
        let has_dictionary =
            |field: &&FieldRef| matches!(field.data_type(), DataType::Dictionary(..));
        match schema.fields().iter().find(has_dictionary) {
            None => Ok(()),
            Some(field) => {
                let what = format!(
                    "{}: attribute {:?} is {}; cast it to its values",
                    self.name(),
                    field.name(),
                    field.data_type()
                );
                Err(Error::Usage(what.into()))
            }
        }
    }

    /// Saves a manifest, now or with the next commit, if anything was defined.
    fn define(&mut self, mut manifest: Manifest) -> Result<()> {
        if manifest != *self.network.state.manifest {
            if self.defers {
                self.before.get_or_insert_with(|| self.network.state.manifest.clone());
            } else {
                self.save(&mut manifest)?;
            }
            self.network.state.manifest = Arc::new(manifest);
        }
        Ok(())
    }
}
