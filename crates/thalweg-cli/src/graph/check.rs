//! `thalweg graph check`: checks that a store is undamaged, and repairs it into a new one.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use serde_json::json;
use thalweg::graph::{Checked, Network};

use super::open::{OpenArgs, check_is_no_file};
use crate::common::{VerbResult, complain, counted, ended, output, shown_path};

/// Check a store: every page against its checksum, and whether lists and counts are consistent
///
/// With --repair, what is intact in a damaged store is written to a new one, and what is lost is
/// listed. A list of neighbours that cannot be read is restored from the lists of the vertices at
/// the other ends. The damaged store is not changed. The exit code is 0 if nothing is lost.
///
/// Example: thalweg graph check network
///
/// Example: thalweg graph check damaged --repair mended
#[derive(Debug, clap::Args)]
pub(super) struct GraphCheckArgs {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Write what is intact to a new store: a folder that is empty or does not exist
    #[arg(long, value_name = "OUT")]
    repair: Option<PathBuf>,
    /// Print a JSON line about the result
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    open: OpenArgs,
}

pub(super) fn run(args: &GraphCheckArgs) -> VerbResult {
    if let Some(out) = &args.repair {
        check_is_no_file(&args.store, "import it first with `thalweg graph import`")?;
        return super::repair::run(&args.store, out, args.json, &args.open.options());
    }
    let network = args.open.read(&args.store)?;
    let checked = check(&network)?;
    let mut out = output();
    let damaged = !checked.defects.is_empty();
    if args.json {
        let defects: Vec<_> = checked
            .defects
            .iter()
            .map(|defect| json!({ "file": defect.file, "error": defect.error.to_string() }))
            .collect();
        writeln!(
            out,
            "{}",
            json!({
                "schema": "thalweg.graph-check/1", "path": shown_path(&args.store),
                "pages": checked.pages, "lists": checked.lists, "edges": checked.edges,
                "defects": defects,
            })
        )?;
    } else if damaged {
        checked.defects.iter().for_each(|defect| complain(&defect.error));
    } else {
        writeln!(
            out,
            "{}: whole; {}, {}, {} on both sides",
            shown_path(&args.store),
            counted(checked.pages, "page"),
            counted(checked.lists, "list"),
            counted(checked.edges, "edge")
        )?;
    }
    out.flush()?;
    ended(damaged)
}

/// Checks a network, with a progress bar on a terminal.
fn check(network: &Network) -> thalweg::Result<Checked> {
    let bar =
        std::io::stderr().is_terminal().then(|| crate::progress::bar(network.storage().bytes));
    let checked = network.check(&mut |bytes| {
        if let Some(bar) = &bar {
            bar.set_position(bytes);
        }
    })?;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(checked)
}
