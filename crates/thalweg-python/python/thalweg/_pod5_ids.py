"""Read ids as text and in 16 bytes each, with the functions of the library pod5."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from thalweg.errors import UsageError

# A read id is a UUID.
_BYTES = 16


class InvalidIdsError(UsageError, RuntimeError):
    """Read ids that are no UUIDs, or more than there is room for."""


def _packed(read_ids: Iterable[Any]) -> tuple[list[bytes], list[Any]]:
    """The bytes of the ids that are UUIDs, and the other ids."""
    packed, others = [], []
    for read_id in read_ids:
        try:
            packed.append(UUID(str(read_id)).bytes)
        except ValueError:
            others.append(read_id)
    return packed, others


def load_read_id_iterable(read_ids: Iterable[str], read_id_data: NDArray[np.uint8]) -> int:
    """Writes read ids into an array of the shape (n, 16), and returns how many. Ids that are no UUIDs are left out."""
    packed, _ = _packed(read_ids)
    if len(packed) > len(read_id_data):
        raise InvalidIdsError(f"found {len(packed)} read ids, and an array with room for {len(read_id_data)}")
    read_id_data[: len(packed)] = np.frombuffer(b"".join(packed), np.uint8).reshape(-1, _BYTES)
    return len(packed)


def pack_read_ids(read_ids: Collection[str], invalid_ok: bool = False) -> NDArray[np.uint8]:
    """Read ids as an array of the shape (n, 16).

    Args:
        read_ids: The ids.
        invalid_ok: Whether ids that are no UUIDs are left out. If not, they are an error.
    """
    packed, others = _packed(read_ids)
    if others and not invalid_ok:
        raise InvalidIdsError(f"found the read id {others[0]!r}, expected a UUID; invalid_ok=True leaves it out")
    return np.frombuffer(bytearray(b"".join(packed)), np.uint8).reshape(-1, _BYTES)


def format_read_ids(read_ids: Any) -> list[str]:
    """Read ids in 16 bytes each, in an array of numpy or pyarrow, as text."""
    if hasattr(read_ids, "to_pylist"):
        return [str(UUID(bytes=one)) for one in read_ids.to_pylist()]
    data = np.ascontiguousarray(read_ids, np.uint8).tobytes()
    return [str(UUID(bytes=data[start : start + _BYTES])) for start in range(0, len(data), _BYTES)]


format_read_id_to_str = format_read_ids
