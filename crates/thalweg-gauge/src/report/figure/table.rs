//! The figures of a published table: times split into reading and the rest, and bandwidths beside
//! that of the network link.

use serde_json::{Value, json};

use super::{Figure, height, plotly_text, rows_axis, seconds_axis, untold};
use crate::results::Published;
use crate::results::published::PublishedFigure;
use crate::units::{bandwidth, seconds};

/// The figures of a table: the bandwidth of rows that read over a network link, and times split
/// into reading and the rest if reading was reported separately.
pub(in crate::report) fn table(p: &Published) -> Vec<Figure> {
    [split(p), link(p)].into_iter().flatten().collect()
}

/// Times split into reading and the rest, for machines on which reading was reported separately.
fn split(p: &Published) -> Option<Figure> {
    let machines: Vec<&String> = p
        .figures
        .iter()
        .filter(|f| f.fetch_s.is_some())
        .filter_map(|f| f.machine.as_ref())
        .collect();
    let rows: Vec<_> = p
        .figures
        .iter()
        .filter(|f| f.machine.as_ref().is_some_and(|m| machines.contains(&m)))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let names: Vec<String> = rows
        .iter()
        .map(|f| format!("{}: {}", f.machine.clone().unwrap_or_default(), f.arm))
        .collect();
    let reading = rows.iter().map(|f| reading_s(f)).collect();
    let rest = rows.iter().map(|f| f.time_s - reading_s(f)).collect();
    let data = vec![
        bar("reading", json!({ "color": "var(--stage0)" }), reading),
        bar("all else, or not told apart", untold(), rest),
    ];
    let streams = rows.iter().filter(|f| f.one_stream).count();
    let in_words: Vec<String> = rows
        .iter()
        .zip(&names)
        .map(|(f, n)| {
            let fetch =
                f.fetch_s.map_or(String::new(), |s| format!(", {} of it reading", seconds(s)));
            format!("{n} {}{fetch}", seconds(f.time_s))
        })
        .collect();
    Some(Figure {
        title: "Where the time went".into(),
        alt: format!("Bars of time, split into reading and the rest. {}.", in_words.join("; ")),
        note: format!(
            "An arm that is shorter in all than another's reading on the same machine shows that \
             this reading was not at the device's limit.{}",
            if streams > 0 { " One sequential reader (cat) is all reading." } else { "" }
        ),
        height: height(&names),
        data,
        layout: json!({
            "xaxis": seconds_axis(""), "yaxis": rows_axis(&names), "barmode": "stack",
            "legend": { "traceorder": "normal" },
        }),
    })
}

/// The seconds of reading. A sequential reader that does nothing else reads all of its time.
fn reading_s(f: &PublishedFigure) -> f64 {
    if f.one_stream { f.time_s } else { f.fetch_s.unwrap_or(0.0) }
}

fn bar(name: &str, marker: Value, x: Vec<f64>) -> Value {
    let y: Vec<usize> = (0..x.len()).collect();
    let text: Vec<String> = x.iter().map(|s| format!("{name}: {}", seconds(*s))).collect();
    json!({
        "type": "bar", "orientation": "h", "name": name, "x": x, "y": y, "text": text,
        "textposition": "none", "hovertemplate": "%{text}<extra></extra>", "width": 0.6,
        "marker": marker,
    })
}

/// Bandwidth of the rows that read from S3, beside that of the machine's network link.
fn link(p: &Published) -> Option<Figure> {
    let over = |f: &&PublishedFigure| f.store.as_deref() == Some("S3") && f.bytes.is_some();
    let rows: Vec<_> = p.figures.iter().filter(over).collect();
    let machine = rows.first().and_then(|f| p.source.machines.get(f.machine.as_ref()?))?;
    let link = machine.network_bytes_per_s?;
    let names: Vec<String> = rows
        .iter()
        .map(|f| format!("{}: {}", f.step.as_ref().unwrap_or(&f.experiment), f.arm))
        .collect();
    let rates: Vec<f64> = rows.iter().map(|f| f.bytes.unwrap_or(0) as f64 / f.time_s).collect();
    let colours: Vec<&str> =
        rates.iter().map(|r| if *r > link { "var(--bad)" } else { "var(--bar)" }).collect();
    let in_words: Vec<String> =
        names.iter().zip(&rates).map(|(n, r)| format!("{n} {}", bandwidth(*r))).collect();
    Some(Figure {
        title: "Bytes a second that had to come over the link".into(),
        alt: format!(
            "Bars of bandwidth beside the link's {}. {}.",
            bandwidth(link),
            in_words.join("; ")
        ),
        note: format!(
            "Stored bytes over time. Dashed: the link, {}. Beyond it (red) a cache answered.",
            bandwidth(link)
        ),
        height: height(&names),
        data: vec![json!({
            "type": "bar", "orientation": "h", "x": rates,
            "y": (0..rows.len()).collect::<Vec<_>>(), "width": 0.6,
            "text": in_words.iter().map(|s| plotly_text(s)).collect::<Vec<_>>(),
            "textposition": "none",
            "hovertemplate": "%{text}<extra></extra>", "showlegend": false,
            "marker": { "color": colours },
        })],
        layout: json!({
            "xaxis": {
                "side": "top", "rangemode": "tozero", "tickformat": "~s", "ticksuffix": "B/s",
            },
            "yaxis": rows_axis(&names),
            "shapes": [{
                "type": "line", "x0": link, "x1": link, "yref": "paper", "y0": 0, "y1": 1,
                "line": { "color": "var(--limit)", "width": 2.5, "dash": "dash" },
            }],
        }),
    })
}
