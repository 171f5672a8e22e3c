"""HDF5 files as stores of zarr.

>>> import thalweg.zarr
>>> group = thalweg.zarr.open("run.nc")               # a zarr.Group
>>> xarray.open_zarr(thalweg.zarr.Store("run.nc"))

The arrays are those of the file, in chunks that thalweg has decoded. So all that thalweg reads can be read, whatever
its filters are, and no other decoder is needed. Dimensions and attributes are those of netCDF-4.
"""

from __future__ import annotations

import asyncio
import math
import os
import struct
import warnings
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Union

import numpy as np
from numpy.typing import NDArray

from thalweg import _netcdf, h5
from thalweg.errors import UnsupportedError

try:
    import zarr
    from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store as _Store, SuffixByteRequest
    from zarr.storage import MemoryStore
except ImportError as error:
    raise ImportError("thalweg.zarr needs zarr: pip install 'thalweg[zarr]'") from error

if TYPE_CHECKING:
    from zarr.core.buffer import Buffer, BufferPrototype

__all__ = ["Store", "open"]

# About the most bytes of a chunk of an array that has no chunks.
_CHUNK = 16 << 20
_METADATA = "zarr.json"


def open(path: Union[str, os.PathLike[str]], **options: Any) -> zarr.Group:
    """Opens a file as a group of zarr. The options are those of `Store`."""
    return zarr.open_group(Store(path, **options), mode="r")


class Store(_Store):
    """A file, or an object at a URL, as a store of zarr that can be read.

    Arrays whose elements zarr has no type for are left out, and warned of.

    Args:
        path: The HDF5 file.
        threads, memory, timeout: As `thalweg.open` has them.
    """

    def __init__(
        self,
        path: Union[str, os.PathLike[str]],
        *,
        threads: int | None = None,
        memory: float | str | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(read_only=True)
        self._path = os.fspath(path)
        self._options = {"threads": threads, "memory": memory, "timeout": timeout}
        self._file = h5.File(path, threads=threads, memory=memory, timeout=timeout)
        self._arrays: dict[str, tuple[h5.Dataset, tuple[int, ...]]] = {}
        self._documents: dict[str, bytes] = {}
        self._describe()

    def _describe(self) -> None:
        """Makes the metadata of all groups and arrays."""
        documents: dict[str, Any] = {}
        memory = MemoryStore(documents)
        netcdf = _netcdf.File(self._file, "access")
        with warnings.catch_warnings():
            # Strings and records have no place in the specification of zarr yet.
            warnings.filterwarnings("ignore", module="zarr", category=Warning)
            for path in netcdf.walk("/"):
                group = netcdf.at(path)
                attrs = _netcdf.in_json(_netcdf.attributes(group.group))
                made = zarr.create_group(memory, path=path.strip("/"), attributes=attrs, zarr_format=3)
                for name, dataset in group.datasets.items():
                    self._describe_array(made, name, group, dataset)
            zarr.consolidate_metadata(memory)
        self._documents = {key: value.to_bytes() for key, value in documents.items()}

    def _describe_array(self, made: zarr.Group, name: str, group: _netcdf.Group, dataset: h5.Dataset) -> None:
        kind = dataset._header.kind["class"]
        is_text = kind == "long_text"
        if dataset.shape is None or (dataset._object.not_read is not None and not is_text):
            self._left_out(dataset, dataset._object.not_read or "no value")
            return
        dtype: Any = str if is_text else dataset.dtype.base
        shape = dataset.shape + dataset.dtype.shape
        attrs = _netcdf.attributes(dataset)
        if "_FillValue" in attrs:
            attrs["_FillValue"] = _fill_value(attrs["_FillValue"], dataset.dtype)
        chunks = tuple(dataset._object.chunks or ()) or _chunks(shape, np.dtype("O" if is_text else dtype).itemsize)
        dimensions = group.dimensions_of(dataset)
        try:
            array = made.create_array(
                name.replace(_netcdf.NOT_COORDINATE, ""),
                shape=shape,
                dtype=dtype,
                chunks=chunks,
                filters=None,
                compressors=None,
                # All chunks are in the store, and so their fill values are, too.
                fill_value="" if is_text else None if dtype.names else np.ravel(dataset.fillvalue)[0],
                attributes=_netcdf.in_json(attrs),
                dimension_names=dimensions if len(dimensions) == len(shape) else None,
            )
        except (ValueError, TypeError) as error:
            self._left_out(dataset, f"{dataset.dtype}, which zarr does not have ({error})")
            return
        self._arrays[array.path] = dataset, chunks

    def _left_out(self, dataset: h5.Dataset, why: str) -> None:
        warnings.warn(f"{self._file.filename}: {dataset.name} is left out: {why}", stacklevel=5)

    def __reduce__(self) -> Any:
        return _reopened, (self._path, self._options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and other._path == self._path

    def __hash__(self) -> int:
        return hash(self._path)

    def __str__(self) -> str:
        return f"thalweg://{self._file.filename}"

    def __repr__(self) -> str:
        return f"thalweg.zarr.Store({self._path!r})"

    def close(self) -> None:
        """Closes the file."""
        super().close()
        self._file.close()

    def _place(self, key: str) -> tuple[str, tuple[int, ...]] | None:
        """The array and the place of the chunk that a key names."""
        # The key of a single value ends in "c". A group may be called c, too.
        head = f"/{key}".removesuffix("/c").removeprefix("/")
        if head != key and head in self._arrays and self._grid(head) == ():
            return head, ()
        head, _, tail = f"/{key}".rpartition("/c/")
        head = head.removeprefix("/")
        if head not in self._arrays:
            return None
        try:
            place = tuple(int(number) for number in tail.split("/"))
        except ValueError:
            return None
        return (head, place) if self._is_inside(head, place) else None

    def _is_inside(self, path: str, place: tuple[int, ...]) -> bool:
        grid = self._grid(path)
        return len(place) == len(grid) and all(0 <= at < count for at, count in zip(place, grid))

    def _grid(self, path: str) -> tuple[int, ...]:
        """How many chunks there are in each dimension."""
        dataset, chunks = self._arrays[path]
        shape = dataset.shape + dataset.dtype.shape
        return tuple(math.ceil(length / part) for length, part in zip(shape, chunks))

    def _chunk(self, path: str, place: tuple[int, ...]) -> memoryview | bytes:
        """The bytes of a chunk, as zarr stores one without a codec."""
        dataset, chunks = self._arrays[path]
        starts = [at * part for at, part in zip(place, chunks)]
        key = tuple(slice(start, start + part) for start, part in zip(starts, chunks))
        if dataset.dtype.kind == "O":
            return _texts(dataset, key, chunks)
        values = np.asarray(dataset[key[: dataset.ndim] if dataset.ndim else ...])
        inner = key[dataset.ndim :]
        values = values[(...,) + inner] if inner else values
        if values.shape != chunks:
            whole: NDArray[Any] = np.zeros(chunks, values.dtype)
            whole[tuple(slice(0, length) for length in values.shape)] = values
            values = whole
        plain: Any = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        return memoryview(plain)

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The value of a key."""
        if prototype is None:
            from zarr.core.buffer import default_buffer_prototype

            prototype = default_buffer_prototype()
        value: memoryview | bytes | None = self._documents.get(key)
        if value is None:
            place = self._place(key)
            if place is None:
                return None
            value = await asyncio.to_thread(self._chunk, *place)
        return prototype.buffer.from_bytes(_part(value, byte_range))

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Parts of values."""
        return list(await asyncio.gather(*[self.get(key, prototype, part) for key, part in key_ranges]))

    async def exists(self, key: str) -> bool:
        """Whether there is a key."""
        return key in self._documents or self._place(key) is not None

    def _keys(self) -> Iterator[str]:
        yield from self._documents
        for path in self._arrays:
            for place in np.ndindex(*self._grid(path)):
                yield "/".join([path, "c", *map(str, place)])

    async def list(self) -> AsyncIterator[str]:
        """All keys."""
        for key in self._keys():
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """The keys that begin with a prefix."""
        for key in self._keys():
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """The names directly below a prefix."""
        below = prefix.rstrip("/") + "/" if prefix.strip("/") else ""
        names = {key[len(below) :].split("/")[0] for key in self._documents if key.startswith(below)}
        if prefix.strip("/") in self._arrays:
            names.add("c")
        for name in sorted(names):
            yield name

    @property
    def supports_writes(self) -> bool:
        """False."""
        return False

    @property
    def supports_deletes(self) -> bool:
        """False."""
        return False

    @property
    def supports_listing(self) -> bool:
        """True."""
        return True

    async def set(self, key: str, value: Buffer) -> None:
        """Refused."""
        raise UnsupportedError(f"{self._path}: thalweg does not write to HDF5 files: open the store with mode='r'")

    async def delete(self, key: str) -> None:
        """Refused."""
        raise UnsupportedError(f"{self._path}: thalweg does not delete from HDF5 files: open the store with mode='r'")


def _reopened(path: str, options: dict[str, Any]) -> Store:
    return Store(path, **options)


def _part(value: memoryview | bytes, wanted: ByteRequest | None) -> memoryview | bytes:
    if isinstance(wanted, RangeByteRequest):
        return value[wanted.start : wanted.end]
    if isinstance(wanted, OffsetByteRequest):
        return value[wanted.offset :]
    if isinstance(wanted, SuffixByteRequest):
        return value[max(0, len(value) - wanted.suffix) :]
    return value


def _texts(dataset: h5.Dataset, key: tuple[slice, ...], chunks: tuple[int, ...]) -> bytes:
    """Strings as the codec vlen-utf8 of zarr has them: their number, and the length and bytes of each."""
    values = np.full(chunks, b"", object)
    found = dataset[key if key else ()]
    if key:
        values[tuple(slice(0, length) for length in found.shape)] = found
    else:
        values[()] = found
    parts = [struct.pack("<I", values.size)]
    for each in values.flat:
        parts += [struct.pack("<I", len(each)), each]
    return b"".join(parts)


def _chunks(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """The chunks of an array that has none: as many of its last dimensions as fit."""
    chunks = [1] * len(shape)
    room = max(1, _CHUNK // max(1, size))
    for at in reversed(range(len(shape))):
        chunks[at] = max(1, min(shape[at], room))
        room //= chunks[at]
        if room < 1:
            break
    return tuple(chunks)


def _fill_value(value: Any, dtype: np.dtype[Any]) -> Any:
    """The attribute `_FillValue` in the form in which xarray looks for it in stores of zarr."""
    try:
        from xarray.backends.zarr import FillValueCoder
    except ImportError:
        return value
    try:
        return FillValueCoder.encode(value, dtype)
    except (ValueError, TypeError):
        return value
