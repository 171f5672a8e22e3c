"""A parser of VirtualiZarr: HDF5 files as chunks of zarr that lie in the file.

>>> from virtualizarr import open_virtual_dataset
>>> vds = open_virtual_dataset("file:///data/run.nc", registry, parser=thalweg.virtualizarr.Parser())

thalweg finds the chunks, without libhdf5. Whoever reads them later decodes them with the codecs of zarr and numcodecs,
so only filters that these have can be parsed. `thalweg.zarr.Store` has no such limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np

from thalweg import _netcdf, h5
from thalweg._types import Kind, dtype_of
from thalweg.arrays import Filter
from thalweg.errors import UnsupportedError

try:
    from obspec_utils.registry import ObjectStoreRegistry
    from virtualizarr.codecs import zarr_codec_config_to_v3
    from virtualizarr.manifests import ChunkManifest, ManifestArray, ManifestGroup, ManifestStore
    from virtualizarr.manifests.utils import create_v3_array_metadata
    from virtualizarr.parsers.utils import encode_cf_fill_value
except ImportError as error:
    raise ImportError("thalweg.virtualizarr needs VirtualiZarr: pip install 'thalweg[virtualizarr]'") from error

__all__ = ["Parser"]

_BLOSC = ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"]


class Parser:
    """Makes a `ManifestStore` of a file: `Parser(group="/entry")(url, registry)`.

    Args:
        group: The group of the file that is the root of the store.
        drop_variables: Names of arrays that are left out.
        threads, memory, timeout: As `thalweg.open` has them.

    Raises:
        thalweg.UnsupportedError: An array whose elements or filters zarr has no codec for.
    """

    def __init__(
        self,
        group: str | None = None,
        drop_variables: Iterable[str] | None = None,
        *,
        threads: int | None = None,
        memory: float | str | None = None,
        timeout: float | None = None,
    ) -> None:
        self.group = group
        self.drop_variables = frozenset(drop_variables or ())
        self._options: dict[str, Any] = {"threads": threads, "memory": memory, "timeout": timeout}

    def __call__(self, url: str, registry: ObjectStoreRegistry[Any]) -> ManifestStore:
        """The chunks of the file at a URL, which thalweg opens by itself. Later readers use the registry."""
        parts = urlparse(url)
        path = unquote(parts.path) if parts.scheme == "file" else url
        with h5.File(path, **self._options) as file:
            netcdf = _netcdf.File(file, "access")
            group = self._group(netcdf, "/" + (self.group or "").strip("/"), url)
        return ManifestStore(registry=registry, group=group)

    def _group(self, netcdf: _netcdf.File, path: str, url: str) -> ManifestGroup:
        group = netcdf.at(path)
        arrays = {
            name.replace(_netcdf.NOT_COORDINATE, ""): _array(dataset, group.dimensions_of(dataset), url)
            for name, dataset in group.datasets.items()
            if name not in self.drop_variables
        }
        groups = {
            name: self._group(netcdf, f"{path.rstrip('/')}/{name}", url)
            for name in group.groups
            if name not in self.drop_variables
        }
        return ManifestGroup(
            arrays=arrays, groups=groups, attributes=_netcdf.in_json(_netcdf.attributes(group.group))
        )


def _refused(dataset: h5.Dataset, what: str) -> UnsupportedError:
    file = dataset.file.filename
    return UnsupportedError(f"{file}: {dataset.name}: {what}: drop it, or use thalweg.zarr.Store", file)


def _array(dataset: h5.Dataset, dimensions: tuple[str, ...], url: str) -> ManifestArray:
    if dataset._object.not_read is not None:
        raise _refused(dataset, f"{dataset._object.not_read}, which zarr has no codec for")
    table = dataset._file._engine.chunk_table(dataset._object)
    if table is None:
        raise _refused(dataset, "its elements are not in chunks of this file")
    dtype = _stored(dataset, dataset._header.kind)
    shape = dataset.shape + dtype.shape
    chunks = tuple(dataset._object.chunks or shape)
    attrs = _netcdf.attributes(dataset)
    if "_FillValue" in attrs:
        attrs["_FillValue"] = encode_cf_fill_value(attrs["_FillValue"], dtype.base)
    codecs = [zarr_codec_config_to_v3(_codec(dataset, each)) for each in dataset.filters]
    fills = np.ravel(dataset.fillvalue)
    if len({fill.tobytes() for fill in fills}) > 1:
        raise _refused(dataset, "a fill value whose parts differ")
    metadata = create_v3_array_metadata(
        shape=shape,
        data_type=dtype.base,
        chunk_shape=tuple(max(1, length) for length in chunks),
        fill_value=fills[0].item(),
        codecs=codecs,
        dimension_names=dimensions if len(dimensions) == len(shape) else None,
        attributes=_netcdf.in_json(attrs),
    )
    first, offset, size, mask = map(np.asarray, table)
    if mask.any():
        raise _refused(dataset, "chunks that skipped filters")
    grid = tuple(math.ceil(length / part) if part else 0 for length, part in zip(shape, chunks))
    if not len(first):
        return ManifestArray(metadata=metadata, chunkmanifest=ChunkManifest(entries={}, shape=grid))
    paths = np.full(math.prod(grid), "", np.dtypes.StringDType())
    offsets, lengths = np.zeros((2, math.prod(grid)), np.uint64)
    paths[first] = url
    offsets[first] = offset
    lengths[first] = size
    manifest = ChunkManifest.from_arrays(
        paths=paths.reshape(grid), offsets=offsets.reshape(grid), lengths=lengths.reshape(grid)
    )
    return ManifestArray(metadata=metadata, chunkmanifest=manifest)


def _stored(dataset: h5.Dataset, kind: Kind) -> np.dtype[Any]:
    """The type of elements as they are stored."""
    name = kind["class"]
    if dataset._object.is_converted:
        raise _refused(dataset, f"a type of {kind['size']} bytes that numpy has no name for as it is stored")
    if name in ("integer", "float", "bits"):
        return dtype_of(kind).newbyteorder(kind["order"])
    if name == "enumeration":
        return dtype_of(kind) if dtype_of(kind) == bool else _stored(dataset, kind["base"])
    if name == "array":
        return np.dtype((_stored(dataset, kind["item"]), tuple(kind["shape"])))
    if name == "text" and kind["padding"] == "spaces":
        raise _refused(dataset, "strings that end with spaces")
    if name == "record":
        for member in kind["members"]:
            if _stored(dataset, member["type"]) != dtype_of(member["type"]):
                raise _refused(dataset, "records with big-endian numbers")
    return dtype_of(kind)


def _codec(dataset: h5.Dataset, one: Filter) -> dict[str, Any]:
    """The configuration of a filter for numcodecs."""
    number, name, values = one
    if number == 1:
        return {"id": "zlib", "level": values[0] if values else 1}
    if number == 2:
        if dataset.fletcher32 and [each.number for each in dataset.filters].index(3) < dataset.filters.index(one):
            raise _refused(dataset, "a checksum that is shuffled with the elements, which numcodecs cannot undo")
        return {"id": "shuffle", "elementsize": values[0] if values else dataset.dtype.base.itemsize}
    if number == 3:
        return {"id": "fletcher32"}
    if number == 307:
        return {"id": "bz2", "level": values[0] if values else 9}
    if number == 32015:
        return {"id": "zstd", "level": values[0] if values else 3}
    if number == 32001 and len(values) >= 7 and values[6] < len(_BLOSC):
        _, _, _, size, level, shuffle, inner = values[:7]
        return {"id": "blosc", "cname": _BLOSC[inner], "clevel": level, "shuffle": shuffle, "blocksize": size}
    raise _refused(dataset, f"the filter {number} {name or ''}".rstrip() + ", which zarr has no codec for")
