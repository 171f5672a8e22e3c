//! What all reports about timed work contain: the time taken, the stages, the build.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use thalweg::engine::Clocks;
use thalweg_gauge::units::decimal_bytes;
use thalweg_io::open::{Counts, counts_of_urls};

use crate::common::counted;

/// The start of timed work: wall clock, and the CPU time of the process so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    pub(crate) at: Instant,
    pub(crate) cpu: Duration,
}

impl Started {
    pub(crate) fn now() -> Self {
        Self { at: Instant::now(), cpu: process_cpu() }
    }

    /// Seconds since the start: wall time and CPU time.
    pub(crate) fn seconds(&self) -> (f64, f64) {
        (self.at.elapsed().as_secs_f64(), process_cpu().saturating_sub(self.cpu).as_secs_f64())
    }
}

/// The CPU time of this process so far.
pub(crate) fn process_cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Adds to a report where a run's time went. `consumer`: the part of the decoders' time that the
/// consumer took.
pub(crate) fn stages(report: &mut Value, clocks: &Clocks, consumer: Duration) {
    let stage = |busy: Duration, exposed: Duration, bytes: u64| {
        json!({
            "busy_s": busy.as_secs_f64(),
            "exposed_s": exposed.as_secs_f64(),
            "bytes": bytes,
        })
    };
    let Clocks { fetch, decode, deliver, .. } = clocks;
    report["requests"] = clocks.requests.into();
    report["max_depth"] = clocks.max_depth.into();
    report["peak_buffers"] = clocks.peak_buffers.into();
    report["peak_oversize"] = clocks.peak_oversize.into();
    report["stages"] = json!({
        "fetch": stage(fetch.busy, fetch.exposed, fetch.bytes),
        "decode": stage(decode.busy.saturating_sub(consumer), decode.exposed, decode.bytes),
        "deliver": stage(deliver.busy + consumer, deliver.exposed, decode.bytes),
    });
}

/// What was received from object stores, in words; `None` if nothing was asked of one.
pub(crate) fn received() -> Option<String> {
    let Counts { requests, retries, hedges, bytes, .. } = counts_of_urls();
    let received = decimal_bytes(bytes as f64);
    (requests > 0).then(|| {
        let asked = counted(requests, "request");
        format!("{received} received in {asked}: {retries} tried again, {hedges} made twice")
    })
}

/// Adds to a report what was received from object stores, if anything was.
pub(crate) fn add_received(report: &mut Value) {
    let counts = counts_of_urls();
    if counts.requests > 0 {
        report["object_store"] = json!(counts);
    }
}

/// Adds to a report what it is about, the version of the program, and how it was built.
pub(crate) fn with_build(mut report: Value, paths: impl IntoIterator<Item = String>) -> Value {
    add_received(&mut report);
    let paths: Vec<String> = paths.into_iter().collect();
    match &paths[..] {
        [path] => report["path"] = path.clone().into(),
        _ => report["paths"] = paths.into(),
    }
    report["schema"] = "thalweg.workload/1".into();
    report["version"] = concat!("thalweg ", env!("CARGO_PKG_VERSION")).into();
    report["build"] = json!({
        "compiler": env!("THALWEG_COMPILER"),
        "flags": env!("THALWEG_FLAGS"),
        "allocator": thalweg_gauge::host::allocator(),
        "zstd": thalweg::codec::zstd::version(),
    });
    report
}
