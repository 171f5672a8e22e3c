//! Test files that the caller of a suite can make. This crate knows no file format. It passes each
//! `synth` table of a suite to the caller's [`TestFileMaker`], which returns a [`TestFile`].

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::toml_table::{Problems, TomlTable, expected, listed, string, whole};
use crate::Result;
use crate::units::{parse_bytes, parse_count};

/// Makes test files from the `synth` tables of suites.
pub trait TestFileMaker {
    /// The values of `kind` that this maker knows.
    fn kinds(&self) -> &[&'static str];

    /// Reads the recipe of a file of `kind`, which is one of [`TestFileMaker::kinds`]. `None` if
    /// the table has a mistake that leaves no recipe; `table` keeps the message.
    fn parse(
        &self,
        kind: &str,
        seed: u64,
        table: &mut SynthTable<'_, '_, '_>,
    ) -> Option<Arc<dyn TestFile>>;
}

/// The recipe of a test file. It makes the same bytes on every machine.
pub trait TestFile: fmt::Debug + Send + Sync {
    /// A name that contains the whole recipe. Two recipes with the same name make the same bytes,
    /// so a file with this name need not be made again.
    fn file_name(&self) -> String;

    /// The approximate size of the file, in bytes.
    fn about_bytes(&self) -> u64;

    /// Writes the file to `path`, which appears when it is complete.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled) soon after `stopped` returns true; an error of
    /// the writer otherwise.
    fn write(&self, path: &Path, stopped: &dyn Fn() -> bool) -> Result<()>;
}

impl PartialEq for dyn TestFile {
    fn eq(&self, other: &Self) -> bool {
        self.file_name() == other.file_name()
    }
}

/// A maker that knows no kind of file, so that each `synth` table is a mistake.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTestFiles;

impl TestFileMaker for NoTestFiles {
    fn kinds(&self) -> &[&'static str] {
        &[]
    }

    fn parse(
        &self,
        _kind: &str,
        _seed: u64,
        _table: &mut SynthTable<'_, '_, '_>,
    ) -> Option<Arc<dyn TestFile>> {
        None
    }
}

/// A `synth` table. Each method reads the value of one key. It returns `None` for an absent key,
/// and for a value of the wrong type, which it reports with its line and column.
pub struct SynthTable<'s, 'a, 't> {
    table: TomlTable<'a, 't>,
    problems: &'s mut Problems,
}

impl SynthTable<'_, '_, '_> {
    /// Reads a whole number that is at least `least`.
    pub fn whole(&mut self, key: &'static str, least: u64) -> Option<u64> {
        self.table.read(key, self.problems, |value| whole(value, least)).map(|n| n.value)
    }

    /// Reads a positive count: a number, or a string such as "600M".
    pub fn count(&mut self, key: &'static str) -> Option<u64> {
        let count = self.table.read(key, self.problems, |value| {
            let count = match string(value) {
                Ok(text) => parse_count(&text)?,
                Err(_) => whole(value, 1)?,
            };
            if count == 0 { Err(expected("a count as in \"600M\"", value)) } else { Ok(count) }
        });
        count.map(|n| n.value)
    }

    /// Reads a number of bytes: a string such as "1.6GB".
    pub fn bytes(&mut self, key: &'static str) -> Option<u64> {
        let bytes = self.table.read(key, self.problems, |value| parse_bytes(&string(value)?));
        bytes.map(|n| n.value)
    }

    /// Reads true or false.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.table.flag(key, self.problems)
    }

    /// Reads a string with `parse`. An error of `parse` becomes the message.
    pub fn word<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.table.read(key, self.problems, |value| parse(&string(value)?)).map(|word| word.value)
    }

    /// Reads a positive whole number, which `number` converts, or a string, which `parse` converts.
    pub fn number_or_word<T>(
        &mut self,
        key: &'static str,
        number: impl FnOnce(u64) -> T,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let read = self.table.read(key, self.problems, |value| match whole(value, 1) {
            Ok(n) => Ok(number(n)),
            Err(_) => parse(&string(value)?),
        });
        read.map(|read| read.value)
    }

    /// Reports a mistake that concerns the table as a whole.
    pub fn reject(&mut self, what: impl fmt::Display) {
        self.problems.add(&self.table.at, format!("`synth`: {what}"));
    }
}

/// Reads a `synth` table.
pub(super) fn test_file(
    mut table: TomlTable<'_, '_>,
    maker: &dyn TestFileMaker,
    problems: &mut Problems,
) -> Option<Arc<dyn TestFile>> {
    let kind = table.required("kind", problems);
    let seed = table.read("seed", problems, |value| whole(value, 0)).map_or(1, |seed| seed.value);
    let kind = kind?;
    if !maker.kinds().contains(&kind.value.as_str()) {
        let quoted: Vec<String> = maker.kinds().iter().map(|kind| format!("{kind:?}")).collect();
        let known = listed(&quoted.iter().map(String::as_str).collect::<Vec<_>>());
        let found = &kind.value;
        problems.add(&kind.at, format!("`kind` of `synth`: expected {known}, found {found:?}"));
        return None;
    }
    let mut table = SynthTable { table, problems };
    let file = maker.parse(&kind.value, seed, &mut table);
    table.table.finish(table.problems);
    file
}
