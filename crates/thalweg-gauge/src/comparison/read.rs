//! Reads results files of this version, of older and newer versions, and of runs that ended in the
//! middle of a line.

use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use thalweg_io::store::FileStore;

use super::record::{COMPARISON_SCHEMA, PROBE_SCHEMA, RESUMED_SCHEMA, SESSION_SCHEMA};
use super::{Comparison, EndReason, ProbeRecord, Resumed, Session, TRIAL_SCHEMA, Trial, summarise};
use crate::limit::Probe;
use crate::{Error, Result};

/// The content of a results file.
#[derive(Debug, Clone, Default)]
pub struct Records {
    /// The comparisons, with summaries that are computed from the raw trials.
    pub comparisons: Vec<Comparison>,
    /// Notes on the lines that were skipped, with the reason, as in "line 7 is cut short".
    pub notes: Vec<String>,
}

/// The comparisons of a results file, as [`parse`] finds them.
pub fn read(path: &Path) -> Result<Vec<Comparison>> {
    Ok(parse(path, &read_text(path)?)?.comparisons)
}

/// The most bytes that results may have, unpacked. A trial takes less than a kilobyte.
pub(super) const MOST_BYTES: u64 = 64 << 20;

/// The most bytes of a line. The longest is that of a suite, which holds the suite's text. A value
/// takes up to a hundred times the memory of its JSON.
const MOST_LINE: usize = 2 << 20;

/// The text of a results file, unpacked if it is a gzip file. A truncated gzip file gives its
/// intact part.
pub fn read_text(path: &Path) -> Result<String> {
    // A pipe without a writer would have this wait for ever.
    let store = FileStore::open(path)?;
    let mut bytes = store.contents("results", MOST_BYTES)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        let decoder = flate2::read::MultiGzDecoder::new(bytes.as_slice());
        match decoder.take(MOST_BYTES + 1).read_to_end(&mut unpacked) {
            Ok(len) if len as u64 > MOST_BYTES => {
                let what = format!("more than {} MiB, too many for results", MOST_BYTES >> 20);
                return Err(Error::io(path, "unpacking", std::io::Error::other(what)));
            }
            Err(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => {
                return Err(Error::io(path, "unpacking", e));
            }
            _ => bytes = unpacked,
        }
    }
    // A truncated last line may end inside a character. So invalid UTF-8 is replaced here, and the
    // parser of the lines reports damage.
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

/// One comparison in a results file.
#[derive(Debug, Clone)]
pub struct Earlier {
    /// The session: the first line of the comparison.
    pub session: Session,
    /// The finished trials.
    pub trials: Vec<Trial>,
    /// The probes of the limit.
    pub probes: Vec<Probe>,
    /// The resumptions of the run.
    pub resumed: Vec<Resumed>,
    /// How the comparison ended; `None` if it was stopped.
    pub ended: Option<EndReason>,
}

/// The comparisons in the lines of `text`, which came from `path`.
///
/// Lines of unknown schemas are skipped, and so are the lines of a session of an unknown version. A
/// truncated last line (the machine stopped) is skipped with a note.
///
/// # Errors
/// [`Error::Results`] for any other line that is not valid JSON, lacks a field, or belongs to an
/// absent session.
pub fn parse(path: &Path, text: &str) -> Result<Records> {
    let (earlier, notes) = earlier(path, text)?;
    Ok(Records { comparisons: earlier.into_iter().map(summarise).collect(), notes })
}

/// A field that should be text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Text(String),
    Other(IgnoredAny),
}

impl Default for Text {
    fn default() -> Self {
        Self::Other(IgnoredAny)
    }
}

impl Text {
    fn into_string(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Other(_) => String::new(),
        }
    }
}

/// The fields that say what a line is. The other fields are read only where they are needed.
#[derive(Deserialize)]
struct LineHead {
    #[serde(default)]
    schema: Text,
    #[serde(default)]
    id: Text,
    #[serde(default)]
    comparison: Text,
    #[serde(default)]
    name: Text,
}

/// The schema of a line of results; `None` if it is no JSON object or has none.
pub(crate) fn schema_of(line: &str) -> Option<String> {
    serde_json::from_str::<LineHead>(line).ok().map(|head| head.schema.into_string())
}

/// Refuses a line that would take too much memory.
fn check_length(line: &str) -> Result<(), String> {
    if line.len() > MOST_LINE {
        return Err(format!("has {} bytes, more than {MOST_LINE}", line.len()));
    }
    Ok(())
}

/// The comparisons before they are summarised, and notes on skipped lines.
pub(super) fn earlier(path: &Path, text: &str) -> Result<(Vec<Earlier>, Vec<String>)> {
    let mut notes = Vec::new();
    let mut open: Vec<Earlier> = Vec::new();
    let mut foreign: Vec<String> = Vec::new();
    let count = text.lines().count();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |what: String| Error::Results { path: path.to_path_buf(), line: i + 1, what };
        check_length(line).map_err(wrong)?;
        let head: LineHead = match serde_json::from_str(line) {
            Ok(head) => head,
            Err(e) if e.is_data() && !line.trim_start().starts_with('{') => continue,
            Err(_) if i + 1 == count && !text.ends_with('\n') => {
                notes.push(format!("line {} is cut short, and was left out", i + 1));
                break;
            }
            Err(e) => {
                let expected = "expected a JSON line of results, as `thalweg bench` writes them";
                return Err(wrong(format!("{e}; {expected}")));
            }
        };
        let schema = head.schema.into_string();
        if schema == SESSION_SCHEMA {
            let session = typed(line).map_err(wrong)?;
            open.push(Earlier {
                session,
                trials: Vec::new(),
                probes: Vec::new(),
                resumed: Vec::new(),
                ended: None,
            });
            continue;
        }
        if schema.starts_with("thalweg.session/") {
            let name = head.name.into_string();
            notes.push(format!(
                "{name:?} was left out: {schema} is not a version that this thalweg can read"
            ));
            foreign.push(head.id.into_string());
            continue;
        }
        let known = [TRIAL_SCHEMA, PROBE_SCHEMA, RESUMED_SCHEMA, COMPARISON_SCHEMA]
            .contains(&schema.as_str());
        let id = if schema == COMPARISON_SCHEMA { head.id } else { head.comparison };
        let id = id.into_string();
        if !known || foreign.contains(&id) {
            continue;
        }
        // The line belongs to the latest session with this id, because a file that was appended to
        // twice may repeat an id.
        let Some(of) = open.iter_mut().rev().find(|o| o.session.id == id) else {
            return Err(wrong(format!("belongs to comparison {id:?}, which has no session line")));
        };
        add_line(of, &schema, line).map_err(wrong)?;
    }
    Ok((open, notes))
}

/// Adds the line of a trial, probe, resumption or end to its comparison.
fn add_line(of: &mut Earlier, schema: &str, line: &str) -> Result<(), String> {
    match schema {
        TRIAL_SCHEMA => {
            let mut trial: Trial = typed(line)?;
            // Nothing asks for these fields of earlier trials, and they may be large.
            if let Some(report) = trial.outcome.as_mut().and_then(|o| o.report.as_mut()) {
                report.other.clear();
            }
            of.trials.push(trial);
        }
        PROBE_SCHEMA => of.probes.push(typed::<ProbeRecord>(line)?.probe),
        RESUMED_SCHEMA => of.resumed.push(typed(line)?),
        _ => of.ended = Some(typed::<ComparisonEnd>(line)?.ended),
    }
    Ok(())
}

/// How a comparison ended.
#[derive(Deserialize)]
struct ComparisonEnd {
    /// Versions that knew only a fixed number of rounds did not say it.
    #[serde(default = "all_rounds")]
    ended: EndReason,
}

fn all_rounds() -> EndReason {
    EndReason::AllRounds
}

fn typed<T: DeserializeOwned>(line: &str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const SESSION: &str = r#"{"schema":"thalweg.session/1","id":"s","name":"n",
        "gauge_version":"0","started_unix_s":1,"host":{"architecture":"x86_64","cpu_caches":[],
        "kernel":"k","virtual_machine":false,"new":1},"places":[],
        "arms":[],"control":null,"rounds":1,"clock":"wall","something_new":{"a":1}}"#;

    fn lines(lines: &[&str]) -> String {
        lines.iter().map(|l| l.replace('\n', "") + "\n").collect()
    }

    fn parsed(text: &str) -> Result<Records> {
        parse(Path::new("r.jsonl"), text)
    }

    #[test]
    fn unknown_records_are_skipped() {
        let text =
            lines(&[SESSION, r#"{"schema":"thalweg.weather/1","comparison":"s"}"#, "", "{}"]);
        let records = parsed(&text).unwrap_or_default();
        assert_eq!((records.comparisons.len(), records.notes.len()), (1, 0));
    }

    #[test]
    fn a_newer_session_is_left_out_with_all_that_belongs_to_it() {
        let newer = r#"{"schema":"thalweg.session/2","id":"t","name":"later"}"#;
        let text = lines(&[newer, r#"{"schema":"thalweg.trial/1","comparison":"t"}"#, SESSION]);
        let records = parsed(&text).unwrap_or_default();
        assert_eq!(records.comparisons.len(), 1);
        assert!(
            records.notes.first().is_some_and(|n| n.contains("later") && n.contains("session/2"))
        );
    }

    #[test]
    fn only_the_last_line_may_be_incomplete() {
        let cut = lines(&[SESSION]) + r#"{"schema":"thalweg.tri"#;
        let records = parsed(&cut).unwrap_or_default();
        assert_eq!((records.comparisons.len(), records.notes.len()), (1, 1));
        let error = parsed(&(cut + "\n{}\n")).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.starts_with("r.jsonl: line 2: "), "{error}");
        let orphan = parsed("{\"schema\":\"thalweg.trial/1\",\"comparison\":\"x\"}\n");
        assert!(orphan.err().is_some_and(|e| e.to_string().contains("\"x\"")));
    }

    #[test]
    fn lines_are_short_or_refused_and_only_objects_count() {
        let long = format!("{{\"kind\":[{}0]}}\n", "0,".repeat(MOST_LINE / 2));
        let error = parsed(&long).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("r.jsonl: line 1: has 2097164 bytes"), "{error}");
        let text = lines(&["3", "[1]", "\"word\"", r#"{"schema":[{"a":1}],"id":2}"#, SESSION]);
        assert_eq!(parsed(&text).map_or(0, |records| records.comparisons.len()), 1);
        let twice = r#"{"schema":"thalweg.trial/1","schema":"thalweg.trial/1"}"#;
        assert!(parsed(&lines(&[twice])).is_err());
    }

    #[test]
    #[allow(clippy::unwrap_used)]
    fn a_gzip_file_that_unpacks_to_too_much_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl.gz");
        let file = std::fs::File::create(&path).unwrap();
        let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        let line = vec![b' '; 1 << 20];
        (0..MOST_BYTES >> 20).for_each(|_| packed.write_all(&line).unwrap());
        packed.try_finish().unwrap();
        assert_eq!(read_text(&path).unwrap().len() as u64, MOST_BYTES);
        packed.finish().unwrap();
        let more = std::fs::File::options().append(true).open(&path).unwrap();
        let mut more = flate2::write::GzEncoder::new(more, flate2::Compression::fast());
        more.write_all(b" ").unwrap();
        more.finish().unwrap();
        let error = read_text(&path).unwrap_err().to_string();
        assert!(error.contains("results.jsonl.gz") && error.contains("64 MiB"), "{error}");
        let plain = folder.path().join("results.jsonl");
        std::fs::File::create(&plain).unwrap().set_len(3 << 30).unwrap();
        let error = read_text(&plain).unwrap_err().to_string();
        assert!(error.contains("found 3221225472 bytes, expected at most 67108864"), "{error}");
    }
}
