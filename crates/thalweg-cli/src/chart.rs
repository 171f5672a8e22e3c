//! Charts: panels with axes and marks, as a picture or as a page.

mod histogram;
mod page;
mod picture;

use std::collections::BTreeMap;
use std::path::Path;

use thalweg::new_file::NewFile;
use thalweg::text::escaped;
use thalweg_io::urls;

use thalweg_gauge::units::digits;

use crate::common::{Failure, VerbResult};

pub(crate) use histogram::Histogram;

/// One set of axes.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) marks: Marks,
    /// A line below the panel that says how to read it.
    pub(crate) note: String,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) log: bool,
}

impl Axis {
    /// An axis from one value to another; one without extent gets an extent of 1.
    pub(crate) fn new(label: impl Into<String>, from: f64, to: f64) -> Self {
        let (from, to) = if from.is_finite() && to.is_finite() { (from, to) } else { (0.0, 1.0) };
        let to = if to > from { to } else { from + 1.0 };
        Self { label: label.into(), from, to, log: false }
    }
}

/// Decades of a logarithmic axis up to which it has ticks at 1, 2 and 5 times powers of ten, and
/// beyond which it has ticks at powers of ten alone.
const FINE_DECADES: f64 = 3.0;
/// The most ticks at powers of ten.
const MOST_DECADES: f64 = 10.0;

impl Axis {
    fn decades(&self) -> f64 {
        (self.to / self.from).log10()
    }

    /// Powers of ten from one tick of a logarithmic axis to the next; `None` if there are ticks at
    /// 1, 2 and 5 times powers of ten.
    fn tick_decades(&self) -> Option<i32> {
        let decades = self.decades();
        (decades > FINE_DECADES).then(|| (decades / MOST_DECADES).ceil() as i32)
    }

    /// The ticks of a logarithmic axis.
    fn log_ticks(&self) -> Vec<f64> {
        let first = self.from.log10().floor() as i32;
        let last = self.to.log10().ceil() as i32;
        let steps: &[f64] = if self.tick_decades().is_some() { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let every = self.tick_decades().unwrap_or(1);
        let powers = (first..=last).filter(|power| power % every == 0);
        let all = powers.flat_map(|power| steps.iter().map(move |s| s * 10_f64.powi(power)));
        all.filter(|tick| (self.from..=self.to).contains(tick)).collect()
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Marks {
    Line(Vec<(f64, f64)>),
    /// Left edge, right edge, height.
    Bars(Vec<(f64, f64, f64)>),
    /// Bars from the left with their names, first on top.
    Named(Vec<(String, f64)>),
    /// Cells of a grid, row by row from the top: the text that hovering shows, and the value;
    /// `None` for a cell without a value.
    Grid {
        columns: usize,
        cells: Vec<Option<(String, f64)>>,
    },
}

/// The index of a value, and the value.
type Point = (usize, f32);

/// The least and the greatest value of each of `stretches` parts, in the order in which they occur:
/// few points that keep every spike. Values that are not finite are left out.
pub(crate) fn thinned(values: impl ExactSizeIterator<Item = f32>, stretches: usize) -> Vec<Point> {
    let len = values.len();
    let stretches = stretches.max(1);
    if len <= stretches.saturating_mul(2) {
        return values.enumerate().filter(|(_, value)| value.is_finite()).collect();
    }
    let mut points = Vec::with_capacity(stretches * 2);
    let mut stretch = 0;
    let mut ends: Option<(Point, Point)> = None;
    let mut flush = |ends: &mut Option<(Point, Point)>| {
        let Some((low, high)) = ends.take() else { return };
        let (first, second) = if low.0 <= high.0 { (low, high) } else { (high, low) };
        points.push(first);
        if first.0 != second.0 {
            points.push(second);
        }
    };
    for (i, value) in values.enumerate() {
        let here = (i as u128 * stretches as u128 / len as u128) as usize;
        if here != stretch {
            flush(&mut ends);
            stretch = here;
        }
        if !value.is_finite() {
            continue;
        }
        let (low, high) = ends.get_or_insert(((i, value), (i, value)));
        if value < low.1 {
            *low = (i, value);
        }
        if value > high.1 {
            *high = (i, value);
        }
    }
    flush(&mut ends);
    points
}

/// A number for an axis: 1.5M, 20k, 0.25.
pub(crate) fn short(value: f64) -> String {
    let (value, unit) = scaled(value);
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{}{unit}", if text == "-0" { "0" } else { text })
}

/// A number for a sentence, in three digits: 1.5M, 20k, 0.25.
pub(crate) fn rounded(value: f64) -> String {
    let (scaled, unit) = scaled(value);
    if unit.is_empty() && value.fract() == 0.0 {
        short(value)
    } else {
        format!("{}{unit}", digits(scaled))
    }
}

fn scaled(value: f64) -> (f64, &'static str) {
    match value.abs() {
        a if a >= 0.9995e12 => (value / 1e12, "T"),
        a if a >= 0.9995e9 => (value / 1e9, "G"),
        a if a >= 0.9995e6 => (value / 1e6, "M"),
        a if a >= 0.9995e3 => (value / 1e3, "k"),
        _ => (value, ""),
    }
}

/// The format of a picture, by the end of its name.
pub(crate) fn format_of(to: &Path) -> Result<&str, Failure> {
    let format = to.extension().and_then(|e| e.to_str()).unwrap_or_default();
    if ["png", "svg", "html"].contains(&format) {
        return Ok(format);
    }
    Err(Failure::Usage(format!(
        "{}: the name must end in .png, .svg or .html",
        urls::shown_path(to)
    )))
}

/// Writes panels as a picture or a page, by the end of the name.
pub(crate) fn write(to: &Path, title: &str, panels: &[Panel], width: u32) -> VerbResult {
    let title = &*escaped(title);
    let bytes = match format_of(to)? {
        "png" => picture::png(title, panels, width)?,
        "svg" => picture::svg(title, panels, width)?.into_bytes(),
        _ => page::page(title, panels).into_bytes(),
    };
    Ok(NewFile::create(to)?.finish_with(&bytes)?)
}

/// Width of a picture of degrees in pixels.
const WIDTH: u32 = 1400;
/// Bars of a picture of degrees.
const BARS: usize = 120;

/// Draws a histogram of degrees. `degrees`: the number of vertices with each degree.
pub(crate) fn degrees(to: &Path, title: &str, degrees: &BTreeMap<u64, u64>) -> VerbResult {
    let mut histogram = Histogram::new(f64::MAX);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spikes_survive() {
        let mut values = vec![0.0_f32; 1_000_003];
        values[123_456] = 900.0;
        values[123_457] = -900.0;
        values[1_000_002] = 77.0;
        values[5] = f32::NAN;
        let points = thinned(values.iter().copied(), 1000);
        assert!(points.len() <= 2000);
        for point in [(123_456, 900.0), (123_457, -900.0), (1_000_002, 77.0)] {
            assert!(points.contains(&point), "{point:?}");
        }
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(points.iter().all(|point| point.1.is_finite()));
        // If there are few values, all of them are kept.
        assert_eq!(thinned([1.0, f32::INFINITY, 3.0].into_iter(), 2), [(0, 1.0), (2, 3.0)]);
        assert_eq!(thinned([].into_iter(), 2), []);
    }

    #[test]
    fn logarithmic_axes_have_few_ticks() {
        let ticks = |from, to| Axis { log: true, ..Axis::new("", from, to) }.log_ticks();
        let shown = |from, to| ticks(from, to).into_iter().map(short).collect::<Vec<_>>();
        assert_eq!(shown(3_000.0, 300_000.0), ["5k", "10k", "20k", "50k", "100k", "200k"]);
        assert_eq!(shown(1.0, 1e5), ["1", "10", "100", "1k", "10k", "100k"]);
        for (from, to) in [(1.0, 1.2), (1.0, 999.0), (1.0, 1e9), (1.0, 1e30), (7.0, 8.0)] {
            assert!(ticks(from, to).len() <= 11, "{from}..{to}: {:?}", ticks(from, to));
        }
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.25, 12.0, 1500.0, 999_900.0, 2.5e6, -3e9].map(short);
        assert_eq!(shown, ["0", "0.25", "12", "1.5k", "1M", "2.5M", "-3G"]);
        assert_eq!(
            [7.0, 999.0, 60_275_290.0, 112_500.0].map(rounded),
            ["7", "999", "60.3M", "112k"]
        );
    }
}
