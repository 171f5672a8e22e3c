#![allow(clippy::unwrap_used)]

use super::*;

fn args() -> EdgeListArgs {
    EdgeListArgs {
        population: None,
        from_type: Some("a".into()),
        to_type: Some("b".into()),
        directed: false,
        undirected: false,
        several: true,
    }
}

/// Edges, the columns of their attributes with the types, and the values as text.
type Found = (Vec<(u64, u64)>, Vec<String>, Vec<String>);

/// What is read, or the error.
fn read(text: &[u8]) -> Result<Found, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.csv");
    std::fs::write(&path, text).unwrap();
    let all = || -> Result<_> {
        let mut source =
            TextEdges::open(&path, &"list.csv".into(), b',', &InputOptions::default(), &args())?;
        assert_eq!(source.population().name, "list");
        let fields = source.population().attributes.fields().clone();
        let kinds = fields.iter().map(|f| format!("{}:{}", f.name(), f.data_type())).collect();
        let (mut edges, mut found, mut values) = (EdgeBatch::default(), Vec::new(), Vec::new());
        while source.next(&mut edges)? {
            let mut at = 0;
            for (vertex, len) in &edges.runs {
                found.extend(edges.targets[at..at + len].iter().map(|target| (*vertex, *target)));
                at += len;
            }
            let batch = edges.attributes.iter().flat_map(|batch| batch.columns().to_vec());
            for column in batch {
                for row in 0..edges.targets.len() {
                    values.push(arrow_cast::display::array_value_to_string(&column, row).unwrap());
                }
            }
        }
        assert_eq!(source.total(), Some(found.len() as u64));
        Ok((found, kinds, values))
    };
    all().map_err(|e| e.to_string())
}

#[test]
fn columns_have_the_type_of_all_their_values() {
    let text = "w,target,name,source,is_on,whole,code,none,large\n\
                0.5,2,\"a, \"\"b\"\"\",1,true,-3,007,,18446744073709551615\n\
                7,3,c,1,False,4,12,,1\n,1,,2,,,,,\n";
    let (edges, kinds, values) = read(text.as_bytes()).unwrap();
    assert_eq!(edges, [(1, 2), (1, 3), (2, 1)]);
    let expected = [
        "w:Float64",
        "name:Utf8",
        "is_on:Boolean",
        "whole:Int64",
        "code:Utf8",
        "none:Utf8",
        "large:Utf8",
    ];
    assert_eq!(kinds, expected);
    let expected = [
        "0.5", "7.0", "", "a, \"b\"", "c", "", "true", "false", "", "-3", "4", "", "007", "12", "",
    ];
    assert_eq!(values[..15], expected);
    assert_eq!(values[18..], ["18446744073709551615", "1", ""]);
}

#[test]
fn lists_without_a_header_line_are_read() {
    assert_eq!(read(b"1,2\n18446744073709551615, 4\n").unwrap().0, [(1, 2), (u64::MAX, 4)]);
    assert_eq!(read(b"\xef\xbb\xbf1,2\r\n3,4").unwrap().0, [(1, 2), (3, 4)]);
    let (edges, kinds, values) = read(b"1,2,0.25\n").unwrap();
    assert_eq!(
        (edges, kinds, values),
        (vec![(1, 2)], vec!["column3:Float64".into()], vec!["0.25".into()])
    );
    assert_eq!(read(b"from,to\n").unwrap().0, []);
    let many: String = (0..200_000).map(|i| format!("{i},{}\n", i + 1)).collect();
    assert_eq!(read(many.as_bytes()).unwrap().0.len(), 200_000);
}

#[test]
fn errors_are_reported_with_their_line() {
    let long = format!("source,target\n1,2\n\"{}", "x,\n".repeat(1 << 20));
    let wide = "1,".repeat(5000);
    let cases: [(&[u8], &str); 11] = [
        (b"", "line 1, byte 0: found no line"),
        (b"1\n", "line 1, byte 0: found 1 column"),
        (b"source,target\n1,2\n3,x\n", "line 3, byte 18: found \"x\" in column 2"),
        (b"source,target\n1,-2\n", "line 2, byte 14: found \"-2\" in column 2"),
        (b"1,18446744073709551616\n", "line 1, byte 0: found \"18446744073709551616\" in column 2"),
        (b"1,2\n3,4,5\n", "line 2, byte 4: found 3 values, expected 2"),
        (b"1,2,\xff\n", "line 1, byte 0: found no text"),
        (b"source,target,a,a\n", "the column \"a\" twice"),
        (b"1.5,2\n", "found \"1.5\" in column 1"),
        (long.as_bytes(), "a line of more than 1048576 bytes"),
        (wide.as_bytes(), "found 5001 columns, expected at most 4096"),
    ];
    for (text, words) in cases {
        let error = read(text).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}
