//! The mappings of virtual datasets, which are an object of a global heap (section VII.B).

use std::ops::Range;
use std::sync::Arc;

use super::checksum::verified;
use super::cursor::{Cursor, until_nul};
use super::selection::{Selected, block_len, selection};
use super::{Result, damaged, foreign};
use crate::mapping::{Chosen, Mapping};
use crate::slab::Slab;

/// The most elements of all selections together that are not grids of blocks.
const MOST_POINTS: u64 = 1 << 16;

/// Flags of a mapping, since version 1 of the block: its file is that of an earlier mapping; so is
/// its dataset; its file is that of the virtual dataset.
const SHARED_FILE: u8 = 1;
const SHARED_DATASET: u8 = 2;
const SAME_FILE: u8 = 4;

/// A mapping, as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct StoredMapping {
    /// As in [`Mapping`].
    pub(crate) file: Arc<[u8]>,
    /// As in [`Mapping`].
    pub(crate) dataset: Arc<[u8]>,
    /// The elements of the other dataset.
    pub(crate) source: Selected,
    /// The elements of the virtual dataset.
    pub(crate) target: Selected,
}

/// Parses the mappings of a virtual dataset. `inner` are the dimensions of the type of its
/// elements, all of which belong to an element.
pub(super) fn mappings(block: &Cursor<'_>, inner: &[u64]) -> Result<Vec<Mapping>> {
    let mut left = MOST_POINTS;
    let mapping = |stored: StoredMapping| {
        let StoredMapping { file, dataset, source, target } = stored;
        let source = chosen(source, inner, &mut left)?;
        let target = chosen(target, inner, &mut left)?;
        Ok(Mapping { file, dataset, source, target })
    };
    stored_mappings(block)?.into_iter().map(mapping).collect()
}

/// Parses the mappings of a virtual dataset as they are stored.
pub(super) fn stored_mappings(block: &Cursor<'_>) -> Result<Vec<StoredMapping>> {
    let at = block.at();
    let mut cursor = block.same(verified(block.rest(), at)?, at);
    let version = cursor.u8()?;
    if version > 1 {
        return foreign(format!("version {version} of the mappings of a virtual dataset"));
    }
    let count = cursor.length()?;
    let mut mappings: Vec<StoredMapping> = Vec::new();
    for _ in 0..count {
        let flags = if version == 0 { 0 } else { cursor.u8()? };
        let at = cursor.at();
        let earlier = |cursor: &mut Cursor<'_>, mappings: &[StoredMapping]| {
            let number = cursor.length()?;
            let found =
                usize::try_from(number).ok().and_then(|number| mappings.get(number)).cloned();
            found.map_or_else(
                || damaged(at, format!("the name of mapping {number}"), "an earlier one"),
                Ok,
            )
        };
        let file = if flags & SAME_FILE != 0 {
            b".".as_slice().into()
        } else if flags & SHARED_FILE != 0 {
            earlier(&mut cursor, &mappings)?.file
        } else {
            cursor.text()?.into()
        };
        let dataset = if flags & SHARED_DATASET != 0 {
            earlier(&mut cursor, &mappings)?.dataset
        } else {
            cursor.text()?.into()
        };
        let source = selection(&mut cursor)?;
        let target = selection(&mut cursor)?;
        mappings.push(StoredMapping { file, dataset, source, target });
    }
    Ok(mappings)
}

/// The elements that are selected in a dataset whose elements have these inner dimensions. `left`
/// is the number of single elements that may still be made out of blocks.
fn chosen(selected: Selected, inner: &[u64], left: &mut u64) -> Result<Chosen> {
    let whole = inner.iter().map(|&length| Slab::from(0..length));
    match selected {
        Selected::Nothing => Ok(Chosen::Points(Vec::new())),
        Selected::All => Ok(Chosen::All),
        Selected::Slabs(slabs) => Ok(Chosen::Slabs(slabs.into_iter().chain(whole).collect())),
        Selected::Blocks(blocks) if blocks.len() == 1 => {
            let slabs = blocks.into_iter().flatten().map(Slab::from);
            Ok(Chosen::Slabs(slabs.chain(whole).collect()))
        }
        Selected::Blocks(blocks) => {
            let sum = blocks.iter().map(|block| block_len(block)).fold(0, u64::saturating_add);
            let Some(fewer) = left.checked_sub(sum).filter(|_| inner.is_empty()) else {
                let count = blocks.len();
                return foreign(format!("a virtual dataset of {count} blocks with {sum} elements"));
            };
            *left = fewer;
            let mut points: Vec<Vec<u64>> = blocks.iter().flat_map(|block| all(block)).collect();
            points.sort_unstable();
            Ok(Chosen::Points(points))
        }
        // libhdf5 makes none.
        Selected::Points(_) => foreign("a virtual dataset of single elements"),
    }
}

/// All elements of a block, by their coordinates.
fn all(block: &[Range<u64>]) -> Vec<Vec<u64>> {
    block.iter().fold(vec![Vec::new()], |points, range| {
        let extended = |point: &Vec<u64>| {
            let point = point.clone();
            range.clone().map(move |at| [&point[..], &[at]].concat())
        };
        points.iter().flat_map(extended).collect()
    })
}

/// A name in which `%b` is replaced by the number of a block, and `%%` by a percent sign; `None` if
/// it holds no `%b`.
pub(crate) fn with_number(name: &[u8], number: u64) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(name.len());
    let mut has_number = false;
    let mut rest = until_nul(name);
    while let Some((&byte, after)) = rest.split_first() {
        match (byte, after.first()) {
            (b'%', Some(b'b')) => {
                out.extend(number.to_string().bytes());
                has_number = true;
                rest = after.get(1..).unwrap_or_default();
            }
            (b'%', Some(b'%')) => {
                out.push(b'%');
                rest = after.get(1..).unwrap_or_default();
            }
            _ => {
                out.push(byte);
                rest = after;
            }
        }
    }
    has_number.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::super::checksum::lookup3;
    use super::super::cursor::{Cursor, Widths};
    use super::{mappings, with_number};
    use crate::mapping::{Chosen, Mapping, UNLIMITED};
    use crate::slab::Slab;

    const ALL: [u8; 16] = [3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    fn parsed(body: &[u8]) -> Option<Vec<Mapping>> {
        let mut block = body.to_vec();
        block.extend(lookup3(body).to_le_bytes());
        mappings(&Cursor::new(&block, 0, Widths::default()), &[]).ok()
    }

    /// A regular hyperslab of version 3 with numbers of two bytes.
    fn slab(start: u16, step: u16, count: u16, block: u16) -> Vec<u8> {
        let numbers = [start, step, count, block].map(u16::to_le_bytes).concat();
        [&[2, 0, 0, 0, 3, 0, 0, 0, 1, 2, 1, 0, 0, 0], &numbers[..]].concat()
    }

    #[test]
    fn mappings_of_version_1_share_names() {
        let mut body = vec![1, 3, 0, 0, 0, 0, 0, 0, 0];
        body.extend([&[4][..], b"data\0", &ALL, &slab(1, 3, u16::MAX, 2)].concat());
        body.extend([&[0][..], b"other.h5\0", b"x\0", &ALL, &ALL].concat());
        body.extend([&[3][..], &1u64.to_le_bytes(), &0u64.to_le_bytes(), &ALL, &ALL].concat());
        let found = parsed(&body).unwrap_or_default();
        let names: Vec<(&[u8], &[u8])> =
            found.iter().map(|mapping| (&*mapping.file, &*mapping.dataset)).collect();
        assert_eq!(names, [(&b"."[..], &b"data"[..]), (b"other.h5", b"x"), (b"other.h5", b"data")]);
        let slab = Slab { start: 1, count: UNLIMITED, step: 3, block: 2 };
        assert_eq!(found[0].target, Chosen::Slabs(vec![slab]));
        assert_eq!((&found[0].source, found[0].target.unlimited()), (&Chosen::All, Some(0)));
        // A name of a later mapping, and a block that is cut.
        body[1] = 4;
        assert!(parsed(&body).is_none());
        let late = [&[1, 1, 0, 0, 0, 0, 0, 0, 0, 2][..], b"f\0", &0u64.to_le_bytes()].concat();
        assert!(parsed(&late).is_none());
    }

    #[test]
    fn slabs_that_make_no_sense_are_refused() {
        let body =
            |slab: &[u8]| [&[0, 1, 0, 0, 0, 0, 0, 0, 0][..], b"f\0", b"x\0", &ALL, slab].concat();
        assert!(parsed(&body(&slab(0, 2, 3, 2))).is_some());
        assert!(parsed(&body(&slab(0, 1, 3, 2))).is_none(), "blocks that overlap");
        assert!(parsed(&body(&[9, 0, 0, 0])).is_none(), "a kind that is not known");
        let mut far = vec![2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0];
        far.extend([7u64, u64::MAX / 2, 3, 1].map(u64::to_le_bytes).concat());
        assert!(parsed(&body(&far)).is_none(), "an end beyond 2^63");
    }

    #[test]
    fn numbers_stand_in_names() {
        assert_eq!(with_number(b"part%b.h5", 12).as_deref(), Some(&b"part12.h5"[..]));
        assert_eq!(with_number(b"%%b%b%b", 7).as_deref(), Some(&b"%b77"[..]));
        assert_eq!(with_number(b"100 %", 7), None);
    }
}
