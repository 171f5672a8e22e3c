//! `thalweg read` without `--digest` and `--out`: reads are decoded, summed and timed.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use thalweg::reads::{Read, ReadFile, ReadSet, Selection, Summary, Visitor};
use thalweg::store::throttled::Limits;

use crate::common::{VerbResult, counted, output, shown_path};
use crate::digest;
use crate::progress::FetchProgress;
use crate::timing::{Started, received, stages, with_build};

/// The options of a timed read; the report repeats some of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimedJob {
    pub(super) threads: usize,
    pub(super) decode: bool,
    pub(super) pa: bool,
    pub(super) metadata: bool,
    pub(super) consumer_ns: u32,
    pub(super) throttle: Option<Limits>,
}

/// Sums every sample: the work of the consumer in every arm of a benchmark.
#[derive(Debug, Default)]
struct Sums {
    /// Of picoampere, the number of samples: programs round picoampere differently, and their rows
    /// must be equal.
    sum: i64,
    digest: u64,
    pa: Option<Picoampere>,
    /// Whether the metadata of a read are part of its row.
    metadata: bool,
    /// Nanoseconds that the consumer waits for each sample.
    delay_ns: u32,
    /// How long the consumer has worked.
    busy: Duration,
}

impl Sums {
    fn new(job: TimedJob) -> Self {
        let pa = job.pa.then(Picoampere::default);
        let (metadata, delay_ns) = (job.metadata, job.consumer_ns);
        Self { pa, metadata, delay_ns, ..Self::default() }
    }

    /// The mean of all samples in picoampere.
    fn mean_pa(&self, samples: u64) -> Option<f64> {
        self.pa.as_ref().filter(|_| samples > 0).map(|pa| pa.sum / samples as f64)
    }

    /// The sums of two threads together.
    fn and(self, other: &Self) -> Self {
        Self {
            sum: self.sum.wrapping_add(other.sum),
            digest: self.digest.wrapping_add(other.digest),
            pa: self.pa.map(|pa| pa.and(other.pa.as_ref())),
            busy: self.busy + other.busy,
            ..self
        }
    }
}

/// The consumer of picoampere: it converts each read into an array and sums that.
#[derive(Debug, Default)]
struct Picoampere {
    sum: f64,
    values: Vec<f32>,
}

impl Picoampere {
    fn add(&mut self, read: &Read<'_>) {
        self.values.clear();
        read.calibration().convert(read.samples, &mut self.values);
        // Independent sums, so that the compiler can vectorise them.
        let mut sums = [0.0; 8];
        let (blocks, rest) = self.values.as_chunks::<8>();
        for block in blocks {
            sums.iter_mut().zip(block).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        let rest: f64 = rest.iter().map(|&value| f64::from(value)).sum();
        self.sum += sums.iter().sum::<f64>() + rest;
    }

    fn and(self, other: Option<&Self>) -> Self {
        Self { sum: self.sum + other.map_or(0.0, |other| other.sum), ..self }
    }
}

impl Visitor for Sums {
    fn visit(&mut self, read: &Read<'_>) -> thalweg::Result<()> {
        let before = Instant::now();
        let sum = match &mut self.pa {
            Some(pa) => {
                pa.add(read);
                read.samples.len() as i64
            }
            None => read.sum(),
        };
        self.sum = self.sum.wrapping_add(sum);
        let metadata = if self.metadata { digest::metadata(read) } else { String::new() };
        let row = digest::light(read.record.read_id, read.samples.len(), sum, &metadata);
        self.digest = self.digest.wrapping_add(row);
        let delay = Duration::from_nanos(u64::from(self.delay_ns) * read.samples.len() as u64);
        if !delay.is_zero() {
            // A busy wait, because a slow consumer would be computing.
            let until = Instant::now() + delay;
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }
        self.busy += before.elapsed();
        Ok(())
    }
}

/// Reads everything that is selected, and prints the report.
pub(super) fn whole(
    set: &ReadSet,
    selection: &Selection,
    job: TimedJob,
    as_json: bool,
    started: Started,
    progress: FetchProgress,
) -> VerbResult {
    let (sums, summary) = if job.decode {
        let (sums, summary) = set.visit(selection, move || Sums::new(job))?;
        (Some(sums.iter().fold(Sums::new(job), Sums::and)), summary)
    } else {
        (None, set.fetch(selection)?)
    };
    let (seconds, cpu_s) = started.seconds();
    drop(progress);
    let mut out = output();
    if as_json {
        let report = with_build(
            report(sums.as_ref(), &summary, job, seconds, cpu_s),
            set.paths().map(shown_path),
        );
        writeln!(out, "{report}")?;
    } else {
        let clocks = summary.clocks;
        let stored = clocks.fetch.bytes as f64 / 1e6;
        if let Some(sums) = &sums {
            let mean = sums.mean_pa(summary.samples);
            let mean = mean.map(|mean| format!(", {mean:.2} pA on average")).unwrap_or_default();
            writeln!(
                out,
                "{}, {}{mean}, {stored:.1} MB stored, {:.1} MB decoded in {seconds:.3} s \
                 ({:.0} MB/s decoded)",
                counted(summary.reads, "read"),
                counted(summary.samples, "sample"),
                clocks.decode.bytes as f64 / 1e6,
                clocks.decode.bytes as f64 / 1e6 / seconds.max(1e-9),
            )?;
        } else {
            let rate = stored / seconds.max(1e-9);
            writeln!(
                out,
                "{}, {stored:.1} MB stored, not decoded, in {seconds:.3} s \
                 ({rate:.0} MB/s stored)",
                counted(summary.reads, "read")
            )?;
        }
        if let Some(received) = received() {
            writeln!(out, "{received}")?;
        }
    }
    out.flush()?;
    Ok(())
}

/// The JSON line about a whole read; without sums, nothing was decoded.
fn report(
    sums: Option<&Sums>,
    summary: &Summary,
    job: TimedJob,
    seconds: f64,
    cpu_s: f64,
) -> Value {
    let clocks = summary.clocks;
    let decoded = sums.map(|_| summary.samples * 2);
    let mut report = json!({
        "workload": if sums.is_some() { "thalweg" } else { "thalweg-fetch" },
        "open_to_last_s": seconds,
        "cpu_s": cpu_s,
        "reads": summary.reads,
        "samples": sums.map(|_| summary.samples),
        "sum": sums.map(|sums| sums.sum),
        "mean_pa": sums.and_then(|sums| sums.mean_pa(summary.samples)),
        "digest": sums.map(|sums| format!("{:016x}", sums.digest)),
        "threads": job.threads,
        "throttle": job.throttle.map(|limits| limits.to_string()),
        "bytes_stored": clocks.fetch.bytes,
        "bytes_decoded": decoded,
        "needed_bytes": clocks.fetch.bytes,
        "dependent_requests": summary.dependent_requests,
    });
    // The consumer works on the decoders' threads, between two reads.
    stages(&mut report, &clocks, sums.map_or(Duration::ZERO, |sums| sums.busy));
    report
}

/// Gets reads one by one, and prints a report with the latencies.
pub(super) fn one_by_one(
    file: &ReadFile,
    selection: &Selection,
    job: TimedJob,
    started: Started,
) -> VerbResult {
    let Selection::Ids(ids) = selection else { return Ok(()) };
    let mut getter = file.getter()?;
    let mut sums = Sums::new(job);
    let mut samples = 0_u64;
    let mut latencies = Vec::with_capacity(ids.len());
    let mut needed = 0;
    let mut stored = 0;
    let page = thalweg::store::PAGE as u64;
    for id in ids.iter() {
        let before = Instant::now();
        if job.decode {
            getter.get(id, |read| {
                samples += read.samples.len() as u64;
                sums.visit(read)
            })??;
        } else {
            getter.fetch(id)?;
        }
        // Summing is part of the latency, as it is for peers.
        latencies.push(before.elapsed().as_secs_f64() * 1e6);
        let size = getter.stored_bytes();
        stored += size;
        needed += size / page * page;
    }
    let (seconds, cpu_s) = started.seconds();
    latencies.sort_by(f64::total_cmp);
    let quantile = |q: f64| {
        latencies
            .get(((latencies.len() as f64 * q) as usize).min(latencies.len().saturating_sub(1)))
    };
    let report = json!({
        "workload": if job.decode { "thalweg-get1" } else { "thalweg-get1-fetch" },
        "open_to_last_s": seconds,
        "cpu_s": cpu_s,
        "reads": ids.len(),
        "samples": job.decode.then_some(samples),
        "bytes_stored": stored,
        "bytes_decoded": job.decode.then_some(samples * 2),
        "needed_bytes": needed,
        // Each request waits for its predecessor, the first one for the header.
        "requests": ids.len(),
        "dependent_requests": ids.len() as u64 + file.header_requests(),
        "sum": job.decode.then_some(sums.sum),
        "mean_pa": sums.mean_pa(samples),
        "digest": job.decode.then(|| format!("{:016x}", sums.digest)),
        "threads": 1,
        "throttle": job.throttle.map(|limits| limits.to_string()),
        "stages": { "deliver": { "busy_s": sums.busy.as_secs_f64() } },
        "latency_us": { "p50": quantile(0.5), "p99": quantile(0.99), "max": latencies.last() },
    });
    let mut out = output();
    writeln!(out, "{}", with_build(report, [file.store().name().to_string()]))?;
    out.flush()?;
    Ok(())
}
