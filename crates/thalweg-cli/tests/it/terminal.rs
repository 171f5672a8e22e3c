//! Names from files must do nothing to a terminal, and forge no rows of tables.

use std::collections::BTreeSet;
use std::path::Path;

use thalweg::format::slow5::{Encoding, Framing, RecordPress, SignalPress};
use thalweg::text::{escaped, is_hidden};
use thalweg_testing::slow5::{frame, header, signal};

use crate::command::{Ended, thalweg};
use crate::common::Folder;
use crate::hostile::Place;

/// Ids that end a line, clear a screen, turn the direction of writing, and forge a row.
const IDS: [&str; 5] = [
    "plain-id",
    "end\nforged-row\t3\t4\tabc",
    "\u{1b}]0;title\u{7}\u{1b}[2J",
    "\u{202e}\u{2066}turned\u{85}\u{7f}",
    r"back\slash\n",
];

fn hostile_reads(place: &Place) -> String {
    let mut header = header(Encoding::Binary, RecordPress::Zstd, SignalPress::SvbZd);
    for attribute in &mut header.attributes {
        for value in attribute.values.iter_mut().flatten() {
            value.push_str("\u{1b}[31m\u{202e}");
        }
    }
    let mut bytes = header.write().unwrap();
    for (number, id) in IDS.iter().enumerate() {
        bytes.extend(frame(&header, id, &signal(number as u64, 1000)));
    }
    bytes.extend(Framing::new(header.encoding).end_marker());
    place.write("reads.blow5", &bytes)
}

/// Asserts that nothing but the text's own line breaks and tabs was printed.
#[track_caller]
fn is_clean(args: &[&str], ended: &Ended) {
    for text in [&ended.out, &ended.err] {
        let bad = text.chars().find(|&c| is_hidden(c) && !matches!(c, '\n' | '\t'));
        assert_eq!(bad, None, "{args:?}: {text:?}");
    }
    assert!(!ended.err.contains("panicked"), "{args:?}: {ended:?}");
}

#[test]
fn names_of_reads_do_nothing_to_a_terminal() {
    let place = Place::new();
    let file = hostile_reads(&place);
    let missing = place.write("missing", "\\u001b[2Jno such read\n".as_bytes());
    let at = |name: &str| place.at(name);
    let id = IDS[2];
    let lines: &[&[&str]] = &[
        &["read", &file],
        &["read", &file, "--digest"],
        &["read", &file, "--explain"],
        &["read", &file, "--ids", &missing],
        &["info", &file],
        &["info", &file, "--json"],
        &["info", &file, "--run"],
        &["check", &file],
        &["scan", &file],
        &["scan", &file, "--tsv", "--columns", "read_id,run_id,asic_id"],
        &["scan", &file, "--columns", "\u{1b}[2J"],
        &["filter", &file, "--ids", &missing, "--out", &at("filtered.blow5")],
        &["filter", &file, "--where", "samples > 0", "--out", &at("all.blow5"), "--json"],
        &["convert", &file, &at("out.pod5")],
        &["convert", &file, &at("out.slow5")],
        &["merge", &file, &file, "--out", &at("merged.blow5")],
        &["split", &file, "--by", "read_group", "--out", &at("split")],
        &["index", &file],
        &["evict", &file],
        &["plot", &file, "--out", &at("run.html")],
        &["plot", &file, "--read", id, "--out", &at("read.html")],
        &["plot", &file, "--read", id, "--out", &at("read.svg")],
        &["plot", &file, "--read", "\u{1b}[2J", "--out", &at("none.svg")],
    ];
    for args in lines {
        is_clean(args, &thalweg(args));
    }
    for page in ["run.html", "read.html", "read.svg"] {
        let text = std::fs::read_to_string(place.path(page)).unwrap();
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{page}");
    }
}

#[test]
fn a_path_does_nothing_to_a_terminal() {
    let place = Place::new();
    let file = hostile_reads(&place);
    let named = place.at("a\u{1b}[2J\nb\u{202e}.blow5");
    std::fs::rename(&file, &named).unwrap();
    let damaged = place.write("\u{1b}[2J\nc.blow5", b"BLOW5\x01 and no more");
    for verb in ["read", "info", "check", "evict", "index"] {
        for path in [&named, &damaged] {
            let args = [verb, path.as_str()];
            let ended = thalweg(&args);
            is_clean(&args, &ended);
            let lines = ended.out.lines().chain(ended.err.lines());
            assert!(!lines.clone().any(|line| line.starts_with('b') || line.starts_with('c')));
        }
    }
}

#[test]
fn rows_cannot_be_forged_and_lists_of_ids_come_back() {
    let place = Place::new();
    let file = hostile_reads(&place);
    let rows = thalweg(&["read", &file, "--digest"]).out;
    let ids: Vec<&str> = rows.lines().map(|row| row.split('\t').next().unwrap()).collect();
    assert_eq!(ids, IDS.map(|id| escaped(id).into_owned()));
    assert!(rows.lines().all(|row| row.split('\t').count() == 4), "{rows}");
    let list = place.write("ids", (ids.join("\n") + "\n").as_bytes());
    let chosen = thalweg(&["read", &file, "--ids", &list, "--digest"]);
    assert_eq!(chosen.out, rows, "{chosen:?}");

    let table = place.at("table.tsv");
    let made = thalweg(&["scan", &file, "--columns", "read_id,samples", "--out", &table]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let text = std::fs::read_to_string(&table).unwrap();
    assert_eq!(text.lines().count(), 1 + IDS.len(), "{text}");
    assert_eq!(text, thalweg(&["scan", &file, "--columns", "read_id,samples", "--tsv"]).out);
}

#[test]
fn json_csv_and_arrow_keep_what_names_hold() {
    let place = Place::new();
    let file = hostile_reads(&place);
    let table = place.at("table.csv");
    assert_eq!(thalweg(&["scan", &file, "--columns", "read_id", "--out", &table]).code, Some(0));
    let mut csv = csv::Reader::from_path(&table).unwrap();
    let ids: BTreeSet<String> = csv.records().map(|row| row.unwrap()[0].to_owned()).collect();
    assert_eq!(ids, IDS.map(str::to_owned).into_iter().collect());

    let line = thalweg(&["info", &file, "--json"]).out;
    let info: serde_json::Value = serde_json::from_str(&line).unwrap();
    let values = info["attributes"].as_object().unwrap().values();
    let texts: Vec<&str> =
        values.flat_map(|v| v.as_array().unwrap()).filter_map(|v| v.as_str()).collect();
    assert!(texts.iter().any(|text| text.ends_with("\u{1b}[31m\u{202e}")), "{line}");

    let arrow = place.at("reads.arrow");
    assert_eq!(thalweg(&["read", &file, "--out", &arrow]).code, Some(0));
    let bytes = std::fs::read(Path::new(&arrow)).unwrap();
    for id in IDS {
        assert!(bytes.windows(id.len()).any(|part| part == id.as_bytes()), "{id:?}");
    }
}

/// Results of arms with long names that differ only at their ends.
fn long_names() -> (Folder, [String; 2]) {
    let folder = Folder::new();
    let arms = ["1", "2"].map(|end| format!("true '{}' {end}", "a long word ".repeat(12)));
    let run = ["bench", "--pairs", "6", "--json", "r.jsonl", "--", &arms[0], &arms[1]];
    folder.ok(&run);
    (folder, arms)
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The text of the first column of a table, without blanks.
fn first_column(text: &str) -> String {
    let rule = text.lines().find(|line| line.starts_with("---")).unwrap();
    let width = rule.find(' ').unwrap_or(rule.len());
    let column = |line: &str| line.chars().take(width).collect::<String>();
    without_blanks(&text.lines().map(column).collect::<String>())
}

#[test]
fn tables_fit_the_terminal_and_labels_stay_whole() {
    let (folder, arms) = long_names();
    for (width, args) in [40, 80, 81, 100, 120, 200, 400]
        .into_iter()
        .flat_map(|width| [(width, ["bench", "--resume"]), (width, ["compare", "--only=commands"])])
    {
        let mut command = folder.command(args);
        let output = command.arg("r.jsonl").env("COLUMNS", width.to_string()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{args:?}: {text}");
        // The line with the names of the outputs is no table.
        let lines = text.lines().filter(|line| !line.starts_with("raw trials"));
        let wide: Vec<&str> = lines.filter(|line| line.chars().count() > width).collect();
        assert!(wide.is_empty(), "{args:?} {width}: {wide:#?}");
        if args[0] == "bench" {
            continue;
        }
        for arm in &arms {
            let whole = without_blanks(&text).contains(&without_blanks(arm));
            assert!(whole || width < 400, "{width}: {text}");
        }
    }
}

#[test]
fn a_wrapped_label_is_the_whole_label() {
    let folder = Folder::new();
    let arms = ["1", "2"].map(|end| format!("true '{}' {end}", "a long word ".repeat(12)));
    let run = ["bench", "--pairs", "1", "--json", "r.jsonl", "--", &arms[0], &arms[1]];
    let output = folder.command(run).env("COLUMNS", "80").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let column = first_column(&text);
    for arm in &arms {
        assert!(column.contains(&without_blanks(arm)), "{arm}: {text}");
    }
}

/// Runs a shell command on a terminal; `None` where there is no script(1).
fn on_a_terminal(folder: &Folder, line: &str) -> Option<String> {
    let mut script = std::process::Command::new("script");
    script.args(["-qec", line, "/dev/null"]).current_dir(folder.0.path());
    script.env("TERM", "xterm").env("THALWEG", env!("CARGO_BIN_EXE_thalweg"));
    script.env_remove("NO_COLOR").env_remove("COLUMNS").stdin(std::process::Stdio::null());
    let output = script.output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_terminal_says_its_own_width() {
    let (folder, _) = long_names();
    let compare = "stty cols 64; $THALWEG compare r.jsonl";
    let Some(text) = on_a_terminal(&folder, compare) else { return };
    assert!(text.contains("experiment"), "{text}");
    assert!(text.lines().all(|line| line.trim_end().chars().count() <= 64), "{text}");
}

#[test]
fn no_color_means_no_colours() {
    let folder = Folder::new();
    for line in ["$THALWEG bench --help", "$THALWEG bench --nope", "$THALWEG bench nanopor"] {
        let Some(text) = on_a_terminal(&folder, &format!("NO_COLOR=1 {line}")) else { return };
        assert!(text.contains("bench") || text.contains("nanopore"), "{text}");
        assert!(!text.contains('\u{1b}'), "{line}: {text:?}");
    }
}
