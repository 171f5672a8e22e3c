//! Remarks on published tables beyond their conclusions. All of them are arithmetic on the typed
//! figures.

use serde_json::Value;

use super::published::{Claim, Published, PublishedFigure};
use crate::stats::median;
use crate::units::{bandwidth, binary_bytes, decimal_bytes, digits, seconds};

/// All remarks on a publication.
pub(super) fn of(p: &Published) -> Vec<String> {
    let mut remarks: Vec<String> = p.source.claims.iter().filter_map(|c| claim(p, c)).collect();
    remarks.extend(gain(p));
    remarks.extend(beyond_link(p));
    remarks.extend(streams(p));
    remarks.extend(more_readers(p));
    remarks.extend(mapped(p));
    remarks.extend(single_runs(p));
    remarks.extend(p.source.notes.iter().cloned());
    remarks
}

/// Rows that have both arms: the experiment, and the time of the arm over that of the baseline.
fn rows<'a>(
    p: &'a Published,
    arm: &str,
    baseline: &str,
    prefix: &str,
) -> Vec<(&'a PublishedFigure, &'a PublishedFigure)> {
    let figures = || p.figures.iter().filter(|f| f.experiment.starts_with(prefix));
    figures()
        .filter(|f| f.arm == arm)
        .filter_map(|f| {
            let same = |b: &&PublishedFigure| {
                b.arm == baseline && b.experiment == f.experiment && b.settings == f.settings
            };
            Some((f, figures().find(same)?))
        })
        .collect()
}

/// A conclusion, compared with the rows that it covers.
fn claim(p: &Published, c: &Claim) -> Option<String> {
    let rows = rows(p, &c.arm, &c.baseline, &c.experiments);
    let published =
        format!("Published: {} takes {}x as long as {}.", c.arm, digits(c.ratio), c.baseline);
    if c.of_total {
        let sum = |f: &dyn Fn(&(&PublishedFigure, &PublishedFigure)) -> f64| {
            rows.iter().map(f).sum::<f64>()
        };
        let (arm, base) = (sum(&|r| r.0.time_s), sum(&|r| r.1.time_s));
        return (base > 0.0).then(|| {
            format!(
                "{published} Over all {} rows: {} against {}, {}x.",
                rows.len(),
                seconds(arm),
                seconds(base),
                digits(arm / base)
            )
        });
    }
    let ratios: Vec<f64> = rows.iter().map(|(a, b)| a.time_s / b.time_s).collect();
    let mean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp();
    let low = ratios.iter().copied().min_by(f64::total_cmp)?;
    let high = ratios.iter().copied().max_by(f64::total_cmp)?;
    let near = rows
        .iter()
        .zip(&ratios)
        .min_by(|a, b| (a.1 - c.ratio).abs().total_cmp(&(b.1 - c.ratio).abs()))?;
    let runs = match near.0.0.iterations {
        Some(1) => ", one iteration".into(),
        Some(n) => format!(", {n} iterations"),
        None => String::new(),
    };
    Some(format!(
        "{published} The {} rows give {}x to {}x, geometric mean {}x; the published figure is \
         that of {} ({}x{runs}).",
        rows.len(),
        digits(low),
        digits(high),
        digits(mean),
        near.0.0.row(),
        digits(*near.1)
    ))
}

/// The step that contributes most to the gain of a pipeline.
fn gain(p: &Published) -> Vec<String> {
    let totals = p.source.claims.iter().filter(|c| c.of_total);
    totals
        .filter_map(|c| {
            let rows = rows(p, &c.arm, &c.baseline, &c.experiments);
            let gain: f64 = rows.iter().map(|(a, b)| b.time_s - a.time_s).sum();
            let total: f64 = rows.iter().map(|r| r.1.time_s).sum();
            let most = rows
                .iter()
                .max_by(|x, y| (x.1.time_s - x.0.time_s).total_cmp(&(y.1.time_s - y.0.time_s)))?;
            let longest = rows.iter().max_by(|x, y| x.1.time_s.total_cmp(&y.1.time_s))?;
            let saved = most.1.time_s - most.0.time_s;
            let share = longest.1.time_s / total;
            Some(format!(
                "{} % of what {} saves is one step, {} ({} of {}), which is {} % of the \
                 baseline's time; {} alone is {} % of it.",
                digits(saved / gain * 100.0),
                c.arm,
                step(most.0),
                seconds(saved),
                seconds(gain),
                digits(most.1.time_s / total * 100.0),
                step(longest.0),
                digits(share * 100.0)
            ))
        })
        .collect()
}

fn step(f: &PublishedFigure) -> &str {
    f.step.as_deref().unwrap_or(&f.experiment)
}

/// Figures that exceed the network link, so that a cache must have answered.
fn beyond_link(p: &Published) -> Vec<String> {
    p.figures
        .iter()
        .filter_map(|f| {
            let machine = p.source.machines.get(f.machine.as_ref()?)?;
            let link = machine.network_bytes_per_s.filter(|_| f.store.as_deref() == Some("S3"))?;
            let rate = f.bytes? as f64 / f.time_s;
            (rate > link).then(|| {
                format!(
                    "{}, {}: {} in {} is {}, but the machine's link carries {} at most: at least \
                     {} % came from a cache, and the row says nothing about the store.",
                    step(f),
                    f.arm,
                    decimal_bytes(f.bytes.unwrap_or(0) as f64),
                    seconds(f.time_s),
                    bandwidth(rate),
                    bandwidth(link),
                    digits((1.0 - link / rate) * 100.0)
                )
            })
        })
        .collect()
}

/// Rows in which one sequential reader was taken for the device.
fn streams(p: &Published) -> Vec<String> {
    let mut remarks = Vec::new();
    for stream in p.figures.iter().filter(|f| f.one_stream) {
        let here =
            p.figures.iter().filter(|f| f.machine == stream.machine && f.bytes == stream.bytes);
        for f in here {
            if let Some(fetch) = f.fetch_s.filter(|&s| s > 0.0 && f.store == stream.store) {
                remarks.push(format!(
                    "{}: {} spent {} on reading, {} of the same file took {} ({} %): it read as \
                     fast as one stream does, which is not the device's limit.",
                    f.experiment,
                    f.arm,
                    seconds(fetch),
                    stream.arm,
                    seconds(stream.time_s),
                    digits(stream.time_s / fetch * 100.0)
                ));
            }
        }
    }
    for f in p.figures.iter().filter(|f| !f.one_stream) {
        let same = |b: &&PublishedFigure| b.experiment == f.experiment && b.settings == f.settings;
        let slower = p.figures.iter().filter(same).filter_map(|b| Some((b, b.fetch_s?)));
        let most = slower
            .filter(|(b, fetch)| *fetch > f.time_s && b.arm != f.arm)
            .max_by(|x, y| x.1.total_cmp(&y.1));
        if let Some((b, fetch)) = most {
            let unless = if f.bytes.is_some() && f.bytes == b.bytes {
                ""
            } else {
                "unless its file is much smaller, "
            };
            remarks.push(format!(
                "{}: {} took {} in all, less than the {} that {} spent on reading alone: \
                 {unless}that reading was not at the device's limit.",
                f.experiment,
                f.arm,
                seconds(f.time_s),
                seconds(fetch),
                b.arm
            ));
        }
    }
    remarks
}

/// Rows in which several readers got more from the store than one.
fn more_readers(p: &Published) -> Vec<String> {
    let mut remarks = Vec::new();
    for one in
        p.figures.iter().filter(|f| f.settings.get(READERS).and_then(Value::as_u64) == Some(1))
    {
        let same = |f: &&PublishedFigure| {
            f.experiment == one.experiment && f.arm == one.arm && f.machine == one.machine
        };
        let best = p.figures.iter().filter(same).min_by(|a, b| a.time_s.total_cmp(&b.time_s));
        let Some((best, bytes)) =
            best.zip(one.decoded_bytes).filter(|(b, _)| b.time_s < one.time_s)
        else {
            continue;
        };
        remarks.push(format!(
            "{}, {}: one rank got {} (decoded), the best was {} ({}x, {} ranks): one stream is \
             not the store.",
            one.experiment,
            one.arm,
            bandwidth(bytes as f64 / one.time_s),
            bandwidth(bytes as f64 / best.time_s),
            digits(one.time_s / best.time_s),
            best.settings.get(READERS).unwrap_or(&Value::Null)
        ));
    }
    remarks
}

/// The setting with the number of processes that read side by side.
const READERS: &str = "ranks";

/// Rows whose resident memory is page cache, because the arm maps its file.
fn mapped(p: &Published) -> Option<String> {
    let largest =
        p.figures.iter().filter(|f| f.maps_file).filter_map(|f| Some((f, f.max_rss_bytes?)));
    let (f, rss) = largest.max_by_key(|x| x.1)?;
    let others: Vec<f64> = p
        .figures
        .iter()
        .filter(|o| !o.maps_file)
        .filter_map(|o| Some(o.max_rss_bytes? as f64))
        .collect();
    Some(format!(
        "Resident memory of arms that map their file is page cache, not need: {}, {} has {} (the \
         median of the others is {}).",
        f.experiment,
        f.arm,
        binary_bytes(rss as f64),
        binary_bytes(median(&others)?)
    ))
}

/// Tables of single runs, which have no spread.
fn single_runs(p: &Published) -> Option<String> {
    let once = p.figures.iter().filter(|f| f.iterations.is_none_or(|n| n <= 1)).count();
    (once > 0).then(|| {
        format!(
            "{once} of {} figures are single runs, or do not say how many there were: \
             differences between them have no interval.",
            p.figures.len()
        )
    })
}
