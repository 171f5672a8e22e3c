//! The signal of one read.

use thalweg::reads::{ReadSet, Selection};

use crate::chart::{Axis, Marks, Panel, thinned};
use crate::common::Failure;

/// The read's signal over its time, thinned to `points` stretches.
pub(super) fn panels(
    set: &ReadSet,
    id: &str,
    pa: bool,
    points: usize,
) -> Result<(String, Vec<Panel>), Failure> {
    let selection = Selection::Ids(vec![id.to_owned()].into());
    let mut drawn = set.map(&selection, move |read| {
        let rate = read.record.sampling_rate;
        // Without a valid rate, time is counted in samples.
        let rate = if rate.is_finite() && rate > 0.0 { Some(rate) } else { None };
        let seconds = |at: usize| at as f64 / rate.unwrap_or(1.0);
        let values = if pa {
            let calibration = read.calibration();
            thinned(read.samples.iter().map(|&sample| calibration.of(sample)), points)
        } else {
            thinned(read.samples.iter().map(|&sample| f32::from(sample)), points)
        };
        let line: Vec<(f64, f64)> =
            values.into_iter().map(|(at, value)| (seconds(at), f64::from(value))).collect();
        (line, seconds(read.samples.len()), rate.is_some(), read.samples.len())
    })?;
    let (line, end, timed, samples) = match drawn.next() {
        Some(drawn) => drawn?,
        None => return Err(Failure::Said(format!("read {id}: nothing was read"))),
    };
    let low = line.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let high = line.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
    let room = ((high - low) * 0.04).max(0.5);
    let panel = Panel {
        title: String::new(),
        x: Axis::new(if timed { "time in s" } else { "samples" }, 0.0, end),
        y: Axis::new(if pa { "current in pA" } else { "raw signal" }, low - room, high + room),
        marks: Marks::Line(line),
        note: format!(
            "{samples} samples; each stretch is drawn from its least to its greatest value."
        ),
    };
    Ok((format!("Read {id}"), vec![panel]))
}
