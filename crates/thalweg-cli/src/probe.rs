//! `thalweg probe`: measures the store model of a device, and saves it.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use thalweg::model::{StoreModel, saved};
use thalweg::new_file::NewFile;
use thalweg::store::FileStore;
use thalweg::{OpenedStore, Options};
use thalweg_gauge::limit::{ObjectProbeLimits, Probe, ProbeOptions, probe, probe_object};
use thalweg_gauge::units::{bandwidth, binary_bytes, decimal_bytes, digits, seconds};
use thalweg_io::open::{Counts, counts_of_urls, url_device};
use thalweg_io::urls::{self, is_file, shown, url};

use crate::common::{Failure, VerbResult, complain, counted, output, parse_bytes, shown_path};
use crate::open::TimeoutArgs;
use crate::options::is_given;
use crate::signals::{cancel_on_signal, flag_on_signal};

/// Measure the device under a file or folder, or the line to an object store, and save its model
/// for later reads
///
/// Reads parts of FILE past the page cache, with several request sizes and several numbers of
/// requests in flight. In a FOLDER, it writes a temporary file, reads that, and removes it. Of an
/// object at a URL, it asks for ranges, and writes nothing; the object should have 64 MB or more.
/// That costs up to 50,000 GETs and the bytes of --most, on a fast line. The model is valid for 30
/// days, for every file on that device, or every object of that bucket or HTTP server.
///
/// Example: thalweg probe /data --budget-s 20
///
/// Example: thalweg probe s3://bucket/reads.pod5
#[derive(Debug, clap::Args)]
pub(crate) struct ProbeArgs {
    /// A large file or object, or a folder to write a temporary file in
    path: PathBuf,
    /// Print one JSON line: the model, the whole table, and where the model was saved
    #[arg(long)]
    json: bool,
    /// How many seconds the reads may take in all, about so many of a file
    #[arg(long, value_name = "SECONDS", default_value_t = 12)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3600))]
    budget_s: u32,
    /// Size of the temporary file
    #[arg(long, value_name = "SIZE", default_value = "256MB", value_parser = parse_bytes)]
    file_size: u64,
    /// URLs: the most bytes that are asked for
    #[arg(long, value_name = "SIZE", default_value = "4GB", value_parser = parse_bytes)]
    most: u64,
    #[command(flatten)]
    timeout: TimeoutArgs,
}

pub(crate) fn run(args: &ProbeArgs) -> VerbResult {
    for (name, fits, what) in [
        ("most", url(&args.path).is_some(), "a URL"),
        ("file_size", args.path.is_dir(), "a folder"),
    ] {
        if is_given(name) && !fits {
            let (path, name) = (shown_path(&args.path), name.replace('_', "-"));
            return Err(Failure::Usage(format!("{path}: --{name} is for {what}")));
        }
    }
    let (found, device) = match url(&args.path) {
        Some(url) => object(args, url)?,
        None => device(args)?,
    };
    let model = found.store_model().ok_or_else(|| {
        Failure::Said(format!("{}: {}", found.file, found.notes.first().map_or("no model", |n| n)))
    })?;
    let place = match (saved::folder(), device) {
        (Some(folder), Some(device)) => {
            saved::save(&folder, &saved::Saved::new(device, model, SystemTime::now()))
                .map_err(|e| e.to_string())
        }
        (None, _) => Err("neither XDG_CACHE_HOME nor HOME is set".into()),
        (_, None) => Err("the system does not tell which device this is".into()),
    };
    let counts = url(&args.path).map(|_| counts_of_urls());
    let mut out = output();
    if args.json {
        writeln!(out, "{}", as_json(&found, &model, place.as_deref().ok(), counts))?;
    } else {
        write!(out, "{}", in_words(&found, &model))?;
        if let Some(counts) = counts {
            writeln!(out, "it took {}", took(counts))?;
        }
        if let Ok(place) = &place {
            writeln!(out, "saved as {}; it holds for 30 days", shown_path(place))?;
        }
    }
    out.flush()?;
    place.map(drop).map_err(|why| Failure::Said(format!("the model was not saved: {why}")))
}

/// A probe, and the name of what was probed.
type Probed = (Probe, Option<String>);

/// Measures the line to an object.
fn object(args: &ProbeArgs, url: &str) -> Result<Probed, Failure> {
    if is_file(url) {
        let words = "a URL of a file: give its path to measure the device".into();
        return Err(Failure::Usage(words));
    }
    complain(&format!(
        "{}: takes up to {} s, {} GETs and {} (--budget-s, --most)",
        shown(url),
        args.budget_s,
        ObjectProbeLimits::REQUESTS,
        decimal_bytes(args.most as f64)
    ));
    let control = cancel_on_signal();
    let limits = ObjectProbeLimits::new(budget(args), args.most);
    let part = control.until(limits.end);
    let options =
        Options { control: part.clone(), timeout: args.timeout.timeout(), ..Options::default() };
    let probe = OpenedStore::unthrottled(&args.path, &options)
        .map_err(Failure::from)
        .and_then(|opened| Ok(probe_object(&opened.store, limits, &part)?));
    let found = match probe {
        Err(Failure::Failed(thalweg::Error::Cancelled)) if !control.is_cancelled() => None,
        probe => probe?,
    };
    let found = found.ok_or_else(|| {
        Failure::Said(format!(
            "{}: cut short by --budget-s or --most before the bandwidth was measured, after {}: no \
             model is saved; give more, or expect little of this line",
            shown(url),
            took(counts_of_urls())
        ))
    })?;
    Ok((found, Some(url_device(url)?)))
}

/// The requests and bytes that a probe took, in words.
fn took(Counts { requests, bytes, .. }: Counts) -> String {
    format!("{} and {}", counted(requests, "request"), decimal_bytes(bytes as f64))
}

fn budget(args: &ProbeArgs) -> Duration {
    Duration::from_secs(args.budget_s.into())
}

/// Measures the device under a file or folder.
fn device(args: &ProbeArgs) -> Result<Probed, Failure> {
    let stop = flag_on_signal();
    let meta = std::fs::metadata(&args.path).map_err(|e| io_error(&args.path, "looking up", e))?;
    let temporary =
        meta.is_dir().then(|| temporary(&args.path, args.file_size, &stop)).transpose()?;
    let path = temporary.as_ref().map_or(&*args.path, NewFile::temporary);
    // A pipe without a writer would have this wait for ever.
    let device = saved::device(FileStore::open(path)?.file());
    let options = ProbeOptions::sweep_within(budget(args));
    let found = probe(path, &options, &stop, &mut |_, _| {})?;
    if stop.load(Ordering::Relaxed) {
        return Err(thalweg::Error::Cancelled.into());
    }
    drop(temporary);
    let found = Probe { file: urls::shown_path(&args.path), ..found };
    Ok((found, device))
}

fn io_error(path: &Path, doing: &'static str, error: io::Error) -> Failure {
    Failure::Failed(thalweg::Error::io(&urls::shown_path(path).into(), doing, error))
}

/// The name of the temporary file in messages; it never gets it.
const TEMPORARY: &str = ".thalweg-probe";

/// Writes a temporary file of bytes that no device can compress. It is removed when it is dropped.
fn temporary(folder: &Path, size: u64, stop: &AtomicBool) -> thalweg::Result<NewFile> {
    let mut file = NewFile::create(&folder.join(TEMPORARY))?;
    // The seed does not matter: no block of the stream repeats.
    let mut random = SmallRng::seed_from_u64(1);
    let mut block = vec![0; 4 << 20];
    while file.len() < size {
        if stop.load(Ordering::Relaxed) {
            return Err(thalweg::Error::Cancelled);
        }
        random.fill_bytes(&mut block);
        let n = block.len().min(usize::try_from(size - file.len()).unwrap_or(usize::MAX));
        file.push(&block[..n])?;
    }
    file.seal()?;
    Ok(file)
}

fn as_json(
    found: &Probe,
    model: &StoreModel,
    place: Option<&Path>,
    counts: Option<Counts>,
) -> serde_json::Value {
    json!({
        "schema": "thalweg.probe/1",
        "path": found.file,
        "model": model,
        "latency": found.latency,
        "connection_bytes_per_s": found.connection_bytes_per_s(),
        "object_store": counts,
        "saved_as": place.map(urls::shown_path),
        "probe": found,
    })
}

/// The table (a row for each size of request, a column for each number in flight), then the model.
fn in_words(found: &Probe, model: &StoreModel) -> String {
    let mut sweep: Vec<_> = found.points.iter().filter(|p| !p.scattered).collect();
    sweep.sort_by_key(|p| (p.block_bytes, p.depth));
    let mut depths: Vec<usize> = sweep.iter().map(|p| p.depth).collect();
    depths.sort_unstable();
    depths.dedup();
    let mut text = String::from("MB/s       ");
    for depth in &depths {
        let _ = write!(text, " {:>9}", format!("{depth} deep"));
    }
    for row in sweep.chunk_by(|a, b| a.block_bytes == b.block_bytes) {
        let _ = write!(
            text,
            "\n{:>11}",
            row.first().map_or_else(String::new, |p| binary_bytes(p.block_bytes as f64))
        );
        for depth in &depths {
            let cell = row.iter().find(|p| p.depth == *depth).map_or_else(String::new, |p| {
                let mark = if (p.depth, p.block_bytes) == (model.depth, model.block as u64) {
                    "*"
                } else {
                    ""
                };
                format!("{mark}{:.0}", p.bytes_per_s / 1e6)
            });
            let _ = write!(text, " {cell:>9}");
        }
    }
    let _ = writeln!(
        text,
        "\n\nmodel: {} with {} requests of {} in flight (*), latency {}, {} small requests/s",
        bandwidth(model.bandwidth),
        model.depth,
        binary_bytes(model.block as f64),
        seconds(model.latency_s),
        digits(model.request_rate),
    );
    if let Some(latency) = found.latency {
        let rate = found.connection_bytes_per_s();
        let _ = writeln!(
            text,
            "latency: half of {} within {}, 99 of 100 within {}; one connection: {}",
            counted(latency.requests, "small request"),
            seconds(latency.median_s),
            seconds(latency.p99_s),
            rate.map_or_else(|| "faster than the latency shows".into(), bandwidth),
        );
    }
    for note in &found.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}
