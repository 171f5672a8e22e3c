//! Which read goes into which file: found by a scan, before anything is written.

use std::collections::{BTreeSet, HashMap, HashSet};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt32Type};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use thalweg::format::slow5::Merged;
use thalweg::reads::{FILE_COLUMN, ReadSet, ScanOptions, Selection};

use crate::common::Failure;

/// What makes files of reads.
#[derive(Debug)]
pub(super) enum Rule {
    /// The value of a column or attribute.
    Value(String),
    /// So many reads after each other.
    Reads(u64),
}

/// One file to make.
#[derive(Debug)]
pub(super) struct SplitPart {
    /// Its name without an ending.
    pub(super) name: String,
    pub(super) value: Option<String>,
    /// The read groups of the merged header that its reads have.
    pub(super) groups: BTreeSet<u32>,
}

/// A read, and the part it goes into.
#[derive(Debug)]
pub(super) struct Assigned {
    pub(super) id: Box<str>,
    pub(super) part: u32,
}

/// Parts, and the reads of each file in its order. About 60 bytes a read.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) parts: Vec<SplitPart>,
    files: Vec<Vec<Assigned>>,
}

/// Longest name that is made of a value.
const NAME_CHARACTERS: usize = 100;

impl Plan {
    pub(super) fn make(set: &ReadSet, merged: &Merged, rule: &Rule) -> Result<Self, Failure> {
        let mut plan = Self { parts: Vec::new(), files: set.paths().map(|_| Vec::new()).collect() };
        let mut columns: Vec<String> =
            ["read_id", "read_group", FILE_COLUMN].map(str::to_owned).to_vec();
        if let Rule::Value(name) = rule {
            columns.push(name.clone());
        }
        let options = ScanOptions { columns, ..ScanOptions::default() };
        let mut maker = PartMaker { rule, known: HashMap::new(), names: HashSet::new(), before: 0 };
        for batch in set.scan(&Selection::All, &options)? {
            plan.batch(&batch?, merged, &mut maker)?;
        }
        Ok(plan)
    }

    /// The reads of a file, in its order.
    pub(super) fn reads(&self, file: usize) -> &[Assigned] {
        self.files.get(file).map(Vec::as_slice).unwrap_or_default()
    }

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
            // A read group is a number within its file: the merged one means the same in all.
            let group = merged.group(file, groups.value(row));
            let value = match &values {
                Some(_) if by_group => group.map(|group| group.to_string()),
                Some(values) => Some(values.value(row).try_to_string().map_err(failed)?),
                None => None,
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

/// Finds or makes parts.
struct PartMaker<'a> {
    rule: &'a Rule,
    known: HashMap<String, u32>,
    names: HashSet<String>,
    /// Reads so far.
    before: u64,
}

impl PartMaker<'_> {
    fn part(&mut self, value: Option<String>, parts: &mut Vec<SplitPart>) -> u32 {
        self.before += 1;
        let (value, stem) = match (self.rule, value) {
            (Rule::Reads(reads), _) => {
                let number = (self.before - 1) / reads;
                if number < parts.len() as u64 {
                    return number as u32;
                }
                (None, format!("part-{number:05}"))
            }
            (Rule::Value(name), value) => {
                let value = value.unwrap_or_default();
                if let Some(&part) = self.known.get(&value) {
                    return part;
                }
                self.known.insert(value.clone(), parts.len() as u32);
                let stem =
                    if value.is_empty() { format!("no-{}", plain(name)) } else { plain(&value) };
                (Some(value), stem)
            }
        };
        let mut name = stem.clone();
        let mut again = 1;
        // Two values may look the same on a file system that does not tell cases apart.
        while !self.names.insert(name.to_lowercase()) {
            again += 1;
            name = format!("{stem}-{again}");
        }
        parts.push(SplitPart { name, value, groups: BTreeSet::new() });
        (parts.len() - 1) as u32
    }
}

/// A value as the name of a file: no folders, no hidden files, nothing that a shell minds.
fn plain(value: &str) -> String {
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
        let names = ["a-1.b", "../../etc/passwd", ".", "-rf", "a b\tc"].map(plain);
        assert_eq!(names, ["a-1.b", "_.._.._etc_passwd", "_.", "_-rf", "a_b_c"]);
        assert_eq!(plain(&"x".repeat(500)).len(), NAME_CHARACTERS);
    }

    #[test]
    fn names_are_distinct() {
        let rule = Rule::Value("run_id".into());
        let mut maker =
            PartMaker { rule: &rule, known: HashMap::new(), names: HashSet::new(), before: 0 };
        let mut parts = Vec::new();
        for value in ["a/b", "a_b", "A_B", "a/b", ""] {
            maker.part(Some(value.into()), &mut parts);
        }
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["a_b", "a_b-2", "A_B-3", "no-run_id"]);
    }
}
