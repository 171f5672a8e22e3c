//! Arrays of HDF5 files.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use thalweg::Error;
use thalweg::arrays::{self, ArrayRequest, Memory, Selection, Slab};
use thalweg::control::Control;
use thalweg::hdf5::array::{Array, ElementPlace, Found};
use thalweg::hdf5::dtype::Dtype;
use thalweg::hdf5::filter::Filter;
use thalweg::hdf5::metadata::{Elements, Entity, Node, NodeLink};
use thalweg::open_urls;
use thalweg::urls::url;

use crate::buffer::{Buffer, Target};
use crate::errors::{raised, usage};
use crate::options::Arguments;
use crate::run::run;

/// A file of arrays.
#[pyclass(frozen, module = "thalweg._thalweg")]
pub(crate) struct ArrayFile {
    pub(crate) file: arrays::ArrayFile,
    pub(crate) control: Control,
    /// Whether a request may take long: to a server, or to an open file of Python.
    pub(crate) is_slow: bool,
}

/// A read that decodes at most this many bytes is short enough to run without looking for signals.
const QUICK: u64 = 4 << 20;

/// Bytes that are decoded for some elements of an array: those of all chunks that have some.
fn decoded(array: &Array, selection: &Selection) -> u64 {
    let size = array.dtype.size() as u64;
    let product = |lengths: &mut dyn Iterator<Item = u64>| {
        lengths.fold(size, |product, length| product.saturating_mul(length))
    };
    let chunk: Option<&[u64]> = match &array.place {
        ElementPlace::Chunked(chunk, _) => Some(chunk),
        _ => None,
    };
    match (selection, chunk) {
        (Selection::Points(points), Some(chunk)) => {
            product(&mut chunk.iter().copied()).saturating_mul(points.len() as u64)
        }
        (Selection::Points(points), None) => size.saturating_mul(points.len() as u64),
        (Selection::Slab(slabs), Some(chunk)) => {
            product(&mut slabs.iter().zip(chunk).map(|(slab, &length)| {
                let last = slab.len().saturating_sub(1).saturating_mul(slab.step);
                let chunks = (slab.start % length.max(1) + last) / length.max(1) + 1;
                chunks.min(slab.len()).saturating_mul(length)
            }))
        }
        (Selection::Slab(slabs), None) => product(&mut slabs.iter().map(Slab::len)),
        _ => product(&mut array.shape.iter().copied()),
    }
}

impl ArrayFile {
    /// The result of a job that asks for little. With a file it runs on the caller's thread, as a
    /// thread for each job takes longer than most such jobs.
    fn quick<T: Send>(
        &self,
        py: Python<'_>,
        job: impl FnOnce() -> thalweg::Result<T> + Send,
    ) -> PyResult<T> {
        if self.is_slow {
            return run(py, job);
        }
        py.detach(job).map_err(|error| raised(py, &error))
    }
}

/// Opens an HDF5 file for its arrays, whatever else it holds.
#[pyfunction]
pub(crate) fn open_arrays(
    py: Python<'_>,
    path: PathBuf,
    arguments: Arguments<'_>,
) -> PyResult<ArrayFile> {
    open_urls();
    let (control, options) = arguments.open(py)?;
    let file = run(py, || arrays::ArrayFile::open(&path, options))?;
    Ok(ArrayFile { file, control, is_slow: url(&path).is_some() })
}

/// A group, a dataset or a committed type.
#[pyclass(frozen, module = "thalweg._thalweg")]
#[derive(Clone)]
pub(crate) struct Object {
    node: Node,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Group,
    Dataset(Arc<arrays::Dataset>),
    Type,
}

impl Object {
    fn of(file: &arrays::ArrayFile, node: Node) -> thalweg::Result<Self> {
        let kind = match node.entity()? {
            Entity::Group(_) => Kind::Group,
            Entity::Dataset(_) => match file.dataset(&node)? {
                Some(dataset) => return Ok(dataset.into()),
                None => Kind::Type,
            },
            Entity::Type => Kind::Type,
        };
        Ok(Self { node, kind })
    }

    fn array(&self) -> Option<&Array> {
        match &self.kind {
            Kind::Dataset(dataset) => match &dataset.found {
                Found::Array(array) => Some(array),
                Found::Other(_) => None,
            },
            _ => None,
        }
    }

    fn dataset(&self, py: Python<'_>) -> PyResult<&Arc<arrays::Dataset>> {
        match &self.kind {
            Kind::Dataset(dataset) => Ok(dataset),
            _ => Err(usage(py, format!("{}: no dataset", self.node.path()))),
        }
    }
}

impl From<arrays::Dataset> for Object {
    fn from(dataset: arrays::Dataset) -> Self {
        let node = dataset.node().clone();
        Self { node, kind: Kind::Dataset(Arc::new(dataset)) }
    }
}

#[pymethods]
impl Object {
    #[getter]
    fn path(&self) -> &str {
        self.node.path()
    }

    /// The address of its header, which references hold.
    #[getter]
    fn address(&self) -> u64 {
        self.node.address()
    }

    /// `group`, `dataset` or `type`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Group => "group",
            Kind::Dataset(_) => "dataset",
            Kind::Type => "type",
        }
    }

    /// The length of each dimension, those of an array type behind those of the dataset; `None` if
    /// it is no array.
    #[getter]
    fn shape(&self) -> Option<Vec<u64>> {
        Some(self.array()?.shape.clone())
    }

    /// numpy's name of the type of an element, as it is read.
    #[getter]
    fn dtype(&self) -> Option<String> {
        Some(self.array()?.dtype.to_string())
    }

    /// Where its elements lie: `inline`, `contiguous`, `chunked` or `virtual`.
    #[getter]
    fn layout(&self) -> Option<&'static str> {
        Some(match &self.array()?.place {
            ElementPlace::Inline(_) => "inline",
            ElementPlace::Contiguous(_) => "contiguous",
            ElementPlace::Chunked(..) => "chunked",
            ElementPlace::Virtual(_) => "virtual",
        })
    }

    /// The shape of a chunk.
    #[getter]
    fn chunks(&self) -> Option<Vec<u64>> {
        match &self.array()?.place {
            ElementPlace::Chunked(shape, _) if !self.is_converted() => Some(shape.clone()),
            _ => None,
        }
    }

    /// Whether elements are converted to a type that numpy has. The chunks are then not always
    /// those of the file.
    #[getter]
    fn is_converted(&self) -> bool {
        let filters = self.array().map_or(&[][..], |array| &array.pipeline.0);
        matches!(filters, [Filter::Convert(_), ..])
    }

    /// The bytes of an element that is not stored, little-endian; empty for zeros.
    #[getter]
    fn fill(&self) -> Option<Vec<u8>> {
        let array = self.array()?;
        let mut fill = array.fill.clone();
        array.dtype.to_little_endian(&mut fill);
        Some(fill)
    }

    /// Why it cannot be read as an array, if it cannot.
    #[getter]
    fn not_read(&self) -> Option<&str> {
        match &self.kind {
            Kind::Dataset(dataset) => dataset.not_read(),
            _ => Some("an object that is no dataset"),
        }
    }
}

/// Elements of a dataset: for each dimension the first one, how many, and the step between them; or
/// the coordinates of points as 64-bit integers, in C order.
enum Selected<'py> {
    Slabs(Vec<(u64, u64, u64)>),
    Points(Bound<'py, PyBytes>),
}

impl<'py> FromPyObject<'_, 'py> for Selected<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyBytes>() {
            Ok(points) => Ok(Self::Points(points.to_owned())),
            Err(_) => object.extract().map(Self::Slabs),
        }
    }
}

impl Selected<'_> {
    /// The selection of an array of `rank` dimensions.
    fn of(&self, rank: usize) -> Selection {
        match self {
            Self::Slabs(slabs) => {
                let slab = |&(start, count, step)| Slab { start, count, step, block: 1 };
                Selection::Slab(slabs.iter().map(slab).collect())
            }
            Self::Points(points) => {
                let (numbers, _) = points.as_bytes().as_chunks();
                let numbers: Vec<u64> = numbers.iter().copied().map(u64::from_le_bytes).collect();
                Selection::Points(numbers.chunks_exact(rank.max(1)).map(<[u64]>::to_vec).collect())
            }
        }
    }
}

/// A dataset, its wanted elements, and the numpy array that takes them. All elements, and memory of
/// their own, are `None`.
type Wanted<'py> = (Bound<'py, Object>, Option<Selected<'py>>, Option<Bound<'py, PyAny>>);

/// A dataset, its wanted elements and their shape and type, and the array that takes them.
type Asked = (Arc<arrays::Dataset>, Selection, Vec<u64>, Dtype, Option<Target>);

/// Where the elements of a request go.
enum Room {
    Own(Memory),
    Lent(Target),
}

/// An attribute: its name, its type as JSON, its shape, and its elements: their bytes, a list of
/// strings or lists, or why they are not read.
type Attribute = (String, String, Shape, Py<PyAny>);

/// The length of each dimension, if there are any values.
type Shape = Option<Vec<u64>>;

/// What the header of a dataset says: the type of its elements as JSON, its shape, that to which it
/// may grow, that of a chunk, and its filters with their numbers, names and client data.
type Header = (String, Shape, Shape, Shape, Vec<(u16, String, Vec<u32>)>);

#[pymethods]
impl ArrayFile {
    #[getter]
    fn name(&self) -> String {
        self.file.store().name().to_string()
    }

    /// A warning about the file.
    #[getter]
    fn note(&self) -> Option<&str> {
        self.file.note()
    }

    /// The datasets at or below paths, in which `*` and `?` stand for letters, and what could not
    /// be read there, or leads to other files.
    fn datasets(
        &self,
        py: Python<'_>,
        patterns: Vec<String>,
    ) -> PyResult<(Vec<Object>, Vec<String>)> {
        let found = run(py, || self.file.survey(&patterns))?;
        let datasets = found.datasets.into_iter().map(Object::from);
        let unreadable = found.unreadable.iter().map(ToString::to_string);
        Ok((datasets.collect(), unreadable.chain(found.external).collect()))
    }

    /// The object at a path; `None` if there is none.
    fn object(&self, py: Python<'_>, path: &str) -> PyResult<Option<Object>> {
        self.quick(py, || {
            self.file.node(path)?.map(|node| Object::of(&self.file, node)).transpose()
        })
    }

    /// The object that a link of a group leads to; `None` if there is none.
    fn child(&self, py: Python<'_>, group: &Object, name: &str) -> PyResult<Option<Object>> {
        self.quick(py, || {
            let child = group.node.child(name)?;
            child.map(|node| Object::of(&self.file, node)).transpose()
        })
    }

    /// The names of the links of a group.
    fn names(&self, py: Python<'_>, group: &Object) -> PyResult<Vec<String>> {
        self.quick(py, || group.node.names())
    }

    /// The hard links of a group, in the order of their names.
    fn members(&self, py: Python<'_>, group: &Object) -> PyResult<Vec<(String, Object)>> {
        self.quick(py, || {
            let follow = |link: NodeLink| {
                let object = Object::of(&self.file, self.file.metadata().follow(&link))?;
                Ok((link.name, object))
            };
            group.node.links()?.into_iter().map(follow).collect()
        })
    }

    /// The paths of objects by the addresses of their headers.
    fn paths(&self, py: Python<'_>) -> PyResult<HashMap<u64, String>> {
        run(py, || self.file.paths())
    }

    /// The attributes of an object.
    fn attributes(&self, py: Python<'_>, object: &Object) -> PyResult<Vec<Attribute>> {
        let found = self.quick(py, || object.node.attribute_values())?;
        let shown = found.into_iter().map(|attribute| {
            let elements = match attribute.elements {
                Elements::Fixed(bytes) => PyBytes::new(py, &bytes).into_any().unbind(),
                Elements::Variable(each) => listed(py, &each)?,
                Elements::NotRead(why) => why.into_pyobject(py)?.into_any().unbind(),
            };
            Ok((attribute.name, attribute.datatype.to_string(), attribute.shape, elements))
        });
        shown.collect()
    }

    /// What the header of a dataset says.
    fn header(&self, py: Python<'_>, dataset: &Object) -> PyResult<Header> {
        let header = self.quick(py, || dataset.node.header())?;
        let Some(header) = header else {
            return Err(usage(py, format!("{}: no dataset", dataset.node.path())));
        };
        let filters = header.filters.iter();
        let filters = filters.map(|one| (one.number, one.name.clone(), one.values.clone()));
        let [shape, most, chunk] =
            [header.shape(), header.most(), header.chunk()].map(|shape| shape.map(<[u64]>::to_vec));
        Ok((header.type_json().to_string(), shape, most, chunk, filters.collect()))
    }

    /// The stored chunks of a dataset: the number of each in the grid of chunks in C order, its
    /// offset in the file, its stored bytes, and a set bit for each filter that was skipped. A
    /// contiguous dataset is one chunk. Otherwise `None`.
    fn chunk_table(
        &self,
        py: Python<'_>,
        dataset: &Object,
    ) -> PyResult<Option<(Buffer, Buffer, Buffer, Buffer)>> {
        let read = dataset.dataset(py)?;
        let Some(array) = dataset.array() else { return Ok(None) };
        if !self.file.elsewhere(read).is_empty() {
            return Ok(None);
        }
        let columns = match &array.place {
            ElementPlace::Chunked(_, chunks) => [
                chunks.iter().map(|chunk| chunk.first).collect(),
                chunks.iter().map(|chunk| chunk.offset).collect(),
                chunks.iter().map(|chunk| chunk.size).collect(),
                chunks.iter().map(|chunk| chunk.mask.into()).collect(),
            ],
            ElementPlace::Contiguous(Some(offset)) => {
                [vec![0], vec![*offset], vec![array.bytes()], vec![0]]
            }
            ElementPlace::Contiguous(None) => [const { Vec::new() }; 4],
            ElementPlace::Inline(_) | ElementPlace::Virtual(_) => return Ok(None),
        };
        let [first, offset, size, mask] = columns.map(Buffer::ids);
        Ok(Some((first, offset, size, mask)))
    }

    /// Elements of datasets, all in one pass, in the order of the file. `None` for those that a
    /// numpy array has taken.
    fn read(&self, py: Python<'_>, wanted: Vec<Wanted<'_>>) -> PyResult<Vec<Option<Buffer>>> {
        let mut bytes = 0_u64;
        let mut asked: Vec<Asked> = Vec::with_capacity(wanted.len());
        for (object, selected, out) in &wanted {
            let (object, dataset) = (object.get(), object.get().dataset(py)?);
            let Some(array) = object.array() else {
                let why = dataset.not_read().unwrap_or("no array");
                return Err(unsupported(py, &self.file, format!("{}: {why}", dataset.path())));
            };
            let selection =
                selected.as_ref().map_or(Selection::All, |selected| selected.of(array.shape.len()));
            let shape = match &selection {
                Selection::Slab(slabs) => slabs.iter().map(Slab::len).collect(),
                Selection::Points(points) => vec![points.len() as u64],
                _ => array.shape.clone(),
            };
            bytes = bytes.saturating_add(decoded(array, &selection));
            // The caller keeps the numpy array, and `wanted` holds it until the end.
            let target = out.as_ref().map(Target::of).transpose()?;
            let overlaps = |other: &Target| target.as_ref().is_some_and(|one| one.overlaps(other));
            if asked.iter().any(|(.., other)| other.as_ref().is_some_and(overlaps)) {
                let what = "two of the arrays that take elements share memory";
                return Err(usage(py, what.into()));
            }
            asked.push((dataset.clone(), selection, shape, array.dtype.clone(), target));
        }
        let job = || {
            let mut rooms = Vec::with_capacity(asked.len());
            let mut about = Vec::with_capacity(asked.len());
            for (dataset, selection, shape, dtype, target) in asked {
                let bytes = shape.iter().try_fold(dtype.size() as u64, |n, d| n.checked_mul(*d));
                let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
                let bytes = bytes.ok_or_else(|| too_large(&dataset))?;
                rooms.push(match target {
                    Some(target) => Room::Lent(target),
                    None => Room::Own(Memory::new(bytes)?),
                });
                about.push((dataset, selection, shape, dtype));
            }
            let mut requests = Vec::with_capacity(about.len());
            for ((dataset, selection, ..), room) in about.iter().zip(&mut rooms) {
                let out = match room {
                    Room::Own(memory) => &mut **memory,
                    Room::Lent(target) => target.bytes(),
                };
                requests.push(ArrayRequest { dataset, selection: selection.clone(), out });
            }
            self.file.read(&mut requests)?;
            let read = about.into_iter().zip(rooms);
            Ok(read
                .map(|((_, _, shape, dtype), room)| match room {
                    Room::Own(memory) => Some(Buffer::owned(memory, dtype.to_string(), shape)),
                    Room::Lent(_) => None,
                })
                .collect())
        };
        if bytes <= QUICK { self.quick(py, job) } else { run(py, job) }
    }

    /// Elements of a dataset of strings or lists of any length, in C order: strings without a NUL,
    /// lists as the bytes of their elements, little-endian.
    fn strings(
        &self,
        py: Python<'_>,
        dataset: &Object,
        selected: Option<Selected<'_>>,
        rank: usize,
    ) -> PyResult<Py<PyAny>> {
        let read = dataset.dataset(py)?;
        let selection = selected.map_or(Selection::All, |selected| selected.of(rank));
        let found = run(py, || self.file.variable_elements(read, selection))?;
        listed(py, &found)
    }
}

fn listed(py: Python<'_>, each: &[Vec<u8>]) -> PyResult<Py<PyAny>> {
    let bytes: Vec<Bound<'_, PyBytes>> = each.iter().map(|one| PyBytes::new(py, one)).collect();
    Ok(bytes.into_pyobject(py)?.into_any().unbind())
}

fn unsupported(py: Python<'_>, file: &arrays::ArrayFile, what: String) -> PyErr {
    let file = file.store().name().clone();
    raised(py, &Error::Unsupported { file, what: what.into(), advice: "read other arrays".into() })
}

fn too_large(dataset: &arrays::Dataset) -> Error {
    Error::Usage(format!("{}: more bytes than this machine can address", dataset.path()).into())
}
