//! Networks: against a model in memory, and after crashes.

mod crash;
mod model;
mod steps;
