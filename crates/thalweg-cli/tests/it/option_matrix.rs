//! Every option of every verb that is about one kind of file: done for files of that kind, refused
//! for all others. Nothing is ignored.

use std::fs;

use crate::common::Folder;

/// The kinds of files: a letter for each, and the file.
const FILES: [(char, &str); 4] = [('B', "b.blow5"), ('P', "p.pod5"), ('A', "a.nxs"), ('F', "f.fq")];

/// Verbs with the kinds that they take. IN is the file, OUT an output of a fit name.
const VERBS: [(&str, &str); 12] = [
    ("read IN", "BPAF"),
    ("info IN", "BPAF"),
    ("info IN IN --run", "BP"),
    ("check IN", "BPAF"),
    ("index IN --force", "BPA"),
    ("doctor IN", "BPA"),
    ("plot IN --out x.svg --force", "BPA"),
    ("scan IN", "BP"),
    ("filter IN --where samples>0 --out x.slow5 --force", "BP"),
    ("merge IN --out x.slow5 --force", "BP"),
    ("split IN --reads 100 --out EMPTY", "BP"),
    ("convert IN OUT --force", "BPAF"),
];

/// The options, the verbs that have them, and the kinds for which each verb does something with
/// them.
const OPTIONS: [(&str, &[(&str, &str)]); 42] = [
    ("--select :", &[("read", "A")]),
    ("--ranks 2", &[("read", "A")]),
    ("--slice 0/2", &[("read", "A")]),
    ("--slices 2", &[("read", "A")]),
    ("--arrays", &[("read", "A")]),
    ("--events", &[("read", "A")]),
    ("--events --bank bank*", &[("read", "A")]),
    ("--events --pulses 0..2", &[("read", "A")]),
    ("--events --time 0..2", &[("read", "A")]),
    ("--events --tof 0..2", &[("read", "A")]),
    ("--events --order file --force --out x.csv", &[("read", "A")]),
    ("--logs", &[("read", "A")]),
    ("--ids ids", &[("read", "BP"), ("scan", "BP"), ("filter", "BP"), ("convert", "BP")]),
    ("--ids ids --one-by-one --json", &[("read", "BP")]),
    ("--pa --force --out x.csv", &[("read", "BP")]),
    ("--pa", &[("read", "BP")]),
    ("--metadata", &[("read", "BP")]),
    ("--no-decode", &[("read", "BP")]),
    ("--consumer-ns 1", &[("read", "BP")]),
    ("--digest", &[("read", "BPAF")]),
    ("--json", &[("read", "BPAF"), ("info", "BPAF"), ("check", "BPAF"), ("convert", "BPAF")]),
    ("--explain", &[("read", "BPA"), ("scan", "BP"), ("convert", "BP")]),
    ("--trusted", &[("read", "A"), ("info", "A"), ("doctor", "A"), ("plot", "A")]),
    ("--count", &[("info", "BPF")]),
    ("--all", &[("info", "BP")]),
    ("--salvage y --force", &[("check", "BP")]),
    ("--kerchunk x.json", &[("index", "A")]),
    ("--measure", &[("doctor", "A")]),
    ("--model hdd", &[("doctor", "BPA")]),
    ("--bank bank*", &[("plot", "A")]),
    ("--read ID", &[("plot", "BP")]),
    ("--read ID --pa", &[("plot", "BP")]),
    ("--sort", &[("convert", "BP")]),
    ("--to slow5 --per-file", &[("convert", "BP")]),
    ("--lossy", &[("convert", "BP"), ("filter", "BP"), ("merge", "BP"), ("split", "BP")]),
    ("--verify", &[("convert", "BPAF"), ("filter", "BP"), ("merge", "BP"), ("split", "BP")]),
    ("--level 5", &[("convert", "F")]),
    ("--single-member", &[("convert", "F")]),
    ("--md5 --json", &[("convert", "F")]),
    ("--chunk 100", &[("convert", "A")]),
    ("--gap 1kB", ARRAYS_ONLY),
    (
        "--no-index",
        &[
            ("read", "A"),
            ("check", "A"),
            ("index", ""),
            ("doctor", ""),
            ("plot", "A"),
            ("scan", ""),
            ("filter", ""),
            ("merge", ""),
            ("split", ""),
            ("convert", "A"),
        ],
    ),
];

const ARRAYS_ONLY: &[(&str, &str)] = &[
    ("read", "A"),
    ("check", "A"),
    ("index", "A"),
    ("doctor", "A"),
    ("plot", "A"),
    ("scan", ""),
    ("filter", ""),
    ("merge", ""),
    ("split", ""),
    ("convert", "A"),
];

/// The words of a verb with an option for a file.
fn words(
    verb: &str,
    option: &str,
    kind: char,
    input: &str,
    id: &str,
    number: usize,
) -> Vec<String> {
    let out = match kind {
        'A' => "x.nxs",
        'F' => "x.fq.gz",
        _ if option.contains("--per-file") => "EMPTY",
        _ => "x.slow5",
    };
    let repack = if verb.starts_with("convert") && kind == 'A' { " --repack" } else { "" };
    let line = format!("{verb}{repack} {option}").replace("OUT", out);
    let line = line.replace("EMPTY", &format!("parts{number}")).replace("ID", id);
    line.split(' ').map(|word| word.replace("IN", input)).collect()
}

#[cfg_attr(not(feature = "hdf5"), ignore = "libhdf5 makes one of the files")]
#[test]
fn an_option_fits_the_kind_of_file_or_is_refused() {
    let folder = Folder::new();
    folder.synth("b.blow5", "60k");
    folder.synth("p.pod5", "60k");
    folder.ok(&["synth", "f.fq", "--bases", "5k"]);
    folder.ok(&["synth", "a.nxs", "--size", "100kB", "--banks", "2"]);
    let ids = folder.ok(&["scan", "b.blow5", "--columns", "read_id"]);
    let id = ids.lines().nth(1).unwrap();
    fs::write(folder.path("ids"), id).unwrap();
    let (mut number, mut wrong) = (0, Vec::new());
    for (option, verbs) in OPTIONS {
        for (verb, fit) in verbs {
            let with_verb = VERBS.iter().filter(|(line, _)| line.split(' ').next() == Some(verb));
            for (line, takes) in with_verb {
                for (kind, input) in FILES.iter().filter(|(kind, _)| takes.contains(*kind)) {
                    number += 1;
                    let args = words(line, option, *kind, input, id, number);
                    let args: Vec<&str> = args.iter().map(String::as_str).collect();
                    let ended = folder.run(&args);
                    let told = String::from_utf8_lossy(&ended.stderr);
                    let is_run = line.contains("--run") && option != "--json";
                    let is_fit = fit.contains(*kind) && !is_run;
                    let code = if is_fit { 0 } else { 2 };
                    let mut names = option.split(' ').filter_map(|word| word.strip_prefix("--"));
                    let is_named = names.any(|name| told.contains(name));
                    // What is only for repacking says so.
                    let is_named = is_named || option == "--chunk 100" && told.contains("--repack");
                    if ended.status.code() != Some(code) || !is_fit && !is_named {
                        wrong.push(format!("{args:?}: {:?}, not {code}: {told}", ended.status));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Options that mean nothing without, or beside, another one.
#[test]
fn options_that_do_not_go_together_are_refused() {
    let folder = Folder::new();
    folder.synth("b.blow5", "60k");
    let mut cases = vec![
        "read b.blow5 --force",
        "read b.blow5 --pa --digest",
        "read b.blow5 --one-by-one --json",
        "read b.blow5 --price-gb 1",
        "read b.blow5 --bank x",
        "read b.blow5 --digest --json",
        "scan b.blow5 --force",
        "scan b.blow5 --json",
        "scan b.blow5 --tsv --out x.csv",
        "check b.blow5 --force",
        "compare b.blow5 --force",
        "bench --list --only x",
        "bench --list --pairs 3",
        "bench --list --json x.jsonl",
        "bench --list --force",
        "filter b.blow5 --where samples>0 --out x.blow5 --missing-ok",
        "split b.blow5 --reads 3 --out x --force",
        "bench --name x",
        "bench tour --prepare x",
        "bench --list --prepare x",
        "bench --resume x --name x",
        "bench --resume x -- true",
        "bench tour -- true",
        "bench --list -- true",
        "convert b.blow5 x.slow5 --resume",
        "convert b.blow5 x.slow5 --chunk 10",
        "convert b.blow5 x.slow5 --md5",
        "convert b.blow5 x.slow5 --record zlib",
        "convert b.blow5 x.pod5 --record zlib",
        "convert b.blow5 x.blow5 --reads-rows 10",
        "convert b.blow5 x.blow5 --level 3",
        "plot b.blow5 --out x.html --width 500",
        "plot b.blow5 --out x.svg --pa",
        "probe b.blow5 --file-size 1MB",
        "probe b.blow5 --most 1MB",
        "probe . --most 1MB",
        "graph degree b.blow5 --from x --force",
        "synth x.blow5 --gzip",
        "synth x.blow5 --bases 5k",
        "synth x.blow5 --size 5MB",
        "synth x.blow5 --neurons 5",
        "synth x.pod5 --record zlib",
        "synth x.fq --samples 5k",
    ];
    if cfg!(feature = "hdf5") {
        folder.ok(&["synth", "a.nxs", "--size", "100kB", "--banks", "2"]);
        cases.extend([
            "read a.nxs --time 10..0 --events",
            "read a.nxs --tof 10..0 --events",
            "read a.nxs --pulses 10..0 --events",
            "read a.nxs --pulses 0..1",
            "read a.nxs --events --order file",
            "read a.nxs --events --slices 2",
            "read a.nxs --events --slice 0/2",
            "read a.nxs --events --ranks 2",
            "read a.nxs --events --arrays",
            "read a.nxs --events --no-decode",
            "read a.nxs --logs --json",
            "read a.nxs --logs --bank x",
            "read a.nxs /entry --logs",
            "read a.nxs --select : --arrays",
            "read a.nxs --select : --slice 0/2",
            "convert --repack a.nxs x.nxs --chunk /nope=12",
            "convert --repack a.nxs x.nxs --filter /nope=gzip",
            "doctor a.nxs --measure --model hdd",
            "synth x.nxs --samples 5k",
            "synth x.h5 --kind neuroglial --size 5MB",
        ]);
    }
    let before = fs::read_dir(folder.0.path()).unwrap().count();
    let mut wrong = Vec::new();
    for words in cases {
        let ended = folder.run(&words.split(' ').collect::<Vec<_>>());
        if ended.status.code() != Some(2) {
            wrong.push(format!("{words}: {ended:?}"));
        }
        assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), before, "{words}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
