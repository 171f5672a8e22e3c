//! Values of virtual datasets, which are elements of other datasets, of this file or of others.
//!
//! A virtual dataset is read in tiles of rows. For each tile, the elements that it shows are read
//! through the engine, from each source file with all of its datasets at once.

mod mapped;
mod nested;
mod resolve;
mod sources;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use thalweg_io::open::open_files;
use thalweg_io::{Error, Result};

use self::mapped::MappedElements;
pub(super) use self::nested::NestedAllowance;
use self::sources::SourceFile;
pub(super) use self::sources::Sources;
use super::cast::Cast;
use super::selection::Selection;
use super::{ArrayFile, ArrayRequest, Dataset, is_likely};
use crate::array::{Array, ElementPlace, Found, Variable};
use crate::mapping::Mapping;
use crate::metadata::Node;

/// Mappings whose elements are read together. Each may be of a file that nothing else keeps open.
const TOGETHER: usize = 32;

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
    /// The datasets that a virtual dataset shows and that do not exist, as `PATH of FILE`. Its
    /// elements have the fill value in their places, as libhdf5 has it. Numbered datasets and
    /// datasets that grow are not expected to exist.
    ///
    /// # Errors
    /// [`Error::Malformed`] or [`Error::Io`] for a file that cannot be opened, and
    /// [`Error::Cancelled`].
    pub fn missing_sources(&self, dataset: &Dataset) -> Result<Vec<String>> {
        let variable;
        let array = match &dataset.found {
            Found::Array(array) => array,
            Found::Other(_) => {
                variable = self.variable(dataset)?;
                let Some(variable) = &variable else { return Ok(Vec::new()) };
                &variable.references
            }
        };
        let ElementPlace::Virtual(mappings) = &array.place else { return Ok(Vec::new()) };
        let shown: BTreeSet<_> =
            mappings.iter().map(|mapping| (&mapping.file, &mapping.dataset)).collect();
        let mut missing = Vec::new();
        for (file, path) in shown {
            self.options.control.check()?;
            let exists = match self.source(file)? {
                Some(source) => source.dataset(path)?.is_some(),
                None => false,
            };
            if !exists {
                let [path, file] = [path, file].map(|name| String::from_utf8_lossy(name));
                missing.push(format!("{path} of {file}"));
            }
        }
        Ok(missing)
    }

    /// The bytes of the files that mappings show. All, if one of them cannot be opened, or if one
    /// shows elements of others again.
    pub(super) fn room_of_sources(&self, mappings: &[Mapping]) -> u64 {
        let shown: BTreeSet<_> =
            mappings.iter().map(|mapping| (&mapping.file, &mapping.dataset)).collect();
        let mut room = 0u64;
        let mut before = None;
        for (file, path) in shown {
            let Ok(source) = self.source(file) else { return u64::MAX };
            let Some(source) = source else { continue };
            match source.dataset(path) {
                Ok(None) => continue,
                Ok(Some(dataset))
                    if !dataset.array().is_some_and(|array| array.is_by_rows())
                        && source.file.elsewhere(&dataset).is_empty() => {}
                Ok(Some(_)) | Err(_) => return u64::MAX,
            }
            if before != Some(file) {
                room = room.saturating_add(source.file.store().size());
            }
            before = Some(file);
        }
        room
    }

    /// The elements that mappings show, of which these are wanted.
    fn shown<'a>(
        &self,
        node: &Node,
        wanted: impl Iterator<Item = (&'a Mapping, MappedElements)>,
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
        let tile = (rows.end - rows.start) * shape.iter().skip(1).product::<u64>();
        let _tile = (self.level == 0).then(|| self.nested.of_tile(tile));
        let mut wanted = mappings
            .iter()
            .map(|mapping| (mapping, MappedElements::of(&mapping.target, shape, rows)))
            .filter(|(_, wanted)| !wanted.is_empty())
            .peekable();
        while wanted.peek().is_some() {
            self.options.control.check()?;
            // Mappings may overlap: together they take no more memory than two tiles.
            let mut elements = 0;
            let together: Vec<_> = std::iter::from_fn(|| {
                let next = if elements < tile { wanted.next() } else { None }?;
                elements += next.1.places.iter().map(|(_, count)| count).sum::<u64>();
                Some(next)
            })
            .take(open_files(TOGETHER))
            .collect();
            self.count_nested(node, together.len())?;
            f(self.shown(node, together.into_iter())?)?;
        }
        Ok(())
    }

    /// Counts mappings that are read for a tile of another virtual dataset.
    fn count_nested(&self, node: &Node, count: usize) -> Result<()> {
        if self.level == 0 || self.nested.take(count as u64) {
            return Ok(());
        }
        Err(Error::Unsupported {
            file: self.store.name().clone(),
            what: format!("{}, of which a few elements need many mappings,", node.path()).into(),
            advice: "read the datasets that it shows".into(),
        })
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
        if array.fill.is_empty() {
            out.resize(bytes, 0);
        } else {
            let before = (rows.start * row) as usize * size % array.fill.len();
            out.extend(array.fill.iter().copied().cycle().skip(before).take(bytes));
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
