//! `thalweg graph check`: is it what was written?

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;

use super::open::OpenArgs;
use crate::common::{Failure, Outcome, complain, output};

/// Check a store: every page against its checksum, and whether lists and counts make sense
///
/// Example: thalweg graph check network
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Print a JSON line about it
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    open: OpenArgs,
}

pub(super) fn run(args: &Args) -> Outcome {
    let network = args.open.read(&args.store)?;
    let bar =
        std::io::IsTerminal::is_terminal(&std::io::stderr()).then(|| crate::progress::bar(network.storage().bytes));
    let checked = network.check(&mut |bytes| {
        if let Some(bar) = &bar {
            bar.set_position(bytes);
        }
    })?;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
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
            json!({ "pages": checked.pages, "lists": checked.lists, "edges": checked.edges, "defects": defects })
        )?;
    } else if damaged {
        checked.defects.iter().for_each(|defect| complain(&defect.error));
    } else {
        writeln!(
            out,
            "{}: whole; {} pages, {} lists, {} edges on both sides",
            args.store.display(),
            checked.pages,
            checked.lists,
            checked.edges
        )?;
    }
    out.flush()?;
    if damaged { Err(Failure::Said(String::new())) } else { Ok(()) }
}
