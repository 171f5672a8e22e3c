//! Checks a file: reads every attribute, and decodes every dataset.

use std::collections::HashSet;

use thalweg_io::{Error, Result};

use super::{ArrayFile, ByReading, Dataset};

/// Why a dataset of fill values is not decoded.
const TOO_MANY: &str = "far more values than the file can hold";

/// The outcome of a check.
#[derive(Debug, Default)]
pub struct ArrayCheck {
    /// The number of groups, datasets and committed types whose attributes are sound.
    pub objects: u64,
    /// The number of datasets whose values decode.
    pub datasets: u64,
    /// The bytes of these values.
    pub bytes: u64,
    /// What is damaged; each error names its object.
    pub defects: Vec<Error>,
    /// Datasets that are not decoded: `PATH: why`.
    pub not_checked: Vec<String>,
}

impl ArrayCheck {
    /// Whether nothing is damaged.
    pub fn is_whole(&self) -> bool {
        self.defects.is_empty()
    }

    fn skip(&mut self, dataset: &Dataset, why: &str) {
        self.not_checked.push(format!("{}: {why}", dataset.path()));
    }

    /// Keeps a defect. An error that is none ends the check.
    fn keep(&mut self, error: Error) -> Result<()> {
        match error {
            error @ (Error::Malformed { .. } | Error::Truncated { .. }) => {
                self.defects.push(error);
                Ok(())
            }
            Error::Unsupported { .. } => {
                self.not_checked.push(error.to_string());
                Ok(())
            }
            error => Err(error),
        }
    }
}

impl ArrayFile {
    /// Reads every attribute of the file, and decodes every dataset of numbers, strings and lists.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Io`]. What is damaged is part of the outcome.
    pub fn check(&self) -> Result<ArrayCheck> {
        let survey = self.survey_below("/")?;
        let mut check = ArrayCheck::default();
        survey.unreadable.into_iter().try_for_each(|error| check.keep(error))?;
        self.check_attributes(&mut check)?;
        let ByReading { together, apart, sparse, others } =
            self.by_reading(&survey.datasets, self.store.size());
        sparse.into_iter().for_each(|dataset| check.skip(dataset, TOO_MANY));
        self.check_arrays(&together, &mut check)?;
        apart.into_iter().try_for_each(|dataset| self.check_arrays(&[dataset], &mut check))?;
        for dataset in others {
            if let Err(error) = self.check_variable(dataset, &mut check) {
                check.keep(error)?;
            }
        }
        survey.datasets.iter().try_for_each(|dataset| self.check_sources(dataset, &mut check))?;
        Ok(check)
    }

    /// Reads the attributes of all objects that hard links lead to.
    fn check_attributes(&self, check: &mut ArrayCheck) -> Result<()> {
        let root = self.file.root();
        let mut seen = HashSet::from([root.address()]);
        let mut left = vec![root];
        while let Some(node) = left.pop() {
            match node.attributes() {
                Ok(_) => check.objects += 1,
                Err(error) => check.keep(error)?,
            }
            // The survey has named what is neither.
            let links = if node.is_group().unwrap_or(false) { node.links() } else { continue };
            for link in links.unwrap_or_default() {
                if seen.insert(link.address) {
                    left.push(self.file.follow(&link));
                }
            }
        }
        Ok(())
    }

    /// Decodes arrays: all together, in the order of the file; one by one if something is damaged.
    fn check_arrays(&self, arrays: &[&Dataset], check: &mut ArrayCheck) -> Result<()> {
        let mut bytes = 0;
        let together = self.each(arrays, &mut |_, part| {
            bytes += part.len() as u64;
            Ok(())
        });
        match together {
            Ok(_) => {
                check.datasets += arrays.len() as u64;
                check.bytes += bytes;
            }
            Err(error @ (Error::Cancelled | Error::Io { .. })) => return Err(error),
            Err(error) if arrays.len() <= 1 => check.keep(error)?,
            Err(_) => {
                for array in arrays {
                    self.check_arrays(&[array], check)?;
                }
            }
        }
        Ok(())
    }

    /// Names what a virtual dataset shows and does not exist.
    fn check_sources(&self, dataset: &Dataset, check: &mut ArrayCheck) -> Result<()> {
        match self.missing_sources(dataset) {
            Ok(missing) => {
                for source in missing {
                    check.skip(dataset, &format!("it shows {source}, which does not exist"));
                }
                Ok(())
            }
            // Reading the dataset met the same error.
            Err(error @ (Error::Cancelled | Error::Io { .. })) => Err(error),
            Err(_) => Ok(()),
        }
    }

    /// Reads strings or lists of any length.
    fn check_variable(&self, dataset: &Dataset, check: &mut ArrayCheck) -> Result<()> {
        match self.variable(dataset)? {
            None => check.skip(dataset, dataset.not_read().unwrap_or_default()),
            Some(variable) if !self.may_hold(&variable.references, self.store.size()) => {
                check.skip(dataset, TOO_MANY);
            }
            Some(_) => {
                let mut bytes = 0;
                self.each_variable(dataset, &mut |element| {
                    bytes += element.len() as u64;
                    Ok(())
                })?;
                check.datasets += 1;
                check.bytes += bytes;
            }
        }
        Ok(())
    }
}
