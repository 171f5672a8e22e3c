"""Selections of elements, in the notation of h5py."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Slab = tuple[int, int, int]
"""The first element of a dimension, how many, and the step between them."""

# Points are passed by their coordinates, which take memory.
_MOST_POINTS = 1 << 20
# Decoded bytes that are read at a time, beside the result, for an index of many elements.
_BATCH = 32 << 20
# Elements of an array without chunks that are read, rather than skipped, between wanted ones.
_GAP_BYTES = 1 << 16


class Selection:
    """The wanted elements of an array.

    Attributes:
        slabs: A slab for each dimension.
        shape: The shape of the result.
        axis: The dimension of which `index` names elements, if any. Its slab spans them.
        index: The wanted elements of that dimension, in any order.
        mask: Instead, which elements of the whole array are wanted.
    """

    def __init__(self, path: str, key: Any, shape: tuple[int, ...]) -> None:
        self.full = shape
        self.slabs: list[Slab] = []
        self.axis: int | None = None
        self.index: NDArray[np.int64] | None = None
        self.mask: NDArray[np.bool_] | None = None
        kept: list[int] = []
        keys = list(key) if isinstance(key, tuple) else [key]
        if len(keys) == 1 and shape and _is_mask(keys[0]) and np.shape(keys[0]) == shape:
            if len(shape) == 1:
                keys = [np.flatnonzero(keys[0])]
            else:
                self.mask = np.asarray(keys[0])
                self.shape: tuple[int, ...] = (int(self.mask.sum()),)
                return
        for dimension, (one, length) in enumerate(zip(_expanded(path, keys, len(shape)), shape)):
            if isinstance(one, slice):
                first, end, step = one.indices(length)
                if step < 0:
                    raise IndexError(f"{path}: a step of {step}: read forwards, and reverse the array")
                count = max(0, -((first - end) // step))
                self.slabs.append((first, count, step) if count else (0, 0, 1))
                kept.append(count)
            elif isinstance(one, (list, np.ndarray)) and np.ndim(one) == 1:
                if self.index is not None:
                    raise TypeError(f"{path}: lists of indices for two dimensions: index one, and then the result")
                self.axis = dimension
                self.index = _index(path, one, dimension, length)
                self.slabs.append((0, len(self.index), 1))
                kept.append(len(self.index))
            else:
                at = _number(path, one)
                if not -length <= at < length:
                    raise IndexError(f"{path}: index {at} of dimension {dimension}, which has {length} elements")
                self.slabs.append((at % length, 1, 1))
        self.shape = tuple(kept)
        self._as_slab()

    def _as_slab(self) -> None:
        """Makes a slab of indices with one step between them."""
        if self.index is None or self.axis is None:
            return
        steps = np.diff(self.index)
        if len(steps) and (steps[0] < 1 or np.any(steps != steps[0])):
            return
        first = int(self.index[0]) if len(self.index) else 0
        self.slabs[self.axis] = (first, len(self.index), int(steps[0]) if len(steps) else 1)
        self.index = self.axis = None

    @property
    def is_whole(self) -> bool:
        """Whether it is all elements, in their order."""
        if self.mask is not None or self.index is not None:
            return False
        return all(slab == (0, length, 1) for slab, length in zip(self.slabs, self.full))

    @property
    def is_simple(self) -> bool:
        """Whether it is a slab in each dimension."""
        return self.mask is None and self.index is None

    @property
    def lengths(self) -> tuple[int, ...]:
        """The shape of the result, with 1 for each dimension of which one element is wanted."""
        return self.shape if self.mask is not None else tuple(count for _, count, _ in self.slabs)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def points(self) -> NDArray[np.uint64] | None:
        """The coordinates of the elements, one row each, if they are best read one by one."""
        if self.size > _MOST_POINTS:
            return None
        if self.mask is not None:
            return np.stack(np.nonzero(self.mask), axis=1).astype("<u8")
        if self.index is None or self.size != len(self.index):
            return None
        rows = np.empty((len(self.index), len(self.full)), "<u8")
        rows[:] = [first for first, _, _ in self.slabs]
        rows[:, self.axis] = self.index
        return rows

    def batches(self, chunks: tuple[int, ...] | None, itemsize: int) -> Iterator[list[Part]]:
        """Parts that are read together, each a slab. Parts of one chunk are not divided.

        Args:
            chunks: The shape of a chunk, if there are chunks.
            itemsize: Bytes of an element.
        """
        axis = self.axis or 0
        slabs = self.slabs or [(0, length, 1) for length in self.full]
        if self.mask is not None:
            others = tuple(range(1, self.mask.ndim))
            wanted = np.flatnonzero(self.mask.any(axis=others))
            order = np.arange(len(wanted))
        else:
            assert self.index is not None
            order = np.argsort(self.index, kind="stable")
            wanted = self.index[order]
        row = itemsize * math.prod(count for at, (_, count, _) in enumerate(slabs) if at != axis)
        band = chunks[axis] if chunks else max(1, _GAP_BYTES // max(1, row))
        ends = [*(np.flatnonzero(np.diff(wanted // band)) + 1), len(wanted)]
        batch: list[Part] = []
        bytes_ = start = 0
        for end in ends:
            first, last = int(wanted[start]), int(wanted[end - 1])
            part = list(slabs)
            part[axis] = (first, last - first + 1, 1)
            batch.append(Part(part, wanted[start:end] - first, order[start:end]))
            bytes_ += row * (last - first + 1)
            if bytes_ >= _BATCH:
                yield batch
                batch, bytes_ = [], 0
            start = end
        if batch:
            yield batch


class Part(NamedTuple):
    """A part of a selection."""

    slabs: list[Slab]
    """What is read."""
    take: NDArray[np.int64]
    """The wanted elements of what was read, along the dimension."""
    to: NDArray[np.int64]
    """Their places in the result."""


def _is_mask(key: Any) -> bool:
    return isinstance(key, (list, np.ndarray)) and np.asarray(key).dtype == bool


def _expanded(path: str, keys: list[Any], rank: int) -> list[Any]:
    """A key for each dimension."""
    if sum(key is Ellipsis for key in keys) > 1:
        raise IndexError(f"{path}: more than one ...")
    missing = rank - sum(key is not Ellipsis for key in keys)
    if missing < 0:
        raise IndexError(f"{path}: {rank - missing} indices, of an array of {rank} dimensions")
    at = next((at for at, key in enumerate(keys) if key is Ellipsis), len(keys))
    return keys[:at] + [slice(None)] * missing + keys[at + 1 :]


def _number(path: str, key: Any) -> int:
    if isinstance(key, (bool, np.bool_)):
        raise TypeError(f"{path}: an index of {key!r}: expected numbers, slices, lists, masks and ...")
    try:
        return int(key.__index__())
    except (AttributeError, TypeError):
        raise TypeError(f"{path}: an index of {key!r}: expected numbers, slices, lists, masks and ...") from None


def _index(path: str, key: Any, dimension: int, length: int) -> NDArray[np.int64]:
    index = np.asarray(key)
    if index.dtype == bool:
        if len(index) != length:
            raise IndexError(f"{path}: a mask of {len(index)} for dimension {dimension}, which has {length} elements")
        return np.flatnonzero(index)
    if index.size == 0:
        return np.empty(0, np.int64)
    if index.dtype.kind not in "iu":
        raise TypeError(f"{path}: indices of {index.dtype}: expected integers")
    wrong = index[(index < -length) | (index >= length)]
    if len(wrong):
        raise IndexError(f"{path}: index {wrong[0]} of dimension {dimension}, which has {length} elements")
    index = index.astype(np.int64)
    return np.where(index < 0, index + length, index)
