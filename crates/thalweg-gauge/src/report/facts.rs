//! The facts that every report shows, as text: rows, remarks, environment, method.

use serde_json::Value;

use super::table::NOTHING;
use crate::cache_level::CacheLevel;
use crate::comparison::{ArmSummary, Clock, Comparison, FilePlace};
use crate::host::{CpuCache, Host};
use crate::schedule::ArmOrder;
use crate::stats::{CONFIDENCE, MIN_PAIRS, RatioFinding};
use crate::units::{bandwidth, binary_bytes, decimal_bytes, digits, seconds};

/// The columns of the table. Cells other than times contain their unit.
pub(super) fn header(c: &Comparison) -> [String; 9] {
    let baseline = c.session.arms.first().map_or("", |a| a.name.as_str());
    [
        "arm".into(),
        "caches".into(),
        format!("{}, median [min..max]", c.session.clock.name()),
        format!("time / {baseline}'s [95 %]"),
        "shown".into(),
        "CPU s".into(),
        "private memory".into(),
        "from device".into(),
        "of machine's limit".into(),
    ]
}

/// Date and machine in one line.
pub(super) fn lead(c: &Comparison) -> String {
    let h = &c.session.host;
    let cpus = h.cpus_usable.map(|n| format!("{n} CPUs"));
    let place = c.session.places.iter().find_map(|p| Some(p.place.as_ref()?.file_system.clone()));
    let parts = [
        Some(date(c.session.started_unix_s)),
        h.cpu_model.clone().or_else(|| Some(h.architecture.clone())),
        cpus,
        h.memory_bytes.map(|b| binary_bytes(b as f64)),
        place,
        Some(format!("Linux {}", h.kernel)).filter(|_| !h.kernel.is_empty()),
        Some(format!("thalweg-gauge {}", c.session.gauge_version)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The day in UTC.
pub(crate) fn date(unix_s: f64) -> String {
    let time = jiff::Timestamp::from_second(unix_s as i64).unwrap_or_default();
    time.strftime("%Y-%m-%d").to_string()
}

/// One row for each arm, with the columns of [`header`].
pub(super) fn rows(c: &Comparison) -> Vec<[String; 9]> {
    c.summaries.iter().enumerate().map(|(i, s)| row(c, i, s)).collect()
}

fn row(c: &Comparison, index: usize, s: &ArmSummary) -> [String; 9] {
    let or_nothing = |text: Option<String>| text.unwrap_or_else(|| NOTHING.into());
    let time = match (&s.time_s, &s.failed) {
        (_, Some(_)) => "failed".into(),
        (Some(t), _) => format!("{} [{}..{}]", seconds(t.median), seconds(t.min), seconds(t.max)),
        (None, _) if s.rejected > 0 => format!("all {} rejected", s.rejected),
        _ => NOTHING.into(),
    };
    let ratio = match (s.ratio, &c.refused) {
        (_, Some(_)) => "refused".into(),
        (Some(r), _) => r.to_string(),
        (None, _) if index == 0 => "1 (baseline)".into(),
        _ => NOTHING.into(),
    };
    [
        s.arm.clone(),
        or_nothing(s.level.map(|l| l.to_string())),
        time,
        ratio,
        or_nothing(s.finding.map(|f| f.to_string())),
        or_nothing(s.cpu_s.map(digits)),
        or_nothing(s.peak_anon_bytes.map(|b| binary_bytes(b as f64))),
        or_nothing(s.device_read_bytes.map(|b| decimal_bytes(b as f64))),
        or_nothing(s.fraction_of_floor.map(|f| format!("{} %", digits(f * 100.0)))),
    ]
}

/// Why the comparison allows no conclusion; `None` if it allows one. Reports show it above
/// everything else.
pub(super) fn alarm(c: &Comparison) -> Option<String> {
    if let Some(why) = &c.refused {
        return Some(format!("REFUSED: the arms did not decode the same values. {why}"));
    }
    let used = match c.look {
        Some(look) => format!(
            "ratios and findings are those of the look planned after {} rounds",
            look.rounds
        ),
        None => {
            "nothing is concluded, because the moment of stopping was not decided beforehand".into()
        }
    };
    c.stopped().then(|| {
        format!("STOPPED after {} of at most {} rounds: {used}", c.rounds, c.session.rounds)
    })
}

/// Remarks for a careful reader: failures, rejections, noise, other load, doubts about the probe.
pub(super) fn remarks(c: &Comparison) -> Vec<String> {
    let mut remarks = Vec::new();
    for s in &c.summaries {
        if let Some(why) = &s.failed {
            remarks.push(format!("{} failed and was taken out: {}", s.arm, why.trim_end()));
        }
        if s.rejected > 0 {
            let why = c.trials.iter().find_map(|t| t.rejected.as_ref().filter(|_| t.arm == s.arm));
            let why = why.map(|w| format!("; the first: {w}")).unwrap_or_default();
            remarks
                .push(format!("{}: {} trials rejected and not averaged{why}", s.arm, s.rejected));
        }
        let asked = c.session.arms.iter().find(|a| a.name == s.arm).map(|a| a.level);
        if s.level.is_some() && s.level != asked {
            let asked = asked.unwrap_or(CacheLevel::Unverified);
            let got = s.level.unwrap_or(CacheLevel::Unverified);
            remarks.push(format!("{}: {asked} was asked for, {got} is what could be shown", s.arm));
        }
    }
    let mut levels: Vec<String> =
        c.summaries.iter().filter_map(|s| s.level).map(|l| l.to_string()).collect();
    levels.sort();
    levels.dedup();
    if levels.len() > 1 {
        let levels = levels.join(" with ");
        remarks.push(format!(
            "the ratios compare {levels} trials: they are about caches as much as about programs"
        ));
    }
    if let Some((noise, floor)) = c.noise.zip(c.noise_floor) {
        let percent = digits((floor - 1.0) * 100.0);
        remarks.push(format!(
            "noise: the baseline against itself gave {noise}; a claim must clear {percent} %"
        ));
    } else if c.session.arms.len() > 1 && c.refused.is_none() {
        remarks.push("noise between identical arms was not measured".into());
    }
    if c.summaries.iter().any(|s| s.finding == Some(RatioFinding::TooFewPairs)) {
        remarks.push(format!("an interval needs {MIN_PAIRS} pairs of trials at least"));
    }
    remarks.extend(c.flags.iter().map(ToString::to_string));
    remarks.extend(out_of_sight(c));
    for p in &c.probes {
        remarks.extend(p.notes.iter().map(|n| format!("limit: {n}")));
    }
    remarks
}

/// Signs of caches that eviction on this machine does not reach.
fn out_of_sight(c: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    for p in &c.session.places {
        if let Some(place) = p.place.as_ref().filter(|place| place.remote) {
            let kind = &place.file_system;
            notes.push(format!(
                "{}: {kind}: what its server has in memory can't be known from here",
                p.file
            ));
        }
    }
    for p in &c.probes {
        let Some((twice, speedup)) = p.twice.as_ref().and_then(|t| Some((t, t.speedup()?))) else {
            continue;
        };
        let again = format!(
            "read again past the page cache, its parts came {} times as fast",
            digits(speedup)
        );
        if twice.shows_a_cache() {
            notes.push(format!(
                "{}: {again}: a cache beneath this system answers, and cold is cold only here",
                p.file
            ));
        } else if c.session.host.virtual_machine {
            notes.push(format!(
                "{}: {again}: no sign of a cache of the virtual machine's host, or it had \
                 all of it",
                p.file
            ));
        }
    }
    notes
}

/// The machine and the files, as names with values.
pub(super) fn environment(c: &Comparison) -> Vec<(String, String)> {
    let mut facts = machine_facts(&c.session.host);
    let mut say = |name: String, value: Option<String>| {
        facts.extend(value.map(|value| (name, value)));
    };
    for p in &c.session.places {
        say(p.file.clone(), Some(file_in_words(p)));
    }
    for s in &c.summaries {
        say(format!("program of {}", s.arm), program(s));
    }
    for p in &c.probes {
        let best = p.best().map(|b| {
            let block = binary_bytes(b.block_bytes as f64);
            format!("{} with {} requests of {block} in flight", bandwidth(b.bytes_per_s), b.depth)
        });
        say(format!("device limit of {}", p.file), p.device_bytes_per_s().map(bandwidth));
        say("best of the sweep".into(), best);
        say("one buffered stream".into(), p.single_stream_bytes_per_s.map(bandwidth));
        let scattered = p.requests_per_s().map(|r| format!("{r:.0} requests/s"));
        say("small scattered reads".into(), scattered);
        say("memory copy".into(), p.memory_bytes_per_s().map(bandwidth));
    }
    say("measured by".into(), Some(format!("thalweg-gauge {}", c.session.gauge_version)));
    facts
}

/// The machine, as names with values. Unknown facts are left out.
fn machine_facts(h: &Host) -> Vec<(String, String)> {
    let usable = h.cpus_usable.map_or(String::new(), |n| format!(", {n} usable"));
    let cache = |x: &CpuCache| format!("L{} {} {}", x.level, x.kind, binary_bytes(x.bytes as f64));
    let caches: Vec<String> = h.cpu_caches.iter().map(cache).collect();
    let settings: Vec<String> =
        h.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let bytes = |n: Option<u64>| n.map(|b| binary_bytes(b as f64));
    let facts = [
        ("CPU", h.cpu_model.clone().or_else(|| Some(h.architecture.clone()))),
        ("CPUs", h.cpus_online.map(|n| format!("{n}{usable}"))),
        ("caches", (!caches.is_empty()).then(|| caches.join(", "))),
        ("governor", h.governor.clone()),
        ("memory", bytes(h.memory_bytes)),
        ("memory limit of the control group", bytes(h.cgroup_memory_bytes)),
        ("CPU limit of the control group", h.cgroup_cpus.map(|n| format!("{} CPUs", digits(n)))),
        ("device limits of the control group", h.cgroup_io.clone()),
        ("swap", bytes(h.swap_bytes)),
        ("kernel", Some(h.kernel.clone())),
        ("kernel settings", (!settings.is_empty()).then(|| settings.join("; "))),
        ("distribution", h.distribution.clone()),
        ("C library", h.c_library.clone()),
        ("virtual machine", h.virtual_machine.then(|| "yes".into())),
        ("container", h.container.clone()),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The size of a file, and the file system and device that it lies on.
fn file_in_words(p: &FilePlace) -> String {
    let size = decimal_bytes(p.bytes as f64);
    let Some(place) = &p.place else { return format!("{size}; place unknown") };
    let block = place.block.as_ref().map_or(String::new(), |b| {
        let word = |w: &Option<String>| w.clone().unwrap_or_else(|| "?".into());
        let ahead = b.read_ahead_kib.map_or("?".into(), |k| k.to_string());
        format!(", {} (scheduler {}, read-ahead {ahead} KiB)", b.name, word(&b.scheduler))
    });
    let ahead = place.read_ahead_kib.map_or(String::new(), |k| format!(", read-ahead {k} KiB"));
    let stripe = place.stripe.as_ref().map_or(String::new(), |s| {
        let first = if s.composite { " (its first part)" } else { "" };
        let bytes = binary_bytes(f64::from(s.bytes));
        format!(", striped over {} targets by {bytes}{first}", s.count)
    });
    let mount = format!("{} on {} ({})", place.file_system, place.source, place.options);
    format!("{size}; {mount}{block}{ahead}{stripe}")
}

/// The program of an arm by its own report: version and build.
fn program(s: &ArmSummary) -> Option<String> {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let build: Vec<String> = match &s.build {
        Some(Value::Object(parts)) => {
            parts.iter().map(|(name, value)| format!("{name} {}", plain(value))).collect()
        }
        other => other.iter().map(plain).collect(),
    };
    let all: Vec<String> = s.version.clone().into_iter().chain(build).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// The method of the measurement.
pub(super) fn method(c: &Comparison) -> Vec<String> {
    let percent = digits(CONFIDENCE * 100.0);
    vec![
        format!(
            "Each trial is a fresh process. Each round ran every arm once, {}; at most {} rounds \
             were planned, with looks at the intervals after {}.",
            match c.session.order {
                ArmOrder::Abba => "in alternating order (ABBA)".into(),
                ArmOrder::Random { seed } => format!("in random order (seed {seed})"),
            },
            c.session.rounds,
            c.session
                .looks()
                .iter()
                .map(|look| look.rounds.to_string())
                .collect::<Vec<_>>()
                .join(", ")
        ),
        match c.session.clock {
            Clock::TimeToSamples => "Time to samples runs from open to the last batch in the \
                 consumer's hands, by the workload's own report; process and interpreter \
                 start-up are outside it."
                .into(),
            Clock::Wall => {
                "The wall time of the whole process is compared, because not every arm reports \
                 its own."
                    .into()
            }
        },
        "Cold: evicted, residency checked before; at least 99 % of the bytes needed seen to come \
         from the device. Hot: wholly in the page cache before, next to nothing from the device. \
         What contradicts its level is rejected and never averaged; what can't be shown is \
         labelled."
            .into(),
        format!(
            "A ratio is the median of the paired ratios; its {percent} % interval is the sign \
             test's, which assumes no distribution. Each comparison with the baseline has its \
             own {percent} %."
        ),
        "The limit is the larger of stored bytes at the device's best bandwidth and decoded \
         bytes at that of a memory copy, probed in the same session; decoding is not part of it. \
         MB is 10^6 bytes, MiB 2^20."
            .into(),
    ]
}
