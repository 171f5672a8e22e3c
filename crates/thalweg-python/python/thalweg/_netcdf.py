"""Groups, dimensions, variables and attributes as netCDF-4 stores them in HDF5 (NetCDF-4 file format specification).

The names and orders are those of the package h5netcdf, so that other HDF5 files, such as NeXus, look the same.
"""

from __future__ import annotations

import json
import os
import warnings
from collections import ChainMap, Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from thalweg import h5
from thalweg._types import Empty
from thalweg.errors import NotFoundError, UnsupportedError

# The start of the name of a dimension without values (NetCDF-4 file format, "Dimensions without coordinate variables").
_NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable."
# The name of a variable that is called like a dimension and does not have it (NetCDF-4 file format).
NOT_COORDINATE = "_nc4_non_coord_"
# Attributes in which netCDF-4 stores dimensions and its own notes.
_HIDDEN = {
    "REFERENCE_LIST",
    "CLASS",
    "DIMENSION_LIST",
    "NAME",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_nc3_strict",
    "_NCProperties",
}


def _bytes(value: Any) -> bytes:
    """A string of an attribute of dimension scales."""
    if isinstance(value, str):
        return value.encode()
    return bytes(value) if isinstance(value, (bytes, np.bytes_)) else b""


class Dimension:
    """A dimension. `size` is that of the longest variable if it is unlimited."""

    def __init__(self, name: str, size: int, scale: h5.Dataset | None, number: int) -> None:
        self.name = name
        self.scale = scale
        self.is_unlimited = scale is not None and scale.maxshape == (None,)
        self._size = size
        self._number = number
        self._longest: int | None = None

    @property
    def number(self) -> int:
        """Its id."""
        return int(self.scale.attrs.get("_Netcdf4Dimid", self._number)) if self.scale is not None else self._number

    @property
    def size(self) -> int:
        if not self.is_unlimited or self.scale is None:
            return self._size
        if self._longest is None:
            longest = self._size
            for reference, axis in self.scale.attrs.get("REFERENCE_LIST", ()):
                longest = max(longest, self.scale.file[reference].shape[axis])
            self._longest = longest
        return self._longest


class Group:
    """A group as netCDF-4 has it."""

    def __init__(self, file: File, group: h5.Group, parent: Group | None) -> None:
        self.file = file
        self.parent = parent
        self.group = group
        self.groups: dict[str, h5.Group] = {}
        self.datasets: dict[str, h5.Dataset] = {}
        own: dict[str, Dimension] = {}
        self.dimensions = own
        self.all_dimensions: ChainMap[str, Dimension] = (
            ChainMap(own) if parent is None else parent.all_dimensions.new_child(own)
        )
        unnamed: Counter[int] = Counter()
        for name in group:
            try:
                one = group[name]
            except (UnsupportedError, NotFoundError) as error:
                # A link to another file, or to nothing.
                warnings.warn(str(error), stacklevel=3)
                continue
            if isinstance(one, h5.Group):
                self.groups[name] = one
            elif isinstance(one, h5.Dataset) and one.shape is None:
                warnings.warn(f"{one.file.filename}: {one.name} is left out: it has no value", stacklevel=3)
            elif isinstance(one, h5.Dataset):
                if _bytes(one.attrs.get("CLASS")) == b"DIMENSION_SCALE":
                    file.highest += 1
                    own[name] = Dimension(name, len(one), one, file.highest)
                elif one.shape and _is_unlabeled(one):
                    unnamed |= Counter(one.shape)
                if _NO_VARIABLE not in _bytes(one.attrs.get("NAME")):
                    self.datasets[name] = one
        if file.phony is not None:
            named = Counter(None if each.is_unlimited else each.size for each in own.values())
            for size, count in unnamed.items():
                for _ in range(named[size], count):
                    number = file.phonies + (file.highest + 1 if file.phony == "sort" else 0)
                    file.phonies += 1
                    own[f"phony_dim_{number}"] = Dimension(f"phony_dim_{number}", size, None, -1)

    def dimensions_of(self, dataset: h5.Dataset) -> tuple[str, ...]:
        """The names of the dimensions of a variable of this group."""
        attrs = dataset.attrs
        is_scale = _bytes(attrs.get("CLASS")) == b"DIMENSION_SCALE"
        if is_scale and "_Netcdf4Coordinates" in attrs:
            names = {each.number: name for name, each in self.all_dimensions.items()}
            return tuple(names[number] for number in np.atleast_1d(attrs["_Netcdf4Coordinates"]))
        if "DIMENSION_LIST" in attrs and not _is_unlabeled(dataset):
            # As netCDF-C has it, the last scale counts.
            return tuple(os.path.basename(scales[-1].name) for scales in attrs["DIMENSION_LIST"])
        name = os.path.basename(dataset.name)
        if name in self.all_dimensions:
            return (name,)
        if self.file.phony is None:
            raise ValueError(f"{dataset.file.filename}: {dataset.name} has no dimension scales: give phony_dims='sort'")
        names_: list[str] = []
        taken: Counter[int] = Counter()
        for size in dataset.shape:
            fitting = [each.name for each in self.dimensions.values() if each.size == size]
            names_.append(fitting[taken[size]])
            taken[size] += 1
        return tuple(names_)


def _is_unlabeled(dataset: h5.Dataset) -> bool:
    """Whether no dimension has a scale."""
    counts = {len(scales) for scales in dataset.attrs.get("DIMENSION_LIST", ())} or {0}
    if 0 in counts and len(counts) > 1:
        raise ValueError(f"{dataset.file.filename}: {dataset.name}: some of its dimensions have no dimension scale")
    return counts == {0}


class File:
    """A file as netCDF-4 has it."""

    def __init__(self, file: h5.File, phony: str | None) -> None:
        if phony not in (None, "sort", "access"):
            raise ValueError(f"phony_dims={phony!r}: expected 'sort' or 'access'")
        self.file = file
        self.phony = phony
        self.highest = -1
        self.phonies = 0
        if "://" in file.filename:
            # What groups hold is found together, for each request takes long.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                file._file.find("/")
        self._groups: dict[str, Group] = {"/": Group(self, file, None)}
        if phony == "sort":
            for _ in self.walk("/"):
                pass

    def at(self, path: str) -> Group:
        """The group at a path."""
        found = self._groups["/"]
        reached = ""
        for name in path.strip("/").split("/"):
            if name:
                reached = f"{reached}/{name}"
                if name not in found.groups:
                    raise OSError(f"group not found: {name!r} of {self.file.filename}: {reached}")
                if reached not in self._groups:
                    self._groups[reached] = Group(self, found.groups[name], found)
                found = self._groups[reached]
        return found

    def walk(self, path: str) -> Iterator[str]:
        """The paths of a group and of all groups below it."""
        yield path
        for name in self.at(path).groups:
            yield from self.walk(f"{path.rstrip('/')}/{name}")


def attributes(of: h5.Dataset | h5.Group) -> dict[str, Any]:
    """Attributes, as netCDF-4 has them."""
    found: dict[str, Any] = {}
    attrs = of.attrs
    for name in attrs:
        if name in _HIDDEN:
            continue
        value = attrs[name]
        if isinstance(value, Empty):
            is_text = value.dtype.kind == "S" and value.dtype.itemsize == 1
            found[name] = "" if is_text else np.array([], value.dtype)
            continue
        kind = attrs._kind(name)
        if kind["class"] == "text" and kind["size"] > 1:
            codec = "utf-8" if kind["utf8"] else "ascii"
            if np.ndim(value):
                value = [each.decode(codec, "surrogateescape") for each in value.flat]
            else:
                value = value.decode(codec, "surrogateescape")
        elif kind["class"] in ("text", "long_text") and np.ndim(value):
            value = value.tolist()
        if not np.isscalar(value) and np.ndim(value) and len(value) == 1:
            value = value[0]
        if name not in ("_FillValue", "missing_value") and isinstance(value, bytes):
            value = value.decode("utf-8", "surrogateescape")
        found[name] = value
    return found


def in_json(found: dict[str, Any]) -> dict[str, Any]:
    """The attributes that JSON can hold."""
    shown: dict[str, Any] = {}
    for name, value in found.items():
        plain = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
        if isinstance(plain, bytes):
            plain = plain.decode("utf-8", "surrogateescape")
        try:
            json.dumps(plain)
        except TypeError:
            warnings.warn(f"the attribute {name!r} is left out: JSON has no form for {plain!r}", stacklevel=2)
            continue
        shown[name] = plain
    return shown
