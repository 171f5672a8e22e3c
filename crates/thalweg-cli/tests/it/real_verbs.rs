//! The everyday verbs on real files of every format.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::common::Folder;

/// Real files that are undamaged; empty if their folder does not exist.
fn files() -> Vec<PathBuf> {
    let Some(data) = thalweg_testing::real_files::nanopore() else { return Vec::new() };
    let mut files = Vec::new();
    for kind in ["slow5", "blow5", "fast5", "pod5"] {
        files.extend(
            fs::read_dir(data.join(kind)).unwrap().map(|entry| entry.unwrap().path()).filter(
                |path| {
                    let name = path.file_name().unwrap().to_str().unwrap();
                    path.extension().is_some_and(|e| e == kind) && !name.starts_with("bad_")
                },
            ),
        );
    }
    assert!(!files.is_empty());
    files.sort();
    files
}

/// Whether this build can read the file.
fn readable(folder: &Folder, file: &str) -> bool {
    let output = folder.run(&["read", file]);
    let said = String::from_utf8(output.stderr).unwrap();
    if said.contains("is not supported") {
        println!("skipped: {said}");
        return false;
    }
    assert!(output.status.success(), "{file}: {said}");
    true
}

fn digests(folder: &Folder, file: &str) -> BTreeSet<String> {
    folder.ok(&["read", "--digest", file]).lines().map(str::to_owned).collect()
}

#[test]
fn every_verb_on_every_real_file() {
    for path in files().into_iter().step_by(thalweg_testing::one_of()) {
        let folder = Folder::new();
        // An index is written beside the file, so the test uses a copy and leaves the data folder
        // unchanged.
        let name = path.file_name().unwrap().to_str().unwrap();
        fs::copy(&path, folder.path(name)).unwrap();
        if !readable(&folder, name) {
            continue;
        }
        println!("{name}");
        let rows = digests(&folder, name);
        let known: Vec<(&str, u64)> = rows
            .iter()
            .map(|row| row.split('\t').collect::<Vec<_>>())
            .map(|row| (row[0], row[1].parse().unwrap()))
            .collect();

        // A scan counts as many samples as decoding gives.
        let table = folder.ok(&["scan", name, "--columns", "read_id,samples"]);
        let counted: BTreeSet<String> = table.lines().skip(1).map(str::to_owned).collect();
        assert_eq!(counted, known.iter().map(|(id, samples)| format!("{id},{samples}")).collect());
        folder.ok(&["scan", name, "--out", "all.parquet"]);
        folder.ok(&["scan", name, "--out", "all.arrow"]);

        let info = &folder.json(&["info", "--run", "--json", name])[0];
        let total: u64 = known.iter().map(|row| row.1).sum();
        assert_eq!(
            (info["reads"].as_u64(), info["samples"].as_u64()),
            (Some(known.len() as u64), Some(total))
        );
        assert!(!folder.ok(&["info", name]).contains("truncated"), "{name}");
        let checked = &folder.json(&["check", "--json", name])[0];
        assert_eq!(
            (checked["whole"].as_bool(), checked["samples"].as_u64()),
            (Some(true), Some(total)),
            "{name}"
        );
        folder.ok(&["info", "--run", name]);

        // Some FAST5 files hold data beside the reads that no other format can hold.
        folder.ok(&["merge", name, "--out", "merged.blow5", "--lossy"]);
        assert_eq!(digests(&folder, "merged.blow5"), rows);
        folder.ok(&["check", "merged.blow5"]);

        let middle = known.iter().map(|row| row.1).max().unwrap_or(0).div_ceil(2);
        folder.ok(&[
            "filter",
            name,
            "--out",
            "long.blow5",
            "--where",
            &format!("samples >= {middle}"),
            "--lossy",
        ]);
        let long = digests(&folder, "long.blow5");
        assert_eq!(long.len(), known.iter().filter(|row| row.1 >= middle).count());
        assert!(long.is_subset(&rows));
        fs::write(
            folder.path("list"),
            known.iter().map(|row| format!("{}\n", row.0)).collect::<String>(),
        )
        .unwrap();
        folder.ok(&["filter", name, "--out", "listed.blow5", "--ids", "list", "--lossy"]);
        assert_eq!(digests(&folder, "listed.blow5"), rows);

        let parts =
            folder.json(&["split", name, "--by", "read_id", "--out", "parts", "--json", "--lossy"]);
        assert_eq!(parts.len(), known.len());
        assert_eq!(digests(&folder, "parts"), rows);

        folder.ok(&["read", name, "--out", "pa.arrow", "--pa"]);
        folder.ok(&["plot", name, "--out", "run.png", "--width", "700"]);
        if let Some((id, _)) = known.first() {
            folder.ok(&["plot", name, "--read", id, "--pa", "--out", "read.html"]);
        }
    }
}
