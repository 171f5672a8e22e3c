//! `info`, `evict`, `probe`, and the plan of `read`.

use std::fs;

use crate::common::{Folder, json};

#[test]
fn every_verb_has_help_with_an_example() {
    let folder = Folder::new();
    for verb in [
        "info", "evict", "probe", "read", "index", "convert", "synth", "scan", "filter", "merge",
        "split", "plot", "doctor",
    ] {
        let help = folder.ok(&[verb, "--help"]);
        assert!(help.contains(&format!("Example: thalweg {verb}")), "{help}");
        folder.fails(2, &[verb]);
        folder.fails(2, &[verb, "--no-such-option"]);
    }
}

#[test]
fn info_tells_what_is_in_a_file() {
    let folder = Folder::new();
    folder.synth("a.blow5", "400k");
    let info = &folder.json(&["info", "--json", "a.blow5"])[0];
    assert_eq!(info["format"], "BLOW5");
    assert_eq!((&info["record_press"], &info["signal_press"]), (&"zstd".into(), &"svb-zd".into()));
    assert_eq!((info["reads"].as_u64(), &info["reads_from"]), (Some(7), &"index".into()));
    assert_eq!(
        info["size_bytes"].as_u64(),
        Some(fs::metadata(folder.path("a.blow5")).unwrap().len())
    );
    let records =
        info["size_bytes"].as_f64().unwrap() - info["header_bytes"].as_f64().unwrap() - 5.0;
    assert_eq!(info["mean_record_bytes"].as_f64(), Some(records / 7.0));
    assert!(info["aux"].as_array().unwrap().iter().any(|f| f["name"] == "end_reason"));
    assert!(info["attributes"]["run_id"][0].is_string());
    assert!(
        info["findings"].as_array().unwrap().iter().all(|f| f["code"] == "small_records"),
        "{info}"
    );
    let words = folder.ok(&["info", "a.blow5"]);
    for part in [
        "BLOW5 0.2.0",
        "record zstd, signal svb-zd",
        "7 (by index)",
        "channel_number char*",
        "cached",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
}

#[test]
fn info_names_unknown_fields_and_defects() {
    let folder = Folder::new();
    folder.synth("a.blow5", "200k");
    folder.ok(&["convert", "a.blow5", "a.slow5"]);
    folder.ok(&["convert", "a.blow5", "plain.blow5", "--record", "none", "--signal", "none"]);
    let codes = |info: &serde_json::Value| -> Vec<String> {
        info["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| f["code"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = folder.json(&["info", "--json", "a.slow5", "plain.blow5"]);
    assert_eq!(codes(&all[0]), ["no_index", "text"]);
    assert_eq!(codes(&all[1]), ["no_index", "uncompressed"]);
    assert_eq!(
        (&all[0]["reads"], &all[0]["reads_from"]),
        (&serde_json::Value::Null, &"unknown".into())
    );
    assert!(folder.ok(&["info", "a.slow5"]).contains("--count"));
    assert_eq!(folder.json(&["info", "--json", "--count", "a.slow5"])[0]["reads"], 4);
    assert!(!folder.path("a.slow5.idx").exists(), "looking leaves nothing behind");

    let whole = fs::read(folder.path("plain.blow5")).unwrap();
    fs::write(folder.path("cut.blow5"), &whole[..whole.len() - 1]).unwrap();
    assert!(codes(&folder.json(&["info", "--json", "cut.blow5"])[0]).contains(&"no_end".into()));
    fs::write(folder.path("plain.blow5.idx"), b"no index").unwrap();
    assert!(
        codes(&folder.json(&["info", "--json", "plain.blow5"])[0]).contains(&"bad_index".into())
    );

    // One damaged file does not hide the others.
    fs::write(folder.path("junk"), b"junk").unwrap();
    let output = folder.run(&["info", "--json", "missing", "junk", "a.blow5"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json(std::str::from_utf8(&output.stdout).unwrap()).len(), 1);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("missing") && said.contains("junk"), "{said}");
}

#[test]
fn evict_proves_it_or_fails() {
    let folder = Folder::new();
    folder.synth("a.blow5", "400k");
    let output = folder.run(&["evict", "--json", "a.blow5"]);
    let line = &json(std::str::from_utf8(&output.stdout).unwrap())[0];
    let proved = line["proved"].as_bool().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(!proved)));
    assert_eq!(line["objection"].is_null(), proved);
    assert!(line["eviction"]["before"]["pages_total"].as_u64() > Some(0));
    if proved {
        assert!(folder.ok(&["evict", "a.blow5"]).contains("proved cold"));
    }
    assert!(folder.fails(1, &["evict", "missing"]).contains("missing"));
    // For a folder, every file is evicted.
    std::fs::create_dir_all(folder.path("store/segments")).unwrap();
    for name in ["store/log", "store/segments/0"] {
        std::fs::write(folder.path(name), "bytes").unwrap();
    }
    let output = folder.run(&["evict", "--json", "store"]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.lines().count() == 2 && told.contains("store/segments/0"), "{told}");
    // The other files are still evicted.
    let output = folder.run(&["evict", "--json", "missing", "a.blow5"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json(std::str::from_utf8(&output.stdout).unwrap()).len(), 1);
}

#[test]
fn a_probed_model_serves_later_reads() {
    let folder = Folder::new();
    folder.synth("a.blow5", "400k");
    let before = &folder.json(&["read", "--explain", "--json", "a.blow5"])[0];
    assert_eq!(before["model_origin"], "prior");
    assert!(folder.ok(&["read", "--explain", "a.blow5"]).contains("thalweg probe"));

    let probed =
        &folder.json(&["probe", "--json", "--budget-s", "1", "--file-size", "24MB", "."])[0];
    let model = &probed["model"];
    assert!(
        probed["saved_as"].as_str().is_some_and(|place| place.contains("thalweg/models/")),
        "{probed}"
    );
    assert!(probed["probe"]["points"].as_array().unwrap().len() > 10);
    let left: Vec<_> =
        fs::read_dir(folder.0.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("probe")), "{left:?}");

    let after = &folder.json(&["read", "--explain", "--json", "a.blow5"])[0];
    assert_eq!(after["model_origin"], "measured");
    assert_eq!(&after["model"], model);
    assert!(folder.ok(&["read", "--explain", "a.blow5"]).contains("measured"));

    let place = probed["saved_as"].as_str().unwrap();
    fs::write(place, b"{").unwrap();
    assert_eq!(
        folder.json(&["read", "--explain", "--json", "a.blow5"])[0]["model_origin"],
        "prior"
    );

    let words = folder.ok(&["probe", "--budget-s", "1", "--file-size", "24MB", "."]);
    for part in ["deep", "*", "model: ", "30 days"] {
        assert!(words.contains(part), "{part}: {words}");
    }
}

#[test]
fn probe_refuses_stores_that_it_cannot_measure() {
    let folder = Folder::new();
    fs::write(folder.path("tiny"), b"tiny").unwrap();
    assert!(folder.fails(1, &["probe", "tiny"]).contains("smaller than one block"));
    assert!(folder.fails(1, &["probe", "missing"]).contains("missing"));
    folder.fails(2, &["probe", "tiny", "--budget-s", "0"]);
    // A model that cannot be saved is reported, and the command fails.
    let output = folder
        .command(["probe", "--budget-s", "1", "--file-size", "24MB", "."])
        .env("XDG_CACHE_HOME", folder.path("tiny"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("not saved"));
    assert!(String::from_utf8(output.stdout).unwrap().contains("model: "));
}

#[test]
fn every_store_reads_the_same() {
    let folder = Folder::new();
    folder.synth("a.blow5", "400k");
    let rows = folder.ok(&["read", "--digest", "a.blow5"]);
    assert_eq!(rows.lines().count(), 7);
    for store in ["direct", "mmap", "uring"] {
        let output = folder.run(&["read", "--digest", "--store", store, "a.blow5"]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), rows, "{store}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.is_empty() || said.contains("through the page cache: "), "{said}");
    }
    folder.fails(2, &["read", "--store", "magic", "a.blow5"]);
}

#[test]
fn the_plan_of_an_id_list_needs_an_index() {
    let folder = Folder::new();
    folder.synth("a.blow5", "400k");
    let rows = folder.ok(&["read", "--digest", "a.blow5"]);
    let ids: Vec<&str> = rows.lines().filter_map(|row| row.split('\t').next()).step_by(3).collect();
    fs::write(folder.path("ids"), ids.join("\n")).unwrap();
    let plan = &folder.json(&["read", "--explain", "--json", "--ids", "ids", "a.blow5"])[0];
    assert_eq!(plan["reads"], 3);
    assert!(plan["requests"].as_u64() >= Some(1) && plan["predicted_s"].as_f64() > Some(0.0));
    assert!(plan["memory"]["total_bytes"].as_u64() > plan["memory"]["buffers_bytes"].as_u64());
    fs::remove_file(folder.path("a.blow5.idx")).unwrap();
    assert!(
        folder
            .fails(1, &["read", "--explain", "--ids", "ids", "a.blow5"])
            .contains("thalweg index")
    );
    folder.fails(2, &["read", "--explain", "--digest", "a.blow5"]);
}
