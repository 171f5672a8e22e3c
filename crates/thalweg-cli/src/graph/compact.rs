//! `thalweg graph compact`: writes all segments and the log of a store into one segment.

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;

use super::open::{CodingChoice, OpenArgs};
use crate::common::{VerbResult, output};

/// Write all that is in a store, and in its log, into one segment: smaller, and faster to read
///
/// Example: thalweg graph compact network
#[derive(Debug, clap::Args)]
pub(super) struct GraphCompactArgs {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// How ids are stored
    #[arg(long, value_enum, default_value_t)]
    ids: CodingChoice,
    /// Print a JSON line about the sizes
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    open: OpenArgs,
}

pub(super) fn run(args: &GraphCompactArgs) -> VerbResult {
    let mut writer = args.open.write(&args.store)?;
    let before = writer.network().storage();
    writer.set_coding(args.ids.into());
    writer.compact()?;
    let after = writer.network().storage();
    let mut out = output();
    if args.json {
        let as_json = |storage: thalweg::graph::StorageUse| {
            json!({
                "segments": storage.segments, "bytes": storage.bytes,
                "changes_in_log": storage.changes_in_log,
            })
        };
        writeln!(out, "{}", json!({ "before": as_json(before), "after": as_json(after) }))?;
    } else {
        writeln!(
            out,
            "{} segments of {:.1} MB and {} changes in the log are {} of {:.1} MB",
            before.segments,
            before.bytes as f64 / 1e6,
            before.changes_in_log,
            after.segments,
            after.bytes as f64 / 1e6
        )?;
    }
    out.flush()?;
    Ok(())
}
