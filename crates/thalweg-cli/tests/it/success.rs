//! What a verb has done stands in one line on standard error; JSON has the same names in all verbs;
//! indexes are where the user wants them.

use std::fs;

use crate::common::{Folder, json};

fn folder() -> Folder {
    let folder = Folder::new();
    folder.synth("a.blow5", "600k");
    fs::remove_file(folder.path("a.blow5.idx")).unwrap();
    folder.ok(&["synth", "a.fastq", "--bases", "20k"]);
    fs::write(folder.path("edges.csv"), "source,target\n1,2\n2,3\n").unwrap();
    folder.ok(&["graph", "import", "edges.csv", "store"]);
    if cfg!(feature = "hdf5") {
        folder.ok(&["synth", "a.nxs", "--size", "200kB", "--banks", "2"]);
    }
    let ids = folder.ok(&["scan", "a.blow5", "--columns", "read_id"]);
    fs::write(folder.path("ids"), ids.lines().nth(1).unwrap()).unwrap();
    folder
}

fn run(folder: &Folder, words: &str) -> (String, String) {
    let ended = folder.run(&words.split(' ').collect::<Vec<_>>());
    let [out, err] = [ended.stdout, ended.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(ended.status.success(), "{words}: {err}");
    (out, err)
}

/// The verbs that write, and how the line begins.
const WRITERS: [(&str, &str); 24] = [
    ("synth x.blow5 --samples 60k", "made BLOW5 and its index -> x.blow5, "),
    ("synth x.fq --bases 5k", "made FASTQ -> x.fq, "),
    ("read a.blow5 --out x.arrow", "READS reads -> x.arrow, "),
    ("read a.blow5 --out x.npy", "READS reads -> x.npy, "),
    ("read a.fastq --out x.csv", "RECORDS reads -> x.csv, "),
    ("scan a.blow5 --out x.tsv", "READS reads of 1 file -> x.tsv, "),
    ("convert a.blow5 x.slow5", "converted READS reads -> x.slow5, "),
    ("convert a.fastq x.fq.gz", "converted RECORDS reads -> x.fq.gz, "),
    ("merge a.blow5 --out m.blow5", "merged READS reads of 1 file -> m.blow5, "),
    ("filter a.blow5 --where samples<0 --out f.blow5", "kept 0 of READS reads of 1 file -> f."),
    ("filter a.blow5 --ids ids --out g.blow5", "kept 1 read of 1 file -> g.blow5, "),
    ("split a.blow5 --reads 4 --out parts", "split READS reads into "),
    ("plot a.blow5 --out x.svg", "drew 5 panels -> x.svg, "),
    ("index a.blow5 --force", "indexed a.blow5 -> a.blow5.idx, "),
    ("graph import edges.csv new", "2 edges and 3 vertices are new, of 2 edges read -> new, "),
    ("graph add store --vertices vertex:9", "1 vertex and 0 edges are new, 0 vertices and 0 "),
    ("graph compact store", "compacted 2 segments and "),
    ("graph export store x.parquet --edges edges", "exported 2 edges and 0 vertices -> x.p"),
    ("graph degree store --from vertex --plot x.png", "drew 1 panel -> x.png, "),
    ("read a.nxs --events --out e.csv", ""),
    ("read a.nxs /entry/bank1_events/event_id --out i.csv", "1 dataset, "),
    ("convert --repack a.nxs r.nxs", "repacked "),
    ("index a.nxs", "indexed a.nxs -> a.nxs.idx, "),
    ("index a.nxs --kerchunk k.json", ""),
];

#[test]
fn success_is_one_line_that_q_silences() {
    let [loud, quiet] = [folder(), folder()];
    let lines = |words: &[&str]| loud.ok(words).lines().count();
    let reads = lines(&["read", "a.blow5", "--digest"]).to_string();
    let records = lines(&["read", "a.fastq", "--digest"]).to_string();
    for (words, start) in WRITERS {
        if words.contains("a.nxs") && !cfg!(feature = "hdf5") {
            continue;
        }
        let (_, told) = run(&loud, words);
        let said: Vec<&str> = told.lines().filter(|line| !line.contains("idx: an index")).collect();
        assert_eq!(said.len(), 1, "{words}: {told}");
        let start = start.replace("READS", &reads).replace("RECORDS", &records);
        assert!(said[0].starts_with(&start) && said[0].ends_with('s'), "{words}: {told}");
        assert!(said[0].contains(" -> "), "{words}: {told}");
        assert!(!said[0].contains(" 1 files") && !said[0].contains(" 1 reads"), "{told}");
        let (_, told) = run(&quiet, &format!("{words} -q"));
        assert_eq!(told, "", "{words}");
    }
}

/// The lines of JSON that verbs print.
const WITH_JSON: [&str; 26] = [
    "read a.blow5 --json",
    "read a.blow5 --explain --json",
    "read a.blow5 --out j.csv --json",
    "read a.fastq --json",
    "read a.fastq --out k.csv --json",
    "info a.blow5 --json",
    "info a.blow5 --run --json",
    "info a.fastq --json",
    "check a.blow5 --json",
    "check a.fastq --json",
    "doctor a.blow5 --json",
    "evict a.blow5 --json",
    "convert a.blow5 j.slow5 --json",
    "convert a.fastq j.fq.gz --json",
    "merge a.blow5 --out k.blow5 --json",
    "filter a.blow5 --where samples>0 --out l.blow5 --json",
    "split a.blow5 --reads 4 --out more --json",
    "graph info store --json",
    "graph check store --json",
    "graph degree store --from vertex --json",
    "graph neighbors store --from vertex --json",
    "graph export store out.csv --edges edges --json",
    "graph compact store --json",
    "cache info --json",
    "info a.nxs --json",
    "read a.nxs --events --json",
];

/// Names that mean one thing in all verbs, and those that said it before.
const SAME: [(&str, &str); 5] = [
    ("path", "file"),
    ("path", "output"),
    ("path", "store"),
    ("bytes_stored", "size_bytes"),
    ("bytes_stored", "stored_bytes"),
];

#[test]
fn json_of_all_verbs_has_a_schema_and_the_same_names() {
    let folder = folder();
    let page = include_str!("../../../../docs/json.md");
    for words in WITH_JSON {
        if words.contains("a.nxs") && !cfg!(feature = "hdf5") {
            continue;
        }
        let (out, _) = run(&folder, words);
        for line in json(&out) {
            let schema = line["schema"].as_str().unwrap_or_else(|| panic!("{words}: {line}"));
            assert!(page.contains(&format!("`{schema}`")), "{words}: {schema}");
            for (name, before) in SAME {
                if line.get(before).is_some_and(|value| !value.is_null()) {
                    assert_eq!(line[name], line[before], "{words}: {name}");
                }
            }
            let says_what = line.get("path").or(line.get("paths")).is_some();
            assert!(says_what || !words.starts_with("read "), "{words}: {line}");
            for count in ["reads", "samples", "bases"] {
                assert!(line.get(count).is_none_or(|n| n.is_u64() || n.is_null()), "{words}");
            }
        }
    }
}

fn indexes(folder: &Folder, at: &str) -> usize {
    let files = fs::read_dir(folder.path(at)).into_iter().flatten();
    files.filter(|file| file.as_ref().unwrap().path().extension() == Some("idx".as_ref())).count()
}

#[test]
fn an_index_is_kept_where_the_user_says() {
    for (how, variable, here, in_cache) in [
        ("--index-in beside", "cache", 1, 0),
        ("--index-in cache", "", 0, 1),
        ("--index-in none", "", 0, 0),
        ("", "cache", 0, 1),
        ("", "none", 0, 0),
        ("", "", 1, 0),
    ] {
        for name in ["a.blow5", "a.pod5"] {
            let folder = folder();
            folder.ok(&["convert", "a.blow5", "a.pod5"]);
            let line = format!("read {name} --ids ids --digest {how}");
            let mut command = folder.command(line.split_whitespace());
            if !variable.is_empty() {
                command.env("THALWEG_INDEX", variable);
            }
            let ended = command.output().unwrap();
            let told = String::from_utf8_lossy(&ended.stderr);
            assert!(ended.status.success(), "{line}: {told}");
            assert_eq!(String::from_utf8_lossy(&ended.stdout).lines().count(), 1, "{line}");
            let found = (indexes(&folder, ""), indexes(&folder, "cache/thalweg/index"));
            assert_eq!(found, (here, in_cache), "{line} {variable}");
            // It is announced when it is made, and not when it is used.
            assert_eq!(told.contains("idx: an index"), here + in_cache > 0, "{line}: {told}");
            let (_, told) = run(&folder, &format!("read {name} --ids ids --digest"));
            assert_eq!(told.contains("idx: an index"), here + in_cache == 0, "{line}: {told}");
        }
    }
}

#[test]
fn no_index_is_made_that_is_not_needed() {
    let folder = folder();
    for words in [
        "filter a.blow5 --where samples>30000 --out f.slow5",
        "split a.blow5 --reads 3 --out parts --to slow5",
        "scan a.blow5 --where samples>30000",
        "merge a.blow5 --out m.slow5 --verify",
        "convert a.blow5 c.slow5 --verify",
        "check a.blow5",
        "info a.blow5 --count",
        "plot a.blow5 --out p.svg",
        "doctor a.blow5",
        "synth s.blow5 --samples 60k --index-in none",
    ] {
        run(&folder, words);
        assert_eq!(indexes(&folder, ""), 0, "{words}");
        assert_eq!(indexes(&folder, "cache/thalweg/index"), 0, "{words}");
    }
    let told = folder.fails(2, &["index", "a.blow5", "--index-in", "none"]);
    assert!(told.contains("--index-in none"), "{told}");
    run(&folder, "index a.blow5 --index-in cache");
    assert_eq!((indexes(&folder, ""), indexes(&folder, "cache/thalweg/index")), (0, 1));
}

/// A verb that makes many indexes says so once.
#[test]
fn many_indexes_are_announced_once() {
    let folder = folder();
    fs::create_dir(folder.path("in")).unwrap();
    for (name, seed) in [("in/a.blow5", "1"), ("in/b.blow5", "2"), ("in/c.blow5", "3")] {
        let synth = ["synth", name, "--samples", "60k", "--seed", seed, "--index-in", "none"];
        folder.ok(&synth);
    }
    let ids = folder.ok(&["scan", "in", "--columns", "read_id"]);
    let ids: Vec<&str> = ids.lines().skip(1).collect();
    fs::write(folder.path("ids"), ids.join("\n")).unwrap();
    let (_, told) = run(&folder, "read in --ids ids");
    assert_eq!(told.matches("idx: an index").count(), 1, "{told}");
    assert_eq!(indexes(&folder, "in"), 3);
}

/// Sixty pulses a second of 20,000 events each, in the pages and in the pictures.
#[cfg(feature = "hdf5")]
#[test]
fn the_event_rate_is_that_of_whole_pulses() {
    let folder = Folder::new();
    folder.ok(&["synth", "live.nxs", "--size", "40MB", "--banks", "3"]);
    folder.ok(&["plot", "live.nxs", "--out", "live.html"]);
    folder.ok(&["plot", "live.nxs", "--out", "live.svg"]);
    let [page, picture] =
        ["live.html", "live.svg"].map(|name| fs::read_to_string(folder.path(name)).unwrap());
    let at = page.find("Event rate").unwrap();
    let rates = page[at..].split_once("\"y\":[").unwrap().1.split_once(']').unwrap().0;
    let rates: Vec<f64> = rates.split(',').map(|rate| rate.parse().unwrap()).collect();
    assert!(rates.len() > 5);
    // Chance makes a bar of 400,000 events differ by a hundredth at most.
    assert!(rates.iter().all(|rate| (rate / 1.2e6 - 1.0).abs() < 0.02), "{rates:?}");
    assert!(page.contains("in bars of 20 pulses") && picture.contains("Event rate"));
}
