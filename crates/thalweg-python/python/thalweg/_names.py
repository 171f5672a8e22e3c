"""Read ids and names of columns as callers give them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Union
from uuid import UUID

from thalweg.errors import UsageError

ReadId = Union[str, UUID]


def id_of(read_id: Any) -> str:
    """A read id as text. Beside text it may be what shows itself as a UUID: a `uuid.UUID`, or a scalar of pyarrow."""
    if isinstance(read_id, str):
        return read_id
    try:
        return str(UUID(str(read_id)))
    except ValueError:
        raise UsageError(f"read id: found {read_id!r}, expected a string or a UUID") from None


def ids_of(ids: Iterable[Any]) -> list[str]:
    """Read ids as text. One string would be taken letter by letter."""
    _is_list("ids", ids)
    return [id_of(read_id) for read_id in ids]


def columns_of(columns: Iterable[str] | None) -> list[str] | None:
    """Names of columns; None for all."""
    if columns is None:
        return None
    _is_list("columns", columns)
    names = list(columns)
    if not names:
        raise UsageError("columns=[]: found no column, expected at least one; leave columns out for all of them")
    return names


def _is_list(what: str, given: Any) -> None:
    if isinstance(given, (str, bytes, UUID)) or not isinstance(given, Iterable):
        kind = type(given).__name__
        raise UsageError(f"{what}={given!r}: found one {kind}, expected a list of strings; write {what}=[{given!r}]")
