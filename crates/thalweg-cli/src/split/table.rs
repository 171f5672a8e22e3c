//! Tables that give each read a value.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use csv::{ReaderBuilder, StringRecord};
use thalweg::Error;
use thalweg::text::unescaped;

use crate::common::Failure;
use crate::id_list::{BOM, ID_COLUMN, ID_MEMORY, MOST_MEMORY, with_list};

/// The most bytes of the line with the names of columns.
const MOST_HEAD: u64 = 1 << 20;

/// The value of each read of a table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadValues {
    /// The name of the column of values.
    name: String,
    values: HashMap<Box<str>, Arc<str>>,
}

impl ReadValues {
    /// Reads a table, CSV or TSV, from a file or from standard input. `by` names the column of
    /// values; it may be left out if there is one beside the ids.
    ///
    /// # Errors
    /// [`Failure::Said`] for a table without these columns, and for a read that has two values.
    pub(super) fn read(path: &Path, by: Option<&str>) -> Result<Self, Failure> {
        with_list(path, "table of reads", |name, table| Self::parse(name, table, by))
    }

    fn parse(name: &str, mut table: impl BufRead, by: Option<&str>) -> Result<Self, Failure> {
        let failed = |what: String| Failure::Said(format!("{name}: {what}"));
        let mut line = Vec::new();
        (&mut table)
            .take(MOST_HEAD)
            .read_until(b'\n', &mut line)
            .map_err(|e| Error::io(&name.into(), "reading", e))?;
        let delimiter = if line.contains(&b'\t') { b'\t' } else { b',' };
        let line = line.strip_prefix(BOM).unwrap_or(&line).to_vec();
        let table = io::Cursor::new(line).chain(table);
        let mut rows = ReaderBuilder::new().delimiter(delimiter).from_reader(table);
        let head = rows.headers().map_err(|e| failed(e.to_string()))?.clone();
        let place = |wanted: &str| head.iter().position(|column| column.trim() == wanted);
        let columns = || head.iter().collect::<Vec<_>>().join(", ");
        let Some(ids) = place(ID_COLUMN) else {
            let what = format!("found the columns {}, expected {ID_COLUMN} among them", columns());
            return Err(failed(what));
        };
        let values = match by {
            Some(by) => place(by),
            None => (0..head.len()).find(|&column| column != ids).filter(|_| head.len() == 2),
        };
        let Some(at) = values else {
            let what = match by {
                Some(by) => format!("found the columns {}, expected {by} among them", columns()),
                None => format!("found the columns {}; --by says which has the values", columns()),
            };
            return Err(failed(what));
        };
        let mut all: HashMap<Box<str>, Arc<str>> = HashMap::new();
        let mut row = StringRecord::new();
        // Few values are those of many reads.
        let mut known: HashSet<Arc<str>> = HashSet::new();
        let mut memory = 0;
        while rows.read_record(&mut row).map_err(|e| failed(e.to_string()))? {
            let (id, value) = (unescaped(row[ids].trim()), unescaped(row[at].trim()));
            let value = known.get(&*value).cloned().unwrap_or_else(|| {
                let value: Arc<str> = value.as_ref().into();
                known.insert(value.clone());
                value
            });
            memory += ID_MEMORY + id.len();
            if memory > MOST_MEMORY {
                return Err(failed(format!("reads of more than {MOST_MEMORY} bytes; split it")));
            }
            match all.entry(id.as_ref().into()) {
                Entry::Vacant(place) => drop(place.insert(value)),
                Entry::Occupied(place) if **place.get() == *value => {}
                Entry::Occupied(place) => {
                    let line = row.position().map_or(0, csv::Position::line);
                    let before = place.get();
                    let what = format!("line {line}: found {value:?} for the read {id}");
                    return Err(failed(format!(
                        "{what}, and {before:?} before; expected one value"
                    )));
                }
            }
        }
        Ok(Self { name: head[at].trim().to_owned(), values: all })
    }

    /// The name of the column of values.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The value of a read. `None` if the table does not have it.
    pub(super) fn of(&self, id: &str) -> Option<&str> {
        self.values.get(id).map(|value| &**value)
    }

    /// The values of all reads.
    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.values.values().map(|value| &**value)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(|id| &**id)
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn table(text: &str, by: Option<&str>) -> Result<ReadValues, String> {
        ReadValues::parse("t", text.as_bytes(), by).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn a_table_gives_each_read_a_value() {
        let csv = table("target,read_id\nx.pod5,a\n\"y,1\",b\nx.pod5,a\n", None).unwrap();
        assert_eq!((csv.of("a"), csv.of("b"), csv.of("c")), (Some("x.pod5"), Some("y,1"), None));
        assert_eq!((csv.name(), csv.len()), ("target", 2));
        let tsv = table("read_id\tlength\tbarcode\na\t5\t\nb\t6\tbc02\n", Some("barcode"));
        let tsv = tsv.unwrap();
        assert_eq!((tsv.of("a"), tsv.of("b")), (Some(""), Some("bc02")));
    }

    #[test]
    fn tables_without_the_columns_are_refused() {
        for (text, by, why) in [
            ("", None, "expected read_id"),
            ("id,x\na,1\n", None, "found the columns id, x, expected read_id"),
            ("read_id,x,y\na,1,2\n", None, "--by says which"),
            ("read_id,x\na,1\n", Some("z"), "expected z among them"),
            ("read_id\na\n", None, "--by says which"),
            ("read_id,x\na,1\na,2\n", None, "line 3: found \\\"2\\\" for the read a"),
            ("read_id,x\na\n", None, "record"),
        ] {
            let told = table(text, by).unwrap_err();
            assert!(told.contains(why), "{text:?}: {told}");
        }
    }
}
