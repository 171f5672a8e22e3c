//! Tests of the reports of a comparison with a rejection, a failure, a limit and a hostile name.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use thalweg_gauge::cache_level::CacheLevel;
use thalweg_gauge::comparison::{Arm, Comparison, ComparisonPlan, run};
use thalweg_gauge::limit::ProbeOptions;
use thalweg_gauge::report::{html, machine, markdown, text};

use super::common::{data_file, scratch};

fn comparison() -> Comparison {
    let dir = scratch();
    let file = data_file(&dir, "f", 4 << 20);
    let script = |read: &str, s: f64| {
        format!(
            "{read} \"$1\" > /dev/null; sleep {s}; \
             echo '{{\"open_to_last_s\":{s},\"digest\":\"d\",\"samples\":2000000,\
             \"version\":\"cat 9\",\"build\":{{\"compiler\":\"cc 13\",\"allocator\":\"glibc\"}},\
             \"stages\":{{\"fetch\":{{\"busy_s\":0.02,\"exposed_s\":0.01}},\"decode\":0.03}}}}'"
        )
    };
    let arm = |name: &str, read: &str, s: f64| {
        Arm::new(name, ["sh", "-c", &script(read, s), "sh", "{file}"], &file)
    };
    let mut arms = vec![
        arm("plain", "cat", 0.04),
        arm("cheat | <b>&", "head -c 10", 0.01),
        Arm::new("broken", ["false"], &file),
        arm("other", "cat", 0.02),
    ];
    for a in &mut arms {
        a.sample_bytes = Some(2);
    }
    if let Some(a) = arms.last_mut() {
        a.level = CacheLevel::Hot;
        a.label = Some("runs an interpreter".into());
    }
    let probe = ProbeOptions {
        blocks: vec![1 << 20],
        depths: vec![1, 4],
        window: Duration::from_millis(5),
        windows: 2,
        single_stream_bytes: 4 << 20,
        throttle: None,
    };
    let plan = ComparisonPlan {
        retries: 0,
        ..ComparisonPlan::new("everything <at> once", arms).rounds(6).probe(probe)
    };
    run(&plan, &mut Vec::new(), &AtomicBool::new(false), &mut |_| {}).unwrap()
}

#[test]
fn nothing_is_left_out_and_nothing_leaks() {
    let c = comparison();
    let page = html(std::slice::from_ref(&c));
    // With the variable SHOW=folder, the three reports are kept, for work on the reports.
    if let Ok(folder) = std::env::var("SHOW") {
        for (name, body) in
            [("r.txt", text(&c, None)), ("r.md", markdown(&c)), ("r.html", page.clone())]
        {
            std::fs::write(std::path::Path::new(&folder).join(name), body).unwrap();
        }
    }
    for report in [text(&c, None) + &machine(&c, None), markdown(&c), page.clone()] {
        for word in [
            "plain",
            "failed",
            "noise",
            "interpreter",
            "compressed",
            "decoded",
            "kernel",
            "cat 9; allocator glibc; compiler cc 13",
        ] {
            assert!(report.contains(word), "{word} is missing from:\n{report}");
        }
        if c.summaries[1].rejected > 0 {
            assert!(report.contains("rejected"), "{report}");
        }
    }
    // The page's own text ends where the library begins. In tests/interop, a browser tests the
    // whole page.
    let own = page.split("plotly.js (basic").next().unwrap_or_default();
    assert!(own.contains("cheat | &lt;b&gt;&amp;") && !own.contains("<b>"), "names are escaped");
    assert!(
        own.contains("default-src 'none'")
            && own.contains("prefers-color-scheme")
            && own.contains("<noscript>")
    );
    assert!(
        !own.contains("http://") && !own.contains("https://") && !own.contains(" src="),
        "needs nothing else"
    );
    assert!(markdown(&c).contains(r"cheat \| \<b>&"));
    for report in [text(&c, None), markdown(&c), page.clone()] {
        let names = report.contains("faster than") || report.contains("no difference shown");
        assert!(names && report.contains("an arm failed"), "there is a headline:\n{report}");
    }
    let rows: Vec<&str> = text(&c, None)
        .lines()
        .skip(3)
        .take(2)
        .map(|l| if l.is_empty() { "" } else { "x" })
        .collect();
    assert_eq!(rows, ["x", "x"]);
    assert!(text(&c, None).lines().all(|l| l == l.trim_end()));
}
