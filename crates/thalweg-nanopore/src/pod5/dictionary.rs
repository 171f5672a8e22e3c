//! Dictionaries: the values that a table's indices refer to, from the batches that define and
//! extend them.

use thalweg_io::Fault;
use thalweg_io::arrow_ipc::Head;

use super::batch::{BatchArray, TableBatch};
use super::schema::ColumnSchema;

/// All dictionaries of a table.
#[derive(Debug, Default)]
pub struct Dictionaries {
    parts: Vec<DictionaryPart>,
}

#[derive(Debug)]
struct DictionaryPart {
    id: i64,
    head: Head,
    body: Vec<u8>,
}

impl Dictionaries {
    /// Adds a dictionary batch. Batches are added in the order of the table's footer.
    ///
    /// # Errors
    /// A record batch, and a batch that replaces a dictionary: an IPC file may only extend one.
    pub fn push(&mut self, head: Head, body: Vec<u8>) -> Result<(), Fault> {
        let Some((id, is_delta)) = head.dictionary else {
            return Err(Fault::new(0, "a record batch", "a dictionary's batch"));
        };
        if !is_delta && self.parts.iter().any(|part| part.id == id) {
            return Err(Fault::new(
                0,
                format!("dictionary {id} a second time"),
                "an extension of it",
            ));
        }
        self.parts.push(DictionaryPart { id, head, body });
        Ok(())
    }

    /// The batches of a column's dictionary.
    pub(super) fn parts<'a>(
        &'a self,
        column: &ColumnSchema,
    ) -> impl Iterator<Item = Result<TableBatch<'a>, Fault>> + use<'a> {
        let id = column.dictionary.map(|(id, _)| id);
        let parts = self.parts.iter().filter(move |part| Some(part.id) == id);
        parts.map(|part| Ok(TableBatch { head: &part.head, body: &part.body }))
    }

    /// Calls `f` with every value of `leaf`, in the order of the indices. `leaf` is `column` or a
    /// child of it.
    pub(super) fn each(
        &self,
        column: &ColumnSchema,
        leaf: &ColumnSchema,
        mut f: impl FnMut(&BatchArray<'_>, usize) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let inner = column.in_dictionary();
        let leaf = if std::ptr::eq(column, leaf) { Some(&inner) } else { inner.child(&leaf.name) };
        let Some(leaf) = leaf else { return Ok(()) };
        for part in self.parts(column) {
            let part = part?;
            let array = part.array(leaf)?;
            for i in 0..array.len() {
                f(&array, i)?;
            }
        }
        Ok(())
    }
}
