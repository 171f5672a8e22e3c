//! `thalweg plot`: pictures have contents and labels, on a machine without fonts.

use std::fs::{self, File};
use std::io::BufReader;

use crate::common::Folder;

/// Width, height, and the number of pixels whose colour `wanted` accepts.
fn pixels(folder: &Folder, name: &str, wanted: impl Fn(&[u8]) -> bool) -> (u32, u32, usize) {
    let file = BufReader::new(File::open(folder.path(name)).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight));
    (info.width, info.height, bytes.chunks_exact(3).filter(|pixel| wanted(pixel)).count())
}

fn first_id(folder: &Folder) -> String {
    let rows = folder.ok(&["read", "--digest", "a.blow5"]);
    rows.split('\t').next().unwrap().to_owned()
}

#[test]
fn a_read_in_every_kind_of_picture() {
    let folder = Folder::new();
    folder.synth("a.blow5", "400k");
    let id = first_id(&folder);
    folder.ok(&["plot", "a.blow5", "--read", &id, "--out", "a.png"]);
    let (width, height, blue) = pixels(&folder, "a.png", |p| p == [0x00, 0x72, 0xb2]);
    assert_eq!(width, 1400);
    assert!(height > 300 && blue > 20_000, "{height} {blue}");
    // The labels: a small number of dark pixels.
    let (_, _, dark) = pixels(&folder, "a.png", |p| p.iter().all(|&c| c < 0x60));
    assert!((500..40_000).contains(&dark), "{dark}");
    folder.ok(&["plot", "a.blow5", "--read", &id, "-o", "small.png", "--width", "600"]);
    assert_eq!(pixels(&folder, "small.png", |_| true).0, 600);

    folder.ok(&["plot", "a.blow5", "--read", &id, "--pa", "--out", "a.svg"]);
    let svg = fs::read_to_string(folder.path("a.svg")).unwrap();
    for words in ["<svg", "current in pA", "time in s", id.as_str(), "<polyline"] {
        assert!(svg.contains(words), "{words}");
    }
    folder.ok(&["plot", "a.blow5", "--read", &id, "--out", "a.html"]);
    let page = fs::read_to_string(folder.path("a.html")).unwrap();
    for words in ["raw signal", "time in s", id.as_str(), "default-src 'none'", "Plotly"] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn the_plot_of_a_run_has_every_panel() {
    let folder = Folder::new();
    folder.synth("a.blow5", "2M");
    let panels = [
        "Samples by length of their read",
        "Reads over time",
        "Yield",
        "Why reads ended",
        "Samples by channel",
    ];
    folder.ok(&["plot", "a.blow5", "--out", "run.svg"]);
    folder.ok(&["plot", ".", "--out", "run.html"]);
    for file in ["run.svg", "run.html"] {
        let text = fs::read_to_string(folder.path(file)).unwrap();
        for panel in panels {
            assert!(text.contains(panel), "{file}: {panel}");
        }
        assert!(text.contains("signal_positive"), "{file}");
    }
    folder.ok(&["plot", "a.blow5", "--out", "run.png"]);
    assert!(pixels(&folder, "run.png", |p| p == [0x00, 0x72, 0xb2]).2 > 20_000);
    // The plot of a file without reads is a picture without panels.
    folder.ok(&["filter", "a.blow5", "--out", "none.blow5", "--where", "samples < 0"]);
    folder.ok(&["plot", "none.blow5", "--out", "none.png"]);
}

#[test]
fn runs_are_not_mixed() {
    let folder = Folder::new();
    for seed in 1..=7 {
        let name = format!("{seed}.blow5");
        folder.ok(&["synth", &name, "--samples", "300k", "--seed", &seed.to_string()]);
    }
    folder.ok(&["plot", "1.blow5", "--out", "one.svg"]);
    let one = fs::read_to_string(folder.path("one.svg")).unwrap();
    let info = folder.ok(&["info", "--run", "--json", "1.blow5"]);
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    let run_id = info["runs"][0]["attributes"]["run_id"].as_str().unwrap();
    assert!(one.contains(&format!("run {}: ", &run_id[..8])), "the title names the run");
    assert!(one.contains(", N50 ") && one.contains("(N50 "));
    assert_eq!(one.matches("Yield").count(), 1);
    // Each run has panels of its own.
    folder.ok(&["plot", "1.blow5", "2.blow5", "--out", "two.svg"]);
    let two = fs::read_to_string(folder.path("two.svg")).unwrap();
    assert!(two.contains("2 runs, "));
    assert_eq!(two.matches(": Yield").count(), 2);
    assert_eq!(two.matches(&format!("run {}: ", &run_id[..8])).count(), 5);
    // Files of one run are one run.
    folder.ok(&["split", "1.blow5", "--reads", "2", "--out", "parts"]);
    folder.ok(&["plot", "parts", "--out", "parts.svg"]);
    let parts = fs::read_to_string(folder.path("parts.svg")).unwrap();
    assert_eq!(parts.matches("Yield").count(), 1);
    let all: Vec<String> = (1..=7).map(|seed| format!("{seed}.blow5")).collect();
    let mut args = vec!["plot", "--out", "all.svg"];
    args.extend(all.iter().map(String::as_str));
    assert!(folder.fails(2, &args).contains("more than 6 runs"));
    assert!(!folder.path("all.svg").exists());
}

#[test]
fn pictures_that_cannot_be_drawn_are_refused() {
    let folder = Folder::new();
    folder.synth("a.blow5", "400k");
    assert!(folder.fails(2, &["plot", "a.blow5", "--out", "a.gif"]).contains(".svg"));
    folder.fails(2, &["plot", "a.blow5", "--out", "a.png", "--pa"]);
    folder.fails(2, &["plot", "a.blow5", "--out", "a.png", "--width", "100000"]);
    assert!(
        folder
            .fails(1, &["plot", "a.blow5", "--read", "nobody", "--out", "a.png"])
            .contains("nobody")
    );
    assert!(!folder.path("a.png").exists());
}
