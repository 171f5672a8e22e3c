//! Events and logs as numpy's arrays: a folder for each bank or log, with a file for each column.

use std::collections::HashMap;
use std::path::Path;

use thalweg::new_file::{NpyArray, NpyFolder};
use thalweg::nexus::{Bank, EventBatch, EventColumn, Log, LogColumn, NO_TIME, Nexus};

use super::logs::{read, seconds};
use crate::common::VerbResult;

/// More banks are written one after the other: each takes up to five open files.
pub(super) const MOST_OPEN: usize = 128;

/// Folders of arrays that are being written: all banks at the same time, or one after the other if
/// there are too many.
pub(super) struct Arrays {
    folder: NpyFolder,
    /// The open arrays of each bank, by its path.
    open: HashMap<String, BankColumns>,
    /// How many banks may be open.
    most: usize,
    /// The paths of banks that are finished.
    done: Vec<String>,
}

/// The arrays of a bank that are being written.
struct BankColumns {
    /// In the order of [`EventColumn::ALL`].
    own: [Option<NpyArray>; 3],
    times: NpyArray,
    pulses: NpyArray,
}

impl BankColumns {
    fn create(folder: &NpyFolder, bank: &Bank) -> thalweg::Result<Self> {
        let array = |name: &str, descr: &str, size| {
            folder.array(&format!("{}/{name}", bank.name()), descr, size, &[])
        };
        let mut own = [None, None, None];
        for (column, own) in EventColumn::ALL.into_iter().zip(&mut own) {
            *own = bank
                .number(column)
                .map(|n| array(column.name(), n.name(), n.size()))
                .transpose()?;
        }
        Ok(Self {
            own,
            // Times that are not known are NaT.
            times: array("pulse_time", "<M8[ns]", size_of::<i64>())?,
            pulses: array("pulse", "<i8", size_of::<i64>())?,
        })
    }

    fn push(&mut self, batch: &EventBatch<'_>) -> thalweg::Result<()> {
        for (own, bytes) in self.own.iter_mut().zip(batch.columns) {
            own.as_mut().map_or(Ok(()), |own| own.push(bytes))?;
        }
        self.times.push(&little_endian(batch.times))?;
        self.pulses.push(&little_endian(batch.pulses))
    }

    fn finish(self) -> thalweg::Result<()> {
        let always = [self.times, self.pulses];
        self.own.into_iter().flatten().chain(always).try_for_each(|array| array.finish(None))
    }
}

fn little_endian(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

impl Arrays {
    /// Creates the folder. At most `most` banks are written at the same time.
    pub(super) fn create(path: &Path, most: usize) -> thalweg::Result<Self> {
        Ok(Self { folder: NpyFolder::create(path)?, open: HashMap::new(), most, done: Vec::new() })
    }

    pub(super) fn push(&mut self, bank: &Bank, batch: &EventBatch<'_>) -> thalweg::Result<()> {
        self.columns_of(bank)?.push(batch)
    }

    /// The arrays of a bank. Opens them, and closes all others first if too many are open.
    fn columns_of(&mut self, bank: &Bank) -> thalweg::Result<&mut BankColumns> {
        if !self.open.contains_key(bank.path()) {
            if self.open.len() >= self.most {
                self.close()?;
            }
            self.open.insert(bank.path().to_owned(), BankColumns::create(&self.folder, bank)?);
        }
        let missing = || thalweg::Error::Usage("a bank without arrays".into());
        self.open.get_mut(bank.path()).ok_or_else(missing)
    }

    fn close(&mut self) -> thalweg::Result<()> {
        for (path, columns) in self.open.drain() {
            self.done.push(path);
            columns.finish()?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self, banks: &[&Bank]) -> thalweg::Result<()> {
        self.close()?;
        for bank in banks {
            if !self.done.iter().any(|path| path == bank.path()) {
                self.columns_of(bank)?;
            }
        }
        self.close()?;
        self.folder.finish()
    }
}

/// Writes logs: `time` (NaT where it is not known), `seconds` since the start, and `value` or
/// `text`.
pub(super) fn logs(nexus: &Nexus<'_>, logs: &[&Log], to: &Path) -> VerbResult {
    let folder = NpyFolder::create(to)?;
    for log in logs {
        let Some(read) = read(nexus, log)? else { continue };
        let write = |name: &str, descr: &str, size: usize, bytes: &[u8]| {
            let mut array = folder.array(&format!("{}/{name}", log.path()), descr, size, &[])?;
            array.push(bytes)?;
            array.finish(None)
        };
        let start = log.start();
        let times: Vec<i64> =
            read.times.iter().map(|&time| if start.is_some() { time } else { NO_TIME }).collect();
        write("time", "<M8[ns]", size_of::<i64>(), &little_endian(&times))?;
        let since = read.times.iter().flat_map(|&time| seconds(time, start).to_le_bytes());
        write("seconds", "<f8", size_of::<f64>(), &since.collect::<Vec<u8>>())?;
        match &read.values {
            LogColumn::Numbers(numbers) => {
                let bytes: Vec<u8> =
                    numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
                write("value", "<f8", size_of::<f64>(), &bytes)?;
            }
            LogColumn::Text(texts) => {
                let longest = texts.iter().map(String::len).max().unwrap_or(0).max(1);
                let mut bytes = Vec::with_capacity(texts.len() * longest);
                for text in texts {
                    bytes.extend(text.as_bytes());
                    bytes.resize(bytes.len() + longest - text.len(), 0);
                }
                write("text", &format!("|S{longest}"), longest, &bytes)?;
            }
        }
    }
    Ok(folder.finish()?)
}
