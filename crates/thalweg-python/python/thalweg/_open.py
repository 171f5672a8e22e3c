"""Opens paths as what they hold."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, BinaryIO

from thalweg import _thalweg
from thalweg._fileobj import path_of, source_of
from thalweg._paths import Path
from thalweg.arrays import Arrays
from thalweg.fastq import Fastq
from thalweg.network import Network
from thalweg.reads import Reads


def options_of(
    *,
    threads: int | None = None,
    memory: float | str | None = None,
    timeout: float | None = None,
    cache: str | None = None,
) -> dict[str, Any]:
    """The options of a file, for the engine."""
    return {"threads": threads, "memory": memory, "timeout": timeout, "cache": cache}


def open(
    path: Path | Sequence[Path] | BinaryIO,
    *,
    threads: int | None = None,
    memory: float | str | None = None,
    timeout: float | None = None,
    cache: str | None = None,
) -> Reads | Arrays | Network | Fastq:
    """Opens a path or URL as what it holds: nanopore reads, arrays of an HDF5 file, a network, or FASTQ.

    A folder, a pattern such as `runs/**/*.pod5`, and a list of paths are read as one set of reads. An open file, also
    one of fsspec, is read while it stays open; reading it takes Python's lock for each request, so that a path or URL is
    faster. Its methods must not use what is opened from it: that may wait for the read that called them.

    Args:
        path: What to open.
        threads: Threads that decode; all cores by default.
        memory: What reading may use, in bytes or as in `"256MB"`; 192 MiB by default, and 384 MiB for objects at URLs.
        timeout: Seconds without a byte of an object after which reading it fails; 30 by default.
        cache: Bytes of the disc that keep what is read from URLs, as in `"20GB"`, `"20GB,free=50GB,folder=/scratch"` or
            `"off"`. By default the variable THALWEG_CACHE says it, and without it nothing is kept. `thalweg cache` shows
            and empties it.

    Raises:
        thalweg.IoError: The system refuses it.
        thalweg.FormatError: The content violates its format.
    """
    options = options_of(threads=threads, memory=memory, timeout=timeout, cache=cache)
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
    opened: _thalweg.ReadSet | _thalweg.ArrayFile | _thalweg.Network | _thalweg.Fastq,
    path: str | None,
    options: dict[str, Any],
) -> Reads | Arrays | Network | Fastq:
    if isinstance(opened, _thalweg.ReadSet):
        return Reads(opened, None if path is None else options)
    if isinstance(opened, _thalweg.ArrayFile):
        return Arrays(opened, path, options)
    if isinstance(opened, _thalweg.Fastq):
        return Fastq(opened, None if path is None else options)
    return Network(opened)
