//! `thalweg plot`: a read, a run, or the events of a NeXus file, as a picture or a page.

mod draw;
mod histogram;
#[cfg(feature = "hdf5")]
mod nexus;
mod page;
mod panel;
mod read;
mod run;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use thalweg::new_file::NewFile;

use crate::common::{Failure, Outcome, ReadArgs, open_set};
use crate::progress::Progress;
use panel::{Axis, Marks, Panel};

#[cfg(feature = "hdf5")]
use crate::hdf5;

/// Draw a read's signal, a run (lengths, yield over time, end reasons, channels), or neutron events
/// (rate, time of flight, detectors)
///
/// The name of OUT says what it becomes: .png, .svg, or .html, a page that can be zoomed and needs
/// no network. Long signals keep the least and the greatest value of every stretch, so that spikes
/// stay.
///
/// Example: thalweg plot reads.blow5 --read 00213403-4297-4f03-8412-3cc8b9cb845a --pa --to read.png
///
/// Example: thalweg plot run/ --to run.html
///
/// Example: thalweg plot run.nxs --bank 'bank1*' --to events.png
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files of reads, folders of them, and patterns such as 'runs/**/*.blow5'; or a NeXus file
    /// with events
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// The picture or page to write; its name ends in .png, .svg or .html
    #[arg(long, short = 'o', visible_alias = "out", value_name = "OUT")]
    to: PathBuf,
    /// Draw this read's signal
    #[arg(long, value_name = "ID")]
    read: Option<String>,
    /// In picoampere rather than raw units
    #[arg(long, requires = "read")]
    pa: bool,
    /// Width of a picture in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 1400, value_parser = clap::value_parser!(u32).range(400..=4000))]
    width: u32,
    /// NeXus: only banks whose name, or path in the file, matches this pattern; may be given more
    /// than once
    #[arg(long, value_name = "GLOB", conflicts_with = "read")]
    bank: Vec<String>,
    /// HDF5: take the file for harmless; see `thalweg read --help`
    #[arg(long)]
    trusted: bool,
    #[command(flatten)]
    options: ReadArgs,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let kind = kind(&args.to)?;
    // Pages are zoomed into: they get more points than a screen has pixels.
    let points = if kind == "html" { 20_000 } else { args.width as usize };
    let (title, panels) = panels(args, points)?;
    write(&args.to, &title, &panels, args.width)
}

/// What the name of a picture says that it is to be.
fn kind(to: &Path) -> Result<&str, Failure> {
    let kind = to.extension().and_then(|e| e.to_str()).unwrap_or_default();
    if ["png", "svg", "html"].contains(&kind) {
        return Ok(kind);
    }
    Err(Failure::Usage(format!("{}: the name must end in .png, .svg or .html", to.display())))
}

fn write(to: &Path, title: &str, panels: &[Panel], width: u32) -> Outcome {
    let bytes = match kind(to)? {
        "png" => draw::png(title, panels, width)?,
        "svg" => draw::svg(title, panels, width)?.into_bytes(),
        _ => page::page(title, panels).into_bytes(),
    };
    let mut out = NewFile::create(to)?;
    out.push(&bytes)?;
    out.finish()?;
    Ok(())
}

/// Width of a picture in pixels, and its bars.
const WIDTH: u32 = 1400;
const BARS: usize = 120;

/// Draws how many vertices have how many neighbours.
pub(crate) fn degrees(to: &Path, title: &str, degrees: &BTreeMap<u64, u64>) -> Outcome {
    let mut histogram = histogram::Histogram::new(f64::MAX);
    degrees.iter().for_each(|(degree, count)| histogram.add(*degree as f64, *count));
    let bars: Vec<(f64, f64, f64)> = histogram
        .bars(BARS, 1.0)
        .into_iter()
        .map(|(left, right, count)| (left, right, count as f64))
        .collect();
    let ends = bars.first().zip(bars.last()).map_or((0.0, 1.0), |(first, last)| (first.0, last.1));
    let most = bars.iter().map(|bar| bar.2).fold(0.0, f64::max);
    let panel = Panel {
        title: "Vertices by how many neighbours they have".into(),
        x: Axis::new("neighbours", ends.0, ends.1),
        y: Axis::new("vertices", 0.0, most),
        marks: Marks::Bars(bars),
        note: String::new(),
    };
    write(to, title, &[panel], WIDTH)
}

fn panels(args: &Args, points: usize) -> Result<(String, Vec<Panel>), Failure> {
    let options = if args.trusted { args.options.trusting() } else { args.options.options() };
    #[cfg(feature = "hdf5")]
    if let [path] = &args.paths[..]
        && let Some(file) = hdf5::open(path, &options, args.trusted)?
    {
        if args.read.is_some() {
            return Err(Failure::Usage(format!(
                "{}: --read draws a read, and the file has none",
                path.display()
            )));
        }
        return nexus::panels(&file, &args.bank, points / 4);
    }
    if !args.bank.is_empty() {
        return Err(Failure::Usage("--bank is for the events of one NeXus file".into()));
    }
    let control = options.control.clone();
    let set = open_set(&args.paths, options)?;
    let _progress = Progress::watch(&control, set.bytes());
    match &args.read {
        Some(id) => read::panels(&set, id, args.pa, points),
        None => run::panels(&set),
    }
}
