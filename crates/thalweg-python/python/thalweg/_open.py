"""Opens paths as what they hold."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, BinaryIO

from thalweg import _thalweg
from thalweg._fileobj import path_of, source_of
from thalweg._paths import Path
from thalweg.arrays import Arrays
from thalweg.errors import UsageError
from thalweg.network import Network
from thalweg.reads import Reads

_UNITS = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def _bytes(size: float | str | None) -> int | None:
    """A size in bytes, as `"256MB"` has it."""
    if size is None:
        return None
    if not isinstance(size, str):
        return int(size)
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", size)
    if match is None or match[2] not in _UNITS:
        raise UsageError(f"memory={size!r}: expected a number of bytes, or a size as in '256MB' or '1GiB'")
    return int(float(match[1]) * _UNITS[match[2]])


def options_of(
    *, threads: int | None = None, memory: float | str | None = None, timeout: float | None = None
) -> dict[str, Any]:
    """The options of a file, for the engine."""
    return {"threads": threads, "memory": _bytes(memory), "timeout": timeout}


def open(
    path: Path | Sequence[Path] | BinaryIO,
    *,
    threads: int | None = None,
    memory: float | str | None = None,
    timeout: float | None = None,
) -> Reads | Arrays | Network:
    """Opens a path or URL as what it holds: nanopore reads, arrays of an HDF5 file, or a network.

    A folder, a pattern such as `runs/**/*.pod5`, and a list of paths are read as one set of reads. An open file, also
    one of fsspec, is read while it stays open; reading it takes Python's lock for each request, so that a path or URL is
    faster.

    Args:
        path: What to open.
        threads: Threads that decode; all cores by default.
        memory: What reading may use, in bytes or as in `"256MB"`; 192 MiB by default, and 384 MiB for objects at URLs.
        timeout: Seconds without a byte of an object after which reading it fails; 30 by default.

    Raises:
        thalweg.IoError: The system refuses it.
        thalweg.FormatError: The content violates its format.
    """
    options = options_of(threads=threads, memory=memory, timeout=timeout)
    if not isinstance(path, (str, os.PathLike, Sequence)):
        local = path_of(path)
        if local is None:
            source = source_of(path)
            return _shown(_thalweg.open_file(*source, options), None, options)
        path = local
    paths = [path] if isinstance(path, (str, os.PathLike)) else path
    opened = _thalweg.open([os.fspath(each) for each in paths], options)
    return _shown(opened, os.fspath(paths[0]) if paths else "", options)


def _shown(
    opened: _thalweg.ReadSet | _thalweg.ArrayFile | _thalweg.Network, path: str | None, options: dict[str, Any]
) -> Reads | Arrays | Network:
    if isinstance(opened, _thalweg.ReadSet):
        return Reads(opened, None if path is None else options)
    if isinstance(opened, _thalweg.ArrayFile):
        return Arrays(opened, path, options)
    return Network(opened)
