//! What the device gives, by requests in flight: why one stream is not the device.

use serde_json::{Value, json};

use super::{Figure, colour};
use crate::limit::{Probe, ProbePoint};
use crate::units::{bandwidth, binary_bytes};

/// Bandwidth over requests in flight, a line a block size; one buffered reader beside them.
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
    let symbols = ["circle", "square", "diamond", "triangle-up", "cross"];
    let mut data: Vec<Value> = Vec::new();
    for (i, block) in blocks.iter().enumerate() {
        let mut line: Vec<&&ProbePoint> =
            forward.iter().filter(|x| x.block_bytes == *block).collect();
        line.sort_by_key(|x| x.depth);
        let windows = |x: &ProbePoint| {
            let rates: Vec<f64> = x
                .windows
                .iter()
                .map(|w| w.bytes as f64 / w.seconds)
                .filter(|r| r.is_finite())
                .collect();
            let low = rates.iter().copied().fold(x.bytes_per_s, f64::min);
            let high = rates.iter().copied().fold(x.bytes_per_s, f64::max);
            (x.bytes_per_s - low, high - x.bytes_per_s)
        };
        data.push(json!({
            "type": "scatter", "mode": "lines+markers", "name": format!("{} requests", binary_bytes(*block as f64)),
            "x": line.iter().map(|x| x.depth).collect::<Vec<_>>(),
            "y": line.iter().map(|x| x.bytes_per_s).collect::<Vec<_>>(),
            "error_y": {
                "type": "data", "symmetric": false, "thickness": 1, "width": 4, "color": colour(i),
                "array": line.iter().map(|x| windows(x).1).collect::<Vec<_>>(),
                "arrayminus": line.iter().map(|x| windows(x).0).collect::<Vec<_>>(),
            },
            "text": line.iter().map(|x| bandwidth(x.bytes_per_s)).collect::<Vec<_>>(),
            "hovertemplate": "%{x} in flight: %{text}<extra></extra>",
            "line": { "color": colour(i) }, "marker": { "symbol": symbols.get(i % symbols.len()), "size": 8 },
        }));
    }
    let ends = [depths.first(), depths.last()];
    if let Some(rate) = p.single_stream_bytes_per_s {
        data.push(json!({
            "type": "scatter", "mode": "lines", "name": "one buffered stream", "x": ends, "y": [rate, rate],
            "hovertemplate": format!("one buffered stream: {}<extra></extra>", bandwidth(rate)),
            "line": { "color": "var(--bad)", "dash": "dot", "width": 2 },
        }));
    }
    let best = p.best().map(|b| format!("{} with {} in flight", bandwidth(b.bytes_per_s), b.depth));
    let stream =
        p.single_stream_bytes_per_s.map(|r| format!(", one buffered stream {}", bandwidth(r)));
    Some(Figure {
        title: format!("What the device gives: {}", p.file),
        alt: format!(
            "Bandwidth over requests in flight, by size of a request. Best: {}{}.",
            best.unwrap_or_else(|| "unknown".into()),
            stream.unwrap_or_default()
        ),
        note: "Medians with the slowest and fastest window. One stream (what cat or dd shows) is \
             not what the device can do."
            .into(),
        height: 340,
        data,
        layout: json!({
            "xaxis": { "type": "log", "tickmode": "array", "tickvals": depths, "title": { "text": "requests in flight" } },
            "yaxis": { "rangemode": "tozero", "tickformat": "~s", "ticksuffix": "B/s", "title": { "text": "stored bytes a second" } },
        }),
    })
}
