//! Lists of read ids, as `--ids` takes them.

use std::fs::{File, FileType};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use thalweg::text::unescaped;
use thalweg::{Error, Fault, InFile};

use crate::common::Failure;

/// The most bytes of a line. Ids are much shorter; a longer line is of another kind of file.
const MOST_LINE: usize = 64 << 10;

/// The most bytes of a list: room for 58 million ids of 36 letters. The budget does not count the
/// list, so that an endless one must end here.
const MOST_LIST: u64 = 2 << 30;

/// Reads ids of reads from a file or pipe, one per line; `-` is standard input. Escapes as in the
/// tables that thalweg prints are undone.
pub(crate) fn read_ids(path: &Path) -> Result<Vec<String>, Failure> {
    let name: Arc<str> = path.to_string_lossy().into();
    if path == Path::new("-") {
        return Ok(ids_of(&name, io::stdin().lock())?);
    }
    let meta = std::fs::metadata(path).map_err(|e| Error::io(&name, "reading", e))?;
    if !may_list(meta.file_type()) {
        let what = "a list of ids in a folder or device".into();
        let advice = "give a file, a pipe, or - for standard input".into();
        return Err(Error::Unsupported { file: name, what, advice }.into());
    }
    let file = File::open(path).map_err(|e| Error::io(&name, "reading", e))?;
    Ok(ids_of(&name, BufReader::new(file))?)
}

fn may_list(kind: FileType) -> bool {
    kind.is_file() || kind.is_fifo()
}

/// The lines of `list` that are not empty.
fn ids_of(name: &Arc<str>, mut list: impl BufRead) -> thalweg::Result<Vec<String>> {
    let mut ids = Vec::new();
    let mut line = Vec::new();
    let mut at = 0;
    let wrong = |at, found: String, expected: String| {
        Err(Fault::new(0, found, expected).in_file(name, at, "list of read ids"))
    };
    loop {
        line.clear();
        let mut rest = (&mut list).take(MOST_LINE as u64 + 1);
        let len =
            rest.read_until(b'\n', &mut line).map_err(|e| Error::io_at(name, "reading", at, e))?;
        if len == 0 {
            return Ok(ids);
        }
        if len > MOST_LINE {
            let most = format!("at most {MOST_LINE}");
            return wrong(at, format!("a line of more than {MOST_LINE} bytes"), most);
        }
        if at + len as u64 > MOST_LIST {
            let most = format!("at most {MOST_LIST}");
            return wrong(at, format!("a list of more than {MOST_LIST} bytes"), most);
        }
        match std::str::from_utf8(&line).map(str::trim) {
            Ok("") => {}
            Ok(id) => ids.push(unescaped(id).into_owned()),
            Err(_) => return wrong(at, "bytes that are not UTF-8".into(), "a read id".into()),
        }
        at += len as u64;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{MOST_LINE, ids_of};

    fn ids(list: &[u8]) -> Result<Vec<String>, String> {
        ids_of(&"list".into(), list).map_err(|error| error.to_string())
    }

    #[test]
    fn ids_are_lines_without_the_space_around_them() {
        assert_eq!(ids(b"a\r\n\n  b c \nd"), Ok(["a", "b c", "d"].map(String::from).to_vec()));
        assert_eq!(ids(br"a\n\t\\b"), Ok(vec!["a\n\t\\b".to_owned()]));
        assert_eq!(ids(b""), Ok(Vec::new()));
        assert_eq!(ids(&[b'x'; MOST_LINE]).map(|ids| ids.len()), Ok(1));
    }

    #[test]
    fn endless_lines_and_other_bytes_are_errors() {
        let endless = ids_of(&"zeros".into(), std::io::BufReader::new(std::io::repeat(0)));
        let told = endless.unwrap_err().to_string();
        assert!(told.contains("byte 0: found a line of more than 65536 bytes"), "{told}");
        let told = ids(b"a\n\xff\n").unwrap_err();
        assert!(told.contains("byte 2: found bytes that are not UTF-8"), "{told}");
    }
}
