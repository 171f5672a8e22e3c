//! Values of virtual datasets, which are elements of other datasets, of this file or of others.
//!
//! A virtual dataset is read in tiles of rows. For each tile, the elements that it shows are read
//! through the engine, from each source file with all of its datasets at once.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use thalweg_io::open::{OpenedStore, Options};
use thalweg_io::plan::Budget;
use thalweg_io::sync::{Mutex, PoisonError};
use thalweg_io::{Error, Result};

use super::cast::Cast;
use super::selection::Selection;
use super::{ArrayFile, ArrayRequest, Dataset, is_likely};
use crate::array::{Array, ElementPlace, Found, Variable};
use crate::mapping::{Chosen, Mapping, before, end, first};
use crate::metadata::{Node, numbered};
use crate::other_files::OtherFiles;
use crate::slab::Slab;

/// The most levels of virtual datasets that show elements of virtual datasets.
const MOST_LEVELS: usize = 8;
/// The most source files that are kept open.
const MOST_OPEN: usize = 64;
/// Mappings whose elements are read together. Each may be of a file that nothing else keeps open.
const TOGETHER: usize = 32;
/// The most mappings of a virtual dataset, with a block for each numbered dataset.
const MOST_BLOCKS: u64 = 1 << 20;
/// A source file may take the memory budget divided by this.
const SOURCE_SHARE: usize = 4;

/// What has been looked for by name; `None` for what does not exist.
type Named<T> = Mutex<HashMap<Arc<[u8]>, Option<Arc<T>>>>;

/// The source files of virtual datasets.
#[derive(Debug, Default)]
pub(super) struct Sources(Named<SourceFile>);

/// A source file, and its datasets by their paths.
#[derive(Debug)]
struct SourceFile {
    file: ArrayFile,
    datasets: Named<Dataset>,
}

/// What is known by a name, or what `find` finds. At most `most` names are kept.
fn known_or<T>(
    named: &Named<T>,
    name: &Arc<[u8]>,
    most: usize,
    find: impl FnOnce() -> Result<Option<T>>,
) -> Result<Option<Arc<T>>> {
    let lock = || named.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lock().get(name) {
        return Ok(found.clone());
    }
    let found = find()?.map(Arc::new);
    let mut known = lock();
    if known.len() >= most {
        known.clear();
    }
    Ok(known.entry(name.clone()).or_insert(found).clone())
}

impl SourceFile {
    fn dataset(&self, path: &Arc<[u8]>) -> Result<Option<Arc<Dataset>>> {
        known_or(&self.datasets, path, usize::MAX, || {
            let node = self.file.node(&String::from_utf8_lossy(path))?;
            node.map_or(Ok(None), |node| self.file.dataset(&node))
        })
    }
}

/// Elements of one source dataset, and their places among the rows of a virtual dataset.
struct Shown {
    source: Arc<SourceFile>,
    dataset: Arc<Dataset>,
    /// What to read, one after the other, each with the number of its elements.
    selections: Vec<(Selection, u64)>,
    /// Where it goes: the first of the elements, and their number.
    places: Vec<(u64, u64)>,
}

impl ArrayFile {
    /// The source file with this name; `None` if it does not exist.
    fn source(&self, name: &Arc<[u8]>) -> Result<Option<Arc<SourceFile>>> {
        known_or(&self.sources.0, name, MOST_OPEN, || {
            let found = self.open_source(name)?;
            Ok(found.map(|file| SourceFile { file, datasets: Mutex::default() }))
        })
    }

    fn open_source(&self, name: &[u8]) -> Result<Option<Self>> {
        if self.level >= MOST_LEVELS {
            return Err(Error::Unsupported {
                file: self.store.name().clone(),
                what: format!("virtual datasets in more than {MOST_LEVELS} levels").into(),
                advice: "read the datasets that they show".into(),
            });
        }
        let Budget { threads, memory } = self.options.budget;
        let budget = Budget { threads, memory: memory / SOURCE_SHARE };
        let options = Options { budget, ..self.options.clone() };
        let other_files = self.file.other_files();
        let file = if name == b"." {
            Self::of(self.store().clone(), other_files.clone(), options)?
        } else {
            let mut path = other_files.find(name, self.store.name())?;
            if path.is_none() && name.first() == Some(&b'/') {
                // libhdf5 then looks for a file of that name beside this one.
                let last = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
                path = other_files.find(last, self.store.name())?;
            }
            let Some(path) = path else { return Ok(None) };
            self.other(&path, options)?
        };
        Ok(Some(Self { level: self.level + 1, ..file }))
    }

    /// Another file, as a source of this one.
    fn other(&self, path: &Path, options: Options) -> Result<Self> {
        let other_files = OtherFiles::new(path, self.file.other_files().reach())?;
        // It may be on another store.
        let opened = OpenedStore::new(path, &Options { model: None, ..options.clone() })?;
        Self::of(opened.store, other_files, Options { model: Some(opened.model.0), ..options })
    }

    /// A virtual array with the shape and the mappings that its source datasets have now.
    pub(super) fn resolved(&self, node: &Node, array: &Arc<Array>) -> Result<Arc<Array>> {
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
        let (mut ends, mut least) = (vec![None; rank], vec![0; rank]);
        for mapping in mappings.iter() {
            let limits = mapping.target.ends(&array.shape);
            if limits.len() != rank {
                return Err(wrong(format!("a mapping of {} dimensions", limits.len())));
            }
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
                Some(of_source) => self.grown(mapping, dimension, of_source, &mut resolved)?,
                None => self.numbered(mapping, dimension, &mut resolved)?,
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
            let ends = mapping.target.ends(&shape);
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
        mapping: &Mapping,
        dimension: usize,
        of_source: usize,
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
        let shape = source.file.shape_of(&dataset)?.unwrap_or_default();
        let length = shape.get(of_source).copied().unwrap_or(0);
        let (blocks, rest) = before(slab, length);
        let count = blocks * slab.block.min(length) + rest;
        let (Some(slab), Some(target)) = (first(slab, count), first(target, count)) else {
            return Ok(None);
        };
        let shown = end(&target).unwrap_or(0);
        let (mut sources, mut targets) = (sources.clone(), targets.clone());
        sources[of_source] = slab;
        targets[dimension] = target;
        let (source, target) = (Chosen::Slabs(sources), Chosen::Slabs(targets));
        // Only one dimension has no limit.
        if source.unlimited().is_some() || target.unlimited().is_some() {
            return Ok(None);
        }
        resolved.push(Mapping { source, target, ..mapping.clone() });
        Ok(Some(shown))
    }

    /// Adds the blocks of a mapping whose datasets are numbered, up to the first that does not
    /// exist, and returns their end in `dimension`.
    fn numbered(
        &self,
        mapping: &Mapping,
        dimension: usize,
        resolved: &mut Vec<Mapping>,
    ) -> Result<Option<u64>> {
        let Chosen::Slabs(targets) = &mapping.target else { return Ok(None) };
        let Some(slab) = targets.get(dimension) else { return Ok(None) };
        let mut end = 0;
        for number in 0..MOST_BLOCKS {
            if self.options.control.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let (file, dataset) =
                (numbered(&mapping.file, number), numbered(&mapping.dataset, number));
            if (file.is_none() && dataset.is_none()) || resolved.len() as u64 >= MOST_BLOCKS {
                return Ok(None);
            }
            let name = |name: Option<Vec<u8>>, same: &Arc<[u8]>| {
                name.map_or_else(|| same.clone(), Into::into)
            };
            let (file, dataset) = (name(file, &mapping.file), name(dataset, &mapping.dataset));
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
            let (source, target) = (mapping.source.clone(), Chosen::Slabs(targets));
            resolved.push(Mapping { file, dataset, source, target });
        }
        Ok(Some(end))
    }

    /// The shape of a dataset; what it holds, in words, if its elements cannot be read.
    fn shape_of(&self, dataset: &Dataset) -> Result<Result<Vec<u64>, String>> {
        match &dataset.found {
            Found::Array(array) => Ok(Ok(array.shape.clone())),
            Found::Other(what) => {
                Ok(self.variable(dataset)?.map(|variable| variable.shape).ok_or(what.clone()))
            }
        }
    }

    /// The elements that mappings show, of which these are wanted.
    fn shown<'a>(
        &self,
        node: &Node,
        wanted: impl Iterator<Item = (&'a Mapping, Wanted)>,
    ) -> Result<Vec<Shown>> {
        let mut shown: Vec<Shown> = Vec::new();
        for (mapping, wanted) in wanted {
            let Some(source) = self.source(&mapping.file)? else { continue };
            let Some(dataset) = source.dataset(&mapping.dataset)? else { continue };
            let shape = source.file.shape_of(&dataset)?;
            let shape = shape.map_err(|what| self.differs(node, &dataset, &what))?;
            let wrong = |what: String| Error::Malformed {
                file: source.file.store.name().clone(),
                what: format!("{}, which a virtual dataset shows", dataset.path()).into(),
                offset: 0,
                found: what.into(),
                expected: "a dataset that its mapping fits".into(),
            };
            let selections = wanted.selections(&mapping.source, &shape).map_err(wrong)?;
            for (selection, _) in &selections {
                selection.count(&shape).map_err(wrong)?;
            }
            shown.push(Shown { source, dataset, selections, places: wanted.places });
        }
        Ok(shown)
    }

    /// Calls `f` with all that these rows of a virtual dataset of this shape show, in parts of few
    /// source files.
    fn each_shown(
        &self,
        node: &Node,
        shape: &[u64],
        mappings: &[Mapping],
        rows: &Range<u64>,
        f: &mut dyn FnMut(Vec<Shown>) -> Result<()>,
    ) -> Result<()> {
        let mut wanted = mappings
            .iter()
            .map(|mapping| (mapping, Wanted::of(&mapping.target, shape, rows)))
            .filter(|(_, wanted)| !wanted.is_empty())
            .peekable();
        while wanted.peek().is_some() {
            if self.options.control.is_cancelled() {
                return Err(Error::Cancelled);
            }
            f(self.shown(node, wanted.by_ref().take(TOGETHER))?)?;
        }
        Ok(())
    }

    /// Replaces `out` by these rows of a virtual array, little-endian.
    pub(super) fn virtual_rows(
        &self,
        node: &Node,
        array: &Array,
        mappings: &[Mapping],
        rows: &Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let size = array.dtype.size();
        let row: u64 = array.shape.iter().skip(1).product();
        let bytes = (rows.end - rows.start) as usize * row as usize * size;
        if !is_likely(bytes as u64, self.store.size(), self.options.budget.memory as u64) {
            return Err(Error::Unsupported {
                file: self.store.name().clone(),
                what: format!("{}: a row of {bytes} bytes of a virtual dataset", node.path())
                    .into(),
                advice: "raise --memory".into(),
            });
        }
        out.clear();
        if array.fill.len() == size {
            out.extend(array.fill.iter().copied().cycle().take(bytes));
        } else {
            out.resize(bytes, 0);
        }
        self.each_shown(node, &array.shape, mappings, rows, &mut |shown| {
            let mut files = shown.chunk_by(|a, b| Arc::ptr_eq(&a.source, &b.source));
            files.try_for_each(|together| self.read_shown(node, array, together, out))
        })
    }

    /// Reads elements of one source file, and puts them in their places in `out`.
    fn read_shown(
        &self,
        node: &Node,
        array: &Array,
        together: &[Shown],
        out: &mut [u8],
    ) -> Result<()> {
        let size = array.dtype.size();
        let mut values: Vec<(Cast, Vec<u8>)> = Vec::with_capacity(together.len());
        for Shown { dataset, .. } in together {
            let of_source = match &dataset.found {
                Found::Array(array) => array,
                Found::Other(what) => return Err(self.differs(node, dataset, what)),
            };
            let same = || Ok(node.datatype()? == dataset.node.datatype()?);
            let Some(cast) = Cast::between(&of_source.dtype, &array.dtype, same)? else {
                let found = format!("{} in place of {}", of_source.dtype, array.dtype);
                return Err(self.differs(node, dataset, &found));
            };
            values.push((cast, Vec::new()));
        }
        let mut wanted: Vec<ArrayRequest<'_>> = Vec::new();
        for (Shown { dataset, selections, .. }, (cast, values)) in together.iter().zip(&mut values)
        {
            let count: u64 = selections.iter().map(|(_, count)| count).sum();
            values.resize(count as usize * cast.stored_size(), 0);
            let mut rest = &mut values[..];
            for (selection, count) in selections {
                let (here, after) = rest.split_at_mut(*count as usize * cast.stored_size());
                rest = after;
                wanted.push(ArrayRequest { dataset, selection: selection.clone(), out: here });
            }
        }
        if let Some(Shown { source, .. }) = together.first() {
            source.file.read(&mut wanted)?;
        }
        drop(wanted);
        for (Shown { places, .. }, (cast, values)) in together.iter().zip(&values) {
            let mut rest = &values[..];
            for &(to, count) in places {
                let (here, after) = rest.split_at(count as usize * cast.stored_size());
                rest = after;
                let to = to as usize * size;
                cast.apply(here, &mut out[to..to + count as usize * size]);
            }
        }
        Ok(())
    }

    fn differs(&self, node: &Node, dataset: &Dataset, found: &str) -> Error {
        Error::Unsupported {
            file: self.store.name().clone(),
            what: format!("{}, which shows {} ({found}),", node.path(), dataset.path()).into(),
            advice: "read the datasets that it shows".into(),
        }
    }

    /// The strings or lists of these rows of a virtual dataset; empty where it shows none.
    pub(super) fn virtual_strings(
        &self,
        node: &Node,
        variable: &Variable,
        mappings: &[Mapping],
        rows: &Range<u64>,
    ) -> Result<Vec<Vec<u8>>> {
        let row: u64 = variable.shape.iter().skip(1).product();
        let mut strings = vec![Vec::new(); ((rows.end - rows.start) * row) as usize];
        self.each_shown(node, &variable.shape, mappings, rows, &mut |shown| {
            for Shown { source, dataset, selections, places } in shown {
                let of_source = source.file.variable(&dataset)?;
                let Some(of_source) = of_source.filter(|found| found.item == variable.item) else {
                    return Err(self.differs(node, &dataset, "other elements"));
                };
                let mut found = Vec::new();
                for (selection, _) in selections {
                    found.extend(source.file.selected(&dataset, &of_source, selection)?);
                }
                let mut found = found.into_iter();
                for (to, count) in places {
                    let places = strings.iter_mut().skip(to as usize).take(count as usize);
                    places.zip(&mut found).for_each(|(place, string)| *place = string);
                }
            }
            Ok(())
        })?;
        Ok(strings)
    }
}

/// The elements of a mapping that lie in some rows of its virtual dataset.
struct Wanted {
    /// Their numbers in the mapping; they follow each other, or are single ones.
    numbers: Numbers,
    /// Their places among the elements of the rows.
    places: Vec<(u64, u64)>,
}

enum Numbers {
    Run(Range<u64>),
    Single(Vec<u64>),
}

impl Wanted {
    fn of(target: &Chosen, shape: &[u64], rows: &Range<u64>) -> Self {
        let row: u64 = shape.iter().skip(1).product();
        let Some(slabs) = target.slabs(shape) else {
            let Chosen::Points(points) = target else { return Self::none() };
            let mut numbers = Vec::new();
            let mut places = Vec::new();
            for (number, point) in (0..).zip(points) {
                let flat = point.iter().zip(shape).fold(0, |flat, (at, length)| flat * length + at);
                if point.first().is_some_and(|at| rows.contains(at)) {
                    numbers.push(number);
                    places.push((flat - rows.start * row, 1));
                }
            }
            return Self { numbers: Numbers::Single(numbers), places };
        };
        let Some((outer, inner)) = slabs.split_first() else {
            // A single element.
            return Self { numbers: Numbers::Run(0..1), places: vec![(0, 1)] };
        };
        let mut numbers: Option<Range<u64>> = None;
        for (_, place, count) in outer.runs(rows.clone()) {
            let start = numbers.map_or(place, |numbers| numbers.start);
            numbers = Some(start..place + count);
        }
        let Some(Range { start, end }) = numbers else { return Self::none() };
        let in_row: u64 = inner.iter().map(Slab::len).product();
        let mut places = Vec::new();
        places_of(&slabs, shape, rows.clone(), 0, &mut places);
        Self { numbers: Numbers::Run(start * in_row..end * in_row), places }
    }

    fn none() -> Self {
        Self { numbers: Numbers::Run(0..0), places: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The selections of the elements with these numbers of a source of this shape.
    fn selections(&self, source: &Chosen, shape: &[u64]) -> Result<Vec<(Selection, u64)>, String> {
        let of_points = |points: Vec<Vec<u64>>| {
            let count = points.len() as u64;
            vec![(Selection::Points(points), count)]
        };
        let short = || format!("{shape:?} elements");
        if let Chosen::Points(points) = source {
            let point = |number: u64| points.get(number as usize).cloned().ok_or_else(short);
            return Ok(of_points(match &self.numbers {
                Numbers::Run(run) => run.clone().map(point).collect::<Result<_, _>>()?,
                Numbers::Single(numbers) => {
                    numbers.iter().map(|&number| point(number)).collect::<Result<_, _>>()?
                }
            }));
        }
        let slabs = source.slabs(shape).unwrap_or_default();
        let lengths: Vec<u64> = slabs.iter().map(Slab::len).collect();
        let all = lengths.iter().try_fold(1u64, |all, &length| all.checked_mul(length));
        let all = all.ok_or_else(short)?;
        match &self.numbers {
            Numbers::Run(run) if run.end > all => Err(short()),
            Numbers::Run(run) if slabs.is_empty() => {
                Ok(vec![(Selection::All, run.end - run.start)])
            }
            Numbers::Run(run) => {
                let mut selections = Vec::new();
                boxes(&slabs, run.clone(), &mut Vec::new(), &mut selections);
                Ok(selections)
            }
            Numbers::Single(numbers) if numbers.iter().any(|&number| number >= all) => Err(short()),
            Numbers::Single(numbers) => {
                let point = |&number: &u64| {
                    let mut left = number;
                    let mut point: Vec<u64> = slabs
                        .iter()
                        .rev()
                        .map(|slab| {
                            let place = left % slab.len();
                            left /= slab.len();
                            slab.start + place / slab.block * slab.step + place % slab.block
                        })
                        .collect();
                    point.reverse();
                    point
                };
                Ok(of_points(numbers.iter().map(point).collect()))
            }
        }
    }
}

/// Adds the runs of elements that slabs select among the `rows` of an array of this shape. The
/// first row begins at the place `from`. A run that follows the one before extends it.
fn places_of(
    slabs: &[Slab],
    shape: &[u64],
    rows: Range<u64>,
    from: u64,
    places: &mut Vec<(u64, u64)>,
) {
    let Some((outer, inner)) = slabs.split_first() else { return };
    let inner_shape = shape.get(1..).unwrap_or_default();
    let row: u64 = inner_shape.iter().product();
    let is_whole = inner.iter().zip(inner_shape).all(|(slab, &length)| slab.is_whole(length));
    for (at, _, count) in outer.runs(rows.clone()) {
        let at = from + (at - rows.start) * row;
        if !is_whole {
            let length = inner_shape.first().copied().unwrap_or(0);
            for row_number in 0..count {
                places_of(inner, inner_shape, 0..length, at + row_number * row, places);
            }
            continue;
        }
        match places.last_mut() {
            Some((last, len)) if *last + *len == at => *len += count * row,
            _ => places.push((at, count * row)),
        }
    }
}

/// Adds the slabs that hold a run of the elements of these slabs, in C order. `outer` are the slabs
/// of the dimensions before.
fn boxes(
    slabs: &[Slab],
    run: Range<u64>,
    outer: &mut Vec<Slab>,
    selections: &mut Vec<(Selection, u64)>,
) {
    let Range { mut start, end } = run;
    if start >= end {
        return;
    }
    let Some((slab, inner)) = slabs.split_first() else {
        selections.push((Selection::Slab(outer.clone()), 1));
        return;
    };
    let step: u64 = inner.iter().map(Slab::len).product();
    let part_of = |place: u64,
                   run: Range<u64>,
                   outer: &mut Vec<Slab>,
                   selections: &mut Vec<(Selection, u64)>| {
        outer.extend(slab.parts(place..place + 1));
        boxes(inner, run, outer, selections);
        outer.pop();
    };
    // The rest of the first place, all of the places between, and the begin of the last.
    if !start.is_multiple_of(step) {
        let place = start / step;
        let until = end.min((place + 1) * step);
        part_of(place, start % step..until - place * step, outer, selections);
        start = until;
    }
    let whole = end / step;
    if start / step < whole {
        for part in slab.parts(start / step..whole) {
            let all = outer.iter().chain([&part]).chain(inner).copied().collect();
            selections.push((Selection::Slab(all), part.len() * step));
        }
    }
    if start <= whole * step && whole * step < end {
        part_of(whole, 0..end - whole * step, outer, selections);
    }
}
