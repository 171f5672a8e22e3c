//! Logs: values, and the times from which they hold.

use thalweg_io::{Error, Result};

use super::number::NumericType;
use super::{ColumnDataset, Nexus, Unit};
use crate::array::Found;
use crate::arrays::Dataset;

/// A log: a group of class `NXlog`, or one with the datasets `time` and `value`.
#[derive(Debug)]
pub struct Log {
    pub(super) path: String,
    pub(super) time: ColumnDataset,
    pub(super) value: Dataset,
    pub(super) unit: Unit,
    pub(super) start: Option<i64>,
    pub(super) units: Option<String>,
}

/// The contents of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogValues {
    /// The times in nanoseconds: since 1970 if the start is known, else since the start.
    /// [`NO_TIME`](super::NO_TIME) for invalid times.
    pub times: Vec<i64>,
    /// The values, one for each time.
    pub values: LogColumn,
}

/// Values of a log.
#[derive(Debug, Clone, PartialEq)]
pub enum LogColumn {
    /// Numbers, each as the nearest f64.
    Numbers(Vec<f64>),
    /// Strings.
    Text(Vec<String>),
}

impl LogColumn {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Text(text) => text.len(),
        }
    }
}

impl Log {
    /// The group's path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The number of entries.
    pub fn len(&self) -> u64 {
        self.time.len
    }

    /// Whether the log has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The start that its times count from, in nanoseconds since 1970, if known.
    pub fn start(&self) -> Option<i64> {
        self.start
    }

    /// The unit of its values, as the file states it.
    pub fn units(&self) -> Option<&str> {
        self.units.as_deref()
    }
}

impl Nexus<'_> {
    /// Reads a log: as many values as there are times.
    ///
    /// # Errors
    /// The first defect; [`Error::Unsupported`] if the values are not one number or string for each
    /// time, or do not fit into the memory budget.
    pub fn log(&self, log: &Log) -> Result<LogValues> {
        let refused = |what: String| Error::Unsupported {
            file: self.file.store().name().clone(),
            what: format!("{}: {what}", log.path).into(),
            advice: "read its datasets by their paths".into(),
        };
        let memory = self.file.options().budget.memory as u64;
        let check = |shape: &[u64], size: usize| {
            let len: u64 = shape.iter().product();
            let is_list = len == shape.first().copied().unwrap_or(1);
            if is_list && len.saturating_mul(size as u64) <= memory {
                Ok(())
            } else {
                Err(refused(format!("a log of {shape:?} values")))
            }
        };
        let times = self.numbers(&log.time, |time| log.unit.after(log.start.unwrap_or(0), time))?;
        let mut values = LogColumn::Text(Vec::new());
        let text = |bytes: &[u8]| {
            let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        match &log.value.found {
            Found::Array(array) => {
                check(&array.shape, array.dtype.size())?;
                let number = NumericType::of(&array.dtype);
                match number {
                    Some(_) => values = LogColumn::Numbers(Vec::new()),
                    None if array.dtype.to_string().starts_with("|S") => {}
                    None => {
                        return Err(refused(format!("a log of elements of type {}", array.dtype)));
                    }
                }
                self.file.values(&log.value, &mut |part| {
                    match (&mut values, number) {
                        (LogColumn::Numbers(numbers), Some(number)) => {
                            number.floats(part, |value| numbers.push(value));
                        }
                        (LogColumn::Text(all), _) => {
                            all.extend(part.chunks_exact(array.dtype.size()).map(text));
                        }
                        (LogColumn::Numbers(_), None) => {}
                    }
                    Ok(())
                })?;
            }
            Found::Other(what) => match self.file.variable(&log.value)? {
                Some(strings) if strings.item.is_none() => {
                    check(&strings.shape, size_of::<String>())?;
                    self.file.each_variable(&log.value, &mut |bytes| {
                        if let LogColumn::Text(all) = &mut values {
                            all.push(text(bytes));
                        }
                        Ok(())
                    })?;
                }
                _ => return Err(refused(format!("a log of {what}"))),
            },
        }
        if values.len() != times.len() {
            return Err(refused(format!(
                "a log of {} times and {} values",
                times.len(),
                values.len()
            )));
        }
        Ok(LogValues { times, values })
    }
}
