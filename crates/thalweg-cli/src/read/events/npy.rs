//! Events as numpy's arrays: a folder for each bank, with a file for each column.

use std::path::Path;

use thalweg::nexus::{Bank, Batch, Number};
use thalweg::write::{NpyArray, NpyFolder};

/// numpy's name of a type of numbers.
fn descr(number: Number) -> String {
    let kind = match number {
        Number::F32 | Number::F64 => 'f',
        Number::I8 | Number::I16 | Number::I32 | Number::I64 => 'i',
        Number::U8 | Number::U16 | Number::U32 | Number::U64 => 'u',
    };
    format!("{}{kind}{}", if number.size() == 1 { '|' } else { '<' }, number.size())
}

/// Folders of arrays that are being written, bank by bank.
pub(super) struct Arrays {
    folder: NpyFolder,
    /// The bank whose turn it is.
    open: Option<(String, Columns)>,
    done: Vec<String>,
}

struct Columns {
    ids: Option<NpyArray>,
    offsets: Option<NpyArray>,
    times: NpyArray,
    pulses: NpyArray,
}

impl Columns {
    fn create(folder: &NpyFolder, bank: &Bank) -> thalweg::Result<Self> {
        let array = |name: &str, descr: &str, size| folder.array(&format!("{}/{name}", bank.name()), descr, size, &[]);
        let numbers = |name: &str, number: Option<Number>| number.map(|n| array(name, &descr(n), n.size())).transpose();
        Ok(Self {
            ids: numbers("event_id", bank.id())?,
            offsets: numbers("event_time_offset", bank.offset())?,
            // What is not known is NaT.
            times: array("pulse_time", "<M8[ns]", size_of::<i64>())?,
            pulses: array("pulse", "<i8", size_of::<i64>())?,
        })
    }

    fn push(&mut self, batch: &Batch<'_>) -> thalweg::Result<()> {
        self.ids.as_mut().map_or(Ok(()), |ids| ids.push(batch.ids))?;
        self.offsets.as_mut().map_or(Ok(()), |offsets| offsets.push(batch.offsets))?;
        self.times.push(&little_endian(batch.times))?;
        self.pulses.push(&little_endian(batch.pulses))
    }

    fn finish(self) -> thalweg::Result<()> {
        let arrays = [self.ids, self.offsets, Some(self.times), Some(self.pulses)];
        arrays.into_iter().flatten().try_for_each(|array| array.finish(None))
    }
}

fn little_endian(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

impl Arrays {
    pub(super) fn create(path: &Path) -> thalweg::Result<Self> {
        Ok(Self { folder: NpyFolder::create(path)?, open: None, done: Vec::new() })
    }

    pub(super) fn push(&mut self, bank: &Bank, batch: &Batch<'_>) -> thalweg::Result<()> {
        self.turn_to(bank)?;
        self.open.as_mut().map_or(Ok(()), |(_, columns)| columns.push(batch))
    }

    fn turn_to(&mut self, bank: &Bank) -> thalweg::Result<()> {
        if self.open.as_ref().is_some_and(|(path, _)| path == bank.path()) {
            return Ok(());
        }
        self.close()?;
        self.open = Some((bank.path().to_owned(), Columns::create(&self.folder, bank)?));
        Ok(())
    }

    fn close(&mut self) -> thalweg::Result<()> {
        let Some((path, columns)) = self.open.take() else { return Ok(()) };
        self.done.push(path);
        columns.finish()
    }

    pub(super) fn finish(mut self, banks: &[&Bank]) -> thalweg::Result<()> {
        self.close()?;
        for bank in banks {
            if !self.done.iter().any(|path| path == bank.path()) {
                self.turn_to(bank)?;
            }
        }
        self.close()?;
        self.folder.finish()
    }
}
