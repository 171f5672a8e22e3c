//! `thalweg graph compact`: writes all segments and the log of a store into one segment.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;

use super::open::{CodingChoice, OpenArgs};
use crate::common::{VerbResult, counted, print_json, shown_path};
use crate::done::say_done;

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
    let started = Instant::now();
    let mut writer = args.open.write(&args.store)?;
    let before = writer.network().storage();
    writer.set_coding(args.ids.into());
    writer.compact()?;
    let after = writer.network().storage();
    if args.json {
        let as_json = |storage: thalweg::graph::StorageUse| {
            json!({
                "segments": storage.segments, "bytes": storage.bytes,
                "changes_in_log": storage.changes_in_log,
            })
        };
        return print_json(&json!({
            "schema": "thalweg.graph-compact/1", "path": shown_path(&args.store),
            "bytes_stored": after.bytes, "before": as_json(before), "after": as_json(after),
        }));
    }
    let segments =
        |storage: thalweg::graph::StorageUse| counted(storage.segments as u64, "segment");
    let what = format!(
        "compacted {} and {} in the log into {}",
        segments(before),
        counted(before.changes_in_log as u64, "change"),
        segments(after)
    );
    say_done(&what, &args.store, started.elapsed().as_secs_f64());
    Ok(())
}
