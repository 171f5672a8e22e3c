//! `info` of a run, `filter`, `merge`, `split` and `read --pa`: they write exactly the selected
//! reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int16Type};
use arrow_ipc::reader::FileReader;
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};

use crate::common::Folder;

/// The digest rows of files, sorted, so that the order of the reads does not matter.
fn digests(folder: &Folder, path: &str) -> BTreeSet<String> {
    folder.ok(&["read", "--digest", path]).lines().map(str::to_owned).collect()
}

fn ids(folder: &Folder, path: &str) -> Vec<String> {
    folder
        .ok(&["read", "--digest", path])
        .lines()
        .map(|row| row.split('\t').next().unwrap().to_owned())
        .collect()
}

/// A folder with two files of one run, and one of another run.
fn runs() -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.path("in")).unwrap();
    folder.synth("ab.blow5", "1.6M");
    let all = ids(&folder, "ab.blow5");
    for (name, part) in
        ["in/a.blow5", "in/b.blow5"].into_iter().zip(all.chunks(all.len().div_ceil(2)))
    {
        fs::write(folder.path("part"), part.join("\n")).unwrap();
        folder.ok(&["convert", "ab.blow5", name, "--ids", "part"]);
    }
    // A text file of another run, whose offsets have more digits than POD5 can hold.
    folder.ok(&["synth", "c.blow5", "--samples", "400k", "--seed", "9"]);
    folder.ok(&["convert", "c.blow5", "in/c.slow5"]);
    let text = fs::read_to_string(folder.path("in/c.slow5")).unwrap();
    let line = text.lines().find(|line| line.starts_with("@run_id\t")).unwrap();
    let row = |line: &str| {
        let mut columns: Vec<&str> = line.split('\t').collect();
        columns[3] = "0.1";
        columns.join("\t")
    };
    let text: Vec<String> = text
        .replace(line, "@run_id\tanother")
        .lines()
        .map(|line| if line.starts_with(['#', '@']) { line.to_owned() } else { row(line) })
        .collect();
    fs::write(folder.path("in/c.slow5"), text.join("\n") + "\n").unwrap();
    folder
}

fn left(folder: &Folder, path: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder.path(path))
        .map(|entries| {
            entries.map(|e| e.unwrap().file_name().to_str().unwrap().to_owned()).collect()
        })
        .unwrap_or_default();
    names.sort();
    names
}

#[test]
fn a_run_in_a_few_figures() {
    let folder = runs();
    let info = &folder.json(&["info", "in", "--json"])[0];
    let rows: Vec<(String, u64)> = digests(&folder, "in")
        .iter()
        .map(|row| row.split('\t').collect::<Vec<_>>())
        .map(|row| (row[0].to_owned(), row[1].parse().unwrap()))
        .collect();
    let mut lengths: Vec<u64> = rows.iter().map(|row| row.1).collect();
    lengths.sort_unstable();
    let total: u64 = lengths.iter().sum();
    assert_eq!((&info["schema"], info["files"].as_u64()), (&"thalweg.run/1".into(), Some(3)));
    assert_eq!(
        (info["reads"].as_u64(), info["samples"].as_u64()),
        (Some(lengths.len() as u64), Some(total))
    );
    let half = |n: u64| lengths.iter().filter(|&&l| l >= n).sum::<u64>() * 2 >= total;
    let n50 = lengths.iter().copied().filter(|&n| half(n)).max();
    let figures = &info["length_samples"];
    assert_eq!(figures["n50"].as_u64(), n50);
    assert_eq!(figures["min"].as_u64(), lengths.first().copied());
    assert_eq!(figures["median"].as_u64(), Some(lengths[(lengths.len() - 1) / 2]));
    assert_eq!(figures["max"].as_u64(), lengths.last().copied());
    let bytes: u64 = left(&folder, "in")
        .iter()
        .filter(|name| !name.ends_with(".idx"))
        .map(|name| fs::metadata(folder.path(&format!("in/{name}"))).unwrap().len())
        .sum();
    assert_eq!(info["stored_bytes"].as_u64(), Some(bytes));
    assert_eq!(info["bits_per_sample"].as_f64(), Some(bytes as f64 * 8.0 / total as f64));
    let parts: Vec<_> =
        info["runs"].as_array().unwrap().iter().map(|run| run["reads"].as_u64().unwrap()).collect();
    assert_eq!((parts.len(), parts.iter().sum::<u64>()), (2, lengths.len() as u64));
    assert!(
        info["runs"].as_array().unwrap().iter().any(|run| run["attributes"]["run_id"] == "another")
    );
    let reasons: u64 =
        info["end_reasons"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(reasons, lengths.len() as u64);
    assert!(info["channels"].as_u64().unwrap() > 1 && info["signal_s"].as_f64().unwrap() > 100.0);

    let words = folder.ok(&["info", "in"]);
    for part in ["files          3", "N50", "bits a sample", "another: ", "end reasons", "channels"]
    {
        assert!(words.contains(part), "{part}: {words}");
    }
    // A pattern gives the same result as the files with --run. A single file is described on its
    // own.
    assert_eq!(&folder.json(&["info", "--json", "in/*low5"])[0], info);
    assert_eq!(
        &folder.json(&["info", "--json", "--run", "in/a.blow5", "in/b.blow5", "in/c.slow5"])[0],
        info
    );
    assert_eq!(folder.json(&["info", "--json", "in/a.blow5"])[0]["schema"], "thalweg.info/1");
    folder.fails(1, &["info", "in/*.none"]);
}

/// Formats that this build writes.
const FORMATS: &[&str] = if cfg!(feature = "hdf5") {
    &["slow5", "blow5", "pod5", "fast5"]
} else {
    &["slow5", "blow5", "pod5"]
};

/// POD5 and text can hold a read twice, but a merge of two files must not make such a file.
#[test]
fn a_read_in_two_files_is_an_error_in_every_format() {
    let folder = runs();
    fs::copy(folder.path("in/a.blow5"), folder.path("again.blow5")).unwrap();
    let id = &ids(&folder, "in/a.blow5")[0];
    let inputs = ["again.blow5", "in/a.blow5"];
    for format in FORMATS {
        let out = format!("out.{format}");
        let by_verb: [&[&str]; 4] = [
            &["merge", inputs[0], inputs[1], "--out", &out],
            &["convert", inputs[0], inputs[1], &out],
            &["filter", inputs[0], inputs[1], "--out", &out, "--where", "samples > 0"],
            &["split", inputs[0], inputs[1], "--out", "parts", "--to", format, "--reads", "1M"],
        ];
        for args in by_verb {
            let said = folder.fails(1, args);
            let names = [id, inputs[0], inputs[1]];
            assert!(names.iter().all(|name| said.contains(*name)), "{args:?}: {said}");
            assert_eq!(left(&folder, "parts"), [""; 0], "{args:?}");
        }
    }
    let is_output = |name: &String| name.starts_with("out") || name.starts_with('.');
    assert!(!left(&folder, "").iter().any(is_output));
    // A read that one file has twice stays as it is, where the format allows it.
    folder.ok(&["convert", "in/a.blow5", "once.slow5"]);
    let text = fs::read_to_string(folder.path("once.slow5")).unwrap();
    let row = text.lines().last().unwrap();
    fs::write(folder.path("twice.slow5"), format!("{text}{row}\n")).unwrap();
    folder.ok(&["convert", "twice.slow5", "twice.pod5", "--lossy"]);
    assert_eq!(ids(&folder, "twice.pod5").len(), ids(&folder, "in/a.blow5").len() + 1);
}

/// Some reads lose digits in POD5, so --lossy is needed.
#[test]
fn every_verb_writes_every_format() {
    let folder = runs();
    let all = digests(&folder, "in");
    let of = |line: &Value| line["output"].as_str().unwrap().to_owned();
    for format in FORMATS {
        let to = |name: &str| format!("{name}.{format}");
        let (merged, filtered) = (to("merged"), to("filtered"));
        let told = folder.run(&[
            "merge",
            "in",
            "--out",
            &merged,
            "--lossy",
            "--verify",
            "--json",
            "--threads",
            "2",
            "--memory",
            "64MiB",
        ]);
        assert!(told.status.success(), "{format}: {told:?}");
        let line: Value = serde_json::from_slice(&told.stdout).unwrap();
        assert_eq!((of(&line), &line["verified"]), (merged.clone(), &true.into()));
        let samples: u64 =
            all.iter().map(|row| row.split('\t').nth(1).unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(
            (line["reads"].as_u64(), line["samples"].as_u64()),
            (Some(all.len() as u64), Some(samples))
        );
        assert_eq!(digests(&folder, &merged), all, "{format}");
        let info = &folder.json(&["info", "--json", &merged])[0];
        assert_eq!(
            (&info["format"], &info["read_groups"]),
            (&format.to_uppercase().into(), &2.into())
        );

        let chosen = [
            "filter",
            "in",
            "--out",
            &filtered,
            "--where",
            "run_id == another",
            "--lossy",
            "--verify",
        ];
        folder.ok(&chosen);
        assert_eq!(digests(&folder, &filtered), digests(&folder, "in/c.slow5"), "{format}");

        let parts = folder.json(&[
            "split", "in", "--by", "run_id", "--out", format, "--to", format, "--lossy",
            "--verify", "--json",
        ]);
        assert_eq!(left(&folder, format).len(), 2);
        let mut seen = BTreeSet::new();
        for part in &parts {
            assert_eq!(part["verified"], true);
            let columns = ["scan", &of(part), "--columns", "run_id"].map(str::to_owned);
            let runs: BTreeSet<String> = folder
                .ok(&columns.each_ref().map(String::as_str))
                .lines()
                .skip(1)
                .map(str::to_owned)
                .collect();
            assert_eq!(runs, [part["value"].as_str().unwrap().to_owned()].into());
            seen.extend(digests(&folder, &of(part)));
        }
        assert_eq!(seen, all, "{format}");
        // More files than are written at the same time.
        folder.ok(&["split", "ab.blow5", "--by", "read_id", "--out", &to("each"), "--to", format]);
        assert!(left(&folder, &to("each")).len() > 16);
        assert_eq!(digests(&folder, &to("each")), digests(&folder, "ab.blow5"), "{format}");

        // The name does not determine the format, so --to does.
        folder.ok(&["merge", "in/a.blow5", "--out", "named", "--to", format, "--force"]);
        assert_eq!(folder.json(&["info", "--json", "named"])[0]["format"], format.to_uppercase());
        folder.ok(&["convert", "in/a.blow5", "other", "--to", format, "--force"]);
        assert_eq!(digests(&folder, "other"), digests(&folder, "named"));
    }
    // The options of each format, and the formats that refuse them.
    let size = |name: &str| fs::metadata(folder.path(name)).unwrap().len();
    folder.ok(&[
        "merge",
        "in/a.blow5",
        "in/b.blow5",
        "--out",
        "plain.pod5",
        "--signal",
        "none",
        "--row-samples",
        "5000",
    ]);
    assert!(size("plain.pod5") > size("ab.blow5"));
    assert_eq!(digests(&folder, "plain.pod5"), digests(&folder, "ab.blow5"));
    folder.fails(2, &["merge", "in", "--out", "all.pod5", "--record", "zstd"]);
    folder.fails(
        2,
        &["filter", "in", "--out", "all.blow5", "--where", "samples > 0", "--level", "3"],
    );
    folder.fails(2, &["split", "in", "--by", "run_id", "--out", "none", "--row-samples", "5000"]);
    folder.fails(2, &["merge", "in", "--out", "all.blow5", "--signal", "svb16-zd"]);
    folder.ok(&["merge", "in", "--out", "all.blow5", "--signal", "svb16-zd", "--experimental"]);
    assert_eq!(digests(&folder, "all.blow5"), all);
}

#[test]
fn every_verb_refuses_or_reports_losses_of_a_format() {
    let folder = runs();
    let by_verb: [&[&str]; 3] = [
        &["merge", "in", "--out", "out/all.pod5"],
        &["filter", "in", "--out", "out/all.pod5", "--where", "samples > 0"],
        &["split", "in", "--by", "run_id", "--out", "out", "--to", "pod5"],
    ];
    for args in by_verb {
        fs::create_dir(folder.path("out")).unwrap();
        let said = folder.fails(1, args);
        assert!(said.contains("POD5 without loss") && said.contains("--lossy"), "{said}");
        // Nothing is written, not even the files that would lose nothing.
        assert_eq!(left(&folder, "out"), [""; 0], "{args:?}");
        let output = folder.run(&[args, &["--lossy", "--json"]].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && said.contains("lost: "), "{said}");
        let lines = crate::common::json(std::str::from_utf8(&output.stdout).unwrap());
        let lost: usize = lines.iter().map(|line| line["lost"].as_array().unwrap().len()).sum();
        assert_eq!(lost, said.lines().count());
        assert!(lost > 0);
        fs::remove_dir_all(folder.path("out")).unwrap();
    }
    // If no selected read loses anything, nothing is printed.
    folder.ok(&["filter", "in", "--out", "out.pod5", "--where", "run_id != another"]);
    assert_eq!(digests(&folder, "out.pod5"), digests(&folder, "ab.blow5"));
}

#[test]
fn merged_reads_are_those_of_all_files_with_their_run() {
    let folder = runs();
    folder.ok(&["merge", "in", "--out", "all.blow5"]);
    assert_eq!(digests(&folder, "all.blow5"), digests(&folder, "in"));
    assert_eq!(ids(&folder, "all.blow5"), ids(&folder, "in"));
    assert_eq!(folder.json(&["info", "--json", "all.blow5"])[0]["read_groups"], 2);
    // The rows are equal except for the number of the read group and the file.
    let columns = "read_id,digitisation,offset,range,sampling_rate,samples,channel_number,\
                   start_time,end_reason,run_id";
    let rows = |path: &str| folder.ok(&["scan", path, "--columns", columns]);
    assert_eq!(rows("all.blow5"), rows("in"));
    folder.ok(&["check", "all.blow5"]);
    // Any compression, and text.
    folder.ok(&[
        "merge",
        "in/a.blow5",
        "in/c.slow5",
        "--out",
        "some.blow5",
        "--record",
        "zlib",
        "--signal",
        "ex-zd",
    ]);
    folder.ok(&["merge", "in/a.blow5", "in/c.slow5", "--out", "some.slow5"]);
    assert_eq!(digests(&folder, "some.blow5"), digests(&folder, "some.slow5"));

    // A duplicate read, an output that is also an input, and an output of unknown format.
    fs::copy(folder.path("in/a.blow5"), folder.path("in/z.blow5")).unwrap();
    assert!(folder.fails(1, &["merge", "in", "--out", "twice.blow5"]).contains("twice.blow5"));
    assert!(folder.fails(2, &["merge", "in", "--out", "in/a.blow5"]).contains("is the input"));
    let into_itself = ["filter", "in", "--out", "in/a.blow5", "--where", "samples > 0"];
    assert!(folder.fails(2, &into_itself).contains("is the input"));
    folder.fails(2, &["merge", "in", "--out", "all.txt"]);
    folder.fails(2, &["merge", "in", "--out", "all.slow5", "--record", "zstd"]);
    assert!(
        !left(&folder, ".").iter().any(|name| name.contains("twice") || name.contains("all.txt"))
    );
}

/// A BAM file of unmapped reads; those with a parent have the tag `pi`.
fn bam(reads: &[(&str, Option<&str>)]) -> Vec<u8> {
    let mut bytes = b"BAM\x01\x04\0\0\0@CO\n\0\0\0\0".to_vec();
    for (name, parent) in reads {
        let mut record = [0xff; 8].to_vec();
        record.extend([name.len() as u8 + 1, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0]);
        record.extend([0xff; 12]);
        record.extend(name.as_bytes());
        record.push(0);
        if let Some(parent) = parent {
            record.extend(format!("qsi\x01\0\0\0piZ{parent}\0").as_bytes());
        }
        bytes.extend((record.len() as u32).to_le_bytes());
        bytes.extend(record);
    }
    // One BGZF block, whose extra field holds its length minus one. The empty block that ends the
    // file follows.
    let block = |size: u16| {
        let mut extra = b"BC\x02\0".to_vec();
        extra.extend(size.to_le_bytes());
        let mut block = GzBuilder::new().extra(extra).write(Vec::new(), Compression::default());
        block.write_all(&bytes).unwrap();
        block.finish().unwrap()
    };
    let len = block(0).len();
    let mut file = block(len as u16 - 1);
    file.extend(b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0\x1b\0\x03\0\0\0\0\0\0\0\0\0");
    file
}

#[test]
fn filtered_reads_are_those_asked_for() {
    let folder = runs();
    let all = digests(&folder, "in");
    let of = |rows: &BTreeSet<String>, keep: &dyn Fn(&str, u64) -> bool| -> BTreeSet<String> {
        rows.iter()
            .filter(|row| {
                let cells: Vec<&str> = row.split('\t').collect();
                keep(cells[0], cells[1].parse().unwrap())
            })
            .cloned()
            .collect()
    };
    let long = of(&all, &|_, samples| samples >= 60_000);
    assert!(!long.is_empty() && long.len() < all.len());
    folder.ok(&["filter", "in", "--out", "long.blow5", "--where", "samples >= 60000"]);
    assert_eq!(digests(&folder, "long.blow5"), long);
    folder.ok(&["check", "long.blow5"]);

    let every: Vec<String> = ids(&folder, "in");
    let listed: Vec<&String> = every.iter().rev().step_by(3).collect();
    fs::write(folder.path("list"), listed.iter().map(|id| format!("{id}\n")).collect::<String>())
        .unwrap();
    let in_list = |id: &str, _: u64| listed.iter().any(|listed| *listed == id);
    folder.ok(&["filter", "in", "--out", "listed.slow5", "--ids", "list"]);
    assert_eq!(digests(&folder, "listed.slow5"), of(&all, &in_list));
    // The list may also come from standard input. Reads must meet the condition as well.
    folder.ok(&[
        "filter",
        "in",
        "--out",
        "both.blow5",
        "--ids",
        "list",
        "--where",
        "run_id != another and samples > 0",
    ]);
    let another = ids(&folder, "in/c.slow5");
    let both = of(&all, &|id, n| in_list(id, n) && !another.iter().any(|other| other == id));
    assert!(!both.is_empty());
    assert_eq!(digests(&folder, "both.blow5"), both);

    // With a BAM file: an id may occur several times, and the parent of a split read counts.
    let (a, b) = (every[0].as_str(), every.last().unwrap().as_str());
    fs::write(
        folder.path("x.bam"),
        bam(&[(a, None), ("a-part", Some(b)), ("another-part", Some(b)), (a, None)]),
    )
    .unwrap();
    folder.ok(&["filter", "in", "--out", "bam.blow5", "--bam", "x.bam"]);
    assert_eq!(ids(&folder, "bam.blow5"), [a, b]);

    // If no read is selected, the output is a complete file without reads.
    folder.ok(&["filter", "in", "--out", "none.blow5", "--where", "samples < 0"]);
    assert_eq!(folder.ok(&["read", "--digest", "none.blow5"]), "");
}

#[test]
fn a_failed_filter_leaves_nothing() {
    let folder = runs();
    let one = ids(&folder, "in/a.blow5")[0].clone();
    fs::write(folder.path("list"), format!("{one}\nnobody\n")).unwrap();
    let args = ["filter", "in", "--out", "out.blow5", "--ids", "list"];
    assert!(folder.fails(1, &args).contains("1 of 2 reads (such as nobody"));
    fs::write(folder.path("x.bam"), bam(&[(&one, None), ("nobody", None)])).unwrap();
    assert!(
        folder
            .fails(1, &["filter", "in", "--out", "out.blow5", "--bam", "x.bam"])
            .contains("--missing-ok")
    );
    let whole = fs::read(folder.path("x.bam")).unwrap();
    fs::write(folder.path("cut.bam"), &whole[..whole.len() - 28]).unwrap();
    assert!(
        folder
            .fails(1, &["filter", "in", "--out", "out.blow5", "--bam", "cut.bam"])
            .contains("truncated")
    );
    fs::write(folder.path("text.bam"), "@HD\tVN:1.6\n").unwrap();
    assert!(
        folder
            .fails(1, &["filter", "in", "--out", "out.blow5", "--bam", "text.bam"])
            .contains("BAM")
    );
    assert!(folder.fails(2, &["filter", "in", "--out", "out.blow5"]).contains("--where"));
    assert!(
        folder
            .fails(2, &["filter", "in", "--out", "out.blow5", "--where", "samples >"])
            .contains("a value")
    );
    folder.fails(2, &["filter", "in", "--out", "out.txt", "--where", "samples > 1"]);
    assert!(!left(&folder, ".").iter().any(|name| name.starts_with("out.")));

    let output =
        folder.run(&["filter", "in", "--out", "out.blow5", "--ids", "list", "--missing-ok"]);
    assert!(output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("1 of 2 reads"));
    assert_eq!(ids(&folder, "out.blow5"), [one]);
}

#[test]
fn the_parts_of_a_split_add_up_to_the_input() {
    let folder = runs();
    let all = digests(&folder, "in");
    for (by, columns) in [
        ("run_id", "run_id"),
        ("channel_number", "channel_number"),
        ("end_reason", "end_reason"),
        ("read_id", "read_id"),
        ("read_group", "run_id"),
    ] {
        let made = folder.json(&["split", "in", "--by", by, "--out", by, "--json"]);
        let mut seen = BTreeSet::new();
        for part in &made {
            let file = part["output"].as_str().unwrap();
            let rows = digests(&folder, file);
            assert_eq!(part["reads"].as_u64(), Some(rows.len() as u64));
            let values = folder.ok(&["scan", file, "--columns", columns]);
            let values: BTreeSet<&str> = values.lines().skip(1).collect();
            assert_eq!(values.len(), 1, "{by}: {file}: {values:?}");
            assert!(by == "read_group" || values.contains(part["value"].as_str().unwrap()));
            folder.ok(&["check", file]);
            assert!(rows.iter().all(|row| seen.insert(row.clone())));
        }
        assert_eq!(seen, all, "{by}");
        assert!(made.len() > 1);
    }
    // The header of a part has only the part's own read groups.
    assert_eq!(folder.json(&["info", "--json", "run_id/another.blow5"])[0]["read_groups"], 1);
    assert!(
        folder.path("read_id").read_dir().unwrap().count() > 16,
        "more files than may be open at once"
    );

    folder.ok(&["split", "in", "--reads", "4", "--out", "parts", "--to", "slow5"]);
    let names = left(&folder, "parts");
    assert_eq!(names[..2], ["part-00000.slow5", "part-00001.slow5"]);
    let order: Vec<String> =
        names.iter().flat_map(|name| ids(&folder, &format!("parts/{name}"))).collect();
    assert_eq!(order, ids(&folder, "in"));
    assert!(
        names.iter().rev().skip(1).all(|name| ids(&folder, &format!("parts/{name}")).len() == 4)
    );
}

#[test]
fn a_split_is_all_or_nothing() {
    let folder = runs();
    folder.fails(2, &["split", "in", "--out", "out"]);
    folder.fails(2, &["split", "in", "--out", "out", "--reads", "0"]);
    folder.fails(2, &["split", "in", "--out", "out", "--by", "run_id", "--to", "txt"]);
    assert!(
        folder
            .fails(2, &["split", "in", "--out", "out", "--by", "read_id", "--most", "3"])
            .contains("--most")
    );
    folder.fails(1, &["split", "in", "--out", "out", "--by", "nothing"]);
    assert_eq!(left(&folder, "out"), [""; 0]);
    folder.ok(&["split", "in", "--out", "out", "--by", "run_id"]);
    let before = left(&folder, "out");
    assert!(
        folder
            .fails(1, &["split", "in", "--out", "out", "--by", "run_id"])
            .contains("the file exists")
    );
    let forced = ["split", "in", "--out", "out", "--by", "run_id", "--force"];
    assert!(folder.fails(2, &forced).contains("replaces no file"));
    assert_eq!(left(&folder, "out"), before);
    // The metadata are valid, but the signal does not decode, so the defect is found while parts
    // are being written.
    let whole = fs::read_to_string(folder.path("in/c.slow5")).unwrap();
    let at = whole.rfind('\n').and_then(|end| whole[..end].rfind(',')).unwrap();
    let mut bytes = whole.into_bytes();
    bytes[at + 1] = b'x';
    fs::write(folder.path("in/c.slow5"), &bytes).unwrap();
    let said = folder.fails(1, &["split", "in", "--out", "again", "--by", "channel_number"]);
    assert!(said.contains("c.slow5"), "{said}");
    assert!(!folder.path("again").exists(), "a folder without files is left");
    assert_eq!(left(&folder, "out"), before);
}

#[test]
fn picoampere_are_the_samples_calibrated() {
    let folder = Folder::new();
    folder.synth("a.blow5", "400k");
    folder.ok(&["read", "a.blow5", "--out", "raw.arrow"]);
    folder.ok(&["read", "a.blow5", "--out", "pa.arrow", "--pa"]);
    let batches = |name: &str| -> Vec<_> {
        FileReader::try_new(File::open(folder.path(name)).unwrap(), None)
            .unwrap()
            .map(Result::unwrap)
            .collect()
    };
    let mut rows = BTreeMap::new();
    for batch in batches("raw.arrow") {
        let double = |name: &str, row| {
            batch.column_by_name(name).unwrap().as_primitive::<Float64Type>().value(row)
        };
        for row in 0..batch.num_rows() {
            let (offset, range, digitisation) =
                (double("offset", row), double("range", row), double("digitisation", row));
            let samples = batch.column_by_name("signal").unwrap().as_list::<i32>().value(row);
            let pa = samples
                .as_primitive::<Int16Type>()
                .values()
                .iter()
                .map(|&s| ((f64::from(s) + offset) * (range / digitisation)) as f32);
            rows.insert(
                batch.column(0).as_string::<i32>().value(row).to_owned(),
                pa.collect::<Vec<f32>>(),
            );
        }
    }
    let mut reads = 0;
    for batch in batches("pa.arrow") {
        assert!(batch.column_by_name("signal").is_none());
        for row in 0..batch.num_rows() {
            let pa = batch.column_by_name("signal_pa").unwrap().as_list::<i32>().value(row);
            assert_eq!(
                pa.as_primitive::<Float32Type>().values(),
                &rows[batch.column(0).as_string::<i32>().value(row)][..]
            );
            reads += 1;
        }
    }
    assert_eq!(reads, rows.len());
    // The values are currents in picoampere and not raw units: the open pore of these files is at a
    // few hundred pA at most.
    assert!(
        rows.values().flatten().all(|pa| pa.abs() < 2000.0)
            && rows.values().flatten().any(|pa| pa.fract() != 0.0)
    );
    // Without an output they are summed, by all threads.
    let (sum, count) = rows
        .values()
        .flatten()
        .fold((0.0, 0), |(sum, count), &pa| (sum + f64::from(pa), count + 1));
    let mean = sum / f64::from(count);
    for threads in ["1", "4"] {
        let report = folder.ok(&["read", "a.blow5", "--pa", "--json", "--threads", threads]);
        let report: Value = serde_json::from_str(&report).unwrap();
        let found = report["mean_pa"].as_f64().unwrap();
        assert!((found - mean).abs() < 1e-6, "{found} for {mean}");
        assert_eq!((&report["samples"], &report["sum"]), (&json!(count), &json!(count)));
    }
    let said = folder.ok(&["read", "a.blow5", "--pa"]);
    assert!(said.contains(&format!(", {mean:.2} pA on average,")), "{said}");
    assert!(!folder.ok(&["read", "a.blow5"]).contains("pA"));
    folder.fails(2, &["read", "a.blow5", "--pa", "--digest"]);
}

#[test]
fn options_that_do_not_fit_the_kind_of_file_are_refused() {
    let folder = Folder::new();
    folder.ok(&["synth", "a.blow5", "--samples", "100k"]);
    folder.ok(&["synth", "made.pod5", "--samples", "100k"]);
    let pod5 = std::fs::read(folder.path("made.pod5")).unwrap();
    assert!(pod5.starts_with(b"\x8bPOD\r\n"), "the end of the name says the kind");
    let refused = |args: &[&str], option: &str, kind: &str| {
        let told = folder.fails(2, args);
        assert!(told.contains(option) && told.contains(kind), "{args:?}: {told}");
    };
    refused(&["synth", "x.bin"], "--kind", "x.bin");
    refused(&["synth", "x.blow5", "--gzip"], "--gzip", "FASTQ");
    refused(&["synth", "x.pod5", "--record", "zlib"], "--record", "BLOW5");
    if !cfg!(feature = "hdf5") {
        return;
    }
    refused(&["read", "a.blow5", "--select", "0:3"], "--select", "HDF5 arrays");
    refused(&["read", "a.blow5", "--ranks", "2"], "--ranks", "HDF5 arrays");
    refused(&["read", "a.blow5", "--slices", "2"], "--slices", "HDF5 arrays");
    refused(&["doctor", "a.blow5", "--measure"], "--measure", "HDF5 arrays");
    refused(&["plot", "a.blow5", "--bank", "b", "--out", "x.svg"], "--bank", "HDF5 arrays");
    folder.ok(&["synth", "run.nxs", "--size", "1MB", "--banks", "2"]);
    std::fs::write(folder.path("ids"), "a\n").unwrap();
    refused(&["read", "run.nxs", "--ids", "ids"], "--ids", "reads");
    refused(&["read", "run.nxs", "--out", "x.npy", "--pa"], "--pa", "reads");
    refused(&["info", "run.nxs", "--count"], "--count", "reads");
    refused(&["plot", "run.nxs", "--read", "a", "--out", "x.svg"], "--read", "reads");
    refused(
        &["convert", "--repack", "run.nxs", "new.nxs", "--record", "zlib"],
        "--record",
        "HDF5 arrays",
    );
    assert!(!folder.path("new.nxs").exists() && !folder.path("x.svg").exists());
    for path in ["entry/nope", "/entry/bank", "nope"] {
        for (option, value) in [("--chunk", "10"), ("--filter", "gzip")] {
            let named = format!("{path}={value}");
            let told =
                folder.fails(2, &["convert", "--repack", "run.nxs", "new.nxs", option, &named]);
            assert!(told.contains("no dataset") && told.contains(path), "{told}");
            assert!(!folder.path("new.nxs").exists());
        }
    }
    folder.ok(&["convert", "--repack", "run.nxs", "new.nxs", "--chunk", "/entry=100"]);
}

#[test]
fn a_bad_file_does_not_hide_the_others_of_a_folder() {
    let folder = Folder::new();
    fs::create_dir(folder.path("in")).unwrap();
    folder.synth("in/a.blow5", "60k");
    folder.synth("in/c.pod5", "60k");
    let good = folder.json(&["info", "--json", "in/a.blow5", "in/c.pod5", "--run"]);
    let whole = fs::read(folder.path("in/a.blow5")).unwrap();
    fs::write(folder.path("in/b.blow5"), &whole[..whole.len() / 2]).unwrap();
    fs::write(folder.path("in/d.pod5"), "no POD5").unwrap();
    let said = folder.run(&["info", "--json", "in"]);
    let told = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(1), "{told}");
    assert!(told.contains("in/b.blow5: after") && told.contains("in/d.pod5: "), "{told}");
    let mut found: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(found["left_out"], json!(["in/b.blow5", "in/d.pod5"]));
    found["left_out"] = json!([]);
    assert_eq!(found, good[0]);
    let said = folder.run(&["info", "in"]);
    let words = String::from_utf8(said.stdout).unwrap();
    assert!(words.contains("files          2; 2 more cannot be read"), "{words}");
    let said = folder.fails(1, &["info", "in/b.blow5", "in/d.pod5", "--run"]);
    assert!(said.contains("none of the files can be read"), "{said}");
    // One file alone is as before.
    let said = folder.fails(1, &["info", "in/b.blow5", "--run"]);
    assert!(said.contains("in/b.blow5: after") && !said.contains("none of"), "{said}");
}

#[test]
fn attributes_of_the_acquisition_are_shown_and_all_if_asked_for() {
    let folder = Folder::new();
    folder.synth("a.blow5", "60k");
    let few = folder.ok(&["info", "a.blow5"]);
    assert!(few.contains("run_id: ") && few.contains("sequencing_kit: "), "{few}");
    assert!(few.contains(" more; --all shows them") && !few.contains("asic_id: "), "{few}");
    let all = folder.ok(&["info", "a.blow5", "--all"]);
    assert!(all.contains("asic_id: ") && !all.contains("--all"), "{all}");
}

#[test]
fn reads_are_printed_as_slow5_tools_do() {
    let folder = Folder::new();
    folder.synth("a.blow5", "600k");
    folder.ok(&["convert", "a.blow5", "a.slow5"]);
    folder.ok(&["convert", "a.blow5", "b.blow5"]);
    let text = fs::read_to_string(folder.path("a.slow5")).unwrap();
    let stdout = |args: &[&str]| {
        let said = folder.run(args);
        assert!(said.status.success(), "{args:?}: {said:?}");
        said.stdout
    };
    assert_eq!(stdout(&["view", "a.blow5"]), text.as_bytes());
    assert_eq!(stdout(&["convert", "a.blow5", "-", "--to", "slow5"]), text.as_bytes());
    assert_eq!(stdout(&["cat", "a.blow5", "--out", "-", "--to", "slow5"]), text.as_bytes());
    assert_eq!(
        stdout(&["view", "a.blow5", "--to", "blow5"]),
        fs::read(folder.path("b.blow5")).unwrap()
    );
    fs::write(folder.path("c.pod5"), stdout(&["view", "a.blow5", "--to", "pod5"])).unwrap();
    folder.ok(&["check", "c.pod5"]);
    assert_eq!(digests(&folder, "c.pod5"), digests(&folder, "a.blow5"));

    let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with(['#', '@'])).collect();
    let id = |row: usize| rows[row].split('\t').next().unwrap();
    let printed = |args: &[&str]| {
        let text = String::from_utf8(stdout(args)).unwrap();
        let rows = text.lines().filter(|line| !line.starts_with(['#', '@']));
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(printed(&["get", "a.blow5", id(2), id(0)]), [rows[2], rows[0]]);
    fs::write(folder.path("ids"), format!("{}\n", id(1))).unwrap();
    assert_eq!(printed(&["get", "a.slow5", id(2), "--ids", "ids"]), [rows[2], rows[1]]);
    let filter = ["filter", "a.blow5", "--ids", "ids", "--out", "-", "--to", "slow5"];
    assert_eq!(printed(&filter), [rows[1]]);
    let said = folder.fails(1, &["get", "a.blow5", "no-such-read"]);
    assert!(said.contains("no-such-read"), "{said}");
    folder.fails(2, &["get", "a.blow5"]);
}

#[test]
fn a_list_of_ids_may_be_a_table() {
    let folder = Folder::new();
    folder.synth("a.blow5", "600k");
    let all = ids(&folder, "a.blow5");
    let two = [all[2].clone(), all[0].clone()];
    for (list, lines) in [
        (format!("{}\n{}\n", two[0], two[1]), 2),
        (format!("read_id\n{}\n{}\n", two[0], two[1]), 2),
        (format!("samples,\"read_id\"\n5,\"{}\"\n6,{}\n", two[0], two[1]), 2),
        (format!("read_id\tbarcode\n{}\tx\n{}\t\n", two[0], two[1]), 2),
        (format!("barcode\tread_id\tn\n\t{}\t5\r\nx\t{}\t\n", two[0], two[1]), 2),
        (format!("name,read_id\n\"a,b\",{}\n,{}\n", two[0], two[1]), 2),
    ] {
        fs::write(folder.path("list"), &list).unwrap();
        let found = folder.ok(&["read", "a.blow5", "--ids", "list", "--digest"]);
        let found: Vec<&str> = found.lines().map(|row| row.split('\t').next().unwrap()).collect();
        assert_eq!((found.len(), &found[..]), (lines, &[&*two[0], &*two[1]][..]), "{list}");
    }
    fs::write(folder.path("list"), "a,read_id\nx\n").unwrap();
    let said = folder.fails(1, &["read", "a.blow5", "--ids", "list", "--digest"]);
    assert!(said.contains("found the line \"x\", expected a column read_id"), "{said}");
}

#[test]
fn a_table_says_where_reads_go() {
    let folder = Folder::new();
    folder.synth("a.blow5", "600k");
    let all = ids(&folder, "a.blow5");
    let table: String = std::iter::once("read_id,target\n".to_owned())
        .chain(all[1..].iter().enumerate().map(|(i, id)| format!("{id},t{}.pod5\n", i % 2)))
        .collect();
    fs::write(folder.path("t.csv"), &table).unwrap();
    folder.ok(&["subset", "a.blow5", "--csv", "t.csv", "--out", "o"]);
    let part = |name: &str| ids(&folder, name);
    let of = |first: usize| all[1..].iter().skip(first).step_by(2).cloned().collect::<Vec<_>>();
    assert_eq!((part("o/t0.pod5"), part("o/t1.pod5")), (of(0), of(1)));
    assert_eq!(left(&folder, "o"), ["t0.pod5", "t1.pod5"]);
    // As pod5 has it, with the name of a column.
    fs::write(folder.path("t.tsv"), table.replace(',', "\tx\t").replace("\tx\ttarget", "\tn\tbc"))
        .unwrap();
    folder
        .ok(&["split", "a.blow5", "--table", "t.tsv", "--by", "bc", "--out", "p", "--to", "pod5"]);
    assert_eq!(part("p/t1.pod5"), of(1));
    fs::write(folder.path("t.csv"), format!("{table}nowhere,t0\n")).unwrap();
    let args = ["split", "a.blow5", "--table", "t.csv", "--out", "q"];
    let said = folder.fails(1, &args);
    assert!(said.contains("not found: 1 of") && said.contains("such as nowhere"), "{said}");
    assert!(!folder.path("q").exists());
    folder.ok(&[&args[..], &["--missing-ok"]].concat());
    assert_eq!(left(&folder, "q"), ["t0.blow5", "t1.blow5"], "t0 says no format");
    let said = folder.fails(1, &["split", "a.blow5", "--table", "/dev/zero", "--out", "z"]);
    assert!(said.contains("a folder or device"), "{said}");
}

#[test]
fn reads_of_several_files_are_taken_once_if_asked_for() {
    let folder = Folder::new();
    folder.synth("b.blow5", "600k");
    folder.ok(&["filter", "b.blow5", "--where", "samples > 30000", "--out", "a.pod5"]);
    let args = ["merge", "b.blow5", "a.pod5", "--out", "c.blow5"];
    assert!(folder.fails(1, &args).contains("expected each read in one file"));
    let said = folder.run(&[&args[..], &["--duplicate-ok"]].concat());
    let told = String::from_utf8_lossy(&said.stderr);
    let some = ids(&folder, "a.pod5").len();
    assert!(
        some > 1 && told.contains(&format!("left out: {some} reads that a file before")),
        "{told}"
    );
    assert_eq!(digests(&folder, "c.blow5"), digests(&folder, "b.blow5"));
    // `synth` made the one index.
    assert_eq!(left(&folder, "."), ["a.pod5", "b.blow5", "b.blow5.idx", "c.blow5"]);
}

#[cfg_attr(not(feature = "hdf5"), ignore = "libhdf5 makes the files")]
#[test]
fn what_doctor_mends_it_does_not_complain_of() {
    let folder = Folder::new();
    for filter in ["none", "gzip", "shuffle+zstd"] {
        let synth = ["synth", "a.nxs", "--kind", "nexus-live", "--size", "20MB", "--banks", "4"];
        folder.ok(&[&synth[..], &["--filter", filter, "--force"]].concat());
        let mut name = "a.nxs".to_owned();
        // One mend after the other, as long as there is one.
        for round in 0..3 {
            let report = folder.ok(&["doctor", &name, "--model", "ssd"]);
            let mend = report.lines().find_map(|line| line.trim().strip_prefix("mend"));
            let Some(mend) = mend.map(|line| line.trim().trim_start_matches("thalweg ")) else {
                assert!(
                    round > 0 && report.contains("nothing that would make it faster"),
                    "{report}"
                );
                break;
            };
            assert!(round < 2, "{filter}: no end of mends: {report}");
            let words: Vec<&str> = mend.split(' ').collect();
            folder.ok(&[&words[..], &["--force"]].concat());
            name = words[3].to_owned();
        }
    }
}

#[test]
fn standard_output_is_no_input() {
    let folder = Folder::new();
    folder.synth("a.blow5", "60k");
    folder.ok(&["convert", "a.blow5", "a.slow5"]);
    let before = fs::read(folder.path("a.slow5")).unwrap();
    for args in [&["view", "a.slow5"][..], &["merge", "a.slow5", "--out", "-", "--to", "slow5"]] {
        let out = File::options().append(true).open(folder.path("a.slow5")).unwrap();
        let said = folder.command(args).stdout(out).output().unwrap();
        let told = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{told}");
        assert!(told.contains("a.slow5: the standard output writes into this input"), "{told}");
        assert_eq!(fs::read(folder.path("a.slow5")).unwrap(), before);
    }
}

#[test]
fn a_link_that_leads_nowhere_is_a_missing_file() {
    let folder = Folder::new();
    fs::create_dir(folder.path("in")).unwrap();
    folder.synth("in/a.blow5", "60k");
    std::os::unix::fs::symlink("/nowhere/x.blow5", folder.path("in/b.blow5")).unwrap();
    for args in [&["merge", "in", "--out", "m.blow5"][..], &["info", "in"], &["check", "in"]] {
        let said = folder.fails(1, args);
        assert!(said.contains("in/b.blow5: opening: No such file"), "{args:?}: {said}");
    }
    assert!(!folder.path("m.blow5").exists());
}

#[test]
fn an_old_index_is_removed_once() {
    let folder = Folder::new();
    folder.synth("a.blow5", "60k");
    folder.ok(&["index", "a.blow5", "-o", "b.blow5.idx"]);
    folder.ok(&["convert", "a.blow5", "b.blow5"]);
    let said = folder.run(&["convert", "a.blow5", "b.blow5", "--force"]);
    let told = String::from_utf8_lossy(&said.stderr);
    assert!(told.contains("b.blow5.idx: removed") && !told.contains("delete it"), "{told}");
}
