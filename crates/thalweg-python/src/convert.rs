//! Writes reads into new files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use thalweg::condition::Condition;
use thalweg::convert::{
    Conversion, ConvertReport, Lost, MadeFile, Output, SetPart, convert as write_all, make, merged,
};
use thalweg::format::Format;
use thalweg::new_file::{Existing, Inputs};
use thalweg::reads::{self, Chosen, Selection, is_index, old_indexes};
use thalweg::write::CodingChoice;
use thalweg::{Error, Result};

use crate::reads::ReadSet;
use crate::run::run;

/// What is written, and how.
#[derive(FromPyObject, Debug)]
#[pyo3(from_item_all)]
pub(crate) struct How {
    format: Option<String>,
    ids: Option<Vec<String>>,
    condition: Option<String>,
    missing_ok: bool,
    record: Option<String>,
    signal: Option<String>,
    level: Option<i32>,
    lossy: bool,
    verify: bool,
    replace: bool,
}

impl How {
    fn format(&self, output: &Path) -> Result<Format> {
        let named = self.format.as_deref().map(str::parse::<Format>).transpose().map_err(usage)?;
        let of_name = Format::of_path(output);
        if let (Some(named), Some(of_name)) = (named, of_name)
            && named != of_name
        {
            let (found, named) = (output.display(), named.name());
            return Err(usage(format!(
                "{found}: found a name of {}, expected one of {named}, which \
                 is written",
                of_name.name()
            )));
        }
        named.or(of_name).ok_or_else(|| {
            let ends = ".slow5, .blow5, .pod5 or .fast5";
            let found = output.display();
            usage(format!("{found}: expected a name that ends in {ends}, or a format"))
        })
    }

    fn coding(&self) -> Result<CodingChoice> {
        Ok(CodingChoice {
            record: self.record.as_deref().map(str::parse).transpose().map_err(usage)?,
            signal: self.signal.as_deref().map(str::parse).transpose().map_err(usage)?,
            level: self.level,
            ..CodingChoice::default()
        })
    }
}

fn usage(message: impl std::fmt::Display) -> Error {
    Error::Usage(message.to_string().into())
}

fn chosen(set: &reads::ReadSet, ids: Option<&[String]>, text: Option<&str>) -> Result<Chosen> {
    set.choose(ids, text.map(Condition::parse).transpose()?)
}

/// The ids of the listed reads for which a condition holds, file by file, and the listed ids that
/// no file has.
#[pyfunction]
pub(crate) fn choose(
    py: Python<'_>,
    reads: &ReadSet,
    ids: Option<Vec<String>>,
    condition: Option<String>,
) -> PyResult<(Vec<String>, Vec<String>)> {
    run(py, || {
        let Chosen { files, missing, .. } =
            chosen(&reads.set, ids.as_deref(), condition.as_deref())?;
        Ok((files.into_iter().flat_map(|(_, ids)| ids).collect(), missing))
    })
}

/// How many reads and samples were written, what the format could not hold, and the ids that no
/// file has.
type Converted = (u64, u64, Vec<(String, Option<u64>, Option<String>)>, Vec<String>);

/// Writes reads of a set to one file.
#[pyfunction]
pub(crate) fn convert(
    py: Python<'_>,
    reads: &ReadSet,
    output: PathBuf,
    how: How,
) -> PyResult<Converted> {
    run(py, || {
        let set = &reads.set;
        let existing = if how.replace { Existing::Replace } else { Existing::Keep };
        Inputs::new(set.paths()).check(&output, existing)?;
        let coding = how.coding()?;
        let conversion = Conversion {
            coding: coding.coding(how.format(&output)?)?,
            copy: !coding.recodes(),
            lossy: how.lossy,
            verify: how.verify.then(|| set.options().clone()),
            takes_first: false,
        };
        let (report, missing) = write(set, &output, &how, &conversion)?;
        if how.replace {
            for index in old_indexes(&output, is_index) {
                // It is the index of the file that was replaced.
                std::fs::remove_file(&index)
                    .map_err(|e| Error::io(&index.display().to_string().into(), "removing", e))?;
            }
        }
        let lost = report.lost.into_iter().map(|Lost { what, reads, first }| (what, reads, first));
        Ok((report.reads, report.samples, lost.collect(), missing))
    })
}

fn write(
    set: &reads::ReadSet,
    output: &Path,
    how: &How,
    conversion: &Conversion,
) -> Result<(ConvertReport, Vec<String>)> {
    if how.ids.is_none() && how.condition.is_none() {
        let report = write_all(set, &Selection::All, output, conversion)?;
        return Ok((report, Vec::new()));
    }
    let Chosen { files, missing, .. } = chosen(set, how.ids.as_deref(), how.condition.as_deref())?;
    if let Some(first) = missing.first().filter(|_| !how.missing_ok) {
        return Err(Error::NotFound {
            file: format!("{} files", set.paths().len()).into(),
            what: format!("{} of the reads (such as {first})", missing.len()).into(),
            advice: "check the ids, or leave them out with missing_ok=True".into(),
        });
    }
    let part = |(file, ids)| SetPart::new(file, Selection::Ids(Arc::new(ids)));
    let parts = files.into_iter().map(part).collect();
    let headers = merged(set)?;
    let made = make(set, parts, vec![Output::new(output, headers)], conversion)?;
    let report = made.into_iter().next().map(MadeFile::publish).transpose()?;
    Ok((report.unwrap_or_default(), missing))
}
