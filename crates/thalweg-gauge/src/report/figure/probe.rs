//! The bandwidth of the device by requests in flight. One stream does not show the full bandwidth
//! of the device.

use serde_json::{Value, json};

use super::Figure;
use crate::limit::{Probe, ProbePoint};
use crate::units::{bandwidth, binary_bytes};

/// Bandwidth over requests in flight, with a line for each block size and one for a buffered
/// reader. `None` with fewer than two depths.
pub(in crate::report) fn probe(p: &Probe) -> Option<Figure> {
    let forward: Vec<&ProbePoint> =
        p.points.iter().filter(|x| !x.scattered && x.bytes_per_s > 0.0).collect();
    let mut blocks: Vec<u64> = forward.iter().map(|x| x.block_bytes).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let mut depths: Vec<usize> = forward.iter().map(|x| x.depth).collect();
    depths.sort_unstable();
    depths.dedup();
    if depths.len() < 2 {
        return None;
    }
    let lines = blocks.iter().enumerate().map(|(i, block)| line(i, *block, &forward));
    let stream = p.single_stream_bytes_per_s.map(|rate| one_stream(rate, &depths));
    Some(Figure {
        title: format!("What the device gives: {}", p.file),
        alt: in_words(p),
        note: "Medians with the slowest and fastest window. One stream (what cat or dd shows) is \
               not what the device can do."
            .into(),
        height: 340,
        data: lines.chain(stream).collect(),
        layout: json!({
            "xaxis": {
                "type": "log", "tickmode": "array", "tickvals": depths,
                "title": { "text": "requests in flight" },
            },
            "yaxis": {
                "rangemode": "tozero", "tickformat": "~s", "ticksuffix": "B/s",
                "title": { "text": "stored bytes a second" },
            },
        }),
    })
}

fn in_words(p: &Probe) -> String {
    let best = p.best().map(|b| format!("{} with {} in flight", bandwidth(b.bytes_per_s), b.depth));
    let stream =
        p.single_stream_bytes_per_s.map(|r| format!(", one buffered stream {}", bandwidth(r)));
    format!(
        "Bandwidth over requests in flight, by size of a request. Best: {}{}.",
        best.unwrap_or_else(|| "unknown".into()),
        stream.unwrap_or_default()
    )
}

/// The colour of all that the device gave. Symbols and dashes tell the lines apart.
const DEVICE: &str = "var(--device)";
/// The dashes of the lines. They repeat if there are more lines.
const DASHES: [&str; 4] = ["solid", "dash", "dashdot", "longdash"];
/// The symbols of the lines. They repeat if there are more lines.
const SYMBOLS: [&str; 5] = ["circle", "square", "diamond", "triangle-up", "cross"];

/// The line of one block size, number `i` of the figure.
fn line(i: usize, block: u64, forward: &[&ProbePoint]) -> Value {
    let mut line: Vec<&ProbePoint> =
        forward.iter().copied().filter(|x| x.block_bytes == block).collect();
    line.sort_by_key(|x| x.depth);
    json!({
        "type": "scatter", "mode": "lines+markers",
        "name": format!("{} requests", binary_bytes(block as f64)),
        "x": line.iter().map(|x| x.depth).collect::<Vec<_>>(),
        "y": line.iter().map(|x| x.bytes_per_s).collect::<Vec<_>>(),
        "error_y": {
            "type": "data", "symmetric": false, "thickness": 1, "width": 4,
            "color": DEVICE,
            "array": line.iter().map(|x| spread(x).1).collect::<Vec<_>>(),
            "arrayminus": line.iter().map(|x| spread(x).0).collect::<Vec<_>>(),
        },
        "text": line.iter().map(|x| bandwidth(x.bytes_per_s)).collect::<Vec<_>>(),
        "hovertemplate": "%{x} in flight: %{text}<extra></extra>",
        "line": { "color": DEVICE, "dash": DASHES.get(i % DASHES.len()) },
        "marker": { "color": DEVICE, "symbol": SYMBOLS.get(i % SYMBOLS.len()), "size": 8 },
    })
}

/// The distance of the slowest window below the median, and of the fastest window above it.
fn spread(x: &ProbePoint) -> (f64, f64) {
    let rates = x.windows.iter().map(|w| w.bytes as f64 / w.seconds);
    let rates: Vec<f64> = rates.filter(|r| r.is_finite()).collect();
    let low = rates.iter().copied().fold(x.bytes_per_s, f64::min);
    let high = rates.iter().copied().fold(x.bytes_per_s, f64::max);
    (x.bytes_per_s - low, high - x.bytes_per_s)
}

/// The bandwidth of one buffered reader, drawn over all depths.
fn one_stream(rate: f64, depths: &[usize]) -> Value {
    json!({
        "type": "scatter", "mode": "lines", "name": "one buffered stream",
        "x": [depths.first(), depths.last()], "y": [rate, rate],
        "hovertemplate": format!("one buffered stream: {}<extra></extra>", bandwidth(rate)),
        "line": { "color": "var(--soft)", "dash": "dot", "width": 2 },
    })
}
