//! Merging the headers of several files, and converting the records of each file to the merged
//! header.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use thalweg_io::Fault;

use super::{Attribute, AuxArray, AuxField, AuxValue, Header, Record, Scalar};

/// A merged header.
///
/// Read groups with equal attributes become one. Groups that differ in any attribute stay separate.
/// The header has the auxiliary fields of all files; a field that a file lacks is missing in its
/// records. The labels of an enumeration are merged.
#[derive(Debug, Clone)]
pub struct Merged {
    header: Header,
    /// For each file.
    places: Arc<[MergedPlaces]>,
    /// The merged read groups that are kept, if some are left out, and their new numbers.
    kept: Option<HashMap<u32, u32>>,
    /// For each auxiliary field, its value in records of files that lack it.
    absent: Vec<AuxValue<'static>>,
}

/// The mapping from one file to the merged header.
#[derive(Debug, Clone)]
struct MergedPlaces {
    /// For each read group of the file, the group of the merged header.
    groups: Vec<u32>,
    /// For each auxiliary field of the file, the index of the merged field. If the labels of an
    /// enumeration differ, also the merged code for each code of the file.
    fields: Vec<(usize, Option<Box<[u8]>>)>,
    /// Whether the auxiliary bytes of the file need no conversion.
    same: bool,
}

impl Merged {
    /// Merges headers. The encoding and the compressions are those of the first header, and the
    /// version is the newest one. A single header stays unchanged.
    ///
    /// # Errors
    /// The number of a header that conflicts with those before it, and the conflict: a field of
    /// another type, or too many labels of an enumeration.
    pub fn new<'a>(headers: impl IntoIterator<Item = &'a Header>) -> Result<Self, (usize, Fault)> {
        let headers: Vec<&Header> = headers.into_iter().collect();
        let Some(first) = headers.first() else {
            return Err((0, Fault::new(0, "no headers", "at least one")));
        };
        if let [only] = headers.as_slice() {
            let groups = (0..only.read_groups).collect();
            let places = vec![MergedPlaces::new(groups, &only.aux, &only.aux)];
            return Ok(Self::of((*first).clone(), places));
        }
        let mut aux: Vec<AuxField> = Vec::new();
        for (i, header) in headers.iter().enumerate() {
            for field in &header.aux {
                match aux.iter_mut().find(|known| known.name == field.name) {
                    Some(known) => known.merge(field).map_err(|fault| (i, fault))?,
                    None => aux.push(field.clone()),
                }
            }
        }
        let mut numbers: HashMap<BTreeMap<&str, &str>, u32> = HashMap::new();
        let mut groups: Vec<BTreeMap<&str, &str>> = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        let mut places = Vec::with_capacity(headers.len());
        for header in &headers {
            for attribute in &header.attributes {
                if !names.contains(&attribute.name.as_str()) {
                    names.push(&attribute.name);
                }
            }
            let mut mapped = Vec::new();
            for group in 0..header.read_groups {
                let value = |a: &'a Attribute| {
                    Some((a.name.as_str(), a.values.get(group as usize)?.as_deref()?))
                };
                let attributes: BTreeMap<&str, &str> =
                    header.attributes.iter().filter_map(value).collect();
                let number = *numbers.entry(attributes).or_insert_with_key(|attributes| {
                    groups.push(attributes.clone());
                    (groups.len() - 1) as u32
                });
                mapped.push(number);
            }
            places.push(MergedPlaces::new(mapped, &header.aux, &aux));
        }
        let attribute = |name: &str| Attribute {
            name: name.to_owned(),
            values: groups
                .iter()
                .map(|group| group.get(name).map(|&value| value.to_owned()))
                .collect(),
        };
        let header = Header {
            version: headers.iter().map(|header| header.version).max().unwrap_or(first.version),
            read_groups: groups.len() as u32,
            attributes: names.into_iter().map(attribute).collect(),
            aux,
            ..(*first).clone()
        };
        Ok(Self::of(header, places))
    }

    fn of(header: Header, places: Vec<MergedPlaces>) -> Self {
        let absent = vec![AuxValue::Missing; header.aux.len()];
        Self { header, places: places.into(), kept: None, absent }
    }

    /// Sets the values that records of files without a field have; they are missing unless this is
    /// called.
    pub(crate) fn fill_absent(&mut self, value: impl Fn(&AuxField) -> AuxValue<'static>) {
        self.absent = self.header.aux.iter().map(value).collect();
    }

    /// The merged header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The merged number of a file's read group; `None` if the file has no such group, or if the
    /// group was left out.
    pub fn group(&self, file: usize, read_group: u32) -> Option<u32> {
        self.moved(*self.places.get(file)?.groups.get(read_group as usize)?)
    }

    /// The number of a merged read group; `None` if it was left out.
    fn moved(&self, group: u32) -> Option<u32> {
        self.kept.as_ref().map_or(Some(group), |kept| kept.get(&group).copied())
    }

    /// Whether a record of a file is the same under the merged header: its read group has the same
    /// number, and its auxiliary fields need no conversion.
    pub(crate) fn keeps_records(&self, file: usize) -> bool {
        self.places.get(file).is_some_and(|place| {
            let mut groups = (0..).zip(&place.groups);
            place.same && groups.all(|(own, &group)| self.moved(group).is_none_or(|to| to == own))
        })
    }

    /// A merged header with only these read groups, in their order. Attributes that none of them
    /// has are removed.
    #[must_use]
    pub fn only(&self, groups: &BTreeSet<u32>) -> Self {
        let mut header = self.header.clone();
        let kept: Vec<u32> =
            groups.iter().copied().filter(|&group| group < header.read_groups).collect();
        header.read_groups = kept.len().max(1) as u32;
        for attribute in &mut header.attributes {
            let value = |&group: &u32| attribute.values.get(group as usize).cloned().flatten();
            let mut values: Vec<Option<String>> = kept.iter().map(value).collect();
            values.resize(header.read_groups as usize, None);
            attribute.values = values;
        }
        header.attributes.retain(|attribute| attribute.values.iter().any(Option::is_some));
        // The groups of files are those before any was left out.
        let numbers: HashMap<u32, u32> = kept.into_iter().zip(0..).collect();
        let kept = match &self.kept {
            None => numbers,
            Some(before) => before
                .iter()
                .filter_map(|(&group, now)| Some((group, *numbers.get(now)?)))
                .collect(),
        };
        Self { header, kept: Some(kept), ..self.clone() }
    }

    /// Converts a record of file number `file`, whose header is `from`, to the merged header. `aux`
    /// is scratch memory that the result borrows from. The signal stays unchanged.
    ///
    /// # Errors
    /// A read group that was left out; auxiliary values that do not fit their type.
    pub fn record<'a>(
        &self,
        file: usize,
        from: &Header,
        record: &Record<'a>,
        aux: &'a mut Vec<u8>,
    ) -> Result<Record<'a>, Fault> {
        let read_group = self.group(file, record.read_group);
        let read_group = read_group.ok_or_else(|| {
            Fault::new(
                0,
                format!("read group {}", record.read_group),
                "one that the merged header has",
            )
        })?;
        let Some(place) = self.places.get(file).filter(|place| !place.same) else {
            return Ok(Record { read_group, ..*record });
        };
        let mut values: Vec<_> = self.absent.iter().map(|&value| (value, None)).collect();
        for (value, (column, codes)) in record.aux_values(from).zip(&place.fields) {
            if let Some(slot) = values.get_mut(*column) {
                *slot = (value?.1, codes.as_deref());
            }
        }
        aux.clear();
        for (field, (value, codes)) in self.header.aux.iter().zip(values) {
            match (value, codes) {
                (AuxValue::Enum(code), Some(codes)) => {
                    field.push(AuxValue::Enum(translated(code, codes, field)?), aux)?;
                }
                (AuxValue::Array(array), Some(codes)) => {
                    let codes = array.bytes().iter().map(|&code| translated(code, codes, field));
                    let bytes = codes.collect::<Result<Vec<u8>, _>>()?;
                    let array = AuxArray::new(Scalar::Enum, &bytes);
                    field.push(array.map_or(AuxValue::Missing, AuxValue::Array), aux)?;
                }
                (value, _) => field.push(value, aux)?,
            }
        }
        Ok(Record { read_group, aux, ..*record })
    }
}

/// The code of a missing value of an enumeration.
const MISSING: u8 = u8::MAX;

/// The code of a label in the merged header.
///
/// # Errors
/// A code without a label, which may have one in the merged header.
fn translated(code: u8, codes: &[u8], field: &AuxField) -> Result<u8, Fault> {
    if code == MISSING {
        return Ok(code);
    }
    codes.get(usize::from(code)).copied().ok_or_else(|| {
        let found = format!("the code {code} in the field {:?}", field.name);
        Fault::new(
            0,
            found,
            format!("a code below {}, as many as its file has labels", codes.len()),
        )
    })
}

impl MergedPlaces {
    fn new(groups: Vec<u32>, own: &[AuxField], all: &[AuxField]) -> Self {
        let mut fields = Vec::new();
        for field in own {
            let found = all.iter().enumerate().find(|(_, known)| known.name == field.name);
            let Some((at, known)) = found else { continue };
            fields.push((at, field.codes_in(known)));
        }
        let same = own.len() == all.len()
            && fields.iter().enumerate().all(|(i, (at, codes))| i == *at && codes.is_none());
        Self { groups, fields, same }
    }
}

impl AuxField {
    /// Adds the labels of the same field in another file.
    fn merge(&mut self, other: &Self) -> Result<(), Fault> {
        if self.kind != other.kind {
            let found =
                format!("the auxiliary field {:?} of type {}", self.name, other.type_name());
            return Err(Fault::new(
                0,
                found,
                format!("{}, as in the files before", self.type_name()),
            ));
        }
        for label in &other.labels {
            if !self.labels.contains(label) {
                self.labels.push(label.clone());
            }
        }
        // Code 255 is the missing value.
        if self.labels.len() > usize::from(u8::MAX) {
            let found = format!(
                "{} labels of the enumeration {:?} in all files",
                self.labels.len(),
                self.name
            );
            return Err(Fault::new(0, found, "at most 255"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
