//! Networks: against a model in memory, after crashes, and out of damaged files.

mod crash;
mod model;
mod repair;
mod steps;
