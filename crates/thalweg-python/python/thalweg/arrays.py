"""Arrays of HDF5 files: NeXus, netCDF-4, SONATA and others."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg import _thalweg
from thalweg.errors import NotFoundError, UnsupportedError


class Array:
    """A dataset. Nothing of it is read before it is indexed: `array[10:20, ::2]`, `array[...]`."""

    def __init__(self, file: Arrays, dataset: _thalweg.Dataset) -> None:
        self._file = file
        self._dataset = dataset

    @property
    def path(self) -> str:
        """Its path in the file."""
        return self._dataset.path

    @property
    def name(self) -> str:
        """Its path in the file, as h5py has it."""
        return self._dataset.path

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension."""
        shape = self._dataset.shape
        if shape is None:
            raise self._not_read()
        return tuple(shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an element."""
        name = self._dataset.dtype
        if name is None:
            raise self._not_read()
        return np.dtype(name)

    def _not_read(self) -> UnsupportedError:
        file = self._file._file.name
        return UnsupportedError(f"{file}: {self.path}: {self._dataset.not_read} is not read", file)

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of a chunk; None if the array is not stored in chunks."""
        chunks = self._dataset.chunks
        return None if chunks is None else tuple(chunks)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements in memory."""
        return self.size * self.dtype.itemsize

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The attributes; None for values that are neither numbers nor text."""
        return dict(self._file._file.attributes(self._dataset))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"{self.path} is a single value, and has no length")
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        wanted, shape = _slabs(self.path, key, self.shape)
        (buffer,) = self._file._file.read([(self._dataset, wanted)])
        values = np.asarray(buffer).reshape(shape)
        return values if shape else values[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError(f"{self.path} is in a file, of which an array is a copy")
        values = np.asarray(self[...])
        return values if dtype is None else values.astype(dtype)

    def __repr__(self) -> str:
        if self._dataset.shape is None:
            return f"<thalweg.Array {self.path}: not read>"
        return f"<thalweg.Array {self.path}: {self.dtype}, shape {self.shape}>"


def _slabs(path: str, key: Any, shape: tuple[int, ...]) -> tuple[list[tuple[int, int, int]] | None, tuple[int, ...]]:
    """The first element, how many, and the step of each dimension, and the shape of what is wanted."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if sum(k is Ellipsis for k in keys) > 1:
        raise IndexError(f"{path}: more than one ...")
    missing = len(shape) - sum(k is not Ellipsis for k in keys)
    if missing < 0:
        raise IndexError(f"{path}: {len(shape) - missing} indices, of an array of {len(shape)} dimensions")
    at = next((at for at, k in enumerate(keys) if k is Ellipsis), len(keys))
    keys[at : at + 1] = [slice(None)] * missing
    slabs, kept = [], []
    for dimension, (one, length) in enumerate(zip(keys, shape)):
        if isinstance(one, slice):
            first, end, step = one.indices(length)
            if step < 0:
                raise IndexError(f"{path}: a step of {step}: read forwards, and reverse the array")
            count = max(0, -((first - end) // step))
            slabs.append((first, count, step))
            kept.append(count)
        else:
            try:
                index = one.__index__()
            except AttributeError:
                raise TypeError(f"{path}: an index of {one!r}: expected numbers, slices and ...") from None
            if not -length <= index < length:
                raise IndexError(f"{path}: index {index} of dimension {dimension}, which has {length} elements")
            slabs.append((index % length, 1, 1))
    whole = all(slab == (0, length, 1) for slab, length in zip(slabs, shape))
    return (None if whole else slabs), tuple(kept)


class Arrays:
    """A file of arrays.

    >>> f = thalweg.open("run.nxs")
    >>> f["/entry/bank1_events/event_id"][:1000]
    """

    def __init__(self, file: _thalweg.ArrayFile) -> None:
        self._file = file

    def __getitem__(self, path: str) -> Array:
        """The array at a path."""
        found = self._find([path])
        if len(found) == 1 and found[0].path.split("/")[1:] == [name for name in path.split("/") if name]:
            return found[0]
        raise NotFoundError(f"{self._file.name}: {path} is a group or pattern of {len(found)} arrays; find() finds them", self._file.name)

    def __contains__(self, path: str) -> bool:
        try:
            self[path]
        except KeyError:
            return False
        return True

    def find(self, *patterns: str) -> list[Array]:
        """The arrays at or below paths; `*` and `?` stand for letters: `find("/entry/bank*/event_id")`."""
        return self._find(patterns)

    def _find(self, patterns: Sequence[str]) -> list[Array]:
        found, not_found = self._file.datasets(list(patterns) or ["/"])
        for what in not_found:
            warnings.warn(what, stacklevel=3)
        return [Array(self, dataset) for dataset in found]

    def __iter__(self) -> Iterator[str]:
        return iter([array.path for array in self.find()])

    def read(self, *patterns: str) -> dict[str, NDArray[Any]]:
        """The arrays at or below paths, all in one pass: faster than one after the other.

        What cannot be read, such as strings of any length, is left out, and warned of.
        """
        arrays = []
        for array in self._find(patterns):
            if array._dataset.not_read is None:
                arrays.append(array)
            else:
                warnings.warn(str(array._not_read()), stacklevel=2)
        buffers = self._file.read([(array._dataset, None) for array in arrays])
        return {array.path: np.asarray(buffer) for array, buffer in zip(arrays, buffers)}

    def __repr__(self) -> str:
        return f"<thalweg.Arrays {self._file.name}>"
