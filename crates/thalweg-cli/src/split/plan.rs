//! Decides which read goes into which file, from a scan, before anything is written.

use std::collections::{BTreeSet, HashMap, HashSet};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt32Type};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use thalweg::format::Format;
use thalweg::format::slow5::Merged;
use thalweg::reads::{FILE_COLUMN, ReadSet, ScanOptions, Selection};

use super::table::ReadValues;
use crate::common::Failure;

/// How reads are distributed over files.
#[derive(Debug)]
pub(super) enum Rule {
    /// A file for each value of this column or attribute.
    Value(String),
    /// A file for each value that a table gives reads.
    Table(ReadValues),
    /// A file for each group of this many consecutive reads.
    Reads(u64),
}

impl Rule {
    /// The name, without an ending, of the file for a value.
    fn stem(&self, value: &str) -> String {
        let (column, value) = match self {
            Self::Value(name) => (&**name, value),
            Self::Table(table) => (table.name(), without_format(value)),
            Self::Reads(_) => ("", value),
        };
        if value.is_empty() { format!("no-{}", file_name(column)) } else { file_name(value) }
    }
}

/// A file to write.
#[derive(Debug)]
pub(super) struct SplitPart {
    /// Its name without an ending.
    pub(super) name: String,
    /// The value that its reads have, if the rule is about a value.
    pub(super) value: Option<String>,
    /// The read groups of its reads, by their numbers in the merged header.
    pub(super) groups: BTreeSet<u32>,
}

/// A read, and the number of the part that it goes into.
#[derive(Debug)]
pub(super) struct Assigned {
    pub(super) id: Box<str>,
    pub(super) part: u32,
}

/// All parts, and all reads. Takes about 60 bytes per read.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) parts: Vec<SplitPart>,
    /// The reads of each file of the data set, in its order.
    files: Vec<Vec<Assigned>>,
    /// The files of which some reads go nowhere, and how many reads these are.
    partial: HashSet<usize>,
    pub(super) left_out: u64,
}

/// Longer values are cut where they become names of files.
const NAME_CHARACTERS: usize = 100;

impl Plan {
    pub(super) fn make(set: &ReadSet, merged: &Merged, rule: &Rule) -> Result<Self, Failure> {
        let files = set.paths().map(|_| Vec::new()).collect();
        let mut plan = Self { files, ..Self::default() };
        let mut columns: Vec<String> =
            ["read_id", "read_group", FILE_COLUMN].map(str::to_owned).to_vec();
        if let Rule::Value(name) = rule {
            columns.push(name.clone());
        }
        let options = ScanOptions { columns, ..ScanOptions::default() };
        let mut maker =
            PartMaker { rule, known: HashMap::new(), names: HashSet::new(), assigned: 0 };
        for batch in set.scan(&Selection::All, &options)? {
            plan.batch(&batch?, merged, &mut maker)?;
        }
        Ok(plan)
    }

    /// The reads of a file, in its order.
    pub(super) fn reads(&self, file: usize) -> &[Assigned] {
        self.files.get(file).map(Vec::as_slice).unwrap_or_default()
    }

    /// The reads of all files that go somewhere.
    pub(super) fn assigned(&self) -> impl Iterator<Item = &Assigned> {
        self.files.iter().flatten()
    }

    /// How many reads go somewhere.
    pub(super) fn reads_in_all(&self) -> usize {
        self.files.iter().map(Vec::len).sum()
    }

    /// Whether all reads of a file go somewhere.
    pub(super) fn has_all(&self, file: usize) -> bool {
        !self.partial.contains(&file)
    }

    /// Assigns the reads of a batch of the scan.
    fn batch(
        &mut self,
        batch: &RecordBatch,
        merged: &Merged,
        maker: &mut PartMaker<'_>,
    ) -> Result<(), Failure> {
        let ids = batch.column(0).as_string::<i32>();
        let groups = batch.column(1).as_primitive::<UInt32Type>();
        let files = batch.column(2).as_dictionary::<Int32Type>().keys();
        let by_group = matches!(maker.rule, Rule::Value(name) if name == "read_group");
        let options = FormatOptions::new();
        let failed = |e: arrow_schema::ArrowError| Failure::Said(e.to_string());
        let values = batch
            .columns()
            .get(3)
            .map(|column| ArrayFormatter::try_new(column, &options))
            .transpose();
        let values = values.map_err(failed)?;
        for row in 0..batch.num_rows() {
            let file = files.value(row) as usize;
            // The number of a read group is valid within its file; the merged number, in all files.
            let group = merged.group(file, groups.value(row));
            let value = match (maker.rule, &values) {
                (Rule::Table(table), _) => {
                    let Some(value) = table.of(ids.value(row)) else {
                        self.partial.insert(file);
                        self.left_out += 1;
                        continue;
                    };
                    Some(value.to_owned())
                }
                (_, Some(_)) if by_group => group.map(|group| group.to_string()),
                (_, Some(values)) => Some(values.value(row).try_to_string().map_err(failed)?),
                (_, None) => None,
            };
            let part = maker.part(value, &mut self.parts);
            if let Some(part) = self.parts.get_mut(part as usize) {
                part.groups.extend(group);
            }
            if let Some(reads) = self.files.get_mut(file) {
                reads.push(Assigned { id: ids.value(row).into(), part });
            }
        }
        Ok(())
    }
}

/// Finds the part of a read, or makes a new one.
struct PartMaker<'a> {
    rule: &'a Rule,
    /// The number of the part for each value.
    known: HashMap<String, u32>,
    /// The names of all parts, in lower case.
    names: HashSet<String>,
    /// Reads that were assigned so far by a rule about their number.
    assigned: u64,
}

impl PartMaker<'_> {
    /// The number of the part for the next read, which has this value.
    fn part(&mut self, value: Option<String>, parts: &mut Vec<SplitPart>) -> u32 {
        let (value, stem) = match self.rule {
            Rule::Reads(reads) => {
                let number = self.assigned / reads;
                self.assigned += 1;
                if number < parts.len() as u64 {
                    return number as u32;
                }
                (None, format!("part-{number:05}"))
            }
            Rule::Value(_) | Rule::Table(_) => {
                let value = value.unwrap_or_default();
                if let Some(&part) = self.known.get(&value) {
                    return part;
                }
                self.known.insert(value.clone(), parts.len() as u32);
                let stem = self.rule.stem(&value);
                (Some(value), stem)
            }
        };
        let name = self.unused_name(&stem);
        parts.push(SplitPart { name, value, groups: BTreeSet::new() });
        (parts.len() - 1) as u32
    }

    /// The stem, or the stem with a number appended if it is in use. Some file systems ignore case,
    /// so names that differ only in case count as equal.
    fn unused_name(&mut self, stem: &str) -> String {
        let mut name = stem.to_owned();
        let mut number = 1;
        while !self.names.insert(name.to_lowercase()) {
            number += 1;
            name = format!("{stem}-{number}");
        }
        name
    }
}

/// The name of a file of reads without the end that says its format.
fn without_format(name: &str) -> &str {
    let ends = |format: Format| name.strip_suffix(format.extension())?.strip_suffix('.');
    Format::ALL.into_iter().find_map(ends).filter(|stem| !stem.is_empty()).unwrap_or(name)
}

/// A value as the name of a file: without folders, a leading dot, or characters that are special in
/// a shell.
fn file_name(value: &str) -> String {
    let allowed =
        |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let name: String = value.chars().take(NAME_CHARACTERS).map(allowed).collect();
    if name.starts_with(['.', '-']) { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_harmless_names() {
        let names = ["a-1.b", "../../etc/passwd", ".", "-rf", "a b\tc"].map(file_name);
        assert_eq!(names, ["a-1.b", "_.._.._etc_passwd", "_.", "_-rf", "a_b_c"]);
        assert_eq!(file_name(&"x".repeat(500)).len(), NAME_CHARACTERS);
    }

    #[test]
    fn names_are_distinct() {
        let rule = Rule::Value("run_id".into());
        let mut maker =
            PartMaker { rule: &rule, known: HashMap::new(), names: HashSet::new(), assigned: 0 };
        let mut parts = Vec::new();
        for value in ["a/b", "a_b", "A_B", "a/b", ""] {
            maker.part(Some(value.into()), &mut parts);
        }
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["a_b", "a_b-2", "A_B-3", "no-run_id"]);
    }
}
