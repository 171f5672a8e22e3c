//! FASTQ: verbs on plain, gzip and BGZF files, streams, and checksums beside files.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use arrow_array::cast::AsArray;
use arrow_ipc::reader::FileReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::json;

use crate::common::{Folder, json as lines_of};

/// A folder with the same records as text (`r.fastq`), in gzip (`r.fastq.gz`) and in BGZF
/// (`r.bgz.fq.gz`).
fn folder() -> Folder {
    let folder = Folder::new();
    folder.ok(&["synth", "r.fastq", "--kind", "fastq", "--bases", "300k"]);
    folder.ok(&["synth", "r.fastq.gz", "--kind", "fastq", "--bases", "300k", "--gzip"]);
    folder.ok(&["convert", "r.fastq", "r.bgz.fq.gz", "--verify"]);
    folder
}

const FILES: [&str; 3] = ["r.fastq", "r.fastq.gz", "r.bgz.fq.gz"];

/// The output of a program of the system that reads `input`.
fn piped(program: &mut Command, input: &[u8]) -> Vec<u8> {
    let mut child = program
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn({
        let input = input.to_vec();
        move || stdin.write_all(&input)
    });
    let done = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

#[test]
fn all_compressions_have_the_same_records() {
    let folder = folder();
    let text = fs::read_to_string(folder.path("r.fastq")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let expected = folder.ok(&["read", "r.fastq", "--digest"]);
    assert_eq!(expected.lines().count(), lines.len() / 4);
    for (row, record) in expected.lines().zip(lines.chunks(4)) {
        let name = record[0][1..].split(' ').next().unwrap();
        assert!(row.starts_with(&format!("{name}\t{}\t", record[1].len())), "{row}");
    }
    for file in FILES {
        for threads in ["1", "2", "5"] {
            let digest = folder.ok(&["read", file, "--digest", "--threads", threads]);
            assert!(digest == expected, "{file}");
        }
        let line = folder.json(&["read", file, "--json"]).pop().unwrap();
        let bases: usize = lines.chunks(4).map(|record| record[1].len()).sum();
        assert_eq!((&line["reads"], &line["bases"]), (&json!(lines.len() / 4), &json!(bases)));
        let size = fs::metadata(folder.path(file)).unwrap().len();
        assert_eq!(line["bytes_stored"], json!(size));
        assert!(folder.ok(&["check", file]).contains(": whole; "));
    }
}

#[test]
fn tables_have_a_row_for_each_record() {
    let folder = folder();
    let text = fs::read_to_string(folder.path("r.fastq")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for file in FILES {
        folder.ok(&["read", file, "--out", "r.arrow", "--force"]);
        let reader = FileReader::try_new(fs::File::open(folder.path("r.arrow")).unwrap(), None);
        let arrow: Vec<_> = reader.unwrap().map(Result::unwrap).collect();
        folder.ok(&["read", file, "--out", "r.parquet", "--force"]);
        let parquet = fs::File::open(folder.path("r.parquet")).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(parquet).unwrap().build();
        let parquet: Vec<_> = reader.unwrap().map(Result::unwrap).collect();
        for batches in [arrow, parquet] {
            let mut records = lines.chunks(4);
            for batch in &batches {
                let column =
                    |name: &str| batch.column_by_name(name).unwrap().as_string::<i32>().clone();
                let (names, descriptions) = (column("name"), column("description"));
                let (sequences, qualities) = (column("sequence"), column("quality_scores"));
                for row in 0..batch.num_rows() {
                    let record = records.next().unwrap();
                    let title = format!("@{} {}", names.value(row), descriptions.value(row));
                    assert_eq!(title, record[0]);
                    assert_eq!(
                        (sequences.value(row), qualities.value(row)),
                        (record[1], record[3])
                    );
                }
            }
            assert!(records.next().is_none());
        }
    }
    let csv = folder.ok(&["read", "r.fastq", "--out", "r.csv"])
        + &fs::read_to_string(folder.path("r.csv")).unwrap();
    assert_eq!(csv.lines().count(), lines.len() / 4 + 1);
    let said = folder.fails(2, &["read", "r.fastq", "--out", "r.npy"]);
    assert!(said.contains("r.npy: these rows are no arrays of numpy"), "{said}");
}

#[test]
fn gzip_reads_what_is_written() {
    let folder = folder();
    let text = fs::read(folder.path("r.fastq")).unwrap();
    folder.ok(&["convert", "r.bgz.fq.gz", "one.fastq.gz", "--single-member", "--level", "1"]);
    folder.ok(&["convert", "r.bgz.fq.gz", "high.fastq.gz", "--level", "12", "--verify"]);
    for file in ["one.fastq.gz", "high.fastq.gz", "r.bgz.fq.gz"] {
        let stored = fs::read(folder.path(file)).unwrap();
        assert!(piped(Command::new("gzip").arg("-dc"), &stored) == text, "{file}");
    }
    let stored = piped(Command::new("gzip").arg("-c"), &text);
    fs::write(folder.path("theirs.fastq.gz"), stored).unwrap();
    for file in ["theirs.fastq.gz", "one.fastq.gz", "high.fastq.gz"] {
        folder.ok(&["convert", file, "back.fastq", "--force"]);
        assert!(fs::read(folder.path("back.fastq")).unwrap() == text, "{file}");
    }
    assert!(folder.ok(&["info", "high.fastq.gz"]).contains("BGZF"));
    assert!(folder.ok(&["info", "one.fastq.gz"]).contains("gzip"));
}

#[test]
fn streams_are_read_and_written() {
    let folder = folder();
    let text = fs::read(folder.path("r.fastq")).unwrap();
    let expected = folder.ok(&["read", "r.fastq", "--digest"]);
    for file in FILES {
        let stored = fs::read(folder.path(file)).unwrap();
        let digest = piped(&mut folder.command(["read", "-", "--digest"]), &stored);
        assert!(digest == expected.as_bytes(), "{file}");
        let copied = piped(&mut folder.command(["convert", "-", "-"]), &stored);
        assert!(copied == text, "{file}");
    }
    let line = piped(&mut folder.command(["read", "-", "--json"]), &text);
    let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(line["bytes_stored"], text.len());
    let mut closed = folder.command(["convert", "r.bgz.fq.gz", "-"]);
    let mut closed = closed.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(closed.stdout.take());
    let closed = closed.wait_with_output().unwrap();
    assert!(closed.status.success() && closed.stderr.is_empty(), "{closed:?}");
    folder.ok(&["convert", "r.fastq", "UPPER.FASTQ.GZ"]);
    assert!(folder.ok(&["info", "UPPER.FASTQ.GZ"]).contains("BGZF"));
    let packed = piped(&mut folder.command(["convert", "-", "piped.fastq.gz"]), &text);
    assert!(packed.is_empty());
    folder.ok(&["check", "piped.fastq.gz"]);
    assert!(!folder.path("-").exists());
}

/// Zeros may follow the block that ends a BGZF file, which itself ends with some.
#[test]
fn only_bgzf_without_its_end_is_noted() {
    let folder = folder();
    let whole = fs::read(folder.path("r.bgz.fq.gz")).unwrap();
    let note = |bytes: &[u8]| {
        fs::write(folder.path("p.fq.gz"), bytes).unwrap();
        folder.json(&["info", "p.fq.gz", "--json"]).pop().unwrap()["note"].clone()
    };
    for zeros in [0, 1, 512, 100_000] {
        let padded: Vec<u8> = whole.iter().copied().chain(std::iter::repeat_n(0, zeros)).collect();
        assert!(note(&padded).is_null(), "{zeros}");
    }
    for cut in [1, 9, 10, 28] {
        let note = note(&whole[..whole.len() - cut]).to_string();
        assert!(note.contains("may be cut short"), "{cut}: {note}");
    }
}

#[test]
fn information_counts_on_request() {
    let folder = folder();
    let words = folder.ok(&["info", "r.bgz.fq.gz"]);
    assert!(
        words.contains("FASTQ") && words.contains("BGZF") && words.contains("--count"),
        "{words}"
    );
    let line = folder.json(&["info", "r.fastq", "--count", "--json"]).pop().unwrap();
    let text = fs::read_to_string(folder.path("r.fastq")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut lengths: Vec<usize> = lines.chunks(4).map(|record| record[1].len()).collect();
    lengths.sort_unstable();
    assert_eq!(line["schema"], "thalweg.info/1");
    assert_eq!(line["reads"], lengths.len());
    assert_eq!(line["lengths"]["max"], *lengths.last().unwrap());
    let qualities = || lines.chunks(4).flat_map(|record| record[3].bytes());
    assert_eq!(line["q20_bases"], qualities().filter(|&q| q >= b'!' + 20).count());
    let gc = lines.chunks(4).flat_map(|r| r[1].bytes()).filter(|b| b"GC".contains(b)).count();
    assert_eq!(line["gc"], gc);
    let errors: f64 = qualities().map(|q| 10_f64.powf(f64::from(q - b'!') / -10.0)).sum();
    let mean = -10.0 * (errors / qualities().count() as f64).log10();
    assert!((line["mean_quality"].as_f64().unwrap() - mean).abs() < 1e-6);
}

#[test]
fn checksums_beside_a_file_are_verified() {
    let folder = folder();
    for (file, program, end) in
        [("r.fastq.gz", "md5sum", "md5"), ("r.bgz.fq.gz", "sha256sum", "sha256")]
    {
        let sums = Command::new(program).arg(file).current_dir(folder.path("")).output().unwrap();
        let list = folder.path(&format!("{file}.{end}"));
        fs::write(&list, &sums.stdout).unwrap();
        let words = folder.ok(&["check", file]);
        assert!(words.contains(&format!("as {file}.{end} says")), "{words}");
        let line = folder.json(&["convert", file, "out.fastq", "--json", "--force"]).pop().unwrap();
        assert_eq!(line["checksums"], json!([format!("{file}.{end}")]));

        let other = String::from_utf8(sums.stdout).unwrap().replacen(|c| c != '0', "0", 1);
        fs::write(&list, other).unwrap();
        fs::remove_file(folder.path("out.fastq")).unwrap();
        for args in [&["check", file][..], &["convert", file, "out.fastq"]] {
            let message = folder.fails(1, args);
            assert!(message.contains(&format!("as {file}.{end} says")), "{message}");
        }
        assert!(!folder.path("out.fastq").exists());
        fs::write(&list, "no checksum").unwrap();
        assert!(folder.fails(1, &["check", file]).contains("a list of checksums"));
        fs::remove_file(list).unwrap();
    }
    let line = folder.json(&["convert", "r.fastq", "out.fastq", "--json", "--md5"]).pop().unwrap();
    let sums = Command::new("md5sum").arg("r.fastq").current_dir(folder.path("")).output().unwrap();
    assert!(sums.stdout.starts_with(line["md5"].as_str().unwrap().as_bytes()));
}

#[test]
fn defects_are_named() {
    let folder = folder();
    let text = fs::read_to_string(folder.path("r.fastq")).unwrap();
    let packed = fs::read(folder.path("r.bgz.fq.gz")).unwrap();
    fs::write(folder.path("cut.fastq"), &text[..text.len() - 10]).unwrap();
    fs::write(folder.path("cut.fastq.gz"), &packed[..packed.len() / 2]).unwrap();
    let mut flipped = packed.clone();
    flipped[packed.len() / 2] ^= 0x10;
    fs::write(folder.path("flipped.fastq.gz"), flipped).unwrap();
    fs::write(folder.path("windows.fastq"), text.replace('\n', "\r\n")).unwrap();
    fs::write(folder.path("empty.fastq.gz"), "").unwrap();
    let records = text.lines().count() / 4;
    for (file, words) in [
        ("cut.fastq", format!("record {records}, byte")),
        ("cut.fastq.gz", "it is truncated".to_owned()),
        ("flipped.fastq.gz", "a BGZF block, byte".to_owned()),
        ("windows.fastq", "record 1, byte".to_owned()),
        ("empty.fastq.gz", "it is truncated".to_owned()),
    ] {
        for verb in [
            &["read", file][..],
            &["read", file, "--out", "o.arrow"],
            &["convert", file, "o.fq"],
            &["check", file],
        ] {
            let message = folder.fails(1, verb);
            assert!(message.contains(&words), "{verb:?}: {message}");
        }
    }
    for file in ["o.arrow", "o.fq"] {
        assert!(!folder.path(file).exists(), "{file}");
    }
    // One that ends between blocks is whole but for its end, which is said.
    let end = packed.len() - 28;
    fs::write(folder.path("endless.fastq.gz"), &packed[..end]).unwrap();
    let done = folder.run(&["check", "endless.fastq.gz"]);
    assert!(done.status.success());
    assert!(String::from_utf8(done.stderr).unwrap().contains("may be cut short"));
}

#[test]
fn options_and_names_that_do_not_fit_are_refused() {
    let folder = folder();
    folder.synth("a.blow5", "100k");
    for (args, words) in [
        (&["read", "r.fastq", "--ids", "r.fastq"][..], "--ids is for reads"),
        (&["read", "r.fastq", "r.fastq.gz"], "one at a time"),
        (&["read", "r.fastq", "--select", "0:9"], "--select is for HDF5 arrays"),
        (&["convert", "r.fastq", "x.blow5"], "must end in .fastq"),
        (&["convert", "r.fastq", "x.fastq", "--single-member"], "--single-member is for gzip"),
        (&["convert", "r.fastq", "x.fq.gz", "--level", "13"], "expected 0 to 12"),
        (&["convert", "r.fastq", "x.fq.gz", "--signal", "vbz"], "--signal is for reads"),
        (&["convert", "r.fastq", "r.fastq", "--force"], "input"),
        (&["convert", "r.fastq", "x.fastq", "--verify"], "--verify is for gzip"),
        (&["convert", "r.fastq", "x.fastq", "--level", "3"], "--level is for gzip"),
        (&["convert", "r.fastq", "-", "--json"], "--json is for an output that is a file"),
        (&["convert", "a.blow5", "b.blow5", "--single-member"], "--single-member is for FASTQ"),
        (&["read", "r.fastq", "--explain"], "--explain is for"),
        (&["check", "-"], "standard input"),
        (&["info", "-"], "standard input"),
        (&["convert", "none.fastq", "x.fastq"], "none.fastq: opening: No such file"),
        (&["convert", "r.fastq", "r.fastq.gz"], "the file exists"),
    ] {
        let done = folder.run(args);
        let message = String::from_utf8(done.stderr).unwrap();
        assert!(!done.status.success() && message.contains(words), "{args:?}: {message}");
    }
    for verb in
        [&["index", "r.fastq"][..], &["scan", "r.fastq"], &["merge", "r.fastq", "--out", "x.blow5"]]
    {
        let message = folder.fails(1, verb);
        assert!(message.contains("FASTQ in place of signal"), "{verb:?}: {message}");
    }
}

#[test]
fn a_name_that_is_no_text_is_kept() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let folder = folder();
    let named = |byte: u8| OsString::from_vec(vec![b'k', byte, b'.', b'c', b's', b'v']);
    for byte in [0xfe, 0xff] {
        let args = ["read".into(), "r.fastq".into(), "--out".into(), named(byte)];
        assert!(folder.command(args).status().unwrap().success());
    }
    let made = fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    let made: Vec<OsString> =
        made.filter(|name| name.as_encoded_bytes().ends_with(b".csv")).collect();
    assert!(
        made.len() == 2 && made.contains(&named(0xfe)) && made.contains(&named(0xff)),
        "{made:?}"
    );
}

#[test]
fn an_idle_stream_is_given_up() {
    let folder = Folder::new();
    for args in [&["read", "-"][..], &["convert", "-", "x.fastq.gz"], &["convert", "-", "-"]] {
        let mut child =
            folder.command(args).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let stdin = child.stdin.take();
        // Its handler of signals may not be there yet: then the signal ends it at once.
        std::thread::sleep(std::time::Duration::from_millis(300));
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(!child.wait().unwrap().success(), "{args:?}");
        drop(stdin);
        assert!(!folder.path("x.fastq.gz").exists());
    }
}

/// `filter` keeps the records of a list, from any compression into any other.
#[test]
fn records_of_a_list_are_kept() {
    let folder = folder();
    let text = fs::read_to_string(folder.path("r.fastq")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let kept: Vec<&[&str]> = lines.chunks(4).skip(1).step_by(3).collect();
    let name = |record: &&[&str]| record[0][1..].split(' ').next().unwrap().to_owned();
    let names: Vec<String> = kept.iter().map(name).collect();
    fs::write(folder.path("ids"), names.join("\n")).unwrap();
    let expected: String = kept.iter().map(|record| format!("{}\n", record.join("\n"))).collect();
    for (number, file) in FILES.iter().enumerate() {
        let plain = format!("kept{number}.fastq");
        folder.ok(&["filter", file, "--ids", "ids", "--out", &plain]);
        assert!(fs::read_to_string(folder.path(&plain)).unwrap() == expected, "{file}");
        let packed = format!("{plain}.gz");
        let args = ["filter", file, "--ids", "ids", "--out", &packed, "--verify", "--json"];
        let line = &lines_of(&folder.ok(&args))[0];
        assert_eq!(
            (line["reads"].as_u64(), line["path"].as_str()),
            (Some(kept.len() as u64), Some(&*packed))
        );
        assert_eq!(line["reads_before"].as_u64().unwrap(), lines.len() as u64 / 4);
        let unpacked =
            piped(Command::new("gzip").arg("-dc"), &fs::read(folder.path(&packed)).unwrap());
        assert!(unpacked == expected.as_bytes(), "{file}");
    }
    assert_eq!(folder.ok(&["filter", "r.fastq.gz", "--ids", "ids", "--out", "-"]), expected);
}

#[test]
fn records_for_which_a_condition_holds_are_kept() {
    let folder = folder();
    let text = fs::read_to_string(folder.path("r.fastq")).unwrap()
        + "@empty\n\n+\n\n@short of two\nAC\n+\nI!\n";
    fs::write(folder.path("r.fastq"), &text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let quality = |qualities: &str| {
        let errors = qualities.bytes().map(|byte| 10_f64.powf(f64::from(byte - b'!') / -10.0));
        -10.0 * (errors.sum::<f64>() / qualities.len() as f64).log10()
    };
    let all: Vec<(&str, f64, f64, String)> = lines
        .chunks(4)
        .map(|lines| {
            let text = format!("{}\n", lines.join("\n"));
            (&lines[0][1..], lines[1].len() as f64, quality(lines[3]), text)
        })
        .collect();
    let name = all[7].0.split(' ').next().unwrap();
    let (bases, mean) = (all[3].1, all[5].2);
    fs::write(folder.path("ids"), format!("{name}\nempty\n")).unwrap();
    type Kept<'a> = &'a dyn Fn(&(&str, f64, f64, String)) -> bool;
    let cases: [(String, Kept<'_>); 6] = [
        (format!("bases >= {bases}"), &|record| record.1 >= bases),
        (format!("mean_quality > {mean} and bases < {bases}"), &|record| {
            record.2 > mean && record.1 < bases
        }),
        (format!("name == {name} or name == short"), &|record| {
            record.0.starts_with(name) || record.0.starts_with("short")
        }),
        ("description == 'of two'".into(), &|record| record.0 == "short of two"),
        ("mean_quality is missing".into(), &|record| record.0 == "empty"),
        ("bases > 1e9".into(), &|_| false),
    ];
    for (condition, is_kept) in cases {
        folder.ok(&["filter", "r.fastq", "--where", &condition, "--out", "k.fastq", "--force"]);
        let kept: Vec<&str> = all.iter().filter(|r| is_kept(r)).map(|r| &*r.3).collect();
        assert!(
            fs::read_to_string(folder.path("k.fastq")).unwrap() == kept.concat(),
            "{condition}"
        );
    }
    // A list and a condition: both.
    let args = ["filter", "r.fastq", "--where", "bases > 0", "--ids", "ids", "--out", "-"];
    assert_eq!(folder.ok(&args), all[7].3);
    for (wrong, said) in [("samples > 5", "one of name"), ("bases > many", "a number")] {
        let found = folder.fails(2, &["filter", "r.fastq", "--where", wrong, "--out", "w.fastq"]);
        assert!(found.contains(said), "{found}");
    }
}

/// Not even with --force, and not through standard input.
#[test]
fn an_input_is_not_replaced() {
    let folder = folder();
    let before = fs::read(folder.path("r.fastq")).unwrap();
    for args in [
        &["filter", "-", "--where", "bases > 5", "--out", "r.fastq", "--force"][..],
        &["convert", "-", "r.fastq", "--force"],
    ] {
        let input = fs::File::open(folder.path("r.fastq")).unwrap();
        let ended = folder.command(args).stdin(input).output().unwrap();
        assert_eq!(ended.status.code(), Some(2), "{args:?}");
        assert!(fs::read(folder.path("r.fastq")).unwrap() == before, "{args:?}");
    }
}

/// `split` writes all records in their order, so many a file.
#[test]
fn records_are_split_by_number() {
    let folder = folder();
    let text = fs::read_to_string(folder.path("r.fastq")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let count = lines.len() / 4;
    for (number, file) in FILES.iter().enumerate() {
        for reads in [1, 7, count - 1, count, count + 1] {
            let to = format!("to{number}-{reads}");
            let reads_each = reads.to_string();
            let args = ["split", file, "--reads", &reads_each, "--out", &to, "--json"];
            let told = lines_of(&folder.ok(&args));
            assert_eq!(told.len(), count.div_ceil(reads), "{file} {reads}");
            for (told, part) in told.iter().zip(lines.chunks(4 * reads)) {
                let path = told["path"].as_str().unwrap();
                assert_eq!(told["reads"].as_u64(), Some(part.len() as u64 / 4));
                let stored = fs::read(folder.path(path)).unwrap();
                let text = match path.ends_with(".fastq.gz") {
                    true => piped(Command::new("gzip").arg("-dc"), &stored),
                    false => stored,
                };
                assert!(text == format!("{}\n", part.join("\n")).as_bytes(), "{path}");
                assert_eq!(path.ends_with(".gz"), *file != "r.fastq");
            }
        }
    }
    let told = piped(
        &mut folder.command(["split", "-", "--reads", "9", "--out", "s", "--json"]),
        text.as_bytes(),
    );
    assert_eq!(lines_of(&String::from_utf8(told).unwrap()).len(), count.div_ceil(9));
    let said = folder.fails(2, &["split", "r.fastq", "--out", "n"]);
    assert!(said.contains("--by <NAME>|--table <TABLE>|--reads <N>"), "{said}");
    let listed = folder.ok(&["split", "r.bgz.fq.gz", "--reads", "9", "--out", "v", "--verify"]);
    assert!(listed.starts_with("v/part-00000.fastq.gz\t9 reads\n"), "{listed}");
    folder.ok(&["check", "v"]);
}

#[test]
fn a_failed_split_leaves_no_file() {
    let folder = folder();
    let text = fs::read(folder.path("r.fastq")).unwrap();
    let damaged = [&text[..], b"@no qualities\nACGT\n"].concat();
    fs::write(folder.path("damaged.fastq"), damaged).unwrap();
    let left = |name: &str| fs::read_dir(folder.path(name)).unwrap().count();
    folder.fails(1, &["split", "damaged.fastq", "--reads", "1", "--out", "d"]);
    assert!(!folder.path("d").exists());
    let said = folder.fails(2, &["split", "r.fastq", "--reads", "1", "--out", "d", "--most", "2"]);
    assert!(said.contains("--most"), "{said}");
    assert!(!folder.path("d").exists());
    fs::create_dir(folder.path("d")).unwrap();
    fs::write(folder.path("d/part-00002.fastq"), "mine").unwrap();
    folder.fails(1, &["split", "r.fastq", "--reads", "1", "--out", "d"]);
    assert_eq!(
        (left("d"), fs::read(folder.path("d/part-00002.fastq")).unwrap()),
        (1, b"mine".to_vec())
    );
    for args in [&["--by", "run_id"][..], &["--reads", "0"], &["--reads", "5", "--level", "3"]] {
        let args = [&["split", "r.fastq", "--out", "e"], args].concat();
        folder.fails(2, &args);
    }
}

#[test]
fn names_that_no_record_has_are_an_error() {
    let folder = folder();
    fs::write(folder.path("ids"), "nobody\n").unwrap();
    let said = folder.fails(1, &["filter", "r.fastq", "--ids", "ids", "--out", "x.fastq"]);
    assert!(said.contains("r.fastq") && said.contains("1 of 1 read (such as nobody"), "{said}");
    assert!(!folder.path("x.fastq").exists());
    folder.ok(&["filter", "r.fastq", "--ids", "ids", "--out", "x.fastq", "--missing-ok"]);
    assert_eq!(fs::read(folder.path("x.fastq")).unwrap(), b"");
    fs::copy(folder.path("r.fastq"), folder.path("same.fastq")).unwrap();
    folder.fails(2, &["filter", "-", "--ids", "-", "--out", "y.fastq"]);
    folder.fails(2, &["filter", "r.fastq", "--ids", "ids", "--out", "r.fastq", "--force"]);
    assert_eq!(
        fs::read(folder.path("r.fastq")).unwrap(),
        fs::read(folder.path("same.fastq")).unwrap()
    );
}
