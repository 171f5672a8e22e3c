//! Networks: what the verbs write, and what they refuse.

use std::fs;

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
