//! The report of a run as one HTML page.

use super::page::{Page, definitions, details, escape, list, table};
use super::{facts, figure};
use crate::comparison::{Comparison, Trial};
use crate::results::ResultRun;
use crate::units::{binary_bytes, decimal_bytes, digits, seconds};

/// The comparisons as one self-contained page.
pub fn html(comparisons: &[Comparison]) -> String {
    let mut page = Page::default();
    let title = title(comparisons);
    let mut body = format!("<h1>{}</h1>\n", escape(&title));
    if let Some(c) = comparisons.first() {
        body.push_str(&format!("<p class=\"lead\">{}</p>\n", escape(&facts::lead(c))));
    }
    body.push_str(&run(
        &mut page,
        &ResultRun { comparisons: comparisons.to_vec(), ..ResultRun::default() },
        "c",
    ));
    page.finish(&title, &body)
}

/// The title: the name of the suite, or of the only comparison.
fn title(comparisons: &[Comparison]) -> String {
    let suite = comparisons.iter().find_map(|c| c.session.suite.as_ref()).map(|s| s.name.clone());
    match (suite, comparisons) {
        (Some(suite), _) => suite,
        (None, [only]) => only.session.name.clone(),
        _ => "thalweg bench".into(),
    }
}

/// All comparisons of a run: an overview of ratios, pipelines and curves, then each comparison.
pub(super) fn run(page: &mut Page, run: &ResultRun, id: &str) -> String {
    let comparisons = &run.comparisons;
    let mut out = String::new();
    if comparisons.len() > 1 {
        let links: String = comparisons
            .iter()
            .enumerate()
            .map(|(i, c)| {
                format!("<li><a href=\"#{id}{i}\">{}</a></li>\n", escape(&c.session.name))
            })
            .collect();
        let rows: Vec<figure::Interval> =
            comparisons.iter().flat_map(|c| figure::of_comparison(c, true)).collect();
        out.push_str(&page.figures(figure::ratios(
            &rows,
            "All comparisons",
            "the baseline of each",
            RATIO_NOTE,
        )));
        out.push_str(&format!("<nav aria-label=\"Comparisons\"><ul>\n{links}</ul></nav>\n"));
    }
    let entries = run.entries();
    out.push_str(&page.figures(figure::steps(&entries)));
    out.push_str(&page.figures(figure::scaling(&entries)));
    for (i, c) in comparisons.iter().enumerate() {
        out.push_str(&section(page, c, &format!("{id}{i}")));
    }
    out
}

/// The note on how to read a figure of paired ratios.
const RATIO_NOTE: &str = "Median of the paired ratios with its 95 % interval; small points are \
     single pairs. A difference counts only if its whole interval lies outside the shaded noise.";

/// One comparison.
fn section(page: &mut Page, c: &Comparison, id: &str) -> String {
    let mut out = format!("<section id=\"{id}\">\n<h2>{}</h2>\n", escape(&c.session.name));
    if let Some(alarm) = facts::alarm(c) {
        out.push_str(&format!("<p class=\"alarm\" role=\"alert\">{}</p>\n", escape(&alarm)));
    }
    let header = facts::header(c);
    let rows: Vec<Vec<String>> = facts::rows(c).into_iter().map(Vec::from).collect();
    out.push_str(&table(&header, &rows));
    let baseline = c.session.arms.first().map_or("", |a| a.name.as_str());
    let ratios = figure::of_comparison(c, false);
    out.push_str(&page.figures(figure::ratios(&ratios, "Paired ratios", baseline, RATIO_NOTE)));
    out.push_str(&page.figures(figure::times(c)));
    out.push_str(&list("What holds them back", &facts::verdicts(c)));
    out.push_str(&page.figures(figure::waits(c)));
    out.push_str(&page.figures(figure::busy(c)));
    out.push_str(&page.figures(c.probes.iter().filter_map(figure::probe)));
    out.push_str(&list("Remarks", &facts::remarks(c)));
    out.push_str(&details("Machine and files", &definitions(&facts::environment(c))));
    out.push_str(&details("Method", &paragraphs(&facts::method(c))));
    out.push_str(&details("Commands", &commands(c)));
    out.push_str(&details("Every trial", &trials(c)));
    if !c.probes.is_empty() {
        out.push_str(&details("The limit, point by point", &points(c)));
    }
    out.push_str("</section>\n");
    out
}

fn paragraphs(lines: &[String]) -> String {
    lines.iter().map(|line| format!("<p>{}</p>\n", escape(line))).collect()
}

fn commands(c: &Comparison) -> String {
    c.session
        .arms
        .iter()
        .map(|arm| {
            format!(
                "<p>{}</p>\n<pre>{}</pre>\n",
                escape(&arm.name),
                escape(&arm.command().command_line())
            )
        })
        .collect()
}

fn trials(c: &Comparison) -> String {
    let header = [
        "round",
        "arm",
        "caches",
        "time",
        "wall",
        "CPU s",
        "private",
        "file-backed",
        "from device",
        "CPU PSI",
        "note",
    ]
    .map(str::to_owned);
    let rows: Vec<Vec<String>> = c.trials.iter().map(trial).collect();
    table(&header, &rows)
}

fn trial(t: &Trial) -> Vec<String> {
    let usage = t.outcome.as_ref().map(|o| &o.usage);
    let memory = |b: Option<u64>| b.map_or("-".into(), |b| binary_bytes(b as f64));
    let psi = t.outcome.as_ref().and_then(|o| o.load.cpu_pressure);
    let note = match (&t.failed, &t.rejected) {
        (Some(why), _) => format!("failed: {why}"),
        (_, Some(why)) => format!("rejected: {why}"),
        _ => String::new(),
    };
    vec![
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
    let rows: Vec<Vec<String>> = c
        .probes
        .iter()
        .flat_map(|probe| {
            probe.points.iter().map(|p| {
                let rate = |w: &crate::limit::ProbeWindow| {
                    crate::units::bandwidth(w.bytes as f64 / w.seconds)
                };
                vec![
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
