//! Reads a new file and compares it with the reads that went into it.

use std::path::Path;
use std::sync::Arc;

use thalweg_io::open::Options;
use thalweg_io::{Error, InFile, Result};

use super::digest::{ComparedFields, Digest};
use crate::reads::{ReadFile, Selection};
use crate::record::Header;

/// The expected content of a file.
pub(super) struct VerifiedReads<'a> {
    /// The auxiliary fields that the digests cover.
    pub(super) fields: &'a ComparedFields,
    /// The digests of the reads, in the order in which they were written.
    pub(super) digests: Vec<Digest>,
    /// Whether the format keeps that order.
    pub(super) ordered: bool,
    /// Whether all attributes must exist as well, with the read groups in the same order.
    pub(super) attributes: bool,
}

/// Values of reads take precedence over those of the header.
const COMPLETED: [&str; 3] = ["adc_min", "adc_max", "sample_rate"];

/// Compares the file at `path` with the digests of the reads that went into it. Errors are about
/// `name`, its final name.
///
/// # Errors
/// [`Error::Malformed`] for the first read that differs; the errors of reading the file.
/// [`Error::Malformed`] for the first read that is not the same; as for reading.
pub(super) fn verify(
    path: &Path,
    name: &Arc<str>,
    options: &Options,
    header: &Header,
    wanted: VerifiedReads<'_>,
) -> Result<()> {
    let VerifiedReads { fields, digests: mut expected, ordered, attributes } = wanted;
    let file = ReadFile::open(path, options.clone())?;
    let differs = |what, found, wanted| difference(name, what, found, wanted);
    if let Some((column, run)) = file.run_gap() {
        let what = format!("{column} of run {run}");
        return Err(differs(what, "no value".into(), "a value".into()));
    }
    if attributes {
        compare_attributes(file.header(), header, name)?;
    }
    if !ordered {
        expected.sort_unstable_by_key(|digest| digest.signal);
    }
    let here = fields.within(file.header());
    let digests = file.map(&Selection::All, move |read| {
        (read.record.read_id.to_owned(), here.digest(read.record, read.header, read.samples))
    })?;
    let mut count = 0;
    for digest in digests {
        let (id, digest) = digest?;
        let digest =
            digest.map_err(|fault| fault.in_file(name, 0, format!("verification of read {id}")))?;
        let place = if ordered {
            Ok(count)
        } else {
            expected.binary_search_by_key(&digest.signal, |d| d.signal)
        };
        let wanted = place
            .ok()
            .and_then(|place| expected.get(place))
            .filter(|wanted| wanted.signal == digest.signal);
        let Some(wanted) = wanted else {
            let found = "another id, other samples, or one read too many";
            return Err(differs(format!("read {id}"), found.into(), "what was written".into()));
        };
        if wanted.fields.is_some() && digest.fields != wanted.fields {
            return Err(differs(
                format!("read {id}"),
                "other fields".into(),
                "what was written".into(),
            ));
        }
        count += 1;
    }
    if count != expected.len() {
        return Err(differs(
            "the file".into(),
            format!("{count} reads"),
            format!("{} reads", expected.len()),
        ));
    }
    Ok(())
}

/// Compares the read groups of a file with those that were written, and their attributes.
fn compare_attributes(found: &Header, wanted: &Header, name: &Arc<str>) -> Result<()> {
    let groups = found.read_groups;
    if groups != wanted.read_groups {
        let found = format!("{groups} read groups");
        let wanted = wanted.read_groups.to_string();
        return Err(difference(name, "the header".into(), found, wanted));
    }
    for attribute in wanted.attributes.iter().filter(|a| !COMPLETED.contains(&a.name.as_str())) {
        for group in 0..groups {
            let wanted = wanted.attribute(&attribute.name, group);
            let found = found.attribute(&attribute.name, group);
            if wanted.is_some() && found != wanted {
                let what = format!("attribute {} of read group {group}", attribute.name);
                return Err(difference(name, what, format!("{found:?}"), format!("{wanted:?}")));
            }
        }
    }
    Ok(())
}

/// The error for a difference.
fn difference(name: &Arc<str>, what: String, found: String, wanted: String) -> Error {
    Error::Malformed {
        file: name.clone(),
        what: format!("verification of {what}").into(),
        offset: 0,
        found: found.into(),
        expected: format!("{wanted}; nothing was kept").into(),
    }
}
