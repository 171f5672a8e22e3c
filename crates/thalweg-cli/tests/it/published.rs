//! The published tables are consistent: every printed figure that was derived follows from the
//! figures that were typed in.

use std::path::PathBuf;

use thalweg_gauge::results::published::PublishedFigure;
use thalweg_gauge::results::{Published, ResultRun};

fn all() -> Vec<Published> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("suites/published");
    let run = ResultRun::read(&folder).unwrap();
    assert!(run.notes.is_empty(), "{:?}", run.notes);
    run.published
}

/// Asserts that `computed` and `printed` differ by less than one unit of the last of `digits`
/// decimals. The printed figures were rounded or truncated.
fn agrees(what: &str, f: &PublishedFigure, computed: f64, printed: f64, digits: i32) {
    let unit = 10_f64.powi(-digits);
    assert!(
        (computed - printed).abs() < unit,
        "{}, {}: {what} is {computed}, printed {printed}",
        f.row(),
        f.arm
    );
}

#[test]
fn the_readme_prints_the_real_output() {
    let mut checked = 0;
    for p in all() {
        for f in &p.figures {
            for (name, &printed) in &f.printed {
                let cpu = f.user_s.zip(f.system_s).map(|(u, s)| u + s);
                match name.as_str() {
                    // time(1) reckons in coarser ticks than it prints.
                    "cpu_percent" => {
                        let percent = cpu.unwrap() / f.wall_s.unwrap() * 100.0;
                        assert!(
                            (percent - printed).abs() < 2.0,
                            "{}, {}: {percent} {printed}",
                            f.row(),
                            f.arm
                        );
                    }
                    // By the program's own clock, which stops before the process ends.
                    "cpu_s" => agrees(name, f, cpu.unwrap(), printed, 0),
                    "mib_per_s" => {
                        let rate = f.decoded_bytes.unwrap() as f64 / f.time_s / f64::from(1 << 20);
                        assert!(
                            (rate / printed - 1.0).abs() < 1e-5,
                            "{}, {}: {rate} {printed}",
                            f.row(),
                            f.arm
                        );
                    }
                    "cpu_ns" => assert!(
                        (f.time_s * 1e9 / printed - 1.0).abs() < 2e-3,
                        "{}, {}",
                        f.row(),
                        f.arm
                    ),
                    "speed_up_percent" => {
                        let base = p.figures.iter().find(|b| b.experiment == f.experiment).unwrap();
                        agrees(name, f, (1.0 - f.time_s / base.time_s) * 100.0, printed, 2);
                    }
                    other => panic!("{other} is checked nowhere"),
                }
                checked += 1;
            }
            for part in
                [f.fetch_s, Some(f.time_s).filter(|_| f.wall_s.is_some())].into_iter().flatten()
            {
                let whole = f.wall_s.unwrap_or(f.time_s);
                assert!(part <= whole, "{}, {}: {part} is part of {whole}", f.row(), f.arm);
            }
        }
    }
    assert!(checked >= 100, "{checked}");
}

/// Compares the sum of the steps with the published total of the pipeline, which is not a line of
/// the file.
#[test]
fn the_steps_add_up_to_the_printed_total() {
    let all = all();
    let p = all.iter().find(|p| p.source.id == "fusion-mountpoint").unwrap();
    let total =
        |arm: &str| p.figures.iter().filter(|f| f.arm == arm).map(|f| f.time_s).sum::<f64>();
    assert!(
        (total("Mountpoint") - 4957.267).abs() < 1e-6 && (total("Fusion") - 4111.73).abs() < 1e-6
    );
}

/// Checks the claims of the documentation page on neutron events about this table.
#[test]
fn published_neutron_figures_blame_order_and_ranks_hide_gzip() {
    let all = all();
    let p = all.iter().find(|p| p.source.id == "neutron-hdf5").unwrap();
    let rate = |arm: &str, ranks: Option<u64>| {
        let is = |f: &&PublishedFigure| {
            f.arm == arm
                && ranks.is_none_or(|n| f.settings.get("ranks").and_then(|v| v.as_u64()) == Some(n))
        };
        let found: Vec<f64> = p
            .figures
            .iter()
            .filter(is)
            .map(|f| f.decoded_bytes.unwrap() as f64 / f.time_s)
            .collect();
        assert_eq!(found.len(), 1, "{arm}, {ranks:?}");
        found[0]
    };
    let recorded = rate("as recorded, chunks of 2,048", None);
    for (arm, times) in
        [("repacked, chunks of 1,048,576", 9.03), ("repacked, chunks of 2,048", 8.02)]
    {
        assert!((rate(arm, None) / recorded - times).abs() < 0.01, "{arm}");
    }
    for (ranks, times) in [(1, 2.25), (12, 1.11)] {
        let ratio = rate("no compression", Some(ranks)) / rate("gzip", Some(ranks));
        assert!((ratio - times).abs() < 0.01, "{ranks} ranks: {ratio}");
    }
}

#[test]
fn every_table_has_its_source_and_says_more_than_its_authors() {
    let all = all();
    let said: String = all.iter().flat_map(Published::remarks).map(|r| r + "\n").collect();
    for words in [
        "the published figure is that of Read_Astr_Syn, astrocytes 1000 (1.57x, one iteration)",
        "geometric mean 1.52x",
        "53.2 % of what Fusion saves is one step, check",
        "read2, Fusion: 44.0 GB in 18.9 s is 2.33 GB/s, but the machine's link carries 1.56 GB/s",
        "(98.7 %): it read as fast as one stream does",
        "POD5 mmap took 594 s in all, less than the 784 s that BLOW5 C++ spent on reading",
        "one rank got 223 MB/s (decoded), the best was 894 MB/s",
    ] {
        assert!(said.contains(words), "{words} is not in:\n{said}");
    }
    for p in &all {
        assert!(
            p.source.url.as_ref().is_some_and(|u| u.starts_with("https://")),
            "{}",
            p.source.id
        );
        assert!(!p.figures.is_empty() && p.source.retrieved.is_some(), "{}", p.source.id);
    }
}
