//! Reports of several runs side by side, for a terminal and as one HTML page.

use super::columns::aligned;
use super::page::{Page, details, escape, list, table};
use super::table::{NOTHING, section, without_empty};
use super::{facts, figure, headline};
use crate::comparison::Comparison;
use crate::cross_run::{Against, Basis, Compared, ComparedRow};
use crate::results::published::{PublishedFigure, PublishedMachine};
use crate::results::{Published, ResultEntry, ResultRun};
use crate::stats::RatioFinding;
use crate::units::{bandwidth, binary_bytes, decimal_bytes, digits, seconds};

/// The letter that stands for a run in tables: A, B, C and so on.
fn letter(i: usize) -> String {
    u8::try_from(i)
        .ok()
        .filter(|i| *i < 26)
        .map_or_else(|| format!("#{}", i + 1), |i| char::from(b'A' + i).to_string())
}

/// The comparison as plain text. `width`: that of the terminal in characters; `None` for lines of
/// any length.
pub fn text(c: &Compared, width: Option<usize>) -> String {
    let mut out = String::new();
    let facts = runs(c);
    for (i, run) in c.runs.iter().enumerate() {
        let lines =
            facts.iter().filter_map(|(name, values)| Some(format!("{name:<9}{}", values.get(i)?)));
        out.push_str(
            section(&format!("{}  {}", letter(i), run.name), lines.collect(), width).trim_start(),
        );
    }
    out.push_str(&section("Headlines", headlines(c), width));
    let (header, rows) = ratios(c);
    out.push_str(&format!("\n{}", aligned(&header, &rows, 2, width)));
    out.push_str(&section("Remarks", remarks(c), width));
    for p in c.runs.iter().flat_map(|r| &r.published) {
        out.push_str(&section(&format!("What {} shows", p.source.name), p.remarks(), width));
    }
    out
}

/// The headline of each comparison of a single run. Comparisons of several runs are not paired.
fn headlines(c: &Compared) -> Vec<String> {
    let [run] = &c.runs[..] else { return Vec::new() };
    let mut lines: Vec<String> = headline::tally(&run.comparisons).into_iter().collect();
    let line = |c: &Comparison| format!("{}: {}", c.session.name, headline::headline(c).text());
    lines.extend(run.comparisons.iter().map(line));
    lines
}

/// The comparison as one self-contained page. For a single run, this is the report of that run.
pub fn html(c: &Compared) -> String {
    let mut page = Page::default();
    let names: Vec<&str> = c.runs.iter().map(|r| r.name.as_str()).collect();
    let title = names.join(" · ");
    let mut body = format!("<h1>{}</h1>\n", escape(&title));
    let header: Vec<String> = std::iter::once(String::new())
        .chain(c.runs.iter().enumerate().map(|(i, r)| format!("{}: {}", letter(i), r.name)))
        .collect();
    let rows: Vec<Vec<String>> = runs(c)
        .into_iter()
        .map(|(name, values)| std::iter::once(name.to_owned()).chain(values).collect())
        .collect();
    let origin = table(&header, &rows).replacen("<table", "<table class=\"runs\"", 1);
    let several = c.runs.len() > 1;
    let measured = c.runs.iter().any(|r| !r.comparisons.is_empty());
    // The headlines of a single run come first.
    let lead = c.runs.iter().flat_map(|r| &r.comparisons).next().filter(|_| !several);
    body.push_str(&match lead {
        Some(first) => format!("<p class=\"lead\">{}</p>\n", escape(&facts::lead(first))),
        None => origin.clone(),
    });
    if several {
        body.push_str(&figures_of_runs(&mut page, c));
    }
    let (header, rows) = ratios(c);
    let every = details_unless(several || !measured, "Every ratio", &table(&header, &rows));
    if several || !measured {
        body.push_str(&every);
        body.push_str(&list("Remarks", &remarks(c)));
    }
    for (i, run) in c.runs.iter().enumerate() {
        body.push_str(
            &run.published.iter().map(|p| published(&mut page, run, p)).collect::<String>(),
        );
        if run.comparisons.is_empty() {
            continue;
        }
        let inner = super::html::run(&mut page, run, &format!("r{i}c"));
        body.push_str(&if several {
            details(&format!("{}: {}, every comparison", letter(i), run.name), &inner)
        } else {
            inner
        });
    }
    if !several && measured {
        body.push_str(&every);
        body.push_str(&details("This run", &(origin + &list("Remarks", &remarks(c)))));
    }
    page.finish(&title, &body)
}

fn details_unless(open: bool, title: &str, body: &str) -> String {
    if open { body.to_owned() } else { details(title, body) }
}

/// The ratios between runs, in a figure for each experiment, and how near each came to its limit.
fn figures_of_runs(page: &mut Page, c: &Compared) -> String {
    let first = letter(0);
    let mut out = String::new();
    for rows in c.rows.chunk_by(|a, b| a.experiment == b.experiment) {
        let name = rows.first().map_or("", |row| row.experiment.as_str());
        let shown: Vec<figure::RatioRow> = rows.iter().flat_map(ratio_rows).collect();
        let figure = figure::ratios(&shown, noise_of(rows).as_ref(), &first, "");
        out.push_str(&page.figures(figure.map(|f| figure::Figure { title: name.into(), ..f })));
    }
    if !out.is_empty() {
        out = format!(
            "{}<p class=\"note\">{UNPAIRED_NOTE}</p>\n<div class=\"facets\">\n{out}</div>\n",
            super::html::KEY
        );
    }
    let fractions = page.figures(figure::fractions(c));
    out + &if fractions.is_empty() {
        String::new()
    } else {
        details("How near to its own machine's limit", &fractions)
    }
}

/// The largest noise of the ratios of an experiment.
fn noise_of(rows: &[ComparedRow]) -> Option<figure::NoiseBand> {
    let all = rows.iter().flat_map(|row| &row.against).filter_map(|a| a.noise);
    let floor = all.max_by(f64::total_cmp)?;
    let note = format!("Noise band: identical arms of a run differed by {}x.", digits(floor));
    Some(figure::NoiseBand { ends: (1.0 / floor, floor), note })
}

/// The note on how to read ratios between runs.
const UNPAIRED_NOTE: &str = "Unpaired: the runs were not interleaved. The baseline is the same arm \
     in the first run. The interval covers the scatter inside each run, not what changed between \
     them; the noise is the larger floor of the two.";

/// The origin of each run (machine, place, version and so on), as names with one value for each
/// run.
fn runs(c: &Compared) -> Vec<(&'static str, Vec<String>)> {
    let entries: Vec<Vec<ResultEntry>> = c.runs.iter().map(ResultRun::entries).collect();
    let distinct = |f: &dyn Fn(&ResultEntry) -> Option<String>| -> Vec<String> {
        let of = |entries: &Vec<ResultEntry>| {
            let mut all: Vec<String> = Vec::new();
            for value in entries.iter().filter_map(f).filter(|v| !v.is_empty()) {
                if !all.contains(&value) {
                    all.push(value);
                }
            }
            if all.is_empty() { NOTHING.into() } else { all.join("; ") }
        };
        entries.iter().map(of).collect()
    };
    vec![
        ("from", c.runs.iter().map(ResultRun::origin).collect()),
        ("date", c.runs.iter().map(date).collect()),
        ("machine", distinct(&|e| Some(e.machine.clone()))),
        ("store", distinct(&|e| e.store.clone())),
        ("programs", distinct(&|e| e.version.clone())),
    ]
}

fn date(run: &ResultRun) -> String {
    let measured = run.comparisons.first().map(|c| facts::date(c.session.started_unix_s));
    let typed = run
        .published
        .first()
        .and_then(|p| p.source.retrieved.as_ref())
        .map(|d| format!("read {d}"));
    measured.or(typed).unwrap_or_else(|| NOTHING.into())
}

/// One row for each arm, with its time in every run and its ratios.
fn ratios(c: &Compared) -> (Vec<String>, Vec<Vec<String>>) {
    let several = c.runs.len() > 1;
    let mut header: Vec<String> = vec!["experiment".into(), "arm".into()];
    let limits = c.rows.iter().flat_map(|r| &r.cells).flatten().any(|e| e.limit_s.is_some());
    header.extend(
        (0..c.runs.len())
            .map(|i| if several { format!("time in {}", letter(i)) } else { "time".into() }),
    );
    if limits {
        let name = |i| if several { format!("of limit, {}", letter(i)) } else { "of limit".into() };
        header.extend((0..c.runs.len()).map(name));
    }
    header.push(if several { "time against".into() } else { "time / baseline's".into() });
    header.push("shown".into());
    if limits {
        header.push("normalised".into());
    }
    let rows = c.rows.iter().map(|row| {
        let mut cells = vec![row.experiment.clone(), row.arm.clone()];
        cells.extend(
            row.cells.iter().map(|e| e.as_ref().and_then(time).unwrap_or_else(|| NOTHING.into())),
        );
        if limits {
            let percent = |e: &Option<ResultEntry>| {
                Some(format!("{} %", digits(e.as_ref()?.fraction()? * 100.0)))
            };
            cells.extend(row.cells.iter().map(|e| percent(e).unwrap_or_else(|| NOTHING.into())));
        }
        let each = |f: &dyn Fn(&Against) -> String| {
            let all: Vec<String> = row.against.iter().map(f).collect();
            if all.is_empty() { NOTHING.into() } else { all.join("; ") }
        };
        cells.push(each(&|a| against(a, row, several)));
        cells.push(each(&|a| match a.finding {
            Some(RatioFinding::TooFewPairs) if !a.paired => "too few trials".into(),
            Some(finding) => finding.to_string(),
            None => NOTHING.into(),
        }));
        if limits {
            cells.push(each(&|a| {
                a.normalised.map_or(NOTHING.into(), |n| format!("{}x", digits(n)))
            }));
        }
        cells
    });
    without_empty(header, rows.collect())
}

fn time(e: &ResultEntry) -> Option<String> {
    let t = e.time_s?;
    Some(match e.times.len() {
        1 => seconds(t.median),
        n => format!("{} ({n})", seconds(t.median)),
    })
}

fn against(a: &Against, row: &ComparedRow, several: bool) -> String {
    let kind = if a.paired { "paired" } else { "unpaired" };
    let byte = if a.basis == Basis::TimePerStoredByte { ", by the byte" } else { "" };
    let ratio = a.ratio.map_or_else(|| NOTHING.into(), |r| r.to_string());
    if several {
        let base = row.cells.iter().position(Option::is_some).unwrap_or(0);
        format!("{}/{} {ratio} {kind}{byte}", letter(a.run), letter(base))
    } else {
        format!("{ratio} {kind}{byte} ({})", a.baseline)
    }
}

/// The ratios of an arm to itself in the first run that has it, one for each other run.
fn ratio_rows(row: &ComparedRow) -> Vec<figure::RatioRow> {
    let named = |a: &Against| {
        Some(figure::RatioRow {
            name: format!("{} ({})", row.arm, letter(a.run)),
            ratio: Some(a.ratio?),
            finding: a.finding,
            time_s: None,
            pairs: Vec::new(),
        })
    };
    row.against.iter().filter_map(named).collect()
}

/// The remarks without repetitions, each with the number of rows that it applies to.
fn remarks(c: &Compared) -> Vec<String> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for row in &c.rows {
        for a in &row.against {
            let Some(note) = &a.note else { continue };
            let about = format!("{}, {}", row.experiment, row.arm);
            match all.iter_mut().find(|(n, _)| n == note) {
                Some((_, rows)) => rows.push(about),
                None => all.push((note.clone(), vec![about])),
            }
        }
    }
    let mut remarks: Vec<String> = all
        .into_iter()
        .map(|(note, rows)| match rows.as_slice() {
            [one] => format!("{one}: {note}"),
            [one, other] => format!("{one}, and {other}: {note}"),
            [one, ..] => format!("{one}, and {} other rows: {note}", rows.len() - 1),
            [] => note,
        })
        .collect();
    if c.runs.len() > 1 && c.rows.iter().all(|r| r.against.is_empty()) {
        remarks.push(
            "no arm is in more than one run under the same names; --match NAME OTHER says which \
             belong together"
                .into(),
        );
    }
    if c.rows.iter().flat_map(|r| &r.against).any(|a| !a.paired) {
        remarks.push(
            "unpaired: these trials were not interleaved, so a difference may come from anything \
             that changed between them"
                .into(),
        );
    }
    remarks.extend(c.runs.iter().flat_map(|r| r.notes.iter().cloned()));
    remarks
}

/// A published table: its source, its figures as plots, remarks, and every figure in a table.
fn published(page: &mut Page, run: &ResultRun, p: &Published) -> String {
    let s = &p.source;
    let title = match &s.url {
        Some(url) => format!("<a href=\"{}\">{}</a>", escape(url), escape(&s.title)),
        None => escape(&s.title),
    };
    let mut out = format!(
        "<section>\n<h2>{}</h2>\n<p class=\"lead\">Published: {title}. Typed in, not measured \
         here.</p>\n",
        escape(&s.name)
    );
    let entries: Vec<ResultEntry> = run
        .entries()
        .into_iter()
        .filter(|e| e.published && e.suite.as_ref() == Some(&s.name))
        .collect();
    out.push_str(&page.figures(figure::steps(&entries)));
    out.push_str(&page.figures(figure::scaling(&entries)));
    out.push_str(&page.figures(figure::table(p)));
    out.push_str(&list("What the table shows", &p.remarks()));
    let rows: Vec<Vec<String>> =
        p.figures.iter().zip(&entries).map(|(f, e)| published_row(f, e)).collect();
    let header = PUBLISHED_HEADER.map(str::to_owned);
    out.push_str(&details("Every figure", &table(&header, &rows)));
    let machines: Vec<(String, String)> =
        s.machines.iter().map(|(name, m)| (name.clone(), machine_in_words(m))).collect();
    out.push_str(&details("Machines", &super::page::definitions(&machines)));
    out.push_str("</section>\n");
    out
}

/// The columns of [`published_row`].
const PUBLISHED_HEADER: [&str; 10] = [
    "experiment",
    "arm",
    "machine",
    "time",
    "of it reading",
    "rate",
    "CPU s",
    "resident",
    "runs",
    "remark",
];

fn published_row(f: &PublishedFigure, e: &ResultEntry) -> Vec<String> {
    let dash = |text: Option<String>| text.unwrap_or_else(|| NOTHING.into());
    let settings: Vec<String> = f.settings.iter().map(|(k, v)| format!("{k} {v}")).collect();
    let settings = (!settings.is_empty()).then(|| settings.join(", "));
    let remark: Vec<String> = f.command.clone().into_iter().chain(settings).collect();
    vec![
        f.experiment.clone(),
        f.arm.clone(),
        dash(f.machine.clone()),
        seconds(f.time_s),
        dash(f.fetch_s.map(seconds)),
        dash(e.rate().map(bandwidth)),
        dash(e.cpu_s.map(digits)),
        dash(f.max_rss_bytes.map(|b| binary_bytes(b as f64))),
        dash(f.iterations.map(|n| n.to_string())),
        remark.join("; "),
    ]
}

fn machine_in_words(m: &PublishedMachine) -> String {
    let memory = m.memory_bytes.map(|b| format!("{} memory", binary_bytes(b as f64)));
    let link = m.network_bytes_per_s.map(|b| {
        let from = m.network_source.as_ref().map_or(String::new(), |s| format!(" ({s})"));
        format!("link {}/s{from}", decimal_bytes(b))
    });
    let parts = [Some(m.cpu.clone()), memory, m.storage.clone(), link, m.software.clone()];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}
