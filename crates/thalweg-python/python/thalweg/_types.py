"""Types and values of HDF5 files in numpy's terms, as h5py has them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

Kind = dict[str, Any]
"""A type, as the crate `thalweg-hdf5` shows it in JSON."""


class Reference:
    """A reference to an object of the file: `file[reference]`, `reference.name`."""

    def __init__(self, address: int, name: Callable[[int], str | None]) -> None:
        self._address = address
        self._name = name

    @property
    def name(self) -> str | None:
        """The path of the object; None if no link leads to it."""
        return self._name(self._address)

    def __bool__(self) -> bool:
        return self._address not in (0, 2**64 - 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other._address == self._address

    def __hash__(self) -> int:
        return hash(self._address)

    def __repr__(self) -> str:
        return f"<thalweg.h5.Reference {self.name}>" if self else "<thalweg.h5.Reference: null>"


class Empty:
    """A dataset or attribute without a value."""

    shape = None
    size = None

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Empty) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"Empty(dtype={self.dtype.str!r})"


def parsed(kind: str) -> Kind:
    """A type out of its JSON."""
    found: Kind = json.loads(kind)
    return found


def is_boolean(kind: Kind) -> bool:
    """Whether it is the enumeration that h5py writes booleans as."""
    return kind["size"] == 1 and sorted(map(tuple, kind["names"])) == [("FALSE", 0), ("TRUE", 1)]


def dtype_of(kind: Kind, size: int | None = None) -> np.dtype[Any]:
    """The type of elements in memory: that of h5py, but little-endian.

    Args:
        kind: The type.
        size: Bytes of an element in memory, if it is not the size in the file.
    """
    size = size or kind["size"]
    name = kind["class"]
    if name == "integer":
        return np.dtype(f"<{'i' if kind['signed'] else 'u'}{size}")
    if name == "bits":
        return np.dtype(f"<u{size}")
    if name == "float":
        return np.dtype(f"<f{size}")
    if name == "complex":
        return np.dtype(f"<c{size}")
    if name == "text":
        return np.dtype(f"S{size}", metadata={"h5py_encoding": "utf-8" if kind["utf8"] else "ascii"})
    if name == "long_text":
        return np.dtype("O", metadata={"vlen": str if kind["utf8"] else bytes})
    if name == "list":
        return np.dtype("O", metadata={"vlen": dtype_of(kind["item"])})
    if name == "reference":
        return np.dtype("O", metadata={"ref": Reference})
    if name == "array":
        return np.dtype((dtype_of(kind["item"]), tuple(kind["shape"])))
    if name == "enumeration":
        if is_boolean(kind):
            return np.dtype(bool)
        return np.dtype(dtype_of(kind["base"]), metadata={"enum": dict(kind["names"])})
    if name == "opaque" and kind["tag"].startswith("NUMPY:"):
        named = np.dtype(kind["tag"].removeprefix("NUMPY:"))
        little: np.dtype[Any] = named.newbyteorder("<")
        return little
    if name == "record":
        return _record(kind, lambda member: dtype_of(member))
    return np.dtype(f"V{size}")


def _record(kind: Kind, dtype: Callable[[Kind], np.dtype[Any]]) -> np.dtype[Any]:
    members = kind["members"]
    formats = [dtype(member["type"]) for member in members]
    offsets = [member["offset"] for member in members]
    names = [member["name"] for member in members]
    # h5py writes complex numbers as such records.
    if names == ["r", "i"] and formats[0] == formats[1] and formats[0].kind == "f":
        if offsets == [0, formats[0].itemsize] and kind["size"] == 2 * formats[0].itemsize:
            return np.dtype(f"<c{kind['size']}")
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": kind["size"]})


def _stored_dtype(kind: Kind) -> np.dtype[Any]:
    """The type of the bytes in which references are addresses."""
    if kind["class"] == "reference":
        return np.dtype("<u8")
    if kind["class"] == "record":
        return _record(kind, _stored_dtype)
    if kind["class"] == "array":
        return np.dtype((_stored_dtype(kind["item"]), tuple(kind["shape"])))
    return dtype_of(kind)


def _has_reference(kind: Kind) -> bool:
    if kind["class"] == "record":
        return any(_has_reference(member["type"]) for member in kind["members"])
    return kind["class"] == "reference" or (kind["class"] == "array" and _has_reference(kind["item"]))


Elements = Union[bytes, list[bytes]]


class Decoder:
    """Makes values of elements.

    Args:
        name: The path of the object with a header at an address.
        is_plain: Whether text, names of codes and paths are wanted, and not what h5py has in their places.
    """

    def __init__(self, name: Callable[[int], str | None], is_plain: bool) -> None:
        self._name = name
        self._is_plain = is_plain

    def attribute(self, kind: Kind, shape: list[int] | None, elements: Elements) -> Any:
        """The value of an attribute."""
        if shape is None:
            return None if self._is_plain else Empty(dtype_of(kind))
        values = self._array(kind, tuple(shape), elements)
        if values.shape == ():
            return values[()]
        return values

    def _array(self, kind: Kind, shape: tuple[int, ...], elements: Elements) -> NDArray[Any]:
        if isinstance(elements, list):
            return objects([self._item(kind, element) for element in elements], shape)
        stored = _stored_dtype(kind)
        count = math.prod(shape)
        if kind["class"] in ("integer", "float", "bits") and count and len(elements) != count * stored.itemsize:
            stored = dtype_of(kind, len(elements) // count)
        # A type of an array adds its dimensions.
        values: NDArray[Any] = np.frombuffer(bytearray(elements), stored.base)
        values = values.reshape(shape + stored.shape)
        if _has_reference(kind):
            return self._referenced(kind, values)
        if kind["class"] == "enumeration" and self._is_plain and not is_boolean(kind):
            names = {code: name for name, code in reversed(kind["names"])}
            return objects([names.get(int(code), int(code)) for code in values.flat], values.shape)
        if kind["class"] == "text" and self._is_plain:
            texts = [text(each) for each in values.flat]
            return objects(texts, values.shape)
        # With its metadata.
        return values if self._is_plain or kind["class"] == "array" else values.view(dtype_of(kind, stored.itemsize))

    def _item(self, kind: Kind, element: bytes) -> Any:
        if kind["class"] == "long_text":
            return text(element)
        item = kind["item"]
        return self._array(item, (len(element) // max(1, _stored_dtype(item).itemsize),), element)

    def _referenced(self, kind: Kind, values: NDArray[Any]) -> NDArray[Any]:
        while kind["class"] == "array":
            kind = kind["item"]
        if kind["class"] == "reference":
            references = [Reference(int(address), self._name) for address in values.flat]
            if self._is_plain:
                return objects([reference.name if reference else None for reference in references], values.shape)
            return objects(references, values.shape)
        record: NDArray[Any] = np.empty(values.shape, dtype_of(kind))
        for member in kind["members"]:
            field = values[member["name"]]
            if _has_reference(member["type"]):
                field = self._referenced(member["type"], field)
            record[member["name"]] = field
        return record


def text(element: bytes) -> str:
    """A string. Bytes that are no UTF-8 come back with `.encode("utf-8", "surrogateescape")`."""
    return bytes(element).decode("utf-8", "surrogateescape")


def objects(each: list[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """An array of objects, which may be arrays."""
    values = np.empty(len(each), object)
    for place, value in enumerate(each):
        values[place] = value
    return values.reshape(shape)
