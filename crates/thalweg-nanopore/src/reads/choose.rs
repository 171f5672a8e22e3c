//! Chooses reads of a set by id and by condition.

use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use thalweg_io::Result;
use thalweg_io::condition::Condition;

use super::{FILE_COLUMN, Located, ReadSet, ScanOptions, Selection};

/// Reads of a set, file by file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chosen {
    /// The number of each file that has some of them, and their ids.
    pub files: Vec<(usize, Vec<String>)>,
    /// The listed ids that no file has.
    pub missing: Vec<String>,
    /// How many reads were looked at, if a condition chose among them.
    pub of: Option<u64>,
}

impl ReadSet {
    /// The reads of a list for which a condition holds. Without a list it chooses among all reads;
    /// without a condition, all of the list are chosen, in its order. In a list, an id counts once.
    ///
    /// # Errors
    /// [`Error::Usage`](thalweg_io::Error::Usage) about the condition; those of [`ReadSet::locate`]
    /// and [`ReadSet::scan`].
    pub fn choose(
        &self,
        listed: Option<&[String]>,
        condition: Option<Condition>,
    ) -> Result<Chosen> {
        let located = listed.map(|ids| self.locate_once(ids)).transpose()?;
        let Some(condition) = condition else { return Ok(located.unwrap_or_default()) };
        let wanted: Option<HashSet<&str>> = located.as_ref().map(|chosen| {
            chosen.files.iter().flat_map(|(_, ids)| ids).map(String::as_str).collect()
        });
        let columns = vec!["read_id".to_owned(), FILE_COLUMN.to_owned()];
        let options = ScanOptions { columns, condition: Some(condition), ..ScanOptions::default() };
        let mut files: Vec<(usize, Vec<String>)> = Vec::new();
        let mut scan = self.scan(&Selection::All, &options)?;
        for batch in scan.by_ref() {
            let batch = batch?;
            let ids = batch.column(0).as_string::<i32>();
            let numbers = batch.column(1).as_dictionary::<Int32Type>().keys();
            for (id, file) in ids.iter().zip(numbers.values()) {
                let is_wanted =
                    |id: &&str| wanted.as_ref().is_none_or(|wanted| wanted.contains(id));
                let Some(id) = id.filter(is_wanted) else { continue };
                let file = *file as usize;
                match files.last_mut() {
                    Some((last, ids)) if *last == file => ids.push(id.to_owned()),
                    _ => files.push((file, vec![id.to_owned()])),
                }
            }
        }
        let missing = located.map(|chosen| chosen.missing).unwrap_or_default();
        Ok(Chosen { files, missing, of: Some(scan.looked_at()) })
    }

    fn locate_once(&self, listed: &[String]) -> Result<Chosen> {
        let mut seen = HashSet::new();
        let ids: Vec<String> = listed.iter().filter(|id| seen.insert(*id)).cloned().collect();
        let Located { files, missing } = self.locate(&ids)?;
        let missing = missing.into_iter().map(str::to_owned).collect();
        Ok(Chosen { files, missing, of: None })
    }
}
