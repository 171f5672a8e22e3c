//! Networks: against a model in memory, after crashes, and out of damaged files.

mod contents;
mod crash;
mod import;
mod model;
mod repair;
mod steps;
