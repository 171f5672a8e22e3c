//! The report as one HTML page that needs nothing else: no network, no script.

use super::{chart, facts};
use crate::comparison::{Comparison, Trial};
use crate::units::{binary_bytes, decimal_bytes, digits, seconds};

/// The comparisons as one self-contained page.
pub fn html(comparisons: &[Comparison]) -> String {
    let bodies: String = comparisons.iter().map(section).collect();
    let title = comparisons.first().map_or("thalweg", |c| c.session.name.as_str());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{bodies}</main>\n</body>\n</html>\n",
        escape(title)
    )
}

const STYLE: &str = include_str!("style.css");

fn section(c: &Comparison) -> String {
    let mut out = format!("<section>\n<h1>{}</h1>\n", escape(&c.session.name));
    if let Some(alarm) = facts::alarm(c) {
        out.push_str(&format!("<p class=\"alarm\" role=\"alert\">{}</p>\n", escape(&alarm)));
    }
    out.push_str(&chart::times(c));
    out.push_str(&table(&facts::header(c), &facts::rows(c)));
    out.push_str(&list("What holds them back", &facts::verdicts(c)));
    out.push_str(&chart::stages(c));
    out.push_str(&list("Remarks", &facts::remarks(c)));
    let environment: String = facts::environment(c)
        .iter()
        .map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(value)))
        .collect();
    out.push_str(&details("Machine and files", &format!("<dl>\n{environment}</dl>\n")));
    out.push_str(&details("Method", &paragraphs(&facts::method(c))));
    out.push_str(&details("Commands", &commands(c)));
    out.push_str(&details("Every trial", &trials(c)));
    if !c.probes.is_empty() {
        out.push_str(&details("The limit, point by point", &points(c)));
    }
    out.push_str("</section>\n");
    out
}

fn details(title: &str, body: &str) -> String {
    format!("<details>\n<summary>{}</summary>\n{body}</details>\n", escape(title))
}

fn paragraphs(lines: &[String]) -> String {
    lines.iter().map(|line| format!("<p>{}</p>\n", escape(line))).collect()
}

fn list(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let items: String = lines.iter().map(|line| format!("<li>{}</li>\n", escape(line))).collect();
    format!("<h2>{}</h2>\n<ul>\n{items}</ul>\n", escape(title))
}

fn table<const N: usize>(header: &[String; N], rows: &[[String; N]]) -> String {
    let cells = |tag: &str, row: &[String; N]| -> String {
        row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect()
    };
    let body: String = rows.iter().map(|row| format!("<tr>{}</tr>\n", cells("td", row))).collect();
    format!(
        "<div class=\"wide\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n",
        cells("th", header)
    )
}

fn commands(c: &Comparison) -> String {
    c.session
        .arms
        .iter()
        .map(|arm| format!("<p>{}</p>\n<pre>{}</pre>\n", escape(&arm.name), escape(&arm.command().command_line())))
        .collect()
}

fn trials(c: &Comparison) -> String {
    let header =
        ["round", "arm", "caches", "time", "wall", "CPU s", "private", "file-backed", "from device", "CPU PSI", "note"]
            .map(str::to_owned);
    let rows: Vec<_> = c.trials.iter().map(trial).collect();
    table(&header, &rows)
}

fn trial(t: &Trial) -> [String; 11] {
    let usage = t.outcome.as_ref().map(|o| &o.usage);
    let memory = |b: Option<u64>| b.map_or("-".into(), |b| binary_bytes(b as f64));
    let psi = t.outcome.as_ref().and_then(|o| o.load.cpu_pressure);
    let note = match (&t.failed, &t.rejected) {
        (Some(why), _) => format!("failed: {why}"),
        (_, Some(why)) => format!("rejected: {why}"),
        _ => String::new(),
    };
    [
        t.round.map_or("warm-up".into(), |r| (r + 1).to_string()),
        t.arm.clone(),
        t.level.unwrap_or(t.level_asked).to_string(),
        t.time_s.map_or("-".into(), seconds),
        usage.map_or("-".into(), |u| seconds(u.wall_s)),
        usage.map_or("-".into(), |u| digits(u.cpu_s())),
        memory(usage.and_then(|u| u.peak_anon_bytes)),
        memory(usage.and_then(|u| u.peak_file_bytes)),
        usage.and_then(|u| u.device_read_bytes).map_or("-".into(), |b| decimal_bytes(b as f64)),
        psi.map_or("-".into(), |p| format!("{} %", digits(p * 100.0))),
        note,
    ]
}

fn points(c: &Comparison) -> String {
    let header = ["file", "order", "block", "in flight", "median", "windows"].map(str::to_owned);
    let rows: Vec<_> = c
        .probes
        .iter()
        .flat_map(|probe| {
            probe.points.iter().map(|p| {
                let rate = |w: &crate::limit::Window| crate::units::bandwidth(w.bytes as f64 / w.seconds);
                [
                    probe.file.clone(),
                    if p.scattered { "scattered" } else { "forward" }.into(),
                    binary_bytes(p.block_bytes as f64),
                    p.depth.to_string(),
                    crate::units::bandwidth(p.bytes_per_s),
                    p.windows.iter().map(rate).collect::<Vec<_>>().join(", "),
                ]
            })
        })
        .collect();
    table(&header, &rows)
}

/// Names of files and arms come from outside.
pub(super) fn escape(s: &str) -> String {
    s.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
