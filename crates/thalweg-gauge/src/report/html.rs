//! The report of a run as one HTML page.

use super::bottleneck::bottlenecks;
use super::headline::{self, Headline, headline};
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

/// All comparisons of a run: the headlines, pipelines and curves, then each comparison.
pub(super) fn run(page: &mut Page, run: &ResultRun, id: &str) -> String {
    let comparisons = &run.comparisons;
    let named = named(comparisons);
    let mut out = headlines(&named, comparisons, id);
    let alone = comparisons.len() == 1;
    if !alone && comparisons.iter().any(|c| c.summaries.iter().any(|s| s.ratio.is_some())) {
        out.push_str(KEY);
    }
    let entries = run.entries();
    let mut rest = String::new();
    rest.push_str(&page.figures(figure::steps(&entries)));
    rest.push_str(&page.figures(figure::scaling(&entries)));
    // Groups keep the order of the comparisons.
    let mut next = named.iter().enumerate();
    for (name, members) in groups(comparisons) {
        let sections: String = next
            .by_ref()
            .take(members.len())
            .map(|(at, named)| section(page, named, &format!("{id}{at}"), alone))
            .collect();
        let heading = name.map_or(String::new(), |n| format!("<h2>{}</h2>\n", escape(&n)));
        out.push_str(&format!(
            "<div class=\"group\">\n{heading}<div class=\"facets\">\n{sections}</div>\n</div>\n"
        ));
    }
    out + &rest
}

/// The headlines of several comparisons as a list of links, with a filter if they are many.
fn headlines(named: &[Named<'_>], comparisons: &[Comparison], id: &str) -> String {
    if named.len() < 2 {
        return String::new();
    }
    let tally = headline::tally(comparisons).map_or(String::new(), |t| paragraph("tally", &t));
    let items: String = named
        .iter()
        .enumerate()
        .map(|(i, named)| {
            let name = escape(&named.title);
            format!(
                "<li data-find=\"{}\"><a href=\"#{id}{i}\">{name}</a><span>{}</span></li>\n",
                named.words(),
                headline_html(&named.headline)
            )
        })
        .collect();
    let filter = if named.len() > FILTERED { FILTER } else { "" };
    format!("{tally}{filter}<ol class=\"headlines\">\n{items}</ol>\n")
}

/// More comparisons than these have a filter.
const FILTERED: usize = 8;
const FILTER: &str = "<p class=\"filter\" hidden><label>Show only \
     <input type=\"search\" placeholder=\"words: an arm, cold, no difference, not quiet\"></label>\
     <output></output></p>\n";

/// How to read the charts of ratios.
pub(super) const KEY: &str = "<p class=\"key\"><b class=\"faster\">◀ faster</b> or \
     <b class=\"slower\">▶ slower</b> than the baseline ◆; ○ no difference shown; × too few pairs. \
     The whiskers are the 95 % interval of the median of the paired ratios, with their values; \
     small dots are single pairs, the first round on top. <span class=\"band\">Noise</span>: the \
     interval of the baseline against itself. A difference counts only if its whole interval lies \
     beyond the \
     noise floor.</p>\n";

/// Comparisons that follow one another and whose names begin alike, up to the first ", ". A group
/// of one has no name, and joins its neighbours without a name.
fn groups(comparisons: &[Comparison]) -> Vec<(Option<String>, Vec<&Comparison>)> {
    let key = |c: &Comparison| c.session.name.split(", ").next().unwrap_or_default().to_owned();
    let mut groups: Vec<(Option<String>, Vec<&Comparison>)> = Vec::new();
    for members in comparisons.chunk_by(|a, b| key(a) == key(b)) {
        let name = members.first().filter(|_| members.len() > 1).map(key);
        match groups.last_mut() {
            Some((None, last)) if name.is_none() => last.extend(members),
            _ => groups.push((name, members.iter().collect())),
        }
    }
    groups
}

/// A comparison with what stands above it.
struct Named<'a> {
    comparison: &'a Comparison,
    title: String,
    headline: Headline,
}

/// Comparisons with their titles. Those of several files may have the same name, and are numbered.
fn named(comparisons: &[Comparison]) -> Vec<Named<'_>> {
    let name = |i: usize| comparisons.get(i).map_or("", |c| c.session.name.as_str());
    let title = |i: usize| match (0..i).filter(|&before| name(before) == name(i)).count() {
        0 => name(i).to_owned(),
        before => format!("{} ({})", name(i), before + 1),
    };
    let named =
        |(i, comparison)| Named { comparison, title: title(i), headline: headline(comparison) };
    comparisons.iter().enumerate().map(named).collect()
}

impl Named<'_> {
    /// The words by which the filter finds a comparison, escaped.
    fn words(&self) -> String {
        let session = &self.comparison.session;
        let arms: Vec<&str> = session.arms.iter().map(|a| a.name.as_str()).collect();
        let all = format!("{} {} {}", session.name, self.headline.text(), arms.join(" "));
        escape(&all.to_lowercase())
    }
}

fn paragraph(class: &str, text: &str) -> String {
    format!("<p class=\"{class}\">{}</p>\n", escape(text))
}

/// The sentence with its badges, which tell their reasons when they are pointed at.
fn headline_html(h: &Headline) -> String {
    let badge = |b: &headline::Badge| {
        format!(" <span class=\"badge\" title=\"{}\">{}</span>", escape(&b.why), escape(b.words))
    };
    // The claim stands out from what explains it.
    let (claim, rest) = h.words.split_once(';').unwrap_or((&h.words, ""));
    let rest = if rest.is_empty() { String::new() } else { format!(";{}", escape(rest)) };
    let badges: String = h.badges.iter().map(badge).collect();
    format!("<strong>{}</strong>{rest}{badges}", escape(claim))
}

/// One comparison: its headline and its ratios, then everything else, folded away unless the
/// comparison is `alone`.
fn section(page: &mut Page, named: &Named<'_>, id: &str, alone: bool) -> String {
    let Named { comparison: c, title, headline } = named;
    let level = if alone { "h2" } else { "h3" };
    let mut out = format!(
        "<section id=\"{id}\" data-find=\"{}\">\n<{level}>{}</{level}>\n",
        named.words(),
        escape(title)
    );
    out.push_str(&format!("<p class=\"headline\">{}</p>\n", headline_html(headline)));
    if let Some(alarm) = facts::alarm(c) {
        out.push_str(&format!("<p class=\"alarm\" role=\"alert\">{}</p>\n", escape(&alarm)));
    }
    let baseline = c.session.arms.first().map_or("", |a| a.name.as_str());
    let (rows, band) = figure::of_comparison(c);
    let chart = figure::ratios(&rows, band.as_ref(), baseline, "");
    let key = if alone && chart.is_some() { KEY } else { "" };
    out.push_str(&page.figures(chart));
    out.push_str(key);
    let inner = inner(page, c);
    out.push_str(&if alone { inner } else { details("Times, stages, limit, trials", &inner) });
    out.push_str("</section>\n");
    out
}

/// All of a comparison but its headline and its ratios.
fn inner(page: &mut Page, c: &Comparison) -> String {
    let rows: Vec<Vec<String>> = facts::rows(c).into_iter().map(Vec::from).collect();
    let mut out = table(&facts::header(c), &rows);
    let (header, rows) = bottlenecks(c);
    if !rows.is_empty() {
        out.push_str("<h3>What holds them back</h3>\n");
        out.push_str(&table(&header, &rows));
    }
    out.push_str(&page.figures(figure::times(c)));
    out.push_str(&page.figures(figure::waits(c)));
    out.push_str(&page.figures(figure::cpu_time(c)));
    out.push_str(&page.figures(c.probes.iter().filter_map(figure::probe)));
    out.push_str(&list("Remarks", &facts::remarks(c)));
    out.push_str(&details("Machine and files", &definitions(&facts::environment(c))));
    out.push_str(&details("Method", &paragraphs(&facts::method(c))));
    out.push_str(&details("Commands", &commands(c)));
    out.push_str(&details("Every trial", &trials(c)));
    if !c.probes.is_empty() {
        out.push_str(&details("The limit, point by point", &points(c)));
    }
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
