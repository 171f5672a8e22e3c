//! `thalweg plot`: draws a read, a run, or the events of a NeXus file, as a picture or a page.

mod read;
mod run;

use std::path::PathBuf;
use std::time::Instant;

use thalweg::Opened;

use crate::arrays;
use crate::chart::{self, Panel};
use crate::common::{Failure, VerbResult, counted, shown_path};
use crate::done::say_done;
use crate::force::ForceArgs;
use crate::open::{ReadArgs, identify, open_set_with};
use crate::options::{Kind, check as check_options, is_given};
use crate::progress::FetchProgress;

/// Draw a read's signal, a run (lengths, yield over time, end reasons, channels), or neutron events
/// (rate, time of flight, detectors)
///
/// The name of OUT says the format: .png, .svg, or .html, a page that can be zoomed and needs no
/// network. Long signals are drawn from the least and the greatest value of every stretch, so that
/// spikes remain visible.
///
/// Example: thalweg plot reads.blow5 --read 00213403-4297-4f03-8412-3cc8b9cb845a --pa -o read.png
///
/// Example: thalweg plot run/ --out run.html
///
/// Example: thalweg plot run.nxs --bank 'bank1*' --out events.png
#[derive(Debug, clap::Args)]
pub(crate) struct PlotArgs {
    /// Files of reads, folders of them, and patterns such as 'runs/**/*.blow5'; or a NeXus file
    /// with events
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// The picture or page to write; its name ends in .png, .svg or .html
    #[arg(long, short = 'o', value_name = "OUT")]
    out: PathBuf,
    /// Draw this read's signal
    #[arg(long, value_name = "ID")]
    read: Option<String>,
    /// In picoampere rather than raw units
    #[arg(long, requires = "read")]
    pa: bool,
    /// Width of a picture in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 1400)]
    #[arg(value_parser = clap::value_parser!(u32).range(400..=4000))]
    width: u32,
    /// NeXus: only banks whose name, or path in the file, matches this pattern; may be given more
    /// than once
    #[arg(long, value_name = "GLOB", conflicts_with = "read")]
    bank: Vec<String>,
    /// HDF5: trust the file; see `thalweg read --help`
    #[arg(long)]
    trusted: bool,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    options: ReadArgs,
}

pub(crate) fn run(args: &PlotArgs) -> VerbResult {
    let started = Instant::now();
    // A page can be zoomed, so it gets more points than a screen has pixels.
    let points = if chart::format_of(&args.out)? == "html" { 20_000 } else { args.width as usize };
    if chart::format_of(&args.out)? == "html" && is_given("width") {
        let to = shown_path(&args.out);
        return Err(Failure::Usage(format!(
            "{to}: --width is for pictures; a page fits its window"
        )));
    }
    args.force.check(&args.out, &args.paths)?;
    let (title, panels) = panels(args, points)?;
    chart::write(&args.out, &title, &panels, args.width)?;
    let drawn = counted(panels.len() as u64, "panel");
    say_done(&format!("drew {drawn}"), &args.out, started.elapsed().as_secs_f64());
    Ok(())
}

fn panels(args: &PlotArgs, points: usize) -> Result<(String, Vec<Panel>), Failure> {
    let options = args.options.options();
    let mut known = None;
    if let [path] = &args.paths[..]
        && let Some(identified) = identify(path, args.trusted, &options)?
    {
        match identified.open(options.clone())? {
            Opened::Arrays(file) => {
                check_options(path, Kind::Arrays)?;
                file.check_output(&args.out).map_err(Failure::of_argument)?;
                return arrays::event_panels(&file, &args.bank, points / 4);
            }
            other => known = Some(other.into_reads()?),
        }
    }
    if let Some(path) = args.paths.first() {
        check_options(path, Kind::Reads)?;
    }
    let control = options.control.clone();
    let set = open_set_with(&args.paths, known, options)?;
    args.force.check(&args.out, set.paths())?;
    let _progress = FetchProgress::watch(&control, set.bytes());
    match &args.read {
        Some(id) => read::panels(&set, id, args.pa, points),
        None => run::panels(&set),
    }
}
