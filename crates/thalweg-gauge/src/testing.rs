//! Properties that hold for any bytes. The fuzz targets in `fuzz/` call these functions, and so
//! does a test that replays their corpora on a stable toolchain.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::suite::{ComparisonJob, Context, Peer, Suite, SynthTable, TestFile, TestFileMaker};
use crate::{Error, Result};

/// A function that panics when a property does not hold for these bytes.
pub type FuzzBody = fn(&[u8]);

/// Every target: its name, which is also the name of its corpus, and its function.
pub const TARGETS: [(&str, FuzzBody); 1] = [("gauge_suite", gauge_suite)];

/// Bytes that parse as a suite resolve to consistent jobs or to an error. For all other bytes,
/// every mistake has a position in the text.
pub fn gauge_suite(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let suite = match Suite::parse("s.toml", text, &StubFiles) {
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
        check_job(job);
    }
}

/// Asserts that a job has arms with different names, each with a command, and its files.
fn check_job(job: &ComparisonJob) {
    let name = &job.plan.name;
    assert!(
        !job.plan.arms.is_empty() || !job.absent.is_empty(),
        "{name:?} has no arms, and nobody said so"
    );
    let arms: BTreeSet<&String> = job.plan.arms.iter().map(|arm| &arm.name).collect();
    assert_eq!(arms.len(), job.plan.arms.len(), "two arms of {name:?} have one name");
    for arm in &job.plan.arms {
        assert!(!arm.workload.argv.is_empty(), "{:?} runs nothing", arm.name);
        for file in arm.files.iter().take(1) {
            let made = job.needed.iter().any(|needed| needed.path == *file);
            assert!(
                made || !arm.command().argv.contains(&file.display().to_string()) || file.is_file()
            );
        }
    }
}

/// A maker of test files for tests: it reads recipes, and its files are empty.
#[derive(Debug, Clone, Copy)]
pub struct StubFiles;

/// A recipe of [`StubFiles`].
#[derive(Debug)]
struct StubFile {
    name: String,
    bytes: u64,
}

impl TestFileMaker for StubFiles {
    fn kinds(&self) -> &[&'static str] {
        &["blow5", "fastq"]
    }

    fn parse(
        &self,
        kind: &str,
        seed: u64,
        table: &mut SynthTable<'_, '_, '_>,
    ) -> Option<Arc<dyn TestFile>> {
        let count = table.count(if kind == "blow5" { "samples" } else { "bases" }).unwrap_or(1);
        let gzip = table.flag("gzip").unwrap_or(false);
        let known = |text: &str| match text {
            "zstd" | "svb-zd" => Ok(()),
            other => Err(format!("found {other}, expected a record compression")),
        };
        table.word("record", known);
        table.word("signal", known);
        if count > 1 << 40 {
            table.reject("too large");
            return None;
        }
        let name = format!("synth-{count}-seed{seed}-gzip-{gzip}.{kind}");
        Some(Arc::new(StubFile { name, bytes: count }))
    }
}

impl TestFile for StubFile {
    fn file_name(&self) -> String {
        self.name.clone()
    }

    fn about_bytes(&self) -> u64 {
        self.bytes
    }

    fn write(&self, path: &Path, _stopped: &dyn Fn() -> bool) -> Result<()> {
        std::fs::write(path, "").map_err(|e| Error::io(path, "writing", e))
    }
}
