//! A value for each record.

use thalweg_io::Result;

use crate::gathered::Gathered;
use crate::piece::Gather;
use crate::record::Record;

/// Makes a value of each record.
pub(crate) struct Each<F>(pub(crate) F);

impl<T: Send + 'static, F: Fn(&Record<'_>) -> T + Send + Sync + 'static> Gather for Each<F> {
    type Rows = Vec<T>;

    fn push(&self, rows: &mut Vec<T>, record: &Record<'_>) {
        rows.push((self.0)(record));
    }
}

/// The values of [`FastqFile::map`](crate::FastqFile::map). It ends after an error.
pub struct Mapped<T: Send + 'static, F: Fn(&Record<'_>) -> T + Send + Sync + 'static> {
    gathered: Gathered<Each<F>>,
    values: std::vec::IntoIter<T>,
}

impl<T: Send + 'static, F: Fn(&Record<'_>) -> T + Send + Sync + 'static> Mapped<T, F> {
    pub(crate) fn new(gathered: Gathered<Each<F>>) -> Self {
        Self { gathered, values: Vec::new().into_iter() }
    }
}

impl<T: Send + 'static, F: Fn(&Record<'_>) -> T + Send + Sync + 'static> std::fmt::Debug
    for Mapped<T, F>
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapped").finish_non_exhaustive()
    }
}

impl<T: Send + 'static, F: Fn(&Record<'_>) -> T + Send + Sync + 'static> Iterator for Mapped<T, F> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(value) = self.values.next() {
                return Some(Ok(value));
            }
            match self.gathered.next()? {
                Ok(values) => self.values = values.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
