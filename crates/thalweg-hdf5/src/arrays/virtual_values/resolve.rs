//! Virtual datasets without a limit: the shape that their sources give them now.

use std::sync::Arc;

use thalweg_io::{Error, Result};

use crate::array::{Array, ElementPlace};
use crate::arrays::ArrayFile;
use crate::mapping::{Chosen, Mapping, elements_before, end_of, first_elements};
use crate::metadata::{Node, with_number};
use crate::slab::Slab;

/// The most mappings of a virtual dataset, with a block for each numbered dataset.
const MOST_BLOCKS: u64 = 1 << 20;

impl ArrayFile {
    /// A virtual array with the shape and the mappings that its source datasets have now.
    pub(in crate::arrays) fn resolved(
        &self,
        node: &Node,
        array: &Arc<Array>,
    ) -> Result<Arc<Array>> {
        let ElementPlace::Virtual(mappings) = &array.place else { return Ok(array.clone()) };
        let wrong = |what: String| Error::Malformed {
            file: self.store.name().clone(),
            what: node.path().to_owned().into(),
            offset: node.address(),
            found: what.into(),
            expected: "mappings that fit the virtual dataset".into(),
        };
        let rank = array.shape.len();
        let mut resolved: Vec<Mapping> = Vec::new();
        // In each dimension without a limit, the end of what the mappings show; and the end of
        // the other mappings.
        let mut ends = vec![None; rank];
        let mut least = vec![0; rank];
        for mapping in mappings.iter() {
            let Some(limits) = mapping.target.ends(&array.shape) else {
                return Err(wrong(format!("a mapping that has not {rank} dimensions")));
            };
            if mapping.target != Chosen::All {
                for (least, limit) in least.iter_mut().zip(&limits) {
                    *least = limit.unwrap_or(0).max(*least);
                }
            }
            let Some(dimension) = mapping.target.unlimited() else {
                if mapping.source.unlimited().is_some() {
                    return Err(wrong("a mapping of a source without a limit".into()));
                }
                resolved.push(mapping.clone());
                continue;
            };
            let end = match mapping.source.unlimited() {
                Some(of_source) => {
                    self.grown(node, mapping, (dimension, of_source), &mut resolved)?
                }
                None => self.numbered_blocks(mapping, dimension, &mut resolved)?,
            };
            let end = end.ok_or_else(|| Error::Unsupported {
                file: self.store.name().clone(),
                what: format!("{}, of which a mapping ends inside a block,", node.path()).into(),
                advice: "read the datasets that it shows".into(),
            })?;
            if let Some(known) = ends.get_mut(dimension) {
                *known = (*known).max(Some(end));
            }
        }
        let mut shape = array.shape.clone();
        for ((length, end), least) in shape.iter_mut().zip(ends).zip(least) {
            *length = end.map_or(*length, |end: u64| end.max(least));
        }
        for mapping in &resolved {
            let ends = mapping.target.ends(&shape).unwrap_or_default();
            if ends.iter().zip(&shape).any(|(end, length)| end.is_none_or(|end| end > *length)) {
                return Err(wrong(format!("a mapping up to {ends:?} of {shape:?} elements")));
            }
        }
        let size = array.dtype.size() as u64;
        // A row must be addressable, even if there is none.
        let bytes = shape.iter().try_fold(size, |bytes, &length| bytes.checked_mul(length.max(1)));
        if bytes.is_none_or(|bytes| bytes > i64::MAX as u64) {
            return Err(wrong(format!("{shape:?} elements of {size} bytes")));
        }
        let place = ElementPlace::Virtual(resolved.into());
        Ok(Arc::new(Array { shape, place, ..(**array).clone() }))
    }

    /// Adds what a mapping of a source that grows shows now, and returns its end in `dimension`;
    /// `None` if it ends inside a block.
    fn grown(
        &self,
        node: &Node,
        mapping: &Mapping,
        (dimension, of_source): (usize, usize),
        resolved: &mut Vec<Mapping>,
    ) -> Result<Option<u64>> {
        let Some(source) = self.source(&mapping.file)? else { return Ok(Some(0)) };
        let Some(dataset) = source.dataset(&mapping.dataset)? else { return Ok(Some(0)) };
        let (Chosen::Slabs(sources), Chosen::Slabs(targets)) = (&mapping.source, &mapping.target)
        else {
            return Ok(None);
        };
        let (Some(slab), Some(target)) = (sources.get(of_source), targets.get(dimension)) else {
            return Ok(None);
        };
        let shape = source.file.shape_of(&dataset)?;
        let shape = shape.map_err(|what| self.differs(node, &dataset, &what))?;
        let length = shape.get(of_source).copied().unwrap_or(0);
        let (blocks, rest) = elements_before(slab, length);
        let count = blocks * slab.block.min(length) + rest;
        let (Some(slab), Some(target)) =
            (first_elements(slab, count), first_elements(target, count))
        else {
            return Ok(None);
        };
        let shown = end_of(&target).unwrap_or(0);
        let mut sources = sources.clone();
        let mut targets = targets.clone();
        sources[of_source] = slab;
        targets[dimension] = target;
        let source = Chosen::Slabs(sources);
        let target = Chosen::Slabs(targets);
        // Only one dimension has no limit.
        if source.unlimited().is_some() || target.unlimited().is_some() {
            return Ok(None);
        }
        resolved.push(Mapping { source, target, ..mapping.clone() });
        Ok(Some(shown))
    }

    /// Adds the blocks of a mapping whose datasets are numbered, up to the first that does not
    /// exist, and returns their end in `dimension`.
    fn numbered_blocks(
        &self,
        mapping: &Mapping,
        dimension: usize,
        resolved: &mut Vec<Mapping>,
    ) -> Result<Option<u64>> {
        let Chosen::Slabs(targets) = &mapping.target else { return Ok(None) };
        let Some(slab) = targets.get(dimension) else { return Ok(None) };
        let mut end = 0;
        for number in 0..MOST_BLOCKS {
            self.options.control.check()?;
            let file = with_number(&mapping.file, number);
            let dataset = with_number(&mapping.dataset, number);
            if (file.is_none() && dataset.is_none()) || resolved.len() as u64 >= MOST_BLOCKS {
                return Ok(None);
            }
            let name = |name: Option<Vec<u8>>, same: &Arc<[u8]>| {
                name.map_or_else(|| same.clone(), Into::into)
            };
            let file = name(file, &mapping.file);
            let dataset = name(dataset, &mapping.dataset);
            let Some(source) = self.source(&file)? else { break };
            if source.dataset(&dataset)?.is_none() {
                break;
            }
            let start = number.checked_mul(slab.step).and_then(|at| at.checked_add(slab.start));
            let Some(start) = start.filter(|start| start.checked_add(slab.block).is_some()) else {
                return Ok(None);
            };
            end = start + slab.block;
            let mut targets = targets.clone();
            targets[dimension] = Slab::from(start..end);
            let source = mapping.source.clone();
            let target = Chosen::Slabs(targets);
            resolved.push(Mapping { file, dataset, source, target });
        }
        Ok(Some(end))
    }
}
