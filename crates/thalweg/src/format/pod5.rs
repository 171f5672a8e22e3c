//! POD5: nanopore reads as three Arrow tables in one file.

pub mod fields;
