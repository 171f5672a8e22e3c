//! What must hold for any bytes whatsoever; the fuzz targets in `fuzz/` call this, and so does a
//! test that replays their corpora on a stable toolchain.

use std::collections::{BTreeMap, BTreeSet};

use crate::Error;
use crate::suite::{Context, Peer, Suite};

/// Panics when something is wrong with these bytes.
pub type Target = fn(&[u8]);

/// Every target: its name, which is also its corpus's, and its function.
pub const TARGETS: [(&str, Target); 1] = [("gauge_suite", gauge_suite)];

/// A suite is understood, or every mistake has its place in the text; what is understood resolves,
/// or is told why not.
pub fn gauge_suite(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let suite = match Suite::parse("s.toml", text) {
        Ok(suite) => suite,
        Err(Error::Suite(message)) => {
            let first = message.lines().next().unwrap_or_default();
            let place = first
                .strip_prefix("s.toml:")
                .and_then(|rest| rest.split_once(':'))
                .map(|(line, _)| line.parse());
            let lines = text.lines().count() + 1;
            assert!(
                matches!(place, Some(Ok(line)) if (1..=lines).contains(&line)),
                "no such line: {message}"
            );
            return;
        }
        Err(other) => unreachable!("a mistake in a suite is a mistake in its text: {other}"),
    };
    let peer = |name: &str| match name {
        "absent" => Peer::Absent("not built".into()),
        "unknown" => Peer::Unknown(vec!["slow5lib".into()]),
        _ => Peer::Found(vec!["/peers/one".into()]),
    };
    let context = Context {
        thalweg: "/bin/thalweg".into(),
        peer: &peer,
        places: BTreeMap::new(),
        files: BTreeMap::new(),
        set: Vec::new(),
        pairs: None,
        cache: "/nowhere/cache".into(),
        folder: "/nowhere/suites".into(),
        cores: 6,
        cpus: Vec::new(),
    };
    let Ok(jobs) = suite.plan(&context) else { return };
    let mut names = BTreeSet::new();
    for job in &jobs {
        assert!(names.insert(&job.plan.name), "two comparisons are called {:?}", job.plan.name);
        assert!(
            !job.plan.arms.is_empty() || !job.absent.is_empty(),
            "{:?} has no arms, and nobody said so",
            job.plan.name
        );
        let arms: BTreeSet<&String> = job.plan.arms.iter().map(|arm| &arm.name).collect();
        assert_eq!(
            arms.len(),
            job.plan.arms.len(),
            "two arms of {:?} have one name",
            job.plan.name
        );
        for arm in &job.plan.arms {
            assert!(!arm.workload.argv.is_empty(), "{:?} runs nothing", arm.name);
            for file in arm.files.iter().take(1) {
                let made = job.needed.iter().any(|needed| needed.path == *file);
                assert!(
                    made || !arm.command().argv.contains(&file.display().to_string())
                        || file.is_file()
                );
            }
        }
    }
}
