//! Networks: what the verbs write, and what they refuse.

use std::fs;
use std::os::unix::fs::symlink;

use crate::common::Folder;

/// A folder with a network `net` of edges from A to B, made of a list of edges.
fn network(list: &str) -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("e.csv"), list).unwrap();
    folder.ok(&["graph", "import", "e.csv", "net", "--from-type", "A", "--to-type", "B"]);
    folder
}

#[test]
fn names_and_values_with_commas_and_line_breaks_come_back_from_csv() {
    let list = "source,target,\"a,b\",c\n1,2,5,\"x\ry\"\n1,3,6,\"q\"\"q\"\n";
    let folder = network(list);
    folder.ok(&["graph", "export", "net", "out.csv", "--edges", "e"]);
    assert_eq!(fs::read_to_string(folder.path("out.csv")).unwrap(), list);
}

#[test]
fn tables_are_exported_in_every_format() {
    let folder = network("source,target,w\n1,2,0.5\n1,3,\n");
    folder.ok(&["graph", "export", "net", "out.tsv", "--edges", "e"]);
    let text = fs::read_to_string(folder.path("out.tsv")).unwrap();
    assert_eq!(text, "source\ttarget\tw\n1\t2\t0.5\n1\t3\t\n");
    folder.ok(&["graph", "export", "net", "out.csv", "--vertices", "B"]);
    assert_eq!(fs::read_to_string(folder.path("out.csv")).unwrap(), "id\n2\n3\n");
    for name in ["out.arrow", "out.parquet"] {
        folder.ok(&["graph", "export", "net", name, "--edges", "e"]);
        assert!(folder.path(name).is_file());
    }
    let said = folder.fails(2, &["graph", "export", "net", "out.xyz", "--edges", "e"]);
    assert!(said.contains(".arrow, .parquet, .csv or .tsv, or .h5 for SONATA"), "{said}");
}

#[test]
fn a_range_takes_no_memory_for_ids_that_are_not_there() {
    let folder = network("source,target\n1,2\n1,3\n4294967300,3\n");
    let all = "A:0-18446744073709551615";
    let said = folder.run(&["graph", "neighbors", "net", "--from", all]);
    assert_eq!(String::from_utf8(said.stdout).unwrap(), "1\t2\t2 3\n4294967300\t1\t3\n");
    let error = String::from_utf8(said.stderr).unwrap();
    assert!(error.contains("not there: 0, 2, 3, 4, 5 and 18446744073709551609 more"), "{error}");
    let said = folder.run(&["graph", "degree", "net", "--from", all]);
    assert_eq!(String::from_utf8(said.stdout).unwrap(), "1\t2\n4294967300\t1\n");
    let said = folder.ok(&["graph", "neighbors", "net", "--from", all, "--measured"]);
    assert!(said.contains("\"links\":3") && said.contains("\"vertices\":2"), "{said}");
    let said =
        folder.fails(1, &["graph", "export", "net", "o.csv", "--edges", "e", "--between", all]);
    assert!(said.contains("not there: 0, 2, 3, 4, 5 and"), "{said}");
    let text = fs::read_to_string(folder.path("o.csv")).unwrap();
    assert_eq!(text, "source,target\n1,2\n1,3\n4294967300,3\n");
    let said = folder.fails(2, &["graph", "add", "net", "--vertices", all]);
    assert!(said.contains("name fewer at a time"), "{said}");
}

#[test]
fn vertices_and_edges_that_are_not_there_are_named() {
    let folder = network("source,target\n1,2\n");
    for verb in ["neighbors", "neighbours", "degree"] {
        let said = folder.fails(1, &["graph", verb, "net", "--from", "A:1,7"]);
        assert!(said.contains("not there: 7 of A:1,7"), "{said}");
    }
    let said = folder.fails(1, &["graph", "remove", "net", "--vertices", "A:5000"]);
    assert!(said.contains("not there: 5000 of A:5000"), "{said}");
    let said = folder.fails(1, &["graph", "remove", "net", "--edges", "e:1-9"]);
    assert!(said.contains("none of these edges is there"), "{said}");
    folder.ok(&["graph", "remove", "net", "--edges", "e:1-2,1-9"]);
    folder.ok(&["graph", "remove", "net", "--edges", "e"]);
}

#[test]
fn mistaken_vertices_and_stores_are_explained() {
    let folder = network("source,target\n1,2\n");
    let said = folder.fails(2, &["graph", "neighbors", "net", "--from", "A:abc"]);
    assert!(said.contains("\"abc\" is neither ids, as in 0-9,17"), "{said}");
    let said = folder.fails(2, &["graph", "neighbors", "net", "--from", "A:5-2"]);
    assert!(said.contains("5-2 ends before it begins; 2-5 may be meant"), "{said}");
    for verb in [
        &["degree", "e.csv", "--from", "A"][..],
        &["neighbors", "e.csv", "--from", "A"],
        &["info", "e.csv"],
        &["compact", "e.csv"],
        &["check", "e.csv", "--repair", "new"],
    ] {
        let said = folder.fails(2, &[&["graph"], verb].concat());
        assert!(said.contains("is a file, not a store; import it first"), "{said}");
    }
    let said = folder.fails(2, &["graph", "import", "e.csv", "e.csv"]);
    assert!(said.contains("a store is a folder"), "{said}");
}

#[test]
fn a_store_is_not_repaired_into_itself() {
    let folder = network("source,target\n1,2\n");
    std::os::unix::fs::symlink("net", folder.path("link")).unwrap();
    let before = fs::read_dir(folder.path("net")).unwrap().count();
    for out in ["net/new", "net/a/b", "link/new", "net"] {
        let said = folder.fails(2, &["graph", "check", "net", "--repair", out]);
        assert!(said.contains("is inside the store"), "{said}");
    }
    assert_eq!(fs::read_dir(folder.path("net")).unwrap().count(), before);
    folder.ok(&["graph", "check", "net", "--repair", "network"]);
}

#[test]
fn imports_that_cannot_be_meant_are_refused() {
    let folder = network("source,target\n1,2\n");
    fs::write(folder.path("run.txt"), "1 2\n").unwrap();
    let said = folder.fails(1, &["graph", "import", "run.txt", "new"]);
    assert!(said.contains("a list of edges ends in .csv, .tsv or .parquet"), "{said}");
    fs::create_dir(folder.path("full")).unwrap();
    fs::write(folder.path("full/notes"), "").unwrap();
    for verb in [&["import", "e.csv", "full"][..], &["add", "full", "--vertices", "A:1"]] {
        let said = folder.fails(2, &[&["graph"], verb].concat());
        assert!(said.contains("no network, but another file, notes"), "{said}");
    }
    assert_eq!(fs::read_dir(folder.path("full")).unwrap().count(), 1);
    fs::create_dir(folder.path("empty")).unwrap();
    folder.ok(&["graph", "import", "e.csv", "empty"]);
}

/// What a verb made for a change is removed if the change fails, and nothing else.
#[test]
fn a_change_that_fails_leaves_no_new_store() {
    let folder = network("source,target\n1,2\n");
    fs::write(folder.path("bad.csv"), "source,target\n1,2\n3,x\n").unwrap();
    fs::create_dir(folder.path("kept")).unwrap();
    let types = ["--from-type", "A", "--to-type", "B"];
    for store in ["new", "folder/new", "kept", "net"] {
        let args = [&["graph", "import", "bad.csv", store], &types[..]].concat();
        assert_eq!(folder.run(&args).status.code(), Some(1), "{store}");
        let args = ["graph", "add", store, "--vertices", "C:1", "--edges", "none:1-2"];
        assert_ne!(folder.run(&args).status.code(), Some(0), "{store}");
    }
    assert!(!folder.path("new").exists() && !folder.path("folder").exists());
    assert_eq!(fs::read_dir(folder.path("kept")).unwrap().count(), 0);
    assert!(folder.ok(&["graph", "info", "net"]).contains("e: 1 (A -> B)"));
}

#[cfg(feature = "hdf5")]
#[test]
fn options_of_lists_are_refused_for_hdf5() {
    let folder = network("source,target\n1,2\n");
    folder.ok(&["graph", "export", "net", "net.h5"]);
    let import = ["graph", "import", "net.h5", "again"];
    let said = folder.fails(2, &[&import[..], &["--from-type", "Foo"]].concat());
    assert!(said.contains("--from-type is for lists of edges"), "{said}");
    assert!(!folder.path("again").exists());
    folder.ok(&import);
}

#[test]
fn whole_numbers_that_a_float_would_round_stay_text() {
    let folder = Folder::new();
    let list = "source,target,exact,long,small\n1,2,0.5,9007199254740993,0.5\n\
                1,3,9007199254740992,0.5,9\n";
    fs::write(folder.path("e.csv"), list).unwrap();
    folder.ok(&["graph", "import", "e.csv", "net", "--from-type", "A", "--to-type", "B"]);
    folder.ok(&["graph", "export", "net", "out.csv", "--edges", "e"]);
    let text = fs::read_to_string(folder.path("out.csv")).unwrap();
    assert!(text.contains("9007199254740993"), "{text}");
    let info: serde_json::Value =
        serde_json::from_str(&folder.ok(&["graph", "info", "net", "--json"])).unwrap();
    let text = info.to_string();
    assert!(text.contains("Utf8") || text.contains("string") || text.contains("text"), "{text}");
}

#[test]
fn no_file_of_a_store_is_an_output() {
    let folder = Folder::new();
    fs::write(folder.path("e.csv"), "source,target\n1,2\n2,3\n").unwrap();
    folder.ok(&["graph", "import", "e.csv", "net", "--from-type", "A", "--to-type", "A"]);
    let manifest = fs::read(folder.path("net/manifest")).unwrap();
    for name in ["net/manifest", "net/lock"] {
        folder.fails(2, &["graph", "export", "net", name, "--edges", "e", "--force"]);
    }
    fs::copy(folder.path("net/manifest"), folder.path("net/x.svg")).unwrap();
    let plot = ["graph", "degree", "net", "--from", "A", "--plot"];
    folder.fails(2, &[&plot[..], &["net/x.svg", "--force"]].concat());
    fs::write(folder.path("old.svg"), "mine").unwrap();
    folder.fails(1, &[&plot[..], &["old.svg"]].concat());
    assert_eq!(fs::read(folder.path("old.svg")).unwrap(), b"mine");
    folder.ok(&[&plot[..], &["old.svg", "--force"]].concat());
    assert_eq!(fs::read(folder.path("net/manifest")).unwrap(), manifest);
}

#[test]
fn vertices_of_an_export_that_are_not_there_are_named() {
    let folder = Folder::new();
    fs::write(folder.path("e.csv"), "source,target\n1,2\n2,3\n").unwrap();
    folder.ok(&["graph", "import", "e.csv", "net", "--from-type", "A", "--to-type", "A"]);
    let export = ["graph", "export", "net", "part.csv", "--edges", "e"];
    let said = folder.fails(1, &[&export[..], &["--between", "A:1,77", "--and", "A:2"]].concat());
    assert!(said.contains("not there: 77 of A:1,77"), "{said}");
    assert_eq!(fs::read_to_string(folder.path("part.csv")).unwrap(), "source,target\n1,2\n");
}

#[test]
fn no_output_replaces_a_list_of_ids_that_is_read() {
    let folder = Folder::new();
    fs::write(folder.path("e.csv"), "source,target\n1,2\n1,3\n").unwrap();
    // The name of a type may hold a colon.
    folder.ok(&["graph", "import", "e.csv", "net", "--from-type", "A:1", "--to-type", "B"]);
    fs::write(folder.path("list.csv"), "1\n2\n").unwrap();
    fs::hard_link(folder.path("list.csv"), folder.path("hard.svg")).unwrap();
    symlink("list.csv", folder.path("soft.csv")).unwrap();
    let export = ["graph", "export", "net"];
    let edges = ["--edges", "e", "--force"];
    for (out, ends) in [
        ("list.csv", ["--between", "A:1:list.csv"]),
        ("soft.csv", ["--between", "A:1:list.csv"]),
        ("list.csv", ["--and", "B:list.csv"]),
        ("list.csv", ["--and", "B:./list.csv"]),
    ] {
        let told = folder.fails(2, &[&export[..], &[out], &edges, &ends].concat());
        assert!(told.contains("the output is the input"), "{told}");
    }
    let plot =
        ["graph", "degree", "net", "--from", "A:1:list.csv", "--force", "--plot", "hard.svg"];
    assert!(folder.fails(2, &plot).contains("the output is the input"));
    assert_eq!(fs::read(folder.path("list.csv")).unwrap(), b"1\n2\n");
}

/// The verbs named a manifest that is lost a store that is not there, and an import made a new one
/// in its place.
#[test]
fn a_store_that_lost_its_manifest_is_not_replaced() {
    let folder = network("source,target\n1,2\n1,3\n");
    let copy = fs::read(folder.path("net/manifest.copy")).unwrap();
    fs::remove_file(folder.path("net/manifest")).unwrap();
    let import: &[&str] =
        &["graph", "import", "e.csv", "net", "--from-type", "A", "--to-type", "B"];
    for args in [&["graph", "info", "net"], &["graph", "check", "net"][..], import] {
        let said = folder.fails(1, args);
        assert!(said.contains("--repair") && said.contains("manifest"), "{args:?}: {said}");
        assert!(!folder.path("net/manifest").exists());
        assert_eq!(fs::read(folder.path("net/manifest.copy")).unwrap(), copy);
    }
    folder.run(&["graph", "check", "net", "--repair", "mended"]);
    assert!(folder.ok(&["graph", "info", "mended"]).contains("e: 2 (A -> B)"));
}

#[test]
fn a_damaged_store_is_told_how_to_save_the_rest() {
    let folder = network("source,target\n1,2\n1,3\n");
    let segment = folder.path("net/00000001.seg");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[100] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let said = folder.fails(1, &["graph", "check", "net"]);
    assert!(said.contains("graph check STORE --repair OUT"), "{said}");
}

#[test]
fn single_things_are_counted_in_the_singular() {
    let folder = Folder::new();
    fs::write(folder.path("e.csv"), "source,target\n1,2\n").unwrap();
    let import = ["graph", "import", "e.csv", "net", "--from-type", "A", "--to-type", "B"];
    let told = String::from_utf8(folder.run(&import).stderr).unwrap();
    assert!(told.starts_with("1 edge and 2 vertices are new, of 1 edge read -> net, "), "{told}");
    assert!(folder.ok(&["graph", "info", "net"]).contains("1 segment of"));
}

#[cfg(feature = "hdf5")]
#[test]
fn an_import_that_adds_to_edges_of_before_says_so() {
    let folder = network("source,target\n1,2\n1,3\n");
    folder.ok(&["graph", "export", "net", "net.h5"]);
    let import = ["graph", "import", "net.h5", "again"];
    let told = |args: &[&str]| String::from_utf8(folder.run(args).stderr).unwrap();
    assert!(!told(&import).contains("twice"));
    assert!(told(&import).contains("e had 2 edges") && told(&import).contains("twice"));
    let line = &folder.json(&[&import[..], &["--json"]].concat())[0];
    assert_eq!(line["added_to"][0]["edges_before"], 6);
    // A list of edges adds no edge that is there.
    let list = ["graph", "import", "e.csv", "net", "--from-type", "A", "--to-type", "B"];
    assert!(!told(&list).contains("twice"));
}

#[test]
fn one_population_can_be_followed() {
    let folder = network("source,target,w\n1,2,0.5\n1,3,2\n");
    folder.ok(&["graph", "add", "net", "--edges", "back:2-1,3-1,3-7", "--between", "B,A"]);
    let lines = |verb: &str, args: &[&str]| {
        let words = ["graph", verb, "net", "--from"].into_iter().chain(args.iter().copied());
        folder.ok(&words.collect::<Vec<_>>())
    };
    // Edges that leave; of a population without such edges, those that arrive.
    assert_eq!(lines("neighbors", &["B"]), "2\t1\t1\n3\t2\t1 7\n");
    assert_eq!(lines("neighbors", &["B", "--edges", "back"]), "2\t1\t1\n3\t2\t1 7\n");
    assert_eq!(lines("neighbors", &["B", "--population", "e"]), "2\t1\t1\n3\t1\t1\n");
    assert_eq!(lines("degree", &["B", "--edges", "back"]), "2\t1\n3\t2\n");
    assert_eq!(lines("degree", &["A", "--edges", "e", "--where", "w > 1"]), "1\t1\n7\t0\n");
    let args = ["graph", "neighbors", "net", "--from", "A", "--to", "A", "--edges", "e"];
    let said = folder.fails(2, &args);
    assert!(said.contains("edges of e do not lead from A to A"), "{said}");
    let said = folder.fails(1, &["graph", "degree", "net", "--from", "A", "--edges", "x"]);
    assert!(said.contains("x") && said.contains("there are e, back"), "{said}");
}

#[test]
fn attributes_are_set_on_the_command_line() {
    let folder = Folder::new();
    let add = |words: &str| {
        let words: Vec<&str> =
            ["graph", "add", "net"].into_iter().chain(words.split(' ')).collect();
        folder.run(&words)
    };
    let table = |words: &str| {
        let args = ["graph", "export", "net", "t.csv", "--force"];
        folder.ok(&args.into_iter().chain(words.split(' ')).collect::<Vec<_>>());
        fs::read_to_string(folder.path("t.csv")).unwrap()
    };
    let ok = |words: &str| assert!(add(words).status.success(), "{words}");
    ok("--vertices Cell:1-3 --set layer=4 --set type=L4_PC --set w=0.5 --set ok=true");
    // The others keep their values; the last of two counts.
    ok("--vertices Cell:3-4 --set layer=7 --set layer=5");
    let rows = "1,4,L4_PC,0.5,true\n2,4,L4_PC,0.5,true\n3,5,L4_PC,0.5,true\n4,5,,,\n";
    assert_eq!(table("--vertices Cell"), format!("id,layer,type,w,ok\n{rows}"));
    ok("--edges gap:1-2,2-3 --between Cell,Cell --set weight=2.5");
    ok("--edges gap:2-3,3-4 --set weight=1");
    assert_eq!(table("--edges gap"), "source,target,weight\n1,2,2.5\n2,3,2.5\n3,4,1.0\n");
    for (words, why) in [
        ("--vertices Cell:1 --set layer=x", "\"x\" is no whole number (Int64)"),
        ("--vertices Cell:1 --set id=3", "id is the name of a column of ids"),
        // Nothing is defined by a line that is wrong further on.
        ("--vertices New:1 --set a=1 --vertices Bad", "TYPE:IDS"),
        ("--vertices Cell:1 --set lay=1", "no such attribute; there are layer, type, w, ok"),
        ("--vertices Cell:1 --set layer", "NAME=VALUE"),
        ("--vertices Cell:1 --edges gap:1-4 --set w=1", "of vertices or of edges"),
    ] {
        let said = add(words);
        let told = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.code() == Some(2) && told.contains(why), "{words}: {told}");
    }
    assert_eq!(table("--vertices Cell"), format!("id,layer,type,w,ok\n{rows}"));
    ok("--vertices Kinds:1 --set a=007 --set b=18446744073709551615 \
        --set c=99999999999999999999 --set d=1e400");
    assert_eq!(
        table("--vertices Kinds"),
        "id,a,b,c,d\n1,007,18446744073709551615,99999999999999999999,1e400\n"
    );
    ok("--vertices New:1 --set a=Inf --set b=1 --set a=x");
    assert_eq!(table("--vertices New"), "id,b,a\n1,1,x\n");
}

#[cfg_attr(not(feature = "hdf5"), ignore = "libhdf5 writes the file")]
#[test]
fn the_size_of_an_export_is_told_before() {
    let dense: String = (0..20_000).map(|i| format!("{},{i}\n", i % 100)).collect();
    let sparse: String = (0..20_000).map(|i| format!("{},{}\n", i % 100, i * 15)).collect();
    for list in [dense, sparse] {
        let folder = network(&format!("source,target\n{list}"));
        let line = folder.ok(&["graph", "export", "net", "o.h5", "--explain", "--json"]);
        let told: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(!folder.path("o.h5").exists());
        folder.ok(&["graph", "export", "net", "o.h5"]);
        let size = fs::metadata(folder.path("o.h5")).unwrap().len() as f64;
        let ratio = told["bytes_predicted"].as_f64().unwrap() / size;
        assert!((0.5..2.0).contains(&ratio), "{told} for {size}");
        assert!(size < 8e6, "{size}");
        let words = folder.ok(&["graph", "export", "net", "o.h5", "--explain"]);
        assert!(words.starts_with("o.h5: about "), "{words}");
    }
    let folder = network("source,target\n1,2\n");
    let said = folder.fails(2, &["graph", "export", "net", "o.csv", "--edges", "e", "--explain"]);
    assert!(said.contains("--explain is for SONATA"), "{said}");
}
