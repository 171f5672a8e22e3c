//! `thalweg bench FILE`: which peers read the file, and which are left out, and why.

use std::fs;

use crate::common::{Folder, json};

/// What is left out of the comparisons of a file.
fn left_out(folder: &Folder, name: &str) -> String {
    folder.ok(&["bench", name, "--list"])
}

#[test]
fn peers_for_other_formats_are_left_out_by_name() {
    let folder = Folder::new();
    folder.synth("b.blow5", "60k");
    folder.synth("p.pod5", "60k");
    let told = left_out(&folder, "p.pod5");
    let why = "slow5lib fork-join: it reads SLOW5 and BLOW5, and p.pod5 is POD5";
    assert!(told.contains(why) && told.contains("h5py: it reads FAST5"), "{told}");
    assert!(!told.contains("it reads POD5"), "{told}");
    let told = left_out(&folder, "b.blow5");
    assert!(told.contains("pod5 C mmap: it reads POD5, and b.blow5 is BLOW5"), "{told}");
    assert!(!told.contains("it reads SLOW5"), "{told}");
    // The content counts, whatever the name says; but slow5lib goes by the name.
    fs::rename(folder.path("b.blow5"), folder.path("reads")).unwrap();
    let told = left_out(&folder, "reads");
    assert!(told.contains("it opens only names that end in .blow5, unlike reads"), "{told}");
    // The suite says the same if the file is given to it.
    assert_eq!(folder.ok(&["bench", "file", "--file", "reads=reads", "--list"]), told);
}

#[test]
fn a_compression_that_a_peer_lacks_leaves_it_out() {
    let folder = Folder::new();
    folder.ok(&["synth", "b.blow5", "--samples", "60k", "--signal", "svb16-zd"]);
    let told = left_out(&folder, "b.blow5");
    let why = "slow5lib slow5_mt: no released slow5lib has the compression svb16-zd of b.blow5";
    assert!(told.contains(why), "{told}");
}

#[test]
fn a_file_is_measured_without_the_peers_that_cannot_read_it() {
    let folder = Folder::new();
    folder.synth("p.pod5", "60k");
    let run = ["bench", "p.pod5", "--pairs", "1", "--json", "r.jsonl"];
    let output = folder.run(&run);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert_eq!(told.matches("slow5lib fork-join").count(), 1, "{told}");
    assert!(told.contains("p.pod5 is POD5; it is left out"), "{told}");
    let lines = json(&fs::read_to_string(folder.path("r.jsonl")).unwrap());
    let ends = lines.iter().filter(|line| line["schema"] == "thalweg.comparison/1");
    assert_eq!(ends.count(), 3);
    assert!(lines.iter().all(|line| line["failed"].is_null()), "{lines:?}");
    folder.ok(&["bench", "--resume", "r.jsonl"]);
}

#[cfg_attr(not(feature = "hdf5"), ignore = "libhdf5 makes the file")]
#[test]
fn an_hdf5_file_is_measured_by_its_largest_array() {
    let folder = Folder::new();
    folder.ok(&["synth", "a.nxs", "--size", "100kB", "--banks", "2"]);
    let told = left_out(&folder, "a.nxs");
    assert!(told.starts_with("cold: /entry/bank1_events/"), "{told}");
    assert!(!told.contains("slow5lib"), "{told}");
    let other = ["--set", "dataset=/entry/bank2_events/event_id"];
    let told = folder.ok(&[&["bench", "a.nxs", "--list"][..], &other].concat());
    assert!(told.starts_with("cold: /entry/bank2_events/event_id: thalweg"), "{told}");
    let run = ["bench", "a.nxs", "--pairs", "1", "--only", "hot", "--json", "r.jsonl"];
    let text = folder.ok(&run);
    assert!(text.starts_with("hot: /entry/bank1_events/"), "{text}");
    folder.ok(&["bench", "--resume", "r.jsonl"]);
    // A file of reads in HDF5 is one of reads.
    folder.synth("b.blow5", "60k");
    folder.ok(&["convert", "b.blow5", "f.fast5"]);
    let told = left_out(&folder, "f.fast5");
    assert!(told.contains("pod5 C mmap: it reads POD5, and f.fast5 is FAST5"), "{told}");
    let told = folder.ok(&["bench", "arrays", "--file", "arrays=a.nxs", "--list"]);
    assert!(told.starts_with("cold: /entry/bank1_events/"), "{told}");
}

#[test]
fn other_files_are_refused_with_what_measures_them() {
    let folder = Folder::new();
    folder.ok(&["synth", "f.fq", "--bases", "5k"]);
    let told = folder.fails(2, &["bench", "f.fq"]);
    assert!(told.contains("f.fq: FASTQ") && told.contains("bench -- 'COMMAND f.fq'"), "{told}");
    fs::write(folder.path("junk"), [0xb7; 100]).unwrap();
    let told = folder.fails(1, &["bench", "junk"]);
    assert!(told.contains("junk") && told.contains("expected"), "{told}");
}
