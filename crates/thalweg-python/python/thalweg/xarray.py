"""The engine `thalweg` of xarray: `xarray.open_dataset("run.nc", engine="thalweg")`.

Variables, dimensions, coordinates and attributes are those of the engine `h5netcdf`, for netCDF-4 files and for other
HDF5 files such as NeXus. Nothing is read before it is used. Chunks of dask are multiples of the chunks of the file.

>>> import xarray
>>> tree = xarray.open_datatree("run.nc", engine="thalweg", chunks={})
>>> ds = xarray.open_dataset("run.nxs", engine="thalweg", group="/entry/bank1_events", phony_dims="access")
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thalweg import h5
from thalweg._netcdf import NOT_COORDINATE, File, Group, attributes
from thalweg._types import Empty, objects

try:
    from xarray import Dataset, Variable
    from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint, StoreBackendEntrypoint
    from xarray.core import indexing
except ImportError as error:
    raise ImportError("thalweg.xarray needs xarray: pip install 'thalweg[xarray]'") from error

if TYPE_CHECKING:
    from xarray import DataTree

__all__ = ["ThalwegBackend"]

_COMPRESSIONS = {1: "zlib", 4: "szip", 307: "bzip2", 32001: "blosc", 32015: "zstd"}


class _Array(BackendArray):
    """A variable that is not read yet. All that reads it at the same time shares the open file."""

    def __init__(self, dataset: h5.Dataset, shape: tuple[int, ...]) -> None:
        self._dataset = dataset
        self.shape = shape
        self.dtype: np.dtype[Any] = dataset.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        support = indexing.IndexingSupport.OUTER_1VECTOR
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        dataset = self._dataset
        if dataset.shape is None:
            return Empty(dataset.dtype)
        if self.shape == dataset.shape:
            return self._values(key)
        # The dimension is longer than what was written: the rest has the fill value.
        index = [np.arange(length)[one] for one, length in zip(key, self.shape)]
        inside = [each[each < length] for each, length in zip(map(np.atleast_1d, index), dataset.shape)]
        fill = "" if dataset.dtype.kind == "O" else dataset.fillvalue
        full = np.full([np.size(each) for each in index], fill, dataset.dtype)
        if all(len(each) for each in inside):
            to = np.ix_(*[np.flatnonzero(np.atleast_1d(each) < n) for each, n in zip(index, dataset.shape)])
            spans = tuple(slice(int(each.min()), int(each.max()) + 1) for each in inside)
            full[to] = self._values(spans)[np.ix_(*[each - each.min() for each in inside])]
        return full.reshape([np.size(each) for each in index if np.ndim(each)])

    def _values(self, key: tuple[Any, ...]) -> NDArray[Any]:
        found = self._dataset[key]
        if self._dataset.dtype.metadata and "vlen" in self._dataset.dtype.metadata:
            if isinstance(found, bytes):
                return np.asarray(found.decode(), object)
            if self._dataset._header.kind["class"] == "long_text":
                return objects([each.decode() for each in found.flat], found.shape)
        return np.asarray(found)


class _Store(AbstractDataStore):
    """A group of a file."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def _variable(self, dataset: h5.Dataset) -> Variable:
        dimensions = self._group.dimensions_of(dataset)
        shape = tuple(self._group.all_dimensions[name].size for name in dimensions)
        array = _Array(dataset, shape)
        encoding: dict[str, Any] = {"dtype": array.dtype}
        metadata: Any = array.dtype.metadata or {}
        if metadata.get("vlen") is str:
            encoding["dtype"] = str
        chunks = dataset.chunks if shape else None
        encoding["contiguous"] = chunks is None
        encoding["chunksizes"] = chunks
        if chunks is not None:
            encoding["preferred_chunks"] = dict(zip(dimensions, chunks))
        encoding.update(dict.fromkeys(_COMPRESSIONS.values(), False))
        for each in dataset.filters:
            if each.number in _COMPRESSIONS:
                encoding[_COMPRESSIONS[each.number]] = True
        encoding.update(shuffle=dataset.shuffle, fletcher32=dataset.fletcher32)
        if dataset.compression == "gzip":
            encoding["complevel"] = dataset.compression_opts
        elif dataset.compression is not None:
            encoding["compression"] = dataset.compression
            encoding["compression_opts"] = dataset.compression_opts
        encoding["source"] = dataset.file.filename
        encoding["original_shape"] = shape
        return Variable(dimensions, indexing.LazilyIndexedArray(array), attributes(dataset), encoding)

    def get_variables(self) -> dict[str, Variable]:
        datasets = self._group.datasets
        return {name.replace(NOT_COORDINATE, ""): self._variable(one) for name, one in datasets.items()}

    def get_attrs(self) -> dict[str, Any]:
        return attributes(self._group.group)

    def get_dimensions(self) -> dict[str, int]:
        return {name: each.size for name, each in self._group.dimensions.items()}

    def get_encoding(self) -> dict[str, Any]:
        return {"unlimited_dims": {name for name, each in self._group.dimensions.items() if each.is_unlimited}}

    def close(self) -> None:
        self._group.file.file.close()


class ThalwegBackend(BackendEntrypoint):
    """Opens netCDF-4 and other HDF5 files, and such objects at URLs, with thalweg.

    Beside the options of all engines, it has `group`; `phony_dims`, how dimensions without a scale are named: "sort" as
    netCDF-C does, or "access"; and `threads`, `memory` and `timeout` as `thalweg.open` has them. A data set that is closed
    opens its file no more: load what is used later.
    """

    description = "Open netCDF-4 and other HDF5 files in parallel with thalweg"
    url = "https://github.com/thalweg/thalweg"
    supports_groups = True
    open_dataset_parameters = (
        "filename_or_obj",
        "mask_and_scale",
        "decode_times",
        "concat_characters",
        "decode_coords",
        "drop_variables",
        "use_cftime",
        "decode_timedelta",
        "group",
        "phony_dims",
        "threads",
        "memory",
        "timeout",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether it is a file with the signature of HDF5, or a URL that ends as names of such files do."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        path = os.fspath(filename_or_obj)
        if "://" in path:
            return os.path.splitext(path)[1] in {".nc", ".nc4", ".h5", ".hdf5", ".nxs"}
        return h5.is_hdf5(path)

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: str | None = None,
        phony_dims: str | None = "access",
        threads: int | None = None,
        memory: float | str | None = None,
        timeout: float | None = None,
        **decoding: Any,
    ) -> Dataset:
        """Opens a group, the root group by default."""
        file = File(h5.File(filename_or_obj, threads=threads, memory=memory, timeout=timeout), phony_dims)
        store = _Store(file.at(group or "/"))
        return StoreBackendEntrypoint().open_dataset(store, drop_variables=drop_variables, **decoding)

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: str | None = None,
        phony_dims: str | None = "access",
        threads: int | None = None,
        memory: float | str | None = None,
        timeout: float | None = None,
        **decoding: Any,
    ) -> dict[str, Dataset]:
        """Opens a group and all groups below it, by their paths."""
        file = File(h5.File(filename_or_obj, threads=threads, memory=memory, timeout=timeout), phony_dims)
        parent = "/" + (group or "").strip("/")
        found = {}
        for path in file.walk(parent):
            opened = StoreBackendEntrypoint().open_dataset(
                _Store(file.at(path)), drop_variables=drop_variables, **decoding
            )
            # Relative to the group that is asked for, if one is.
            name = (path[len(parent) :].strip("/") or ".") if group else path
            found[name] = opened
        return found

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> DataTree:
        """Opens a group and all groups below it as a tree."""
        from xarray import DataTree

        groups = self.open_groups_as_dict(filename_or_obj, **options)
        tree = DataTree.from_dict(groups)
        for path, node in groups.items():
            tree[path].set_close(node._close)
        return tree
