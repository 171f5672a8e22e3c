//! Memory of Rust that numpy shows as an array.

use arrow_buffer::{Buffer as ArrowBuffer, MutableBuffer};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use thalweg::arrays::Memory;

use crate::errors::usage;

/// Values in memory. `numpy.asarray` makes an array of them without a copy, and keeps them alive.
#[pyclass(frozen, module = "thalweg._thalweg")]
pub(crate) struct Buffer {
    address: usize,
    /// numpy's name of the type, such as `<i2`.
    typestr: String,
    shape: Vec<u64>,
    is_readonly: bool,
    /// Who has the bytes.
    _owner: Owner,
}

#[expect(dead_code, reason = "they keep the bytes alive")]
enum Owner {
    Arrow(ArrowBuffer),
    Ids(Vec<u64>),
    Memory(Memory),
}

impl Buffer {
    /// Values of one dimension, each of `size` bytes, which others may have, too. The array cannot
    /// be written to.
    pub(crate) fn shared(bytes: ArrowBuffer, typestr: &str, size: usize) -> Self {
        Self {
            address: bytes.as_ptr().expose_provenance(),
            typestr: typestr.to_owned(),
            shape: vec![(bytes.len() / size) as u64],
            is_readonly: true,
            _owner: Owner::Arrow(bytes),
        }
    }

    /// Values of one dimension, each of `size` bytes, which nobody else has.
    pub(crate) fn own(mut bytes: MutableBuffer, typestr: &str, size: usize) -> Self {
        let address = bytes.as_mut_ptr().expose_provenance();
        Self { address, is_readonly: false, ..Self::shared(bytes.into(), typestr, size) }
    }

    /// The elements of an array, in C order. They are the array's own.
    pub(crate) fn owned(mut memory: Memory, typestr: String, shape: Vec<u64>) -> Self {
        let address = memory.as_mut_ptr().expose_provenance();
        Self { address, typestr, shape, is_readonly: false, _owner: Owner::Memory(memory) }
    }

    pub(crate) fn ids(mut ids: Vec<u64>) -> Self {
        Self {
            address: ids.as_mut_ptr().expose_provenance(),
            typestr: "<u8".to_owned(),
            shape: vec![ids.len() as u64],
            is_readonly: false,
            _owner: Owner::Ids(ids),
        }
    }
}

/// The memory of a numpy array that a caller lends for a read.
#[derive(Debug)]
pub(crate) struct Target {
    address: usize,
    len: usize,
}

impl Target {
    /// The memory of an array. Whoever takes it keeps the array alive.
    pub(crate) fn of(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let numpy = array.py().import("numpy")?.getattr("ndarray")?;
        if !array.is_instance(&numpy)? {
            let what = format!("elements go into an array of numpy, not {}", array.get_type());
            return Err(usage(array.py(), what));
        }
        let interface = array.getattr("__array_interface__")?;
        let (address, is_readonly): (usize, bool) = interface.get_item("data")?.extract()?;
        let has_strides = !interface.get_item("strides")?.is_none();
        let len = array.getattr("nbytes")?.extract()?;
        if is_readonly || has_strides {
            let what = "the array that takes elements must be writable and contiguous, in C order";
            return Err(usage(array.py(), what.into()));
        }
        Ok(Self { address, len })
    }

    /// Whether it shares memory with another.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let end = |target: &Self| target.address.saturating_add(target.len);
        self.address < end(other) && other.address < end(self)
    }

    /// Its bytes.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        let start = std::ptr::with_exposed_provenance_mut(self.address);
        // SAFETY: numpy says that so many bytes from there on are the array's, and may be written
        // to. The caller of `Target::of` keeps the array, and no two targets of a read overlap. As
        // with h5py, nobody else may use its elements before the read ends.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts_mut(start, self.len)
        }
    }
}

#[pymethods]
impl Buffer {
    /// The protocol of numpy ("The array interface protocol", version 3).
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", &self.typestr)?;
        interface.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        interface.set_item("data", (self.address, self.is_readonly))?;
        Ok(interface)
    }
}
