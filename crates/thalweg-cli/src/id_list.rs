//! Lists, one item a line, as `--ids` and the verbs of networks take them.

use std::fs::{File, FileType};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use csv::{ReaderBuilder, StringRecord};
use thalweg::text::unescaped;
use thalweg::{Error, Fault, InFile};
use thalweg_io::urls;

use crate::common::{Failure, VerbResult};
use crate::signals::end_at_once;

/// The most bytes of a line. Ids are much shorter; a longer line is of another kind of file.
const MOST_LINE: usize = 64 << 10;

/// The mark with which some programs begin UTF-8.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// The most memory of a list of reads: room for 48 million ids of 36 letters. The budget does not
/// count the list, so that an endless one must end here.
pub(crate) const MOST_MEMORY: usize = 4 << 30;

/// What an id takes beside its letters: the string, and what the allocator adds.
pub(crate) const ID_MEMORY: usize = 48;

/// The name of the column of ids in tables of reads.
pub(crate) const ID_COLUMN: &str = "read_id";

/// Reads ids of reads from a file or pipe, one per line; `-` is standard input. Escapes as in the
/// tables that thalweg prints are undone. If the first line names a column `read_id`, separated by
/// tabs or commas, the list is a table, and the ids are in this column.
pub(crate) fn read_ids(path: &Path) -> Result<Vec<String>, Failure> {
    let mut ids = Vec::new();
    let mut memory = 0;
    let mut column = None;
    let mut is_first = true;
    for_each_line(path, "list of read ids", |line| {
        if std::mem::take(&mut is_first) {
            column = IdColumn::of_head(line);
            if column.is_some() {
                return Ok(());
            }
        }
        let id = match &column {
            None => line.trim().into(),
            Some(column) => column.of(line).ok_or_else(|| {
                let list = urls::shown_path(path);
                let what = format!("found the line {line:?}, expected a column {ID_COLUMN}");
                Failure::Said(format!("{list}: {what}"))
            })?,
        };
        memory += ID_MEMORY + id.len();
        if memory > MOST_MEMORY {
            let list = urls::shown_path(path);
            let what =
                format!("{list}: ids of more than {MOST_MEMORY} bytes; name fewer at a time");
            return Err(Failure::Usage(what));
        }
        ids.push(unescaped(&id).into_owned());
        Ok(())
    })?;
    Ok(ids)
}

/// Where the ids are in the lines of a table.
struct IdColumn {
    delimiter: u8,
    number: usize,
}

impl IdColumn {
    /// The column of ids, if a line is the head of a table that has one.
    fn of_head(line: &str) -> Option<Self> {
        b"\t,".iter().find_map(|&delimiter| {
            let cells = cells(line, delimiter)?;
            let number = cells.iter().position(|name| name.trim() == ID_COLUMN)?;
            Some(Self { delimiter, number })
        })
    }

    fn of(&self, line: &str) -> Option<String> {
        Some(cells(line, self.delimiter)?.get(self.number)?.trim().to_owned())
    }
}

/// The cells of a line of a table.
fn cells(line: &str, delimiter: u8) -> Option<StringRecord> {
    let mut row = ReaderBuilder::new();
    row.has_headers(false).delimiter(delimiter).buffer_capacity(line.len().max(1));
    row.from_reader(line.as_bytes()).into_records().next()?.ok()
}

/// Passes the lines of a file or pipe that are not blank to `f`, without their ends; `-` is
/// standard input. `what` names the list.
pub(crate) fn for_each_line(
    path: &Path,
    what: &'static str,
    f: impl FnMut(&str) -> VerbResult,
) -> VerbResult {
    with_list(path, what, |name, list| lines_of(name, what, list, f))
}

/// Passes the name of a file or pipe to `f`, and what reads it; `-` is standard input. `what` names
/// the list. A signal ends the program meanwhile, because a pipe is waited for.
pub(crate) fn with_list<T>(
    path: &Path,
    what: &'static str,
    f: impl FnOnce(&Arc<str>, &mut dyn BufRead) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let name: Arc<str> = urls::shown_path(path).into();
    if path == Path::new("-") {
        return end_at_once(|| f(&name, &mut io::stdin().lock()));
    }
    let meta = std::fs::metadata(path).map_err(|e| Error::io(&name, "reading", e))?;
    if !may_list(meta.file_type()) {
        let what = format!("a {what} in a folder or device").into();
        let advice = "give a file, a pipe, or - for standard input".into();
        return Err(Error::Unsupported { file: name, what, advice }.into());
    }
    // Opening a pipe waits for its writer.
    end_at_once(|| {
        let file = File::open(path).map_err(|e| Error::io(&name, "reading", e))?;
        f(&name, &mut BufReader::new(file))
    })
}

fn may_list(kind: FileType) -> bool {
    kind.is_file() || kind.is_fifo()
}

/// [`for_each_line`] of an open list.
fn lines_of(
    name: &Arc<str>,
    what: &'static str,
    mut list: impl BufRead,
    mut f: impl FnMut(&str) -> VerbResult,
) -> VerbResult {
    let mut line = Vec::new();
    let mut at = 0;
    let wrong = |at, fault: Fault| Err(fault.in_file(name, at, what).into());
    loop {
        line.clear();
        let mut rest = (&mut list).take(MOST_LINE as u64 + 1);
        let len =
            rest.read_until(b'\n', &mut line).map_err(|e| Error::io_at(name, "reading", at, e))?;
        if len == 0 {
            return Ok(());
        }
        if at == 0 && line.starts_with(BOM) {
            line.drain(..BOM.len());
        }
        if len > MOST_LINE {
            let found = format!("a line of more than {MOST_LINE} bytes");
            return wrong(at, Fault::new(0, found, format!("at most {MOST_LINE}")));
        }
        match std::str::from_utf8(&line) {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => f(line.trim_end_matches(['\r', '\n']))?,
            Err(_) => return wrong(at, Fault::new(0, "bytes that are not UTF-8", "text")),
        }
        at += len as u64;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::BufRead;

    use thalweg::text::unescaped;

    use super::{MOST_LINE, lines_of};
    use crate::common::Failure;

    fn ids(list: impl BufRead) -> Result<Vec<String>, String> {
        let mut ids = Vec::new();
        let read = lines_of(&"list".into(), "list", list, |id| {
            ids.push(unescaped(id.trim()).into_owned());
            Ok(())
        });
        match read {
            Ok(()) => Ok(ids),
            Err(Failure::Failed(error)) => Err(error.to_string()),
            Err(other) => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn ids_are_lines_without_the_space_around_them() {
        assert_eq!(ids(&b"a\r\n\n  b c \nd"[..]), Ok(["a", "b c", "d"].map(String::from).to_vec()));
        assert_eq!(ids(&br"a\n\t\\b"[..]), Ok(vec!["a\n\t\\b".to_owned()]));
        assert_eq!(ids(&b""[..]), Ok(Vec::new()));
        assert_eq!(ids(&[b'x'; MOST_LINE][..]).map(|ids| ids.len()), Ok(1));
    }

    #[test]
    fn endless_lines_and_other_bytes_are_errors() {
        let told = ids(std::io::BufReader::new(std::io::repeat(0))).unwrap_err();
        assert!(told.contains("byte 0: found a line of more than 65536 bytes"), "{told}");
        let told = ids(&b"a\n\xff\n"[..]).unwrap_err();
        assert!(told.contains("byte 2: found bytes that are not UTF-8"), "{told}");
    }
}
