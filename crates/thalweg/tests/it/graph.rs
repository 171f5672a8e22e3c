//! Networks: compared with a model in memory, after crashes, and in damaged stores.

mod contents;
mod crash;
mod import;
mod model;
mod planned;
mod repair;
#[cfg(feature = "schedules")]
mod schedules;
mod steps;
